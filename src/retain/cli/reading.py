"""The commands that show what is remembered: recall, list, show, facts, log, context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .. import clock
from ..errors import InvalidValue
from .app import App, command, short
from .options import TEXT, filters
from .output import NOT_FOUND

if TYPE_CHECKING:
    from ..memories.knowledge import KnowledgeMemory

__all__ = ["context", "facts", "list_", "log", "recall", "show"]

_MANY = 5_000  # memories whose index takes long enough to be watched
_FIELDS = (
    *("id", "memory_type", "category", "importance_score", "persistent", "tags", "source"),
    *("created_at", "updated_at", "expires_at", "access_count", "last_accessed", "metadata"),
)


def _date(epoch: float) -> str:
    return clock.iso(epoch)[:10]


def _tell_if_none(app: App, memory: KnowledgeMemory, found: object) -> None:
    """Tell a person that nothing was found, and that it may be in another scope."""
    if found or not app.out.watched:
        return
    store = memory.engine.store
    others = 0 if store.count() else sum(store.scoped(each).count() for each in store.scopes())
    there = f" in this scope; others have {others}: 'retain stats' names them" if others else ""
    app.out.note(f"nothing found{there}")


@command()
@click.argument("query", metavar="QUERY...", type=TEXT, nargs=-1, required=True)
@click.option("-k", type=click.IntRange(min=0), default=10, help="At most so many.  [10]")
@click.option("--explain", is_flag=True, help="Say below each why it is there.")
@filters
def recall(app: App, /, query: tuple[str, ...], k: int, explain: bool, **narrow: Any) -> int | None:
    """Find the memories that fit QUERY best: a line each, best first.

    The line: how well it fits (0 to 1: relevance, recency and importance), its id, date,
    category and text. An empty QUERY finds what is newest and most important.
    """
    memory = app.reading()
    if memory.engine.behind() > _MANY:
        with app.out.progress("making the index") as progress:
            memory.settle(progress)
    found = memory.recall(" ".join(query), k=k, **narrow)
    for result in found:
        if app.out.as_json:
            app.out.json(result.to_dict())
            continue
        each = result.memory
        app.out.row(
            (f"{result.combined_score:.2f}", "bold"),
            (short(each.id), "yellow"),
            (_date(each.created_at), "dim"),
            (each.category, "cyan"),
            (each.content, ""),
        )
        if explain:
            app.out.row((f"        {result.explain()}", "dim"))
    _tell_if_none(app, memory, found)
    return None if found else NOT_FOUND


@command("list")
@click.option("--limit", type=click.IntRange(min=1), default=50, help="At most so many.  [50]")
@click.option("--all", "everything", is_flag=True, help="All of them.")
@click.option("--after", type=TEXT, metavar="ID", help="Go on after this one.")
@filters
def list_(app: App, /, limit: int, everything: bool, after: str | None, **narrow: Any) -> None:
    """List what is remembered, newest first.

    A line each: id, date, category and text.
    """
    from ..models import Filter

    memory = app.reading()
    store, filter = memory.engine.store, Filter.of(**narrow)
    start = app.find(memory, [after])[0] if after else None
    if everything and start:
        raise click.UsageError("--all and --after contradict each other")
    if everything:
        shown = 0
        for each in store.iterate(narrow=filter):
            _print(app, each)
            shown += 1
        _tell_if_none(app, memory, shown)
        return
    page = store.page(limit + 1, after=start, narrow=filter)
    for each in page[:limit]:
        _print(app, each)
    if len(page) > limit:
        last = short(page[limit - 1].id)
        app.out.note(f"there are more: --after {last} goes on, --all shows all")
    _tell_if_none(app, memory, page)


def _print(app: App, memory: Any) -> None:
    if app.out.as_json:
        app.out.json(memory.to_dict())
    else:
        app.out.row(
            (short(memory.id), "yellow"),
            (_date(memory.created_at), "dim"),
            (memory.category, "cyan"),
            (memory.content, ""),
        )


@command()
@click.argument("id", type=TEXT)
def show(app: App, /, id: str) -> None:
    """Show all of the memory ID, or of the one whose id begins so."""
    memory = app.reading()
    found = app.find(memory, [id])[0].to_dict()
    if app.out.as_json:
        app.out.json(found)
        return
    for name in _FIELDS:
        value = found[name]
        if value in ("", None, [], {}):
            continue
        if name.endswith("_at") or name == "last_accessed":
            value = clock.iso(value)
        if isinstance(value, list):
            value = ", ".join(value)
        app.out.field(name.replace("_", " "), str(value))
    app.out.text(f"\n{found['content']}")


@command()
def facts(app: App, /) -> None:
    """Show the facts of MEMORY.md by category."""
    memory = app.reading()
    found = memory.get_persistent_facts()
    if app.out.as_json:
        app.out.json(found)
        return
    blocks = ["\n".join([f"## {name}", *(f"- {text}" for text in found[name])]) for name in found]
    if blocks:
        app.out.text("\n\n".join(blocks))
    _tell_if_none(app, memory, blocks)


@command()
@click.option("--days", type=click.IntRange(min=0), default=7, help="Days back; 0: today.  [7]")
@click.option("--limit", type=click.IntRange(min=1), default=50, help="At most so many.  [50]")
def log(app: App, /, days: int, limit: int) -> None:
    """Show the daily logs, newest first. Days and times are UTC."""
    memory = app.reading()
    entries = memory.get_recent_entries(days, limit + 1)
    for entry in entries[:limit]:
        if app.out.as_json:
            app.out.json(entry)
        else:
            time = entry["timestamp"][:16].replace("T", " ")
            app.out.row((time, "dim"), (entry["category"], "cyan"), (entry["content"], ""))
    if len(entries) > limit:
        app.out.note("there are more: raise --limit")
    _tell_if_none(app, memory, entries)


@command()
@click.argument("query", metavar="[QUERY...]", type=TEXT, nargs=-1)
@click.option("-k", type=click.IntRange(min=0), help="With QUERY: at most so many.  [5]")
@click.option("--fence", is_flag=True, help="Labelled as data, as it should go into a prompt.")
def context(app: App, /, query: tuple[str, ...], k: int | None, fence: bool) -> int | None:
    """Print a block for a prompt.

    The facts of MEMORY.md and the recent notes, or with QUERY the memories that fit it best.
    Nothing is pruned by it.
    """
    memory = app.reading()
    if query:
        block = memory.get_context(" ".join(query), k=5 if k is None else k)
    elif k is not None:
        raise InvalidValue("-k needs a QUERY")
    else:
        memory.max_log_days = clock.FOR_EVER  # reading deletes nothing here: 'retain prune' does
        block = memory.build_context()
    if fence:
        from ..context import fence as fenced

        block = fenced(block)
    if app.out.as_json:
        app.out.json({"context": block})
    elif block:
        app.out.text(block)
    return NOT_FOUND if query and not block else None
