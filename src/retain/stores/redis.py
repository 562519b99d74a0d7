"""Memories on a Redis or Valkey server: shared by many hosts, one script a write."""

from __future__ import annotations

import heapq
import itertools
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import files
from ..errors import InvalidValue, StoreTooNew
from ..models import Filter, Memory, as_number
from ..scope import Scope
from .base import PAGE, Changes, Driver, Order, Problem, Selection, Store, Written, log, order_key
from .knowledge import KnowledgeView
from .redis_codec import (
    TOMBSTONE,
    UNREADABLE,
    Keys,
    chunks,
    to_memory,
    write_arguments,
    written,
)
from .redis_scripts import CHANGES, FORGET, TOUCH, WRITE
from .redis_server import Server

__all__ = ["RedisKnowledgeStore", "RedisStore"]

VERSION = 1
"""Of how memories lie on the server."""


class RedisDriver(Driver):
    """A pool of connections; a write is one script, which the server runs as a whole.

    A call whose connection is lost is made again on another one, for up to ``timeout`` seconds:
    a write leaves its answer in a key of its own for a while, so that it is done once.
    """

    def __init__(
        self,
        url: str = "redis://localhost:6379/0",
        *,
        client: Any = None,
        prefix: str = "retain",
        timeout: float = 30.0,
    ) -> None:
        super().__init__()
        if not isinstance(prefix, str) or not re.fullmatch(r"[\w.:/-]{1,100}", prefix, re.ASCII):
            raise InvalidValue(f"prefix={prefix!r}; give 1 to 100 letters, digits or any of _.:/-")
        as_number(timeout, "timeout", 0.001, 86_400, unit="seconds")
        self.prefix = prefix
        self.timeout = timeout
        self._place = f"{prefix}:place".encode()
        self._registry = f"{prefix}:scopes".encode()
        self._begin()
        self.server = Server(url, client, prefix, timeout)
        self.where = self.server.name
        try:
            self._meet()
        except BaseException:
            self.server.close()
            raise

    def _begin(self) -> None:
        """Be a writer of one's own, as the child of a fork is, too."""
        self._writer = uuid.uuid4().hex[:12]
        self._slots: list[bytes] = []
        self._slot_numbers = itertools.count()
        self._numbers = itertools.count()

    def _meet(self) -> None:
        """Learn the name of the place, or give it one; refuse one of a newer version."""
        names = (self._place, b"version", b"identity")
        version, identity = self.server.call("HMGET", *names)
        if version is None or identity is None:
            self.server.call("HSETNX", self._place, b"version", VERSION)
            self.server.call("HSETNX", self._place, b"identity", uuid.uuid4().hex)
            version, identity = self.server.call("HMGET", *names)
        if int(version) > VERSION:
            raise StoreTooNew(
                f"{self.server.name} has version {int(version)} of retain's keys, and this retain "
                f"knows up to {VERSION}: upgrade retain"
            )
        self.identity = identity.decode()

    @property
    def awaits(self) -> bool:
        return self.server.loops is not None

    def leave(self) -> None:
        if self.server.loops is not None:
            self.server.loops.leave()

    def _ready(self) -> None:
        with self._lock:
            if self._forked():
                self._begin()
            self._usable()

    # -- writing ---------------------------------------------------------------------------

    def write(
        self,
        scope: Scope,
        save: Sequence[Memory] = (),
        delete: Sequence[str] = (),
        *,
        unique: bool = False,
        expect: Mapping[str, int] | None = None,
    ) -> Written:
        self._ready()
        if not save and not delete:
            return Written([], [])
        return self._write(scope, save, delete, unique=unique, expect=expect)

    def _write(
        self,
        scope: Scope,
        save: Sequence[Memory] = (),
        delete: Sequence[str] = (),
        **options: Any,
    ) -> Written:
        keys = Keys.of(self.prefix, scope)
        expect = options.get("expect")
        with self._counts(scope) as counts, self._slot(keys) as (slot, number):
            arguments = write_arguments(
                keys, number, save, delete, counts=counts, remember=2 * self.timeout + 10, **options
            )
            answer = self.server.script(WRITE, self._keys(keys, slot), *arguments)
            done = written(answer, save, scope, expect)
            if done is None:  # so that the scope is never there and not among the scopes
                self._register(scope)
                self._meet()  # an emptied server has lost its name, too
                arguments[2] = scope.key.encode()
                answer = self.server.script(WRITE, self._keys(keys, slot), *arguments)
                self._register(scope)  # again: who forgot it meanwhile has taken it off
                done = written(answer, save, scope, expect)
            assert done is not None
            self._touch(answer[5])
        return done

    def _keys(self, keys: Keys, slot: bytes) -> list[bytes]:
        """Those of a script that writes: only on a cluster the place is out of its reach."""
        return [*keys.all, slot, *([] if self.server.clustered else [self._place])]

    def _touch(self, revision: bytes) -> None:
        if self.server.clustered and int(revision):
            self.server.script(TOUCH, [self._place], revision)

    def _register(self, scope: Scope) -> None:
        self.server.call("SADD", self._registry, scope.key.encode())

    @contextmanager
    def _slot(self, keys: Keys) -> Iterator[tuple[bytes, int]]:
        """Where the answer of a write is kept, for no other write meanwhile; and its number.

        One that failed may still be on its way to the server, and so keeps its slot.
        """
        with self._lock:
            slots, fresh = self._slots, f"{self._writer}.{next(self._slot_numbers)}"
            slot = slots.pop() if slots else fresh.encode()
        yield keys.key(b"w:" + slot), next(self._numbers)
        with self._lock:
            slots.append(slot)

    @contextmanager
    def _counts(self, scope: Scope) -> Iterator[dict[str, tuple[int, float]]]:
        """The retrieval counts that wait for a write, which takes them unless it fails."""
        with self._lock:
            counts = self._retrievals.pop(scope, {})
        try:
            yield counts
        except BaseException:
            with self._lock:
                for id, (count, last) in counts.items():
                    waiting = self._retrievals.setdefault(scope, {})
                    more, later = waiting.get(id, (0, last))
                    waiting[id] = (count + more, max(last, later))
            raise

    def forget_scope(self, scope: Scope) -> int:
        self._ready()
        keys = Keys.of(self.prefix, scope)
        with self._slot(keys) as (slot, number):
            aside = keys.key(b"aside")
            wait = round(2000 * self.timeout + 10_000)
            arguments = (keys.values, number, aside, wait, TOMBSTONE)
            count, revision = self.server.script(FORGET, self._keys(keys, slot), *arguments)
        self._touch(revision)
        self.server.call("SREM", self._registry, scope.key.encode())
        if self.server.call("HEXISTS", keys.key(b"meta"), b"scope"):  # it was begun anew meanwhile
            self._register(scope)
        with self._lock:
            self._retrievals.pop(scope, None)
        return int(count)

    # -- reading ---------------------------------------------------------------------------

    def fetch(self, scope: Scope, ids: Sequence[str]) -> list[Memory]:
        self._ready()
        keys = Keys.of(self.prefix, scope)
        values = self._values(keys, [id.encode() for id in ids])
        return list(self._memories(scope, values))

    def _values(self, keys: Keys, ids: Sequence[bytes]) -> Iterator[tuple[bytes, bytes | None]]:
        for some in chunks(ids, PAGE):
            yield from zip(
                some, self.server.call("MGET", *(keys.values + id for id in some)), strict=True
            )

    def _memories(
        self, scope: Scope, values: Iterator[tuple[bytes, bytes | None]]
    ) -> Iterator[Memory]:
        for id, value in values:
            if value is None:  # deleted, or removed by the server once it had expired
                continue
            try:
                yield to_memory(value, scope)
            except UNREADABLE as error:
                log.warning(
                    "%s: memory %r can't be read (%s) and was left as it is; "
                    "`retain check` tells more",
                    self.server.name,
                    id.decode(errors="replace"),
                    error,
                )

    def select(self, scope: Scope, selection: Selection) -> list[Memory]:
        self._ready()
        key = order_key(selection.order)
        if selection.expired:
            found = self._expired(scope, selection.now)
        elif selection.order is Order.NEWEST:
            found = self._newest(scope, selection)
        else:
            found = self._newest(scope, Selection(selection.now, selection.narrow))
        found = (
            memory
            for memory in found
            if memory.is_expired(selection.now) is selection.expired
            and selection.narrow.admits(memory)
        )
        if selection.after is not None:
            importance, created, id = selection.after
            place = key(Memory(id, importance_score=importance, created_at=created))
            found = (memory for memory in found if key(memory) > place)
        if selection.order is Order.NEWEST and not selection.expired:
            return list(itertools.islice(found, selection.limit))
        if selection.limit is None:
            return sorted(found, key=key)
        return heapq.nsmallest(selection.limit, found, key=key)

    def _newest(self, scope: Scope, selection: Selection) -> Iterator[Memory]:
        """The memories of a scope, newest first, read in pages from just after ``after`` on."""
        keys = Keys.of(self.prefix, scope)
        limit, since = selection.limit, selection.narrow.since
        size = PAGE if limit is None or selection.narrow != Filter() else min(PAGE, limit + 1)
        place = selection.after and (-selection.after[1], selection.after[2].encode())
        while limit != 0:
            start = 0 if place is None else self._rank(keys, *place)
            page = self.server.scored("ZRANGE", keys.key(b"newest"), start, start + size - 1)
            ids = [id for id, score in page if since is None or -score >= since]
            yield from self._memories(scope, self._values(keys, ids))
            if len(ids) < size:
                return
            id, score = page[-1]
            place = (score, id)

    def _rank(self, keys: Keys, score: float, id: bytes) -> int:
        """How many stand up to a place among the newest, whether its memory is there or not."""
        newest = keys.key(b"newest")
        rank, there, low, high = self.server.several(
            [
                ("ZRANK", newest, id),
                ("ZSCORE", newest, id),
                ("ZCOUNT", newest, "-inf", f"({score!r}"),
                ("ZCOUNT", newest, "-inf", repr(score)),
            ]
        )
        if there is not None and float(there) == score:
            return int(rank) + 1
        while low < high:  # between those of the same moment, which stand by id
            middle = (low + high) // 2
            found = self.server.call("ZRANGE", newest, middle, middle)
            low, high = (middle + 1, high) if found and found[0] <= id else (low, middle)
        return int(low)

    def _expired(self, scope: Scope, now: float) -> Iterator[Memory]:
        keys = Keys.of(self.prefix, scope)
        ids = self.server.call("ZRANGEBYSCORE", keys.key(b"expiry"), "-inf", repr(now))
        values = list(self._values(keys, ids))
        gone = sum(value is None for _, value in values)
        if gone:  # the server was quicker
            self._write(scope, sweep=len(ids))
        yield from self._memories(scope, iter(values))

    def count(self, scope: Scope, selection: Selection) -> int:
        if selection.narrow != Filter():
            everything = Selection(
                selection.now, selection.narrow, expired=selection.expired, limit=None
            )
            return len(self.select(scope, everything))
        self._ready()
        keys = Keys.of(self.prefix, scope)
        there, expired = self.server.several(
            [
                ("ZCARD", keys.key(b"newest")),
                ("ZCOUNT", keys.key(b"expiry"), "-inf", repr(selection.now)),
            ]
        )
        return int(expired) if selection.expired else int(there) - int(expired)

    def changes(self, scope: Scope, since: int) -> Changes:
        self._ready()
        keys = Keys.of(self.prefix, scope)
        names = [keys.key(b"meta"), keys.key(b"deletions")]
        revision, *news = self.server.script(CHANGES, names, since)
        if not news:  # before every recall, and mostly there is nothing new
            return Changes(iter(()), [], since)
        reset, deleted = news
        saved = self._saved(scope, keys, 0 if reset else since, int(revision))
        return Changes(saved, [id.decode() for id in deleted], int(revision), bool(reset))

    def _saved(self, scope: Scope, keys: Keys, since: int, until: int) -> Iterator[Memory]:
        while since < until:
            revisions = keys.key(b"revisions")
            page = self.server.scored(
                "ZRANGEBYSCORE", revisions, f"({since}", until, b"LIMIT", 0, PAGE
            )
            for memory in self._memories(scope, self._values(keys, [id for id, _ in page])):
                if memory.revision <= until:  # else it was saved again, and comes next time
                    yield memory
            if len(page) < PAGE:
                return
            since = int(page[-1][1])

    def revision(self) -> int:
        self._ready()
        revision, identity = self.server.call("HMGET", self._place, b"revision", b"identity")
        self.identity = identity.decode() if identity else ""
        return int(revision or 0)

    def scopes(self) -> list[Scope]:
        self._ready()
        found: set[bytes] = set()
        cursor = -1
        while cursor:
            at = max(cursor, 0)
            cursor, some = self.server.call("SSCAN", self._registry, at, "COUNT", PAGE)
            found.update(some)
        scopes = [Scope.from_key(key.decode()) for key in sorted(found)]
        there: list[Scope] = []
        for page in chunks(scopes, PAGE):
            newest = [Keys.of(self.prefix, scope).key(b"newest") for scope in page]
            counts = self.server.several([("EXISTS", key) for key in newest])
            there += (scope for scope, count in zip(page, counts, strict=True) if count)
        return there

    # -- the place as a whole --------------------------------------------------------------

    def check(self, fix: bool = False) -> list[Problem]:
        """Every value and every index entry, read one by one: for a quiet hour.

        With ``fix``: indexes are set right, and values that can't be read are moved to the hash
        ``…:aside`` of their scope.
        """
        from .redis_repair import check

        self._ready()
        return check(self, fix)

    def backup(self, path: Path) -> None:
        """Write a copy as the file of a ``SQLiteStore``: each scope as it was at one moment.

        The whole server at one moment is what its own ``BGSAVE`` keeps.
        """
        from .sqlite import SQLiteStore

        self._ready()
        files.make_folder(path.parent)
        with files.store_errors(path):
            files.write_new(path, b"")
        try:
            with SQLiteStore(path) as copy:
                for scope in self.scopes():
                    self._copy(scope, copy.scoped(scope))
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def _copy(self, scope: Scope, copy: Store) -> None:
        since = -1
        while True:
            changes = self.changes(scope, max(since, 0))
            if changes.revision == since:
                return
            gone = [m.id for m in copy.iterate()] if changes.reset else changes.deleted
            copy.delete_many(gone)
            while page := list(itertools.islice(changes.saved, PAGE)):
                copy.save_many(page)
            since = changes.revision

    def close(self) -> None:
        """Write the retrieval counts that wait; end the connections that are the store's own."""
        with self._lock:
            if self._closed:
                return
            if self._forked():
                self._begin()
            waiting = list(self._retrievals)
        try:
            for scope in waiting:
                self._write(scope)
        finally:
            self._closed = True
            self.server.close()


