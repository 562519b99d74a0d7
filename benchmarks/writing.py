"""What it costs to write: to SQLite against the bare statements, to a file at two sizes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path

from retain import AgentMemory, FileKnowledgeStore, KnowledgeEntry, Memory, SQLiteStore
from retain.stores.sqlite_schema import COLUMNS, MIGRATIONS, to_row

from .measuring import Figure, Side, interleaved, ms, timed
from .plan import Bench

__all__ = ["writing"]


class Bare:
    """The same table, indexes and settings, written to through ``sqlite3`` alone."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA secure_delete = ON")
        for script in MIGRATIONS:
            self._db.executescript(script)
        self._revision = count(1)
        marks = ", ".join("?" * (3 + COLUMNS.count(",") + 1))
        self._insert = f"INSERT INTO memories (scope, fact, expires_at, {COLUMNS}) VALUES ({marks})"

    def _row(self, text: str) -> tuple[object, ...]:
        return (1, None, None, *to_row(Memory(content=text), next(self._revision)))

    def insert(self, text: str) -> float:
        """The seconds of one INSERT and its commit."""
        return timed(self._db.execute, self._insert, self._row(text))

    def insert_many(self, texts: Sequence[str]) -> float:
        """The seconds of one ``executemany`` and its commit."""
        rows = [self._row(text) for text in texts]
        start = time.perf_counter()
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany(self._insert, rows)
        self._db.execute("COMMIT")
        return time.perf_counter() - start

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


def writing(bench: Bench) -> Iterator[Figure]:
    """One memory a call, many a call, and entries of the file store."""
    yield from _one_a_call(bench)
    yield _many_a_call(bench)
    yield _to_a_file(bench)


def _one_a_call(bench: Bench) -> Iterator[Figure]:
    sides: dict[str, Side] = {}
    for size in bench.plan.sizes:
        texts = bench.corpus.texts(size)
        sides[f"retain {size}"] = bench.remembering(bench.agent_memory(texts).remember)
        bare = bench.keep(closing(Bare(bench.place())))
        bare.insert_many(texts)
        sides[f"bare {size}"] = lambda bare=bare: bare.insert(bench.corpus.text())  # type: ignore[misc]
    took = interleaved(bench.plan.rounds, sides)
    for size in bench.plan.sizes:
        ours, theirs = took[f"retain {size}"], took[f"bare {size}"]
        yield Figure.at_most(
            f"AgentMemory.remember, SQLite, at {size:,}",
            ours / theirs,
            2.5,
            "x",
            f"{ms(ours)} against {ms(theirs)} of a bare INSERT and commit",
        )
    small, *_, large = bench.plan.sizes
    ours, before = took[f"retain {large}"], took[f"retain {small}"]
    yield Figure.at_most(
        f"AgentMemory.remember, SQLite, at {large:,} and at {small:,}",
        ours / before,
        1.5,
        "x",
        f"{ms(ours)} against {ms(before)}",
    )


def _many_a_call(bench: Bench) -> Figure:
    size = bench.plan.batch

    def ours() -> float:
        texts = bench.corpus.texts(size)
        with AgentMemory(SQLiteStore(bench.place())) as memory:
            return timed(memory.remember_many, texts)

    def theirs() -> float:
        with closing(Bare(bench.place())) as bare:
            return bare.insert_many(bench.corpus.texts(size))

    took = interleaved(5, {"retain": ours, "bare": theirs}, warm_up=1)
    return Figure.at_least(
        f"AgentMemory.remember_many, SQLite, {size:,} at once",
        size / took["retain"],
        10_000,
        "/s",
        f"{took['retain'] / took['bare']:.1f} x the time of a bare executemany and commit",
    )


def _to_a_file(bench: Bench) -> Figure:
    sides: dict[str, Side] = {}
    for size in bench.plan.file_sizes:
        store = FileKnowledgeStore(bench.place())
        bench.keep(store.memories)
        store.memories.save_many(Memory(content=text) for text in bench.corpus.texts(size))
        sides[str(size)] = bench.remembering(lambda text, store=store: store.save(_entry(text)))
    took = interleaved(bench.plan.rounds, sides)
    small, large = bench.plan.file_sizes
    return Figure.at_most(
        f"FileKnowledgeStore.save, at {large:,} and at {small:,}",
        took[str(large)] / took[str(small)],
        2.0,
        "x",
        f"{ms(took[str(large)])} against {ms(took[str(small)])}",
    )


def _entry(text: str) -> KnowledgeEntry:
    return KnowledgeEntry(content=text)
