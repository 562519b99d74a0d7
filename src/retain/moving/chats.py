"""The conversations in the data exports of ChatGPT and of Claude, as turns.

A turn is kept as ``ConversationMemory`` keeps one: what was said, with ``role``, ``turn`` and
``session`` in its metadata, the time at which it was said, and who said it as its source. What
Claude remembers of a person and the instructions of projects come as persistent memories.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from ..errors import InvalidType, InvalidValue
from ..models import Memory, MemoryType
from . import chatgpt, claude
from .json_text import Value
from .notes import Note, notes
from .reading import Read, read_one
from .records import Identities, to_memory
from .said import Lost, Said, text_of
from .times import as_time

__all__ = ["read_chats"]

_NAMESPACE = uuid.UUID("1d5b7a80-6f0e-5c43-9f1c-7f0f6f5b8d27")


def read_chats(
    values: Iterable[Value], when: float, format: str, place: str = ""
) -> Iterator[Read]:
    """The turns of the conversations among ``values``, and what else is remembered there.

    ``format``: "chatgpt" or "claude". ``when``: the time of a conversation that has none; a turn
    that has none takes its conversation's. ``place``: the file, for reports.
    """
    identities = Identities()
    for number, (_, value, problem, at) in enumerate(values, 1):
        where = f"{place}conversation {number}"
        if problem:
            yield Read(where, None, problem, at)
        elif format == "chatgpt" and _has(value, "mapping", dict):
            found = chatgpt.said(value)
            yield from _turns("chatgpt", value, found, where, when, at, identities)
        elif format == "claude" and _has(value, "chat_messages", list):
            found = claude.said(value)
            yield from _turns("claude", value, found, where, when, at, identities)
        elif format == "claude" and isinstance(value, dict) and _is_memory(value):
            yield from _remembered(value, f"{place}memory {number}", when, at, identities)
        elif format == "claude" and isinstance(value, dict) and "prompt_template" in value:
            yield from _project(value, f"{place}project {number}", when, at, identities)
        else:
            yield Read(where, None, f"it is no conversation of {_NAMES[format]}", at)


_NAMES = {"chatgpt": "ChatGPT: it has no mapping", "claude": "Claude: it has no chat_messages"}


def _has(value: Any, name: str, kind: type) -> bool:
    return isinstance(value, dict) and isinstance(value.get(name), kind)


# -- turns -------------------------------------------------------------------------------------


def _turns(
    program: str,
    conversation: Mapping[str, Any],
    found: Iterator[Said | Lost],
    where: str,
    when: float,
    at: int,
    identities: Identities,
) -> Iterator[Read]:
    """A read for each turn; the nth that was said has the number n."""
    title = text_of(conversation.get("title") or conversation.get("name"))
    began = conversation.get("create_time", conversation.get("created_at"))
    given = next(
        (
            conversation.get(name)
            for name in ("conversation_id", "id", "uuid")
            if isinstance(conversation.get(name), str) and conversation.get(name)
        ),
        None,
    )
    session = text_of(given) or identities.of(program, title, began)
    start = _time(began, when)
    turn = 0
    for each in found:
        if isinstance(each, Lost):
            yield Read(f"{where}, {each.where}", None, each.problem, at)
            continue
        turn += 1
        about = {
            "role": each.role,
            "turn": turn,
            "session": session,
            "conversation": title,
            "message": each.id,
            "program": program,
            **each.about,
        }
        yield read_one(f"{where}, {each.where}", at, partial(_turn, each, about, start))


def _turn(said: Said, about: Mapping[str, Any], start: float) -> Memory:
    key = "\n".join((about["program"], about["session"], said.id, str(about["turn"])))
    time = start if said.time is None else as_time(said.time, "its time")
    return Memory(
        str(uuid.uuid5(_NAMESPACE, key)),
        said.text,
        MemoryType.EPISODIC,
        metadata={name: value for name, value in about.items() if value not in ("", None)},
        created_at=time,
        source=said.role,
    ).checked()


def _time(value: Any, otherwise: float) -> float:
    """The time of a conversation, which its turns have of their own, as a rule."""
    try:
        return otherwise if value is None else as_time(value)
    except (InvalidValue, InvalidType):
        return otherwise


# -- what Claude remembers ---------------------------------------------------------------------


def _is_memory(value: Mapping[str, Any]) -> bool:
    return "conversations_memory" in value or "project_memories" in value


def _remembered(
    value: Mapping[str, Any], where: str, when: float, at: int, identities: Identities
) -> Iterator[Read]:
    """What Claude has noted of a person, and of each project, note by note."""
    texts: dict[str, Any] = {"": value.get("conversations_memory")}
    projects = value.get("project_memories")
    if isinstance(projects, Mapping):
        texts.update(projects)
    elif projects is not None:
        yield Read(where, None, f"its project_memories are a {type(projects).__name__}", at)
    for project, text in texts.items():
        place = f"{where}, project {text_of(project)}" if project else where
        if text is None:
            continue
        if not isinstance(text, str):
            yield Read(place, None, f"it is a {type(text).__name__}, not a text", at)
            continue
        for note in notes(text):
            make = partial(_noted, note, text_of(project), when, identities)
            yield read_one(f"{place}, line {note.line}", at, make)


def _noted(note: Note, project: str, when: float, identities: Identities) -> Memory:
    about = {"heading": note.heading, "project": project}
    data = {
        "id": identities.of("claude", project, note.heading, note.text),
        "content": note.text,
        "category": note.heading.strip() or "general",
        "persistent": True,
        "source": "claude",
        "metadata": {name: text for name, text in about.items() if text},
    }
    return to_memory(data, identities, when, MemoryType.SEMANTIC)


def _project(
    value: Mapping[str, Any], where: str, when: float, at: int, identities: Identities
) -> Iterator[Read]:
    """The description and the instructions of a project; its documents are none of a memory."""
    name, id = text_of(value.get("name")), text_of(value.get("uuid"))
    for member, kind in (
        ("description", MemoryType.SEMANTIC),
        ("prompt_template", MemoryType.PROCEDURAL),
    ):
        text = value.get(member)
        if text is None or text == "":
            continue
        data = {
            "id": identities.of("claude", "project", id or name, member),
            "content": text,
            "category": "projects",
            "tags": [name] if name.strip() else [],
            "persistent": True,
            "created_at": value.get("created_at"),
            "updated_at": value.get("updated_at"),
            "source": "claude",
            "metadata": {"project": id, "name": name, "part": member},
        }
        make = partial(to_memory, data, identities, when, kind)
        yield read_one(f"{where}, {member}", at, make)
