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


class TestRedisStoreOnALoop(StoreConformance):
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
    most = 0

    def save(number: int) -> None:
        nonlocal most
        store.save(Memory(f"m{number}", "x"))
        [client] = store.driver.server.loops._clients.values()
        most = max(most, len(client.connection_pool._connections))

    calls = [lambda number=number: save(number) for number in range(100)]
    assert run(store, *calls) == [None] * 100
    assert store.count() == 100
    assert 1 <= most <= CONNECTIONS


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
