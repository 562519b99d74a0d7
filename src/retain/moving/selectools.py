"""A memory directory of ``selectools``, in either of its layouts, read as one set of memories.

One memory stands there in up to four places: the store (``entries.jsonl``, or a SQLite file
with a table ``knowledge``), ``MEMORY.md``, and the log of its day (``logs/2026-03-13.jsonl``
in the layout of the specification, ``2026-03-13.log`` in that of version 1.3). They are read
in this order, and what a later one repeats is the same memory.
"""

from __future__ import annotations

import io
import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import files
from ..directory import daily_log
from ..directory.memory_md import GENERAL, Document
from ..errors import InvalidValue, RetainError
from ..models import Memory, MemoryType, one_line
from .json_text import Value, json_lines
from .reading import Read, read_records
from .records import Identities, to_memory
from .times import as_time

__all__ = ["SQLITE", "read_selectools", "tables"]

SQLITE = b"SQLite format 3\0"
"""What a SQLite file begins with."""

_NEAR = 60.0  # seconds from an entry to its line in the log: a large store is slow to save
_LOG_NAME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.log")
_LOG_LINE = re.compile(r"\[([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})\] (.*)")
_LABEL = re.compile(r"\[(.+?)\] (.*)", re.S)
_COLUMNS = "id content category importance persistent ttl_days created_at updated_at metadata"


def read_selectools(path: Path) -> Iterator[Read]:
    """Every memory of the directory ``path``, or of a single file of one, each once.

    Facts first, in the order of MEMORY.md, then the rest by time. Nothing there is changed.
    """
    collection = _Collection()
    with files.store_errors(path):
        if path.is_dir():
            _read_directory(path, collection)
        else:
            _read_file(path, collection, path.name)
    for number, each in enumerate(sorted(collection.found, key=_Found.place_in_order)):
        yield Read(each.where, each.memory, "", number)
    yield from collection.problems


def _read_directory(path: Path, collection: _Collection) -> None:
    names = sorted(each.name for each in path.iterdir() if each.is_file())
    stores = [name for name in names if name == "entries.jsonl" or name.endswith(".db")]
    logs = [f"logs/{each.name}" for _, each in daily_log.log_files(path / "logs")]
    logs += [name for name in names if _LOG_NAME.fullmatch(name)]
    if not (stores or logs or "MEMORY.md" in names):
        raise InvalidValue(
            f"{path} holds no entries.jsonl, no knowledge.db, no MEMORY.md and no logs: it is no "
            "memory directory of selectools"
        )
    collection.whole = True
    collection.has_facts_file = "MEMORY.md" in names
    for name in [*stores, *(["MEMORY.md"] if "MEMORY.md" in names else []), *logs]:
        _read_file(path / name, collection, name)


def _read_file(path: Path, collection: _Collection, name: str) -> None:
    data = path.read_bytes()
    if data.startswith(SQLITE):
        _read_database(path, collection, name)
    elif path.suffix == ".md":
        _read_facts(data, path.stat().st_mtime, collection, name)
    elif path.suffix == ".log":
        _read_log(data, collection, name)
    elif daily_log.log_date(path.name):
        _read_daily_log(data, collection, name)
    else:
        when = path.stat().st_mtime
        values = map(_scored, json_lines(io.BytesIO(data)))
        for read in read_records(values, when, MemoryType.SEMANTIC, f"{name}, "):
            collection.keep(read, "store")


# -- what was found, to be met again ---------------------------------------------------------


@dataclass
class _Found:
    memory: Memory
    where: str
    places: set[str]
    timed: bool = True  # whether its time is known
    named: bool = True  # whether its id is one that was read
    rank: float = math.inf  # its place in MEMORY.md

    def place_in_order(self) -> tuple[bool, float, float]:
        lasting = self.memory.persistent
        return not lasting, self.rank if lasting else 0, self.memory.created_at


