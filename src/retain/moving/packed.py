"""The files with chats of a data export: in the zip file that was sent, or unpacked in a folder.

Nothing is unpacked to the disk, and no name in a zip file is used as a path.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import BinaryIO

from .. import clock
from ..errors import InvalidValue
from .json_text import chunks_of

__all__ = ["ZIP", "Damaged", "Packed", "chats_in"]

ZIP = b"PK\x03\x04"
"""What a zip file begins with."""

_WANTED = re.compile(
    r"(?:.*/)?(?:conversations(?:-[0-9]+)?\.json|memories\.json|projects\.json"
    r"|(?:conversations|memories|projects)/[^/]+\.json)"
)
_MOST = 1 << 34  # bytes, unpacked
_SMALL = 1 << 26  # bytes: of so many it doesn't matter how well they were packed
_TIGHTEST = 200  # times: JSON is packed to a tenth, and to a thirtieth at best


class Damaged(InvalidValue):
    """A file in a zip file can't be unpacked from some place on."""


class Packed:
    """The files of an export that hold chats and memories.

    ``names``: conversations first, then memories and projects. ``sizes``: in bytes, by name.
    """

    def __init__(
        self,
        found: dict[str, tuple[int, float]],
        open: Callable[[str], BinaryIO],
        where: str,
    ) -> None:
        def rank(name: str) -> tuple[bool, str]:
            return "conversations" not in name, name

        self.names = sorted(found, key=rank)
        self.sizes = {name: size for name, (size, _) in found.items()}
        self._times = {name: time for name, (_, time) in found.items()}
        self._open = open
        if not self.names:
            raise InvalidValue(
                f"{where} holds no conversations.json: it is no data export of ChatGPT or Claude"
            )

    @classmethod
    def folder(cls, path: Path) -> Packed:
        """Those of an unpacked export."""
        found = {}
        for name in chats_in(path):
            status = (path / name).stat()
            found[name] = (status.st_size, status.st_mtime)
        return cls(found, lambda name: (path / name).open("rb"), str(path))

    @classmethod
    def zip(cls, file: BinaryIO) -> Packed:
        """Those of an export as it was sent.

        Raises ``InvalidValue`` where the file can't be read, is encrypted, or would unpack to
        what no export is.
        """
        if not file.seekable():
            raise InvalidValue("a zip file can't be read from a stream; name its path")
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
            raise InvalidValue(f"the zip file can't be read: {error}") from None
        entries = {each.filename: each for each in archive.infolist()}
        found = {name: each for name, each in entries.items() if _WANTED.fullmatch(name)}
        for name, entry in found.items():
            if entry.flag_bits & 1:
                raise InvalidValue(f"{name} in the zip file is encrypted; unpack it yourself")
            if entry.file_size > max(_SMALL, _TIGHTEST * entry.compress_size):
                raise InvalidValue(
                    f"{name} would unpack to {entry.file_size} bytes, more than {_TIGHTEST} times "
                    "its size: no export is like that; unpack it yourself if you trust it"
                )
        size = sum(entry.file_size for entry in found.values())
        if size > _MOST:
            raise InvalidValue(
                f"the zip file would unpack to {size} bytes, and {_MOST} is the most that is read; "
                "unpack it, and import its files one by one"
            )

        def opened(name: str) -> BinaryIO:
            return archive.open(found[name])  # type: ignore[return-value]  # it is an IO[bytes]

        times = {name: (each.file_size, _time(each)) for name, each in found.items()}
        return cls(times, opened, "the zip file")

    def when(self, name: str) -> float:
        """The time of a file, in epoch seconds."""
        return self._times[name]

    @contextmanager
    def opened(self, name: str) -> Iterator[Iterator[bytes]]:
        """What is in a file, a piece at a time; ``Damaged`` from where it can't be unpacked."""
        with _telling(name):
            file = self._open(name)
        with file:
            yield _pieces(file, name)


def _pieces(file: BinaryIO, name: str) -> Iterator[bytes]:
    with _telling(name):
        yield from chunks_of(file)


@contextmanager
def _telling(name: str) -> Iterator[None]:
    broken = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
    try:
        yield
    except broken as error:
        raise Damaged(f"{name} can't be unpacked any further: {error}") from None


def chats_in(path: Path) -> list[str]:
    """The names of the files in the folder ``path`` that hold chats, if it has conversations."""
    names = [each.name for each in path.iterdir() if each.is_file()]
    for folder in ("conversations", "memories", "projects"):
        if (path / folder).is_dir():
            names += [f"{folder}/{each.name}" for each in (path / folder).iterdir()]
    wanted = [name for name in names if _WANTED.fullmatch(name)]
    return wanted if any("conversations" in name for name in wanted) else []


def _time(entry: zipfile.ZipInfo) -> float:
    try:
        return clock.as_epoch(datetime(*entry.date_time, tzinfo=timezone.utc))
    except ValueError:  # 1980 has a month 0 there
        return clock.now()
