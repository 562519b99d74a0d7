"""A conversation: the window of the next prompt, and every turn kept and found."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain import (
    ConversationMemory,
    InMemoryStore,
    InvalidType,
    InvalidValue,
    Memory,
    MemoryType,
    Message,
    Rejected,
    Role,
    Scope,
    SQLiteStore,
    ToolCall,
)
from retain.testing import texts


def said(*contents: str, role: Role = Role.USER) -> list[Message]:
    return [Message(role, content) for content in contents]


def history(talk: ConversationMemory) -> list[str]:
    return [message.content for message in talk.get_history()]


# -- turns -----------------------------------------------------------------------------------


def test_a_turn_carries_its_role_and_number_and_is_searched_by_both_text_and_role():
    talk = ConversationMemory()
    turn = talk.add_turn("assistant", "Paris.", turn_number=2)
    talk.add_turn("user", "What is the capital of France?", turn_number=1, session="s1")
    assert turn.metadata == {"role": "assistant", "turn": 2}
    assert (turn.memory_type, turn.source) == (MemoryType.EPISODIC, "assistant")
    assert [r.memory.content for r in talk.search("assistant", 3)] == ["Paris."]
    assert talk.search("capital")[0].memory.metadata == {"role": "user", "turn": 1, "session": "s1"}


@pytest.mark.parametrize(
    "role", ["Bob", "発言者", "", "user ", "tool", Role.SYSTEM, "x" * 2000, "a\nb"]
)
def test_any_text_is_a_role(role: str):
    talk = ConversationMemory()
    turn = talk.add_turn(role, "hello")
    assert turn.metadata["role"] == str(role)
    assert talk.turns() == [turn]


def test_whoever_has_no_role_in_the_protocol_speaks_by_name_in_the_window():
    talk = ConversationMemory()
    talk.add_turn("Bob", "hello")
    talk.add_turn("assistant", "hi")
    assert [(m.role, m.content) for m in talk.get_history()] == [
        (Role.USER, "Bob: hello"),
        (Role.ASSISTANT, "hi"),
    ]


def test_equal_turns_are_two_memories():
    talk = ConversationMemory()
    one, other = talk.add_turn("user", "ok"), talk.add_turn("user", "ok")
    assert one.id != other.id
    assert len(talk.turns()) == len(talk.search("ok")) == 2


def test_that_nothing_was_said_is_a_turn_too():
    talk = ConversationMemory()
    assert talk.add_turn("user", "").content == ""
    assert len(talk.turns()) == 1


def test_turns_stand_in_the_order_in_which_they_were_said():
    talk = ConversationMemory()
    talk.add_turn("user", "third", created_at=30.0)
    talk.add_turn("user", "first", created_at=datetime(1970, 1, 1, 0, 0, 10, tzinfo=timezone.utc))
    talk.add_turn("user", "second b", created_at=20.0, turn_number=2)
    talk.add_turn("user", "second a", created_at=20.0, turn_number=1)
    talk.add_turn("user", "second c", created_at=20.0, turn_number=2)
    assert [turn.content for turn in talk.turns()] == [
        "first",
        "second a",
        "second b",
        "second c",
        "third",
    ]


def test_a_turn_that_left_the_window_is_still_found_and_a_note_is_no_turn():
    talk = ConversationMemory(max_messages=2)
    talk.add_turn("user", "My cat is called Miu")
    talk.add_many(said("one", "two", "three"))
    note = talk.remember("Miu eats fish", metadata={"turn": "over a new leaf"})
    assert history(talk) == ["two", "three"]
    said_of_it = [result.memory.content for result in talk.search("Miu")[:2]]
    assert said_of_it == ["My cat is called Miu", "Miu eats fish"]
    assert note.id not in {turn.id for turn in talk.turns()} and len(talk.turns()) == 4


def test_turns_outlive_the_process_and_the_window_does_not(tmp_path: Path):
    with ConversationMemory(store=SQLiteStore(tmp_path / "talk.db")) as talk:
        talk.add_turn("user", "My cat is called Miu", turn_number=1)
    with ConversationMemory(store=SQLiteStore(tmp_path / "talk.db")) as talk:
        assert [turn.content for turn in talk.turns()] == ["My cat is called Miu"]
        assert talk.search("cat")[0].memory.metadata["turn"] == 1
        assert history(talk) == []


def test_conversations_of_two_people_share_a_store_and_nothing_else():
    store = InMemoryStore()
    ann = ConversationMemory(store=store, scope=Scope(user="ann"))
    bob = ConversationMemory(store=store, scope=Scope(user="bob"))
    ann.add_turn("user", "My door code is 4711")
    assert (bob.search("door code"), bob.turns(), history(bob)) == ([], [], [])


@pytest.mark.parametrize(
    ("arguments", "fields", "error"),
    [
        ((None, "x"), {}, InvalidType),
        ((5, "x"), {}, InvalidType),
        (("user", None), {}, InvalidType),
        (("user", b"x"), {}, InvalidType),
        (("user", "lone \ud800"), {}, InvalidValue),
        (("lone \ud800", "x"), {}, InvalidValue),
        (("user", "x"), {"turn_number": -1}, InvalidValue),
        (("user", "x"), {"turn_number": "1"}, InvalidType),
        (("user", "x"), {"session": b"bytes"}, InvalidType),
        (("user", "x"), {"created_at": datetime(2026, 1, 1)}, InvalidValue),
        (("user", "x"), {"created_at": "now"}, InvalidType),
    ],
    ids=ascii,
)
def test_a_turn_that_breaks_a_rule_is_neither_kept_nor_in_the_window(
    arguments: Any, fields: dict[str, Any], error: type[Exception]
):
    talk = ConversationMemory()
    with pytest.raises(error):
        talk.add_turn(*arguments, **fields)
    assert (talk.turns(), history(talk), talk.memory_count) == ([], [], 0)


def test_a_rejected_turn_is_neither_kept_nor_in_the_window_and_a_changed_one_is_both():
    talk = ConversationMemory(pre_save=lambda text: None if "secret" in text else text.upper())
    with pytest.raises(Rejected):
        talk.add_turn("user", "a secret")
    with pytest.raises(Rejected):
        talk.add_many(said("fine", "a secret"))
    assert (talk.turns(), history(talk)) == ([], [])
    talk.add_turn("user", "hello")
    assert ([turn.content for turn in talk.turns()], history(talk)) == (["HELLO"], ["HELLO"])


# -- the window ------------------------------------------------------------------------------


@given(contents=st.lists(texts(8), max_size=12), size=st.integers(1, 6), n=st.integers(0, 9))
def test_the_window_holds_the_last_messages_and_the_store_every_turn(
    contents: list[str], size: int, n: int
):
    talk = ConversationMemory(max_messages=size)
    talk.add_many(said(*contents[:3]))
    for message in said(*contents[3:]):
        talk.add(message)
    assert history(talk) == contents[-size:]
    assert len(talk) == min(size, len(contents))
    assert [m.content for m in talk.get_recent(n)] == (contents[-size:][-n:] if n else [])
    assert [turn.content for turn in talk.turns()] == [c for c in contents if c.strip()]


def test_the_window_holds_fifty_unless_told_otherwise():
    talk = ConversationMemory()
    talk.add_many(said(*map(str, range(60))))
    assert (len(talk), history(talk)[0], talk.memory_count) == (50, "10", 60)


@pytest.mark.parametrize(("size", "kept"), [(1, 1), (2, 1), (3, 3), (4, 4), (9, 4)])
def test_the_window_never_begins_with_an_answer_whose_call_has_slid_out(size: int, kept: int):
    talk = ConversationMemory(max_messages=size)
    call = ToolCall("weather", {"city": "Rome"})
    talk.add(Message(Role.USER, "How is the weather?"))
    talk.add(Message(Role.ASSISTANT, "", tool_calls=[call]))
    talk.add(Message(Role.TOOL, "sunny", tool_name="weather", tool_call_id=call.id))
    talk.add(Message(Role.ASSISTANT, "It is sunny."))
    roles = [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert [message.role for message in talk.get_history()] == roles[-kept:]
    assert [message.role for message in talk.get_recent(2)] == [Role.ASSISTANT]
    assert [turn.content for turn in talk.turns()] == ["How is the weather?", "It is sunny."]


def test_clearing_empties_the_window_and_keeps_the_turns():
    talk = ConversationMemory()
    talk.add_many(said("My cat is called Miu"))
    talk.clear()
    assert (history(talk), len(talk)) == ([], 0)
    assert talk
    assert len(talk.search("cat")) == 1
    talk.forget(talk.turns()[0].id)
    assert talk.search("cat") == []


def test_a_window_is_carried_on_as_json_and_its_turns_are_not_kept_twice():
    store = InMemoryStore()
    talk = ConversationMemory(max_messages=2, store=store)
    talk.add_many(said("one", "two", "three"))
    data = talk.to_dict()
    again = ConversationMemory.from_dict(data, store=store)
    assert (history(again), again.max_messages, again.memory_count) == (["two", "three"], 2, 3)
    data["messages"].clear()
    assert history(again) == ["two", "three"] and len(talk.to_dict()["messages"]) == 2
    assert ConversationMemory.from_dict({}).max_messages == 50


def test_what_is_handed_out_is_no_part_of_the_window():
    talk = ConversationMemory()
    talk.add_many(said("one"))
    talk.get_history().clear()
    talk.get_recent(1).clear()
    assert history(talk) == ["one"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda t: ConversationMemory(0), InvalidValue),
        (lambda t: ConversationMemory("5"), InvalidType),
        (lambda t: t.add("hello"), InvalidType),
        (lambda t: t.add(Memory(content="x")), InvalidType),
        (lambda t: t.add_many([*said("fine"), {"role": "user"}]), InvalidType),
        (lambda t: t.get_recent(-1), InvalidValue),
        (lambda t: t.get_recent("1"), InvalidType),
        (lambda t: ConversationMemory.from_dict({"max_messages": 0}), InvalidValue),
        (lambda t: ConversationMemory.from_dict({"messages": [{"role": "nobody"}]}), InvalidValue),
        (lambda t: ConversationMemory.from_dict({"messages": 5}), InvalidType),
        (lambda t: ConversationMemory.from_dict([]), InvalidType),
    ],
)
def test_a_wrong_argument_is_refused_with_nothing_changed(call: Any, error: type[Exception]):
    talk = ConversationMemory()
    with pytest.raises(error):
        call(talk)
    assert (history(talk), talk.memory_count) == ([], 0)


def test_a_window_is_resumed_within_its_limit_and_no_turn_is_kept_again():
    memory = ConversationMemory(2)
    call = ToolCall("find", {}, "c")
    answer = Message(Role.TOOL, "Köln", "find", tool_call_id="c")
    memory.resume([Message(Role.ASSISTANT, tool_calls=[call]), answer, Message(Role.USER, "Hi")])
    assert memory.get_history() == [Message(Role.USER, "Hi")]
    assert memory.turns() == []
    with pytest.raises(InvalidType, match="no Message"):
        memory.resume(["Hi"])  # type: ignore[list-item]
    assert len(memory) == 1
