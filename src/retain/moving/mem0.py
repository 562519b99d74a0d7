"""Memories of mem0: what its ``get_all`` gives, its platform's pages, and its exports.

They come as a list, as ``{"results": […]}`` or ``{"memories": […]}``, or as lines; beside them
there may be ``relations``, where mem0 keeps a graph.
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

__all__ = ["read_mem0"]

_LISTS = ("results", "memories")
_DROPPED = {"hash", "score", "embedding", "vector"}  # what mem0 computes, and can again
_OWNERS = {"user": "user_id", "agent": "agent_id", "session": "run_id"}


def read_mem0(values: Iterator[Value], when: float) -> Iterator[Read]:
    """The memories among ``values``; ``when``: the time of those that have none.

    One is persistent unless mem0 lets it expire. Its categories become tags, the first one the
    category; ``user_id``, ``agent_id`` and ``run_id`` its scope, for who keeps scopes, and they
    stay in its metadata.
    """
    identities = Identities()
    for line, value, problem, at in values:
        where = f"line {line}"
        if problem:
            yield Read(where, None, problem, at)
            continue
        listed = [(name, value[name]) for name in _LISTS if _is_list(value, name)]
        if not listed and not _is_list(value, "relations"):
            yield read_one(where, at, partial(_memory, value, identities, when))
            continue
        for name, records in listed:
            for number, record in enumerate(records, 1):
                place = f"{name}, record {number}"
                yield read_one(place, at, partial(_memory, record, identities, when))
        for number, relation in enumerate(value.get("relations") or [], 1):
            place = f"relations, record {number}"
            yield read_one(place, at, partial(_relation, relation, identities, when))


def _is_list(value: Any, name: str) -> bool:
    return isinstance(value, dict) and isinstance(value.get(name), list)


def _memory(record: Any, identities: Identities, when: float) -> Memory:
    if not isinstance(record, Mapping):
        raise InvalidType(f"it is a {type(record).__name__}, not an object with a memory")
    given = {name: value for name, value in record.items() if value is not None}
    data = {name: value for name, value in given.items() if name not in _DROPPED}
    content = data.pop("memory", data.get("content"))
    if not isinstance(content, str):
        raise InvalidValue(
            'it has no text as its "memory"; of an export with a schema of your own, '
            "import what get_all() gives instead"
        )
    tags = data.pop("categories", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise InvalidType('its "categories" are no list of texts')
    tags = [tag for tag in tags if tag.strip()]
    metadata = data.get("metadata", {})
    if not isinstance(metadata, Mapping):
        raise InvalidType(f'its "metadata" is a {type(metadata).__name__}, not an object')
    owners = {name: data.pop(name) for name in _OWNERS.values() if data.get(name, "") != ""}
    expires = data.pop("expiration_date", None)
    known = {
        "content": content,
        "tags": tags,
        "category": tags[0] if tags else "general",
        "expires_at": expires,
        "persistent": expires is None,
        "scope": {kind: owners[name] for kind, name in _OWNERS.items() if name in owners},
        "source": "mem0",
        "metadata": {**metadata, **owners},
    }
    return to_memory({**data, **known}, identities, when, MemoryType.SEMANTIC)


def _relation(record: Any, identities: Identities, when: float) -> Memory:
    """An edge of mem0's graph, as a sentence."""
    if not isinstance(record, Mapping):
        raise InvalidType(f"it is a {type(record).__name__}, not an object with a relation")
    target = record.get("target", record.get("destination"))
    parts = (record.get("source"), record.get("relationship", record.get("relation")), target)
    if not all(isinstance(part, str) and part.strip() for part in parts):
        raise InvalidValue("its source, relationship and target are not all texts")
    subject, relation, object = parts
    given = {
        "content": f"{subject} {relation} {object}",
        "category": "relations",
        "persistent": True,
        "source": "mem0",
        "metadata": {"subject": subject, "relation": relation, "object": object},
    }
    return to_memory(given, identities, when, MemoryType.SEMANTIC)
