"""Conversations that go on after a restart: a session is one memory of a store."""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from .. import clock
from ..engine import Engine
from ..errors import InvalidType, InvalidValue, NotFound, StoreCorrupt, StoreTooNew
from ..guard.sanitizers import strip_surrogates
from ..locks import ThreadLock
from ..memories.conversation import ConversationMemory
from ..messages import Message
from ..models import Filter, Memory, as_text
from ..scope import Scope
from ..search.blend import Blend
from ..stores.base import Store
from ..stores.changing import change
from ..stores.opening import open_store
from ..stores.sqlite import SQLiteStore

__all__ = ["SQLiteSessionStore", "Session", "SessionInfo", "SessionStore", "StoreSessions"]

_FORMAT = 1
_LONGEST_ID = 512
_PREFIX = "session:"
_CATEGORY = "session"
_NARROW = Filter(category=_CATEGORY)
_PAGE = 50  # sessions are long: few at once


class SessionInfo(str):
    """A session's id, as text, and what is known of it.

    ``session_id``: the id. ``message_count``: how many messages its window holds.
    ``created_at``, ``updated_at``: epoch seconds. ``score``: of a search, how well it matches,
    in [0, 1].
    """

    message_count: int
    created_at: float
    updated_at: float
    score: float

    @property
    def session_id(self) -> str:
        """The id."""
        return str(self)


@runtime_checkable
class SessionStore(Protocol):
    """Where an agent keeps its sessions: any object with these five methods."""

    def save(self, session_id: str, memory: ConversationMemory, /) -> Any:
        """Keep the window of ``memory``, in place of what was kept under that id."""

    def load(self, session_id: str, /) -> ConversationMemory | None:
        """The conversation of that id, or ``None``."""

    def list(self) -> Any:
        """Every session."""

    def delete(self, session_id: str, /) -> bool:
        """Delete by id; whether it was there."""

    def exists(self, session_id: str, /) -> bool:
        """Whether there is one of that id."""


def check_session_id(value: object, name: str = "session_id") -> str:
    """``value`` if it can be the id of a session, else an error that calls it ``name``."""
    text = as_text(value, name)
    if not 1 <= len(text) <= _LONGEST_ID:
        raise InvalidValue(f"{name} has {len(text)} characters; give 1 to {_LONGEST_ID}")
    if "\0" in text:
        raise InvalidValue(f"{name}={text[:80]!r} holds a NUL; leave it out")
    return text


