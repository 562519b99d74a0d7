"""What an import reads: records one by one, from JSON lines or a JSON array."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..errors import RetainError
from ..models import Memory, MemoryType
from .records import Identities, to_memory

__all__ = ["Read", "Value", "json_array", "json_lines", "read_records"]

_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[\s,]*")
# Where another element may begin: at the start of a line, or after a comma.
_NEXT = re.compile(r"(?:\n[^\S\n]*|[\]}\"0-9a-z]\s*,\s*)(?=\{)")


class Read(NamedTuple):
    """One record: where it stands, and the memory it is or what is wrong with it.

    ``at``: how far the source is read, in bytes (or in records, where it is no file).
    """

    where: str
    memory: Memory | None
    problem: str
    at: int


class Value(NamedTuple):
    """A JSON value: its line, itself or what is wrong with it, and how far the source is read."""

    line: int
    value: Any
    problem: str
    at: int


def read_records(
    values: Iterator[Value], when: float, kind: MemoryType, place: str = ""
) -> Iterator[Read]:
    """The memories among ``values``; ``when`` and ``kind`` as for ``to_memory``."""
    identities = Identities()
    for line, value, problem, at in values:
        where = f"{place}line {line}"
        if problem:
            yield Read(where, None, problem, at)
            continue
        try:
            yield Read(where, to_memory(value, identities, when, kind), "", at)
        except RetainError as error:
            yield Read(where, None, str(error), at)


def json_lines(file: Iterable[bytes]) -> Iterator[Value]:
    """The values of JSON lines; blank lines are passed over, others never."""
    at = 0
    for number, line in enumerate(file, 1):
        at += len(line)
        if number == 1:
            line = line.removeprefix(_BOM)
        if not line.strip():
            continue
        try:
            value, problem = json.loads(line.decode()), ""
        except (ValueError, RecursionError) as error:
            value, problem = None, _reason(error)
            if not line.endswith(b"\n"):
                problem += ", and the file ends there"
        yield Value(number, value, problem, at)


def json_array(data: bytes) -> Iterator[Value]:
    """The elements of a JSON array, or the values of an object, as far as they can be read.

    After an element that is broken, the next one that can be read is looked for; where the
    array ends before its bracket, that is said.
    """
    # a byte that is no UTF-8 becomes a lone surrogate, which only its own record is refused for
    text = data.removeprefix(_BOM).decode("utf-8", "surrogateescape")
    if text.lstrip()[:1] == "{":
        yield from _values_by_id(text, len(data))
        return
    decoder = json.JSONDecoder()
    lines = _Lines(text)
    at = _skip(text, text.find("[") + 1)
    while at < len(text) and text[at] != "]":
        line = lines.of(at)
        try:
            value, stop = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            reached = max(getattr(error, "pos", 0), at + 1)
            found = _NEXT.search(text, reached - 1)
            stop = found.end() if found else len(text)
            until = f"line {lines.of(stop)}" if found else "the end"
            yield Value(line, None, f"{_reason(error)}; passed over up to {until}", stop)
            if not found:
                return
        else:
            yield Value(line, value, "", stop)
        at = _skip(text, stop)
    if at >= len(text):
        problem = "the file ends in the middle of the array: what came after is lost"
        yield Value(lines.of(at), None, problem, at)
    elif text[at + 1 :].strip():
        yield Value(lines.of(at), None, "something follows the end of the array", len(text))


def _values_by_id(text: str, size: int) -> Iterator[Value]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield Value(1, None, _reason(error), size)
        return
    for id, value in found.items():
        yield Value(1, {"id": id, **value} if isinstance(value, dict) else value, "", size)


class _Lines:
    """The number of the line at a position that only grows."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._line = text, 0, 1

    def of(self, at: int) -> int:
        self._line += self._text.count("\n", self._at, at)
        self._at = at
        return self._line


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 at byte {error.start + 1}"
    if isinstance(error, json.JSONDecodeError):
        return f"it is not JSON at character {error.colno}: {error.msg}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "it holds a number too long to read"
