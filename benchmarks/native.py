"""Native search of PostgreSQL by hand: how near it comes to the exact answer, and how quickly.

    python -m benchmarks.native 100000 [--plain] [--no-exact]

Made-up memories over a year in one scope, ten to a session; the same questions to the scope's whole
index (the exact answer) and to the database. ``--plain``: by words alone, without embedder.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from retain import Memory, PostgresStore
from retain.engine import Engine
from retain.search.blend import Blend
from retain.search.embedders import default_embedder

from .texts import Corpus

_DAY = 86_400.0
_QUERIES = 300


def _server() -> Any:
    """A server with the memory that one of this size would be given."""
    kind: Any = import_module("tests.servers").Postgres

    class Large(kind):  # type: ignore[misc]
        def _command(self) -> Any:
            command, settings = super()._command()
            return [*command, "-c", "shared_buffers=2GB", "-c", "max_wal_size=8GB"], settings

    return Large()


def _timed(name: str, work: Callable[[], object]) -> None:
    begun = time.monotonic()
    work()
    print(f"{name}: {time.monotonic() - begun:.1f} s", flush=True)


def _fill(store: PostgresStore, count: int, corpus: Corpus, sample: list[str]) -> None:
    chance, now, at = random.Random(1), time.time(), 0
    for batch in corpus.batches(count):
        store.save_many(
            Memory(
                content=text,
                created_at=now - 365 * _DAY * (1 - (at + place) / count),
                importance_score=chance.choice((0.3, 0.5, 0.5, 0.8)),
                metadata={"session": (at + place) // 10, "turn": place % 10},
            )
            for place, text in enumerate(batch)
        )
        at += len(batch)
        sample += chance.sample(batch, min(len(batch), 300))


def _asked(engine: Engine, queries: list[str]) -> list[list[str]]:
    answers, times = [], []
    for query in queries:
        begun = time.perf_counter()
        answers.append([found.memory.id for found in engine.recall(query, 10)])
        times.append(1_000 * (time.perf_counter() - begun))
    times.sort()
    print(f"  p50 {statistics.median(times):.1f} ms, p95 {times[int(0.95 * len(times))]:.1f} ms")
    return answers


def main(count: int, plain: bool, exact: bool) -> None:
    server = _server()
    server.start()
    try:
        embedder = None if plain else default_embedder()
        parts: dict[str, Any] = {"embedder": embedder, "blend": None if plain else Blend()}
        native = PostgresStore(server.url, native_search=True, timeout=3600)
        corpus, sample = Corpus(known=not plain), list[str]()
        _timed(f"written {count}", lambda: _fill(native, count, corpus, sample))
        queries = [corpus.query(sample) for _ in range(_QUERIES)]
        engine = Engine(native, **parts)
        _timed("side index", engine.settle)
        import psycopg

        with psycopg.connect(server.url) as connection:
            sizes = connection.execute(
                "SELECT relname, pg_size_pretty(pg_relation_size(c.oid)) FROM pg_class c JOIN"
                " pg_namespace n ON n.oid = c.relnamespace WHERE nspname LIKE 'retain%' AND"
                " pg_relation_size(c.oid) > 1e6 ORDER BY pg_relation_size(c.oid) DESC"
            ).fetchall()
        print(sizes)
        _asked(engine, queries[:50])
        print("native")
        near = _asked(engine, queries)
        print("native, two words")
        _asked(engine, [" ".join(query.split()[:2]) for query in queries])
        print("native, nothing asked")
        _asked(engine, [""] * 30)
        times = []
        for text in corpus.texts(50):
            engine.remember(Memory(content=text))
            begun = time.perf_counter()
            engine.recall(text[:20], 10)
            times.append(1_000 * (time.perf_counter() - begun))
        print(f"native, recall after a write: p50 {statistics.median(times):.1f} ms")
        if exact:
            whole = Engine(PostgresStore(server.url), **parts)
            _timed("whole index", whole.settle)
            near = _asked(engine, queries)
            print("exact")
            best = _asked(whole, queries)
            pairs = list(zip(near, best, strict=True))
            shared = [len({*a} & {*b}) / max(1, len(b)) for a, b in pairs]
            first = statistics.mean(a[:1] == b[:1] for a, b in pairs)
            print(f"overlap of the top 10: {statistics.mean(shared):.4f}; same first: {first:.3f}")
            print("10 lowest:", sorted(round(each, 1) for each in shared)[:10])
    finally:
        server.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), "--plain" in sys.argv, "--no-exact" not in sys.argv)
