"""A broken SQLite file: what can be read of it, in a new one in its place."""

from __future__ import annotations

import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from .. import files
from ..models import Memory
from ..scope import Scope
from .base import Problem
from .sqlite import SQLiteStore, refuse_foreign
from .sqlite_schema import COLUMNS, UNREADABLE, any_text, to_memory

__all__ = ["repair"]


def repair(place: Path) -> list[Problem]:
    """Put what can be read of ``place`` into a new file there; the broken one stays beside it."""
    with suppress(sqlite3.DatabaseError), closing(_read_only(place)) as db:
        refuse_foreign(db, place)
    broken = files.beside(place, f".set-aside-{uuid.uuid4().hex[:12]}")
    new = place.with_name(f".{place.name}.{uuid.uuid4().hex}.tmp")
    with files.store_errors(place):
        shutil.copy2(place, broken)
        if (log_file := files.beside(place, "-wal")).exists():
            shutil.copy2(log_file, files.beside(broken, "-wal"))
        memories = _salvage(broken)
        try:
            _build(new, memories)
            for end in ("-wal", "-shm"):  # they belong to the broken file
                files.beside(place, end).unlink(missing_ok=True)
            new.replace(place)
        finally:
            new.unlink(missing_ok=True)
        files.sync_folder(place.parent)
    count = sum(len(found) for found in memories.values())
    return [
        Problem(f"{place} was broken: {count} memories could be read, {broken.name} is kept", True)
    ]


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


def _build(path: Path, memories: dict[Scope, dict[str, Memory]]) -> None:
    with SQLiteStore(path, allow_network=True) as store:
        for scope, found in memories.items():
            store.scoped(scope).save_many(sorted(found.values(), key=lambda m: m.revision))


def _salvage(broken: Path) -> dict[Scope, dict[str, Memory]]:
    """What can be read of a broken file."""
    found: dict[Scope, dict[str, Memory]] = {}
    with suppress(sqlite3.DatabaseError):
        db = _read_only(broken)
        db.text_factory = any_text
        try:
            scopes = dict(db.execute("SELECT scope, key FROM scopes"))
            for number, *row in _rows(db):
                with suppress(*UNREADABLE, KeyError):
                    scope = Scope.from_key(scopes[number])
                    memory = to_memory(row, scope).checked()
                    found.setdefault(scope, {})[memory.id] = memory
        finally:
            db.close()
    return found


def _rows(db: sqlite3.Connection) -> Iterator[Any]:
    """The rows of which the table or an index tells, each from both ends up to where it breaks."""
    numbers: set[int] = set()
    for order in ("rowid", "rowid DESC", "scope, revision", "scope DESC, revision DESC"):
        with suppress(sqlite3.DatabaseError):
            rows = db.execute(f"SELECT rowid FROM memories ORDER BY {order}")
            numbers.update(number for (number,) in rows)
    for number in sorted(numbers):
        with suppress(sqlite3.DatabaseError):
            yield from db.execute(
                f"SELECT scope, {COLUMNS} FROM memories WHERE rowid = ?", (number,)
            )
