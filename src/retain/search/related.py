"""Words of a like meaning, by the vectors of an embedder that has one for each word."""

from __future__ import annotations

import functools
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

__all__ = ["WordVectors", "nearest", "related"]

_MOST = 10  # related words of one
_KEPT = 8_192  # words whose related ones are remembered
_AT_ONCE = 256  # words that are compared with all others in one go

Near = tuple[npt.NDArray[np.int32], npt.NDArray[np.float16]]


@runtime_checkable
class WordVectors(Protocol):
    """An embedder that knows words by themselves.

    It may have an attribute ``near`` too: what :func:`nearest` gives for its rows, so that they
    need not be compared when a word is asked for.
    """

    @property
    def name(self) -> str:
        """Identifies the vectors."""

    @property
    def keys(self) -> npt.NDArray[np.uint64]:
        """The words' numbers (``retain.text.key``), ascending."""

    @property
    def rows(self) -> npt.NDArray[np.int8]:
        """Their vectors, int8, (words, dimensions)."""


def related(embedder: object, term: int, least: float) -> tuple[tuple[int, float], ...]:
    """The words most like one, at most ten: their numbers, and cosines of at least ``least``.

    None where the embedder doesn't know words, or not this one.
    """
    if not isinstance(embedder, WordVectors):
        return ()
    return _related(_Table(embedder), term, least)


def nearest(rows: npt.NDArray[np.int8], count: int = _MOST) -> Near:
    """The words most like each: their places, int32, and cosines, float16, both (words, count).

    The best first, equal ones by their place; a word is not its own neighbour.
    """
    import simsimd

    count = min(count, len(rows) - 1)
    places = np.zeros((len(rows), count), np.int32)
    alike = np.zeros((len(rows), count), np.float16)
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        cosines = 1.0 - np.asarray(simsimd.cdist(some, rows, metric="cosine"))
        own = np.arange(len(some))
        cosines[own, start + own] = -2.0
        for at, row in enumerate(cosines, start):
            best = np.argpartition(-row, count - 1)[:count] if count else np.zeros(0, np.intp)
            best = best[np.lexsort((best, -row[best]))]
            places[at], alike[at] = best, row[best]
    return places, alike


class _Table:
    """A table of words that is told from others by its name."""

    def __init__(self, words: WordVectors) -> None:
        self.words = words
        self.name = words.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Table) and self.name == other.name


@functools.lru_cache(maxsize=_KEPT)
def _related(table: _Table, term: int, least: float) -> tuple[tuple[int, float], ...]:
    keys, rows = table.words.keys, table.words.rows
    at = int(keys.searchsorted(np.uint64(term)))
    if at == len(keys) or keys[at] != term:
        return ()
    near: Near | None = getattr(table.words, "near", None)
    places, alike = _near(rows, at) if near is None else (near[0][at], near[1][at])
    return tuple(
        (int(keys[place]), float(cosine))
        for place, cosine in zip(places, alike, strict=True)
        if cosine >= least
    )


def _near(
    rows: npt.NDArray[np.int8], at: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
    import simsimd

    alike = 1.0 - np.asarray(simsimd.cdist(rows[at : at + 1], rows, metric="cosine"))[0]
    alike[at] = -2.0  # the word itself
    best = np.argsort(-alike, kind="stable")[: min(_MOST, len(rows) - 1)]
    return best, alike[best]
