"""The daily logs, ``logs/YYYY-MM-DD.jsonl``: one JSON object a line, one file a UTC day.

A line holds ``timestamp`` (UTC, with ``Z``), ``category``, ``content``, ``persistent`` and, if
retain wrote it, ``id``. People and other programs write into these files too, and a crash may
leave half a line: what can't be read is counted by :func:`parse` and left where it stands by
everything that rewrites a file. The functions work on the bytes of one file; only
:func:`log_files` and :func:`append` touch the disk.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from .. import clock
from ..errors import InvalidValue
from ..files import store_errors
from ..models import Memory

__all__ = [
    "ParsedLog",
    "Unreadable",
    "append",
    "format_line",
    "log_date",
    "log_files",
    "log_name",
    "parse",
    "with_content",
    "without",
]

_BOM = b"\xef\xbb\xbf"
_NAME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})\.jsonl")
_ID = re.compile(rb'"id"\s*:\s*"([^"\\]*)"')


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is no entry: its number, from 1, and what is wrong with it."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class ParsedLog:
    """What a log holds, in the order of the file.

    ``entries``: dicts of ``timestamp`` (text as :func:`retain.clock.iso` writes it),
    ``category``, ``content``, ``persistent`` and ``id`` (or ``None``). ``times``: each
    entry's time in epoch seconds, to sort by. ``unreadable``: the other lines but blank ones.
    """

    entries: list[dict[str, Any]]
    times: list[float]
    unreadable: list[Unreadable]


def log_name(created_at: float) -> str:
    """The name of the log for a time in epoch seconds.

    >>> log_name(1773360000.0)
    '2026-03-13.jsonl'
    """
    return f"{clock.as_datetime(created_at).date().isoformat()}.jsonl"


def log_date(name: str) -> date | None:
    """The UTC day of the log called ``name``, or ``None`` if no log is called so."""
    match = _NAME.fullmatch(name)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:  # 2026-02-30
        return None


def log_files(directory: Path) -> list[tuple[date, Path]]:
    """The logs in ``directory`` with their days, oldest first; none if it doesn't exist."""
    with store_errors(directory):
        try:
            days = [(log_date(path.name), path) for path in directory.iterdir() if path.is_file()]
        except FileNotFoundError:
            return []
    return sorted((day, path) for day, path in days if day is not None)


def format_line(memory: Memory) -> bytes:
    """The line for ``memory``, with its newline; its time to the second, as programs expect it.

    >>> format_line(Memory("m1", "Likes tea", created_at=1773360000.0)).decode()
    '{"timestamp": "2026-03-13T00:00:00Z", "category": "general", "content": "Likes tea", "persistent": false, "id": "m1"}\\n'
    """  # noqa: E501
    entry = {
        "timestamp": clock.iso(math.floor(memory.created_at)),
        "category": memory.category,
        "content": memory.content,
        "persistent": memory.persistent,
        "id": memory.id,
    }
    try:
        return json.dumps(entry, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"memory {memory.id!r} holds a lone surrogate ({error.reason}), which no file can "
            "hold; pass the text through strip_surrogates first"
        ) from None


