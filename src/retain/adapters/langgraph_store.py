"""A LangGraph ``BaseStore`` over any store of retain."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, cast

import numpy as np

from .. import clock
from ..engine import Engine
from ..errors import Conflict, InvalidType, InvalidValue, MissingPackage
from ..models import Filter, Memory
from ..results import RetrievalResult
from ..scope import Scope
from ..search.blend import Blend
from ..search.embedders import Embedder, Floats, default_embedder
from ..stores.base import Store
from ..stores.opening import is_url, open_store
from ..stores.sqlite import SQLiteStore
from . import langgraph_items as items

try:
    from langgraph.store.base import (
        BaseStore,
        Embeddings,
        GetOp,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        ensure_embeddings,
    )
except ImportError as error:
    raise MissingPackage.needed("the adapter for LangGraph", "langgraph", error) from error

__all__ = ["RetainStore"]

_GROWTH = 4  # of a search that a filter leaves too little of


class RetainStore(BaseStore, AbstractContextManager["RetainStore"]):
    """Long-term memory of a LangGraph graph or agent, in any store of retain.

    ``store``: a retain store, its URL (``retain.open``), or the path of a SQLite file, which is
    made if it is not there. ``scope``: whose items they are; the store's own unless given. All
    namespaces of a ``RetainStore`` lie in this one scope.
    ``index``: as LangGraph has it: ``fields``, the paths whose text is searched (everything
    unless given), ``embed`` and ``dims``, a model that compares meanings. ``embedder``: the same
    as an embedder of retain's; the one that comes with the install unless either is given,
    ``None`` for words alone.
    ``ttl``: minutes after which items expire, or LangGraph's ``TTLConfig``. What is expired is in
    no answer from that moment on; it is deleted by :meth:`sweep_ttl`, or before the next put once
    ``sweep_interval_minutes`` are over.

    A put is durable when it returns, as far as the store is. All puts of one batch are one
    transaction, and its deletes are another, before them; its reads see what was there before
    both. Usable from any thread, and from any number of processes at once; its ``async`` methods
    work on threads. A ``with`` block closes it.

    Raises ``InvalidType`` or ``InvalidValue`` for arguments that make no sense, and whatever
    opening the store raises.
    """

    supports_ttl = True

    def __init__(
        self,
        store: Store | str | os.PathLike[str],
        *,
        scope: Scope | None = None,
        index: Mapping[str, Any] | None = None,
        embedder: Embedder | None = default_embedder(),  # noqa: B008  # reads nothing yet
        ttl: float | TTLConfig | None = None,
    ) -> None:
        index = index or {}
        if "embed" in index:
            embedder = _LangChainEmbedder(index["embed"], index.get("dims"))
        self.fields = _fields(index.get("fields"))
        self.ttl_config = _ttl_config(ttl)
        place = _opened(store)
        self.store = place if scope is None else place.scoped(scope)
        self.engine = Engine(self.store, embedder=embedder, blend=Blend())
        self._catalogue = _Catalogue(self.store)
        self._swept = time.monotonic()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """What LangGraph's calls come down to: the answers, in the order of ``ops``.

        Of several puts of one key the last one counts. Raises ``InvalidNamespace`` (LangGraph's
        ``InvalidNamespaceError``), ``InvalidValue`` or ``InvalidType`` with nothing changed.
        """
        asked = list(ops)
        for op in asked:
            items.check(op)
        now = clock.now()
        puts = {(tuple(op.namespace), op.key): op for op in asked if isinstance(op, PutOp)}
        written = self._drafts(list(puts.values()), now)  # checked before anything is read
        answers = [self._answer(op, now) for op in asked]
        self._write(written, [items.id_of(*at) for at, op in puts.items() if op.value is None])
        return answers

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As :meth:`batch`, on a thread; one that is cancelled may be carried out all the same."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Delete what is expired; how many there were."""
        self._swept = time.monotonic()
        return self.engine.prune()

    def close(self) -> None:
        """Write what waits and close the store."""
        self.engine.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- in --------------------------------------------------------------------------------

    def _drafts(self, puts: Sequence[PutOp], now: float) -> list[Memory]:
        """What is to be saved; the first put of a key says when it was created."""
        new = [op for op in puts if op.value is not None]
        known = self.store.peek([items.id_of(op.namespace, op.key) for op in new], now)
        created = {memory.id: items.created_of(memory) for memory in known}
        return [
            items.to_memory(
                op, self.fields, created.get(items.id_of(op.namespace, op.key), now), now
            ).checked()
            for op in new
        ]

    def _write(self, save: list[Memory], delete: list[str]) -> None:
        if not save and not delete:
            return
        self._sweep_if_due()
        if delete:
            self.engine.forget_many(delete)
        if save:
            self.engine.remember_many(save)

    def _sweep_if_due(self) -> None:
        every = (self.ttl_config or {}).get("sweep_interval_minutes")
        if every is not None and time.monotonic() - self._swept >= every * 60:
            self.sweep_ttl()

    def _refresh(self, memories: Sequence[Memory], now: float) -> None:
        """Have what was read expire its time to live from now; its version stays."""
        waiting = list(memories)
        while copies := [copy for each in waiting if (copy := items.refreshed(each, now))]:
            expected = {copy.id: copy.revision for copy in copies}
            try:
                self.engine.restore_many(copies, unique=False, expect=expected)
                return
            except Conflict:  # who wrote one of them meanwhile has set its time
                there = self.store.peek(list(expected), now)
                waiting = [each for each in there if each.revision == expected[each.id]]

    # -- out -------------------------------------------------------------------------------

    def _answer(self, op: Op, now: float) -> Result:
        if isinstance(op, GetOp):
            return self._item(op, now)
        if isinstance(op, SearchOp):
            return cast(Result, self._found(op, now))
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op, now)
        return None

    def _item(self, op: GetOp, now: float) -> Item | None:
        memories = self.store.peek([items.id_of(op.namespace, op.key)], now)
        if op.refresh_ttl:
            self._refresh(memories, now)
        return items.to_item(memories[0]) if memories else None

    def _found(self, op: SearchOp, now: float) -> list[SearchItem]:
        """What is under the prefix and passes the filter, a page of it.

        Last put first; with a query what matches it best first, then what doesn't match, then
        what no query finds.
        """
        wanted = op.offset + op.limit
        if not op.limit:
            return []
        narrow = Filter(tags=(items.tag_of(op.namespace_prefix),))

        def passes(memory: Memory) -> bool:
            item = items.stored(memory)
            return item is not None and items.admits(op.filter, item["value"])

        page: list[tuple[Memory, float | None]]
        if not (op.query and op.query.strip()):
            page = [(each.memory, None) for each in self._first("", narrow, wanted, passes)]
        else:
            page = self._ranked(op.query, narrow, wanted, passes)
        page = page[op.offset :]
        if op.refresh_ttl:
            self._refresh([memory for memory, _ in page], now)
        return [items.to_found(memory, score) for memory, score in page]

    def _ranked(
        self, query: str, narrow: Filter, wanted: int, passes: Callable[[Memory], bool]
    ) -> list[tuple[Memory, float | None]]:
        """The first ``wanted`` for a query: whatever matches, and then the rest."""
        best = self._first(query, narrow, wanted, lambda m: items.is_indexed(m) and passes(m))
        page: list[tuple[Memory, float | None]] = [(r.memory, r.combined_score) for r in best]
        known = {memory.id for memory, _ in page}
        missing = wanted - len(page)
        if missing:
            rest = self._rest(narrow, missing, lambda m: m.id not in known and passes(m))
            page += [(memory, 0.0 if items.is_indexed(memory) else None) for memory in rest]
        return page

    def _rest(self, narrow: Filter, wanted: int, passes: Callable[[Memory], bool]) -> list[Memory]:
        """The first ``wanted`` that pass, those that a query could find before the others."""
        found = [each.memory for each in self._first("", narrow, wanted, passes)]
        indexed = [memory for memory in found if items.is_indexed(memory)]
        if len(indexed) < len(found) == wanted:  # there may be more of them further on
            more = self._first("", narrow, wanted, lambda m: items.is_indexed(m) and passes(m))
            indexed = [each.memory for each in more]
        others = [memory for memory in found if not items.is_indexed(memory)]
        return (indexed + others)[:wanted]

    def _first(
        self, query: str, narrow: Filter, wanted: int, passes: Callable[[Memory], bool]
    ) -> list[RetrievalResult]:
        """The first ``wanted`` of a recall that pass: all there are, if they are fewer."""
        k = wanted
        while True:
            found = self.engine.recall(query, k, narrow)
            fit = [result for result in found if passes(result.memory)]
            if len(fit) >= wanted or len(found) < k:
                return fit[:wanted]
            k *= _GROWTH

    def _namespaces(self, op: ListNamespacesOp, now: float) -> list[items.Namespace]:
        conditions = op.match_conditions or ()
        found = {
            namespace[: op.max_depth]
            for namespace in self._catalogue.namespaces(now)
            if all(items.matches(condition, namespace) for condition in conditions)
        }
        return sorted(found)[op.offset : op.offset + op.limit]


