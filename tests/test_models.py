"""The record and its views: what it holds, what it refuses, and that nothing is lost on the way."""

from __future__ import annotations

import itertools
import json
import math
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain import (
    Filter,
    InvalidType,
    InvalidValue,
    KnowledgeEntry,
    Memory,
    MemoryImportance,
    MemoryType,
    RetainError,
    RetrievalResult,
    Scope,
    clock,
    from_entry,
    to_entry,
)
from retain.models import one_line
from retain.testing import json_objects, memories, texts

UTC = timezone.utc
NOW = 2_000_000_000.25

scopes = st.builds(
    Scope,
    *[st.none() | texts(8).filter(bool) for _ in range(3)],
)


@st.composite
def whole_memories(draw: st.DrawFn) -> Memory:
    """Any memory, as a store might give it back."""
    return draw(memories()).copy(scope=draw(scopes), revision=draw(st.integers(0, 2**60)))


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(clock, "now", lambda: NOW)
    return NOW


# -- importance ------------------------------------------------------------------------------


def test_importance_has_four_steps_that_compare_by_themselves():
    steps = [MemoryImportance.LOW, MemoryImportance.MEDIUM]
    steps += [MemoryImportance.HIGH, MemoryImportance.CRITICAL]
    assert [step.value for step in steps] == [1, 2, 3, 4]
    assert all(one < other for one, other in itertools.pairwise(steps))
    assert MemoryImportance.HIGH >= MemoryImportance.HIGH > MemoryImportance.LOW
    assert max(steps) is MemoryImportance.CRITICAL
    with pytest.raises(TypeError):
        _ = MemoryImportance.LOW < 2


@pytest.mark.parametrize("step", MemoryImportance)
def test_a_step_is_a_quarter_of_one_each(step: MemoryImportance):
    assert Memory(importance=step).importance_score == step.value / 4
    assert Memory(importance=step.value / 4).importance is step


@given(score=st.floats(0, 1))
def test_the_step_of_a_number_is_the_nearest_one(score: float):
    step = MemoryImportance.nearest(score)
    assert abs(step.score - score) == min(abs(each.score - score) for each in MemoryImportance)


def test_the_number_is_what_is_stored_and_the_step_a_view_that_can_be_set():
    memory = Memory(importance=0.3)
    assert (memory.importance_score, memory.importance) == (0.3, MemoryImportance.LOW)
    memory.importance = MemoryImportance.CRITICAL
    assert memory.importance_score == 1.0
    memory.importance = 0.6
    assert (memory.importance_score, memory.importance) == (0.6, MemoryImportance.MEDIUM)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (-0.1, InvalidValue),
        (1.0000001, InvalidValue),
        (3, InvalidValue),
        (math.nan, InvalidValue),
        (math.inf, InvalidValue),
        ("high", InvalidType),
        (True, InvalidType),
        (None, InvalidType),
    ],
)
def test_an_importance_that_is_none_is_refused_wherever_it_is_given(value: Any, error: Any):
    memory = Memory(importance=0.5)
    with pytest.raises(error, match="importance"):
        Memory(importance=value)
    with pytest.raises(error, match="importance"):
        memory.importance = value
    with pytest.raises(error, match="importance"):
        memory.copy(importance=value)
    assert memory.importance_score == 0.5


# -- a memory --------------------------------------------------------------------------------


def test_a_memory_needs_only_its_content_and_has_an_id_of_its_own(now: float):
    one, other = Memory(content="tea"), Memory(content="tea")
    assert one.id != other.id and str(uuid.UUID(one.id)) == one.id
    assert (one.memory_type, one.importance) == (MemoryType.EPISODIC, MemoryImportance.MEDIUM)
    assert (one.metadata, one.tags, one.access_count) == ({}, [], 0)
    assert (one.created_at, one.updated_at, one.last_accessed) == (now, now, now)
    assert (one.category, one.persistent, one.ttl_days, one.source) == ("general", False, None, "")
    assert (one.scope, one.revision, one.expires_at) == (Scope(), 0, None)


