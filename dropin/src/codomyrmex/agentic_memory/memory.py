"""``codomyrmex.agentic_memory.memory``: the memories, under their other name."""

from .core.memory import AgentMemory, ConversationMemory, KnowledgeMemory, VectorStoreMemory

__all__ = ["AgentMemory", "ConversationMemory", "KnowledgeMemory", "VectorStoreMemory"]
