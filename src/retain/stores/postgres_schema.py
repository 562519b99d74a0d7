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
_SAVE = """INSERT INTO {memories} AS m VALUES (
            v_scope, {r}id, {r}long_id, {r}content, {r}memory_type, {r}importance, {r}category,
            {r}persistent, {r}ttl_days, {r}tags, {r}metadata::json, {r}source, {r}created_at,
            {r}updated_at, {r}expires_at, {r}access_count, {r}last_accessed, {r}fact,
            {revision}
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

_TABLES = """
CREATE TABLE {place} (
    version int NOT NULL,
    identity text NOT NULL  -- of this store, among all there ever were of its name
);
INSERT INTO {place} VALUES (0, md5(random()::text || clock_timestamp()::text));
CREATE SEQUENCE {revisions};
CREATE TABLE {scopes} (
    scope bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest bytea NOT NULL UNIQUE,  -- of the key, which may be too long for an index
    key text NOT NULL,
    revision bigint NOT NULL,  -- the last one in this scope
    floor bigint NOT NULL,  -- deletions up to this revision are not known
    deleted bigint NOT NULL DEFAULT 0  -- rows among the deletions, about
) WITH (fillfactor = 50);
CREATE TABLE {memories} (
    scope bigint NOT NULL,
    id text COLLATE "C" NOT NULL,  -- or what stands for it, where it is too long for an index
    long_id text COLLATE "C",
    content text NOT NULL,
    memory_type text NOT NULL CHECK (memory_type IN ('episodic', 'semantic', 'procedural')),
    importance float8 NOT NULL CHECK (importance BETWEEN 0 AND 1),
    category text NOT NULL,
    persistent bool NOT NULL,
    ttl_days float8,
    tags text[] NOT NULL,
    metadata json NOT NULL,
    source text NOT NULL,
    created_at float8 NOT NULL,
    updated_at float8 NOT NULL,
    expires_at float8,
    access_count bigint NOT NULL,
    last_accessed float8 NOT NULL,
    fact text COLLATE "C",  -- what equal persistent facts share
    revision bigint NOT NULL,
    PRIMARY KEY (scope, id)
) {partitioned};
CREATE INDEX {memories_by_revision} ON {memories} (scope, revision);
CREATE INDEX {memories_by_time} ON {memories} (scope, created_at DESC);
CREATE INDEX {memories_by_fact} ON {memories} (scope, fact) WHERE fact IS NOT NULL;
CREATE TABLE {deletions} (
    scope bigint NOT NULL,
    revision bigint NOT NULL,
    id text COLLATE "C" NOT NULL,  -- as it was in an index
    deleted text NOT NULL,
    PRIMARY KEY (scope, revision)
);
CREATE TABLE {files} (  -- of the indexes that are made of the memories
    scope bigint NOT NULL,
    name text NOT NULL,
    part int NOT NULL,
    data bytea NOT NULL,
    written timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (scope, name, part)
);
ALTER TABLE {files} ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE {set_aside} (  -- what was no memory any more
    scope bigint NOT NULL,
    content json NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);
"""

_SECURITY = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY one_scope ON {table}
    USING (current_setting('retain.scope', true) IN (scope::text, '*'))
    WITH CHECK (current_setting('retain.scope', true) IN (scope::text, '*'));
"""

