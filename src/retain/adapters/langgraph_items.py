"""An item of a LangGraph store as a memory, and back: its namespace, its text, its filters."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import clock
from ..errors import InvalidType, InvalidValue, MissingPackage
from ..models import Memory, MemoryType

try:
    from langgraph.store.base import (
        GetOp,
        InvalidNamespaceError,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        SearchItem,
        SearchOp,
        get_text_at_path,
    )
except ImportError as error:
    raise MissingPackage.needed("the adapter for LangGraph", "langgraph", error) from error

__all__ = ["InvalidNamespace"]

Namespace = tuple[str, ...]

MINUTES = 24 * 60  # of a day
_LONGEST_TTL = 5_000_000_000  # minutes: some 9,500 years
_MEMBER = "langgraph"  # of a memory's metadata: what of the item a memory has no place for
_CATEGORY = "langgraph"


class InvalidNamespace(InvalidValue, InvalidNamespaceError):
    """A namespace that LangGraph does not allow; nothing was changed."""


# -- what is asked ------------------------------------------------------------------------


def check(op: Op) -> None:
    """Refuse an operation whose namespace, page or time to live breaks a rule."""
    if isinstance(op, PutOp):
        _check_labels(op.namespace)
        if op.value is not None:
            if not op.namespace:
                raise InvalidNamespace("an item needs a namespace: give a tuple of labels")
            if op.namespace[0] == "langgraph":
                raise InvalidNamespace(
                    f"namespace {op.namespace}: the root 'langgraph' is LangGraph's own"
                )
            check_ttl(op.ttl)
    elif isinstance(op, GetOp):
        _check_labels(op.namespace)
    elif isinstance(op, SearchOp):
        _check_labels(op.namespace_prefix)
        _check_page(op.limit, op.offset)
    elif isinstance(op, ListNamespacesOp):
        for condition in op.match_conditions or ():
            _check_labels(condition.path)
            if condition.match_type not in ("prefix", "suffix"):
                raise InvalidValue(f"match_type={condition.match_type!r}; give prefix or suffix")
        _check_page(op.limit, op.offset)
    else:
        raise InvalidType(f"a {type(op).__name__} is no operation of a LangGraph store")


def _check_labels(namespace: Sequence[str]) -> None:
    if isinstance(namespace, str):
        raise InvalidNamespace(f"namespace {namespace!r} is a text; give a tuple of labels")
    for label in namespace:
        if not isinstance(label, str):
            raise InvalidNamespace(f"namespace {namespace}: {label!r} is no text")
        if not label or "." in label or "\0" in label:
            raise InvalidNamespace(
                f"namespace {namespace}: a label is empty, or has a period or a NUL in it"
            )


def _check_page(limit: int, offset: int) -> None:
    for name, value in (("limit", limit), ("offset", offset)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidValue(f"{name}={value!r}; give a whole number from 0")


def check_ttl(ttl: float | None) -> None:
    """Refuse what is no number of minutes, and not ``None``."""
    if ttl is None:
        return
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)):
        raise InvalidType(f"ttl is a {type(ttl).__name__}; give minutes, or None")
    if not 0 <= ttl <= _LONGEST_TTL:  # NaN fails this too
        raise InvalidValue(f"ttl={ttl!r}; give 0 to {_LONGEST_TTL} minutes, or None for no end")


# -- items and memories -------------------------------------------------------------------


def id_of(namespace: Namespace, key: str) -> str:
    """The memory's id: a digest of namespace and key, whatever text they are."""
    return _digest([list(namespace), key])


def tag_of(prefix: Namespace) -> str:
    """What every item under a prefix is tagged with; ``()`` for all items."""
    return _digest(list(prefix))


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value).encode(), digest_size=16).hexdigest()


def to_memory(op: PutOp, fields: Sequence[str], created: float, now: float) -> Memory:
    """What an item with a value is stored as; ``created``: when its key was first put."""
    assert op.value is not None
    if not isinstance(op.value, Mapping):
        raise InvalidType(f"the value is a {type(op.value).__name__}; give a dict, or None")
    content = "" if op.index is False else text_of(op.value, op.index or fields)
    return Memory(
        id_of(op.namespace, op.key),
        content,
        MemoryType.SEMANTIC,
        metadata={
            _MEMBER: {
                "namespace": list(op.namespace),
                "key": op.key,
                "value": dict(op.value),
                "created_at": created,
                "ttl": op.ttl,
            }
        },
        tags=[tag_of(op.namespace[:depth]) for depth in range(len(op.namespace) + 1)],
        created_at=now,  # of this version of it: what recency and the order of listings go by
        category=_CATEGORY,
        ttl_days=None if op.ttl is None else op.ttl / MINUTES,
    )


