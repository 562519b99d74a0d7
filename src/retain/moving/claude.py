"""A conversation of Claude's data export: a list of messages, each of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .said import Lost, Said, text_of

__all__ = ["said"]

_ROLES = {"human": "user"}


def said(conversation: Mapping[str, Any]) -> Iterator[Said | Lost]:
    """What the person and the model told each other, in order.

    Of a message its blocks of text count, not those of thoughts and tools; files that were
    attached are named. ``chat_messages`` must be a list.
    """
    for number, message in enumerate(conversation["chat_messages"], 1):
        where = f"message {number}"
        if not isinstance(message, Mapping):
            yield Lost(where, f"it is a {type(message).__name__}, not an object")
            continue
        sender = message.get("sender")
        if not isinstance(sender, str) or not sender:
            yield Lost(where, "it names no sender")
            continue
        text = _text(message)
        if text is None:
            yield Lost(where, "it has neither text nor blocks of content")
            continue
        if not text.strip():
            continue
        id = text_of(message.get("uuid")) or str(number)
        files = [*_names(message.get("attachments")), *_names(message.get("files"))]
        about = {"files": files} if files else {}
        role = text_of(_ROLES.get(sender, sender))
        yield Said(id, where, role, text, message.get("created_at"), about)


def _text(message: Mapping[str, Any]) -> str | None:
    """What is said in it: its blocks of text, or where it has no blocks its text."""
    blocks = message.get("content")
    if isinstance(blocks, list) and blocks:
        texts = [
            block.get("text")
            for block in blocks
            if isinstance(block, Mapping) and block.get("type") == "text"
        ]
        said = "\n\n".join(text for text in texts if isinstance(text, str) and text.strip())
        if said:
            return said
        return "" if all(isinstance(block, Mapping) for block in blocks) else None
    text = message.get("text")
    return text if isinstance(text, str) else None


def _names(files: Any) -> list[str]:
    found = (
        [each.get("file_name") for each in files if isinstance(each, Mapping)]
        if isinstance(files, list)
        else []
    )
    return [text_of(name) for name in found if isinstance(name, str) and name]
