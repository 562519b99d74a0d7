"""What an import reads: records one by one, each a memory or what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from ..errors import RetainError
from ..models import Memory, MemoryType
from .json_text import Value
from .records import Identities, to_memory

__all__ = ["Read", "read_one", "read_records"]


class Read(NamedTuple):
    """One record: where it stands, and the memory it is or what is wrong with it.

    ``at``: how far the source is read, in bytes (or in records, where it is no file).
    """

    where: str
    memory: Memory | None
    problem: str
    at: int


def read_one(where: str, at: int, make: Callable[[], Memory]) -> Read:
    """The memory that ``make`` gives, or what is wrong with it, where it raises."""
    try:
        return Read(where, make(), "", at)
    except RetainError as error:
        return Read(where, None, str(error), at)


def read_records(
    values: Iterator[Value], when: float, kind: MemoryType, place: str = ""
) -> Iterator[Read]:
    """The memories among ``values``; ``when`` and ``kind`` as for ``to_memory``."""
    identities = Identities()
    for line, value, problem, at in values:
        where = f"{place}line {line}"
        if problem:
            yield Read(where, None, problem, at)
        else:
            yield read_one(where, at, partial(to_memory, value, identities, when, kind))
