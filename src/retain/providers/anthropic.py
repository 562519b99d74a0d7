"""Anthropic's models, by its messages API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import InvalidType, MissingPackage
from ..messages import Message, Role, ToolCall
from .base import Offered
from .service import Requests, Service, arguments, paired, wire_name

__all__ = ["AnthropicProvider"]

_MAX_TOKENS = 4096
_LONGEST_ID = 128


class AnthropicProvider(Service):
    """A model of Anthropic's.

    ``model``: what is asked where ``AgentConfig.model`` is ``""``. ``api_key``: otherwise
    ``ANTHROPIC_API_KEY`` of the environment. ``base_url``: another address that speaks the
    messages API (without ``/v1``); it gets no key but ``api_key``. ``client``: an
    ``anthropic.Anthropic`` or ``AsyncAnthropic`` of your own (those for Bedrock and Vertex
    too), with its own key, URL and retries; it is not closed. ``max_retries``: how often a call
    is made again after a lost connection, 408, 409, 429 or 5xx. ``options``: further members of
    every request, such as ``{"thinking": {"type": "adaptive"}}``.

    Without ``max_tokens`` an answer has at most 4,096 tokens. ``timeout`` is for each attempt.
    The newest models take no ``temperature``. An answer that was cut short is given as far as
    it came, with a warning in the log; its ``usage`` has ``stop_reason``. Thoughts are no part
    of the answer, but go back to the model with the results of the tools that it called after
    them. System messages join the system prompt. For JSON, the model has to call a tool with
    these arguments; most, not all, keep to the schema. A model that thinks may not be made to
    call a tool: ``thinking`` among ``options`` is left out there.

    Needs the extra ``anthropic``, else raises ``MissingPackage``; connects with the first call.
    One provider serves any number of threads, event loops and runs. :meth:`close` or ``with``
    ends its connections.

    >>> AnthropicProvider("claude-sonnet-5-5")
    AnthropicProvider('claude-sonnet-5-5')
    """

    name = "Anthropic's service"
    variable = "ANTHROPIC_API_KEY"

    def __init__(
        self,
        model: str = "claude-haiku-5-5",
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: Any = None,
        max_retries: int = 2,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            model,
            api_key=api_key,
            base_url=base_url,
            client=client,
            max_retries=max_retries,
            options=options,
        )

    def _check_package(self) -> None:
        try:
            import anthropic  # noqa: F401
        except ImportError as error:
            raise MissingPackage.needed("AnthropicProvider", "anthropic", error) from error

    def _made(self, awaited: bool, settings: dict[str, Any]) -> Any:
        import anthropic

        return anthropic.AsyncAnthropic(**settings) if awaited else anthropic.Anthropic(**settings)

    def _send(self, client: Any, request: dict[str, Any]) -> Any:
        if "tool_choice" in request:
            request["extra_body"].pop("thinking", None)
        return client.messages.create(**request)

    def _request(
        self,
        model: str,
        system_prompt: str,
        messages: Sequence[Message],
        temperature: float | None,
        max_tokens: int | None,
        timeout: float | None,
    ) -> dict[str, Any]:
        whole = paired(messages)
        system = [system_prompt, *(m.content for m in whole if m.role is Role.SYSTEM)]
        settings = {
            "system": "\n\n".join(filter(str.strip, system)) or None,
            # Past the SDK, which no longer knows it, to the models that still do.
            "extra_body": None if temperature is None else {"temperature": temperature},
            "max_tokens": max_tokens or self.options.get("max_tokens", _MAX_TOKENS),
            "timeout": timeout,
        }
        given = {name: value for name, value in settings.items() if value is not None}
        return {"model": model or self.model, "messages": _turns(whole), **given}

    def _with_tools(self, request: dict[str, Any], tools: Sequence[Offered]) -> dict[str, Any]:
        if not tools:
            return request
        offered = []
        for schema in (tool.schema() for tool in tools):
            name, described = wire_name(schema["name"]), schema.get("description") or ""
            offered.append(
                {"name": name, "description": described, "input_schema": schema["parameters"]}
            )
        return {**request, "tools": offered}

    def _for_json(self, request: dict[str, Any], schema: Mapping[str, Any]) -> Requests:
        return _by_tool(request, schema), None

    def _read(self, answer: Any, tools: Sequence[Offered]) -> tuple[Message, dict[str, Any]]:
        blocks, stop, usage = self._opened(answer)
        names = {wire_name(tool.name): tool.name for tool in tools}
        texts = [block.text for block in blocks if block.type == "text"]
        calls = [
            ToolCall(names.get(block.name, block.name), arguments(block.input), block.id or "")
            for block in blocks
            if block.type == "tool_use"
        ]
        text = "".join(texts) or (_why(answer) if stop == "refusal" else "")
        if stop in _STOPPED:
            reason, way_out = _STOPPED[stop]
            if not text and not calls:
                raise self._stopped(reason, way_out)
            self._cut_short(reason)
            usage["stop_reason"] = stop
        thoughts = [
            block.model_dump(exclude_none=True)
            for block in blocks
            if block.type in ("thinking", "redacted_thinking")
        ]
        if thoughts and calls:
            return _Thought(Role.ASSISTANT, text, tool_calls=calls, thoughts=thoughts), usage
        return Message(Role.ASSISTANT, text, tool_calls=calls or None), usage

    def _read_json(self, answer: Any) -> tuple[Any, dict[str, Any]]:
        blocks, stop, usage = self._opened(answer)
        if stop in _STOPPED:
            reason, way_out = _STOPPED[stop]
            raise self._stopped(f"{reason} {_why(answer)}".strip(), way_out)
        given = next((block.input for block in blocks if block.type == "tool_use"), None)
        if given is None:
            return self._json("".join(b.text for b in blocks if b.type == "text")), usage
        if isinstance(given, str):
            return self._json(given), usage
        return dict(given), usage

    def _opened(self, answer: Any) -> tuple[list[Any], str, dict[str, Any]]:
        """The blocks of an answer, why it ended, and what it used."""
        usage = answer.usage.model_dump(exclude_none=True) if answer.usage else {}
        if not all(block.type for block in answer.content):
            raise InvalidType("a block without a type is no part of an answer")
        return list(answer.content), answer.stop_reason or "", usage


_STOPPED = {
    "max_tokens": ("max_tokens was reached", "raise max_tokens, or ask for less"),
    "model_context_window_exceeded": ("the context is full", "send fewer or shorter messages"),
    "refusal": ("it refused", "ask for something else"),
}


# Only a message of a running exchange needs its thoughts, and a run keeps that very object; what
# a memory keeps of it is what every message has.
@dataclass(slots=True, eq=False)
class _Thought(Message):
    """A message that calls tools, with the thoughts that the model wants back with the results."""

    thoughts: list[dict[str, Any]] = field(default_factory=list, repr=False)


def _why(answer: Any) -> str:
    """Why the model refused, if it said so; older SDKs leave that as the JSON it was."""
    details = getattr(answer, "stop_details", None) or {}
    given = details if isinstance(details, Mapping) else details.model_dump()
    return str(given.get("explanation") or "")


def _turns(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The conversation as turns of the user and the assistant, one after the other.

    Results of tools are the user's, the service takes no empty text, and the user begins.
    """
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        blocks = [] if message.role is Role.SYSTEM else _blocks(message)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    if not turns or turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [_said("(The user has said nothing yet.)")]})
    return turns


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role is Role.TOOL:
        result = {
            "type": "tool_result",
            "tool_use_id": wire_name(message.tool_call_id or "", _LONGEST_ID),
        }
        text = message.content or message.tool_result or ""
        return [{**result, "content": [_said(text)] if text.strip() else []}]
    blocks = list(message.thoughts) if isinstance(message, _Thought) else []
    if message.content.strip():
        blocks.append(_said(message.content))
    elif message.role is Role.USER:
        blocks.append(_said("(empty)"))
    for call in message.tool_calls or []:
        name, id = wire_name(call.tool_name), wire_name(call.id, _LONGEST_ID)
        blocks.append({"type": "tool_use", "id": id, "name": name, "input": call.parameters})
    return blocks


def _said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _by_tool(request: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    described = "Give the answer, as the arguments of this call."
    tool = {"name": "answer", "description": described, "input_schema": dict(schema)}
    choice = {"type": "tool", "name": "answer", "disable_parallel_tool_use": True}
    return {**request, "tools": [tool], "tool_choice": choice}
