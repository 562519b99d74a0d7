"""Facts whose lines were deleted from MEMORY.md by hand: kept for a while, to be restored."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .. import clock, files
from ..errors import RetainError
from ..models import Memory

__all__ = ["DAYS", "Forgotten"]

DAYS = 30
"""Days for which they are kept."""


class Forgotten:
    """``MEMORY.forgotten.jsonl``: an object a line, with ``forgotten_at`` and ``memory``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def memories(self) -> list[tuple[float, Memory]]:
        """What can be restored, with the time it was forgotten; oldest first."""
        found = []
        for row in self._rows():
            try:
                memory = Memory.from_dict(row["memory"])
                found.append((clock.as_epoch(row["forgotten_at"]), memory))
            except (RetainError, KeyError, TypeError):
                files.set_aside(self.path)
        return [(at, memory) for at, memory in found if at > clock.now() - DAYS * clock.DAY]

    def keep(self, memories: Sequence[Memory]) -> None:
        """Add these, durably; what is older than 30 days goes."""
        if not memories:
            return
        now = clock.now()
        new = {memory.id for memory in memories}
        kept = [(at, memory) for at, memory in self.memories() if memory.id not in new]
        self._write([*kept, *((now, memory) for memory in memories)])

    def replace(self, rows: Sequence[tuple[float, Memory]]) -> None:
        """Keep these, each with the time it was forgotten, in place of what is there."""
        self._write(rows)

    def drop(self, doomed: Callable[[Memory], bool]) -> list[Memory]:
        """Take out what is ``doomed``, for good; what that was."""
        kept, dropped = [], []
        for at, memory in self.memories():
            if doomed(memory):
                dropped.append(memory)
            else:
                kept.append((at, memory))
        if dropped:
            self._write(kept)
        return dropped

    def prune(self) -> None:
        """Let go of what is older than 30 days."""
        if self.path.exists():
            kept = self.memories()
            if len(kept) < len(self._rows()):
                self._write(kept)

    def clear(self) -> None:
        """Let go of everything."""
        with files.store_errors(self.path):
            self.path.unlink(missing_ok=True)

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        with files.store_errors(self.path):
            data = self.path.read_bytes() if self.path.exists() else b""
        for line in data.splitlines():
            try:
                rows.append(json.loads(line))
            except (ValueError, RecursionError):
                files.set_aside(self.path)
        return rows

    def _write(self, kept: Sequence[tuple[float, Memory]]) -> None:
        lines = [
            json.dumps({"forgotten_at": at, "memory": memory.to_dict()}, ensure_ascii=False)
            for at, memory in kept
        ]
        if not lines:
            self.clear()
            return
        files.write_atomically(self.path, "".join(f"{line}\n" for line in lines).encode())