def append(path: Path, lines: bytes) -> None:
    """Write whole ``lines`` (each with its newline) to the end of the log at ``path``.

    A new file is readable by its owner only. If the file ends in half a line, the lines begin
    on a new one; but half of one of these lines, which a killed process left, goes. Nothing is
    forced to the disk: the store is the truth, the log a copy. Hold the directory's lock when
    other processes may write. Raises ``StoreFailed`` if the disk refuses; nothing of ``lines``
    is there then.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    with store_errors(path), os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        near = min(size, len(lines))
        file.seek(size - near)
        half = file.read(near).rpartition(b"\n")[2]
        if half and any(line.startswith(half) for line in lines.split(b"\n")):
            size -= len(half)
            file.truncate(size)
        elif half:
            lines = b"\n" + lines
        rest = memoryview(lines)
        try:
            while rest:
                rest = rest[file.write(rest) :]
        except BaseException:
            with suppress(OSError):  # the error on its way says more
                file.truncate(size)
            raise


def parse(data: bytes) -> ParsedLog:
    """What the log of which ``data`` are the bytes holds; never fails.

    A line needs a ``content`` and a ``timestamp``, in ISO 8601 with any offset, or none for
    UTC. A missing, null or blank ``category`` is "general", a missing or null ``persistent``
    false, an ``id`` that isn't text none.
    """
    log = ParsedLog([], [], [])
    for number, line in enumerate(_lines(data), 1):
        if not line.removeprefix(_BOM).strip():
            continue
        try:
            time, entry = _entry(_decoded(line))
        except ValueError as error:
            log.unreadable.append(Unreadable(number, str(error)))
        else:
            log.entries.append(entry)
            log.times.append(time)
    return log


def without(data: bytes, ids: Collection[str]) -> bytes:
    """``data`` less the lines with one of ``ids``; every other byte stays as it is.

    A line is an id's if it is a JSON object with that ``id``, whatever else is in it.
    """
    return _rewritten(data, set(ids), lambda _: b"")


def with_content(data: bytes, memory: Memory) -> bytes:
    """``data`` with the line of ``memory``'s id as :func:`format_line` writes it now.

    It keeps its place, and the file its other bytes; should the id have several lines, the
    first is rewritten and the others go. Without such a line ``data`` comes back as it is.
    """
    line, was_written = format_line(memory), False

    def present(old: bytes) -> bytes:
        nonlocal was_written
        if was_written:
            return b""
        was_written = True
        body = old.rstrip(b"\r\n")
        return line[:-1] + old[len(body) :]

    return _rewritten(data, {memory.id}, present)


def _rewritten(data: bytes, ids: set[str], change: Callable[[bytes], bytes]) -> bytes:
    quoted = {id.encode(errors="surrogatepass") for id in ids}
    parts: list[bytes] = []
    since, at = 0, 0
    for line in _lines(data):
        if _may_hold(line, quoted) and _id_of(line) in ids:
            body = line.removeprefix(_BOM) if at == 0 else line
            parts += [data[since : at + len(line) - len(body)], change(body)]
            since = at + len(line)
        at += len(line)
    return b"".join([*parts, data[since:]]) if parts else data


def _may_hold(line: bytes, ids: set[bytes]) -> bool:
    """Whether ``line`` could have one of ``ids``; spares most lines the parsing.

    With an escape in it, only parsing tells: both ``"id"`` and the id may be written in many
    ways. Without one, a name and a text between quotes are what they look like.
    """
    return b"\\" in line or any(id in ids for id in _ID.findall(line))


def _id_of(line: bytes) -> str | None:
    try:
        id = _decoded(line).get("id")
    except ValueError:
        return None
    return id if isinstance(id, str) else None


def _lines(data: bytes) -> Iterator[bytes]:
    """The lines with their ends; unlike ``splitlines``, split at ``\\n`` only."""
    start = 0
    while start < len(data):
        stop = data.find(b"\n", start) + 1 or len(data)
        yield data[start:stop]
        start = stop


def _decoded(line: bytes) -> dict[str, Any]:
    """The JSON object on ``line``, or an ``InvalidValue`` that says why there is none."""
    if b"\0" in line:
        raise InvalidValue("holds NUL bytes, as a crash of the machine leaves them")
    try:
        value = json.loads(line.removeprefix(_BOM).decode())
    except UnicodeDecodeError as error:
        raise InvalidValue(f"is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        torn = "" if line.endswith(b"\n") else ", and the file ends there"
        raise InvalidValue(f"is not JSON at character {error.pos}: {error.msg}{torn}") from None
    except RecursionError:
        raise InvalidValue("is nested too deeply") from None
    except ValueError:  # Python's limit on digits
        raise InvalidValue("holds a number too long to read") from None
    if not isinstance(value, dict):
        raise InvalidValue(f"is a JSON {type(value).__name__}, not an object")
    return value


def _entry(value: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """The entry's time and the entry, or an ``InvalidValue`` that says why it is none."""
    category, persistent, id = value.get("category"), value.get("persistent"), value.get("id")
    content = _text(value.get("content"), "content")
    category = "general" if category is None else _text(category, "category")
    if persistent is not None and not isinstance(persistent, bool):
        raise InvalidValue(f"has a persistent that is {_shown(persistent)}, not true or false")
    time = _epoch(value.get("timestamp"))
    return time, {
        "timestamp": clock.iso(time),
        "category": category if category.strip() else "general",
        "content": content,
        "persistent": bool(persistent),
        "id": _text(id, "id") if isinstance(id, str) and id else None,
    }


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidValue(f"has a {name} that is {_shown(value)}, not text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"has a {name} with a lone surrogate, which is no text") from None
    return value


def _epoch(value: object) -> float:
    if not isinstance(value, str):
        raise InvalidValue(f"has a timestamp that is {_shown(value)}, not ISO 8601 text")
    try:
        return clock.from_iso(value)
    except InvalidValue as error:
        raise InvalidValue(f"has a timestamp: {error}") from None


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else f"{value[:40]}…")
    if value is None or isinstance(value, (list, dict)):  # repr() of a deep one would fail
        return "missing or null" if value is None else f"a {type(value).__name__}"
    return repr(value)
