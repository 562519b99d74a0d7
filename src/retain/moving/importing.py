"""Memories in: what was read of a source is written, once, in batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from .. import clock
from ..errors import InvalidType, InvalidValue, Rejected
from ..memories.base import Face
from ..models import Filter, Memory
from ..scope import Scope
from ..stores.base import fact_key
from .export import Progress
from .reading import Read
from .records import same
from .sources import FORMATS, opened

__all__ = ["ImportReport", "Trouble", "import_path"]

_BATCH = 1_000  # memories a transaction


@dataclass(frozen=True, slots=True)
class Trouble:
    """A record that was not imported: where it stands, and why."""

    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


@dataclass
class ImportReport:
    """What an import did with each record that it met.

    ``imported``: written. ``replaced``: written over one of the same id. ``known``: there
    already, and the same. ``duplicates``: an equal persistent fact of the category was there
    under another id. ``expired``: over its time to live. ``conflicts``: the id is there with
    something else. ``unreadable``: no memory. ``rejected``: refused by a hook.
    """

    format: str = "jsonl"
    imported: int = 0
    replaced: int = 0
    known: int = 0
    duplicates: int = 0
    expired: int = 0
    conflicts: list[Trouble] = field(default_factory=list)
    unreadable: list[Trouble] = field(default_factory=list)
    rejected: list[Trouble] = field(default_factory=list)

    @property
    def troubles(self) -> list[Trouble]:
        """Every record that should have come in and did not."""
        return [*self.unreadable, *self.conflicts, *self.rejected]

    @property
    def total(self) -> int:
        """How many records were met."""
        written = self.imported + self.replaced
        return written + self.known + self.duplicates + self.expired + len(self.troubles)

    def to_dict(self) -> dict[str, Any]:
        """The report as a JSON object."""
        lists = {name: getattr(self, name) for name in ("conflicts", "unreadable", "rejected")}
        return {
            "format": self.format,
            "imported": self.imported,
            "replaced": self.replaced,
            "known": self.known,
            "duplicates": self.duplicates,
            "expired": self.expired,
            **{
                name: [{"where": each.where, "reason": each.reason} for each in found]
                for name, found in lists.items()
            },
        }


def import_path(
    memory: Face,
    source: str | os.PathLike[str] | BinaryIO,
    *,
    format: str = "auto",
    replace: bool = False,
    dry_run: bool = False,
    scoped: Callable[[Scope], Face] | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Import every memory of ``source`` that can be read into ``memory``, in its scope.

    ``source``: a file, a directory, or an open binary file. ``format``: one of ``FORMATS``, of
    which docs/moving-in.md tells; ``auto`` finds out. Ids, times, types, tags and counts are
    kept; text goes through the hooks of ``memory``. A record whose id is there with something
    else is a conflict and left out, or with ``replace`` put in its place. ``dry_run``: report,
    write nothing. ``scoped``: gives the memory for a record's own scope, to keep it.
    ``progress``: told how far it is.

    Written in transactions of 1,000; an import that was broken off can be run again, for what
    is there already is left alone. The source is never changed. Raises ``InvalidValue`` where
    it is of no known format, ``StoreFailed`` where it can't be read or the store not written.

    >>> import io
    >>> from retain import AgentMemory
    >>> memory = AgentMemory()
    >>> report = import_path(memory, io.BytesIO(b'{"content": "Likes tea"}'))
    >>> report.imported, memory.recall("tea")[0].memory.content
    (1, 'Likes tea')
    """
    if not isinstance(memory, Face):
        raise InvalidType(f"a {type(memory).__name__} is no memory to import into")
    if format not in FORMATS:
        raise InvalidValue(f"format={format!r} is none of {', '.join(FORMATS)}")
    with opened(source, format) as (found, size, reads):
        task = Import(ImportReport(found), replace=replace, dry_run=dry_run)
        for read in reads:
            target = memory
            if scoped is not None and read.memory is not None:
                target = scoped(read.memory.scope)
            task.add(target, read)
            if progress is not None:
                progress(read.at, size)
        return task.finish()


