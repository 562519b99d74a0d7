"""Indexes in files, beside a store on disk: a new process opens them without making them anew.

A scope has a folder. A file holds a stretch of its index: what the store's changes after one
revision, up to another, put into it (both stand in its name). They are never changed; whoever
merged some writes one more file and removes those that it stands for, so nobody waits for
anybody, and whoever has an old one open keeps it. Vectors lie in a file of their own beside
each, for each embedder.

Files that can't be read, or are another version's or another store's, count as not there. No
byte of one is used before its checksum was seen to be right.
"""

from __future__ import annotations

import hashlib
import logging
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import files, text
from ..errors import StoreCorrupt
from ..files import Files, Folder
from .columns import Columns
from .index import ScopeIndex, Stretch
from .kept import POSTINGS, Arrays, IndexFile, KeptSegment, packed
from .vector import Vectors

__all__ = ["IndexFolder", "damaged_files"]

log = logging.getLogger("retain")

FORMAT = 1
_NAME = re.compile(r"([0-9a-f]{16})-([0-9a-f]{16})-[0-9a-f]{32}\.(?:terms|[0-9a-f]{16}\.vectors)")
_UNFIT = (StoreCorrupt, ValueError, KeyError, TypeError, IndexError)


@dataclass(frozen=True)
class IndexFolder:
    """Where the index of one scope of a store is kept.

    ``store``: which store it is, so that another one's files in its place are told. ``worth``:
    rows from which on an index is kept; a smaller one is made in no time.
    """

    place: Files
    store: str
    worth: int = 256

    # -- reading ---------------------------------------------------------------------------

    def load(self, index: ScopeIndex) -> None:
        """Put what is kept into an empty index, as far as it goes."""
        unfit: set[str] = set()
        while name := self._next(index.revision, unfit):
            try:
                stretch, columns, gone = self._stretch(name, index.columns.size)
            except _UNFIT as error:
                log.info("%s: it is made anew: %s", name, error)
                unfit.add(name)
                self.place.remove([name])
            except OSError as error:  # another process has merged it meanwhile, or not now
                log.debug("%s: it is left out: %s", name, error)
                unfit.add(name)
            else:
                embedder = index.embedder
                vectors = None
                if embedder is not None:
                    vectors = self._vectors(name, embedder.name, columns.size)
                index.load(stretch, columns, vectors)
                index.gone.extend(gone)

    def _next(self, revision: int, unfit: set[str]) -> str | None:
        """The file that leads furthest from a revision on."""
        best, furthest = None, revision
        for name in self._stretches():
            since, until = _bounds(name)
            begins = since == 0 if revision == 0 else since <= revision
            if name not in unfit and begins and until > furthest:
                best, furthest = name, until
        return best

    def _stretches(self) -> list[str]:
        names = self.place.names()
        return [name for name in names if name.endswith(".terms") and _NAME.fullmatch(name)]

    def _stretch(self, name: str, first: int) -> tuple[Stretch, Columns, list[str]]:
        """A stretch to stand from ``first`` on, the columns of its rows, and ids just deleted."""
        file = self._open(name)
        header = file.header
        segment = KeptSegment.of(file, first, header["size"])
        columns = Columns.of(file.arrays)
        if columns.size != header["size"] or (header["since"], header["until"]) != _bounds(name):
            raise StoreCorrupt("its parts don't fit each other")
        dropped = tuple(header["dropped"])
        stretch = Stretch(segment, header["since"], header["until"], dropped, name)
        return stretch, columns, header["gone"]

    def _open(self, name: str) -> IndexFile:
        file = IndexFile(self.place.open(name))
        expected = {"format": FORMAT, "signature": text.signature(), "store": self.store}
        for what, value in expected.items():
            if file.header.get(what) != value:
                raise StoreCorrupt(f"its {what} is {file.header.get(what)!r}, not {value!r}")
        return file

    def _vectors(self, name: str, embedder: str, size: int) -> Vectors | None:
        """The vectors kept with a stretch; those of ``size`` rows, some of them yet to be made."""
        place = _vectors_of(name, embedder)
        try:
            file = self._open(place)
            if file.header["embedder"] != embedder or len(file.arrays["scale"]) != size:
                raise StoreCorrupt("they are other vectors")
            file.verify_all()
            rows, scale, made = (file.arrays[name] for name in ("vectors", "scale", "made"))
        except _UNFIT as error:
            log.info("%s: it is made anew: %s", place, error)
            return None
        except OSError as error:
            log.debug("%s: it is left out: %s", place, error)
            return None
        return Vectors.of(rows, scale, made, file.nbytes)

    # -- writing ---------------------------------------------------------------------------

    def save(self, index: ScopeIndex, still: Callable[[], bool] = lambda: True) -> None:
        """Keep the stretches that are not kept yet, and what is there of their vectors.

        Callers of the index wait only while the result is put in place. ``still``: asked before
        each file whether to go on. Raises ``StoreFailed``.
        """
        with index.lock:
            generation, stretches = index.generation, list(index.stretches)
        if sum(stretch.segment.size for stretch in stretches) < self.worth:
            return
        for number, stretch in enumerate(stretches):
            if stretch.file is None:
                saved = self._save(index, generation, number, stretch) if still() else None
                if saved is None:
                    return
                stretches[number] = saved
            if still():
                self._save_vectors(index, generation, stretches[number])
        self._clear_up([stretch.file for stretch in stretches if stretch.file is not None])

    def _save(
        self, index: ScopeIndex, generation: int, number: int, stretch: Stretch
    ) -> Stretch | None:
        segment = stretch.segment
        with index.lock:
            if index.generation != generation:
                return None
            columns, gone = index.columns.part(segment.first, segment.end), list(index.gone)
        name = self._like(stretch, columns)
        if name is None:
            name = self._write_stretch(stretch, columns, gone)
        try:
            kept = KeptSegment.of(self._open(name), segment.first, segment.size)
        except (FileNotFoundError, StoreCorrupt):  # another process has what stands for it
            return None
        saved = replace(stretch, segment=kept, file=name)
        with index.lock:
            if index.generation != generation:
                return None
            index.stretches[number] = saved
        return saved

    def _like(self, stretch: Stretch, columns: Columns) -> str | None:
        """The file in which another one has kept the same rows, for another embedder perhaps."""
        for name in self._stretches():
            if _bounds(name) == (stretch.since, stretch.until):
                with suppress(OSError, *_UNFIT):
                    other, found, _ = self._stretch(name, 0)
                    parts = ("key", "revision", "live")
                    same = all(np.array_equal(found[part], columns[part]) for part in parts)
                    if same and other.dropped == stretch.dropped:
                        return name
        return None

    def _write_stretch(self, stretch: Stretch, columns: Columns, gone: list[str]) -> str:
        segment = stretch.segment
        about = {
            "since": stretch.since,
            "until": stretch.until,
            "size": segment.size,
            "dropped": stretch.dropped,
            "gone": gone,
        }
        name = f"{stretch.since:016x}-{stretch.until:016x}-{uuid.uuid4().hex}.terms"
        postings = {name: getattr(segment, name) for name in POSTINGS}
        self._write(name, about, {**columns.arrays(), **postings})
        return name

    def _save_vectors(self, index: ScopeIndex, generation: int, stretch: Stretch) -> None:
        """Keep the vectors of a stretch as far as they are made; once all are, use the file's."""
        first, end = stretch.segment.first, stretch.segment.end
        if index.embedder is None or stretch.file is None:
            return
        with index.lock:
            if index.generation != generation or index.in_file(first, end):
                return
            taken = index.vectors_of(first, end)
        rows, scale, made = (np.concatenate(parts) for parts in zip(*taken, strict=True))
        name = index.embedder.name
        place = _vectors_of(stretch.file, name)
        known = self._made(place)
        if known < int(np.count_nonzero(made)):
            about = {"embedder": name, "made": int(np.count_nonzero(made))}
            self._write(place, about, {"vectors": rows, "scale": scale, "made": made})
        if not made.all() and known < len(made):
            return
        vectors = self._vectors(stretch.file, name, len(made))
        if vectors is None or not vectors.fixed:
            return
        with index.lock:
            if index.generation == generation:
                index.settle(first, vectors)

    def _made(self, name: str) -> int:
        """How many vectors a file has, another process's perhaps."""
        try:
            return int(self._open(name).header["made"])
        except (OSError, *_UNFIT):
            return -1

    def _write(self, name: str, about: Mapping[str, Any], arrays: Arrays) -> None:
        header = {"format": FORMAT, "signature": text.signature(), "store": self.store, **about}
        self.place.write(name, packed(header, arrays))

    def _clear_up(self, kept: Sequence[str]) -> None:
        """Remove files that ``kept`` ones stand for, and what killed writers left."""
        names = self.place.names()
        there = set(names)
        doomed = []
        for name in filter(_NAME.fullmatch, names):
            terms = _terms_of(name)
            if terms not in there or any(_stands_for(one, terms) for one in kept):
                doomed.append(name)
        if doomed:
            self.place.remove(doomed)
        self.place.sweep()

    def remove(self) -> None:
        """Delete all of it. Raises ``StoreFailed``."""
        self.place.clear()


