"""One readable JSON array, rewritten whole by every write: meant for a thousand memories."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import clock, files
from ..errors import RetainError
from ..locks import FileLock
from ..models import Memory
from ..scope import Scope
from .base import Problem, Store, Written
from .table import Shelf, TableDriver, unchanged

__all__ = ["JSONFileStore"]

Key = tuple[Scope, str]
_GAP = re.compile(r"[\s,\[\ufeff]*")


class JSONFileDriver(TableDriver):
    """The array in memory, and in step with the file that others may write too.

    Revisions begin, at each opening, at the time in microseconds: the file has no place for
    the deletions of the past, so that whoever knows an older revision is told to begin anew. (A
    new file begins at 0.)
    """

    def __init__(self, path: Path, *, allow_network: bool = False) -> None:
        super().__init__()
        self.path: Path = path
        files.refuse_network(path, allow=allow_network)
        files.make_folder(path.parent)
        self._file_lock = FileLock(files.beside(path, ".lock"))
        self._signature: tuple[int, ...] | None = ()
        self._revision = int(clock.now() * 1_000_000) if files.signature(path) else 0
        self._bad: list[str] = []
        self._parsed: dict[str, Memory] = {}  # by its text: most of a file is as it was
        with self._file_lock.held(required=False) as held, self._open():
            if held:
                files.sweep(path)

    @contextmanager
    def _exclusive(self, writing: bool) -> Iterator[None]:
        if not writing and files.signature(self.path) == self._signature:
            yield  # renames are atomic: what is there is whole, and known
            return
        with self._file_lock.held(required=writing):
            self._catch_up()
            yield

    def _catch_up(self) -> None:
        signature = files.signature(self.path)
        if signature == self._signature:
            return
        with files.store_errors(self.path):
            data = self.path.read_bytes() if signature else b""
        found, bad = self._read(data)
        self._bad = [reason for reason, _ in bad]
        if bad:
            unreadable = data if any(text is None for _, text in bad) else None
            rows = "\n".join(text for _, text in bad if text is not None)
            files.set_aside(self.path, unreadable or rows.encode("utf-8", "surrogatepass"))
        self._signature = ()  # until all is taken over
        self._take_over(found)
        self._signature = signature

    def _read(self, data: bytes) -> tuple[dict[Key, Memory], list[tuple[str, str | None]]]:
        """The memories of an array, and (reason, text) of what is none.

        Where the array itself is broken, every object that can still be read is, and the
        text of the reason is ``None``: the file as a whole is to be set aside.
        """
        if not data.strip():
            bad: list[tuple[str, str | None]] = [("the file is blank", None)] if data else []
            return {}, bad
        rows, bad = _rows(data.decode("utf-8", "surrogateescape"))
        found: dict[Key, Memory] = {}
        parsed: dict[str, Memory] = {}
        for row in rows:
            try:
                text = json.dumps(row)
                memory = self._parsed.get(text) or Memory.from_dict(row)
            except RetainError as error:
                bad.append((str(error), text))
                continue
            parsed[text] = memory
            key = (memory.scope, memory.id)
            if key in found:
                twice = json.dumps(found[key].to_dict())
                bad.append((f"memory {memory.id!r} is there twice", twice))
            found[key] = memory.copy()
        self._parsed = parsed
        return found, bad

    def _take_over(self, found: dict[Key, Memory]) -> None:
        """Make the shelves what the file says, with a new revision for all that differs."""
        known = {
            (s, m.id): m for s, shelf in self._shelves.items() for m in shelf.memories.values()
        }
        for scope, id in known.keys() - found.keys():
            self._revision += 1
            self._shelves[scope].delete(id, self._revision)
        for (scope, id), memory in found.items():
            before = known.get((scope, id))
            if before is not None and unchanged(before, memory):
                self._shelves[scope].recount(id, memory.access_count, memory.last_accessed)
                continue
            self._revision = max(self._revision + 1, memory.revision)
            memory.revision = self._revision
            if scope not in self._shelves:
                self._shelves[scope] = Shelf(floor=self._revision - 1)
            self._shelves[scope].put(memory)

    def _persist(self, scope: Scope, written: Written, revision: int) -> None:
        gone = set(written.deleted)
        new = {m.id: m for m in written.saved if m.revision > self._revision}
        rows = []
        for where, shelf in self._shelves.items():
            waiting = self._retrievals.get(where, {})
            for memory in shelf.memories.values():
                if where == scope and (memory.id in gone or memory.id in new):
                    continue
                count, last = waiting.get(memory.id, (0, 0.0))
                seen = max(memory.last_accessed, last)
                rows.append(
                    memory.copy(access_count=memory.access_count + count, last_accessed=seen)
                )
        self._save([*rows, *new.values()])

    def _distrust(self) -> None:
        self._signature = ()

    def _save(self, memories: list[Memory]) -> None:
        files.sweep(self.path)  # what a killed process left may hold what is now deleted
        memories.sort(key=lambda m: (m.created_at, m.revision))
        rows = ",\n".join(json.dumps(m.to_dict(), ensure_ascii=False) for m in memories)
        files.write_atomically(self.path, f"[\n{rows}\n]\n".encode())
        self._signature = files.signature(self.path)

    def check(self, fix: bool = False) -> list[Problem]:
        """Read the file anew; with ``fix``, keep only what is readable (the rest was set aside)."""
        with self._open(writing=fix):
            self._signature = ()
            self._catch_up()
            problems = [Problem(reason, fix) for reason in self._bad]
            if fix and problems:
                self._save([m for s in self._shelves.values() for m in s.memories.values()])
                self._bad = []
            return problems

    def backup(self, path: Path) -> None:
        with self._open():
            with files.store_errors(self.path):
                data = self.path.read_bytes() if self.path.exists() else b"[]\n"
            files.make_folder(path.parent)
            files.write_atomically(path, data)


class JSONFileStore(Store):
    """One readable JSON array of memories, the whole of it rewritten by every write.

    Meant for a thousand memories and for people who want to read the file; a
    :class:`~retain.SQLiteStore` is faster from the first memory on, and takes millions.
    Several processes may use one file: writes are atomic (unique temporary file, fsync,
    rename, fsync of the folder) under a lock beside it (``<name>.lock``), and each sees what
    the others wrote. What can't be read is copied to ``<name>.set-aside-…`` first.

    ``path``: the file, made with its folders if it is not there; ``~`` is expanded.
    ``allow_network``: accept a network file system, where the lock may not hold.
    Raises ``StoreFailed`` where the place can't be used.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        scope: Scope | None = None,
        allow_network: bool = False,
    ) -> None:
        place = files.real_path(path)
        super().__init__(JSONFileDriver(place, allow_network=allow_network), scope)


def _rows(text: str) -> tuple[list[Any], list[tuple[str, str | None]]]:
    try:
        rows = json.loads(text)
        if isinstance(rows, list):
            return rows, []
        return [], [(f"the file holds a JSON {type(rows).__name__}, not an array", None)]
    except (ValueError, RecursionError) as error:
        return _salvage(text), [(f"the file is no JSON array: {error}", None)]


def _salvage(text: str) -> list[Any]:
    """What can be read of a broken array: after what can't, on from the next row.

    A row that retain wrote begins a line; an object inside of one does not.
    """
    decoder = json.JSONDecoder()
    rows: list[Any] = []
    at = 0
    while True:
        gap = _GAP.match(text, at)
        try:
            row, at = decoder.raw_decode(text, gap.end() if gap else at)
            rows.append(row)
        except (ValueError, RecursionError):
            at = text.find("\n{", gap.end() if gap else at) + 1
            if not at:
                return rows
