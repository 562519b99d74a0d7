"""What an adapter adds to a recall, in the environment of its framework.

    python -m benchmarks.adapting NAME NOTES ROUNDS FOLDER

Prints a JSON object: the median seconds of the plain recall and of each call of the adapter, done
in turn on the same memory. Each name is a module of ``retain.adapters``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from retain import SQLiteStore, VectorStoreMemory

from .measuring import Side, interleaved, timed
from .texts import Corpus

K = 5
_loop = asyncio.new_event_loop()


def awaited(call: Callable[[], Any]) -> Side:
    """A side that waits for a coroutine; the loop is there already, as in an agent."""

    async def measured() -> float:
        start = _loop.time()
        await call()
        return _loop.time() - start

    return lambda: _loop.run_until_complete(measured())


def agent_framework(memory: VectorStoreMemory, query: Callable[[], str]) -> Mapping[str, Side]:
    from agent_framework import AgentSession, Message, SessionContext

    from retain.adapters.agent_framework import MemoryProvider

    provider, session = MemoryProvider(memory, k=K), AgentSession()

    async def before() -> None:
        context = SessionContext(session_id="s", input_messages=[Message("user", [query()])])
        await provider.before_run(agent=None, session=session, context=context, state={})

    return {"before_run": awaited(before)}


def google_adk(memory: VectorStoreMemory, query: Callable[[], str]) -> Mapping[str, Side]:
    from retain.adapters.google_adk import MemoryService

    service = MemoryService(memory.store, k=K)
    service.memory("app", "ann").remember_many(memory.store.list_all())

    async def search() -> None:
        await service.search_memory(app_name="app", user_id="ann", query=query())

    return {"search_memory": awaited(search)}


def langgraph(memory: VectorStoreMemory, query: Callable[[], str]) -> Mapping[str, Side]:
    from langgraph.store.base import PutOp

    from retain import Scope
    from retain.adapters.langgraph import RetainStore, langchain_tools

    store = RetainStore(memory.store, scope=Scope(agent="graph"))
    notes = [each.content for each in memory.store.list_all()]
    store.batch([PutOp(("u",), str(n), {"text": text}) for n, text in enumerate(notes)])
    recall = langchain_tools(memory)[1]
    return {
        "search": lambda: timed(store.search, ("u",), query=query(), limit=K),
        "the recall tool": lambda: timed(recall.invoke, {"query": query(), "limit": K}),
    }


def llama_index(memory: VectorStoreMemory, query: Callable[[], str]) -> Mapping[str, Side]:
    from llama_index.core.base.llms.types import ChatMessage

    from retain.adapters.llama_index import RetainMemoryBlock, function_tools

    block, recall = RetainMemoryBlock(memory, k=K), function_tools(memory)[1]
    return {
        "the block": awaited(lambda: block.aget([ChatMessage(query(), role="user")])),
        "the recall tool": awaited(lambda: recall.acall(query=query(), limit=K)),
    }


def mcp(memory: VectorStoreMemory, query: Callable[[], str]) -> Mapping[str, Side]:
    from retain import KnowledgeMemory
    from retain.adapters.mcp_tools import call, offers

    offered = offers(KnowledgeMemory(None, store=memory.store))
    return {
        "the recall tool": lambda: timed(call, offered, "recall", {"query": query(), "limit": K})
    }


def openai_agents(memory: VectorStoreMemory, query: Callable[[], str]) -> Mapping[str, Side]:
    from agents import Agent, RunContextWrapper
    from agents.tool_context import ToolContext

    from retain.adapters.openai_agents import memory_instructions, memory_tools

    agent: Agent[None] = Agent("Tess", instructions=memory_instructions(memory, k=K))
    recall = memory_tools(memory)[1]

    async def use() -> None:
        arguments = json.dumps({"query": query(), "limit": K})
        context: ToolContext[None] = ToolContext(
            None, tool_name="recall", tool_call_id="1", tool_arguments=arguments
        )
        await recall.on_invoke_tool(context, arguments)

    def told() -> Any:
        asked: list[Any] = [{"role": "user", "content": query()}]
        return agent.get_system_prompt(RunContextWrapper(None, turn_input=asked))

    return {"instructions": awaited(told), "the recall tool": awaited(use)}


def pydantic_ai(memory: VectorStoreMemory, query: Callable[[], str]) -> Mapping[str, Side]:
    from pydantic_ai import RunContext
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.usage import RunUsage

    from retain.adapters.pydantic_ai import MemoryToolset, memory_instructions

    instructions = memory_instructions(memory, k=K)
    toolset: MemoryToolset[None] = MemoryToolset(memory)

    def context() -> RunContext[None]:
        return RunContext(deps=None, model=TestModel(), usage=RunUsage(), prompt=query())

    async def use() -> None:
        here = context()
        tools = await toolset.get_tools(here)
        await toolset.call_tool("recall", {"query": query(), "limit": K}, here, tools["recall"])

    return {
        "instructions": awaited(lambda: instructions(context())),
        "the recall tool": awaited(use),
    }


ADAPTERS = {
    "agent_framework": agent_framework,
    "google_adk": google_adk,
    "langgraph": langgraph,
    "llama_index": llama_index,
    "mcp": mcp,
    "openai_agents": openai_agents,
    "pydantic_ai": pydantic_ai,
}


def main(name: str, notes: str, rounds: str, folder: str) -> None:
    corpus = Corpus()
    texts = corpus.texts(int(notes))
    with VectorStoreMemory(SQLiteStore(Path(folder) / "memory.db")) as memory:
        memory.remember_many(texts)

        def query() -> str:
            return corpus.query(texts)

        adapted = ADAPTERS[name](memory, query)
        memory.settle()
        sides = {"plain": lambda: timed(memory.recall, query(), k=K), **adapted}
        json.dump(interleaved(int(rounds), sides, warm_up=10), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
