"""What is compared in ``search.py``, each as a process: retain, and others on the same texts.

This file imports nothing of retain's before it is asked to, for it also runs under the
interpreters of other environments. Each has ``add`` (texts, in batches), ``ready`` (no more will
come) and a way to search.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["ENGINES"]

_BEST = 10
_DIMENSIONS = 256


class Retain:
    """``AgentMemory`` on an SQLite store, which may be there already; a face for every scope."""

    def __init__(self, folder: Path) -> None:
        from retain import SQLiteStore

        self._store: Any = SQLiteStore(folder / "memory.db")
        self._faces: dict[str, Any] = {}

    def _face(self, user: str) -> Any:
        if user not in self._faces:
            self._faces[user] = self._made(user)
        return self._faces[user]

    def _made(self, user: str) -> Any:
        from retain import AgentMemory, Scope

        return AgentMemory(self._store, scope=Scope(user=user or None))

    def add(self, texts: list[str], user: str = "") -> None:
        self._face(user).remember_many(texts)

    def ready(self, query: str) -> None:
        """Have the index made, its vectors too, and its files written."""
        self._face("").engine.settle()
        self.recall(query)
        self.close()

    def remember(self, text: str, user: str = "") -> None:
        self._face(user).remember(text)

    def recall(self, query: str, user: str = "") -> list[str]:
        return [result.memory.content for result in self._face(user).recall(query, k=_BEST)]

    def touch(self, users: list[str], query: str) -> int:
        """Recall in one scope after the other; how many found something."""
        return sum(bool(self.recall(query, user)) for user in users)

    def indexes(self) -> list[float]:
        """How many indexes the process holds, MB that they take, MB that they may take."""
        from retain.indexing import indexes

        return [len(indexes), indexes.nbytes / 1e6, indexes.budget / 1e6]

    def memory(self, name: str) -> float | None:
        """MB that the process has (``VmRSS``) or at most had (``VmHWM``) in memory."""
        status = Path("/proc/self/status")
        if not status.exists():
            return None
        lines = [line.split() for line in status.read_text().splitlines()]
        return next(int(line[1]) * 1024 / 1e6 for line in lines if line[0] == f"{name}:")

    def close(self) -> None:
        for face in self._faces.values():
            face.close()
        self._store.close()
        self._faces.clear()


class Postgres(Retain):
    """``AgentMemory`` on a PostgreSQL store, which is told where it is."""

    def __init__(self, folder: Path) -> None:
        self._faces = {}

    def open(self, url: str) -> None:
        from retain import PostgresStore

        self._store = PostgresStore(url)

    def ready(self, query: str, user: str = "") -> None:
        self._face(user).engine.settle()
        self.recall(query, user)


class Hybrid(Retain):
    """``VectorStoreMemory`` with the embedder that comes with the install."""

    def _made(self, user: str) -> Any:
        from retain import Scope, VectorStoreMemory

        return VectorStoreMemory(self._store, scope=Scope(user=user or None))


class FullText:
    """SQLite's FTS5, its segments merged: any of the words, best by ``bm25()`` first."""

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "texts.db", isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("CREATE VIRTUAL TABLE texts USING fts5(text)")

    def add(self, texts: list[str]) -> None:
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO texts VALUES (?)", ([text] for text in texts))
        self._db.execute("COMMIT")

    def ready(self) -> None:
        self._db.execute("INSERT INTO texts(texts) VALUES ('optimize')")

    def recall(self, query: str) -> list[str]:
        terms = " OR ".join(f'"{word}"' for word in query.split())
        select = f"SELECT text FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT {_BEST}"
        return [text for (text,) in self._db.execute(select, [terms])]


class Tantivy:
    """A bare query: any of the words, the ids of the best."""

    def __init__(self, folder: Path) -> None:
        import tantivy  # type: ignore[import-not-found,unused-ignore]

        schema = tantivy.SchemaBuilder()
        schema.add_integer_field("id", stored=True)
        schema.add_text_field("text", stored=False, tokenizer_name="default")
        self._document = tantivy.Document
        self._index = tantivy.Index(schema.build(), path=str(folder))
        self._writer = self._index.writer(256_000_000, 1)  # room for one segment of them all
        self._count = 0

    def add(self, texts: list[str]) -> None:
        for number, text in enumerate(texts, self._count):
            self._writer.add_document(self._document(id=number, text=text))
        self._count += len(texts)

    def ready(self) -> None:
        self._writer.commit()
        self._writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def recall(self, query: str, count: bool = False) -> list[int]:
        """``count``: have all matches counted too, which keeps it from skipping any."""
        words = self._index.parse_query(query, ["text"])
        hits = self._searcher.search(words, _BEST, count=count).hits
        return [self._searcher.doc(address)["id"][0] for _, address in hits]