def test_the_fields_of_the_agentic_specification_are_positional():
    memory = Memory(
        "m1", "tea", MemoryType.SEMANTIC, MemoryImportance.HIGH, {"a": 1}, ["t"], 5.0, 2, 6.0
    )
    assert (memory.id, memory.content, memory.memory_type) == ("m1", "tea", MemoryType.SEMANTIC)
    assert (memory.importance, memory.metadata, memory.tags) == (
        MemoryImportance.HIGH,
        {"a": 1},
        ["t"],
    )
    assert (memory.created_at, memory.access_count, memory.last_accessed) == (5.0, 2, 6.0)


def test_access_counts_on_the_object(now: float):
    memory = Memory(created_at=5.0)
    memory.access()
    memory.access()
    assert (memory.access_count, memory.last_accessed, memory.updated_at) == (2, now, 5.0)


def test_a_single_text_is_no_list_of_tags():
    with pytest.raises(InvalidType, match="tags"):
        Memory(tags="tea")


@given(memory=whole_memories())
def test_a_copy_is_equal_and_shares_nothing(memory: Memory):
    copy = memory.copy()
    assert copy == memory
    copy.tags.append("new")
    copy.metadata["new"] = 1
    assert "new" not in memory.tags and copy != memory


@pytest.mark.parametrize(("ttl", "age", "gone"), [(1, 0.99, False), (1, 1.0, True), (0, 0, True)])
def test_a_memory_expires_when_its_days_are_over(ttl: float, age: float, gone: bool):
    memory = Memory(created_at=1e9, ttl_days=ttl)
    assert memory.expires_at == 1e9 + ttl * clock.DAY
    assert memory.is_expired(1e9 + age * clock.DAY) is gone
    assert Memory(created_at=1e9).is_expired(1e15) is False


def test_checking_makes_lists_of_tuples_and_rounds_times_to_microseconds():
    memory = Memory(content="x", metadata={"a": ({"b": (1, 2)},)}, created_at=1.23456789)
    checked = memory.checked()
    assert checked.metadata == {"a": [{"b": [1, 2]}]}
    assert (checked.created_at, checked.last_accessed) == (1.234568, 1.234568)


# -- JSON ------------------------------------------------------------------------------------


@given(memory=whole_memories())
def test_a_memory_comes_back_from_its_json_text_as_it_was(memory: Memory):
    text = json.dumps(memory.to_dict(), allow_nan=False)
    assert Memory.from_dict(json.loads(text)) == memory
    assert Memory.from_dict(memory.to_dict()) == memory


def test_an_object_has_both_views_of_importance_and_of_expiry():
    data = Memory(importance=0.3, created_at=0.0, ttl_days=2).to_dict()
    assert (data["importance"], data["importance_score"]) == (1, 0.3)
    assert (data["ttl_days"], data["expires_at"]) == (2, 2 * clock.DAY)


def test_an_object_shares_nothing_with_its_memory_in_either_direction():
    memory = Memory(content="x", metadata={"list": [1]}, tags=["t"])
    data = memory.to_dict()
    data["metadata"]["list"].append(2)
    data["tags"].append("u")
    assert (memory.metadata, memory.tags) == ({"list": [1]}, ["t"])
    again = Memory.from_dict(data)
    data["metadata"]["list"].append(3)
    data["tags"].append("v")
    assert (again.metadata, again.tags) == ({"list": [1, 2]}, ["t", "u"])