class StoreSessions:
    """Sessions in any store: ``memories`` is that store.

    ``store``: a retain store, or its URL. ``namespace``: a text of 1 to 512 characters; what is
    kept under one is seen under no other, nor without one. Each method also takes a
    ``namespace`` for that call. Ids are texts of 1 to 512 characters without NUL.

    A session is one memory of category ``session``: its text is what was said, which
    :meth:`search` finds, and its metadata hold the window of messages. A write is atomic, also
    against other processes, and durable when it returns, where the store is. What can't be read
    raises ``StoreCorrupt``, or ``StoreTooNew`` if a newer version wrote it, and is not
    overwritten; :meth:`delete` it to begin anew. Usable from any thread.

    >>> from retain import ConversationMemory, InMemoryStore, Message, StoreSessions
    >>> sessions = StoreSessions(InMemoryStore())
    >>> talk = ConversationMemory()
    >>> talk.add(Message("user", "My cat is called Miu"))
    >>> sessions.save("user-42", talk)
    >>> sessions.load("user-42").get_history()[0].content
    'My cat is called Miu'
    >>> sessions.search("cat")
    ['user-42']
    """

    def __init__(self, store: Store | str, *, namespace: str | None = None) -> None:
        if isinstance(store, str):
            store = open_store(store)
        if not isinstance(store, Store):
            raise InvalidType(f"store is a {type(store).__name__}; give a retain store, or its URL")
        self.memories = store
        self.namespace = namespace
        self._engines: dict[Scope, Engine] = {}
        self._engine(None)

    def _engine(self, namespace: str | None) -> Engine:
        """The way in and out of a namespace."""
        name = self.namespace if namespace is None else namespace
        scope = self.memories.scope
        if name is not None:
            scope = replace(scope, agent=check_session_id(name, "namespace"))
        if scope not in self._engines:
            self._engines[scope] = Engine(self.memories.scoped(scope), blend=Blend())
        return self._engines[scope]

    # -- in --------------------------------------------------------------------------------

    def save(
        self, session_id: str, memory: ConversationMemory, namespace: str | None = None
    ) -> None:
        """Keep the window of ``memory`` under an id, in place of what was kept there."""
        if not isinstance(memory, ConversationMemory):
            raise InvalidType(f"a {type(memory).__name__} is no ConversationMemory")
        self._change(session_id, namespace, lambda _: memory)

    def extend(
        self,
        session_id: str,
        messages: Iterable[Message],
        max_messages: int = 50,
        namespace: str | None = None,
    ) -> ConversationMemory:
        """Add messages to a session, which begins with them if it is not there; all of it.

        Of more than ``max_messages`` the last are kept, or of more than the stored window is
        meant for, if that is larger. Nothing that another process added meanwhile is lost.
        """
        new = list(messages)
        made: list[ConversationMemory] = []

        def extended(before: ConversationMemory | None) -> ConversationMemory:
            made[:] = [_extended(before, new, max_messages)]
            return made[0]

        self._change(session_id, namespace, extended)
        return made[0]

    def branch(self, source_id: str, new_id: str, namespace: str | None = None) -> None:
        """Copy a session to another id; the two go on apart.

        Raises ``NotFound`` if there is none of the first id, ``InvalidValue`` if there is one
        of the second.
        """
        memory = self.load(source_id, namespace)
        if memory is None:
            raise NotFound(f"there is no session {source_id!r}")

        def copied(before: ConversationMemory | None) -> ConversationMemory:
            if before is not None:
                raise InvalidValue(f"there is a session {new_id!r} already; delete it first")
            return memory

        self._change(new_id, namespace, copied)

    def _change(self, session_id: str, namespace: str | None, changed: Any) -> None:
        engine = self._engine(namespace)
        id = _PREFIX + check_session_id(session_id)

        def made(found: dict[str, Memory]) -> list[Memory]:
            before = found.get(id)
            read = None if before is None else _as_conversation(before)
            return [_as_memory(id, changed(read), before)]

        def write(memories: Iterable[Memory], *, expect: Mapping[str, int]) -> list[Memory]:
            return engine.restore_many(memories, unique=False, expect=expect)

        change(engine.store, [id], made, write)

    def delete(self, session_id: str, namespace: str | None = None) -> bool:
        """Delete a session for good; whether it was there."""
        return self._engine(namespace).forget(_PREFIX + check_session_id(session_id))

    # -- out -------------------------------------------------------------------------------

    def load(self, session_id: str, namespace: str | None = None) -> ConversationMemory | None:
        """The conversation of that id, in the process, or ``None``."""
        found = self._found(session_id, namespace)
        return None if found is None else _as_conversation(found)

    def exists(self, session_id: str, namespace: str | None = None) -> bool:
        """Whether there is a session of that id."""
        return self._found(session_id, namespace) is not None

    def _found(self, session_id: str, namespace: str | None) -> Memory | None:
        id = _PREFIX + check_session_id(session_id)
        return next(iter(self._engine(namespace).store.peek([id])), None)

    def list(self, namespace: str | None = None) -> builtins.list[SessionInfo]:
        """Every session of the namespace, the last one that was written first."""
        store = self._engine(namespace).store
        found = [_info(m) for m in store.iterate(narrow=_NARROW, size=_PAGE) if _is_session(m)]
        return sorted(found, key=lambda info: (-info.updated_at, info))

    def search(
        self, query: str, limit: int = 10, namespace: str | None = None
    ) -> builtins.list[SessionInfo]:
        """At most ``limit`` sessions in which something like ``query`` was said, best first.

        What their windows still hold is searched, what tools answered too, in any language.
        """
        found = self._engine(namespace).recall(query, limit, _NARROW)
        return [_info(r.memory, r.relevance_score) for r in found if _is_session(r.memory)]

    def close(self) -> None:
        """Let go of the store."""
        for engine in self._engines.values():
            engine.close()

    def __enter__(self) -> StoreSessions:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SQLiteSessionStore(StoreSessions):
    """Sessions in a SQLite file: see :class:`~retain.SQLiteStore`.

    ``db_path``: the file, made with its folders if it is not there. The rest is
    :class:`StoreSessions`'.
    """

    def __init__(
        self, db_path: str | os.PathLike[str] = "sessions.db", *, namespace: str | None = None
    ) -> None:
        super().__init__(SQLiteStore(db_path), namespace=namespace)


