"""Messages, roles and tool calls."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidType, InvalidValue, RetainError
from retain.messages import Message, Role, ToolCall

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
calls = st.builds(
    ToolCall,
    st.text(),
    st.dictionaries(st.text(), json_values, max_size=3),
    id=st.text(min_size=1),
)
messages = st.builds(
    Message,
    st.sampled_from(Role),
    st.text(),
    tool_name=st.none() | st.text(),
    tool_result=st.none() | st.text(),
    tool_calls=st.none() | st.lists(calls, max_size=2),
    tool_call_id=st.none() | st.text(),
)


@given(messages)
def test_a_message_comes_back_from_json_as_it_was(message: Message):
    assert Message.from_dict(json.loads(json.dumps(message.to_dict()))) == message


@pytest.mark.parametrize("role", Role)
def test_a_role_is_its_text_however_it_is_printed(role: Role):
    assert role == role.value == str(role) == f"{role}" == "%s" % role  # noqa: UP031
    assert f"{role:>10}" == f"{role.value:>10}"
    assert json.dumps(role) == json.dumps(role.value)
    assert Message(role.value).role is role


def test_an_object_shares_nothing_with_its_message():
    message = Message("assistant", tool_calls=[ToolCall("find", {"words": ["tea"]}, "c1")])
    written = message.to_dict()
    written["tool_calls"][0]["parameters"]["words"].append("coffee")
    read = Message.from_dict(written)
    written["tool_calls"][0]["parameters"]["words"].append("milk")
    assert message.tool_calls == [ToolCall("find", {"words": ["tea"]}, "c1")]
    assert read.tool_calls == [ToolCall("find", {"words": ["tea", "coffee"]}, "c1")]


def test_a_message_keeps_a_list_of_its_own():
    wanted = [ToolCall("find")]
    message = Message("assistant", tool_calls=wanted)
    wanted.append(ToolCall("lose"))
    assert [call.tool_name for call in message.tool_calls or ()] == ["find"]


def test_a_call_without_an_id_gets_one_of_its_own():
    ids = {ToolCall("find").id, ToolCall("find", id="").id, ToolCall("find", id=None).id}  # type: ignore[arg-type]
    assert len(ids) == 3 and all(ids)
    assert ToolCall.from_dict({"tool_name": "find", "id": None}).id


def test_content_that_is_null_is_read_as_empty():
    assert Message.from_dict({"role": "assistant", "content": None}) == Message(Role.ASSISTANT)


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        ({}, InvalidValue, "role"),
        ({"role": "robot"}, InvalidValue, "'robot' is none of 'user', 'assistant'"),
        ({"role": ["user"]}, InvalidValue, "role"),
        ({"role": "user", "content": 5}, InvalidType, "content is a int"),
        ({"role": "user", "text": "Hi"}, InvalidValue, "'text'"),
        ({"role": "user", "tool_name": 1}, InvalidType, "tool_name"),
        ({"role": "assistant", "tool_calls": "find"}, InvalidType, "tool_calls"),
        ({"role": "assistant", "tool_calls": [{}]}, InvalidValue, "tool_name"),
        ({"role": "assistant", "tool_calls": ["find"]}, InvalidType, "a tool call"),
        ([], InvalidType, "a list"),
    ],
)
def test_an_object_that_is_no_message_is_refused_and_the_member_named(data, error, said):
    with pytest.raises(error) as caught:
        Message.from_dict(data)
    assert said in str(caught.value)


def test_what_is_no_call_is_refused():
    with pytest.raises(InvalidType, match="ToolCall"):
        Message("assistant", tool_calls=[{"tool_name": "find"}])  # type: ignore[list-item]
    with pytest.raises(InvalidType, match=r"'find'.*dict"):
        ToolCall("find", "tea")  # type: ignore[arg-type]
    with pytest.raises(InvalidType, match="tool_name"):
        ToolCall(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidType, match="id"):
        ToolCall("find", id=7)  # type: ignore[arg-type]


@given(st.dictionaries(st.sampled_from([*Message.__slots__, "other"]), json_values))
def test_any_object_is_read_or_refused_with_an_error_of_retain(data):
    try:
        message = Message.from_dict(data)
    except RetainError:
        return
    assert message.role.value == data["role"]
