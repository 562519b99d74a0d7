"""A memory directory: MEMORY.md and the daily logs beside a store, all three in step.

The store is the truth. MEMORY.md and the logs show what changed in it, and can be made
again; what a person edits in MEMORY.md flows the other way, before anything else happens.
Everything goes on under one lock, so that several processes may use one directory.
"""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from .. import clock, files
from ..engine import Engine
from ..errors import InvalidValue, NotFound, StoreFailed
from ..locks import FileLock, ThreadLock
from ..models import Filter, Memory, one_line
from .facts import FactsFile
from .forgotten import Forgotten
from .logs import Logs
from .synced import State, Synced

__all__ = ["BareNotebook", "MemoryDirectory", "Notebook"]

log = logging.getLogger("retain")


class Notebook(Protocol):
    """What ``KnowledgeMemory`` shows to people beside its store."""

    def writing(self) -> AbstractContextManager[None]:
        """A context in which the store may be written; what changed is shown when it ends."""
        ...

    def look(self) -> None:
        """Before a read: hear what a person edited."""
        ...

    def facts(self) -> dict[str, list[str]]:
        """The persistent facts by category, a line each."""
        ...

    def recent(
        self, limit: int, since: date | None = None, transient: bool = False
    ) -> list[dict[str, Any]]:
        """The newest entries, newest first; only those that are not persistent if asked."""
        ...

    def stale(self, before: date) -> bool:
        """Whether there is a log of a day before ``before``."""
        ...

    def prune(self, before: date | None) -> int:
        """Delete the logs of days before ``before`` (``None``: all), and their memories."""
        ...

    def clear(self) -> None:
        """Leave nothing."""
        ...

    def forgotten(self) -> list[tuple[float, Memory]]:
        """What was deleted from MEMORY.md by hand, and when."""
        ...

    def restore(self, id: str) -> Memory:
        """Bring one of those back."""
        ...

    def forget_for_good(self, id: str) -> bool:
        """Let go also of what could be restored; whether it could."""
        ...

    def close(self) -> None:
        """Make all last."""
        ...