class Session:
    """A conversation memory and its stored session, which an agent keeps in step.

    It is what a run has for its conversation: whatever is read was brought up to date with what
    other processes stored, and whatever is kept is stored before the call returns.
    """

    def __init__(self, sessions: SessionStore, id: str, memory: ConversationMemory) -> None:
        self.sessions = sessions
        self.id = id
        self.memory = memory
        self._lock = ThreadLock()
        stored, own = sessions.load(id), memory.get_history()
        self._known: list[Message] = []  # what both had when they were last in step
        if stored is not None:
            if own and stored.get_history()[-len(own) :] == own:
                self._known = own  # the memory of an agent that was here before
            self._synchronize()

    def get_history(self) -> list[Message]:
        """What was said, here and by others."""
        with self._lock:
            self._synchronize()
            return self.memory.get_history()

    def add_many(self, messages: list[Message]) -> None:
        """Keep these, here and in the store."""
        _written(messages, 1)  # what can't be stored must not be in the way of what can
        with self._lock:
            self._synchronize(load=False)  # which extending does
            self.memory.add_many(messages)
            self._take_over(self._stored(messages))

    def _synchronize(self, *, load: bool = True) -> None:
        """Store what the caller put into the window, and take over what others stored.

        A window that was cleared clears the session; a session that was deleted, the window.
        """
        own = self.memory.get_history()
        known = set(map(id, self._known))
        new = [message for message in own if id(message) not in known]
        slid = len(own) == self.memory.max_messages  # and what others stored may be new
        if self._known and len(new) == len(own) and not slid:
            self.sessions.save(self.id, self.memory)
            self._known = own
        elif new:
            self._take_over(self._stored(new))
        elif load:
            self._take_over(self.sessions.load(self.id))

    def _take_over(self, stored: ConversationMemory | None) -> None:
        history = [] if stored is None else stored.get_history()
        if history != self.memory.get_history():
            self.memory.resume(history)
        self._known = self.memory.get_history()

    def _stored(self, new: list[Message]) -> ConversationMemory:
        """The stored session, now with ``new`` at its end."""
        most = self.memory.max_messages
        if isinstance(self.sessions, StoreSessions):
            return self.sessions.extend(self.id, new, most)
        extended = _extended(self.sessions.load(self.id), new, most)
        self.sessions.save(self.id, extended)
        return extended


def _extended(
    before: ConversationMemory | None, new: Iterable[Message], most: int
) -> ConversationMemory:
    """A conversation with ``new`` at its end; its window never shrinks."""
    if before is None:
        before = ConversationMemory(most)
    extended = ConversationMemory(max(most, before.max_messages))
    extended.resume([*before.get_history(), *new])
    return extended


def _is_session(memory: Memory) -> bool:
    return memory.id.startswith(_PREFIX)


def _as_memory(id: str, conversation: ConversationMemory, before: Memory | None) -> Memory:
    """The record of a session.

    The window is text in it, escaped, so that it holds whatever a model or a tool may say:
    halves of surrogates and numbers that are none, too.
    """
    history = conversation.get_history()
    window = _written(history, conversation.max_messages)
    said = "\n".join(m.content for m in history if m.content.strip())
    now = clock.now()
    return Memory(
        id,
        strip_surrogates(said),
        metadata={"session": {"format": _FORMAT, "messages": len(history), "window": window}},
        created_at=now if before is None else before.created_at,
        updated_at=now,
        category=_CATEGORY,
    )


def _written(messages: Iterable[Message], most: int) -> str:
    """A window as JSON; raises ``InvalidValue`` where it has none."""
    try:
        return json.dumps({"max_messages": most, "messages": [m.to_dict() for m in messages]})
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(
            f"the session can't be stored: a tool's arguments are not JSON ({error})"
        ) from None


def _record(memory: Memory) -> Mapping[str, Any]:
    record = memory.metadata.get("session")
    name = memory.id.removeprefix(_PREFIX)
    if not isinstance(record, Mapping) or not isinstance(record.get("format"), int):
        raise StoreCorrupt(
            f"session {name!r} can't be read; delete it, or restore it from a backup"
        )
    if record["format"] > _FORMAT:
        raise StoreTooNew(
            f"session {name!r} was written by a newer version of retain (format "
            f"{record['format']}, this one reads {_FORMAT}); upgrade retain"
        )
    return record


def _as_conversation(memory: Memory) -> ConversationMemory:
    record = _record(memory)
    try:
        return ConversationMemory.from_dict(json.loads(record["window"]))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise StoreCorrupt(
            f"session {memory.id.removeprefix(_PREFIX)!r} can't be read ({error}); delete it, or "
            "restore it from a backup"
        ) from error


def _info(memory: Memory, score: float = 0.0) -> SessionInfo:
    info = SessionInfo(memory.id.removeprefix(_PREFIX))
    messages = _record(memory).get("messages")
    info.message_count = messages if isinstance(messages, int) else 0
    info.created_at, info.updated_at, info.score = memory.created_at, memory.updated_at, score
    return info
