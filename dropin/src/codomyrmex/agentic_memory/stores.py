"""``codomyrmex.agentic_memory.stores``: where memories live."""

from retain import InMemoryStore, JSONFileStore

__all__ = ["InMemoryStore", "JSONFileStore"]
