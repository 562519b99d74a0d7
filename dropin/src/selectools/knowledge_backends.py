"""``selectools.knowledge_backends``: what carries a memory directory between hosts."""

from retain import KnowledgeBackend

__all__ = ["KnowledgeBackend"]
