"""``codomyrmex.agentic_memory.core.memory``: memories that live in the process by default."""

from __future__ import annotations

from typing import Any

import retain
from retain import AgentMemory, Store, VectorStoreMemory

__all__ = ["AgentMemory", "ConversationMemory", "KnowledgeMemory", "VectorStoreMemory"]


class ConversationMemory(retain.ConversationMemory):
    """Dialogue turns in ``store``, or in the process; ``options`` are retain's own.

    >>> memory = ConversationMemory()
    >>> memory.add_turn("user", "Good morning", turn_number=1).content
    'Good morning'
    """

    def __init__(self, store: Store | None = None, **options: Any) -> None:
        super().__init__(store=store, **options)


class KnowledgeMemory(retain.KnowledgeMemory):
    """Facts in ``store``, or in the process, and no files; ``options`` are retain's own.

    >>> KnowledgeMemory().add_fact("Water boils at 100 °C", source="physics").persistent
    True
    """

    def __init__(self, store: Store | None = None, **options: Any) -> None:
        super().__init__(None, store=store, **options)
