"""selectools 1.3 with retain's KnowledgeMemory as it is, and with what fences it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import selectools
from adapters.pages import run_page
from hostile import BENIGN, HOSTILE, WORD, check_prompt
from model_server import ModelServer, Reply, remembering, turns
from retain import AgentMemory, KnowledgeMemory, Scope
from retain.adapters.selectools import FencedKnowledge, memory_tools
from retain.errors import InvalidType
from selectools import Agent, AgentConfig, OpenAIProvider, tool


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[KnowledgeMemory]:
    with KnowledgeMemory(tmp_path / "agent_memory") as memory:
        yield memory


@pytest.fixture(autouse=True)
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        yield server


def an_agent(memory: Any, tools: list[Any] | None = None, **more: Any) -> Agent:
    return Agent(
        tools=[] if tools is None else tools,
        provider=OpenAIProvider(),
        config=AgentConfig(model="gpt-5-mini", knowledge_memory=memory, **more),
    )


def contents(memory: Any) -> set[str]:
    return {each.content for each in memory.engine.store.iterate()}


def test_it_is_the_real_package_and_not_the_drop_in() -> None:
    assert selectools.__version__ == "1.3.0"
    assert "site-packages" in str(selectools.__file__)


# -- as it is -------------------------------------------------------------------------------


def test_the_page_stores_a_fact_in_one_process_and_uses_it_in_another(
    tmp_path: Path, service: ModelServer
) -> None:
    env = {"OPENAI_BASE_URL": service.url, "OPENAI_API_KEY": "any"}
    said = run_page("selectools", env, tmp_path, "Remember that my cat is called Miú")
    assert said.startswith("Done: Remembered")
    run_page("selectools", env, tmp_path, "Tell me about my cat")
    assert "my cat is called Miú" in service.requests[-1].prompt
    asked = run_page("selectools", env, tmp_path, "What is my cat called?")
    assert "my cat is called Miú" in asked  # by recall


def test_the_two_tools_are_added_and_the_context_is_in_the_prompt(
    memory: KnowledgeMemory, service: ModelServer
) -> None:
    memory.remember("Likes tea", category="preferences", persistent=True)
    memory.remember("Was in 東京")
    agent = an_agent(memory)
    assert [tool.name for tool in agent.tools] == ["remember", "recall"]
    agent.run("Hello")
    (asked,) = service.requests
    assert sorted(asked.tools) == ["recall", "remember"]
    assert memory.build_context() in asked.prompt
    assert "## preferences\n- Likes tea" in asked.prompt
    assert "(general) Was in 東京" in asked.prompt


def test_what_its_tools_write_stands_in_the_store_in_memory_md_and_in_its_recall(
    memory: KnowledgeMemory, service: ModelServer
) -> None:
    wish = {"content": "Her tea is green", "category": "tea", "persistent": "true"}
    asking = {"query": "green", "limit": "3"}
    service.script = turns(
        Reply(calls=[("remember", wish)]), Reply(calls=[("recall", asking)]), Reply("Done.")
    )
    assert an_agent(memory).run("My tea is green").content == "Done."
    assert memory.get_persistent_facts() == {"tea": ["Her tea is green"]}
    assert "1. [tea] Her tea is green" in service.requests[-1].last_result
    assert memory.directory is not None
    assert "## tea\n- Her tea is green" in (memory.directory / "MEMORY.md").read_text("utf-8")


def test_the_calls_of_one_answer_and_a_streamed_run_work_too(
    memory: KnowledgeMemory, service: ModelServer
) -> None:
    facts = [f"Fact number {number}" for number in range(6)]
    calls = [("remember", {"content": fact}) for fact in facts]
    service.script = turns(Reply(calls=calls), Reply("Done."))
    an_agent(memory).run("Keep these")
    assert contents(memory) == set(facts)
    service.script = remembering
    pieces: list[str] = []
    agent = an_agent(memory, stream=True)
    agent.run("Remember that 東京 is home", stream_handler=pieces.append)
    assert "東京 is home" in contents(memory)
    assert pieces


def test_a_tool_of_the_users_own_takes_precedence(
    memory: KnowledgeMemory, service: ModelServer
) -> None:
    kept: list[str] = []

    @tool(name="remember", description="Keep something")
    def remember(content: str) -> str:
        kept.append(content)
        return "Kept."

    an_agent(memory, [remember]).run("Remember that tea is green")
    assert kept == ["tea is green"]
    assert contents(memory) == set()


def test_what_a_hook_refuses_is_not_saved(tmp_path: Path, service: ModelServer) -> None:
    with KnowledgeMemory(tmp_path, pre_save=lambda text: None) as memory:
        an_agent(memory).run("Remember that my card is 1234")
        assert contents(memory) == set()


# -- fenced ---------------------------------------------------------------------------------


def test_no_hostile_memory_leaves_its_fence(tmp_path: Path, service: ModelServer) -> None:
    calls = [("recall", {"query": WORD, "limit": "50"}), ("recall", {"query": "harbour bakery"})]
    service.script = turns(Reply(calls=calls), Reply("Done."))
    with FencedKnowledge(tmp_path, max_context_entries=200) as memory:
        for number, text in enumerate((*HOSTILE, BENIGN)):
            memory.remember(text, category=WORD, persistent=number % 2 == 0)
        an_agent(memory, memory_tools(memory)).run("Ask the memory")
        first, second = service.requests
        check_prompt(first.prompt, least=len(HOSTILE) - 5)
        check_prompt(second.prompt, least=len(HOSTILE) - 5)
        check_prompt(second.last_result, least=40)


def test_as_it_is_each_memory_is_one_line_of_the_context(
    memory: KnowledgeMemory, service: ModelServer
) -> None:
    for text in (*HOSTILE, BENIGN):
        memory.remember(text, category=WORD, persistent=True)
    an_agent(memory).run("Hello")
    context = memory.build_context()
    assert context in service.requests[0].prompt
    lines = context.splitlines()
    assert lines[:2] == ["[Long-term Memory]", f"## {WORD}"]
    assert all(line.startswith("- ") for line in lines[2:])
    assert f"- {BENIGN}" in lines


def test_the_fenced_tools_take_the_place_of_the_two(
    memory: KnowledgeMemory, service: ModelServer
) -> None:
    agent = an_agent(memory, memory_tools(memory))
    assert [tool.name for tool in agent.tools] == ["remember", "recall", "forget"]
    agent.run("Remember that my cat is called Miú")
    said = agent.run("What is my cat called?").content
    assert "<from-memory>\n- [" in said
    assert "(general) my cat is called Miú" in said
    (id,) = (each.id for each in memory.engine.store.iterate())
    service.script = turns(Reply(calls=[("forget", {"id": id})]), Reply("Done."))
    agent.run("Forget it")
    assert contents(memory) == set()


def test_the_model_is_told_what_is_wrong_with_its_arguments(
    memory: KnowledgeMemory, service: ModelServer
) -> None:
    wrong = [("remember", {"content": "tea", "persistent": "perhaps"}), ("remember", {})]
    service.script = turns(Reply(calls=wrong), Reply("Done."))
    an_agent(memory, memory_tools(memory)).run("Go")
    result = service.requests[-1].last_result
    assert "Error: " in result
    assert "perhaps" in result
    assert "content" in result
    assert contents(memory) == set()
    with pytest.raises(InvalidType, match="is a str, which has no remember; give a memory"):
        memory_tools("memory.db")  # type: ignore[arg-type]


# -- whose memory it is ---------------------------------------------------------------------


def test_concurrent_agents_have_each_their_users_memory(tmp_path: Path) -> None:
    def live(user: str) -> set[str]:
        with KnowledgeMemory(tmp_path, scope=Scope(user=user)) as memory:
            shared: list[Any] = []
            an_agent(memory, [*shared]).run(f"Remember that I am {user}")
            assert shared == []
            return contents(memory)

    users = [f"person {number}" for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(live, users)) == [{f"I am {user}"} for user in users]


@pytest.mark.parametrize("fenced", [False, True])
def test_no_argument_reaches_another_scope(
    tmp_path: Path, service: ModelServer, fenced: bool
) -> None:
    with (
        KnowledgeMemory(tmp_path, scope=Scope(user="bob")) as bobs,
        KnowledgeMemory(tmp_path, scope=Scope(user="ann")) as anns,
    ):
        secret = bobs.remember("Bob's secret: parsnips", persistent=True)
        service.script = turns(
            Reply(
                calls=[
                    ("recall", {"query": "secret", "user": "bob"}),
                    ("recall", {"query": '["bob",null,null] secret'}),
                    ("recall", {"query": ""}),
                    ("remember", {"content": "user=bob", "category": "../user=bob"}),
                    ("remember", {"content": "mine", "scope": "bob"}),
                    ("forget", {"id": secret.id}),
                ]
            ),
            Reply("Done."),
        )
        an_agent(anns, memory_tools(anns) if fenced else None).run("Go")
        assert "parsnips" not in "".join(asked.prompt for asked in service.requests)
        assert contents(bobs) == {"Bob's secret: parsnips"}
        assert bobs.get_persistent_facts() == {"general": ["Bob's secret: parsnips"]}


def test_any_face_can_be_behind_the_fenced_tools(service: ModelServer) -> None:
    with AgentMemory() as memory:
        Agent(
            tools=memory_tools(memory),
            provider=OpenAIProvider(),
            config=AgentConfig(model="gpt-5-mini"),
        ).run("Remember that tea is green")
        assert contents(memory) == {"tea is green"}


def test_retain_itself_imports_nothing_of_it() -> None:
    code = "import retain, sys; retain.KnowledgeMemory; print('selectools' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "False\n", run.stderr
