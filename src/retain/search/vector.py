"""Vectors of an index's rows: int8, scanned whole and exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Vectors", "quantised", "similarities"]

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]


def quantised(vectors: Floats) -> tuple[Bytes, Floats]:
    """Vectors as whole numbers from -127 to 127, and what one is worth in each.

    ``vectors``: float32, (n, dimensions). Returns (n, dimensions) int8 and (n,) float32; a
    vector of zeros stays one.
    """
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    scale = (largest / 127.0).astype(np.float32)
    divisor = np.where(scale > 0, scale, 1.0).astype(np.float32)
    return np.rint(vectors / divisor[:, None]).astype(np.int8), scale


def similarities(query: Floats, rows: Bytes, scale: Floats) -> Floats:
    """The cosine of ``query`` with each row, both of unit length: float32, (n,).

    The query is quantised as the rows are, so that whole numbers are multiplied; what rounding
    adds beyond 1 is cut.
    """
    import simsimd

    if not len(rows):
        return np.zeros(0, np.float32)
    numbers, worth = quantised(query[None, :])
    found = np.asarray(simsimd.cdist(numbers, rows, metric="dot"))[0]
    result: Floats = (found * (worth[0] * scale)).astype(np.float32)
    return np.clip(result, -1.0, 1.0, out=result)


class Vectors:
    """A vector for each row of a stretch of rows, some of which may still have to be made.

    ``made``: which rows have theirs. A row without one is like nothing.
    """

    def __init__(self, dimensions: int, size: int = 0) -> None:
        self.dimensions = dimensions
        self.size = size
        self._rows: Bytes = np.zeros((size, dimensions), np.int8)
        self._scale: Floats = np.zeros(size, np.float32)
        self._made = np.zeros(size, np.bool_)
        self.fixed = False
        """Whether they lie in a file and no longer change."""
        self._cost = 0

    @classmethod
    def of(cls, rows: Bytes, scale: Floats, made: Mask | None = None, cost: int = 0) -> Vectors:
        """Vectors of a file, which stay there if all are made; ``cost``: bytes that it counts."""
        vectors = cls(rows.shape[1])
        made = np.ones(len(rows), np.bool_) if made is None else made
        vectors.size = len(rows)
        vectors.fixed = bool(made.all())
        vectors._cost = cost if vectors.fixed else 0
        vectors._rows = rows if vectors.fixed else rows.copy()
        vectors._scale, vectors._made = scale.copy(), made.copy()
        return vectors

    @property
    def rows(self) -> Bytes:
        """int8, (size, dimensions)."""
        return self._rows[: self.size]

    @property
    def scale(self) -> Floats:
        """What one is worth in each row, float32, (size,)."""
        return self._scale[: self.size]

    @property
    def made(self) -> npt.NDArray[np.bool_]:
        """Which rows have their vector."""
        return self._made[: self.size]

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use; those of a mapped file are not."""
        rows = self._cost if self.fixed else self._rows.nbytes
        return self._made.nbytes + self._scale.nbytes + rows

    @classmethod
    def gathered(
        cls, dimensions: int, parts: Sequence[tuple[Bytes, Floats, Mask]], kept: Mask
    ) -> Vectors:
        """Those ``kept`` of the parts one after the other: rows, scales, which are made."""
        vectors = cls(dimensions, int(np.count_nonzero(kept)))
        at = to = 0
        for rows, scale, made in parts:
            mask = kept[at : at + len(rows)]
            at, first, to = at + len(rows), to, to + int(np.count_nonzero(mask))
            np.compress(mask, rows, axis=0, out=vectors._rows[first:to])
            vectors._scale[first:to], vectors._made[first:to] = scale[mask], made[mask]
        return vectors

    def kept(self, rows: npt.NDArray[np.bool_]) -> Vectors:
        """The same vectors, of the rows of a mask only (those beyond its end are not there)."""
        mask = rows[: self.size]
        if mask.all():
            return self
        kept = Vectors(self.dimensions)
        kept._rows, kept._scale, kept._made = self.rows[mask], self.scale[mask], self.made[mask]
        kept.size = len(kept._made)
        return kept

    def append(self, count: int) -> None:
        """Room for ``count`` more, to be made."""
        size = self.size + count
        if size > len(self._made):
            room = size + (self.size // 2 + 64 if self.size else 0)
            rows = np.zeros((room, self.dimensions), np.int8)
            scale, made = np.zeros(room, np.float32), np.zeros(room, np.bool_)
            rows[: self.size], scale[: self.size] = self.rows, self.scale
            made[: self.size] = self.made
            self._rows, self._scale, self._made = rows, scale, made
        self.size = size

    def put(self, places: npt.NDArray[np.intp], vectors: Floats) -> None:
        """Set the vectors at ``places``."""
        self._rows[places], self._scale[places] = quantised(vectors)
        self._made[places] = True
