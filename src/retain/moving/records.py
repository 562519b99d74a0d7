"""Records of other programs as memories, and memories as records of theirs.

What their records have no place for travels in ``metadata`` under ``retain``, so that a
memory that goes there and comes back is the same one.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any

from .. import clock
from ..errors import InvalidType, InvalidValue
from ..models import Memory, MemoryImportance, MemoryType
from .times import as_time

__all__ = ["Identities", "agentic_record", "knowledge_record", "same", "to_memory"]

CARRIED = "retain"
"""The member of ``metadata`` that carries what a foreign record has no place for."""

_NAMESPACE = uuid.UUID("6f0c5d0e-5a0b-5f0e-9a52-2f6d1c0b8f11")
_TIMES = ("created_at", "updated_at", "last_accessed", "expires_at")
_CARRIABLE = {
    *("memory_type", "importance_score", "tags", "category", "persistent", "ttl_days", "source"),
    *("access_count", "last_accessed", "updated_at", "metadata"),
}
_SAID = (
    *("content", "memory_type", "importance_score", "category", "persistent", "ttl_days"),
    *("tags", "metadata", "source"),
)
_TYPES = {kind.value for kind in MemoryType}
_STEPS = {step.name.casefold(): step.value for step in MemoryImportance}


class Identities:
    """Ids for records that have none: the same for the same record in every run.

    An import that is run again then finds what it brought the first time. Equal records get
    different ids by being counted.
    """

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, *parts: object) -> str:
        """The id of the next record that is made of ``parts``."""
        name = json.dumps(parts, sort_keys=True, default=repr)
        self._seen[name] += 1
        return str(uuid.uuid5(_NAMESPACE, f"{self._seen[name]} {name}"))


def to_memory(
    record: object,
    identities: Identities,
    when: float,
    kind: MemoryType = MemoryType.SEMANTIC,
) -> Memory:
    """The memory that a JSON object of any of the known programs stands for.

    Read generously: times may be ISO 8601 (or ``timestamp`` in place of ``created_at``),
    ``importance`` a step's name, a number of it, or a fraction; an id may be a number or
    missing. An unknown ``memory_type`` becomes SEMANTIC, and the ``ttl_days`` of what is
    persistent is void; both stay in ``metadata`` as they were. ``when`` and ``kind``: the
    time (epoch seconds) and the type of what has none. Raises ``InvalidValue`` or
    ``InvalidType`` for what is no memory.
    """
    if not isinstance(record, Mapping):
        raise InvalidType(f"it is a JSON {_kind(record)}, not an object")
    data = _with_carried({str(name): value for name, value in record.items()})
    if not isinstance(data.get("content"), str):
        raise InvalidValue(f'its "content" is {_kind(data.get("content"))}, not text')
    if "created_at" not in data and "timestamp" in data:
        data["created_at"] = data.pop("timestamp")
    for name in _TIMES:
        if data.get(name) is not None:
            data[name] = as_time(data[name], name)
    metadata = data["metadata"]
    _read_type(data, metadata, kind)
    _read_importance(data)
    if data.get("persistent") is True:
        data.pop("expires_at", None)
        if data.get("ttl_days") is not None:
            metadata.setdefault("ttl_days", data.pop("ttl_days"))
    if data.get("id") in (None, ""):
        data["id"] = identities.of(record)
    elif isinstance(data["id"], int) and not isinstance(data["id"], bool):
        data["id"] = str(data["id"])
    if data.get("created_at") is None:
        data["created_at"] = when
    return Memory.from_dict(data)


def _with_carried(data: dict[str, Any]) -> dict[str, Any]:
    """``data`` with what it carries in its metadata in its proper place."""
    metadata = data.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, Mapping):
        raise InvalidType(f'its "metadata" is {_kind(metadata)}, not an object')
    data["metadata"] = metadata = dict(metadata)
    carried = metadata.get(CARRIED)
    if "importance_score" in data:  # a record of retain's own, which carries nothing
        return data
    if isinstance(carried, Mapping) and carried and carried.keys() <= _CARRIABLE:
        del metadata[CARRIED]
        fields = dict(carried)
        own = fields.pop("metadata", None)
        if isinstance(own, Mapping):
            metadata.update(own)
        data.update(fields)
    return data


def _read_type(data: dict[str, Any], metadata: dict[str, Any], kind: MemoryType) -> None:
    given = data.get("memory_type")
    name = kind.value if given is None else str(given).casefold().removeprefix("memorytype.")
    if name not in _TYPES:
        metadata.setdefault("memory_type", given)
        name = MemoryType.SEMANTIC.value
    data["memory_type"] = name


def _read_importance(data: dict[str, Any]) -> None:
    value = data.get("importance")
    if data.get("importance_score") is not None or value is None:
        return
    if isinstance(value, str):
        name = value.casefold().removeprefix("memoryimportance.")
        data["importance"] = _STEPS.get(name, value)
    elif isinstance(value, float):  # a step is a whole number
        data["importance_score"] = data.pop("importance")


def _kind(value: object) -> str:
    if value is None:
        return "missing or null"
    names = {str: "text", dict: "object", list: "array", bool: "boolean"}
    return names.get(type(value), "number")


def same(one: Memory, other: Memory) -> bool:
    """Whether two memories say the same: all but their times, counts and revisions."""
    return all(getattr(one, name) == getattr(other, name) for name in _SAID)


# -- out ---------------------------------------------------------------------------------------


def knowledge_record(memory: Memory) -> dict[str, Any]:
    """``memory`` as a line of the ``entries.jsonl`` of ``selectools``."""
    carried: dict[str, Any] = {}
    if memory.memory_type is not MemoryType.SEMANTIC:
        carried["memory_type"] = memory.memory_type.value
    if memory.tags:
        carried["tags"] = memory.tags
    return {
        "id": memory.id,
        "content": memory.content,
        "category": memory.category,
        "importance": memory.importance_score,
        "persistent": memory.persistent,
        "ttl_days": memory.ttl_days,
        "created_at": clock.as_datetime(memory.created_at).isoformat(),
        "updated_at": clock.as_datetime(memory.updated_at).isoformat(),
        "metadata": _carrying(memory, carried | _usage(memory)),
    }


def agentic_record(memory: Memory) -> dict[str, Any]:
    """``memory`` as an element of the JSON array of ``codomyrmex``."""
    carried: dict[str, Any] = {}
    if memory.importance_score != memory.importance.score:
        carried["importance_score"] = memory.importance_score
    if memory.category != "general":
        carried["category"] = memory.category
    if memory.persistent:
        carried["persistent"] = True
    if memory.ttl_days is not None:
        carried["ttl_days"] = memory.ttl_days
    if memory.updated_at != memory.created_at:
        carried["updated_at"] = memory.updated_at
    if memory.source:
        carried["source"] = memory.source
    return {
        "id": memory.id,
        "content": memory.content,
        "memory_type": memory.memory_type.value,
        "importance": memory.importance.value,
        "metadata": _carrying(memory, carried),
        "tags": list(memory.tags),
        "created_at": memory.created_at,
        "access_count": memory.access_count,
        "last_accessed": memory.last_accessed,
    }


def _usage(memory: Memory) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if memory.source:
        found["source"] = memory.source
    if memory.access_count:
        found["access_count"] = memory.access_count
    if memory.last_accessed != memory.created_at:
        found["last_accessed"] = memory.last_accessed
    return found


def _carrying(memory: Memory, carried: dict[str, Any]) -> dict[str, Any]:
    """The metadata with ``carried`` in it; a member that is called as we call ours goes along."""
    metadata = dict(memory.metadata)
    if CARRIED in metadata:
        carried["metadata"] = {CARRIED: metadata.pop(CARRIED)}
    if carried:
        metadata[CARRIED] = carried
    return metadata
