"""Functions that a model can call, and the two that give it a memory.

Nothing here knows a framework: a :class:`Tool` has a name, a JSON schema and a function, which
is what every framework's own tools are made of.
"""

from .functions import Tool, ToolParameter, tool
from .memory import Knowledge, make_recall_tool, make_remember_tool

__all__ = ["Knowledge", "Tool", "ToolParameter", "make_recall_tool", "make_remember_tool", "tool"]
