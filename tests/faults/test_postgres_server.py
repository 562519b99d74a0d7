"""A PostgreSQL server that is killed, cut off, locked, silent, full, crowded or a standby."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import servers
from faults.proxy import TO_CLIENT, TO_SERVER, Proxy
from faults.workers import Child, die
from retain import (
    AgentMemory,
    Memory,
    PostgresStore,
    RetainError,
    Scope,
    StoreBusy,
    StoreFailed,
)
from retain.engine import Engine
from retain.stores.postgres_files import PostgresFiles

pytestmark = pytest.mark.slow  # a server is started, killed, frozen

Say = Callable[[Any], None]


def new_schema() -> str:
    return f"f_{uuid.uuid4().hex[:20]}"


@pytest.fixture(scope="module")
def _own_server() -> Iterator[servers.Postgres]:
    server = servers.Postgres(durable=True)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def server(_own_server: servers.Postgres) -> Iterator[servers.Postgres]:
    """A server that these tests may kill; it runs again for the next one."""
    yield _own_server
    if _own_server._process is None:
        _own_server.start()


@pytest.fixture(scope="module")
def database() -> str:
    """A database of the server that all tests share."""
    return servers.new_database()


@pytest.fixture
def as_owner(database: str) -> Iterator[psycopg.Connection[Any]]:
    """Another client of it."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


# -- killed --------------------------------------------------------------------------------


def remember_all(url: str, schema: str, writer: int, count: int) -> Callable[[Say], None]:
    """A writer: it tells the id of each memory once that was acknowledged, or the error."""

    def work(say: Say) -> None:
        with AgentMemory(PostgresStore(url, schema=schema, timeout=60)) as memory:
            for n in range(count):
                try:
                    say(["kept", n, memory.remember(f"note {n} of {writer}: Grüße 東京").id])
                except RetainError as error:
                    say(["failed", n, str(error)])

    return work


