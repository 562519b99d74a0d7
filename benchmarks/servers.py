"""What servers add: a write beside the bare one, many at once, and one scope of very many.

The servers are those of the tests, from Python packages, set to lose nothing: ``fsync`` on, and
``appendfsync always``.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from importlib import import_module
from statistics import median
from typing import Any

from retain import AgentMemory, Memory, PostgresStore, RedisStore, Scope

from .measuring import Child, Figure, Side, interleaved, ms, tell, timed
from .plan import Bench
from .stores import SAMPLE

__all__ = ["postgres", "redis"]


def _started(bench: Bench, kind: str, *arguments: object) -> Any:
    """A durable server of the tests', until the work is done."""
    try:
        servers = import_module("tests.servers")
        server = getattr(servers, kind)(*arguments, durable=True)
    except (ImportError, AssertionError) as error:
        tell(f"  {error}")
        return None
    server.start()
    bench.keep(_Stopped(server))
    return server


class _Stopped:
    def __init__(self, server: Any) -> None:
        self._server = server

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        self._server.stop()


# -- PostgreSQL ----------------------------------------------------------------------------


def postgres(bench: Bench) -> Iterator[Figure]:
    """PostgresStore: one memory a call, many a call, and a scope among very many memories."""
    server = _started(bench, "Postgres", 18)
    if server is None:
        yield Figure.missing("PostgresStore", "<= 2 x", "there is no PostgreSQL here")
        return
    store = bench.keep(PostgresStore(server.url))
    yield _written(bench, store)
    yield _batch(bench, store)
    yield from _one_scope(bench, server.url)


def _written(bench: Bench, store: PostgresStore) -> Figure:
    memory = AgentMemory(store)
    took = interleaved(
        bench.plan.rounds,
        {"retain": bench.remembering(memory.remember), "bare": _bare_insert(bench, store)},
        warm_up=10,
        burst=5,
    )
    why = f"{ms(took['retain'])} against {ms(took['bare'])}"
    name = "AgentMemory.remember, Postgres, and a bare INSERT"
    return Figure.at_most(name, took["retain"] / took["bare"], 2.0, "x", why)


def _bare_insert(bench: Bench, store: PostgresStore) -> Side:
    """One row into a table of the same columns and indexes, and its commit, over the same pool."""
    pool: Any = store.driver.pool()  # type: ignore[attr-defined]
    with pool.connection() as connection:
        connection.execute("CREATE TABLE bare (LIKE retain.memories INCLUDING ALL)")
    columns = "scope, id, content, memory_type, importance, category, persistent, tags, metadata"
    columns += ", source, created_at, updated_at, access_count, last_accessed, revision"
    insert = f"INSERT INTO bare ({columns}) VALUES ({', '.join(['%s'] * 15)})"
    revision = 0

    def write(text: str) -> None:
        nonlocal revision
        revision += 1
        now = time.time()
        id = str(uuid.uuid4())
        row = [1, id, text, "episodic", 0.5, "general", False, [], "{}", "", now, now, 0, now]
        with pool.connection() as connection:
            connection.execute(insert, [*row, revision])

    return lambda: timed(write, bench.corpus.text())


def _batch(bench: Bench, store: PostgresStore) -> Figure:
    memory = AgentMemory(store, scope=Scope(user="batch"))
    size = bench.plan.batch
    rates = []
    for _ in range(5):
        texts = bench.corpus.texts(size)
        rates.append(size / timed(memory.remember_many, texts))
    name = f"AgentMemory.remember_many, Postgres, {size:,} at once"
    return Figure.at_least(name, median(rates), 20_000, "/s")


def _one_scope(bench: Bench, url: str) -> Iterator[Figure]:
    """Recalls in one scope of many, warm and by a process that has just begun."""
    scopes, size = bench.plan.server_scopes, bench.plan.server_scope
    tell(f"  {scopes} scopes of {size:,} texts")
    sample: list[str] = []
    with Child("postgres", bench.place()) as child:
        child.call("open", url)
        for number in range(scopes):
            texts = bench.corpus.texts(size)
            child.call("add", texts, str(number))
            if number == scopes // 2:
                sample = texts[:: max(1, size // SAMPLE)]
        queries = [bench.corpus.query(sample) for _ in range(bench.plan.rounds)]
        user = str(scopes // 2)
        child.call("ready", queries[0], user)
        for query in queries[:5]:
            child.call("recall", query, user)
        warm = median(child.call("recall", query, user) for query in queries)
    total = scopes * size
    name = f"AgentMemory.recall, Postgres, a scope of {size:,} among {total:,}"
    yield Figure.at_most(name, warm * 1_000, 5.0, "ms")
    first = []
    for query in queries[: bench.plan.starts]:
        with Child("postgres", bench.place()) as child:
            opened = child.call("open", url)
            first.append(opened + child.call("recall", query, user))
    name = f"opening Postgres and the first recall, {size:,} of {total:,}"
    yield Figure.at_most(name, median(first) * 1_000, 300.0, "ms", "imports included")


# -- Redis ---------------------------------------------------------------------------------


def redis(bench: Bench) -> Iterator[Figure]:
    """RedisStore: one memory a call."""
    for kind in ("redis", "valkey"):
        server = _started(bench, "Redis", kind)
        name = f"AgentMemory.remember, {kind.title()}, and a bare pipeline"
        if server is None:
            yield Figure.missing(name, "<= 2 x", f"there is no {kind} server here")
            continue
        memory = AgentMemory(bench.keep(RedisStore(server.url)))
        took = interleaved(
            bench.plan.rounds,
            {
                "retain": bench.remembering(memory.remember),
                "bare": _bare_pipeline(bench, server.url),
            },
            warm_up=10,
            burst=5,
        )
        why = f"{ms(took['retain'])} against {ms(took['bare'])}"
        yield Figure.at_most(name, took["retain"] / took["bare"], 2.0, "x", why)


def _bare_pipeline(bench: Bench, url: str) -> Side:
    """The same JSON and its entries by revision, time and expiry, as one transaction."""
    from redis import Redis

    client = bench.keep(Redis.from_url(url))
    revision = 0

    def write(text: str) -> None:
        nonlocal revision
        revision += 1
        memory = Memory(content=text)
        with client.pipeline(transaction=True) as pipeline:
            pipeline.set(f"bare:{memory.id}", json.dumps(memory.to_dict(), ensure_ascii=False))
            pipeline.zadd("bare:revisions", {memory.id: revision})
            pipeline.zadd("bare:times", {memory.id: memory.created_at})
            pipeline.hset("bare:about", "revision", str(revision))
            pipeline.execute()

    return lambda: timed(write, bench.corpus.text())
