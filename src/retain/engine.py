"""The way in and the way out: the only module that writes to a store.

In: guard → store → index. Out: index → rank → store. Every face, tool, command, importer
and adapter takes these two paths, so that a rule holds everywhere or nowhere.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from . import awaiting, clock
from .errors import Conflict, InvalidType, InvalidValue, NotFound, Rejected
from .guard.dedupe import dedupe_against
from .guard.hooks import Hook, HookChain
from .indexing import Indexed, Progress
from .models import Filter, Memory
from .native import NativeIndexed
from .results import Evidence, RetrievalResult
from .search.blend import Blend, Query, blended
from .search.candidates import Asked
from .search.embedders import Embedder
from .search.index import ScopeIndex
from .search.lexical import Found, Word, everything, share, shares, words_of
from .search.rank import HALF_LIFE, Mixed, best, mixed
from .search.witness import Witness
from .stores.base import Order, Store

__all__ = ["Engine"]

log = logging.getLogger("retain")

T = TypeVar("T")

_ANYTHING = Filter()
_GUARDED = ("content", "category", "tags")  # what the hooks see
_ATTEMPTS = 100  # at an update that others keep overtaking
_SHARE_STEP = 20  # shares are compared in steps of 1/20


class Engine:
    """Remembering and recalling in one scope of one store.

    ``store``: a store, bound to the scope. ``pre_save``: a hook, or several, that text goes
    through before it is written. ``dedupe``: reject text that is at least
    ``dedupe_threshold`` alike to one of the last ``dedupe_window`` memories.
    ``max_entries``: evict beyond that many, ``None`` for never. ``half_life``: days in which
    recency halves. ``blend``: what relevance is made of; the share of the query's words by
    their rarity where it is ``None``. ``embedder``: makes the vectors for a blend.
    """

    def __init__(
        self,
        store: Store,
        *,
        pre_save: Hook | Sequence[Hook] | None = None,
        dedupe: bool = False,
        dedupe_threshold: float = 0.9,
        dedupe_window: int = 200,
        max_entries: int | None = None,
        half_life: float = HALF_LIFE,
        embedder: Embedder | None = None,
        blend: Blend | None = None,
    ) -> None:
        if not isinstance(store, Store):
            raise InvalidType(f"store is a {type(store).__name__}; give a retain store")
        self.store = store
        self.max_entries = None if max_entries is None else whole(max_entries, "max_entries", 1)
        if isinstance(half_life, bool) or not isinstance(half_life, (int, float)):
            raise InvalidType(f"half_life is a {type(half_life).__name__}; give a number of days")
        if not 0 < half_life <= sys.float_info.max:
            raise InvalidValue(f"half_life={half_life!r}; give a number of days above 0")
        self.half_life = half_life
        self._hooks = HookChain(pre_save)
        self._window = whole(dedupe_window, "dedupe_window", 1) if dedupe else 0
        self._threshold = dedupe_threshold
        dedupe_against(list, dedupe_threshold)  # refuses a threshold that is none
        self.blend = blend
        kind = NativeIndexed if store.driver.searches else Indexed
        self._indexed: Indexed | NativeIndexed = kind(store, embedder)

    @property
    def pre_save(self) -> HookChain:
        """The hooks that text goes through before it is written."""
        return self._hooks

    # -- in --------------------------------------------------------------------------------

    def remember(self, memory: Memory) -> Memory:
        """Write one memory; it as it is stored.

        An equal persistent fact of the same category is not written again: that one is
        returned. Raises ``Rejected`` where a hook refuses it, ``InvalidValue`` or
        ``InvalidType`` where it breaks a rule of the record; then nothing is written.
        Durable when the call returns, as far as the store is.
        """
        return self.remember_many([memory])[0]

    def remember_many(self, memories: Iterable[Memory]) -> list[Memory]:
        """Write all of them, or none: as :meth:`remember`, in one transaction."""
        return self._written(memories, None)

    def remember_accepted(
        self, memories: Iterable[Memory], *, unlike: Container[str] = ()
    ) -> tuple[list[Memory], list[tuple[Memory, Rejected]]]:
        """Write those that no hook refuses, in one transaction; and which were refused, and why.

        ``unlike``: ids of memories that a text may be like, where ``dedupe`` looks at the others.

        Else as :meth:`remember_many`: what breaks a rule of the record is raised, and then
        nothing is written.
        """
        refused: list[tuple[Memory, Rejected]] = []
        return self._written(memories, refused, unlike), refused

    def _written(
        self,
        memories: Iterable[Memory],
        refused: list[tuple[Memory, Rejected]] | None,
        unlike: Container[str] = (),
    ) -> list[Memory]:
        window = self.store.page(self._window) if self._window else []
        known = [each.content for each in window if each.id not in unlike]
        guarded = self._judged(self._all_guarded, memories, known, refused)
        if not guarded:
            return []
        saved = self.store.write(guarded, unique=True).saved
        if self.max_entries is not None:
            self._evict({memory.id for memory in saved})
        return saved

    def update(self, id: str, **changes: Any) -> Memory:
        """Change fields of a memory, by name; it as it is now stored.

        Atomic also against another process's change to the same memory. Raises
        ``NotFound``, and as :meth:`remember`.
        """
        for _ in range(_ATTEMPTS):
            found = self.store.peek([id])
            if not found:
                raise NotFound(f"no memory {id!r} in scope {self.store.scope}")
            changed = found[0].copy(**changes, updated_at=clock.now())
            changed = self._judged(self._guarded, changed, changes)
            try:
                return self.store.write([changed], expect={id: found[0].revision}).saved[0]
            except Conflict:
                continue
        raise Conflict(f"memory {id!r} was changed by others {_ATTEMPTS} times; call again later")

    def forget(self, id: str) -> bool:
        """Delete a memory, for good; whether it was there."""
        return self.forget_many([id]) == 1

    def forget_many(self, ids: Iterable[str]) -> int:
        """Delete all of these in one transaction; how many were there."""
        return self.store.delete_many(ids)

    def forget_all(self) -> int:
        """Delete everything of the scope; how many there were."""
        return self.store.forget_scope(self.store.scope)

    def restore(self, memory: Memory) -> Memory:
        """Write a memory as it was, past the hooks, which it went through when it was new."""
        return self.restore_many([memory])[0]

    def restore_many(
        self,
        memories: Iterable[Memory],
        *,
        unique: bool = True,
        expect: Mapping[str, int] | None = None,
        delete: Iterable[str] = (),
    ) -> list[Memory]:
        """As :meth:`restore`, all of them in one transaction.

        ``unique=False`` keeps equal facts as the several that they are. ``expect``: the
        revisions that those which are there must have, by id (0: not there), or ``Conflict``
        is raised. ``delete``: ids that are deleted in the same transaction.
        """
        return self.store.write(memories, delete, unique=unique, expect=expect).saved

    def prune(self) -> int:
        """Delete what is expired; how many there were."""
        return self.forget_many(self.store.expired())

    def _judged(self, guard: Callable[..., T], *arguments: Any) -> T:
        """What ``guard`` gives; hooks may take long, and an event loop goes on meanwhile."""
        if self._hooks or self._window:
            return awaiting.aside(guard, *arguments)
        return guard(*arguments)

    def _all_guarded(
        self,
        memories: Iterable[Memory],
        known: list[str],
        refused: list[tuple[Memory, Rejected]] | None,
    ) -> list[Memory]:
        """All of them guarded, each also against those before it; ``refused``: takes the others."""
        guarded: list[Memory] = []
        for memory in memories:
            try:
                guarded.append(self._guarded(memory, known=known))
            except Rejected as refusal:
                if refused is None:
                    raise
                refused.append((memory, refusal))
                continue
            known.append(guarded[-1].content)
        return guarded

    def _guarded(
        self, memory: Memory, changes: Iterable[str] = _GUARDED, known: Sequence[str] = ()
    ) -> Memory:
        """``memory`` with its ``changes`` through the hooks, and not too like a ``known`` text.

        The default category is not the user's text, and passes.
        """
        if not isinstance(memory, Memory):
            raise InvalidType(f"a {type(memory).__name__} is no Memory")
        through: dict[str, Any] = {}
        if "content" in changes:
            through["content"] = self._hooks(_text(memory.content))
            if memory.content.strip() and not through["content"].strip():
                raise Rejected("the hooks left nothing of the text")
            if self._window and known:
                HookChain(dedupe_against(lambda: known, self._threshold))(through["content"])
        if "category" in changes and memory.category != "general":
            through["category"] = self._hooks(_text(memory.category))
        if "tags" in changes:
            through["tags"] = [self._hooks(_text(tag)) for tag in memory.tags]
        return memory.copy(**through)  # which the store checks

    def _evict(self, written: set[str]) -> None:
        """Delete the least important beyond ``max_entries``, but nothing just written."""
        assert self.max_entries is not None
        excess = self.store.count() - self.max_entries
        if excess > 0:
            page = self.store.page(
                excess + len(written), narrow=Filter(persistent=False), order=Order.DISPENSABLE
            )
            doomed = [memory.id for memory in page if memory.id not in written][:excess]
            log.debug("evicting %d memories of scope %s", len(doomed), self.store.scope)
            self.forget_many(doomed)

    # -- out -------------------------------------------------------------------------------

    def recall(
        self, query: str, k: int = 10, narrow: Filter | None = None
    ) -> list[RetrievalResult]:
        """The k best memories for a query, best first by ``combined_score``.

        Exactly the k best of all that pass ``narrow``; ties stand newest first, then by id.
        An empty query finds the k best by recency and importance; another one nothing that
        has nothing to do with it. Being returned counts as a retrieval.
        """
        k = whole(k, "k", 0)
        _text(query, "query")
        now = clock.now()

        def best_of(index: ScopeIndex) -> dict[str, tuple[Mixed, Evidence]]:
            words, found = self._found(index, query, now, narrow)
            columns = index.columns
            importance, created = columns["importance"], columns["created"]
            chosen = mixed(
                k, found.rows, found.relevance, importance, created, columns.id, now, self.half_life
            )
            witness = Witness(index, query, words, found, now)
            return {columns.id(one.row): (one, witness.of(one.row)) for one in chosen}

        scores = self._indexed.ask(best_of, self._asked(query, now, narrow, k))
        results = []
        for memory in self._fetched(list(scores), now):
            one, evidence = scores[memory.id]
            results.append(
                RetrievalResult(memory, one.relevance, one.recency, one.importance, evidence)
            )
        return results

    def match(self, query: str, k: int) -> list[Memory]:
        """The k best memories in the order of the ``recall`` tool.

        By the share of the query's terms found (in steps of 0.05), then importance, then
        relevance, then newest; for an empty query by importance, then newest. What shares no
        term with another query is no result.
        """
        k = whole(k, "k", 0)
        _text(query, "query")
        now = clock.now()

        def best_of(index: ScopeIndex) -> list[str]:
            words, found = self._found(index, query, now, None)
            share = shares(index, words)
            rows = np.flatnonzero(found.rows & (share > 0) if query.strip() else found.rows)
            columns = index.columns
            keys = (
                np.round(share[rows] * _SHARE_STEP) / _SHARE_STEP,
                columns["importance"][rows],
                found.relevance[rows],
                columns["created"][rows],
            )
            return [
                columns.id(int(rows[at]))
                for at in best(k, keys, lambda at: columns.id(int(rows[at])))
            ]

        return self._fetched(self._indexed.ask(best_of, self._asked(query, now, None, k)), now)

    def neighbours(self, id: str, k: int = 2) -> list[Memory]:
        """The turns around one in its session: at most ``k`` before it and ``k`` after it.

        In the order in which they were said, without itself. Raises ``NotFound``.
        """
        k = whole(k, "k", 0)
        if not self.store.peek([id]):
            raise NotFound(f"no memory {id!r} in scope {self.store.scope}")
        return self.store.peek(self._indexed.beside(id, k))

    def behind(self) -> int:
        """How many memories the index has still to take in: the next recall's first work."""
        return self._indexed.behind()

    def settle(self, progress: Progress | None = None) -> None:
        """Do now what is else done in the background: vectors, and the files of the index.

        ``progress`` is told how many memories are ready, and of how many. Nothing has to wait
        for this; it is for who would rather wait once, before the first recall.
        """
        self._indexed.settle(progress)

    def _asked(self, query: str, now: float, narrow: Filter | None, k: int) -> Asked:
        return Asked(query, now, narrow or _ANYTHING, self.blend, self.half_life, k)

    def _found(
        self, index: ScopeIndex, query: str, now: float, narrow: Filter | None
    ) -> tuple[Sequence[Word], Found]:
        visible = index.visible(now)
        words: Sequence[Word] = []
        found = everything(index, visible)
        if query.strip():
            words = words_of(index, query, visible)
            if self.blend is None:
                found = share(index, words)
            else:
                found = blended(index, Query(query, now, words, visible), self.blend)
        if narrow is not None and narrow != _ANYTHING:
            found = replace(found, rows=found.rows & index.admitted(narrow))
        return words, found

    def _fetched(self, ids: list[str], now: float) -> list[Memory]:
        memories = self.store.peek(ids, now)
        self.store.retrieved(memories, now)
        return memories

    def close(self) -> None:
        """Let go of the index and close the store."""
        self._indexed.close()
        self.store.close()


def whole(value: object, name: str, least: int) -> int:
    """``value`` if it is a whole number of at least ``least``, else an error naming it."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidType(f"{name} is a {type(value).__name__}; give a whole number")
    if value < least:
        raise InvalidValue(f"{name}={value}; give a whole number from {least}")
    return value


def _text(value: object, name: str = "text") -> str:
    if not isinstance(value, str):
        raise InvalidType(f"{name} is a {type(value).__name__}; give text")
    return value
