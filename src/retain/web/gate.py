"""What stands before every request: who asks, how much and how often, and what became of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NoReturn
from urllib.parse import unquote_to_bytes, urlsplit

from ..errors import (
    Conflict,
    EmbeddingFailed,
    InvalidType,
    InvalidValue,
    NotFound,
    Rejected,
    RetainError,
    StoreBusy,
    StoreClosed,
    StoreFailed,
)
from .limits import Bucket, Limits
from .metrics import Metrics
from .tokens import Grant, Tokens

__all__ = ["GRANT", "Gate", "Refused", "status_of"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

GRANT = "retain.grant"
"""Where in a request's scope its grant is."""

_FREE = frozenset({"/health", "/metrics", "/openapi.json", "/docs"})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MOST_BUCKETS = 10_000
_HEARD_OUT = 8  # times what a body may have: who is cut off while sending reads no answer
_AGAIN = 1  # seconds after which to ask again what was busy

_STATUS: tuple[tuple[type[RetainError], int], ...] = (
    (NotFound, 404),
    (Conflict, 409),
    (Rejected, 422),
    (InvalidValue, 422),
    (InvalidType, 422),
    (StoreFailed, 503),  # and StoreBusy
    (StoreClosed, 503),
    (EmbeddingFailed, 503),
)


class Refused(RetainError):
    """A request that is not let through: the status, a name for it, a sentence, headers."""

    def __init__(self, status: int, name: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.name = name
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def status_of(error: RetainError) -> tuple[int, str, dict[str, str]]:
    """The HTTP status of an error, its name, and the headers that go with it."""
    if isinstance(error, Refused):
        return error.status, error.name, error.headers
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    again = {"Retry-After": str(_AGAIN)} if isinstance(error, StoreBusy) else {}
    return status, type(error).__name__, again


class Gate:
    """An ASGI application around another one.

    A request needs a token of ``tokens``, or gets ``open_to`` where there are none; it must
    keep the ``limits``. What it is allowed stands in its scope under ``GRANT``.
    """

    def __init__(
        self,
        app: App,
        *,
        tokens: Tokens | None,
        open_to: Grant | None,
        limits: Limits,
        metrics: Metrics,
    ) -> None:
        self.app = app
        self.tokens = tokens
        self._open_to = open_to
        self._limits = limits
        self._metrics = metrics
        self._buckets: dict[str, Bucket] = {}
        self._under_way = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or pass on what is none (the start and the end of the server)."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = time.perf_counter()
        status = 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._under_way += 1
        self._metrics.under_way.inc()
        try:
            if self._admit(scope):
                receive = await self._read(receive)
            await self.app(scope, receive, watched)
        except Refused as error:
            self._metrics.refused(error.name)
            await _answer(watched, error)
        finally:
            self._under_way -= 1
            self._metrics.under_way.dec()
            route = getattr(scope.get("route"), "path", "other").replace(":any", "")
            self._metrics.answered(route, scope["method"], status, time.perf_counter() - begun)

    def _admit(self, scope: Message) -> bool:
        """Check all that can be known before the body is read; whether there is one."""
        _refuse_nonsense(scope)
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        if scope["path"] not in _FREE:
            if self._under_way > self._limits.at_once:
                raise Refused(
                    503, "Overloaded", "too many requests are under way", Retry_After=str(_AGAIN)
                )
            grant = self._grant(headers)
            self._refuse_haste(grant)
            scope[GRANT] = grant
        length = headers.get(b"content-length")
        if length is None and b"transfer-encoding" not in headers:
            return False
        kind = headers.get(b"content-type", [b""])[-1].partition(b";")[0].strip().lower()
        if kind != b"application/json" and length != [b"0"]:
            raise Refused(415, "NotJSON", "send the body as Content-Type: application/json")
        if length is not None and int(length[-1]) > _HEARD_OUT * self._limits.body:
            self._refuse_size()
        return True

    def _grant(self, headers: dict[bytes, list[bytes]]) -> Grant:
        if self.tokens is None:
            host = headers.get(b"host", [b""])[-1].decode("latin-1")
            try:
                name = urlsplit(f"//{host}").hostname
            except ValueError:
                name = None
            # A page that a browser shows may lead its own name here, but not change the header.
            if name not in _LOOPBACK or self._open_to is None:
                raise Refused(403, "Forbidden", "without tokens only this machine is answered")
            return self._open_to
        given = headers.get(b"authorization", [])
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        grant = None
        if scheme.lower() == b"bearer":
            grant = self.tokens.grant(token.strip().decode("latin-1"))
        if grant is None:
            how = 'Bearer realm="retain"'
            if given:
                how += ', error="invalid_token"'
            raise Refused(
                401,
                "Unauthorized",
                "give a token that holds here: Authorization: Bearer …",
                WWW_Authenticate=how,
            )
        return grant

    def _refuse_haste(self, grant: Grant) -> None:
        if not self._limits.rate:
            return
        bucket = self._buckets.get(grant.key)
        if bucket is None:
            if len(self._buckets) >= _MOST_BUCKETS:  # tokens come and go with their file
                self._buckets.clear()
            bucket = self._buckets[grant.key] = Bucket(self._limits.rate)
        wait = bucket.wait()
        if wait:
            raise Refused(
                429,
                "TooManyRequests",
                f"this token may ask {self._limits.rate:g} times a second",
                Retry_After=str(int(wait) + 1),
            )

    async def _read(self, receive: Receive) -> Receive:
        """Read the body, which must not be too long, nor too long in coming."""
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await self._next(receive)
            if message["type"] != "http.request":
                raise Refused(400, "Gone", "the client went away", Connection="close")
            part = message.get("body", b"")
            size += len(part)
            more = message.get("more_body", False) and size <= _HEARD_OUT * self._limits.body
            if size <= self._limits.body:
                parts.append(part)
        if size > self._limits.body:
            self._refuse_size()
        left = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

        async def again() -> Message:
            return left.pop() if left else await receive()

        return again

    async def _next(self, receive: Receive) -> Message:
        """The next part of a body; without a task of its own, as ``wait_for`` would make one."""
        mine, late = asyncio.current_task(), False

        def ring() -> None:
            nonlocal late
            late = True
            if mine is not None:
                mine.cancel()

        timer = asyncio.get_running_loop().call_later(self._limits.patience, ring)
        try:
            return await receive()
        except asyncio.CancelledError:
            if not late:
                raise
            raise Refused(408, "TooSlow", "the body did not come", Connection="close") from None
        finally:
            timer.cancel()

    def _refuse_size(self) -> NoReturn:
        raise Refused(
            413,
            "TooLarge",
            f"a body may have {self._limits.body} bytes; send it in parts",
            Connection="close",
        )


def _refuse_nonsense(scope: Message) -> None:
    """Refuse a path or a query that is no UTF-8: it would be taken for another one."""
    for part in (scope.get("raw_path") or b"", scope["query_string"]):
        if b"%" in part or not part.isascii():
            try:
                unquote_to_bytes(part).decode()
            except UnicodeDecodeError:
                raise Refused(400, "NotText", "the URL is not UTF-8") from None


async def _answer(send: Send, error: Refused) -> None:
    body = json.dumps({"error": error.name, "message": str(error)}).encode()
    headers = {
        **error.headers,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
    }
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
