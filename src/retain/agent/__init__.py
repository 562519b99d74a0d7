"""A small agent: a model, its tools, and the memories between its runs."""

from ..messages import Message, Role, ToolCall
from ..providers import LocalProvider, Provider
from ..tools import Tool, tool
from .agent import Agent
from .config import AgentConfig
from .loop import AgentResult
from .sessions import SessionInfo, SessionStore, SQLiteSessionStore, StoreSessions

__all__ = [
    "Agent",
    "AgentConfig",
    "AgentResult",
    "LocalProvider",
    "Message",
    "Provider",
    "Role",
    "SQLiteSessionStore",
    "SessionInfo",
    "SessionStore",
    "StoreSessions",
    "Tool",
    "ToolCall",
    "tool",
]
