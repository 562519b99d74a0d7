"""Locks between threads and between processes, which a fork doesn't leave held."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import StoreBusy, StoreFailed
from .files import store_errors

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["TIMEOUT", "FileLock", "ThreadLock"]

TIMEOUT = 60.0
"""Seconds to wait for another process before ``StoreBusy``."""


class ThreadLock:
    """A re-entrant lock between threads; a forked child begins with a free one."""

    def __init__(self) -> None:
        self._locks: dict[int, threading.RLock] = {}  # by process

    def _own(self) -> threading.RLock:
        # One step, whichever threads of a child come first; what the parent held stays there.
        return self._locks.setdefault(os.getpid(), threading.RLock())

    def __enter__(self) -> None:
        self._own().acquire()

    def __exit__(self, *error: object) -> None:
        self._own().release()


class FileLock:
    """A lock that other processes respect, on a file; re-entrant within a thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pid = 0
        self._lock: BaseFileLock | None = None

    def _own(self) -> BaseFileLock:
        from filelock import FileLock as Lock

        if self._lock is None or self._pid != os.getpid():
            self._pid = os.getpid()
            self._lock = Lock(self.path, mode=0o600, thread_local=True)
        return self._lock

    @contextmanager
    def held(self, timeout: float = TIMEOUT, *, required: bool = True) -> Iterator[bool]:
        """Hold it; ``StoreBusy`` after ``timeout`` seconds.

        With ``required=False`` (for reading) go on without it where the place is read-only.
        Yields whether it is held.
        """
        from filelock import Timeout

        lock = self._own()
        acquired = False
        try:
            with store_errors(self.path):
                try:
                    lock.acquire(timeout=timeout, poll_interval=0.002)
                except Timeout:  # an OSError too
                    raise StoreBusy(
                        f"{self.path}: another process has held the lock for {timeout:g} s; "
                        "end it, or call again later"
                    ) from None
            acquired = True
        except StoreFailed as error:
            if required or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
        try:
            yield acquired
        finally:
            if acquired:
                lock.release()
