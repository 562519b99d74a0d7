"""Memories in the process: gone when it ends."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from ..errors import InvalidValue
from ..scope import Scope
from .base import Problem, Store
from .table import TableDriver

__all__ = ["InMemoryStore"]


class InMemoryDriver(TableDriver):
    """Dictionaries and nothing else."""

    def _exclusive(self, writing: bool) -> AbstractContextManager[None]:
        return nullcontext()

    def check(self, fix: bool = False) -> list[Problem]:
        """Nothing can have gone wrong."""
        with self._open():
            return []

    def backup(self, path: Path) -> None:
        """Refused: there is no file to copy."""
        raise InvalidValue(
            "an in-memory store has no backup; export it, or copy its memories to a SQLiteStore"
        )


class InMemoryStore(Store):
    """Memories in the process, gone when it ends.

    >>> from retain import InMemoryStore, Memory
    >>> store = InMemoryStore()
    >>> store.save(Memory("m1", "The deadline is 1 March"))
    >>> store.get("m1").content
    'The deadline is 1 March'
    """

    def __init__(self, *, scope: Scope | None = None) -> None:
        super().__init__(InMemoryDriver(), scope)
