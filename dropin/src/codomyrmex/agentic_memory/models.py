"""``codomyrmex.agentic_memory.models``: the records, under their other name."""

from .core.models import Memory, MemoryImportance, MemoryType, RetrievalResult

__all__ = ["Memory", "MemoryImportance", "MemoryType", "RetrievalResult"]
