"""What was said in a conversation of another program, and what of it can't be read."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Lost", "Said", "text_of"]


class Said(NamedTuple):
    """A message: its id and place, who said what when, and what else is known of it.

    ``time``: as it stands there, or ``None``.
    """

    id: str
    where: str
    role: str
    text: str
    time: Any
    about: dict[str, Any]


class Lost(NamedTuple):
    """A part of a conversation that can't be read: where it stands, and why."""

    where: str
    problem: str


def text_of(value: Any) -> str:
    """``value`` if it is text, without lone surrogates, for a name or a title; else ``""``."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
