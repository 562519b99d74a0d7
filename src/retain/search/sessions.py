"""Which turns stand beside each other: the sessions of an index's rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .columns import Columns

__all__ = ["Sessions"]

Rows = npt.NDArray[np.int32]
_NONE = -1


class Sessions:
    """The turns of each session in order: by time, then turn number, then as they came.

    ``before``, ``after``: the rows of the turns next to each row's, int32, -1 for none.
    ``number``: which session a row belongs to, from 0, -1 for none. ``count``: how many there
    are. Rows that are not live stand nowhere.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        size = columns.size
        self._before: Rows = np.full(size, _NONE, np.int32)
        self._after: Rows = np.full(size, _NONE, np.int32)
        self._number: Rows = np.full(size, _NONE, np.int32)
        self._size = size
        self._measures: tuple[npt.NDArray[np.float64], int] | None = None
        turns = np.flatnonzero((columns["session"] != 0) & columns["live"])
        session = columns["session"][turns]
        keys = (columns["revision"][turns], columns["turn"][turns], columns["created"][turns])
        order = np.lexsort((turns, *keys, session))
        rows, session = turns[order].astype(np.int32), session[order]
        together = session[1:] == session[:-1]
        self._after[rows[:-1][together]] = rows[1:][together]
        self._before[rows[1:][together]] = rows[:-1][together]
        begins = np.ones(len(rows), np.bool_)
        begins[1:] = ~together
        self._number[rows] = np.cumsum(begins) - 1
        ends = np.ones(len(rows), np.bool_)
        ends[:-1] = ~together
        hashes = session[begins].tolist()
        self.count = len(hashes)
        self._numbers = dict(zip(hashes, range(self.count), strict=True))
        self._last = dict(zip(range(self.count), rows[ends].tolist(), strict=True))

    @property
    def before(self) -> Rows:
        """The row of the turn before each row's."""
        return self._before[: self._size]

    @property
    def after(self) -> Rows:
        """The row of the turn after each row's."""
        return self._after[: self._size]

    @property
    def number(self) -> Rows:
        """The session of each row."""
        return self._number[: self._size]

    @property
    def lengths(self) -> npt.NDArray[np.float64]:
        """The terms of each session's turns, all together."""
        return self._measured()[0]

    @property
    def inhabited(self) -> int:
        """How many sessions have a turn left."""
        return self._measured()[1]

    @property
    def mean(self) -> float:
        """The terms of a session, on the average."""
        return float(self.lengths.sum()) / max(1, self.inhabited)

    def having(self, found: int, rows: int, holders: int) -> float:
        """How many sessions have a word: those ``found``, by these ``rows`` that hold it."""
        return found

    def _measured(self) -> tuple[npt.NDArray[np.float64], int]:
        if self._measures is None:
            rows = np.flatnonzero(self.number >= 0)
            number = self.number[rows]
            lengths = np.bincount(number, self._columns["length"][rows], self.count)
            inhabited = int(np.count_nonzero(np.bincount(number, minlength=self.count)))
            self._measures = lengths.astype(np.float64), inhabited
        return self._measures

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use, as far as they grow with the rows."""
        return 3 * self._before.nbytes + 200 * self.count

    def add(self, row: int) -> None:
        """Put the new row in its place."""
        self._measures = None
        if row >= len(self._before):
            self._before, self._after, self._number = (
                np.concatenate([array, np.full(max(64, row // 2), _NONE, np.int32)])
                for array in (self._before, self._after, self._number)
            )
        self._size = row + 1
        session = int(self._columns["session"][row])
        if not session:
            return
        number = self._numbers.setdefault(session, self.count)
        self.count = max(self.count, number + 1)
        self._number[row] = number
        # Nearly always the last: so the place is looked for from there.
        later, place = _NONE, self._last.get(number, _NONE)
        while place != _NONE and self._key(place) > self._key(row):
            later, place = place, int(self._before[place])
        self._link(place, row)
        self._link(row, later)
        if later == _NONE:
            self._last[number] = row

    def remove(self, row: int) -> None:
        """Take a row out; its neighbours are now each other's."""
        self._measures = None
        number = int(self._number[row])
        if number == _NONE:
            return
        before, after = int(self._before[row]), int(self._after[row])
        self._link(before, after)
        if after == _NONE:
            self._last[number] = before
        self._before[row] = self._after[row] = self._number[row] = _NONE

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        """Only the rows of a mask stay, numbered anew; the others must stand nowhere."""
        numbers = np.append(np.cumsum(kept, dtype=np.int32) - 1, _NONE).astype(np.int32)
        self._before = numbers[self.before][kept]
        self._after = numbers[self.after][kept]
        self._number = self.number[kept]
        self._size = len(self._number)
        self._last = {number: int(numbers[row]) for number, row in self._last.items()}

    def _link(self, before: int, after: int) -> None:
        if before != _NONE:
            self._after[before] = after
        if after != _NONE:
            self._before[after] = before

    def _key(self, row: int) -> tuple[Any, ...]:
        columns = self._columns
        return (
            columns["created"][row],
            columns["turn"][row],
            columns["revision"][row],
            row,
        )
