"""How memories lie on a Redis server: keys, values, and the calls of the scripts.

Pure functions, bytes in and bytes out: nothing here talks to a server.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from ..errors import InvalidValue
from ..models import Memory, MemoryType
from ..scope import Scope
from .base import DELETIONS, Written, fact_key, refuse_conflict

GRACE = 3_600
"""Seconds that a value stays on the server after it has expired, or was saved expired."""
TOMBSTONE = 30 * 86_400_000
"""Milliseconds that the last revision of a forgotten scope is kept."""
SWEEP = 10
"""Index entries, of values that the server removed, that a write looks for beside its own."""
MOST = 400_000
"""Memories in one write."""
LARGEST = 500_000_000
"""Bytes in one write: half of what a server takes from a client."""

INDEXES = (b"newest", b"revisions", b"deletions", b"expiry", b"facts")
UNREADABLE = (ValueError, TypeError, KeyError, RecursionError, AttributeError)
"""What :func:`to_memory` raises for a value that is no memory."""


@dataclass(frozen=True)
class Keys:
    """The keys of one scope: they begin alike, and with the digest of the scope in braces."""

    start: bytes

    @classmethod
    @lru_cache(maxsize=1024)  # it holds no object, and every call asks
    def of(cls, prefix: str, scope: Scope) -> Keys:
        """Those of ``scope``."""
        digest = hashlib.blake2b(scope.key.encode(), digest_size=12).hexdigest()
        return cls(f"{prefix}:{{{digest}}}:".encode())

    def key(self, name: bytes) -> bytes:
        """One of them."""
        return self.start + name

    @cached_property
    def values(self) -> bytes:
        """What the keys of memories begin with; the id follows."""
        return self.start + b"m:"

    def value(self, id: str) -> bytes:
        """The key of a memory."""
        return self.start + b"m:" + id.encode()

    @cached_property
    def all(self) -> list[bytes]:
        """``meta`` and the indexes, as the scripts take them."""
        return [self.start + b"meta", *(self.start + name for name in INDEXES)]


def to_value(memory: Memory) -> bytes:
    """A memory as JSON, but for what the head of a value has; what is empty is left out."""
    fields: dict[str, Any] = {
        "id": memory.id,
        "content": memory.content,
        "memory_type": memory.memory_type.value,
        "importance_score": memory.importance_score,
        "category": memory.category,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
    }
    for name in ("persistent", "tags", "metadata", "source"):
        value = getattr(memory, name)
        if value:
            fields[name] = value
    if memory.ttl_days is not None:
        fields["ttl_days"] = memory.ttl_days
    if memory.scope != _DEFAULT:
        fields["scope"] = memory.scope.to_dict()
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


_DEFAULT = Scope()


def to_memory(value: bytes, scope: Scope | None) -> Memory:
    """The memory that a value is; ``scope``: the one it is known to be of, ``None`` to read it."""
    head, _, body = value.partition(b"\n")
    revision, count, last, _ = head.split(b" ")
    fields = json.loads(body.decode())
    return Memory(
        fields["id"],
        fields["content"],
        MemoryType(fields["memory_type"]),
        metadata=fields.get("metadata"),
        tags=fields.get("tags"),
        created_at=fields["created_at"],
        access_count=int(count),
        last_accessed=float(last),
        importance_score=fields["importance_score"],
        category=fields["category"],
        persistent=fields.get("persistent", False),
        ttl_days=fields.get("ttl_days"),
        updated_at=fields["updated_at"],
        source=fields.get("source", ""),
        scope=Scope(**fields.get("scope", {})) if scope is None else scope,
        revision=int(revision),
    )


def ends(expires: float) -> int:
    """A moment of expiry in milliseconds, as the server takes it."""
    return math.ceil(expires * 1000)


def _saving(memory: Memory) -> tuple[bytes, bytes]:
    expires = memory.expires_at
    head = "{!r} {} {} {} {!r} {} {}".format(
        -memory.created_at,
        "-" if expires is None else repr(expires),
        "-" if expires is None else ends(expires),
        memory.access_count,
        memory.last_accessed,
        fact_key(memory) or "-",
        memory.id,
    )
    return head.encode(), to_value(memory)


def write_arguments(
    keys: Keys,
    number: int,
    save: Sequence[Memory] = (),
    delete: Sequence[str] = (),
    *,
    unique: bool = False,
    expect: Mapping[str, int] | None = None,
    counts: Mapping[str, tuple[int, float]] | None = None,
    remember: float,
    sweep: int = SWEEP,
) -> list[Any]:
    """The arguments of ``WRITE``; the third is the scope's key once it is registered.

    ``number``: of this write, among those of its slot; ``remember``: seconds that its answer is
    kept for when it is sent again.
    """
    ids = dict.fromkeys(delete)
    flags = [number, int(unique), DELETIONS, GRACE, round(remember * 1000), sweep + len(save)]
    flags += [len(expect or {}), len(ids), len(counts or {}), len(save)]
    arguments: list[Any] = [keys.values, " ".join(map(str, flags)), b""]
    for id, revision in (expect or {}).items():
        arguments += (id.encode(), revision)
    arguments += (id.encode() for id in ids)
    for id, (count, last) in (counts or {}).items():
        arguments += (id.encode(), count, repr(last))
    size = 0
    for memory in save:
        head, body = _saving(memory)
        size += len(head) + len(body)
        arguments += (head, body)
    if len(save) > MOST or size > LARGEST:
        raise InvalidValue(
            f"{len(save)} memories of {size / 1e6:.0f} MB in one write; Redis takes up to "
            f"{MOST} and {LARGEST / 1e6:.0f} MB: save them in several"
        )
    return arguments


def written(
    answer: Sequence[Any],
    save: Sequence[Memory],
    scope: Scope,
    expect: Mapping[str, int] | None = None,
) -> Written | None:
    """What ``WRITE`` did, ``None`` where the scope is to be registered first; ``Conflict``."""
    if answer[0] == b"unknown":
        return None
    if answer[0] == b"conflict":
        id = answer[1].decode()
        refuse_conflict(id, int(answer[2]), (expect or {})[id])
    _, first, gone, raised, equals, _ = answer
    others = {int(number) - 1: (id.decode(), value) for number, id, value in equals}
    counts = {int(number) - 1: (int(count), float(last)) for number, count, last in raised}
    revision = int(first)
    saved = []
    for number, memory in enumerate(save):
        if number in others:
            id, value = others[number]
            # Deleted since, and this write sent again: as it was, as far as that is known.
            saved.append(to_memory(value, scope) if value else memory.copy(id=id))
            continue
        revision += 1
        own = memory.copy(revision=revision)
        if number in counts:
            own.access_count, own.last_accessed = counts[number]
        saved.append(own)
    duplicates = frozenset(id for id, _ in others.values())
    return Written(saved, [id.decode() for id in gone], duplicates)


def fault(
    value: bytes, found: Sequence[Any], keys: Keys, prefix: str, id: str
) -> tuple[Memory | None, str]:
    """What is wrong with a value that is there, and the memory where it can be read."""
    try:
        memory = to_memory(value, None).checked()
    except UNREADABLE as error:
        return None, f"it can't be read ({error or type(error).__name__})"
    if memory.id != id or Keys.of(prefix, memory.scope) != keys:
        return None, f"it says that it is {memory.id!r} of the scope {memory.scope}"
    newest, revisions, expiry, fact, ttl, last = found
    if memory.revision > int(last):
        return memory, f"its revision {memory.revision} is beyond the scope's {int(last)}"
    expires = memory.expires_at
    right = (
        _is(newest, -memory.created_at)
        and _is(revisions, memory.revision)
        and (expiry == b"" if expires is None else _is(expiry, expires))
        and bool(fact) == memory.persistent
        and _head_fact(value) == (fact_key(memory) or "-")
        and (ttl >= 0) == (expires is not None)
    )
    return memory, "" if right else "its index entries are wrong"


def _is(score: bytes, number: float) -> bool:
    return score != b"" and float(score) == number


def _head_fact(value: bytes) -> str:
    return value.partition(b"\n")[0].rpartition(b" ")[2].decode()


def chunks(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    """``items`` in parts of at most ``size``."""
    return (items[at : at + size] for at in range(0, len(items), size))
