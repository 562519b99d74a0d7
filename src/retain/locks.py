"""Locks between threads and between processes, which a fork doesn't leave held."""

from __future__ import annotations

import errno
import functools
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import StoreBusy, StoreFailed
from .files import store_errors

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["TIMEOUT", "FileLock", "ThreadLock", "Turn"]

TIMEOUT = 60.0
"""Seconds to wait for another process before ``StoreBusy``."""


class ThreadLock:
    """A re-entrant lock between threads.

    A fork waits for it, so that the child finds what it guards as a whole, and calls the method
    ``before_fork``, if there is one, while it has it; the child begins with a free one.
    """

    def __init__(self, before_fork: Callable[[], None] | None = None) -> None:
        self._lock = threading.RLock()
        # Weak: the method's object has this lock.
        self._before_fork = None if before_fork is None else weakref.WeakMethod(before_fork)
        self._number = next(_numbers)
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    @contextmanager
    def at_once(self) -> Iterator[bool]:
        """Hold it if that needs no waiting; yields whether it is held."""
        lock = self._lock
        held = lock.acquire(blocking=False)
        try:
            yield held
        finally:
            if held:
                lock.release()


class Turn:
    """One thread at a time, for what may take long: a fork doesn't wait for it.

    The child of a fork begins with a free one. So what is done under it must keep whatever it
    changes whole by a :class:`ThreadLock`.
    """

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}  # by process

    def __enter__(self) -> None:
        self._locks.setdefault(os.getpid(), threading.Lock()).acquire()

    def __exit__(self, *error: object) -> None:
        self._locks[os.getpid()].release()


_numbers = itertools.count()
_all: weakref.WeakSet[ThreadLock] = weakref.WeakSet()
_held: dict[int, list[ThreadLock]] = {}  # by the thread that forks


def _before_fork() -> None:
    if threading.get_ident() in _held:
        return
    # The newest first: what is made later uses what was there, and so takes the locks.
    locks = sorted(_all, key=lambda lock: -lock._number)
    for lock in locks:
        lock._lock.acquire()
    _held[threading.get_ident()] = locks
    for lock in locks:
        method = lock._before_fork and lock._before_fork()
        if method is not None:
            method()


def _after_fork() -> None:
    for lock in _held.pop(threading.get_ident(), ()):
        lock._lock.release()


def _after_fork_in_child() -> None:
    for lock in _all:
        lock._lock = threading.RLock()
    _held.clear()


def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):  # where there are forks
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
        )


_watch_forks()


@functools.cache
def _filelock() -> type[BaseFileLock]:
    from filelock import FileLock as Lock

    # It stops its own locks before a fork, for which whoever has ours may wait. So ours must be
    # had first: who registers last is called first.
    _watch_forks()
    return Lock


class FileLock:
    """A lock that other processes respect, on a file; re-entrant within a thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pid = 0
        self._lock: BaseFileLock | None = None

    def _own(self) -> BaseFileLock:
        if self._lock is None or self._pid != os.getpid():
            self._pid = os.getpid()
            self._lock = _filelock()(self.path, mode=0o600, thread_local=True)
        return self._lock

    @contextmanager
    def held(self, timeout: float = TIMEOUT, *, required: bool = True) -> Iterator[bool]:
        """Hold it; ``StoreBusy`` after ``timeout`` seconds.

        With ``required=False`` (for reading) go on without it where the place is read-only.
        Yields whether it is held.
        """
        lock = self._own()
        level = lock.lock_counter
        try:
            self._acquire(lock, timeout, required)
            yield lock.lock_counter > level
        finally:
            try:
                _release(lock, level)
            except BaseException:  # an interrupt, and others would wait for ever
                _release(lock, level)
                raise

    def _acquire(self, lock: BaseFileLock, timeout: float, required: bool) -> None:
        from filelock import Timeout

        try:
            with store_errors(self.path):
                try:
                    lock.acquire(timeout=timeout, poll_interval=0.002)
                except Timeout:  # an OSError too
                    raise StoreBusy(
                        f"{self.path}: another process has held the lock for {timeout:g} s; "
                        "end it, or call again later"
                    ) from None
        except StoreFailed as error:
            if required or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise


def _release(lock: BaseFileLock, level: int) -> None:
    while lock.lock_counter > level:
        lock.release()
