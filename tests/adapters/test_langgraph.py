"""The adapter for LangGraph and LangChain: tools and prompts, with the packages themselves."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph

from adapters.langgraph_conformance import *  # noqa: F403  # the store's own tests
from adapters.pages import run_page
from hostile import BENIGN, HOSTILE, WORD, check_prompt
from model_server import Asked, ModelServer, Reply
from retain import AgentMemory, InMemoryStore, KnowledgeMemory, Scope, SQLiteStore
from retain.adapters.langgraph import (
    RetainStore,
    langchain_tools,
    memory_middleware,
    memory_prompt,
)
from retain.errors import InvalidType, StoreClosed

with warnings.catch_warnings():  # a package that LangMem needs imports from an old place
    warnings.simplefilter("ignore", DeprecationWarning)
    from langmem import create_manage_memory_tool, create_search_memory_tool


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with AgentMemory() as memory:
        yield memory


def model(server: ModelServer) -> ChatOpenAI:
    return ChatOpenAI(model="scripted-1", base_url=server.url, api_key="any", max_retries=0)


def ask(agent: Any, text: str, **configurable: str) -> str:
    said = {"messages": [HumanMessage(text)]}
    return str(agent.invoke(said, {"configurable": configurable})["messages"][-1].text)


# -- end to end ----------------------------------------------------------------------------


def test_the_page_s_program_remembers_in_one_process_and_knows_it_in_the_next(
    tmp_path: Path,
) -> None:
    with ModelServer() as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "any"}
        first = run_page("langgraph", env, tmp_path, "Remember that my cat is called Miu 🐈")
        assert "Done: " in first
        assert "Miu 🐈" in run_page("langgraph", env, tmp_path, "What is my cat called?")
        assert server.requests[0].tools == ["remember", "recall", "forget"]
        assert "cat is called Miu 🐈" in server.requests[2].prompt  # before any tool was called
        assert server.requests[2].prompt.count("<from-memory>") == 1


def test_langmem_s_tools_save_and_find_in_another_process(tmp_path: Path) -> None:
    def script(asked: Asked) -> Reply:
        if asked.last_result:
            return Reply(f"Done: {asked.last_result}")
        if "remember" in asked.last_user:
            return Reply(calls=[("manage_memory", {"content": "Ann eats no meat (Łódź)"})])
        return Reply(calls=[("search_memory", {"query": "meat"})])

    namespace = ("memories", "{user}")
    with ModelServer(script) as server, RetainStore(tmp_path / "m.db") as store:
        agent = create_agent(
            model(server),
            tools=[create_manage_memory_tool(namespace), create_search_memory_tool(namespace)],
            store=store,
        )
        assert "created memory" in ask(agent, "remember it", user="ann")
        assert "Łódź" in ask(agent, "what is it?", user="ann")
        assert "Łódź" not in ask(agent, "what is it?", user="bob")
    other = (
        "from retain.adapters.langgraph import RetainStore\n"
        "store = RetainStore('m.db')\n"
        "found = store.search(('memories',), query='meat')\n"
        "print(ascii([(i.namespace, i.value) for i in found]))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", other], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "('memories', 'ann')" in said.stdout and "no meat" in said.stdout


def test_a_node_of_a_graph_is_given_the_store() -> None:
    from langgraph.store.base import BaseStore

    def node(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
        store.put(("seen",), "last", {"text": state["messages"][-1].text})
        return {"messages": []}

    with RetainStore("memory:") as store:
        builder = StateGraph(MessagesState)
        builder.add_node("node", node)
        builder.add_edge(START, "node")
        builder.compile(store=store).invoke({"messages": [HumanMessage("東京")]})
        item = store.get(("seen",), "last")
        assert item is not None and item.value == {"text": "東京"}


def test_create_react_agent_takes_the_prompt_the_tools_and_the_store(memory: AgentMemory) -> None:
    import langgraph.prebuilt

    memory.remember("The parrot is called Żaba")
    with ModelServer() as server, RetainStore("memory:") as store:
        with pytest.warns(DeprecationWarning):
            agent = langgraph.prebuilt.create_react_agent(
                model(server),
                tools=langchain_tools(memory),
                prompt=memory_prompt(memory, "Be brief."),
                store=store,
            )
        assert "I know: - The parrot is called Żaba" in ask(agent, "Tell me of the parrot")
        assert server.requests[0].system.startswith("Be brief.\n\n")


# -- the middleware and the tools ----------------------------------------------------------


def test_the_block_is_made_anew_for_each_request_and_never_kept(memory: AgentMemory) -> None:
    with ModelServer() as server:
        agent = create_agent(
            model(server),
            tools=langchain_tools(memory),
            system_prompt="Be brief.",
            middleware=[memory_middleware(memory)],
        )
        messages = agent.invoke({"messages": [HumanMessage("Remember that tea is at five")]})
        before, after = server.requests
        assert "<from-memory>" not in before.prompt and before.system == "Be brief."
        assert after.system.count("- tea is at five") == 1
        assert not any(isinstance(each, SystemMessage) for each in messages["messages"])


def test_it_runs_on_an_event_loop_too(memory: AgentMemory) -> None:
    memory.remember("Tea is at five")
    with ModelServer() as server:
        agent = create_agent(
            model(server), tools=langchain_tools(memory), middleware=[memory_middleware(memory)]
        )

        async def both() -> list[str]:
            said = ["When is tea?", "Remember that coffee is at six"]
            runs = [agent.ainvoke({"messages": [HumanMessage(each)]}) for each in said]
            return [run["messages"][-1].text for run in await asyncio.gather(*runs)]

        first, second = asyncio.run(both())
    assert "Tea is at five" in first and second.startswith("Done: Remembered")
    assert memory.recall("coffee")[0].memory.content == "coffee is at six"


def test_one_agent_serves_many_users_and_never_mixes_them() -> None:
    with InMemoryStore() as place, ModelServer() as server:

        def memory_of(config: Any) -> AgentMemory:
            return AgentMemory(place, scope=Scope(user=config["configurable"]["user"]))

        agent = create_agent(
            model(server),
            tools=langchain_tools(memory_of),
            middleware=[memory_middleware(memory_of)],
        )
        ask(agent, "Remember that the code is 4711", user="ann")
        server.requests.clear()
        assert "4711" not in ask(agent, "What is the code?", user="bob")
        assert all("4711" not in asked.prompt for asked in server.requests)
        assert "4711" in ask(agent, "What is the code?", user="ann")


def test_two_agents_that_share_a_list_of_tools_keep_their_own_memory() -> None:
    shared: list[Any] = []
    with AgentMemory() as one, AgentMemory() as two, ModelServer() as server:
        first = create_agent(model(server), tools=[*shared, *langchain_tools(one)])
        second = create_agent(model(server), tools=[*shared, *langchain_tools(two)])
        ask(first, "Remember that the code is 4711")
        assert "4711" not in ask(second, "What is the code?")
        assert len(one) == 1 and len(two) == 0


def test_arguments_that_do_not_fit_are_told_to_the_model_and_reach_no_scope(
    memory: AgentMemory,
) -> None:
    remember, recall, forget = langchain_tools(memory)
    assert "scope" in remember.invoke({"content": "x", "scope": {"user": "eve"}})
    assert "content" in remember.invoke({})
    assert "config" not in str(remember.args_schema)
    assert "Remembered" in remember.invoke({"content": "tea", "persistent": "true"})
    found = recall.invoke({"query": "tea", "limit": "3"})
    (id,) = re.findall(r"\[(.*?)\]", found)
    assert forget.invoke({"id": id}) == "Forgotten."
    assert len(memory) == 0


def test_a_store_that_fails_raises(tmp_path: Path) -> None:
    memory = AgentMemory(SQLiteStore(tmp_path / "m.db"))
    remember, *_ = langchain_tools(memory)
    memory.close()
    with pytest.raises(StoreClosed):
        remember.invoke({"content": "tea"})
    with pytest.raises(InvalidType, match="give a memory"):
        langchain_tools("memory.db")  # type: ignore[arg-type]


def test_hostile_memories_stay_in_the_fence_in_every_prompt(tmp_path: Path) -> None:
    with KnowledgeMemory(tmp_path / "m", max_context_entries=1_000) as memory:
        memory.remember_many([{"content": text, "category": WORD} for text in [*HOSTILE, BENIGN]])

        def script(asked: Asked) -> Reply:
            if asked.last_result:
                return Reply("Done.")
            return Reply(calls=[("recall", {"query": f"{WORD} Łódź bakery", "limit": 50})])

        with ModelServer(script) as server:
            agent = create_agent(
                model(server),
                tools=langchain_tools(memory),
                middleware=[memory_middleware(memory, k=50)],
            )
            ask(agent, f"What does the {WORD} say?")
            for asked in server.requests:
                check_prompt(asked.prompt, least=100)
        state = {"messages": [HumanMessage("bakery")]}
        check_prompt(memory_prompt(memory)(state, {})[0].text, least=100)


def test_a_system_message_of_blocks_keeps_them(memory: AgentMemory) -> None:
    from retain.adapters.langgraph import _with_block

    blocks: list[Any] = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "x"}}]
    assert _with_block(SystemMessage(blocks), "known").content == [
        *blocks,
        {"type": "text", "text": "\n\nknown"},
    ]


def test_importing_it_imports_no_other_framework() -> None:
    others = ["agents", "anthropic", "crewai", "google.adk", "llama_index", "mcp", "pydantic_ai"]
    script = (
        "import sys, retain.adapters.langgraph\n"
        f"print([n for n in {others!r} + ['langchain', 'openai', 'langmem'] if n in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "[]"
