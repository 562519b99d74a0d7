"""Functions that are not ``async``, and wait on an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from retain import MissingPackage, awaiting
from retain.awaiting import Together, Waited, aside, carried, on_loop, sleep, wait


def test_calls_that_wait_take_turns_on_one_thread():
    order = []

    def work(name: str) -> str:
        order.append(name)
        sleep(0)
        order.append(name)
        assert on_loop()
        return name

    async def main() -> list[str]:
        return await asyncio.gather(carried(work, "a"), carried(work, "b"))

    assert asyncio.run(main()) == ["a", "b"]
    assert order == ["a", "b", "a", "b"]
    assert not on_loop()


def test_a_call_as_usual_waits_as_usual():
    sleep(0)
    assert aside(threading.get_ident) == threading.get_ident()


def test_errors_and_cancellation_come_up_where_it_waits():
    seen: list[Any] = []

    def work() -> None:
        try:
            wait(asyncio.sleep(60))
        except asyncio.CancelledError:
            sleep(0)  # cleaning up may wait too
            seen.append("cleaned up")
            raise

    async def fail() -> None:
        raise KeyError("東京")

    async def main() -> None:
        with pytest.raises(KeyError, match="東京"):
            await carried(lambda: wait(fail()))
        task = asyncio.ensure_future(carried(work))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert seen == ["cleaned up"]


def test_what_takes_long_is_done_on_the_threads_given():
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")

    def work() -> tuple[str, str]:
        name.set("ann")
        return aside(lambda: (threading.current_thread().name, name.get()))

    async def main() -> tuple[str, str]:
        with ThreadPoolExecutor(1, "mine") as threads:
            return await carried(work, threads=threads)

    thread, value = asyncio.run(main())
    assert thread.startswith("mine")
    assert value == "ann"


class Door:
    """As asynchronous libraries have them."""

    size = 3

    def __init__(self) -> None:
        self.log: list[str] = []

    async def __aenter__(self) -> Door:
        self.log.append("in")
        return self

    async def __aexit__(self, *error: object) -> None:
        self.log.append("out")

    async def knock(self, times: int) -> list[str]:
        await asyncio.sleep(0)
        return ["knock"] * times

    def another(self) -> Door:
        return self


def test_an_asynchronous_object_is_used_as_its_synchronous_twin():
    def work() -> list[str]:
        door = Door()
        with Waited(door).another() as opened:
            assert opened.size == 3
            assert opened.knock(times=2) == ["knock", "knock"]
        return door.log

    assert asyncio.run(carried(work)) == ["in", "out"]


def test_what_many_would_do_now_is_done_once_after_they_called():
    together: Together[int] = Together()
    begun = 0

    def work() -> int:
        nonlocal begun
        begun += 1
        number = begun
        sleep(0.001)
        return number

    async def main() -> None:
        first = asyncio.ensure_future(carried(together, work))
        await asyncio.sleep(0)
        later = [carried(together, work) for _ in range(50)]
        assert await asyncio.gather(*later) == [2] * 50
        assert await first == 1

    asyncio.run(main())
    assert begun == 2


def test_who_fails_or_is_cancelled_leaves_the_others_to_do_it_themselves():
    together: Together[str] = Together()
    calls = 0

    def work() -> str:
        nonlocal calls
        calls += 1
        sleep(0.001)
        if calls == 2:
            raise KeyError
        return "done"

    async def main() -> list[Any]:
        tasks = [asyncio.ensure_future(carried(together, work)) for _ in range(6)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = asyncio.run(main())
    assert isinstance(found[0], asyncio.CancelledError)
    assert [type(each) for each in found[1:]].count(KeyError) == 1
    assert found.count("done") == 4


def test_without_greenlet_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> None:
        raise ImportError(f"No module named {name!r}", name=name)

    awaiting.available.cache_clear()
    monkeypatch.setattr(awaiting, "import_module", missing)
    try:
        with pytest.raises(MissingPackage, match="pip install 'greenlet>="):
            asyncio.run(carried(lambda: None))
    finally:
        awaiting.available.cache_clear()
