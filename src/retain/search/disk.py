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
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import files, text
from ..errors import StoreCorrupt
from .columns import Columns
from .index import ScopeIndex, Stretch
from .kept import POSTINGS, Arrays, IndexFile, KeptSegment, packed
from .vector import Vectors

__all__ = ["IndexFolder", "damaged_files"]

log = logging.getLogger("retain")

FORMAT = 1
_ABANDONED = 300.0  # seconds after which a temporary file is nobody's
_NAME = re.compile(r"([0-9a-f]{16})-([0-9a-f]{16})-[0-9a-f]{32}\.(?:terms|[0-9a-f]{16}\.vectors)")
_UNFIT = (StoreCorrupt, ValueError, KeyError, TypeError, IndexError)


@dataclass(frozen=True)
class IndexFolder:
    """Where the index of one scope of a store is kept.

    ``store``: which store it is, so that another one's files in its place are told. ``worth``:
    rows from which on an index is kept; a smaller one is made in no time.
    """

    path: Path
    store: str
    worth: int = 256

    # -- reading ---------------------------------------------------------------------------

    def load(self, index: ScopeIndex) -> None:
        """Put what is kept into an empty index, as far as it goes."""
        unfit: set[Path] = set()
        while path := self._next(index.revision, unfit):
            try:
                stretch, columns, gone = self._stretch(path, index.columns.size)
            except _UNFIT as error:
                log.info("%s: it is made anew: %s", path, error)
                unfit.add(path)
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            except OSError as error:  # another process has merged it meanwhile, or not now
                log.debug("%s: it is left out: %s", path, error)
                unfit.add(path)
            else:
                embedder = index.embedder
                vectors = None
                if embedder is not None:
                    vectors = self._vectors(path, embedder.name, columns.size)
                index.load(stretch, columns, vectors)
                index.gone.extend(gone)

    def _next(self, revision: int, unfit: set[Path]) -> Path | None:
        """The file that leads furthest from a revision on."""
        best, furthest = None, revision
        for path in self._stretches():
            since, until = _bounds(path)
            begins = since == 0 if revision == 0 else since <= revision
            if path not in unfit and begins and until > furthest:
                best, furthest = path, until
        return best

    def _stretches(self) -> list[Path]:
        try:
            found = sorted(self.path.glob("*.terms"))
        except OSError:
            return []
        return [path for path in found if _NAME.fullmatch(path.name)]

    def _stretch(self, path: Path, first: int) -> tuple[Stretch, Columns, list[str]]:
        """A stretch to stand from ``first`` on, the columns of its rows, and ids just deleted."""
        file = self._open(path)
        header = file.header
        segment = KeptSegment.of(file, first, header["size"])
        columns = Columns.of(file.arrays)
        if columns.size != header["size"] or (header["since"], header["until"]) != _bounds(path):
            raise StoreCorrupt("its parts don't fit each other")
        dropped = tuple(header["dropped"])
        stretch = Stretch(segment, header["since"], header["until"], dropped, path)
        return stretch, columns, header["gone"]

    def _open(self, path: Path) -> IndexFile:
        file = IndexFile(path)
        expected = {"format": FORMAT, "signature": text.signature(), "store": self.store}
        for name, value in expected.items():
            if file.header.get(name) != value:
                raise StoreCorrupt(f"its {name} is {file.header.get(name)!r}, not {value!r}")
        return file

    def _vectors(self, path: Path, embedder: str, size: int) -> Vectors | None:
        """The vectors kept with a stretch; those of ``size`` rows, some of them yet to be made."""
        place = _vectors_of(path, embedder)
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
        path = self._like(stretch, columns)
        if path is None:
            path = self._write_stretch(stretch, columns, gone)
        try:
            kept = KeptSegment.of(self._open(path), segment.first, segment.size)
        except (FileNotFoundError, StoreCorrupt):  # another process has what stands for it
            return None
        saved = replace(stretch, segment=kept, file=path)
        with index.lock:
            if index.generation != generation:
                return None
            index.stretches[number] = saved
        return saved

    def _like(self, stretch: Stretch, columns: Columns) -> Path | None:
        """The file in which another one has kept the same rows, for another embedder perhaps."""
        for path in self._stretches():
            if _bounds(path) == (stretch.since, stretch.until):
                with suppress(OSError, *_UNFIT):
                    other, found, _ = self._stretch(path, 0)
                    names = ("key", "revision", "live")
                    same = all(np.array_equal(found[name], columns[name]) for name in names)
                    if same and other.dropped == stretch.dropped:
                        return path
        return None

    def _write_stretch(self, stretch: Stretch, columns: Columns, gone: list[str]) -> Path:
        segment = stretch.segment
        about = {
            "since": stretch.since,
            "until": stretch.until,
            "size": segment.size,
            "dropped": stretch.dropped,
            "gone": gone,
        }
        name = f"{stretch.since:016x}-{stretch.until:016x}-{uuid.uuid4().hex}.terms"
        files.make_folder(self.path)
        postings = {name: getattr(segment, name) for name in POSTINGS}
        self._write(self.path / name, about, {**columns.arrays(), **postings})
        return self.path / name

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

    def _made(self, place: Path) -> int:
        """How many vectors a file has, another process's perhaps."""
        try:
            return int(self._open(place).header["made"])
        except (OSError, *_UNFIT):
            return -1

    def _write(self, path: Path, about: Mapping[str, Any], arrays: Arrays) -> None:
        header = {"format": FORMAT, "signature": text.signature(), "store": self.store, **about}
        files.write_atomically(path, packed(header, arrays))

    def _clear_up(self, kept: Sequence[Path]) -> None:
        """Remove files that ``kept`` ones stand for, and what killed writers left."""
        with files.store_errors(self.path):
            for path in list(self.path.iterdir()):
                with suppress(OSError):  # another process was quicker, or has it open
                    if path.suffix == ".tmp":
                        doomed = time.time() - path.stat().st_mtime > _ABANDONED
                    elif _NAME.fullmatch(path.name):
                        terms = _terms_of(path)
                        doomed = any(_stands_for(one, terms) for one in kept) or not terms.exists()
                    else:
                        continue
                    if doomed:
                        path.unlink()

    def remove(self) -> None:
        """Delete all of it. Raises ``StoreFailed``."""
        files.remove_folder(self.path)


