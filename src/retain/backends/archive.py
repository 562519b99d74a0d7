"""The files of a directory as one readable blob, and back, without trusting the blob.

A blob is JSON in UTF-8: ``{"version": 1, "files": {relative path: {"encoding": "utf-8" or
"base64", "content": text}}}``. The same files always make the same bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import stat
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import InvalidType, InvalidValue, StoreCorrupt, StoreTooNew
from ..files import make_folder, store_errors, sync_folder, write_new

__all__ = ["pack", "read_directory", "refuse_obstacles", "unpack", "write_directory"]

VERSION = 1

_LONGEST_NAME = 255  # bytes, of one part: what the usual file systems hold
_LONGEST_PATH = 1024  # bytes
_DEEPEST = 64  # folders
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?:\..*)?", re.I)
_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{32}\.tmp", re.DOTALL)  # as files.write_atomically names it


# -- paths --------------------------------------------------------------------------------


def _safe(path: object) -> str:
    """``path``, if it names the same file inside a directory on every system."""
    if not isinstance(path, str):
        raise InvalidType(f"a path in an archive is a {type(path).__name__}; give text")
    fault = _fault(path)
    if fault:
        raise InvalidValue(
            f"the path {path[:200]!r} {fault}; an archive holds relative paths with / between "
            "their parts only, and nothing of it was written"
        )
    return path


def _fault(path: str) -> str:
    """What is wrong with ``path``, "" if nothing."""
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "holds a lone surrogate"
    parts = path.split("/")
    if size > _LONGEST_PATH or len(parts) > _DEEPEST:
        return f"has {size} bytes and {len(parts)} parts, more than {_LONGEST_PATH} or {_DEEPEST}"
    if path.startswith("/"):
        return "is absolute"
    if "\\" in path or ":" in path:
        return "holds a backslash or a colon, which lead elsewhere on Windows"
    if any(character < " " or character == "\x7f" for character in path):
        return "holds NUL or another control character"
    return next(filter(None, map(_part_fault, parts)), "")


def _part_fault(part: str) -> str:
    if not part:
        return "has an empty part"
    if part in (".", ".."):
        return f"has the part {part!r}"
    if len(part.encode()) > _LONGEST_NAME:
        return f"has a part of more than {_LONGEST_NAME} bytes"
    if part.endswith((".", " ")) or _DEVICE.fullmatch(part):
        return f"has the part {part!r}, which Windows reserves or shortens"
    if _TEMPORARY.fullmatch(part):
        return f"has the part {part!r}, the name of a temporary file"
    return ""


def _refuse_collisions(paths: Iterable[str]) -> None:
    """Refuse paths that are one file where case or Unicode form don't count, and a path that
    goes through another one as if that were a folder."""
    known: dict[str, str] = {}
    for path in paths:
        other = known.setdefault(_folded(path), path)
        if other is not path:
            raise InvalidValue(f"the paths {other!r} and {path!r} are one file on some systems")
    for folded, path in known.items():
        parts = folded.split("/")
        for end in range(1, len(parts)):
            file = known.get("/".join(parts[:end]))
            if file is not None:
                raise InvalidValue(f"the path {path!r} needs a folder where {file!r} is a file")


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _checked(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """``files`` sorted by path, each path and each content checked."""
    if not isinstance(files, Mapping):
        raise InvalidType(f"files is a {type(files).__name__}; give a dict of path to bytes")
    for path, data in files.items():
        _safe(path)
        if not isinstance(data, bytes):
            raise InvalidType(f"the content of {path!r} is a {type(data).__name__}; give bytes")
    _refuse_collisions(files)
    return {path: files[path] for path in sorted(files)}


# -- packing ------------------------------------------------------------------------------


def pack(files: Mapping[str, bytes]) -> bytes:
    """``files`` (relative path to content) as one blob, the same for the same files.

    Content that is UTF-8 stands there as it is, readable; other content in base64. Raises
    ``InvalidValue`` for a path that :func:`unpack` would refuse and ``InvalidType`` for content
    that is not ``bytes``.

    >>> pack({"MEMORY.md": b"# Agent Memory"})
    b'{"version":1,"files":{"MEMORY.md":{"encoding":"utf-8","content":"# Agent Memory"}}}'
    """
    members = {path: _encoded(data) for path, data in _checked(files).items()}
    archive = {"version": VERSION, "files": members}
    return json.dumps(archive, ensure_ascii=False, separators=(",", ":")).encode()


def _encoded(data: bytes) -> dict[str, str]:
    try:
        return {"encoding": "utf-8", "content": data.decode()}
    except UnicodeDecodeError:
        return {"encoding": "base64", "content": base64.b64encode(data).decode("ascii")}


def unpack(blob: bytes) -> dict[str, bytes]:
    """The files of which ``blob`` is the archive: all of them, sorted by path, or an error.

    Raises ``StoreTooNew`` for an archive of a newer version, ``StoreCorrupt`` for a blob that
    is no archive, and ``InvalidValue`` if any of its paths is there twice or is not safe to
    write below a directory: absolute, with ``.``, ``..`` or an empty part, with a drive letter,
    backslash, control character or lone surrogate, reserved, too long, or through another
    file. Nothing of it is written: that is :func:`write_directory`'s part.

    >>> unpack(pack({"a": b"1"}))
    {'a': b'1'}
    """
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise InvalidType(f"an archive is a {type(blob).__name__}; give bytes")
    # objects come as tuples of their members, so that a name given twice is seen
    try:
        archive = json.loads(
            bytes(blob).decode(),
            object_pairs_hook=tuple,
            parse_int=_integer,
            parse_constant=_no_number,
        )
    except (ValueError, RecursionError) as error:
        raise StoreCorrupt(f"the archive is no JSON in UTF-8: {error}; {_ADVICE}") from None
    version = dict(_object(archive, "the archive")).get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise StoreCorrupt(f"the archive's version is {version!r}; {_ADVICE}")
    if version > VERSION:
        raise StoreTooNew(
            f"the archive has version {version}, this retain reads up to {VERSION}: upgrade it"
        )
    members = _object(_members(archive, "the archive", "version", "files")["files"], '"files"')
    files: dict[str, bytes] = {}
    for path, member in members:
        if _safe(path) in files:
            raise InvalidValue(f"the path {path!r} is in the archive twice; {_ADVICE}")
        files[path] = _decoded(member, path)
    return _checked(files)


_ADVICE = "keep the blob, and restore an older one if there is one"


def _integer(digits: str) -> int:
    if len(digits) > 18:  # converting a long one takes quadratic time
        raise StoreCorrupt(f"the archive holds a number of {len(digits)} digits; {_ADVICE}")
    return int(digits)


def _no_number(name: str) -> None:
    raise StoreCorrupt(f"the archive holds {name}, which is no JSON; {_ADVICE}")


def _object(value: Any, what: str) -> tuple[tuple[str, Any], ...]:
    if not isinstance(value, tuple):
        raise StoreCorrupt(f"{what[:200]} is no JSON object; {_ADVICE}")
    return value


def _members(value: Any, what: str, *names: str) -> dict[str, Any]:
    """The members of a JSON object that has ``names``, each once, and nothing else."""
    pairs = _object(value, what)
    if sorted(name for name, _ in pairs) != sorted(names):
        raise StoreCorrupt(f"{what[:200]} doesn't have the members {', '.join(names)}; {_ADVICE}")
    return dict(pairs)


def _decoded(value: Any, path: str) -> bytes:
    what = f"the member for {path!r}"
    member = _members(value, what, "encoding", "content")
    encoding, content = member["encoding"], member["content"]
    if not isinstance(content, str):
        raise StoreCorrupt(f"the content in {what} is no text; {_ADVICE}")
    try:
        if encoding == "utf-8":
            return content.encode()
        if encoding == "base64":
            data = base64.b64decode(content, validate=True)
            if base64.b64encode(data).decode("ascii") == content:
                return data
            raise StoreCorrupt(f"the base64 in {what} is not in its one form; {_ADVICE}")
    except (ValueError, binascii.Error) as error:
        raise StoreCorrupt(f"the content in {what} can't be decoded: {error}; {_ADVICE}") from None
    raise StoreCorrupt(f"the encoding in {what} is {encoding!r}; {_ADVICE}")


# -- a directory --------------------------------------------------------------------------


def read_directory(
    directory: Path | str, skip: Callable[[str], bool] = lambda path: False
) -> dict[str, bytes]:
    """The regular files below ``directory``, relative path to content, sorted by path.

    ``skip`` is asked for every file and every folder, by its relative path with ``/`` between
    the parts; a folder it skips is not entered. Symbolic links are never followed, and like
    sockets and devices not read; neither are temporary files of an interrupted write. Each
    file is read as it is at its moment: hold the directory's lock for a consistent picture.
    Raises ``StoreFailed`` where something can't be read, or the directory isn't there: an
    empty answer could replace a good snapshot.
    """
    root = Path(directory)
    files: dict[str, bytes] = {}
    folders = [""]
    while folders:
        folder = folders.pop()
        with store_errors(root / folder), os.scandir(root / folder) as entries:
            found = list(entries)
        for entry in found:
            path = f"{folder}{entry.name}"
            if _TEMPORARY.fullmatch(entry.name) or skip(path):
                continue
            with store_errors(root / path):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{path}/")
                elif entry.is_file(follow_symlinks=False):
                    data = _read(root / path)
                    if data is not None:
                        files[path] = data
    return {path: files[path] for path in sorted(files)}


# Not through a link, and without waiting for the other end of what may have become a pipe.
_AS_IT_IS = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


def _read(path: Path) -> bytes | None:
    """The content of a regular file; ``None`` if by now it is gone or something else."""
    try:
        handle = os.open(path, os.O_RDONLY | _AS_IT_IS)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read()


def write_directory(directory: Path | str, files: Mapping[str, bytes]) -> None:
    """Write ``files`` (relative path to content) below ``directory``, making folders as needed.

    Before anything is written: ``InvalidValue`` or ``InvalidType`` for a path that
    :func:`unpack` would refuse, and ``InvalidValue`` if one goes through a symbolic link or a
    file below the directory, or names something there that is no regular file. (The directory
    itself may be a link: that is its owner's choice.)

    First every file is written beside its place under a temporary name, then each is renamed
    into it, so that a full disk (``StoreFailed``) leaves the directory as it was. New files are
    readable by their owner only, so are new folders, and all is durable when the call returns.
    Files that are not among ``files`` stay. Hold the directory's lock meanwhile.
    """
    checked = _checked(files)
    refuse_obstacles(directory, checked)
    root = Path(directory)
    make_folder(root)
    staged: dict[Path, Path] = {}
    try:
        for path, data in checked.items():
            place = root / path
            make_folder(place.parent)
            temporary = staged[place] = place.with_name(f".retain.{uuid.uuid4().hex}.tmp")
            with store_errors(place):
                write_new(temporary, data)
        for place, temporary in staged.items():
            with store_errors(place):
                temporary.replace(place)
    except BaseException:
        for temporary in staged.values():
            with suppress(OSError):  # the error on its way says more; what stays is never packed
                temporary.unlink(missing_ok=True)
        raise
    for folder in {place.parent for place in staged}:
        with store_errors(folder):
            sync_folder(folder)


def refuse_obstacles(directory: Path | str, paths: Iterable[str]) -> None:
    """Raise ``InvalidValue`` if one of ``paths``, which :func:`unpack` gave, can't be written below
    ``directory``: through a symbolic link or a file, or in the place of no regular file."""
    for path in paths:
        with store_errors(Path(directory) / path):
            _refuse_obstacle(Path(directory), path)


def _refuse_obstacle(root: Path, path: str) -> None:
    place = root
    *folders, name = path.split("/")
    for part, wanted in [*((folder, stat.S_IFDIR) for folder in folders), (name, stat.S_IFREG)]:
        place /= part
        try:
            found = stat.S_IFMT(place.lstat().st_mode)
        except FileNotFoundError:
            return
        if found != wanted:
            kind = _KINDS.get(found, "special file")
            raise InvalidValue(
                f"the path {path!r} can't be written: {place} is a {kind} there; move it away, "
                "or choose another directory (nothing was written)"
            )


_KINDS = {stat.S_IFLNK: "symbolic link", stat.S_IFDIR: "folder", stat.S_IFREG: "file"}
