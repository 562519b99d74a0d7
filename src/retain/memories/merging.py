"""Two hosts' changes to one memory directory, brought together.

Three states are compared: what both had in common last (the base), what is here, and what the
other one saved. What only one of them changed is taken from it; what both changed is decided by
the later time, and the other's text can be restored.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .. import files
from ..backends.archive import read_directory
from ..directory import daily_log
from ..directory.memory_md import Document
from ..engine import Engine
from ..errors import Conflict
from ..models import Memory
from ..scope import Scope
from ..stores.base import Store
from ..stores.file import FileDriver, FileStore
from ..stores.json_file import JSONFileDriver, JSONFileStore
from ..stores.sqlite import SQLiteDriver, SQLiteStore
from .forgotten import Forgotten

__all__ = [
    "Done",
    "Files",
    "ScopeFiles",
    "Sides",
    "copies",
    "kind_of",
    "memories_of",
    "merge_scope",
    "opened",
    "other_files",
]

log = logging.getLogger("retain")

Files = Mapping[str, bytes]
"""An archive unpacked: relative path to content."""

KINDS: dict[str, Any] = {"sqlite": SQLiteStore, "file": FileStore, "json": JSONFileStore}
_DRIVERS = {SQLiteDriver: "sqlite", FileDriver: "file", JSONFileDriver: "json"}

_SHOWN = re.compile(r"(scopes/[^/]*/)?(MEMORY\.md|MEMORY\.forgotten\.jsonl|logs/[^/]*\.jsonl)")
"""The files that follow from the store, and are merged with it."""


def kind_of(store: Store | None, place: Path) -> tuple[str, str] | None:
    """The kind of a store that lies in ``place``, and where in it; ``None`` for another."""
    kind = None if store is None else _DRIVERS.get(type(store.driver))
    if store is None or store.path is None or kind is None:
        return None
    root, path = place.resolve(), store.path.resolve()
    path = path.parent if kind == "file" else path
    return (kind, path.relative_to(root).as_posix()) if root in path.parents else None


@contextmanager
def opened(kind: str, path: Path) -> Iterator[Store]:
    """The store of a kind at ``path``, open for a while. Raises ``StoreFailed``."""
    store: Store = KINDS[kind](path)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _opened_copy(found: Files, kind: str, path: str) -> Iterator[Store | None]:
    """The store in an archive, opened in a place of its own; ``None`` where it holds none."""
    parts = {name: data for name, data in found.items() if f"{name}/".startswith(f"{path}/")}
    if not parts:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, data in parts.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_bytes(data)
        with opened(kind, Path(folder) / path) as store:
            yield store


# -- the memories of one scope ----------------------------------------------------------------


class _Plan(NamedTuple):
    """What is to be done here: ``lost`` are the texts that a later change of both replaced."""

    save: list[Memory]
    forget: list[str]
    lost: list[Memory]


class Sides(NamedTuple):
    """The memories of a scope by id: in the base, there, and (a moment ago) here."""

    base: dict[str, Memory]
    theirs: dict[str, Memory]
    ours: dict[str, Memory]


def memories_of(store: Store | None, scope: Scope) -> dict[str, Memory]:
    """All memories of a scope by id, expired ones too; none of no store."""
    if store is None:
        return {}
    return {memory.id: memory for memory in store.scoped(scope).changes(0).saved}


def merge_scope(
    engine: Engine, base: Store | None, theirs: Store | None, forgotten: Forgotten
) -> Sides:
    """Bring into the scope of ``engine`` what changed between ``base`` and ``theirs``.

    Call it while nobody else may write through the directory. The texts that lose go to
    ``forgotten`` first. Returns what was compared.
    """
    scope = engine.store.scope
    before, there = memories_of(base, scope), memories_of(theirs, scope)
    while True:
        here = memories_of(engine.store, scope)
        plan = _planned(before, here, there)
        if plan.lost:
            files.make_folder(forgotten.path.parent)
            forgotten.keep(plan.lost)
        expect = {m.id: here[m.id].revision if m.id in here else 0 for m in plan.save}
        try:
            engine.forget_many(plan.forget)
            engine.restore_many(plan.save, expect=expect)
        except Conflict:  # somebody writes to the store itself
            continue
        return Sides(before, there, here)


def _planned(
    before: Mapping[str, Memory], here: Mapping[str, Memory], there: Mapping[str, Memory]
) -> _Plan:
    plan = _Plan([], [], [])
    for id in {**there, **before}:
        base, ours, theirs = before.get(id), here.get(id), there.get(id)
        if _same(theirs, base) or _same(theirs, ours):
            chosen = ours
        elif _same(ours, base) or ours is None:
            chosen = theirs
        elif theirs is None:  # deleted there, changed here
            chosen = ours
        else:
            chosen, lost = sorted((ours, theirs), key=_age, reverse=True)
            if lost.content != chosen.content:
                plan.lost.append(lost)
        if chosen is None:
            plan.forget.extend([id] if ours is not None else [])
            continue
        count = max(memory.access_count for memory in (ours, theirs, chosen) if memory)
        if chosen is not ours or chosen.access_count < count:
            last = max(memory.last_accessed for memory in (ours, theirs, chosen) if memory)
            plan.save.append(chosen.copy(access_count=count, last_accessed=last))
    return plan


_FIELDS = sorted(set(Memory.__slots__) - {"access_count", "last_accessed", "revision", "scope"})


def _same(one: Memory | None, other: Memory | None) -> bool:
    if one is None or other is None:
        return one is other
    return all(getattr(one, name) == getattr(other, name) for name in _FIELDS)


def _age(memory: Memory) -> tuple[float, str]:
    """By what the later of two is told, everywhere alike."""
    return memory.updated_at, repr([getattr(memory, name) for name in _FIELDS])


# -- the files of one scope -------------------------------------------------------------------


class ScopeFiles:
    """What people wrote into the files of a scope, and what they can have back.

    ``folder``: the scope's, ``prefix`` its path in an archive. MEMORY.md and the logs show the
    store; what is theirs alone are the lines of people in them.
    """

    def __init__(self, folder: Path, prefix: str, base: Files, theirs: Files) -> None:
        self.folder, self._prefix = folder, prefix
        self._base, self._theirs = base, theirs

    def merge_forgotten(self, sides: Sides, after: Mapping[str, Memory]) -> None:
        """Bring together what can be restored; what one forgot for good can't be."""
        name = "MEMORY.forgotten.jsonl"
        ours = Forgotten(self.folder / name)
        with tempfile.TemporaryDirectory() as folder:
            before, there = (
                _rows(found.get(f"{self._prefix}{name}"), Path(folder) / side)
                for side, found in (("base", self._base), ("theirs", self._theirs))
            )
        here = {memory.id: (at, memory) for at, memory in ours.memories()}
        rows = dict(here)
        for id in before.keys() | there.keys() | here.keys():
            known = id in before or id in sides.base
            final = known and (
                (id not in here and id not in sides.ours)
                or (id not in there and id not in sides.theirs)
            )
            if final and id not in after:
                rows.pop(id, None)
            elif there.get(id) != before.get(id):
                _take(rows, id, before.get(id), there.get(id))
        if rows != here:
            ours.replace(sorted(rows.values(), key=lambda row: row[0]))

    def merge_logs(self) -> None:
        """Add the lines that a person wrote into a log there."""
        for path, data in self._theirs.items():
            name = path.removeprefix(f"{self._prefix}logs/")
            if path != f"{self._prefix}logs/{name}" or daily_log.log_date(name) is None:
                continue
            place = self.folder / "logs" / name
            before = set(self._base.get(path, b"").splitlines())
            if path in self._base and not place.exists():  # pruned here
                continue
            here = set(place.read_bytes().splitlines()) if place.exists() else set()
            new = [line for line in data.splitlines() if line.strip() and _is_own(line)]
            lines = b"".join(b"%b\n" % line for line in new if line not in before | here)
            if lines:
                daily_log.append(place, lines)

    def merge_prose(self) -> None:
        """Add the lines of MEMORY.md that are no facts and that a person wrote there."""
        name = f"{self._prefix}MEMORY.md"
        place = self.folder / "MEMORY.md"
        here = _text(place.read_bytes() if place.exists() else b"")
        known = {*_prose(_text(self._base.get(name))), *_prose(here)}
        new = [line for line in _prose(_text(self._theirs.get(name))) if line not in known]
        if not new:
            return
        text = "\n".join([here.rstrip("\n"), "", *new, ""])
        said = [(fact.category, fact.text) for fact in Document.parse(here).facts()]
        if [(fact.category, fact.text) for fact in Document.parse(text).facts()] != said:
            copy = files.beside(place, f".conflict-{_digest(self._theirs[name])}")
            log.warning("%s: lines of another host would hide facts; see %s", place, copy.name)
            files.write_atomically(copy, self._theirs[name])
            return
        files.write_atomically(place, text.encode())


