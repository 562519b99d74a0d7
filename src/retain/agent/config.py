"""How an agent is set up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..errors import InvalidType, InvalidValue
from ..tools import Knowledge

__all__ = ["AgentConfig", "AgentKnowledge"]


@runtime_checkable
class AgentKnowledge(Knowledge, Protocol):
    """What an agent needs of its long-term memory; ``KnowledgeMemory`` has it."""

    def build_context(self) -> str:
        """What is known, as lines for a prompt; ``""`` if nothing is."""


@dataclass(frozen=True)
class AgentConfig:
    """The settings of an :class:`Agent`; they don't change (``dataclasses.replace`` copies).

    ``model``: the provider's name for it. ``max_iterations``: how often the model is asked in
    one run, at most. ``system_prompt``: what it is told first. ``knowledge_memory``: a
    ``KnowledgeMemory``; its context is put into every prompt, and the model gets the tools
    ``remember`` and ``recall``. ``temperature``, ``max_tokens`` and ``timeout`` (seconds, for
    one call of the model) go to the provider; ``None`` leaves them to it.

    Raises ``InvalidType`` or ``InvalidValue``, naming the setting that is wrong.
    """

    model: str = ""
    max_iterations: int = 10
    system_prompt: str = ""
    knowledge_memory: AgentKnowledge | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float | None = 60.0

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
        if not isinstance(self.knowledge_memory, (AgentKnowledge, type(None))):
            raise InvalidType(
                f"knowledge_memory is a {type(self.knowledge_memory).__name__}; "
                "give a KnowledgeMemory"
            )


def _number(value: object, name: str, least: int, *, whole: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise InvalidType(f"{name} is {value!r}; give a {'whole ' if whole else ''}number")
    if not least <= value < math.inf:  # NaN fails this too
        raise InvalidValue(f"{name}={value!r}; give {least} or more")
