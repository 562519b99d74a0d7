"""The history of a conversation, as the OpenAI Agents SDK keeps it: in a store of retain."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from .. import clock
from ..engine import Engine, whole
from ..errors import Conflict, InvalidType, InvalidValue, MissingPackage, StoreCorrupt
from ..guard.sanitizers import strip_surrogates
from ..models import Memory
from ..results import RetrievalResult
from ..scope import Scope
from ..search.blend import Blend
from ..search.embedders import Embedder, default_embedder
from ..stores.base import Store
from .rooms import room_beside, store_of

try:
    from agents.memory import SessionABC, SessionSettings
except ImportError as error:
    raise MissingPackage.needed("RetainSession", "openai-agents", error) from error

__all__ = ["RetainSession"]

T = TypeVar("T")

_CATEGORY = "session"
_ITEM = "item"  # of a memory's metadata: the item, as JSON text, so that it is the same again
_TICK = 1e-6  # seconds between two items: what times are counted in
_ATTEMPTS = 200
_LONGEST_PAUSE = 0.02  # seconds


class RetainSession(SessionABC):
    """A session of the SDK in any store: ``Runner.run(agent, text, session=…)``.

    ``session_id``: any text that is not empty; no two ids share an item. ``memory``: whose store
    it lives in: a memory, a store, or its URL. ``session_settings``: the SDK's, or a dict of
    them; its ``limit`` counts where :meth:`get_items` is given none. ``embedder``: for
    :meth:`search`, ``None`` for words alone.

    The items lie in a scope of their own, ``scope``, of the same user and agent, so that what is
    said doesn't stand among the facts. They come back equal and in the order in which they were
    added, by any process. A write is all or nothing and durable when it returns, where the store
    is; of two that pop at once, no two get the same item. A write that is cancelled is carried
    out, and then the cancellation goes on. The history is kept as it was said: the hooks of a
    memory don't see it.

    Raises ``InvalidValue`` for an empty id, ``InvalidType`` for what is no text or no memory.

    >>> from retain import InMemoryStore
    >>> session = RetainSession("chat-1", InMemoryStore())
    >>> asyncio.run(session.add_items([{"role": "user", "content": "Likes tea"}]))
    >>> asyncio.run(session.get_items())
    [{'role': 'user', 'content': 'Likes tea'}]
    """

    def __init__(
        self,
        session_id: str,
        memory: Any,
        *,
        session_settings: SessionSettings | Mapping[str, Any] | None = None,
        embedder: Embedder | None = default_embedder(),  # noqa: B008  # reads nothing yet
    ) -> None:
        if session_id == "":
            raise InvalidValue("session_id is empty, which is nearly always a missing one")
        self.session_id = session_id
        settings: Any = session_settings or {}
        self.session_settings = (
            SessionSettings(**settings) if isinstance(settings, Mapping) else settings
        )
        place = store_of(memory)
        self.scope: Scope = room_beside(place.scope, "openai-agents", session_id)
        self._owner = memory
        self._engine = Engine(place.scoped(self.scope), embedder=embedder, blend=Blend())

    @property
    def store(self) -> Store:
        """Where the items are, bound to their scope."""
        return self._engine.store

    # -- what the SDK calls ----------------------------------------------------------------

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items, oldest first; of a ``limit``, that many of the newest.

        Raises ``InvalidValue`` for a limit below 0, and ``StoreCorrupt`` where something that is
        no item was written to the session's scope.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None:
            whole(limit, "limit", 0)
        return await asyncio.to_thread(self._items, limit)

    async def add_items(self, items: Sequence[Any]) -> None:
        """Add items, all of them or none, behind those that are there.

        Raises ``InvalidType`` or ``InvalidValue`` for what JSON can't hold (a set, a tuple, a key
        that is no text), naming the item.
        """
        drafts = [_draft(item, at) for at, item in enumerate(items)]
        if drafts:
            await _carried_out(self._retried, lambda: self._add(drafts))

    async def pop_item(self) -> Any | None:
        """Take the newest item away; it, or ``None`` where there is none."""
        return await _carried_out(self._retried, self._pop)

    async def clear_session(self) -> None:
        """Delete every item, for good; other sessions keep theirs."""
        await _carried_out(self._clear)

    # -- beyond it -------------------------------------------------------------------------

    def search(self, query: str, k: int = 5) -> list[RetrievalResult]:
        """The ``k`` items whose text matches best, as memories; their text is their content."""
        return self._engine.recall(query, k)

    # -- how it is kept --------------------------------------------------------------------
    #
    # Items are numbered from 1 without a gap, and the number is the memory's id. A write says
    # which item it takes for the newest, and is made again where that is no longer so.

    def _items(self, limit: int | None) -> list[Any]:
        newest = self._newest_first() if limit is None else iter(self.store.page(limit))
        return [_item_of(memory) for memory in newest][::-1]

    def _newest_first(self) -> Iterator[Memory]:
        return self.store.iterate(size=1_000)

    def _add(self, drafts: Sequence[Memory]) -> None:
        last, expect = self._last()
        number = 0 if last is None else int(last.id)
        time = clock.now()
        if last is not None:
            time = max(time, last.created_at + _TICK)
        ids = [_id(number + 1 + at) for at in range(len(drafts))]
        items = [
            draft.copy(id=id, created_at=time + at * _TICK, updated_at=time)
            for at, (draft, id) in enumerate(zip(drafts, ids, strict=True))
        ]
        expect |= dict.fromkeys(ids, 0)
        self._engine.restore_many(items, unique=False, expect=expect)

    def _pop(self) -> Any | None:
        last, expect = self._last()
        if last is None:
            return None
        item = _item_of(last)
        self._engine.restore_many([], delete=[last.id], expect=expect)
        return item

    def _last(self) -> tuple[Memory | None, dict[str, int]]:
        """The newest item, and what must hold for it to be the newest still."""
        page = self.store.page(1)
        if not page:
            return None, {_id(1): 0}
        last = page[0]
        if not last.id.isdecimal():
            raise _foreign(last)
        return last, {last.id: last.revision, _id(int(last.id) + 1): 0}

    def _clear(self) -> None:
        self._engine.forget_all()
        self._carry()

    def _retried(self, work: Callable[[], T]) -> T:
        for attempt in range(_ATTEMPTS):
            try:
                done = work()
            except Conflict:  # another process was quicker
                time.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.001 * 2**attempt)))
                continue
            self._carry()
            return done
        raise Conflict(
            f"others wrote to session {self.session_id[:80]!r} {_ATTEMPTS} times; call again later"
        )

    def _carry(self) -> None:
        """Save a directory that is kept elsewhere too."""
        if getattr(self._owner, "backend", None) is not None:
            self._owner.flush()


async def _carried_out(work: Callable[..., T], *arguments: Any) -> T:
    """What ``work`` gives, on a thread; it is waited for even where the caller is cancelled."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:  # impatience changes nothing
                continue
        raise


