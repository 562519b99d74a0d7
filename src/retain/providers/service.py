"""What every provider behind an SDK shares: its clients, its failures, and texts on the wire.

A failure is told in words and let go of: the SDK's own exception holds the request, and the
request holds the key.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ..errors import InvalidType, InvalidValue, ProviderFailed
from ..messages import Message, Role, ToolCall
from .base import Offered

__all__ = [
    "NO_KEY",
    "UNREADABLE",
    "Service",
    "arguments",
    "paired",
    "readable_json",
    "sendable",
    "wire_name",
]

_Read = TypeVar("_Read")

Requests = tuple[dict[str, Any], "dict[str, Any] | None"]

logger = logging.getLogger("retain.providers")

UNREADABLE = "arguments_that_were_no_JSON_object"
NO_KEY = "none"
_DEEPEST = 100  # levels of a call's arguments
_LONGEST_QUOTE = 500  # characters of what a service says

_ADVICE = {
    400: "look at what it says of the request",
    401: "give the right key as api_key, or in {variable}",
    403: "use a key that may use this model",
    404: "look at the model's name and at base_url",
    408: "raise timeout, or try again later",
    413: "send fewer or shorter messages",
    422: "look at what it says of the request",
    429: "wait, raise max_retries, or look at the account's limits",
}


class Service(ABC):
    """A provider behind an SDK, whose clients are made when they are first used.

    There is one plain client for all threads of a process, and one for each event loop, which
    ends with the loop.
    """

    name: str  # of the service, for people
    variable: str  # of the environment, that holds its key

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None,
        base_url: str | None,
        client: Any,
        max_retries: int,
        options: Mapping[str, Any] | None,
    ) -> None:
        for what, value in (("model", model), ("api_key", api_key), ("base_url", base_url)):
            if not isinstance(value, (str, type(None))):
                raise InvalidType(f"{what} is a {type(value).__name__}; give text")
        if not model:
            raise InvalidValue(f"model={model!r} names no model")
        if isinstance(max_retries, bool) or not isinstance(max_retries, int) or max_retries < 0:
            raise InvalidValue(f"max_retries={max_retries!r}; give a whole number, 0 or more")
        if client is not None and (api_key, base_url) != (None, None):
            raise InvalidValue("a client has its own key and URL; give client alone")
        self.model = model
        self.options = dict(options or {})
        if base_url and not api_key:
            api_key = NO_KEY  # the environment's is for the service itself; the SDK wants one
        self._settings = {"api_key": api_key, "base_url": base_url, "max_retries": max_retries}
        self._given = client
        self._plain: tuple[int, Any] | None = None  # and its process: sockets can't be shared
        self._by_loop: dict[Any, tuple[Any, AsyncGenerator[Any, None]]] = {}
        self._lock = threading.Lock()
        self._check_package()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections of the plain calls. A client that was given stays open."""
        with self._lock:
            ended, self._plain = self._plain, None
        if ended is not None and ended[0] == os.getpid():
            ended[1].close()

    async def aclose(self) -> None:
        """End this event loop's connections, which its end does too, and those of plain calls."""
        found = self._by_loop.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found[1].aclose()
        self.close()

    def complete(
        self,
        *,
        model: str = "",
        system_prompt: str = "",
        messages: Sequence[Message],
        tools: Sequence[Offered] = (),
        temperature: float | None = None,
        max_tokens: int | None = None,
        timeout: float | None = None,
    ) -> tuple[Message, dict[str, Any]]:
        """The model's next message, and the tokens it took as the service counts them.

        Raises ``ProviderFailed``, which says what the service said and never the key, and
        ``InvalidValue`` for a tool's result without its call.
        """
        request = self._request(model, system_prompt, messages, temperature, max_tokens, timeout)
        answer = self._ask(self._with_tools(request, tools))
        return self._understood(lambda answer: self._read(answer, tools), answer)

    async def acomplete(
        self,
        *,
        model: str = "",
        system_prompt: str = "",
        messages: Sequence[Message],
        tools: Sequence[Offered] = (),
        temperature: float | None = None,
        max_tokens: int | None = None,
        timeout: float | None = None,
    ) -> tuple[Message, dict[str, Any]]:
        """:meth:`complete` for coroutines; the request ends when the task is cancelled."""
        request = self._request(model, system_prompt, messages, temperature, max_tokens, timeout)
        answer = await self._aask(self._with_tools(request, tools))
        return self._understood(lambda answer: self._read(answer, tools), answer)

    def complete_json(
        self,
        *,
        model: str = "",
        system_prompt: str = "",
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        timeout: float | None = None,
        max_tokens: int | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """The model's answer as a JSON value, asked to be as ``schema`` says, and its usage.

        ``schema`` is of an object; how far the service is held to it is its provider's to say, so
        look at the value before you rely on it. Raises ``ProviderFailed`` for a refusal, for an
        answer that was cut short and for one that is no JSON.
        """
        request = self._request(model, system_prompt, messages, None, max_tokens, timeout)
        answer = self._ask(*self._for_json(request, schema))
        return self._understood(self._read_json, answer)

    async def acomplete_json(
        self,
        *,
        model: str = "",
        system_prompt: str = "",
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        timeout: float | None = None,
        max_tokens: int | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """:meth:`complete_json` for coroutines."""
        request = self._request(model, system_prompt, messages, None, max_tokens, timeout)
        answer = await self._aask(*self._for_json(request, schema))
        return self._understood(self._read_json, answer)

    @abstractmethod
    def _check_package(self) -> None:
        """Raise ``MissingPackage`` unless the SDK is there."""

    @abstractmethod
    def _made(self, awaited: bool, settings: dict[str, Any]) -> Any:
        """A new client, for coroutines or not."""

    @abstractmethod
    def _send(self, client: Any, request: dict[str, Any]) -> Any:
        """Call the SDK; what comes back is awaited where the client is for coroutines."""

    @abstractmethod
    def _request(
        self,
        model: str,
        system_prompt: str,
        messages: Sequence[Message],
        temperature: float | None,
        max_tokens: int | None,
        timeout: float | None,
    ) -> dict[str, Any]:
        """A request of the SDK."""

    @abstractmethod
    def _with_tools(self, request: dict[str, Any], tools: Sequence[Offered]) -> dict[str, Any]:
        """The request with the tools that the model may call."""

    @abstractmethod
    def _for_json(self, request: dict[str, Any], schema: Mapping[str, Any]) -> Requests:
        """The request for JSON, and another one where a service does not take that."""

    @abstractmethod
    def _read(self, answer: Any, tools: Sequence[Offered]) -> tuple[Message, dict[str, Any]]:
        """The message of an answer, and what it used."""

    @abstractmethod
    def _read_json(self, answer: Any) -> tuple[Any, dict[str, Any]]:
        """The JSON value of an answer, and what it used."""

    def _ask(self, request: dict[str, Any], otherwise: dict[str, Any] | None = None) -> Any:
        """What the service answers, to ``otherwise`` if it does not take ``request``.

        Raises ``ProviderFailed``.
        """
        if self._given is not None and _awaits(self._given):
            raise InvalidType(f"{self!r} has a client for coroutines; use arun, or give another")
        client = self._given
        try:
            client = client or self._plain_client()
            return self._send(client, self._filled(request))
        except Exception as error:  # noqa: BLE001 (whatever an SDK raises is told)
            failure, refused = self._failure(error, client), _refuses(error)
        if refused and otherwise is not None:
            return self._ask(otherwise)
        raise failure

    async def _aask(self, request: dict[str, Any], otherwise: dict[str, Any] | None = None) -> Any:
        if self._given is not None and not _awaits(self._given):
            return await asyncio.to_thread(self._ask, request, otherwise)
        client = self._given
        try:
            client = client or await self._client_of_loop()
            return await self._send(client, self._filled(request))
        except Exception as error:  # noqa: BLE001 (whatever an SDK raises is told)
            failure, refused = self._failure(error, client), _refuses(error)
        if refused and otherwise is not None:
            return await self._aask(otherwise)
        raise failure

    def _filled(self, request: dict[str, Any]) -> dict[str, Any]:
        """``request`` with the options, past the SDK, whose versions know different ones."""
        more = {name: value for name, value in self.options.items() if name not in request}
        more |= request.get("extra_body", {})
        filled: dict[str, Any] = sendable({**request, "extra_body": more})
        return filled

    def _plain_client(self) -> Any:
        with self._lock:
            if self._plain is None or self._plain[0] != os.getpid():
                self._plain = (os.getpid(), self._made(False, self._settings))
            return self._plain[1]

    async def _client_of_loop(self) -> Any:
        loop = asyncio.get_running_loop()
        with self._lock:
            found = self._by_loop.get(loop)
            if found is not None:
                return found[0]
            client = self._made(True, self._settings)
            lifetime = self._open_while_runs(loop, client)
            self._by_loop[loop] = (client, lifetime)
        return await lifetime.__anext__()

    async def _open_while_runs(self, loop: Any, client: Any) -> AsyncGenerator[Any, None]:
        """Closes ``client`` when it is closed itself; a loop that ends closes its generators."""
        try:
            yield client
        finally:
            self._by_loop.pop(loop, None)
            await client.close()

    def _failure(self, error: Exception, client: Any) -> ProviderFailed:
        """What an SDK raised, in words: who, the status, what it says, and the way out."""
        status = getattr(error, "status_code", None)
        body = getattr(error, "body", None)
        said = _said(body) or str(error) or type(error).__name__
        kind = type(error).__name__
        where = _place(getattr(client, "base_url", None) or self._settings["base_url"])
        if status is not None:
            what = f"answered {status}"
            advice = _ADVICE.get(status, "try again later" if status >= 500 else _ADVICE[400])
        elif "Timeout" in kind:
            what, advice = "did not answer in time", "raise timeout, or try again later"
        elif "Connection" in kind or "Protocol" in kind:
            cause = error.__cause__ or error.__context__
            said = f"{said} ({cause})" if cause else said
            what, advice = "can't be reached or broke off", "see whether it runs at base_url"
        elif client is None or "api_key" in said:  # the SDKs look for a key sooner or later
            what = "can't be asked"
            advice = f"give api_key, or set {self.variable}"
        else:
            what, advice = f"gave no answer ({kind})", "try again, or look at the request"
        if self._settings["base_url"] or self._given is not None:
            advice = advice.replace(", or in {variable}", "")
        advice = advice.format(variable=self.variable)
        told = f"{self.name}{where} {what}: {_short(said)}; {advice}"
        return ProviderFailed(self._without_key(told, client))

    def _without_key(self, text: str, client: Any) -> str:
        keys = [self._settings["api_key"], os.environ.get(self.variable)]
        keys += [getattr(client, name, None) for name in ("api_key", "auth_token")]
        for key in keys:
            if isinstance(key, str) and key.strip() not in ("", NO_KEY):
                text = text.replace(key, "***").replace(key.strip(), "***")
        return text

    def _understood(self, read: Callable[[Any], _Read], answer: Any) -> _Read:
        """``read(answer)``, where the SDK, which does not look closely, gave a real answer."""
        try:
            return read(answer)
        except (AttributeError, TypeError, ValueError, LookupError):
            said = _said(getattr(answer, "model_extra", None)) or repr(answer)
        told = f"{self.name} gave what is no answer: {_short(said)}; try again, or look at base_url"
        raise ProviderFailed(self._without_key(told, self._given))

    def _stopped(self, reason: str, way_out: str) -> ProviderFailed:
        return ProviderFailed(f"{self.name} gave no whole answer: {_short(reason)}; {way_out}")

    def _cut_short(self, reason: str) -> None:
        logger.warning("the answer of %s is not whole: %s", self.name, reason)

    def _json(self, text: str) -> Any:
        """The value of a JSON text, be it in a code fence or not."""
        try:
            return readable_json(text)
        except ValueError as error:
            raise ProviderFailed(
                f"{self.name} answered what is no JSON ({error}): {_short(text)}; "
                "try again, or use a model that gives structured output"
            ) from None


def _refuses(error: Exception) -> bool:
    """Whether a service says that it does not take such a request."""
    return getattr(error, "status_code", None) in (400, 422)


def _awaits(client: Any) -> bool:
    return type(client).__name__.startswith("Async")


def _place(url: Any) -> str:
    """Where a service is, without what a URL may have of secrets."""
    parts = urlsplit(str(url)) if url else None
    return f" at {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts else ""


def _said(body: Any) -> str:
    """What a service says of an error."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping):
            inner = inner.get("message")
        return inner if isinstance(inner, str) else ""
    return body if isinstance(body, str) else ""


def _short(text: str) -> str:
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"


def wire_name(name: str, longest: int = 64) -> str:
    """``name`` as services take it: ASCII letters, digits, ``_`` and ``-``; always the same.

    >>> wire_name("recall"), wire_name("rückruf")
    ('recall', 'r_ckruf_7cefa7d7')
    """
    if re.fullmatch(rf"[a-zA-Z0-9_-]{{1,{longest}}}", name):
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{re.sub('[^a-zA-Z0-9_-]', '_', name)[: longest - 9]}_{mark}"


def sendable(value: Any) -> Any:
    """``value`` without halves of characters, which UTF-8 can't hold."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {sendable(name): sendable(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [sendable(each) for each in value]
    return value


def arguments(given: Any) -> dict[str, Any]:
    """The arguments of a call, which should be the text of a JSON object.

    Those of a model that wrote something else are kept under a name that no tool has: so the
    call comes to the agent, the tool refuses it, and the model is told what was wrong.

    >>> arguments('{"days": 5}'), arguments('{"days": 5')
    ({'days': 5}, {'arguments_that_were_no_JSON_object': '{"days": 5'})
    """
    if given is None or (isinstance(given, str) and not given.strip()):
        return {}  # some services say so where a tool needs none
    value = given
    if isinstance(given, str):
        try:
            value = readable_json(given)
        except ValueError:
            return {UNREADABLE: given}
    if isinstance(value, Mapping) and not _deeper(value, _DEEPEST):
        return dict(value)
    return {UNREADABLE: given if isinstance(given, str) else _short(repr(given))}


def _deeper(value: Any, levels: int) -> bool:
    """Whether ``value`` is nested more than so deep; what is can't be sent back safely."""
    if not isinstance(value, (Mapping, list)):
        return False
    inner = value.values() if isinstance(value, Mapping) else value
    return not levels or any(_deeper(each, levels - 1) for each in inner)


def readable_json(text: str) -> Any:
    """The value of a JSON text, be it in a code fence or not; ``ValueError`` if it is none."""
    fenced = re.fullmatch(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", text, re.DOTALL)

    def refuse(constant: str) -> Any:
        raise InvalidValue(f"{constant} is no JSON")

    try:
        return json.loads(fenced[1] if fenced else text, parse_constant=refuse)
    except RecursionError:
        raise InvalidValue("it is nested too deeply") from None


def paired(messages: Iterable[Message]) -> list[Message]:
    """``messages`` with the answers of every call right behind it, as services want them.

    A call without an answer gets one that says so. Raises ``InvalidValue`` for an answer whose
    call is not there.
    """
    out: list[Message] = []
    waiting: list[ToolCall] = []

    def give_up() -> None:
        out.extend(
            Message(Role.TOOL, "There is no result.", call.tool_name, tool_call_id=call.id)
            for call in waiting
        )
        waiting.clear()

    for message in messages:
        if message.role is not Role.TOOL:
            give_up()
            waiting += message.tool_calls or []
        else:
            answered = next((c for c in waiting if c.id == message.tool_call_id), None)
            if answered is None:
                raise InvalidValue(
                    f"the result of call {message.tool_call_id!r} has no such call before it; "
                    "give the message with the call too, or leave the result out"
                )
            waiting.remove(answered)
        out.append(message)
    give_up()
    return out
