from __future__ import annotations

from typing import Any

import pytest

from foreign_exports import as_file, as_lines, contents, kept
from retain import AgentMemory, MemoryType, Scope
from retain.moving import import_path

TEA = {
    "id": "7d1b1f5e-0000-4000-8000-000000000001",
    "memory": "Trinkt grünen Tee",
    "hash": "f00",
    "user_id": "ann",
    "agent_id": None,
    "run_id": "r1",
    "metadata": {"page": 3},
    "categories": ["food", "health"],
    "created_at": "2026-02-03T10:00:00.123456-08:00",
    "updated_at": "2026-02-04T10:00:00-08:00",
}


@pytest.mark.parametrize(
    "source",
    [
        as_file([TEA]),
        as_file({"results": [TEA]}),
        as_file({"count": 1, "next": None, "results": [TEA]}, 2),
        as_file({"memories": [TEA]}),
        as_lines(TEA),
    ],
)
def test_everything_of_a_memory_of_mem0_is_kept(source: Any):
    memory = AgentMemory()
    report = import_path(memory, source)
    assert (report.format, report.imported, report.troubles) == ("mem0", 1, [])
    (found,) = kept(memory)
    assert (found.id, found.content) == (TEA["id"], "Trinkt grünen Tee")
    assert (found.category, found.tags) == ("food", ["food", "health"])
    assert found.persistent and found.memory_type is MemoryType.SEMANTIC
    assert found.metadata == {"page": 3, "user_id": "ann", "run_id": "r1"}
    assert found.created_at == 1_770_141_600.123456
    assert found.updated_at == 1_770_228_000


def test_its_owners_are_its_scope_for_who_keeps_scopes():
    memory = AgentMemory()
    scope = Scope(user="ann", session="r1")
    anns = AgentMemory(memory.store, scope=scope)
    import_path(memory, as_file([TEA]), scoped={scope: anns}.__getitem__)
    assert contents(anns) == ["Trinkt grünen Tee"]


def test_one_that_expires_is_not_persistent():
    memory = AgentMemory()
    gone = {**TEA, "id": "gone", "expiration_date": "2026-02-05"}
    stays = {**TEA, "id": "stays", "expiration_date": "2999-01-01"}
    report = import_path(memory, as_file({"results": [gone, stays]}))
    assert (report.imported, report.expired) == (1, 1)
    assert not kept(memory)[0].persistent


def test_relations_come_as_sentences():
    relation = {"source": "ann", "relationship": "lives_in", "target": "Kraków"}
    old = {"source": "ann", "relationship": "knows", "destination": "bob"}
    memory = AgentMemory()
    for indent in (None, 2):
        found = as_file({"results": [], "relations": [relation, old, 3, {"source": "x"}]}, indent)
        report = import_path(memory, found)
        assert len(report.unreadable) == 2
    assert report.known == 2
    assert sorted(contents(memory)) == ["ann knows bob", "ann lives_in Kraków"]


def test_a_record_that_is_none_is_told_with_its_place():
    records = [
        {"id": "a", "memory": None},
        7,
        {**TEA, "created_at": "yesterday"},
        {**TEA, "categories": "food"},
        {**TEA, "metadata": []},
        {**TEA, "user_id": 7},
        TEA,
    ]
    memory = AgentMemory()
    report = import_path(memory, as_file({"results": records}))
    assert report.imported == 1
    places = [f"results, record {number}" for number in range(1, 7)]
    assert [each.where for each in report.unreadable] == places
    schema = import_path(AgentMemory(), as_file({"name": "Ann"}), format="mem0")
    assert "get_all()" in schema.unreadable[0].reason
