"""Files that survive: atomic and durable writes, and copies set aside."""

from __future__ import annotations

import errno
import hashlib
import logging
import mmap
import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .errors import InvalidValue, NetworkFilesystem, StoreFailed

__all__ = [
    "Files",
    "Folder",
    "beside",
    "make_folder",
    "real_path",
    "refuse_network",
    "remove_folder",
    "set_aside",
    "signature",
    "store_errors",
    "sweep",
    "sync_folder",
    "write_atomically",
    "write_new",
]

log = logging.getLogger("retain")

Data = bytes | Iterable[bytes | memoryview]
"""Bytes, or parts of them one after the other."""

_MAPPED = 1 << 22  # bytes: a smaller file is read, for each that is mapped stays open
_ABANDONED = 300.0  # seconds after which a temporary file is nobody's

_NETWORK = """
9p afs afpfs beegfs ceph cifs coda fuse.gcsfuse fuse.glusterfs fuse.goofys fuse.rclone fuse.s3fs
fuse.sshfs glusterfs lustre ncpfs nfs nfs4 prl_fs smb3 smbfs vboxsf vmhgfs
""".split()


@contextmanager
def store_errors(path: Path | str) -> Iterator[None]:
    """Turn an ``OSError`` about ``path`` into a ``StoreFailed`` that says what to do."""
    try:
        yield
    except StoreFailed:
        raise
    except OSError as error:
        advice = {
            errno.ENOSPC: "the disk is full: make room and call again",
            errno.EDQUOT: "the disk quota is used up: make room and call again",
            errno.EROFS: "the file system is read-only: choose another place",
            errno.EACCES: "permission denied: choose another place, or change its owner",
            errno.EPERM: "permission denied: choose another place, or change its owner",
            errno.ENOTDIR: "a part of the path is a file, not a folder: choose another place",
            errno.EISDIR: "it is a folder, not a file: name a file in it",
            errno.EEXIST: "it is a file, not a folder: choose another place",
        }.get(error.errno or 0, "nothing was kept of this write")
        failed = StoreFailed(f"{path}: {error.strerror or error}; {advice}")
        failed.errno = error.errno
        raise failed from error


def real_path(path: str | os.PathLike[str]) -> Path:
    """``path`` with ``~``, links and the folder that the process is in resolved.

    So a place stays where it is when the process goes elsewhere, and one file has one lock,
    whichever way leads to it.
    """
    try:
        return Path(os.path.realpath(Path(path).expanduser()))
    except (RuntimeError, ValueError) as error:  # no such user, a NUL in it
        raise InvalidValue(f"{os.fspath(path)!r} is no path: {error}; name another place") from None


def beside(path: Path, end: str) -> Path:
    """The file in the same folder whose name is that of ``path`` and ``end``."""
    return path.with_name(f"{path.name}{end}")


def make_folder(folder: Path) -> None:
    """Make ``folder`` and its parents, for their owner only, and durable; no-op where it exists."""
    with store_errors(folder):
        missing = []
        place = folder
        while not place.exists():
            missing.append(place)
            place = place.parent
        for place in reversed(missing):
            with suppress(FileExistsError):  # another process was quicker
                place.mkdir(mode=0o700)
            sync_folder(place.parent)
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


def sync_folder(folder: Path) -> None:
    """Make what was created, renamed or removed in ``folder`` durable."""
    if os.name == "nt":  # there a folder can't be opened, and a rename is journalled
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_folder(folder: Path) -> None:
    """Delete a folder and the files in it; no-op where there is none."""
    with store_errors(folder):
        try:
            found = list(folder.iterdir())
        except FileNotFoundError:
            return
        for path in found:
            path.unlink(missing_ok=True)
        with suppress(OSError):  # someone has put a file there meanwhile
            folder.rmdir()


def write_new(path: Path, data: Data, *, durable: bool = True) -> None:
    """Write a file that must not exist yet, readable by its owner only, and make it durable."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, 0o600)
    with os.fdopen(handle, "wb") as file:
        for part in [data] if isinstance(data, bytes) else data:
            file.write(part)
        file.flush()
        if durable:
            os.fsync(file.fileno())


def write_atomically(path: Path, data: Data, *, durable: bool = True) -> None:
    """Replace ``path`` by ``data``: all of it or nothing, durable when the call returns.

    Through a temporary file of a unique name in the same folder, fsync, rename, fsync of the
    folder. The new file is readable by its owner only, and later than the old one to the
    nanosecond, so that it is told from that one even where it gets its inode. Where ``path``
    is a symbolic link, the file it points to is replaced. Raises ``StoreFailed`` and leaves
    the old file as it was. ``durable=False`` leaves out the fsyncs, for what can be made again:
    a crash of the machine may then leave it empty.
    """
    place = Path(os.path.realpath(path))
    temporary = place.with_name(f".{_short(place.name)}.{uuid.uuid4().hex}.tmp")
    with store_errors(path):
        try:
            write_new(temporary, data, durable=durable)
            _make_later(temporary, place)
            temporary.replace(place)
        except BaseException:
            with suppress(OSError):  # the error on its way says more, and sweep() makes up for it
                temporary.unlink(missing_ok=True)
            raise
    if durable:
        try:
            sync_folder(place.parent)
        except OSError as error:
            raise StoreFailed(
                f"{path}: {error.strerror or error}; it was written, but may not last: look "
                "whether it is there before you write it again"
            ) from error


def _make_later(new: Path, old: Path) -> None:
    with suppress(FileNotFoundError):  # there is no old one
        time = old.stat().st_mtime_ns
        if new.stat().st_mtime_ns <= time:
            os.utime(new, ns=(time + 1, time + 1))


def _short(name: str) -> str:
    """As much of a file's name as leaves room for more of it: names end at 255 bytes."""
    return os.fsencode(name)[:200].decode(errors="ignore")


