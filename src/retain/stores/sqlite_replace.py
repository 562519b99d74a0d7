"""A SQLite file whose content is replaced while others may have it open."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

__all__ = ["is_sqlite", "replace_content"]


def is_sqlite(data: bytes) -> bool:
    """Whether ``data`` begins as a SQLite file does."""
    return data.startswith(b"SQLite format 3\0")


def replace_content(path: Path, data: bytes) -> None:
    """Let the SQLite file ``path`` hold what ``data``, the bytes of another one, holds.

    In one transaction, and not by renaming: whoever has the file open would go on with the
    old one, and what he writes would be lost. Whoever knows an older revision of a store
    there is told to begin anew. Raises ``sqlite3.DatabaseError``, with nothing changed, where
    either of the two is broken or no SQLite file.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        copy.write_bytes(data)
        with closing(sqlite3.connect(copy)) as source, closing(sqlite3.connect(path)) as target:
            if _is_store(source):
                known = _revision(target) if _is_store(target) else 0
                revision = max(known, _revision(source)) + 1
                source.execute("UPDATE place SET revision = ?", (revision,))
                source.execute("UPDATE scopes SET floor = ?", (revision,))
                source.commit()
            source.backup(target)


def _is_store(db: sqlite3.Connection) -> bool:
    query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN (?, ?)"
    return bool(db.execute(query, ("place", "scopes")).fetchone()[0] == 2)


def _revision(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT revision FROM place").fetchone()[0])
