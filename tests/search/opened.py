"""Stores with index files beside them, and what a recall in them must find."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from retain import Memory, Scope, SQLiteStore, text
from retain.engine import Engine
from retain.indexing import indexes
from retain.search.blend import Blend
from retain.search.index import ScopeIndex

WORDS = [f"word{number}" for number in range(300)]
QUERIES = ["word1 word2", "word7", "word250 word3 word9", "nothing", "東京"]


class WordEmbedder:
    """The direction of a text is the sum of its words'; it takes its time for each."""

    def __init__(self, name: str = "words", seconds: float = 0.0) -> None:
        self.name = name
        self.dimensions = 16
        self.seconds = seconds
        self.texts = 0

    def embed(self, texts: Sequence[str]) -> Any:
        time.sleep(self.seconds * len(texts))
        self.texts += len(texts)
        return np.array([self.embed_query(each) for each in texts], np.float32).reshape(-1, 16)

    def embed_query(self, query: str) -> Any:
        total = np.full(16, 1e-3)
        for [form, *_] in text.terms(query):
            total += np.frombuffer(
                hashlib.sha256(f"{self.name} {form}".encode()).digest(), np.int16
            )
        return (total / np.linalg.norm(total)).astype(np.float32)


def memories(count: int, first: int = 0) -> list[Memory]:
    """Texts of twelve words, of which some are in many."""
    found = []
    for number in range(first, first + count):
        random = Random(number)
        words = [WORDS[int(300 * random.random() ** 3)] for _ in range(12)]
        found.append(
            Memory(f"m{number}", " ".join([*words, "東京タワー"]), created_at=1e9 + number)
        )
    return found


def engine_of(path: Path, embedder: Any = None, scope: Scope | None = None) -> Engine:
    """An engine that opens the store, with index files if they are there, as another process."""
    store = SQLiteStore(path / "m.db", scope=scope)
    return Engine(store, embedder=embedder, blend=Blend() if embedder else None)


def index_of(engine: Engine) -> ScopeIndex:
    return indexes.index(engine.store.driver, engine.store.scope, engine._indexed.embedder)


def found(engine: Engine) -> dict[str, dict[str, float]]:
    """All that some queries find, and how relevant it is, to six digits."""
    return {
        query: {
            each.memory.id: round(each.relevance_score, 6)
            for each in engine.recall(query, k=100_000)
        }
        for query in QUERIES
    }


def expected(engine: Engine, folder: Path) -> dict[str, dict[str, float]]:
    """The same of an index that is made from a copy of the store, and of no file."""
    copy = folder / f"copy-{time.monotonic_ns()}"
    engine.store.backup(copy / "m.db")
    fresh = engine_of(copy, engine._indexed.embedder, engine.store.scope)
    fresh.settle()
    try:
        return found(fresh)
    finally:
        fresh.close()


def assert_right(engine: Engine, folder: Path) -> None:
    """A recall finds what is in the store, all of it and nothing else."""
    right = expected(engine, folder)
    there = found(engine)
    assert {query: set(scores) for query, scores in there.items()} == {
        query: set(scores) for query, scores in right.items()
    }
    for query, scores in right.items():
        for id, score in scores.items():
            assert abs(there[query][id] - score) < 1e-5, (query, id)


def filled(path: Path, count: int = 600, embedder: Any = None, scope: Scope | None = None) -> None:
    """A store of so many memories, with its index files."""
    engine = engine_of(path, embedder, scope)
    engine.store.save_many(memories(count))
    engine.settle()
    engine.close()


def files_of(path: Path, end: str = "terms") -> list[Path]:
    """The index files of a store."""
    return sorted((path / "m.db-index").rglob(f"*.{end}"))


def rows_from_files(engine: Engine) -> int:
    """How many rows an index has read from files."""
    stretches: Iterable[Any] = index_of(engine).stretches
    return sum(stretch.segment.size for stretch in stretches if stretch.file is not None)
