"""The agentic specification's memory: remember, recall, forget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ..models import Memory, MemoryImportance, MemoryType
from ..search.embedders import Embedder, default_embedder
from ..stores.base import Store
from ..stores.knowledge import KnowledgeStore
from .base import Face

__all__ = ["AgentMemory", "VectorStoreMemory"]


class AgentMemory(Face):
    """What an agent remembers: events, facts and skills, found by the words they share.

    ``AgentMemory()`` lives in the process; ``AgentMemory(SQLiteStore("memory.db"))`` lasts.
    The other arguments are :class:`~retain.memories.base.Face`'s.

    >>> from retain import AgentMemory, MemoryImportance
    >>> mem = AgentMemory()
    >>> _ = mem.remember("The deadline is 1 March", importance=MemoryImportance.HIGH)
    >>> mem.recall("deadline", k=5)[0].memory.content
    'The deadline is 1 March'
    """

    blends = False

    @property
    def store(self) -> Store:
        """Where the memories live."""
        return self.engine.store

    def remember(
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
        """Remember ``content``; the memory as it is stored.

        ``memory_type``: EPISODIC unless given. ``importance``: a step, or a number from 0 to
        1. ``metadata``: any JSON object. ``tags``: texts, searched too. ``source``: who said
        it, which document, which tool. ``persistent``: never pruned, never evicted; one that
        equals another's text and category is not written again, and the old one returned.
        ``ttl_days``: days until it is invisible. ``created_at``: epoch seconds or an aware
        ``datetime``, for history that keeps its time.

        Durable when the call returns, where the store is. Raises ``InvalidValue``,
        ``InvalidType`` or ``Rejected`` (a hook's refusal); then nothing was written.
        """
        return self._remember(
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


class VectorStoreMemory(AgentMemory):
    """Memory that is searched by meaning as well as by words.

    ``embedder``: what compares meanings; the one that comes with the install unless given.

    >>> from retain import VectorStoreMemory
    >>> memory = VectorStoreMemory()
    >>> _ = memory.remember("We adopted a puppy from the shelter")
    >>> memory.search("Which dog do they have?")[0].memory.content
    'We adopted a puppy from the shelter'
    """

    blends = True

    def __init__(
        self,
        store: Store | KnowledgeStore | str | None = None,
        *,
        embedder: Embedder | None = default_embedder(),  # noqa: B008  # reads nothing yet
        **options: Any,
    ) -> None:
        super().__init__(store, embedder=embedder, **options)
