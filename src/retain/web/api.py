"""The routes: what can be asked over HTTP, and how it is answered.

A request is one call of a face, bound to the scope of its token and made on a thread: nothing
in a path, a parameter or a body can name another scope.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from .. import __version__
from ..context import fence
from ..engine import whole
from ..errors import InvalidValue, NotFound, RetainError
from ..memories.agent import VectorStoreMemory
from ..models import Memory
from ..moving.export import export_lines
from ..results import Evidence, RetrievalResult
from ..scope import Scope
from ..search.embedders import Embedder
from ..stores.base import Order, Store
from .gate import GRANT, Gate, Refused, status_of
from .limits import Limits
from .metrics import Metrics
from .schema import Changes, ContextOf, Counted, Item, Items, Listing, Question
from .tokens import Grant, Tokens

__all__ = ["Api", "make_app"]

log = logging.getLogger("retain")

T = TypeVar("T")

_EVIDENCE = [part.name for part in fields(Evidence) if part.name != "query"]  # which was asked
_USUAL_PAGE = 100
_CHUNK = 64 * 2**10  # bytes of an export that are sent at once


class _AnyText(Convertor[str]):
    """The rest of a path: an id may hold anything, a slash or a line break too."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


_ERROR = {
    "type": "object",
    "required": ["error", "message"],
    "properties": {
        "error": {"type": "string", "description": "Its name: InvalidValue, NotFound, …"},
        "message": {
            "type": "string",
            "description": "A sentence: the value, the rule, the way out.",
        },
    },
}

register_url_convertor("any", _AnyText())

Id = Annotated[str, Path(description="The id, percent-encoded.")]
AnyId = Annotated[str, Query(description="The id; for any, also those that a URL can't end with.")]


