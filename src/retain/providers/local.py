"""A model that is none: no network, always the same answer."""

from __future__ import annotations

from typing import Any

from ..messages import Message, Role

__all__ = ["LocalProvider"]


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
