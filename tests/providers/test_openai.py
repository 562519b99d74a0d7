"""OpenAI's provider, by the official SDK, against a service that speaks its wire format."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading

import openai
import pytest

from model_server import Asked, ModelServer, Reply, remembering, turns
from retain import (
    Agent,
    AgentConfig,
    ConversationMemory,
    InvalidType,
    InvalidValue,
    KnowledgeMemory,
    Message,
    OpenAIProvider,
    ProviderFailed,
    Role,
    ToolCall,
    tool,
)

KEY = "sk-proj-secret-7f3a"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
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
    with OpenAIProvider("small", base_url=running.url, api_key=KEY, max_retries=0) as made:
        yield made


def failure_of(provider: OpenAIProvider, **more) -> str:
    with pytest.raises(ProviderFailed) as failed:
        provider.complete(messages=HELLO, **more)
    error = failed.value
    assert KEY not in f"{error!r} {error.__cause__!r} {error.__context__!r}"
    return str(error)


def test_a_prompt_reaches_the_service_whole_and_its_answer_comes_back(server, provider):
    answer, usage = provider.complete(
        model="",
        system_prompt="Be brief.",
        messages=[Message(Role.SYSTEM, "Speak German."), *HELLO, Message(Role.ASSISTANT), *HELLO],
        tools=[],
        temperature=0.5,
        max_tokens=99,
        timeout=30,
    )
    assert answer == Message(Role.ASSISTANT, "I read: Grüß Gott, 世界")
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    asked = server.requests[0]
    assert asked.system == "Be brief.\n\nSpeak German."
    assert [role for role, _ in asked.messages] == ["user", "assistant", "user"]
    sent = asked.raw
    assert (sent["model"], sent["temperature"], sent["max_tokens"]) == ("small", 0.5, 99)
    assert "tools" not in sent and asked.headers["authorization"] == f"Bearer {KEY}"
    provider.complete(model="large", messages=HELLO)
    assert set(server.requests[1].raw) == {"model", "messages"}
    assert server.requests[1].raw["model"] == "large"


def in_two_cities(asked: Asked) -> Reply:
    if asked.last_result:
        return Reply(f"So it is: {asked.last_result}")
    cities = [("weather", {"city": "São Paulo"}), ("weather", {"city": "Zürich"})]
    return Reply("Let me see.", calls=[*cities, (asked.tools[1], {})])


@pytest.mark.parametrize("awaited", [False, True])
def test_an_agent_answers_with_what_parallel_calls_gave(server, provider, awaited):
    server.script = in_two_cities
    agent = Agent([weather, sky], provider, memory=ConversationMemory())
    result = asyncio.run(agent.arun("How is it?")) if awaited else agent.run("How is it?")
    assert result.content == "So it is: 29 degrees\n3 degrees\ntrue"
    assert [call.tool_name for call in result.tool_calls] == ["weather", "weather", "céu.azul"]
    sent = server.requests[1].raw["messages"]
    assert sent[1]["content"] == "Let me see."
    assert [c["id"] for c in sent[1]["tool_calls"]] == [m["tool_call_id"] for m in sent[2:]]
    assert server.requests[0].tools[1].isascii() and len(agent.memory.get_history()) == 6


def test_an_agent_with_a_knowledge_memory_remembers_for_the_next_one(server, provider, tmp_path):
    server.script = remembering
    with KnowledgeMemory(tmp_path) as knowledge:
        agent = Agent([], provider, config=AgentConfig(knowledge_memory=knowledge))
        assert "Done" in agent.run("Please remember that Ελένη likes tea").content
        assert "Ελένη likes tea" in agent.run("What does Ελένη like?").content
        assert "Ελένη likes tea" in agent.run("Say it.").content


def test_arguments_that_are_no_json_are_told_to_the_model(server, provider):
    bad = ['{"city": "Zür', "[1]", '{"city": NaN}', '{"city":' + "[" * 200 + "]" * 200 + "}"]
    server.script = turns(
        Reply(calls=[("weather", text) for text in bad]),
        Reply(calls=[("weather", {"city": "Zürich"})]),
        Reply("Cold."),
    )
    result = Agent([weather], provider).run("How is it?")
    assert (result.content, result.iterations) == ("Cold.", 3)
    assert server.requests[1].last_result.count("arguments_that_were_no_JSON_object") == 4
    kept = [list(call.parameters.values()) for call in result.tool_calls[:4]]
    assert kept == [[text] for text in bad]


def test_no_arguments_at_all_are_none(server, provider):
    server.script = turns(Reply(calls=[("weather", ""), ("weather", "{}")]))
    answer, _ = provider.complete(messages=HELLO, tools=[weather])
    assert [call.parameters for call in answer.tool_calls] == [{}, {}]


def test_a_call_without_a_result_gets_one_and_a_result_without_a_call_is_refused(server, provider):
    calls = [ToolCall("weather", {}, "a"), ToolCall("weather", {}, "ü" * 50)]
    asked = Message(Role.ASSISTANT, "", tool_calls=calls)
    result = Message(Role.TOOL, "", "weather", "cold", tool_call_id="ü" * 50)
    provider.complete(messages=[*HELLO, asked, result, *HELLO])
    sent = server.requests[0].raw["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "tool", "user"]
    assert {c["id"] for c in sent[1]["tool_calls"]} == {m["tool_call_id"] for m in sent[2:4]}
    assert all(len(m["tool_call_id"]) <= 40 for m in sent[2:4])
    with pytest.raises(InvalidValue, match="'lost' has no such call"):
        provider.complete(messages=[Message(Role.TOOL, "x", tool_call_id="lost")])


def test_half_a_character_does_not_stop_the_conversation(server, provider):
    answer, _ = provider.complete(messages=[Message(Role.USER, "a\ud800b")])
    assert answer.content == "I read: a?b"


@pytest.mark.parametrize(
    ("status", "way_out"),
    [
        (400, "request"),
        (401, "right key as api_key"),
        (404, "base_url"),
        (429, "max_retries"),
        (500, "later"),
    ],
)
def test_an_error_of_the_service_is_told_with_its_way_out(server, provider, status, way_out):
    server.script = lambda asked: Reply(status=status, message=f"überlastet: {KEY}")
    told = failure_of(provider)
    assert str(status) in told and "überlastet: ***" in told and way_out in told


def test_a_busy_service_is_asked_again(server):
    server.script = turns(Reply(status=429), Reply(status=503), Reply("At last."))
    with OpenAIProvider(base_url=server.url) as provider:
        assert Agent([], provider).run("Well?").content == "At last."
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "body",
    [b"{nonsense", b"[]", b"{}", b'"text"', b'{"choices": []}', b'{"choices": [{}]}', b"<html>",
     b'{"choices": [{"message": {"content": 5}}]}', b'{"error": {"message": "out of order"}}'],
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
    with OpenAIProvider(base_url="http://u:pw@127.0.0.1:9/v1", max_retries=0) as nobody:
        told = failure_of(nobody)
    assert "127.0.0.1:9" in told and "pw" not in told


def test_a_refusal_is_the_answer_and_what_was_cut_short_is_said_to_be(server, provider, caplog):
    server.script = turns(
        Reply(refusal="Nein."),
        Reply("As far as", finish="length"),
        Reply("", finish="length"),
        Reply("", finish="content_filter"),
    )
    assert provider.complete(messages=HELLO)[0].content == "Nein."
    with caplog.at_level(logging.WARNING, "retain.providers"):
        answer, usage = provider.complete(messages=HELLO)
    assert (answer.content, usage["finish_reason"]) == ("As far as", "length")
    assert "max_tokens was reached" in caplog.text
    assert "raise max_tokens" in failure_of(provider)
    assert "content filter" in failure_of(provider)


def test_a_failure_keeps_the_turn_and_an_empty_run_answers_it(server, provider):
    memory = ConversationMemory()
    agent = Agent([weather], provider, memory=memory)
    server.script = turns(Reply(status=500), Reply("Here I am."))
    with pytest.raises(ProviderFailed):
        agent.run("Are you there? 在吗")
    assert [m.content for m in memory.get_history()] == ["Are you there? 在吗"]
    assert agent.run([]).content == "Here I am."
    assert server.requests[1].last_user == "Are you there? 在吗"


def test_threads_and_coroutines_share_one_provider(server, provider):
    together = threading.Barrier(6, timeout=30)  # all of them inside at once, or it breaks

    def script(asked: Asked) -> Reply:
        together.wait()
        return Reply(asked.last_user)

    async def several(start: int) -> list[str]:
        runs = [Agent([], provider).arun(f"n{start + n}") for n in range(2)]
        return [result.content for result in await asyncio.gather(*runs)]

    server.script = script
    said: list[str] = []
    works = [lambda n=n: said.extend(asyncio.run(several(n))) for n in (0, 2)]
    works += [lambda n=n: said.append(Agent([], provider).run(f"n{n}").content) for n in (4, 5)]
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == [f"n{n}" for n in range(6)]


def test_an_event_loop_that_ends_leaves_no_connection_open(server):
    provider = OpenAIProvider(base_url=server.url)
    for _ in range(2):
        assert asyncio.run(Agent([], provider).arun("Hi")).content == "I read: Hi"
    provider.close()

    async def closed_early() -> None:
        await provider.acomplete(messages=HELLO)
        await provider.aclose()
        await provider.acomplete(messages=HELLO)

    asyncio.run(closed_early())
    assert not provider._by_loop
    gc.collect()  # an unclosed connection would warn now, which fails the test


def test_a_cancelled_run_ends_at_once_and_the_next_one_is_answered(server, provider):
    server.script = turns(Reply("late", delay=600), Reply("Here I am."))

    async def cancelled() -> str:
        agent = Agent([], provider, memory=ConversationMemory())
        task = asyncio.create_task(agent.arun("在吗"))
        while not server.requests:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return (await agent.arun([])).content

    assert asyncio.run(cancelled()) == "Here I am."


def test_a_client_of_ones_own_is_used_and_stays_open(server):
    with openai.OpenAI(base_url=server.url, api_key=KEY) as client:
        with OpenAIProvider(client=client) as provider:
            assert asyncio.run(provider.acomplete(messages=HELLO))[0].content.startswith("I read")
        assert provider.complete(messages=HELLO)[0].content.startswith("I read")

    async def by_coroutines() -> None:
        async with openai.AsyncOpenAI(base_url=server.url, api_key=KEY) as client:
            provider = OpenAIProvider(client=client)
            assert (await provider.acomplete(messages=HELLO))[0].content.startswith("I read")
            with pytest.raises(InvalidType, match="coroutines"):
                provider.complete(messages=HELLO)

    asyncio.run(by_coroutines())


def test_a_key_is_asked_for_where_it_is_needed_and_goes_nowhere_else(monkeypatch, server):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    provider = OpenAIProvider()
    with pytest.raises(ProviderFailed, match="OPENAI_API_KEY"):
        provider.complete(messages=HELLO)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert OpenAIProvider().complete(messages=HELLO)[0].content.startswith("I read")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    OpenAIProvider().complete(messages=HELLO)
    monkeypatch.delenv("OPENAI_BASE_URL")
    OpenAIProvider(base_url=server.url).complete(messages=HELLO)
    assert [KEY in asked.headers["authorization"] for asked in server.requests] == [0, 1, 0]


@pytest.mark.parametrize(
    "wrong", [{"model": ""}, {"max_retries": -1}, {"api_key": 5}, {"client": 1, "api_key": "k"}]
)
def test_a_setting_that_is_wrong_is_refused(wrong):
    with pytest.raises((InvalidType, InvalidValue), match=next(iter(wrong))):
        OpenAIProvider(**wrong)


def test_json_is_asked_for_by_its_schema(server, provider):
    server.script = turns(Reply('{"city": "Zürich"}'))
    value, usage = provider.complete_json(
        system_prompt="Extract.", messages=HELLO, schema=SCHEMA, timeout=30, max_tokens=50
    )
    assert value == {"city": "Zürich"} and usage["total_tokens"]
    form = server.requests[0].raw["response_format"]["json_schema"]
    assert form["strict"] is True and form["schema"] == SCHEMA
    loose = {"type": "object", "properties": {"city": {"type": "string"}}}
    provider.complete_json(messages=HELLO, schema=loose)
    assert server.requests[1].raw["response_format"]["json_schema"]["strict"] is False


@pytest.mark.parametrize("awaited", [False, True])
def test_a_service_that_knows_no_schemas_reads_the_schema(server, provider, awaited):
    def script(asked: Asked) -> Reply:
        if asked.raw["response_format"]["type"] == "json_schema":
            return Reply(status=400, message="response_format json_schema is not known here")
        return Reply('```json\n{"city": "Rio"}\n```')

    server.script = script
    request = {"messages": HELLO, "schema": SCHEMA}
    if awaited:
        value, _ = asyncio.run(provider.acomplete_json(**request))
    else:
        value, _ = provider.complete_json(**request)
    assert value == {"city": "Rio"} and '"city"' in server.requests[1].system


@pytest.mark.parametrize(
    "reply",
    [Reply('{"city": '), Reply(""), Reply(refusal="Nein."), Reply('{"city": "R', finish="length"),
     Reply("{}", finish="content_filter"), Reply("[" * 100_000), Reply(status=400)],
)  # fmt: skip
def test_json_that_is_none_is_a_failure(server, provider, reply):
    server.script = lambda asked: reply
    with pytest.raises(ProviderFailed) as failed:
        provider.complete_json(messages=HELLO, schema=SCHEMA)
    assert len(str(failed.value)) < 1000
