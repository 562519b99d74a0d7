"""What an index knows of each row beside its terms: arrays that grow."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import text
from ..clock import DAY
from ..models import Memory, MemoryType

__all__ = ["KINDS", "LONGEST", "Columns", "id_key", "session_of"]

Mask = npt.NDArray[np.bool_]

KINDS = {kind: number for number, kind in enumerate(MemoryType)}
LONGEST = 4_000
"""Terms of a text beyond which its length no longer tells it from others."""

_TYPES = {
    "created": np.float64,
    "expires": np.float64,
    "importance": np.float64,
    "kind": np.int8,
    "persistent": np.bool_,
    "live": np.bool_,
    "length": np.int32,
    "session": np.uint64,
    "turn": np.int64,
    "revision": np.int64,
    "key": np.uint64,
    "id_end": np.int64,
}
_LAST_TURN = 2**62


class Columns:
    """The columns by row, ``size`` rows of them, and the rows' ids.

    ``created``, ``expires`` (epoch seconds, inf for never), ``importance``: float64. ``kind``,
    ``persistent``, ``live`` (whether the row still counts). ``length``: terms of the text.
    ``session``: a hash of the session it belongs to, 0 for none; ``turn``: its number there.
    ``revision``: the memory's. ``key``: a hash of its id.
    """

    def __init__(self) -> None:
        self.size = 0
        self._arrays: dict[str, npt.NDArray[Any]] = {
            name: np.zeros(0, kind) for name, kind in _TYPES.items()
        }
        self._ids = np.zeros(0, np.uint8)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name][: self.size]

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use."""
        return self._ids.nbytes + sum(array.nbytes for array in self._arrays.values())

    def id(self, row: int) -> str:
        """The id of a row."""
        ends = self._arrays["id_end"]
        start = ends[row - 1] if row else 0
        return self._ids[start : ends[row]].tobytes().decode("utf-8", "surrogatepass")

    @classmethod
    def of_memories(cls, memories: Sequence[Memory], lengths: Sequence[int]) -> Columns:
        """A row for each memory, whose text has so many terms."""
        ids = [memory.id.encode("utf-8", "surrogatepass") for memory in memories]
        expires = [memory.expires_at for memory in memories]
        sessions = [session_of(memory) for memory in memories]
        return cls.of(
            {
                "created": [memory.created_at for memory in memories],
                "expires": [np.inf if ends is None else ends for ends in expires],
                "importance": [memory.importance_score for memory in memories],
                "kind": [KINDS[memory.memory_type] for memory in memories],
                "persistent": [memory.persistent for memory in memories],
                "live": np.ones(len(memories), np.bool_),
                "length": np.minimum(lengths, LONGEST),
                "session": [session for session, _ in sessions],
                "turn": [turn for _, turn in sessions],
                "revision": [memory.revision for memory in memories],
                "key": [id_key(memory.id) for memory in memories],
                "id_end": np.cumsum([len(id) for id in ids]),
                "ids": np.frombuffer(b"".join(ids), np.uint8),
            }
        )

    def extend(self, other: Columns) -> None:
        """All of ``other``'s rows after these."""
        start = int(self["id_end"][-1]) if self.size else 0
        ids, size = other.ids, self.size + other.size
        self._make_room(size, start + len(ids))
        if len(ids):
            self._ids[start : start + len(ids)] = ids
        for name, array in self._arrays.items():
            array[self.size : size] = other[name]
        self._arrays["id_end"][self.size : size] += start
        self.size = size

    def part(self, first: int, end: int) -> Columns:
        """Some rows as they are now; only what can still change of them is copied."""
        part = Columns()
        part.size = end - first
        part._arrays = {name: array[first:end] for name, array in self._arrays.items()}
        start = int(self._arrays["id_end"][first - 1]) if first else 0
        part._arrays["id_end"] = part._arrays["id_end"] - start
        part._arrays["live"] = part._arrays["live"].copy()
        stop = int(part._arrays["id_end"][-1]) if part.size else 0
        part._ids = self._ids[start : start + stop]
        return part

    @property
    def ids(self) -> npt.NDArray[np.uint8]:
        """The ids in UTF-8, one after the other; ``id_end`` says where each ends."""
        return self._ids[: int(self["id_end"][-1]) if self.size else 0]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Every column by its name, and ``ids``."""
        return {**{name: self[name] for name in self._arrays}, "ids": self.ids}

    @classmethod
    def of(cls, arrays: Mapping[str, Any]) -> Columns:
        """Columns as :meth:`arrays` names them, to be read or to extend others."""
        columns = cls()
        columns.size = len(arrays["live"])
        columns._arrays = {name: np.asarray(arrays[name], kind) for name, kind in _TYPES.items()}
        columns._ids = np.asarray(arrays["ids"], np.uint8)
        return columns

    def begin_with(self, front: Columns, count: int, kept: Mask) -> None:
        """Put ``front`` in the place of the first ``count`` rows, of which it has those ``kept``.

        Which of them count is as it is here.
        """
        rest = self.part(count, self.size)
        front._arrays["live"][: front.size] = self["live"][:count][kept]
        front.extend(rest)
        self.size, self._arrays, self._ids = front.size, front._arrays, front._ids

    def keep(self, kept: Mask, room: int = 0) -> None:
        """Only the rows of a mask stay, in their order; with room for so many more."""
        ends = self["id_end"]
        lengths = np.diff(ends, prepend=0)
        letters = np.repeat(kept, lengths)
        ids = self._ids[: len(letters)][letters]
        self._arrays = {name: array[: self.size][kept] for name, array in self._arrays.items()}
        self._arrays["id_end"] = np.cumsum(lengths[kept])
        self._ids = ids
        self.size = len(self._arrays["live"])
        if room:
            self._make_room(self.size + room, len(ids) + 40 * room)

    def _make_room(self, rows: int, letters: int) -> None:
        if rows > len(self._arrays["live"]):
            for name, array in self._arrays.items():
                self._arrays[name] = _grown(array, rows)
        if letters > len(self._ids):
            self._ids = _grown(self._ids, letters)


def _grown(array: npt.NDArray[Any], needed: int) -> npt.NDArray[Any]:
    grown = np.zeros(max(64, needed, len(array) + len(array) // 2), array.dtype)
    grown[: len(array)] = array
    return grown


def id_key(id: str) -> int:
    """A hash of an id, the same in every process."""
    return int.from_bytes(text.key(id), "little")


def session_of(memory: Memory) -> tuple[int, int]:
    """A hash of the session that a turn belongs to (0: it is no turn), and its number there.

    A turn is a memory whose metadata have a ``session`` (text or a number), or a whole number as
    ``turn``. Turns without a session belong to that of their day (UTC).
    """
    turn = memory.metadata.get("turn")
    numbered = isinstance(turn, int) and not isinstance(turn, bool)
    session = memory.metadata.get("session")
    if isinstance(session, (str, int)):
        name = f"\0session\0{session!r}"
    elif numbered:
        name = f"\0day\0{int(memory.created_at // DAY)}"
    else:
        return 0, 0
    number = min(max(turn, 0), _LAST_TURN) if isinstance(turn, int) else 0
    return _hashed(name), number


@functools.lru_cache(maxsize=4096)
def _hashed(name: str) -> int:
    return int.from_bytes(text.key(name), "little") or 1
