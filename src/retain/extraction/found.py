"""What an extractor is given, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ..models import MemoryType

__all__ = ["Finding", "Turn"]


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody said: their role, the text, and when (aware, in the zone of who said it)."""

    role: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to remember of a turn.

    ``content``: what, in a sentence. ``turn``: the place of its turn in what was given.
    ``importance``: 0 to 1. ``persistent``: whether it is true for good. ``date``: the day
    (``2026-12-11``) or month (``2026-12``) that it names, if one.

    >>> Finding("My cat is called Miu", turn=0).memory_type.value
    'semantic'
    """

    content: str
    turn: int
    memory_type: MemoryType = MemoryType.SEMANTIC
    category: str = "facts"
    importance: float = 0.5
    persistent: bool = False
    tags: tuple[str, ...] = ()
    date: str | None = None
