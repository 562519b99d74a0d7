"""The scripted service, as the official SDKs see it."""

from __future__ import annotations

import asyncio
import json
import threading

import anthropic
import openai
import pytest

from model_server import Asked, ModelServer, Reply, remembering

TWO = [("look", {"where": "küche"}), ("look", {"where": "Bad"})]
FUNCTION = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
CHAT_TOOLS = [{"type": "function", "function": FUNCTION}]
TOOLS = [{"type": "function", "strict": False, **FUNCTION}]
BLOCK_TOOLS = [{"name": "look", "description": "Look.", "input_schema": {"type": "object"}}]
ASK = [{"role": "user", "content": "Where is the cat? 猫はどこ"}]


def called_or_said(asked: Asked) -> Reply:
    return Reply(f"Under the bed: {asked.last_result}") if asked.last_result else Reply(calls=TWO)


@pytest.fixture
def server():
    with ModelServer(called_or_said) as running:
        yield running


@pytest.fixture
def chat(server):
    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture
def claude(server):
    with anthropic.Anthropic(base_url=server.root, api_key="k", max_retries=0) as client:
        yield client


def whole_chat(client: openai.OpenAI, messages, streamed: bool):
    request = {"model": "m", "messages": messages, "tools": CHAT_TOOLS}
    if not streamed:
        return client.chat.completions.create(**request).choices[0].message
    with client.chat.completions.stream(**request) as stream:
        return stream.get_final_completion().choices[0].message


@pytest.mark.parametrize("streamed", [False, True])
def test_chat_completions_call_tools_in_parallel_and_then_answer(server, chat, streamed):
    message = whole_chat(chat, ASK, streamed)
    calls = message.tool_calls
    assert [(c.function.name, json.loads(c.function.arguments)) for c in calls] == TWO
    assert len({c.id for c in calls}) == 2
    results = [
        {"role": "tool", "tool_call_id": c.id, "content": f"no {at}"} for at, c in enumerate(calls)
    ]
    asked = [{"role": "system", "content": "Be brief."}, *ASK]
    assistant = {"role": "assistant", "tool_calls": [c.model_dump() for c in calls]}
    answer = whole_chat(chat, [*asked, assistant, *results], streamed)
    assert answer.content == "Under the bed: no 0\nno 1" and not answer.tool_calls
    last = server.requests[1]
    assert (last.system, last.tools, last.wire) == ("Be brief.", ["look"], "chat")
    assert last.last_user == ASK[0]["content"] and "no 1" in last.prompt


@pytest.mark.parametrize("streamed", [False, True])
def test_responses_call_tools_in_parallel_and_then_answer(server, chat, streamed):
    def ask(**request):
        request = {"model": "m", "tools": TOOLS, **request}
        if not streamed:
            return chat.responses.create(**request)
        with chat.responses.stream(**request) as stream:
            kinds = [event.type for event in stream]
            assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
            return stream.get_final_response()

    first = ask(input=ASK, instructions="Be brief.")
    calls = [item for item in first.output if item.type == "function_call"]
    assert [(c.name, json.loads(c.arguments)) for c in calls] == TWO
    results = [
        {"type": "function_call_output", "call_id": c.call_id, "output": "nothing"} for c in calls
    ]
    whole = ask(input=[*ASK, *(c.model_dump() for c in calls), *results])
    assert whole.output_text == "Under the bed: nothing\nnothing"
    by_id = ask(input=results, previous_response_id=first.id)
    assert by_id.output_text == whole.output_text
    assert server.requests[0].system == "Be brief."
    assert server.requests[2].last_user == ASK[0]["content"]


def whole_message(client: anthropic.Anthropic, messages, streamed: bool):
    request = {"model": "m", "max_tokens": 50, "messages": messages, "tools": BLOCK_TOOLS}
    request["system"] = "Be brief."
    if not streamed:
        return client.messages.create(**request)
    with client.messages.stream(**request) as stream:
        return stream.get_final_message()


