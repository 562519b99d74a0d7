"""The SQLite file inside: its schema, and how a memory is a row of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from ..models import Filter, Memory, MemoryType
from ..scope import Scope
from .base import DELETIONS, Order, Selection, fact_key, refuse_conflict

MIGRATIONS = (
    """
    CREATE TABLE place (
        revision INTEGER NOT NULL,
        identity TEXT NOT NULL  -- of this store, among all there ever were at its path
    );
    INSERT INTO place VALUES (0, lower(hex(randomblob(16))));
    CREATE TABLE scopes (
        scope INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE,
        floor INTEGER NOT NULL  -- deletions up to this revision are not known
    );
    CREATE TABLE memories (
        scope INTEGER NOT NULL,
        id TEXT NOT NULL,
        content TEXT NOT NULL,
        memory_type TEXT NOT NULL,
        importance REAL NOT NULL,
        category TEXT NOT NULL,
        persistent INTEGER NOT NULL,
        ttl_days REAL,
        tags TEXT NOT NULL,
        metadata TEXT NOT NULL,
        source TEXT NOT NULL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        expires_at REAL,
        access_count INTEGER NOT NULL,
        last_accessed REAL NOT NULL,
        fact TEXT,  -- what equal persistent facts share
        revision INTEGER NOT NULL,
        UNIQUE (scope, id)
    );
    CREATE UNIQUE INDEX memories_by_revision ON memories (scope, revision);
    CREATE INDEX memories_by_time ON memories (scope, created_at DESC, id);
    CREATE INDEX memories_by_fact ON memories (scope, fact) WHERE fact IS NOT NULL;
    CREATE TABLE deletions (
        scope INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        id TEXT NOT NULL,
        PRIMARY KEY (scope, revision)
    ) WITHOUT ROWID;
    """,
)
"""One script a version of the schema, from the first; ``PRAGMA user_version`` counts them."""

COLUMNS = (
    "id, content, memory_type, importance, category, persistent, ttl_days, tags, metadata, "
    "source, created_at, updated_at, access_count, last_accessed, revision"
)

SAVE = f"""
    INSERT INTO memories (scope, fact, expires_at, {COLUMNS})
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (scope, id) DO UPDATE SET
        fact = excluded.fact, expires_at = excluded.expires_at, content = excluded.content,
        memory_type = excluded.memory_type, importance = excluded.importance,
        category = excluded.category, persistent = excluded.persistent,
        ttl_days = excluded.ttl_days, tags = excluded.tags, metadata = excluded.metadata,
        source = excluded.source, created_at = excluded.created_at,
        updated_at = excluded.updated_at, revision = excluded.revision,
        access_count = max(excluded.access_count, access_count),
        last_accessed = max(excluded.last_accessed, last_accessed)
