"""The faces of an event loop, on every kind of store."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import servers
from retain import (
    AgentMemory,
    AsyncAgentMemory,
    AsyncConversationMemory,
    AsyncKnowledgeMemory,
    AsyncKnowledgeStore,
    AsyncStore,
    AsyncVectorStoreMemory,
    ConversationMemory,
    InMemoryStore,
    InvalidType,
    InvalidValue,
    KnowledgeEntry,
    KnowledgeMemory,
    Memory,
    Message,
    NotFound,
    Rejected,
    Role,
    Scope,
    Store,
    StoreClosed,
    VectorStoreMemory,
    awaiting,
    indexing,
)
from retain.stores.knowledge import KnowledgeView
from retain.stores.opening import open_store


@pytest.fixture(scope="module")
def database() -> str:
    return servers.new_database()


def url_of(kind: str, place: Path, database: str) -> str:
    """The URL of an empty store of a kind."""
    name = f"t_{uuid.uuid4().hex[:20]}"
    return {
        "memory": "memory:",
        "sqlite": f"sqlite:///{place / 'm.db'}",
        "file": f"file:{place / 'm'}",
        "json": f"file:{place / 'm.json'}",
        "postgres": f"{database}?schema={name}",
        "redis": f"{servers.redis_url()}?prefix={name}",
    }[kind]


SERVERS = ["postgres", "redis"]
KINDS = ["memory", "sqlite", "file", "json", *SERVERS]


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path, database: str) -> str:
    return url_of(request.param, tmp_path, database)


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path: Path, database: str) -> str:
    return url_of(request.param, tmp_path, database)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    ends = time.monotonic() + 20
    while any(each.name.startswith("retain-async") for each in {*threading.enumerate()} - before):
        assert time.monotonic() < ends, "a thread of a closed memory goes on"
        time.sleep(0.01)


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(work(), 60))  # type: ignore[arg-type]


# -- what each face does -------------------------------------------------------------------


def test_what_is_remembered_is_recalled_changed_and_forgotten(url: str):
    async def main() -> None:
        async with AsyncAgentMemory(url) as memory:
            kept = await memory.remember("The café closes at 18 h", tags=["東京"])
            await memory.remember_many(["The router is 192.168.7.1", {"content": "tea"}])
            [found] = await memory.recall("cafe")
            assert found.memory.id == kept.id
            assert [r.memory.id for r in await memory.recall("closes", tags=["東京"])] == [kept.id]
            assert await memory.get_context("router") == "- The router is 192.168.7.1"
            assert await memory.memory_count == 3
            changed = await memory.update(kept.id, content="The café closes at 19 h")
            assert (await memory.get(kept.id)).content == changed.content
            assert (await memory.search("19", k=1))[0].memory.id == kept.id
            assert await memory.forget(kept.id)
            assert not await memory.forget(kept.id)
            assert await memory.recall("cafe") == []
            await memory.remember("soon gone", ttl_days=1, created_at=1.0)
            assert await memory.prune() == 1
            await memory.settle()
            with pytest.raises(NotFound):
                await memory.update(kept.id, content="x")
            with pytest.raises(InvalidValue):
                await memory.remember("  ")

    run(main)


def test_meanings_and_turns_are_found(url: str):
    async def main() -> None:
        async with AsyncVectorStoreMemory(url) as memory:
            await memory.remember("We adopted a puppy from the shelter")
            [found] = await memory.search("Which dog do they have?", k=1)
            assert found.memory.content.startswith("We adopted")
        place = open_store(url) if url == "memory:" else url
        async with AsyncConversationMemory(2, store=place, scope=Scope(user="ann")) as talk:
            turns = [
                await talk.add_turn("user", f"turn {n}", turn_number=n, session="s", created_at=n)
                for n in range(4)
            ]
            assert [turn.content for turn in await talk.turns()] == [t.content for t in turns]
            assert [m.content for m in await talk.get_history()] == ["turn 2", "turn 3"]
            assert [m.content for m in await talk.get_recent(1)] == ["turn 3"]
            near = await talk.neighbours(turns[1].id, 1)
            assert [turn.id for turn in near] == [turns[0].id, turns[2].id]
            await talk.add(Message(Role.USER, "hello"))
            await talk.add_many([Message(Role.ASSISTANT, "good day")])
            await talk.remember("she likes jazz", category="taste")
            window = await talk.to_dict()
            await talk.clear()
            assert await talk.get_history() == []
            assert await talk.memory_count == 7
        again = AsyncConversationMemory.from_dict(window)
        assert [m.content for m in await again.get_history()] == ["hello", "good day"]
        assert await again.memory_count == 0
        await again.close()

    run(main)


def test_facts_and_notes_without_a_directory(url: str):
    async def main() -> None:
        async with AsyncKnowledgeMemory(None, store=url) as knowledge:
            receipt = await knowledge.remember("Likes tea", "preferences", True)
            assert (await knowledge.remember("Likes  tea", "preferences", True)).id == receipt.id
            fact = await knowledge.add_fact("Water boils at 100 °C", source="school")
            assert await knowledge.get_persistent_facts() == {
                "preferences": ["Likes tea"],
                "general": [fact.content],
            }
            await knowledge.remember("Rain today")
            assert len(await knowledge.get_recent_entries()) == 3
            assert "Rain today" in await knowledge.build_context()
            assert [m.id for m in await knowledge.match("tea")] == [receipt.id]
            entry = KnowledgeEntry(content="by hand")
            assert await knowledge.store.save(entry) == entry.id
            assert (await knowledge.store.get(entry.id)).content == "by hand"
            assert len(await knowledge.store.query("preferences")) == 1
            assert await knowledge.store.count() == 4
            assert await knowledge.store.delete(entry.id)
            assert await knowledge.store.prune(0) == 1
            await knowledge.clear_logs()
            await knowledge.flush()
            assert await knowledge.prune_logs() == 0
            assert await knowledge.forget(fact.id)
            assert await knowledge.forgotten() == []
            await knowledge.clear()
            assert await knowledge.memory_count == 0

    run(main)


def test_a_directory_is_kept_in_step(tmp_path: Path, url: str):
    async def main() -> None:
        async with AsyncKnowledgeMemory(tmp_path / "k", store=url) as knowledge:
            receipt = await knowledge.remember("Likes tea", persistent=True)
            page = tmp_path / "k" / "MEMORY.md"
            assert "- Likes tea" in page.read_text("utf-8")
            page.write_text("# Agent Memory\n\n## general\n", "utf-8")
            assert await knowledge.get_persistent_facts() == {}
            [(_, gone)] = await knowledge.forgotten()
            assert (await knowledge.restore(gone.id)).id == receipt.id
            assert await knowledge.build_context() == "[Long-term Memory]\n## general\n- Likes tea"

    run(main)


def test_a_store_has_the_same_calls(url: str, tmp_path: Path):
    async def main() -> None:
        async with AsyncStore(url) as store:
            await store.save_many([Memory(f"m{n}", f"text {n}", created_at=n) for n in range(300)])
            await store.save(Memory("fact", "one", persistent=True, created_at=500))
            assert [m.id async for m in store.iterate(size=7)] == [
                m.id for m in await store.list_all()
            ]
            assert [m.id for m in await store.page(2)] == ["fact", "m299"]
            assert (await store.get("m7")).access_count == 1
            assert (await store.peek(["m7"]))[0].access_count == 1
            changes = await store.changes(0)
            assert len(list(changes.saved)) == 301
            assert await store.revision == changes.revision
            written = await store.write([Memory("x", "one", persistent=True)], unique=True)
            assert written.duplicates == {"fact"}
            hers = store.scoped(Scope(user="ann"))
            await hers.save(Memory("m1", "hers"))
            assert set(await store.scopes()) == {Scope(), Scope(user="ann")}
            assert await store.delete("m1") and await hers.count() == 1
            assert await store.delete_many(["m1", "m2"]) == 1
            assert await hers.forget_scope(Scope(user="ann")) == 1
            assert await store.expired() == []
            assert await store.check() == []
            assert await store.count() == 299
            there = open_store(url)
            assert await store.path == there.path
            there.close()
            with pytest.raises(InvalidType):
                await store.forget_scope("all")

    run(main)


# -- the same as the sync faces ------------------------------------------------------------

TWINS = [
    (AsyncAgentMemory, AgentMemory),
    (AsyncVectorStoreMemory, VectorStoreMemory),
    (AsyncConversationMemory, ConversationMemory),
    (AsyncKnowledgeMemory, KnowledgeMemory),
    (AsyncStore, Store),
    (AsyncKnowledgeStore, KnowledgeView),
]


@pytest.mark.parametrize(("here", "there"), TWINS, ids=[here.__name__ for here, _ in TWINS])
def test_the_calls_are_those_of_the_twin(here: type, there: type):
    names = {
        name
        for name, member in inspect.getmembers(there)
        if not name.startswith("_") and (callable(member) or isinstance(member, property))
    }
    for name in sorted(names):
        mine, its = inspect.getattr_static(here, name), inspect.getattr_static(there, name)
        assert isinstance(mine, property) == isinstance(its, property), name
        if isinstance(its, property):
            continue
        assert shape(getattr(here, name)) == shape(getattr(there, name)), name
        if name not in ("from_dict", "scoped"):
            function = getattr(here, name)
            assert inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    if here is not AsyncKnowledgeStore and here is not AsyncStore:
        assert shape(here) == shape(there)


def shape(call: Any) -> list[tuple[Any, ...]]:
    """The parameters of a call: names, kinds and defaults."""
    found = inspect.signature(call).parameters.values()
    return [(each.name, each.kind, each.default) for each in found]


def answers(results: Any) -> list[tuple[Any, ...]]:
    return [(r.memory.id, round(r.relevance_score, 9), r.importance_score) for r in results]


def test_the_answers_are_those_of_the_twin(server: str):
    texts = [f"note {n} on {['tea', 'coffee', 'rain', '東京'][n % 4]} {n % 7}" for n in range(150)]
    queries = ["tea", "coffee 3", "東京", "rain 2 note", "nothing at all", ""]

    async def main(store: Store) -> None:
        async with AsyncVectorStoreMemory(store) as memory:
            assert await memory.remember_many(texts)
            here = [answers(await memory.recall(query, k=7)) for query in queries]
            twin = VectorStoreMemory(store)
            assert here == [answers(twin.recall(query, k=7)) for query in queries]
            with open_store(server) as other:
                far = VectorStoreMemory(other)
                assert here == [answers(far.recall(query, k=7)) for query in queries]

    run(lambda: main(open_store(server)))


def test_what_other_processes_write_and_delete_is_seen(server: str):
    async def main() -> None:
        with open_store(server) as other:
            async with AsyncAgentMemory(server) as memory:
                there = AgentMemory(other)
                for number in range(5):
                    kept = there.remember(f"zebra {number}")
                    assert (await memory.recall(f"zebra {number}"))[0].memory.id == kept.id
                there.remember_many([f"many {n}" for n in range(500)])
                assert len(await memory.recall("many", k=600)) == 500
                there.engine.forget_all()
                assert await memory.recall("zebra") == []

    run(main)


# -- many at once --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", *SERVERS])
def test_two_hundred_tasks_lose_nothing(kind: str, tmp_path: Path, database: str):
    url = url_of(kind, tmp_path, database)

    async def one(memory: AsyncAgentMemory, number: int) -> str:
        kept = await memory.remember(f"note {number} about thing{number}")
        found = await memory.recall(f"thing{number}", k=1)
        assert [result.memory.id for result in found] == [kept.id]
        return kept.id

    async def main() -> None:
        async with AsyncAgentMemory(url) as memory:
            ids = await asyncio.gather(*(one(memory, number) for number in range(200)))
            assert await memory.memory_count == 200
        with open_store(url) as store:
            assert {m.id for m in store.list_all()} == set(ids)

    run(main)


def test_no_scope_sees_another_under_concurrency(server: str):
    names = ["ann", "Ann", "%", "*", "{a}:b", "ａｎｎ", "", "a'b\"c"]

    async def work(store: Store, name: str) -> None:
        async with AsyncAgentMemory(server, scope=Scope(user=name or "ß")) as memory:
            for number in range(8):
                kept = await memory.remember(f"secret {number} of {name!r}")
                found = await memory.recall("secret", k=100)
                assert len(found) == number + 1
                assert {r.memory.scope for r in found} == {memory.scope}
                assert kept.scope == memory.scope

    async def main() -> None:
        with open_store(server) as store:
            await asyncio.gather(*(work(store, name) for name in names))

    run(main)


@pytest.mark.parametrize("rows", [0, 10**9], ids=["on a thread", "on the loop"])
def test_no_lock_is_held_while_the_loop_goes_on(
    server: str, rows: int, monkeypatch: pytest.MonkeyPatch
):
    from retain.locks import ThreadLock

    held: dict[int, int] = {}
    enter, leave, wait = ThreadLock.__enter__, ThreadLock.__exit__, awaiting.wait

    def counted(lock: ThreadLock) -> None:
        enter(lock)
        held[threading.get_ident()] = held.get(threading.get_ident(), 0) + 1

    def uncounted(lock: ThreadLock, *error: object) -> None:
        held[threading.get_ident()] -= 1
        leave(lock, *error)

    waits = []

    def watched(awaitable: Awaitable[Any]) -> Any:
        waits.append(held.get(threading.get_ident(), 0))
        return wait(awaitable)

    async def main() -> None:
        async with AsyncVectorStoreMemory(server, dedupe=True, max_entries=5) as memory:
            for number in range(8):
                await memory.remember(f"{number} " * (3 + number))
                await memory.recall(str(number))
            await memory.forget((await memory.search("", 1))[0].memory.id)

    monkeypatch.setattr(indexing, "_SMALL", rows)
    monkeypatch.setattr(ThreadLock, "__enter__", counted)
    monkeypatch.setattr(ThreadLock, "__exit__", uncounted)
    monkeypatch.setattr(awaiting, "wait", watched)
    run(main)
    assert len(waits) > 20
    assert set(waits) == {0}


def test_a_large_index_is_asked_on_a_thread_and_a_small_one_on_the_loop(
    server: str, monkeypatch: pytest.MonkeyPatch
):
    threads: list[str] = []
    answer = indexing.Indexed._answer

    def noted(self: Any, *given: Any) -> Any:
        threads.append(threading.current_thread().name)
        return answer(self, *given)

    async def main() -> None:
        async with AsyncAgentMemory(server) as memory:
            await memory.remember("one tea")
            await memory.recall("tea")
            threads.clear()
            await memory.recall("tea")
            assert threads == [threading.current_thread().name]
            monkeypatch.setattr(indexing, "_SMALL", 0)
            await memory.recall("tea")
            assert threads[1].startswith("retain-async")

    monkeypatch.setattr(indexing.Indexed, "_answer", noted)
    run(main)


def test_hooks_may_take_long(server: str):
    def slow(text: str) -> str | None:
        assert threading.current_thread().name.startswith("retain-async")
        return None if "bad" in text else text.upper()

    async def main() -> None:
        async with AsyncAgentMemory(server, pre_save=slow) as memory:
            kept = await memory.remember("tea")
            assert kept.content == "TEA"
            assert (await memory.update(kept.id, content="more tea")).content == "MORE TEA"
            with pytest.raises(Rejected):
                await memory.remember("bad tea")

    run(main)


# -- loops, opening and closing ------------------------------------------------------------


def test_another_loop_is_refused(url: str):
    memory = AsyncAgentMemory(url)
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(memory.remember("tea"))
        with pytest.raises(InvalidValue, match="another event loop"):
            run(lambda: memory.recall("tea"))
        assert loop.run_until_complete(memory.recall("tea"))
        loop.run_until_complete(memory.close())
    finally:
        loop.close()


def test_a_closed_memory_refuses_and_closes_again(url: str):
    async def main() -> None:
        memory = AsyncAgentMemory(url)
        await memory.remember("tea")
        await memory.aclose()
        await memory.close()
        with pytest.raises(StoreClosed):
            await memory.recall("tea")
        unused = AsyncAgentMemory(url)
        await unused.close()
        with pytest.raises(StoreClosed):
            await unused.recall("tea")

    run(main)


def test_closing_waits_for_what_is_under_way(url: str):
    async def main() -> None:
        memory = AsyncAgentMemory(url)
        await memory.remember("first")
        tasks = [asyncio.create_task(memory.remember(f"tea {n}")) for n in range(20)]
        await asyncio.sleep(0)
        await memory.close()
        assert len({kept.id for kept in await asyncio.gather(*tasks)}) == 20

    run(main)


def test_what_cannot_be_opened_is_told_with_the_first_call_and_tried_again(tmp_path: Path):
    folder = tmp_path / "m.db"
    folder.mkdir()

    async def main() -> None:
        memory = AsyncAgentMemory(f"sqlite:///{folder}")
        tasks = [memory.remember(f"tea {n}") for n in range(3)]
        errors = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(error) for error in errors] == [InvalidValue] * 3
        folder.rmdir()
        assert (await memory.remember("tea")).content == "tea"
        await memory.close()

    run(main)


def test_stores_that_are_there_are_taken(database: str):
    async def main() -> None:
        scope = Scope(user="ann")
        store = open_store(url_of("postgres", Path(), database), scope=scope)
        async with AsyncAgentMemory(store) as memory:
            assert memory.scope == scope
            await memory.remember("tea")
            assert store.count() == 1
        assert store.driver.closed
        async with AsyncAgentMemory(KnowledgeView(InMemoryStore(scope=scope))) as memory:
            assert memory.scope == scope
            await memory.remember("tea")
        with pytest.raises(InvalidType):
            AsyncStore(7)  # type: ignore[arg-type]

    run(main)
