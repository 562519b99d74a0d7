"""The wire formats of ``model_server``: requests read, answers and events written.

Events are made of the whole answer, so that a streamed answer and a plain one can't differ.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["WIRES", "Asked", "Conversations", "Wire", "model", "models", "new_id"]

_PIECE = 7  # characters of a streamed delta


@dataclass(frozen=True)
class Asked:
    """One request, in the same terms whatever the wire.

    ``system``: all system, developer and instruction text. ``messages``: (role, text) of the
    rest, in order, with the role ``tool`` for a result. ``tools``: the names on offer, and
    ``schemas`` their parameters by name. ``raw`` is the JSON, ``wire`` one of ``chat``,
    ``responses`` and ``messages``, ``headers`` have lower-case names.
    """

    wire: str
    raw: dict[str, Any]
    headers: dict[str, str]
    system: str
    messages: list[tuple[str, str]]
    schemas: dict[str, Any]

    @property
    def tools(self) -> list[str]:
        return list(self.schemas)

    @property
    def prompt(self) -> str:
        """Everything that the model reads, as one text."""
        return "\n\n".join(filter(None, [self.system, *(text for _, text in self.messages)]))

    @property
    def last_user(self) -> str:
        """The last thing that the user said."""
        return next((text for role, text in reversed(self.messages) if role == "user"), "")

    @property
    def last_result(self) -> str:
        """What tools have answered since then, a line each."""
        results: list[str] = []
        for role, text in reversed(self.messages):
            if role == "user":
                break
            if role == "tool":
                results.insert(0, text)
        return "\n".join(results)


class Conversations:
    """What a responses request may refer to instead of repeating it."""

    def __init__(self) -> None:
        self._items: dict[str, list[Any]] = {}
        self._lock = threading.Lock()

    def before(self, raw: dict[str, Any]) -> list[Any]:
        with self._lock:
            return list(self._items.get(raw.get("previous_response_id") or "", []))

    def keep(self, asked: Asked, answer: dict[str, Any]) -> None:
        if asked.wire == "responses":
            items = [*self.before(asked.raw), *_as_items(asked.raw["input"]), *answer["output"]]
            with self._lock:
                self._items[answer["id"]] = items


class Wire(Protocol):
    def read(self, raw: dict[str, Any], headers: dict[str, str], kept: Conversations) -> Asked: ...

    def answer(self, asked: Asked, reply: Any) -> dict[str, Any]: ...

    def events(self, asked: Asked, answer: dict[str, Any]) -> Iterator[str]: ...

    def error(self, status: int, message: str) -> dict[str, Any]: ...


def new_id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex}"


def _text(content: Any) -> str:
    """The text of a content, be it text or parts."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part["text"] for part in content if isinstance(part.get("text"), str))


def _pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]


def _arguments(given: dict[str, Any] | str) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _tokens(text: str) -> int:
    return len(text) // 4 + 1


def _asked(
    wire: str,
    raw: dict[str, Any],
    headers: dict[str, str],
    said: list[tuple[str, str]],
    schemas: dict[str, Any],
) -> Asked:
    """The request of which this was said, by whomever."""
    system = "\n\n".join(text for role, text in said if role in ("system", "developer"))
    rest = [(role, text) for role, text in said if role not in ("system", "developer")]
    lowered = {name.lower(): value for name, value in headers.items()}
    return Asked(wire, raw, lowered, system, rest, schemas)


class _OpenAI:
    """What both of OpenAI's formats share."""

    def error(self, status: int, message: str) -> dict[str, Any]:
        kinds = {401: "invalid_api_key", 429: "rate_limit_exceeded", 404: "model_not_found"}
        kind = "server_error" if status >= 500 else "invalid_request_error"
        said = message or f"The scripted service answers {status}."
        return {"error": {"message": said, "type": kind, "param": None, "code": kinds.get(status)}}