class MemoryDirectory:
    """MEMORY.md and ``logs/`` in ``folder``, for the scope of ``engine``.

    ``.MEMORY.synced`` keeps what was last in step, by which a person's edits are told. It may
    be deleted: then nothing that is missing from MEMORY.md counts as deleted.
    """

    def __init__(self, folder: Path, engine: Engine, max_log_days: int) -> None:
        self.folder = folder
        self._engine = engine
        self._max_log_days = max_log_days
        files.make_folder(folder)
        self._facts = FactsFile(folder / "MEMORY.md", engine)
        self._logs = Logs(folder / "logs")
        self._forgotten = Forgotten(folder / "MEMORY.forgotten.jsonl")
        self._synced = Synced(folder / ".MEMORY.synced")
        self._signature: tuple[Any, ...] | None = None
        self._revision = self._saved_revision = 0
        self._store = ""  # the one that was last in step
        self._shown: set[str] = set()  # the facts that had their line in a log
        self._file_lock = FileLock(folder / ".lock")
        self._lock = ThreadLock()
        with self._lock, self._file_lock.held():
            self._sweep()
            self._load()
            if self._is_another_store():
                self._begin_anew()
            with self.writing():
                pass

    # -- in step ---------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hear the person, let the work be done, show what it changed.

        Should the files refuse (a full disk), the work stands, for the store has it: the log
        says so, and the next call makes up for it.
        """
        with self._lock, self._file_lock.held():
            self._load()
            heard = not self._facts.is_untouched() and (
                self._recognise() or self._facts.take_over(self._forgotten.keep)
            )
            yield
            try:
                self._show(heard)
            except StoreFailed as error:
                log.warning("MEMORY.md and the logs are behind the store for now: %s", error)

    def look(self) -> None:
        """Before a read: hear what a person edited, and what other processes wrote."""
        with self._lock:
            current = self._signature is not None and self._signature == self._synced.signature()
            if current and self._facts.is_untouched():
                changes = self._engine.store.changes(self._revision)
                if changes.revision == self._revision and not changes.reset:
                    return
            with self.writing():
                pass

    def _load(self) -> None:
        """Begin from what another process has brought in step, if one has."""
        signature = self._synced.signature()
        if signature == self._signature and signature is not None:
            return
        state = self._synced.load() or State("", 0, "", [None])
        self._store = state.store
        self._facts.load(state.text, state.ids)
        self._facts.add(state.added)
        # What this process has seen in step is so still, whatever the others did since.
        self._revision = 0 if self._facts.text is None else max(self._revision, state.revision)
        self._shown = set(self._facts.lines)
        self._signature, self._saved_revision = signature, self._revision

    def _is_another_store(self) -> bool:
        """Whether the files may know of more than the store: it was lost, or is an older copy."""
        identity = self._engine.store.driver.identity
        return (
            self._facts.text is None
            or (self._store != identity and "" not in (self._store, identity))
            or self._engine.store.revision < max(1, self._revision)
        )

    def _begin_anew(self) -> None:
        """Take over what only the files hold."""
        self._facts.load(None, [])
        self._revision = 0
        logged = self._logs.memories()
        known = {m.id for m in self._engine.store.peek(list(logged), now=0.0)}
        self._engine.restore_many(memory for id, memory in logged.items() if id not in known)

    def _recognise(self) -> bool:
        """Whether MEMORY.md is what a killed process wrote, and no edit of a person."""
        changes = self._engine.store.changes(self._revision)
        saved = list(changes.saved)
        there = {memory.id for memory in saved}
        gone = self._facts.lines.keys() - there if changes.reset else changes.deleted
        return self._facts.recognise(saved, gone)

    def _sweep(self) -> None:
        """Remove what killed processes left, which may hold what is now deleted."""
        paths = (self._facts.path, self._synced.path, self._forgotten.path)
        files.sweep(*paths, *self._logs.stale(date.max))

    def _show(self, heard: bool) -> None:
        """Bring MEMORY.md and the logs in step with the store."""
        saved_file = self._project()
        while saved_file is False:  # a person saved MEMORY.md just now
            heard |= self._facts.take_over(self._forgotten.keep)
            saved_file = self._project()
        if heard or self._signature is None or (saved_file and not self._noted()):
            self._save_state()

    def _noted(self) -> bool:
        """Whether it will do to note the lines that were added."""
        if not self._facts.added or not self._synced.note(self._facts.added):
            return False
        self._shown |= {line.id for line in self._facts.added}
        self._facts.settle()
        self._signature = self._synced.signature()
        return True

    def _project(self) -> bool | None:
        changes = self._engine.store.changes(self._revision)
        saved = list(changes.saved)
        deleted: Collection[str] = changes.deleted
        anew = changes.reset or not self._revision
        if anew:
            there = {memory.id for memory in saved}
            logged = self._logs.ids(self._logs.stale(date.max))
            deleted = (logged | set(self._facts.lines)) - there
        if deleted:
            self._sweep()
        self._logs.project(saved, deleted, anew)
        # A fact that was shown and has no line had one, which was cleared.
        oldest = clock.days_ago(self._max_log_days)
        self._logs.append((m for m in saved if m.id not in self._shown), oldest)
        self._facts.project(saved, deleted)
        written = self._facts.save()
        if written is not False:
            self._revision = changes.revision
        return written

    def _save_state(self) -> None:
        """Keep what is in step, once all of it is on the disk."""
        self._logs.sync()
        identity = self._engine.store.driver.identity
        self._synced.save(identity, self._revision, self._facts.text or "", self._facts.ids())
        self._facts.settle()
        self._signature, self._saved_revision = self._synced.signature(), self._revision
        self._shown = set(self._facts.lines)

    def close(self) -> None:
        """Keep what is in step, so that the next process need not look again."""
        with self._lock, self._file_lock.held():
            if (
                self._revision != self._saved_revision
                and self._signature == self._synced.signature()
            ):
                try:
                    self._save_state()
                except StoreFailed as error:
                    log.warning("the next process will look at all of it again: %s", error)

    # -- what it shows ---------------------------------------------------------------------

    def facts(self) -> dict[str, list[str]]:
        """The persistent facts by category, in the order of MEMORY.md."""
        with self._lock:
            return self._facts.facts()

    def recent(
        self, limit: int, since: date | None = None, transient: bool = False
    ) -> list[dict[str, Any]]:
        """The newest entries of the logs, newest first."""
        entries = self._logs.entries(self._visible, since)
        return list(islice((e for e in entries if not (transient and e["persistent"])), limit))

    def _visible(self, ids: list[str]) -> list[str]:
        return [memory.id for memory in self._engine.store.peek(ids)]

    # -- what goes -------------------------------------------------------------------------

    def stale(self, before: date) -> bool:
        """Whether there is a log of a day before ``before``."""
        return bool(self._logs.stale(before))

    def prune(self, before: date | None) -> int:
        """Delete the logs of days before ``before`` (``None``: all), and their memories.

        Persistent ones stay, and so do memories that never had a line. Returns the number
        of logs.
        """
        with self.writing():
            paths = self._logs.stale(before or date.max)
            found = self._engine.store.peek(list(self._logs.ids(paths)), now=0.0)
            self._engine.forget_many([m.id for m in found if not m.persistent])
            self._forgotten.prune()
            return self._logs.remove(paths)

    def clear(self) -> None:
        """Delete every memory of the scope, the logs, and all of MEMORY.md but its title."""
        with self._lock, self._file_lock.held():
            self._engine.forget_all()
            self._logs.remove(self._logs.stale(date.max))
            self._forgotten.clear()
            self._facts.clear()
            self._revision = self._engine.store.revision
            self._save_state()

    def forget_for_good(self, id: str) -> bool:
        """Let go also of what could be restored; whether it could."""
        with self._lock, self._file_lock.held():
            return bool(self._forgotten.drop(lambda memory: memory.id == id))

    def forgotten(self) -> list[tuple[float, Memory]]:
        """What was deleted from MEMORY.md by hand within 30 days, and when."""
        return self._forgotten.memories()

    def restore(self, id: str) -> Memory:
        """Bring back a fact that was deleted from MEMORY.md by hand."""
        with self.writing():
            found = [memory for _, memory in self._forgotten.memories() if memory.id == id]
            if not found:
                raise NotFound(f"nothing with the id {id!r} was deleted by hand within 30 days")
            gone = found[-1]
            if self._engine.store.peek([id]):  # what its line was changed to
                gone = gone.copy(id=str(uuid.uuid4()))
            memory = self._engine.restore(gone)
            self._logs.append([memory], clock.days_ago(self._max_log_days))
            self._forgotten.drop(lambda memory: memory.id == id)
            return memory


class BareNotebook:
    """No files at all: facts and recent entries straight from the store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Nothing to hear, nothing to show."""
        yield

    def look(self) -> None:
        """Nothing to hear."""

    def facts(self) -> dict[str, list[str]]:
        """The persistent facts by category, oldest first."""
        found: dict[str, list[str]] = {}
        for memory in list(self._engine.store.iterate(narrow=Filter(persistent=True)))[::-1]:
            found.setdefault(one_line(memory.category), []).append(one_line(memory.content))
        return found

    def recent(
        self, limit: int, since: date | None = None, transient: bool = False
    ) -> list[dict[str, Any]]:
        """The newest memories as entries of a log, newest first."""
        narrow = Filter(
            since=None if since is None else _midnight(since),
            persistent=False if transient else None,
        )
        return [
            {
                "timestamp": clock.iso(math.floor(memory.created_at)),
                "category": memory.category,
                "content": memory.content,
                "persistent": memory.persistent,
                "id": memory.id,
            }
            for memory in self._engine.store.page(limit, narrow=narrow)
        ]

    def _old(self, before: date | None) -> list[Memory]:
        until = None if before is None else _midnight(before)
        return list(self._engine.store.iterate(narrow=Filter(persistent=False, until=until)))

    def stale(self, before: date) -> bool:
        """Whether a memory that is not persistent is of a day before ``before``."""
        return bool(self._old(before))

    def prune(self, before: date | None) -> int:
        """Delete what is not persistent of days before ``before``; how many days."""
        old = self._old(before)
        self._engine.forget_many([memory.id for memory in old])
        return len({clock.as_datetime(memory.created_at).date() for memory in old})

    def clear(self) -> None:
        """Delete every memory of the scope."""
        self._engine.forget_all()

    def forget_for_good(self, id: str) -> bool:
        """Nothing is kept to be restored."""
        return False

    def forgotten(self) -> list[tuple[float, Memory]]:
        """Nothing: without MEMORY.md nothing is deleted by hand."""
        return []

    def restore(self, id: str) -> Memory:
        """Refused: nothing was deleted by hand."""
        raise InvalidValue("there is no memory directory, so nothing was deleted by hand")

    def close(self) -> None:
        """Nothing to keep."""


def _midnight(day: date) -> float:
    return (day - date(1970, 1, 1)).days * clock.DAY
