"""How an agent is set up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ..errors import InvalidType, InvalidValue
from ..messages import Message
from ..tools import Knowledge
from .sessions import SessionStore, check_session_id

__all__ = ["AgentConfig", "AgentEntities", "AgentGraph", "AgentKnowledge"]


@runtime_checkable
class AgentKnowledge(Knowledge, Protocol):
    """What an agent needs of its long-term memory; ``KnowledgeMemory`` has it."""

    def build_context(self) -> str:
        """What is known, as lines for a prompt; ``""`` if nothing is."""


class Learning(Protocol):
    """A memory that learns from what is said."""

    def learn(self, messages: list[Message], /) -> Any:
        """Learn from a turn: what the user said, and the answer."""


@runtime_checkable
class AgentEntities(Learning, Protocol):
    """What an agent needs of its memory of entities; ``EntityMemory`` has it."""

    def build_context(self) -> str:
        """What is known, as lines for a prompt; ``""`` if nothing is."""


@runtime_checkable
class AgentGraph(Learning, Protocol):
    """What an agent needs of its memory of relationships; ``KnowledgeGraphMemory`` has it."""

    def build_context(self, query: str = "", /) -> str:
        """What is known and fits ``query``, as lines for a prompt; ``""`` if nothing is."""


@dataclass(frozen=True)
class AgentConfig:
    """The settings of an :class:`Agent`; they don't change (``dataclasses.replace`` copies).

    ``model``: the provider's name for it. ``max_iterations``: how often the model is asked in
    one run, at most. ``system_prompt``: what it is told first. ``knowledge_memory``: a
    ``KnowledgeMemory``; its context is put into every prompt, and the model gets the tools
    ``remember`` and ``recall``. ``entity_memory``, ``knowledge_graph``: an ``EntityMemory``, a
    ``KnowledgeGraphMemory``; what they know is put into every prompt, and they learn from every
    turn once it is answered. ``session_store`` with ``session_id``: where the conversation is
    kept, and which one it is; neither goes without the other. ``temperature``, ``max_tokens``
    and ``timeout`` (seconds, for one call of the model) go to the provider; ``None`` leaves them
    to it.

    Raises ``InvalidType`` or ``InvalidValue``, naming the setting that is wrong.
    """

    model: str = ""
    max_iterations: int = 10
    system_prompt: str = ""
    knowledge_memory: AgentKnowledge | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float | None = 60.0
    entity_memory: AgentEntities | None = None
    knowledge_graph: AgentGraph | None = None
    session_store: SessionStore | None = None
    session_id: str | None = None

    def __post_init__(self) -> None:
        for name in ("model", "system_prompt"):
            if not isinstance(getattr(self, name), str):
                raise InvalidType(f"{name} is {getattr(self, name)!r}; give text")
        _number(self.max_iterations, "max_iterations", 1, whole=True)
        if self.max_tokens is not None:
            _number(self.max_tokens, "max_tokens", 1, whole=True)
        if self.temperature is not None:
            _number(self.temperature, "temperature", 0)
        if self.timeout is not None:
            _number(self.timeout, "timeout", 0)
        for name, (kind, example) in _MEMORIES.items():
            given = getattr(self, name)
            if given is not None and (isinstance(given, type) or not isinstance(given, kind)):
                raise InvalidType(f"{name} is a {type(given).__name__}; give {example}")
        if self.session_id is not None:
            check_session_id(self.session_id)
            if self.session_store is None:
                raise InvalidValue("session_id without a session_store keeps nothing; give both")
        elif self.session_store is not None:
            raise InvalidValue("session_store needs a session_id: which conversation it is")


_MEMORIES: dict[str, tuple[type, str]] = {
    "knowledge_memory": (AgentKnowledge, "a KnowledgeMemory"),
    "entity_memory": (AgentEntities, "an EntityMemory"),
    "knowledge_graph": (AgentGraph, "a KnowledgeGraphMemory"),
    "session_store": (SessionStore, "a SQLiteSessionStore"),
}


def _number(value: object, name: str, least: int, *, whole: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise InvalidType(f"{name} is {value!r}; give a {'whole ' if whole else ''}number")
    if not least <= value < math.inf:  # NaN fails this too
        raise InvalidValue(f"{name}={value!r}; give {least} or more")
