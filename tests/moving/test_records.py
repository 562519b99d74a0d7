from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidType, InvalidValue
from retain.models import Memory, MemoryImportance, MemoryType
from retain.moving.records import Identities, agentic_record, knowledge_record, same, to_memory
from retain.testing.strategies import memories

NOW = 1_773_360_000.0


def read(record: object, kind: MemoryType = MemoryType.SEMANTIC) -> Memory:
    return to_memory(record, Identities(), NOW, kind)


def with_a_member_called_retain(memory: Memory, value: Any) -> Memory:
    return memory.copy(metadata={**memory.metadata, "retain": value})


AWKWARD = st.one_of(
    memories(),
    st.builds(
        with_a_member_called_retain,
        memories(),
        st.sampled_from([{}, {"tags": ["x"]}, {"metadata": {"retain": 1}}, {"other": 1}, "text"]),
    ),
)


@given(AWKWARD)
def test_retains_own_record_comes_back_as_the_same_memory(memory: Memory):
    assert read(json.loads(json.dumps(memory.to_dict()))) == memory


@given(AWKWARD)
def test_a_record_of_selectools_comes_back_as_the_same_memory(memory: Memory):
    assert read(json.loads(json.dumps(knowledge_record(memory)))) == memory


@given(AWKWARD)
def test_a_record_of_codomyrmex_comes_back_as_the_same_memory(memory: Memory):
    record = json.loads(json.dumps(agentic_record(memory)))
    assert read(record, MemoryType.EPISODIC) == memory


def test_a_foreign_record_has_only_the_members_that_the_other_program_knows():
    memory = Memory("m1", "x", tags=["a"], source="me", category="c", persistent=True)
    assert set(knowledge_record(memory)) == {
        *("id", "content", "category", "importance", "persistent", "ttl_days"),
        *("created_at", "updated_at", "metadata"),
    }
    assert set(agentic_record(memory)) == {
        *("id", "content", "memory_type", "importance", "metadata", "tags"),
        *("created_at", "access_count", "last_accessed"),
    }


def test_a_plain_memory_carries_nothing_in_its_metadata():
    plain = Memory("m1", "x", memory_type=MemoryType.SEMANTIC, metadata={"page": 3})
    assert knowledge_record(plain)["metadata"] == {"page": 3}
    assert agentic_record(plain)["metadata"] == {"page": 3}


def test_an_unknown_type_becomes_semantic_and_stays_in_the_metadata():
    memory = read({"content": "x", "memory_type": "knowledge"})
    assert memory.memory_type is MemoryType.SEMANTIC
    assert memory.metadata == {"memory_type": "knowledge"}


def test_a_type_is_known_however_it_is_spelled():
    for name in ("procedural", "PROCEDURAL", "MemoryType.PROCEDURAL"):
        memory = read({"content": "x", "memory_type": name})
        assert memory.memory_type is MemoryType.PROCEDURAL
        assert memory.metadata == {}


def test_a_record_without_a_type_is_of_the_kind_that_its_program_means():
    assert read({"content": "x"}).memory_type is MemoryType.SEMANTIC
    assert read({"content": "x"}, MemoryType.EPISODIC).memory_type is MemoryType.EPISODIC


@pytest.mark.parametrize(
    ("importance", "score"),
    [(4, 1.0), (1, 0.25), ("high", 0.75), ("MemoryImportance.HIGH", 0.75), (0.8, 0.8), (1.0, 1.0)],
)
def test_importance_is_a_step_or_a_fraction(importance: object, score: float):
    assert read({"content": "x", "importance": importance}).importance_score == score


def test_the_exact_importance_wins_over_the_step():
    assert read({"content": "x", "importance": 4, "importance_score": 0.1}).importance_score == 0.1


def test_an_importance_that_is_none_is_refused_rather_than_guessed():
    for value in ("huge", 7, -0.5, 1.5):
        with pytest.raises(InvalidValue, match="importance"):
            read({"content": "x", "importance": value})


def test_what_is_persistent_keeps_no_time_to_live_but_tells_of_it():
    memory = read({"content": "x", "persistent": True, "ttl_days": 7})
    assert memory.persistent and memory.ttl_days is None
    assert memory.metadata == {"ttl_days": 7}


def test_times_may_be_text_and_a_timestamp_is_the_time_of_creation():
    memory = read({"content": "x", "timestamp": "2026-03-13T00:00:00Z", "updated_at": NOW + 5})
    assert (memory.created_at, memory.updated_at) == (NOW, NOW + 5)
    assert memory.metadata == {}


def test_a_record_without_a_time_gets_the_time_of_its_source():
    assert read({"content": "x"}).created_at == NOW


def test_a_record_without_an_id_gets_the_same_one_in_every_run_and_equal_ones_get_two():
    records = [{"content": "ok"}, {"content": "ok"}, {"content": "no"}]
    first, again = Identities(), Identities()
    ids = [to_memory(record, first, NOW).id for record in records]
    assert len(set(ids)) == 3
    assert [to_memory(record, again, NOW + 1).id for record in records] == ids


def test_an_id_that_is_a_number_is_taken_as_text():
    assert read({"content": "x", "id": 17}).id == "17"


def test_members_that_are_not_known_stay_in_the_metadata():
    assert read({"content": "x", "mood": "good"}).metadata == {"mood": "good"}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (None, "missing or null"),
        (["content"], "array"),
        ("content", "text"),
        (3, "number"),
        ({}, '"content" is missing'),
        ({"content": None}, '"content" is missing'),
        ({"content": 3}, '"content" is number'),
        ({"content": "x", "metadata": [1]}, '"metadata" is array'),
        ({"content": "x", "created_at": "soon"}, "created_at 'soon'"),
        ({"content": "x", "tags": "a"}, "tags"),
        ({"content": "x", "persistent": "yes"}, "persistent"),
        ({"content": "x\ud800"}, "surrogate"),
        ({"content": "x", "metadata": {"a": float("nan")}}, "metadata.a"),
    ],
)
def test_what_is_no_memory_is_refused_with_the_reason(record: object, reason: str):
    with pytest.raises((InvalidValue, InvalidType), match=reason):
        read(record)


def test_two_memories_say_the_same_whatever_their_times_and_counts():
    one = Memory("m1", "x", created_at=1.0, access_count=3, revision=7)
    assert same(one, Memory("m2", "x", created_at=2.0))
    assert not same(one, Memory("m1", "y", created_at=1.0))
    assert not same(one, Memory("m1", "x", importance=MemoryImportance.HIGH))
