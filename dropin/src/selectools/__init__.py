"""The names that programs import from ``selectools``; each is retain's own.

They are loaded when they are first used, as in retain itself: importing this package imports
no database, no model's SDK.
"""

import retain

__all__ = [
    "Agent",
    "AgentConfig",
    "AgentResult",
    "AnthropicProvider",
    "ConversationMemory",
    "Entity",
    "EntityMemory",
    "KnowledgeGraphMemory",
    "KnowledgeMemory",
    "LocalProvider",
    "Message",
    "OpenAIProvider",
    "Role",
    "SQLiteSessionStore",
    "SQLiteTripleStore",
    "Tool",
    "ToolCall",
    "Triple",
    "tool",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(retain, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
