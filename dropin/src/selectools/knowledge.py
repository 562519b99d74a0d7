"""``selectools.knowledge``: the knowledge memory and its stores."""

from retain import (
    FileKnowledgeStore,
    KnowledgeBackend,
    KnowledgeEntry,
    KnowledgeMemory,
    KnowledgeStore,
    SQLiteKnowledgeStore,
)

__all__ = [
    "FileKnowledgeStore",
    "KnowledgeBackend",
    "KnowledgeEntry",
    "KnowledgeMemory",
    "KnowledgeStore",
    "SQLiteKnowledgeStore",
]