def kill_in_the_middle(server: servers.Postgres, count: int, kills: int) -> None:
    schema = new_schema()
    PostgresStore(server.url, schema=schema).close()
    writers = [Child(remember_all(server.url, schema, writer, count)) for writer in range(4)]
    for kill in range(1, kills + 1):
        for writer in writers:
            writer.listen(60, enough=count * kill // (kills + 1))
        server.kill()
        server.start()
    assert [writer.wait() for writer in writers] == [0] * 4
    with PostgresStore(server.url, schema=schema) as store:
        there = {memory.id: memory.content for memory in store.list_all()}
        for number, writer in enumerate(writers):
            kept = {id: n for outcome, n, id in writer.said if outcome == "kept"}
            assert len(kept) == count, writer.said  # each was tried again until it was done
            assert all(there[id].startswith(f"note {n} of {number}:") for id, n in kept.items())
        assert len(there) == len(set(there.values())) == 4 * count
        assert {memory.id for memory in store.changes(0).saved} == there.keys()
        assert store.check() == []


def test_a_server_killed_while_writers_remember_loses_and_doubles_nothing(
    server: servers.Postgres,
) -> None:
    kill_in_the_middle(server, count=40, kills=1)


def test_a_server_killed_again_and_again_loses_and_doubles_nothing(
    server: servers.Postgres,
) -> None:
    kill_in_the_middle(server, count=500, kills=4)


def test_a_server_that_stays_away_is_one_clear_error_and_the_store_recovers(
    server: servers.Postgres,
) -> None:
    with PostgresStore(server.url, schema=new_schema(), timeout=0.4) as store:
        store.save(Memory("m1", "x"))
        store.get("m1")
        server.kill()
        for call in (
            lambda: store.save(Memory("m2", "x")),
            lambda: store.delete("m1"),
            store.list_all,
            store.count,
            lambda: store.changes(0),
            store.check,
            store.scopes,
            lambda: store.forget_scope(Scope()),
        ):
            began = time.monotonic()
            with pytest.raises(StoreFailed, match=r"no connection within|connection was lost"):
                call()
            assert time.monotonic() - began < 20
        server.start()
        store.driver.timeout = 60  # the machine may be busy
        store.save(Memory("m2", "x"))
        assert {m.id for m in store.list_all()} == {"m1", "m2"}
        assert store.peek(["m1"])[0].access_count == 1  # it waited for a write that was done


def test_a_store_recovers_soon_after_a_server_that_was_away_for_long(
    server: servers.Postgres,
) -> None:
    """However long nobody could connect, the pauses between attempts don't grow with it."""
    with PostgresStore(server.url, schema=new_schema(), timeout=30) as store:
        store.save(Memory("m1", "x"))
        server.kill()
        failed = []

        def save() -> None:
            try:
                store.save(Memory("m2", "x"))
            except StoreFailed as error:
                failed.append(error)

        saving = threading.Thread(target=save)
        saving.start()
        time.sleep(8)
        server.start()
        began = time.monotonic()
        saving.join()
        assert not failed
        assert time.monotonic() - began < 6
        assert store.count() == 2


def test_a_server_restarted_between_calls_is_noticed_by_none_of_them(
    server: servers.Postgres,
) -> None:
    with PostgresStore(server.url, schema=new_schema()) as store:
        engine = Engine(store)
        for round in range(2):
            engine.remember(Memory(f"m{round}", "a zebra"))
            server.kill()
            server.start()
            assert len(engine.recall("zebra")) == round + 1
            assert store.delete("nobody") is False


def test_closing_while_the_server_is_away_says_so_and_closes(server: servers.Postgres) -> None:
    store = PostgresStore(server.url, schema=new_schema(), timeout=0.3)
    store.save(Memory("m1", "x"))
    store.get("m1")
    server.kill()
    with pytest.raises(StoreFailed):
        store.close()
    assert store.driver.closed
    store.close()


def test_opening_where_no_server_is_says_so() -> None:
    with pytest.raises(StoreFailed, match=r"no connection within 0\.3 s.*refused"):
        PostgresStore(f"postgresql://ann@127.0.0.1:{servers.free_port()}/x", timeout=0.3)


@pytest.mark.parametrize(
    ("user", "name", "told"),
    [("nobody_known", "", "check the role"), ("", "no_such_database", "make the database")],
    ids=["role", "database"],
)
def test_what_waiting_cannot_help_is_told_at_once(
    server: servers.Postgres, user: str, name: str, told: str
) -> None:
    url = f"postgresql://{user or 'postgres'}@127.0.0.1:{server.port}/{name or 'postgres'}"
    began = time.monotonic()
    with pytest.raises(StoreFailed, match=told):
        PostgresStore(url, timeout=60)
    assert time.monotonic() - began < 30


# -- silent --------------------------------------------------------------------------------


def test_a_server_that_does_not_answer_is_waited_for_no_longer_than_the_time_out(
    server: servers.Postgres,
) -> None:
    with PostgresStore(server.url, schema=new_schema(), timeout=0.4) as store:
        store.save(Memory("m1", "x"))
        server.freeze()
        try:
            for call in (lambda: store.save(Memory("m2", "x")), store.list_all):
                began = time.monotonic()
                with pytest.raises(StoreFailed):
                    call()
                assert time.monotonic() - began < 30
        finally:
            server.freeze(False)
        store.driver.timeout = 60
        store.save(Memory("m2", "x"))  # the first one may have been done, too
        assert sorted(m.id for m in store.list_all()) == ["m1", "m2"]
        assert store.check() == []


def test_a_statement_that_takes_longer_than_the_time_out_is_waited_for(
    database: str, as_owner: psycopg.Connection[Any]
) -> None:
    """The time-out is for servers that hang and locks that others hold, not for long work."""
    schema = new_schema()
    with PostgresStore(database, schema=schema, timeout=0.3) as store:
        store.save(Memory("m1", "x"))
        as_owner.execute(
            f"CREATE FUNCTION {schema}.slow() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN PERFORM pg_sleep(1.5); RETURN OLD; END'"
        )
        as_owner.execute(
            f"CREATE TRIGGER slow BEFORE DELETE ON {schema}.memories"
            f" FOR EACH ROW EXECUTE FUNCTION {schema}.slow()"
        )
        assert store.delete("m1")
        assert store.count() == 0


# -- cut off -------------------------------------------------------------------------------


class Cut:
    """A store of one connection behind a proxy."""

    def __init__(self, proxy: Proxy, url: str) -> None:
        self.proxy = proxy
        parts = conninfo_to_dict(url)
        url = url.replace(f":{parts['port']}/", f":{proxy.port}/")
        self.schema = new_schema()
        self.store = PostgresStore(url, schema=self.schema, connections=1, tell=False)
        self.memory = AgentMemory(self.store)
        self.plain = PostgresStore(
            url.replace(f":{proxy.port}/", f":{parts['port']}/"), schema=self.schema, tell=False
        )

    def bytes_of(self, call: Callable[[], Any]) -> dict[str, int]:
        self.store.count()  # over the connection that is there
        before = dict(self.proxy.passed)
        call()
        return {way: self.proxy.passed[way] - before[way] for way in before}

    def at_each(
        self,
        prepare: Callable[[], Any],
        call: Callable[[Any], Any],
        verify: Callable[[Any, Any], None],
        steps: dict[str, int],
    ) -> None:
        """``verify`` what ``call`` gave or raised, cut after so many bytes of either way.

        A step of 1 is every byte.
        """
        given = prepare()
        sizes = self.bytes_of(lambda: call(given))
        for way, step in steps.items():
            for point in [*range(0, sizes[way], step), sizes[way] - 1]:
                given = prepare()
                self.store.count()
                cuts = self.proxy.cuts
                self.proxy.cut_after(point, way)
                try:
                    outcome = call(given)
                except StoreFailed as error:
                    outcome = error
                verify(given, outcome)
                # Numbers are not always of the same length, and the end is not always reached.
                near_the_end = point > sizes[way] * 0.98 - 16
                assert self.proxy.cuts == cuts + 1 or (self.proxy.spare() and near_the_end)
        assert self.plain.check() == []


@pytest.fixture
def cut(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cut]:
    monkeypatch.setattr("retain.stores.postgres._PAUSE", 0.002)
    with Proxy(int(conninfo_to_dict(database)["port"])) as proxy:
        cut = Cut(proxy, database)
        yield cut
        cut.plain.close()
        cut.store.close()


MANY = {TO_SERVER: 17, TO_CLIENT: 7}
EACH = {TO_SERVER: 1, TO_CLIENT: 1}
POINTS = pytest.mark.parametrize(
    "steps",
    [
        pytest.param(MANY, id="many bytes"),
        pytest.param(EACH, id="each byte", marks=pytest.mark.thorough),
    ],
)


@POINTS
def test_a_memory_whose_connection_is_cut_is_there_once(cut: Cut, steps: dict[str, int]) -> None:
    remembered: list[str] = []

    def verify(text: str, outcome: Any) -> None:
        assert isinstance(outcome, Memory), outcome
        remembered.append(outcome.id)
        there = cut.plain.list_all()
        assert sorted(m.id for m in there) == sorted(remembered)
        assert there[0].revision == outcome.revision == cut.plain.revision

    def prepare() -> str:
        cut.plain.forget_scope(Scope())
        remembered.clear()
        return "a note: Grüße 東京"

    cut.at_each(prepare, cut.memory.remember, verify, steps)


@POINTS
def test_a_fact_whose_connection_is_cut_is_no_duplicate_of_itself(
    cut: Cut, steps: dict[str, int]
) -> None:
    numbers = iter(range(10**9))

    def prepare() -> Memory:
        number = next(numbers)
        return Memory(f"m{number}", f"the fact {number:06d}", persistent=True)

    def verify(fact: Memory, written: Any) -> None:
        assert [m.id for m in written.saved] == [fact.id]
        assert written.duplicates == frozenset()
        assert [m.id for m in cut.plain.list_all() if m.content == fact.content] == [fact.id]

    cut.at_each(prepare, lambda fact: cut.store.write([fact], unique=True), verify, steps)


@POINTS
def test_a_batch_whose_connection_is_cut_is_there_once(cut: Cut, steps: dict[str, int]) -> None:
    texts = [f"note {n}: 東京" for n in range(130)]

    def verify(_: Any, saved: Any) -> None:
        assert sorted(m.id for m in cut.plain.list_all()) == sorted(m.id for m in saved)
        assert {m.id: m.revision for m in cut.plain.list_all()} == {m.id: m.revision for m in saved}

    def prepare() -> None:
        cut.plain.forget_scope(Scope())

    wide = {TO_SERVER: steps[TO_SERVER] * 25, TO_CLIENT: steps[TO_CLIENT] * 9}
    cut.at_each(prepare, lambda _: cut.memory.remember_many(texts), verify, wide)


@POINTS
def test_an_update_whose_connection_is_cut_is_done_once_and_no_conflict_with_itself(
    cut: Cut, steps: dict[str, int]
) -> None:
    def verify(memory: Memory, outcome: Any) -> None:
        assert isinstance(outcome, Memory), outcome
        [there] = cut.plain.peek([memory.id])
        assert (there.content, there.revision) == ("new text", outcome.revision)
        assert there.revision == cut.plain.revision > memory.revision

    def prepare() -> Memory:
        [memory] = cut.plain.save_many([Memory("m1", "old text")])
        return memory

    cut.at_each(prepare, lambda m: cut.memory.update(m.id, content="new text"), verify, steps)


@POINTS
def test_a_delete_whose_connection_is_cut_is_done_and_told(cut: Cut, steps: dict[str, int]) -> None:
    def verify(ids: list[str], count: Any) -> None:
        assert count == 2
        assert [m.id for m in cut.plain.list_all()] == ["other"]

    def prepare() -> list[str]:
        cut.plain.save_many([Memory(id, "x") for id in ("m1", "m2", "other")])
        return ["m1", "m2", "not there"]

    cut.at_each(prepare, cut.memory.engine.forget_many, verify, steps)


@POINTS
def test_a_write_of_everything_whose_connection_is_cut_tells_what_it_did(
    cut: Cut, steps: dict[str, int]
) -> None:
    numbers = iter(range(10**9))

    def prepare() -> int:
        n = next(numbers)
        fact = Memory(f"fact{n}", f"fact {n}", persistent=True)
        cut.plain.save_many([Memory(f"old{n}", "x"), Memory(f"seen{n}", "x"), fact])
        cut.store.get(f"seen{n}")
        return n

    def call(n: int) -> Any:
        new = [Memory(f"new{n}", "東京"), Memory(f"equal{n}", f"fact {n}", persistent=True)]
        return cut.store.write(new, [f"old{n}", "none"], unique=True, expect={f"new{n}": 0})

    def verify(n: int, written: Any) -> None:
        assert written.deleted == [f"old{n}"]
        assert [m.id for m in written.saved] == [f"new{n}", f"fact{n}"]
        assert written.duplicates == {f"fact{n}"}
        assert written.saved[0].revision == cut.plain.revision
        assert cut.plain.peek([f"seen{n}"])[0].access_count == 1
        changes = cut.plain.changes(written.saved[0].revision - 2)
        assert (changes.deleted, [m.id for m in changes.saved]) == ([f"old{n}"], [f"new{n}"])

    cut.at_each(prepare, call, verify, steps)


@POINTS
def test_what_was_deleted_before_is_not_told_as_deleted_now(
    cut: Cut, steps: dict[str, int]
) -> None:
    cut.plain.save(Memory("m1", "x"))
    assert cut.plain.delete("m1")

    def verify(_: Any, deleted: Any) -> None:
        assert deleted is False

    cut.at_each(lambda: None, lambda _: cut.memory.forget("m1"), verify, steps)


@POINTS
def test_a_scope_whose_connection_is_cut_is_forgotten_or_that_is_not_known(
    cut: Cut, steps: dict[str, int]
) -> None:
    def verify(_: Any, outcome: Any) -> None:
        if isinstance(outcome, int):
            assert outcome == 3
            assert cut.plain.count() == 0
        else:
            assert "whether it was done is not known" in str(outcome)
            assert cut.plain.count() in (0, 3)
        assert cut.plain.scoped(Scope(user="ann")).count() == 1

    def prepare() -> None:
        cut.plain.save_many([Memory(f"m{n}", "x") for n in range(3)])
        cut.plain.scoped(Scope(user="ann")).save(Memory("m1", "x"))

    cut.at_each(prepare, lambda _: cut.memory.engine.forget_all(), verify, steps)


@POINTS
def test_retrievals_written_with_a_cut_connection_are_counted_once(
    cut: Cut, steps: dict[str, int]
) -> None:
    def verify(_: Any, outcome: Any) -> None:
        assert cut.store.peek(["seen"])[0].access_count == 1

    def prepare() -> None:
        cut.plain.delete("seen")
        cut.plain.save(Memory("seen", "x"))
        cut.store.get("seen")

    cut.at_each(prepare, lambda _: cut.store.save(Memory("m1", "x")), verify, steps)


def test_reads_go_on_over_a_new_connection(cut: Cut) -> None:
    cut.plain.save_many([Memory(str(n), "x" * 100) for n in range(3000)])
    expected = cut.plain.list_all()
    for point in range(0, 400_000, 80_000):
        cut.proxy.cut_after(point, TO_CLIENT)
        assert cut.store.list_all() == expected
    cut.proxy.cut_all()
    assert cut.store.count() == 3000


def test_every_connection_ended_by_an_administrator_is_made_again(
    database: str, as_owner: psycopg.Connection[Any]
) -> None:
    with PostgresStore(database, schema=new_schema(), connections=4) as store:
        for round in range(3):
            threads = [
                threading.Thread(target=store.save, args=(Memory(f"{round}.{n}", "x"),))
                for n in range(8)
            ]
            for thread in threads:
                thread.start()
            as_owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            for thread in threads:
                thread.join()
        assert len(store.list_all()) == 24
        assert store.check() == []


# -- locked --------------------------------------------------------------------------------

WRITES: dict[str, Callable[[PostgresStore], Any]] = {
    "save": lambda store: store.save(Memory("m2", "x")),
    "batch": lambda store: store.save_many(Memory(f"b{n}", "x") for n in range(150)),
    "expect": lambda store: store.write([Memory("m3", "y")], expect={"m3": 0}),
    "delete": lambda store: store.delete("m1"),
    "forget_scope": lambda store: store.forget_scope(Scope()),
}
READS: dict[str, Callable[[PostgresStore], Any]] = {
    "list": lambda store: store.list_all(),
    "get": lambda store: store.get("m1"),
    "count": lambda store: store.count(),
    "changes": lambda store: list(store.changes(0).saved),
    "scopes": lambda store: store.scopes(),
    "check": lambda store: store.check(),
}


def contents(url: str, schema: str) -> list[tuple[str, int]]:
    with PostgresStore(url, schema=schema, tell=False) as store:
        return [(memory.id, memory.revision) for memory in store.list_all()]


@pytest.mark.parametrize("name", WRITES)
def test_a_scope_that_another_client_has_locked_is_busy_and_nothing_changes(
    name: str, database: str, as_owner: psycopg.Connection[Any]
) -> None:
    schema = new_schema()
    with PostgresStore(database, schema=schema, timeout=0.2) as store:
        store.save(Memory("m1", "x"))
        store.scoped(Scope(user="ann")).save(Memory("m1", "x"))
        before = contents(database, schema)
        with as_owner.transaction():
            as_owner.execute(f"SELECT * FROM {schema}.scopes WHERE key LIKE '[null%' FOR UPDATE")
            with pytest.raises(StoreBusy, match="another client"):
                WRITES[name](store)
            assert store.list_all()  # readers don't wait
            store.scoped(Scope(user="ann")).save(Memory("m2", "x"))  # nor do other scopes
            assert contents(database, schema) == before
        store.driver.timeout = 60
        WRITES[name](store)
        assert contents(database, schema) != before


@pytest.mark.parametrize("name", WRITES | READS)
def test_a_table_that_another_client_has_locked_is_busy_and_nothing_changes(
    name: str, database: str, as_owner: psycopg.Connection[Any]
) -> None:
    schema = new_schema()
    call = (WRITES | READS)[name]
    with PostgresStore(database, schema=schema, timeout=0.2) as store:
        store.save(Memory("m1", "x"))
        before = contents(database, schema)
        with as_owner.transaction():
            as_owner.execute(f"LOCK TABLE {schema}.memories IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StoreBusy, match="another client"):
                call(store)
        assert contents(database, schema) == before
        store.driver.timeout = 60
        call(store)


def test_a_store_whose_tables_are_locked_is_not_waited_for_longer_when_it_is_opened(
    database: str, as_owner: psycopg.Connection[Any]
) -> None:
    schema = new_schema()
    PostgresStore(database, schema=schema).close()
    with as_owner.transaction():
        as_owner.execute(f"LOCK TABLE {schema}.place IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreBusy):
            PostgresStore(database, schema=schema, timeout=0.2)


def wait_for_a_lock(database: str, seconds: float, timeout: float) -> tuple[float, Any]:
    """How long a write took whose scope was locked for so long, and what became of it."""
    schema = new_schema()
    with PostgresStore(database, schema=schema, timeout=timeout) as store:
        store.save(Memory("m1", "x"))
        taken = threading.Event()

        def hold() -> None:
            with psycopg.connect(database) as other:
                other.execute(f"SELECT * FROM {schema}.scopes FOR UPDATE")
                taken.set()
                time.sleep(seconds)

        holding = threading.Thread(target=hold)
        holding.start()
        taken.wait()
        began = time.monotonic()
        try:
            store.save(Memory("m2", "x"))
            outcome: Any = store.count()
        except StoreBusy as error:
            outcome = error
        took = time.monotonic() - began
        holding.join()
    return took, outcome


def test_a_write_is_done_once_the_lock_is_released(database: str) -> None:
    assert wait_for_a_lock(database, 0.5, timeout=60)[1] == 2


@pytest.mark.thorough
def test_a_lock_held_for_thirty_seconds_is_waited_for_as_long_as_was_said(database: str) -> None:
    took, outcome = wait_for_a_lock(database, 30, timeout=60)
    assert outcome == 2
    assert 29 < took < 60
    took, outcome = wait_for_a_lock(database, 30, timeout=5)
    assert isinstance(outcome, StoreBusy)
    assert 4 < took < 29


# -- opened by many at once ----------------------------------------------------------------


def open_at_once(database: str, schema: str) -> None:
    def work(say: Say) -> None:
        with PostgresStore(database, schema=schema) as store:
            store.save(Memory(None, "x"))
            say(store.driver.identity)

    children = [Child(work) for _ in range(4)]
    assert [child.wait() for child in children] == [0] * 4
    identities = {child.said[0] for child in children}
    assert len(identities) == 1
    with PostgresStore(database, schema=schema) as store:
        assert {store.driver.identity} == identities
        assert store.count() == 4


@pytest.mark.parametrize("times", [20])
def test_four_processes_that_open_a_new_store_at_once_make_one(times: int) -> None:
    database = servers.new_database()
    for _ in range(times):
        open_at_once(database, new_schema())


# -- crowded, read-only, full --------------------------------------------------------------


def test_too_many_connections_are_told_as_such_and_waited_for(database: str) -> None:
    role, schema = f"few_{uuid.uuid4().hex[:12]}", new_schema()
    parts = conninfo_to_dict(database)
    url = f"postgresql://{role}:x@{parts['host']}:{parts['port']}/{parts['dbname']}"
    with psycopg.connect(servers.postgres_url(), autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x' CONNECTION LIMIT 1")
        admin.execute(f"GRANT CREATE ON DATABASE {parts['dbname']} TO {role}")
        admin.execute(f"GRANT {role} TO retain_tests")
    with PostgresStore(url, schema=schema, tell=False) as store:
        store.save(Memory("m1", "x"))
        with pytest.raises(StoreBusy, match="too many connections"):
            PostgresStore(url, schema=schema, timeout=0.3)
    with psycopg.connect(url) as taken:
        freed = threading.Timer(0.5, taken.close)
        freed.start()
        with PostgresStore(url, schema=schema, timeout=60, tell=False) as store:
            assert store.count() == 1
        freed.join()


def test_eight_threads_share_two_connections(
    database: str, as_owner: psycopg.Connection[Any]
) -> None:
    schema = new_schema()
    with PostgresStore(database, schema=schema, connections=2, tell=False) as store:
        memory = AgentMemory(store)
        found: list[bool] = []

        def work(name: int) -> None:
            for n in range(25):
                memory.remember(f"note {n} of {name}")
                found.append(bool(memory.recall(f"note {n} of {name}", k=1)))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        most = 0
        while any(thread.is_alive() for thread in threads):
            [(now,)] = as_owner.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = 'retain'"
            )
            most = max(most, now)
        assert found == [True] * 200
        assert 1 <= most <= 2
        assert store.count() == 200


def test_a_standby_is_read_and_its_refusal_to_be_written_is_clear(database: str) -> None:
    schema = new_schema()
    read_only = f"{database}?options=-c%20default_transaction_read_only%3Don"
    with pytest.raises(StoreFailed, match="name the primary"):
        PostgresStore(read_only, schema=schema)
    with PostgresStore(database, schema=schema) as store:
        store.save(Memory("m1", "x"))
        before = contents(database, schema)
    with PostgresStore(read_only, schema=schema, timeout=0.3) as store:
        for read in READS.values():
            assert read(store) in ([], 1) or read(store)
        engine = Engine(store)
        assert [r.memory.id for r in engine.recall("x")] == ["m1"]
        for write in WRITES.values():
            with pytest.raises(StoreFailed, match="name the primary"):
                write(store)
        with pytest.raises(StoreFailed, match="name the primary"):
            store.close()  # the count of that retrieval can't be written
    assert contents(database, schema) == before


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 12 MB that the server may write to."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    folder = Path(tempfile.mkdtemp(prefix="retain-full-", dir="/tmp"))
    options = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)]
    if subprocess.run(options, capture_output=True, check=False).returncode:
        folder.rmdir()
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
    folder.rmdir()


def test_a_full_disk_is_told_with_nothing_changed_and_room_helps(
    server: servers.Postgres, small_disk: Path
) -> None:
    owner = server.folder.stat()
    os.chown(small_disk, owner.st_uid, owner.st_gid)
    schema, space = new_schema(), f"s_{uuid.uuid4().hex[:12]}"
    big = [Memory(f"big{n}", os.urandom(30_000).hex()) for n in range(500)]
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(f"CREATE TABLESPACE {space} LOCATION '{small_disk}'")
        with PostgresStore(server.url, schema=schema) as store:
            admin.execute(f"ALTER TABLE {schema}.memories SET TABLESPACE {space}")
            store.save(Memory("m1", "x"))
            before = contents(server.url, schema)
            with pytest.raises(StoreFailed, match="its disk is full: make room"):
                store.save_many(big)
            assert contents(server.url, schema) == before
            with pytest.raises(StoreFailed, match="its disk is full: make room"):
                store.save(big[0])
            assert contents(server.url, schema) == before
            subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
            store.save_many(big)
            assert store.count() == 501
            assert store.check() == []
        admin.execute(f"DROP SCHEMA {schema} CASCADE")
        admin.execute(f"DROP TABLESPACE {space}")


# -- killed clients, forks -----------------------------------------------------------------


def test_a_process_killed_in_the_middle_of_a_batch_leaves_nothing_of_it(database: str) -> None:
    schema = new_schema()
    with PostgresStore(database, schema=schema) as store:
        store.save(Memory("m1", "x"))

        def work(say: Say) -> None:
            def memories() -> Iterator[Memory]:
                for n in range(5000):
                    yield Memory(f"b{n}", "y" * 1000)

            with PostgresStore(database, schema=schema) as mine:
                batch = list(memories())
                say("begins")
                mine.save_many(batch)
                say("done")

        for delay in (0.0, 0.02, 0.06, 0.15):
            child = Child(work)
            child.listen(60, enough=1)
            time.sleep(delay)
            said = child.kill()
            store.driver.timeout = 60
            store.save(Memory("m2", "x"))  # nobody holds the scope's lock any more
            there = store.count()
            assert there == 5002 or (there == 2 and "done" not in said)
            store.delete_many(f"b{n}" for n in range(5000))
        assert store.check() == []


def test_a_process_killed_while_it_writes_a_file_of_the_index_leaves_none(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retain.stores.postgres_files._PART", 10)
    schema = new_schema()
    with PostgresStore(database, schema=schema) as store:
        engine = Engine(store)
        engine.remember_many(Memory(f"m{n}", f"text {n}") for n in range(20))
        files = store.driver.index_files(Scope())

        def work(say: Say) -> None:
            with PostgresStore(database, schema=schema) as mine:
                monkeypatch.setattr(
                    "retain.stores.postgres_files.PostgresFiles._call", dies_at_last(say)
                )
                mine.driver.index_files(Scope()).write("half", [bytes(35)])

        child = Child(work)
        assert child.wait() < 0
        assert child.said == [3, 2, 1]
        assert "half" not in files.names()
        files.write("half", [b"a whole one now"])
        assert files.open("half") == b"a whole one now"
        assert [r.memory.id for r in engine.recall("text 7", k=1)] == ["m7"]


def dies_at_last(say: Say) -> Callable[..., Any]:
    """As ``PostgresFiles._call``, in a process that is killed before it writes part 0."""
    call = PostgresFiles._call

    def called(self: PostgresFiles, function: str, **arguments: Any) -> Any:
        if function == "put_part":
            if arguments["part"] == 0:
                die(None)
            say(arguments["part"])
        return call(self, function, **arguments)

    return called


def test_a_forked_child_and_its_parent_go_on_with_one_store(database: str) -> None:
    schema = new_schema()
    with PostgresStore(database, schema=schema) as store:
        memory = AgentMemory(store)
        memory.remember("from before the fork")
        memory.recall("fork")
        going = threading.Event()
        ended = threading.Event()

        def write() -> None:
            number = 0
            while not ended.is_set():
                memory.remember(f"by the parent: {number}")
                memory.recall("parent", k=3)
                number += 1
                going.set()

        threads = [threading.Thread(target=write) for _ in range(2)]
        for thread in threads:
            thread.start()
        going.wait()

        def work(say: Say) -> None:
            for n in range(5):
                say(memory.remember(f"by a child: {os.getpid()} {n}").id)
            assert memory.recall("before")
            if os.getpid() % 2:
                memory.close()

        children = []
        for _ in range(4):
            children.append(Child(work))
            time.sleep(0.02)
        codes = [child.wait() for child in children]
        ended.set()
        for thread in threads:
            thread.join()
        assert codes == [0] * 4
        ids = {memory.id for memory in store.list_all()}
        assert all(set(child.said) <= ids and len(child.said) == 5 for child in children)
        assert memory.remember("and the parent's connections still work").id
        assert store.check() == []


# -- a pooler between ----------------------------------------------------------------------


def use_all_of_it(store: PostgresStore) -> None:
    """Every operation, of which each may find another session of the server."""
    engine = Engine(store)
    engine.remember_many(Memory(f"m{n}", f"text number {n}") for n in range(600))
    engine.settle()
    assert [r.memory.id for r in engine.recall("number 77", k=1)] == ["m77"]
    assert engine.update("m1", content="changed").content == "changed"
    assert engine.forget("m2")
    assert not engine.forget("m2")
    fact = engine.remember(Memory("f1", "a fact", persistent=True))
    assert engine.remember(Memory("f2", "a fact", persistent=True)).id == fact.id
    assert store.count() == 600
    assert len(store.list_all()) == 600
    assert store.changes(0).revision == store.revision
    assert store.driver.index_files(Scope()).names()
    ann = store.scoped(Scope(user="ann"))
    ann.save(Memory("m1", "of Ann"))
    assert [m.content for m in ann.list_all()] == ["of Ann"]
    assert set(store.scopes()) == {Scope(), Scope(user="ann")}
    assert store.check() == []
    assert store.forget_scope(Scope()) == 600
    assert engine.recall("number") == []


def test_no_statement_needs_what_another_left_in_the_session(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresStore(database, schema=new_schema(), timeout=5) as store:
        driver = store.driver
        connection = driver._connection
        discarded = 0

        @contextmanager
        def anew(give_up: float) -> Iterator[Any]:
            nonlocal discarded
            with connection(give_up) as session:
                yield session
                session.execute("DISCARD ALL")
                discarded += 1

        monkeypatch.setattr(driver, "_connection", anew)
        use_all_of_it(store)
        assert discarded > 20


@pytest.fixture
def pooler(database: str, tmp_path: Path) -> Iterator[str]:
    """PgBouncer in transaction mode before the database: two sessions for everybody."""
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("there is no pgbouncer on the PATH")
    parts, port = conninfo_to_dict(database), servers.free_port()
    folder = Path(tempfile.mkdtemp(prefix="retain-pooler-", dir="/tmp"))
    (folder / "users").write_text('"retain_tests" "retain"\n')
    (folder / "ini").write_text(
        f"[databases]\n* = host={parts['host']} port={parts['port']}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = plain\nauth_file = {folder / 'users'}\npool_mode = transaction\n"
        "default_pool_size = 2\nserver_reset_query = DISCARD ALL\nserver_reset_query_always = 1\n"
    )
    command = [program, *(("-u", "nobody") if os.geteuid() == 0 else ()), str(folder / "ini")]
    for each in (folder, *folder.iterdir()):
        each.chmod(0o755)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"postgresql://retain_tests:retain@127.0.0.1:{port}/{parts['dbname']}"
    give_up = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(url).close()
            break
        except psycopg.OperationalError:
            assert process.poll() is None and time.monotonic() < give_up
            time.sleep(0.05)
    yield url
    process.terminate()
    process.wait()
    shutil.rmtree(folder)


def test_a_pooler_in_transaction_mode_may_be_between(pooler: str) -> None:
    with PostgresStore(pooler, schema=new_schema(), connections=4) as store:
        use_all_of_it(store)
        threads = [
            threading.Thread(target=store.save, args=(Memory(f"m{n}", "x"),)) for n in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.count() == 12
