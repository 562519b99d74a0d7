"""The Redis back end, beside what tests/backends/test_contract.py asks of every one."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import pytest
import redis

import servers
from retain import (
    InvalidType,
    InvalidValue,
    KnowledgeMemory,
    RedisKnowledgeBackend,
    StoreBusy,
    StoreFailed,
)


@pytest.fixture
def url() -> str:
    return servers.new_redis()


def test_the_blob_is_kept_under_prefix_and_key(url: str):
    RedisKnowledgeBackend("user-123", url).save_bytes(b"blob")
    RedisKnowledgeBackend("user-123", url, prefix="mine:").save_bytes(b"other")
    with redis.Redis.from_url(url) as client:
        assert sorted(client.keys()) == [b"mine:user-123", b"selectools:knowledge:user-123"]
        assert client.get("selectools:knowledge:user-123") == b"blob"


@pytest.mark.parametrize("ttl", [86400, 0.5])
def test_every_save_sets_the_server_s_expiry(ttl: float, url: str):
    backend = RedisKnowledgeBackend("a", url, ttl=ttl)
    with redis.Redis.from_url(url) as client:
        for save in (
            lambda: backend.save_bytes(b"1"),
            lambda: backend.replace_bytes(b"1", b"2"),
        ):
            save()
            assert ttl * 1000 - 400 < client.pttl("selectools:knowledge:a") <= ttl * 1000
        RedisKnowledgeBackend("a", url).save_bytes(b"3")
        assert client.pttl("selectools:knowledge:a") == -1


def test_what_has_expired_is_as_if_it_had_never_been_saved(url: str):
    backend = RedisKnowledgeBackend("a", url, ttl=0.01)
    backend.save_bytes(b"1")
    give_up = time.monotonic() + 10
    while backend.load_bytes() is not None:
        assert time.monotonic() < give_up
    assert not backend.replace_bytes(b"1", b"2")
    assert backend.replace_bytes(None, b"2")


def test_a_password_that_breaks_the_url_is_in_no_message():
    with pytest.raises(InvalidValue, match="password") as refusal:
        RedisKnowledgeBackend("a", "redis://ann:s3cr3t/x@localhost:6379/0")
    assert "s3cr3t" not in str(refusal.value)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"ttl": 0}, InvalidValue),
        ({"ttl": -1}, InvalidValue),
        ({"ttl": float("nan")}, InvalidValue),
        ({"ttl": True}, InvalidType),
        ({"ttl": "60"}, InvalidType),
        ({"url": "localhost:6379"}, InvalidValue),
        ({"url": "redis://localhost:6379/0?nonsense=1"}, InvalidValue),
        ({"url": 5}, InvalidType),
        ({"prefix": None}, InvalidType),
    ],
    ids=str,
)
def test_a_wrong_argument_is_refused_by_name(options: dict[str, Any], error: type[Exception]):
    with pytest.raises(error, match=next(iter(options))):
        RedisKnowledgeBackend("a", **options)


def test_a_url_that_asks_for_text_gets_bytes_all_the_same(url: str):
    backend = RedisKnowledgeBackend("a", f"{url}?decode_responses=true")
    assert backend.replace_bytes(None, b"\xff\x00")
    assert backend.load_bytes() == b"\xff\x00"


def test_a_value_of_another_kind_is_told(url: str):
    with redis.Redis.from_url(url) as client:
        client.lpush("selectools:knowledge:a", "x")
    backend = RedisKnowledgeBackend("a", url)
    for call in (backend.load_bytes, lambda: backend.replace_bytes(None, b"1")):
        with pytest.raises(StoreFailed, match=r"refused 'selectools:knowledge:a'.*WRONGTYPE"):
            call()


def test_a_blob_beyond_what_redis_holds_is_refused_with_a_way_out(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("retain.backends.redis.LARGEST", 1000)
    backend = RedisKnowledgeBackend("a", url)
    for call in (backend.save_bytes, lambda data: backend.replace_bytes(None, data)):
        with pytest.raises(StoreFailed, match=r"1,001 bytes.* up to 1,000: .*bucket"):
            call(b"x" * 1001)
    assert backend.load_bytes() is None


def test_a_server_that_is_away_at_first_is_told_without_a_password_and_nothing_is_made(
    tmp_path: Path,
):
    backend = RedisKnowledgeBackend(
        "a", f"redis://:secret@127.0.0.1:{servers.free_port()}/0", timeout=1
    )
    with pytest.raises(StoreFailed, match="can't be reached") as raised:
        KnowledgeMemory(tmp_path / "place", backend=backend)
    assert "secret" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_answer_is_told_as_busy(url: str):
    with redis.Redis.from_url(url) as client:
        backend = RedisKnowledgeBackend("a", url, timeout=0.2)
        client.execute_command("CLIENT", "PAUSE", "800", "ALL")
        try:
            with pytest.raises(StoreBusy, match="in time"):
                backend.load_bytes()
        finally:
            client.execute_command("CLIENT", "UNPAUSE")


def test_a_server_that_dies_between_two_saves_costs_no_memory(tmp_path: Path):
    server = servers.Redis("valkey", durable=True)
    server.start()
    try:
        backend = RedisKnowledgeBackend(uuid.uuid4().hex, server.url, timeout=2)
        with KnowledgeMemory(tmp_path / "one", backend=backend, embedder=None) as memory:
            memory.remember("one")
            server.kill()
            with pytest.raises(StoreFailed, match=r"can't be reached.*is safe in"):
                memory.remember("two")
            server.start()
            memory.remember("three")
        with KnowledgeMemory(tmp_path / "other", backend=backend, embedder=None) as memory:
            found = sorted(kept.content for kept in memory.engine.store.list_all())
            assert found == ["one", "three", "two"]
    finally:
        server.stop()
