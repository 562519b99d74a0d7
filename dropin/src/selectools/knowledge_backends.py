"""``selectools.knowledge_backends``: what carries a memory directory between hosts."""

from retain import KnowledgeBackend, RedisKnowledgeBackend, SupabaseKnowledgeBackend

__all__ = ["KnowledgeBackend", "RedisKnowledgeBackend", "SupabaseKnowledgeBackend"]
