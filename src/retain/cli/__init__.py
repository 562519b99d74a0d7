"""The command ``retain``: presentation only, over ``KnowledgeMemory``."""

from .entry import main

__all__ = ["main"]
