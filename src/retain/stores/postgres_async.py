"""The connections that an event loop has to a PostgreSQL database."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..awaiting import Waited, wait
from ..locks import ThreadLock

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["LoopPools"]


class LoopPools:
    """A pool of connections for each event loop that asks, made when it first does.

    ``known`` is told the number of the server's process behind each connection. ``settings``:
    those of ``psycopg_pool.AsyncConnectionPool``. A statement that is under way when
    its task is cancelled is cancelled on the server too, and is then done or not done as a whole.
    """

    def __init__(self, url: str, known: Callable[[int], None], **settings: Any) -> None:
        async def configure(connection: Any) -> None:
            known(connection.info.backend_pid)

        self._url = url
        self._settings = {**settings, "configure": configure}
        self._lock = ThreadLock()
        self._pools: weakref.WeakKeyDictionary[AbstractEventLoop, Any]
        self._pools = weakref.WeakKeyDictionary()

    @contextmanager
    def connection(self, timeout: float) -> Iterator[Waited]:
        """A connection of this loop's, used as one of ``psycopg.Connection`` is."""
        from asyncio import shield

        pool = self._pool()
        if pool.closed:
            wait(pool.open())
        connection = wait(pool.getconn(timeout))
        try:
            yield Waited(connection)
        finally:
            # It ends even if the task is cancelled once more.
            wait(shield(pool.putconn(connection)))

    def _pool(self) -> Any:
        from asyncio import get_running_loop

        from psycopg_pool import AsyncConnectionPool

        loop = get_running_loop()
        with self._lock:
            if loop not in self._pools:
                self._pools[loop] = AsyncConnectionPool(self._url, open=False, **self._settings)
            return self._pools[loop]

    def leave(self) -> None:
        """End the connections of this loop."""
        from asyncio import get_running_loop

        with self._lock:
            pool = self._pools.pop(get_running_loop(), None)
        if pool is not None:
            wait(pool.close())
