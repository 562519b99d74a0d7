"""The PostgreSQL database inside: its tables, and the functions that are all ways into them.

Every operation of a store is one function, so that it is one statement: atomic whatever happens
to the connection, without a session's state (a pooler between may change the session at each
statement), and the same over psycopg and over the REST interface that some hosts offer instead.

Each function is told the scope first, finds its number, and lets the transaction see the rows of
that number alone: row security is on for every table that has rows of scopes, also for their
owner. (A superuser, or a role with BYPASSRLS, is bound by the conditions in the functions only.)

PostgreSQL's text has no NUL; :func:`kept` writes it otherwise, in an order that stays the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import InvalidType, InvalidValue
from ..models import Memory, MemoryType
from ..scope import Scope
from .base import DELETIONS, fact_key

__all__ = [
    "FIELDS",
    "INCOMING",
    "VERSION",
    "given",
    "id_key",
    "kept",
    "migrations",
    "named",
    "script",
    "to_memory",
    "to_row",
]

COLUMNS = (
    "id, content, memory_type, importance, category, persistent, ttl_days, tags, metadata, "
    "source, created_at, updated_at, access_count, last_accessed, revision"
)
FIELDS = tuple(COLUMNS.split(", "))

_ROW = """
    id text, content text, memory_type text, importance float8, category text, persistent bool,
    ttl_days float8, tags text[], metadata text, source text, created_at float8,
    updated_at float8, access_count bigint, last_accessed float8, revision bigint
"""
_NARROW = """
    p_now float8, p_expired bool, p_type text, p_category text, p_tags text[],
    p_importance float8, p_since float8, p_until float8, p_persistent bool
"""
_EQUAL = """SELECT to_json(e) INTO known FROM (
                SELECT {columns} FROM {memories} m
                WHERE m.scope = v_scope AND m.fact = {r}fact AND m.id <> {r}id
                ORDER BY m.revision LIMIT 1
            ) e;"""
_VALUES = """{scope}, {r}id, {r}long_id, {r}content, {r}memory_type, {r}importance, {r}category,
            {r}persistent, {r}ttl_days, {r}tags, {r}metadata::json, {r}source, {r}created_at,
            {r}updated_at, {r}expires_at, {r}access_count, {r}last_accessed, {r}fact, {revision}"""
_SAVE = """INSERT INTO {memories} AS m VALUES (
            {values}
        ) ON CONFLICT (scope, id) DO UPDATE SET
            long_id = excluded.long_id, content = excluded.content,
            memory_type = excluded.memory_type, importance = excluded.importance,
            category = excluded.category, persistent = excluded.persistent,
            ttl_days = excluded.ttl_days, tags = excluded.tags,
            metadata = excluded.metadata, source = excluded.source,
            created_at = excluded.created_at, updated_at = excluded.updated_at,
            expires_at = excluded.expires_at, fact = excluded.fact,
            revision = excluded.revision,
            access_count = greatest(m.access_count, excluded.access_count),
            last_accessed = greatest(m.last_accessed, excluded.last_accessed)"""

_SECURITY = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY one_scope ON {table}
    USING (current_setting('retain.scope', true) IN (scope::text, '*'))
    WITH CHECK (current_setting('retain.scope', true) IN (scope::text, '*'));
"""


_NAMES = (
    "place revisions scopes memories deletions files set_aside about enter enter_alone write "
    "answer all_new write_json put incoming trim fetch condition list count changes saved last "
    "all_scopes forget_scope inspect put_aside file_names file_part put_part drop_files"
).split()
_TABLES = ("place", "scopes", "memories", "deletions", "files", "set_aside")
_FUNCTIONS = _NAMES[_NAMES.index("about") :]
_INDEXES = ("memories_by_revision", "memories_by_time", "memories_by_fact")
_SECURED = ("memories", "deletions", "files", "set_aside")
_SELECTED = {
    "id": 'coalesce(m.long_id, m.id) COLLATE "C" AS id',
    "metadata": "m.metadata::text AS metadata",
}
_LONGEST_KEY = 1_000  # bytes
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}")


def named(schema: str, prefix: str) -> dict[str, str]:
    """The full names of tables and functions, quoted, by the short ones that are used here."""
    for name, value in (("schema", schema), ("the name of the tables", prefix or "_")):
        if not isinstance(value, str):
            raise InvalidType(f"{name} is a {type(value).__name__}; give text")
        if not _NAME.fullmatch(value):
            raise InvalidValue(
                f"{name} is {value!r}; give up to 40 small letters a-z, digits and underscores"
            )
    start = f"{prefix}_" if prefix else ""
    names = {name: f'"{schema}"."{start}{name}"' for name in _NAMES}
    return names | {name: f'"{start}{name}"' for name in _INDEXES}


