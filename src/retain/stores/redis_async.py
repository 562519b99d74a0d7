"""The connections that an event loop has to a Redis server."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ..awaiting import Waited, wait
from ..locks import ThreadLock

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["CONNECTIONS", "LoopClients"]

CONNECTIONS = 10
"""The most that are open at once for one event loop, unless the URL has ``max_connections=``."""


class LoopClients:
    """A client for each event loop that asks, made when it first does.

    A command that is under way when its task is cancelled costs its connection; the server does
    it, or not, as a whole.
    """

    def __init__(self, address: str, timeout: float) -> None:
        self._address, self._timeout = address, timeout
        self._lock = ThreadLock()
        self._clients: weakref.WeakKeyDictionary[AbstractEventLoop, Any]
        self._clients = weakref.WeakKeyDictionary()

    def client(self) -> Waited:
        """This loop's, used as a ``redis.Redis`` is."""
        from asyncio import get_running_loop

        loop = get_running_loop()
        with self._lock:
            if loop not in self._clients:
                self._clients[loop] = self._made()
            return Waited(self._clients[loop])

    def _made(self) -> Any:
        from redis import asyncio as redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        pool = redis.BlockingConnectionPool.from_url(
            self._address,
            max_connections=CONNECTIONS,
            timeout=self._timeout,
            socket_timeout=self._timeout / 2,
            socket_connect_timeout=self._timeout / 2,
            retry=Retry(NoBackoff(), 0),  # whether to try again is decided elsewhere
        )
        return redis.Redis.from_pool(pool)

    def leave(self) -> None:
        """End the connections of this loop."""
        from asyncio import get_running_loop

        with self._lock:
            client = self._clients.pop(get_running_loop(), None)
        if client is not None:
            wait(client.aclose())
