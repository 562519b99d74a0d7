"""What a store is: a driver, which holds memories by scope, and a store, bound to one scope."""

from __future__ import annotations

import hashlib
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from .. import clock, text
from ..errors import Conflict, InvalidType, InvalidValue, StoreClosed
from ..files import Files
from ..locks import ThreadLock
from ..models import Filter, Memory, as_text
from ..scope import Scope
from .offers import Search

__all__ = ["Changes", "Driver", "Order", "Problem", "Selection", "Store", "Written", "fact_key"]

log = logging.getLogger("retain")

PAGE = 1_000
"""Memories a store reads at once where it has to read many."""
DELETIONS = 10_000
"""Deletions that a scope remembers for those who catch up; beyond, they begin anew."""


class Order(Enum):
    """The order of a listing; equal ones stand newest first, then by id."""

    NEWEST = "newest"
    IMPORTANT = "important"
    """Most important first."""
    DISPENSABLE = "dispensable"
    """Least important first, the oldest first among equals."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a driver is asked to list.

    Visible at ``now`` (epoch seconds), or with ``expired=True`` those that are not; passing
    ``narrow``; at most ``limit`` of them, in ``order``, from just ``after`` a memory's place
    in it: (importance, created_at, id).
    """

    now: float
    narrow: Filter = field(default_factory=Filter)
    order: Order = Order.NEWEST
    limit: int | None = None
    after: tuple[float, float, str] | None = None
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed in a scope since a revision.

    Apply ``deleted`` (ids) first, then all of ``saved`` (in the order of their revisions,
    read as it is consumed, so that a large scope needs no large memory); then ask again from
    ``revision``. Where ``reset`` is set, the store no longer knows what was deleted since
    then: forget all that was known, and begin with these.
    """

    saved: Iterator[Memory]
    deleted: list[str]
    revision: int
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did.

    ``saved``: the memories as they are now stored, in the order given; where ``unique``
    found an equal fact, that one in place of the new one, and its id in ``duplicates``.
    ``deleted``: the ids that were there.
    """

    saved: list[Memory]
    deleted: list[str]
    duplicates: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that ``check`` found: what, and whether it was mended."""

    text: str
    fixed: bool = False

    def __str__(self) -> str:
        return f"{self.text} (mended)" if self.fixed else self.text


def fact_key(memory: Memory) -> str | None:
    """What two equal persistent facts of one category share; ``None`` for other memories.

    A digest of the category and of the text after NFC, trimming and joining of white space.
    """
    if not memory.persistent:
        return None
    fact = f"{len(memory.category)} {memory.category}{text.plain(memory.content)}"
    return hashlib.blake2b(fact.encode(), digest_size=16).hexdigest()


def refuse_conflict(id: str, found: int, expected: int) -> None:
    """Raise ``Conflict`` where a memory is not at the revision expected; 0 is "not there"."""
    if found != expected:
        raise Conflict(
            f"memory {id!r} is at revision {found}, not {expected}: "
            "another writer changed it; read it again"
        )


class Driver(ABC):
    """Where memories are, by scope: what each kind of store implements.

    Every operation takes the scope first; none crosses it, except ``scopes``, ``check``,
    ``backup`` and ``close``. Operations are atomic and may be called from any thread; those
    that write are durable when they return, as far as the kind of store goes.

    Revisions are one series of whole numbers for the whole store that only grows: every
    memory that is saved or deleted takes the next one.
    """

    path: Path | None = None
    """The file or folder, where there is one."""
    where: str = ""
    """What messages call the place, if that is not its path: no password is in it."""
    identity: str = ""
    """Which store it is, where it has a name: another one once the file was lost."""

    def __init__(self) -> None:
        self._lock = ThreadLock(self._before_fork)
        self._pid = os.getpid()
        self._closed = False
        self._retrievals: dict[Scope, dict[str, tuple[int, float]]] = {}

    @abstractmethod
    def write(
        self,
        scope: Scope,
        save: Sequence[Memory] = (),
        delete: Sequence[str] = (),
        *,
        unique: bool = False,
        expect: Mapping[str, int] | None = None,
    ) -> Written:
        """Delete, then save (insert or replace by id): all of it or nothing.

        ``save`` are checked memories of ``scope``. With ``unique``, a persistent fact that
        equals another one (``fact_key``) is not saved. ``expect`` maps ids to the revision
        they must still have, 0 for "not there", or ``Conflict`` is raised. Retrieval counts
        that wait are written too; a saved memory's count never falls.
        """

    @abstractmethod
    def fetch(self, scope: Scope, ids: Sequence[str]) -> list[Memory]:
        """The memories of these ids that are there, expired ones too, in the order given."""

    @abstractmethod
    def select(self, scope: Scope, selection: Selection) -> list[Memory]:
        """A listing."""

    @abstractmethod
    def count(self, scope: Scope, selection: Selection) -> int:
        """How many the listing has, its ``limit`` and ``after`` aside."""

    @abstractmethod
    def changes(self, scope: Scope, since: int) -> Changes:
        """What changed since ``since`` (0: everything) until now."""

    def revision(self) -> int:
        """The last revision that was given, 0 before the first; override it if that is cheaper."""
        return self.changes(Scope(), 0).revision

    @abstractmethod
    def scopes(self) -> list[Scope]:
        """Every scope that holds a memory."""

    @abstractmethod
    def forget_scope(self, scope: Scope) -> int:
        """Delete all of one scope; how many there were."""

    @abstractmethod
    def check(self, fix: bool = False) -> list[Problem]:
        """Verify the whole store, and with ``fix`` repair what can be; what was found."""

    @abstractmethod
    def backup(self, path: Path) -> None:
        """Write a consistent copy of the open store to a new place."""

    def index_files(self, scope: Scope) -> Files | None:
        """Where the index of a scope may be kept in files, ``None`` for nowhere.

        They are the driver's to delete when it forgets the scope.
        """
        return None

    searches = False
    """Whether it has a side index, by which scopes are searched where they are stored."""

    def search(self, made_by: str, dimensions: int) -> Search:
        """The side index of a kind: by what terms and vectors are made, of so many numbers.

        For a driver that ``searches``. Makes it where it is not there.
        """
        raise InvalidValue(f"{type(self).__name__} has no search of its own; leave it to the index")

    def hear(self, scope: Scope, heard: Callable[[], None]) -> None:  # noqa: B027
        """Have ``heard`` called soon after another process wrote to a scope, if that is told.

        On a thread of the driver's, for as long as the method's object lives. Nobody may rely on
        it: what counts is ``changes``.
        """

    @property
    def awaits(self) -> bool:
        """Whether an event loop goes on while it waits (see ``retain.awaiting``)."""
        return False

    def leave(self) -> None:  # noqa: B027  # most have nothing
        """Let go of what it has for the event loop that carries this call."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def close(self) -> None:
        """Write what waits and let go of everything; a closed driver refuses every call."""
        self._closed = True

    # -- retrieval counts, which wait in memory for the next write -------------------------

    def retrieved(self, scope: Scope, ids: Iterable[str], now: float) -> None:
        """Count one retrieval of each id."""
        with self._lock:
            waiting = self._retrievals.setdefault(scope, {})
            for id in ids:
                count, last = waiting.get(id, (0, now))
                waiting[id] = (count + 1, max(last, now))

    def with_retrievals(self, scope: Scope, memories: list[Memory]) -> list[Memory]:
        """``memories`` with the counts that are not yet written."""
        waiting = self._retrievals.get(scope)
        if waiting:
            for memory in memories:
                if memory.id in waiting:
                    count, last = waiting[memory.id]
                    memory.access_count += count
                    memory.last_accessed = max(memory.last_accessed, last)
        return memories

    def _usable(self) -> None:
        """Call under the lock, first in every operation."""
        if self._closed:
            raise StoreClosed(f"{self.where or self.path or 'the store'} was closed; open it again")

    def _before_fork(self) -> None:  # noqa: B027  # most have nothing to let go of
        """Let go of what a child can't have, under the lock; the parent takes it up again."""

    def _forked(self) -> bool:
        """Whether this is a child of the process that last used the driver (told once).

        The parent keeps the counts that wait; the child begins with none.
        """
        if self._pid == os.getpid():
            return False
        self._pid = os.getpid()
        self._retrievals = {}
        return True