"""

ORDERS = {
    Order.NEWEST: (
        "created_at DESC, id",
        "created_at <= :created AND (created_at < :created OR id > :id)",
    ),
    Order.IMPORTANT: (
        "importance DESC, created_at DESC, id",
        "(-importance, -created_at, id) > (-:importance, -:created, :id)",
    ),
    Order.DISPENSABLE: (
        "importance, created_at, id",
        "(importance, created_at, id) > (:importance, :created, :id)",
    ),
}


def to_row(memory: Memory, revision: int) -> tuple[Any, ...]:
    return (
        memory.id,
        memory.content,
        memory.memory_type.value,
        memory.importance_score,
        memory.category,
        memory.persistent,
        memory.ttl_days,
        json.dumps(memory.tags, ensure_ascii=False) if memory.tags else "[]",
        json.dumps(memory.metadata, ensure_ascii=False) if memory.metadata else "{}",
        memory.source,
        memory.created_at,
        memory.updated_at,
        memory.access_count,
        memory.last_accessed,
        revision,
    )


UNREADABLE = (ValueError, TypeError, RecursionError)
"""What :func:`to_memory` raises for a row that is no memory."""


def to_memory(row: Sequence[Any], scope: Scope) -> Memory:
    (id, content, kind, importance, category, persistent, ttl_days, tags, metadata) = row[:9]
    (source, created_at, updated_at, access_count, last_accessed, revision) = row[9:]
    return Memory(
        id,
        content,
        MemoryType(kind),
        metadata=None if metadata == "{}" else json.loads(metadata),
        tags=None if tags == "[]" else json.loads(tags),
        created_at=created_at,
        access_count=access_count,
        last_accessed=last_accessed,
        importance_score=importance,
        category=category,
        persistent=bool(persistent),
        ttl_days=ttl_days,
        updated_at=updated_at,
        source=source,
        scope=scope,
        revision=revision,
    )


def fault(
    row: Sequence[Any], fact: str | None, expires: float | None, key: str | None, revision: int
) -> str | None:
    """What is wrong with a row, if anything."""
    try:
        memory = to_memory(row, Scope.from_key(key or "")).checked()
    except UNREADABLE as error:
        return str(error)
    if (fact, expires) != (fact_key(memory), memory.expires_at):
        return "its derived columns are wrong"
    if memory.revision > revision:
        return f"its revision {memory.revision} is beyond the store's {revision}"
    return None


def where(selection: Selection) -> tuple[str, dict[str, Any]]:
    narrow: Filter = selection.narrow
    kind: MemoryType | None = narrow.memory_type
    parts = ["scope = :scope"]
    parts.append(
        "expires_at <= :now" if selection.expired else "(expires_at IS NULL OR expires_at > :now)"
    )
    values: dict[str, Any] = {"now": selection.now}
    for condition, name, value in (
        ("memory_type = :kind", "kind", kind and kind.value),
        ("category = :category", "category", narrow.category),
        ("importance >= :least", "least", narrow.min_importance or None),
        ("created_at >= :since", "since", narrow.since),
        ("created_at < :until", "until", narrow.until),
        ("persistent = :persistent", "persistent", narrow.persistent),
    ):
        if value is not None:
            parts.append(condition)
            values[name] = value
    for number, tag in enumerate(narrow.tags):
        parts.append(f"carries(tags, :tag{number})")
        values[f"tag{number}"] = tag
    return " AND ".join(parts), values


def scope_key(db: sqlite3.Connection, scope: Scope, make: bool = False) -> int:
    """The scope's number in this file, 0 where it has none."""
    found = db.execute("SELECT scope FROM scopes WHERE key = ?", (scope.key,)).fetchone()
    if found is None and make:
        db.execute("INSERT INTO scopes (key, floor) SELECT ?, revision FROM place", (scope.key,))
        return scope_key(db, scope)
    return int(found[0]) if found else 0


def equal(db: sqlite3.Connection, scope: Scope, key: int, fact: str, id: str) -> Memory | None:
    # The index is named, for SQLite would rather go through the whole scope by revision.
    row = db.execute(
        f"SELECT {COLUMNS} FROM memories INDEXED BY memories_by_fact"
        " WHERE scope = ? AND fact = ? AND id <> ? ORDER BY revision LIMIT 1",
        (key, fact, id),
    ).fetchone()
    return to_memory(row, scope) if row else None


def expect_revision(db: sqlite3.Connection, key: int, id: str, revision: int) -> None:
    row = db.execute(
        "SELECT revision FROM memories WHERE scope = ? AND id = ?", (key, id)
    ).fetchone()
    refuse_conflict(id, row[0] if row else 0, revision)


def trim(db: sqlite3.Connection, key: int) -> None:
    """Forget a scope's oldest deletions; whoever has not caught up with them begins anew."""
    last = db.execute(
        "SELECT revision FROM deletions WHERE scope = ? ORDER BY revision DESC LIMIT 1 OFFSET ?",
        (key, DELETIONS),
    ).fetchone()
    if last:
        db.execute("DELETE FROM deletions WHERE scope = ? AND revision <= ?", (key, last[0]))
        db.execute("UPDATE scopes SET floor = max(floor, ?) WHERE scope = ?", (last[0], key))


def any_text(data: bytes) -> str:
    """Text as it lies in a file, even where it is none, so that it can be set aside."""
    return data.decode(errors="surrogateescape")
