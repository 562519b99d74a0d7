from __future__ import annotations

import json
import operator

import pytest

from retain import (
    ConversationMemory,
    InvalidValue,
    MemoryImportance,
    MemoryType,
    NotFound,
)
from retain.evaluation import evaluate, load_dataset
from retain.moving import export_jsonl

MEMORIES = [
    {"id": "m1", "content": "Ann drinks tea"},
    {
        "id": 2,
        "content": "四月に東京へ行く",
        "role": "user",
        "session": "s1",
        "created_at": "2026-03-13T10:15:00Z",
        "importance": "high",
        "memory_type": "semantic",
        "tags": ["travel"],
        "metadata": {"page": 3},
    },
]
QUERIES = [
    {"query": "what does Ann drink?", "relevant": ["m1"]},
    {"id": "q2", "query": "東京", "relevant": [2], "category": "travel", "asked_at": 86400},
    {"query": "who flies?", "relevant": []},
]


def load(write, memories=MEMORIES, queries=QUERIES, **options):
    first = write("mine/memories.jsonl", *memories, lines=True)
    second = write("mine/queries.jsonl", *queries, lines=True)
    return load_dataset(first, second, **options)


def test_memories_and_queries_are_one_case(write, tmp_path):
    dataset = load(write)
    assert (dataset.name, dataset.format) == ("mine/memories.jsonl", "plain")
    (case,) = dataset.cases
    first, second = case.items
    assert (first.id, first.content, first.role, first.created_at) == (
        "m1",
        "Ann drinks tea",
        None,
        None,
    )
    assert (second.id, second.role, second.session) == ("2", "user", "s1")
    assert second.created_at == 1773396900.0
    assert second.fields == {
        "importance": MemoryImportance.HIGH,
        "memory_type": MemoryType.SEMANTIC,
        "tags": ["travel"],
        "metadata": {"page": 3},
    }
    assert [(q.id, q.relevant, q.category, q.asked_at) for q in case.questions] == [
        ("line 1", {"m1"}, "general", None),
        ("q2", {"2"}, "travel", 86400.0),
    ]
    assert dataset.left_out == {"without evidence": 1}
    assert load_dataset(tmp_path / "mine") == dataset


def test_an_own_name_is_kept(write, tmp_path):
    first = write("notes.jsonl", *MEMORIES, lines=True)
    second = write("asked.jsonl", *QUERIES, lines=True)
    assert load_dataset(first, second).name == "notes.jsonl"
    with pytest.raises(InvalidValue, match="name the file of queries"):
        load_dataset(first)


def test_a_folder_without_the_two_files_is_not_there(tmp_path, write):
    with pytest.raises(NotFound, match=r"has no memories\.jsonl"):
        load_dataset(tmp_path)
    path = write("memories.jsonl", *MEMORIES, lines=True)
    with pytest.raises(NotFound, match=r"has no queries\.jsonl"):
        load_dataset(tmp_path)
    with pytest.raises(InvalidValue, match="is a folder"):
        load_dataset(tmp_path, path)


def test_sessions_can_be_found_where_every_memory_has_one(write):
    with pytest.raises(InvalidValue, match="not every memory belongs to a session"):
        load(write, unit="session")
    memories = [{**each, "session": "s"} for each in MEMORIES]
    case = load(write, memories, unit="session-document").cases[0]
    assert [item.content for item in case.items] == ["Ann drinks tea\nuser: 四月に東京へ行く"]
    assert [q.relevant for q in case.questions] == [{"s"}, {"s"}]


