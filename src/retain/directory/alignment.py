"""What a person did to ``MEMORY.md`` since it was last read: which line is which memory.

Within a category, equal lines are matched as P. Heckel's "A technique for isolating
differences between files" (CACM 21(4), 1978) does it: lines that occur once on either side,
then outwards from those and from the two ends, which tells duplicates apart by their
neighbours. What is left is matched across categories by its text (a line that was moved),
then by its place between matched neighbours (a line that was changed). Everything is near
linear in the number of lines, whatever they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..errors import InvalidValue

if TYPE_CHECKING:
    from .memory_md import Fact

__all__ = ["Changed", "Edits", "Recorded", "align"]

_ALIKE = 0.3
_COMPARED = 400  # characters of a line
_COMMON = 20  # lines of a gap
# Scripts that are written without spaces: Thai, Lao, Burmese, Khmer, kana, Han.
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_UNSPACED += "\U00020000-\U0003ffff"
_WORD = re.compile(rf"([{_UNSPACED}]+)|[^\W{_UNSPACED}]+")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A memory's line as the last sync left it; ``text`` as :class:`.memory_md.Fact` has it."""

    id: str
    category: str
    text: str


class Changed(NamedTuple):
    """A memory whose line now has another text, another category, or both."""

    id: str
    position: int
    category: str
    text: str


@dataclass(frozen=True, slots=True)
class Edits:
    """What became of every recorded line, and where every line now in the file comes from.

    ``kept``: the position of each memory whose line is as it was. ``changed``: in the order
    of the file. ``added``: the positions of new lines. ``gone``: the ids of lines that are no
    longer there, in the order they were recorded in.
    """

    kept: dict[str, int]
    changed: list[Changed]
    added: list[int]
    gone: list[str]


def align(recorded: Sequence[Recorded], facts: Sequence[Fact]) -> Edits:
    """Tell which of the ``facts`` in a file are which of the lines ``recorded`` before.

    Both in the order of the file. Every recorded id is in exactly one of ``kept``,
    ``changed`` and ``gone``, every fact's position in exactly one of ``kept``, ``changed``
    and ``added``. A gap between matched neighbours that has as many lines as before is taken
    as changed line by line; in one that has not, the lines that are most alike are paired, if
    they share 0.3 of their words (:func:`_similarities`). Raises ``InvalidValue`` if an id is
    recorded twice.

    >>> from retain.directory.memory_md import Fact
    >>> old = [Recorded("a", "x", "one"), Recorded("b", "x", "two"), Recorded("c", "x", "three")]
    >>> align(old, [Fact("x", "one", 2), Fact("x", "2", 3), Fact("x", "three", 4)]).changed
    [Changed(id='b', position=3, category='x', text='2')]
    """
    for id, count in Counter(line.id for line in recorded).most_common(1):
        if count > 1:
            raise InvalidValue(f"id {id!r} is recorded {count} times; record a line once")
    pairs = _unmoved(recorded, facts)
    pairs |= _moved(recorded, facts, pairs)
    pairs |= _rewritten(recorded, facts, pairs)
    kept, changed = {}, []
    for old, new in sorted(pairs.items(), key=lambda pair: pair[1]):
        line, fact = recorded[old], facts[new]
        if (line.category, line.text) == (fact.category, fact.text):
            kept[line.id] = fact.position
        else:
            changed.append(Changed(line.id, fact.position, fact.category, fact.text))
    taken = set(pairs.values())
    return Edits(
        kept,
        changed,
        added=[fact.position for new, fact in enumerate(facts) if new not in taken],
        gone=[line.id for old, line in enumerate(recorded) if old not in pairs],
    )


def _unmoved(recorded: Sequence[Recorded], facts: Sequence[Fact]) -> dict[int, int]:
    """Old index → new index of the lines with the same text under the same heading."""
    olds = _grouped(range(len(recorded)), lambda n: recorded[n].category)
    news = _grouped(range(len(facts)), lambda n: facts[n].category)
    pairs = {}
    for category, old in olds.items():
        new = news.get(category, [])
        for i, j in _same([recorded[n].text for n in old], [facts[n].text for n in new]).items():
            pairs[old[i]] = new[j]
    return pairs


