"""The daily logs of a memory directory, kept in step with the store."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from .. import files
from ..directory import daily_log
from ..errors import InvalidValue
from ..models import Memory, MemoryType

__all__ = ["Logs"]

log = logging.getLogger("retain")

_CHUNK = 200  # entries that are looked up in the store at once


class _Known(NamedTuple):
    """What was read of a log: ``end`` are its last bytes, by which it is known again."""

    signature: tuple[int, int, int]
    size: int
    end: bytes
    ids: set[str]


_NOTHING = _Known((0, 0, 0), 0, b"", set())
_END = 256


class Logs:
    """The folder ``logs/``: a line for each memory, on the day that it is of.

    Nothing but :meth:`sync` forces lines to the disk: the store has what they say.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files.make_folder(folder)
        self._known: dict[Path, _Known] = {}
        self._unsynced: set[Path] = set()
        self._named: set[Path] = set()  # whose names in the folder are on the disk
        self._reported: set[tuple[Path, int]] = set()

    # -- in step ---------------------------------------------------------------------------

    def project(self, saved: Sequence[Memory], deleted: Collection[str], anew: bool) -> None:
        """Show what changed in the store: lines that read otherwise, and lines gone.

        ``anew``: ``saved`` is not what changed but all there is, most of it as it was.
        """
        if deleted:
            for _, path in daily_log.log_files(self.folder):
                doomed = self._ids(path) & set(deleted)
                if doomed:
                    self._rewrite(path, daily_log.without(_read(path), doomed))
        for memory in saved:
            path = self._path(memory)
            may_differ = not anew or memory.updated_at > memory.created_at
            if may_differ and memory.id in self._ids(path):
                self._rewrite(path, daily_log.with_content(_read(path), memory))

    def append(self, memories: Iterable[Memory], oldest: date) -> None:
        """A line for each that has none, unless it is from before ``oldest``.

        That is history that was imported, and as a line it would be pruned at once.
        """
        lines: dict[Path, list[bytes]] = {}
        for memory in memories:
            path = self._path(memory)
            if memory.id not in self._ids(path) and _day(path) >= oldest:
                lines.setdefault(path, []).append(daily_log.format_line(memory))
        for path, new in lines.items():
            daily_log.append(path, b"".join(new))
            self._unsynced.add(path)

    def _path(self, memory: Memory) -> Path:
        return self.folder / daily_log.log_name(memory.created_at)

    def _ids(self, path: Path) -> set[str]:
        """The ids in a log; only what came to it since is read."""
        signature = files.signature(path)
        if signature is None:
            self._known.pop(path, None)
            return set()
        known = self._known.get(path, _NOTHING)
        if known.signature == signature:
            return known.ids
        with files.store_errors(path), path.open("rb") as file:
            file.seek(max(0, known.size - len(known.end)))
            same = file.read(len(known.end)) == known.end
            if not same:  # rewritten, whatever its inode and its size say
                known = _NOTHING
                file.seek(0)
            data = file.read()
        ids = set() if known is _NOTHING else known.ids
        ids.update(entry["id"] for entry in daily_log.parse(data).entries if entry["id"])
        whole = data[: data.rfind(b"\n") + 1]  # half a line is read again when it is more
        end = (known.end + whole)[-_END:]
        self._known[path] = _Known(signature, known.size + len(whole), end, ids)
        return ids

    def _rewrite(self, path: Path, data: bytes) -> None:
        with files.store_errors(path):
            if data.strip():
                if data != path.read_bytes():
                    files.write_atomically(path, data)
            else:
                self._remove(path)

    def _remove(self, path: Path) -> None:
        files.sweep(path)
        with files.store_errors(path):
            path.unlink(missing_ok=True)
            files.sync_folder(self.folder)
        self._unsynced.discard(path)
        self._named.discard(path)

    def sync(self) -> None:
        """Force to the disk what was appended."""
        for path in self._unsynced:
            with files.store_errors(path):
                if path.exists():
                    handle = os.open(path, os.O_RDWR)
                    try:
                        os.fsync(handle)
                    finally:
                        os.close(handle)
        if not self._unsynced <= self._named:
            files.sync_folder(self.folder)
            self._named |= self._unsynced
        self._unsynced.clear()

    # -- reading and pruning ---------------------------------------------------------------

    def entries(
        self, visible: Callable[[list[str]], Collection[str]], since: date | None = None
    ) -> Iterator[dict[str, Any]]:
        """Entries newest first, from the day ``since`` on.

        ``visible`` tells which ids of a list are in the store; a line whose memory isn't
        there, or is expired, is passed over. Lines without an id are a person's.
        """
        for day, path in reversed(daily_log.log_files(self.folder)):
            if since is not None and day < since:
                return
            parsed = daily_log.parse(_read(path))
            self._report(path, parsed.unreadable)
            order = sorted(range(len(parsed.times)), key=lambda at: (parsed.times[at], at))[::-1]
            for start in range(0, len(order), _CHUNK):
                chunk = [parsed.entries[at] for at in order[start : start + _CHUNK]]
                shown = set(visible([entry["id"] for entry in chunk if entry["id"]]))
                yield from (e for e in chunk if e["id"] is None or e["id"] in shown)

    def memories(self) -> dict[str, Memory]:
        """What the lines with an id tell of their memories, by id."""
        found: dict[str, Memory] = {}
        for _, path in daily_log.log_files(self.folder):
            data = _read(path)
            parsed = daily_log.parse(data)
            for time, entry in zip(parsed.times, parsed.entries, strict=True):
                if entry["id"]:
                    try:
                        found[entry["id"]] = _memory(time, entry)
                    except InvalidValue:  # an id that is none of ours
                        files.set_aside(path, data)
        return found

    def _report(self, path: Path, unreadable: Iterable[daily_log.Unreadable]) -> None:
        for line in unreadable:
            if (path, line.line) not in self._reported:
                self._reported.add((path, line.line))
                log.warning("%s, line %d %s; it is left as it is", path, line.line, line.reason)

    def stale(self, before: date) -> list[Path]:
        """The logs of days before ``before``."""
        return [path for day, path in daily_log.log_files(self.folder) if day < before]

    def ids(self, paths: Iterable[Path]) -> set[str]:
        """The ids in these logs."""
        return {id for path in paths for id in self._ids(path)}

    def remove(self, paths: Iterable[Path]) -> int:
        """Delete these logs; how many there were."""
        count = 0
        for path in paths:
            self._remove(path)
            count += 1
        return count


def _memory(time: float, entry: dict[str, Any]) -> Memory:
    return Memory(
        entry["id"],
        entry["content"],
        MemoryType.SEMANTIC,
        created_at=time,
        category=entry["category"],
        persistent=entry["persistent"],
    ).checked()


def _read(path: Path) -> bytes:
    with files.store_errors(path):
        return path.read_bytes()


def _day(path: Path) -> date:
    day = daily_log.log_date(path.name)
    assert day is not None
    return day
