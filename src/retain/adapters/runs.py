"""What adapters share: whose memory a run works on, and how what was said in it is kept."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from ..errors import InvalidType
from ..memories.conversation import ConversationMemory
from ..tools import Recalling

__all__ = ["CALLS", "checked", "keep", "memory_of"]

R = TypeVar("R")

CALLS = ("remember", "recall", "forget")
"""What a memory must have."""


def checked(memory: object, run: str = "", calls: Sequence[str] = CALLS) -> Recalling:
    """``memory`` if it has ``calls``; ``run``: of what a function could give it, if of anything.

    Raises ``InvalidType`` for what is no such memory.
    """
    missing = [name for name in calls if not callable(getattr(memory, name, None))]
    if missing:
        raise InvalidType(
            f"memory is a {type(memory).__name__}, which has no {missing[0]}; give a memory such "
            "as KnowledgeMemory" + (f", or a function of {run} that gives one" if run else "")
        )
    return cast("Recalling", memory)


async def memory_of(
    source: Recalling | Callable[[R], Recalling | Awaitable[Recalling]],
    run: R,
    named: str,
    calls: Sequence[str] = CALLS,
) -> Recalling:
    """The memory itself, or the one that the function, plain or ``async``, gives for ``run``."""
    if not callable(source):
        return source
    memory = source(run)
    return checked(await memory if inspect.isawaitable(memory) else memory, named, calls)


def keep(
    memory: Any, said: Iterable[tuple[str, str]], session: str | None, *, observe: bool = False
) -> None:
    """Keep who said what, as turns of a session, in one transaction; ``observe``: see there.

    A memory that is no ``ConversationMemory`` keeps turns only where it is to observe them.
    """
    if observe:
        memory.observe([{"role": role, "content": text} for role, text in said], session=session)
    elif isinstance(memory, ConversationMemory):
        whose = {} if session is None else {"session": session}
        turns = [
            {"content": text, "source": role, "metadata": {"role": role, "turn": number, **whose}}
            for number, (role, text) in enumerate(said)
        ]
        memory.remember_many(turns)
