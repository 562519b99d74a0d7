"""Memories in an append-only file of JSON lines: a write costs the same at any size."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .. import clock, files
from ..errors import InvalidValue, RetainError, StoreFailed, StoreTooNew
from ..locks import FileLock
from ..models import Memory, as_text
from ..scope import Scope
from .base import Problem, Store, Written, log
from .table import Shelf, TableDriver

__all__ = ["FileStore"]

_VERSION = 1
_SLACK = 1 << 16  # bytes of dead space that are never worth a compaction
_VOID = re.compile(rb'\{"left":([0-9]{1,9})\}( *\n)?')

Place = tuple[int, int, int]  # where a line stands in the file: offset, length, its "left"


class FileDriver(TableDriver):
    """The log in memory, and in step with the file that others may append to.

    A line is one change: ``{"r": revision, "s": scope key, "left": n, "save": {…}}``, or
    ``"delete": id``, or ``"seen": {id: [count, time]}``. ``left`` counts down to 0 over the
    lines of one write, which is applied as a whole or not at all. A line that a later one
    made void is overwritten with its ``left`` and blanks where it stands, so that deleted
    text leaves the disk at once; the space is won back by compaction. The first line names
    the format, the revision up to which deletions are no longer known, and the file itself,
    since a new file can get the inode of an old one.

    Everything, reading new lines too, happens under the lock; a torn line at the end can
    therefore only be what a killed process left.
    """

    def __init__(self, folder: Path, *, allow_network: bool = False) -> None:
        super().__init__()
        files.refuse_network(folder, allow=allow_network)
        files.make_folder(folder)
        self.path: Path = files.real_path(folder / "memories.jsonl")
        self._file_lock = FileLock(self.path.with_name("memories.jsonl.lock"))
        self._distrust()
        with self._file_lock.held(required=False) as held, self._open():
            if held:
                files.sweep(self.path)

    # -- in step with the file -------------------------------------------------------------

    def _distrust(self) -> None:
        self._shelves = {}
        self._revision = self._floor = 0
        self._signature: tuple[int, int, int] | None = None
        self._head = b""
        self._end = self._live = 0
        self._places: dict[tuple[Scope, str], Place] = {}
        self._void: list[Place] = []
        self._bad: list[str] = []

    @contextmanager
    def _exclusive(self, writing: bool) -> Iterator[None]:
        if not writing and self._end and files.signature(self.path) == self._signature:
            yield
            return
        with self._file_lock.held(required=writing):
            self._catch_up(writing)
            yield

    def _catch_up(self, writing: bool) -> None:
        with files.store_errors(self.path):
            found = files.signature(self.path)
            if writing and (found is None or not found[1]):
                files.write_atomically(self.path, _head())
                found = files.signature(self.path)
            if found is None:
                self._distrust()
                return
            with self.path.open("rb") as file:
                known = self._signature and self._signature[0] == found[0]
                if not known or self._end > found[1] or file.read(len(self._head)) != self._head:
                    self._distrust()
                file.seek(self._end)
                data = file.read()
        self._signature = found
        try:
            torn = self._apply_lines(data)
        except BaseException:
            self._distrust()
            raise
        if torn:
            self._bad.append(f"the last {len(torn)} bytes are an incomplete write")
        if writing:
            self._mend(torn)
            self._blank()

    def _apply_lines(self, data: bytes) -> bytes:
        """Apply the complete writes in ``data``; what is left of an incomplete one at the end."""
        start, at = self._end, 0
        batch: list[tuple[dict[str, Any], Place]] = []
        unreadable: list[bytes] = []
        while (stop := data.find(b"\n", at) + 1) > 0:
            raw, offset = data[at:stop], start + at
            at = stop
            change = self._parse(raw, offset)
            if change is None:  # the write that it was a part of is whole without it
                unreadable.append(raw)
                change = {"left": max(0, batch[-1][0]["left"] - 1) if batch else 0}
            batch.append((change, (offset, len(raw), change["left"])))
            if change["left"] == 0:
                for done, place in batch:
                    self._apply_line(done, place)
                batch = []
                self._end = start + at
        if unreadable:
            files.set_aside(self.path, b"".join(unreadable))
            self._bad.append(f"{len(unreadable)} lines are unreadable; a copy is set aside")
        return data[self._end - start :]

    def _parse(self, raw: bytes, offset: int) -> dict[str, Any] | None:
        """The change on a line, checked; ``None`` where it is none."""
        void = _VOID.match(raw)
        if void:
            place = (offset, len(raw), int(void[1]))
            if void[2] is None:  # a kill came between: the rest of the old text is still there
                self._void.append(place)
            return {"left": place[2]}
        try:
            change = json.loads(raw.decode())
            if offset == 0 and change.get("retain") == "memories":
                return self._head_of(change, raw)
            scope = Scope.from_key(change["s"])
            checked = {"s": scope, "r": _whole(change["r"]), "left": _whole(change["left"])}
            if "save" in change:
                row = {**change["save"], "revision": change["r"], "scope": scope}
                return {**checked, "save": Memory.from_dict(row)}
            if "delete" in change:
                return {**checked, "delete": as_text(change["delete"], "an id")}
            seen = {
                id: (_whole(count), clock.as_epoch(last))
                for id, (count, last) in change["seen"].items()
            }
            return {**checked, "seen": seen}
        except StoreTooNew:
            raise
        except (RetainError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None

    def _head_of(self, head: dict[str, Any], raw: bytes) -> dict[str, Any]:
        if _whole(head["version"]) > _VERSION:
            raise StoreTooNew(
                f"{self.path} has version {head['version']}, and this retain knows up to "
                f"{_VERSION}: upgrade retain"
            )
        floor = _whole(head.get("revision", 0))
        self._head = raw
        return {"left": 0, "floor": floor}

    def _apply_line(self, change: dict[str, Any], place: Place) -> None:
        if "floor" in change:
            self._revision = self._floor = change["floor"]
            return
        if "s" not in change:  # void
            return
        scope: Scope = change["s"]
        if "seen" in change:
            shelf = self._shelf(scope)
            for id, (count, last) in change["seen"].items():
                if seen := shelf.memories.get(id):
                    shelf.recount(id, seen.access_count + count, max(seen.last_accessed, last))
            return
        shelf = self._shelves.setdefault(scope, Shelf(self._floor))
        self._revision = max(self._revision, change["r"])
        id = change["save"].id if "save" in change else change["delete"]
        before = self._places.pop((scope, id), None)
        if before:
            self._void.append(before)
            self._live -= before[1]
        if "save" in change:
            shelf.put(change["save"])
            self._places[scope, id] = place
            self._live += place[1]
        else:
            shelf.delete(id, change["r"])

    # -- writing ---------------------------------------------------------------------------

    def _persist(self, scope: Scope, written: Written, revision: int) -> None:
        # Retrievals first: a memory that is saved now has them in its count already.
        changes: list[dict[str, Any]] = [
            {"r": self._revision, "s": where.key, "seen": waiting}
            for where, waiting in self._retrievals.items()
            if waiting
        ]
        at = self._revision
        for id in written.deleted:
            at += 1
            changes.append({"r": at, "s": scope.key, "delete": id})
        for memory in written.saved:
            if memory.revision > self._revision:
                row = memory.to_dict()
                del row["revision"], row["scope"]
                changes.append({"r": memory.revision, "s": scope.key, "save": row})
        left = range(len(changes))[::-1]
        data = b"".join(_line(left=n, **c) for n, c in zip(left, changes, strict=True))
        self._append(data)
        self._apply_lines(data)  # like anybody's lines: there is one way into the shelves

    def _append(self, data: bytes) -> None:
        # Unbuffered: closing a file would write what its buffer holds after a failure, too.
        with files.store_errors(self.path), self.path.open("r+b", buffering=0) as file:
            try:
                file.seek(self._end)
                rest = memoryview(data)
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
            except BaseException:
                with suppress(OSError):  # then the next write cuts it off; this error says more
                    os.truncate(self.path, self._end)
                raise

    def _apply(self, scope: Scope, shelf: Shelf, written: Written, revision: int) -> None:
        self._retrievals.clear()
        self._tidy()

    def _tidy(self, *, compact: bool = False) -> None:
        """Take out what is void. The write is done by now, even if the disk refuses this."""
        try:
            self._blank()
            if compact or self._end - self._live > max(_SLACK, self._live):
                self._compact()
        except StoreFailed as error:
            log.warning("what is deleted stays in the file until the next write: %s", error)
        self._signature = files.signature(self.path)

    def _mend(self, torn: bytes) -> None:
        """Cut off what a killed process left of a write that it never reported."""
        if torn:
            files.set_aside(self.path, torn)
            with files.store_errors(self.path):
                os.truncate(self.path, self._end)

    def _blank(self) -> None:
        """Overwrite the lines that are void, where they stand."""
        if not self._void:
            return
        files.sweep(self.path)
        with files.store_errors(self.path), self.path.open("r+b") as file:
            for offset, length, left in self._void:
                file.seek(offset)
                file.write((b'{"left":%d}' % left).ljust(length - 1))
            file.flush()
            os.fsync(file.fileno())
        self._void = []

    def _compact(self) -> None:
        """Write what is live to a new file, and put it in the place of the old one."""
        lines = [_head(self._revision)]
        for scope, shelf in self._shelves.items():
            for memory in shelf.memories.values():
                row = memory.to_dict()
                del row["revision"], row["scope"]
                lines.append(_line(left=0, r=memory.revision, s=scope.key, save=row))
        files.write_atomically(self.path, b"".join(lines))
        shelves, revision = self._shelves, self._revision
        self._distrust()
        self._catch_up(writing=False)
        for scope, shelf in shelves.items():  # this process still knows its deletions
            if scope in self._shelves:
                self._shelves[scope].deletions = shelf.deletions
                self._shelves[scope].floor = shelf.floor
        self._revision = revision

    # -- the place as a whole --------------------------------------------------------------

    def forget_scope(self, scope: Scope) -> int:
        with self._open(writing=True):
            count = super().forget_scope(scope)
            if count:
                self._tidy(compact=True)  # the scope's own name leaves the disk too
            return count

    def check(self, fix: bool = False) -> list[Problem]:
        """Read the whole file anew; with ``fix``, write what is readable into a new one."""
        with self._file_lock.held(required=fix), self._open():
            self._distrust()
            self._catch_up(writing=fix)
            problems = [Problem(reason, fix) for reason in self._bad]
            if fix and problems:
                self._compact()
            return problems

    def backup(self, path: Path) -> None:
        """Write a copy of the file to ``path``, a folder that is made."""
        with self._open(), self._file_lock.held(required=False):
            files.make_folder(path)
            with files.store_errors(self.path):
                data = self.path.read_bytes()[: self._end] if self._end else b""
            files.write_atomically(path / self.path.name, data)


class FileStore(Store):
    """Memories in a folder, as an append-only file of JSON lines with compaction.

    A write appends and fsyncs, whatever the size of the file; everything is also held in
    memory, so it suits up to some ten thousand memories. Several processes may use one
    folder: they take turns under a lock and see what the others wrote. Deleted text is
    overwritten where it stands before the call returns. What can't be read is copied to
    ``memories.jsonl.set-aside-…`` first.

    ``directory``: the folder, made if it is not there; ``~`` is expanded. Raises
    ``StoreFailed`` where it can't be used, ``StoreTooNew`` where a newer version wrote it.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] = "./memory",
        *,
        scope: Scope | None = None,
        allow_network: bool = False,
    ) -> None:
        folder = files.real_path(directory)
        super().__init__(FileDriver(folder, allow_network=allow_network), scope)


def _head(revision: int = 0) -> bytes:
    members = {"retain": "memories", "version": _VERSION, "file": uuid.uuid4().hex}
    return _line(**members, revision=revision)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise InvalidValue(f"{value!r} is no number that stands here")
    return value


def _line(**members: Any) -> bytes:
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