@dataclass
class _Line:
    """A line of a log or of MEMORY.md; ``persistent`` is ``None`` where a log doesn't say."""

    where: str
    category: str
    content: str
    time: float | None
    persistent: bool | None
    id: str | None = None


class _Collection:
    def __init__(self) -> None:
        self.found: list[_Found] = []
        self.problems: list[Read] = []
        self.whole = False  # whether a directory is read, not a single file
        self.has_facts_file = False
        self.identities = Identities()
        self._by_text: dict[str, list[_Found]] = {}
        self._by_id: dict[str, _Found] = {}

    def fail(self, where: str, problem: str) -> None:
        self.problems.append(Read(where, None, problem, 0))

    def keep(self, read: Read, place: str) -> None:
        """A record of a store."""
        if read.memory is None:
            self.problems.append(read)
        else:
            self._put(_Found(read.memory, read.where, {place}))

    def meet(self, line: _Line, place: str, otherwise: float = 0.0) -> _Found:
        """A line: of a memory that is known, or else of another one.

        ``otherwise``: the time of what has none.
        """
        known = self._known(line, place)
        if known is None:
            return self._put(self._made(line, place, otherwise))
        known.places.add(place)
        if not known.named and line.id is not None:
            known.memory.id, known.named = line.id, True
            self._by_id[line.id] = known
        if not known.timed and line.time is not None:
            memory = known.memory
            memory.created_at = memory.updated_at = memory.last_accessed = line.time
            known.timed = True
        return known

    def _known(self, line: _Line, place: str) -> _Found | None:
        if line.id is not None and line.id in self._by_id:
            return self._by_id[line.id]
        alike = self._by_text.get(_key(line.category, line.content), [])
        if line.persistent:  # of equal facts there is one, however often it was said
            return next((each for each in alike if each.memory.persistent), None)
        free = [each for each in alike if place not in each.places]
        if line.time is None:
            return None
        time = line.time
        near = [each for each in free if each.timed and abs(each.memory.created_at - time) <= _NEAR]
        if near:
            return min(near, key=lambda each: abs(each.memory.created_at - time))
        if line.persistent is None:
            return next((each for each in free if not each.timed), None)
        return None

    def _made(self, line: _Line, place: str, otherwise: float) -> _Found:
        # A fact that a log tells of and MEMORY.md no longer has was taken out there.
        lasting = place == "facts" or not self.has_facts_file
        record = {
            "id": line.id or self.identities.of(line.category, line.content, line.time),
            "content": line.content,
            "category": line.category if line.category.strip() else GENERAL,
            "created_at": otherwise if line.time is None else line.time,
            "persistent": bool(line.persistent and lasting),
        }
        memory = to_memory(record, self.identities, otherwise)
        timed, named = line.time is not None, line.id is not None
        return _Found(memory, line.where, {place}, timed, named)

    def _put(self, found: _Found) -> _Found:
        self.found.append(found)
        self._by_id.setdefault(found.memory.id, found)
        key = _key(found.memory.category, found.memory.content)
        self._by_text.setdefault(key, []).append(found)
        return found


def _key(category: str, content: str) -> str:
    """A memory as a line of version 1.3, in which a category may hold brackets too."""
    return f"[{one_line(category)}] {one_line(content)}"


# -- the single files --------------------------------------------------------------------------


def tables(path: Path) -> set[str]:
    """The names of the tables of a SQLite file; of another file there are none.

    Raises ``sqlite3.Error`` where the file is broken.
    """
    with path.open("rb") as file:
        if file.read(len(SQLITE)) != SQLITE:
            return set()
    with closing(_connect(path)) as db:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_master")}


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