@pytest.mark.parametrize("streamed", [False, True])
def test_messages_call_tools_in_parallel_and_then_answer(server, claude, streamed):
    message = whole_message(claude, ASK, streamed)
    assert message.stop_reason == "tool_use"
    calls = [block for block in message.content if block.type == "tool_use"]
    assert [(block.name, block.input) for block in calls] == TWO
    results = [{"type": "tool_result", "tool_use_id": c.id, "content": "no"} for c in calls]
    blocks = [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.input} for c in calls]
    turn = [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
    answer = whole_message(claude, [*ASK, *turn], streamed)
    assert answer.content[0].text == "Under the bed: no\nno" and answer.stop_reason == "end_turn"
    assert (server.requests[1].system, server.requests[1].last_result) == ("Be brief.", "no\nno")


def test_the_asynchronous_clients_are_served_at_the_same_time():
    async def ask(server):
        one = openai.AsyncOpenAI(base_url=server.url, api_key="k")
        two = anthropic.AsyncAnthropic(base_url=server.root, api_key="k")
        async with one, two:
            asked = [one.chat.completions.create(model="m", messages=ASK) for _ in range(20)]
            asked += [one.responses.create(model="m", input="x") for _ in range(20)]
            asked += [two.messages.create(model="m", max_tokens=9, messages=ASK) for _ in range(20)]
            stream = await one.chat.completions.create(
                model="m", messages=ASK, stream=True, stream_options={"include_usage": True}
            )
            chunks = [chunk async for chunk in stream]
            assert [bool(chunk.usage) for chunk in chunks][-2:] == [False, True]
            return await asyncio.gather(*asked)

    together = threading.Barrier(20, timeout=30)  # all of them inside at once, or it breaks

    def script(asked: Asked) -> Reply:
        if asked.wire == "messages":
            together.wait()
        return Reply("ok")

    with ModelServer(script) as server:
        assert len(asyncio.run(ask(server))) == 60
        assert len(server.requests) == 61


def test_the_models_are_listed(server, chat, claude):
    assert [each.id for each in chat.models.list()] == [each.id for each in claude.models.list()]


def test_faults_reach_the_sdks_as_their_own_errors(server, chat, claude):
    def fails(reply: Reply):
        server.script = lambda asked: reply
        for streamed in (False, True):
            with pytest.raises(openai.OpenAIError) as one:
                whole_chat(chat, ASK, streamed)
            with pytest.raises(anthropic.AnthropicError) as two:
                whole_message(claude, ASK, streamed)
        return one.value, two.value

    for status in (401, 429, 500):
        one, two = fails(Reply(status=status, message="überlastet"))
        assert one.status_code == two.status_code == status
        assert "überlastet" in str(one) and "überlastet" in str(two)

    fails(Reply(status=503, body=b"<html>no json</html>"))
    server.script = lambda asked: Reply("a long text that is never said to its end", cut=True)
    for ask, client in ((whole_chat, chat), (whole_message, claude)):
        with pytest.raises(Exception, match=r"(?i)connection|incomplete"):
            ask(client, ASK, streamed=True)
        with pytest.raises((openai.APIConnectionError, anthropic.APIConnectionError)):
            ask(client, ASK, streamed=False)


def test_a_refusal_is_one_on_every_wire(server, chat, claude):
    server.script = lambda asked: Reply(refusal="Nein.")
    for streamed in (False, True):
        assert whole_chat(chat, ASK, streamed).refusal == "Nein."
        assert whole_message(claude, ASK, streamed).stop_reason == "refusal"
    part = chat.responses.create(model="m", input="x").output[0].content[0]
    assert part.type == "refusal" and part.refusal == "Nein."


def test_a_delayed_answer_ends_with_the_server_and_its_threads():
    before = threading.active_count()
    with (
        ModelServer(lambda asked: Reply("late", delay=600)) as server,
        openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
        pytest.raises(openai.APITimeoutError),
    ):
        client.chat.completions.create(model="m", messages=ASK, timeout=0.05)
    assert threading.active_count() == before


def test_a_script_that_fails_fails_the_test():
    with (
        pytest.raises(ZeroDivisionError),
        ModelServer(lambda asked: Reply(str(1 / 0))) as server,
        openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
        pytest.raises(openai.InternalServerError),
    ):
        client.chat.completions.create(model="m", messages=ASK)


def test_the_remembering_script_calls_what_it_is_offered():
    def say(text: str, tools=("remember", "recall"), result: str = "", system: str = "") -> Reply:
        said = [("user", text), *([("tool", result)] if result else [])]
        return remembering(Asked("chat", {}, {}, system, said, dict.fromkeys(tools)))

    wish = say("Please remember that José lives in São Paulo")
    assert wish.calls == [("remember", {"content": "José lives in São Paulo"})]
    assert say("Where does José live?").calls == [("recall", {"query": "Where does José live?"})]
    assert say("Where?", result="São Paulo").text == "Done: São Paulo"
    block = "<from-memory>\n- Ελένη\n</from-memory>"
    assert say("Where?", tools=(), system=block).text == "I know: - Ελένη"
