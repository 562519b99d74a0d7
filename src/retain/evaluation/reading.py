"""Data files: opened, hashed, unpacked and read as JSON, with a place for every complaint."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidType, InvalidValue, NotFound, StoreFailed
from ..models import as_text

__all__ = ["DataFile", "Node", "digest"]

_BOM = b"\xef\xbb\xbf"
_XZ, _GZIP = b"\xfd7zXZ\x00", b"\x1f\x8b"
_SHOWN = 40  # characters of a wrong value in a message


@dataclass(frozen=True, slots=True)
class Node:
    """A JSON value, and where it stands.

    Each method gives a value of one type or raises ``InvalidValue`` with the place:

    >>> Node({"turns": [{"text": 3}]}, "chat.json: ")["turns"].items()[0]["text"].text()
    Traceback (most recent call last):
    retain.errors.InvalidValue: chat.json: turns[0].text is 3; give text
    """

    value: Any
    place: str
    path: str = ""

    def wrong(self, problem: str) -> InvalidValue:
        """The error that says ``problem`` of this place."""
        return InvalidValue(f"{self.place}{self.path or 'it'} {problem}")

    def _no(self, wanted: str) -> InvalidValue:
        shown = json.dumps(self.value, ensure_ascii=False, default=repr)
        if isinstance(self.value, (dict, list)):
            shown = f"a {'list' if isinstance(self.value, list) else 'JSON object'}"
        elif len(shown) > _SHOWN:
            shown = f"{shown[:_SHOWN]}…"
        return self.wrong(f"is {shown}; give {wanted}")

    def get(self, name: str) -> Node | None:
        """The member of that name of an object; ``None`` where it is missing or null."""
        if not isinstance(self.value, dict):
            raise self._no("a JSON object")
        if self.value.get(name) is None:
            return None
        return Node(self.value[name], self.place, f"{self.path}.{name}".removeprefix("."))

    def __getitem__(self, name: str) -> Node:
        found = self.get(name)
        if found is None:
            raise self.wrong(f"has no {name!r}")
        return found

    def names(self) -> list[str]:
        """The names of the members of an object."""
        if not isinstance(self.value, dict):
            raise self._no("a JSON object")
        return list(self.value)

    def items(self, length: int | None = None) -> list[Node]:
        """The elements of a list, which must be ``length`` of them if that is given."""
        if not isinstance(self.value, list):
            raise self._no("a list")
        if length is not None and len(self.value) != length:
            raise self.wrong(f"has {len(self.value)} elements; give {length}")
        return [Node(each, self.place, f"{self.path}[{at}]") for at, each in enumerate(self.value)]

    def text(self) -> str:
        """A text that UTF-8 can hold; it may be blank."""
        if not isinstance(self.value, str):
            raise self._no("text")
        try:
            return as_text(self.value, "it")
        except (InvalidType, InvalidValue) as error:
            raise self.wrong(f"is no text: {error}") from None

    def words(self) -> str:
        """A text that is not blank."""
        if not self.text().strip():
            raise self.wrong("is blank; give text")
        return self.text()

    def id(self) -> str:
        """A name: text that is not empty, or a whole number."""
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            return str(self.value)
        if not self.text():
            raise self.wrong("is empty; give an id")
        return self.text()

    def ids(self) -> frozenset[str]:
        """The names in a list."""
        return frozenset(each.id() for each in self.items())

    def number(self) -> int:
        """A whole number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self._no("a whole number")
        return self.value

    def flag(self) -> bool:
        """Whether it is true."""
        if not isinstance(self.value, bool):
            raise self._no("true or false")
        return self.value


class DataFile:
    """One file: its bytes once, for the digest, and the JSON in it.

    It may be packed with xz or gzip, whatever its name. Raises ``InvalidValue`` for what is
    no such file, ``NotFound`` and ``StoreFailed`` where it can't be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = f"{path.name}: "
        try:
            self.bytes = path.read_bytes()
        except FileNotFoundError:
            raise NotFound(f"there is no file {path}") from None
        except OSError as error:
            raise StoreFailed(f"{path} can't be read: {error.strerror or error}") from error
        self.text = self._decoded()
        self._whole: Node | None = None

    def _decoded(self) -> str:
        data = self.bytes
        try:
            if data.startswith(_XZ):
                data = lzma.decompress(data)
            elif data.startswith(_GZIP):
                data = gzip.decompress(data)
        except (lzma.LZMAError, EOFError, OSError, zlib.error) as error:
            raise InvalidValue(f"{self.place}it can't be unpacked: {error}") from None
        try:
            return data.removeprefix(_BOM).decode()
        except UnicodeDecodeError as error:
            raise InvalidValue(f"{self.place}it is not UTF-8 at byte {error.start + 1}") from None

    def first(self) -> Node:
        """The first record: of a list's elements or of the lines; else the whole of the file."""
        if self._is_list():
            elements = self.whole().items()
            return elements[0] if elements else self.whole()
        try:
            return next(self.lines(), Node(None, self.place))
        except InvalidValue:  # an object over several lines
            return self.whole()

    def records(self) -> Iterator[Node]:
        """The elements of the list that the file holds, or the values of its lines."""
        return iter(self.whole().items()) if self._is_list() else self.lines()

    def _is_list(self) -> bool:
        return self.text.lstrip().startswith("[")

    def whole(self) -> Node:
        """The one value of the file."""
        if self._whole is None:
            self._whole = Node(_parsed(self.text, self.place), self.place)
        return self._whole

    def lines(self) -> Iterator[Node]:
        """The values of the lines that are not blank."""
        for number, line in enumerate(self.text.split("\n"), 1):
            if line.strip():
                place = f"{self.path.name} line {number}: "
                yield Node(_parsed(line, place), place)


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, character {error.colno}"
        where = where if "\n" in text else f"character {error.colno}"
        raise InvalidValue(f"{place}it is not JSON at {where}: {error.msg}") from None
    except RecursionError:
        raise InvalidValue(f"{place}it is nested too deeply") from None
    except ValueError:
        raise InvalidValue(f"{place}it holds a number too long to read") from None


def digest(*files: DataFile) -> str:
    """The SHA-256 of the files' bytes, one after the other, in hex."""
    hashed = hashlib.sha256()
    for file in files:
        hashed.update(file.bytes)
    return hashed.hexdigest()
