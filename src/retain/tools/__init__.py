"""Functions that a model can call, and those that give it a memory.

Nothing here knows a framework: a :class:`Tool` has a name, a JSON schema and a function, which
is what every framework's own tools are made of.
"""

from .functions import Tool, ToolParameter, tool
from .memory import (
    Knowledge,
    Recalling,
    fenced,
    make_forget_tool,
    make_recall_tool,
    make_remember_tool,
    memory_tools,
    recalled,
)

__all__ = [
    "Knowledge",
    "Recalling",
    "Tool",
    "ToolParameter",
    "fenced",
    "make_forget_tool",
    "make_recall_tool",
    "make_remember_tool",
    "memory_tools",
    "recalled",
    "tool",
]
