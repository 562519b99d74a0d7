"""A memory directory carried between hosts as one blob."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from .archive import pack, read_directory, unpack, write_directory

__all__ = [
    "ComparingBackend",
    "KnowledgeBackend",
    "pack",
    "read_directory",
    "unpack",
    "write_directory",
]


@runtime_checkable
class KnowledgeBackend(Protocol):
    """Where the blob is kept between two hosts: anything with these two methods will do.

    ``isinstance`` tells only whether the methods are there, not what they take and return.
    A third one, of :class:`ComparingBackend`, keeps two hosts that save at once from losing
    each other's facts. An attribute ``key``, a text that says whose memory it is, keeps one
    directory from being taken for two people's.

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


@runtime_checkable
class ComparingBackend(KnowledgeBackend, Protocol):
    """A back end that replaces a blob only if it is still the one that the caller knows.

    >>> from retain.backends import ComparingBackend
    >>> isinstance(object(), ComparingBackend)
    False
    """

    def replace_bytes(self, old: bytes | None, new: bytes) -> bool:
        """Keep ``new`` if ``old`` is what is kept now (``None``: nothing is), in one step.

        Whether it was; where it was not, nothing is changed. Raises if it can't be told.
        """
        ...
