"""The index of one scope: a score for every memory that shares a term with a query.

Arrays in numpy, aligned by row. Postings (the rows that hold a term) lie in one array,
sorted by the term's hash; what came since it was built lies in a small dictionary that is
read the same way and folded in when it has grown. A score for every match makes the rest
simple and exact: a filter is a mask, mixing is addition, a tie is a sort.
"""

from __future__ import annotations

import functools
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import text
from ..models import Filter, Memory, MemoryType

__all__ = ["LexicalIndex", "Matches"]

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]  # in the postings, where there are many of them
Places = npt.NDArray[np.intp]  # rows that arrays are read by: several times as fast
Mask = npt.NDArray[np.bool_]

_KINDS = {kind: number for number, kind in enumerate(MemoryType)}
_SMALL = 2_000  # new rows that are never worth a fold
_COLUMNS = {
    "created": np.float64,
    "expires": np.float64,
    "importance": np.float64,
    "kind": np.int8,
    "persistent": np.bool_,
    "live": np.bool_,
}


@dataclass(frozen=True, slots=True)
class Matches:
    """The visible memories that hold a term of the query, by row.

    ``relevance``: the share of the query's terms that each holds, weighted by rarity.
    ``share``: the same, unweighted. Both in [0, 1], float64, aligned with ``rows``.
    """

    rows: Places
    relevance: Floats
    share: Floats


