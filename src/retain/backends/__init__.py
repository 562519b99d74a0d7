"""A memory directory carried between hosts as one blob."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from .archive import pack, read_directory, unpack, write_directory

__all__ = ["KnowledgeBackend", "pack", "read_directory", "unpack", "write_directory"]


@runtime_checkable
class KnowledgeBackend(Protocol):
    """Where the blob is kept between two hosts: anything with these two methods will do.

    ``isinstance`` tells only whether the methods are there, not what they take and return.

    >>> class InProcess:
    ...     data = None
    ...     def load_bytes(self):
    ...         return self.data
    ...     def save_bytes(self, data):
    ...         self.data = data
    >>> isinstance(InProcess(), KnowledgeBackend)
    True
    """

    def load_bytes(self) -> bytes | None:
        """The blob that was saved last, or ``None`` if there is none yet. Raises on failure."""
        ...

    def save_bytes(self, data: bytes) -> None:
        """Keep ``data`` in place of what was saved before. Raises if it could not be kept."""
        ...