def test_only_the_content_is_required_and_null_counts_as_absent(now: float):
    bare = Memory.from_dict({"content": "x"})
    nulls = {name: None for name in Memory.__slots__ if name != "content"}
    null = Memory.from_dict({**nulls, "importance": None, "expires_at": None, "content": "x"})
    assert bare.created_at == now
    assert null == bare.copy(id=null.id)


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        ({"importance": 4}, {"importance_score": 1.0}),
        ({"importance": 4, "importance_score": 0.1}, {"importance_score": 0.1}),
        ({"importance": 1, "importance_score": None}, {"importance_score": 0.25}),
        ({"memory_type": "procedural"}, {"memory_type": MemoryType.PROCEDURAL}),
        ({"created_at": 10, "expires_at": 10 + clock.DAY}, {"ttl_days": 1.0}),
        ({"created_at": 10, "expires_at": 99, "ttl_days": 3}, {"ttl_days": 3}),
        ({"scope": {"user": "ann"}}, {"scope": Scope(user="ann")}),
        ({"mood": "good", "metadata": {"a": 1}}, {"metadata": {"mood": "good", "a": 1}}),
        ({"mood": "good", "metadata": {"mood": "bad"}}, {"metadata": {"mood": "bad"}}),
    ],
    ids=str,
)
def test_an_object_is_read_as_documented(data: dict[str, Any], fields: dict[str, Any]):
    memory = Memory.from_dict({"content": "x", **data})
    assert {name: getattr(memory, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "NoneType"),
        ([], "list"),
        ("text", "str"),
        ({}, "content"),
        ({"content": None}, "content"),
        ({"content": 5}, "content"),
        ({"content": "lone \ud800"}, "content"),
        ({"content": "x", "id": 5}, "id"),
        ({"content": "x", "id": ""}, "id"),
        ({"content": "x", "memory_type": "EPISODIC"}, "memory_type"),
        ({"content": "x", "memory_type": ["episodic"]}, "memory_type"),
        ({"content": "x", "importance": 5}, "importance"),
        ({"content": "x", "importance": "high"}, "importance"),
        ({"content": "x", "importance": True}, "importance"),
        ({"content": "x", "importance": 1.0}, "importance"),  # LOW, or the highest number?
        ({"content": "x", "importance_score": 1.5}, "importance_score"),
        ({"content": "x", "importance_score": "0.5"}, "importance_score"),
        ({"content": "x", "metadata": []}, "metadata"),
        ({"content": "x", "metadata": {"a": math.nan}}, "metadata.a"),
        ({"content": "x", "tags": "tea"}, "tags"),
        ({"content": "x", "tags": [5]}, "tag"),
        ({"content": "x", "created_at": "2026-03-13"}, "created_at"),
        ({"content": "x", "created_at": math.inf}, "created_at"),
        ({"content": "x", "access_count": -1}, "access_count"),
        ({"content": "x", "access_count": 1.5}, "access_count"),
        ({"content": "x", "persistent": 1}, "persistent"),
        ({"content": "x", "ttl_days": "7"}, "ttl_days"),
        ({"content": "x", "persistent": True, "ttl_days": 7}, "ttl_days"),
        ({"content": "x", "expires_at": "soon"}, "expires_at"),
        ({"content": "x", "scope": "ann"}, "scope"),
        ({"content": "x", "scope": {"team": "a"}}, "scope"),
        ({"content": "x", "scope": {"user": ""}}, "user"),
        ({"content": "x", "revision": -1}, "revision"),
        ({"content": "x", "mood": {1, 2}}, "mood"),
        ({"content": "x", "\ud800": 1}, "surrogate"),
        ({"content": "x", 5: 1}, "5"),
    ],
    ids=ascii,
)
def test_nonsense_is_refused_and_the_member_named(data: Any, said: str):
    with pytest.raises((InvalidValue, InvalidType), match=said):
        Memory.from_dict(data)


MEMBERS = [*Memory.__slots__, "importance", "expires_at", "mood"]


@given(
    data=st.dictionaries(st.sampled_from(MEMBERS), json_objects().map(lambda o: o.get("", o))),
    members=json_objects(),
)
def test_any_json_object_is_a_memory_that_keeps_the_rules_or_a_clear_error(
    data: dict[str, Any], members: dict[str, Any]
):
    try:
        memory = Memory.from_dict({**members, **data})
    except RetainError as error:
        assert str(error)
    else:
        assert memory.checked() == memory


