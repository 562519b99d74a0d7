"""The durable stores under attack, each behind the same few calls, and what must hold of all."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from retain import (
    AgentMemory,
    FileKnowledgeStore,
    FileStore,
    JSONFileStore,
    KnowledgeEntry,
    KnowledgeMemory,
    Memory,
    SQLiteKnowledgeStore,
    SQLiteStore,
)
from retain.models import one_line

PAGE = 1_000_000


class Place:
    """A face over a store in ``folder``, open."""

    face: Any

    def remember(self, content: str, persistent: bool = False) -> str:
        return self.face.remember(content, persistent=persistent).id

    def remember_many(self, contents: list[str]) -> list[str]:
        return [memory.id for memory in self.face.remember_many(contents)]

    def update(self, id: str, content: str) -> None:
        self.face.update(id, content=content)

    def forget(self, id: str) -> bool:
        return self.face.forget(id)

    def memories(self) -> list[Memory]:
        return self.face.engine.store.list_all()

    def contents(self) -> dict[str, str]:
        return {memory.id: memory.content for memory in self.memories()}

    def close(self) -> None:
        self.face.close()

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class JSONPlace(Place):
    def __init__(self, folder: Path) -> None:
        self.face = AgentMemory(JSONFileStore(folder / "memories.json"))


class FilePlace(Place):
    def __init__(self, folder: Path) -> None:
        self.face = AgentMemory(FileStore(folder / "memory"))


class SQLitePlace(Place):
    def __init__(self, folder: Path) -> None:
        self.face = AgentMemory(SQLiteStore(folder / "memory.db"))


class DirectoryPlace(Place):
    def __init__(self, folder: Path) -> None:
        self.face = KnowledgeMemory(folder / "agent_memory")


class KnowledgePlace(Place):
    """One of the knowledge specification's stores, by its own six methods."""

    def remember(self, content: str, persistent: bool = False) -> str:
        return self.face.save(KnowledgeEntry(content=content, persistent=persistent))

    def remember_many(self, contents: list[str]) -> list[str]:
        return [m.id for m in self.face.memories.save_many([Memory(content=c) for c in contents])]

    def update(self, id: str, content: str) -> None:
        entry = self.face.get(id)
        entry.content = content
        self.face.save(entry)

    def forget(self, id: str) -> bool:
        return self.face.delete(id)

    def memories(self) -> list[Memory]:
        return self.face.memories.list_all()

    def contents(self) -> dict[str, str]:
        return {entry.id: entry.content for entry in self.face.query(limit=PAGE)}


class FileKnowledgePlace(KnowledgePlace):
    def __init__(self, folder: Path) -> None:
        self.face = FileKnowledgeStore(folder / "memory")


class SQLiteKnowledgePlace(KnowledgePlace):
    def __init__(self, folder: Path) -> None:
        self.face = SQLiteKnowledgeStore(folder / "knowledge.db")


KINDS: dict[str, type[Place]] = {
    "json": JSONPlace,
    "file": FilePlace,
    "sqlite": SQLitePlace,
    "directory": DirectoryPlace,
    "file-knowledge": FileKnowledgePlace,
    "sqlite-knowledge": SQLiteKnowledgePlace,
}
"""Every durable store, as it is used."""

STORES = ["json", "file", "sqlite"]
"""Those that differ below the face."""

AGENTS = [*STORES, "directory"]
"""Those with a face that remembers, recalls and forgets."""


def open_place(kind: str, folder: Path) -> Place:
    return KINDS[kind](folder)


def leftovers(folder: Path) -> list[str]:
    """Temporary files that an interrupted write left behind."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.tmp"))


def set_aside(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.set-aside-*"))


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Every file below ``folder`` and what is in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def holders(folder: Path, text: str) -> list[str]:
    """The files in which a byte of the disk still says ``text``, as it is or as JSON escapes."""
    escaped = json.dumps(text)[1:-1].encode()
    return [
        name for name, data in bytes_of(folder).items() if text.encode() in data or escaped in data
    ]


def facts_in(text: str) -> list[tuple[str, str]]:
    """(category, text) of the facts of a MEMORY.md that holds only plain ones."""
    category, found = "general", []
    for line in text.splitlines():
        if line.startswith("## "):
            category = line[3:].strip()
        elif line.startswith("- "):
            found.append((category, one_line(line[2:])))
    return found


def logged(folder: Path) -> list[dict[str, Any]]:
    """Every line of every log, read as strictly as JSON is."""
    return [
        json.loads(line)
        for path in sorted((folder / "logs").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]


def assert_in_step(place: Place, *, unlogged: frozenset[str] = frozenset()) -> None:
    """MEMORY.md, the logs and the store of a directory say the same.

    ``unlogged``: persistent memories whose log was deleted, which may have no line.
    """
    folder: Path = place.face.directory
    memories = place.memories()
    text = (folder / "MEMORY.md").read_text(encoding="utf-8")
    kept = Counter((one_line(m.category), one_line(m.content)) for m in memories if m.persistent)
    assert Counter(facts_in(text)) == kept
    lines = Counter(
        (line["id"], line["category"], line["content"], line["persistent"])
        for line in logged(folder)
    )
    due = Counter((m.id, m.category, m.content, m.persistent) for m in memories)
    assert not lines - due, "a line whose memory is gone or reads otherwise, or a line twice"
    assert {id for id, *_ in due - lines} <= unlogged, "a memory without its line"
