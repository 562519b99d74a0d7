"""The record: one ``Memory``, and the views of it that the two specifications name."""

from __future__ import annotations

import functools
import math
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from . import clock
from .errors import InvalidType, InvalidValue
from .scope import Scope

__all__ = [
    "Filter",
    "KnowledgeEntry",
    "Memory",
    "MemoryImportance",
    "MemoryType",
    "as_importance",
    "as_number",
    "as_text",
    "from_entry",
    "one_line",
    "to_entry",
]

_DEEPEST = 100  # levels of nesting in metadata
_WIDEST_INT = 1024  # bits
_LONGEST_ID = 1024
_LONGEST_TTL = 3_650_000.0  # days: ten thousand years


class MemoryType(Enum):
    """What kind of memory it is."""

    EPISODIC = "episodic"
    """Something that happened: a turn of a conversation, an action."""
    SEMANTIC = "semantic"
    """A fact."""
    PROCEDURAL = "procedural"
    """How something is done."""


@functools.total_ordering
class MemoryImportance(Enum):
    """How much a memory matters, in four steps that can be compared with ``<``."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4

    def __lt__(self, other: object) -> bool:
        if isinstance(other, MemoryImportance):
            return int(self.value) < int(other.value)
        return NotImplemented

    @property
    def score(self) -> float:
        """The step as a number in (0, 1]: value / 4."""
        return float(self.value) / 4

    @classmethod
    def nearest(cls, score: float) -> MemoryImportance:
        """The step nearest to a number in [0, 1]; halfway counts as the higher step."""
        return cls(min(4, max(1, math.floor(score * 4 + 0.5))))


def as_importance(value: MemoryImportance | float, name: str = "importance") -> float:
    """``value`` (a step, or a number in [0, 1]) as a number in [0, 1]."""
    if isinstance(value, MemoryImportance):
        return value.score
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidType(
            f"{name} is a {type(value).__name__}; give a MemoryImportance or a number from 0 to 1"
        )
    if not 0 <= value <= 1:  # NaN fails this too
        raise InvalidValue(f"{name}={value!r} is outside 0 to 1")
    return float(value)


def one_line(text: str) -> str:
    """``text`` on one line: every run of white space, newlines included, is one space."""
    return " ".join(text.split())


@dataclass(init=False, slots=True)
class Memory:
    """One thing that is remembered, whatever the face that wrote it and the store that holds it.

    ``id``: text, unique within its scope; a new UUID unless given.
    ``content``: the text, kept byte for byte.
    ``memory_type``, ``category``, ``tags``: what it is filed under; searched too.
    ``importance_score``: a number in [0, 1]; ``importance`` is its nearest step, settable.
    ``metadata``: any JSON object. ``source``: who said it, which document, which tool.
    ``persistent``: never pruned, never evicted. ``ttl_days``: days from ``created_at`` after
    which it is invisible, or ``None``.
    ``created_at``, ``updated_at``, ``last_accessed``: epoch seconds. ``access_count``: how
    often it was retrieved.
    ``scope``: whose it is. ``revision``: the store's number for its last change, 0 until saved.

    >>> Memory(content="The deadline is 1 March", importance=MemoryImportance.HIGH).importance_score
    0.75
    """

    id: str
    content: str
    memory_type: MemoryType
    importance_score: float
    metadata: dict[str, Any]
    tags: list[str]
    created_at: float
    access_count: int
    last_accessed: float
    category: str
    persistent: bool
    ttl_days: float | None
    updated_at: float
    source: str
    scope: Scope
    revision: int

    def __init__(
        self,
        id: str | None = None,
        content: str = "",
        memory_type: MemoryType = MemoryType.EPISODIC,
        importance: MemoryImportance | float = MemoryImportance.MEDIUM,
        metadata: Mapping[str, Any] | None = None,
        tags: Iterable[str] | None = None,
        created_at: float | None = None,
        access_count: int = 0,
        last_accessed: float | None = None,
        *,
        importance_score: float | None = None,
        category: str = "general",
        persistent: bool = False,
        ttl_days: float | None = None,
        updated_at: float | None = None,
        source: str = "",
        scope: Scope | None = None,
        revision: int = 0,
    ) -> None:
        self.id = str(uuid.uuid4()) if id is None else id
        self.content = content
        self.memory_type = memory_type
        self.importance_score = (
            as_importance(importance) if importance_score is None else importance_score
        )
        self.metadata = {} if metadata is None else _mapping(metadata)
        self.tags = [] if tags is None else _tag_list(tags)
        self.created_at = clock.now() if created_at is None else created_at
        self.access_count = access_count
        self.last_accessed = self.created_at if last_accessed is None else last_accessed
        self.category = category
        self.persistent = persistent
        self.ttl_days = ttl_days
        self.updated_at = self.created_at if updated_at is None else updated_at
        self.source = source
        self.scope = Scope() if scope is None else scope
        self.revision = revision

    @property
    def importance(self) -> MemoryImportance:
        """The step nearest to ``importance_score``; setting it sets the number."""
        return MemoryImportance.nearest(self.importance_score)

    @importance.setter
    def importance(self, value: MemoryImportance | float) -> None:
        self.importance_score = as_importance(value)

    @property
    def expires_at(self) -> float | None:
        """When it becomes invisible (epoch seconds), or ``None``."""
        return None if self.ttl_days is None else self.created_at + self.ttl_days * clock.DAY

    def is_expired(self, now: float) -> bool:
        """Whether it is invisible at ``now`` (epoch seconds)."""
        return self.ttl_days is not None and self.created_at + self.ttl_days * clock.DAY <= now

    def access(self) -> None:
        """Count one retrieval, now, on this object (a store counts its own)."""
        self.access_count += 1
        self.last_accessed = clock.now()

    def copy(self, **changes: Any) -> Memory:
        """A copy that shares nothing with this one, with ``changes`` to its fields.

        ``importance=`` may be given in place of ``importance_score=``.
        """
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        if "importance" in changes:
            del fields["importance_score"]
        fields.update(changes)
        fields["metadata"] = _plain(fields["metadata"], "metadata")
        return Memory(**fields)

    def checked(self) -> Memory:
        """A copy that keeps every rule of the record, or ``InvalidValue``/``InvalidType``.

        Times come out in whole microseconds, tuples in ``metadata`` as lists; nothing else
        is changed.
        """
        if not isinstance(self.memory_type, MemoryType):
            raise InvalidType(f"memory_type is {self.memory_type!r}; give a MemoryType")
        if not isinstance(self.persistent, bool):
            raise InvalidType(f"persistent is {self.persistent!r}; give True or False")
        if not isinstance(self.scope, Scope):
            raise InvalidType(f"scope is a {type(self.scope).__name__}; give a Scope")
        as_text(self.content, "content")
        as_text(self.source, "source")
        if not as_text(self.id, "id") or len(self.id) > _LONGEST_ID:
            raise InvalidValue(
                f"id has {len(self.id)} characters; give 1 to {_LONGEST_ID}, or none for a new one"
            )
        if not as_text(self.category, "category").strip():
            raise InvalidValue('category is blank; give a word, or leave it out for "general"')
        created = clock.as_epoch(self.created_at)
        return Memory(
            self.id,
            self.content,
            self.memory_type,
            metadata=_object(self.metadata),
            tags=_tags(self.tags),
            created_at=created,
            access_count=_count(self.access_count, "access_count"),
            last_accessed=clock.as_epoch(self.last_accessed, "last_accessed"),
            importance_score=as_importance(self.importance_score, "importance_score"),
            category=self.category,
            persistent=self.persistent,
            ttl_days=_ttl(self.ttl_days, self.persistent),
            updated_at=clock.as_epoch(self.updated_at, "updated_at"),
            source=self.source,
            scope=self.scope,
            revision=_count(self.revision, "revision"),
        )

    def to_dict(self) -> dict[str, Any]:
        """The memory as a JSON object that shares nothing with it.

        ``importance`` is the step's number (1 to 4), ``importance_score`` the number in
        [0, 1]; ``scope`` holds only what is set.
        """
        return {
            "id": self.id,
            "content": self.content,
            "memory_type": self.memory_type.value,
            "importance": self.importance.value,
            "importance_score": self.importance_score,
            "metadata": _plain(self.metadata, "metadata"),
            "tags": list(self.tags),
            "created_at": self.created_at,
            "access_count": self.access_count,
            "last_accessed": self.last_accessed,
            "category": self.category,
            "persistent": self.persistent,
            "ttl_days": self.ttl_days,
            "expires_at": self.expires_at,
            "updated_at": self.updated_at,
            "source": self.source,
            "scope": self.scope.to_dict(),
            "revision": self.revision,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Memory:
        """The memory of which ``data`` is the JSON object; only ``content`` is required.

        ``importance_score`` wins over ``importance``. A member that the record doesn't know
        is kept in ``metadata`` under its own name, unless that name is taken there. Raises
        ``InvalidType`` or ``InvalidValue``, naming the member, for anything that breaks a
        rule of the record.

        >>> Memory.from_dict({"content": "hi", "importance": 4}).importance
        <MemoryImportance.CRITICAL: 4>
        """
        if not isinstance(data, Mapping):
            raise InvalidType(f"a memory is a JSON object, not a {type(data).__name__}")
        if "content" not in data:
            raise InvalidValue('a memory needs "content"')
        fields = {name: data[name] for name in cls.__slots__ if data.get(name) is not None}
        fields["content"] = data["content"]
        if "metadata" in fields:
            fields["metadata"] = _object(fields["metadata"])
        if "tags" in fields:
            fields["tags"] = _tags(fields["tags"])
        if "memory_type" in fields:
            fields["memory_type"] = _enum(MemoryType, fields["memory_type"], "memory_type")
        if "importance_score" not in fields and data.get("importance") is not None:
            fields["importance"] = _enum(MemoryImportance, data["importance"], "importance")
        if "scope" in fields:
            fields["scope"] = _scope(fields["scope"])
        if "ttl_days" not in fields and data.get("expires_at") is not None:
            created = fields.setdefault("created_at", clock.now())
            ends = clock.as_epoch(data["expires_at"], "expires_at")
            fields["ttl_days"] = (ends - clock.as_epoch(created)) / clock.DAY
        memory = cls(**fields).checked()
        others = {name: value for name, value in data.items() if name not in _KNOWN}
        memory.metadata = {**_plain(others, "a memory"), **memory.metadata}
        return memory


_KNOWN = frozenset(Memory.__slots__) | {"importance", "expires_at"}


def _utc_now() -> datetime:
    return clock.as_datetime(clock.now())


@dataclass
class KnowledgeEntry:
    """A :class:`Memory` as the knowledge specification names its parts.

    ``importance`` is a number in [0, 1]; ``created_at`` and ``updated_at`` are ``datetime``
    (a naive one is UTC); ``ttl_days`` counts from ``created_at``. ``record`` carries what a
    memory has beyond these, so that nothing is lost on the way back.
    """

    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    content: str = ""
    category: str = "general"
    importance: float = 0.5
    persistent: bool = False
    ttl_days: float | None = None
    created_at: datetime = field(default_factory=_utc_now)
    updated_at: datetime = field(default_factory=_utc_now)
    metadata: dict[str, Any] = field(default_factory=dict)
    record: Memory | None = field(default=None, repr=False, compare=False)

    @property
    def is_expired(self) -> bool:
        """Whether its days are over."""
        return from_entry(self).is_expired(clock.now())


def to_entry(memory: Memory) -> KnowledgeEntry:
    """``memory`` as a knowledge entry; :func:`from_entry` gives the same memory back."""
    return KnowledgeEntry(
        memory.id,
        memory.content,
        memory.category,
        memory.importance_score,
        memory.persistent,
        memory.ttl_days,
        clock.as_datetime(memory.created_at),
        clock.as_datetime(memory.updated_at),
        _plain(memory.metadata, "metadata"),
        record=memory.copy(),
    )


def from_entry(entry: KnowledgeEntry) -> Memory:
    """``entry`` as a memory: SEMANTIC unless it was made from another kind."""
    if not isinstance(entry, KnowledgeEntry):
        raise InvalidType(f"a {type(entry).__name__} is no KnowledgeEntry")
    base = entry.record or Memory(entry.id, memory_type=MemoryType.SEMANTIC, created_at=0.0)
    created = _utc(entry.created_at, "created_at")
    return base.copy(
        id=entry.id,
        content=entry.content,
        category=entry.category,
        importance_score=entry.importance,
        persistent=entry.persistent,
        ttl_days=entry.ttl_days,
        created_at=created,
        updated_at=_utc(entry.updated_at, "updated_at"),
        last_accessed=base.last_accessed if entry.record else created,
        metadata=_object(entry.metadata),
    ).checked()


def _utc(moment: datetime, name: str) -> float:
    if isinstance(moment, datetime) and moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return clock.as_epoch(moment, name)


@dataclass(frozen=True, slots=True)
class Filter:
    """What a listing or a recall is narrowed to; what is not given narrows nothing.

    ``memory_type`` and ``category``: exactly these. ``tags``: all of them. ``min_importance``:
    at least this number in [0, 1]. ``since`` (inclusive) and ``until`` (exclusive): epoch
    seconds of ``created_at``. ``persistent``: only these, or only the others.
    """

    memory_type: MemoryType | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    min_importance: float = 0.0
    since: float | None = None
    until: float | None = None
    persistent: bool | None = None

    @classmethod
    def of(
        cls,
        *,
        memory_type: MemoryType | None = None,
        category: str | None = None,
        tags: Iterable[str] | None = None,
        min_importance: MemoryImportance | float | None = None,
        since: float | datetime | None = None,
        until: float | datetime | None = None,
        persistent: bool | None = None,
    ) -> Filter:
        """A filter from what a caller gave, each part checked."""
        if memory_type is not None and not isinstance(memory_type, MemoryType):
            raise InvalidType(f"memory_type is {memory_type!r}; give a MemoryType")
        if category is not None and not isinstance(category, str):
            raise InvalidType(f"category is a {type(category).__name__}; give text")
        if persistent is not None and not isinstance(persistent, bool):
            raise InvalidType(f"persistent is {persistent!r}; give True or False")
        return cls(
            memory_type,
            category,
            () if tags is None else tuple(_tags(_tag_list(tags))),
            0.0 if min_importance is None else as_importance(min_importance, "min_importance"),
            None if since is None else clock.as_epoch(since, "since"),
            None if until is None else clock.as_epoch(until, "until"),
            persistent,
        )

    def admits(self, memory: Memory) -> bool:
        """Whether ``memory`` passes."""
        return (
            (self.memory_type is None or memory.memory_type is self.memory_type)
            and (self.category is None or memory.category == self.category)
            and all(tag in memory.tags for tag in self.tags)
            and memory.importance_score >= self.min_importance
            and (self.since is None or memory.created_at >= self.since)
            and (self.until is None or memory.created_at < self.until)
            and (self.persistent is None or memory.persistent is self.persistent)
        )


# -- the rules of the single fields -------------------------------------------------------


def as_text(value: object, name: str) -> str:
    """``value`` if it is text that UTF-8 can hold, else an error that calls it ``name``."""
    if not isinstance(value, str):
        raise InvalidType(f"{name} is a {type(value).__name__}; give text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidValue(
                f"{name} holds a lone surrogate U+{ord(value[error.start]):04X} at character "
                f"{error.start}, which is no text; pass it through strip_surrogates first"
            ) from None
    return value


def as_number(
    value: object, name: str, least: float, most: float, *, whole: bool = False, unit: str = ""
) -> None:
    """Refuse what is no number from ``least`` to ``most``, by an error that calls it ``name``."""
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise InvalidType(f"{name} is {value!r}; give a {'whole ' if whole else ''}number")
    if not least <= value <= most:  # NaN fails this too
        raise InvalidValue(f"{name}={value!r}; give {least:g} to {most:g}{unit and ' '}{unit}")


def _count(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidType(f"{name} is {value!r}; give a whole number")
    if not 0 <= value < 2**63:
        raise InvalidValue(f"{name}={value!r} is outside 0 to 2**63 - 1")
    return value


def _tag_list(value: object) -> list[Any]:
    # a single text would otherwise become a list of its letters
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidType(f"tags is {value!r}; give a list of texts")
    return list(value)


def _tags(value: object) -> list[str]:
    tags = _tag_list(value)
    for tag in tags:
        if not as_text(tag, "a tag").strip():
            raise InvalidValue("a tag is blank; leave it out")
    return tags


def _ttl(value: object, persistent: bool) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidType(f"ttl_days is a {type(value).__name__}; give a number of days or None")
    if not 0 <= value <= _LONGEST_TTL:
        raise InvalidValue(f"ttl_days={value!r} is outside 0 to {_LONGEST_TTL:.0f}")
    if persistent:
        raise InvalidValue(
            f"ttl_days={value!r} with persistent=True: a persistent memory never expires; "
            "give one of the two"
        )
    return value


def _enum(kind: Any, value: object, name: str) -> Any:
    if isinstance(value, kind):
        return value
    for member in kind:
        if type(value) is type(member.value) and value == member.value:  # 1 is neither True nor 1.0
            return member
    known = ", ".join(repr(member.value) for member in kind)
    raise InvalidValue(f"{name}={value!r} is none of {known}")


def _scope(value: object) -> Scope:
    if isinstance(value, Scope):
        return value
    if not isinstance(value, Mapping) or value.keys() - {"user", "agent", "session"}:
        raise InvalidValue(f"scope={value!r} is no object of user, agent and session")
    return Scope(**value)


def _mapping(value: object) -> dict[Any, Any]:
    if not isinstance(value, Mapping):  # a list of pairs would pass for one
        raise InvalidType(f"metadata is a {type(value).__name__}; give a dict")
    return dict(value)


def _object(value: object) -> dict[str, Any]:
    plain = _plain(_mapping(value), "metadata")
    assert isinstance(plain, dict)
    return plain


def _plain(value: Any, path: str, depth: int = 0) -> Any:
    """A copy of ``value`` made of JSON's own types only, or an error that names the place."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return as_text(str(value), path)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidValue(f"{path} is {value!r}, which JSON can't hold")
        return float(value)
    if isinstance(value, int):
        if value.bit_length() > _WIDEST_INT:
            raise InvalidValue(f"{path} is a number of more than {_WIDEST_INT} bits")
        return int(value)
    if depth >= _DEEPEST:
        raise InvalidValue(f"{path[:200]} is nested deeper than {_DEEPEST} levels")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InvalidType(f"{path} has the key {key!r}; JSON's keys are text")
        return {
            as_text(str(key), f"a key of {path}"): _plain(item, f"{path}.{key}", depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise InvalidType(f"{path} is a {type(value).__name__}, which JSON can't hold")
