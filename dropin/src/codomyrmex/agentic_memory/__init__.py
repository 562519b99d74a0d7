"""``codomyrmex.agentic_memory``: the records, the stores and the memories."""

from .core.memory import AgentMemory, ConversationMemory, KnowledgeMemory, VectorStoreMemory
from .core.models import Memory, MemoryImportance, MemoryType, RetrievalResult
from .stores import InMemoryStore, JSONFileStore

__all__ = [
    "AgentMemory",
    "ConversationMemory",
    "InMemoryStore",
    "JSONFileStore",
    "KnowledgeMemory",
    "Memory",
    "MemoryImportance",
    "MemoryType",
    "RetrievalResult",
    "VectorStoreMemory",
]
