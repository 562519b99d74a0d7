"""The store over supabase-py, against a PostgREST of our own over a real PostgreSQL."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from supabase import create_client

import postgrest_server as rest
import servers
from retain import (
    Conflict,
    InvalidType,
    InvalidValue,
    KnowledgeEntry,
    KnowledgeMemory,
    Memory,
    Order,
    Scope,
    StoreFailed,
    StoreTooNew,
    SupabaseKnowledgeStore,
    SupabaseStore,
)
from retain.testing import StoreConformance

ROLES = """
DO $$ BEGIN
    CREATE ROLE anon NOLOGIN;
    CREATE ROLE authenticated NOLOGIN;
    CREATE ROLE service_role NOLOGIN BYPASSRLS;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
"""


class Project:
    """A database with the roles of a Supabase project, and its REST interface."""

    def __init__(self) -> None:
        self.url = servers.new_database()
        with psycopg.connect(servers.postgres_url(), autocommit=True) as server:
            server.execute(ROLES)
            server.execute("GRANT anon, authenticated, service_role TO retain_tests")
        # What a project does for its roles: whatever is made in public is theirs.
        self.run(
            "GRANT USAGE ON SCHEMA public TO anon, authenticated, service_role",
            "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES"
            " TO anon, authenticated, service_role",
            "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON FUNCTIONS"
            " TO anon, authenticated, service_role",
            "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON SEQUENCES"
            " TO anon, authenticated, service_role",
        )
        self.server = rest.start(
            self.url, "service-key", role="service_role", keys={"anon-key": "anon"}
        )

    def run(self, *texts: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as db:
            for text in texts:
                db.execute(text)

    def store(self, table: str, key: str = "service-key") -> SupabaseStore:
        self.run(SupabaseStore.sql(table))
        return SupabaseStore(create_client(self.server.url, key), table=table)


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    project = Project()
    yield project
    project.server.stop()


@pytest.fixture
def table(tmp_path: Path) -> str:
    return table_of(tmp_path)


def table_of(place: Path) -> str:
    return f"t_{hashlib.sha256(str(place).encode()).hexdigest()[:20]}"


@pytest.mark.slow
class TestSupabaseStore(StoreConformance):
    histories = 3  # each call is a request, and the functions are those of PostgresStore

    @pytest.fixture(autouse=True)
    def _project(self, project: Project) -> None:
        self.project = project

    def open_store(self, place: Path) -> SupabaseStore:
        return self.project.store(table_of(place))


def test_who_has_the_public_key_can_do_nothing(project: Project, table: str) -> None:
    project.store(table).save(Memory("m1", "secret"))
    with pytest.raises(StoreFailed, match="service role"):
        project.store(table, "anon-key")
    public = create_client(project.server.url, "anon-key")
    for name in ("memories", "deletions", "scopes", "files", "place", "set_aside"):
        with pytest.raises(Exception, match="42501"):
            public.table(f"{table}_{name}").select("*").execute()


def test_a_project_without_the_functions_is_told_how_to_make_them(project: Project) -> None:
    with pytest.raises(StoreFailed, match=r"SupabaseStore.sql\(table='missing'"):
        SupabaseStore(create_client(project.server.url, "service-key"), table="missing")


def test_a_wrong_key_and_a_project_that_is_not_there_are_told(project: Project) -> None:
    with pytest.raises(StoreFailed, match="Invalid API key"):
        SupabaseStore(create_client(project.server.url, "wrong-key"))
    away = f"http://127.0.0.1:{servers.free_port()}"
    with pytest.raises(StoreFailed, match="no connection"):
        SupabaseStore(create_client(away, "service-key"), timeout=0.2)
    with pytest.raises(InvalidType, match="create_client"):
        SupabaseStore("https://project.supabase.co")  # type: ignore[arg-type]


@pytest.mark.parametrize("table", ["", "A", "a b", 'a"b', "1", "x" * 41])
def test_a_table_that_is_no_plain_name_is_refused(table: str) -> None:
    if table:
        with pytest.raises(InvalidValue, match="name of the tables"):
            SupabaseStore.sql(table)
    else:
        assert '"public"."memories"' in SupabaseStore.sql(table)


def test_a_schema_of_a_newer_version_is_refused(project: Project, table: str) -> None:
    project.store(table)
    project.run(f"UPDATE {table}_place SET version = 99")
    with pytest.raises(StoreTooNew, match="version 99"):
        project.store(table)


def test_more_rows_than_one_answer_holds_are_all_read(
    project: Project, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retain.stores.supabase._MOST", 7)
    monkeypatch.setattr("retain.stores.postgres_driver.PAGE", 7)
    store = project.store(table)
    many = [Memory(f"m{n:02}", "x", created_at=1e9 + n, ttl_days=1) for n in range(30)]
    store.save_many(many)
    assert len(store.expired()) == 30
    store.save_many([memory.copy(ttl_days=None) for memory in many])
    assert [m.id for m in store.page(20)] == [m.id for m in reversed(many)][:20]
    assert len(store.page(100, order=Order.IMPORTANT)) == 30
    assert [m.id for m in store.peek([m.id for m in many])] == [m.id for m in many]
    assert len(list(store.changes(0).saved)) == 30
    for n in range(20):
        store.scoped(Scope(user=str(n))).save(Memory("m", "x"))
    assert len(store.scopes()) == 21
    assert store.check() == []


def test_a_batch_is_one_transaction_and_conflicts_are_told(project: Project, table: str) -> None:
    store = project.store(table)
    store.save(Memory("m1", "x"))
    with pytest.raises(Conflict, match="m1"):
        store.write([Memory(str(n), "y") for n in range(1500)], expect={"m1": 0})
    assert store.count() == 1
    saved = store.save_many([Memory(f"n{n}", f"text {n}") for n in range(1500)])
    assert len(saved) == 1500
    assert store.count() == 1501


def test_the_knowledge_view_keeps_entries_in_its_own_tables(project: Project) -> None:
    project.run(SupabaseStore.sql("knowledge"))
    client = create_client(project.server.url, "service-key")
    knowledge = SupabaseKnowledgeStore(client)
    id = knowledge.save(KnowledgeEntry(content="Likes tea", category="taste", importance=0.9))
    assert [entry.id for entry in knowledge.query(category="taste", min_importance=0.5)] == [id]
    with KnowledgeMemory(storage_dir=None, store=SupabaseKnowledgeStore(client)) as memory:
        receipt = memory.remember("The deadline is 1 March", persistent=True)
        assert memory.recall("deadline")[0].memory.id == receipt.id
    assert knowledge.count() == 2
    assert knowledge.delete(id)
