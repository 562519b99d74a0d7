"""A memory directory that is carried between hosts: restored at first, saved after changes."""

from __future__ import annotations

import logging
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from .. import files
from ..backends import KnowledgeBackend
from ..backends.archive import (
    pack,
    read_directory,
    refuse_obstacles,
    unpack,
    write_directory,
)
from ..errors import InvalidValue, StoreCorrupt
from ..locks import FileLock
from ..stores.base import Store
from ..stores.sqlite import SQLiteStore
from ..stores.sqlite_replace import is_sqlite, replace_content

__all__ = ["Carried"]

log = logging.getLogger("retain")

_LEFT_BEHIND = re.compile(r"(.*/)?(\..*|[^/]*(\.lock|\.tmp|-wal|-shm|\.set-aside-[^/]*))")


class Carried:
    """The directory ``place`` and its ``backend``; does nothing where either is ``None``.

    What is carried: MEMORY.md, the logs, what can be restored, and one consistent copy of the
    store, if it lies in the directory; no lock, no temporary file, nothing that can be made
    again.
    """

    def __init__(self, place: Path | None, backend: KnowledgeBackend | None) -> None:
        self.backend = backend
        self.store: Store | None = None
        self._place = place
        self.restored = False
        self.saved = -1
        self._refused = ""
        if backend is not None:
            if place is None:
                raise InvalidValue("a backend carries a directory; give a storage_dir too")
            files.make_folder(place)
            self._turn = FileLock(place / ".backend.lock")
            with self.turn(), FileLock(place / ".lock").held():
                self._restore(place, backend)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Held from a write to the end of its save: no restore comes in between, and no older
        archive is saved after a newer one."""
        with nullcontext() if self.backend is None else self._turn.held():
            yield

    def _restore(self, place: Path, backend: KnowledgeBackend) -> None:
        blob = backend.load_bytes()
        if blob is None:
            return
        try:
            found = unpack(blob)
        except StoreCorrupt as error:
            kept = files.set_aside(place / "archive", blob)
            self._refused = f"{error}; it is kept in {kept.name}"
            log.warning(
                "the back end's archive can't be read: %s. Nothing is saved over it until "
                "flush(overwrite=True) is called",
                self._refused,
            )
            return
        for name in [name for name in found if _LEFT_BEHIND.fullmatch(name)]:
            log.warning("the back end's archive holds %s, which is not restored", name)
            del found[name]
        refuse_obstacles(place, found)
        opened = {name: data for name, data in found.items() if _replaced(place / name, data)}
        write_directory(place, {name: found[name] for name in found.keys() - opened.keys()})
        for name in (".MEMORY.synced", "MEMORY.forgotten.jsonl"):  # of what was here before
            for path in [place / name, *place.glob(f"scopes/*/{name}")]:
                if path.relative_to(place).as_posix() not in found:
                    path.unlink(missing_ok=True)
        self.restored = True

    def save(self, revision: int, *, overwrite: bool = False) -> None:
        """Pack the directory and save it; an archive that couldn't be read only if told so.

        ``revision``: the store's, kept in ``saved``.
        """
        if self.backend is None or self._place is None:
            return
        if self._refused and not overwrite:
            log.warning("not saved to the back end: %s", self._refused)
        else:
            self._refused = ""
            with self.turn():
                self.backend.save_bytes(pack(self._packed(self._place)))
        self.saved = revision

    def _packed(self, place: Path) -> dict[str, bytes]:
        found = read_directory(place, lambda name: _LEFT_BEHIND.fullmatch(name) is not None)
        if not isinstance(self.store, SQLiteStore) or self.store.path is None:
            return found
        place, path = place.resolve(), self.store.path.resolve()
        if place in path.parents:
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder) / path.name
                self.store.backup(copy)
                found[path.relative_to(place).as_posix()] = copy.read_bytes()
        return found


def _replaced(path: Path, data: bytes) -> bool:
    """Let a SQLite file that is there, and perhaps open, hold ``data``; whether it does now."""
    if not is_sqlite(data) or not path.exists():
        return False
    try:
        replace_content(path, data)
    except sqlite3.DatabaseError as error:
        log.warning("%s can't be opened (%s) and is replaced as a whole", path, error)
        for end in ("-wal", "-shm"):  # of the file that is replaced
            files.beside(path, end).unlink(missing_ok=True)
        return False
    return True
