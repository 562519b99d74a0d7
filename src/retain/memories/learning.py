"""What memories that learn from turns share: what was said, whom they ask, what hooks leave."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ..errors import InvalidType, InvalidValue, Rejected
from ..extraction import ask
from ..extraction.naming import without_blocks
from ..messages import Message, Role
from ..providers import LocalProvider

__all__ = ["Asked", "left_by_hooks", "said"]

log = logging.getLogger("retain")

T = TypeVar("T")

Turns = list[tuple[Role, str]]


def said(messages: str | Message | Iterable[Message]) -> Turns:
    """What a memory may learn from: who said what, without tools and echoed context blocks."""
    if isinstance(messages, str):
        messages = [Message(Role.USER, messages)]
    elif isinstance(messages, Message):
        messages = [messages]
    turns: Turns = []
    for message in messages:
        if not isinstance(message, Message):
            raise InvalidType(f"a {type(message).__name__} is no Message; give a text or messages")
        content = without_blocks(message.content)
        if message.role in (Role.USER, Role.ASSISTANT) and content.strip():
            turns.append((message.role, content))
    return turns


class Asked:
    """A memory's provider, if a model is behind it; ``model`` and ``timeout`` are for it."""

    def __init__(self, provider: Any, model: str, timeout: float | None) -> None:
        # one that comes with retain and only repeats what was said is no model
        self.provider = None if type(provider) is LocalProvider else provider
        self.model = model
        self.timeout = timeout

    def _answer(self, turns: Turns, system: str, schema: Mapping[str, Any]) -> Any:
        """What the model finds in ``turns``, of the form of ``schema``."""
        return ask(
            self.provider,
            model=self.model,
            system=system,
            text="\n".join(f"{role}: {content}" for role, content in turns),
            schema=schema,
            timeout=self.timeout,
        )


def left_by_hooks(what: str, make: Callable[[], T]) -> T | None:
    """What ``make`` gives, ``None`` where a hook refuses it or leaves what can't be."""
    try:
        return make()
    except Rejected:  # which the hook has logged
        return None
    except InvalidValue as error:
        log.warning("%s is left out: %s", what, error)
        return None
