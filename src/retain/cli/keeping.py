"""The commands that look after a memory: prune, stats, check, backup."""

from __future__ import annotations

from collections import Counter
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import clock
from .app import App, command
from .output import NOT_FOUND

if TYPE_CHECKING:
    from ..stores.base import Problem, Store

__all__ = ["backup", "check", "prune", "stats"]


@command()
@click.option("--logs-days", type=click.IntRange(min=0), default=30, help="Logs to keep.  [30]")
def prune(app: App, /, logs_days: int) -> None:
    """Delete what is expired, old logs, and the notes in them.

    Facts stay, and so does today's log. Days are UTC.
    """
    memory = app.reading()
    expired = memory.prune()
    before = len(memory)
    logs = memory.prune_logs(logs_days)
    notes = before - len(memory)
    if app.out.as_json:
        app.out.json({"expired": expired, "logs": logs, "notes": notes})
    else:
        app.out.text(f"Deleted {expired} expired memories, {logs} logs and {notes} notes in them.")


@command()
def stats(app: App, /) -> None:
    """Show how much is remembered, of what kind, and where."""
    found = _statistics(app)
    if app.out.as_json:
        app.out.json(found)
        return
    for name, value in found.items():
        if name == "scope":
            value = _name(value)
        elif name == "scopes":
            value = [f"{_name(each['scope'])}: {each['memories']}" for each in value]
        elif isinstance(value, dict):
            value = [f"{key}: {part}" for key, part in value.items()]
        elif name in ("oldest", "newest") and value is not None:
            value = clock.iso(value)
        shown = ", ".join(value) if isinstance(value, list) else value
        app.out.field(name.replace("_", " "), "-" if shown in ("", None) else str(shown))


def _name(scope: dict[str, str]) -> str:
    return " ".join(f"{part}={value}" for part, value in scope.items()) or "default"


def _statistics(app: App) -> dict[str, Any]:
    memory = app.reading()
    store = memory.engine.store
    kinds: Counter[str] = Counter()
    categories: Counter[str] = Counter()
    facts, oldest, newest = 0, None, None
    for each in store.iterate():
        kinds[each.memory_type.value] += 1
        categories[each.category] += 1
        facts += each.persistent
        oldest = each.created_at
        newest = newest or oldest
    return {
        **_where(app),
        "scope": memory.scope.to_dict(),
        "memories": kinds.total(),
        "facts": facts,
        "by_type": dict(kinds.most_common()),
        "by_category": dict(categories.most_common()),
        "expired": len(store.expired()),
        "oldest": oldest,
        "newest": newest,
        "revision": store.revision,
        "bytes": _sizes(app.directory) if app.address is None else _size(store),
        "scopes": [
            {"scope": scope.to_dict(), "memories": store.scoped(scope).count()}
            for scope in store.scopes()
        ],
    }


def _where(app: App) -> dict[str, str]:
    if app.address is None:
        return {"directory": str(app.directory), "store": "SQLiteStore"}
    return {"url": app.address.shown, "store": app.address.kind.store}


def _size(store: Store) -> dict[str, int]:
    """The bytes on disk of a store alone, where it is on ours."""
    if store.path is None:
        return {}
    found = store.path.parent.glob(f"{escape(store.path.name)}*")
    return {"store": sum(path.stat().st_size for path in found if path.is_file())}


def _sizes(place: Path) -> dict[str, int]:
    """The bytes on disk, of all scopes."""
    folders = [place, *(place / "scopes").glob("*")]
    kinds = {"store": "memory.db*", "facts": "MEMORY*", "logs": "logs/*.jsonl"}
    return {
        kind: sum(path.stat().st_size for folder in folders for path in folder.glob(pattern))
        for kind, pattern in kinds.items()
    }


@command()
@click.option("--fix", is_flag=True, help="Mend what can be mended.")
def check(app: App, /, fix: bool) -> int | None:
    """Verify the whole store.

    Of every scope; exit code 1 if a problem remains. With --fix, a store that can't be
    opened any more is replaced by what can be read of it, of MEMORY.md and of the logs; the
    broken file is kept beside it.
    """
    app.require()
    app.listen()
    with app.out.working(f"checking {app.where}"):
        problems = _checked(app, fix)
    left = [problem for problem in problems if not problem.fixed]
    if app.out.as_json:
        found = [{"problem": each.text, "mended": each.fixed} for each in problems]
        app.out.json({"ok": not left, "problems": found})
    else:
        for problem in problems:
            app.out.row((str(problem), ""))
        if not problems:
            app.out.text("No problems.")
        elif left and not fix:
            app.out.note("'retain check --fix' mends what can be mended")
    return NOT_FOUND if left else None


def _checked(app: App, fix: bool) -> list[Problem]:
    if app.address is not None:
        return app.store.check(fix)
    from ..moving.rescue import mend

    problems = mend(app.directory, fix=fix, allow_network=app.place.allow_network)
    if fix:
        app.memory()  # which brings MEMORY.md and the logs in step
    return problems


@command()
@click.argument("path", type=click.Path())
def backup(app: App, /, path: str) -> None:
    """Copy the whole memory to the new directory PATH.

    All scopes, while it is in use. The copy is a memory directory itself: 'retain --dir PATH
    list' looks into it. With --store, the copy is a store of the same kind.
    """
    from ..files import real_path
    from ..moving.backup import back_up

    memory = app.reading()
    target = real_path(path)
    with app.out.working(f"copying {app.where}"):
        if app.address is None:
            names = back_up(memory, path)
        else:
            app.store.backup(target)
            names = [each.name for each in target.iterdir()] if target.is_dir() else [target.name]
    folder = target if target.is_dir() else target.parent
    size = sum((folder / name).stat().st_size for name in names)
    if app.out.as_json:
        app.out.json({"path": path, "files": names, "bytes": size})
    else:
        app.out.text(f"Copied {len(names)} files, {size:,} bytes, to {path}")
