"""Memories by scope in dictionaries: what the stores share that hold everything in memory."""

from __future__ import annotations

import heapq
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice, takewhile

from ..models import Memory
from ..scope import Scope
from .base import (
    DELETIONS,
    Changes,
    Driver,
    Selection,
    Written,
    fact_key,
    order_key,
    refuse_conflict,
)

__all__ = ["Shelf", "TableDriver", "unchanged"]


class Shelf:
    """One scope's memories and deletions, each in the order of their revisions.

    A memory on it is never changed, only replaced: those who read :meth:`changes` have it too.
    """

    def __init__(self, floor: int = 0) -> None:
        self.memories: dict[str, Memory] = {}
        self.deletions: dict[str, int] = {}
        self.facts: dict[str, dict[str, None]] = {}
        self.floor = floor
        """Deletions up to this revision are not known."""

    def put(self, memory: Memory) -> None:
        self.take(memory.id)
        self.memories[memory.id] = memory
        key = fact_key(memory)
        if key:
            self.facts.setdefault(key, {})[memory.id] = None

    def take(self, id: str) -> Memory | None:
        memory = self.memories.pop(id, None)
        if memory is not None:
            key = fact_key(memory)
            if key:
                self.facts[key].pop(id)
        return memory

    def recount(self, id: str, count: int, last: float) -> None:
        """Let a memory have these retrievals, at the revision and the place that it has."""
        self.memories[id] = self.memories[id].copy(access_count=count, last_accessed=last)

    def delete(self, id: str, revision: int) -> None:
        self.take(id)
        self.deletions.pop(id, None)
        self.deletions[id] = revision
        if len(self.deletions) > 2 * DELETIONS:
            for old in list(islice(self.deletions, DELETIONS)):
                self.floor = self.deletions.pop(old)

    def changes(self, since: int, revision: int) -> Changes:
        reset = since < self.floor or since > revision
        if reset:
            since = 0
        # Which ones is settled here, under the lock; they are copied when they are read.
        newer = list(takewhile(lambda m: m.revision > since, reversed(self.memories.values())))
        saved = (memory.copy() for memory in reversed(newer))
        # A first read, and one that begins anew, have nothing to take back.
        deleted = [id for id, at in self.deletions.items() if at > since] if since else []
        return Changes(saved, deleted, revision, reset)


