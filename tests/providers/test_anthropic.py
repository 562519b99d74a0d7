"""Anthropic's provider, by the official SDK, against a service that speaks its wire format."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys

import anthropic
import pytest

from model_server import Asked, ModelServer, Reply, remembering, turns
from retain import (
    Agent,
    AgentConfig,
    AnthropicProvider,
    ConversationMemory,
    KnowledgeMemory,
    Message,
    MissingPackage,
    OpenAIProvider,
    ProviderFailed,
    Role,
    ToolCall,
    tool,
)

KEY = "sk-ant-secret-7f3a"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
HELLO = [Message(Role.USER, "Grüß Gott, 世界")]


@tool(description="How warm it is somewhere.")
def weather(city: str) -> str:
    return {"Zürich": "3 degrees", "São Paulo": "29 degrees"}[city]


@tool(name="céu.azul", description="Whether the sky is blue.")
def sky() -> bool:
    return True


@pytest.fixture(scope="module")
def running():
    with ModelServer() as server:
        yield server


@pytest.fixture
def server(running):
    running.requests.clear()
    running.script = lambda asked: Reply(f"I read: {asked.last_user}")
    return running


@pytest.fixture(scope="module")
def provider(running):
    with AnthropicProvider("small", base_url=running.root, api_key=KEY, max_retries=0) as made:
        yield made


def failure_of(provider: AnthropicProvider, **more) -> str:
    with pytest.raises(ProviderFailed) as failed:
        provider.complete(messages=HELLO, **more)
    error = failed.value
    assert KEY not in f"{error!r} {error.__cause__!r} {error.__context__!r}"
    return str(error)


def test_a_prompt_reaches_the_service_whole_and_its_answer_comes_back(server, provider):
    answer, usage = provider.complete(
        model="",
        system_prompt="Be brief.",
        messages=[Message(Role.SYSTEM, "Speak German."), *HELLO],
        tools=[],
        temperature=0.5,
        max_tokens=99,
        timeout=30,
    )
    assert answer == Message(Role.ASSISTANT, "I read: Grüß Gott, 世界")
    assert usage["input_tokens"] and usage["output_tokens"]
    asked = server.requests[0]
    assert asked.system == "Be brief.\n\nSpeak German." and KEY in str(asked.headers)
    sent = asked.raw
    assert (sent["model"], sent["temperature"], sent["max_tokens"]) == ("small", 0.5, 99)
    provider.complete(model="large", messages=HELLO)
    assert set(server.requests[1].raw) == {"model", "messages", "max_tokens"}
    assert server.requests[1].raw["max_tokens"] == 4096


def test_turns_alternate_and_none_is_empty(server, provider):
    calls = [ToolCall("weather", {"city": "Zürich"}, "a"), ToolCall("weather", {}, "ü/1")]
    provider.complete(
        messages=[
            Message(Role.ASSISTANT, "Welcome."),
            Message(Role.USER, ""),
            Message(Role.ASSISTANT, " "),
            *HELLO,
            Message(Role.ASSISTANT, "", tool_calls=calls),
            Message(Role.TOOL, "3 degrees", "weather", tool_call_id="ü/1"),
            Message(Role.TOOL, "", "weather", tool_call_id="a"),
            Message(Role.USER, "And now?"),
        ]
    )
    sent = server.requests[0].raw["messages"]
    assert [turn["role"] for turn in sent] == ["user", "assistant"] * 2 + ["user"]
    texts = [b["text"] for turn in sent for b in turn["content"] if b["type"] == "text"]
    assert all(text.strip() for text in texts)
    assert [b["type"] for b in sent[4]["content"]] == ["tool_result", "tool_result", "text"]
    asked = [block["id"] for block in sent[3]["content"]]
    answered = [block["tool_use_id"] for block in sent[4]["content"][:2]]
    assert asked == answered[::-1] and all(each.isascii() for each in asked)


def in_two_cities(asked: Asked) -> Reply:
    if asked.last_result:
        return Reply(f"So it is: {asked.last_result}")
    cities = [("weather", {"city": "São Paulo"}), ("weather", {"city": "Zürich"})]
    return Reply("Let me see.", calls=[*cities, (asked.tools[1], {})], thinking="Hm, 考える。")


@pytest.mark.parametrize("awaited", [False, True])
def test_an_agent_answers_with_what_parallel_calls_gave(server, provider, awaited):
    server.script = in_two_cities
    agent = Agent([weather, sky], provider, memory=ConversationMemory())
    result = asyncio.run(agent.arun("How is it?")) if awaited else agent.run("How is it?")
    assert result.content == "So it is: 29 degrees\n3 degrees\ntrue"
    assert [call.tool_name for call in result.tool_calls] == ["weather", "weather", "céu.azul"]
    _, called, results = server.requests[1].raw["messages"]
    thought, text, *calls = called["content"]
    assert (thought["thinking"], text["text"]) == ("Hm, 考える。", "Let me see.")
    assert thought["signature"]
    assert [c["id"] for c in calls] == [r["tool_use_id"] for r in results["content"]]
    assert "考える" not in str([m.to_dict() for m in agent.memory.get_history()])


def test_an_agent_with_a_knowledge_memory_remembers_for_the_next_one(server, provider, tmp_path):
    server.script = remembering
    with KnowledgeMemory(tmp_path) as knowledge:
        agent = Agent([], provider, config=AgentConfig(knowledge_memory=knowledge))
        assert "Done" in agent.run("Please remember that Ελένη likes tea").content
        assert "Ελένη likes tea" in agent.run("What does Ελένη like?").content


def test_arguments_that_are_no_object_are_told_to_the_model(server, provider):
    server.script = turns(Reply(calls=[("weather", '{"city": "Zür')]), Reply("Cold."))
    assert Agent([weather], provider).run("How is it?").content == "Cold."
    assert "arguments_that_were_no_JSON_object" in server.requests[1].last_result


@pytest.mark.parametrize(
    ("status", "way_out"),
    [(400, "request"), (401, "right key as api_key"), (429, "max_retries"), (529, "later")],
)
def test_an_error_of_the_service_is_told_with_its_way_out(server, provider, status, way_out):
    server.script = lambda asked: Reply(status=status, message=f"überlastet: {KEY}")
    told = failure_of(provider)
    assert str(status) in told and "überlastet: ***" in told and way_out in told


def test_a_busy_service_is_asked_again(server):
    server.script = turns(Reply(status=429), Reply(status=500), Reply("At last."))
    with AnthropicProvider(base_url=server.root, api_key=KEY) as provider:
        assert Agent([], provider).run("Well?").content == "At last."
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "body",
    [b"{nonsense", b"[]", b"{}", b'"text"', b'{"content": [5]}', b'{"content": [{}]}', b"<html>",
     b'{"content": [{"type": "text", "text": 5}], "usage": 3}',
     b'{"content": [{"type": "tool_use"}], "stop_reason": "tool_use"}'],
)  # fmt: skip
def test_a_body_that_is_no_answer_is_a_failure(server, provider, body):
    server.script = lambda asked: Reply(body=body)
    failure_of(provider)
    with pytest.raises(ProviderFailed):
        asyncio.run(provider.acomplete(messages=HELLO))
    with pytest.raises(ProviderFailed):
        provider.complete_json(messages=HELLO, schema=SCHEMA)


def test_a_cut_connection_and_a_slow_service_are_failures(server, provider):
    server.script = lambda asked: Reply("never said to its end", cut=True)
    assert "broke off" in failure_of(provider)
    server.script = lambda asked: Reply(delay=600)
    assert "raise timeout" in failure_of(provider, timeout=0.05)


def test_a_refusal_is_told_and_what_was_cut_short_is_said_to_be(server, provider, caplog):
    server.script = turns(
        Reply(refusal="Nein."), Reply("As far as", finish="length"), Reply("", finish="length"),
        Reply("", finish="content_filter"),
    )  # fmt: skip
    assert provider.complete(messages=HELLO)[0].content == "Nein."
    with caplog.at_level(logging.WARNING, "retain.providers"):
        answer, usage = provider.complete(messages=HELLO)
    assert (answer.content, usage["stop_reason"]) == ("As far as", "max_tokens")
    assert "max_tokens was reached" in caplog.text
    assert "raise max_tokens" in failure_of(provider)
    assert "it refused" in failure_of(provider)


def test_a_failure_keeps_the_turn_and_an_empty_run_answers_it(server, provider):
    memory = ConversationMemory()
    agent = Agent([weather], provider, memory=memory)
    server.script = turns(Reply(status=500), Reply("Here I am."))
    with pytest.raises(ProviderFailed):
        agent.run("Are you there? 在吗")
    assert [m.content for m in memory.get_history()] == ["Are you there? 在吗"]
    assert agent.run([]).content == "Here I am."
    assert server.requests[1].last_user == "Are you there? 在吗"


def test_event_loops_and_clients_of_ones_own_leave_no_connection_open(server):
    provider = AnthropicProvider(base_url=server.root, api_key=KEY)
    for _ in range(2):
        assert asyncio.run(provider.acomplete(messages=HELLO))[0].content.startswith("I read")
    with anthropic.Anthropic(base_url=server.root, api_key=KEY) as client:
        own = AnthropicProvider(client=client)
        assert own.complete(messages=HELLO)[0].content.startswith("I read")
    gc.collect()  # an unclosed connection would warn now, which fails the test


def test_without_a_key_it_is_made_and_says_what_it_needs(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))  # the SDK looks for a profile there
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert "ANTHROPIC_API_KEY" in failure_of(AnthropicProvider())


@pytest.mark.parametrize(
    ("made", "package"), [(OpenAIProvider, "openai"), (AnthropicProvider, "anthropic")]
)
def test_a_missing_package_is_told_with_the_extra_that_brings_it(monkeypatch, made, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackage, match=rf"pip install .{package}>="):
        made()


@pytest.mark.parametrize("awaited", [False, True])
def test_json_is_asked_for_as_the_arguments_of_a_call(server, awaited):
    server.script = lambda asked: Reply("Ja.", [(name, {"city": "Zürich"}) for name in asked.tools])
    options = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    with AnthropicProvider(base_url=server.root, api_key=KEY, options=options) as provider:
        request = {"system_prompt": "Extract.", "messages": HELLO, "schema": SCHEMA, "timeout": 30}
        if awaited:
            value, usage = asyncio.run(provider.acomplete_json(**request))
        else:
            value, usage = provider.complete_json(**request)
        assert value == {"city": "Zürich"} and usage["output_tokens"]
        sent = server.requests[0].raw
        assert sent["tool_choice"]["name"] == sent["tools"][0]["name"]
        assert sent["tools"][0]["input_schema"] == SCHEMA and "thinking" not in sent
        provider.complete(messages=HELLO)
        assert server.requests[1].raw["thinking"] == options["thinking"]


@pytest.mark.parametrize(
    "reply",
    [Reply("I would rather not."), Reply(""), Reply(refusal="Nein."),
     Reply(calls=[("answer", '{"city": ')]), Reply(calls=[("answer", {})], finish="length")],
)  # fmt: skip
def test_json_that_is_none_is_a_failure(server, provider, reply):
    server.script = lambda asked: reply
    with pytest.raises(ProviderFailed) as failed:
        provider.complete_json(messages=HELLO, schema=SCHEMA)
    assert len(str(failed.value)) < 1000
