"""The index of one scope: made from what changed in a store, and thrown away at will.

Rows are numbered in the order they came. What a query needs of them lies in arrays aligned by
row (``columns``, ``sessions``, ``vectors``) and in postings: segments that no longer change,
and a small dictionary for what came last. When the dictionary has grown, it becomes a segment;
``tidying.py`` merges segments, on another thread than the caller's. A row that was deleted no
longer counts from then on, and goes when all is merged.
"""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import text
from ..errors import EmbeddingFailed, RetainError
from ..locks import ThreadLock, Turn
from ..models import Filter, Memory
from .columns import KINDS, Columns, id_key
from .embedders import Embedder, StaticEmbedder
from .segment import Postings, Segment, Tail, merged, segment_of
from .sessions import Sessions
from .terms import document_terms, hashed, labels_of
from .vector import Vectors, similarities

__all__ = ["ScopeIndex", "Stretch", "joined", "vectors_for"]

log = logging.getLogger("retain")

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]

UNAVAILABLE = (RetainError, OSError, RuntimeError)
"""What an embedder raises that can't work now: a recall then goes by words."""

_TAIL = 512  # new rows that are not worth a segment
_AT_ONCE = 32_768  # rows that are made into a segment in one go
_EAGER = 2_000  # new texts that a caller waits for to be embedded …
_EAGER_SLOW = 64  # … by a model
_EMPTY = 8_000  # bytes of an index without rows
_GONE = 16  # ids that were deleted last, by which an index knows its store
SHORT = 40  # terms: no text is long below that


@dataclass(frozen=True, slots=True)
class Stretch:
    """A segment, and which of the store's changes it holds: after ``since``, to ``until``.

    ``dropped``: ids of earlier rows that those changes deleted or replaced. ``file``: where it
    is kept, if it is.
    """

    segment: Segment
    since: int
    until: int
    dropped: tuple[str, ...] = ()
    file: str | None = field(default=None, compare=False)


