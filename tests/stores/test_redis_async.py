"""The store on a real Redis server, as the tasks of an event loop have it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import servers
from on_loop import carried
from retain import Memory, Scope, Store, StoreFailed, awaiting
from retain.stores.redis import RedisStore
from retain.stores.redis_async import CONNECTIONS
from retain.testing import StoreConformance


def prefix_of(place: Path) -> str:
    return f"t:{hashlib.sha256(str(place).encode()).hexdigest()[:20]}"


@pytest.mark.slow
class TestRedisStoreOnALoop(StoreConformance):
    test_a_forked_child_works_and_leaves_the_parent_whole = None  # a child has no event loop

    @pytest.mark.slow
    def test_any_sequence_of_calls_agrees_with_a_dictionary(self, tmp_path: Path) -> None:
        super().test_any_sequence_of_calls_agrees_with_a_dictionary(tmp_path)

    def open_store(self, place: Path) -> Store:
        return carried(RedisStore(servers.redis_url(), prefix=prefix_of(place)))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RedisStore]:
    with RedisStore(servers.redis_url(), prefix=prefix_of(tmp_path)) as store:
        yield store


def run(store: RedisStore, *calls: Any) -> list[Any]:
    """The answers of calls that are made at the same time; errors in their place."""

    async def main() -> list[Any]:
        try:
            tasks = [awaiting.carried(call) for call in calls]
            return await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await awaiting.carried(store.driver.leave)

    return asyncio.run(main())


def test_tasks_share_a_pool_that_grows_no_larger_than_allowed(store: RedisStore):
    with redis.Redis.from_url(servers.redis_url()) as client:
        before = client.info("stats")["total_connections_received"]
        saves = [
            lambda number=number: store.save(Memory(f"m{number}", "x")) for number in range(100)
        ]
        assert run(store, *saves) == [None] * 100
        made = client.info("stats")["total_connections_received"] - before
    assert store.count() == 100
    assert 1 <= made <= CONNECTIONS


def test_a_server_that_has_lost_its_scripts_is_given_them_again(store: RedisStore):
    with redis.Redis.from_url(servers.redis_url()) as client:
        client.script_flush()
    assert run(store, lambda: store.save(Memory("m1", "x")), lambda: store.count()) is not None
    assert store.count() == 1


def test_a_client_of_the_users_own_is_for_threads():
    with redis.Redis.from_url(servers.redis_url()) as client:
        store = RedisStore(client=client)
        assert not store.driver.awaits
        store.close()


def test_a_server_that_is_gone_is_one_clear_error():
    server = servers.Redis()
    server.start()
    try:
        with RedisStore(server.url, timeout=1) as store:
            hers = store.scoped(Scope(user="東京"))
            server.kill()
            [error] = run(store, lambda: hers.save(Memory("m1", "x")))
            assert isinstance(error, StoreFailed)
            server.start()
            assert run(store, lambda: hers.save(Memory("m1", "x"))) == [None]
            assert hers.count() == 1
    finally:
        server.stop()