# -- the memory ------------------------------------------------------------------------------

_Batch = dict[str, tuple[str, Memory]]  # where it stands and the memory, by id


class Import:
    """Writes what is read in batches, a batch for each memory that it goes to."""

    def __init__(
        self, report: ImportReport, *, replace: bool = False, dry_run: bool = False
    ) -> None:
        self.report = report
        self._replace = replace
        self._dry_run = dry_run
        self._batches: dict[Face, _Batch] = {}
        self._facts: dict[Face, dict[str | None, Memory]] = {}  # what a dry run meets
        self._now = clock.now()

    def add(self, target: Face, read: Read) -> None:
        """Take a record, for ``target``; it is written with others."""
        where, memory = read.where, read.memory
        if memory is None:
            self.report.unreadable.append(Trouble(where, read.problem))
            return
        if memory.is_expired(self._now):
            self.report.expired += 1
            return
        batch = self._batches.setdefault(target, {})
        if memory.id in batch:
            earlier = batch[memory.id][1]
            if same(earlier, memory):
                self.report.known += 1
                return
            if not self._replace:
                self._conflict(where, memory)
                return
            self.report.replaced += 1
        batch[memory.id] = (where, memory)
        if len(batch) >= _BATCH:
            self._write(target, self._batches.pop(target))

    def finish(self) -> ImportReport:
        """Write what waits; what was done."""
        for target, batch in self._batches.items():
            self._write(target, batch)
        self._batches = {}
        return self.report

    def _conflict(self, where: str, memory: Memory) -> None:
        reason = f"the id {memory.id!r} is there already, with something else"
        self.report.conflicts.append(Trouble(where, reason))

    def _write(self, target: Face, batch: _Batch) -> None:
        there = {memory.id: memory for memory in target.engine.store.peek(list(batch))}
        fresh: list[tuple[str, Memory]] = []
        for where, memory in batch.values():
            known = there.get(memory.id)
            if known is None or (self._replace and not same(known, memory)):
                fresh.append((where, memory))
            elif same(known, memory):
                self.report.known += 1
            else:
                self._conflict(where, memory)
        # facts as they come, for MEMORY.md; the rest by time, for the logs
        fresh.sort(key=lambda each: (not each[1].persistent, _time_in_log(each[1])))
        self._save(target, fresh, there)

    def _save(
        self, target: Face, fresh: list[tuple[str, Memory]], there: Mapping[str, Memory]
    ) -> None:
        if not fresh:
            return
        memories = [memory for _, memory in fresh]
        try:
            saved = self._dry(target, memories) if self._dry_run else target.remember_many(memories)
        except (Rejected, InvalidValue, InvalidType) as error:
            if len(fresh) == 1:
                self.report.rejected.append(Trouble(fresh[0][0], str(error)))
                return
            middle = len(fresh) // 2  # all or none was written: the halves tell whose fault it is
            self._save(target, fresh[:middle], there)
            self._save(target, fresh[middle:], there)
            return
        for memory, kept in zip(memories, saved, strict=True):
            if kept.id != memory.id:
                self.report.duplicates += 1
            elif memory.id in there:
                self.report.replaced += 1
            else:
                self.report.imported += 1

    def _dry(self, target: Face, memories: Sequence[Memory]) -> list[Memory]:
        """What ``remember_many`` would answer, hooks aside."""
        if target not in self._facts:
            facts = target.engine.store.iterate(narrow=Filter(persistent=True))
            self._facts[target] = {fact_key(fact): fact for fact in facts}
        answers = []
        for memory in memories:
            key = fact_key(memory)
            answers.append(self._facts[target].setdefault(key, memory) if key else memory)
        return answers


def _time_in_log(memory: Memory) -> float:
    return 0.0 if memory.persistent else memory.created_at
