"""OpenAI, and whatever else speaks its chat completions: Ollama, vLLM, LM Studio, gateways."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ..errors import MissingPackage
from ..messages import Message, Role, ToolCall
from .base import Offered
from .service import NO_KEY, Requests, Service, arguments, paired, wire_name

__all__ = ["OpenAIProvider"]

_OWN_HOSTS = ("openai.com", "azure.com")


class OpenAIProvider(Service):
    """A model behind OpenAI's chat completions, or behind any service that speaks them.

    ``model``: what is asked where ``AgentConfig.model`` is ``""``. ``base_url``: of a compatible
    service, otherwise ``OPENAI_BASE_URL`` of the environment or OpenAI itself. ``api_key``:
    otherwise ``OPENAI_API_KEY`` of the environment, which is not sent to a ``base_url`` that is
    given here; compatible services may need none. ``client``: an ``openai.OpenAI`` or
    ``AsyncOpenAI`` of your own (``AzureOpenAI`` too), with its own key, URL and retries; it is
    not closed. ``max_retries``: how often a call is made again after a lost connection, 408,
    409, 429 or 5xx. ``options``: further members of every request, such as
    ``{"reasoning_effort": "low"}``.

    ``timeout`` is for each attempt. An answer that was cut short is given as far as it came,
    with a warning in the log; its ``usage`` has ``finish_reason``. A refusal in words is the
    answer. A call whose arguments are no JSON object comes with the one argument
    ``arguments_that_were_no_JSON_object``, which no tool has: so the model is told, and can
    mend it. For JSON, the service is held to the schema where it can be ("strict" if the schema
    allows that); one that knows no schemas is asked for JSON, and reads the schema.

    Needs the extra ``openai``, else raises ``MissingPackage``; connects with the first call.
    One provider serves any number of threads, event loops and runs. :meth:`close` or ``with``
    ends its connections.

    >>> OpenAIProvider("llama3.2", base_url="http://localhost:11434/v1")
    OpenAIProvider('llama3.2')
    """

    name = "OpenAI's service"
    variable = "OPENAI_API_KEY"

    def __init__(
        self,
        model: str = "gpt-5.4-mini",
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
            import openai  # noqa: F401
        except ImportError as error:
            raise MissingPackage.needed("OpenAIProvider", "openai", error) from error

    def _made(self, awaited: bool, settings: dict[str, Any]) -> Any:
        import openai

        environment = os.environ
        if environment.get("OPENAI_BASE_URL") and not environment.get(self.variable):
            settings = {**settings, "api_key": settings["api_key"] or NO_KEY}
        return openai.AsyncOpenAI(**settings) if awaited else openai.OpenAI(**settings)

    def _send(self, client: Any, request: dict[str, Any]) -> Any:
        host = urlsplit(str(client.base_url)).hostname or ""
        if "max_tokens" in request and host.endswith(_OWN_HOSTS):
            request["max_completion_tokens"] = request.pop("max_tokens")
        return client.chat.completions.create(**request)

    def _request(
        self,
        model: str,
        system_prompt: str,
        messages: Sequence[Message],
        temperature: float | None,
        max_tokens: int | None,
        timeout: float | None,
    ) -> dict[str, Any]:
        said = [_as_json(message) for message in paired(messages)]
        if system_prompt:
            said.insert(0, {"role": "system", "content": system_prompt})
        settings = {"temperature": temperature, "max_tokens": max_tokens, "timeout": timeout}
        given = {name: value for name, value in settings.items() if value is not None}
        return {"model": model or self.model, "messages": said, **given}

    def _with_tools(self, request: dict[str, Any], tools: Sequence[Offered]) -> dict[str, Any]:
        if not tools:  # an empty list is refused
            return request
        schemas = [tool.schema() for tool in tools]
        functions = [{**schema, "name": wire_name(schema["name"])} for schema in schemas]
        return {**request, "tools": [{"type": "function", "function": each} for each in functions]}

    def _for_json(self, request: dict[str, Any], schema: Mapping[str, Any]) -> Requests:
        return _by_schema(request, schema), _by_text(request, schema)

    def _read(self, answer: Any, tools: Sequence[Offered]) -> tuple[Message, dict[str, Any]]:
        message, finish, usage = self._opened(answer)
        names = {wire_name(tool.name): tool.name for tool in tools}
        calls = []
        for call in message.tool_calls or []:
            wanted = call.function
            name = names.get(wanted.name, wanted.name)
            calls.append(ToolCall(name, arguments(wanted.arguments), call.id or ""))
        text = message.content or message.refusal or ""
        if finish in _STOPPED:
            reason, way_out = _STOPPED[finish]
            if not text and not calls:
                raise self._stopped(reason, way_out)
            self._cut_short(reason)
            usage["finish_reason"] = finish
        return Message(Role.ASSISTANT, text, tool_calls=calls or None), usage

    def _read_json(self, answer: Any) -> tuple[Any, dict[str, Any]]:
        message, finish, usage = self._opened(answer)
        if message.refusal:
            raise self._stopped(f"it refused, {message.refusal!r}", "ask for something else")
        if finish in _STOPPED:
            raise self._stopped(*_STOPPED[finish])
        return self._json(message.content or ""), usage

    def _opened(self, answer: Any) -> tuple[Any, str, dict[str, Any]]:
        """The message of an answer, why it ended, and what it used."""
        first = answer.choices[0]
        usage = answer.usage.model_dump(exclude_none=True) if answer.usage else {}
        return first.message, first.finish_reason or "", usage


_STOPPED = {
    "length": ("max_tokens was reached", "raise max_tokens, or ask for less"),
    "content_filter": ("its content filter stopped it", "ask for something else"),
}


def _as_json(message: Message) -> dict[str, Any]:
    """A message as the service takes it."""
    said: dict[str, Any] = {"role": message.role.value, "content": message.content}
    if message.role is Role.TOOL:
        said["content"] = message.content or message.tool_result or ""
        said["tool_call_id"] = wire_name(message.tool_call_id or "", 40)
    elif message.tool_calls:
        said["content"] = message.content or None
        said["tool_calls"] = [
            {
                "id": wire_name(call.id, 40),
                "type": "function",
                "function": {
                    "name": wire_name(call.tool_name),
                    "arguments": json.dumps(call.parameters, default=str),
                },
            }
            for call in message.tool_calls
        ]
    return said


def _by_schema(request: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    form = {"name": "answer", "schema": schema, "strict": _can_be_strict(schema)}
    return {**request, "response_format": {"type": "json_schema", "json_schema": form}}


def _by_text(request: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    told = f"Answer with one JSON object alone, by this JSON schema: {json.dumps(schema)}"
    messages = [*request["messages"], {"role": "system", "content": told}]
    return {**request, "messages": messages, "response_format": {"type": "json_object"}}


def _can_be_strict(schema: Any) -> bool:
    """Whether each object in ``schema`` requires all that it has, and admits nothing else."""
    if isinstance(schema, list):
        return all(map(_can_be_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", ())) != set(schema.get("properties", {})):
            return False
    return all(map(_can_be_strict, schema.values()))
