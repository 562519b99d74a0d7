"""The adapter for the OpenAI Agents SDK, with the SDK itself and a scripted model."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    set_tracing_disabled,
)
from agents.memory import Session, SessionSettings
from openai import AsyncOpenAI

from adapters.pages import run_page
from hostile import BENIGN, HOSTILE, WORD, check_prompt
from model_server import ModelServer, Reply, remembering, turns
from retain import AgentMemory, InMemoryStore, KnowledgeMemory, Memory, Scope, SQLiteStore
from retain.adapters.openai_agents import RetainSession, memory_instructions, memory_tools
from retain.errors import InvalidType, InvalidValue, StoreClosed, StoreCorrupt

set_tracing_disabled(True)


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with AgentMemory() as memory:
        yield memory


def contents(memory: AgentMemory) -> set[str]:
    return {each.content for each in memory.engine.store.iterate()}


def an_agent(client: AsyncOpenAI, memory: Any, kind: Any = OpenAIResponsesModel) -> Agent[Any]:
    return Agent(
        "Assistant",
        instructions=memory_instructions(memory, "Be brief."),
        model=kind("scripted-1", client),
        tools=[*memory_tools(memory)],
    )


def talk(script: Any, memory: Any, *says: str, **more: Any) -> tuple[list[str], list[Any]]:
    """What an agent answers, one run after the other, and what its model was asked."""

    async def main(server: ModelServer) -> list[str]:
        async with AsyncOpenAI(base_url=server.url, api_key="any") as client:
            agent = an_agent(client, memory)
            return [(await Runner.run(agent, text, **more)).final_output for text in says]

    with ModelServer(script) as server:
        return asyncio.run(main(server)), server.requests


def answered(memory: Any, *calls: tuple[str, Any], **more: Any) -> str:
    """What the tools answer to these calls, made at once."""
    _, asked = talk(turns(Reply(calls=calls), Reply("Done.")), memory, "Go", **more)
    return str(asked[-1].last_result)


# -- end to end -----------------------------------------------------------------------------


def test_the_page_stores_a_fact_in_one_process_and_uses_it_in_another(tmp_path: Path) -> None:
    with ModelServer() as server:
        env = {
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "any",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
        }
        said = run_page("openai-agents", env, tmp_path, "Remember that my cat is called Miú")
        assert said.startswith("Done: ")
        asked = run_page("openai-agents", env, tmp_path, "Tell me about my cat")
        assert "my cat is called Miú" in asked
        last = server.requests[-1]
        assert "<from-memory>" in last.system
        assert ("user", "Remember that my cat is called Miú") in last.messages  # the session


@pytest.mark.parametrize("kind", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
def test_a_streamed_run_remembers_and_recalls(memory: AgentMemory, kind: Any) -> None:
    async def main() -> list[str]:
        pieces = []
        async with AsyncOpenAI(base_url=server.url, api_key="any") as client:
            agent = an_agent(client, memory, kind)
            for text in ("Please remember that 東京 is home", "Where is 東京?"):
                run = Runner.run_streamed(agent, text)
                async for event in run.stream_events():
                    data = getattr(event, "data", None)
                    if getattr(data, "type", "").endswith("output_text.delta"):
                        pieces += [data.delta]
        return pieces

    with ModelServer(remembering) as server:
        pieces = asyncio.run(main())
    assert len(pieces) > 2
    assert "東京 is home" in "".join(pieces)


def test_the_calls_of_one_answer_run_together(memory: AgentMemory) -> None:
    facts = [f"Fact number {number}" for number in range(12)]
    result = answered(memory, *(("remember", {"content": fact}) for fact in facts))
    assert contents(memory) == set(facts)
    assert result.count("Remembered in general.") == 12


# -- what the model reads -------------------------------------------------------------------


def test_what_was_just_remembered_is_in_the_next_request_and_what_is_forgotten_in_none(
    memory: AgentMemory,
) -> None:
    script = turns(Reply(calls=[("remember", {"content": "Her tea is green"})]), Reply("Done."))
    _, (before, after) = talk(script, memory, "Which tea?")
    assert before.system == "Be brief."
    assert after.system.startswith("Be brief.\n\nRecalled from memory")
    assert "<from-memory>\n- Her tea is green\n</from-memory>" in after.system
    memory.forget(memory.recall("tea")[0].memory.id)
    _, (later,) = talk(turns(Reply("Done.")), memory, "Which tea?")
    assert "green" not in later.prompt


def test_instructions_may_be_a_function_plain_or_asynchronous(memory: AgentMemory) -> None:
    memory.remember("Likes tea")

    async def asynchronous(ctx: Any, agent: Agent[Any]) -> str:
        return f"You are {agent.name}, for {ctx.context}."

    for own in (asynchronous, lambda ctx, agent: f"You are {agent.name}, for {ctx.context}."):

        async def main(own: Any = own) -> None:
            async with AsyncOpenAI(base_url=server.url, api_key="any") as client:
                model = OpenAIResponsesModel("scripted-1", client)
                agent = Agent("Tess", instructions=memory_instructions(memory, own), model=model)
                parts: Any = [{"type": "input_text", "text": "Which tea?"}]
                await Runner.run(agent, [{"role": "user", "content": parts}], context="Ann")

        with ModelServer(turns(Reply("Done."))) as server:
            asyncio.run(main())
        (asked,) = server.requests
        assert asked.system.startswith("You are Tess, for Ann.\n\nRecalled")
        assert "Likes tea" in asked.system


def test_no_hostile_memory_leaves_its_fence(tmp_path: Path) -> None:
    with KnowledgeMemory(tmp_path) as memory:
        for text in (*HOSTILE, BENIGN):
            memory.remember(text, category=WORD, persistent=True)
        calls = [("recall", {"query": WORD, "limit": 50}), ("recall", {"query": "harbour bakery"})]
        talked = talk(turns(Reply(calls=calls), Reply("Done.")), memory, f"Ask the {WORD}")
        _, (first, second) = talked
        check_prompt(first.prompt, least=len(HOSTILE) - 5)
        check_prompt(second.prompt, least=len(HOSTILE) - 5)
        check_prompt(second.last_result, least=40)


# -- whose memory it is ---------------------------------------------------------------------


def test_concurrent_runs_of_one_agent_dont_mix() -> None:
    store = InMemoryStore()
    people = [f"person {number}" for number in range(8)]

    async def of(ctx: Any) -> AgentMemory:
        await asyncio.sleep(0)
        return AgentMemory(store, scope=Scope(user=ctx.context))

    async def main() -> None:
        async with AsyncOpenAI(base_url=server.url, api_key="any") as client:
            agent = an_agent(client, of)
            said = (Runner.run(agent, f"Remember that I am {who}", context=who) for who in people)
            await asyncio.gather(*said)
            asked = (Runner.run(agent, "Tell me which person I am", context=who) for who in people)
            for who, run in zip(people, await asyncio.gather(*asked), strict=True):
                assert run.final_output == f"I know: - I am {who}"

    with ModelServer(remembering) as server:
        asyncio.run(main())


def test_agents_that_share_a_list_of_tools_have_each_their_users_memory() -> None:
    store = InMemoryStore()
    tools = memory_tools(lambda ctx: AgentMemory(store, scope=Scope(user=ctx.context)))

    async def main() -> None:
        async with AsyncOpenAI(base_url=server.url, api_key="any") as client:
            model = OpenAIResponsesModel("scripted-1", client)
            for user in ("ann", "bob"):
                agent = Agent(user, model=model, tools=tools)  # type: ignore[arg-type]
                await Runner.run(agent, f"Remember that I am {user}", context=user)

    with ModelServer(remembering) as server:
        asyncio.run(main())
    assert len(tools) == 3
    for user in ("ann", "bob"):
        assert contents(AgentMemory(store, scope=Scope(user=user))) == {f"I am {user}"}


def test_no_argument_reaches_another_scope() -> None:
    store = InMemoryStore()
    bobs = AgentMemory(store, scope=Scope(user="bob"))
    secret = bobs.remember("Bob's secret: parsnips")
    result = answered(
        lambda ctx: AgentMemory(store, scope=Scope(user=ctx.context)),
        ("recall", {"query": "secret", "user": "bob"}),
        ("recall", {"query": "secret", "scope": {"user": "bob"}}),
        ("recall", {"query": '["bob",null,null] secret'}),
        ("remember", {"content": "mine", "scope": "bob"}),
        ("remember", {"content": "user=bob", "category": "user=bob"}),
        ("forget", {"id": secret.id}),
        ("forget", {"id": f'["bob",null,null]/{secret.id}'}),
        context="ann",
    )
    assert "parsnips" not in result
    assert "no argument 'user'" in result
    assert "no memory" in result
    assert contents(bobs) == {"Bob's secret: parsnips"}


# -- what goes wrong ------------------------------------------------------------------------


def test_the_model_is_told_what_is_wrong_with_its_arguments(memory: AgentMemory) -> None:
    def no_cards(content: str) -> str | None:
        return None if "card" in content else content

    with AgentMemory(pre_save=no_cards) as guarded:
        result = answered(
            guarded,
            ("remember", {"contents": "Likes tea"}),
            ("remember", '["Likes tea"]'),
            ("remember", {"content": "Her card is 1234"}),
            ("remember", {"content": "Likes tea", "persistent": "true"}),
        )
        assert "no argument 'contents'" in result
        assert "a list" in result
        assert "Not saved: " in result
        assert contents(guarded) == {"Likes tea"}


def test_what_is_no_json_is_an_error_for_the_model_and_nothing_is_written(
    memory: AgentMemory,
) -> None:
    remember = memory_tools(memory)[0]
    assert isinstance(remember, FunctionTool)
    for arguments in ('{"content": "Lik', "", "null"):
        said = asyncio.run(remember.on_invoke_tool(None, arguments))  # type: ignore[arg-type]
        assert said.startswith("Error: ")
    assert contents(memory) == set()


def test_a_store_that_fails_ends_the_run(memory: AgentMemory) -> None:
    memory.close()
    remember = memory_tools(memory)[0]
    with pytest.raises(StoreClosed):
        asyncio.run(remember.on_invoke_tool(None, '{"content": "tea"}'))  # type: ignore[arg-type]
    with pytest.raises(StoreClosed):
        talk(turns(Reply("Done.")), memory, "I like tea")


def test_a_service_that_fails_later_takes_nothing_of_what_was_remembered(
    memory: AgentMemory,
) -> None:
    script = turns(Reply(calls=[("remember", {"content": "Likes tea"})]), Reply(status=401))
    with pytest.raises(Exception, match="401"):
        talk(script, memory, "I like tea")
    assert contents(memory) == {"Likes tea"}


def test_what_is_no_memory_is_refused(memory: AgentMemory) -> None:
    for make in (memory_tools, memory_instructions):
        with pytest.raises(InvalidType, match="is a str, which has no remember; give a memory"):
            make("memory.db")
    with pytest.raises(InvalidType, match="instructions is a int"):
        memory_instructions(memory, 7)  # type: ignore[arg-type]
    with pytest.raises(InvalidType, match="is a NoneType"):
        talk(turns(Reply("Done.")), lambda ctx: None, "Hello")


# -- sessions -------------------------------------------------------------------------------


ITEMS: list[Any] = [
    {"role": "user", "content": "Wo ist 東京? \U0001f95f"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "In Japan.", "n": [1, 2.5]}]},
    {"type": "function_call", "call_id": "c1", "name": "remember", "arguments": '{"content": "x"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "Remembered\r\n\x00 \ud83d"},
    {"type": "reasoning", "summary": [], "encrypted_content": None, "deep": {"a": {"b": [True]}}},
    {"content": "", "role": "user", "id": 2**70},
    {},
]


def done(awaitable: Any) -> Any:
    async def main() -> Any:
        return await awaitable

    return asyncio.run(main())


def texts(session: RetainSession) -> list[str]:
    return [item["content"] for item in done(session.get_items())]


def said(*texts: str) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with InMemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "s.db") as store:
        yield store


def test_items_come_back_equal_and_in_order(store: Any) -> None:
    session = RetainSession("chat-1", store)
    assert isinstance(session, Session)
    assert done(session.get_items()) == []
    done(session.add_items(ITEMS[:3]))
    done(session.add_items([]))
    done(session.add_items(ITEMS[3:]))
    again = RetainSession("chat-1", store)
    assert done(again.get_items()) == ITEMS
    assert [list(item) for item in done(again.get_items())] == [list(item) for item in ITEMS]
    assert done(again.get_items(2)) == ITEMS[-2:]
    assert done(again.get_items(100)) == ITEMS
    assert done(again.get_items(0)) == []


def test_of_more_items_than_a_page_all_are_there(store: Any) -> None:
    session = RetainSession("chat-1", store)
    done(session.add_items(said(*map(str, range(2_500)))))
    assert texts(session) == [str(number) for number in range(2_500)]
    assert done(session.get_items(3)) == said("2497", "2498", "2499")


def test_a_limit_of_the_settings_counts_where_none_is_given() -> None:
    settings: list[Any] = [SessionSettings(limit=2), {"limit": 2}]
    for each in settings:
        session = RetainSession("chat-1", InMemoryStore(), session_settings=each)
        done(session.add_items(said("a", "b", "c")))
        assert texts(session) == ["b", "c"]
        assert len(done(session.get_items(3))) == 3
    with pytest.raises(InvalidValue, match="limit=-1"):
        done(session.get_items(-1))


def test_what_is_popped_is_the_newest_and_gone(store: Any) -> None:
    session = RetainSession("chat-1", store)
    done(session.add_items(ITEMS))
    assert [done(session.pop_item()) for _ in ITEMS] == ITEMS[::-1]
    assert done(session.pop_item()) is None
    done(session.add_items(said("anew")))
    assert texts(session) == ["anew"]


def test_no_two_ids_share_an_item(store: Any) -> None:
    long = "x" * 600
    ids = ["a", "a:b", "a:", ":a", "A", 'x@"a":b', "a#b", f"{long}1", f"{long}2", "é", "e\u0301"]
    places = [store, store.scoped(Scope(session="a")), store.scoped(Scope(user="a"))]
    sessions = [RetainSession(id, place) for place in places for id in ids]
    assert len({session.scope for session in sessions}) == len(sessions)
    for number, session in enumerate(sessions):
        done(session.add_items(said(f"item {number}")))
    done(sessions[0].clear_session())
    for number, session in enumerate(sessions):
        assert texts(session) == ([f"item {number}"] if number else [])


def test_a_conversation_does_not_stand_among_the_facts(tmp_path: Path) -> None:
    with KnowledgeMemory(tmp_path / "agent_memory") as memory:
        session = RetainSession("chat-1", memory)
        done(session.add_items(said("My cat is called Miu")))
        assert memory.recall("cat") == []
        assert memory.build_context() == ""
        assert session.search("cat")[0].memory.content == "My cat is called Miu"
        done(session.clear_session())
        assert session.search("cat") == []
    for path in (tmp_path / "agent_memory").rglob("*"):
        assert path.is_dir() or b"called Miu" not in path.read_bytes()


def test_calls_and_their_answers_are_found_too() -> None:
    session = RetainSession("chat-1", InMemoryStore(), embedder=None)
    done(session.add_items(ITEMS))
    assert session.search("Japan")[0].memory.metadata["role"] == "assistant"
    assert session.search("remembered")[0].memory.source == "function_call_output"


def test_what_would_not_come_back_the_same_is_refused_and_nothing_of_it_kept(store: Any) -> None:
    session = RetainSession("chat-1", store)
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    for bad in ({"a": {1}}, {"a": (1,)}, {"a": float("nan")}, {1: "a"}, "text", None, deep):
        with pytest.raises(InvalidType, match="item 1 "):
            done(session.add_items([*said("fine"), bad]))  # type: ignore[list-item]
    assert done(session.get_items()) == []
    with pytest.raises(InvalidValue, match="session_id is empty"):
        RetainSession("", store)
    with pytest.raises(InvalidType, match="is a int"):
        RetainSession(7, store)  # type: ignore[arg-type]
    with pytest.raises(InvalidType, match="a dict is no place"):
        RetainSession("chat-1", {})


def test_what_is_no_item_is_told_and_left() -> None:
    session = RetainSession("chat-1", InMemoryStore())
    session.store.save(Memory(content="Something else"))
    for call in (session.get_items, session.pop_item):
        with pytest.raises(StoreCorrupt, match="no item of a session"):
            done(call())
    assert session.store.count() == 1


def test_a_write_that_is_cancelled_is_carried_out(store: Any) -> None:
    session = RetainSession("chat-1", store)

    async def main() -> None:
        writing = asyncio.create_task(session.add_items(said("kept")))
        await asyncio.sleep(0)  # it has begun
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert await session.get_items() == said("kept")

    asyncio.run(main())


def add_and_pop(path: Path, name: str, begin: Any, popped: Any) -> None:
    """A process of its own: forked, since importing the SDK takes seconds."""
    with SQLiteStore(path) as store:
        session = RetainSession("chat", store)
        begin.wait(30)
        for n in range(20):
            done(session.add_items([{"by": name, "n": n}, {"by": name, "n": n + 0.5}]))
        popped.put([done(session.pop_item()) for _ in range(10)])


def test_several_processes_lose_no_item_and_pop_none_twice(tmp_path: Path) -> None:
    path, fork = tmp_path / "s.db", multiprocessing.get_context("fork")
    begin, popped = fork.Barrier(3), fork.Queue()
    processes = [fork.Process(target=add_and_pop, args=(path, by, begin, popped)) for by in "abc"]
    for process in processes:
        process.start()
    taken = [(item["by"], item["n"]) for _ in "abc" for item in popped.get(timeout=60)]
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    with SQLiteStore(path) as store:
        left = done(RetainSession("chat", store).get_items())
    there = [(item["by"], item["n"]) for item in left]
    assert len(set(taken)) == len(taken) == 30
    assert sorted(taken + there) == sorted((by, n / 2) for by in "abc" for n in range(40))
    for by in "abc":
        mine = [n for b, n in there if b == by]
        assert mine == sorted(mine)


def test_a_run_goes_on_where_the_session_was_left(memory: AgentMemory) -> None:
    for number, script in enumerate((remembering, turns(Reply("Yes.")))):
        _, asked = talk(script, memory, f"Is {number} odd?", session=RetainSession("7", memory))
    assert ("user", "Is 0 odd?") in asked[0].messages
    kinds = [
        item.get("type", item.get("role")) for item in done(RetainSession("7", memory).get_items())
    ]
    assert kinds[:3] == ["user", "function_call", "function_call_output"]
    assert contents(memory) == set()
