"""``codomyrmex.agentic_memory.core.models``: the records."""

from retain import Memory, MemoryImportance, MemoryType, RetrievalResult

__all__ = ["Memory", "MemoryImportance", "MemoryType", "RetrievalResult"]