def signature(path: Path) -> tuple[int, int, int] | None:
    """What changes when the file does; ``None`` where there is none."""
    with store_errors(path):
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
    return found.st_ino, found.st_size, found.st_mtime_ns


_TEMPORARY = re.compile(r"\.(.+?)(?:\.set-aside-[0-9a-f]+)?\.[0-9a-f]{32}\.tmp", re.DOTALL)


def sweep(*paths: Path) -> None:
    """Remove what killed writers of ``paths`` left beside them; hold their writers' lock."""
    names: dict[Path, set[str]] = {}
    for path in paths:
        place = Path(os.path.realpath(path))
        names.setdefault(place.parent, set()).add(_short(place.name))
    for folder, ours in names.items():
        with store_errors(folder):
            for left in folder.iterdir():
                found = _TEMPORARY.fullmatch(left.name)
                if found and found[1] in ours:
                    left.unlink(missing_ok=True)


def set_aside(path: Path, data: bytes | None = None) -> Path:
    """Keep a copy of ``path`` (or of ``data`` from it) beside it, and say so in the log.

    The copy is named after the file and after its own content, so that the same bytes are
    kept once however often they are met. Returns its path.
    """
    with store_errors(path):
        if data is None:
            data = path.read_bytes()
        digest = hashlib.blake2b(data, digest_size=6).hexdigest()
        copy = path.with_name(f"{_short(path.name)}.set-aside-{digest}")
        if copy.exists():
            return copy
        write_atomically(copy, data)
    log.warning("%s: %d unreadable bytes are set aside in %s", path, len(data), copy.name)
    return copy


def refuse_network(path: Path, *, allow: bool = False) -> None:
    """Raise ``NetworkFilesystem`` where ``path`` is on one, unless ``allow`` is set.

    Known on Linux, from the table of mounts; elsewhere nothing is refused.
    """
    kind = "" if allow else _filesystem(path)
    if kind in _NETWORK:
        raise NetworkFilesystem(
            f"{path} is on a network file system ({kind}), where locks may not hold and two "
            "writers could lose each other's memories; choose a local place, or pass "
            "allow_network=True if only one process ever writes"
        )


def _filesystem(path: Path) -> str:
    """The type of the file system that ``path`` is (or would be) on, "" if not known."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    place = os.path.realpath(path)
    kind, longest = "", -1
    for line in mounts.splitlines():
        _, mount, found, *_ = line.split(" ")
        for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
            mount = mount.replace(code, character)
        inside = place == mount or place.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= longest:
            kind, longest = found, len(mount)
    return kind


class Files(Protocol):
    """Where a store keeps files that are made of what it holds, by name, and can be made again.

    A file is there as a whole or not at all, and is never changed.
    """

    def names(self) -> list[str]:
        """The names of the files that are there, none where nothing is."""
        ...

    def open(self, name: str) -> bytes | mmap.mmap:
        """What is in a file. Raises an ``OSError``, of which ``StoreFailed`` is one."""
        ...

    def write(self, name: str, data: Sequence[bytes | memoryview]) -> None:
        """Keep a file. Raises ``StoreFailed``."""
        ...

    def remove(self, names: Sequence[str]) -> None:
        """Delete these, as far as they are there and nothing is in the way."""
        ...

    def sweep(self) -> None:
        """Delete what killed writers left. Raises ``StoreFailed``."""
        ...

    def clear(self) -> None:
        """Delete all of them. Raises ``StoreFailed``."""
        ...


@dataclass(frozen=True)
class Folder:
    """:class:`Files` in a folder, which is made when it is needed."""

    path: Path

    def names(self) -> list[str]:
        """The names of the files that are there; temporary ones are none."""
        try:
            return sorted(path.name for path in self.path.iterdir() if path.suffix != ".tmp")
        except OSError:
            return []

    def open(self, name: str) -> bytes | mmap.mmap:
        """What is in a file; a large one is mapped, and stays open as long as it is used."""
        with (self.path / name).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < _MAPPED or not size:
                return file.read()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def write(self, name: str, data: Sequence[bytes | memoryview]) -> None:
        """Keep a file, through a temporary one."""
        make_folder(self.path)
        write_atomically(self.path / name, data)

    def remove(self, names: Sequence[str]) -> None:
        """Delete these; what another process was quicker with, or has open, stays or is gone."""
        for name in names:
            with suppress(OSError):
                (self.path / name).unlink()

    def sweep(self) -> None:
        """Delete temporary files that are some minutes old."""
        with store_errors(self.path):
            for path in self.path.glob("*.tmp"):
                with suppress(OSError):
                    if time.time() - path.stat().st_mtime > _ABANDONED:
                        path.unlink()

    def clear(self) -> None:
        """Delete the folder."""
        remove_folder(self.path)
