"""The faces for the tasks of an event loop: the same calls, awaited."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from ..backends import KnowledgeBackend
from ..guard.hooks import Hook
from ..indexing import Progress
from ..messages import Message
from ..models import Memory, MemoryImportance, MemoryType
from ..results import RetrievalResult
from ..scope import Scope
from ..search.embedders import Embedder, default_embedder
from ..search.rank import HALF_LIFE
from ..stores.base import Driver, Store
from ..stores.knowledge import KnowledgeStore, KnowledgeView
from .agent import AgentMemory, VectorStoreMemory
from .async_store import AsyncKnowledgeStore, AsyncStore
from .base import Face
from .conversation import ConversationMemory
from .knowledge import KnowledgeMemory, Receipt
from .observing import Observed, Said
from .on_loop import Awaited, OnLoop, many

__all__ = [
    "AsyncAgentMemory",
    "AsyncConversationMemory",
    "AsyncKnowledgeMemory",
    "AsyncVectorStoreMemory",
]

Place = Store | KnowledgeStore | str


class AsyncFace(Awaited):
    """A face for the tasks of one event loop: every call is awaited.

    ``make`` makes the face itself, when the first call needs it. ``given``: what was given as its
    store, and ``scope`` as its scope.
    """

    def __init__(self, make: Callable[[], Face], given: Place | None, scope: Scope | None) -> None:
        self._on = OnLoop(make, _driver_of)
        store = given.memories if isinstance(given, KnowledgeView) else given
        self._scope = scope or (store.scope if isinstance(store, Store) else Scope())

    @property
    def scope(self) -> Scope:
        """Whose memory it is."""
        return self._scope

    @property
    def memory_count(self) -> Awaitable[int]:
        """To be awaited: how many memories are visible in the scope."""
        return self._on.ask(lambda face: int(face.memory_count))

    async def remember_many(
        self, items: Iterable[str | Mapping[str, Any] | Memory]
    ) -> list[Memory]:
        """Remember all of ``items`` in one transaction, or none; the memories as stored.

        An item is a text, a dict of ``remember``'s arguments, or a whole :class:`Memory`.
        """
        if not isinstance(items, (str, Mapping, Memory)):  # which are refused
            items = list(items)
        call = self._call_aside if many(items) else self._call
        return await call(Face.remember_many, items)

    async def observe(
        self,
        messages: Said | Iterable[Said],
        *,
        provider: Any = None,
        model: str = "",
        session: str | None = None,
        timeout: float | None = 60.0,
    ) -> Observed:
        """Keep what was said, and remember what is worth it: see :meth:`AgentMemory.observe`.

        A model is asked on a thread.
        """
        if not isinstance(messages, (str, Mapping, Memory, Message)):
            messages = list(messages)
        return await self._call_aside(
            Face.observe,
            messages,
            provider=provider,
            model=model,
            session=session,
            timeout=timeout,
        )

    async def update(self, id: str, **changes: Any) -> Memory:
        """Change fields of a memory, by name; it as it is now stored.

        Atomic, also against other processes. Raises as :meth:`AgentMemory.update` does.
        """
        return await self._on.ask(lambda face: face.update(id, **changes))

    async def forget(self, id: str) -> bool:
        """Delete a memory for good, everywhere; whether it was there."""
        return await self._call(Face.forget, id)

    async def prune(self) -> int:
        """Delete what is expired; how many there were."""
        return await self._call(Face.prune)

    async def get(self, id: str) -> Memory | None:
        """The memory of that id, or ``None``; counts as a retrieval."""
        return await self._call(Face.get, id)

    async def recall(
        self,
        query: str,
        *,
        k: int = 10,
        memory_type: MemoryType | None = None,
        min_importance: MemoryImportance | float | None = None,
        tags: Iterable[str] | None = None,
        category: str | None = None,
        since: float | datetime | None = None,
        until: float | datetime | None = None,
        persistent: bool | None = None,
    ) -> list[RetrievalResult]:
        """The k best memories for ``query``, best first: see :meth:`AgentMemory.recall`.

        Sees all that was written before the call, by any task or process.
        """
        return await self._call(
            Face.recall,
            query,
            k=k,
            memory_type=memory_type,
            min_importance=min_importance,
            tags=tags,
            category=category,
            since=since,
            until=until,
            persistent=persistent,
        )

    async def search(self, query: str, k: int = 10) -> list[RetrievalResult]:
        """The k best memories for ``query``: :meth:`recall` without filters."""
        return await self._call(Face.search, query, k)

    async def get_context(self, query: str, k: int = 5) -> str:
        """The k best memories for a prompt, a line ``- content`` each; "" if there are none."""
        return await self._call(Face.get_context, query, k)

    async def neighbours(self, id: str, k: int = 2) -> list[Memory]:
        """The turns around one in its session: at most ``k`` before it and ``k`` after it."""
        return await self._call(Face.neighbours, id, k)

    async def settle(self, progress: Progress | None = None) -> None:
        """Do now what is else done in the background: new vectors, and the index's files.

        ``progress`` is told, on a thread, how many memories are ready, and of how many.
        """
        return await self._call_aside(Face.settle, progress)


def _driver_of(face: Face) -> Driver | None:
    """What can wait on an event loop: not a directory's files."""
    if isinstance(face, KnowledgeMemory) and face.directory is not None:
        return None
    return face.engine.store.driver