def text_of(value: Mapping[str, Any], fields: Sequence[str]) -> str:
    """What of a value is indexed: the texts at these paths, ``$`` for all of it."""
    found: list[str] = []
    for field in fields:
        found += _leaves(value) if field in ("", "$") else get_text_at_path(value, field)
    return "\n".join(found)


def _leaves(value: Any, name: str = "") -> Iterator[str]:
    """A line ``name: value`` for everything in a value that is neither object nor list."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, str(key))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item, name)
    elif value is not None:
        yield f"{name}: {value}"


def stored(memory: Memory) -> dict[str, Any] | None:
    """What of an item stands in a memory, ``None`` for a memory that is no item."""
    item = memory.metadata.get(_MEMBER)
    return item if isinstance(item, dict) and "namespace" in item else None


def namespace_of(memory: Memory) -> Namespace | None:
    """An item's namespace, ``None`` for a memory that is no item."""
    item = stored(memory)
    return None if item is None else tuple(item["namespace"])


def created_of(memory: Memory) -> float:
    """When an item's key was first put."""
    return float(memory.metadata[_MEMBER]["created_at"])


def is_indexed(memory: Memory) -> bool:
    """Whether a query can find it."""
    return bool(memory.content.strip())


def refreshed(memory: Memory, now: float) -> Memory | None:
    """A copy that expires its time to live after ``now``, ``None`` if it has no end."""
    ttl = memory.metadata[_MEMBER]["ttl"]
    if ttl is None:
        return None
    return memory.copy(ttl_days=max(0.0, now - memory.created_at) / clock.DAY + ttl / MINUTES)


def to_item(memory: Memory) -> Item:
    """The item that a memory stands for."""
    item = memory.metadata[_MEMBER]
    return Item(
        value=item["value"],
        key=item["key"],
        namespace=tuple(item["namespace"]),
        created_at=clock.as_datetime(item["created_at"]),
        updated_at=clock.as_datetime(memory.created_at),
    )


def to_found(memory: Memory, score: float | None) -> SearchItem:
    """The same as a result of a search."""
    item = to_item(memory)
    return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)


# -- filters ------------------------------------------------------------------------------


def admits(filter: Mapping[str, Any] | None, value: Mapping[str, Any]) -> bool:
    """Whether a value passes a filter of a search."""
    return all(_fits(value.get(key), wanted) for key, wanted in (filter or {}).items())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(key.startswith("$") for key in wanted):
            return all(_holds(value, operator, other) for operator, other in wanted.items())
        return isinstance(value, Mapping) and all(
            _fits(value.get(key), other) for key, other in wanted.items()
        )
    if isinstance(wanted, (list, tuple)):
        return (
            isinstance(value, (list, tuple))
            and len(value) == len(wanted)
            and all(map(_fits, value, wanted))
        )
    return bool(value == wanted)


def _holds(value: Any, operator: str, other: Any) -> bool:
    if operator == "$eq":
        return bool(value == other)
    if operator == "$ne":
        return bool(value != other)
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        raise InvalidValue(
            f"{operator!r} is no operator of a filter; give $eq, $ne, $gt, $gte, $lt or $lte"
        )
    order = _order(value, other)
    if order is None:
        return False
    return (
        order > 0
        if operator == "$gt"
        else (order >= 0 if operator == "$gte" else order < 0 if operator == "$lt" else order <= 0)
    )


def _order(value: Any, other: Any) -> int | None:
    """-1, 0 or 1: as numbers where both are, else as texts; ``None`` if they don't compare."""
    try:
        one, two = float(value), float(other)
    except (TypeError, ValueError, OverflowError):
        if not (isinstance(value, str) and isinstance(other, str)):
            return None
        return (value > other) - (value < other)
    if math.isnan(one) or math.isnan(two):
        return None
    return (one > two) - (one < two)


def matches(condition: MatchCondition, namespace: Namespace) -> bool:
    """Whether a namespace begins, or ends, as a condition says; ``*`` stands for any label."""
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)]
    if condition.match_type == "suffix":
        part = namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
