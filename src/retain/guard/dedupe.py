"""Near-duplicates: texts so alike that the second one is refused, decided in bounded time."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..errors import InvalidType, InvalidValue
from .hooks import Hook

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["dedupe_against"]

LONGEST = 4000
"""Characters up to which two texts are compared exactly; the table of a pair is LONGEST² cells."""

EFFORT = 600_000_000
"""Steps of about a nanosecond that one call may spend on exact comparisons.

Counted, not timed, so that the same texts get the same answer on every machine.
"""

_STRIDE = 32  # characters between two looks at the bound
_BAND = 1 << 18  # cells looked through at a time, so that they stay in the processor's cache
_MARK = r"[^\w\s\x00-\x7f]"  # the combining marks, and symbols, which do no harm here
_TWO_MARKS = re.compile(_MARK * 2)
_MANY_MARKS = re.compile(f"(?<!{_MARK}){_MARK}{{101,}}")


def dedupe_against(existing_fetcher: Callable[[], Iterable[str]], threshold: float = 0.9) -> Hook:
    """A hook that refuses a text which is too much like one that is there already.

    ``existing_fetcher`` is called once for every text and returns the texts to compare it with;
    ``threshold``, in (0, 1], is the similarity from which a text is refused. Raises
    ``InvalidType`` or ``InvalidValue`` for anything else.

    Similarity is ``difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()`` of the texts
    in Unicode's NFC, in [0, 1]: 2 · matches / (len(a) + len(b)), with matches found by
    Ratcliff and Obershelp's method. ``ratio()`` depends on the order of its two texts; here the
    larger of both counts, so that the answer doesn't depend on which text came first. Without
    ``autojunk`` since that would ignore every frequent letter of a text of 200 characters.

    The answer takes bounded time whatever the texts:

    - Texts that are equal after NFC, trimming and joining of white space are always found.
    - Two texts of up to 4,000 characters each are compared exactly, by far most of them without
      computing the ratio: the texts' lengths and then their longest common subsequence bound it
      from above.
    - Longer ones are alike if the opening and the ending they share, together, reach the
      threshold: an edit in one place is found, edits in several are not. The same test stands
      in for the exact one after about half a second of exact comparisons in one call, which
      ordinary texts don't get near.
    - A text with a run of more than 100 combining marks is taken as it is, not in NFC.

    >>> dedupe_against(lambda: ["The sky is blue today"])("The sky is blue today!") is None
    True
    """
    if not callable(existing_fetcher):
        raise InvalidType(
            f"existing_fetcher is a {type(existing_fetcher).__name__}; give a function without "
            "arguments that returns the texts to compare with"
        )
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)):
        raise InvalidType(f"threshold is a {type(threshold).__name__}; give a number in (0, 1]")
    if not 0 < threshold <= 1:  # NaN fails this too
        raise InvalidValue(f"threshold={threshold!r} is outside (0, 1]")

    def hook(text: str) -> str | None:
        candidate = _Candidate(text, threshold)
        return None if any(map(candidate.is_like, existing_fetcher())) else text

    hook.__name__ = hook.__qualname__ = "dedupe_against"
    return hook


class _Candidate:
    """A new text, what can be computed once for it, and the effort left to compare it."""

    def __init__(self, text: str, threshold: float) -> None:
        self.text = _nfc(text)
        self.threshold = threshold
        self.effort = EFFORT
        self._bits: dict[str, int] = {}

    def is_like(self, other: str) -> bool:
        if not isinstance(other, str):
            raise InvalidType(
                f"existing_fetcher returned a {type(other).__name__} among its texts; "
                "give texts only"
            )
        other = _nfc(other)
        if _equal(self.text, other):
            return True
        need = self._needed(len(self.text) + len(other))
        if min(len(self.text), len(other)) < need:
            return False
        if max(len(self.text), len(other)) > LONGEST or self.effort <= 0:
            return _shared_ends(self.text, other) >= need
        return self._may_share(other, need) and self._shares(other, need)

    def _needed(self, length: int) -> int:
        """The fewest matches that make the ratio of two texts, ``length`` together, reach it."""
        matches = max(0, math.floor(self.threshold * length / 2) - 1)
        while 2.0 * matches / length < self.threshold:  # difflib's own arithmetic
            matches += 1
        return matches

    def _may_share(self, other: str, need: int) -> bool:
        """Whether the longest common subsequence has ``need`` characters: no match has more.

        Bit-parallel, after Hyyrö, "Bit-parallel LCS-length computation revisited" (2004): a bit
        for each character of the text, cleared where the subsequence grows.
        """
        if not self._bits:
            for place, character in enumerate(self.text):
                self._bits[character] = self._bits.get(character, 0) | 1 << place
        length = len(self.text)
        every = (1 << length) - 1
        row = every
        for done in range(0, len(other), _STRIDE):
            for character in other[done : done + _STRIDE]:
                common = row & self._bits.get(character, 0)
                row = (row + common | row - common) & every
            left = max(0, len(other) - done - _STRIDE)
            self.effort -= _STRIDE * (100 + length // 14)
            if length - row.bit_count() + left < need:
                return False
        return True

    def _shares(self, other: str, need: int) -> bool:
        """Whether Ratcliff and Obershelp's method matches ``need`` characters in either order."""
        for a, b in ((self.text, other), (other, self.text)):
            self.effort -= len(a) * (1000 + len(b))
            matches = self._matches(_run_lengths(a, b), need)
            if matches is None:
                return _shared_ends(a, b) >= need
            if matches:
                return True
        return False

    def _matches(self, runs: NDArray[Any], need: int) -> bool | None:
        """The same in the order of ``runs``; ``None`` if the effort runs out before."""
        height, width = runs.shape
        found, possible = 0, min(height, width)
        blocks = [(0, height, 0, width)]
        while blocks and found < need <= possible:
            top, bottom, left, right = blocks.pop()
            possible -= min(bottom - top, right - left)
            self.effort -= 10_000 + (bottom - top) * (right - left)
            if self.effort <= 0:
                return None
            i, j, size = _longest_run(runs[top:bottom, left:right])
            if not size:
                continue
            i, j, found = top + i, left + j, found + size
            possible += size
            for block in ((top, i, left, j), (i + size, bottom, j + size, right)):
                smaller = min(block[1] - block[0], block[3] - block[2])
                if smaller:
                    possible += smaller
                    blocks.append(block)
        return found >= need


