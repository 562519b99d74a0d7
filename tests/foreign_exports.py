"""Exports of other programs, small and invented: what each looks like, and no more."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from retain import AgentMemory
from retain.models import Memory


def as_file(value: Any, indent: int | None = None) -> io.BytesIO:
    return io.BytesIO(json.dumps(value, indent=indent).encode())


def as_lines(*values: Any) -> io.BytesIO:
    return io.BytesIO("".join(f"{json.dumps(value)}\n" for value in values).encode())


def zipped(**files: Any) -> io.BytesIO:
    """A zip file with a file ``NAME.json`` for each argument."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            text = value if isinstance(value, str) else json.dumps(value)
            archive.writestr(f"{name}.json", text)
    file.seek(0)
    return file


def kept(memory: AgentMemory) -> list[Memory]:
    return sorted(memory.engine.store.list_all(), key=lambda each: (each.created_at, each.content))


def contents(memory: AgentMemory) -> list[str]:
    return [each.content for each in kept(memory)]


# -- ChatGPT ------------------------------------------------------------------------------------


def chatgpt_node(
    id: str, parent: str | None, role: str = "user", text: str = "Hello", **more: Any
) -> dict[str, Any]:
    message = {
        "id": id,
        "author": {"role": role, "name": None},
        "create_time": 1_700_000_000.5 + len(id),
        "content": {"content_type": "text", "parts": [text]},
        "recipient": "all",
        "metadata": {"model_slug": "gpt-x"} if role == "assistant" else {},
        **more,
    }
    return {"id": id, "parent": parent, "children": [], "message": message}


def chatgpt_chat(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    root = {"id": "root", "parent": None, "children": [], "message": None}
    return {
        "title": "Brot backen 🥖",
        "create_time": 1_700_000_000.25,
        "conversation_id": "chat-1",
        "mapping": {node["id"]: node for node in (root, *nodes)},
        "current_node": nodes[-1]["id"] if nodes else "root",
        **more,
    }


def bread() -> dict[str, Any]:
    """A question whose answer was asked for again: the second one is the current."""
    return chatgpt_chat(
        chatgpt_node("s", "root", "system", "You are kind."),
        chatgpt_node("q", "s", "user", "Wie lange geht Sauerteig?"),
        chatgpt_node("bad", "q", "assistant", "Two minutes."),
        chatgpt_node("good", "q", "assistant", "Over night."),
    )


# -- Claude -------------------------------------------------------------------------------------


def claude_message(number: int, sender: str, *texts: str, **more: Any) -> dict[str, Any]:
    return {
        "uuid": f"m{number}",
        "sender": sender,
        "text": " ".join(texts),
        "content": [{"type": "text", "text": text} for text in texts],
        "created_at": f"2026-02-03T10:0{number}:00.250000Z",
        "attachments": [],
        "files": [],
        **more,
    }


def claude_chat(*messages: Any, **more: Any) -> dict[str, Any]:
    return {
        "uuid": "talk-1",
        "name": "Тесто",
        "created_at": "2026-02-03T10:00:00Z",
        "chat_messages": list(messages),
        **more,
    }
