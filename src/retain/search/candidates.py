"""An index of candidates alone: what a store offered for one query, ranked as all would be.

How rare a word is, how long a text, and whose neighbour a turn is, hang on memories that are not
here; of those the store told what counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..models import Filter
from ..text import Forms
from .blend import Blend
from .columns import Columns
from .embedders import Embedder
from .index import SHORT, ScopeIndex
from .segment import Postings
from .sessions import Sessions
from .terms import hashed

__all__ = ["Asked", "Candidates", "Known"]

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
_MOST = 255


@dataclass(frozen=True, slots=True)
class Asked:
    """A query for the ``k`` best at ``now``, as far as it says who can be among them.

    ``half_life``: days in which recency halves.
    """

    query: str
    now: float
    narrow: Filter
    blend: Blend | None
    half_life: float
    k: int


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a whole scope: its memories, how many hold the words of the query, the
    terms that are few for a text, how many sessions there are, and the terms of one."""

    count: int
    holders: Mapping[Forms, int]
    short: float
    sessions: int
    turns: float


class Candidates(ScopeIndex):
    """Candidates of a scope as an index of them.

    ``columns``: of the candidates. ``terms``, ``rows``: each occurrence of a term, and in which
    row. ``beside``: pairs of rows that follow each other in a session. ``lengths``: the terms of
    sessions, by their hashes. ``vector``: the question's; ``similarity``: each row's with it, NaN
    where it has none.
    """

    def __init__(
        self,
        embedder: Embedder | None,
        known: Known,
        columns: Columns,
        terms: npt.NDArray[np.uint64],
        rows: npt.NDArray[np.int32],
        beside: Sequence[tuple[int, int]],
        lengths: Mapping[int, int],
        vector: Floats | None,
        similarity: npt.NDArray[np.float64],
    ) -> None:
        super().__init__(embedder)
        self.columns = columns
        self._known = known
        self._terms, self._rows = terms, rows
        self._asked = vector
        self._similarity = np.nan_to_num(similarity).astype(np.float32)
        self._has_vector = ~np.isnan(similarity)
        self._expiring = bool(np.isfinite(columns["expires"]).any())
        self._live = columns.size
        self._short = max(float(SHORT), known.short)
        self._sessions = _Sessions(columns, beside, lengths, known)

    def __len__(self) -> int:
        return self._known.count

    def visible(self, now: float) -> Mask | None:
        """Which candidates count at ``now``, ``None`` for all."""
        visible: Mask = self.columns["expires"] > now
        return visible if self._expiring else None

    def population(self, visible: Mask | None) -> int:
        """How many memories the whole scope has."""
        return self._known.count

    def holders(self, forms: Forms, rows: npt.NDArray[np.int32]) -> int:
        """How many memories of the whole scope hold a word of the query."""
        return max(len(rows), self._known.holders.get(forms, 0))

    def posted(self, form: str | int) -> Postings:
        """The candidates that hold a form or label, or a term by its number."""
        term = hashed(form) if isinstance(form, str) else form
        rows, counts = np.unique(self._rows[self._terms == np.uint64(term)], return_counts=True)
        return Postings(rows, np.minimum(counts, _MOST).astype(np.uint8))

    def question(self, query: str) -> Floats | None:
        """The vector that the store was asked with."""
        return self._asked

    def similar(self, query: Floats) -> Floats:
        """The cosine of each candidate's vector with the question's, as the store told it."""
        return self._similarity

    def has_vector(self, row: int) -> bool:
        """Whether a candidate has a vector."""
        return bool(self._has_vector[row])


class _Sessions(Sessions):
    """The sessions of candidates: only those stand beside each other of which that is known."""

    def __init__(
        self,
        columns: Columns,
        beside: Sequence[tuple[int, int]],
        lengths: Mapping[int, int],
        known: Known,
    ) -> None:
        super().__init__(columns)
        self._before.fill(-1)
        self._after.fill(-1)
        if beside:
            first, second = np.array(beside, np.int32).T
            self._after[first], self._before[second] = second, first
        self._known = known
        turns = np.flatnonzero(self.number >= 0)
        self._lengths = np.full(self.count, known.turns)
        hashes = columns["session"][turns].tolist()
        told = [lengths.get(session, known.turns) for session in hashes]
        self._lengths[self.number[turns]] = told

    @property
    def lengths(self) -> npt.NDArray[np.float64]:
        """The terms of each session's turns, all together."""
        return self._lengths

    @property
    def inhabited(self) -> int:
        """How many sessions the whole scope has."""
        return max(self._known.sessions, self.count)

    def having(self, found: int, rows: int, holders: int) -> float:
        """How many sessions of the whole scope have a word, by those of the candidates."""
        return min(found * holders / max(1, rows), self.inhabited)

    @property
    def mean(self) -> float:
        """The terms of a session, on the average."""
        return self._known.turns
