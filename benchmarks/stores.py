"""Texts, a store that holds them, and queries for them: as many as asked for, made once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .measuring import Child, tell
from .texts import Corpus

__all__ = ["SAMPLE", "Filled", "Stores"]

SAMPLE = 1_000  # texts that queries are drawn from, one each: none is asked twice


@dataclass(frozen=True, slots=True)
class Filled:
    """A closed store of ``size`` texts in ``folder``, its index in place, and queries for it.

    ``peak``: MB that the process had at most which wrote it and made the index, ``None`` where
    the system does not tell.
    """

    folder: Path
    kind: str
    size: int
    queries: list[str]
    peak: float | None

    def batches(self) -> Iterator[list[str]]:
        """The texts again, in their order."""
        return _corpus(self.kind).batches(self.size)

    def opened(self, folder: Path | None = None) -> Child:
        """The store in a process of its own; a copy of it, if a ``folder`` is given."""
        if folder is not None:
            shutil.copytree(self.folder, folder)
        return Child(self.kind, folder or self.folder)


def _corpus(kind: str) -> Corpus:
    return Corpus(known=kind == "hybrid")


class Stores:
    """Stores in ``folder``, one a kind and size."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[str, int], Filled] = {}

    def of(self, size: int, kind: str = "retain") -> Filled:
        """The store of ``size`` texts; ``kind``: ``retain`` or ``hybrid`` (see ``engines.py``)."""
        if (kind, size) not in self._made:
            tell(f"  a store of {size:,} texts, {kind}")
            self._made[kind, size] = self._filled(size, kind)
        return self._made[kind, size]

    def _filled(self, size: int, kind: str) -> Filled:
        folder = self._folder / f"{kind}-{size}"
        corpus, sample = _corpus(kind), list[str]()
        with Child(kind, folder) as child:
            for texts in corpus.batches(size):
                child.call("add", texts)
                sample += texts[:: max(1, size // SAMPLE)]
            queries = [corpus.query(sample) for _ in range(SAMPLE)]
            child.call("ready", queries[0])
            peak = child.ask("memory", "VmHWM")
        return Filled(folder, kind, size, queries, peak)