class ScopeIndex:
    """The index of one scope, for several threads in turn: hold ``lock``.

    ``embedder``: makes the vectors, ``None`` for none. ``revision``: the store's, up to which
    its changes are in here.

    >>> from retain import Memory
    >>> index = ScopeIndex()
    >>> index.apply([], [Memory("m1", "The deadline is 1 March")], revision=1)
    >>> index.columns.id(index.posted("deadlin").rows[0])
    'm1'
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        self.lock = ThreadLock()
        self.care = Turn()
        """Had by who merges, saves or makes the vectors that wait, so that it is one at a time."""
        self.embedder = embedder
        self.generation = 0
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.generation += 1  # whoever made something of the rows as they were must drop it
        self.revision = 0
        self.columns = Columns()
        self.stretches: list[Stretch] = []
        self.vectors: list[tuple[int, Vectors]] = []  # each with its first row
        self.tail = Tail()
        self.dropped: list[str] = []
        self.gone: deque[str] = deque(maxlen=_GONE)
        """The ids that were deleted last."""
        self._places = _Places(self.columns)
        self._sessions: Sessions | None = None
        self._lengths = np.zeros(0, np.int32)
        self._live = 0
        self._short: float | None = None
        self._longer: npt.NDArray[np.float64] | None = None
        self._expiring = False
        self._waiting = False  # whether there may be vectors that are still to be made
        self.untidy = False
        """Whether there is something to do in the background."""

    def __len__(self) -> int:
        return self._live

    @property
    def empty(self) -> bool:
        """Whether it has nothing of the store yet."""
        return self.revision == 0

    @property
    def folded(self) -> int:
        """Rows below this one are in segments."""
        return self.stretches[-1].segment.end if self.stretches else 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use, about; those of mapped files are not."""
        segments = (stretch.segment for stretch in self.stretches)
        postings = sum(1_000 + segment.nbytes for segment in segments)
        vectors = sum(1_000 + chunk.nbytes for _, chunk in self.vectors)
        sessions = self._sessions.nbytes if self._sessions else 0
        longer = 0 if self._longer is None else self._longer.nbytes
        lengths = self._lengths.nbytes + longer
        rows = self.tail.nbytes + self.columns.nbytes + self._places.nbytes + lengths
        return _EMPTY + postings + vectors + sessions + rows

    # -- what changed ----------------------------------------------------------------------

    def apply(self, deleted: Iterable[str], saved: Iterable[Memory], revision: int) -> None:
        """Take ``deleted`` out, put ``saved`` in, in place of what has their ids.

        ``revision``: the store's, with which the index is level then. Should ``saved`` raise,
        the index is to be cleared.
        """
        known = len(self.stretches)
        for id in deleted:
            self.gone.append(id)
            if not self._drop(id) and self.stretches:
                self.dropped.append(id)  # not in here; but whoever begins later may have it
        waiting = iter(saved)
        while batch := list(itertools.islice(waiting, _AT_ONCE)):
            self._take(batch)
            if self.columns.size - self.folded > (_TAIL if self.stretches else 0):
                self._cut(revision)
        self.revision = revision
        if len(self.stretches) > known + 1:  # of one set of changes: one stretch
            self.stretches[known:] = [joined(self.stretches[known:])]

    def _take(self, batch: Sequence[Memory]) -> None:
        """Put new rows at the end, in place of those with their ids."""
        batch = list({memory.id: memory for memory in batch}.values())
        first = self.columns.size
        if first:
            for memory in batch:
                self._drop(memory.id)
        found = [document_terms(memory) for memory in batch]
        columns = Columns.of_memories(batch, [length for _, length in found])
        self.columns.extend(columns)
        self._live += len(batch)
        self._short = self._longer = None
        self._measure(columns["length"])
        self._expiring = self._expiring or bool(np.isfinite(columns["expires"]).any())
        few = first > 0 and len(batch) <= _TAIL
        if not few:
            self._sessions = None  # made anew sooner than row by row
        for row in range(first, self.columns.size) if few else ():
            self._places.add(row)
            if self._sessions is not None:
                self._sessions.add(row)
        self.tail.add(first, [terms for terms, _ in found])
        if self.embedder is not None:
            self._embed(first, [memory.content for memory in batch])

    def _embed(self, first: int, texts: Sequence[str]) -> None:
        """Make room for the vectors of new rows, and the vectors themselves if they are few."""
        assert self.embedder is not None
        few = len(texts) <= (_EAGER if isinstance(self.embedder, StaticEmbedder) else _EAGER_SLOW)
        vectors = self._embedded(texts) if few else None
        if few and self.vectors and not self.vectors[-1][1].fixed:
            chunk = self.vectors[-1][1]
        else:
            chunk = Vectors(self.embedder.dimensions)
            self.vectors.append((first, chunk))
        chunk.append(len(texts))
        self._waiting = self._waiting or vectors is None
        self.untidy = self.untidy or self._waiting
        if vectors is not None:
            chunk.put(np.arange(chunk.size - len(texts), chunk.size), vectors)

    def _embedded(self, texts: Sequence[str]) -> Floats | None:
        """Their vectors, ``None`` where the embedder can't make them now."""
        assert self.embedder is not None
        try:
            return vectors_for(self.embedder, texts)
        except UNAVAILABLE as error:
            log.warning("%s; what is new is found by its words until then", error)
            return None

    def question(self, query: str) -> Floats | None:
        """The vector of a question, ``None`` where there is no embedder, or it can't make it."""
        if self.embedder is None:
            return None
        try:
            made = self.embedder.embed_query(query)
            vector: Floats = _seen_to_be(self.embedder, [query], np.asarray(made)[None])[0]
            return vector
        except UNAVAILABLE as error:
            log.warning("%s; the question is asked by its words alone", error)
            return None

    def _measure(self, lengths: npt.NDArray[np.int32]) -> None:
        """Count how many texts have each length."""
        counts = np.bincount(lengths, minlength=len(self._lengths)).astype(np.int32)
        counts[: len(self._lengths)] += self._lengths
        self._lengths = counts

    def _drop(self, id: str) -> bool:
        """Take out the row of an id; whether there was one."""
        row = self._places.find(id)
        if row is None:
            return False
        self.columns["live"][row] = False
        self._live -= 1
        self._short = self._longer = None
        self._lengths[self.columns["length"][row]] -= 1
        if self._sessions is not None:
            self._sessions.remove(row)
        if row < self.folded:
            self.dropped.append(id)
            self.untidy = True
        return True

    def seal(self, least: int) -> None:
        """Make a segment of what came last, if it has so many rows, so that it can be kept."""
        if self.columns.size - self.folded >= least:
            self._cut(self.revision)

    def _cut(self, revision: int) -> None:
        """Make a segment of the dictionary."""
        first = self.folded
        segment = segment_of(first, self.columns.size - first, *self.tail.postings(first))
        since = self.stretches[-1].until if self.stretches else 0
        self.stretches.append(Stretch(segment, since, revision, tuple(self.dropped)))
        self.tail, self.dropped = Tail(), []
        self.untidy = True

    def fold(
        self, one: Stretch, count: int, kept: Mask, compacted: tuple[Columns, Vectors | None] | None
    ) -> None:
        """Put ``one`` stretch in the place of the first ``count``; of their rows, ``kept`` stay.

        The others, which are dead, go, and all rows are numbered anew. ``compacted``: the columns
        and the vectors of those that stay, ``None`` where all do.
        """
        self.generation += 1
        known, later = len(kept), self.stretches[count:]
        gone = known - one.segment.size
        self._longer = None
        self.stretches = [one]
        if compacted is None:
            self.stretches += later
            return
        everywhere = np.ones(self.columns.size, np.bool_)
        everywhere[:known] = kept
        if self._sessions is not None:
            self._sessions.keep(everywhere)
        columns, vectors = compacted
        beyond = [
            (max(first, known) - gone, chunk.kept(np.arange(chunk.size) >= known - first))
            for first, chunk in self.vectors
            if first + chunk.size > known
        ]
        self.vectors = beyond if vectors is None else [(0, vectors), *beyond]
        self.columns.begin_with(columns, known, kept)
        self._places = _Places(self.columns)
        self.tail.move(-gone)
        self.stretches += (
            replace(stretch, segment=replace(stretch.segment, first=stretch.segment.first - gone))
            for stretch in later
        )

    # -- rows that were there before -------------------------------------------------------

    def load(self, stretch: Stretch, columns: Columns, vectors: Vectors | None) -> None:
        """Take over a stretch that another process made, and the columns of its rows.

        Rows with the id of an earlier one stand in its place.
        """
        first, size = self.columns.size, columns.size
        for id in stretch.dropped:
            self._drop(id)
        if first:
            known = np.isin(columns["key"], self.columns["key"])
            for row in np.flatnonzero(known).tolist():
                self._drop(columns.id(row))
        self.columns.extend(columns)
        self.stretches.append(stretch)
        self.dropped = []
        self.revision = stretch.until
        live = self.columns["live"][first:]
        self._live += int(np.count_nonzero(live))
        self._short = self._longer = None
        self._measure(columns["length"][live])
        self._expiring = self._expiring or bool(np.isfinite(columns["expires"]).any())
        self._sessions = None
        if self.embedder is not None:
            if vectors is None:
                vectors = Vectors(self.embedder.dimensions, size)
            self._waiting = self._waiting or not (vectors.made | ~columns["live"]).all()
            self.untidy = self.untidy or self._waiting
            self.vectors.append((first, vectors))

    # -- what is there ---------------------------------------------------------------------

    @property
    def sessions(self) -> Sessions:
        """The turns' sessions, made when they are first asked for."""
        if self._sessions is None:
            self._sessions = Sessions(self.columns)
        return self._sessions

    @property
    def short(self) -> float:
        """Terms up to which a text counts as short: the lower quartile of all, at least 40."""
        if self._short is None:
            passed = int(np.cumsum(self._lengths).searchsorted(self._live / 4))
            self._short = float(max(SHORT, passed))
            self._longer = None
        return self._short

    @property
    def longer(self) -> npt.NDArray[np.float64]:
        """How many times as long as a short text each row's is, at least 1."""
        if self._longer is None:
            self._longer = np.maximum(self.columns["length"] / self.short, 1.0)
        return self._longer

    def visible(self, now: float) -> Mask | None:
        """Which rows count at ``now`` (epoch seconds), ``None`` for all."""
        live: Mask = self.columns["live"]
        if self._expiring:
            return live & (self.columns["expires"] > now)
        return None if self._live == self.columns.size else live

    def population(self, visible: Mask | None) -> int:
        """How many memories of the scope are visible."""
        return len(self) if visible is None else int(np.count_nonzero(visible))

    def holders(self, forms: text.Forms, rows: npt.NDArray[np.int32]) -> int:
        """How many visible memories of the scope hold a word, which are these rows of it."""
        return len(rows)

    def posted(self, form: str | int) -> Postings:
        """The rows that hold a form or label (or a term by its number), and how often each does."""
        term = hashed(form) if isinstance(form, str) else form
        found = [stretch.segment.posted(term) for stretch in self.stretches]
        found.append(self.tail.posted(term))
        parts = [part for part in found if part is not None]
        if len(parts) == 1:
            return parts[0]
        return Postings(
            np.concatenate([_NO_ROWS, *(part.rows for part in parts)]),
            np.concatenate([_NO_COUNTS, *(part.counts for part in parts)]),
        )

    def admitted(self, narrow: Filter) -> Mask:
        """Which rows pass the filter."""
        columns = self.columns
        passes = np.ones(columns.size, np.bool_)
        if narrow.memory_type is not None:
            passes &= columns["kind"] == KINDS[narrow.memory_type]
        if narrow.min_importance:
            passes &= columns["importance"] >= narrow.min_importance
        if narrow.since is not None:
            passes &= columns["created"] >= narrow.since
        if narrow.until is not None:
            passes &= columns["created"] < narrow.until
        if narrow.persistent is not None:
            passes &= columns["persistent"] == narrow.persistent
        for label in labels_of(narrow.tags, narrow.category):
            has = np.zeros(columns.size, np.bool_)
            has[self.posted(label).rows] = True
            passes &= has
        return passes

    def similar(self, query: Floats) -> Floats:
        """The cosine of each row's vector with ``query``, 0 where there is none yet."""
        found = np.zeros(self.columns.size, np.float32)
        for first, chunk in self.vectors:
            found[first : first + chunk.size] = similarities(query, chunk.rows, chunk.scale)
        return found

    def vectors_of(self, first: int, end: int) -> list[tuple[Any, Any, Mask]]:
        """The vectors of some rows, their scales, and which are made, in parts.

        A row that doesn't count needs none.
        """
        parts = []
        for start, chunk in self.vectors:
            low, high = max(first, start) - start, min(end, start + chunk.size) - start
            if low < high:
                live = self.columns["live"][start + low : start + high]
                made = chunk.made[low:high] | ~live
                parts.append((chunk.rows[low:high], chunk.scale[low:high], made))
        return parts

    def in_file(self, first: int, end: int) -> bool:
        """Whether a file has just the vectors of these rows."""
        return any(
            chunk.fixed and (start, start + chunk.size) == (first, end)
            for start, chunk in self.vectors
        )

    def settle(self, first: int, vectors: Vectors) -> None:
        """Use these vectors, which no longer change, for the rows from ``first`` on."""
        end = first + vectors.size
        chunks = [(first, vectors)]
        for start, chunk in self.vectors:
            rows = np.arange(start, start + chunk.size)
            outside = [part for part in (rows < first, rows >= end) if part.any()]
            chunks += [(int(rows[part][0]), chunk.kept(part)) for part in outside]
        self.vectors = sorted(chunks, key=lambda chunk: chunk[0])

    def unmade(self, limit: int) -> list[str]:
        """Ids of at most ``limit`` live rows whose vectors have still to be made."""
        rows = np.flatnonzero(self.columns["live"] & ~self._made())[:limit]
        self._waiting = len(rows) > 0
        return [self.columns.id(row) for row in rows.tolist()]

    def made(self) -> tuple[int, int]:
        """How many live rows have their vectors, and how many there are."""
        return int(np.count_nonzero(self.columns["live"] & self._made())), len(self)

    def has_vector(self, row: int) -> bool:
        """Whether a row's vector is made."""
        return any(
            first <= row < first + chunk.size and chunk.made[row - first]
            for first, chunk in self.vectors
        )

    def _made(self) -> Mask:
        made = np.zeros(self.columns.size, np.bool_)
        for first, chunk in self.vectors:
            made[first : first + chunk.size] = chunk.made
        return made

    def embedded(self, ids: Sequence[str], revisions: Sequence[int], vectors: Floats) -> int:
        """Put vectors in the rows of these ids; how many.

        ``revisions``: those of the memories that were embedded, -1 where there was none. What
        was replaced meanwhile needs another vector.
        """
        rows = np.array([-1 if row is None else row for row in map(self._places.find, ids)])
        known, given = self.columns["revision"][rows], np.array(revisions)
        fit = (rows >= 0) & ((given == known) | (given < 0))
        for first, chunk in self.vectors:
            mine = np.flatnonzero(fit & (first <= rows) & (rows < first + chunk.size))
            if len(mine) and not chunk.fixed:
                chunk.put(rows[mine] - first, vectors[mine])
        return int(np.count_nonzero(fit))

    # -- single rows -----------------------------------------------------------------------

    @property
    def from_files(self) -> bool:
        """Whether a part of it is read from files."""
        fixed = any(chunk.fixed for _, chunk in self.vectors)
        return fixed or any(stretch.file is not None for stretch in self.stretches)

    def sample(self, count: int) -> dict[str, int]:
        """The ids and revisions of some live rows, half of them the newest."""
        rows = np.flatnonzero(self.columns["live"])
        half = count // 2
        some = rows[:: len(rows) // half + 1].tolist() + rows[-half:].tolist()
        revisions = self.columns["revision"]
        return {self.columns.id(row): int(revisions[row]) for row in some}

    def has(self, id: str, revision: int) -> bool:
        """Whether it has a memory at that revision."""
        row = self._places.find(id)
        return row is not None and bool(self.columns["revision"][row] == revision)

    def beside(self, id: str, count: int) -> list[str]:
        """The ids of the turns around one, at most ``count`` to each side, in order."""
        row = self._places.find(id)
        sides: list[list[str]] = []
        for beside in (self.sessions.before, self.sessions.after):
            found: list[str] = []
            at = -1 if row is None else int(beside[row])
            while at >= 0 and len(found) < count:
                found.append(self.columns.id(at))
                at = int(beside[at])
            sides.append(found)
        return sides[0][::-1] + sides[1]


_NO_ROWS = np.zeros(0, np.int32)
_NO_COUNTS = np.zeros(0, np.uint8)


def vectors_for(embedder: Embedder, texts: Sequence[str]) -> Floats:
    """What an embedder makes of texts, seen to be a vector of numbers for each."""
    return _seen_to_be(embedder, texts, embedder.embed(texts))


def _seen_to_be(embedder: Embedder, texts: Sequence[str], made: Any) -> Floats:
    vectors = np.asarray(made, np.float32)
    if vectors.shape != (len(texts), embedder.dimensions) or not np.isfinite(vectors).all():
        raise EmbeddingFailed(
            f"{embedder.name} made something else of {len(texts)} texts than a vector of "
            f"{embedder.dimensions} numbers for each: array of {vectors.shape}; mend the embedder"
        )
    return vectors


def joined(stretches: Sequence[Stretch]) -> Stretch:
    """One stretch in place of several that follow each other; no row goes."""
    return Stretch(
        merged([stretch.segment for stretch in stretches]),
        stretches[0].since,
        stretches[-1].until,
        tuple(id for stretch in stretches for id in stretch.dropped),
    )


class _Places:
    """Which live row an id has."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._new: dict[int, list[int]] = {}
        self._sorted = 0  # rows below this one are in ``_order``, by their keys
        self._order: Places = np.zeros(0, np.intp)
        self._keys: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._known = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use, about."""
        return self._order.nbytes + self._keys.nbytes + 200 * len(self._new)

    def add(self, row: int) -> None:
        self._new.setdefault(int(self._columns["key"][row]), []).append(row)
        self._known = row + 1

    def find(self, id: str) -> int | None:
        key = id_key(id)
        if self._known < self._columns.size or len(self._new) > _TAIL + self._sorted // 8:
            self._sort()
        candidates = self._new.get(key, [])
        at = int(self._keys.searchsorted(np.uint64(key)))
        while at < self._sorted and self._keys[at] == key:
            candidates = [*candidates, int(self._order[at])]
            at += 1
        live = self._columns["live"]
        return next((row for row in candidates if live[row] and self._columns.id(row) == id), None)

    def _sort(self) -> None:
        keys = self._columns["key"]
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        self._sorted = self._known = self._columns.size
        self._new = {}
