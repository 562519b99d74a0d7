"""A memory directory as one object of a bucket, or one file of any file system of fsspec."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InvalidType, InvalidValue, MissingPackage, RetainError, StoreFailed
from ..files import beside, make_folder, write_atomically
from ..locks import FileLock, ThreadLock
from .keys import checked_key, file_name

__all__ = ["FsspecKnowledgeBackend"]

_ATTEMPTS = 3  # at an object that is written again and again between reading and writing it
_OTHER_WRITER = (409, 412)  # what S3 answers then
_in_process = ThreadLock()  # for file systems that are a dictionary of this process


class FsspecKnowledgeBackend:
    """Keeps the blob in an object or a file; for ``KnowledgeMemory(backend=...)``.

    ``url``: a bucket or folder in which each ``key`` (1 to 512 characters without NUL) has an
    object of its own; without ``key``, the object itself. Anything that fsspec has a file
    system for: ``s3://`` (extra ``s3``), ``gs://``, ``az://``, ``sftp://``,
    ``file://`` and so on. ``storage_options``: what that file system takes, ``key`` and ``secret``
    of an account for instance.

    Two hosts that save at once don't lose each other's facts on S3 and services that know its
    conditional writes (``If-Match``), nor in a local folder, where a lock is held meanwhile.
    On other file systems the object is read and compared just before it is written, and what
    another host writes in that moment is lost. Raises ``StoreFailed`` where the file system
    can't be reached or refuses.

    >>> import tempfile
    >>> from retain import FsspecKnowledgeBackend
    >>> backend = FsspecKnowledgeBackend(f"file://{tempfile.mkdtemp()}", "user-123")
    >>> backend.save_bytes(b"all that is known")
    >>> backend.load_bytes()
    b'all that is known'
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            import fsspec  # type: ignore[import-untyped]
        except ImportError as error:
            raise MissingPackage.needed("FsspecKnowledgeBackend", "fsspec", error) from error
        if not isinstance(url, str):
            raise InvalidType(f"url is a {type(url).__name__}; give text")
        self.key = key if key is None else checked_key(key)
        self.url = url if key is None else f"{url.rstrip('/')}/{file_name(key)}"
        try:
            self._fs, self._path = fsspec.core.url_to_fs(self.url, **(storage_options or {}))
        except ImportError as error:
            if url.startswith("s3://"):
                raise MissingPackage.needed("s3://…", "s3", error) from error
            raise MissingPackage(f"{_shown(url)} needs more: {error}", name=error.name) from error
        except ValueError as error:
            raise InvalidValue(
                f"url={_shown(url)!r} is no place that fsspec knows: {error}"
            ) from None
        kinds = (self._fs.protocol,) if isinstance(self._fs.protocol, str) else self._fs.protocol
        self._is_local = "file" in kinds
        self._is_s3 = "s3" in kinds
        self._is_dictionary = "memory" in kinds
        self._seen: tuple[bytes, str] | None = None  # digest of a blob, its ETag

    def load_bytes(self) -> bytes | None:
        """The blob, ``None`` if there is none."""
        with self._errors():
            return self._read()

    def save_bytes(self, data: bytes) -> None:
        """Keep ``data``, whatever was there."""
        with self._errors(), self._alone():
            self._write(data)

    def replace_bytes(self, old: bytes | None, new: bytes) -> bool:
        """Keep ``new`` if ``old`` is still what is kept (``None``: nothing); whether it was."""
        with self._errors(), self._alone():
            if self._is_s3:
                return self._replace_object(old, new)
            kept = self._read()
            if kept != old:
                return kept == new  # by this very call, perhaps, whose answer was lost
            self._write(new)
            return True

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else writes meanwhile, where a lock can see to it."""
        if self._is_local:
            place = Path(self._path)
            make_folder(place.parent)
            with FileLock(beside(place, ".lock")).held():
                yield
        elif self._is_dictionary:
            with _in_process:
                yield
        else:
            yield

    def _read(self) -> bytes | None:
        try:
            return bytes(self._fs.cat_file(self._path))
        except FileNotFoundError:
            return None

    def _write(self, data: bytes) -> None:
        if self._is_local:
            write_atomically(Path(self._path), data)
        else:
            self._fs.pipe_file(self._path, data)

    # -- S3, which compares by itself ------------------------------------------------------

    def _replace_object(self, old: bytes | None, new: bytes) -> bool:
        seen, tag = self._seen or (b"", None)
        if old is not None and seen == _digest(old) and self._put(new, {"IfMatch": str(tag)}):
            return True
        for _ in range(_ATTEMPTS):
            tag = self._tag()  # before the content: of a newer content it would let us replace that
            kept = None if tag is None else self._read()
            if kept == new and kept is not None:
                return True  # by this very call, whose answer was lost
            if kept != old:
                return False
            if self._put(new, {"IfNoneMatch": "*"} if tag is None else {"IfMatch": tag}):
                return True
        return False

    def _tag(self) -> str | None:
        self._fs.invalidate_cache()
        try:
            return str(self._fs.info(self._path)["ETag"])
        except FileNotFoundError:
            return None

    def _put(self, data: bytes, condition: dict[str, str]) -> bool:
        """Write under a condition; whether it held."""
        self._seen = None
        try:  # one request: of an upload in parts the condition would not be asked
            answer = self._fs.pipe_file(self._path, data, chunksize=len(data) + 1, **condition)
        except OSError as error:
            if _status(error) in _OTHER_WRITER:
                return False
            raise
        if isinstance(answer, dict) and answer.get("ETag"):
            self._seen = _digest(data), answer["ETag"]
        return True

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except RetainError:
            raise
        except ImportError as error:
            raise MissingPackage(
                f"{_shown(self.url)} needs more: {error}", name=error.name
            ) from error
        except Exception as error:  # each file system has its own
            raise StoreFailed(
                f"{_shown(self.url)}: {error or type(error).__name__}; see that the place is "
                "there, can be reached and may be written"
            ) from error


def _status(error: BaseException | None) -> int:
    """The HTTP status that S3 answered with, which s3fs keeps in the cause; 0 for another."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        error = error.__cause__
    return 0


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _shown(url: str) -> str:
    """A URL as messages have it: without user and password."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}" if mark else url
