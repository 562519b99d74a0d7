"""Child processes to be killed, and the points at which a process talks to the disk.

Children are forked: a kill is as hard for them as for any process, and they cost milliseconds.
"""

from __future__ import annotations

import io
import json
import os
import select
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

Work = Callable[[Callable[[Any], None]], None]
"""What a child does; it is given a function that tells its parent something, at once."""


class Child:
    """A process that runs ``work`` and ends; ``said`` is what it told."""

    living: ClassVar[set[Child]] = set()

    def __init__(self, work: Work) -> None:
        ours, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(ours)
            _run(work, theirs)
        os.close(theirs)
        self._pipe = ours
        self._rest = b""
        self._ended = False
        self.said: list[Any] = []
        Child.living.add(self)

    def listen(self, seconds: float, enough: int | None = None) -> bool:
        """Hear what it says for a while, or until it has said ``enough``; whether it goes on."""
        stop = time.monotonic() + seconds
        while not self._ended and (enough is None or len(self.said) < enough):
            left = stop - time.monotonic()
            if left <= 0 or not select.select([self._pipe], [], [], left)[0]:
                break
            self._hear()
        return not self._ended

    def _hear(self) -> None:
        data = os.read(self._pipe, 1 << 16)
        self._ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.said += [json.loads(line) for line in lines]

    def kill(self) -> list[Any]:
        """Kill it; all that it has said."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait()
        return self.said

    def wait(self) -> int:
        """Let it end; its exit status, negative if a signal ended it."""
        while not self._ended:
            self._hear()
        os.close(self._pipe)
        Child.living.discard(self)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _run(work: Work, pipe: int) -> None:
    try:
        work(lambda said: _write_all(pipe, json.dumps(said).encode() + b"\n"))
    finally:
        _end(*sys.exc_info())


def _end(kind: type[BaseException] | None, error: Any, trace: Any) -> None:
    """End a child with its work: nothing of what its parent was about may go on in it."""
    if kind is not None:
        traceback.print_exception(kind, error, trace)
    sys.stderr.flush()
    os._exit(kind is not None)


def _write_all(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]


def run(work: Work) -> list[Any]:
    """What a child said that must end well."""
    child = Child(work)
    assert child.wait() == 0
    return child.said


# -- the points at which the disk is written -----------------------------------------------

_CALLS = {
    "posix": {"open", "fsync", "replace", "rename", "truncate", "ftruncate", "unlink", "mkdir"},
    "file": {"write", "flush", "truncate"},
    "database": {"execute", "executemany"},
}


def _kind(function: Any) -> str | None:
    """Which kind of call that may write to the disk it is, if any."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, (sqlite3.Connection, sqlite3.Cursor)):
        kind = "database"
    elif isinstance(owner, io.IOBase):
        kind = "file"
    elif getattr(function, "__module__", "") in ("posix", "io", "_io"):
        kind = "posix"
    else:
        return None
    return kind if function.__name__ in _CALLS[kind] else None


@contextmanager
def at_point(
    number: int, do: Callable[[Any], None], *, database: bool = True
) -> Iterator[list[str]]:
    """Call ``do`` just before the ``number``-th call, from 0, that may write to the disk.

    What ``do`` raises, that call raises. ``database``: count the calls of SQLite, too. Yields
    the names of the points that were passed.
    """
    passed: list[str] = []

    def watch(frame: Any, event: str, function: Any) -> None:
        kind = _kind(function) if event == "c_call" else None
        if kind and (database or kind != "database"):
            passed.append(function.__name__)
            if len(passed) == number + 1:
                do(function)

    sys.setprofile(watch)
    try:
        yield passed
    finally:
        sys.setprofile(None)


@contextmanager
def at_any_call(number: int, do: Callable[[Any], None]) -> Iterator[None]:
    """Call ``do`` just before the ``number``-th call of anything built in.

    One that the lock library makes is passed over: whether it stands an interrupt is its affair,
    and what it then can't undo would be with the tests to come.
    """
    passed = 0

    def watch(frame: Any, event: str, function: Any) -> None:
        nonlocal passed
        passed += event == "c_call"
        if passed > number and event == "c_call" and not _is_locking(frame):
            sys.setprofile(None)
            do(function)

    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(None)


def _is_locking(frame: Any) -> bool:
    while frame is not None:
        if frame.f_globals["__name__"].startswith("filelock"):
            return True
        frame = frame.f_back
    return False


def die(_: Any) -> None:
    """End this process as a kill from outside does."""
    os.kill(os.getpid(), signal.SIGKILL)


def disk_full(function: Any) -> None:
    """Raise what a full disk makes of a call."""
    import errno

    if isinstance(getattr(function, "__self__", None), (sqlite3.Connection, sqlite3.Cursor)):
        raise sqlite3.OperationalError("database or disk is full")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
