"""The commands that look after a memory: prune, stats, check, backup."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from .. import clock
from .app import App, command
from .output import NOT_FOUND

__all__ = ["backup", "check", "prune", "stats"]


@command()
@click.option("--logs-days", type=click.IntRange(min=0), default=30, help="Logs to keep.  [30]")
def prune(app: App, /, logs_days: int) -> None:
    """Delete what is expired, old logs, and the notes in them; facts stay."""
    memory = app.reading()
    expired = memory.prune()
    before = len(memory)
    logs = memory.prune_logs(logs_days)
    notes = before - len(memory)
    if app.out.as_json:
        app.out.json({"expired": expired, "logs": logs, "notes": notes})
    else:
        app.out.text(f"Deleted {expired} expired, {logs} logs, and {notes} notes in them.")


@command()
def stats(app: App, /) -> None:
    """Show how much is remembered, of what kind, and where."""
    found = _statistics(app)
    if app.out.as_json:
        app.out.json(found)
        return
    for name, value in found.items():
        if name == "scopes":
            value = [f"{_name(each['scope'])}: {each['memories']}" for each in value]
        elif isinstance(value, dict):
            value = [f"{key}: {part}" for key, part in value.items()]
        elif name in ("oldest", "newest") and value is not None:
            value = clock.iso(value)
        shown = ", ".join(value) if isinstance(value, list) else str(value)
        app.out.row((f"{name.replace('_', ' '):12}", "dim"), (shown if value else "-", ""))


def _name(scope: dict[str, str]) -> str:
    return " ".join(f"{part}={value}" for part, value in scope.items()) or "default"


def _statistics(app: App) -> dict[str, Any]:
    memory = app.reading()
    store = memory.engine.store
    kinds: Counter[str] = Counter()
    categories: Counter[str] = Counter()
    facts, times = 0, []
    for each in store.iterate():
        kinds[each.memory_type.value] += 1
        categories[each.category] += 1
        facts += each.persistent
        times.append(each.created_at)
    return {
        "directory": str(app.directory),
        "scope": memory.scope.to_dict(),
        "memories": len(times),
        "facts": facts,
        "by_type": dict(kinds.most_common()),
        "by_category": dict(categories.most_common()),
        "expired": len(store.expired()),
        "oldest": times[-1] if times else None,
        "newest": times[0] if times else None,
        "revision": store.changes(0).revision,
        "bytes": _sizes(app.directory),
        "scopes": [
            {"scope": scope.to_dict(), "memories": store.scoped(scope).count()}
            for scope in store.scopes()
        ],
    }


def _sizes(place: Path) -> dict[str, int]:
    """The bytes on disk, of all scopes."""
    kinds = {"store": "memory.db*", "facts": "**/MEMORY*", "logs": "**/logs/*.jsonl"}
    return {
        kind: sum(path.stat().st_size for path in place.glob(pattern) if path.is_file())
        for kind, pattern in kinds.items()
    }
