"""The commands that carry memories elsewhere and back: export and import."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from ..errors import InvalidValue, NotFound
from .app import App, command
from .output import NOT_FOUND

if TYPE_CHECKING:
    from ..memories.base import Face
    from ..moving.importing import ImportReport
    from ..scope import Scope
    from ..stores.base import Store

__all__ = ["export", "import_"]

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
    type=click.Choice(["auto", "jsonl", "selectools", "codomyrmex"]),
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

    PATH: a file that 'retain export' wrote, a memory directory of selectools (or a file of
    one), or the JSON array of codomyrmex. What is there already is left alone, so an import
    can be run again. Exit code 1 if something could not be taken over; PATH is never changed.
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
