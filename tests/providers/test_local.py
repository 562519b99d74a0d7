"""The provider that is no model."""

from __future__ import annotations

import asyncio

from retain import LocalProvider, Message, Provider, Role, ToolCall


def test_it_repeats_the_last_text_of_the_user():
    messages = [
        Message(Role.USER, "早上好"),
        Message(Role.ASSISTANT, "", tool_calls=[ToolCall("recall", {"query": "x"}, "c1")]),
        Message(Role.TOOL, "nothing", tool_call_id="c1"),
    ]
    provider: Provider = LocalProvider()
    prompt = {"model": "", "system_prompt": "", "messages": messages, "tools": []}
    prompt |= {"temperature": None, "max_tokens": None, "timeout": None}
    answer, usage = provider.complete(**prompt)  # type: ignore[arg-type]
    assert answer == Message(Role.ASSISTANT, "You said: 早上好")
    assert usage == {"input_characters": 10, "output_characters": 13}
    assert asyncio.run(provider.acomplete(**prompt)) == (answer, usage)  # type: ignore[arg-type]


def test_it_has_an_answer_where_the_user_said_nothing():
    answer, _ = LocalProvider().complete(messages=[])
    assert answer.content == "You said nothing."
