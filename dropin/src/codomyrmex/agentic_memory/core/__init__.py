"""``codomyrmex.agentic_memory.core``: the records and the memories."""

from .memory import AgentMemory, ConversationMemory, KnowledgeMemory, VectorStoreMemory
from .models import Memory, MemoryImportance, MemoryType, RetrievalResult

__all__ = [
    "AgentMemory",
    "ConversationMemory",
    "KnowledgeMemory",
    "Memory",
    "MemoryImportance",
    "MemoryType",
    "RetrievalResult",
    "VectorStoreMemory",
]
