"""Everything of one store into another, of whatever kind, as it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from .. import clock
from ..engine import Engine
from ..errors import Conflict, InvalidType, InvalidValue, NotFound
from ..models import Memory
from ..scope import Scope
from ..stores.base import Selection, Store
from .export import Progress

__all__ = ["CopyReport", "ScopeReport", "copy_store"]

_BATCH = 1_000  # memories a transaction
_ATTEMPTS = 10  # at a batch that others write to meanwhile
_DIGESTS = 1 << 128
_NUMBERS = (
    *("importance_score", "ttl_days", "created_at", "updated_at", "last_accessed", "expires_at"),
)


@dataclass(slots=True)
class ScopeReport:
    """What a copy did in one scope, and whether all of it arrived.

    ``copied``: written where nothing was. ``replaced``: written over what was there under the
    same id. ``same``: there already. ``newer``: left, for the destination's was updated later.
    ``deleted``: what the source does not hold, where it was to be a mirror. ``beyond``: such
    as were left. ``dropped``: expired, and not kept by the destination. ``unreadable``: rows
    of the source that are no memories.

    ``memories`` and ``arrived`` are the counts of the source and of what the destination has
    of them, ``digest`` and ``arrived_digest`` those of their content: 32 hexadecimal digits
    that depend on every field but the revision, and on no order.
    """

    scope: Scope
    copied: int = 0
    replaced: int = 0
    same: int = 0
    newer: int = 0
    deleted: int = 0
    beyond: int = 0
    dropped: int = 0
    unreadable: int = 0
    memories: int = 0
    arrived: int = 0
    digest: str = ""
    arrived_digest: str = ""

    @property
    def verified(self) -> bool:
        """Whether every memory of the source is in the destination as it should be."""
        whole = (self.memories, self.digest) == (self.arrived, self.arrived_digest)
        return whole and not self.unreadable

    def to_dict(self) -> dict[str, Any]:
        """The report as a JSON object."""
        numbers = {name: getattr(self, name) for name in self.__slots__ if name != "scope"}
        return {"scope": self.scope.to_dict(), **numbers, "verified": self.verified}


@dataclass(slots=True)
class CopyReport:
    """What a copy did, scope by scope.

    ``changed``: the source was written to meanwhile; what came last may be missing, and
    another run brings it.
    """

    scopes: list[ScopeReport] = field(default_factory=list)
    changed: bool = False

    @property
    def verified(self) -> bool:
        """Whether the counts and digests of every scope agree."""
        return all(each.verified for each in self.scopes)

    def total(self, name: str) -> int:
        """The sum of a count over the scopes."""
        return sum(getattr(each, name) for each in self.scopes)

    def to_dict(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            "verified": self.verified,
            "changed": self.changed,
            "scopes": [each.to_dict() for each in self.scopes],
        }


def copy_store(
    source: Store,
    target: Store,
    *,
    scope: Scope | None = None,
    mirror: bool = False,
    progress: Progress | None = None,
) -> CopyReport:
    """Copy every memory of every scope of ``source`` to ``target``, and verify that it arrived.

    All fields are kept, ids, times and retrieval counts too (of two counts the greater one),
    and so are expired memories and equal facts. Deletions are not copied, except with
    ``mirror``, which deletes in ``target`` what ``source`` does not hold. ``scope``: only this
    one. ``progress``: told how far it is.

    What is there already and the same is not written again: a copy that was broken off is
    finished by running it again, and one that is done catches up so. Where the same id was
    updated later in ``target``, that stays, except with ``mirror``. Written in transactions of
    1,000, durable one by one; memory stays flat. ``source`` is only read, and may be in use.
    At the end both are read again and compared, by count and digest.

    Raises ``NotFound`` where there is nothing to copy, ``InvalidValue`` where both are the
    same place, and what the stores raise; what was written by then stays.

    >>> from retain import InMemoryStore, Memory, Scope
    >>> old, new = InMemoryStore(), InMemoryStore()
    >>> old.scoped(Scope("ann")).save(Memory("m1", "Likes tea"))
    >>> report = copy_store(old, new)
    >>> report.verified, new.scoped(Scope("ann")).get("m1").content
    (True, 'Likes tea')
    """
    for place in (source, target):
        if not isinstance(place, Store):
            raise InvalidType(f"a {type(place).__name__} is no store to copy; give a Store")
    if _is_same(source, target):
        raise InvalidValue(f"{source!r} and {target!r} are the same place; name another one")
    revision = source.revision
    found = source.scopes() if scope is None else [scope]
    sizes = {each: _size(source.scoped(each)) for each in found}
    if not sum(sizes.values()):
        where = source.driver.where or source.path or "the source"
        raise NotFound(f"there is nothing to copy in {where}")
    if mirror and scope is None:
        found += [each for each in target.scopes() if each not in sizes]
    moved = _Moved(2 * sum(sizes.values()), progress)
    report = CopyReport()
    for each in found:
        copy = _ScopeCopy(source.scoped(each), target.scoped(each), mirror, moved)
        report.scopes.append(copy.run())
    report.changed = source.revision != revision
    if report.changed:  # then what is one too few may only have moved on
        for each_report in report.scopes:
            each_report.unreadable = 0
    return report


class _Moved:
    """How far a copy is: every memory counts twice, when it is written and when it is verified."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total, self._done, self._progress = total, 0, progress

    def more(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(self._done, max(self._done, self._total))


@dataclass(slots=True)
class _Step:
    """What the destination should hold for a memory of the source, and what that takes."""

    memory: Memory
    there: Memory | None
    how: str
    """The name of the count in the report."""
    digest: int

    @property
    def writes(self) -> bool:
        return self.how in ("copied", "replaced")


class _ScopeCopy:
    """One scope on its way."""

    def __init__(self, source: Store, target: Store, mirror: bool, moved: _Moved) -> None:
        self._source, self._target = source, target
        self._engine = Engine(target)  # which alone writes
        self._mirror = mirror
        self._moved = moved
        self.report = ScopeReport(source.scope)

    def run(self) -> ScopeReport:
        """Bring all of it, delete what a mirror has not, and read both again."""
        for page in _pages(self._source):
            for step in self._bring(page):
                self._count(step.how)
            self._moved.more(len(page))
        if self._mirror:
            self._delete_beyond()
        self._verify()
        return self.report

    def _count(self, how: str) -> None:
        setattr(self.report, how, getattr(self.report, how) + 1)

    def _bring(self, page: list[Memory]) -> list[_Step]:
        """Write what differs of a page, in one transaction."""
        for _ in range(_ATTEMPTS):
            there = {memory.id: memory for memory in _fetched(self._target, page)}
            steps = [self._step(memory, there.get(memory.id)) for memory in page]
            fresh = [step.memory for step in steps if step.writes]
            expect = {each.id: there[each.id].revision for each in fresh if each.id in there}
            try:
                if fresh:
                    self._engine.restore_many(fresh, unique=False, expect=expect)
                return steps
            except Conflict:  # someone has just written to one of them
                continue
        raise Conflict(
            f"{self._target!r}: others wrote to the same memories {_ATTEMPTS} times; "
            "run the copy again later"
        )

    def _step(self, memory: Memory, there: Memory | None) -> _Step:
        memory = _with_retrievals(self._source, [memory])[0]
        if there is None:
            return _Step(memory, None, "copied", 0)
        if there.updated_at > memory.updated_at and not self._mirror:
            return _Step(there, there, "newer", _digest(there))
        memory.access_count = max(memory.access_count, there.access_count)
        memory.last_accessed = max(memory.last_accessed, there.last_accessed)
        digest = _digest(memory)  # which tells 1 from 1.0 and from true in metadata
        return _Step(memory, there, "same" if digest == _digest(there) else "replaced", digest)

    def _delete_beyond(self) -> None:
        for page in _pages(self._target):
            known = {memory.id for memory in _fetched(self._source, page)}
            beyond = [memory.id for memory in page if memory.id not in known]
            if beyond:
                self.report.deleted += self._engine.forget_many(beyond)

    def _verify(self) -> None:
        """Read both again; what was written to the source meanwhile comes along."""
        report = self.report
        sent = arrived = 0
        for page in _pages(self._source):
            steps = self._bring(page)
            written = [step.memory for step in steps if step.writes]
            again = {each.id: each for each in _fetched(self._target, written)}
            for step in steps:
                found = again.get(step.memory.id) if step.writes else step.there
                if found is None and step.memory.is_expired(clock.now()):
                    report.dropped += 1
                    continue
                report.memories += 1
                sent += _digest(step.memory) if step.writes else step.digest
                if found is not None:
                    report.arrived += 1
                    arrived += _digest(found) if step.writes else step.digest
                    report.copied += step.how == "copied"
            self._moved.more(len(page))
        report.copied -= min(report.copied, report.dropped)
        report.digest = f"{sent % _DIGESTS:032x}"
        report.arrived_digest = f"{arrived % _DIGESTS:032x}"
        report.unreadable = max(0, _size(self._source) - report.memories - report.dropped)
        report.beyond = max(0, _size(self._target) - report.arrived)


def _pages(place: Store) -> Iterator[list[Memory]]:
    """All of a scope, expired ones too, in the order in which they were written."""
    rest = iter(place.changes(0).saved)
    while page := list(islice(rest, _BATCH)):
        yield page


def _fetched(place: Store, page: Sequence[Memory]) -> list[Memory]:
    """The memories of the same ids that are in another place, expired ones too."""
    return _with_retrievals(place, place.driver.fetch(place.scope, [each.id for each in page]))


def _with_retrievals(place: Store, memories: list[Memory]) -> list[Memory]:
    return place.driver.with_retrievals(place.scope, memories)


def _size(place: Store) -> int:
    """How many there are, expired ones too."""
    now = clock.now()
    both = (Selection(now), Selection(now, expired=True))
    return sum(place.driver.count(place.scope, each) for each in both)


def _digest(memory: Memory) -> int:
    """A number that every field of a memory has its part in, but the revision."""
    record = memory.to_dict()
    del record["revision"]
    for name in _NUMBERS:  # of which one store keeps 30 and another 30.0
        if record[name] is not None:
            record[name] = float(record[name]) + 0.0
    text = json.dumps(record, sort_keys=True)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")


def _is_same(one: Store, other: Store) -> bool:
    if one.driver is other.driver:
        return True
    if one.path is not None or other.path is not None:
        return one.path == other.path
    return bool(one.driver.identity) and one.driver.identity == other.driver.identity