class Chat(_OpenAI):
    """OpenAI's ``/v1/chat/completions``."""

    def read(self, raw: dict[str, Any], headers: dict[str, str], kept: Conversations) -> Asked:
        said = [(m["role"], _text(m.get("content"))) for m in raw["messages"]]
        offered = [tool["function"] for tool in raw.get("tools") or [] if "function" in tool]
        schemas = {each["name"]: each.get("parameters") for each in offered}
        return _asked("chat", raw, headers, said, schemas)

    def answer(self, asked: Asked, reply: Any) -> dict[str, Any]:
        calls = [
            {
                "id": new_id("call"),
                "type": "function",
                "function": {"name": name, "arguments": _arguments(given)},
            }
            for name, given in reply.calls
        ]
        message: dict[str, Any] = {
            "role": "assistant",
            "content": reply.text if reply.text or not (calls or reply.refusal) else None,
            "refusal": reply.refusal or None,
            "annotations": [],
        }
        if calls:
            message["tool_calls"] = calls
        finish = reply.finish or ("tool_calls" if calls else "stop")
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        read, written = _tokens(asked.prompt), _tokens(reply.text or reply.refusal)
        usage = {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        }
        return {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": asked.raw.get("model"),
            "choices": [choice],
            "usage": usage,
            "service_tier": "default",
            "system_fingerprint": "fp_scripted",
        }

    def events(self, asked: Asked, answer: dict[str, Any]) -> Iterator[str]:
        message = answer["choices"][0]["message"]
        told = bool((asked.raw.get("stream_options") or {}).get("include_usage"))
        frame = {k: v for k, v in answer.items() if k not in ("choices", "usage")}
        frame["object"] = "chat.completion.chunk"

        def chunk(choices: list[Any], usage: Any = None) -> str:
            last = {"usage": usage} if told else {}
            return f"data: {json.dumps({**frame, 'choices': choices, **last})}\n\n"

        def delta(what: dict[str, Any], finish: str | None = None) -> str:
            return chunk([{"index": 0, "delta": what, "logprobs": None, "finish_reason": finish}])

        opened = None if message.get("tool_calls") else ""
        yield delta({"role": "assistant", "content": opened, "refusal": None})
        for name in ("content", "refusal"):
            for piece in _pieces(message[name] or ""):
                yield delta({name: piece})
        for index, call in enumerate(message.get("tool_calls", [])):
            head = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
            yield delta({"tool_calls": [head]})
            for piece in _pieces(call["function"]["arguments"]):
                yield delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield delta({}, answer["choices"][0]["finish_reason"])
        if told:
            yield chunk([], answer["usage"])
        yield "data: [DONE]\n\n"


def _as_items(given: Any) -> list[Any]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given or [])