class RedisStore(Store):
    """Memories on a Redis (6.2 or later) or Valkey server, shared by any number of hosts.

    A write is one script, which the server runs as a whole or not at all. How durable it then is
    is the server's affair: ``appendonly yes`` and ``appendfsync always`` lose nothing that was
    acknowledged. Memories with ``ttl_days`` are removed by the server itself, an hour after
    they expired.

    ``url``: ``redis://``, ``rediss://`` (TLS), ``unix://`` or ``valkey://``, with user, password
    and database where there are; a cluster is recognised. ``client``: a ``redis.Redis`` or
    ``redis.RedisCluster`` of yours in its place, with any settings; it is not closed.
    ``prefix``: what every key begins with. ``timeout``: seconds that a call is tried while the
    server can't be reached. Raises ``StoreFailed`` where the server can't be used,
    ``StoreTooNew`` where a newer version of retain wrote there, ``MissingPackage`` without
    ``retain[redis]``.

    >>> from retain import Memory, RedisStore
    >>> with RedisStore("redis://localhost:6379/0") as store:
    ...     store.save(Memory("m1", "The deadline is 1 March"))
    ...     store.get("m1").content
    'The deadline is 1 March'
    """

    driver: RedisDriver

    def __init__(
        self,
        url: str = "redis://localhost:6379/0",
        *,
        client: Any = None,
        prefix: str = "retain",
        scope: Scope | None = None,
        timeout: float = 30.0,
    ) -> None:
        super().__init__(RedisDriver(url, client=client, prefix=prefix, timeout=timeout), scope)


class RedisKnowledgeStore(KnowledgeView):
    """Entries on a Redis or Valkey server: see :class:`~retain.RedisStore`."""

    def __init__(
        self,
        url: str = "redis://localhost:6379/0",
        prefix: str = "knowledge",
        *,
        client: Any = None,
        scope: Scope | None = None,
        timeout: float = 30.0,
    ) -> None:
        store = RedisStore(url, client=client, prefix=prefix, scope=scope, timeout=timeout)
        super().__init__(store)
