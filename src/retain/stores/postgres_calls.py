"""The operations of a store as calls of the functions in a PostgreSQL database.

What they are told, and what their answers mean; who carries them there is another matter: a pool
of connections, one of an event loop, or a REST interface.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import StoreCorrupt
from ..models import Filter, Memory
from ..scope import Scope
from .base import Selection, Written, refuse_conflict
from .postgres_schema import FIELDS, INCOMING, given, id_key, kept, to_memory, to_row

__all__ = [
    "CONFLICT",
    "Call",
    "conflict",
    "fetch",
    "inspect",
    "listing",
    "narrowed",
    "saved",
    "write",
    "written",
]

Arguments = dict[str, Any]

CONFLICT = "RT001"
"""The SQLSTATE of a memory that is not at the revision expected."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its arguments by name.

    ``repeats``: whether it may be called again after a connection was lost, when nobody knows
    whether it was done.
    """

    name: str
    arguments: Arguments = field(default_factory=dict)
    repeats: bool = True


def write(
    scope: Scope,
    save: Sequence[Memory],
    delete: Sequence[str],
    unique: bool,
    expect: Mapping[str, int] | None,
    retrieved: Mapping[str, tuple[int, float]],
    tell: str | None,
    *,
    copied: bool = False,
) -> Call:
    """One atomic write. ``copied``: the memories are in the session's table already."""
    if len(save) == 1 and not (delete or expect or retrieved):
        row = dict(zip(INCOMING, to_row(save[0], 0), strict=True))
        return Call("put", {"key": kept(scope.key), "unique": unique, "tell": tell, **row})
    counts = [{"id": id_key(id), "n": n, "at": at} for id, (n, at) in retrieved.items()]
    rows = () if copied else [to_row(memory, place) for place, memory in enumerate(save)]
    saved = _json([dict(zip(INCOMING, row, strict=True)) for row in rows]) if rows else None
    if copied:
        saved = '"distinct"' if _distinct(save, unique) else '"copied"'
    arguments: Arguments = {
        "key": kept(scope.key),
        "save": saved,
        "delete": [id_key(id) for id in delete] or None,
        "unique": unique,
        "expect": _json({id_key(id): at for id, at in expect.items()}) if expect else None,
        "retrieved": _json(counts) if counts else None,
        "call": secrets.randbits(63),
        "tell": tell,
    }
    return Call("write", arguments)


def _distinct(save: Sequence[Memory], unique: bool) -> bool:
    """Whether it makes no difference in which order these are saved."""
    facts = unique and any(memory.persistent for memory in save)
    return not facts and len({memory.id for memory in save}) == len(save)


def written(scope: Scope, save: Sequence[Memory], rows: Sequence[Sequence[Any]]) -> Written:
    """What a write did, from its rows."""
    deleted: dict[str, None] = {}
    saved: list[Memory] = []
    duplicates = set()
    for gone, place, revision, count, last, known in rows:
        if gone is not None:
            deleted[given(gone)] = None
        elif known is not None:
            saved.append(to_memory([known[name] for name in FIELDS], scope))
            duplicates.add(saved[-1].id)
        else:
            memory = save[place]
            saved.append(memory.copy(revision=revision, access_count=count, last_accessed=last))
    return Written(saved, list(deleted), frozenset(duplicates))


def conflict(detail: str | None) -> None:
    """Raise what the database said of a memory that is not at the revision expected."""
    try:
        id, found, expected = json.loads(detail or "")
    except (ValueError, TypeError):
        raise StoreCorrupt(
            f"the database tells of a conflict in no way known: {detail!r}"
        ) from None
    refuse_conflict(given(id), found, expected)


def narrowed(selection: Selection) -> Arguments:
    """The conditions of a listing."""
    narrow: Filter = selection.narrow
    return {
        "now": selection.now,
        "expired": selection.expired,
        "type": narrow.memory_type and narrow.memory_type.value,
        "category": None if narrow.category is None else kept(narrow.category),
        "tags": [kept(tag) for tag in narrow.tags] or None,
        "importance": narrow.min_importance or None,
        "since": narrow.since,
        "until": narrow.until,
        "persistent": narrow.persistent,
    }


def listing(scope: Scope, selection: Selection) -> Call:
    """A listing."""
    importance, created, id = selection.after or (None, None, None)
    return Call(
        "list",
        {
            "key": kept(scope.key),
            **narrowed(selection),
            "order": selection.order.value,
            "most": selection.limit,
            "after_importance": importance,
            "after_created": created,
            "after_id": None if id is None else kept(id),
        },
    )


def fetch(scope: Scope, ids: Sequence[str]) -> Call:
    """The memories of some ids."""
    return Call("fetch", {"key": kept(scope.key), "ids": [id_key(id) for id in ids]})


def saved(scope: Scope, since: int, until: int, most: int) -> Call:
    """What was saved after one revision, up to another."""
    return Call("saved", {"key": kept(scope.key), "since": since, "until": until, "most": most})


def inspect(scope: Scope, after: str, most: int) -> Call:
    """Rows with what was derived of them, after one by its key."""
    return Call("inspect", {"key": kept(scope.key), "after": after, "most": most})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
