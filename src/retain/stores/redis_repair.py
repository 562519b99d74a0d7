"""The check of a Redis store: every value against its index entries, and the other way round."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .. import clock
from ..errors import Conflict
from ..scope import Scope
from .base import PAGE, Problem
from .redis_codec import GRACE, Keys, chunks, fault
from .redis_scripts import EXAMINE

if TYPE_CHECKING:
    from .redis import RedisDriver

__all__ = ["check"]

_FACT = 32  # characters of a fact's digest


def check(driver: RedisDriver, fix: bool) -> list[Problem]:
    """What is wrong with the place; with ``fix``, mended where it can be."""
    problems: list[Problem] = []
    starts: set[bytes] = set()
    for keys, ids in _values(driver, starts):
        problems += _check_values(driver, keys, ids, fix)
    for start in sorted(starts):
        scope = _scope(driver, Keys(start))
        if scope is None:
            continue
        problems += _check_entries(driver, Keys(start), scope, fix)
        if not driver.server.call("SISMEMBER", driver._registry, scope.key.encode()):
            problems.append(Problem(f"the scope {scope} is not among the scopes", fix))
            if fix:
                driver._register(scope)
    return problems


def _values(driver: RedisDriver, starts: set[bytes]) -> Iterator[tuple[Keys, list[bytes]]]:
    """The ids of all values, some of one scope at a time; ``starts``: what their keys are of."""
    pattern = re.compile(rb"%s:\{[0-9a-f]{24}\}:" % re.escape(driver.prefix.encode()))
    for client in driver.server.clients():
        cursor = -1
        while cursor:
            cursor, found = driver.server.scan(client, max(cursor, 0), f"{driver.prefix}:{{*", PAGE)
            pages: dict[bytes, list[bytes]] = {}
            for key in found:
                start = pattern.match(key)
                if start is not None:
                    starts.add(start[0])
                    if key.startswith(b"m:", start.end()):
                        pages.setdefault(start[0], []).append(key[start.end() + 2 :])
            yield from ((Keys(start), ids) for start, ids in pages.items())


def _scope(driver: RedisDriver, keys: Keys) -> Scope | None:
    key = driver.server.call("HGET", keys.key(b"meta"), b"scope")
    return None if key is None else Scope.from_key(key.decode())


def _check_values(driver: RedisDriver, keys: Keys, ids: list[bytes], fix: bool) -> list[Problem]:
    problems = []
    examined = driver.server.script(EXAMINE, keys.all, keys.values, *ids)
    for id, (value, *found) in zip(ids, examined, strict=True):
        name = id.decode(errors="surrogateescape")
        memory, reason = fault(value, found, keys, driver.prefix, name) if value else (None, "")
        if not reason:
            continue
        fixed = False
        if fix and memory is not None:
            try:  # saved anew, with all its entries
                driver._write(memory.scope, [memory], expect={name: memory.revision})
                fixed = True
            except Conflict:  # somebody else has just saved it
                continue
        elif fix:
            fixed = _set_aside(driver, keys, id, value)
        problems.append(Problem(f"memory {name!r}: {reason}", fixed))
    return problems


def _set_aside(driver: RedisDriver, keys: Keys, id: bytes, value: bytes) -> bool:
    scope = _scope(driver, keys)
    if scope is None:
        return False
    driver.server.call("HSET", keys.key(b"aside"), id, value)
    revision = re.match(rb"(\d+) \d+ \S+ \S+\n", value)
    name = id.decode()
    try:
        driver._write(scope, delete=[name], expect={name: int(revision[1]) if revision else 0})
    except Conflict:  # it was saved anew meanwhile, and is whole
        driver.server.call("HDEL", keys.key(b"aside"), id)
    return True


def _check_entries(driver: RedisDriver, keys: Keys, scope: Scope, fix: bool) -> list[Problem]:
    """Index entries of which the value is gone, or is of another fact."""
    gone: dict[bytes, None] = {}
    stale: list[bytes] = []
    for index in (b"newest", b"revisions", b"expiry", b"facts"):
        members = driver.server.call("ZRANGE", keys.key(index), 0, -1)
        for some in chunks(members, PAGE):
            ids = [member[_FACT:] if index == b"facts" else member for member in some]
            heads = driver.server.several([("GETRANGE", keys.values + id, 0, 127) for id in ids])
            for id, member, head in zip(ids, some, heads, strict=True):
                if index != b"facts":
                    gone.update({} if head else {id: None})
                elif head.partition(b"\n")[0].rpartition(b" ")[2] != member[:_FACT]:
                    stale.append(member)
    problems = [_entry_gone(driver, keys, scope, id, fix) for id in gone]
    problems += [_entry_stale(driver, keys, member, fix) for member in stale]
    return [problem for problem in problems if problem is not None]


def _entry_gone(
    driver: RedisDriver, keys: Keys, scope: Scope, id: bytes, fix: bool
) -> Problem | None:
    [(value, newest, revisions, expiry, *_)] = driver.server.script(
        EXAMINE, keys.all, keys.values, id
    )
    if value or not (newest or revisions or expiry):  # saved or deleted meanwhile
        return None
    name = id.decode(errors="replace")
    if fix:
        driver._write(scope, delete=[id.decode()], expect={id.decode(): 0})
    if expiry and float(expiry) <= clock.now() - GRACE:  # as it should be: the server removed it
        return None
    return Problem(f"memory {name!r}: the server has lost its text, perhaps to evict it", fix)


def _entry_stale(driver: RedisDriver, keys: Keys, member: bytes, fix: bool) -> Problem | None:
    facts, id = keys.key(b"facts"), member[_FACT:]
    head = driver.server.call("GETRANGE", keys.values + id, 0, 127)
    there = driver.server.call("ZSCORE", facts, member) is not None
    if not there or head.partition(b"\n")[0].rpartition(b" ")[2] == member[:_FACT]:
        return None
    if fix:
        driver.server.call("ZREM", facts, member)
    return Problem(f"memory {id.decode(errors='replace')!r}: it is indexed as another fact", fix)
