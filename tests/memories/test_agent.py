"""The agentic specification's memory, by what programs rely on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retain import (
    AgentMemory,
    InMemoryStore,
    JSONFileStore,
    Memory,
    MemoryImportance,
    MemoryType,
    SQLiteStore,
    VectorStoreMemory,
    clock,
)

NOW = 2_000_000_000.0


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)


def test_it_lives_in_the_process_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with AgentMemory() as memory, AgentMemory() as other:
        memory.remember("tea")
        assert (memory.memory_count, other.memory_count) == (1, 0)
        assert isinstance(memory.store, InMemoryStore) and memory.store.path is None
    assert list(tmp_path.rglob("*")) == []


def test_a_memory_is_an_event_of_medium_importance_unless_told_otherwise():
    memory = AgentMemory()
    plain = memory.remember("tea")
    assert (plain.memory_type, plain.importance, plain.metadata, plain.tags) == (
        MemoryType.EPISODIC,
        MemoryImportance.MEDIUM,
        {},
        [],
    )
    told = memory.remember(
        "How to brew",
        memory_type=MemoryType.PROCEDURAL,
        importance=MemoryImportance.CRITICAL,
        metadata={"cups": 2},
        tags=["kitchen"],
    )
    assert (told.memory_type, told.importance_score) == (MemoryType.PROCEDURAL, 1.0)
    assert memory.recall("kitchen")[0].memory.metadata == {"cups": 2}
    with pytest.raises(TypeError):
        memory.remember("tea", MemoryType.SEMANTIC)  # type: ignore[misc]


def test_results_are_ordered_by_half_relevance_and_recency_and_importance():
    memory = AgentMemory()
    week = 7 * clock.DAY
    for name, content, importance, age in (
        ("relevant", "green tea", 0.0, 2 * week),  # 0.5 + 0.075 + 0.0
        ("recent", "tea", 0.0, 0.0),  # 0.5 r + 0.3 + 0.0
        ("important", "tea", 1.0, week),  # 0.5 r + 0.15 + 0.2
    ):
        memory.store.save(Memory(name, content, importance=importance, created_at=NOW - age))
    results = memory.recall("green tea")
    assert [result.memory.id for result in results] == ["relevant", "important", "recent"]
    for result in results:
        assert result.combined_score == pytest.approx(
            0.5 * result.relevance_score
            + 0.3 * result.recency_score
            + 0.2 * result.memory.importance_score
        )
    assert [result.recency_score for result in results] == pytest.approx([0.25, 0.5, 1.0])
    assert results[1].relevance_score == results[2].relevance_score < 0.5


def test_the_half_life_of_recency_can_be_set():
    memory = AgentMemory(half_life=1)
    memory.remember("tea", created_at=NOW - clock.DAY)
    assert memory.recall("tea")[0].recency_score == 0.5


@pytest.mark.parametrize(
    "query",
    ["AND OR NOT", '"tea', "tea*", "content:tea", "tea; DROP TABLE memories", "(tea", "-tea"],
)
def test_a_query_is_words_and_never_a_language(query: str, tmp_path: Path):
    with AgentMemory(SQLiteStore(tmp_path / "memory.db")) as memory:
        memory.remember("coffee content table")
        expected = ["tea"] if "tea" in query else []
        memory.remember("tea")
        found = [result.memory.content for result in memory.recall(query, k=1)]
        assert found in (expected, ["coffee content table"])
        assert memory.memory_count == 2


def test_a_json_file_is_one_array_that_people_and_other_programs_read(tmp_path: Path):
    path = tmp_path / "deep" / "memories.json"
    with AgentMemory(store=JSONFileStore(str(path))) as memory:
        memory.remember("Prefers 東京", importance=MemoryImportance.HIGH, tags=["city"])
        [row] = json.loads(path.read_text(encoding="utf-8"))
        assert (row["content"], row["importance"], row["memory_type"]) == (
            "Prefers 東京",
            3,
            "episodic",
        )
        assert "東京" in path.read_text(encoding="utf-8")
    assert [child.name for child in path.parent.iterdir() if child.suffix != ".lock"] == [path.name]


def test_two_programs_on_one_json_file_see_each_other(tmp_path: Path):
    path = tmp_path / "memories.json"
    with AgentMemory(JSONFileStore(path)) as one, AgentMemory(JSONFileStore(path)) as other:
        one.remember("tea")
        other.remember("coffee")
        assert len(one.recall("tea coffee")) == len(other.recall("tea coffee")) == 2
        one.forget(one.recall("coffee")[0].memory.id)
        assert other.recall("coffee") == []


def test_a_search_by_meaning_finds_what_shares_no_word_unless_it_has_no_embedder():
    puppy, invoice = "We adopted a puppy from the shelter", "The invoice is due in May"
    for options, expected in (({}, [puppy]), ({"embedder": None}, [])):
        memory = VectorStoreMemory(**options)
        memory.remember(puppy, memory_type=MemoryType.SEMANTIC)
        memory.remember(invoice, memory_type=MemoryType.SEMANTIC)
        found = memory.search("Which dog do they have?", 3)
        assert [result.memory.content for result in found] == expected
        assert memory.search("invoice", 3)[0].memory.content == invoice
