"""What an agent asks of a model, and what it is given back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypedDict

from ..messages import Message

__all__ = ["Offered", "Prompt", "Provider"]


class Offered(Protocol):
    """What a provider knows of a tool that a model may call; :class:`retain.Tool` has it."""

    @property
    def name(self) -> str:
        """What the model calls it by."""

    @property
    def description(self) -> str:
        """What the model is told of it."""

    def schema(self) -> dict[str, Any]:
        """``name``, ``description`` and ``parameters``, the JSON schema of the arguments."""


class Prompt(TypedDict):
    """What :meth:`Provider.complete` is given, by name."""

    model: str
    system_prompt: str
    messages: list[Message]
    tools: Sequence[Offered]
    temperature: float | None
    max_tokens: int | None
    timeout: float | None


class Provider(Protocol):
    """Whoever answers for a model.

    Both methods give the model's message (which may ask for tools in ``tool_calls``) and what
    it used, in the provider's own terms. ``model`` may be ``""``, which leaves the choice to
    the provider; ``temperature``, ``max_tokens`` and ``timeout`` (seconds) are its own where
    they are ``None``. A failure is raised, as ``ProviderFailed`` by those that come with
    retain.
    """

    def complete(
        self,
        *,
        model: str,
        system_prompt: str,
        messages: list[Message],
        tools: Sequence[Offered],
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
        tools: Sequence[Offered],
        temperature: float | None,
        max_tokens: int | None,
        timeout: float | None,
    ) -> tuple[Message, Any]:
        """The same, for coroutines."""
