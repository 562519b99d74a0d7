"""Hearing of other processes' writes as they happen, so that indexes follow meanwhile."""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..locks import ThreadLock
from ..scope import Scope
from .base import log
from .postgres_schema import kept

if TYPE_CHECKING:
    import psycopg

__all__ = ["Listener"]

_LOOK = 1.0  # seconds after which a listener sees whether it is still wanted
_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds between attempts to connect

Heard = Callable[[], None]


class Listener:
    """A connection of its own that waits for notifications, on a thread of its own.

    Who writes through this process's own connections (``own``: their process numbers in the
    server) isn't told of that. A connection that can't be had, or doesn't last, costs nothing but
    the news: it is made again, and all are told, since they may have missed some.
    """

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], channel: str) -> None:
        self.own: set[int] = set()
        self._connect, self._channel = connect, channel
        self._heard: dict[str, list[weakref.WeakMethod[Heard]]] = {}
        self._lock = ThreadLock()
        self._ended = threading.Event()
        self._pid = 0

    def hear(self, scope: Scope, heard: Heard) -> None:
        """Call a method when its scope was written to."""
        # What the database says is the digest of the key: the key itself may be too long.
        digest = hashlib.md5(kept(scope.key).encode(), usedforsecurity=False).hexdigest()
        with self._lock:
            self._heard[digest] = [*self._living(digest), weakref.WeakMethod(heard)]
            if self._pid != os.getpid():  # nobody listens yet, or a parent does
                self._pid = os.getpid()
                threading.Thread(target=self._run, name="retain-listener", daemon=True).start()

    def end(self) -> None:
        """Stop listening, within a second."""
        self._ended.set()

    def _run(self) -> None:
        import psycopg

        pause = _PAUSE
        while not self._ended.is_set():
            try:
                with self._connect() as connection:
                    connection.execute(f'LISTEN "{self._channel}"')
                    pause = _PAUSE
                    self._tell(None)
                    self._listen(connection)
            except psycopg.Error as error:
                log.debug("not told of others' writes for now: %s", error)
            self._ended.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        while not self._ended.is_set():
            for notify in connection.notifies(timeout=_LOOK):
                if notify.pid not in self.own:
                    self._tell(notify.payload)

    def _living(self, digest: str) -> list[weakref.WeakMethod[Heard]]:
        return [method for method in self._heard.get(digest, ()) if method() is not None]

    def _tell(self, digest: str | None) -> None:
        """Call who asked for a scope, or everybody."""
        with self._lock:
            if digest is None:
                digests = list(self._heard)
            else:
                digests = [digest] if digest in self._heard else []
            methods = [method for each in digests for method in self._living(each)]
        for method in methods:
            call = method()
            if call is not None:
                call()