class AsyncAgentMemory(AsyncFace):
    """An :class:`~retain.AgentMemory` for the tasks of one event loop: every call is awaited.

    The arguments are those of :class:`~retain.AgentMemory`. Nothing is opened before the first
    call, or ``async with``. Over PostgreSQL and Redis the loop itself waits for the server, over
    connections of its own (``retain[async]``); over other stores, calls are made on threads.

    A cancelled call goes on at once, and never leaves half a write: what it called for is done as
    a whole, by then or (on a thread) soon, or not at all.

    >>> import asyncio
    >>> from retain import AsyncAgentMemory
    >>> async def main():
    ...     async with AsyncAgentMemory() as memory:
    ...         await memory.remember("The deadline is 1 March")
    ...         return await memory.recall("deadline")
    >>> asyncio.run(main())[0].memory.content
    'The deadline is 1 March'
    """

    _twin: type[AgentMemory] = AgentMemory

    def __init__(
        self,
        store: Place | None = None,
        *,
        scope: Scope | None = None,
        pre_save: Hook | Sequence[Hook] | None = None,
        dedupe: bool = False,
        dedupe_threshold: float = 0.9,
        dedupe_window: int = 200,
        max_entries: int | None = None,
        half_life: float = HALF_LIFE,
        embedder: Embedder | None = None,
    ) -> None:
        make = partial(
            self._twin,
            store,
            scope=scope,
            pre_save=pre_save,
            dedupe=dedupe,
            dedupe_threshold=dedupe_threshold,
            dedupe_window=dedupe_window,
            max_entries=max_entries,
            half_life=half_life,
            embedder=embedder,
        )
        super().__init__(make, store, scope)

    @property
    def store(self) -> AsyncStore:
        """Where the memories live."""
        return AsyncStore.of(self._on, lambda face: face.store)

    async def remember(
        self,
        content: str,
        *,
        memory_type: MemoryType | None = None,
        importance: MemoryImportance | float = MemoryImportance.MEDIUM,
        metadata: Mapping[str, Any] | None = None,
        tags: Iterable[str] | None = None,
        category: str = "general",
        source: str = "",
        persistent: bool = False,
        ttl_days: float | None = None,
        created_at: float | datetime | None = None,
    ) -> Memory:
        """Remember ``content``; the memory as it is stored: see :meth:`AgentMemory.remember`.

        Durable when the call returns, where the store is. Raises ``InvalidValue``,
        ``InvalidType`` or ``Rejected``; then nothing was written.
        """
        return await self._call(
            AgentMemory.remember,
            content,
            memory_type=memory_type,
            importance=importance,
            metadata=metadata,
            tags=tags,
            category=category,
            source=source,
            persistent=persistent,
            ttl_days=ttl_days,
            created_at=created_at,
        )


class AsyncVectorStoreMemory(AsyncAgentMemory):
    """A :class:`~retain.VectorStoreMemory` for the tasks of one event loop.

    See :class:`~retain.AsyncAgentMemory`.
    """

    _twin = VectorStoreMemory

    def __init__(
        self,
        store: Place | None = None,
        *,
        embedder: Embedder | None = default_embedder(),  # noqa: B008  # reads nothing yet
        **options: Any,
    ) -> None:
        super().__init__(store, embedder=embedder, **options)


