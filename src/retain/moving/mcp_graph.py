"""The graph that the memory server of the Model Context Protocol keeps, as memories.

Its file has a line of JSON for each entity and each relation; what its ``read_graph`` answers,
one object with ``entities`` and ``relations``, is read too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from ..errors import InvalidType, InvalidValue
from ..models import Memory, MemoryType
from .json_text import Value
from .reading import Read, read_one
from .records import Identities, to_memory

__all__ = ["read_mcp_graph"]


def read_mcp_graph(values: Iterator[Value], when: float) -> Iterator[Read]:
    """A persistent fact for each observation and each relation; ``when``: their time.

    An observation is told of its entity (``Ann: likes tea``), whose type is the category and
    whose name a tag; an entity of which nothing was observed is a fact itself.
    """
    identities = Identities()
    for line, value, problem, at in values:
        where = f"line {line}"
        if problem:
            yield Read(where, None, problem, at)
            continue
        for place, record in _records(value, where):
            for part, make in _parts(record, identities, when):
                yield read_one(f"{place}{part}", at, make)


def _records(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    if not (isinstance(value, dict) and "type" not in value):
        yield where, value
        return
    lists = [(name, value.get(name)) for name in ("entities", "relations")]
    if not any(isinstance(records, list) for _, records in lists):
        yield where, value
        return
    for name, records in lists:
        kind = "entity" if name == "entities" else "relation"
        if not isinstance(records, list):
            records = [] if records is None else [records]
        for number, record in enumerate(records, 1):
            typed = {"type": kind, **record} if isinstance(record, dict) else record
            yield f"{name}, record {number}", typed


def _parts(record: Any, identities: Identities, when: float) -> Iterator[tuple[str, Any]]:
    """What there is to tell of a record: which part it is, and what makes its memory."""
    if isinstance(record, Mapping) and record.get("type") == "entity":
        observed = record.get("observations")
        if isinstance(observed, list) and observed:
            for number, text in enumerate(observed, 1):
                make = partial(_observation, record, text, identities, when)
                yield f", observation {number}", make
            return
    yield "", partial(_whole, record, identities, when)


def _observation(
    record: Mapping[str, Any], text: Any, identities: Identities, when: float
) -> Memory:
    name, kind = _entity(record)
    if not isinstance(text, str) or not text.strip():
        raise InvalidType(f"an observation of {name!r} is {_shown(text)}; it should be a text")
    about = {"entity": name, "observation": text}
    return _fact(f"{name}: {text}", kind, [name], about, identities, when)


def _whole(record: Any, identities: Identities, when: float) -> Memory:
    if not isinstance(record, Mapping):
        raise InvalidType(f"it is a {type(record).__name__}, not an entity or a relation")
    if record.get("type") == "relation":
        parts = [record.get(name) for name in ("from", "relationType", "to")]
        if not all(isinstance(part, str) and part.strip() for part in parts):
            raise InvalidValue('its "from", "relationType" and "to" are not all texts')
        subject, relation, object = parts
        about = {"subject": subject, "relation": relation, "object": object}
        text = f"{subject} {relation} {object}"
        return _fact(text, "relations", [subject, object], about, identities, when)
    if record.get("type") != "entity":
        raise InvalidValue(f'its "type" is {_shown(record.get("type"))}, no entity and no relation')
    observed = record.get("observations")
    if observed is not None and observed != []:
        raise InvalidType(f'its "observations" are {_shown(observed)}; they should be a list')
    name, kind = _entity(record)
    return _fact(f"{name} ({kind})", kind, [name], {"entity": name}, identities, when)


def _entity(record: Mapping[str, Any]) -> tuple[str, str]:
    name, kind = record.get("name"), record.get("entityType")
    if not isinstance(name, str) or not name.strip():
        raise InvalidType(f'its "name" is {_shown(name)}; it should be a text')
    return name, kind if isinstance(kind, str) and kind.strip() else "general"


def _fact(
    content: str,
    category: str,
    tags: list[Any],
    metadata: dict[str, Any],
    identities: Identities,
    when: float,
) -> Memory:
    data = {
        "content": content,
        "category": category,
        "tags": list(dict.fromkeys(tags)),
        "persistent": True,
        "source": "mcp-graph",
        "metadata": metadata,
    }
    return to_memory(data, identities, when, MemoryType.SEMANTIC)


def _shown(value: Any) -> str:
    return repr(value)[:60]
