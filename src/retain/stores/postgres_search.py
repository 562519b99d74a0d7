"""Candidates for a query, of a scope too large for a process: a side index in the database.

It is made of the memories as every index is, and can be dropped at any time: ``level`` says up to
which revision of a scope it goes, and whoever asks brings it there first. What is deleted or
replaced leaves it at once, by a trigger on the memories, whoever does it.

It lies in a schema of its own, named by all that its content depends on (the store, the
tokenizer, the embedder), so that nobody reads what another made otherwise.

A term's key is its number XOR the scope's, so that each list of the GIN index is one scope's. A
GIN index can't be used under row security (its operators are not leakproof), so that ``terms``
has it for everyone but its owner, whose functions (SECURITY DEFINER) name the scope themselves;
and it holds no text: what is answered is fetched from the memories, under theirs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import StoreCorrupt
from ..models import Filter
from ..scope import Scope
from .offers import Entry, Offer, Probe, SearchLevel, Wanted
from .postgres_calls import Call
from .postgres_schema import given, id_key, kept

if TYPE_CHECKING:
    import psycopg

    from .postgres import PostgresDriver

    Connection = psycopg.Connection[Any]

__all__ = ["PostgresSearch", "make"]

log = logging.getLogger("retain")

_FORMAT = 1
_AT_A_TIME = 100  # memories of a time that a query names
_CENTRES = 80  # of each kind of candidate, those whose neighbours are offered too
_WIDEST = 4_000  # numbers of a vector that an index takes
_OLDEST = [0, 8]  # pgvector that goes on where a filter leaves too few
_PAUSE = 1.0  # seconds
_BESIDE = 2  # turns to each side
_FUNCTIONS = "state put clear bare dress measure offer beside".split()


class PostgresSearch:
    """The side index of one kind of a store: what :class:`~retain.stores.base.Search` asks."""

    def __init__(self, driver: PostgresDriver, made_by: str, dimensions: int) -> None:
        self._driver = driver
        parts = (_FORMAT, driver.identity, made_by, dimensions)
        kind = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]
        self._schema = f"{driver.schema}_search_{kind}"
        self._trigger, self._dimensions = f"retain_{kind}", dimensions
        self._names = {name: f'"{self._schema}".{name}' for name in _FUNCTIONS}
        self._make()

    def _make(self) -> None:
        self.vectors = self._driver.work(
            lambda connection: make(
                connection, self._driver, self._schema, self._trigger, self._dimensions
            )
        )

    def _rows(self, name: str, scope: Scope, **arguments: Any) -> list[Any]:
        call = Call(self._names[name], {"key": kept(scope.key), **arguments})
        try:
            return self._driver.rows(call)
        except StoreCorrupt:  # somebody dropped it, as anybody may
            self._make()
            return self._driver.rows(call)

    def state(self, scope: Scope, terms: Sequence[int]) -> SearchLevel:
        rows = self._rows("state", scope, terms=list(terms))
        return SearchLevel(*rows[0]) if rows else SearchLevel(counts=[0] * len(terms))

    def put(self, scope: Scope, since: int, until: int, entries: Sequence[Entry]) -> bool:
        rows = [
            {
                "id": id_key(entry.id),
                "revision": entry.revision,
                "session": entry.session,
                "turn": entry.turn,
                "length": entry.length,
                "terms": entry.terms.hex(),
                "keys": entry.keys,
                "embedded": entry.embedded,
                "vector": None if entry.vector is None else str(entry.vector),
            }
            for entry in entries
        ]
        arguments = {"since": since, "until": until, "rows": json.dumps(rows)}
        return bool(self._rows("put", scope, **arguments)[0][0])

    def clear(self, scope: Scope) -> None:
        self._rows("clear", scope)

    def bare(self, scope: Scope, most: int) -> list[str]:
        return [given(row[0]) for row in self._rows("bare", scope, most=most)]

    def dress(self, scope: Scope, vectors: Mapping[tuple[str, int], list[int] | None]) -> None:
        rows = [
            {"id": id_key(id), "revision": at, "vector": None if made is None else str(made)}
            for (id, at), made in vectors.items()
        ]
        self._rows("dress", scope, rows=json.dumps(rows))

    def measure(self, scope: Scope) -> None:
        self._rows("measure", scope, near=None)

    def index_vectors(self, scope: Scope) -> None:
        number = int(self._rows("measure", scope, near=None)[0][0])
        if not number or not self.vectors:
            return
        self._driver.work(lambda connection: _near(connection, self._schema, number))
        self._rows("measure", scope, near=True)

    def offer(self, scope: Scope, wanted: Wanted) -> Offer | None:
        narrow: Filter = wanted.narrow
        rows = self._rows(
            "offer",
            scope,
            now=wanted.now,
            type=narrow.memory_type and narrow.memory_type.value,
            importance=narrow.min_importance or None,
            since=narrow.since,
            until=narrow.until,
            persistent=narrow.persistent,
            labels=list(wanted.labels),
            probes=_packed(wanted.probes),
            common=list(wanted.common),
            together=_packed(wanted.together),
            walk=wanted.walk,
            starts=[start for start, _ in wanted.times],
            ends=[end for _, end in wanted.times],
            half_life=wanted.half_life,
            vector=None if wanted.vector is None else str(wanted.vector),
            alike=wanted.alike,
            most=wanted.most,
        )
        if not rows or rows[0][0] is None:
            return None
        ids, keys, before, after, *packed = rows[0]
        return Offer([given(id) for id in ids], keys, before or {}, after or {}, *packed)

    def beside(self, scope: Scope, id: str, count: int) -> list[str]:
        return [given(row[0]) for row in self._rows("beside", scope, id=id_key(id), most=count)]


def _packed(probes: Sequence[Probe]) -> str | None:
    found = [{"keys": probe.terms, "weight": probe.weight} for probe in probes]
    return json.dumps(found) if found else None


def make(
    connection: Connection, driver: PostgresDriver, schema: str, trigger: str, dimensions: int
) -> bool:
    """Make a side index unless it is there; whether it has vectors."""
    with connection.transaction():
        connection.execute(
            "SELECT set_config('lock_timeout', %s, true),"
            " pg_advisory_xact_lock(hashtextextended('retain ' || %s, 0))",
            (str(round(driver.timeout * 1000)), schema),
        )
        half = _half(connection, dimensions) if dimensions else None
        there = connection.execute(
            "SELECT (SELECT true FROM pg_attribute WHERE attrelid = to_regclass(%s)"
            " AND attname = 'vector' AND NOT attisdropped),"
            " (SELECT true FROM pg_trigger WHERE tgname = %s), to_regclass(%s) IS NOT NULL",
            (f'"{schema}".terms', f"{trigger}_delete", f'"{schema}".terms'),
        ).fetchone()
        assert there is not None
        has_vectors, watched, made = there
        if made and watched and (has_vectors or half is None):
            return bool(has_vectors)
        # Without its triggers (the memories were put back from a backup), nothing of it is sure.
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
        words = {
            "s": f'"{schema}"',
            "trigger": trigger,
            "vector": f"vector {half[0]}({dimensions})," if half else "",
            "put_vector": f", r.vector::{half[0]}" if half else "",
            "set_vector": f", vector = r.vector::{half[0]}" if half else "",
            "distance": half[1] if half else "",
            "half": half[0] if half else "text",
            "similar": f"1 - (t.vector {half[1]} $15::{half[0]})" if half else "NULL::float8",
            "at_a_time": _AT_A_TIME,
            "centres": _CENTRES,
            "beside": _BESIDE,
            **driver.names,
        }
        script = Path(__file__).with_name("postgres_search.sql").read_text("utf-8")
        connection.execute(script.format(**words).encode())
        return half is not None


def _half(connection: Connection, dimensions: int) -> tuple[str, str] | None:
    """The type of vectors and its operator of distance, where pgvector is or can be had."""
    import psycopg

    def found() -> tuple[str, str] | None:
        row = connection.execute(
            "SELECT quote_ident(n.nspname), e.extversion FROM pg_extension e"
            " JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
        ).fetchone()
        return None if row is None else (str(row[0]), str(row[1]))

    missing = f"vectors of {dimensions} numbers are more than {_WIDEST}"
    if dimensions <= _WIDEST:
        there = found()
        if there is None:
            try:
                with connection.transaction():
                    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
                there = found()
            except psycopg.Error as error:
                missing = f"no pgvector here ({error})"
        if there is not None:
            schema, version = there
            if [int(part) for part in version.split(".")[:2]] >= _OLDEST:
                return f"{schema}.halfvec", f"OPERATOR({schema}.<=>)"
            missing = f"pgvector {version} is older than 0.8"
    log.warning("native search goes without vectors: %s", missing)
    return None


def _near(connection: Connection, schema: str, number: int) -> None:
    """Index the vectors of one scope, without keeping writers away meanwhile."""
    name = f"near_{number}"
    with connection.cursor() as cursor:
        # Asked again and again: who waits for the lock would itself be waited for by the index.
        lock = "SELECT 1 WHERE pg_try_advisory_lock(hashtextextended(%s, 0))"
        while not cursor.execute(lock, (f"{schema}.{name}",)).fetchone():
            time.sleep(_PAUSE)
        try:
            cursor.execute(
                "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
                (f'"{schema}".{name}',),
            )
            row = cursor.fetchone()
            if row is not None and row[0]:
                return
            if row is not None:  # somebody was interrupted
                cursor.execute(f'DROP INDEX "{schema}".{name}')
            half = _half(connection, 0)
            assert half is not None
            operators = half[0].removesuffix("halfvec") + "halfvec_cosine_ops"
            cursor.execute("SET maintenance_work_mem = '1GB'")
            cursor.execute(
                f'CREATE INDEX CONCURRENTLY {name} ON "{schema}".terms'
                f" USING hnsw (vector {operators}) WHERE scope = {number}"
            )
        finally:
            cursor.execute("RESET maintenance_work_mem")
            cursor.execute(
                "SELECT pg_advisory_unlock(hashtextextended(%s, 0))", (f"{schema}.{name}",)
            )
