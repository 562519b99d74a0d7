"""The files of a scope's index, kept in the database beside the memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import StoreFailed
from ..scope import Scope
from .postgres_calls import Call
from .postgres_schema import kept

__all__ = ["PostgresFiles"]

_PART = 8 << 20  # bytes that are sent at once
_ABANDONED = 300.0  # seconds after which parts without the first are nobody's


class PostgresFiles:
    """:class:`~retain.files.Files` in a table, each in parts.

    Part 0 is written last, and makes the file be there: a reader sees all of it or nothing.
    """

    def __init__(self, rows: Callable[[Call], list[Any]], scope: Scope) -> None:
        self._rows = rows
        self._key = kept(scope.key)

    def names(self) -> list[str]:
        """The names of the files that are there."""
        return [name for name, _ in self._call("file_names")]

    def open(self, name: str) -> bytes:
        """What is in a file."""
        parts: list[bytes] = []
        while (part := self._call("file_part", name=name, part=len(parts))[0][0]) is not None:
            parts.append(part)
            if len(part) < _PART:
                return parts[0] if len(parts) == 1 else b"".join(parts)
        raise StoreFailed(f"the database has no file {name}: another process has merged it")

    def write(self, name: str, data: Sequence[bytes | memoryview]) -> None:
        """Keep a file; not of a scope that was forgotten meanwhile."""
        whole = memoryview(b"".join(data))
        # The last part is shorter than the others, which tells that it is the last.
        for number in range(len(whole) // _PART, -1, -1):
            part = whole[number * _PART : (number + 1) * _PART]
            if not self._call("put_part", name=name, part=number, data=bytes(part))[0][0]:
                return

    def remove(self, names: Sequence[str]) -> None:
        """Delete these, as far as they are there."""
        self._call("drop_files", names=list(names), abandoned=_ABANDONED)

    def sweep(self) -> None:
        """Delete what killed writers left."""
        self.remove([])

    def clear(self) -> None:
        """Delete all of them."""
        self._call("drop_files", names=None, abandoned=0.0)

    def _call(self, function: str, **arguments: Any) -> list[Any]:
        return self._rows(Call(function, {"key": self._key, **arguments}))