class Api:
    """The endpoints over one store.

    ``embedder``: what compares meanings, ``None`` for words alone. ``threads``: calls of the
    store at once.
    """

    def __init__(
        self,
        store: Store,
        *,
        embedder: Embedder | None,
        limits: Limits,
        metrics: Metrics,
        threads: int,
    ) -> None:
        self.store = store
        self.metrics = metrics
        self._embedder = embedder
        self._limits = limits
        self._threads = ThreadPoolExecutor(threads, "retain-request")
        self._faces: dict[Scope, VectorStoreMemory] = {}

    def close(self) -> None:
        """Finish what is under way, and close the store."""
        self._threads.shutdown()
        VectorStoreMemory(self.store, embedder=self._embedder).close()

    # -- who asks --------------------------------------------------------------------------

    def _face(self, grant: Grant) -> VectorStoreMemory:
        face = self._faces.get(grant.scope)
        if face is None:  # as many as the tokens have scopes
            face = VectorStoreMemory(self.store, scope=grant.scope, embedder=self._embedder)
            self._faces[grant.scope] = face
        return face

    def _reading(self, request: Request) -> VectorStoreMemory:
        return self._face(request.scope[GRANT])

    def _writing(self, request: Request) -> VectorStoreMemory:
        grant: Grant = request.scope[GRANT]
        if grant.read_only:
            raise Refused(403, "Forbidden", "this token may only read")
        return self._face(grant)

    async def _call(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    # -- in --------------------------------------------------------------------------------

    async def remember(self, request: Request, body: Item) -> Response:
        """Remember one memory; it as it is stored.

        With an `id` it can be sent again: it replaces what has that id. A persistent fact that
        is there already is not written again; that one is returned.
        """
        face, memory = self._writing(request), body.memory()
        (saved,) = await self._call(lambda: face.remember_many([memory]))
        self.metrics.written.inc()
        return _json(saved.to_dict(), 201)

    async def remember_many(self, request: Request, body: Items) -> Response:
        """Remember all of these, or none."""
        face = self._writing(request)
        _at_most(len(body.memories), "memories", self._limits.items)

        def write() -> list[dict[str, Any]]:
            saved = face.remember_many([item.memory() for item in body.memories])
            return [memory.to_dict() for memory in saved]

        saved = await self._call(write)
        self.metrics.written.inc(len(saved))
        return _json({"memories": saved}, 201)

    async def update(self, request: Request, id: AnyId, body: Changes) -> Response:
        """Change a memory; it as it is now stored."""
        face, changes = self._writing(request), body.changes()
        changed = await self._call(lambda: face.update(id, **changes))
        self.metrics.written.inc()
        return _json(changed.to_dict())

    async def update_at(self, request: Request, id: Id, body: Changes) -> Response:
        """Change a memory; it as it is now stored."""
        return await self.update(request, id, body)

    async def forget(self, request: Request, id: AnyId) -> Response:
        """Delete a memory for good."""
        face = self._writing(request)
        if not await self._call(lambda: face.forget(id)):
            raise _missing(id, face)
        self.metrics.forgotten.inc()
        return Response(status_code=204)

    async def forget_at(self, request: Request, id: Id) -> Response:
        """Delete a memory for good."""
        return await self.forget(request, id)

    # -- out -------------------------------------------------------------------------------

    async def get(self, request: Request, id: AnyId) -> Response:
        """The memory of that id; counts as a retrieval."""
        face = self._reading(request)
        found = await self._call(lambda: face.get(id))
        if found is None:
            raise _missing(id, face)
        return _json(found.to_dict())

    async def get_at(self, request: Request, id: Id) -> Response:
        """The memory of that id; counts as a retrieval."""
        return await self.get(request, id)

    async def recall(self, request: Request, body: Question) -> Response:
        """The k best memories for a query, best first, with their scores."""
        face = self._reading(request)
        _at_most(body.k, "k", self._limits.k)
        narrowing = body.narrowing()

        def ask() -> tuple[int, bytes]:
            found = face.recall(body.query, k=body.k, **narrowing)
            return len(found), _text({"results": [_result(each, body.explain) for each in found]})

        count, text = await self._call(ask)
        self.metrics.returned.inc(count)
        self.metrics.note_indexes()
        return _answer(text)

    async def context(self, request: Request, asked: Annotated[ContextOf, Query()]) -> Response:
        """A block for a prompt: a line for each of the k best memories."""
        face = self._reading(request)
        _at_most(asked.k, "k", self._limits.k)
        block = await self._call(lambda: face.get_context(asked.query, asked.k))
        return _json({"context": fence(block) if asked.fence else block})

    async def context_of(self, request: Request, body: ContextOf) -> Response:
        """The same for a query that is too long for a URL."""
        return await self.context(request, body)

    async def list_(self, request: Request, asked: Annotated[Listing, Query()]) -> Response:
        """A page of memories; `next` is the `cursor` of the page after it, if there is one."""
        face = self._reading(request)
        most = self._limits.page
        limit = min(_USUAL_PAGE, most) if asked.limit is None else asked.limit
        limit = whole(_at_most(limit, "limit", most), "limit", 1)
        order, narrow = _order(asked.order), asked.filter()
        after = None if asked.cursor is None else _place(asked.cursor)

        def page() -> bytes:
            found = face.engine.store.page(limit + 1, after=after, narrow=narrow, order=order)
            more = _cursor(found[limit - 1]) if len(found) > limit else None
            return _text({"memories": [each.to_dict() for each in found[:limit]], "next": more})

        return _answer(await self._call(page))

    async def count(self, request: Request, asked: Annotated[Counted, Query()]) -> Response:
        """How many memories there are."""
        face, narrow = self._reading(request), asked.filter()
        return _json({"count": await self._call(lambda: face.engine.store.count(narrow))})

    async def export(self, request: Request) -> Response:
        """Every memory as a line of JSON: what `retain import` reads."""
        lines = export_lines(self._reading(request).engine.store)
        first = await self._call(lambda: _chunk(lines))  # so that what fails at once is told
        return StreamingResponse(self._chunks(first, lines), media_type="application/x-ndjson")

    async def _chunks(self, chunk: bytes, lines: Iterator[bytes]) -> AsyncIterator[bytes]:
        while chunk:
            yield chunk
            chunk = await self._call(lambda: _chunk(lines))

    # -- the server ------------------------------------------------------------------------

    async def health(self) -> Response:
        """Whether the store answers; needs no token."""
        try:
            await self._call(lambda: self.store.revision)
        except RetainError as error:
            log.error("the store does not answer: %s", error)
            return _json({"status": "failing"}, 503)
        return _json({"status": "ok", "version": __version__})

    async def figures(self) -> Response:
        """The figures of this server for Prometheus; needs no token."""
        text, kind = self.metrics.text()
        return Response(text, media_type=kind)


def make_app(
    store: Store,
    *,
    tokens: Tokens | None = None,
    open_to: Scope | None = None,
    embedder: Embedder | None = None,
    limits: Limits | None = None,
    threads: int = 4,
) -> Gate:
    """The API over ``store`` as an ASGI application, which closes the store when it ends.

    ``tokens``: who may ask. ``open_to``: without tokens, the scope of every request; only
    this machine is answered then. The others are :class:`Api`'s.

    >>> from retain import InMemoryStore, Scope
    >>> app = make_app(InMemoryStore(), open_to=Scope(user="ann"))
    """
    if tokens is None and open_to is None:
        raise InvalidValue("give tokens, or a scope that needs none")
    limits, metrics = limits or Limits(), Metrics()
    api = Api(store, embedder=embedder, limits=limits, metrics=metrics, threads=threads)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        api.close()

    app = FastAPI(
        title="retain",
        version=__version__,
        description=__doc__.partition("\n\n")[2],
        lifespan=life,
        redirect_slashes=False,
        redoc_url=None,
    )
    _add_routes(app, api)
    _describe(app)
    for kind, handler in (
        (RetainError, _on_retain_error),
        (RequestValidationError, _on_wrong_request),
        (HTTPException, _on_http_error),
        (Exception, _on_error),
    ):
        app.add_exception_handler(kind, handler)
    grant = None if open_to is None else Grant(open_to)
    return Gate(app, tokens=tokens, open_to=grant, limits=limits, metrics=metrics)


def _add_routes(app: FastAPI, api: Api) -> None:
    for method, path, endpoint in (
        ("POST", "/v1/memories", api.remember),
        ("POST", "/v1/memories/batch", api.remember_many),
        ("GET", "/v1/memories", api.list_),
        ("GET", "/v1/memories/{id:any}", api.get_at),
        ("PATCH", "/v1/memories/{id:any}", api.update_at),
        ("DELETE", "/v1/memories/{id:any}", api.forget_at),
        ("GET", "/v1/memory", api.get),
        ("PATCH", "/v1/memory", api.update),
        ("DELETE", "/v1/memory", api.forget),
        ("POST", "/v1/recall", api.recall),
        ("GET", "/v1/context", api.context),
        ("POST", "/v1/context", api.context_of),
        ("GET", "/v1/count", api.count),
        ("GET", "/v1/export", api.export),
        ("GET", "/health", api.health),
        ("GET", "/metrics", api.figures),
    ):
        app.add_api_route(
            path, endpoint, methods=[method], response_model=None, name=endpoint.__name__
        )


def _describe(app: FastAPI) -> None:
    """Have the document of the API say what a token is and what an error looks like."""
    made = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = made()
            parts = document["components"]
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"token": []}]
            for name in ("HTTPValidationError", "ValidationError"):  # the framework's own
                parts["schemas"].pop(name, None)
            parts["schemas"]["Error"] = _ERROR
            told = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
            for path, operations in document["paths"].items():
                for operation in operations.values():
                    operation["responses"].pop("422", None)
                    operation["responses"]["default"] = {"description": "Refused.", "content": told}
                    if path in ("/health", "/metrics"):
                        operation["security"] = []
        return app.openapi_schema or {}

    app.openapi = described  # type: ignore[method-assign]


