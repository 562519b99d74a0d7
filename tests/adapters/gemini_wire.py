"""Gemini's wire format for ``model_server``: ``generateContent``, plain and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import model_wires
from model_wires import Asked, Conversations

__all__ = ["add_to_server"]


class Gemini:
    """What the service is asked and answers, in Google's words."""

    def __init__(self, streamed: bool) -> None:
        self._streamed = streamed

    def read(self, raw: dict[str, Any], headers: dict[str, str], kept: Conversations) -> Asked:
        messages = [said for content in raw["contents"] for said in _said(content)]
        functions = [f for t in raw.get("tools") or [] for f in t.get("functionDeclarations", [])]
        return Asked(
            "gemini",
            {**raw, "stream": self._streamed},
            {name.lower(): value for name, value in headers.items()},
            "\n\n".join(part["text"] for part in raw.get("systemInstruction", {}).get("parts", [])),
            messages,
            {f["name"]: f.get("parameters") or f.get("parametersJsonSchema") for f in functions},
        )

    def answer(self, asked: Asked, reply: Any) -> dict[str, Any]:
        parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
        parts += [{"functionCall": {"name": name, "args": args}} for name, args in reply.calls]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        return {"candidates": [{**candidate, "index": 0}], "modelVersion": "scripted-1"}

    def events(self, asked: Asked, answer: dict[str, Any]) -> Iterator[str]:
        (candidate,) = answer["candidates"]
        pieces = [
            piece
            for part in candidate["content"]["parts"]
            for piece in (_cut(part["text"]) if "text" in part else [part])
        ]
        for number, piece in enumerate(pieces, 1):
            part = {"content": {"role": "model", "parts": [piece]}, "index": 0}
            end = {"finishReason": candidate["finishReason"]} if number == len(pieces) else {}
            yield f"data: {json.dumps({**answer, 'candidates': [{**part, **end}]})}\r\n\r\n"

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"error": {"code": status, "message": message, "status": "UNAVAILABLE"}}


def _said(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for part in content["parts"]:
        if "functionResponse" in part:
            yield "tool", "\n".join(_texts(part["functionResponse"]["response"]))
        elif "text" in part:
            yield content["role"], part["text"]


def _texts(value: Any) -> Iterator[str]:
    """Every text of a JSON value: what the model reads of it."""
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if _is_list(value) else ():
        yield from _texts(each)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _cut(text: str) -> list[dict[str, Any]]:
    return [{"text": text[at : at + 7]} for at in range(0, len(text), 7)]


def add_to_server() -> None:
    """Let every ``ModelServer`` of this process speak it, too."""
    model_wires.WIRES[":generateContent"] = Gemini(streamed=False)
    model_wires.WIRES[":streamGenerateContent"] = Gemini(streamed=True)