class _Vectors:
    """A vector of unit length for a text: the sum of one for each word, drawn by its hash."""

    def __init__(self) -> None:
        self._words: dict[str, Any] = {}

    def __getitem__(self, text: str) -> Any:
        import numpy as np

        total = np.sum([self._word(word) for word in text.split()], axis=0)
        return total / np.linalg.norm(total)

    def _word(self, word: str) -> Any:
        import numpy as np

        if word not in self._words:
            drawn = np.random.default_rng(zlib.crc32(word.encode()))
            self._words[word] = drawn.standard_normal(_DIMENSIONS, dtype=np.float32)
        return self._words[word]

    def of(self, texts: Sequence[str]) -> Any:
        import numpy as np

        return np.array([self[text] for text in texts])


class Chroma:
    """chromadb's default query, by a vector that is there: its own embedder would be fetched."""

    def __init__(self, folder: Path) -> None:
        import chromadb  # type: ignore[import-not-found,unused-ignore]

        silent = chromadb.Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(str(folder), settings=silent)
        self._texts = self._client.create_collection("texts", embedding_function=None)
        self._vectors = _Vectors()
        self._prepared: dict[str, Any] = {}

    def add(self, texts: list[str]) -> None:
        first = self._texts.count()
        vectors = self._vectors.of(texts)
        for at in range(0, len(texts), 5_000):  # it takes no more at once
            some = slice(at, at + 5_000)
            ids = [str(first + number) for number in range(len(texts))[some]]
            self._texts.add(ids=ids, documents=texts[some], embeddings=vectors[some])

    def ready(self, queries: list[str]) -> None:
        self._prepared = {query: self._vectors[query] for query in queries}

    def by_vector(self, query: str) -> list[str]:
        found = self._texts.query(query_embeddings=[self._prepared[query]], n_results=_BEST)
        texts: list[str] = found["documents"][0]
        return texts


class Lance:
    """LanceDB's full-text query, its table compacted, and its query by the same vectors."""

    def __init__(self, folder: Path) -> None:
        os.environ.setdefault("RUST_LOG", "error")
        import lancedb  # type: ignore[import-not-found,unused-ignore]
        import pyarrow  # type: ignore[import-not-found,unused-ignore]

        vector = pyarrow.list_(pyarrow.float32(), _DIMENSIONS)
        self._arrow = pyarrow
        self._schema = pyarrow.schema([("text", pyarrow.string()), ("vector", vector)])
        self._table = lancedb.connect(str(folder)).create_table("texts", schema=self._schema)
        self._vectors = _Vectors()
        self._prepared: dict[str, Any] = {}

    def add(self, texts: list[str]) -> None:
        flat = self._arrow.array(self._vectors.of(texts).ravel())
        vectors = self._arrow.FixedSizeListArray.from_arrays(flat, _DIMENSIONS)
        self._table.add(self._arrow.table({"text": texts, "vector": vectors}, schema=self._schema))

    def ready(self, queries: list[str]) -> None:
        from lancedb.index import FTS  # type: ignore[import-not-found,unused-ignore]

        self._table.optimize()
        self._table.create_index("text", config=FTS())
        self._prepared = {query: self._vectors[query] for query in queries}

    def by_words(self, query: str) -> list[str]:
        return self._found(self._table.search(query, query_type="fts"), "_score")

    def by_vector(self, query: str) -> list[str]:
        return self._found(self._table.search(self._prepared[query]), "_distance")

    @staticmethod
    def _found(search: Any, score: str) -> list[str]:
        rows = search.limit(_BEST).select(["text", score]).to_list()
        return [row["text"] for row in rows]


ENGINES: dict[str, type[Any]] = {
    "retain": Retain,
    "postgres": Postgres,
    "hybrid": Hybrid,
    "fts5": FullText,
    "tantivy": Tantivy,
    "chromadb": Chroma,
    "lancedb": Lance,
}
