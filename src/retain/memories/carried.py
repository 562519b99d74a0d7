"""A memory directory that is carried between hosts: restored at first, saved after changes."""

from __future__ import annotations

import logging
import random
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from .. import files
from ..backends import ComparingBackend, KnowledgeBackend
from ..backends.archive import (
    pack,
    read_directory,
    refuse_obstacles,
    unpack,
    write_directory,
)
from ..engine import Engine
from ..errors import Conflict, InvalidType, InvalidValue, RetainError, StoreCorrupt, StoreFailed
from ..locks import FileLock
from ..scope import Scope
from ..stores.base import Store
from ..stores.sqlite import SQLiteDriver
from ..stores.sqlite_replace import is_sqlite, replace_content
from .agreed import Agreed, AgreedFile
from .directory import BareNotebook, Notebook
from .forgotten import Forgotten
from .merging import (
    Done,
    ScopeFiles,
    copies,
    kind_of,
    memories_of,
    merge_scope,
    opened,
    other_files,
)

__all__ = ["Carried", "Room"]

log = logging.getLogger("retain")

_LEFT_BEHIND = re.compile(
    r"(.*/)?(\..*|[^/]*(\.lock|\.tmp|-wal|-shm|\.set-aside-[^/]*)|[^/]*\.db-index(/.*)?)"
)
_DERIVED = (".MEMORY.synced", ".MEMORY.added", "MEMORY.forgotten.jsonl")  # of a scope's folder
_ATTEMPTS = 20  # at a save that other hosts keep overtaking


class Room(NamedTuple):
    """One scope of the directory: its engine, its notebook, and the folder of its files."""

    engine: Engine
    notebook: Notebook
    folder: Path


def _left_behind(path: str) -> bool:
    return _LEFT_BEHIND.fullmatch(path) is not None