class TableDriver(Driver):
    """A driver over :class:`Shelf`; a subclass says how a write is made to last."""

    def __init__(self) -> None:
        super().__init__()
        self._shelves: dict[Scope, Shelf] = {}
        self._revision = 0

    # -- what a subclass may add -----------------------------------------------------------

    @abstractmethod
    def _exclusive(self, writing: bool) -> AbstractContextManager[None]:
        """Held around every operation: keep others out, and catch up with what they wrote."""

    def _persist(self, scope: Scope, written: Written, revision: int) -> None:
        """Make a write, and the retrievals that wait, last; raising leaves all as it was."""

    def _distrust(self) -> None:
        """Know nothing any more: an interrupt came while that was being changed."""

    # -- the operations --------------------------------------------------------------------

    @contextmanager
    def _open(self, writing: bool = False) -> Iterator[None]:
        with self._lock:
            self._forked()
            self._usable()
            with self._exclusive(writing):
                yield

    def _shelf(self, scope: Scope) -> Shelf:
        # A scope that was forgotten, or never was: what anyone knew of it before is void.
        return self._shelves.get(scope) or Shelf(floor=self._revision)

    def write(
        self,
        scope: Scope,
        save: Sequence[Memory] = (),
        delete: Sequence[str] = (),
        *,
        unique: bool = False,
        expect: Mapping[str, int] | None = None,
    ) -> Written:
        with self._open(writing=True):
            shelf = self._shelf(scope)
            for id, expected in (expect or {}).items():
                known = shelf.memories.get(id)
                refuse_conflict(id, known.revision if known else 0, expected)
            gone = [id for id in dict.fromkeys(delete) if id in shelf.memories]
            revision = self._revision + len(gone)
            saved: list[Memory] = []
            duplicates: set[str] = set()
            facts: dict[str, Memory] = {}
            new: dict[str, Memory] = {}
            for memory in save:
                key = fact_key(memory) if unique else None
                equal = facts.get(key) or self._equal(shelf, key, memory.id, gone) if key else None
                if equal is not None:
                    saved.append(equal)
                    duplicates.add(equal.id)
                    continue
                revision += 1
                own = self._counted(scope, shelf, new.get(memory.id), memory)
                own.revision = revision
                new[own.id] = own
                saved.append(own)
                if key:
                    facts[key] = own
            written = Written(saved, gone, frozenset(duplicates))
            if saved or gone:
                self._do(scope, shelf, written, revision)
            return Written([m.copy() for m in saved], gone, written.duplicates)

    def _do(self, scope: Scope, shelf: Shelf, written: Written, revision: int) -> None:
        try:
            self._persist(scope, written, revision)
            self._apply(scope, shelf, written, revision)
        except BaseException:
            self._distrust()
            raise

    def _equal(self, shelf: Shelf, key: str, id: str, gone: list[str]) -> Memory | None:
        others = (other for other in shelf.facts.get(key, ()) if other != id and other not in gone)
        return next((shelf.memories[other] for other in others), None)

    def _counted(
        self, scope: Scope, shelf: Shelf, earlier: Memory | None, memory: Memory
    ) -> Memory:
        """A copy whose retrieval count has not fallen; ``earlier``: of the same write."""
        own = memory.copy()
        before = earlier or shelf.memories.get(own.id)
        if before is not None:
            waiting = self._retrievals.get(scope, {}) if earlier is None else {}
            count, last = waiting.get(own.id, (0, 0.0))
            own.access_count = max(own.access_count, before.access_count + count)
            own.last_accessed = max(own.last_accessed, before.last_accessed, last)
        return own

    def _apply(self, scope: Scope, shelf: Shelf, written: Written, revision: int) -> None:
        self._shelves[scope] = shelf
        at = self._revision
        for id in written.deleted:
            at += 1
            shelf.delete(id, at)
        for memory in written.saved:
            if memory.revision > self._revision:
                shelf.put(memory)
        for where, waiting in self._retrievals.items():
            there = self._shelf(where)
            for id, (count, last) in waiting.items():
                seen = there.memories.get(id)
                if seen is not None and seen.revision <= self._revision:  # else counted already
                    there.recount(id, seen.access_count + count, max(seen.last_accessed, last))
        self._retrievals.clear()
        self._revision = revision

    def fetch(self, scope: Scope, ids: Sequence[str]) -> list[Memory]:
        with self._open():
            memories = self._shelf(scope).memories
            return [memories[id].copy() for id in ids if id in memories]

    def select(self, scope: Scope, selection: Selection) -> list[Memory]:
        with self._open():
            key = order_key(selection.order)
            found = self._selected(scope, selection)
            if selection.after is not None:
                importance, created, id = selection.after
                place = key(Memory(id, importance_score=importance, created_at=created))
                found = (memory for memory in found if key(memory) > place)
            if selection.limit is None:
                ordered = sorted(found, key=key)
            else:
                ordered = heapq.nsmallest(selection.limit, found, key=key)
            return [memory.copy() for memory in ordered]

    def _selected(self, scope: Scope, selection: Selection) -> Iterable[Memory]:
        return (
            memory
            for memory in self._shelf(scope).memories.values()
            if memory.is_expired(selection.now) is selection.expired
            and selection.narrow.admits(memory)
        )

    def count(self, scope: Scope, selection: Selection) -> int:
        with self._open():
            return sum(1 for _ in self._selected(scope, selection))

    def changes(self, scope: Scope, since: int) -> Changes:
        with self._open():
            return self._shelf(scope).changes(since, self._revision)

    def revision(self) -> int:
        with self._open():
            return self._revision

    def scopes(self) -> list[Scope]:
        with self._open():
            return [scope for scope, shelf in self._shelves.items() if shelf.memories]

    def forget_scope(self, scope: Scope) -> int:
        with self._open(writing=True):
            shelf = self._shelf(scope)
            gone = list(shelf.memories)
            self._retrievals.pop(scope, None)
            if gone:
                written = Written([], gone)
                self._do(scope, shelf, written, self._revision + len(gone))
            self._shelves.pop(scope, None)
            return len(gone)

    def close(self) -> None:
        """Write the retrieval counts that wait, and let go of the place."""
        with self._lock:
            waiting = any(self._retrievals.values()) and self._pid == os.getpid()
            try:
                if waiting and not self._closed:
                    with self._open(writing=True):
                        self._do(Scope(), self._shelf(Scope()), Written([], []), self._revision)
            finally:
                super().close()


def unchanged(one: Memory, other: Memory) -> bool:
    """Whether they differ in nothing but their revision and their retrievals."""
    return other == one.copy(
        revision=other.revision,
        access_count=other.access_count,
        last_accessed=other.last_accessed,
    )
