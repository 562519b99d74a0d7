"""A server of ours for the tests: ``retain serve`` in a process of its own, over real sockets."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from retain import Scope
from retain.web.tokens import Tokens


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str]:
        """The status and the name of an error, which always has a sentence too."""
        assert self.json["message"]
        return self.status, self.json["error"]


class Served:
    """``retain serve`` with ``options`` on a store in ``folder``, or on the one of a URL."""

    def __init__(
        self, folder: Path, *options: str, tokens: bool = True, store: str | None = None
    ) -> None:
        self.tokens = folder / "tokens.json"
        if tokens and not self.tokens.exists():
            self.tokens.write_text('{"tokens": []}')
        self._connection: http.client.HTTPConnection | None = None
        self._said: str | None = None
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "retain", "serve", "--json", "--port", "0"),
                *(("--dir", str(folder)) if store is None else ("--store", store)),
                *(("--tokens", str(self.tokens)) if tokens else ()),
                *options,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUTF8": "1"},
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.stop()[1])
        self.url: str = json.loads(line)["url"]
        self.port = int(self.url.rpartition(":")[2])

    def token(self, scope: Scope, *, read_only: bool = False) -> str:
        """A new token; the server knows it within a second or so, or at ``SIGHUP``."""
        return Tokens.add(self.tokens, scope, read_only=read_only)

    def ask(
        self,
        method: str,
        target: str,
        body: Any = None,
        token: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send a request, ``body`` as JSON unless it is bytes, over one connection."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {} if data is None else {"Content-Type": "application/json"}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        sent.update(headers or {})
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            self._connection.request(method, target, data, sent)
            response = self._connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        except BaseException:
            self.hang_up()
            raise

    def hang_up(self) -> None:
        """Close the connection; the next request makes another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def stop(self) -> tuple[int, str]:
        """End it as a service manager does; its exit code, and what it said on the way."""
        self.hang_up()
        if self._said is None:
            if self.process.poll() is None:
                self.process.terminate()
            _, self._said = self.process.communicate(timeout=60)
        return self.process.returncode, self._said

    def __enter__(self) -> Served:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
