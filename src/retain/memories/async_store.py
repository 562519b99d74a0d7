"""Stores for the tasks of an event loop."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from .. import clock
from ..errors import InvalidType
from ..models import Filter, KnowledgeEntry, Memory
from ..scope import Scope
from ..stores.base import PAGE, Changes, Order, Problem, Store, Written
from ..stores.knowledge import KnowledgeStore, KnowledgeView
from ..stores.opening import open_store
from .on_loop import Awaited, OnLoop, many

__all__ = ["AsyncKnowledgeStore", "AsyncStore"]


class AsyncStore(Awaited):
    """A :class:`~retain.Store` for the tasks of one event loop: every call is awaited.

    ``store``: a store, or the URL of one, which is opened with the first call. ``scope``: whose
    memories; the store's own scope unless given. See :class:`~retain.AsyncAgentMemory` for what
    waits how, and what becomes of a cancelled call.

    >>> import asyncio
    >>> from retain import AsyncStore, Memory
    >>> async def main():
    ...     async with AsyncStore("memory:") as store:
    ...         await store.save(Memory("m1", "The deadline is 1 March"))
    ...         return [memory.content async for memory in store.iterate()]
    >>> asyncio.run(main())
    ['The deadline is 1 March']
    """

    def __init__(self, store: Store | str, *, scope: Scope | None = None) -> None:
        if not isinstance(store, (Store, str)):
            raise InvalidType(f"store is a {type(store).__name__}; give a retain store or its URL")

        def make() -> Store:
            place = open_store(store) if isinstance(store, str) else store
            return place if scope is None else place.scoped(scope)

        self._on: OnLoop[Any] = OnLoop(make, lambda made: made.driver)
        self._of: Callable[[Any], Store] = lambda made: made

    @classmethod
    def of(cls, on: OnLoop[Any], store_of: Callable[[Any], Store]) -> AsyncStore:
        """The store of something that is open, or opened, on a loop."""
        store = cls.__new__(cls)
        store._on, store._of = on, store_of
        return store

    def _target(self, made: Any) -> Store:
        return self._of(made)

    @property
    def path(self) -> Awaitable[Path | None]:
        """To be awaited: the file or folder it lives in, ``None`` where there is none."""
        return self._on.ask(lambda made: self._of(made).path)

    @property
    def revision(self) -> Awaitable[int]:
        """To be awaited: the last revision of the place, of whatever scope."""
        return self._on.ask(lambda made: self._of(made).revision)

    def scoped(self, scope: Scope) -> AsyncStore:
        """The same place under another scope; closing either closes both."""
        return self.of(self._on, lambda made: self._of(made).scoped(scope))

    # -- reading ---------------------------------------------------------------------------

    async def get(self, memory_id: str) -> Memory | None:
        """The memory of that id, or ``None``; counts as a retrieval."""
        return await self._call(Store.get, memory_id)

    async def retrieved(self, memories: Sequence[Memory], now: float) -> None:
        """Count one retrieval of each, in the place and on the objects."""
        return await self._call(Store.retrieved, memories, now)

    async def peek(self, ids: Sequence[str], now: float | None = None) -> list[Memory]:
        """The visible memories of these ids, in the order given; counts nothing."""
        return await self._call(Store.peek, ids, now)

    async def list_all(self) -> list[Memory]:
        """Every visible memory, newest first."""
        return await self._call(Store.list_all)

    async def page(
        self,
        limit: int = 100,
        *,
        after: Memory | None = None,
        narrow: Filter | None = None,
        order: Order = Order.NEWEST,
        now: float | None = None,
    ) -> list[Memory]:
        """At most ``limit`` visible memories in ``order``, from just after ``after`` on."""
        return await self._call(Store.page, limit, after=after, narrow=narrow, order=order, now=now)

    async def iterate(
        self, *, narrow: Filter | None = None, order: Order = Order.NEWEST, size: int = PAGE
    ) -> AsyncIterator[Memory]:
        """Every visible memory, read in pages of ``size``: memory stays flat."""
        now = clock.now()
        page = await self.page(size, narrow=narrow, order=order, now=now)
        while page:
            for memory in page:
                yield memory
            page = await self.page(size, after=page[-1], narrow=narrow, order=order, now=now)

    async def count(self, narrow: Filter | None = None) -> int:
        """How many memories are visible (and pass ``narrow``)."""
        return await self._call(Store.count, narrow)

    async def expired(self) -> list[str]:
        """The ids of those that are no longer visible."""
        return await self._call(Store.expired)

    async def changes(self, since: int = 0) -> Changes:
        """What changed since a revision, deletes included; ``saved`` is read already."""

        def read(made: Any) -> Changes:
            found = self._of(made).changes(since)
            return replace(found, saved=iter(list(found.saved)))

        return await self._on.ask(read)

    # -- writing ---------------------------------------------------------------------------

    async def save(self, memory: Memory) -> None:
        """Insert or replace by id; durable when the call returns, as far as the store is."""
        return await self._call(Store.save, memory)

    async def save_many(self, memories: Iterable[Memory]) -> list[Memory]:
        """Save all or none of them; the memories as they are stored."""
        return (await self.write(memories)).saved

    async def write(
        self,
        save: Iterable[Memory] = (),
        delete: Iterable[str] = (),
        *,
        unique: bool = False,
        expect: Mapping[str, int] | None = None,
    ) -> Written:
        """One atomic write: see :meth:`Driver.write`."""
        save = list(save)
        call = self._call_aside if many(save) else self._call
        return await call(Store.write, save, delete, unique=unique, expect=expect)

    async def delete(self, memory_id: str) -> bool:
        """Delete by id; whether it was there."""
        return await self._call(Store.delete, memory_id)

    async def delete_many(self, ids: Iterable[str]) -> int:
        """Delete all of these; how many were there."""
        return await self._call(Store.delete_many, ids)

    # -- the place as a whole --------------------------------------------------------------

    async def scopes(self) -> list[Scope]:
        """Every scope of the place that holds a memory."""
        return await self._call(Store.scopes)

    async def forget_scope(self, scope: Scope) -> int:
        """Delete everything of exactly ``scope`` and nothing else; how many there were."""
        return await self._call(Store.forget_scope, scope)

    async def check(self, fix: bool = False) -> list[Problem]:
        """Verify the whole place; with ``fix``, repair. What was found, nothing if all is well."""
        return await self._call_aside(Store.check, fix)

    async def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a consistent copy, while it is in use, to a path that must not exist yet."""
        return await self._call_aside(Store.backup, path)


