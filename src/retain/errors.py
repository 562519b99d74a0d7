"""Everything that retain raises.

Each error has two bases: :class:`RetainError`, to catch all of them, and the built-in
exception that a caller who never heard of retain would catch for the same mistake.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

__all__ = [
    "Conflict",
    "EmbeddingFailed",
    "ExtractionFailed",
    "InvalidType",
    "InvalidValue",
    "MissingPackage",
    "MissingRow",
    "NetworkFilesystem",
    "NotFound",
    "ProviderFailed",
    "Rejected",
    "RetainError",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreFailed",
    "StoreTooNew",
]


class RetainError(Exception):
    """The base of every error that retain raises."""


class InvalidValue(RetainError, ValueError):
    """A value of the right type that breaks a rule; nothing was changed."""


class InvalidType(RetainError, TypeError):
    """A value of the wrong type; nothing was changed."""


class NotFound(RetainError, KeyError):
    """Nothing of that name is there: no memory of that id in the scope, no such tool."""

    def __str__(self) -> str:  # KeyError would print the message in quotes
        return str(self.args[0]) if self.args else "not found"


class Rejected(RetainError):
    """A ``pre_save`` hook refused the text; nothing was written.

    ``hook`` is the name of the hook, ``reason`` the sentence that says so.
    """

    def __init__(self, reason: str, *, hook: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hook = hook


class Conflict(RetainError, RuntimeError):
    """Another writer changed the memory between the read and the write; read it again."""


class EmbeddingFailed(RetainError, RuntimeError):
    """A model or an embedding service gave no vectors, or vectors that cannot be right."""


class ProviderFailed(RetainError, RuntimeError):
    """The service of a model refused, failed or answered what is no answer."""


class ExtractionFailed(RetainError, RuntimeError):
    """A model gave nothing that memories can be made of; what was said is kept all the same.

    ``turns``: the memories of what was said, where ``observe`` raises it: give them to it again.
    """

    def __init__(self, *args: object, turns: Sequence[Any] = ()) -> None:
        super().__init__(*args)
        self.turns = list(turns)


class MissingPackage(RetainError, ImportError):
    """Something optional is not installed; the message says which extra brings it."""

    @classmethod
    def needed(cls, what: str, extra: str, error: ImportError) -> MissingPackage:
        """The error of ``what`` that needs ``extra``, where importing failed with ``error``."""
        return cls(f"{what} needs more: {installing(extra)} ({error})", name=error.name)


def installing(extra: str) -> str:
    """The command that installs what an extra of retain brings.

    It names the packages themselves: on the package index, ``retain`` is another project.

    >>> installing("plot")
    "pip install 'matplotlib>=3.8'"
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        wanted = [each.partition(";") for each in requires("retain") or ()]
    except PackageNotFoundError:  # not installed, but run from where it lies
        wanted = []
    of_extra = re.compile(rf"""extra\s*==\s*["']{re.escape(extra)}["']""")
    packages = [name.strip() for name, _, marker in wanted if of_extra.search(marker)]
    if not packages:
        return f"install retain with its extra {extra!r}"
    return "pip install " + " ".join(f"'{package}'" for package in packages)


class StoreFailed(RetainError, OSError):
    """The disk or the server refused a read or a write; nothing of it was kept."""


class StoreBusy(StoreFailed, TimeoutError):
    """Another process held the store for longer than the time-out."""


class StoreCorrupt(StoreFailed):
    """A file is not what it should be; it was left as it is."""


class MissingRow(StoreFailed, RuntimeError):
    """A row that must be there before it is written to is not; nothing was saved."""


class StoreTooNew(StoreFailed):
    """The store was written by a newer version of retain."""


class StoreClosed(RetainError, RuntimeError):
    """The store was closed before this call."""


class NetworkFilesystem(StoreFailed):
    """The place is on a network file system, where locks may not hold."""
