"""The Supabase back end, beside what tests/backends/test_contract.py asks of every one.

Against a look-alike of PostgREST over a real PostgreSQL: the hosted service was not tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from supabase import create_client

import postgrest_server
import servers
from retain import (
    InvalidType,
    InvalidValue,
    KnowledgeMemory,
    RetainError,
    StoreFailed,
    SupabaseKnowledgeBackend,
)
from retain.backends import ComparingBackend

TABLES = f"""{servers.SUPABASE_TABLES};
CREATE TABLE users (
    user_id text PRIMARY KEY, email text NOT NULL, memory_text text,
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE plain (key text PRIMARY KEY, data text NOT NULL);
CREATE TABLE "odd name" ("my key" text PRIMARY KEY, "my ""data" text, updated_at timestamptz);
CREATE TABLE objects (key text PRIMARY KEY, data jsonb, updated_at timestamptz);
CREATE TABLE touched (LIKE selectools_knowledge INCLUDING ALL);
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN NEW.updated_at := clock_timestamp(); RETURN NEW; END $$;
CREATE TRIGGER touch BEFORE UPDATE ON touched FOR EACH ROW EXECUTE FUNCTION touch();
"""


@pytest.fixture(scope="module")
def database() -> str:
    url = servers.new_database()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(TABLES)
    return url


@pytest.fixture
def client(database: str) -> Iterator[Any]:
    with psycopg.connect(database, autocommit=True) as db:
        db.execute('TRUNCATE selectools_knowledge, users, plain, "odd name", objects, touched')
    server = postgrest_server.start(database)
    yield create_client(server.url, "service-key")
    server.stop()


def stored(client: Any, table: str, column: str = "data") -> list[Any]:
    return [row[column] for row in client.table(table).select("*").execute().data]


def test_an_archive_stands_there_as_readable_text(client: Any, tmp_path: Path):
    backend = SupabaseKnowledgeBackend(client, "user-123")
    with KnowledgeMemory(tmp_path, backend=backend) as memory:
        memory.remember("Likes 東京", persistent=True)
    [text] = stored(client, "selectools_knowledge")
    assert text.startswith('{"version":1,"files":{"MEMORY.md":') and "- Likes 東京" in text


@pytest.mark.parametrize(
    ("blob", "text"),
    [
        (b"plain", "plain"),
        ("東京".encode(), "東京"),
        (b"\xff", "b64:/w=="),
        (b"b64:x", "b64:YjY0Ong="),
        (b"a\0", "b64:YQA="),
    ],
    ids=["text", "unicode", "binary", "prefixed", "nul"],
)
def test_what_is_no_text_is_base64(blob: bytes, text: str, client: Any):
    SupabaseKnowledgeBackend(client, "a").save_bytes(blob)
    assert stored(client, "selectools_knowledge") == [text]
    assert SupabaseKnowledgeBackend(client, "a").load_bytes() == blob


def test_what_only_looks_like_base64_is_loaded_as_it_is(client: Any):
    client.table("selectools_knowledge").insert({"key": "a", "data": "b64:%%"}).execute()
    assert SupabaseKnowledgeBackend(client, "a").load_bytes() == b"b64:%%"


@pytest.fixture
def users(client: Any) -> Any:
    return lambda: SupabaseKnowledgeBackend(
        client,
        key="ann",
        table_name="users",
        key_column="user_id",
        data_column="memory_text",
        write_mode="update",
    )


def test_update_leaves_the_other_columns_and_names_a_row_that_is_missing(client: Any, users: Any):
    for call in (lambda: users().save_bytes(b"1"), lambda: users().replace_bytes(None, b"1")):
        with pytest.raises(RuntimeError, match=r"user_id='ann'.*'users'.*insert it") as raised:
            call()
        assert isinstance(raised.value, RetainError)
    client.table("users").insert({"user_id": "ann", "email": "ann@example.org"}).execute()
    assert users().load_bytes() is None
    assert users().replace_bytes(None, b"1")
    users().save_bytes(b"2")
    assert not users().replace_bytes(b"1", b"3")
    assert stored(client, "users", "memory_text") == ["2"]
    assert stored(client, "users", "email") == ["ann@example.org"]


def test_a_memory_says_so_where_its_row_is_missing_and_keeps_what_it_has(
    users: Any, client: Any, tmp_path: Path
):
    with KnowledgeMemory(tmp_path, backend=users()) as memory:
        with pytest.raises(RuntimeError, match="is safe in"):
            memory.remember("Likes tea")
        client.table("users").insert({"user_id": "ann", "email": "ann@example.org"}).execute()
        memory.flush()
    assert b"Likes tea" in users().load_bytes()


def test_a_change_to_another_column_of_the_row_is_no_conflict(client: Any, users: Any):
    client.table("users").insert({"user_id": "ann", "email": "a@example.org"}).execute()
    backend = users()
    assert backend.replace_bytes(None, b"1")
    client.table("users").update({"email": "b@example.org", "updated_at": "now()"}).eq(
        "user_id", "ann"
    ).execute()
    assert backend.replace_bytes(b"1", b"2")
    assert stored(client, "users", "email") == ["b@example.org"]


def test_upsert_into_a_table_with_other_required_columns_says_what_to_do(client: Any):
    backend = SupabaseKnowledgeBackend(client, "ann", "users", "user_id", "memory_text")
    client.table("users").insert({"user_id": "ann", "email": "a@example.org"}).execute()
    with pytest.raises(StoreFailed, match=r"23502.*write_mode='update'"):
        backend.save_bytes(b"1")


def test_a_table_without_a_time_is_compared_by_content_and_told_once(
    client: Any, caplog: pytest.LogCaptureFixture
):
    backend = SupabaseKnowledgeBackend(client, "a", "plain")
    assert backend.load_bytes() is None
    assert backend.replace_bytes(None, b"1")
    assert not SupabaseKnowledgeBackend(client, "a", "plain").replace_bytes(b"0", b"2")
    assert backend.replace_bytes(b"1", b"2")
    SupabaseKnowledgeBackend(client, "a", "plain").save_bytes(b"3")
    assert backend.load_bytes() == b"3"
    assert caplog.text.count("has no column updated_at") == 3  # once for each object


def test_names_with_spaces_and_quotes_are_names(client: Any):
    for _ in range(2):
        backend = SupabaseKnowledgeBackend(client, "a b", "odd name", "my key", 'my "data')
        kept = backend.load_bytes()
        assert backend.replace_bytes(kept, (kept or b"") + b"1")
    assert backend.load_bytes() == b"11"


def test_a_row_without_a_time_is_replaced_only_as_long_as_it_has_none(client: Any):
    client.table("odd name").insert({"my key": "a", 'my "data': "1"}).execute()
    one, other = (
        SupabaseKnowledgeBackend(client, "a", "odd name", "my key", 'my "data') for _ in range(2)
    )
    assert one.load_bytes() == other.load_bytes() == b"1"
    assert one.replace_bytes(b"1", b"2")
    assert not other.replace_bytes(b"1", b"3")


def test_a_trigger_that_sets_the_time_is_no_hindrance(client: Any):
    one, other = (SupabaseKnowledgeBackend(client, "a", "touched") for _ in range(2))
    assert one.replace_bytes(None, b"1")
    assert one.replace_bytes(b"1", b"2")
    assert one.replace_bytes(b"2", b"3")
    assert not other.replace_bytes(b"2", b"4")
    assert other.replace_bytes(b"3", b"4")
    assert not one.replace_bytes(b"3", b"5")


def test_a_column_that_is_no_text_is_told(client: Any):
    client.table("objects").insert({"key": "a", "data": {"x": 1}}).execute()
    with pytest.raises(StoreFailed, match="type text"):
        SupabaseKnowledgeBackend(client, "a", "objects").load_bytes()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"write_mode": "insert"}, InvalidValue, "write_mode='insert'"),
        ({"write_mode": None}, InvalidValue, "write_mode"),
        ({"table_name": ""}, InvalidValue, "table_name"),
        ({"data_column": 5}, InvalidValue, "data_column"),
    ],
    ids=["insert", "none", "table", "column"],
)
def test_a_wrong_argument_is_refused_by_name(
    options: dict[str, Any], error: type[Exception], words: str, client: Any
):
    with pytest.raises(error, match=words):
        SupabaseKnowledgeBackend(client, "a", **options)


def test_what_is_no_client_is_refused():
    with pytest.raises(InvalidType, match="create_client"):
        SupabaseKnowledgeBackend("https://project.supabase.co", "a")


def test_what_the_service_refuses_is_told_with_a_way_out(client: Any, database: str):
    with pytest.raises(StoreFailed, match=r"PGRST205.*make it first"):
        SupabaseKnowledgeBackend(client, "a", "nowhere").load_bytes()
    with pytest.raises(StoreFailed, match="PGRST204"):
        SupabaseKnowledgeBackend(client, "a", data_column="content").save_bytes(b"1")
    with psycopg.connect(servers.postgres_url(), autocommit=True) as db:
        db.execute(
            "DO $$ BEGIN CREATE ROLE retain_guest;"
            " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        )
        db.execute("GRANT retain_guest TO retain_tests")
    server = postgrest_server.start(database, keys={"guest-key": "retain_guest"})
    try:
        for key, words in (("guest-key", "service role"), ("wrong-key", "Invalid API key")):
            backend = SupabaseKnowledgeBackend(create_client(server.url, key), "a")
            with pytest.raises(StoreFailed, match=words):
                backend.load_bytes()
    finally:
        server.stop()


def test_a_service_that_is_away_is_told_and_nothing_is_made(tmp_path: Path):
    client = create_client(f"http://127.0.0.1:{servers.free_port()}", "service-key")
    client.postgrest.retry_enabled = False
    with pytest.raises(StoreFailed, match="can't be reached"):
        KnowledgeMemory(tmp_path / "place", backend=SupabaseKnowledgeBackend(client, "a"))
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_compared_with_in_both_modes(client: Any, users: Any):
    assert isinstance(users(), ComparingBackend)
