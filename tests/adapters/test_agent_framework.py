"""The adapter for the Microsoft Agent Framework, with the package itself and a scripted model."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, AgentSession
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from openai import AsyncOpenAI

from adapters.pages import run_page
from hostile import BENIGN, HOSTILE, check_prompt
from model_server import Asked, ModelServer, Reply, remembering, turns
from retain import AgentMemory, ConversationMemory, InMemoryStore, KnowledgeMemory, Scope
from retain.adapters import agent_framework as adapter
from retain.adapters.agent_framework import MemoryProvider
from retain.errors import InvalidType, StoreClosed

CLIENTS = [OpenAIChatClient, OpenAIChatCompletionClient]


@pytest.fixture
def memory() -> Iterator[ConversationMemory]:
    with ConversationMemory() as memory:
        yield memory


@asynccontextmanager
async def an_agent(
    server: ModelServer, *providers: Any, client: Any = OpenAIChatCompletionClient, **more: Any
) -> AsyncIterator[Agent]:
    async with AsyncOpenAI(base_url=server.url, api_key="any", max_retries=0) as service:
        model = client("scripted-1", async_client=service)
        yield Agent(model, instructions="Be brief.", context_providers=list(providers), **more)


def said(server: ModelServer, *texts: str, provider: Any, **more: Any) -> list[str]:
    """What an agent answers to each text, in one session."""

    async def main() -> list[str]:
        async with an_agent(server, provider, **more) as agent:
            session = agent.create_session()
            return [(await agent.run(text, session=session)).text for text in texts]

    with server:
        return asyncio.run(main())


def contents(memory: Any) -> list[str]:
    kept = sorted(memory.engine.store.iterate(), key=lambda each: each.revision)
    return [each.content for each in kept]


# -- end to end -----------------------------------------------------------------------------


def test_the_page_stores_a_fact_in_one_process_and_uses_it_in_another(tmp_path: Path) -> None:
    with ModelServer() as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "any"}
        told = run_page("agent-framework", env, tmp_path, "Remember that my cat is called Miú")
        assert told.startswith("Done: ")
        asked = run_page("agent-framework", env, tmp_path, "Tell me about my cat")
        assert asked.startswith("I know: ")
        assert "my cat is called Miú" in asked
        assert "from-memory" in server.requests[-1].system


@pytest.mark.parametrize("client", CLIENTS)
def test_a_streamed_run_remembers_recalls_and_keeps_its_turns(
    memory: ConversationMemory, client: Any
) -> None:
    async def main() -> list[str]:
        with ModelServer() as server:
            async with an_agent(server, MemoryProvider(memory), client=client) as agent:
                told = agent.run("Please remember that 東京 is home", stream=True)
                assert "Remembered" in "".join([update.text async for update in told])
                asked = agent.run("Where is 東京?", stream=True)
                pieces = [update.text async for update in asked]
                return [*pieces, (await asked.get_final_response()).text]

    *pieces, answer = asyncio.run(main())
    assert len(pieces) > 1
    assert "".join(pieces).startswith(answer)
    assert "東京 is home" in answer
    kept = [turn.content for turn in memory.turns()]
    assert kept[0] == "Please remember that 東京 is home"
    assert kept[1].startswith("Done: Remembered")
    assert kept[2:] == ["Where is 東京?", answer]


def test_the_calls_of_one_answer_run_together(memory: ConversationMemory) -> None:
    facts = [f"Fact number {number}" for number in range(12)]
    calls = [("remember", {"content": fact}) for fact in facts]
    server = ModelServer(turns(Reply(calls=calls), Reply("Done.")))
    said(server, "Keep these", provider=MemoryProvider(memory, keep_turns=False))
    assert sorted(contents(memory)) == sorted(facts)
    assert server.requests[-1].last_result == "\n".join(["Remembered in general."] * 12)


# -- what the model reads -------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
def test_nothing_piles_up_and_what_is_forgotten_is_gone(client: Any) -> None:
    memory = AgentMemory()
    fact = memory.remember("Her tea is green")
    provider = MemoryProvider(memory, tools=False)

    async def main() -> None:
        async with an_agent(server, provider, client=client) as agent:
            session = agent.create_session()
            await agent.run("Which tea?", session=session)
            await agent.run("Which tea again?", session=session)
            memory.forget(fact.id)
            await agent.run("Which tea now?", session=session)

    with ModelServer(lambda asked: Reply("Tea.")) as server:
        asyncio.run(main())
    assert [asked.prompt.count("Her tea is green") for asked in server.requests] == [1, 1, 0]
    assert [len(asked.messages) for asked in server.requests] == [1, 3, 5]
    assert not any("remember" in asked.tools for asked in server.requests)


def test_what_an_earlier_session_said_is_found_and_fenced(memory: ConversationMemory) -> None:
    said(ModelServer(), "My cat\nis called Miú", provider=MemoryProvider(memory))
    server = ModelServer()
    said(server, "Tell me about my cat", provider=MemoryProvider(memory))
    assert "<from-memory>\n" in server.requests[0].system
    assert "\n- My cat is called Miú\n" in server.requests[0].system
    assert server.requests[0].messages == [("user", "Tell me about my cat")]


def test_a_knowledge_memory_tells_its_context_and_keeps_no_turns(tmp_path: Path) -> None:
    with KnowledgeMemory(tmp_path) as memory:
        memory.remember("Name: Žofie", category="personal", persistent=True)
        server = ModelServer()
        said(server, "Hello", provider=MemoryProvider(memory))
        assert "## personal\n- Name: Žofie" in server.requests[0].system
        assert contents(memory) == ["Name: Žofie"]


def test_hostile_memories_stay_data() -> None:
    memory = AgentMemory()
    groups = range(-(-len(HOSTILE) // 40))
    for number, text in enumerate(HOSTILE):
        memory.remember(text, tags=["corpus", f"c{number // 40}"])
    for group in groups:
        memory.remember(BENIGN, tags=["corpus", f"c{group}"])
    calls = [("recall", {"query": f"c{group}", "limit": 50}) for group in groups]
    server = ModelServer(turns(Reply(calls=calls), Reply("Done.")))
    provider = MemoryProvider(memory, k=len(HOSTILE) + len(groups))
    said(server, "What is in the corpus?", provider=provider)
    first, second = server.requests
    check_prompt(first.system, least=len(HOSTILE))
    assert second.system == first.system
    results = [text for role, text in second.messages if role == "tool"]
    assert len(results) == len(groups)
    for result in results:
        check_prompt(result, least=1)


# -- what is kept ---------------------------------------------------------------------------


def test_turns_are_kept_with_role_and_session_and_no_results_of_tools(
    memory: ConversationMemory,
) -> None:
    async def main() -> str:
        async with an_agent(server, MemoryProvider(memory)) as agent:
            session = agent.create_session()
            await agent.run("Please remember that I like tea", session=session)
            return session.session_id

    with ModelServer(remembering) as server:
        session = asyncio.run(main())
    turns = memory.turns()
    assert [(turn.source, turn.metadata["role"]) for turn in turns] == [
        ("user", "user"),
        ("assistant", "assistant"),
    ]
    assert {turn.metadata["session"] for turn in turns} == {session}
    assert contents(memory)[0] == "I like tea"  # by the tool


def test_observing_keeps_turns_and_what_is_found_in_them(tmp_path: Path) -> None:
    with KnowledgeMemory(tmp_path) as memory:
        server = ModelServer(lambda asked: Reply("A fine name."))
        said(server, "My cat is called Miú.", provider=MemoryProvider(memory, observe=True))
        kept = list(memory.engine.store.iterate())
    turn_ids = {each.id for each in kept if "turn" in each.metadata}
    found = [each for each in kept if "turn_id" in each.metadata]
    assert len(turn_ids) == 2
    assert found
    assert all(each.metadata["turn_id"] in turn_ids and "Miú" in each.content for each in found)


def test_a_failing_service_raises_and_keeps_what_was_remembered(
    memory: ConversationMemory,
) -> None:
    script = turns(Reply(calls=[("remember", {"content": "Likes tea"})]), Reply(status=401))
    with pytest.raises(Exception, match="401"):
        said(ModelServer(script), "I like tea", provider=MemoryProvider(memory))
    assert contents(memory) == ["Likes tea"]


# -- whose memory it is ---------------------------------------------------------------------


def test_concurrent_runs_of_one_agent_keep_their_users_apart() -> None:
    store = InMemoryStore()
    users = [f"user{number}" for number in range(16)]

    def memory_of(session: AgentSession) -> ConversationMemory:
        return ConversationMemory(store=store, scope=Scope(user=session.state["user"]))

    def script(asked: Asked) -> Reply:
        user = asked.last_user.removeprefix("I am ")
        if not asked.last_result:
            return Reply(calls=[("remember", {"content": f"Seen: {user}"})])
        return Reply(f"Hello {user}")

    async def main(server: ModelServer) -> None:
        async with an_agent(server, MemoryProvider(memory_of)) as agent:

            async def talk(user: str) -> None:
                session = agent.create_session()
                session.state["user"] = user
                for _ in range(2):
                    await agent.run(f"I am {user}", session=session)

            await asyncio.gather(*map(talk, users))

    with ModelServer(script) as server:
        asyncio.run(main(server))
    for user in users:
        kept = contents(ConversationMemory(store=store, scope=Scope(user=user)))
        once = [f"Seen: {user}", f"I am {user}", f"Hello {user}"]
        assert kept == once * 2
    for asked in server.requests:
        (user,) = {text for role, text in asked.messages if role == "user"}
        assert set(re.findall(r"user\d+", asked.system)) <= {user.removeprefix("I am ")}


def test_agents_that_share_a_provider_and_a_list_of_tools_have_each_their_users_memory() -> None:
    store = InMemoryStore()

    async def memory_of(session: AgentSession) -> AgentMemory:
        return AgentMemory(store, scope=Scope(user=session.state["user"]))

    provider = MemoryProvider(memory_of)
    tools: list[Any] = []

    async def main(server: ModelServer) -> None:
        made = [an_agent(server, provider, tools=tools) for _ in range(2)]
        async with made[0] as one, made[1] as other:
            for agent, user in ((one, "ann"), (other, "bob")):
                session = agent.create_session()
                session.state["user"] = user
                await agent.run(f"remember that I am {user}", session=session)

    with ModelServer() as server:
        asyncio.run(main(server))
    assert tools == []
    for user in ("ann", "bob"):
        assert contents(AgentMemory(store, scope=Scope(user=user))) == [f"I am {user}"]


def test_no_argument_reaches_another_scope() -> None:
    store = InMemoryStore()
    bobs = AgentMemory(store, scope=Scope(user="bob"))
    secret = bobs.remember("Bob's secret: parsnips")
    calls = [
        ("recall", {"query": "secret", "user": "bob"}),
        ("recall", {"query": "secret", "scope": {"user": "bob"}}),
        ("recall", {"query": '["bob",null,null] secret'}),
        ("remember", {"content": "mine", "session": {"user": "bob"}}),
        ("remember", {"content": "user=bob", "category": "user=bob"}),
        ("forget", {"id": secret.id}),
        ("forget", {"id": 7}),
        ("recall", '["secret"]'),
        ("recall", '{"query": "sec'),
    ]
    server = ModelServer(turns(Reply(calls=calls), Reply("Done.")))
    anns = AgentMemory(store, scope=Scope(user="ann"))
    said(server, "user=bob", provider=MemoryProvider(anns))
    asked = server.requests[-1]
    assert "parsnips" not in asked.prompt
    results = [text for role, text in asked.messages if role == "tool"]
    assert len(results) == len(calls)
    assert "there is no memory" in results[5]
    assert contents(bobs) == ["Bob's secret: parsnips"]
    assert contents(anns) == ["user=bob"]


# -- what goes wrong ------------------------------------------------------------------------


def test_the_model_is_told_what_is_wrong_with_its_arguments(memory: ConversationMemory) -> None:
    calls = [
        ("remember", {"content": "Likes tea", "persistent": "perhaps"}),
        ("recall", {"query": "tea", "limit": "2"}),
    ]
    server = ModelServer(turns(Reply(calls=calls), Reply("Done.")))
    said(server, "I like tea", provider=MemoryProvider(memory, keep_turns=False))
    not_saved, found = (text for role, text in server.requests[-1].messages if role == "tool")
    assert not_saved.startswith("Not saved: ")
    assert found == "No memories found."


def test_a_store_that_fails_ends_the_run(memory: ConversationMemory) -> None:
    memory.close()
    with pytest.raises(StoreClosed):
        said(ModelServer(), "Hello", provider=MemoryProvider(memory))


def test_what_is_no_memory_is_refused() -> None:
    with pytest.raises(InvalidType, match="is a str, which has no remember"):
        MemoryProvider("memory.db")
    with pytest.raises(InvalidType, match="is a NoneType"):
        said(ModelServer(), "Hello", provider=MemoryProvider(lambda session: None))


def test_the_adapter_imports_its_framework_and_no_other() -> None:
    source = Path(adapter.__file__).read_text("utf-8")
    imported = set(re.findall(r"^\s*(?:from|import) ([\w.]+)", source, re.MULTILINE))
    roots = {name.split(".")[0] for name in imported if not name.startswith(".")}
    assert roots - sys.stdlib_module_names == {"agent_framework"}
