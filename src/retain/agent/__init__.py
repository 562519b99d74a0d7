"""A small agent: a model, its tools, and the memories between its runs."""

from ..messages import Message, Role, ToolCall
from ..tools import Tool, tool
from .agent import Agent
from .config import AgentConfig
from .loop import AgentResult
from .providers import LocalProvider, Provider

__all__ = [
    "Agent",
    "AgentConfig",
    "AgentResult",
    "LocalProvider",
    "Message",
    "Provider",
    "Role",
    "Tool",
    "ToolCall",
    "tool",
]
