"""A conversation: a window of messages for the next prompt, and every turn kept and found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ..engine import whole
from ..errors import InvalidType
from ..locks import ThreadLock
from ..messages import Message, Role, as_message
from ..models import Memory, MemoryImportance
from ..search.embedders import Embedder, default_embedder
from ..stores.base import Store
from ..stores.knowledge import KnowledgeStore
from .base import Face

__all__ = ["ConversationMemory"]


class ConversationMemory(Face):
    """The last messages of a conversation, and all its turns as memories.

    The window holds at most ``max_messages`` for the next prompt and never begins with a
    tool's answer whose call has slid out. Every message with text is also kept in ``store``
    as a turn, which stays searchable after it left the window. The window itself lives in
    the process; ``to_dict`` and ``from_dict`` carry it on.

    >>> from retain import ConversationMemory, Message, Role
    >>> talk = ConversationMemory(max_messages=1)
    >>> talk.add(Message(Role.USER, "My cat is called Miu"))
    >>> talk.add(Message(Role.ASSISTANT, "A fine name."))
    >>> [message.content for message in talk.get_history()]
    ['A fine name.']
    >>> talk.search("cat")[0].memory.content
    'My cat is called Miu'
    """

    turn_category = "general"  # here they are what a memory is

    def __init__(
        self,
        max_messages: int = 50,
        *,
        store: Store | KnowledgeStore | str | None = None,
        embedder: Embedder | None = default_embedder(),  # noqa: B008  # reads nothing yet
        **options: Any,
    ) -> None:
        super().__init__(store, embedder=embedder, **options)
        self.max_messages = whole(max_messages, "max_messages", 1)
        self._window: list[Message] = []
        self._guard = ThreadLock()

    # -- turns -----------------------------------------------------------------------------

    def add_turn(
        self,
        role: str,
        content: str,
        *,
        turn_number: int = 0,
        session: str | None = None,
        created_at: float | datetime | None = None,
    ) -> Memory:
        """Keep one turn, and put it into the window; the memory as it is stored.

        ``role``: who said it, any text; it is searched too. ``metadata`` of the memory has
        ``role``, ``turn`` (the number given) and, if given, ``session``. ``created_at``:
        epoch seconds or an aware ``datetime``. Durable when the call returns, where the
        store is. Raises ``InvalidValue``, ``InvalidType`` or ``Rejected``.
        """
        turn = self._turn(role, content, turn_number, session, created_at)
        memory = self.engine.remember(turn)
        self._slide([as_message(role, memory.content)])
        return memory

    def _turn(
        self,
        role: str,
        content: str,
        number: int,
        session: str | None,
        created_at: float | datetime | None,
    ) -> Memory:
        if not isinstance(role, str):
            raise InvalidType(f"role is a {type(role).__name__}; give text")
        metadata: dict[str, Any] = {"role": str(role), "turn": whole(number, "turn_number", 0)}
        if session is not None:
            metadata["session"] = session
        # A turn may be blank: that nothing was said is part of a conversation.
        turn = self._draft("x", metadata=metadata, source=str(role), created_at=created_at)
        return turn.copy(content=content)

    def turns(self) -> list[Memory]:
        """Every turn that is kept, oldest first."""
        found = [m for m in self.engine.store.iterate() if isinstance(m.metadata.get("turn"), int)]
        return sorted(found, key=lambda m: (m.created_at, m.metadata["turn"], m.revision))

    # -- messages --------------------------------------------------------------------------

    def add(self, message: Message) -> None:
        """Put a message into the window and, if it has text and is no tool's, keep the turn."""
        self.add_many([message])

    def add_many(self, messages: Iterable[Message]) -> None:
        """Put all of them into the window, and keep their turns, or none."""
        new = list(messages)
        for message in new:
            if not isinstance(message, Message):
                raise InvalidType(f"a {type(message).__name__} is no Message")
        said = [m for m in new if m.content.strip() and m.role is not Role.TOOL]
        self.engine.remember_many(
            [self._turn(m.role.value, m.content, 0, None, None) for m in said]
        )
        self._slide(new)

    def _slide(self, new: Sequence[Message]) -> None:
        with self._guard:
            window = [*self._window, *new][-self.max_messages :]
            self._window = _whole_calls(window)

    def _heard(self, messages: Sequence[Message]) -> None:
        self._slide(messages)

    def resume(self, messages: Iterable[Message]) -> None:
        """Make these the window, e.g. those of a stored session; no turn is kept of them."""
        new = list(messages)
        for message in new:
            if not isinstance(message, Message):
                raise InvalidType(f"a {type(message).__name__} is no Message")
        with self._guard:
            self._window = _whole_calls(new[-self.max_messages :])

    def get_history(self) -> list[Message]:
        """The messages of the window, oldest first."""
        return list(self._window)

    def get_recent(self, n: int) -> list[Message]:
        """The last ``n`` messages of the window, oldest first."""
        count = whole(n, "n", 0)
        return _whole_calls(self._window[-count:]) if count else []

    def clear(self) -> None:
        """Empty the window; the turns stay kept and found (``forget`` deletes one)."""
        with self._guard:
            self._window = []

    def __len__(self) -> int:
        return len(self._window)

    def to_dict(self) -> dict[str, Any]:
        """The window as a JSON object."""
        return {
            "max_messages": self.max_messages,
            "messages": [message.to_dict() for message in self._window],
        }

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        store: Store | KnowledgeStore | str | None = None,
    ) -> ConversationMemory:
        """A conversation with that window; its messages are not kept a second time."""
        if not isinstance(data, Mapping):
            raise InvalidType(f"a conversation is a JSON object, not a {type(data).__name__}")
        messages = data.get("messages", [])
        if not isinstance(messages, list):
            raise InvalidType(f"messages is a {type(messages).__name__}; give a list")
        memory = cls(max_messages=data.get("max_messages", 50), store=store)
        memory._slide([Message.from_dict(message) for message in messages])
        return memory

    def remember(
        self,
        content: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        importance: MemoryImportance | float = MemoryImportance.MEDIUM,
        tags: Iterable[str] | None = None,
        **fields: Any,
    ) -> Memory:
        """Remember something beside the turns, as :meth:`AgentMemory.remember` does."""
        return self._remember(
            content, metadata=metadata, importance=importance, tags=tags, **fields
        )


def _whole_calls(window: list[Message]) -> list[Message]:
    """``window`` from the first message on that is no answer to a call before it."""
    start = 0
    while start < len(window) and window[start].role is Role.TOOL:
        start += 1
    return window[start:]