_FUNCTIONS = """
-- The number of a scope, of which the transaction sees the rows from now on; 0 for an unknown one.
-- Locks are waited for as many milliseconds.
CREATE FUNCTION {enter}(p_key text, p_wait int) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint;
BEGIN
    PERFORM set_config('lock_timeout', p_wait::text, true);
    SELECT s.scope INTO v_scope FROM {scopes} s
        WHERE s.digest = sha256(convert_to(p_key, 'UTF8'));
    v_scope := coalesce(v_scope, 0);
    PERFORM set_config('retain.scope', v_scope::text, true);
    RETURN v_scope;
END $body$;

-- The same for a writer, who has the scope to himself until the transaction ends: so revisions
-- are seen in their order, whoever commits first.
CREATE FUNCTION {enter_alone}(p_key text, p_wait int, p_make bool) RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint;
    v_digest bytea := sha256(convert_to(p_key, 'UTF8'));
BEGIN
    PERFORM set_config('lock_timeout', p_wait::text, true);
    LOOP
        SELECT s.scope INTO v_scope FROM {scopes} s WHERE s.digest = v_digest FOR UPDATE;
        EXIT WHEN FOUND OR NOT p_make;
        INSERT INTO {scopes} (digest, key, revision, floor)
            SELECT v_digest, p_key, r, r FROM nextval('{revisions}') r
            ON CONFLICT (digest) DO NOTHING;
    END LOOP;
    v_scope := coalesce(v_scope, 0);
    PERFORM set_config('retain.scope', v_scope::text, true);
    RETURN v_scope;
END $body$;

-- Delete, then save. A row for each id that was deleted, and one for each memory, by its place
-- among those given: saved, or the equal fact that is there already. A call that is made again,
-- as its answer was lost, finds its deletions done.
CREATE FUNCTION {write}(
    p_key text, p_wait int, p_save json, p_delete text[], p_unique bool, p_expect json,
    p_retrieved json, p_again bool, p_tell text
) RETURNS TABLE (
    deleted text, place int, o_revision bigint, o_count bigint, o_last float8, known json
) LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter_alone}(p_key, p_wait, p_save IS NOT NULL);
    v_last bigint;
    v_gone int := 0;
    v_id text;
    r record;
BEGIN
    FOR r IN SELECT e.key AS id, e.value::bigint AS expected, coalesce(m.revision, 0) AS found,
            coalesce(m.long_id, e.key) AS long_id
        FROM json_each_text(p_expect) e
        LEFT JOIN {memories} m ON m.scope = v_scope AND m.id = e.key
    LOOP
        IF r.found <> r.expected THEN
            RAISE EXCEPTION 'conflict' USING ERRCODE = 'RT001',
                DETAIL = json_build_array(r.long_id, r.found, r.expected)::text;
        END IF;
    END LOOP;
    IF v_scope = 0 THEN
        RETURN;
    END IF;
    IF p_retrieved IS NOT NULL THEN
        UPDATE {memories} m SET
            access_count = least(m.access_count::numeric + t.n, 9223372036854775807)::bigint,
            last_accessed = greatest(m.last_accessed, t.at)
        FROM json_to_recordset(p_retrieved) AS t(id text, n bigint, at float8)
        WHERE m.scope = v_scope AND m.id = t.id;
    END IF;
    IF p_delete IS NOT NULL THEN
        FOREACH v_id IN ARRAY p_delete LOOP
            DELETE FROM {memories} m WHERE m.scope = v_scope AND m.id = v_id
                RETURNING coalesce(m.long_id, m.id) INTO deleted;
            IF FOUND THEN
                v_last := nextval('{revisions}');
                v_gone := v_gone + 1;
                INSERT INTO {deletions} VALUES (v_scope, v_last, v_id, deleted);
                RETURN NEXT;
            ELSIF p_again THEN
                SELECT d.deleted INTO deleted FROM {deletions} d
                    WHERE d.scope = v_scope AND d.id = v_id LIMIT 1;
                IF FOUND THEN
                    RETURN NEXT;
                END IF;
            END IF;
        END LOOP;
        deleted := NULL;
    END IF;
    FOR r IN SELECT * FROM {incoming}(p_save) LOOP
        place := r.n;
        IF p_unique AND r.fact IS NOT NULL THEN
            {equal}
            IF known IS NOT NULL THEN
                RETURN NEXT;
                known := NULL;
                CONTINUE;
            END IF;
        END IF;
        {upsert}
        RETURNING m.revision, m.access_count, m.last_accessed INTO o_revision, o_count, o_last;
        v_last := o_revision;
        RETURN NEXT;
    END LOOP;
    IF v_last IS NOT NULL THEN
        UPDATE {scopes} s SET revision = v_last, deleted = s.deleted + v_gone
            WHERE s.scope = v_scope RETURNING s.deleted INTO v_gone;
        IF v_gone > 2 * {most} THEN
            PERFORM {trim}(v_scope);
        END IF;
        IF p_tell IS NOT NULL THEN
            PERFORM pg_notify(p_tell, md5(p_key));
        END IF;
    END IF;
END $body$;

-- The commonest write, of one memory alone: the same in fewer steps.
CREATE FUNCTION {put}(
    p_key text, p_wait int, p_unique bool, p_tell text, p_n int, p_long_id text, p_fact text,
    p_expires_at float8, {parameters}
) RETURNS TABLE (
    deleted text, place int, o_revision bigint, o_count bigint, o_last float8, known json
) LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint;
    v_digest bytea := sha256(convert_to(p_key, 'UTF8'));
    v_set text := set_config('lock_timeout', p_wait::text, true);
BEGIN
    LOOP
        UPDATE {scopes} s SET revision = nextval('{revisions}') WHERE s.digest = v_digest
            RETURNING s.scope, s.revision INTO v_scope, o_revision;
        EXIT WHEN FOUND;
        v_scope := {enter_alone}(p_key, p_wait, true);
    END LOOP;
    v_set := set_config('retain.scope', v_scope::text, true);
    place := p_n;
    IF p_unique AND p_fact IS NOT NULL THEN
        {put_equal}
    END IF;
    IF known IS NULL THEN
        {put_save}
        RETURNING m.access_count, m.last_accessed INTO o_count, o_last;
        IF p_tell IS NOT NULL THEN
            PERFORM pg_notify(p_tell, md5(p_key));
        END IF;
    END IF;
    RETURN NEXT;
END $body$;

-- What is to be saved: of the argument, or of what was copied into a table of the session before.
CREATE FUNCTION {incoming}(p_save json)
RETURNS TABLE (n int, long_id text, fact text, expires_at float8, {row})
LANGUAGE plpgsql AS $body$
BEGIN
    IF p_save::text = '"copied"' THEN
        RETURN QUERY EXECUTE 'SELECT * FROM pg_temp.retain_incoming ORDER BY n';
    ELSIF p_save IS NOT NULL THEN
        RETURN QUERY SELECT * FROM json_to_recordset(p_save)
            AS t(n int, long_id text, fact text, expires_at float8, {row});
    END IF;
END $body$;

-- Forget the oldest deletions; whoever has not caught up with them begins anew.
CREATE FUNCTION {trim}(p_scope bigint) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    v_last bigint;
BEGIN
    SELECT d.revision INTO v_last FROM {deletions} d WHERE d.scope = p_scope
        ORDER BY d.revision DESC LIMIT 1 OFFSET {most};
    DELETE FROM {deletions} d WHERE d.scope = p_scope AND d.revision <= v_last;
    UPDATE {scopes} s SET floor = greatest(s.floor, coalesce(v_last, 0)), deleted = {most}
        WHERE s.scope = p_scope;
END $body$;

CREATE FUNCTION {fetch}(p_key text, p_wait int, p_ids text[]) RETURNS TABLE ({row})
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    RETURN QUERY SELECT {columns} FROM {memories} m
        WHERE m.scope = v_scope AND m.id = ANY (p_ids);
END $body$;

-- The condition of a listing, for a statement in which $1 is the scope and the others follow.
CREATE FUNCTION {condition}({narrow}) RETURNS text LANGUAGE sql IMMUTABLE AS $body$
    SELECT concat_ws(' AND ',
        'm.scope = $1',
        CASE WHEN p_expired THEN 'm.expires_at <= $2'
            ELSE '(m.expires_at IS NULL OR m.expires_at > $2)' END,
        CASE WHEN p_type IS NOT NULL THEN 'm.memory_type = $4' END,
        CASE WHEN p_category IS NOT NULL THEN 'm.category = $5' END,
        CASE WHEN p_tags IS NOT NULL THEN 'm.tags @> $6' END,
        CASE WHEN p_importance IS NOT NULL THEN 'm.importance >= $7' END,
        CASE WHEN p_since IS NOT NULL THEN 'm.created_at >= $8' END,
        CASE WHEN p_until IS NOT NULL THEN 'm.created_at < $9' END,
        CASE WHEN p_persistent IS NOT NULL THEN 'm.persistent = $10' END)
$body$;

CREATE FUNCTION {list}(
    p_key text, p_wait int, {narrow}, p_order text, p_most bigint,
    p_after_importance float8, p_after_created float8, p_after_id text
) RETURNS TABLE ({row}) LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    RETURN QUERY EXECUTE concat(
        'SELECT {columns} FROM {memories} m WHERE ',
        {condition}({narrowed}),
        CASE WHEN p_after_id IS NOT NULL THEN CASE p_order
            WHEN 'newest' THEN
                ' AND m.created_at <= $12 AND (m.created_at < $12 OR {id} > $13)'
            WHEN 'important' THEN
                ' AND (-m.importance, -m.created_at, {id}) > (-$11, -$12, $13)'
            ELSE ' AND (m.importance, m.created_at, {id}) > ($11, $12, $13)'
        END END,
        ' ORDER BY ', CASE p_order
            WHEN 'newest' THEN 'm.created_at DESC, {id}'
            WHEN 'important' THEN 'm.importance DESC, m.created_at DESC, {id}'
            ELSE 'm.importance, m.created_at, {id}' END,
        ' LIMIT $14')
    USING v_scope, p_now, p_expired, p_type, p_category, p_tags, p_importance, p_since, p_until,
        p_persistent, p_after_importance, p_after_created, p_after_id, p_most;
END $body$;

CREATE FUNCTION {count}(p_key text, p_wait int, {narrow}) RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
    v_count bigint;
BEGIN
    EXECUTE concat('SELECT count(*) FROM {memories} m WHERE ', {condition}({narrowed}))
        INTO v_count
        USING v_scope, p_now, p_expired, p_type, p_category, p_tags, p_importance, p_since,
            p_until, p_persistent;
    RETURN v_count;
END $body$;

-- The scope's revision, whether what is known of it is void, and what was deleted.
CREATE FUNCTION {changes}(p_key text, p_wait int, p_since bigint)
RETURNS TABLE (revision bigint, reset bool, deleted text[]) LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
    v_floor bigint;
BEGIN
    SELECT s.revision, s.floor INTO revision, v_floor FROM {scopes} s WHERE s.scope = v_scope;
    revision := coalesce(revision, 0);
    reset := p_since < coalesce(v_floor, 0) OR p_since > revision;
    IF p_since > 0 AND p_since < revision AND NOT reset THEN
        deleted := ARRAY(SELECT d.deleted FROM {deletions} d
            WHERE d.scope = v_scope AND d.revision > p_since ORDER BY d.revision);
    END IF;
    RETURN NEXT;
END $body$;

CREATE FUNCTION {saved}(
    p_key text, p_wait int, p_since bigint, p_until bigint, p_most int
) RETURNS TABLE ({row}) LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    RETURN QUERY SELECT {columns} FROM {memories} m
        WHERE m.scope = v_scope AND m.revision > p_since AND m.revision <= p_until
        ORDER BY m.revision LIMIT p_most;
END $body$;

-- The last revision that was given.
CREATE FUNCTION {last}(p_wait int) RETURNS bigint LANGUAGE sql AS $body$
    SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {revisions}
$body$;

CREATE FUNCTION {all_scopes}(p_wait int) RETURNS TABLE (key text) LANGUAGE plpgsql AS $body$
#variable_conflict use_column
BEGIN
    PERFORM set_config('lock_timeout', p_wait::text, true);
    PERFORM set_config('retain.scope', '*', true);
    RETURN QUERY SELECT s.key FROM {scopes} s
        WHERE EXISTS (SELECT 1 FROM {memories} m WHERE m.scope = s.scope) ORDER BY s.scope;
END $body$;

CREATE FUNCTION {forget_scope}(p_key text, p_wait int, p_tell text) RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter_alone}(p_key, p_wait, false);
    v_count bigint;
BEGIN
    DELETE FROM {memories} m WHERE m.scope = v_scope;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    DELETE FROM {deletions} d WHERE d.scope = v_scope;
    DELETE FROM {files} f WHERE f.scope = v_scope;
    DELETE FROM {set_aside} a WHERE a.scope = v_scope;
    DELETE FROM {scopes} s WHERE s.scope = v_scope;
    IF v_scope > 0 THEN
        PERFORM nextval('{revisions}');  -- so that a scope of that name begins beyond it
        IF p_tell IS NOT NULL THEN
            PERFORM pg_notify(p_tell, md5(p_key));
        END IF;
    END IF;
    RETURN v_count;
END $body$;

-- Every row with what was derived of it, for a check.
CREATE FUNCTION {inspect}(p_key text, p_wait int, p_after text, p_most int)
RETURNS TABLE (key text, fact text, expires_at float8, last bigint, {row})
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    RETURN QUERY SELECT m.id, m.fact, m.expires_at, s.revision, {columns}
        FROM {memories} m JOIN {scopes} s ON s.scope = m.scope
        WHERE m.scope = v_scope AND m.id > p_after COLLATE "C" ORDER BY m.id LIMIT p_most;
END $body$;

-- Take rows that are no memories out of the way, and keep them.
CREATE FUNCTION {put_aside}(p_key text, p_wait int, p_ids text[]) RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter_alone}(p_key, p_wait, false);
BEGIN
    INSERT INTO {set_aside} (scope, content)
        SELECT v_scope, to_json(m) FROM {memories} m
        WHERE m.scope = v_scope AND m.id = ANY (p_ids);
    PERFORM {write}(p_key, p_wait, NULL, p_ids, false, NULL, NULL, false, NULL);
END $body$;

-- The files of a scope's index.
CREATE FUNCTION {file_names}(p_key text, p_wait int)
RETURNS TABLE (name text, age float8) LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    RETURN QUERY SELECT f.name, extract(epoch FROM now() - f.written)::float8 FROM {files} f
        WHERE f.scope = v_scope AND f.part = 0 ORDER BY f.name;
END $body$;

CREATE FUNCTION {file_part}(p_key text, p_wait int, p_name text, p_part int) RETURNS bytea
LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    RETURN (SELECT f.data FROM {files} f
        WHERE f.scope = v_scope AND f.name = p_name AND f.part = p_part);
END $body$;

-- The last part first and part 0, by which a file is known, at the end: half a file is none.
CREATE FUNCTION {put_part}(p_key text, p_wait int, p_name text, p_part int, p_data bytea)
RETURNS bool LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    INSERT INTO {files} AS f (scope, name, part, data)
        SELECT s.scope, p_name, p_part, p_data FROM {scopes} s
        WHERE s.scope = v_scope FOR SHARE
        ON CONFLICT (scope, name, part) DO UPDATE SET data = excluded.data, written = now();
    RETURN FOUND;
END $body$;

CREATE FUNCTION {drop_files}(p_key text, p_wait int, p_names text[], p_abandoned float8)
RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    DELETE FROM {files} f WHERE f.scope = v_scope AND (p_names IS NULL OR f.name = ANY (p_names)
        OR (f.written < now() - make_interval(secs => p_abandoned) AND NOT EXISTS (
            SELECT 1 FROM {files} g
            WHERE g.scope = v_scope AND g.name = f.name AND g.part = 0)));
END $body$;
"""


