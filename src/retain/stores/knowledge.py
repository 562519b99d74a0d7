"""The knowledge specification's stores: views of the house's stores, entry by entry."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol, runtime_checkable

from .. import clock
from ..errors import InvalidType, InvalidValue
from ..models import Filter, KnowledgeEntry, Memory, from_entry, to_entry
from ..scope import Scope
from .base import Order, Problem, Store, Written
from .file import FileStore
from .opening import open_store
from .sqlite import SQLiteStore
from .table import Shelf, TableDriver, unchanged

__all__ = [
    "FileKnowledgeStore",
    "KnowledgeStore",
    "KnowledgeView",
    "SQLiteKnowledgeStore",
    "as_store",
]


@runtime_checkable
class KnowledgeStore(Protocol):
    """Where ``KnowledgeMemory`` keeps its entries: any object with these six methods."""

    def save(self, entry: KnowledgeEntry) -> str:
        """Insert or replace by id; the id."""
        ...

    def get(self, entry_id: str) -> KnowledgeEntry | None:
        """The entry of that id, or ``None``."""
        ...

    def query(
        self,
        category: str | None = None,
        min_importance: float = 0.0,
        since: datetime | None = None,
        limit: int = 50,
    ) -> list[KnowledgeEntry]:
        """The most important entries that pass, newest first among equals."""
        ...

    def delete(self, entry_id: str) -> bool:
        """Delete by id; whether it was there."""
        ...

    def count(self) -> int:
        """How many entries there are."""
        ...

    def prune(self, max_age_days: int | None = None, min_importance: float = 0.0) -> int:
        """Delete what is expired, too old or too unimportant; how many."""
        ...


class KnowledgeView:
    """A :class:`~retain.Store` as a knowledge store; ``memories`` is that store."""

    def __init__(self, memories: Store) -> None:
        self.memories = memories

    def save(self, entry: KnowledgeEntry) -> str:
        """Insert or replace by id, durably; the id."""
        self.memories.save(from_entry(entry))
        return entry.id

    def get(self, entry_id: str) -> KnowledgeEntry | None:
        """The entry of that id, or ``None``; counts as a retrieval."""
        found = self.memories.get(entry_id)
        return None if found is None else to_entry(found)

    def query(
        self,
        category: str | None = None,
        min_importance: float = 0.0,
        since: datetime | None = None,
        limit: int = 50,
    ) -> list[KnowledgeEntry]:
        """The ``limit`` most important entries, newest first among equals.

        Only of ``category``, of at least ``min_importance`` (0 to 1), created at ``since``
        or later (a naive time is UTC), where these are given.
        """
        if isinstance(since, datetime) and since.tzinfo is None:
            since = since.replace(tzinfo=timezone.utc)
        narrow = Filter.of(category=category or None, min_importance=min_importance, since=since)
        page = self.memories.page(limit, narrow=narrow, order=Order.IMPORTANT)
        return [to_entry(memory) for memory in page]

    def delete(self, entry_id: str) -> bool:
        """Delete by id; whether it was there."""
        return self.memories.delete(entry_id)

    def count(self) -> int:
        """How many entries a read can see."""
        return self.memories.count()

    def prune(self, max_age_days: float | None = None, min_importance: float = 0.0) -> int:
        """Delete what is expired, older than ``max_age_days`` or less important; how many.

        Persistent entries stay.
        """
        narrow = Filter.of(min_importance=min_importance, persistent=False)
        if max_age_days is not None:
            if isinstance(max_age_days, bool) or not isinstance(max_age_days, (int, float)):
                kind = type(max_age_days).__name__
                raise InvalidType(f"max_age_days is a {kind}; give a number of days from 0")
            if not max_age_days >= 0:
                raise InvalidValue(f"max_age_days={max_age_days!r}; give a number of days from 0")
            oldest = clock.now() - max_age_days * clock.DAY
            narrow = Filter(min_importance=narrow.min_importance, since=oldest, persistent=False)
        everything = Filter(persistent=False)
        doomed = [m.id for m in self.memories.iterate(narrow=everything) if not narrow.admits(m)]
        return self.memories.delete_many([*doomed, *self.memories.expired()])

    def close(self) -> None:
        """Let go of the store."""
        self.memories.close()


class FileKnowledgeStore(KnowledgeView):
    """Entries in a folder, as an append-only file: see :class:`~retain.FileStore`."""

    def __init__(
        self, directory: str | os.PathLike[str] = "./memory", *, scope: Scope | None = None
    ) -> None:
        super().__init__(FileStore(directory, scope=scope))


class SQLiteKnowledgeStore(KnowledgeView):
    """Entries in a SQLite file: see :class:`~retain.SQLiteStore`."""

    def __init__(
        self, db_path: str | os.PathLike[str] = "knowledge.db", *, scope: Scope | None = None
    ) -> None:
        super().__init__(SQLiteStore(db_path, scope=scope))


def as_store(place: Store | KnowledgeStore | str) -> Store:
    """The store behind ``place``: a store, a view of one, a knowledge store of the user's, or
    the one that a URL names.
    """
    if isinstance(place, Store):
        return place
    if isinstance(place, str):
        return open_store(place)
    if isinstance(place, KnowledgeView):
        return place.memories
    if not isinstance(place, KnowledgeStore) or isinstance(place, type):
        raise InvalidType(
            f"store is a {type(place).__name__}; give a retain store, its URL, or an object with "
            "the methods save, get, query, delete, count and prune"
        )
    return Store(ForeignDriver(place))


_BEYOND = ("memory_type", "tags", "source", "access_count", "last_accessed")
_KEY = "retain"  # in the metadata of a foreign entry: what the entry has no member for


class ForeignDriver(TableDriver):
    """A knowledge store that somebody else wrote, as a driver.

    It has no revisions, so every operation reads it whole and compares: right at any size,
    quick only for small ones. Since what changed while nobody looked can't be told, they begin
    at the time in microseconds, or at 0 where there is nothing yet. A write of several memories
    is not atomic there.
    """

    def __init__(self, place: KnowledgeStore) -> None:
        super().__init__()
        self.place = place

    @contextmanager
    def _exclusive(self, writing: bool) -> Iterator[None]:
        found = {entry.id: _unpacked(entry) for entry in self.place.query(limit=2**31 - 1)}
        if not self._shelves:
            self._revision = int(clock.now() * 1_000_000) if found else 0
            self._shelves[Scope()] = Shelf(floor=self._revision)
        shelf = self._shelves[Scope()]
        for id in [id for id in shelf.memories if id not in found]:
            self._revision += 1
            shelf.delete(id, self._revision)
        for id, memory in found.items():
            before = shelf.memories.get(id)
            if before is not None:  # what has been counted here is written there later
                memory.access_count = max(memory.access_count, before.access_count)
                memory.last_accessed = max(memory.last_accessed, before.last_accessed)
            if before is None or not unchanged(before, memory):
                self._revision += 1
                memory.revision = self._revision
                shelf.put(memory)
        yield

    def _persist(self, scope: Scope, written: Written, revision: int) -> None:
        if scope != Scope():
            raise InvalidValue(f"{type(self.place).__name__} has no scopes; use the default one")
        memories = self._shelf(scope).memories
        new = {memory.id for memory in written.saved if memory.revision > self._revision}
        for id, (count, last) in self._retrievals.get(scope, {}).items():
            if id in memories and id not in new and id not in written.deleted:
                seen = memories[id].copy(last_accessed=max(memories[id].last_accessed, last))
                seen.access_count += count
                self.place.save(_packed(seen))
        for id in written.deleted:
            self.place.delete(id)
        for memory in written.saved:
            if memory.id in new:
                self.place.save(_packed(memory))

    def check(self, fix: bool = False) -> list[Problem]:
        """What is wrong in a foreign store only its author can tell."""
        with self._open():
            return []

    def backup(self, path: Path) -> None:
        """Refused: only its author knows how."""
        raise InvalidValue(f"{type(self.place).__name__} has no backup; export it instead")

    def close(self) -> None:
        """Write the retrieval counts that wait, and close the foreign store, if it can be."""
        with self._lock:
            close = None if self._closed else getattr(self.place, "close", None)
            try:
                super().close()
            finally:
                if close is not None:
                    close()


def _packed(memory: Memory) -> KnowledgeEntry:
    """The entry of a memory, whole even where only the members of the entry are kept."""
    entry = to_entry(memory)
    entry.record = None
    plain, whole = from_entry(entry).to_dict(), memory.to_dict()
    beyond = {name: whole[name] for name in _BEYOND if whole[name] != plain[name]}
    if beyond:
        entry.metadata[_KEY] = beyond
    return entry


def _unpacked(entry: KnowledgeEntry) -> Memory:
    memory = from_entry(entry)
    beyond = memory.metadata.get(_KEY)
    if not isinstance(beyond, dict) or beyond.keys() - set(_BEYOND):
        return memory
    del memory.metadata[_KEY]
    return Memory.from_dict({**memory.to_dict(), **beyond})