class AsyncKnowledgeStore(Awaited):
    """The entries of an :class:`~retain.AsyncKnowledgeMemory` as a knowledge store."""

    def __init__(self, on: OnLoop[Any], of: Callable[[Any], KnowledgeStore]) -> None:
        self._on, self._of = on, of

    def _target(self, made: Any) -> KnowledgeStore:
        return self._of(made)

    async def save(self, entry: KnowledgeEntry) -> str:
        """Insert or replace by id, durably; the id."""
        return await self._call(KnowledgeView.save, entry)

    async def get(self, entry_id: str) -> KnowledgeEntry | None:
        """The entry of that id, or ``None``; counts as a retrieval."""
        return await self._call(KnowledgeView.get, entry_id)

    async def query(
        self,
        category: str | None = None,
        min_importance: float = 0.0,
        since: datetime | None = None,
        limit: int = 50,
    ) -> list[KnowledgeEntry]:
        """The ``limit`` most important entries that pass, newest first among equals."""
        return await self._call(KnowledgeView.query, category, min_importance, since, limit)

    async def delete(self, entry_id: str) -> bool:
        """Delete by id; whether it was there."""
        return await self._call(KnowledgeView.delete, entry_id)

    async def count(self) -> int:
        """How many entries a read can see."""
        return await self._call(KnowledgeView.count)

    async def prune(self, max_age_days: float | None = None, min_importance: float = 0.0) -> int:
        """Delete what is expired, too old or too unimportant; how many. Persistent ones stay."""
        return await self._call(KnowledgeView.prune, max_age_days, min_importance)
