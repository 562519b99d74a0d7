"""The folder in which Claude Code keeps what it has learned of a project, as memories.

``MEMORY.md`` is an index there, of one line a topic, or holds notes itself. A topic is a file of
its own: with front matter it is one memory, without it a collection of notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from .. import files
from ..errors import InvalidValue
from ..models import Memory, MemoryType
from .notes import Note, front_matter, notes
from .reading import Read, read_one
from .records import Identities, to_memory

__all__ = ["is_claude_code", "read_claude_code"]

INDEX = "MEMORY.md"
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+\.md)\)(?:\s*[-\u2013\u2014:]+\s*(.*))?", re.S)
_OTHERS = ("entries.jsonl", "logs", "memory.db")


def is_claude_code(path: Path) -> bool:
    """Whether ``path`` is such a folder, or a topic of one: a file that front matter begins."""
    if path.is_file():
        if path.suffix != ".md" or path.name == INDEX:
            return False
        with path.open("rb") as file:
            return file.read(4).rstrip() == b"---"
    if not path.is_dir() or any((path / name).exists() for name in _OTHERS):
        return False
    if any(path.glob("*.db")):
        return False
    if any(each.name != INDEX for each in path.glob("*.md")):
        return True
    index = path / INDEX
    if not index.is_file():
        return False
    text = index.read_text("utf-8", errors="replace")
    return any(_LINK.match(note.text) for note in notes(text))


def read_claude_code(path: Path) -> Iterator[Read]:
    """The memories of a folder of Claude Code, or of one topic of it; all are persistent.

    Their time is that of their file. What the index only points to is read where it stands.
    Raises ``InvalidValue`` where there are no such files.
    """
    found = sorted(path.rglob("*.md")) if path.is_dir() else [path]
    if not found or any(each.suffix != ".md" for each in found):
        raise InvalidValue(f"{path} holds no MEMORY.md and no topics: name the folder 'memory'")
    folder = path if path.is_dir() else path.parent
    # of ~/.claude/projects/PROJECT/memory, the name that tells it from those of other projects
    project = (folder.parent if folder.name == "memory" else folder).resolve().name
    topics = {each.relative_to(folder).as_posix() for each in found}
    identities = Identities()
    for file in found:
        name = file.relative_to(folder).as_posix()
        with files.store_errors(file):
            data, when = file.read_bytes(), file.stat().st_mtime
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            yield Read(name, None, f"it is not UTF-8 at byte {error.start + 1}", 0)
            continue
        of = _Topic(name, project, when, identities)
        members, body = front_matter(text)
        if members and name != INDEX:
            yield read_one(name, 0, partial(of.whole, members, body.strip()))
            continue
        for note in notes(body):
            link = _LINK.match(note.text) if name == INDEX else None
            if link is None or link[2].removeprefix("./") not in topics:
                yield read_one(f"{name}, line {note.line}", 0, partial(of.note, note, link))


class _Topic:
    """A file of the folder, and how what is in it becomes memories."""

    def __init__(self, name: str, project: str, when: float, identities: Identities) -> None:
        self._name, self._project, self._when = name, project, when
        self._identities = identities

    def whole(self, members: dict[str, str], body: str) -> Memory:
        """A file with front matter: one memory, which keeps its id when its text changes."""
        kind = members.get("type") or members.get("metadata.type") or "general"
        named = members.get("name")
        id = self._identities.of("claude-code", self._project, self._name)
        content = body or members.get("description", "")
        if not content:
            raise InvalidValue("it has front matter, and no text after it")
        about = {each: text for each, text in members.items() if each not in ("name", "type")}
        return self._made(content, kind, [named] if named else [], {"name": named, **about}, id)

    def note(self, note: Note, link: re.Match[str] | None) -> Memory:
        """A paragraph or an item; of a pointer to nothing, what it says of it."""
        content = " \N{EM DASH} ".join(filter(None, (link[1], link[3]))) if link else note.text
        stem = self._name.removesuffix(".md")
        heading = note.heading.strip()
        in_index = self._name == INDEX
        category = (heading or "general") if in_index else stem
        tags = [heading] if heading and not in_index else []
        id = self._identities.of("claude-code", self._project, self._name, note.text)
        return self._made(content, category, tags, {"heading": heading or None}, id)

    def _made(
        self,
        content: str,
        category: str,
        tags: list[str],
        about: dict[str, str | None],
        id: str,
    ) -> Memory:
        told = {name: text for name, text in about.items() if text}
        data = {
            "id": id,
            "content": content,
            "category": category,
            "tags": tags,
            "persistent": True,
            "source": f"{self._project}/{self._name}",
            "metadata": {"file": self._name, "project": self._project, **told},
        }
        return to_memory(data, self._identities, self._when, MemoryType.SEMANTIC)
