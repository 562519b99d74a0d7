"""Words of a like meaning, by the vectors of an embedder that has one for each word."""

from __future__ import annotations

import functools
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

__all__ = ["WordVectors", "related"]

_MOST = 10  # related words of one
_KEPT = 8_192  # words whose related ones are remembered


@runtime_checkable
class WordVectors(Protocol):
    """An embedder that knows words by themselves."""

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
    import simsimd

    keys, rows = table.words.keys, table.words.rows
    at = int(keys.searchsorted(np.uint64(term)))
    if at == len(keys) or keys[at] != term:
        return ()
    alike = 1.0 - np.asarray(simsimd.cdist(rows[at : at + 1], rows, metric="cosine"))[0]
    alike[at] = -1.0  # the word itself
    best = np.argsort(-alike, kind="stable")[:_MOST]
    return tuple((int(keys[one]), float(alike[one])) for one in best if alike[one] >= least)