class Responses(_OpenAI):
    """OpenAI's ``/v1/responses``."""

    def read(self, raw: dict[str, Any], headers: dict[str, str], kept: Conversations) -> Asked:
        said = [("system", _text(raw.get("instructions")))] if raw.get("instructions") else []
        for item in [*kept.before(raw), *_as_items(raw["input"])]:
            if item.get("type") == "function_call_output":
                said.append(("tool", _text(item["output"])))
            elif item.get("type", "message") == "message":
                said.append((item["role"], _text(item["content"])))
        offered = [tool for tool in raw.get("tools") or [] if tool["type"] == "function"]
        schemas = {each["name"]: each.get("parameters") for each in offered}
        return _asked("responses", raw, headers, said, schemas)

    def answer(self, asked: Asked, reply: Any) -> dict[str, Any]:
        calls = list(reply.calls)
        output: list[dict[str, Any]] = []
        if reply.text or reply.refusal or not calls:
            if reply.refusal:
                part = {"type": "refusal", "refusal": reply.refusal}
            else:
                part = {"type": "output_text", "text": reply.text}
                part |= {"annotations": [], "logprobs": []}
            status = "incomplete" if reply.finish else "completed"
            item = {"id": new_id("msg"), "type": "message", "status": status}
            output.append({**item, "role": "assistant", "content": [part]})
        for name, given in calls:
            item = {"id": new_id("fc"), "type": "function_call", "status": "completed"}
            call = {"call_id": new_id("call"), "name": name, "arguments": _arguments(given)}
            output.append({**item, **call})
        return {**self._frame(asked, reply), "output": output}

    def _frame(self, asked: Asked, reply: Any) -> dict[str, Any]:
        raw = asked.raw
        read, written = _tokens(asked.prompt), _tokens(reply.text or reply.refusal)
        why = {"length": "max_output_tokens"}.get(reply.finish, reply.finish)
        usage = {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read + written,
        }
        return {
            "id": new_id("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "status": "incomplete" if reply.finish else "completed",
            "background": False,
            "error": None,
            "incomplete_details": {"reason": why} if reply.finish else None,
            "instructions": raw.get("instructions"),
            "max_output_tokens": raw.get("max_output_tokens"),
            "model": raw.get("model"),
            "parallel_tool_calls": raw.get("parallel_tool_calls", True),
            "previous_response_id": raw.get("previous_response_id"),
            "reasoning": {"effort": None, "summary": None},
            "store": raw.get("store", True),
            "temperature": raw.get("temperature", 1.0),
            "text": raw.get("text") or {"format": {"type": "text"}},
            "tool_choice": raw.get("tool_choice") or "auto",
            "tools": raw.get("tools") or [],
            "top_p": raw.get("top_p", 1.0),
            "truncation": "disabled",
            "usage": usage,
            "user": None,
            "metadata": raw.get("metadata") or {},
        }

    def events(self, asked: Asked, answer: dict[str, Any]) -> Iterator[str]:
        begun = {**answer, "status": "in_progress", "output": [], "usage": None}
        begun["incomplete_details"] = None
        everything = [
            ("response.created", {"response": begun}),
            ("response.in_progress", {"response": begun}),
        ]
        for index, item in enumerate(answer["output"]):
            of_item = self._call(item) if item["type"] == "function_call" else self._message(item)
            everything += [(kind, {"output_index": index, **data}) for kind, data in of_item]
        everything.append((f"response.{answer['status']}", {"response": answer}))
        for number, (kind, data) in enumerate(everything):
            yield _event(kind, {"type": kind, "sequence_number": number, **data})

    def _call(self, item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        arguments = "response.function_call_arguments"
        place = {"item_id": item["id"]}
        opened = {**item, "status": "in_progress", "arguments": ""}
        yield "response.output_item.added", {"item": opened}
        for piece in _pieces(item["arguments"]):
            yield f"{arguments}.delta", {**place, "delta": piece}
        whole = {"arguments": item["arguments"], "name": item["name"]}
        yield f"{arguments}.done", {**place, **whole}
        yield "response.output_item.done", {"item": item}

    def _message(self, item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        part = item["content"][0]
        name = "refusal" if part["type"] == "refusal" else "text"
        stream = "response.refusal" if name == "refusal" else "response.output_text"
        place = {"item_id": item["id"], "content_index": 0}
        more = {} if name == "refusal" else {"logprobs": []}
        yield (
            "response.output_item.added",
            {"item": {**item, "status": "in_progress", "content": []}},
        )
        yield "response.content_part.added", {**place, "part": {**part, name: ""}}
        for piece in _pieces(part[name]):
            yield f"{stream}.delta", {**place, "delta": piece, **more}
        yield f"{stream}.done", {**place, name: part[name], **more}
        yield "response.content_part.done", {**place, "part": part}
        yield "response.output_item.done", {"item": item}


class Messages:
    """Anthropic's ``/v1/messages``."""

    def read(self, raw: dict[str, Any], headers: dict[str, str], kept: Conversations) -> Asked:
        said = [("system", _text(raw["system"]))] if raw.get("system") else []
        for message in raw["messages"]:
            said += self._said(message["role"], message["content"])
        tools = [tool for tool in raw.get("tools") or [] if "name" in tool]
        schemas = {tool["name"]: tool.get("input_schema") for tool in tools}
        return _asked("messages", raw, headers, said, schemas)

    def _said(self, role: str, content: Any) -> Iterator[tuple[str, str]]:
        """One turn: its results, and its texts in one."""
        if isinstance(content, str):
            yield role, content
            return
        texts = []
        for block in content:
            if block["type"] == "tool_result":
                yield "tool", _text(block.get("content"))
            elif block["type"] == "text":
                texts.append(block["text"])
        if texts or role == "assistant":
            yield role, "\n".join(texts)

    def answer(self, asked: Asked, reply: Any) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if reply.thinking:
            signature = uuid.uuid5(uuid.NAMESPACE_OID, reply.thinking).hex
            thoughts = {"thinking": reply.thinking, "signature": signature}
            content.append({"type": "thinking", **thoughts})
        if reply.text:
            content.append({"type": "text", "text": reply.text, "citations": None})
        for name, given in reply.calls:
            call = {"id": new_id("toolu"), "name": name, "input": given}
            content.append({"type": "tool_use", **call})
        called = any(block["type"] == "tool_use" for block in content)
        stop = {"length": "max_tokens", "content_filter": "refusal"}.get(reply.finish)
        stop = "refusal" if reply.refusal else stop or ("tool_use" if called else "end_turn")
        why = {"type": "refusal", "category": None, "explanation": reply.refusal}
        return {
            "id": new_id("msg"),
            "type": "message",
            "role": "assistant",
            "model": asked.raw.get("model"),
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "stop_details": why if reply.refusal else None,
            "usage": {
                "input_tokens": _tokens(asked.prompt),
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": _tokens(reply.text),
                "service_tier": "standard",
            },
        }

    def events(self, asked: Asked, answer: dict[str, Any]) -> Iterator[str]:
        empty = {"content": [], "stop_reason": None, "stop_details": None}
        usage = {**answer["usage"], "output_tokens": 1}
        opened = {**answer, **empty, "usage": usage}
        yield _event("message_start", {"type": "message_start", "message": opened})
        yield _event("ping", {"type": "ping"})
        for index, block in enumerate(answer["content"]):
            for kind, data in self._block(block):
                yield _event(kind, {"type": kind, "index": index, **data})
        delta = {name: answer[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
        used = {"output_tokens": answer["usage"]["output_tokens"]}
        yield _event("message_delta", {"type": "message_delta", "delta": delta, "usage": used})
        yield _event("message_stop", {"type": "message_stop"})

    def _block(self, block: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        if block["type"] == "tool_use":
            opened, whole, kind = {"input": {}}, _arguments(block["input"]), "input_json"
        elif block["type"] == "thinking":
            opened, whole, kind = {"thinking": "", "signature": ""}, block["thinking"], "thinking"
        else:
            opened, whole, kind = {"text": ""}, block["text"], "text"
        member = {"input_json": "partial_json"}.get(kind, kind)
        yield "content_block_start", {"content_block": {**block, **opened}}
        for piece in _pieces(whole):
            yield "content_block_delta", {"delta": {"type": f"{kind}_delta", member: piece}}
        if kind == "thinking":
            signed = {"type": "signature_delta", "signature": block["signature"]}
            yield "content_block_delta", {"delta": signed}
        yield "content_block_stop", {}

    def error(self, status: int, message: str) -> dict[str, Any]:
        kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
        kinds |= {429: "rate_limit_error", 529: "overloaded_error"}
        kind = kinds.get(status, "api_error" if status >= 500 else "invalid_request_error")
        said = message or f"The scripted service answers {status}."
        detail = {"type": kind, "message": said}
        return {"type": "error", "error": detail, "request_id": new_id("req")}


def _event(kind: str, data: dict[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"


WIRES: dict[str, Wire] = {
    "/chat/completions": Chat(),
    "/responses": Responses(),
    "/messages": Messages(),
}


def model(name: str, anthropic: bool) -> dict[str, Any]:
    """What the service says of a model."""
    if anthropic:
        made = "2025-01-01T00:00:00Z"
        return {"type": "model", "id": name, "display_name": name, "created_at": made}
    return {"id": name, "object": "model", "created": 1735689600, "owned_by": "script"}


def models(names: list[str], anthropic: bool) -> dict[str, Any]:
    """The list of them."""
    data = [model(name, anthropic) for name in names]
    if anthropic:
        return {"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]}
    return {"object": "list", "data": data}
