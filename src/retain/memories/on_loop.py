"""The calls of a memory or a store, made by the tasks of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from .. import awaiting
from ..errors import InvalidValue, StoreClosed
from ..stores.base import Driver

__all__ = ["Awaited", "OnLoop", "many"]

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Any)

A = TypeVar("A", bound="Awaited")

_THREADS = 10  # as many as a pool has connections
_MANY = 256  # memories that are prepared before an event loop misses its thread


def many(memories: object) -> bool:
    """Whether writing these is work for a thread."""
    return isinstance(memories, list) and len(memories) > _MANY


class OnLoop(Generic[F]):
    """What ``make`` makes, at the first call, for the tasks of one event loop.

    ``driver_of``: the driver behind it. Where that waits on the loop itself, the loop carries the
    calls; elsewhere, and where it is ``None``, they are made on threads.

    A task that is cancelled goes on at once. What it called for is then done as a whole or not at
    all; a thread may still be at it, and ends it.
    """

    def __init__(self, make: Callable[[], F], driver_of: Callable[[F], Driver | None]) -> None:
        self._make, self._driver_of = make, driver_of
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="retain-async")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening: Future[tuple[F, Driver | None]] | None = None
        self._opened: tuple[F, Driver | None] | None = None
        self._under_way: set[Future[Any]] = set()
        self._closed = False

    async def ask(self, question: Callable[[F], T], *, aside: bool = False) -> T:
        """What a function of the object returns; ``aside``: on a thread in any case."""
        made, driver = await self.opened()
        call = partial(question, made)
        return await (self._on_thread(call) if aside or driver is None else self._carry(call))

    async def opened(self) -> tuple[F, Driver | None]:
        """The object, and the driver that waits on the loop, if it does."""
        if self._closed:
            raise StoreClosed("this memory was closed; open it again")
        self._refuse_another_loop()
        if self._opened is None:
            if self._opening is None:
                self._opening = self._threads.submit(self._open)
            opening = self._opening
            try:
                # Shielded: others wait for it too.
                self._opened = await asyncio.shield(asyncio.wrap_future(opening))
            except Exception:
                if self._opening is opening:
                    self._opening = None  # who calls next tries again
                raise
        return self._opened

    def _refuse_another_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        if self._loop is not loop:
            raise InvalidValue(
                "this memory is in use on another event loop; make one for each, and close it "
                "before its loop ends"
            )

    def _open(self) -> tuple[F, Driver | None]:
        made = self._make()
        driver = self._driver_of(made)
        if driver is None or not driver.awaits:
            return made, None
        try:
            awaiting.available()
        except BaseException:
            made.close()
            raise
        return made, driver

    async def _carry(self, call: Callable[[], T]) -> T:
        done: Future[None] = Future()
        self._under_way.add(done)
        try:
            return await awaiting.carried(call, threads=self._threads)
        finally:
            self._under_way.discard(done)
            done.set_result(None)

    async def _on_thread(self, call: Callable[[], T]) -> T:
        future = self._threads.submit(copy_context().run, call)
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return await asyncio.wrap_future(future)

    async def close(self) -> None:
        """Wait for what is under way, then close the object; later calls are refused."""
        if self._closed:
            return
        try:
            if self._opening is not None:
                made, driver = await self.opened()
                self._closed = True
                if self._under_way:
                    await asyncio.wait([asyncio.wrap_future(one) for one in set(self._under_way)])
                if driver is not None:
                    await awaiting.carried(driver.leave)
                await self._on_thread(made.close)
        finally:
            self._closed = True
            self._threads.shutdown(wait=False)


class Awaited:
    """Something whose calls are awaited; a ``async with`` block opens and closes it."""

    _on: OnLoop[Any]

    def _target(self, made: Any) -> Any:
        """What has the methods, of what was opened."""
        return made

    async def _call(
        self, method: Callable[Concatenate[Any, P], T], *arguments: P.args, **named: P.kwargs
    ) -> T:
        return await self._on.ask(self._calling(method, *arguments, **named))

    async def _call_aside(
        self, method: Callable[Concatenate[Any, P], T], *arguments: P.args, **named: P.kwargs
    ) -> T:
        """On a thread in any case."""
        return await self._on.ask(self._calling(method, *arguments, **named), aside=True)

    def _calling(
        self, method: Callable[Concatenate[Any, P], T], *arguments: P.args, **named: P.kwargs
    ) -> Callable[[Any], T]:
        def call(made: Any) -> T:
            # By name: the object's own class may have another one than this.
            found: T = getattr(self._target(made), method.__name__)(*arguments, **named)
            return found

        return call

    async def close(self) -> None:
        """Wait for what is under way, write what waits and close the store."""
        await self._on.close()

    aclose = close

    async def __aenter__(self: A) -> A:
        await self._on.opened()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
