"""The command that gives a memory to MCP clients: mcp."""

from __future__ import annotations

import hmac
import os
import sys
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidValue, MissingPackage
from .app import App, command

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server

    from ..adapters.mcp import Desk
    from ..scope import Scope

__all__ = ["mcp"]

_TOKEN = "RETAIN_MCP_TOKEN"
_SHORTEST = 16  # characters of a token
_PORT = 8078

Grants = Callable[[str], "tuple[Scope, bool] | None"]


@command()
@click.option("--http", is_flag=True, help="Over HTTP instead, at /mcp.")
@click.option("--host", help="With --http: the address to listen at.  [127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="0: a free one.  [8078]")
@click.option(
    "--tokens",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file of tokens, each bound to a scope.",
)
@click.option("--allow-origin", "origins", multiple=True, help="A web page's that may ask.")
@click.option("--read-only", is_flag=True, help="Only the tools that change nothing.")
def mcp(
    app: App,
    /,
    http: bool,
    host: str | None,
    port: int | None,
    tokens: Path | None,
    origins: tuple[str, ...],
    read_only: bool,
) -> None:
    """Serve MCP clients, such as Claude, Cursor and Codex: remember, recall, forget and more.

    Over standard input and output, until the client goes; or over HTTP. All clients share the
    memory that is named; no argument of a tool names another. Over HTTP a token is needed
    beyond this machine: RETAIN_MCP_TOKEN, or a file that 'retain serve --new-token' makes.
    """
    _ = app.where  # a place that can't be one is told before anything is answered
    if find_spec("mcp") is None:  # told before the first answer is given
        error = ImportError("No module named 'mcp'", name="mcp")
        raise MissingPackage.needed("retain mcp", "mcp", error)
    if http:
        _serve_http(app, host or "127.0.0.1", port, tokens, origins, read_only)
        return
    given = {"--host": host, "--port": port, "--tokens": tokens, "--allow-origin": origins or None}
    for name, value in given.items():
        if value is not None:
            raise click.UsageError(f"{name} belongs to --http")
    from ..adapters.mcp_stdio import serve_stdio

    def load() -> Server[Any]:
        from ..adapters.mcp import memory_server

        return memory_server(app.memory(), read_only=read_only)

    serve_stdio(load)


def _serve_http(
    app: App,
    host: str,
    port: int | None,
    file: Path | None,
    origins: tuple[str, ...],
    read_only: bool,
) -> None:
    from ..adapters.mcp_http import http_app, serve_http
    from ..listening import is_loopback

    grants = _grants(app, file, read_only)
    if grants is None and not is_loopback(host):
        raise InvalidValue(
            f"without a token anyone who reaches {host} could read and change the memory: set "
            f"{_TOKEN}, or give --tokens FILE ('retain serve --new-token' makes one)"
        )
    app.listen()
    app.memory()  # fails here rather than at the first call
    known = _Desks(app)

    def desk_of(token: str | None) -> Desk | None:
        if grants is None:
            return known.desk(app.scope, read_only)
        granted = None if token is None else grants(token)
        return None if granted is None else known.desk(*granted)

    served = http_app(desk_of, needs_token=grants is not None, origins=origins)
    serve_http(served, host, _PORT if port is None else port, lambda url: _tell(app, url))


def _grants(app: App, file: Path | None, read_only: bool) -> Grants | None:
    """What a token allows, the scope and whether it only reads; ``None`` without any tokens."""
    alone = os.environ.get(_TOKEN)
    if alone is not None and file is not None:
        raise click.UsageError(f"--tokens and {_TOKEN} are two kinds of token; give one of them")
    if alone is not None:
        if len(alone) < _SHORTEST or not alone.isascii():
            raise InvalidValue(
                f"{_TOKEN} has {len(alone)} characters; give at least {_SHORTEST}, all ASCII"
            )
        mine = alone.encode()

        def grant_one(token: str) -> tuple[Scope, bool] | None:
            same = hmac.compare_digest(token.encode("utf-8", "surrogatepass"), mine)
            return (app.scope, read_only) if same else None

        return grant_one
    if file is None:
        return None
    if app.scope.to_dict():
        raise click.UsageError(
            "each token has its own scope; --user, --agent and --session have none"
        )
    from ..web.tokens import Tokens

    tokens = Tokens(file)

    def grant(token: str) -> tuple[Scope, bool] | None:
        found = tokens.grant(token)
        return None if found is None else (found.scope, read_only or found.read_only)

    return grant


class _Desks:
    """A desk for each scope that was asked for, opened when it is first."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._made: dict[tuple[Scope, bool], Desk] = {}

    def desk(self, scope: Scope, read_only: bool) -> Desk:
        from ..adapters.mcp import Desk

        with self._lock:
            if (scope, read_only) not in self._made:
                memory = self._app.memory(scope)
                self._made[scope, read_only] = Desk(memory, read_only=read_only)
            return self._made[scope, read_only]


def _tell(app: App, url: str) -> None:
    if app.out.as_json:
        app.out.json({"url": url})
    else:
        app.out.text(f"Serving at {url}")
    sys.stdout.flush()  # who started it may wait for this line
