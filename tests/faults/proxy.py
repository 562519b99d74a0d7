"""A proxy between a client and a server, which cuts a connection where a test says so."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

TO_SERVER, TO_CLIENT = "to the server", "to the client"


class Proxy:
    """Forwards bytes to a port of the loopback interface; ``port`` is its own.

    ``passed``: bytes that went each way. ``delay``: seconds that each piece waits before it goes
    on. ``refusing``: new connections are closed at once, as where no server is. ``silent``: what
    comes is kept back, either way, until it is set to false, as where a server hangs.
    """

    def __init__(self, port: int) -> None:
        self._server = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.passed = {TO_SERVER: 0, TO_CLIENT: 0}
        self.cuts = 0
        self.delay = 0.0
        self.refusing = False
        self.silent = False
        self._lock = threading.Lock()
        self._cut: tuple[str, int] | None = None
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut_after(self, count: int, way: str) -> None:
        """Cut one connection, once: when ``count`` more bytes have gone that way."""
        with self._lock:
            self._cut = (way, self.passed[way] + count)

    def spare(self) -> bool:
        """Take back a cut that has not come yet; whether there was one."""
        with self._lock:
            pending, self._cut = self._cut is not None, None
        return pending

    def cut_all(self) -> None:
        """Cut every connection that there is."""
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            _break(connection)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            try:
                server = None if self.refusing else socket.create_connection(
                    ("127.0.0.1", self._server)
                )  # fmt: skip
            except ConnectionRefusedError:
                server = None
            if server is None:
                client.close()
                continue
            with self._lock:
                self._open |= {client, server}
            for way, pair in ((TO_SERVER, (client, server)), (TO_CLIENT, (server, client))):
                thread = threading.Thread(target=self._forward, args=(way, *pair), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _forward(self, way: str, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                if self.delay:
                    time.sleep(self.delay)
                while self.silent:
                    time.sleep(0.01)
                some, cut = self._until_cut(way, data)
                target.sendall(some)
                if cut:
                    break
        except OSError:  # the other way has been cut, or an end is gone
            pass
        finally:
            _break(source)
            _break(target)
            with self._lock:
                self._open -= {source, target}

    def _until_cut(self, way: str, data: bytes) -> tuple[bytes, bool]:
        with self._lock:
            if self._cut is not None and self._cut[0] == way:
                left = self._cut[1] - self.passed[way]
                if left <= len(data):
                    self._cut = None
                    self.cuts += 1
                    self.passed[way] += left
                    return data[:left], True
            self.passed[way] += len(data)
            return data, False

    def close(self) -> None:
        """Cut everything and listen no more."""
        self.silent = False
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        self.cut_all()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _break(connection: socket.socket) -> None:
    """Close it so that either end notices at once, and what was sent before still arrives."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
