"""The two tools that give a model a memory."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ..errors import InvalidType, InvalidValue, Rejected
from ..models import Memory, one_line
from .functions import Tool, tool
from .values import as_bool, as_whole_number

_LIMIT = 5
_HIGHEST_LIMIT = 2**31 - 1


class Receipt(Protocol):
    """What ``remember`` gives back: a text, falsy with a ``reason`` if nothing was written."""

    @property
    def reason(self) -> str:
        """Which rule or hook refused the text."""


@runtime_checkable
class Knowledge(Protocol):
    """What the two tools need of a memory; ``KnowledgeMemory`` has it."""

    def remember(self, content: str, category: str = ..., persistent: bool = ...) -> Receipt:
        """Write a memory."""

    def match(self, query: str, k: int) -> list[Memory]:
        """The ``k`` memories that match best, best first."""


def make_remember_tool(knowledge: Knowledge) -> Tool:
    """The tool ``remember(content, category, persistent)``, which writes to ``knowledge``.

    It answers with the memory's confirmation. What the model can mend (a blank text, a text
    that a hook refused) it is told as ``Not saved: …``; a store that fails raises.
    """

    @tool
    def remember(content: str, category: str = "general", persistent: bool | str = False) -> str:
        """Save a fact, a preference or an instruction, to be found in later conversations.

        Args:
            content: What to save, as one sentence that can be understood on its own.
            category: What to file it under, e.g. preferences, personal, technical.
            persistent: true to keep it for good, false if it matters for some days only.
        """
        try:
            receipt = knowledge.remember(
                content,
                category if category.strip() else "general",
                as_bool(persistent, "persistent"),
            )
        except (InvalidType, InvalidValue, Rejected) as error:
            return f"Not saved: {error}"
        return str(receipt) if receipt else f"Not saved: {receipt.reason}"

    return remember


def make_recall_tool(knowledge: Knowledge) -> Tool:
    """The tool ``recall(query, limit)``, which searches ``knowledge``.

    It answers ``Found 2 memories:`` and a numbered line for each, with its category unless
    that is "general", or ``No memories found matching '…'.``.
    """

    @tool
    def recall(query: str, limit: int | str = _LIMIT) -> str:
        """Look up what was saved with remember, in this conversation or an earlier one.

        Args:
            query: Words that describe what to look for; empty for what matters most.
            limit: How many memories to give at most.
        """
        try:
            found = knowledge.match(query, _limit(limit))
        except (InvalidType, InvalidValue) as error:
            return f"Not searched: {error}"
        if not found:
            return f"No memories found matching '{query}'."
        noun = "memory" if len(found) == 1 else "memories"
        lines = [f"{number}. {_line(memory)}" for number, memory in enumerate(found, 1)]
        return "\n".join([f"Found {len(found)} {noun}:", *lines])

    return recall


def _line(memory: Memory) -> str:
    text = one_line(memory.content)
    return text if memory.category == "general" else f"[{one_line(memory.category)}] {text}"


def _limit(value: int | str) -> int:
    """``value`` as a whole number above 0, or the default."""
    try:
        limit = as_whole_number(value, "limit")
    except (InvalidType, InvalidValue):
        return _LIMIT
    return min(limit, _HIGHEST_LIMIT) if limit > 0 else _LIMIT
