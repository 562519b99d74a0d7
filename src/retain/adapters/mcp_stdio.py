"""The MCP server over standard input and output: a message a line, from one client.

The two streams are the protocol's alone. They are taken at the beginning; from then on whatever
anyone prints goes to standard error, and whoever reads standard input finds it empty.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .mcp_greeting import Greeting, greeting

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server

__all__ = ["Wire", "serve_stdio"]

_PART = 65_536  # bytes read at once
_PATIENCE = 5.0  # seconds that a client which reads nothing is waited for at the end


def serve_stdio(load: Callable[[], Server[Any]]) -> None:
    """Serve one client over standard input and output, until it goes, SIGTERM or SIGINT.

    ``load`` makes the server, which may take a while: the first message is answered meanwhile
    where its answer is known (see ``mcp_greeting``). What was asked before the end is answered
    first. What ``load`` raises is raised.

    To be called in the main thread; standard input and output are given back at the end.
    """
    with Wire() as wire, _told_to_end(wire), ThreadPoolExecutor(1) as meanwhile:
        opening = meanwhile.submit(_open, wire)
        try:
            server = load()
        except BaseException:
            wire.end()
            raise
        lines, greeted = opening.result()

        import anyio

        from .mcp_session import Session  # with the SDK, which is loaded by now

        anyio.run(Session(wire, server, greeted).run, lines)


def _open(wire: Wire) -> tuple[list[bytes], Greeting | None]:
    """Wait for the first lines, and answer the first one if its answer is known."""
    lines = wire.lines()
    greeted = greeting(lines[0]) if lines else None
    if greeted is not None:
        wire.write(greeted.line + b"\n")
    return lines, greeted


@contextlib.contextmanager
def _told_to_end(wire: Wire) -> Iterator[None]:
    """SIGTERM and SIGINT are the end of the input."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: wire.end()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class Wire:
    """Standard input and output, taken from everybody else; in lines of bytes.

    ``end()`` may be called by any thread and by a signal's handler: whoever reads finds the
    end of the input, and whoever waits to write goes on.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        while (null := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass  # a standard stream was closed; nothing of ours may take its place
        self._in, self._out = os.dup(0), os.dup(1)
        self._ended, self._end = os.pipe()
        os.dup2(null, 0)
        os.dup2(2, 1)
        os.close(null)
        self._read = bytearray()
        self._writing = threading.Lock()
        self.is_cut = False
        """Whether the client is gone, so that nothing can be told it any more."""

    def lines(self) -> list[bytes]:
        """The next lines, all that have come and at least one; ``[]`` at the end."""
        while True:
            ready, _, _ = select.select([self._in, self._ended], [], [])
            part = b"" if self._ended in ready else os.read(self._in, _PART)
            self._read += part
            if part and b"\n" not in part:
                continue
            *found, rest = self._read.split(b"\n")
            if not part:  # the end, perhaps without a line end before it
                found, rest = [*found, rest], bytearray()
            self._read = rest
            lines = [bytes(line) for line in found if line.strip()]
            if lines or not part:
                return lines

    def write(self, line: bytes) -> None:
        """Write all of ``line``, or nothing more once the client is gone."""
        view = memoryview(line)
        with self._writing:
            while view and not self.is_cut:
                _, ready, _ = select.select([], [self._out], [], _PATIENCE)
                if not ready and self._is_ended():
                    self.is_cut = True  # it does not read any more, and shall not keep us
                elif ready:
                    try:
                        view = view[os.write(self._out, view[: select.PIPE_BUF]) :]
                    except (BrokenPipeError, ConnectionResetError):
                        self.is_cut = True
                        self.end()

    def end(self) -> None:
        """Let the input end here."""
        if not self._is_ended():
            os.write(self._end, b".")

    def _is_ended(self) -> bool:
        return bool(select.select([self._ended], [], [], 0)[0])

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the streams back."""
        sys.stdout.flush()
        os.dup2(self._in, 0)
        os.dup2(self._out, 1)
        for number in (self._in, self._out, self._ended, self._end):
            os.close(number)