def _same(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Index in ``old`` → index in ``new`` of equal texts (Heckel 1978)."""
    in_old, in_new = Counter(old), Counter(new)
    at = {text: j for j, text in enumerate(new)}
    pairs = {i: at[text] for i, text in enumerate(old) if in_old[text] == in_new[text] == 1}
    taken = set(pairs.values())
    for step, order in ((1, range(len(old))), (-1, range(len(old) - 1, -1, -1))):
        beside: int | None = -1 if step == 1 else len(new)  # the match of the line before
        for i in order:
            if i not in pairs and beside is not None:
                j = beside + step
                if 0 <= j < len(new) and j not in taken and old[i] == new[j]:
                    pairs[i] = j
                    taken.add(j)
            beside = pairs.get(i)
    return pairs | _by_text(
        ((i, text) for i, text in enumerate(old) if i not in pairs),
        ((j, text) for j, text in enumerate(new) if j not in taken),
    )


def _by_text(old: Iterable[tuple[int, str]], new: Iterable[tuple[int, str]]) -> dict[int, int]:
    """Equal texts paired in order, duplicates one by one."""
    waiting = defaultdict[str, deque[int]](deque)
    for j, text in new:
        waiting[text].append(j)
    return {i: waiting[text].popleft() for i, text in old if waiting.get(text)}


def _moved(
    recorded: Sequence[Recorded], facts: Sequence[Fact], pairs: dict[int, int]
) -> dict[int, int]:
    """The pairs of lines with the same text under another heading."""
    taken = set(pairs.values())
    return _by_text(
        ((old, line.text) for old, line in enumerate(recorded) if old not in pairs),
        ((new, fact.text) for new, fact in enumerate(facts) if new not in taken),
    )


# -- lines with another text ---------------------------------------------------------------


class _Run(NamedTuple):
    """Unmatched lines between two matched ones, which are named by their new index."""

    before: int | None  # None: the category's first or last line
    after: int | None
    lines: list[int]


def _rewritten(
    recorded: Sequence[Recorded], facts: Sequence[Fact], pairs: dict[int, int]
) -> dict[int, int]:
    """The pairs of unmatched lines that stand at the same place of the same category."""
    renamed = _renamed(recorded, facts, pairs)
    category = [renamed.get(line.category, line.category) for line in recorded]
    source = {new: old for old, new in pairs.items()}
    olds = _grouped(range(len(recorded)), category.__getitem__)
    news = _grouped(range(len(facts)), lambda new: facts[new].category)
    found: dict[int, int] = {}
    for name in olds.keys() & news.keys():
        # a line that came from elsewhere, or went there, is no neighbour
        old = ((n, pairs.get(n)) for n in olds[name])
        old_runs = _runs((n, at) for n, at in old if at is None or facts[at].category == name)
        new = ((n, source.get(n)) for n in news[name])
        new_runs = _runs(
            (n, None if by is None else n) for n, by in new if by is None or category[by] == name
        )
        for ours, theirs in _same_places(old_runs, new_runs):
            found.update(_paired(ours.lines, theirs.lines, recorded, facts))
    return found


def _renamed(
    recorded: Sequence[Recorded], facts: Sequence[Fact], pairs: dict[int, int]
) -> dict[str, str]:
    """The headings that are gone, and under which new one most of their lines are now."""
    known, present = {line.category for line in recorded}, {fact.category for fact in facts}
    votes = defaultdict[str, Counter[str]](Counter)
    for old, new in pairs.items():
        before, after = recorded[old].category, facts[new].category
        if before not in present and after not in known:
            votes[before][after] += 1
    return {category: count.most_common(1)[0][0] for category, count in votes.items()}


def _runs(lines: Iterable[tuple[int, int | None]]) -> list[_Run]:
    """The runs of unmatched among ``lines``, given as (index, new index of the match)."""
    runs: list[_Run] = []
    before: int | None = None
    waiting: list[int] = []
    for index, match in lines:
        if match is None:
            waiting.append(index)
            continue
        if waiting:
            runs.append(_Run(before, match, waiting))
        before, waiting = match, []
    return [*runs, _Run(before, None, waiting)] if waiting else runs


def _same_places(old: list[_Run], new: list[_Run]) -> Iterator[tuple[_Run, _Run]]:
    """Runs with the same neighbours, then with the same one above, then with the same below."""
    keys: list[Callable[[_Run], object]] = [
        lambda run: (run.before, run.after),
        lambda run: run.before,
        lambda run: run.after,
    ]
    for key in keys:
        free = {key(run): run for run in new}
        rest = []
        for run in old:
            match = free.pop(key(run), None)
            if match is None:
                rest.append(run)
            else:
                yield run, match
        old, new = rest, list(free.values())


def _paired(
    old: list[int], new: list[int], recorded: Sequence[Recorded], facts: Sequence[Fact]
) -> Iterator[tuple[int, int]]:
    if len(old) == len(new):
        yield from zip(old, new, strict=True)
        return
    likest = _similarities([recorded[n].text for n in old], [facts[n].text for n in new])
    free_old, free_new = set(range(len(old))), set(range(len(new)))
    for _, i, j in sorted(likest, key=lambda found: (-found[0], abs(found[1] - found[2]), found)):
        if i in free_old and j in free_new:
            free_old.remove(i)
            free_new.remove(j)
            yield old[i], new[j]


def _similarities(old: list[str], new: list[str]) -> Iterator[tuple[float, int, int]]:
    """Dice's coefficient 2·|A ∩ B| / (|A| + |B|) of the words of each pair that are alike.

    L. R. Dice, "Measures of the amount of ecologic association between species", Ecology
    26(3), 1945. Words that many of the lines have don't count: they tell little, and looking
    at every pair of lines that share one would be quadratic.
    """
    ours, theirs = [_words(text) for text in old], [_words(text) for text in new]
    lines_of = defaultdict[str, list[int]](list)
    for j, words in enumerate(theirs):
        for word in words:
            lines_of[word].append(j)
    common = {word for word, lines in lines_of.items() if len(lines) > _COMMON}
    sizes = [len(words - common) for words in theirs]
    for i, words in enumerate(ours):
        words -= common
        shared = Counter(j for word in words if word in lines_of for j in lines_of[word])
        for j, count in shared.items():
            score = 2 * count / (len(words) + sizes[j])
            if score >= _ALIKE:
                yield score, i, j


def _words(text: str) -> set[str]:
    """The first words of ``text``; of a script without spaces, its pairs of characters."""
    words: set[str] = set()
    text = unicodedata.normalize("NFC", text[:_COMPARED]).casefold()
    for match in _WORD.finditer(text):
        word = match.group()
        if match[1] and len(word) > 2:
            words.update(word[n : n + 2] for n in range(len(word) - 1))
        else:
            words.add(word)
    return words


def _grouped(indices: Iterable[int], key: Callable[[int], _T]) -> dict[_T, list[int]]:
    groups = defaultdict[_T, list[int]](list)
    for index in indices:
        groups[key(index)].append(index)
    return groups