def test_what_retain_exports_is_taken_as_it_was(write, tmp_path):
    talk = ConversationMemory()
    talk.add_turn("Ann", "I drink tea", turn_number=7, session="s", created_at=100.0)
    talk.remember("東京", importance=0.9, tags=["x"], metadata={"page": 3, "role": 5})
    with (tmp_path / "memories.jsonl").open("wb") as file:
        export_jsonl(talk.engine.store, file)
    ids = {memory.content: memory.id for memory in talk.engine.store.iterate()}
    queries = [{"query": "tea", "relevant": [ids["I drink tea"]]}]
    write("queries.jsonl", *queries, lines=True)
    items = {item.content: item for item in load_dataset(tmp_path).cases[0].items}
    turn = items["I drink tea"]
    assert (turn.role, turn.session, turn.created_at) == ("Ann", "s", 100.0)
    assert items["東京"].fields["importance_score"] == 0.9
    assert items["東京"].role is None
    copy = ConversationMemory()
    copy.close = lambda: None
    assert evaluate(load_dataset(tmp_path), lambda: copy).scores()["recall@1"] == 1
    of_store = {"id", "revision", "access_count", "last_accessed", "updated_at"}

    def kept(memory):
        found = [each.to_dict() for each in memory.engine.store.iterate()]
        return [{k: v for k, v in each.items() if k not in of_store} for each in found]

    before, after = kept(talk), kept(copy)
    for each in before:
        if "session" in each["metadata"]:
            each["metadata"]["session"] = "session_1"  # which is all that is changed
    key = operator.itemgetter("content")
    assert sorted(after, key=key) == sorted(before, key=key)


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ({"content": "x"}, "memories.jsonl line 2: it has no 'id'"),
        ({"id": "x"}, "memories.jsonl line 2: it has no 'content'"),
        ({"id": "x", "content": 1}, "line 2: content is 1; give text"),
        ({"id": "x", "content": "\ud800"}, "line 2: content is no text"),
        ({"id": "m1", "content": "x"}, "two memories have the id 'm1'"),
        ({"id": "x", "content": "x", "text": "y"}, "line 2: it has 'text', which is no member"),
        ({"id": "x", "content": "x", "created_at": "May"}, "line 2: created_at is no time"),
        ({"id": "x", "content": "x", "created_at": 1e99}, "line 2: created_at is no time"),
        ({"id": "x", "content": "x", "importance": 7}, "line 2: it is no memory: importance=7"),
        ({"id": "x", "content": "x", "importance": "big"}, "line 2: importance is 'big'; give one"),
        ({"id": "x", "content": "x", "memory_type": "odd"}, "line 2: memory_type is 'odd'"),
        ({"id": "x", "content": "x", "tags": "a"}, "line 2: it is no memory: tags"),
        ({"id": "x", "content": "x", "metadata": [1]}, "line 2: it is no memory: metadata"),
        ({"id": "x", "content": "x", "ttl_days": -1}, "line 2: it is no memory: ttl_days"),
        ([1], "line 2: it is a list; give a JSON object"),
        ({"content": "x", "importance_score": 3}, "line 2: it is no memory: importance_score"),
    ],
)
def test_a_memory_that_is_none_is_named_with_its_line(write, tmp_path, memory, message):
    write("mine/queries.jsonl", QUERIES[0], lines=True)
    path = write("mine/memories.jsonl", MEMORIES[0], lines=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(memory))
    with pytest.raises(InvalidValue) as caught:
        load_dataset(path.parent)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"relevant": ["m1"]}, "queries.jsonl line 1: it has no 'query'"),
        ({"query": " ", "relevant": ["m1"]}, "line 1: query is blank"),
        ({"query": "x"}, "line 1: it has no 'relevant'"),
        ({"query": "x", "relevant": "m1"}, 'line 1: relevant is "m1"; give a list'),
        ({"query": "x", "relevant": ["m9"]}, "relevant has 'm9', which is no memory's id"),
        ({"query": "x", "relevant": ["m1"], "category": 1}, "line 1: category is 1; give text"),
        ({"query": "x", "relevant": ["m1"], "asked_at": "?"}, "line 1: asked_at is no time"),
    ],
)
def test_a_query_that_is_none_is_named_with_its_line(write, query, message):
    with pytest.raises(InvalidValue) as caught:
        load(write, queries=[query])
    assert message in str(caught.value)