class LexicalIndex:
    """The index of one scope. Not for several threads at once.

    >>> from retain import Memory
    >>> index = LexicalIndex()
    >>> index.apply([], [Memory("m1", "The deadline is 1 March")])
    >>> index.ids[index.match("deadline?", now=0.0).rows[0]]
    'm1'
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.ids: list[str] = []
        self._row_of: dict[str, int] = {}
        self._columns: dict[str, npt.NDArray[Any]] = {
            name: np.zeros(0, kind) for name, kind in _COLUMNS.items()
        }
        self._expiring = False
        # postings: hashes[i] stands in the rows rows[starts[i]:starts[i + 1]]
        self._hashes = np.zeros(0, np.uint64)
        self._starts = np.zeros(1, np.int64)
        self._rows: Rows = np.zeros(0, np.int32)
        self._folded = 0  # rows below this one are in the arrays
        self._new: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._row_of)

    # -- what changed ----------------------------------------------------------------------

    def apply(self, deleted: Iterable[str], saved: Iterable[Memory]) -> None:
        """Take ``deleted`` out, then put ``saved`` in, in place of what has their ids."""
        for id in deleted:
            self._drop(id)
        hashes, counts = array("Q"), array("I")
        first = len(self.ids)
        for memory in saved:
            self._drop(memory.id)
            self._append(memory)
            keys = _document_keys(memory)
            hashes.frombytes(keys)
            counts.append(len(keys) // hashes.itemsize)
        if not counts:
            return
        if len(self.ids) - self._folded > max(_SMALL, self._folded // 8):
            rows = np.repeat(np.arange(first, len(self.ids), dtype=np.int32), counts)
            self._fold(np.frombuffer(hashes, np.uint64), rows)
        else:
            at = 0
            for row, count in enumerate(counts, first):
                for term in set(hashes[at : at + count]):
                    self._new.setdefault(term, []).append(row)
                at += count

    def _drop(self, id: str) -> None:
        row = self._row_of.pop(id, None)
        if row is not None:
            self._columns["live"][row] = False

    def _append(self, memory: Memory) -> None:
        row = len(self.ids)
        if row == len(self._columns["live"]):
            for name, column in self._columns.items():
                grown = np.zeros(max(64, 2 * row), column.dtype)
                grown[:row] = column
                self._columns[name] = grown
        expires = memory.expires_at
        self._expiring = self._expiring or expires is not None
        columns = self._columns
        columns["created"][row] = memory.created_at
        columns["expires"][row] = np.inf if expires is None else expires
        columns["importance"][row] = memory.importance_score
        columns["kind"][row] = _KINDS[memory.memory_type]
        columns["persistent"][row] = memory.persistent
        columns["live"][row] = True
        self.ids.append(memory.id)
        self._row_of[memory.id] = row

    def _fold(self, hashes: npt.NDArray[np.uint64], rows: Rows) -> None:
        """Sort ``hashes`` and the new postings into the arrays; dead rows go."""
        waiting = [(term, row) for term, found in self._new.items() for row in found]
        if waiting:
            terms, found = zip(*waiting, strict=True)
            hashes = np.concatenate([np.array(terms, np.uint64), hashes])
            rows = np.concatenate([np.array(found, np.int32), rows])
        order = np.argsort(hashes, kind="stable")
        # Two sorted runs: a stable sort merges them in one pass.
        folded = np.repeat(self._hashes, np.diff(self._starts))
        hashes = np.concatenate([folded, hashes[order]])
        rows = np.concatenate([self._rows, rows[order]])
        order = np.argsort(hashes, kind="stable")
        hashes, rows = hashes[order], rows[order]

        live = self._columns["live"][: len(self.ids)]
        kept = live[rows]
        kept[1:] &= (hashes[1:] != hashes[:-1]) | (rows[1:] != rows[:-1])  # each row once
        hashes, rows = hashes[kept], rows[kept]
        new_rows = np.cumsum(live, dtype=np.int32) - 1
        self._rows = new_rows[rows]
        self._hashes, starts = np.unique(hashes, return_index=True)
        self._starts = np.append(starts, len(hashes)).astype(np.int64)
        self._columns = {name: column[: len(live)][live] for name, column in self._columns.items()}
        self.ids = [id for id, alive in zip(self.ids, live.tolist(), strict=True) if alive]
        self._row_of = {id: row for row, id in enumerate(self.ids)}
        self._folded = len(self.ids)
        self._new = {}

    # -- what is there ---------------------------------------------------------------------

    def column(self, name: str) -> npt.NDArray[Any]:
        """A column by row: ``created``, ``expires`` (epoch seconds), ``importance`` …"""
        return self._columns[name][: len(self.ids)]

    def match(self, query: str, now: float) -> Matches:
        """Every memory visible at ``now`` that holds a term of ``query``, scored.

        A term weighs log(1 + (N - n + 0.5) / (n + 0.5)), where n of the N visible memories
        hold it: the inverse document frequency of Okapi BM25 (Robertson and Zaragoza, 2009),
        kept above 0.
        """
        visible = self._visible(now)
        count = len(self) if visible is None else int(np.count_nonzero(visible))
        words = [self._holding(forms) for forms in text.query_terms(query)]
        if visible is not None:
            words = [rows[visible[rows]] for rows in words]
        held = np.array([len(rows) for rows in words], np.int64)
        rarity = np.log1p((count - held + 0.5) / (held + 0.5))
        everywhere = np.concatenate([self._rows[:0], *words])
        scores = np.bincount(everywhere, np.repeat(rarity, held), len(self.ids))
        shares = np.bincount(everywhere, minlength=len(self.ids))
        rows = np.flatnonzero(shares > 0)
        if not len(rows):
            return Matches(rows, np.zeros(0), np.zeros(0))
        total = np.cumsum(rarity)[-1]  # added as the scores are: all words make exactly 1
        relevance = scores[rows] / total
        return Matches(rows, relevance, shares[rows] / len(words))

    def everything(self, now: float) -> Places:
        """The rows of all that is visible at ``now``."""
        visible = self._visible(now)
        return np.arange(len(self.ids)) if visible is None else np.flatnonzero(visible)

    def admitted(self, rows: Places, narrow: Filter) -> Mask:
        """Which of ``rows`` pass the filter."""
        passes = np.ones(len(rows), np.bool_)
        if narrow.memory_type is not None:
            passes &= self.column("kind")[rows] == _KINDS[narrow.memory_type]
        if narrow.min_importance:
            passes &= self.column("importance")[rows] >= narrow.min_importance
        if narrow.since is not None:
            passes &= self.column("created")[rows] >= narrow.since
        if narrow.until is not None:
            passes &= self.column("created")[rows] < narrow.until
        if narrow.persistent is not None:
            passes &= self.column("persistent")[rows] == narrow.persistent
        labels = [_tag(tag) for tag in narrow.tags]
        if narrow.category is not None:
            labels.append(_category(narrow.category))
        for label in labels:
            has = np.zeros(len(self.ids), np.bool_)
            has[self._holding([label])] = True
            passes &= has[rows]
        return passes

    def _visible(self, now: float) -> Mask | None:
        """Which rows are visible, ``None`` if all are."""
        live: Mask = self.column("live")
        if self._expiring:
            return live & (self.column("expires") > now)
        return None if len(self) == len(self.ids) else live

    def _holding(self, forms: Sequence[str]) -> Rows:
        """The rows that hold any of the forms, each row once."""
        found = [self._posted(_hash(form)) for form in forms]
        return found[0] if len(found) == 1 else np.unique(np.concatenate(found))

    def _posted(self, term: int) -> Rows:
        at = int(np.searchsorted(self._hashes, np.uint64(term)))
        old = self._rows[:0]
        if at < len(self._hashes) and self._hashes[at] == term:
            old = self._rows[self._starts[at] : self._starts[at + 1]]
        new = self._new.get(term)
        return old if new is None else np.concatenate([old, np.array(new, np.int32)])


# -- terms as numbers ------------------------------------------------------------------------


def _hash(form: str) -> int:
    return int.from_bytes(text.key(form), sys.byteorder)


def _category(category: str) -> str:
    return f"\0category\0{category}"  # no word holds a NUL


def _tag(tag: str) -> str:
    return f"\0tag\0{tag}"


def _document_keys(memory: Memory) -> bytes:
    """What a memory is found by: its text, category, tags and role, and the exact labels."""
    found = [text.keys(memory.content), _label_keys(memory.category, _category(memory.category))]
    found += [_label_keys(tag, _tag(tag)) for tag in memory.tags]
    role = memory.metadata.get("role")
    if isinstance(role, str):
        found.append(text.keys(role))
    return b"".join(found)


@functools.lru_cache(maxsize=4096)
def _label_keys(label: str, exact: str) -> bytes:
    return text.keys(label) + text.key(exact)