# -- the knowledge specification's view ------------------------------------------------------


@given(memory=whole_memories())
def test_a_memory_as_an_entry_and_back_loses_nothing(memory: Memory):
    entry = to_entry(memory)
    assert from_entry(entry) == memory
    assert (entry.id, entry.content, entry.category) == (memory.id, memory.content, memory.category)
    assert (entry.importance, entry.persistent) == (memory.importance_score, memory.persistent)
    assert entry.ttl_days == memory.ttl_days
    assert entry.created_at == clock.as_datetime(memory.created_at)


offsets = st.integers(-12, 14).map(lambda hours: timezone(timedelta(hours=hours)))
moments = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1), timezones=offsets)


@st.composite
def entries(draw: st.DrawFn) -> KnowledgeEntry:
    persistent = draw(st.booleans())
    return KnowledgeEntry(
        draw(texts(20).filter(bool)),
        draw(texts()),
        draw(texts(8).filter(str.strip)),
        draw(st.floats(0, 1)),
        persistent,
        None if persistent else draw(st.none() | st.integers(0, 999) | st.floats(0, 999)),
        draw(moments),
        draw(moments),
        draw(json_objects()),
    )


@given(entry=entries())
def test_an_entry_as_a_memory_and_back_loses_nothing(entry: KnowledgeEntry):
    assert to_entry(from_entry(entry)) == entry
    assert from_entry(entry).memory_type is MemoryType.SEMANTIC


@given(memory=whole_memories(), entry=entries())
def test_what_is_changed_on_an_entry_is_changed_on_its_memory_and_nothing_else(
    memory: Memory, entry: KnowledgeEntry
):
    changed = to_entry(memory)
    changed.content, changed.category, changed.metadata = (
        entry.content,
        entry.category,
        entry.metadata,
    )
    expected = memory.copy(
        content=entry.content, category=entry.category, metadata=dict(entry.metadata)
    )
    assert from_entry(changed) == expected


def test_an_entry_shares_nothing_with_its_memory():
    memory = Memory(content="x", metadata={"list": [1]}, tags=["t"])
    entry = to_entry(memory)
    entry.metadata["list"].append(2)
    memory.tags.append("u")
    assert memory.metadata == {"list": [1]}
    assert from_entry(entry).tags == ["t"]


def test_an_entry_has_the_specified_defaults(now: float):
    entry = KnowledgeEntry(content="x")
    assert (entry.category, entry.importance, entry.persistent) == ("general", 0.5, False)
    assert (entry.ttl_days, entry.metadata) == (None, {})
    assert entry.created_at == clock.as_datetime(now)
    assert entry.id != KnowledgeEntry().id


def test_a_naive_time_of_an_entry_is_utc():
    entry = KnowledgeEntry("e1", "x", created_at=datetime(2026, 3, 13, 10, 15))
    assert from_entry(entry).created_at == datetime(2026, 3, 13, 10, 15, tzinfo=UTC).timestamp()


def test_an_entry_tells_whether_it_is_expired(now: float):
    hour = timedelta(hours=1)
    today = clock.as_datetime(now)
    assert KnowledgeEntry(ttl_days=1, created_at=today - 25 * hour).is_expired
    assert not KnowledgeEntry(ttl_days=1, created_at=today - 23 * hour).is_expired
    assert not KnowledgeEntry(created_at=today - 99_999 * hour).is_expired


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ({"id": "x"}, InvalidType),
        (Memory(), InvalidType),
        (KnowledgeEntry(importance=2), InvalidValue),
        (KnowledgeEntry(category=" "), InvalidValue),
        (KnowledgeEntry(persistent=True, ttl_days=1), InvalidValue),
        (KnowledgeEntry(created_at="2026-03-13"), InvalidType),  # type: ignore[arg-type]
        (KnowledgeEntry(metadata={"a": object()}), InvalidType),
        (KnowledgeEntry(metadata=[]), InvalidType),  # type: ignore[arg-type]
        (KnowledgeEntry(content=None), InvalidType),  # type: ignore[arg-type]
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_an_entry_that_breaks_a_rule_is_refused(entry: Any, error: type[Exception]):
    with pytest.raises(error):
        from_entry(entry)


