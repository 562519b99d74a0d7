"""The commands that carry memories elsewhere and back: export, import, copy."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InvalidValue, NotFound
from .app import App, command
from .options import TEXT
from .output import NOT_FOUND

if TYPE_CHECKING:
    from ..memories.base import Face
    from ..moving.copying import CopyReport
    from ..moving.importing import ImportReport
    from ..scope import Scope
    from ..stores.base import Store

__all__ = ["copy", "export", "import_"]

_MOST = 20  # troubles that are told one by one


@command()
@click.argument("path", metavar="[FILE]", type=click.Path(allow_dash=True), default="-")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "selectools", "codomyrmex"]),
    default="jsonl",
    help="What to write.  [jsonl]",
)
@click.option("--all-scopes", is_flag=True, help="Every user, agent and session (jsonl only).")
@click.option("--force", is_flag=True, help="Write over a FILE that is there.")
def export(app: App, /, path: str, form: str, all_scopes: bool, force: bool) -> None:
    """Write all memories to FILE, or to standard output.

    jsonl: a line for each, whole. codomyrmex: a JSON array. selectools: FILE is a new
    directory with entries.jsonl, MEMORY.md and logs.
    """
    if all_scopes and form != "jsonl":
        raise click.UsageError(f"--all-scopes needs a format that keeps scopes; {form} does not")
    if form == "selectools" and path == "-":
        raise click.UsageError("a selectools export is a directory; name it")
    from ..files import real_path

    if path != "-" and form != "selectools" and not force and real_path(path).is_file():
        raise InvalidValue(f"{path} is there already; name another FILE, or give --force")
    store = app.reading().engine.store
    stores = [store.scoped(scope) for scope in store.scopes()] if all_scopes else [store]
    count = _export(app, stores, path, form, force)
    if path == "-":
        return
    if app.out.as_json:
        app.out.json({"path": path, "format": form, "exported": count})
    else:
        app.out.text(f"Exported {count} to {path}")


def _export(app: App, stores: list[Store], path: str, form: str, force: bool) -> int:
    from ..files import real_path
    from ..moving.export import export_array, export_jsonl, export_path, new_file

    with app.out.progress("Exporting", hidden=path == "-" and app.out.terminal) as progress:
        if form == "selectools":
            return export_path(stores[0], path, format=form, progress=progress)
        write = export_jsonl if form == "jsonl" else export_array
        if path == "-":
            out = sys.stdout.buffer
            return sum(write(store, out, progress=progress) for store in stores)
        with new_file(real_path(path), overwrite=force) as file:
            return sum(write(store, file, progress=progress) for store in stores)


@command("import")
@click.argument("path", type=click.Path(exists=True, allow_dash=True))
@click.option(
    "--format",
    "form",
    type=click.Choice(
        [
            *("auto", "jsonl", "selectools", "codomyrmex"),
            *("mem0", "mcp-graph", "claude-code", "chatgpt", "claude"),
        ]
    ),
    default="auto",
    help="What PATH is.  [auto]",
)
@click.option("--replace", is_flag=True, help="Where an id is there with something else.")
@click.option("--keep-scope", is_flag=True, help="Let each go to the scope that it names.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
def import_(
    app: App, /, path: str, form: str, replace: bool, keep_scope: bool, dry_run: bool
) -> int | None:
    """Take over the memories in PATH; "-" is standard input.

    PATH: a file that 'retain export' wrote; memories of selectools (a directory, or a file of
    one), codomyrmex, mem0, the MCP memory server (its JSON lines) or Claude Code (the folder
    'memory' of a project); the data export of ChatGPT or Claude (as a zip file, or unpacked).
    What is there already is left alone, so an import can be run again. Exit code 1 if something
    could not be taken over; PATH is never changed.
    """
    from ..memories.agent import AgentMemory
    from ..moving.importing import import_path

    app.listen()
    own, scoped = app.scope, _opener(app, dry_run)
    with app.out.progress("Importing") as progress:
        report = import_path(
            AgentMemory(),  # for what can't be read, which goes nowhere
            sys.stdin.buffer if path == "-" else path,
            format=form,
            replace=replace,
            dry_run=dry_run,
            scoped=scoped if keep_scope else lambda _: scoped(own),
            progress=progress,
        )
    if not report.total:
        raise NotFound(f"there is nothing to import in {path}")
    _tell(app, report, dry_run)
    return NOT_FOUND if report.troubles else None


def _opener(app: App, dry_run: bool) -> Callable[[Scope], Face]:
    """Gives the memory of a scope, opened with its first record: none, and nothing is made."""
    from ..memories.agent import AgentMemory

    @functools.cache
    def opened(scope: Scope) -> Face:
        if not dry_run:
            return app.memory(scope)
        # which makes no files for a scope, either
        return AgentMemory(app.memory().engine.store if app.exists() else None, scope=scope)

    return opened


def _tell(app: App, report: ImportReport, dry_run: bool) -> None:
    if app.out.as_json:
        app.out.json({**report.to_dict(), "dry_run": dry_run})
        return
    counts = {
        "Would import" if dry_run else "Imported": report.imported,
        "replaced": report.replaced,
        "known already": report.known + report.duplicates,
        "expired": report.expired,
        "unreadable": len(report.unreadable),
        "in conflict": len(report.conflicts),
        "rejected": len(report.rejected),
    }
    first, *others = counts.items()
    told = [f"{first[0]} {first[1]}", *(f"{name}: {count}" for name, count in others if count)]
    app.out.text(", ".join(told) + f" ({report.format}).")
    for trouble in report.troubles[:_MOST]:
        app.out.note(str(trouble))
    if len(report.troubles) > _MOST:
        app.out.note(f"… and {len(report.troubles) - _MOST} more; --json tells all of them")
    if report.conflicts:
        app.out.note("--replace puts them in the place of what is there")


@command()
@click.argument("source", metavar="SRC", type=TEXT)
@click.argument("target", metavar="DST", type=TEXT)
@click.option("--mirror", is_flag=True, help="Delete in DST what SRC does not hold.")
def copy(app: App, /, source: str, target: str, mirror: bool) -> int | None:
    """Copy everything in SRC to DST, and verify that it arrived.

    Each is the URL of a store or a memory directory. All users, agents and sessions, unless
    --user, --agent or --session name one of them; every field, expired memories too. SRC is only
    read. What is in DST already and the same is left alone, so a copy can be run again: to
    finish one that was broken off, or to catch up. Exit code 1 if not all of it arrived.
    """
    from ..moving.copying import copy_store

    if app.place.given & {"dir", "store"}:
        raise click.UsageError("SRC and DST name the places; leave out --dir and --store")
    app.listen()
    scope = app.given_scope
    start = _source(app, source)
    folder, end = _target(app, target)
    with app.out.progress("Copying") as progress:
        report = copy_store(start, end, scope=scope, mirror=mirror, progress=progress)
    if folder is not None:
        _show(app, folder, report)
    _tell_copy(app, report)
    return None if report.verified else NOT_FOUND


def _source(app: App, source: str) -> Store:
    """The store of SRC, which must be there: copying makes nothing there, and a typo is told."""
    from ..memories.knowledge import DATABASE
    from ..stores.opening import hidden, is_url
    from ..stores.sqlite import SQLiteStore

    if is_url(source):
        address = app.address_of(source)
        if not address.exists():
            raise NotFound(f"nothing is remembered in {address.shown} yet")
        return app.open(address)
    place = _directory(source)
    if not (place / DATABASE).exists():
        raise NotFound(f"nothing is remembered in {hidden(str(place))} yet")
    store = SQLiteStore(place / DATABASE, allow_network=app.place.allow_network)
    return app.closing(store)


def _target(app: App, target: str) -> tuple[Path | None, Store]:
    """The memory directory of DST, if it is one, and its store."""
    from ..memories.knowledge import DATABASE
    from ..stores.opening import is_url
    from ..stores.sqlite import SQLiteStore

    if is_url(target):
        return None, app.open(app.address_of(target))
    place = _directory(target)
    store = SQLiteStore(place / DATABASE, allow_network=app.place.allow_network)
    return place, app.closing(store)


def _directory(path: str) -> Path:
    from ..files import real_path

    place = real_path(path)
    if place.is_file():
        raise InvalidValue(
            f"{place} is a file; name a memory directory, or a store by its URL: "
            "sqlite:///path, file:path.json"
        )
    return place


def _show(app: App, folder: Path, report: CopyReport) -> None:
    """Bring MEMORY.md and the logs of a directory in step with what was copied."""
    from ..memories.knowledge import KnowledgeMemory

    with app.out.working(f"writing MEMORY.md and the logs in {folder}"):
        for each in report.scopes:
            KnowledgeMemory(folder, scope=each.scope, allow_network=app.place.allow_network).close()


def _tell_copy(app: App, report: CopyReport) -> None:
    names = ("copied", "replaced", "same", "newer", "deleted", "beyond", "dropped", "unreadable")
    counts = {name: report.total(name) for name in names}
    if app.out.as_json:
        app.out.json({**report.to_dict(), **counts, "memories": report.total("memories")})
    else:
        scopes = f"{len(report.scopes)} scope{'s' if len(report.scopes) != 1 else ''}"
        told = [f"Copied {counts['copied']} in {scopes}"]
        told += [f"{_SAID[name]}: {counts[name]}" for name in names[1:] if counts[name]]
        app.out.text(", ".join(told) + ("." if not report.verified else ". Verified."))
    for each in report.scopes:
        if not each.verified:
            app.out.note(
                f"scope {each.scope}: {each.arrived} of {each.memories} arrived, "
                f"digest {each.arrived_digest} in place of {each.digest}"
                + (f"; {each.unreadable} in SRC can't be read" if each.unreadable else "")
            )
    if report.changed:
        app.out.note("SRC was written to meanwhile: run the copy again to catch up")
    if counts["newer"] or counts["beyond"]:
        app.out.note("DST has more or newer memories than SRC; --mirror makes it the same")


_SAID = {
    "replaced": "replaced",
    "same": "there already",
    "newer": "newer in DST and left",
    "deleted": "deleted in DST",
    "beyond": "only in DST",
    "dropped": "expired and not kept by DST",
    "unreadable": "unreadable in SRC",
}
