"""A memory directory whose store is broken, put right from all that is left of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

from .. import files
from ..errors import InvalidValue, StoreCorrupt
from ..memories.agent import AgentMemory
from ..memories.knowledge import DATABASE, scope_folder
from ..scope import Scope
from ..search.disk import damaged_files
from ..stores.base import Problem
from ..stores.sqlite import SQLiteStore
from .importing import Import, ImportReport
from .selectools import read_selectools, tables

__all__ = ["mend"]


def mend(place: Path, *, fix: bool = False, allow_network: bool = False) -> list[Problem]:
    """Check the store of the memory directory ``place`` and its index, with ``fix`` repair them.

    A store that can't be repaired where it stands is replaced by what can be read of it; the
    broken file is kept beside it. What it has lost is then taken from MEMORY.md and the logs,
    of every scope. Returns what was found, nothing if all is well. Raises ``StoreFailed``
    where the disk refuses, ``InvalidValue`` where the file belongs to another program.
    """
    damaged = damaged_files(files.beside(place / DATABASE, "-index"), remove=fix)
    problems = [Problem(f"{path} is damaged; it can be made anew", fix) for path in damaged]
    return _mend_store(place, fix, allow_network) + problems


def _mend_store(place: Path, fix: bool, allow_network: bool) -> list[Problem]:
    path = place / DATABASE
    if not path.exists() or not path.stat().st_size:
        problems = [Problem(f"{path} is missing or empty", fix)]
        return problems + _recovered(place, allow_network) if fix else problems
    try:
        with SQLiteStore(path, allow_network=allow_network) as store:
            problems = store.check(fix)
            if not (fix and problems) or not store.check():
                return problems
    except StoreCorrupt as error:
        cause = error.__cause__  # without the error's advice, which is to do what is done here
        problems = [Problem(f"{path}: {cause}" if cause else str(error), fix)]
        if not fix:
            return problems
    _refuse_foreign(path)
    return problems + SQLiteStore.repair(path) + _recovered(place, allow_network)


def _recovered(place: Path, allow_network: bool) -> list[Problem]:
    """Take from the files of every scope what the new store hasn't got."""
    problems = []
    with SQLiteStore(place / DATABASE, allow_network=allow_network) as store:
        for folder, scope in _folders(place, store.scopes()):
            # without it nothing counts as deleted that the new store hasn't got
            with files.store_errors(folder):
                (folder / ".MEMORY.synced").unlink(missing_ok=True)
            count = 0 if scope is None else _recover(folder, AgentMemory(store, scope=scope))
            if count:
                text = f"{count} memories of scope {scope} were taken from MEMORY.md and the logs"
                problems.append(Problem(text, True))
    return problems


def _refuse_foreign(path: Path) -> None:
    try:
        found = tables(path)
    except sqlite3.Error:
        return
    if found and not found & {"place", "memories"}:
        raise InvalidValue(f"{path} is a SQLite file of another program, and is left alone")


def _folders(place: Path, known: Iterable[Scope]) -> Iterator[tuple[Path, Scope | None]]:
    """The folders with files of a scope; ``None`` where the name doesn't tell which."""
    scopes = {scope_folder(place, scope): scope for scope in known}
    yield place, Scope()
    for folder in sorted((place / "scopes").glob("*")):
        if folder.is_dir():
            yield folder, scopes.get(folder) or _scope(place, folder)


def _scope(place: Path, folder: Path) -> Scope | None:
    parts = dict(part.partition("=")[::2] for part in folder.name.split(","))
    try:
        scope = Scope(**{name: unquote(value) for name, value in parts.items()})
    except (TypeError, ValueError):
        return None
    return scope if scope_folder(place, scope) == folder else None


def _recover(folder: Path, memory: AgentMemory) -> int:
    """Take from the files of a scope what its store hasn't got; how many memories."""
    if not any((folder / name).exists() for name in ("MEMORY.md", "logs")):
        return 0
    task = Import(ImportReport())
    for read in read_selectools(folder):
        if read.memory is not None:
            task.add(memory, read)
    return task.finish().imported
