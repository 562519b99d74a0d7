"""``retain mcp`` in a process of its own, spoken to in raw lines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

META = "io.modelcontextprotocol/"
WHO = {"name": "tést", "version": "1"}


def command(place: Path | str, *options: str) -> list[str]:
    """The command line of a server on a directory, or on the store of a URL."""
    kind = "--store" if isinstance(place, str) else "--dir"
    return [sys.executable, "-m", "retain", "mcp", kind, str(place), *options]


def initialize(version: str = "2025-06-18", id: int | str = 1) -> dict[str, Any]:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": WHO}
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}


def discover(id: int | str = 1) -> dict[str, Any]:
    meta = {
        f"{META}protocolVersion": "2026-07-28",
        f"{META}clientInfo": WHO,
        f"{META}clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": id, "method": "server/discover", "params": {"_meta": meta}}


def calling(id: int | str, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Piped:
    """A server process; what it says on standard error is there once it has ended."""

    def __init__(self, *words: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUTF8": "1", **environment},
        )
        self.said = ""

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, *messages: Any) -> None:
        self.write(b"".join(json.dumps(each).encode() + b"\n" for each in messages))

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), f"the server ended: {self.end()} {self.said}"
        return json.loads(line)

    def ask(self, message: Any) -> Any:
        """The answer to a message; none other may come."""
        self.send(message)
        answer = self.read()
        assert answer["id"] == message["id"]
        return answer

    def end(self, number: int | None = None) -> int:
        """Close its input, or send a signal; the exit code."""
        if number is not None:
            self.process.send_signal(number)
        try:
            _, said = self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.communicate()
            raise
        self.said += said.decode()
        return self.process.returncode

    def __enter__(self) -> Piped:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.communicate()