class AsyncConversationMemory(AsyncFace):
    """A :class:`~retain.ConversationMemory` for the tasks of one event loop.

    See :class:`~retain.AsyncAgentMemory`. Turns stand in the window in the order in which they
    were kept: await one before the next where that matters.
    """

    def __init__(
        self,
        max_messages: int = 50,
        *,
        store: Place | None = None,
        embedder: Embedder | None = default_embedder(),  # noqa: B008  # reads nothing yet
        **options: Any,
    ) -> None:
        make = partial(ConversationMemory, max_messages, store=store, embedder=embedder, **options)
        super().__init__(make, store, options.get("scope"))

    async def add_turn(
        self,
        role: str,
        content: str,
        *,
        turn_number: int = 0,
        session: str | None = None,
        created_at: float | datetime | None = None,
    ) -> Memory:
        """Keep one turn, and put it into the window: see :meth:`ConversationMemory.add_turn`."""
        return await self._call(
            ConversationMemory.add_turn,
            role,
            content,
            turn_number=turn_number,
            session=session,
            created_at=created_at,
        )

    async def turns(self) -> list[Memory]:
        """Every turn that is kept, oldest first."""
        return await self._call(ConversationMemory.turns)

    async def add(self, message: Message) -> None:
        """Put a message into the window and, if it has text and is no tool's, keep the turn."""
        return await self._call(ConversationMemory.add, message)

    async def add_many(self, messages: Iterable[Message]) -> None:
        """Put all of them into the window, and keep their turns, or none."""
        new = list(messages)
        call = self._call_aside if many(new) else self._call
        return await call(ConversationMemory.add_many, new)

    async def get_history(self) -> list[Message]:
        """The messages of the window, oldest first."""
        return await self._call(ConversationMemory.get_history)

    async def get_recent(self, n: int) -> list[Message]:
        """The last ``n`` messages of the window, oldest first."""
        return await self._call(ConversationMemory.get_recent, n)

    async def resume(self, messages: Iterable[Message]) -> None:
        """Make these the window, e.g. those of a stored session; no turn is kept of them."""
        return await self._call(ConversationMemory.resume, list(messages))

    async def clear(self) -> None:
        """Empty the window; the turns stay kept and found (``forget`` deletes one)."""
        return await self._call(ConversationMemory.clear)

    async def to_dict(self) -> dict[str, Any]:
        """The window as a JSON object."""
        return await self._call(ConversationMemory.to_dict)

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], *, store: Place | None = None
    ) -> AsyncConversationMemory:
        """A conversation with that window; its messages are not kept a second time."""
        kept = ConversationMemory.from_dict(data).to_dict()  # what is wrong is refused here
        memory = cls(kept["max_messages"], store=store)
        make = partial(ConversationMemory.from_dict, kept, store=store)
        AsyncFace.__init__(memory, make, store, None)
        return memory

    async def remember(
        self,
        content: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        importance: MemoryImportance | float = MemoryImportance.MEDIUM,
        tags: Iterable[str] | None = None,
        **fields: Any,
    ) -> Memory:
        """Remember something beside the turns, as :meth:`AsyncAgentMemory.remember` does."""
        options = {"metadata": metadata, "importance": importance, "tags": tags, **fields}
        return await self._on.ask(lambda face: face.remember(content, **options))


