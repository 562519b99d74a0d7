"""A conversation of ChatGPT's data export: a tree of messages, of which one path is what was said.

Each answer that was asked for again and each question that was edited is a branch of it; the path
leads from ``current_node`` to the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .said import Lost, Said, text_of

__all__ = ["said"]

_SPOKEN = ("user", "assistant")
# Of an assistant's message: what it thinks, what it is told, and what it looks at.
_SILENT = {
    *("thoughts", "reasoning_recap", "model_editable_context", "user_editable_context"),
    *("tether_browsing_display", "tether_quote", "system_error", "execution_output"),
}


def said(conversation: Mapping[str, Any]) -> Iterator[Said | Lost]:
    """What the person and the model told each other, in order, along the current path.

    Messages of the system and of tools, those to tools, thoughts, hidden ones and ones without
    text are passed over. ``mapping`` must be an object.
    """
    mapping: Mapping[str, Any] = conversation["mapping"]
    path, lost = _path(mapping, conversation.get("current_node"))
    yield from lost
    for id in path:
        node = mapping[id]
        message = node.get("message")
        where = f"message {text_of(id)}"
        if message is None:
            continue
        if not isinstance(message, Mapping):
            yield Lost(where, f"it is a {type(message).__name__}, not an object")
            continue
        found = _message(text_of(id), where, message)
        if found is not None:
            yield found


def _path(mapping: Mapping[str, Any], current: Any) -> tuple[list[str], list[Lost]]:
    """The ids from the root to the current node, and what breaks the way."""
    lost = [
        Lost(f"message {text_of(id)}", f"its node is a {type(node).__name__}, not an object")
        for id, node in mapping.items()
        if not isinstance(node, Mapping)
    ]
    at = current if isinstance(current, str) and current in mapping else _last_leaf(mapping)
    path: list[str] = []
    seen: set[str] = set()
    while at is not None:
        where = f"message {text_of(path[-1])}" if path else "its current node"
        if not isinstance(at, str) or at not in mapping:
            lost.append(
                Lost(where, f"what it answers, {at!r:.60}, is not there; nor is what led to it")
            )
            break
        if at in seen:
            lost.append(Lost(where, f"it answers {at!r:.60}, which answers it: a circle, cut here"))
            break
        seen.add(at)
        if not isinstance(mapping[at], Mapping):
            break
        path.append(at)
        at = mapping[at].get("parent")
    return path[::-1], lost


def _last_leaf(mapping: Mapping[str, Any]) -> str | None:
    """The last message that none answers, where no current one is told."""
    nodes = [node for node in mapping.values() if isinstance(node, Mapping)]
    parents = {node["parent"] for node in nodes if isinstance(node.get("parent"), str)}
    leaves = [id for id, node in mapping.items() if id not in parents and isinstance(node, Mapping)]
    return leaves[-1] if leaves else next(reversed(list(mapping)), None)


def _message(id: str, where: str, message: Mapping[str, Any]) -> Said | Lost | None:
    author, content = message.get("author"), message.get("content")
    role = author.get("role") if isinstance(author, Mapping) else None
    if not isinstance(role, str):
        return Lost(where, "it names no role of its author")
    about = message.get("metadata")
    about = about if isinstance(about, Mapping) else {}
    hidden = about.get("is_visually_hidden_from_conversation") is True
    recipient = message.get("recipient")
    if role not in _SPOKEN or hidden or recipient not in (None, "all"):
        return None
    if content is None:
        return None
    if not isinstance(content, Mapping):
        return Lost(where, f"its content is a {type(content).__name__}, not an object")
    if content.get("content_type") in _SILENT:
        return None
    text = _text(content)
    if text is None:
        return Lost(where, f"its content of type {content.get('content_type')!r:.60} has no text")
    if not text.strip():
        return None
    model = text_of(about.get("model_slug"))
    own = message.get("id")
    own = text_of(own) if isinstance(own, str) and own else id
    return Said(own, where, role, text, message.get("create_time"), {"model": model})


def _text(content: Mapping[str, Any]) -> str | None:
    """The text of a message, or what was heard; ``None`` if it has no place for any."""
    parts = content.get("parts")
    if isinstance(parts, list):
        texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
        return "\n".join(text for text in texts if isinstance(text, str) and text)
    text = content.get("text")
    return text if isinstance(text, str) else None
