"""A cancelled call leaves a whole write or none, and everything else as it was."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import servers
from retain import AsyncAgentMemory, AsyncKnowledgeMemory, Memory, Store, awaiting
from retain.stores.opening import open_store


@pytest.fixture(scope="module")
def database() -> str:
    return servers.new_database()


@pytest.fixture(params=["postgres", "redis", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path, database: str) -> str:
    name = f"t_{uuid.uuid4().hex[:20]}"
    return {
        "sqlite": f"sqlite:///{tmp_path / 'm.db'}",
        "postgres": f"{database}?schema={name}&connections=2",
        "redis": f"{servers.redis_url()}?prefix={name}",
    }[request.param]


@pytest.fixture
def opened(url: str) -> Iterator[Store]:
    """The store as another process sees it."""
    with open_store(url) as store:
        yield store


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(work(), 100))  # type: ignore[arg-type]


async def cancelled_after(steps: int, work: Awaitable[Any]) -> bool:
    """Let ``work`` go on for some turns of the loop, then cancel it; whether that was in time."""
    task = asyncio.ensure_future(work)
    for _ in range(steps):
        await asyncio.sleep(0)
        if task.done():
            break
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


async def ended(memory: AsyncAgentMemory, store: Store, ids: list[str]) -> list[str]:
    """Those of ``ids`` that are there, once no thread, and no server, is at it any more."""
    found: list[str] | None = None
    while True:
        now = [each.id for each in store.peek(ids)]
        if now == found and not memory._on._under_way:
            return now
        found = now
        await asyncio.sleep(0.02)


def drafts(name: str, count: int) -> list[Memory]:
    return [Memory(f"{name}-{n}", f"text {n} of {name} — 東京") for n in range(count)]


A_BATCH = pytest.param(150, id="a batch", marks=pytest.mark.slow)


@pytest.mark.parametrize("count", [pytest.param(1, id="one"), A_BATCH])
def test_a_write_that_is_cancelled_at_any_turn_is_whole_or_nothing(
    url: str, opened: Store, count: int
):
    async def main() -> None:
        seen = set()
        async with AsyncAgentMemory(url) as memory:
            await memory.remember("first")
            expected = 1
            for steps in [*range(40), *range(40, 400, 30)]:
                batch = drafts(f"s{steps}", count)
                ids = [each.id for each in batch]
                in_time = await cancelled_after(steps, memory.remember_many(batch))
                found = await ended(memory, opened, ids)
                assert found in ([], ids), f"half a write after {steps} turns"
                assert in_time or found == ids
                seen.add((in_time, bool(found)))
                expected += len(found)
                assert opened.count() == expected
            kept = await asyncio.gather(*(memory.remember(f"later {n}") for n in range(20)))
            assert len(await memory.recall("later", k=30)) == len(kept)
            assert await memory.memory_count == expected + 20
        assert (True, False) in seen

    run(main)
    ends = time.monotonic() + 20
    while any(each.name.startswith("retain-async") for each in threading.enumerate()):
        assert time.monotonic() < ends, "a thread was left"
        time.sleep(0.01)


@pytest.mark.parametrize("count", [pytest.param(1, id="one"), A_BATCH])
def test_a_write_that_is_cancelled_at_any_await_is_whole_or_nothing(
    url: str, opened: Store, count: int, monkeypatch: pytest.MonkeyPatch
):
    """At each place where the call waits in turn: before what it waits for is done, and after."""
    real = awaiting.wait
    left, late = 0, False

    async def halted(awaitable: Awaitable[Any]) -> Any:
        task = asyncio.current_task()
        assert task is not None
        if not late:
            task.cancel()
        answer = await awaitable
        task.cancel()  # which is raised where it really waits next
        return answer

    def wait(awaitable: Awaitable[Any]) -> Any:
        nonlocal left
        left -= 1
        return real(halted(awaitable) if left == 0 else awaitable)

    async def stopped(memory: AsyncAgentMemory, at: int) -> bool:
        """Whether a write was stopped where it waits for the ``at``-th time."""
        nonlocal left
        batch = drafts(f"{at}.{late}", count)
        ids, before = [each.id for each in batch], opened.count()
        left = at
        try:
            await asyncio.ensure_future(memory.remember_many(batch))
        except asyncio.CancelledError:
            assert left <= 0
        reached, left = left <= 0, 0
        found = await ended(memory, opened, ids)
        assert found in ([], ids), f"half a write at {at}, {late}"
        assert opened.count() == before + len(found)
        assert found or reached
        return reached

    async def main() -> int:
        nonlocal late
        async with AsyncAgentMemory(url) as memory:
            await memory.remember("first")
            monkeypatch.setattr(awaiting, "wait", wait)
            for at in [*range(1, 12), *range(12, 1000, 13)]:
                stops = []
                for late in (False, True):  # noqa: B007
                    stops.append(await stopped(memory, at))
                if not any(stops):
                    break
            assert (await memory.remember("later")).id
            assert await memory.recall("later")
        return at

    waits = run(main)
    assert waits > 1 if opened.driver.awaits else waits == 1


def test_reads_that_are_cancelled_leave_the_index_right(url: str):
    async def main() -> None:
        async with AsyncAgentMemory(url) as memory:
            for steps in range(60):
                kept = await memory.remember(f"zebra{steps} in the yard")
                others = [memory.recall("yard", k=100) for _ in range(3)]
                tasks = [asyncio.ensure_future(other) for other in others]
                await cancelled_after(steps, memory.recall("yard"))
                assert [r.memory.id for r in await memory.recall(f"zebra{steps}")] == [kept.id]
                for found in await asyncio.gather(*tasks):
                    assert len(found) == steps + 1

    run(main)


def test_a_cancelled_first_call_does_not_keep_others_from_opening(url: str):
    async def main() -> None:
        async with AsyncAgentMemory(url) as memory:
            await memory.memory_count
        memory = AsyncAgentMemory(url)
        first = asyncio.ensure_future(memory.remember("one"))
        second = asyncio.ensure_future(memory.remember("two"))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).content == "two"
        assert first.cancelled()
        assert [m.content for m in await memory.store.list_all()] == ["two"]
        await memory.close()

    run(main)


def test_a_cancelled_change_of_a_directory_is_whole_or_nothing(tmp_path: Path):
    async def main() -> None:
        async with AsyncKnowledgeMemory(tmp_path / "k") as knowledge:
            for steps in range(12):
                text = f"fact {steps}"
                await cancelled_after(steps, knowledge.remember(text, persistent=True))
        # Closing has waited for the threads that were still at it.
        async with AsyncKnowledgeMemory(tmp_path / "k") as knowledge:
            facts = (await knowledge.get_persistent_facts()).get("general", [])
            page = (tmp_path / "k" / "MEMORY.md").read_text("utf-8")
            assert [line[2:] for line in page.splitlines() if line.startswith("- ")] == facts
            assert await knowledge.memory_count == len(facts)

    run(main)


def test_a_time_limit_frees_the_caller_at_once_and_others_go_on(url: str, opened: Store):
    async def main() -> None:
        async with AsyncAgentMemory(url) as memory:
            await memory.remember("first")
            tasks = [
                asyncio.wait_for(memory.remember(f"tea {n}"), 0 if n % 2 else 60) for n in range(60)
            ]
            done = await asyncio.gather(*tasks, return_exceptions=True)
            kept = {each.id for each in done if isinstance(each, Memory)}
            assert len(kept) == 30
            assert kept <= {memory.id for memory in opened.list_all()}
            assert len(await memory.recall("tea", k=100)) >= 30

    run(main)