class AsyncKnowledgeMemory(AsyncFace):
    """A :class:`~retain.KnowledgeMemory` for the tasks of one event loop.

    See :class:`~retain.AsyncAgentMemory`; a memory with a directory is one of files, whose calls
    are made on threads, whatever its store.

    >>> import asyncio
    >>> from retain import AsyncKnowledgeMemory
    >>> async def main():
    ...     async with AsyncKnowledgeMemory(storage_dir=None) as knowledge:
    ...         await knowledge.remember("Likes tea", category="preferences", persistent=True)
    ...         return await knowledge.build_context()
    >>> print(asyncio.run(main()))
    [Long-term Memory]
    ## preferences
    - Likes tea
    """

    def __init__(
        self,
        storage_dir: str | os.PathLike[str] | None = "./agent_memory",
        max_log_days: int = 30,
        max_context_entries: int = 50,
        *,
        directory: str | os.PathLike[str] | None = None,
        store: Place | None = None,
        backend: KnowledgeBackend | None = None,
        scope: Scope | None = None,
        pre_save: Hook | Sequence[Hook] | None = None,
        dedupe: bool = False,
        dedupe_threshold: float = 0.9,
        dedupe_window: int = 200,
        max_entries: int | None = None,
        half_life: float = HALF_LIFE,
        embedder: Embedder | None = default_embedder(),  # noqa: B008  # reads nothing yet
        allow_network: bool = False,
    ) -> None:
        make = partial(
            KnowledgeMemory,
            storage_dir,
            max_log_days,
            max_context_entries,
            directory=directory,
            store=store,
            backend=backend,
            scope=scope,
            pre_save=pre_save,
            dedupe=dedupe,
            dedupe_threshold=dedupe_threshold,
            dedupe_window=dedupe_window,
            max_entries=max_entries,
            half_life=half_life,
            embedder=embedder,
            allow_network=allow_network,
        )
        super().__init__(make, store, scope)
        self._backend = backend

    @property
    def store(self) -> AsyncKnowledgeStore:
        """The entries as a knowledge store; call :meth:`flush` after changing them there."""
        return AsyncKnowledgeStore(self._on, lambda face: face.store)

    @property
    def backend(self) -> KnowledgeBackend | None:
        """Where the directory is carried to."""
        return self._backend

    async def remember(
        self,
        content: str,
        category: str = "general",
        persistent: bool = False,
        *,
        importance: MemoryImportance | float = 0.5,
        ttl_days: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Iterable[str] | None = None,
        memory_type: MemoryType | None = None,
        source: str = "",
        created_at: float | datetime | None = None,
    ) -> Receipt:
        """Remember ``content``; a sentence that says so, with ``.id``.

        See :meth:`KnowledgeMemory.remember`.
        """
        return await self._call(
            KnowledgeMemory.remember,
            content,
            category,
            persistent,
            importance=importance,
            ttl_days=ttl_days,
            metadata=metadata,
            tags=tags,
            memory_type=memory_type,
            source=source,
            created_at=created_at,
        )

    async def add_fact(self, fact: str, source: str = "") -> Memory:
        """Remember a persistent SEMANTIC memory of HIGH importance; it as it is stored."""
        return await self._call(KnowledgeMemory.add_fact, fact, source)

    async def restore(self, id: str) -> Memory:
        """Bring back a fact whose line was deleted from MEMORY.md within 30 days."""
        return await self._call(KnowledgeMemory.restore, id)

    async def forgotten(self) -> list[tuple[datetime, Memory]]:
        """The facts that can be restored, with the time their lines were deleted."""
        return await self._call(KnowledgeMemory.forgotten)

    async def prune_logs(self, max_days: int | None = None) -> int:
        """Delete logs older than ``max_days`` days, and their notes; how many logs."""
        return await self._call(KnowledgeMemory.prune_logs, max_days)

    prune_old_logs = prune_logs

    async def clear(self) -> None:
        """Delete every memory of the scope, the logs, and all of MEMORY.md but its title."""
        return await self._call(KnowledgeMemory.clear)

    async def clear_logs(self) -> None:
        """Delete the logs, and their memories that are not persistent."""
        return await self._call(KnowledgeMemory.clear_logs)

    async def flush(self, *, overwrite: bool = False) -> None:
        """Bring files and store in step, and save to the back end, if there is one."""
        return await self._call(KnowledgeMemory.flush, overwrite=overwrite)

    async def build_context(self) -> str:
        """A block for a prompt: ``[Long-term Memory]`` and ``[Recent Memory]``."""
        return await self._call(KnowledgeMemory.build_context)

    async def get_persistent_facts(self) -> dict[str, list[str]]:
        """The persistent facts by category, as they stand in MEMORY.md."""
        return await self._call(KnowledgeMemory.get_persistent_facts)

    async def get_recent_entries(self, days: int = 7, limit: int = 50) -> list[dict[str, Any]]:
        """The entries of the last ``days`` days' logs, newest first, at most ``limit``."""
        return await self._call(KnowledgeMemory.get_recent_entries, days, limit)

    async def match(self, query: str, k: int = 5) -> list[Memory]:
        """The k best memories in the order of the ``recall`` tool."""
        return await self._call(KnowledgeMemory.match, query, k)
