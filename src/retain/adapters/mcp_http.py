"""The MCP server over HTTP (the protocol's streamable HTTP), for clients of one or many users.

No session is kept: every request says all that is needed to answer it, whoever asked before, so
a restarted server goes on where the last one stopped.
"""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any, cast
from urllib.parse import urlsplit

import anyio.to_thread
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware.cors import CORSMiddleware

from ..listening import is_loopback, listening
from .mcp import Desk, desk_server

__all__ = ["PATH", "Gate", "http_app", "serve_http"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

PATH = "/mcp"
"""Where the server answers."""

_DESK = "retain.desk"  # where in a request's scope its desk is
_LATEST = 30  # seconds that calls under way have to end


class Gate:
    """An ASGI application: the server behind a look at who asks.

    ``desk_of`` gives the desk of a bearer token, ``None`` for a token that does not hold; where
    ``needs_token`` is false it is asked with ``None``, and then only who calls the server by a
    name of this machine is answered. ``origins``: the web pages that may ask, beside those of
    this machine. A page that a browser shows can lead its own name to this machine, but change
    neither header, nor guess a token.
    """

    def __init__(
        self,
        desk_of: Callable[[str | None], Desk | None],
        *,
        needs_token: bool,
        origins: Collection[str] = (),
    ) -> None:
        self._desk_of = desk_of
        self._needs_token = needs_token
        self._origins = frozenset(origins)
        # fails for a request without a desk, rather than serve it from another's
        self._app: App = desk_server(lambda context: _desk(context.request)).streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or pass on what is none (the start and the end of the server)."""
        if scope["type"] == "http":
            headers: dict[bytes, bytes] = dict(scope["headers"])
            refusal = self._refusal(scope, headers)
            if refusal is None:
                token = _token(headers)
                if token is not None or not self._needs_token:
                    desk = await anyio.to_thread.run_sync(self._desk_of, token)
                    scope[_DESK] = desk
                if scope.get(_DESK) is None:
                    refusal = 401, "give a token that holds here: Authorization: Bearer …"
            if refusal is not None:
                await _refuse(send, *refusal)
                return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Message, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        """The status and the reason if it is refused before its token is looked at."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._needs_token and not is_loopback(_name(f"//{host}")):
            return 421, "without a token only this machine is answered, by its own names"
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and origin not in self._origins and not is_loopback(_name(origin)):
            return 403, "pages of this origin may not ask; --allow-origin lets them"
        if scope["path"] == PATH and scope["method"] != "POST":
            return 405, "there is nothing to listen to and no session to end: send POST"
        return None


def _desk(request: Any) -> Desk:
    desk: Desk = request.scope[_DESK]
    return desk


def _name(url: str) -> str | None:
    """The host that a URL names, if it can be read."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _token(headers: dict[bytes, bytes]) -> str | None:
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    return token.strip().decode("latin-1") if scheme.lower() == b"bearer" else None


async def _refuse(send: Send, status: int, reason: str) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": reason}}
    body = json.dumps(error).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="retain"'))
    if status == 405:
        headers.append((b"allow", b"POST"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def http_app(
    desk_of: Callable[[str | None], Desk | None],
    *,
    needs_token: bool,
    origins: Collection[str] = (),
) -> App:
    """The gate of these arguments; browsers are told that pages of ``origins`` may ask."""
    gate = Gate(desk_of, needs_token=needs_token, origins=origins)
    if not origins:
        return gate
    told: Any = CORSMiddleware(
        gate, allow_origins=list(origins), allow_methods=["POST"], allow_headers=["*"]
    )
    return cast("App", told)


def serve_http(app: App, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; calls under way are answered first.

    ``port``: 0 for a free one. ``ready`` is told the server's URL once it answers. To be called
    in the main thread. Raises ``StoreFailed`` where it can't listen there.
    """
    with listening(host, port) as listener:
        name, number = listener.getsockname()[:2]
        url = f"http://[{name}]:{number}{PATH}" if ":" in name else f"http://{name}:{number}{PATH}"
        config = uvicorn.Config(
            app,
            lifespan="on",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_LATEST,
        )
        server = _Server(config, lambda: ready(url))
        # The server has handlers of its own, puts these back at its end, and sends itself the
        # signal once more, which must not kill the process then.
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, server.end)
        server.run([listener])


class _Server(uvicorn.Server):
    """Tells when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def end(self, *_: object) -> None:
        self.should_exit = True