def _read_database(path: Path, collection: _Collection, name: str) -> None:
    try:
        if "knowledge" not in tables(path):
            if collection.whole:
                return  # another program's, which lies in the same directory
            raise InvalidValue(f"{path} is a SQLite file with no table 'knowledge'")
        with closing(_connect(path)) as db:
            db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            columns = ", ".join(_COLUMNS.split())
            for number, row in enumerate(db.execute(f"SELECT {columns} FROM knowledge"), 1):
                where = f"{name}, row {number}"
                try:
                    record = _row(dict(zip(_COLUMNS.split(), row, strict=True)))
                    memory = to_memory(record, collection.identities, path.stat().st_mtime)
                except (RetainError, ValueError, TypeError, RecursionError) as error:
                    collection.fail(where, str(error))
                else:
                    collection.keep(Read(where, memory, "", 0), "store")
    except sqlite3.Error as error:
        collection.fail(name, f"SQLite can't read it: {error}")


def _scored(value: Value) -> Value:
    """Importance is a fraction there, also where JSON has written it as 0 or 1."""
    record = value.value
    if isinstance(record, dict) and type(record.get("importance")) is int:
        return value._replace(value={**record, "importance": float(record["importance"])})
    return value


def _row(record: dict[str, Any]) -> dict[str, Any]:
    record["metadata"] = json.loads(record["metadata"] or "{}")
    record["persistent"] = bool(record["persistent"])
    record["importance"] = float(record["importance"])
    return record


def _read_facts(data: bytes, when: float, collection: _Collection, name: str) -> None:
    lines = _texts(data, collection, name)
    listed = [text for _, text in lines if _LABEL.match(text.removeprefix("- "))]
    if listed and not any(text.startswith("#") for _, text in lines):
        found = _records(lines, lambda text: text.startswith("- ["))
        facts = [(f"{name}, line {at}", *_labelled(text.removeprefix("- "))) for at, text in found]
    else:
        document = Document.parse("".join(f"{text}\n" for _, text in lines))
        facts = [(name, fact.category, fact.text) for fact in document.facts()]
    for rank, (where, category, content) in enumerate(facts):
        line = _Line(where, category, content, None, True)
        collection.meet(line, "facts", when).rank = rank


def _read_daily_log(data: bytes, collection: _Collection, name: str) -> None:
    parsed = daily_log.parse(data)
    for entry, time in zip(parsed.entries, parsed.times, strict=True):
        fields = (entry["category"], entry["content"], time, entry["persistent"], entry["id"])
        collection.meet(_Line(name, *fields), "logs")
    for line in parsed.unreadable:
        collection.fail(f"{name}, line {line.line}", f"it {line.reason}")


def _read_log(data: bytes, collection: _Collection, name: str) -> None:
    lines = _texts(data, collection, name)
    for number, text in _records(lines, lambda text: _LOG_LINE.match(text) is not None):
        where = f"{name}, line {number}"
        match = _LOG_LINE.match(text)
        if match is None:
            collection.fail(where, "it begins with no time, and no entry stands above it")
            continue
        try:
            time = as_time(match[1], "its time")
        except InvalidValue as error:
            collection.fail(where, str(error))
            continue
        category, content = _labelled(text[match.start(2) :])
        collection.meet(_Line(where, category, content, time, None), "1.3 log")


def _labelled(text: str) -> tuple[str, str]:
    match = _LABEL.fullmatch(text)
    return (match[1], match[2]) if match else (GENERAL, text)


def _texts(data: bytes, collection: _Collection, name: str) -> list[tuple[int, str]]:
    """The lines with their numbers; those that are no UTF-8 are reported."""
    texts = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            texts.append((number, line.removesuffix(b"\r").decode()))
        except UnicodeDecodeError as error:
            collection.fail(f"{name}, line {number}", f"it is not UTF-8 at byte {error.start + 1}")
    return texts


def _records(lines: list[tuple[int, str]], begins: Callable[[str], bool]) -> list[tuple[int, str]]:
    """The entries of a file in which a content may go on over several lines."""
    found: list[tuple[int, str]] = []
    for number, text in lines:
        if found and not begins(text):
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{text}")
        elif text.strip():
            found.append((number, text))
    return [(number, text.rstrip("\n")) for number, text in found]