def migrations(schema: str, prefix: str, partitions: int = 0) -> list[str]:
    """One script a version of the schema, from the first."""
    names = named(schema, prefix)
    known = {
        "row": _ROW,
        "columns": ", ".join(_SELECTED.get(name, f"m.{name}") for name in FIELDS),
        "id": _SELECTED["id"].removesuffix(" AS id"),
        "narrow": _NARROW,
        "narrowed": _NARROW.replace(" float8", "")
        .replace(" bool", "")
        .replace(" text[]", "")
        .replace(" text", ""),
        "most": str(DELETIONS),
        "partitioned": "PARTITION BY HASH (scope)" if partitions else "",
        **names,
    }
    following = f"nextval('{names['revisions']}')"
    each = {"r": "r.", **known, "values": _values("v_scope", "r.", following)}
    one = {"r": "p_", **known, "values": _values("v_scope", "p_", "o_revision")}
    known |= {
        "upsert": _SAVE.format(**each),
        "equal": _EQUAL.format(**each),
        "distinct_values": _values("$1", "i.", following),
        "put_save": _SAVE.format(**one),
        "put_equal": _EQUAL.format(**one),
        "parameters": re.sub(r"(\w+) (\w+)", r"p_\1 \2", _ROW),
    }
    script = Path(__file__).with_name("postgres_1.sql").read_text("utf-8")
    first = [script.format(**known)]
    if partitions:
        table = names["memories"]
        first += [
            f'CREATE TABLE {table[:-1]}_{part}" PARTITION OF {table}'
            f" FOR VALUES WITH (MODULUS {partitions}, REMAINDER {part});"
            for part in range(partitions)
        ]
    first += [_SECURITY.format(table=names[table]) for table in _SECURED]
    first += [f"REVOKE ALL ON FUNCTION {names[name]} FROM PUBLIC;" for name in _FUNCTIONS]
    return ["\n".join(first)]


def script(schema: str, prefix: str) -> str:
    """All that makes the newest version, for a person to run once; a second run changes nothing.

    On Supabase the service role may use it, and nobody else: neither who has the public key nor
    who is signed in.
    """
    names = named(schema, prefix)
    made = "\n".join(migrations(schema, prefix))
    tables = ", ".join(names[name] for name in _TABLES)
    return f"""DO $make$ BEGIN
IF to_regclass('{names["place"]}') IS NOT NULL THEN
    RETURN;
END IF;
{made}
UPDATE {names["place"]} SET version = {VERSION};
END $make$;
DO $rights$ DECLARE r text; BEGIN
FOR r IN SELECT rolname FROM pg_roles WHERE rolname IN ('anon', 'authenticated') LOOP
    EXECUTE format('REVOKE ALL ON TABLE {tables} FROM %I', r);
    EXECUTE format('REVOKE ALL ON SEQUENCE {names["revisions"]} FROM %I', r);
    EXECUTE format('REVOKE ALL ON FUNCTION {_signatures(names)} FROM %I', r);
END LOOP;
IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'service_role') THEN
    GRANT USAGE ON SCHEMA "{schema}" TO service_role;
    GRANT ALL ON TABLE {tables} TO service_role;
    GRANT ALL ON SEQUENCE {names["revisions"]} TO service_role;
    GRANT EXECUTE ON FUNCTION {_signatures(names)} TO service_role;
END IF;
END $rights$;
NOTIFY pgrst, 'reload schema';
"""


def _signatures(names: dict[str, str]) -> str:
    return ", ".join(names[name] for name in _FUNCTIONS)


def _values(scope: str, row: str, revision: str) -> str:
    return _VALUES.format(scope=scope, r=row, revision=revision)


VERSION = len(migrations("retain", ""))
"""The newest version of the schema."""


def id_key(id: str) -> str:
    """What stands for an id in an index, which takes no more than some 2,700 bytes of it."""
    short = kept(id)
    if len(short.encode()) <= _LONGEST_KEY:
        return short
    return f"{short[:60]}\x01\x03{hashlib.sha256(id.encode()).hexdigest()}"


def kept(text: str) -> str:
    """Text without NUL, in the same order as the texts themselves."""
    if "\0" in text or "\x01" in text:
        return text.replace("\x01", "\x01\x02").replace("\0", "\x01\x01")
    return text


def given(text: str) -> str:
    """The text that :func:`kept` was given."""
    if "\x01" in text:
        return text.replace("\x01\x01", "\0").replace("\x01\x02", "\x01")
    return text


def to_row(memory: Memory, place: int) -> tuple[Any, ...]:
    """A memory as a row of ``incoming``."""
    key, long = id_key(memory.id), kept(memory.id)
    return (
        place,
        None if key == long else long,
        fact_key(memory),
        memory.expires_at,
        key,
        kept(memory.content),
        memory.memory_type.value,
        memory.importance_score,
        kept(memory.category),
        memory.persistent,
        memory.ttl_days,
        [kept(tag) for tag in memory.tags],
        json.dumps(memory.metadata, ensure_ascii=False) if memory.metadata else "{}",
        kept(memory.source),
        memory.created_at,
        memory.updated_at,
        memory.access_count,
        memory.last_accessed,
        0,
    )


INCOMING = ("n", "long_id", "fact", "expires_at", *FIELDS)
"""The columns of :func:`to_row`."""


def to_memory(row: Sequence[Any], scope: Scope) -> Memory:
    """The memory of a row of ``COLUMNS``."""
    (id, content, kind, importance, category, persistent, ttl_days, tags, metadata) = row[:9]
    (source, created_at, updated_at, access_count, last_accessed, revision) = row[9:]
    return Memory(
        given(id),
        given(content),
        MemoryType(kind),
        metadata=None if metadata == "{}" else json.loads(metadata),
        tags=[given(tag) for tag in tags] if tags else None,
        created_at=created_at,
        access_count=access_count,
        last_accessed=last_accessed,
        importance_score=importance,
        category=given(category),
        persistent=persistent,
        ttl_days=ttl_days,
        updated_at=updated_at,
        source=given(source),
        scope=scope,
        revision=revision,
    )
