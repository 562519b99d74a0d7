"""The indexes of a process: those used last stay, as many as a budget of memory holds."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections import OrderedDict, deque
from typing import Any, Protocol

from ..locks import ThreadLock
from .embedders import Embedder
from .index import ScopeIndex

__all__ = ["BUDGET", "Background", "IndexCache", "Job", "background"]

log = logging.getLogger("retain")

BUDGET = 512 * 2**20
"""Bytes that the indexes of a process may take together, beside the one in use."""

_LAST = 10.0  # seconds that an end waits for the step that is under way
_LAST_CALL = 1.0  # … and for one that may be left

Key = tuple["weakref.ref[object]", object, str]


class IndexCache:
    """Indexes by owner (what holds the memories), scope and embedder; safe for threads.

    ``budget``: bytes. Beyond, the index that was not used for longest goes; it is made again,
    or opened from its files, when it is asked for. Those of an owner go with it.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self._lock = ThreadLock()
        self._indexes: OrderedDict[Key, ScopeIndex] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self._total = 0

    def __len__(self) -> int:
        return len(self._indexes)

    @property
    def nbytes(self) -> int:
        """Bytes that they take together, about, as of when each was last used."""
        return self._total

    def index(self, owner: object, scope: object, embedder: Embedder | None) -> ScopeIndex:
        """The index, a new and empty one where there is none."""
        key = (weakref.ref(owner), scope, "" if embedder is None else embedder.name)
        with self._lock:
            index = self._indexes.get(key)
            if index is None:
                # The key that is kept takes the index away with its owner.
                key = (weakref.ref(owner, self._ended), scope, key[2])
                index = self._indexes[key] = ScopeIndex(embedder)
                self._sizes[key] = 0
            self._indexes.move_to_end(key)
            return index

    def used(self, owner: object, scope: object, index: ScopeIndex) -> None:
        """Note how large an index has become, and make room."""
        embedder = index.embedder
        key = (weakref.ref(owner), scope, "" if embedder is None else embedder.name)
        with index.lock:
            size = index.nbytes
        with self._lock:
            if self._indexes.get(key) is index:
                self._total += size - self._sizes[key]
                self._sizes[key] = size
            while self._total > self.budget and len(self._indexes) > 1:
                self._drop(next(iter(self._indexes)))

    def of(self, owner: object) -> list[tuple[Any, ScopeIndex]]:
        """The indexes of an owner, each with its scope."""
        with self._lock:
            mine = [key for key in list(self._indexes) if key[0]() is owner]
            return [(key[1], self._indexes[key]) for key in mine]

    def forget(self, owner: object) -> None:
        """Let go of all indexes of an owner."""
        with self._lock:
            for key in list(self._indexes):
                if key[0]() is owner:
                    self._drop(key)

    def _ended(self, owner: weakref.ref[object]) -> None:
        with self._lock:
            for key in list(self._indexes):
                if key[0] is owner:
                    self._drop(key)

    def _drop(self, key: Key) -> None:
        del self._indexes[key]
        self._total -= self._sizes.pop(key)


class Job(Protocol):
    """What is done in the background, in steps."""

    owner: object
    """Whose it is: who closes it ends its jobs."""
    subject: object
    """What it looks after; of two jobs that wait for one subject, one does."""
    ending: bool
    """Set when the owner or the process ends: what has to be kept is kept, and no more."""
    optional: bool
    """Whether the step under way can be left at the end, as it changes nothing."""
    given_up: bool
    """Set when its end was not waited for: nothing may be changed any more."""

    def step(self) -> bool:
        """Do a part; whether there is more to do."""


class Background:
    """The one thread on which a process looks after its indexes; it lives while there are jobs.

    The jobs take turns, step by step. The end of the process has them end, and waits for that:
    a second where the step can be left, ten where it can't.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._current: Job | None = None
        self._thread: threading.Thread | None = None
        self._ended = False

    def add(self, job: Job) -> None:
        """Do a job soon; not at all if one with its subject waits already."""
        if self._pid != os.getpid():  # a fork has no threads: the child does its own part
            waiting = [each for each in (self._current, *self._jobs) if each is not None]
            self._begin()
            self._jobs.extend(waiting)
        with self._changed:
            if self._ended or any(each.subject is job.subject for each in self._jobs):
                return
            self._jobs.append(job)
            if self._thread is None:
                atexit.unregister(self._end)  # and so before what stores do at the end
                atexit.register(self._end)
                self._thread = threading.Thread(target=self._run, name="retain-index", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter is about to end
                    self._jobs.clear()
                    self._thread = None

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._jobs:
                    self._thread = None
                    return
                job = self._current = self._jobs.popleft()
            more = _step(job)
            with self._changed:
                self._current = None
                if more and not job.ending:  # else who ends it goes on with it
                    self._jobs.append(job)
                self._changed.notify_all()

    def finish(self, owner: object | None = None) -> None:
        """Have the jobs of an owner (of all) end, and wait for it: none of them goes on after."""
        if self._pid != os.getpid():
            return
        begun = time.monotonic()
        with self._changed:
            mine = [job for job in self._jobs if owner is None or job.owner is owner]
            for job in mine:
                self._jobs.remove(job)
            current = self._current
            if current is not None and (owner is None or current.owner is owner):
                mine.insert(0, current)
            for job in mine:
                job.ending = True
            while current in mine and self._current is current:
                waited = time.monotonic() - begun
                if waited > (_LAST_CALL if current.optional else _LAST):
                    current.given_up = True
                    mine.remove(current)
                else:
                    self._changed.wait(0.05)
        for job in mine:
            while time.monotonic() - begun < _LAST and _step(job):
                pass

    def _end(self) -> None:
        if self._pid == os.getpid():
            with self._changed:
                self._ended = True
            self.finish()


def _step(job: Job) -> bool:
    try:
        return job.step()
    except Exception:
        log.exception("an index could not be looked after")
        return False


background = Background()
"""The process's."""
