"""The adapter for Pydantic AI, with the package itself and a scripted model."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent, ModelRequest, RunContext, ToolReturnPart, UserPromptPart
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, RetryPromptPart, TextPart
from pydantic_ai.messages import ToolCallPart as Call
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider

from adapters.pages import run_page
from hostile import BENIGN, HOSTILE, check_prompt
from model_server import ModelServer, Reply, turns
from retain import AgentMemory, InMemoryStore, KnowledgeMemory, Scope
from retain.adapters import pydantic_ai as adapter
from retain.adapters.pydantic_ai import MemoryToolset, memory_instructions
from retain.errors import InvalidType, StoreClosed


@dataclass
class Deps:
    user: str


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with AgentMemory() as memory:
        yield memory


class Scripted:
    """A model that answers what it is given, one after the other, and keeps what it was asked."""

    def __init__(self, *answers: list[Call] | str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[list[ModelMessage], str]] = []
        self.model = FunctionModel(self._answer)

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.asked.append((list(messages), info.instructions or ""))
        answer = self.answers.pop(0) if self.answers else "Done."
        return ModelResponse([TextPart(answer)] if isinstance(answer, str) else answer)

    def results(self) -> list[str]:
        """What the tools answered last."""
        (*_, last), _ = self.asked[-1]
        kinds = (ToolReturnPart, RetryPromptPart)
        return [str(part.content) for part in last.parts if isinstance(part, kinds)]


def an_agent(memory: Any, scripted: Scripted, **more: Any) -> Agent[Any, str]:
    return Agent(
        scripted.model,
        instructions=["Be brief.", memory_instructions(memory)],
        toolsets=[MemoryToolset(memory)],
        **more,
    )


def ran(agent: Agent[Any, str], prompt: str | None = None, **more: Any) -> Any:
    return asyncio.run(agent.run(prompt, **more))  # run_sync leaves its event loop open


def contents(memory: AgentMemory) -> set[str]:
    return {each.content for each in memory.engine.store.iterate()}


# -- end to end -----------------------------------------------------------------------------


def test_the_page_stores_a_fact_in_one_process_and_uses_it_in_another(tmp_path: Path) -> None:
    with ModelServer() as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "any"}
        said = run_page("pydantic-ai", env, tmp_path, "Remember that my cat is called Miú")
        assert said.startswith("Done: ")
        asked = run_page("pydantic-ai", env, tmp_path, "Tell me about my cat")
        assert "my cat is called Miú" in asked
        assert "from-memory" in server.requests[-1].system


@pytest.mark.parametrize("kind", [OpenAIChatModel, OpenAIResponsesModel])
def test_a_streamed_run_remembers_and_recalls(memory: AgentMemory, kind: Any) -> None:
    async def main() -> list[str]:
        with ModelServer() as server:
            async with AsyncOpenAI(base_url=server.url, api_key="any") as client:
                model = kind("scripted-1", provider=OpenAIProvider(openai_client=client))
                return await talk(Agent(model, toolsets=[MemoryToolset(memory)]))

    async def talk(agent: Agent[None, str]) -> list[str]:
        async with agent.run_stream("Please remember that 東京 is home") as run:
            assert "Remembered" in "".join([text async for text in run.stream_text(delta=True)])
        async with agent.run_stream("Where is 東京?") as run:
            return [text async for text in run.stream_text(delta=True, debounce_by=None)]

    pieces = asyncio.run(main())
    assert len(pieces) > 1
    assert "東京 is home" in "".join(pieces)


def test_the_calls_of_one_answer_run_together(memory: AgentMemory) -> None:
    facts = [f"Fact number {number}" for number in range(12)]
    scripted = Scripted([Call("remember", {"content": fact}) for fact in facts])
    ran(an_agent(memory, scripted), "Keep these")
    assert contents(memory) == set(facts)
    assert scripted.results() == ["Remembered in general."] * 12


def test_the_test_model_of_the_framework_can_call_every_tool(memory: AgentMemory) -> None:
    agent = Agent(TestModel(), toolsets=[MemoryToolset(memory, id="memory")])
    assert "remember" in ran(agent, "Anything").output
    assert len(memory) == 1


def test_the_tools_can_be_renamed_by_the_frameworks_own_wrappers(memory: AgentMemory) -> None:
    scripted = Scripted([Call("my_remember", {"content": "Likes tea"})])
    agent = Agent(scripted.model, toolsets=[MemoryToolset(lambda _: memory).prefixed("my")])
    ran(agent, "I like tea")
    assert contents(memory) == {"Likes tea"}


# -- what the model reads -------------------------------------------------------------------


def test_what_was_just_remembered_is_in_the_next_request(memory: AgentMemory) -> None:
    scripted = Scripted([Call("remember", {"content": "Her tea is green"})])
    ran(an_agent(memory, scripted), "Which tea?")
    (_, before), (_, after) = scripted.asked
    assert before == "Be brief."
    assert "<from-memory>\n- Her tea is green\n</from-memory>" in after


def test_nothing_piles_up_in_the_history_and_what_is_forgotten_is_gone(memory: AgentMemory) -> None:
    fact = memory.remember("Her tea is green")
    scripted = Scripted()
    agent = an_agent(memory, scripted)
    first = ran(agent, "Which tea?")
    second = ran(agent, "Which tea again?", message_history=first.all_messages())
    memory.forget(fact.id)
    ran(agent, "Which tea now?", message_history=second.all_messages())
    counts = [instructions.count("Her tea is green") for _, instructions in scripted.asked]
    assert counts == [1, 1, 0]
    sent, _ = scripted.asked[-1]
    parts = [part for message in sent for part in message.parts]
    assert not any("Her tea is green" in str(getattr(part, "content", "")) for part in parts)


def test_a_run_without_a_prompt_asks_for_the_last_one(memory: AgentMemory) -> None:
    memory.remember("Her tea is green")
    memory.remember("His car is red")
    history = [ModelRequest([UserPromptPart(["Which", "tea?"])])]
    scripted = Scripted()
    ran(an_agent(memory, scripted), message_history=history)
    (_, instructions) = scripted.asked[0]
    assert "Her tea is green" in instructions
    assert "His car is red" not in instructions


def test_a_knowledge_memory_tells_its_context(tmp_path: Path) -> None:
    with KnowledgeMemory(tmp_path) as memory:
        memory.remember("Name: Žofie", category="personal", persistent=True)
        scripted = Scripted()
        ran(an_agent(memory, scripted), "Hello")
    assert "## personal\n- Name: Žofie" in scripted.asked[0][1]


def test_hostile_memories_stay_data(memory: AgentMemory) -> None:
    for text in (*HOSTILE, BENIGN):
        memory.remember(text, tags=["corpus"])
    scripted = Scripted([Call("recall", {"query": "corpus", "limit": 50})])
    agent = Agent(
        scripted.model,
        instructions=memory_instructions(memory, k=len(HOSTILE) + 1),
        toolsets=[MemoryToolset(memory)],
    )
    ran(agent, "What is in the corpus?")
    check_prompt(scripted.asked[0][1], least=len(HOSTILE))
    (result,) = scripted.results()
    for text in (f"{result}", f"{scripted.asked[1][1]}"):
        assert text.count("<from-memory>") == text.count("</from-memory>") == 1
        assert text.endswith("</from-memory>")


def test_hostile_memories_stay_data_in_every_answer_of_recall(memory: AgentMemory) -> None:
    kept = [memory.remember(text, tags=[f"c{n // 40}"]) for n, text in enumerate(HOSTILE)]
    groups = range((len(kept) - 1) // 40 + 1)
    for group in groups:
        memory.remember(BENIGN, tags=[f"c{group}"])
    calls = [Call("recall", {"query": f"c{group}", "limit": 50}) for group in groups]
    scripted = Scripted(calls)
    ran(Agent(scripted.model, toolsets=[MemoryToolset(memory)]), "Look")
    for result in scripted.results():
        check_prompt(result, least=1)


# -- whose memory it is ---------------------------------------------------------------------


def memory_of(store: InMemoryStore) -> Callable[[RunContext[Deps]], AgentMemory]:
    return lambda ctx: AgentMemory(store, scope=Scope(user=ctx.deps.user))


def test_concurrent_runs_of_one_agent_keep_their_users_apart() -> None:
    store = InMemoryStore()
    users = [f"user {number}" for number in range(24)]
    seen: dict[str, list[str]] = {user: [] for user in users}

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        user = str(messages[0].parts[-1].content).removeprefix("I am ")  # type: ignore[union-attr]
        seen[user].append(info.instructions or "")
        if len(messages) == 1:
            return ModelResponse([Call("remember", {"content": f"I am {user}"})])
        if len(messages) == 3:
            return ModelResponse([Call("recall", {"query": "I am a user", "limit": 50})])
        return ModelResponse([TextPart(messages[-1].parts[0].content)])  # type: ignore[union-attr]

    of = memory_of(store)
    agent = Agent(
        FunctionModel(answer),
        deps_type=Deps,
        instructions=[memory_instructions(of)],
        toolsets=[MemoryToolset(of)],
    )

    async def main() -> list[Any]:
        return await asyncio.gather(*(agent.run(f"I am {u}", deps=Deps(u)) for u in users))

    for user, run in zip(users, asyncio.run(main()), strict=True):
        assert [line.split(") ")[1] for line in run.output.splitlines()[2:-1]] == [f"I am {user}"]
        assert seen[user][0] == ""
        assert all(text.splitlines()[2:-1] == [f"- I am {user}"] for text in seen[user][1:])
        assert contents(AgentMemory(store, scope=Scope(user=user))) == {f"I am {user}"}


def test_agents_that_share_a_list_of_toolsets_have_each_their_users_memory() -> None:
    store = InMemoryStore()

    async def of(ctx: RunContext[Deps]) -> AgentMemory:
        return AgentMemory(store, scope=Scope(user=ctx.deps.user))

    toolsets = [MemoryToolset(of)]
    for user in ("ann", "bob"):
        scripted = Scripted([Call("remember", {"content": f"I am {user}"})])
        agent = Agent(scripted.model, deps_type=Deps, toolsets=toolsets)
        ran(agent, "Hello", deps=Deps(user))
    assert len(toolsets) == 1
    for user in ("ann", "bob"):
        assert contents(AgentMemory(store, scope=Scope(user=user))) == {f"I am {user}"}


def test_no_argument_reaches_another_scope() -> None:
    store = InMemoryStore()
    bobs = AgentMemory(store, scope=Scope(user="bob"))
    secret = bobs.remember("Bob's secret: parsnips")
    calls = [
        Call("recall", {"query": "secret", "user": "bob"}),
        Call("recall", {"query": "secret", "scope": {"user": "bob"}}),
        Call("recall", {"query": '["bob",null,null] secret'}),
        Call("remember", {"content": "mine", "scope": "bob"}),
        Call("remember", {"content": "user=bob", "category": "user=bob"}),
        Call("forget", {"id": secret.id}),
        Call("forget", {"id": f'["bob",null,null]/{secret.id}'}),
    ]
    scripted = Scripted(calls)
    agent = an_agent(memory_of(store), scripted, deps_type=Deps, retries=3)
    ran(agent, "user=bob", deps=Deps("ann"))
    results = scripted.results()
    assert not any("parsnips" in result for result in results)
    assert "no argument 'user'" in results[0]
    assert "no memory" in results[5]
    assert contents(bobs) == {"Bob's secret: parsnips"}
    assert not any("parsnips" in instructions for _, instructions in scripted.asked)


# -- what goes wrong ------------------------------------------------------------------------


def test_the_model_is_told_what_is_wrong_with_its_arguments_and_may_mend_them(
    memory: AgentMemory,
) -> None:
    scripted = Scripted(
        [Call("remember", {"contents": "Likes tea"})],
        [Call("remember", '{"content": "Likes')],
        [Call("remember", '["Likes tea"]')],
        [Call("remember", {"content": "Likes tea", "persistent": "true"})],
    )
    agent = Agent(scripted.model, toolsets=[MemoryToolset(memory, max_retries=3)])
    ran(agent, "I like tea")
    complaint = str(scripted.asked[1][0][-1].parts[0].content)  # type: ignore[union-attr]
    assert "no argument 'contents'" in complaint
    assert "'content'" in complaint
    assert contents(memory) == {"Likes tea"}


def test_what_a_hook_refuses_the_model_is_told(memory: AgentMemory) -> None:
    def no_cards(content: str) -> str | None:
        return None if "card" in content else content

    with AgentMemory(pre_save=no_cards) as guarded:
        scripted = Scripted([Call("remember", {"content": "Her card is 1234"})])
        ran(an_agent(guarded, scripted), "My card is 1234")
    assert scripted.results()[0].startswith("Not saved: ")


def test_a_store_that_fails_ends_the_run(memory: AgentMemory) -> None:
    memory.close()
    scripted = Scripted([Call("remember", {"content": "Likes tea"})])
    with pytest.raises(StoreClosed):
        ran(Agent(scripted.model, toolsets=[MemoryToolset(memory)]), "I like tea")
    with pytest.raises(StoreClosed):
        ran(Agent(scripted.model, instructions=memory_instructions(memory)), "I like tea")


def test_what_is_no_memory_is_refused(memory: AgentMemory) -> None:
    for make in (MemoryToolset, memory_instructions):
        with pytest.raises(InvalidType, match="is a str, which has no remember; give a memory"):
            make("memory.db")
    scripted = Scripted()
    with pytest.raises(InvalidType, match="is a NoneType"):
        ran(Agent(scripted.model, toolsets=[MemoryToolset(lambda _: None)]), "Hello")


def test_a_service_that_fails_later_takes_nothing_of_what_was_remembered(
    memory: AgentMemory,
) -> None:
    async def main() -> None:
        script = turns(Reply(calls=[("remember", {"content": "Likes tea"})]), Reply(status=401))
        with ModelServer(script) as server:
            async with AsyncOpenAI(base_url=server.url, api_key="any") as client:
                provider = OpenAIProvider(openai_client=client)
                model = OpenAIChatModel("scripted-1", provider=provider)
                with pytest.raises(ModelHTTPError, match="401"):
                    await Agent(model, toolsets=[MemoryToolset(memory)]).run("I like tea")

    asyncio.run(main())
    assert contents(memory) == {"Likes tea"}


def test_the_adapter_imports_its_framework_and_no_other() -> None:
    source = Path(adapter.__file__).read_text("utf-8")
    imported = set(re.findall(r"^\s*(?:from|import) ([\w.]+)", source, re.MULTILINE))
    roots = {name.split(".")[0] for name in imported if not name.startswith(".")}
    assert roots - sys.stdlib_module_names == {"pydantic_ai", "pydantic_core"}
