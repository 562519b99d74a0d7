"""The store on a real PostgreSQL server, as the tasks of an event loop have it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import servers
from on_loop import carried
from retain import Conflict, Memory, PostgresStore, Scope, Store, StoreBusy, StoreFailed, awaiting
from retain.testing import StoreConformance


@pytest.fixture(scope="module")
def database() -> str:
    return servers.new_database()


def schema_of(place: Path) -> str:
    return f"t_{hashlib.sha256(str(place).encode()).hexdigest()[:20]}"


@pytest.mark.slow
class TestPostgresStoreOnALoop(StoreConformance):
    @pytest.fixture(autouse=True)
    def _database(self, database: str) -> None:
        self.url = database

    test_a_forked_child_works_and_leaves_the_parent_whole = None  # a child has no event loop

    @pytest.mark.slow
    def test_any_sequence_of_calls_agrees_with_a_dictionary(self, tmp_path: Path) -> None:
        super().test_any_sequence_of_calls_agrees_with_a_dictionary(tmp_path)

    def open_store(self, place: Path) -> Store:
        return carried(PostgresStore(self.url, schema=schema_of(place)))


@pytest.fixture
def store(database: str, tmp_path: Path) -> Iterator[PostgresStore]:
    with PostgresStore(database, schema=schema_of(tmp_path), timeout=3, connections=4) as store:
        yield store


def sessions(store: PostgresStore, name: str = "retain") -> int:
    """How many connections there are to the database under a name."""
    with psycopg.connect(store.driver._url, autocommit=True) as own:
        found = own.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
            " AND datname = current_database()",
            (name,),
        ).fetchone()
    assert found is not None
    return int(found[0])


def run(store: PostgresStore, *calls: Any) -> list[Any]:
    """The answers of calls that are made at the same time; errors in their place."""

    async def main() -> list[Any]:
        try:
            tasks = [awaiting.carried(call) for call in calls]
            return await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await awaiting.carried(store.driver.leave)

    return asyncio.run(main())


def test_tasks_share_a_pool_that_grows_no_larger_than_allowed(store: PostgresStore):
    store.save(Memory("m0", "x"))
    before = sessions(store)
    seen = []

    def save(number: int) -> None:
        store.save(Memory(f"m{number}", "x"))
        seen.append(len(store.driver._loops._pools))

    run(store, *(lambda number=number: save(number) for number in range(50)))
    assert store.count() == 50
    assert set(seen) == {1}
    assert sessions(store) <= before


def test_a_batch_goes_through_copy(store: PostgresStore):
    many = [Memory(f"m{number}", f"Nr {number} — 東京\0") for number in range(500)]
    [saved] = run(store, lambda: store.save_many(many))
    assert [memory.id for memory in saved] == [memory.id for memory in many]
    assert {memory.content for memory in store.list_all()} == {memory.content for memory in many}


def test_a_batch_is_refused_as_a_whole(store: PostgresStore):
    store.save(Memory("there", "x"))
    many = [Memory(f"m{number}", "x") for number in range(200)]
    [error] = run(store, lambda: store.write(many, expect={"there": 0}))
    assert isinstance(error, Conflict)
    assert store.count() == 1


def test_a_connection_that_was_cut_is_made_again(store: PostgresStore):
    async def main() -> None:
        await awaiting.carried(store.save, Memory("m1", "x"))
        with psycopg.connect(servers.postgres_url(), autocommit=True) as admin:
            name = psycopg.conninfo.conninfo_to_dict(store.driver._url)["dbname"]
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = %s AND application_name = 'retain'",
                (name,),
            )
        await awaiting.carried(store.save, Memory("m2", "x"))
        assert await awaiting.carried(store.count) == 2
        await awaiting.carried(store.driver.leave)

    asyncio.run(main())


def test_a_lock_that_others_hold_is_told_and_others_go_on_meanwhile(store: PostgresStore):
    store.save(Memory("m1", "x"))
    hers = store.scoped(Scope(user="ann"))
    hers.save(Memory("m1", "x"))
    schema = store.driver.schema
    with psycopg.connect(store.driver._url) as other:
        other.execute(f'SELECT 1 FROM "{schema}".scopes WHERE key = %s FOR UPDATE', (Scope().key,))
        busy, saved = run(
            store, lambda: store.save(Memory("m2", "x")), lambda: hers.save(Memory("m2", "x"))
        )
    assert isinstance(busy, StoreBusy)
    assert saved is None
    assert (store.count(), hers.count()) == (1, 2)


def test_a_server_that_is_gone_is_one_clear_error(tmp_path: Path):
    server = servers.Postgres()
    server.start()
    try:
        with PostgresStore(server.url, timeout=1) as store:
            server.kill()
            [error] = run(store, lambda: store.save(Memory("m1", "x")))
            assert isinstance(error, StoreFailed)
            server.start()
            assert run(store, lambda: store.save(Memory("m1", "x"))) == [None]
            assert store.count() == 1
    finally:
        server.stop()


def test_two_loops_have_pools_of_their_own(store: PostgresStore):
    first = run(store, lambda: store.save(Memory("m1", "x")))
    assert first == [None]
    assert run(store, store.count) == [1]
    assert len(store.driver._loops._pools) == 0
