"""The command that answers over HTTP: serve."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from ..errors import MissingPackage
from .app import App, command

if TYPE_CHECKING:
    from ..web.limits import Limits

__all__ = ["serve"]

_SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def _size(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """A number of bytes, such as ``500k`` or ``16M``."""
    if value is None:
        return None
    digits, unit = value, ""
    if value and not value[-1].isdigit():
        digits, unit = value[:-1], value[-1].lower()
    if not (digits.isascii() and digits.isdigit()) or unit not in _SIZES or not int(digits):
        raise click.BadParameter(f"{value!r} is no size such as 500k or 16M", context, option)
    return int(digits) * _SIZES[unit]


@command()
@click.option("--host", default="127.0.0.1", help="The address to listen at.  [127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), default=8077, help="0: a free one.  [8077]")
@click.option(
    "--tokens",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="RETAIN_TOKENS",
    help="The file of tokens, each bound to a scope. [RETAIN_TOKENS]",
)
@click.option("--new-token", is_flag=True, help="Add a token for the scope, print it, and end.")
@click.option("--read-only", is_flag=True, help="With --new-token: one that may only read.")
@click.option("--open", "is_open", is_flag=True, help="Without tokens, for this machine alone.")
@click.option(
    "--embedder",
    type=click.Choice(["default", "none"]),
    default="default",
    help="What compares meanings; none: words alone.  [default]",
)
@click.option("--workers", type=click.IntRange(1, 256), default=1, help="Processes.  [1]")
@click.option(
    "--threads", type=click.IntRange(1, 256), default=4, help="Of each, for the store.  [4]"
)
@click.option("--max-body", callback=_size, metavar="SIZE", help="Of a request's body.  [16M]")
@click.option("--max-items", type=click.IntRange(1), help="Memories written at once.  [10000]")
@click.option("--max-k", type=click.IntRange(1), help="Results of a recall.  [1000]")
@click.option("--max-page", type=click.IntRange(1), help="Memories of a page.  [1000]")
@click.option("--at-once", type=click.IntRange(1), help="Requests under way in a process.  [256]")
@click.option("--rate", type=click.FloatRange(0), help="Requests a second of a token.  [no limit]")
@click.option("--grace", type=click.IntRange(0), default=30, help="Seconds to end in.  [30]")
def serve(
    app: App,
    /,
    host: str,
    port: int,
    tokens: Path | None,
    new_token: bool,
    read_only: bool,
    is_open: bool,
    embedder: str,
    workers: int,
    threads: int,
    grace: int,
    **limits: float | None,
) -> int:
    """Answer over HTTP, until SIGTERM or Ctrl+C.

    Who asks needs a token, which is bound to one scope: 'retain serve --new-token --tokens FILE
    --user ann' makes one.
    """
    if new_token:
        return _new_token(app, tokens, read_only)
    if read_only:
        raise click.UsageError("--read-only belongs to --new-token")
    if is_open and tokens is not None:
        raise click.UsageError("--open and --tokens contradict each other")
    if tokens is not None and app.scope.to_dict():
        raise click.UsageError(
            "each token has its own scope; --user, --agent and --session have none"
        )
    from ..stores.opening import address

    if workers > 1 and app.place.store is not None and not address(app.place.store).lasts:
        raise click.UsageError("each of several --workers would have a memory: of its own")
    try:
        from ..web.serving import Settings
        from ..web.serving import serve as run
    except ImportError as error:
        raise MissingPackage.needed("retain serve", "server", error) from error

    app.listen()
    url = app.place.store or _of_directory(app)
    settings = Settings(
        url,
        {"allow_network": True} if app.place.allow_network else {},
        host=host,
        port=port,
        tokens=tokens,
        open_to=app.scope if is_open else None,
        meaning=embedder == "default",
        limits=_limits(**limits),
        workers=workers,
        threads=threads,
        grace=grace,
    )
    return run(settings, lambda url: _tell(app, url))


def _of_directory(app: App) -> str:
    from ..files import make_folder

    make_folder(app.directory)
    return f"sqlite:///{quote(str(app.directory / 'memory.db'))}"


def _limits(**given: float | None) -> Limits:
    from ..web.limits import Limits

    names = {"max_body": "body", "max_items": "items", "max_k": "k", "max_page": "page"}
    return Limits(
        **{names.get(name, name): value for name, value in given.items() if value is not None}  # type: ignore[arg-type]
    )


def _tell(app: App, url: str) -> None:
    if app.out.as_json:
        app.out.json({"url": url})
    else:
        app.out.text(f"Serving at {url}")
    sys.stdout.flush()  # who started it may wait for this line


def _new_token(app: App, tokens: Path | None, read_only: bool) -> int:
    if tokens is None:
        raise click.UsageError("name the file of tokens: --tokens FILE")
    from ..web.tokens import Tokens

    token = Tokens.add(tokens, app.scope, read_only=read_only)
    if app.out.as_json:
        app.out.json({"token": token, "scope": app.scope.to_dict(), "read_only": read_only})
    else:
        app.out.text(token)
        app.out.note(f"it is shown this once; {tokens} keeps only its digest")
    return 0
