"""Waiting on an event loop, in functions that are not ``async``.

One piece of code serves both kinds of callers. Called as usual, it waits as usual. Called through
:func:`carried` by a task of an event loop, it runs in a greenlet of its own, and :func:`wait`
hands what is to be awaited to that task: the loop goes on meanwhile. A cancellation of the task is
raised where the code waits. No lock may be held there: another task of the same thread has it too.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from .errors import MissingPackage

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["Together", "Waited", "aside", "available", "carried", "on_loop", "sleep", "wait"]

T = TypeVar("T")

_current: Callable[[], Any] | None = None
"""Gives the greenlet that runs; ``None`` until one of ours was made."""


@cache
def available() -> Any:
    """The class of the greenlets that carry calls; ``MissingPackage`` without ``retain[async]``."""
    global _current
    try:
        library = import_module("greenlet")
    except ImportError as error:
        raise MissingPackage.needed("waiting on an event loop", "async", error) from error
    _current = library.getcurrent
    return type("Carrier", (library.greenlet,), {"threads": None})


async def carried(
    function: Callable[..., T], *arguments: Any, threads: Executor | None = None, **named: Any
) -> T:
    """What ``function`` returns; the event loop goes on where it waits.

    ``threads``: where it does what takes the processor long (see :func:`aside`).

    >>> import asyncio
    >>> asyncio.run(carried(lambda: wait(asyncio.sleep(0.01, "done"))))
    'done'
    """
    carrier = available()(function)
    carrier.threads = threads
    carrier.gr_context = carrier.parent.gr_context
    answer = carrier.switch(*arguments, **named)
    while not carrier.dead:
        try:
            got = await answer
        except BaseException as error:  # noqa: BLE001  # raised again, where it is waited for
            answer = carrier.throw(error)
        else:
            answer = carrier.switch(got)
    return cast("T", answer)


def on_loop() -> bool:
    """Whether a task of an event loop carries this call."""
    return _current is not None and isinstance(_current(), available())


def wait(awaitable: Awaitable[T]) -> T:
    """What ``awaitable`` gives; only where :func:`on_loop` is true."""
    assert _current is not None
    return cast("T", _current().parent.switch(awaitable))


def sleep(seconds: float) -> None:
    """Pause, without keeping an event loop from going on."""
    if on_loop():
        import asyncio

        wait(asyncio.sleep(seconds))
    else:
        time.sleep(seconds)


def aside(function: Callable[..., T], *arguments: Any) -> T:
    """What ``function`` returns, called on a thread if an event loop has to go on meanwhile."""
    if _current is None or not on_loop():
        return function(*arguments)
    from asyncio import get_running_loop

    loop = get_running_loop()
    call = partial(copy_context().run, function, *arguments)
    return wait(loop.run_in_executor(_current().threads, call))


class Together(Generic[T]):
    """What the tasks of an event loop would each do now, done once for all of them.

    Who calls while it is under way shares the next time, which begins after that call.
    """

    def __init__(self) -> None:
        self._current: Any = None  # asyncio.Future, here and below: when that time is over
        self._next: Any = None

    def __call__(self, work: Callable[[], T]) -> T:
        """What ``work`` gives; where it fails for who does it, the others do it themselves."""
        from asyncio import get_running_loop, shield

        while True:
            if self._next is not None:
                done = wait(shield(self._next))
                if done:
                    return cast("T", done[0])
                continue
            mine = self._next = get_running_loop().create_future()
            done = None
            try:
                while self._current is not None:
                    wait(shield(self._current))
                self._current, self._next = mine, None
                done = (work(),)
                return done[0]
            finally:
                if self._next is mine:
                    self._next = None
                if self._current is mine:
                    self._current = None
                mine.set_result(done)


class Waited:
    """An object of an asynchronous library, used as its synchronous twin would be."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            return _had(found(*arguments, **named))

        return call

    def __enter__(self) -> Any:
        return _had(self._real.__aenter__())

    def __exit__(self, *error: object) -> Any:
        return _had(self._real.__aexit__(*error))


def _had(given: Any) -> Any:
    if inspect.isawaitable(given) and not hasattr(given, "__aenter__"):
        given = wait(given)
    return Waited(given) if hasattr(given, "__aenter__") else given
