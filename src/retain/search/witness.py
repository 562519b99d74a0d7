"""Why a memory was found: its part in each part of the score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..clock import DAY
from ..results import Evidence
from .blend import Blended
from .index import ScopeIndex
from .lexical import Found, Word

__all__ = ["Witness"]


class Witness:
    """Tells why rows that a query found were found."""

    def __init__(
        self, index: ScopeIndex, query: str, words: Sequence[Word], found: Found, now: float
    ) -> None:
        self._index = index
        self._query = query
        self._words = words
        self._found = found
        self._now = now

    def of(self, row: int) -> Evidence:
        """Why a row was found."""
        found = self._found
        words = tuple(word.forms[0] for word in self._words if _holds(word, row))
        age = max(0.0, self._now - float(self._index.columns["created"][row])) / DAY
        if not isinstance(found, Blended):
            return Evidence(self._query, words, float(found.relevance[row]), age=age)
        own, similarity = float(found.own[row]), None
        if found.similarity is not None:
            similarity = max(0.0, float(found.similarity[row]))
        embedded = self._index.embedder is None or self._index.has_vector(row)
        return Evidence(
            self._query, words, own, float(found.held[row]) - own, similarity, embedded, age
        )


def _holds(word: Word, row: int) -> bool:
    at = int(word.rows.searchsorted(np.int32(row)))
    return at < len(word.rows) and int(word.rows[at]) == row