def damaged_files(folder: Path, *, remove: bool = False) -> list[Path]:
    """The index files of a store, of every scope, that can't be read whole.

    ``folder``: where the scopes' folders are. With ``remove`` they are deleted: what they held
    is made anew from the store by whoever asks next.
    """
    damaged = []
    for path in sorted([*folder.glob("*/*.terms"), *folder.glob("*/*.vectors")]):
        try:
            IndexFile(Folder(path.parent).open(path.name)).verify_all()
        except FileNotFoundError:  # another process has merged it meanwhile
            continue
        except (OSError, ValueError, KeyError, TypeError):
            damaged.append(path)
            if remove:
                with files.store_errors(path):
                    path.unlink(missing_ok=True)
    return damaged


def _bounds(name: str) -> tuple[int, int]:
    since, until, _ = name.split("-", 2)
    return int(since, 16), int(until, 16)


def _stands_for(one: str, other: str) -> bool:
    """Whether a file has all that another one has; of two that have the same, one does."""
    (since, until), (begins, ends) = _bounds(one), _bounds(other)
    if (since, until) == (begins, ends):
        return one < other
    return since <= begins and ends <= until


def _vectors_of(name: str, embedder: str) -> str:
    digest = hashlib.blake2b(embedder.encode(), digest_size=8).hexdigest()
    return f"{name.removesuffix('.terms')}.{digest}.vectors"


def _terms_of(name: str) -> str:
    return f"{name.split('.')[0]}.terms"