class _Catalogue:
    """Which namespaces hold an item: read once, and kept level by what changed since."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._revision = 0
        self._items: dict[str, tuple[items.Namespace, float | None]] = {}

    def namespaces(self, now: float) -> set[items.Namespace]:
        """Those of every item that is visible at ``now``."""
        with self._lock:
            self._catch_up()
            return {
                namespace
                for namespace, expires in self._items.values()
                if expires is None or expires > now
            }

    def _catch_up(self) -> None:
        changes = self._store.changes(self._revision)
        if changes.reset:
            self._items = {}
        for id in changes.deleted:
            self._items.pop(id, None)
        for memory in changes.saved:
            namespace = items.namespace_of(memory)
            if namespace is not None:
                self._items[memory.id] = (namespace, memory.expires_at)
        self._revision = changes.revision


class _LangChainEmbedder:
    """LangChain's ``Embeddings``, or a function of texts, as an embedder of retain's."""

    def __init__(self, embed: Any, dims: object) -> None:
        if isinstance(dims, bool) or not isinstance(dims, int) or dims < 1:
            raise InvalidValue(f"index['dims'] is {dims!r}; give the numbers of a vector")
        self._model: Embeddings = ensure_embeddings(embed)
        function = getattr(self._model, "func", None)
        if hasattr(self._model, "afunc"):
            raise InvalidType("index['embed'] is an async function; give a plain one")
        kind = type(self._model).__qualname__
        which = getattr(self._model, "model", None) or getattr(function, "__qualname__", "")
        self.name = f"langchain:{kind}:{which}:{dims}"
        self.dimensions = dims

    def embed(self, texts: Sequence[str]) -> Floats:
        """The texts' vectors, of unit length."""
        return _unit(self._model.embed_documents(list(texts)))

    def embed_query(self, text: str) -> Floats:
        """A question's vector, of unit length."""
        return cast(Floats, _unit([self._model.embed_query(text)])[0])


def _unit(vectors: Any) -> Floats:
    rows = np.asarray(vectors, np.float32)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return cast(Floats, rows / np.where(length > 0, length, 1))


def _opened(store: Store | str | os.PathLike[str]) -> Store:
    if isinstance(store, Store):
        return store
    if not isinstance(store, (str, os.PathLike)):
        raise InvalidType(
            f"store is a {type(store).__name__}; give a retain store, a URL or a path"
        )
    place = os.fspath(store)
    return open_store(place) if is_url(place) else SQLiteStore(place)


def _fields(fields: object) -> list[str]:
    if fields is None:
        return ["$"]
    if not isinstance(fields, (list, tuple)) or not all(isinstance(each, str) for each in fields):
        raise InvalidType(f"index['fields'] is {fields!r}; give a list of paths")
    return list(fields) or ["$"]


def _ttl_config(ttl: float | TTLConfig | None) -> TTLConfig | None:
    config: Any = ttl if ttl is None or isinstance(ttl, dict) else {"default_ttl": ttl}
    items.check_ttl((config or {}).get("default_ttl"))
    return cast("TTLConfig | None", config)