def _id(number: int) -> str:
    return f"{number:012d}"


def _draft(item: Any, at: int) -> Memory:
    """What an item is stored as, but for its place in the order."""
    if not isinstance(item, Mapping):
        raise InvalidType(f"item {at} is a {type(item).__name__}; give a dict")
    try:
        text = json.dumps(item, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidType(f"item {at} can't be kept: {error}; give what JSON can hold") from None
    if json.loads(text) != item:
        raise InvalidType(
            f"item {at} would not come back the same from JSON: it has a tuple, or a key that is "
            "no text; give lists and texts"
        )
    role = str(item.get("role") or item.get("type") or "")
    return Memory(
        content=strip_surrogates(_text(item)),
        category=_CATEGORY,
        source=strip_surrogates(role),
        metadata={"role": strip_surrogates(role), _ITEM: text},
    )


def _text(item: Mapping[str, Any]) -> str:
    """What there is to read in an item: a message, a call with its arguments, a call's output."""
    parts = [item.get(name) for name in ("name", "arguments", "content", "output", "summary")]
    return "\n".join(text for part in parts for text in _texts(part))


def _texts(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping):
        yield from _texts(part.get("text"))
    elif isinstance(part, list):
        for each in part:
            yield from _texts(each)


def _item_of(memory: Memory) -> Any:
    text = memory.metadata.get(_ITEM)
    if not isinstance(text, str):
        raise _foreign(memory)
    return json.loads(text)


def _foreign(memory: Memory) -> StoreCorrupt:
    return StoreCorrupt(
        f"memory {memory.id!r} in scope {memory.scope} is no item of a session; forget it, or "
        "use another session_id"
    )
