"""The store on real PostgreSQL servers."""

from __future__ import annotations

import hashlib
import math
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

import servers
from retain import (
    Conflict,
    InvalidType,
    InvalidValue,
    Memory,
    PostgresStore,
    Scope,
    StoreCorrupt,
    StoreFailed,
    StoreTooNew,
)
from retain.engine import Engine
from retain.stores.postgres_schema import given as given_back
from retain.stores.postgres_schema import kept
from retain.testing import StoreConformance
from retain.testing.strategies import memories, texts


@pytest.fixture(scope="module")
def database() -> str:
    return servers.new_database()


def schema_of(place: Path) -> str:
    return f"t_{hashlib.sha256(str(place).encode()).hexdigest()[:20]}"


class TestPostgresStore(StoreConformance):
    histories = 10

    @pytest.fixture(autouse=True)
    def _database(self, database: str) -> None:
        self.url = database

    def open_store(self, place: Path) -> PostgresStore:
        return PostgresStore(self.url, schema=schema_of(place))


@pytest.fixture
def store(database: str, tmp_path: Path) -> Iterator[PostgresStore]:
    with PostgresStore(database, schema=schema_of(tmp_path)) as store:
        yield store


def statements(store: PostgresStore, *texts: str) -> list[Any]:
    """What SQL statements answer, past retain, as the tables' owner."""
    with psycopg.connect(store.driver._url, autocommit=True) as connection:
        for text in texts:
            cursor = connection.execute(text.replace("SCHEMA", store.driver.schema))
        return cursor.fetchall() if cursor.description else []


@pytest.mark.slow
class TestPartitions(StoreConformance):
    """The table of memories in parts."""

    @pytest.fixture(autouse=True)
    def _database(self, database: str) -> None:
        self.url = database

    def open_store(self, place: Path) -> PostgresStore:
        return PostgresStore(self.url, schema=schema_of(place), partitions=3)


@pytest.mark.parametrize(
    "url",
    [
        *("postgresql://[", "host", "postgresql://x?nonsense=1", "\0"),
        *("postgresql://x:port/y", "postgresql://x:65536/y", "postgresql://ann:12/34@x/y"),
    ],
)
def test_a_url_that_is_none_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidValue, match="can't be read"):
        PostgresStore(url)


def test_what_the_database_does_not_know_behind_the_question_mark_is_named() -> None:
    with pytest.raises(InvalidValue, match="which has no 'nonsense'"):
        PostgresStore("postgresql://x/y?sslmode=require&nonsense=1")


@pytest.mark.parametrize(
    "options",
    [
        *({"timeout": value} for value in (0, -1, "soon", True, math.nan, math.inf)),
        *({"connections": value} for value in (0, 2.5, "ten")),
        *({"partitions": value} for value in (-1, 1_000_000, "4")),
    ],
    ids=repr,
)
def test_numbers_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((InvalidValue, InvalidType)):
        PostgresStore("postgresql://x/y", **options)


@pytest.mark.parametrize("schema", ["", "A", "a b", 'a"b', "x" * 41, "1a", "a;drop"])
def test_a_schema_that_is_no_plain_name_is_refused(database: str, schema: str) -> None:
    with pytest.raises(InvalidValue, match="schema is"):
        PostgresStore(database, schema=schema)


def test_no_message_and_no_repr_has_the_password() -> None:
    url = f"postgresql://ann:secret@127.0.0.1:{servers.free_port()}/none"
    with pytest.raises(StoreFailed) as caught:
        PostgresStore(url, timeout=0.2)
    assert "secret" not in str(caught.value)
    assert "none@127.0.0.1" in str(caught.value)


