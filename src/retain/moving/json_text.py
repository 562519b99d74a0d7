"""JSON of any size and in any state: its values one by one, and what is wrong with the others.

The chats of some years are one array of several hundred MB on a single line. Of an array one
element is held at a time (as objects it takes up to ten times its text), of JSON lines one line.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

__all__ = [
    "LONGEST",
    "Value",
    "chunks_of",
    "json_elements",
    "json_lines",
    "json_whole",
    "lines_of",
    "reason",
    "values_by_id",
]

LONGEST = 1 << 28
"""Characters of the longest element of an array that is read."""

_CHUNK = 1 << 20  # bytes read at once
_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[\s,]*")
# Where another element may begin: at the start of a line, or after a comma.
_NEXT = re.compile(r"(?:\n[^\S\n]*|[\]}\"0-9a-z]\s*,\s*)(?=\{)")
_OVERLAP = 64  # characters that are kept, for a place that such a pattern finds may be cut
_LAST = 16  # characters: no word or escape of JSON, which may be cut, is longer


class Value(NamedTuple):
    """A JSON value: its line, itself or what is wrong with it, and how far the source is read."""

    line: int
    value: Any
    problem: str
    at: int


def chunks_of(file: BinaryIO) -> Iterator[bytes]:
    """What is in ``file``, but for the mark of UTF-8 that it may begin with."""
    first = file.read(_CHUNK)
    while first and len(first) < len(_BOM) and (more := file.read(_CHUNK)):
        first += more
    yield first.removeprefix(_BOM)
    while chunk := file.read(_CHUNK):
        yield chunk


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of what comes in ``chunks``, each with its end."""
    parts: list[bytes] = []
    for chunk in chunks:
        start = 0
        while (stop := chunk.find(b"\n", start) + 1) > 0:
            yield b"".join([*parts, chunk[start:stop]])
            parts, start = [], stop
        parts.append(chunk[start:])
    if last := b"".join(parts):
        yield last


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
            value, problem = None, reason(error)
            if not line.endswith(b"\n"):
                problem += ", and the file ends there"
        yield Value(number, value, problem, at)


def json_whole(chunks: Iterable[bytes]) -> Iterator[Value]:
    """The one value that ``chunks`` are."""
    data = b"".join(chunks).removeprefix(_BOM)
    try:
        yield Value(1, json.loads(data.decode("utf-8", "surrogateescape")), "", len(data))
    except (ValueError, RecursionError) as error:
        yield Value(1, None, reason(error), len(data))


def values_by_id(values: Iterable[Value]) -> Iterator[Value]:
    """The members of each object as objects themselves, with their names as ids."""
    for each in values:
        if not isinstance(each.value, dict):
            yield each
            continue
        for id, value in each.value.items():
            named = {"id": id, **value} if isinstance(value, dict) else value
            yield each._replace(value=named)


def json_elements(chunks: Iterable[bytes]) -> Iterator[Value]:
    """The elements of a JSON array, one by one, as far as they can be read.

    After an element that is broken, the next one that can be read is looked for; where the
    array ends before its bracket, that is said. After an element longer than ``LONGEST`` nothing
    is read, which is said, too.
    """
    window = _Window(chunks)
    window.find(re.compile(r"\["))
    decoder = json.JSONDecoder()
    while window.skip() and window.text[window.at] != "]":
        line = window.line
        try:
            value, stop = decoder.raw_decode(window.text, window.at)
        except (ValueError, RecursionError) as error:
            if window.may_be_cut(error) and window.grow():
                continue
            if len(window.text) - window.at > LONGEST:
                problem = f"it is longer than {LONGEST} characters; what comes after was not read"
                yield Value(line, None, problem, window.read)
                return
            reached = max(getattr(error, "pos", 0), window.at + 1)
            window.at = reached - 1
            found = window.find(_NEXT)
            until = f"line {window.line}" if found else "the end"
            problem = f"{reason(error)}; passed over up to {until}"
            yield Value(line, None, problem, window.read)
            if not found:
                return
            continue
        if stop == len(window.text) and window.grow():
            continue  # of a number there may be more
        window.at = stop
        yield Value(line, value, "", window.read)
    if not window.skip():
        problem = "the file ends in the middle of the array: what came after is lost"
        yield Value(window.line, None, problem, window.read)
        return
    window.at += 1
    line = window.line
    if window.skip():
        yield Value(line, None, "something follows the end of the array", window.read)


class _Window:
    """What is held of a text: from ``at`` on it is still to be read.

    ``read``: the bytes that were read for it.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        # a byte that is no UTF-8 becomes a lone surrogate, which only its own record is
        # refused for
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._ended = False
        self._line, self._counted = 1, 0
        self.text = ""
        self.at = 0
        self.read = 0

    @property
    def line(self) -> int:
        """The number of the line that ``at`` is in."""
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def grow(self) -> bool:
        """Take at least as much again, and let go of what was read; whether there was more.

        So an element of any length is decoded a few times, not once a chunk.
        """
        if self._ended or len(self.text) - self.at > LONGEST:
            return False
        _ = self.line
        kept = max(0, self.at - _OVERLAP)
        parts = [self.text[kept:]]
        wanted = max(1, len(self.text) - self.at)
        while wanted > 0 and not self._ended:
            chunk = next(self._chunks, None)
            self._ended = chunk is None
            self.read += len(chunk or b"")
            parts.append(self._decoder.decode(chunk or b"", final=self._ended))
            wanted -= len(parts[-1])
        self.text = "".join(parts)
        self.at -= kept
        self._counted = self.at
        return len(parts) > 1 and any(parts[1:])

    def skip(self) -> bool:
        """Go on to the next character that is no space or comma; whether there is one."""
        while True:
            found = _SPACE.match(self.text, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.text):
                return True
            if not self.grow():
                return False

    def find(self, pattern: re.Pattern[str]) -> bool:
        """Go to the end of the next place that ``pattern`` matches; whether there is one."""
        while True:
            found = pattern.search(self.text, max(0, self.at))
            if found:
                self.at = found.end()
                return True
            self.at = max(self.at, len(self.text) - _OVERLAP)
            if not self.grow():
                self.at = len(self.text)
                return False

    def may_be_cut(self, error: Exception) -> bool:
        """Whether an element can't be decoded since the text that is held ends in it."""
        if not isinstance(error, json.JSONDecodeError):
            return False
        cut = error.msg.startswith("Unterminated string")
        return cut or error.pos >= len(self.text) - _LAST


def reason(error: Exception) -> str:
    """Why ``error`` was raised for a text that should be JSON."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 at byte {error.start + 1}"
    if isinstance(error, json.JSONDecodeError):
        return f"it is not JSON at character {error.colno}: {error.msg}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "it holds a number too long to read"
