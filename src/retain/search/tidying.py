"""What an index does off its callers' path: merging segments, dropping dead rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .columns import Columns
from .index import ScopeIndex, Stretch, joined
from .segment import merged
from .vector import Vectors

__all__ = ["tidy"]

Mask = npt.NDArray[np.bool_]

_TIER = 4  # a segment is merged with a later one that is more than a fourth of it
_NEW = 8  # all are merged when an eighth is new …
_DEAD = 4  # … or a fourth is dead
_QUICK = 20_000  # rows that are merged in no time: there, nothing dead is kept


def tidy(index: ScopeIndex) -> None:
    """Merge what is worth it; callers are kept waiting only while the result is put in place.

    Have ``index.care``. Raises ``StoreCorrupt`` where a file of it is damaged.
    """
    with index.lock:
        generation, stretches = index.generation, list(index.stretches)
        rows = index.folded
        dead = rows - int(np.count_nonzero(index.columns["live"][:rows]))
    if not stretches:
        return
    new = rows - stretches[0].segment.size
    if dead * _DEAD > rows or new * _NEW > rows or (dead and rows < _QUICK):
        _fold(index)
        return
    at = len(stretches) - 1
    while at > 1 and stretches[at - 1].segment.size < _TIER * (rows - stretches[at].segment.first):
        at -= 1
    if 0 < at < len(stretches) - 1:
        _verify(stretches[at:])
        one = joined(stretches[at:])
        with index.lock:
            if index.generation == generation:
                index.generation += 1
                index.stretches[at : len(stretches)] = [one]


def _fold(index: ScopeIndex) -> None:
    """One segment of all that is live, and rows numbered anew.

    It holds all changes that there were when it was begun, so that it stands for every other.
    """
    with index.lock:
        index.seal(1)
        generation, stretches, until = index.generation, list(index.stretches), index.revision
        live = index.columns["live"].copy()
    _verify(stretches)
    segment = merged([stretch.segment for stretch in stretches], live)
    one = Stretch(segment, 0, until)
    compacted = None if live.all() else _compacted(index, generation, live)
    with index.lock:
        if index.generation == generation:
            index.fold(one, len(stretches), live, compacted)


def _compacted(
    index: ScopeIndex, generation: int, live: Mask
) -> tuple[Columns, Vectors | None] | None:
    """The columns and vectors of the rows that stay, made while callers go on."""
    with index.lock:
        if index.generation != generation:
            return None
        columns = index.columns.part(0, len(live))
        parts = index.vectors_of(0, len(live))
    columns.keep(live, room=len(live) // 8 + 1_000)
    if index.embedder is None:
        return columns, None
    return columns, Vectors.gathered(index.embedder.dimensions, parts, live)


def _verify(stretches: Sequence[Stretch]) -> None:
    for stretch in stretches:
        stretch.segment.verify()
