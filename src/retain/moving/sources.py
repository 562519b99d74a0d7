"""What an import is given: which program's it is, found out by what is in it, and its records."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from .. import clock, files
from ..directory import daily_log
from ..errors import InvalidValue
from ..memories.knowledge import DATABASE
from ..models import MemoryType
from .chats import read_chats
from .claude_code import is_claude_code, read_claude_code
from .json_text import (
    Value,
    chunks_of,
    json_elements,
    json_lines,
    json_whole,
    lines_of,
    values_by_id,
)
from .mcp_graph import read_mcp_graph
from .mem0 import read_mem0
from .packed import ZIP, Damaged, Packed, chats_in
from .reading import Read, read_records
from .selectools import SQLITE, read_selectools, tables

__all__ = ["FORMATS", "Source", "opened"]

FORMATS = (
    *("auto", "jsonl", "selectools", "codomyrmex"),
    *("mem0", "mcp-graph", "claude-code", "chatgpt", "claude"),
)
"""What an import reads."""

_CHATS = ("chatgpt", "claude")
_LOOKED_AT = 100  # values, to find out what they are


class Source(NamedTuple):
    """The format of what is imported, its size in bytes (0 if not known), and its records."""

    format: str
    size: int
    reads: Iterator[Read]


@contextmanager
def opened(source: str | os.PathLike[str] | BinaryIO, format: str) -> Iterator[Source]:
    """``source`` as one of ``FORMATS``, while it is read.

    Raises ``InvalidValue`` where it is none, ``StoreFailed`` where it can't be read.
    """
    if not isinstance(source, (str, os.PathLike)):
        if format in ("selectools", "claude-code"):
            raise InvalidValue(f"what {format} keeps is a directory and no stream; name its path")
        yield _of_file(source, format, clock.now(), 0)
        return
    path = files.real_path(source)
    if not path.exists():
        raise InvalidValue(f"{path} is not there; name a file or a directory")
    with files.store_errors(path):
        found = _by_path(path, format)
        if found is not None:
            yield found
            return
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            yield _of_file(file, format, status.st_mtime, status.st_size)


def _by_path(path: Path, format: str) -> Source | None:
    """What a directory is, or a file that is told by its name or its first bytes."""
    if path.is_dir() and (format in _CHATS or (format == "auto" and chats_in(path))):
        return _of_chats(Packed.folder(path), format)
    if format == "claude-code" or (format == "auto" and is_claude_code(path)):
        return Source("claude-code", 0, read_claude_code(path))
    if format == "selectools" or (format == "auto" and _is_selectools(path)):
        _refuse_own(path)
        return Source("selectools", 0, read_selectools(path))
    return None


def _is_selectools(path: Path) -> bool:
    if path.is_dir() or path.suffix in (".md", ".log") or path.name == "entries.jsonl":
        return True
    if daily_log.log_date(path.name) is not None:
        return True
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def _refuse_own(path: Path) -> None:
    """A store of retain itself has more to tell than the files beside it."""
    store = path / DATABASE if path.is_dir() else path
    try:
        own = store.is_file() and "memories" in tables(store)
    except sqlite3.Error:  # it is broken, and the files beside it are all there is
        own = False
    if own:
        raise InvalidValue(
            f"{path} is a memory of retain itself: export it (retain --dir {store.parent} export), "
            "and import that"
        )


# -- an open file ------------------------------------------------------------------------------


def _of_file(file: BinaryIO, format: str, when: float, size: int) -> Source:
    head, chunks = _head(chunks_of(file))
    if head.startswith(ZIP) and format in ("auto", *_CHATS):
        return _of_chats(Packed.zip(file), format)
    format, values = _values(chunks, head[:1], format)
    return Source(format, size, _READERS[format](values, when))


def _values(chunks: Iterator[bytes], first: bytes, format: str) -> tuple[str, Iterator[Value]]:
    """The format, found out where it is ``auto``, and the JSON values that come in ``chunks``."""
    if format == "jsonl" or (first not in (b"[", b"{") and format == "auto"):
        return "jsonl", json_lines(lines_of(chunks))
    if first != b"{":
        values = json_elements(chunks)
        return _known(values, "codomyrmex") if format == "auto" else (format, values)
    if format == "codomyrmex":
        return format, values_by_id(json_whole(chunks))
    start, lines = _first_line(lines_of(chunks))
    if start != b"{" and (format == "auto" or _is_json(start)):
        values = json_lines(lines)
        return _known(values, "jsonl") if format == "auto" else (format, values)
    values = json_whole(lines)
    if format == "auto":
        format, values = _known(values, "codomyrmex")
    return format, values_by_id(values) if format == "codomyrmex" else values


def _known(values: Iterator[Value], otherwise: str) -> tuple[str, Iterator[Value]]:
    """Whose ``values`` are, by the first object among them, and all of them."""
    start: list[Value] = []
    for value in islice(values, _LOOKED_AT):
        start.append(value)
        if isinstance(value.value, dict):
            return _kind(value.value) or otherwise, chain(start, values)
    return otherwise, chain(start, values)


def _first_line(lines: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first line that is not blank, and all of them."""
    start = []
    for line in lines:
        start.append(line)
        if line.strip():
            break
    return b"".join(start).strip(), chain(start, lines)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _kind(value: dict[str, Any]) -> str:
    """Whose record an object is, by the members that nobody else's has; "" for others."""
    for format, members in _TOLD_BY:
        if all(isinstance(value.get(name), kind) for name, kind in members.items()):
            return format
    return ""