# -- results and filters ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "combined"),
    [
        ((1.0, 1.0, 1.0), 1.0),
        ((0.0, 0.0, 0.0), 0.0),
        ((1.0, 0.0, 0.0), 0.5),
        ((0.0, 1.0, 0.0), 0.3),
        ((0.0, 0.0, 1.0), 0.2),
        ((0.8, 0.5, 0.75), 0.7),
        ((9.0, 9.0, 9.0), 1.0),
        ((-9.0, 0.0, 0.0), 0.0),
    ],
)
def test_the_combined_score_is_the_specified_sum_between_zero_and_one(scores: Any, combined: float):
    result = RetrievalResult(Memory("m1", "x"), *scores)
    assert result.combined_score == pytest.approx(combined)
    assert result.to_dict()["combined_score"] == result.combined_score
    assert result.to_dict()["memory"]["id"] == "m1"


FULL = Memory(
    "m1",
    "x",
    MemoryType.SEMANTIC,
    0.5,
    tags=["a", "b"],
    created_at=100.0,
    category="places",
    persistent=True,
)


@pytest.mark.parametrize(
    ("narrow", "passes"),
    [
        ({}, True),
        ({"memory_type": MemoryType.SEMANTIC}, True),
        ({"memory_type": MemoryType.EPISODIC}, False),
        ({"category": "places"}, True),
        ({"category": "Places"}, False),
        ({"tags": []}, True),
        ({"tags": ["a"]}, True),
        ({"tags": ("b", "a")}, True),
        ({"tags": dict.fromkeys("ac")}, False),
        ({"min_importance": 0.5}, True),
        ({"min_importance": MemoryImportance.MEDIUM}, True),
        ({"min_importance": MemoryImportance.HIGH}, False),
        ({"since": 100.0}, True),
        ({"since": 100.000001}, False),
        ({"since": datetime(1970, 1, 1, tzinfo=UTC)}, True),
        ({"until": 100.0}, False),
        ({"until": 100.000001}, True),
        ({"persistent": True}, True),
        ({"persistent": False}, False),
        ({"category": "places", "tags": ["a"], "since": 5, "until": 200, "persistent": True}, True),
        ({"category": "places", "tags": ["a"], "since": 5, "until": 50}, False),
    ],
    ids=str,
)
def test_a_filter_admits_what_passes_all_its_parts(narrow: dict[str, Any], passes: bool):
    assert Filter.of(**narrow).admits(FULL) is passes


@pytest.mark.parametrize(
    ("narrow", "error"),
    [
        ({"memory_type": "semantic"}, InvalidType),
        ({"category": 5}, InvalidType),
        ({"tags": "a"}, InvalidType),
        ({"tags": [5]}, InvalidType),
        ({"tags": [" "]}, InvalidValue),
        ({"min_importance": 2}, InvalidValue),
        ({"min_importance": "high"}, InvalidType),
        ({"since": datetime(2026, 1, 1)}, InvalidValue),
        ({"until": "tomorrow"}, InvalidType),
        ({"until": math.nan}, InvalidValue),
        ({"persistent": 1}, InvalidType),
    ],
    ids=str,
)
def test_a_filter_that_is_none_is_refused_and_the_part_named(narrow: Any, error: Any):
    [name] = narrow
    with pytest.raises(error, match=name.removesuffix("s")):
        Filter.of(**narrow)


@given(text=texts(100))
def test_one_line_holds_the_words_and_no_break(text: str):
    line = one_line(text)
    assert line.split() == text.split()
    assert len(line.splitlines()) <= 1 and line == line.strip()