def _run_lengths(a: str, b: str) -> NDArray[Any]:
    """A table: how long a run ``a[i:]`` and ``b[j:]`` have in common."""
    import numpy as np

    codes = np.frombuffer(b.encode("utf-32-le", "surrogatepass"), np.uint32)
    rows = {character: (codes == ord(character)).astype(np.int16) for character in set(a)}
    table = np.zeros((len(a) + 1, len(b) + 1), np.int16)
    for i in range(len(a) - 1, -1, -1):
        np.add(table[i + 1, 1:], 1, out=table[i, :-1])
        table[i, :-1] *= rows[a[i]]
    return table[:-1, :-1]


def _longest_run(runs: NDArray[Any]) -> tuple[int, int, int]:
    """(row, column, length) of the longest run inside ``runs``: the first row's, then column's."""
    import numpy as np

    height, width = runs.shape
    to_the_right = np.arange(width, 0, -1, dtype=np.int16)
    below = np.arange(height, 0, -1, dtype=np.int16)[:, None]
    step = max(1, _BAND // width)
    longest = (0, 0, 0)
    for top in range(0, height, step):
        band = np.minimum(runs[top : top + step], to_the_right, order="C")
        np.minimum(band, below[top : top + step], out=band)
        i, j = divmod(int(band.argmax()), width)
        if band[i, j] > longest[2]:
            longest = (top + i, j, int(band[i, j]))
    return longest


# -- linear comparisons -------------------------------------------------------------------


def _nfc(text: str) -> str:
    # Normalising sorts a run of combining marks in quadratic time; no language has such runs.
    # Where one is, every 50th character hits it twice, which is quick to see.
    if text.isascii() or (_TWO_MARKS.search(text[::50]) and _MANY_MARKS.search(text)):
        return text
    return unicodedata.normalize("NFC", text)


def _equal(a: str, b: str) -> bool:
    """Whether they are the same after trimming and joining of white space."""
    a, b = a.strip(), b.strip()
    if a == b:
        return True
    end = _shared_start(a, b)
    if end in (len(a), len(b)):
        return False
    # The usual case without the cost of splitting: two different characters that white space
    # before them, or being white space, can't account for.
    spaces = a[end].isspace() + b[end].isspace()
    if not spaces or (spaces == 1 and not a[end - 1].isspace()):
        return False
    return a.split() == b.split()


def _shared_start(a: str, b: str) -> int:
    """How many characters they share at the start."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _shared_ends(a: str, b: str) -> int:
    """How many characters they share at the start and, in what is left, at the end."""
    start = _shared_start(a, b)
    return start + _shared_start(a[start:][::-1], b[start:][::-1])
