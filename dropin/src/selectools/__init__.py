"""The names that programs import from ``selectools``; each is retain's own."""

from retain import (
    Agent,
    AgentConfig,
    AgentResult,
    ConversationMemory,
    KnowledgeMemory,
    LocalProvider,
    Message,
    Role,
    Tool,
    ToolCall,
    tool,
)

__all__ = [
    "Agent",
    "AgentConfig",
    "AgentResult",
    "ConversationMemory",
    "KnowledgeMemory",
    "LocalProvider",
    "Message",
    "Role",
    "Tool",
    "ToolCall",
    "tool",
]
