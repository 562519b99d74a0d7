"""A server process, or several on one port: started, looked after, ended in order."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import uvicorn

from ..errors import InvalidValue, RetainError
from ..listening import BACKLOG, is_loopback, listening
from ..scope import Scope
from ..search.embedders import default_embedder
from ..stores.opening import open_store
from .api import make_app
from .limits import Limits
from .tokens import Tokens

__all__ = ["Settings", "serve"]

log = logging.getLogger("retain")

_KEPT_ALIVE = 75  # seconds that a connection may lie idle: longer than proxies keep theirs
_SWITCH = 0.001  # seconds a thread may compute while another waits: answers shouldn't wait for 5 ms
_LOOKED = 0.2  # seconds between looks at the workers
_FAILED = 3  # the exit code of a worker that could not begin


@dataclass(frozen=True, slots=True)
class Settings:
    """What a server serves, and where.

    ``url``: the store, as ``retain.open`` takes it, with ``options`` of its class. ``port``:
    0 for a free one. ``tokens``: the file of tokens; without it, everyone on this machine is
    answered in the scope ``open_to``. ``meaning``: whether recalls compare meanings too.
    ``workers``: processes. ``threads``: of each, for the store. ``grace``: seconds that requests
    under way have to end.
    """

    url: str
    options: dict[str, Any] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 0
    tokens: Path | None = None
    open_to: Scope | None = None
    meaning: bool = True
    limits: Limits = field(default_factory=Limits)
    workers: int = 1
    threads: int = 4
    grace: int = 30

    def checked(self) -> Settings:
        """These, or ``InvalidValue`` where they would let in whoever comes."""
        if self.tokens is not None:
            Tokens(self.tokens)
        elif self.open_to is None:
            raise InvalidValue(
                "without tokens anyone could read and change every memory: give --tokens FILE "
                "(--new-token makes one), or --open to serve this machine alone"
            )
        elif not is_loopback(self.host):
            raise InvalidValue(
                f"--open serves this machine alone, and {self.host} is not only that; "
                "leave out --host, or give --tokens FILE"
            )
        return self


def serve(settings: Settings, ready: Callable[[str], None]) -> int:
    """Serve until SIGTERM or SIGINT; the exit code.

    ``ready`` is told the server's URL once it answers. SIGHUP has the tokens read again.
    Raises ``RetainError`` where it can't begin.
    """
    settings.checked()
    listener = listening(settings.host, settings.port)
    host, port = listener.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    if settings.workers > 1:
        with listener, tempfile.TemporaryDirectory(prefix="retain-metrics-") as folder:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
            return _Workers(settings, listener).run(lambda: ready(url))
    _work(settings, listener, lambda: ready(url))
    return 0


class _Server(uvicorn.Server):
    """Tells when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(BACKLOG)
        if self.started:
            self._ready()


def _work(settings: Settings, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve in this process until it is told to end."""
    store = open_store(settings.url, **settings.options)
    tokens = None if settings.tokens is None else Tokens(settings.tokens)
    app = make_app(
        store,
        tokens=tokens,
        open_to=settings.open_to,
        embedder=default_embedder() if settings.meaning else None,
        limits=settings.limits,
        threads=settings.threads,
    )
    config = uvicorn.Config(
        app,
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,  # a URL may hold an id, which is someone's text
        server_header=False,
        proxy_headers=False,
        backlog=1,  # taken one at a time, so that the least busy of several workers takes most
        timeout_keep_alive=_KEPT_ALIVE,
        timeout_graceful_shutdown=settings.grace,
    )
    server = _Server(config, ready)

    def end(*_: object) -> None:
        server.should_exit = True

    # The server has handlers of its own, puts these back at its end, and sends itself the
    # signal once more, which must not kill the process then.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    if tokens is not None:
        signal.signal(signal.SIGHUP, lambda *_: tokens.refresh())
    sys.setswitchinterval(_SWITCH)
    server.run([listener])


def _worker(settings: Settings, listener: socket.socket, parent: Connection) -> None:
    """A process of several; it ends when its parent does."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)

    def watch() -> None:
        with contextlib.suppress(EOFError, OSError):
            parent.recv()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
    try:
        _work(settings, listener, lambda: parent.send(True))
    except RetainError as error:
        log.error("%s", error)
        sys.exit(_FAILED)


class _Workers:
    """Processes that take turns at one socket."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self._settings = settings
        self._listener = listener
        self._spawn = multiprocessing.get_context("spawn")
        self._running: dict[SpawnProcess, Connection] = {}
        self._begun: set[SpawnProcess] = set()
        self._ending = False

    def run(self, ready: Callable[[], None]) -> int:
        """Keep as many running as there should be, until told to end; the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        signal.signal(signal.SIGHUP, self._pass_on)
        for _ in range(self._settings.workers):
            self._start()
        told = code = 0
        while not self._ending:
            time.sleep(_LOOKED)
            self._listen()
            if not told and len(self._begun) == self._settings.workers:
                told = 1
                ready()
            for process in [each for each in self._running if not each.is_alive()]:
                self._bury(process)
                if process not in self._begun:
                    code, self._ending = 1, True
                elif not self._ending:
                    log.error("worker %s died with code %s", process.pid, process.exitcode)
                    self._start()
                self._begun.discard(process)
        self._listener.close()
        for process in self._running:
            process.terminate()
        for process in list(self._running):
            process.join()
            self._bury(process)
        return code

    def _end(self, *_: object) -> None:
        self._ending = True

    def _pass_on(self, number: int, _: object) -> None:
        for process in self._running:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, number)

    def _start(self) -> None:
        mine, its = self._spawn.Pipe()
        process = self._spawn.Process(target=_worker, args=(self._settings, self._listener, its))
        process.start()
        its.close()
        self._running[process] = mine

    def _listen(self) -> None:
        for process, line in self._running.items():
            with contextlib.suppress(EOFError, OSError):
                if line.poll():
                    line.recv()
                    self._begun.add(process)

    def _bury(self, process: SpawnProcess) -> None:
        from prometheus_client.multiprocess import mark_process_dead

        self._running.pop(process).close()
        mark_process_dead(process.pid)  # type: ignore[no-untyped-call]
