"""One's own data: ``memories.jsonl`` and ``queries.jsonl``."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .. import clock
from ..errors import InvalidType, InvalidValue
from ..models import Memory, MemoryImportance, MemoryType
from .dataset import Dataset, Item, Question, checked_case, in_sessions
from .reading import DataFile, Node, digest

__all__ = ["read_plain"]

_OWN = {"id", "content", "role", "session", "created_at"}
_FIELDS = {
    *("memory_type", "importance", "metadata", "tags", "category"),
    *("source", "persistent", "ttl_days"),
}


def read_plain(memories: DataFile, queries: DataFile, unit: str = "turn") -> Dataset:
    """One case: a memory a line of ``memories``, a question a line of ``queries``.

    A memory has ``id``, ``content`` and, if you like, ``role``, ``session``, ``created_at``
    (epoch seconds or ISO 8601) and the other arguments of ``remember``; or it is a line that
    ``retain export`` wrote. A query has ``query``, ``relevant`` (ids of memories) and, if you
    like, ``id``, ``category`` and ``asked_at``. Queries to which nothing is relevant are left
    out.
    """
    items = [_item(line) for line in memories.lines()]
    known = {item.id for item in items}
    left_out: Counter[str] = Counter()
    questions = []
    for number, line in enumerate(queries.lines(), 1):
        question = _question(line, number)
        if unknown := question.relevant - known:
            raise line["relevant"].wrong(f"has {min(unknown)!r}, which is no memory's id")
        if question.relevant:
            questions.append(question)
        else:
            left_out["without evidence"] += 1
    place = memories.path.resolve()
    name = (
        place.name
        if not place.name.startswith("memories.")
        else f"{place.parent.name}/{place.name}"
    )
    case = checked_case(name, items, questions, left_out)
    if unit != "turn":
        case = in_sessions(case, unit)
    return Dataset(name, digest(memories, queries), [case], "plain", unit)


def _item(line: Node) -> Item:
    if line.get("importance_score") is not None:
        return _exported(line)
    unknown = [name for name in line.names() if name not in _OWN | _FIELDS]
    if unknown:
        can = ", ".join(sorted(_OWN | _FIELDS))
        raise line.wrong(f"has {unknown[0]!r}, which is no member of a memory; what can be: {can}")
    role, session = line.get("role"), line.get("session")
    item = Item(
        line["id"].id(),
        line["content"].text(),
        None if role is None else role.words(),
        None if session is None else session.id(),
        _time(line, "created_at"),
        {name: _field(line, name) for name in sorted(_FIELDS) if line.get(name) is not None},
    )
    try:
        Memory(content=item.content, created_at=item.created_at, **item.fields).checked()
    except (InvalidValue, InvalidType) as error:
        raise line.wrong(f"is no memory: {error}") from None
    return item


def _exported(line: Node) -> Item:
    """A record that ``retain export`` wrote."""
    try:
        memory = Memory.from_dict(line.value)
    except (InvalidValue, InvalidType) as error:
        raise line.wrong(f"is no memory: {error}") from None
    role, session = (memory.metadata.get(name) for name in ("role", "session"))
    return Item(
        memory.id,
        memory.content,
        role if isinstance(role, str) else None,
        session if isinstance(session, str) else None,
        memory.created_at,
        {name: getattr(memory, name) for name in sorted({*_FIELDS, "importance_score"})},
    )


def _field(line: Node, name: str) -> Any:
    node = line[name]
    if name == "memory_type":
        return _one_of(MemoryType, node)
    if name == "importance" and isinstance(node.value, str):
        return _one_of(MemoryImportance, node)
    return node.value


def _one_of(kind: Any, node: Node) -> Any:
    named = node.text().casefold()
    for member in kind:
        if member.name.casefold() == named:
            return member
    known = ", ".join(member.name.lower() for member in kind)
    raise node.wrong(f"is {node.text()!r}; give one of {known}")


def _question(line: Node, number: int) -> Question:
    id, category = line.get("id"), line.get("category")
    return Question(
        f"line {number}" if id is None else id.id(),
        line["query"].words(),
        line["relevant"].ids(),
        "general" if category is None else category.words(),
        _time(line, "asked_at"),
    )


def _time(line: Node, name: str) -> float | None:
    node = line.get(name)
    if node is None:
        return None
    try:
        if isinstance(node.value, str):
            return clock.from_iso(node.value)
        return clock.as_epoch(node.value, name)
    except (InvalidValue, InvalidType) as error:
        raise node.wrong(f"is no time: {error}") from None
