"""What an agent asks of a model, and a model that is none: no network, always the same answer."""

from __future__ import annotations

from typing import Any, Protocol, TypedDict

from ..messages import Message, Role
from ..tools import Tool

__all__ = ["LocalProvider", "Prompt", "Provider"]


class Prompt(TypedDict):
    """What :meth:`Provider.complete` is given, by name."""

    model: str
    system_prompt: str
    messages: list[Message]
    tools: list[Tool]
    temperature: float | None
    max_tokens: int | None
    timeout: float | None


class Provider(Protocol):
    """Whoever answers for a model.

    Both methods give the model's message (which may ask for tools in ``tool_calls``) and what
    it used, in the provider's own terms. ``temperature``, ``max_tokens`` and ``timeout``
    (seconds) are the provider's own where they are ``None``. A failure is raised.
    """

    def complete(
        self,
        *,
        model: str,
        system_prompt: str,
        messages: list[Message],
        tools: list[Tool],
        temperature: float | None,
        max_tokens: int | None,
        timeout: float | None,
    ) -> tuple[Message, Any]:
        """The model's next message."""

    async def acomplete(
        self,
        *,
        model: str,
        system_prompt: str,
        messages: list[Message],
        tools: list[Tool],
        temperature: float | None,
        max_tokens: int | None,
        timeout: float | None,
    ) -> tuple[Message, Any]:
        """The same, for coroutines."""


class LocalProvider:
    """A provider for tests and first steps: it repeats the last text of the user.

    It needs no network, calls no tool, and gives equal answers to equal texts.

    >>> answer, usage = LocalProvider().complete(messages=[Message(Role.USER, "Good morning")])
    >>> answer.content
    'You said: Good morning'
    """

    def complete(self, *, messages: list[Message], **_: Any) -> tuple[Message, dict[str, int]]:
        """The answer, and the characters read and written."""
        said = [message.content for message in messages if message.role is Role.USER]
        answer = f"You said: {said[-1]}" if said else "You said nothing."
        usage = {
            "input_characters": sum(len(message.content) for message in messages),
            "output_characters": len(answer),
        }
        return Message(Role.ASSISTANT, answer), usage

    async def acomplete(self, **prompt: Any) -> tuple[Message, dict[str, int]]:
        """The same, for coroutines."""
        return self.complete(**prompt)