def test_the_tables_owner_sees_no_row_without_a_scope(store: PostgresStore) -> None:
    ann = store.scoped(Scope(user="ann"))
    ann.save(Memory("m1", "of Ann"))
    ann.save(Memory("m2", "of Ann"))
    ann.delete("m2")
    store.save(Memory("m1", "of nobody"))
    for table in ("memories", "deletions", "files", "set_aside"):
        assert statements(store, f"SELECT * FROM SCHEMA.{table}") == []
    [(key,)] = statements(store, "SELECT scope FROM SCHEMA.scopes WHERE key LIKE '%ann%'")
    seen = statements(store, f"SET retain.scope = '{key}'", "SELECT content FROM SCHEMA.memories")
    assert seen == [("of Ann",)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        statements(
            store,
            f"SET retain.scope = '{key}'",
            "INSERT INTO SCHEMA.deletions VALUES (99, 1, 'x', 'x')",
        )


def test_a_schema_of_a_newer_version_is_refused_and_left_as_it_is(store: PostgresStore) -> None:
    statements(store, "UPDATE SCHEMA.place SET version = 99")
    with pytest.raises(StoreTooNew, match="version 99"):
        PostgresStore(store.driver._url, schema=store.driver.schema)
    assert statements(store, "SELECT version FROM SCHEMA.place") == [(99,)]


def test_a_schema_that_was_dropped_is_told_and_not_made_silently_anew(
    store: PostgresStore,
) -> None:
    store.save(Memory("m1", "x"))
    statements(store, "drop schema SCHEMA cascade")
    with pytest.raises(StoreCorrupt, match="is gone"):
        store.list_all()


def test_a_database_that_cannot_hold_every_text_is_refused() -> None:
    name = f"retain_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(servers.postgres_url(), autocommit=True) as server:
        server.execute(
            f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'"
            " TEMPLATE template0"
        )
    url = make_conninfo(servers.postgres_url(), dbname=name)
    with pytest.raises(StoreFailed, match="SQL_ASCII"):
        PostgresStore(url)


def test_ids_too_long_for_an_index_are_kept_whole_and_in_order(store: PostgresStore) -> None:
    ids = [letter * 1024 for letter in ("a", "é", "東", "🏳")]
    ids += [f"{id[:-1]}!" for id in ids]
    store.save_many([Memory(id, "x", created_at=1e9) for id in ids])
    assert [m.id for m in store.list_all()] == sorted(ids)
    page = store.page(3)
    assert [m.id for m in store.page(9, after=page[-1])] == sorted(ids)[3:]
    revision = store.peek([ids[3]])[0].revision
    store.write([Memory(ids[3], "y")], expect={ids[3]: revision})
    with pytest.raises(Conflict, match="🏳"):
        store.write([Memory(ids[3], "z")], expect={ids[3]: revision})
    seen = store.changes(0).revision
    assert all(map(store.delete, ids))
    assert store.changes(seen).deleted == ids


def test_keys_of_scopes_too_long_for_an_index_are_told_apart(store: PostgresStore) -> None:
    scopes = [Scope("東" * 512, "京" * 512, "都" * 511 + end) for end in "ab"]
    for scope in scopes:
        store.scoped(scope).save(Memory("m1", scope.session or ""))
    assert store.scopes() == scopes
    assert [store.scoped(s).list_all()[0].content for s in scopes] == [s.session for s in scopes]


@given(texts(), texts())
def test_texts_are_kept_without_nul_and_in_their_order(one: str, other: str) -> None:
    assert given_back(kept(one)) == one
    assert "\0" not in kept(one)
    assert (one < other) == (kept(one) < kept(other))


def test_a_large_batch_is_one_transaction(store: PostgresStore) -> None:
    many = [Memory(f"m{n}", f"text {n}\0\t\\N") for n in range(1000)]
    with pytest.raises(Conflict):
        store.write(many, expect={"m5": 7})
    assert store.count() == 0
    saved = store.save_many(many)
    assert [m.revision for m in saved] == sorted({m.revision for m in saved})
    assert {m.content for m in store.list_all()} == {m.content for m in many}


@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_a_batch_does_what_its_memories_do_one_by_one(data: st.DataObject, database: str) -> None:
    batch = data.draw(st.lists(memories(), min_size=1, max_size=8))
    before = data.draw(st.lists(memories(), max_size=3))
    results = []
    for limit in (1, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("retain.stores.postgres._COPIED", limit)
            schema = f"b_{uuid.uuid4().hex[:20]}"
            with PostgresStore(database, schema=schema, tell=False) as store:
                store.save_many(before)
                written = store.write(batch, ["a"], unique=True)
                listed = store.list_all()
                results.append(
                    (
                        [(m.id, m.content, m.revision) for m in written.saved],
                        written.deleted,
                        written.duplicates,
                        [(m.id, m.content, m.access_count, m.metadata) for m in listed],
                    )
                )
    assert results[0] == results[1]


def test_check_finds_and_mends_what_was_derived_wrongly(store: PostgresStore) -> None:
    store.save(Memory("m1", "Likes tea", persistent=True))
    store.save(Memory("m2", "x", ttl_days=9))
    store.save(Memory("m3", "x"))
    all_scopes = "SET retain.scope = '*'"
    statements(
        store,
        all_scopes,
        "UPDATE SCHEMA.memories SET fact = 'wrong' WHERE id = 'm1'",
        "UPDATE SCHEMA.memories SET expires_at = 1 WHERE id = 'm2'",
        "UPDATE SCHEMA.memories SET category = '' WHERE id = 'm3'",
    )
    assert len(store.check()) == 3
    assert all(problem.fixed for problem in store.check(fix=True))
    assert store.check() == []
    assert {m.id for m in store.list_all()} == {"m1", "m2"}
    aside = statements(store, all_scopes, "SELECT content ->> 'id' FROM SCHEMA.set_aside")
    assert aside == [("m3",)]
    assert store.write([Memory("m4", "Likes tea", persistent=True)], unique=True).duplicates


def test_backup_names_what_does_it(store: PostgresStore, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="pg_dump"):
        store.backup(tmp_path / "copy")


def test_what_one_process_wrote_the_index_of_another_takes_in_by_itself(
    store: PostgresStore,
) -> None:
    mine = Engine(store)
    mine.remember(Memory("m1", "a zebra"))
    assert len(mine.recall("zebra")) == 1
    with PostgresStore(store.driver._url, schema=store.driver.schema) as other:
        give_up = time.monotonic() + 30
        number = 1
        # The listener may still be connecting when the first is written.
        while mine.behind() or number == 1:
            assert time.monotonic() < give_up
            number += 1
            other.save(Memory(f"m{number}", "another zebra"))
            time.sleep(0.05)
    assert len(mine.recall("zebra", k=100)) == number


def test_the_index_of_a_scope_is_kept_in_the_database(store: PostgresStore) -> None:
    first = Engine(store)
    first.remember_many(Memory(f"m{n}", f"text number {n}") for n in range(600))
    expected = [r.memory.id for r in first.recall("number 77")]
    first.settle()
    names = store.driver.index_files(store.scope).names()
    assert [name.rpartition(".")[2] for name in names] == ["terms"]
    with PostgresStore(store.driver._url, schema=store.driver.schema) as again:
        engine = Engine(again)
        assert engine.behind() == 0  # nothing of it was made anew
        assert [r.memory.id for r in engine.recall("number 77")] == expected
        again.forget_scope(again.scope)
        assert again.driver.index_files(again.scope).names() == []
        assert engine.recall("number 77") == []


def test_a_file_larger_than_a_part_is_there_whole_or_not_at_all(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retain.stores.postgres_files._PART", 10)
    store.save(Memory("m1", "x"))
    files = store.driver.index_files(store.scope)
    for size in (0, 1, 9, 10, 11, 20, 25):
        data = bytes(range(size))
        files.write(f"f{size}", [data[:3], memoryview(data)[3:]])
        assert files.open(f"f{size}") == data
    statements(
        store, "SET retain.scope = '*'", "DELETE FROM SCHEMA.files WHERE name = 'f25' AND part = 0"
    )
    assert "f25" not in files.names()
    with pytest.raises(StoreFailed):
        files.open("f25")
    statements(store, "SET retain.scope = '*'", "UPDATE SCHEMA.files SET written = '2000-01-01'")
    files.sweep()
    left = "SELECT DISTINCT name FROM SCHEMA.files ORDER BY name"
    assert ("f25",) not in statements(store, "SET retain.scope = '*'", left)
    files.remove(["f11"])
    assert sorted(files.names()) == ["f0", "f1", "f10", "f20", "f9"]
    other = store.scoped(Scope(user="ann")).driver.index_files(Scope(user="ann"))
    other.write("f1", [b"nobody's"])  # a scope that is not there has no files
    assert other.names() == []