def _take(rows: dict[str, Any], id: str, before: Any, there: Any) -> None:
    """What changed there, unless it changed here too, and later."""
    here = rows.get(id)
    if there is None:
        if here == before:
            rows.pop(id, None)
    elif here is None or here == before or here[0] < there[0]:
        rows[id] = there


def _rows(data: bytes | None, path: Path) -> dict[str, tuple[float, Memory]]:
    files.write_new(path, data or b"", durable=False)
    return {memory.id: (at, memory) for at, memory in Forgotten(path).memories()}


def _is_own(line: bytes) -> bool:
    """Whether a line of a log is a person's: it has no id."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return True
    return not (isinstance(entry, dict) and entry.get("id"))


def _text(data: bytes | None) -> str:
    return (data or b"").decode(errors="replace")


def _prose(text: str) -> list[str]:
    """The lines that are no facts, no headings of categories and not blank."""
    facts = {fact.position for fact in Document.parse(text).facts()}
    lines = [line.rstrip("\r") for line in text.split("\n")]
    return [
        line
        for number, line in enumerate(lines)
        if number not in facts and line.strip() and not re.match(r"#{1,2}(?!#)", line)
    ]


# -- all other files --------------------------------------------------------------------------


class Done(NamedTuple):
    """What is merged by its memories: ``store``, where the store lies, "" where it is not carried;
    ``folders``, the prefixes of the scopes that were merged."""

    store: str
    folders: Collection[str]

    def covers(self, path: str) -> bool:
        """Whether ``path`` is the store's, or shows what is in it."""
        if not self.store:  # then they show a store that only its host has
            return _SHOWN.fullmatch(path) is not None
        found = _SHOWN.fullmatch(path)
        in_scope = found is not None and (found[1] or "") in self.folders
        return in_scope or f"{path}/".startswith(f"{self.store}/")