S = TypeVar("S", bound="Store")


class Store:
    """Memories of one scope in one place.

    Everything that is read or written through it stays inside its scope. Reads show what is
    visible: an expired memory is as good as gone. Reads may be called from any thread; each
    write is atomic.

    A store of your own: subclass :class:`Driver` and wrap it, ``Store(MyDriver(...))``;
    ``retain.testing`` has the tests that it must pass.
    """

    def __init__(self, driver: Driver, scope: Scope | None = None) -> None:
        if scope is not None and not isinstance(scope, Scope):
            raise InvalidType(f"scope is a {type(scope).__name__}; give a Scope")
        self.driver = driver
        self.scope = scope or Scope()

    @property
    def path(self) -> Path | None:
        """The file or folder it lives in, ``None`` where there is none."""
        return self.driver.path

    @property
    def revision(self) -> int:
        """The last revision of the place, of whatever scope: it grows with every change.

        >>> from retain import InMemoryStore, Memory
        >>> store = InMemoryStore()
        >>> store.save_many([Memory(content="one"), Memory(content="two")])[-1].revision
        2
        >>> store.revision
        2
        """
        return self.driver.revision()

    def scoped(self, scope: Scope) -> Store:
        """The same place under another scope; closing either closes both."""
        return Store(self.driver, scope)

    # -- reading ---------------------------------------------------------------------------

    def get(self, memory_id: str) -> Memory | None:
        """The memory of that id, or ``None``; counts as a retrieval."""
        now = clock.now()
        found = self.peek([memory_id], now)
        if not found:
            return None
        self.retrieved(found, now)
        return found[0]

    def retrieved(self, memories: Sequence[Memory], now: float) -> None:
        """Count one retrieval of each, in the place and on the objects."""
        self.driver.retrieved(self.scope, [memory.id for memory in memories], now)
        for memory in memories:
            memory.access_count += 1
            memory.last_accessed = max(memory.last_accessed, now)

    def peek(self, ids: Sequence[str], now: float | None = None) -> list[Memory]:
        """The visible memories of these ids, in the order given; counts nothing."""
        now = clock.now() if now is None else now
        found = self.driver.fetch(self.scope, [as_text(id, "an id") for id in ids])
        visible = [memory for memory in found if not memory.is_expired(now)]
        return self.driver.with_retrievals(self.scope, visible)

    def list_all(self) -> list[Memory]:
        """Every visible memory, newest first."""
        return list(self.iterate())

    def page(
        self,
        limit: int = 100,
        *,
        after: Memory | None = None,
        narrow: Filter | None = None,
        order: Order = Order.NEWEST,
        now: float | None = None,
    ) -> list[Memory]:
        """At most ``limit`` visible memories in ``order``, from just after ``after`` on.

        >>> from retain import InMemoryStore, Memory
        >>> store = InMemoryStore()
        >>> store.save(Memory(content="one"))
        >>> page = store.page(10)
        >>> store.page(10, after=page[-1])
        []
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise InvalidValue(f"limit={limit!r}; give a whole number from 0")
        place = None if after is None else (after.importance_score, after.created_at, after.id)
        selection = Selection(
            clock.now() if now is None else now, narrow or Filter(), order, limit, place
        )
        return self.driver.with_retrievals(self.scope, self.driver.select(self.scope, selection))

    def iterate(
        self, *, narrow: Filter | None = None, order: Order = Order.NEWEST, size: int = PAGE
    ) -> Iterator[Memory]:
        """Every visible memory, read in pages of ``size``: memory stays flat."""
        now = clock.now()
        page = self.page(size, narrow=narrow, order=order, now=now)
        while page:
            yield from page
            page = self.page(size, after=page[-1], narrow=narrow, order=order, now=now)

    def count(self, narrow: Filter | None = None) -> int:
        """How many memories are visible (and pass ``narrow``)."""
        return self.driver.count(self.scope, Selection(clock.now(), narrow or Filter()))

    def expired(self) -> list[str]:
        """The ids of those that are no longer visible."""
        selection = Selection(clock.now(), expired=True)
        return [memory.id for memory in self.driver.select(self.scope, selection)]

    def changes(self, since: int = 0) -> Changes:
        """What changed since a revision, deletes included."""
        return self.driver.changes(self.scope, since)

    # -- writing ---------------------------------------------------------------------------

    def save(self, memory: Memory) -> None:
        """Insert or replace by id; durable when the call returns (on the stores that last).

        What is stored is a checked copy under this store's scope. Raises ``InvalidValue`` or
        ``InvalidType`` with nothing changed.
        """
        self.save_many([memory])

    def save_many(self, memories: Iterable[Memory]) -> list[Memory]:
        """Save all or none of them; the memories as they are stored."""
        return self.write(memories).saved

    def write(
        self,
        save: Iterable[Memory] = (),
        delete: Iterable[str] = (),
        *,
        unique: bool = False,
        expect: Mapping[str, int] | None = None,
    ) -> Written:
        """One atomic write: see :meth:`Driver.write`."""
        checked = [self._own(memory) for memory in save]
        ids = [as_text(id, "an id") for id in delete]
        return self.driver.write(self.scope, checked, ids, unique=unique, expect=expect)

    def delete(self, memory_id: str) -> bool:
        """Delete by id; whether it was there."""
        return self.delete_many([memory_id]) == 1

    def delete_many(self, ids: Iterable[str]) -> int:
        """Delete all of these; how many were there."""
        return len(self.write(delete=ids).deleted)

    def _own(self, memory: Memory) -> Memory:
        if not isinstance(memory, Memory):
            raise InvalidType(f"a {type(memory).__name__} is no Memory")
        own = memory.checked()
        own.scope = self.scope
        return own

    # -- the place as a whole --------------------------------------------------------------

    def scopes(self) -> list[Scope]:
        """Every scope of the place that holds a memory."""
        return self.driver.scopes()

    def forget_scope(self, scope: Scope) -> int:
        """Delete everything of exactly ``scope`` and nothing else; how many there were."""
        if not isinstance(scope, Scope):
            raise InvalidType(f"scope is a {type(scope).__name__}; give a Scope")
        return self.driver.forget_scope(scope)

    def check(self, fix: bool = False) -> list[Problem]:
        """Verify the whole place; with ``fix``, repair. What was found, nothing if all is well."""
        return self.driver.check(fix)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a consistent copy, while it is in use, to a path that must not exist yet."""
        target = Path(path).expanduser()
        if target.exists():
            raise InvalidValue(f"{target} exists; name a new place for the backup")
        self.driver.backup(target)

    def close(self) -> None:
        """Write what waits and let go of the place."""
        self.driver.close()

    def __enter__(self: S) -> S:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = self.driver.where or self.path or "in memory"
        return f"<{type(self).__name__} {where} scope={self.scope}>"


def order_key(order: Order) -> Callable[[Memory], tuple[float, float, str]]:
    """The sort key of an order, for stores that sort in Python."""
    if order is Order.IMPORTANT:
        return lambda m: (-m.importance_score, -m.created_at, m.id)
    if order is Order.DISPENSABLE:
        return lambda m: (m.importance_score, m.created_at, m.id)
    return lambda m: (0.0, -m.created_at, m.id)