def damaged_files(folder: Path, *, remove: bool = False) -> list[Path]:
    """The index files of a store, of every scope, that can't be read whole.

    ``folder``: where the scopes' folders are. With ``remove`` they are deleted: what they held
    is made anew from the store by whoever asks next.
    """
    damaged = []
    for path in sorted([*folder.glob("*/*.terms"), *folder.glob("*/*.vectors")]):
        try:
            IndexFile(path).verify_all()
        except FileNotFoundError:  # another process has merged it meanwhile
            continue
        except (OSError, ValueError, KeyError, TypeError):
            damaged.append(path)
            if remove:
                with files.store_errors(path):
                    path.unlink(missing_ok=True)
    return damaged


def _bounds(path: Path) -> tuple[int, int]:
    since, until, _ = path.name.split("-", 2)
    return int(since, 16), int(until, 16)


def _stands_for(one: Path, other: Path) -> bool:
    """Whether a file has all that another one has; of two that have the same, one does."""
    (since, until), (begins, ends) = _bounds(one), _bounds(other)
    if (since, until) == (begins, ends):
        return one.name < other.name
    return since <= begins and ends <= until


def _vectors_of(path: Path, embedder: str) -> Path:
    digest = hashlib.blake2b(embedder.encode(), digest_size=8).hexdigest()
    return path.with_suffix(f".{digest}.vectors")


def _terms_of(path: Path) -> Path:
    return path.with_name(path.name.split(".")[0] + ".terms")
