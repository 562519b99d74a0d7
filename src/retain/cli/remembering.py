"""The commands that change what is remembered: remember, update, forget, restore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .. import clock
from ..errors import InvalidValue, NotFound
from .app import App, command, is_piped, pick, read_text, short
from .options import IMPORTANCE, KIND, METADATA, TEXT, TIME

if TYPE_CHECKING:
    from ..models import Memory

__all__ = ["forget", "observe", "remember", "restore", "update"]

_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in fields.items() if value is not None and value != ()}


def _content(words: tuple[str, ...], file: str | None, required: bool) -> str | None:
    """The text: the arguments, a file, or standard input."""
    content = " ".join(words) if words else None
    if content is not None and file is not None:
        raise click.UsageError("the content is given twice, as an argument and as a file")
    if content == "-" or (content is None and file is None and required and is_piped()):
        file = "-"
    if file is not None:
        return read_text(file)
    if content is None and required:
        raise click.UsageError("there is nothing to remember: give CONTENT, --file or a pipe")
    return content


@command()
@click.argument("content", metavar="[CONTENT...]", type=TEXT, nargs=-1)
@click.option("--file", type=_FILE, help="Read the content from a file.")
@click.option("--lines", is_flag=True, help="Each line is a memory of its own; all or none.")
@click.option("--category", type=TEXT, help="What it is filed under.  [general]")
@click.option("--tag", "tags", type=TEXT, multiple=True, help="A tag; may be repeated.")
@click.option("--importance", type=IMPORTANCE, help="low, medium, high, critical, or 0 to 1.")
@click.option("--persistent", is_flag=True, help="A fact for good, in MEMORY.md.")
@click.option("--ttl-days", type=float, help="Days after which it is gone.")
@click.option("--type", "memory_type", type=KIND, help="episodic, semantic or procedural.")
@click.option("--source", type=TEXT, help="Where it comes from.")
@click.option("--metadata", type=METADATA, help="A JSON object to keep with it.")
@click.option("--at", "created_at", type=TIME, help="When it was, in ISO 8601.  [now]")
def remember(
    app: App, /, content: tuple[str, ...], file: str | None, lines: bool, **fields: Any
) -> None:
    """Remember CONTENT: an argument, a --file, or what is piped in.

    "-" stands for standard input; put -- before a text that begins with -. Without
    --persistent it is a note, which goes when the log of its day is pruned.
    """
    text = _content(content, file, required=True) or ""
    if lines:
        _remember_lines(app, [line for line in text.split("\n") if line.strip()], _given(fields))
        return
    if not text.strip():
        raise InvalidValue("there is nothing to remember: the content is blank")
    _drafts([text], _given(fields))
    receipt = app.memory().remember(text, **_given(fields))
    if app.out.as_json:
        app.out.json({"id": receipt.id, "created": receipt.startswith("Remembered")})
    else:
        app.out.done(f"{receipt} {receipt.id}")


def _drafts(texts: list[str], fields: dict[str, Any]) -> list[Memory]:
    """The memories, checked before one is opened: a mistake makes no directory."""
    from ..models import Memory, MemoryType

    fields = {"memory_type": MemoryType.SEMANTIC, **fields}
    return [Memory(content=text, **fields).checked() for text in texts]


def _remember_lines(app: App, lines: list[str], fields: dict[str, Any]) -> None:
    if not lines:
        raise InvalidValue("there is nothing to remember: every line is blank")
    drafts = _drafts([line.removesuffix("\r") for line in lines], fields)
    saved = app.memory().remember_many(drafts)
    new = [kept.id == draft.id for kept, draft in zip(saved, drafts, strict=True)]
    if app.out.as_json:
        for kept, created in zip(saved, new, strict=True):
            app.out.json({"id": kept.id, "created": created})
    else:
        known = len(new) - sum(new)
        app.out.text(f"Remembered {sum(new)}." + (f" Known already: {known}." if known else ""))


@command()
@click.argument("file", type=_FILE)
@click.option("--conversation", type=TEXT, help="The conversation's name, kept with its turns.")
def observe(app: App, /, file: str, conversation: str | None) -> None:
    """Keep a conversation, and remember what is worth it.

    FILE (or "-") has a turn a line: {"role": "user", "content": "...", "at": "2026-12-01T10:00Z"},
    of which "at" may be left out. What users ask to have remembered, and what they say of
    themselves, is found by rules, offline.
    """
    turns = [_turn(line, at) for at, line in enumerate(read_text(file).splitlines(), 1) if line]
    if not turns:
        raise InvalidValue("there is nothing to observe: no line has a turn")
    found = app.memory().observe(turns, session=conversation)
    for memory in found:
        if app.out.as_json:
            app.out.json(memory.to_dict())
        else:
            row = ((short(memory.id), "yellow"), (memory.category, "cyan"), (memory.content, ""))
            app.out.row(*row)
    if not app.out.as_json:
        app.out.done(f"Turns kept: {len(found.turns)}. Remembered: {len(found)}.")


def _turn(line: str, at: int) -> dict[str, Any]:
    """The turn of a line, checked before a memory is opened: a mistake makes no directory."""
    import json

    try:
        turn = json.loads(line)
    except ValueError as error:
        raise InvalidValue(f"line {at} is no JSON: {error}") from error
    if not isinstance(turn, dict) or not all(
        isinstance(turn.get(name), str) for name in ("role", "content")
    ):
        raise InvalidValue(f'line {at} is no turn: it needs "role" and "content", both text')
    if "at" in turn:
        turn["at"] = str(turn["at"])
        clock.from_iso(turn["at"])
    return turn


@command()
@click.argument("id", type=TEXT)
@click.argument("content", metavar="[CONTENT...]", type=TEXT, nargs=-1)
@click.option("--file", type=_FILE, help="Read the new content from a file.")
@click.option("--category", type=TEXT, help="File it under another category.")
@click.option("--tag", "tags", type=TEXT, multiple=True, help="Its tags from now on.")
@click.option("--no-tags", is_flag=True, help="Take its tags away.")
@click.option("--importance", type=IMPORTANCE, help="low, medium, high, critical, or 0 to 1.")
@click.option("--persistent/--no-persistent", default=None, help="Make it a fact, or a note.")
@click.option("--ttl-days", type=float, help="Days from its time after which it is gone.")
@click.option("--no-ttl", is_flag=True, help="Let it stay.")
@click.option("--type", "memory_type", type=KIND, help="episodic, semantic or procedural.")
@click.option("--source", type=TEXT, help="Where it comes from.")
@click.option("--metadata", type=METADATA, help="A JSON object in place of what it has.")
def update(
    app: App,
    /,
    id: str,
    content: tuple[str, ...],
    file: str | None,
    no_tags: bool,
    no_ttl: bool,
    **fields: Any,
) -> None:
    """Correct the memory ID: its content, or what the options name.

    ID may be the beginning of an id, of four characters at least.
    """
    changes = _given({"content": _content(content, file, required=False), **fields})
    for taken, name, nothing in ((no_tags, "tags", []), (no_ttl, "ttl_days", None)):
        if taken and name in changes:
            raise click.UsageError(f"--no-{name.partition('_')[0]} contradicts another option")
        if taken:
            changes[name] = nothing
    if not changes:
        raise click.UsageError("there is nothing to change: give CONTENT or an option")
    memory = app.reading()
    changed = memory.update(app.find(memory, [id])[0].id, **changes)
    if app.out.as_json:
        app.out.json(changed.to_dict())
    else:
        app.out.done(f"Updated {changed.id}")


@command()
@click.argument("ids", metavar="ID...", type=TEXT, nargs=-1, required=True)
def forget(app: App, /, ids: tuple[str, ...]) -> None:
    """Delete memories for good, everywhere.

    From the store, MEMORY.md and the logs, and also what was deleted from MEMORY.md by hand
    and could still be restored. Where one of the ids is unknown, nothing is deleted.
    """
    memory = app.reading()
    restorable = [each for _, each in memory.forgotten()]
    for id in dict.fromkeys(each.id for each in app.find(memory, ids, restorable)):
        memory.forget(id)
        if app.out.as_json:
            app.out.json({"id": id, "forgotten": True})
        else:
            app.out.done(f"Forgot {id}")


@command()
@click.argument("id", type=TEXT, required=False)
def restore(app: App, /, id: str | None) -> None:
    """Bring back a fact that was deleted from MEMORY.md by hand.

    Within 30 days. Without ID: list what can be brought back.
    """
    memory = app.reading()
    found = memory.forgotten()
    if id is None:
        for at, each in found:
            if app.out.as_json:
                app.out.json({"forgotten_at": clock.as_epoch(at), "memory": each.to_dict()})
            else:
                date = at.date().isoformat()
                row = ((short(each.id), "yellow"), (date, "dim"), (each.category, "cyan"))
                app.out.row(*row, (each.content, ""))
        if not found and app.out.watched:
            app.out.note("nothing to restore")
        return
    wanted = pick(id, [each for _, each in found])
    if wanted is None:
        raise NotFound(f"nothing that can be restored has an id that begins with {id!r}")
    restored = memory.restore(wanted.id)
    if app.out.as_json:
        app.out.json(restored.to_dict())
    else:
        app.out.done(f"Restored {restored.id}")
