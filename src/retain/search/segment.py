"""Postings that no longer change: which rows hold a term, and how often.

A segment covers a stretch of an index's rows. Its arrays may lie in memory or in a mapped
file; nothing here writes to them, so they can be read while another thread merges them.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Postings", "Segment", "Tail", "merged", "segment_of"]

Places = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
_FEW = 512  # texts that are worth no arrays of their own
_MOST = 255  # occurrences of a term in a text that count


@dataclass(frozen=True, slots=True)
class Postings:
    """Where a term stands: ``rows`` in ascending order, and how often in each (uint8)."""

    rows: npt.NDArray[np.int32]
    counts: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Segment:
    """The postings of the rows from ``first`` on, ``size`` of them.

    ``terms``: uint64, ascending, distinct. Term i stands in ``rows[starts[i]:starts[i + 1]]``
    (int32, counted from ``first``), ``counts`` (uint8, at most 255) times in each.
    """

    first: int
    size: int
    terms: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int32]
    counts: npt.NDArray[np.uint8]

    @property
    def end(self) -> int:
        """The row after the last one."""
        return self.first + self.size

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        arrays = (self.terms, self.starts, self.rows, self.counts)
        return sum(array.nbytes for array in arrays)

    def verify(self) -> None:
        """Raise ``StoreCorrupt`` where it lies in a file that is damaged."""

    def posted(self, term: int) -> Postings | None:
        """Where ``term`` stands, by row of the index; ``None`` for nowhere."""
        at = int(self.terms.searchsorted(np.uint64(term)))
        if at == len(self.terms) or self.terms[at] != term:
            return None
        start, end = self.starts[at], self.starts[at + 1]
        rows = self.rows[start:end]
        return Postings(rows + np.int32(self.first) if self.first else rows, self.counts[start:end])


class Tail:
    """The postings of rows that are not in a segment yet."""

    def __init__(self) -> None:
        self._many: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]] = []
        self._few: dict[int, list[int]] = {}  # a term's rows, once for each occurrence
        self._occurrences = 0

    def add(self, first: int, texts: Sequence[bytes]) -> None:
        """The terms of the rows from ``first`` on, eight bytes each."""
        if len(texts) > _FEW:
            lengths = [len(terms) // 8 for terms in texts]
            rows = np.repeat(np.arange(first, first + len(texts), dtype=np.int32), lengths)
            self._many.append((np.frombuffer(b"".join(texts), np.uint64), rows))
            return
        for row, terms in enumerate(texts, first):
            self._occurrences += len(terms) // 8
            for term in array("Q", terms):
                self._few.setdefault(term, []).append(row)

    def posted(self, term: int) -> Postings | None:
        """Where a term stands."""
        found = self._few.get(term)
        if found is None:
            return None
        rows, counts = np.unique(np.array(found, np.int32), return_counts=True)
        return Postings(rows, np.minimum(counts, _MOST).astype(np.uint8))

    def postings(self, first: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
        """Every term and its row, counted from ``first``, once for each occurrence."""
        counts = [len(rows) for rows in self._few.values()]
        terms = np.repeat(np.fromiter(self._few, np.uint64, len(counts)), counts)
        rows = np.fromiter(itertools.chain.from_iterable(self._few.values()), np.int32, len(terms))
        parts = [(terms, rows), *self._many]
        return (
            np.concatenate([terms for terms, _ in parts]),
            np.concatenate([rows for _, rows in parts]) - np.int32(first),
        )

    def move(self, by: int) -> None:
        """Number the rows anew."""
        self._few = {term: [row + by for row in rows] for term, rows in self._few.items()}

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use, about."""
        many = sum(terms.nbytes + rows.nbytes for terms, rows in self._many)
        return 200 * len(self._few) + 10 * self._occurrences + many


def segment_of(
    first: int, size: int, terms: npt.NDArray[np.uint64], rows: npt.NDArray[np.int32]
) -> Segment:
    """A segment of occurrences in any order: ``terms[i]`` stands in ``rows[i]`` (from 0) once."""
    order = np.lexsort((rows, terms))
    terms, rows = terms[order], rows[order]
    new_term = np.ones(len(terms), np.bool_)
    new_term[1:] = terms[1:] != terms[:-1]
    new_row = new_term.copy()
    new_row[1:] |= rows[1:] != rows[:-1]
    at = np.flatnonzero(new_row)
    counts = np.diff(np.append(at, len(terms)))
    distinct = np.flatnonzero(new_term[at])
    return Segment(
        first,
        size,
        terms[at][distinct],
        np.append(distinct, len(at)).astype(np.int64),
        rows[at],
        np.minimum(counts, _MOST).astype(np.uint8),
    )


def merged(segments: Sequence[Segment], live: Mask | None = None) -> Segment:
    """One segment in place of several that follow each other.

    With ``live`` (a mask over their rows), the others' postings go, and the rows that are left
    are numbered anew from the first one's ``first`` on.
    """
    first = segments[0].first
    size = segments[-1].end - first
    numbers = None if live is None else np.cumsum(live, dtype=np.int32) - np.int32(1)
    parts = [_moved(segment, segment.first - first, live, numbers) for segment in segments]
    terms = np.unique(np.concatenate([part.terms for part in parts]))
    places = [terms.searchsorted(part.terms) for part in parts]
    lengths = np.zeros(len(terms), np.int64)
    for part, at in zip(parts, places, strict=True):
        lengths[at] += np.diff(part.starts)
    starts = np.zeros(len(terms) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    rows = np.empty(starts[-1], np.int32)
    counts = np.empty(starts[-1], np.uint8)
    filled = starts[:-1].copy()
    for part, at in zip(parts, places, strict=True):
        held = np.diff(part.starts)
        target = np.repeat(filled[at] - part.starts[:-1], held) + np.arange(len(part.rows))
        rows[target] = part.rows
        counts[target] = part.counts
        filled[at] += held
    size = size if live is None else int(np.count_nonzero(live))
    return Segment(first, size, terms, starts, rows, counts)


def _moved(segment: Segment, by: int, live: Mask | None, numbers: Any) -> Segment:
    rows = segment.rows + np.int32(by)
    if live is None:
        return Segment(0, 0, segment.terms, segment.starts, rows, segment.counts)
    kept = live[rows]
    ends = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(kept, out=ends[1:])
    starts = ends[segment.starts]
    held = np.diff(starts) > 0
    return Segment(
        0,
        0,
        segment.terms[held],
        np.append(starts[:-1][held], starts[-1]),
        numbers[rows[kept]],
        segment.counts[kept],
    )