# -- errors ------------------------------------------------------------------------------------


async def _on_retain_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RetainError)
    status, name, headers = status_of(error)
    if status >= 500:
        log.error("%s: %s", name, error)
    return _json({"error": name, "message": str(error)}, status, headers)


async def _on_wrong_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = [
        f"{'.'.join(map(str, each['loc'][1:])) or each['loc'][0]}: {each['msg']}"
        for each in error.errors()[:10]
    ]
    return _json({"error": "InvalidValue", "message": "; ".join(wrong)}, 422)


async def _on_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    name = {404: "NoSuchRoute", 405: "MethodNotAllowed"}.get(error.status_code, "BadRequest")
    return _json({"error": name, "message": error.detail}, error.status_code, error.headers)


async def _on_error(_: Request, error: Exception) -> Response:
    message = "the server failed; its log says more"  # the traceback, which the server writes
    return _json({"error": "Failed", "message": message}, 500)


def _missing(id: str, face: VectorStoreMemory) -> NotFound:
    return NotFound(f"no memory {id!r} in scope {face.scope}")


# -- values ------------------------------------------------------------------------------------


def _at_most(value: int, name: str, most: int) -> int:
    if value > most:
        raise InvalidValue(f"{name}={value}; this server gives or takes at most {most}")
    return value


def _order(name: str) -> Order:
    try:
        return Order(name)
    except ValueError:
        known = ", ".join(order.value for order in Order)
        raise InvalidValue(f"order={name!r} is none of {known}") from None


def _cursor(memory: Memory) -> str:
    """A memory's place in every order, as text; the page goes on there, even if it is deleted."""
    place = [memory.importance_score, memory.created_at, memory.id]
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _place(cursor: str) -> Memory:
    try:
        importance, created, id = json.loads(base64.urlsafe_b64decode(cursor))
        place = Memory(id, importance_score=importance, created_at=created)
        return place.checked()
    except (ValueError, TypeError, RecursionError):  # and what breaks a rule of the record
        raise InvalidValue(f"cursor={cursor!r} is not the next of a page") from None


def _chunk(lines: Iterator[bytes]) -> bytes:
    chunk, size = [], 0
    for line in lines:
        chunk.append(line)
        size += len(line)
        if size >= _CHUNK:
            break
    return b"".join(chunk)


def _result(found: RetrievalResult, explain: bool) -> dict[str, Any]:
    why = found.evidence
    result = {
        "memory": found.memory.to_dict(),
        "relevance_score": found.relevance_score,
        "recency_score": found.recency_score,
        "importance_score": found.importance_score,
        "combined_score": found.combined_score,
        "evidence": why and {name: getattr(why, name) for name in _EVIDENCE},
    }
    if explain:
        result["explanation"] = found.explain()
    return result


def _text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _json(value: Any, status: int = 200, headers: Any = None) -> Response:
    return _answer(_text(value), status, headers)


def _answer(text: bytes, status: int = 200, headers: Any = None) -> Response:
    return Response(text, status, headers, media_type="application/json")
