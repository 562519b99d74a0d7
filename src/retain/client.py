"""A memory behind ``retain serve``, with the calls of a local one."""

from __future__ import annotations

import asyncio
import functools
import http.client
import json
import os
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any, BinaryIO, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from . import clock, errors
from .errors import (
    InvalidType,
    InvalidValue,
    NotFound,
    RetainError,
    StoreBusy,
    StoreClosed,
    StoreFailed,
)
from .models import Filter, Memory, MemoryImportance, MemoryType, as_text
from .results import Evidence, RetrievalResult

__all__ = ["AsyncClient", "Client"]

P = ParamSpec("P")
T = TypeVar("T")

_ATTEMPTS = 3
_PAUSE = 0.1  # seconds before the second attempt, twice that before the third
_LONGEST_PAUSE = 10.0  # seconds; who is asked to wait for longer is told instead
_BLOCK = 64 * 2**10
_IDLE = 64  # connections that are kept
_CHANGEABLE = {
    *("content", "memory_type", "importance", "metadata", "tags", "category", "source"),
    *("persistent", "ttl_days"),
}
_OF_THE_SERVER = ("scope", "revision", "importance", "expires_at")  # or made from the others


class _Lost(StoreFailed):
    """The connection failed; ``sent``: perhaps after the request had arrived."""

    def __init__(self, message: str, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Client:
    """The memory of one token's scope on a server, to be used like an ``AgentMemory``.

    ``url``: where ``retain serve`` answers, ``https`` where a proxy does. ``token``: what
    ``retain serve --new-token`` printed; it says whose memory this is. ``timeout``: seconds
    to wait for the server. ``tls``: a context, for a certificate of your own.

    Raises what a local memory would, and ``StoreFailed`` where the server can't be reached or
    refuses the token, ``StoreBusy`` where it is overloaded or too slow. What can be done twice
    without harm is tried up to three times: all but ``update`` and ``forget``, and those too
    where the server can't have seen them. A ``remember`` carries its memory's id, so that a
    second one makes no second memory.

    Usable from any thread; a ``with`` block closes its connections.

    >>> from retain.client import Client
    >>> client = Client("http://127.0.0.1:8077", token="retain_KLuHv8")
    >>> client.close()
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 30.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        parts = urlsplit(as_text(url, "url"))
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise InvalidValue(f"{url!r} is no URL such as http://127.0.0.1:8077")
        if parts.username is not None or parts.query or parts.fragment:
            raise InvalidValue("a server's URL is a host and a path; give the token as token=")
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
            raise InvalidValue(f"timeout={timeout!r}; give a number of seconds above 0")
        if token is not None and not (as_text(token, "token").isascii() and token.isprintable()):
            raise InvalidValue("a token is printable ASCII; this one is none")
        self.url = url.rstrip("/")
        self._base = quote(parts.path.rstrip("/"), safe="/%")
        self._timeout = timeout
        self._headers = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._connect: Callable[[], http.client.HTTPConnection]
        if parts.scheme == "https":
            tls = tls or ssl.create_default_context()
            self._connect = functools.partial(
                http.client.HTTPSConnection, parts.hostname, port, timeout=timeout, context=tls
            )
        else:
            self._connect = functools.partial(
                http.client.HTTPConnection, parts.hostname, port, timeout=timeout
            )
        self._idle: list[http.client.HTTPConnection] = []
        self._pid = os.getpid()
        self._closed = False

    # -- in --------------------------------------------------------------------------------

    def remember(
        self,
        content: str,
        *,
        memory_type: MemoryType | None = None,
        importance: MemoryImportance | float = MemoryImportance.MEDIUM,
        metadata: Mapping[str, Any] | None = None,
        tags: Iterable[str] | None = None,
        category: str = "general",
        source: str = "",
        persistent: bool = False,
        ttl_days: float | None = None,
        created_at: float | datetime | None = None,
    ) -> Memory:
        """Remember ``content``; the memory as it is stored. See ``AgentMemory.remember``.

        Durable when the call returns, where the server's store is.
        """
        item = _item(
            content,
            memory_type=memory_type,
            importance=importance,
            metadata=metadata,
            tags=tags,
            category=category,
            source=source,
            persistent=persistent,
            ttl_days=ttl_days,
            created_at=created_at,
        )
        return Memory.from_dict(self._ask("POST", "/v1/memories", body=item))

    def remember_many(self, items: Iterable[str | Mapping[str, Any] | Memory]) -> list[Memory]:
        """Remember all of ``items``, or none; the memories as stored.

        An item is a text, a dict of ``remember``'s arguments, or a whole :class:`Memory`.
        """
        if isinstance(items, (str, Mapping, Memory)):  # a text would be taken letter by letter
            raise InvalidType(f"items is a {type(items).__name__}; give a list of items")
        body = {"memories": [_of(item) for item in items]}
        found = self._ask("POST", "/v1/memories/batch", body=body)
        return [Memory.from_dict(each) for each in found["memories"]]

    def update(self, id: str, **changes: Any) -> Memory:
        """Change a memory in place: ``content=``, ``importance=``, ``category=``, ``tags=``,
        ``metadata=``, ``memory_type=``, ``source=``, ``persistent=``, ``ttl_days=``.

        Returns it as it is now stored. Raises ``NotFound``, ``Rejected``, ``InvalidValue`` or
        ``InvalidType``; then nothing changed.
        """
        unknown = changes.keys() - _CHANGEABLE
        if unknown:
            can = ", ".join(sorted(_CHANGEABLE))
            raise InvalidType(f"{min(unknown)!r} can't be updated; what can: {can}")
        if not str(changes.get("content", "x")).strip():
            raise InvalidValue("there is nothing to remember: the content is blank; forget it")
        checked = Memory(content="-").copy(**changes).checked().to_dict()
        if "importance" in changes:
            changes["importance_score"] = changes.pop("importance")
        body = {name: checked[name] for name in changes}
        found = self._ask("PATCH", "/v1/memory", {"id": as_text(id, "an id")}, body, again=False)
        return Memory.from_dict(found)

    def forget(self, id: str) -> bool:
        """Delete a memory for good, everywhere; whether it was there."""
        try:
            self._ask("DELETE", "/v1/memory", {"id": as_text(id, "an id")}, again=False)
        except NotFound:
            return False
        return True

    # -- out -------------------------------------------------------------------------------

    def get(self, id: str) -> Memory | None:
        """The memory of that id, or ``None``; counts as a retrieval."""
        try:
            return Memory.from_dict(self._ask("GET", "/v1/memory", {"id": as_text(id, "an id")}))
        except NotFound:
            return None

    def recall(
        self,
        query: str,
        *,
        k: int = 10,
        memory_type: MemoryType | None = None,
        min_importance: MemoryImportance | float | None = None,
        tags: Iterable[str] | None = None,
        category: str | None = None,
        since: float | datetime | None = None,
        until: float | datetime | None = None,
        persistent: bool | None = None,
    ) -> list[RetrievalResult]:
        """The k best memories for ``query``, best first. See ``AgentMemory.recall``."""
        narrow = Filter.of(
            memory_type=memory_type,
            min_importance=min_importance,
            tags=tags,
            category=category,
            since=since,
            until=until,
            persistent=persistent,
        )
        body = {"query": as_text(query, "query"), "k": _whole(k, "k"), **_narrowing(narrow)}
        found = self._ask("POST", "/v1/recall", body=body)
        return [_result(each, query) for each in found["results"]]

    def search(self, query: str, k: int = 10) -> list[RetrievalResult]:
        """The k best memories for ``query``: :meth:`recall` without filters."""
        return self.recall(query, k=k)

    def get_context(self, query: str, k: int = 5) -> str:
        """The k best memories for a prompt, a line ``- content`` each; "" if there are none."""
        body = {"query": as_text(query, "query"), "k": _whole(k, "k")}
        context: str = self._ask("POST", "/v1/context", body=body)["context"]
        return context

    def iterate(
        self, *, narrow: Filter | None = None, order: str = "newest", size: int | None = None
    ) -> Iterator[Memory]:
        """Every visible memory (that passes ``narrow``), read in pages: memory stays flat.

        ``size``: of a page, the server's usual one unless given. ``order``: ``newest``,
        ``important`` or ``dispensable``.
        """
        asked = {**_narrowing(narrow or Filter()), "order": order}
        if size is not None:
            asked["limit"] = _whole(size, "size")
        while True:
            page = self._ask("GET", "/v1/memories", asked)
            for each in page["memories"]:
                yield Memory.from_dict(each)
            if page["next"] is None:
                return
            asked["cursor"] = page["next"]

    def list_all(self) -> list[Memory]:
        """Every visible memory, newest first."""
        return list(self.iterate())

    @property
    def memory_count(self) -> int:
        """How many memories are visible in the scope."""
        count: int = self._ask("GET", "/v1/count")["count"]
        return count

    def __len__(self) -> int:
        """How many memories are visible."""
        return self.memory_count

    def __bool__(self) -> bool:
        return True  # an empty memory is a memory

    def export(self, file: BinaryIO) -> int:
        """Write every visible memory to ``file``, a JSON object a line; how many."""
        count = 0
        with self._exchange("GET", f"{self._base}/v1/export", None) as response:
            if response.status != 200:
                raise _error(response.status, self._read(response), self.url)
            while block := self._read(response, _BLOCK):
                file.write(block)
                count += block.count(b"\n")
        return count

    # -- the place -------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connections; a closed client refuses every call."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client {self.url}>"

    # -- over the wire ---------------------------------------------------------------------

    def _ask(
        self,
        method: str,
        path: str,
        asked: Mapping[str, Any] | None = None,
        body: object = None,
        *,
        again: bool = True,
    ) -> Any:
        """The answer to a request, which is tried ``again`` even if it may have arrived."""
        query = f"?{urlencode(_texts(asked), doseq=True, quote_via=quote)}" if asked else ""
        data = None if body is None else json.dumps(body).encode()
        attempt = 1
        while True:
            pause: float | None = _PAUSE * 2 ** (attempt - 1)
            told = False
            try:
                with self._exchange(method, f"{self._base}{path}{query}", data) as response:
                    status, answer = response.status, self._read(response)
                if status < 400:
                    return self._value(answer)
                told, pause = True, _asked_to_wait(response)
                raise _error(status, answer, self.url)
            except _Lost as error:
                if attempt == _ATTEMPTS or (error.sent and not again):
                    raise StoreFailed(str(error)) from error
            except StoreBusy:
                if attempt == _ATTEMPTS or not told or pause is None:
                    raise
            time.sleep(pause or 0.0)
            attempt += 1

    def _value(self, answer: bytes) -> Any:
        try:
            return json.loads(answer) if answer else None
        except ValueError as error:
            raise StoreFailed(f"{self.url} gave no JSON ({error}); is it retain?") from error

    @contextmanager
    def _exchange(
        self, method: str, target: str, body: bytes | None
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request; its response, which is read inside the block."""
        if self._closed:
            raise StoreClosed(f"the client of {self.url} was closed; make another")
        headers = {**self._headers, "Content-Type": "application/json"} if body else self._headers
        connection, kept = self._taken(), False
        try:
            if connection.sock is None:
                with self._wire(sent=False):
                    connection.connect()
            with self._wire(sent=True):
                connection.request(method, target, body, headers)
                response = connection.getresponse()
            yield response
            kept = response.isclosed() and not response.will_close
        finally:
            if kept and not self._closed and len(self._idle) < _IDLE:
                self._idle.append(connection)
            else:
                connection.close()

    def _read(self, response: http.client.HTTPResponse, size: int | None = None) -> bytes:
        with self._wire(sent=True):
            return response.read(size)

    @contextmanager
    def _wire(self, *, sent: bool) -> Iterator[None]:
        """Make retain's errors of what the network raises."""
        try:
            yield
        except TimeoutError as error:
            raise StoreBusy(f"{self.url} did not answer within {self._timeout:g} s") from error
        except (OSError, http.client.HTTPException) as error:
            why = str(error) or type(error).__name__
            raise _Lost(f"{self.url} can't be reached, or went away: {why}", sent) from error

    def _taken(self) -> http.client.HTTPConnection:
        """A connection that lies idle and was not closed by the server, or a new one."""
        if self._pid != os.getpid():  # those are the parent's
            self._pid, self._idle = os.getpid(), []
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._connect()
            if connection.sock is not None and not wait([connection.sock], 0):
                return connection
            connection.close()


def _on_a_thread(
    method: Callable[Concatenate[Client, P], T],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    @functools.wraps(method)
    async def call(self: AsyncClient, /, *args: P.args, **options: P.kwargs) -> T:
        return await asyncio.to_thread(method, self.client, *args, **options)

    return call


class AsyncClient:
    """:class:`Client` for ``asyncio``: the same calls, each awaited, made on a thread.

    A call that is cancelled is not taken back: the server may have done what it asked.

    >>> client = AsyncClient("http://127.0.0.1:8077", token="retain_KLuHv8")
    """

    def __init__(self, url: str, **options: Any) -> None:
        self.client = Client(url, **options)

    remember = _on_a_thread(Client.remember)
    remember_many = _on_a_thread(Client.remember_many)
    forget = _on_a_thread(Client.forget)
    get = _on_a_thread(Client.get)
    recall = _on_a_thread(Client.recall)
    search = _on_a_thread(Client.search)
    get_context = _on_a_thread(Client.get_context)
    list_all = _on_a_thread(Client.list_all)
    export = _on_a_thread(Client.export)
    count = _on_a_thread(Client.__len__)

    async def update(self, id: str, **changes: Any) -> Memory:
        """Change a memory in place: :meth:`Client.update`."""
        return await asyncio.to_thread(self.client.update, id, **changes)

    async def iterate(self, **options: Any) -> AsyncIterator[Memory]:
        """Every visible memory, read in pages: :meth:`Client.iterate`."""
        found = self.client.iterate(**options)
        while (each := await asyncio.to_thread(next, found, None)) is not None:
            yield each

    async def close(self) -> None:
        """Close the connections."""
        self.client.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.close()


# -- what goes out and what comes back -----------------------------------------------------------


def _of(item: object) -> dict[str, Any]:
    if isinstance(item, Memory):
        whole = item.checked().to_dict()
        return {name: value for name, value in whole.items() if name not in _OF_THE_SERVER}
    if isinstance(item, str):
        return _item(item)
    if isinstance(item, Mapping) and "content" in item:
        unknown = [name for name in item if name not in _CHANGEABLE | {"created_at"}]
        if unknown:
            can = ", ".join(sorted(_CHANGEABLE | {"created_at"}))
            raise InvalidType(f"{unknown[0]!r} can't be remembered; what can: {can}")
        return _item(**item)
    raise InvalidType(f"{item!r} is no text, no Memory and no dict with a content")


def _item(content: str, **given: Any) -> dict[str, Any]:
    """A new memory as it is sent, with an id; checked as a local memory would."""
    if isinstance(content, str) and not content.strip():
        raise InvalidValue("there is nothing to remember: the content is blank")
    if given.get("memory_type") is None:
        given.pop("memory_type", None)
    created = given.pop("created_at", None)
    if created is not None:
        given["created_at"] = clock.as_epoch(created)
    item = _of(Memory(content=content, **given))
    for name in ("updated_at", "last_accessed", "access_count"):  # the server's business
        del item[name]
    if created is None:  # by the server's clock
        del item["created_at"]
    return item


def _narrowing(narrow: Filter) -> dict[str, Any]:
    """What a filter says, as it is sent."""
    kind = narrow.memory_type
    found = {
        "memory_type": None if kind is None else kind.value,
        "category": narrow.category,
        "tags": list(narrow.tags) or None,
        "min_importance": narrow.min_importance or None,
        "since": narrow.since,
        "until": narrow.until,
        "persistent": narrow.persistent,
    }
    return {name: value for name, value in found.items() if value is not None}


def _texts(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a URL, truth values as JSON has them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in asked.items()
    }


def _whole(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidType(f"{name} is a {type(value).__name__}; give a whole number")
    if value < 0:
        raise InvalidValue(f"{name}={value}; give a whole number from 0")
    return value


def _result(found: Mapping[str, Any], query: str) -> RetrievalResult:
    why = found["evidence"]
    return RetrievalResult(
        Memory.from_dict(found["memory"]),
        found["relevance_score"],
        found["recency_score"],
        found["importance_score"],
        None if why is None else Evidence(query, **{**why, "words": tuple(why["words"])}),
    )


def _error(status: int, answer: bytes, url: str) -> RetainError:
    """The error that the server tells of, as a local memory would raise it."""
    try:
        told = json.loads(answer)
        name, message = str(told["error"]), str(told["message"])
    except (ValueError, TypeError, KeyError):
        return StoreFailed(f"{url} answered {status} without saying why; is it retain?")
    kind = getattr(errors, name, None) if name in errors.__all__ else None
    if kind is not None:
        error: RetainError = kind(message)
        return error
    if status in (429, 503):
        return StoreBusy(f"{url} is busy: {message}")
    if status in (413, 422):
        return InvalidValue(message)
    return StoreFailed(f"{url} answered {status}: {message}")


def _asked_to_wait(response: http.client.HTTPResponse) -> float | None:
    """The seconds after which to ask again, if the server names some that are bearable."""
    try:
        seconds = float(response.getheader("Retry-After", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds <= _LONGEST_PAUSE else None