class Carried:
    """The directory ``place`` and its ``backend``; does nothing where either is ``None``.

    What is carried: MEMORY.md, the logs, what can be restored, and one consistent copy of the
    store, if it lies in the directory; no lock, no temporary file, nothing that can be made
    again. What both had in common last is kept in ``.backend.last``, by which a save that
    meets another host's is merged with it.
    """

    def __init__(
        self,
        place: Path | None,
        backend: KnowledgeBackend | None,
        room: Callable[[Scope | None], Room],
    ) -> None:
        self.backend = backend
        self.store: Store | None = None
        self.saved = -1  # the store's revision that is known to be there
        self._tried = -1
        self._failed = False
        self._room = room  # of a scope; of the face's own for None
        self._refused = ""
        self._waiting: bytes | None = None  # the other hosts' archive, until the store is open
        if backend is None:
            return
        if place is None:
            raise InvalidValue("a backend carries a directory; give a storage_dir too")
        if isinstance(backend, type) or not isinstance(backend, KnowledgeBackend):
            raise InvalidType(
                f"backend is a {type(backend).__name__}; give an object with the methods "
                "load_bytes and save_bytes"
            )
        self._place = place
        self._key = str(getattr(backend, "key", None) or "")
        self._agreed = AgreedFile(place / ".backend.last")
        is_new = not place.exists()
        blob = backend.load_bytes() if is_new else None  # a failure makes no folder
        files.make_folder(place)
        self._turn = FileLock(place / ".backend.lock")
        with self.turn(), FileLock(place / ".lock").held():
            agreed = self._agreed.load()
            if not is_new or agreed is not None:
                blob = backend.load_bytes()
            self._begin(blob, agreed)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Held from a write to the end of its save: no restore comes in between, and no older
        archive is saved after a newer one."""
        with nullcontext() if self.backend is None else self._turn.held():
            yield

    # -- opening ---------------------------------------------------------------------------

    def _begin(self, blob: bytes | None, agreed: Agreed | None) -> None:
        """Restore what is kept, unless what is here is to be merged with it."""
        self._restored = False
        if agreed is not None and self._is_anothers(agreed):
            self._make_way(agreed)
            agreed = None
        if blob is None:
            self._agreed.save(Agreed(None, self._key))
        elif agreed is not None and self._is_whole(agreed):
            if blob != agreed.blob and self._unpacked(blob) is not None:
                self._waiting = blob
        else:
            found = self._unpacked(blob)
            if found is not None:
                self._restore(found)
                self._agreed.save(Agreed(blob, self._key))
                self._restored = True

    def open(self, store: Store) -> None:
        """The directory's store is open: call it before anything else looks at it."""
        self.store = store
        agreed = None if self.backend is None else self._agreed.load()
        if agreed is None:
            return
        if self._restored or not store.revision:
            self.saved = store.revision  # there is nothing to save yet
        elif agreed.blob is not None:
            self.saved = agreed.revision
        if agreed.store == ("", "", ""):
            self._agree(agreed.blob, max(self.saved, 0))

    def catch_up(self) -> None:
        """Merge what other hosts saved since this directory was last in use."""
        if self._waiting is None or self.store is None:
            return
        with self.turn():
            agreed = self._agreed.load()
            has_more = self.store.revision != self.saved
            if agreed is not None and self._merge(agreed, self._waiting):
                self.saved = -1 if has_more else self.store.revision
                self._agree(self._waiting, max(self.saved, 0))
        self._waiting = None

    def _is_anothers(self, agreed: Agreed) -> bool:
        return self._key != agreed.key and bool(self._key and agreed.key)

    def _is_whole(self, agreed: Agreed) -> bool:
        """Whether the directory has at least what was agreed: its store was not lost."""
        kind, path, identity = agreed.store
        if not kind or not (self._place / path).exists():
            return False
        try:
            with opened(kind, self._place / path) as store:
                return store.driver.identity == identity and store.revision >= agreed.revision
        except StoreCorrupt as error:
            log.warning("%s; what was carried takes its place", error)
            return False

    def _make_way(self, agreed: Agreed) -> None:
        """Empty the directory, which holds what is kept under another key, and only that."""
        kind, path, _ = agreed.store
        known = {} if agreed.blob is None else unpack(agreed.blob)
        here = read_directory(self._place, _left_behind)
        unsaved = [name for name, data in here.items() if name != path and known.get(name) != data]
        if kind and (self._place / path).exists():
            with opened(kind, self._place / path) as store:
                unsaved += [path] if store.revision != agreed.revision else []
        if unsaved:
            raise InvalidValue(
                f"{self._place} is the directory of the key {agreed.key!r}, and {unsaved[0]} in it "
                f"is not saved there yet: open it with that key and flush, or give the key "
                f"{self._key!r} a directory of its own"
            )
        for found in self._place.iterdir():
            if found.name not in (".lock", ".backend.lock"):
                with files.store_errors(found):
                    is_folder = found.is_dir() and not found.is_symlink()
                    shutil.rmtree(found) if is_folder else found.unlink()

    def _unpacked(self, blob: bytes) -> dict[str, bytes] | None:
        """The files of an archive; ``None`` where it can't be read: then it is kept as it is."""
        try:
            found = unpack(blob)
        except StoreCorrupt as error:
            self._refuse(blob, error)
            return None
        for name in [name for name in found if _left_behind(name)]:
            log.warning("the back end's archive holds %s, which is not restored", name)
            del found[name]
        refuse_obstacles(self._place, found)
        return found

    def _refuse(self, blob: bytes, error: StoreCorrupt) -> None:
        kept = files.set_aside(self._place / "archive", blob)
        self._refused = f"{error}; it is kept in {kept.name}"
        log.warning(
            "the back end's archive can't be read: %s. Nothing is saved over it until "
            "flush(overwrite=True) is called",
            self._refused,
        )

    def _restore(self, found: Mapping[str, bytes]) -> None:
        self._write(found)
        for name in _DERIVED:  # of what was here before
            for path in [self._place / name, *self._place.glob(f"scopes/*/{name}")]:
                if path.relative_to(self._place).as_posix() not in found:
                    path.unlink(missing_ok=True)

    def _write(self, found: Mapping[str, bytes]) -> None:
        place = self._place
        opened = {name for name, data in found.items() if _replaced(place / name, data)}
        write_directory(place, {name: found[name] for name in found.keys() - opened})

    # -- saving ----------------------------------------------------------------------------

    def is_behind(self) -> bool:
        """Whether something is to be saved that no save was tried for."""
        if self.backend is None or self.store is None:
            return False
        revision = self.store.revision
        if revision in (self.saved, self._tried):
            return False
        agreed = self._agreed.load()
        if agreed is not None and agreed.blob is not None and agreed.revision == revision:
            self.saved = revision  # by another process
        return revision != self.saved

    @property
    def is_pending(self) -> bool:
        """Whether the last save failed."""
        return self._failed and self.store is not None and not self.store.driver.closed

    def save(self, *, overwrite: bool = False) -> None:
        """Pack the directory and save it; an archive that couldn't be read only if told so.

        What another host saved meanwhile is merged with it first, where the back end can
        compare. Raises ``StoreFailed``, or the back end's own error of retain, where it
        couldn't be saved: it is safe here, and the next save has it too.
        """
        if self.backend is None or self.store is None:
            return
        if self._refused and not overwrite:
            log.warning("not saved to the back end: %s", self._refused)
            self.saved = self.store.revision
            return
        with self.turn():
            agreed = self._agreed.load()
            if agreed is not None and self._is_anothers(agreed):
                raise InvalidValue(
                    f"{self._place} was taken over for the key {agreed.key!r}; open the key "
                    f"{self._key!r} in a directory of its own"
                )
            self._tried, self._failed = self.store.revision, True
            try:
                self._save(self.backend, self.store, overwrite)
                self._failed = False
            except Exception as error:  # whatever the user's back end raises
                told = (
                    f"{error or type(error).__name__}; what was remembered is safe in "
                    f"{self._place}, but not saved to the back end yet: the next save or flush() "
                    "makes up for it"
                )
                kind = type(error) if isinstance(error, RetainError) else StoreFailed
                raise kind(told) from error

    def _save(self, backend: KnowledgeBackend, store: Store, overwrite: bool) -> None:
        agreed = known = self._agreed.load() or Agreed(None, self._key)
        try:
            for attempt in range(_ATTEMPTS):
                revision = store.revision
                blob = pack(self._packed(store))
                if overwrite or not isinstance(backend, ComparingBackend):
                    backend.save_bytes(blob)
                elif not backend.replace_bytes(agreed.blob, blob):
                    theirs = backend.load_bytes()
                    if not self._merge(agreed, theirs):
                        return
                    agreed = agreed._replace(blob=theirs)
                    time.sleep(random.uniform(0, 0.005 * attempt))  # so that each has its turn
                    continue
                self._agree(blob, revision)
                self.saved, self._refused = revision, ""
                agreed = known
                return
        finally:  # what is merged must be known before any of it is forgotten here
            if agreed is not known:
                self._agree(agreed.blob, 0)
        raise Conflict(f"other hosts saved to the back end {_ATTEMPTS} times meanwhile")

    def _agree(self, blob: bytes | None, revision: int) -> None:
        assert self.store is not None
        kind = kind_of(self.store, self._place)
        known = ("", "", "") if kind is None else (*kind, self.store.driver.identity)
        self._agreed.save(Agreed(blob, self._key, known, revision))

    def _packed(self, store: Store) -> dict[str, bytes]:
        found = read_directory(self._place, _left_behind)
        kind = kind_of(store, self._place)
        if kind is not None and isinstance(store.driver, SQLiteDriver):
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder) / "copy.db"
                store.backup(copy)
                found[kind[1]] = copy.read_bytes()
        return found

    # -- merging ---------------------------------------------------------------------------

    def _merge(self, agreed: Agreed, blob: bytes | None) -> bool:
        """Bring in what other hosts saved since ``agreed``; ``False`` where it can't be read."""
        if blob is None:  # it was deleted there: all that is here is to be saved again
            return True
        theirs = self._unpacked(blob)
        if theirs is None:
            return False
        base = {} if agreed.blob is None else unpack(agreed.blob)
        try:
            done = self._merge_store(base, theirs)
        except StoreCorrupt as error:
            self._refuse(blob, error)
            return False
        others = other_files(self._place, base, theirs, _left_behind, done)
        self._write({name: data for name, data in others.items() if data is not None})
        for name in [name for name, data in others.items() if data is None]:
            (self._place / name).unlink(missing_ok=True)
        return True

    def _merge_store(self, base: Mapping[str, bytes], theirs: Mapping[str, bytes]) -> Done:
        kind = kind_of(self.store, self._place)
        if kind is None:
            return Done("", ())
        with ExitStack() as stack:
            before, there = copies(stack, base, theirs, *kind)
            if there is None:  # they keep their memories elsewhere
                return Done("", ())
            found = {*there.scopes(), *(before.scopes() if before is not None else ())}
            rooms = [self._room(scope) for scope in sorted(found, key=lambda scope: scope.key)]
            if self._room(None).folder not in [room.folder for room in rooms]:
                rooms.append(self._room(None))
            for room in rooms:
                self._merge_room(room, before, there, base, theirs)
        return Done(kind[1], {self._prefix(room) for room in rooms})

    def _prefix(self, room: Room) -> str:
        folder = room.folder.relative_to(self._place).as_posix()
        return "" if folder == "." else f"{folder}/"

    def _merge_room(
        self,
        room: Room,
        before: Store | None,
        there: Store,
        base: Mapping[str, bytes],
        theirs: Mapping[str, bytes],
    ) -> None:
        own = ScopeFiles(room.folder, self._prefix(room), base, theirs)
        forgotten = Forgotten(room.folder / "MEMORY.forgotten.jsonl")
        with room.notebook.writing():
            sides = merge_scope(room.engine, before, there, forgotten)
            own.merge_forgotten(sides, memories_of(room.engine.store, room.engine.store.scope))
            if not isinstance(room.notebook, BareNotebook):
                own.merge_logs()
        if not isinstance(room.notebook, BareNotebook):
            own.merge_prose()
            with room.notebook.writing():
                pass
            room.notebook.close()


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