_TOLD_BY: tuple[tuple[str, dict[str, type]], ...] = (
    ("chatgpt", {"mapping": dict}),
    ("claude", {"chat_messages": list}),
    ("claude", {"conversations_memory": str}),
    ("claude", {"project_memories": dict}),
    ("claude", {"uuid": str, "prompt_template": str}),
    ("mcp-graph", {"type": str, "name": str, "observations": list}),
    ("mcp-graph", {"type": str, "from": str, "to": str}),
    ("mcp-graph", {"entities": list, "relations": list}),
    ("", {"content": str}),
    ("mem0", {"memory": str}),
    ("mem0", {"results": list}),
    ("mem0", {"memories": list}),
)


def _of_chats(packed: Packed, format: str) -> Source:
    """The chats in a directory or a zip file, whichever of both programs has made it."""
    if format == "auto":
        with packed.opened(packed.names[0]) as chunks:
            format, _ = _known(_any_values(chunks), "chatgpt")

    def reads() -> Iterator[Read]:
        done = 0
        for name in packed.names:
            try:
                with packed.opened(name) as chunks:
                    values = _any_values(chunks)
                    for read in read_chats(values, packed.when(name), format, f"{name}, "):
                        yield read._replace(at=done + read.at)
            except Damaged as error:
                yield Read(name, None, f"{error}; what comes after is lost", done)
            done += packed.sizes[name]

    return Source(format, sum(packed.sizes.values()), reads())


def _any_values(chunks: Iterator[bytes]) -> Iterator[Value]:
    head, chunks = _head(chunks)
    return (json_whole if head[:1] == b"{" else json_elements)(chunks)


def _head(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """What comes first and is not blank, and all of it."""
    start: list[bytes] = []
    for chunk in chunks:
        start.append(chunk)
        if chunk.strip():
            break
    return b"".join(start).lstrip(), chain(start, chunks)


_READERS: dict[str, Callable[[Iterator[Value], float], Iterator[Read]]] = {
    "jsonl": lambda values, when: read_records(values, when, MemoryType.SEMANTIC),
    "codomyrmex": lambda values, when: read_records(values, when, MemoryType.EPISODIC),
    "mem0": read_mem0,
    "mcp-graph": read_mcp_graph,
    "chatgpt": lambda values, when: read_chats(values, when, "chatgpt"),
    "claude": lambda values, when: read_chats(values, when, "claude"),
}
