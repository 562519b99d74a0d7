"""``selectools.toolbox.memory_tools``: the two memory tools, for a tool list of one's own."""

from retain import make_recall_tool, make_remember_tool

__all__ = ["make_recall_tool", "make_remember_tool"]
