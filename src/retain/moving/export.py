"""Memories out: as retain's own JSON lines, and as ``selectools`` and ``codomyrmex`` keep them."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO

from .. import files
from ..directory import daily_log
from ..directory.memory_md import Document
from ..errors import InvalidValue
from ..models import Filter, Memory, one_line
from ..stores.base import Store
from .records import agentic_record, knowledge_record

__all__ = [
    "EXPORTS",
    "Progress",
    "export_array",
    "export_jsonl",
    "export_lines",
    "export_path",
    "json_text",
    "new_file",
]

EXPORTS = ("jsonl", "selectools", "codomyrmex")
"""What an export writes."""

Progress = Callable[[int, int], None]
"""Called with how far an import or export is, and how far it goes (0 where unknown)."""


# What JSON leaves as it is and a terminal would obey, or a program take for the end of a line.
_ESCAPES = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}


def json_text(value: Any, **how: Any) -> str:
    """``value`` as JSON, readable in any language, with every control character escaped."""
    return json.dumps(value, ensure_ascii=False, **how).translate(_ESCAPES)


def export_jsonl(store: Store, file: BinaryIO, *, progress: Progress | None = None) -> int:
    """Write every visible memory of the store's scope to ``file``, a JSON object a line.

    ``Memory.to_dict`` of each, UTF-8: what lasts first, the oldest first, then the rest, the
    newest first. Read in pages, so that a large store needs little memory. Returns how many.

    >>> import io
    >>> from retain import InMemoryStore, Memory
    >>> store = InMemoryStore()
    >>> store.save(Memory("m1", "Likes tea"))
    >>> file = io.BytesIO()
    >>> export_jsonl(store, file)
    1
    >>> json.loads(file.getvalue())["content"]
    'Likes tea'
    """
    count = 0
    for line in export_lines(store, progress=progress):
        file.write(line)
        count += 1
    return count


def export_lines(store: Store, *, progress: Progress | None = None) -> Iterator[bytes]:
    """The lines of :func:`export_jsonl`, each read as it is asked for."""
    for memory in _each(store, progress):
        yield _line(memory.to_dict())


def export_array(store: Store, file: BinaryIO, *, progress: Progress | None = None) -> int:
    """Write the JSON array of ``codomyrmex``, in the order of :func:`export_jsonl`; how many.

    What its records have no place for stands in their ``metadata``, under ``retain``.
    """
    count = 0
    for memory in _each(store, progress):
        record = json_text(agentic_record(memory), indent=2)
        indented = "\n  ".join(record.split("\n"))
        file.write(f"{',' if count else '['}\n  {indented}".encode())
        count += 1
    file.write(b"\n]\n" if count else b"[]\n")
    return count


def export_path(
    store: Store,
    target: str | os.PathLike[str],
    *,
    format: str = "jsonl",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> int:
    """Export the store's scope to a new file, or for ``selectools`` to a new directory.

    All of it or nothing: it appears under its name once it is whole and on the disk.
    ``overwrite``: also in place of a file that is there. Returns how many memories.
    Raises ``InvalidValue`` where something is in the way, ``StoreFailed`` where the disk
    refuses.
    """
    if format not in EXPORTS:
        raise InvalidValue(f"format={format!r} is none of {', '.join(EXPORTS)}")
    path = files.real_path(target)
    if format == "selectools":
        return _export_directory(store, path, progress)
    write = export_jsonl if format == "jsonl" else export_array
    with new_file(path, overwrite=overwrite) as file:
        return write(store, file, progress=progress)


@contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A file to write that appears at ``path``, durably, when the block ends without error.

    Readable by its owner only. What is no regular file (a pipe, a terminal) is written to
    as it is. Raises ``InvalidValue`` where a file is there, unless told to ``overwrite``.
    """
    with files.store_errors(path):
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as stream:
                yield stream
            return
        if path.exists() and not (overwrite and path.is_file()):
            raise InvalidValue(f"{path} is there already; name a new place")
        temporary = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        files.sync_folder(path.parent)


def _each(store: Store, progress: Progress | None) -> Iterator[Memory]:
    total = store.count() if progress is not None else 0
    facts = list(store.iterate(narrow=Filter(persistent=True)))[::-1]
    written = {fact.id for fact in facts}
    done = 0
    # the rest without a filter: what became a fact, or stopped being one, meanwhile is not missed
    for source in (facts, (each for each in store.iterate() if each.id not in written)):
        for memory in source:
            yield memory
            done += 1
            if progress is not None:
                progress(done, max(done, total))


def _line(record: dict[str, Any]) -> bytes:
    return json_text(record).encode() + b"\n"


def _export_directory(store: Store, path: Path, progress: Progress | None) -> int:
    """``entries.jsonl`` as version 1.3 reads it, MEMORY.md and the logs as specified."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise InvalidValue(f"{path} is there already; name a new directory")
    temporary = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex}.tmp")
    with files.store_errors(path):
        files.make_folder(temporary / "logs")
        try:
            count = _write_directory(store, temporary, progress)
            files.sync_folder(temporary)
            temporary.replace(path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        files.sync_folder(path.parent)
    return count


def _write_directory(store: Store, folder: Path, progress: Progress | None) -> int:
    facts: list[tuple[str, str]] = []
    count, total = 0, store.count() if progress is not None else 0
    with new_file(folder / "entries.jsonl") as entries:
        for name, day in groupby(store.iterate(), lambda each: daily_log.log_name(each.created_at)):
            memories = list(day)
            for memory in memories:
                entries.write(_line(knowledge_record(memory)))
                if memory.persistent and memory.content.strip():
                    facts.append((one_line(memory.category), one_line(memory.content)))
            lines = b"".join(map(daily_log.format_line, reversed(memories)))
            files.write_new(folder / "logs" / name, lines)
            count += len(memories)
            if progress is not None:
                progress(count, max(count, total))
    files.write_new(folder / "MEMORY.md", Document.build(reversed(facts)).render().encode())
    files.sync_folder(folder / "logs")
    return count