_NAMES = (
    "place revisions scopes memories deletions files set_aside enter enter_alone write put "
    "incoming trim fetch condition list count changes saved last all_scopes forget_scope inspect "
    "put_aside file_names file_part put_part drop_files"
).split()
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
    each = {"r": "r.", "revision": f"nextval('{names['revisions']}')", **known}
    one = {"r": "p_", "revision": "o_revision", **known}
    known |= {
        "upsert": _SAVE.format(**each),
        "equal": _EQUAL.format(**each),
        "put_save": _SAVE.format(**one),
        "put_equal": _EQUAL.format(**one),
        "parameters": re.sub(r"(\w+) (\w+)", r"p_\1 \2", _ROW),
    }
    first = [_TABLES.format(**known)]
    if partitions:
        table = names["memories"]
        first += [
            f'CREATE TABLE {table[:-1]}_{part}" PARTITION OF {table}'
            f" FOR VALUES WITH (MODULUS {partitions}, REMAINDER {part});"
            for part in range(partitions)
        ]
    first += [_SECURITY.format(table=names[table]) for table in _SECURED]
    first.append(_FUNCTIONS.format(**known))
    first += [f"REVOKE ALL ON FUNCTION {names[name]} FROM PUBLIC;" for name in _NAMES[7:]]
    return ["\n".join(first)]


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
