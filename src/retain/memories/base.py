"""What every face can do: the calls that all of them share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from types import TracebackType
from typing import Any, TypeVar

from .. import clock
from ..context import bullets
from ..engine import Engine
from ..errors import InvalidType, InvalidValue
from ..guard.hooks import Hook
from ..indexing import Progress
from ..messages import Message
from ..models import Filter, Memory, MemoryImportance, MemoryType
from ..results import RetrievalResult
from ..scope import Scope
from ..search.blend import Blend
from ..search.embedders import Embedder
from ..search.rank import HALF_LIFE
from ..stores.base import Store
from ..stores.knowledge import KnowledgeStore, as_store
from ..stores.memory import InMemoryStore
from .observing import Observed, Said, observe

__all__ = ["Face"]

F = TypeVar("F", bound="Face")


class Face:
    """Remembering, recalling and forgetting in one scope of one store.

    ``store``: where memories live, a store, its URL (see :func:`retain.open`) or a knowledge
    store; in the process, gone when it ends, unless given.
    ``scope``: whose they are; the store's own scope unless given. ``pre_save``: a hook, or
    several, that text goes through before it is written (see ``retain.guard``). ``dedupe``:
    refuse text at least ``dedupe_threshold`` (0 to 1) alike to one of the last
    ``dedupe_window`` memories. ``max_entries``: evict the least important beyond that many.
    ``half_life``: days in which recency halves. ``embedder``: what compares meanings, ``None``
    for words alone.

    Usable from any thread; a ``with`` block closes it.
    """

    default_type = MemoryType.EPISODIC
    blends = True
    """Whether relevance is more than the share of a query's words, even without an embedder."""
    turn_category = "conversation"
    """What turns of a conversation are filed under, so that they are told from facts."""

    def __init__(
        self,
        store: Store | KnowledgeStore | str | None = None,
        *,
        scope: Scope | None = None,
        pre_save: Hook | Sequence[Hook] | None = None,
        dedupe: bool = False,
        dedupe_threshold: float = 0.9,
        dedupe_window: int = 200,
        max_entries: int | None = None,
        half_life: float = HALF_LIFE,
        embedder: Embedder | None = None,
    ) -> None:
        place = InMemoryStore() if store is None else as_store(store)
        self.engine = Engine(
            place if scope is None else place.scoped(scope),
            pre_save=pre_save,
            dedupe=dedupe,
            dedupe_threshold=dedupe_threshold,
            dedupe_window=dedupe_window,
            max_entries=max_entries,
            half_life=half_life,
            embedder=embedder,
            blend=Blend() if self.blends or embedder is not None else None,
        )

    @property
    def scope(self) -> Scope:
        """Whose memory it is."""
        return self.engine.store.scope

    @property
    def memory_count(self) -> int:
        """How many memories are visible in the scope."""
        self._look()
        return self.engine.store.count()

    def __len__(self) -> int:
        return self.memory_count

    def __bool__(self) -> bool:
        return True  # an empty memory is a memory

    # -- in --------------------------------------------------------------------------------

    def _remember(self, content: str, **fields: Any) -> Memory:
        draft = self._draft(content, **fields)
        with self._writing():
            return self.engine.remember(draft)

    def _writing(self) -> AbstractContextManager[None]:
        """Held around every write; a face with files of its own keeps them in step here."""
        return nullcontext()

    def _look(self) -> None:
        """Called before every read."""

    def remember_many(self, items: Iterable[str | Mapping[str, Any] | Memory]) -> list[Memory]:
        """Remember all of ``items`` in one transaction, or none; the memories as stored.

        An item is a text, a dict of ``remember``'s arguments, or a whole :class:`Memory`.
        """
        if isinstance(items, (str, Mapping, Memory)):  # a text would be taken letter by letter
            raise InvalidType(f"items is a {type(items).__name__}; give a list of items")
        drafts = [self._item(item) for item in items]
        with self._writing():
            return self.engine.remember_many(drafts)

    def _item(self, item: str | Mapping[str, Any] | Memory) -> Memory:
        if isinstance(item, Memory):
            return item
        if isinstance(item, str):
            return self._draft(item)
        if isinstance(item, Mapping) and "content" in item:
            unknown = [name for name in item if name not in _REMEMBERED]
            if unknown:
                can = ", ".join(sorted(_REMEMBERED))
                raise InvalidType(f"{unknown[0]!r} can't be remembered; what can: {can}")
            return self._draft(**item)
        raise InvalidType(f"{item!r} is no text, no Memory and no dict with a content")

    def _draft(
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
        if isinstance(content, str) and not content.strip():
            raise InvalidValue("there is nothing to remember: the content is blank")
        return Memory(
            None,
            content,
            self.default_type if memory_type is None else memory_type,
            importance,
            metadata,
            tags,
            None if created_at is None else clock.as_epoch(created_at),
            category=category,
            source=source,
            persistent=persistent,
            ttl_days=ttl_days,
        )

    def observe(
        self,
        messages: Said | Iterable[Said],
        *,
        provider: Any = None,
        model: str = "",
        session: str | None = None,
        timeout: float | None = 60.0,
    ) -> Observed:
        """Keep what was said, and remember what is worth it; what was found, with its turns.

        ``messages``: a text (said by a user), a :class:`Message`, a dict with ``role``,
        ``content`` and perhaps ``at`` (epoch seconds, an aware ``datetime``, or ISO 8601: "on
        Friday" is seen from there, and in its zone), a turn that was kept before, or a list of
        these. ``provider``: asked with ``model``, at most ``timeout`` seconds, what to remember;
        by rules without one, in this process (see ``docs/extraction.md``). ``session``: kept
        with each turn.

        First all turns are written, in one transaction; messages of tools and blank ones are
        none. Then all that was found, in another. Each has ``metadata["turn_id"]``, the id of
        the turn that says it, and its role as ``source``. What a hook refuses is left out and
        stands in ``rejected``. Turns that were observed before give nothing a second time.

        Raises ``ExtractionFailed`` where the model fails; the turns are kept by then and stand
        in its ``turns``, to be observed again. Raises ``Rejected``, ``InvalidValue`` or
        ``InvalidType`` for a turn; then nothing was written.

        >>> from retain import AgentMemory
        >>> found = AgentMemory().observe("Hi! My cat is called Miu. What does she eat?")
        >>> [memory.content for memory in found], len(found.turns)
        (['My cat is called Miu'], 1)
        """
        return observe(self, messages, provider, model, session, timeout)

    def _heard(self, messages: Sequence[Message]) -> None:
        """Called when the turns of these were kept."""

    def update(self, id: str, **changes: Any) -> Memory:
        """Change a memory in place: ``content=``, ``importance=``, ``category=``, ``tags=``,
        ``metadata=``, ``memory_type=``, ``source=``, ``persistent=``, ``ttl_days=``.

        Returns it as it is now stored. Atomic, also against other processes. Raises
        ``NotFound``, ``Rejected``, ``InvalidValue`` or ``InvalidType``; then nothing changed.
        """
        unknown = changes.keys() - _UPDATABLE
        if unknown:
            can = ", ".join(sorted(_UPDATABLE))
            raise InvalidType(f"{min(unknown)!r} can't be updated; what can: {can}")
        if not str(changes.get("content", "x")).strip():
            raise InvalidValue("there is nothing to remember: the content is blank; forget it")
        with self._writing():
            return self.engine.update(id, **changes)

    def forget(self, id: str) -> bool:
        """Delete a memory for good, everywhere; whether it was there."""
        with self._writing():
            return self.engine.forget(id)

    def prune(self) -> int:
        """Delete what is expired; how many there were."""
        with self._writing():
            return self.engine.prune()

    # -- out -------------------------------------------------------------------------------

    def get(self, id: str) -> Memory | None:
        """The memory of that id, or ``None``; counts as a retrieval."""
        self._look()
        return self.engine.store.get(id)

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
        """The k best memories for ``query``, best first; always exactly the k best that pass.

        They may be narrowed by type, least importance, tags (all of them), category, and
        time (``since`` inclusive, ``until`` exclusive; epoch seconds or aware ``datetime``).
        What shares no term with a query that is not blank is no result; a blank query finds
        the best by recency and importance. Sees all that was written before the call, by
        any process.
        """
        narrow = Filter.of(
            memory_type=memory_type,
            min_importance=min_importance,
            tags=tags,
            category=category,
            since=since,
            until=until,
            persistent=persistent,
        )
        self._look()
        return self.engine.recall(query, k, narrow)

    def search(self, query: str, k: int = 10) -> list[RetrievalResult]:
        """The k best memories for ``query``: :meth:`recall` without filters."""
        return self.recall(query, k=k)

    def get_context(self, query: str, k: int = 5) -> str:
        """The k best memories for a prompt, a line ``- content`` each; "" if there are none."""
        return bullets(result.memory for result in self.search(query, k))

    def neighbours(self, id: str, k: int = 2) -> list[Memory]:
        """The turns around one in its session: at most ``k`` before it and ``k`` after it.

        In the order in which they were said, without itself. Raises ``NotFound``.
        """
        self._look()
        return self.engine.neighbours(id, k)

    def settle(self, progress: Progress | None = None) -> None:
        """Do now what is else done in the background: new vectors, and the index's files.

        ``progress`` is told how many memories are ready, and of how many. No call has to wait
        for this; it is for who would rather wait once, after an import for instance.
        """
        self._look()
        self.engine.settle(progress)

    # -- the place -------------------------------------------------------------------------

    def close(self) -> None:
        """Write what waits and close the store."""
        self.engine.close()

    def __enter__(self: F) -> F:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


_UPDATABLE = {
    "content",
    "memory_type",
    "importance",
    "metadata",
    "tags",
    "category",
    "source",
    "persistent",
    "ttl_days",
}
_REMEMBERED = _UPDATABLE | {"created_at"}