def other_files(
    place: Path, base: Files, theirs: Files, skip: Callable[[str], bool], done: Done
) -> dict[str, bytes | None]:
    """What is to be written to ``place`` of the files that have nothing to do with memories.

    ``None`` as content: it is to be deleted. What both changed stays as it is here, and theirs
    is put beside it. ``skip`` says which paths are never carried, ``done`` what is merged.
    """
    ours = read_directory(place, skip)
    found: dict[str, bytes | None] = {}
    for path in sorted(base.keys() | theirs.keys()):
        before, here, there = base.get(path), ours.get(path), theirs.get(path)
        if skip(path) or done.covers(path) or there in (before, here):
            continue
        if here in (before, None):
            found[path] = there
        elif there is not None:
            folder, slash, name = path.rpartition("/")
            name = name.encode()[:200].decode(errors="ignore")  # names end at 255 bytes
            copy = f"{folder}{slash}{name}.conflict-{_digest(there)}"
            log.warning("%s was changed on two hosts; the other's is in %s", path, copy)
            found[copy] = there
    return found


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=4).hexdigest()


def copies(stack: ExitStack, base: Files, theirs: Files, kind: str, path: str) -> list[Any]:
    """The stores of both archives, open until ``stack`` ends."""
    return [stack.enter_context(_opened_copy(found, kind, path)) for found in (base, theirs)]
