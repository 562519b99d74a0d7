"""What every face does, on whatever store it stands."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from foreign_store import ForeignStore
from retain import (
    AgentMemory,
    ConversationMemory,
    FileStore,
    InMemoryStore,
    InvalidType,
    InvalidValue,
    JSONFileStore,
    KnowledgeMemory,
    Memory,
    MemoryImportance,
    MemoryType,
    NotFound,
    Rejected,
    Scope,
    SQLiteStore,
    StoreClosed,
    VectorStoreMemory,
    clock,
)

UTC = timezone.utc
NOW = datetime(2026, 3, 13, 12, tzinfo=UTC)
Face = Any  # one of the four, as callers use them: by the calls that all share

FACES: dict[str, Callable[..., Face]] = {
    "agent": lambda place, **options: AgentMemory(**options),
    "agent on sqlite": lambda place, **options: AgentMemory(
        SQLiteStore(place / "memory.db"), **options
    ),
    "agent on json": lambda place, **options: AgentMemory(
        JSONFileStore(place / "memory.json"), **options
    ),
    "vector on files": lambda place, **options: VectorStoreMemory(
        FileStore(place / "memory"), **options
    ),
    "conversation": lambda place, **options: ConversationMemory(**options),
    "conversation on sqlite": lambda place, **options: ConversationMemory(
        store=SQLiteStore(place / "talk.db"), **options
    ),
    "knowledge": lambda place, **options: KnowledgeMemory(place / "knowledge", **options),
    "knowledge without files": lambda place, **options: KnowledgeMemory(None, **options),
    "knowledge on a foreign store": lambda place, **options: KnowledgeMemory(
        None, store=ForeignStore(), **options
    ),
}


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", NOW.timestamp)


@pytest.fixture(params=FACES)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Face]]:
    """Makes the face, with options."""
    made: list[Face] = []

    def make(**options: Any) -> Face:
        made.append(FACES[request.param](tmp_path, **options))
        return made[-1]

    yield make
    for face in made:
        face.close()


@pytest.fixture
def face(make: Callable[..., Face]) -> Face:
    return make()


def found(face: Face, query: str, **narrow: Any) -> list[str]:
    return sorted(result.memory.content for result in face.recall(query, **narrow))


# -- in and out ------------------------------------------------------------------------------


def test_what_was_remembered_is_recalled_at_once_by_its_id_and_its_words(face: Face):
    id = face.remember("The project deadline is March 1st").id
    [result] = face.recall("deadline of the project", k=5)
    assert (result.memory.id, result.memory.content) == (id, "The project deadline is March 1st")
    relevance = result.relevance_score
    assert 0.9 < relevance <= 1.0 if face.blends else relevance == 1.0
    assert result.recency_score == 1.0
    assert result.combined_score == pytest.approx(0.5 * relevance + 0.3 + 0.2 * 0.5)
    assert face.get(id).content == "The project deadline is March 1st"
    assert (face.get("missing"), face.memory_count) == (None, 1)


def test_what_is_given_is_what_is_stored(face: Face):
    content = "  Zeile eins\r\n\tZeile zwei: cafe\u0301 🏳️‍🌈 \u202eRTL  "
    id = face.remember(
        content, tags=["a b", "東京"], metadata={"n": [1, {"x": None}]}, importance=0.3, source="me"
    ).id
    memory = face.get(id)
    assert (memory.content, memory.tags, memory.importance_score, memory.source) == (
        content,
        ["a b", "東京"],
        0.3,
        "me",
    )
    assert memory.metadata == {"n": [1, {"x": None}]}


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("東京タワーに行った", "東京"),
        ("Le café est froid", "cafe\u0301"),
        ("Die STRASSE ist lang", "straße"),
        ("Моя кошка спит", "кошки"),
        ("المكتبة مغلقة اليوم", "المكتبة"),
        ("הספר על השולחן", "הספר"),
        ("A party 🎉 tonight", "🎉"),
        ("Router: 192.168.7.1", "192.168.7.1"),
        ("서울에서 만나요", "서울"),
    ],
)
def test_any_language_is_found(content: str, query: str):
    face = AgentMemory()
    face.remember(content)
    face.remember("something else entirely")
    assert [result.memory.content for result in face.search(query)] == [content]
    assert face.get_context(query) == f"- {content}"


def test_search_takes_k_by_position_and_gives_at_most_that_many(face: Face):
    face.remember_many([f"note {n}" for n in range(12)])
    assert [len(face.search("note", k)) for k in (0, 1, 12, 99)] == [0, 1, 12, 12]
    assert len(face.search("note")) == len(face.recall("note")) == 10
    assert len(face.recall("", k=3)) == 3
    for k, error in ((-1, ValueError), ("5", TypeError), (2.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match="k"):
            face.recall("note", k=k)
        with pytest.raises(error, match="k"):
            face.search("note", k)


def test_a_context_is_a_line_for_each_memory_best_first(face: Face):
    assert face.get_context("tea") == ""
    face.remember("tea with\n- milk\r\nand honey", importance=0.9)
    face.remember("tea", importance=0.1)
    assert face.get_context("tea honey") == "- tea with - milk and honey\n- tea"
    assert face.get_context("tea honey", 1) == "- tea with - milk and honey"
    assert face.get_context("zebra") == ""
    face.remember_many([f"tea {n}" for n in range(9)])
    assert len(face.get_context("tea").splitlines()) == 5


def test_a_blank_query_finds_the_best_by_recency_and_importance(face: Face):
    face.remember("old and important", importance=1.0, created_at=NOW - timedelta(days=70))
    face.remember("new", importance=0.5)
    face.remember("new and important", importance=1.0)
    results = face.recall(" ", k=9)
    assert [result.memory.content for result in results] == [
        "new and important",
        "new",
        "old and important",
    ]
    assert {result.relevance_score for result in results} == {0.0}


@pytest.mark.parametrize(
    ("narrow", "expected"),
    [
        ({}, ["boat one", "boat three", "boat two"]),
        ({"memory_type": MemoryType.PROCEDURAL}, ["boat two"]),
        ({"min_importance": 0.5}, ["boat one", "boat two"]),
        ({"min_importance": MemoryImportance.HIGH}, ["boat two"]),
        ({"tags": ["red"]}, ["boat one", "boat two"]),
        ({"tags": ["red", "fast"]}, ["boat two"]),
        ({"category": "harbour"}, ["boat two"]),
        ({"since": NOW - timedelta(hours=1)}, ["boat one", "boat two"]),
        ({"until": (NOW - timedelta(hours=1)).timestamp()}, ["boat three"]),
        ({"persistent": False}, ["boat one", "boat three"]),
        ({"persistent": True}, ["boat two"]),
        ({"tags": ["red"], "persistent": False, "min_importance": 0.6}, []),
    ],
    ids=str,
)
def test_a_recall_is_narrowed_by_all_that_is_given(
    face: Face, narrow: dict[str, Any], expected: list[str]
):
    face.remember("boat one", tags=["red"], importance=0.5)
    face.remember(
        "boat two",
        tags=["red", "fast"],
        importance=0.75,
        category="harbour",
        persistent=True,
        memory_type=MemoryType.PROCEDURAL,
    )
    face.remember("boat three", importance=0.1, created_at=NOW - timedelta(days=1))
    assert found(face, "boat", **narrow) == expected
    assert found(face, "", **narrow) == expected


@pytest.mark.parametrize(
    ("narrow", "error"),
    [
        ({"memory_type": "semantic"}, TypeError),
        ({"min_importance": 2}, ValueError),
        ({"tags": "red"}, TypeError),
        ({"since": datetime(2026, 1, 1)}, ValueError),
        ({"persistent": "yes"}, TypeError),
        ({"category": 5}, TypeError),
        ({"colour": "red"}, TypeError),
    ],
    ids=str,
)
def test_a_filter_that_is_none_is_refused_and_not_dropped(narrow: Any, error: Any):
    face = AgentMemory()
    face.remember("boat")
    with pytest.raises(error):
        face.recall("boat", **narrow)


@pytest.mark.parametrize("when", [NOW - timedelta(days=400), 1_700_000_000.123456])
def test_imported_history_keeps_its_time(face: Face, when: Any):
    memory = face.get(face.remember("long ago", created_at=when).id)
    assert memory.created_at == memory.updated_at == clock.as_epoch(when)
    for wrong in (datetime(2020, 1, 1), "2020-01-01", math.nan):
        with pytest.raises((ValueError, TypeError), match="created_at"):
            face.remember("x", created_at=wrong)
    assert face.memory_count == 1


def test_being_found_counts_as_a_retrieval_and_changes_nothing_else(face: Face):
    id = face.remember("tea", created_at=NOW - timedelta(days=1)).id
    before = face.engine.store.changes(0).revision
    face.recall("tea")
    face.search("tea")
    memory = face.get(id)
    assert (memory.access_count, memory.last_accessed) == (3, NOW.timestamp())
    assert memory.updated_at == memory.created_at
    assert face.engine.store.changes(0).revision == before


# -- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "fields", "error"),
    [
        (None, {}, TypeError),
        (5, {}, TypeError),
        (b"bytes", {}, TypeError),
        ("", {}, ValueError),
        (" \n\u3000", {}, ValueError),
        ("lone \ud800", {}, ValueError),
        ("x", {"importance": 1.1}, ValueError),
        ("x", {"importance": "high"}, TypeError),
        ("x", {"metadata": {"a": math.nan}}, ValueError),
        ("x", {"metadata": {"a": {1, 2}}}, TypeError),
        ("x", {"metadata": {"a": b"bytes"}}, TypeError),
        ("x", {"metadata": {1: "a"}}, TypeError),
        ("x", {"metadata": {"a": datetime(2026, 1, 1)}}, TypeError),
        ("x", {"metadata": [("a", [])]}, TypeError),
        ("x", {"tags": "tea"}, TypeError),
        ("x", {"tags": [""]}, ValueError),
        ("x", {"tags": [None]}, TypeError),
        ("x", {"category": ""}, ValueError),
        ("x", {"category": None}, TypeError),
        ("x", {"persistent": "true"}, TypeError),
        ("x", {"ttl_days": -1}, ValueError),
        ("x", {"ttl_days": 7, "persistent": True}, ValueError),
        ("x", {"memory_type": "semantic"}, TypeError),
        ("x", {"source": None}, TypeError),
        ("x", {"sauce": "me"}, TypeError),
    ],
    ids=ascii,
)
@pytest.mark.parametrize("name", ["agent", "conversation", "knowledge without files"])
def test_what_breaks_a_rule_is_refused_before_anything_is_written(
    name: str, content: Any, fields: dict[str, Any], error: type[Exception], tmp_path: Path
):
    face = FACES[name](tmp_path)
    with pytest.raises(error):
        face.remember(content, **fields)
    with pytest.raises(error):
        face.remember_many(["good", {"content": content, **fields}])
    assert face.memory_count == 0


def test_many_are_remembered_at_once_or_none(face: Face):
    memories = face.remember_many(
        [
            "a text",
            {"content": "a dict", "importance": 1.0, "tags": ["t"]},
            Memory("m1", "a memory", created_at=5.0),
        ]
    )
    assert [memory.content for memory in memories] == ["a text", "a dict", "a memory"]
    assert face.get("m1").created_at == 5.0
    assert found(face, "dict", tags=["t"]) == ["a dict"]
    assert face.remember_many([]) == []
    assert face.remember_many(f"generated {n}" for n in range(2))[1].content == "generated 1"
    with pytest.raises(InvalidType):
        face.remember_many(["fine", 5])
    assert face.memory_count == 5


@pytest.mark.parametrize(
    "items", ["a single text", {"content": "x"}, Memory(content="x"), [{"text": "x"}], [None]]
)
def test_what_is_no_list_of_items_is_refused(items: Any):
    face = AgentMemory()
    with pytest.raises(InvalidType):
        face.remember_many(items)
    assert face.memory_count == 0


# -- change and deletion ---------------------------------------------------------------------


def test_an_update_changes_what_it_names_in_place(face: Face):
    id = face.remember("geometry", importance=0.3, tags=["t"], metadata={"a": 1}, created_at=5.0).id
    changed = face.update(id, content="coffee", importance=MemoryImportance.HIGH, category="drinks")
    assert (changed.id, changed.content, changed.category) == (id, "coffee", "drinks")
    assert (changed.importance_score, changed.tags, changed.metadata) == (0.75, ["t"], {"a": 1})
    assert (changed.created_at, changed.updated_at) == (5.0, NOW.timestamp())
    assert (found(face, "geometry"), found(face, "coffee drinks")) == ([], ["coffee"])
    face.update(id, tags=[], metadata={}, ttl_days=9_999_999 / 10_000, source="her")
    assert face.memory_count == 0  # its days are over since 1970
    with pytest.raises(NotFound):
        face.update(id, content="tea")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"content": "  "}, ValueError),
        ({"content": None}, TypeError),
        ({"importance": 2}, ValueError),
        ({"metadata": {"a": math.inf}}, ValueError),
        ({"tags": "t"}, TypeError),
        ({"category": " "}, ValueError),
        ({"persistent": True, "ttl_days": 3}, ValueError),
        ({"id": "other"}, TypeError),
        ({"created_at": 5.0}, TypeError),
        ({"scope": Scope(user="bob")}, TypeError),
    ],
    ids=str,
)
def test_an_update_that_breaks_a_rule_changes_nothing(changes: dict[str, Any], error: Any):
    face = AgentMemory()
    before = face.remember("tea", tags=["old"])
    with pytest.raises(error):
        face.update(before.id, **changes)
    assert face.engine.store.peek([before.id]) == [before]


def test_what_is_forgotten_is_found_by_nothing(face: Face):
    id, other = face.remember("tea").id, face.remember("tea too").id
    face.recall("tea")
    assert (face.forget(id), face.forget(id), face.forget("missing")) == (True, False, False)
    assert (face.get(id), found(face, "tea"), found(face, "")) == (None, ["tea too"], ["tea too"])
    with pytest.raises(NotFound, match=id):
        face.update(id, content="x")
    assert (face.memory_count, face.forget(other), face.memory_count) == (1, True, 0)


def test_what_is_expired_is_invisible_and_pruning_deletes_it(face: Face):
    yesterday = NOW - timedelta(days=1)
    id = face.remember("geometry and tea", ttl_days=1, created_at=yesterday).id
    face.remember("long tea", ttl_days=2, created_at=yesterday)
    assert (face.get(id), face.memory_count, found(face, "tea")) == (None, 1, ["long tea"])
    assert (found(face, ""), face.get_context("geometry")) == (["long tea"], "")
    assert (face.prune(), face.prune()) == (1, 0)
    assert face.engine.store.expired() == []


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ({"persistent": True}, {"persistent": True}, True),
        ({"persistent": True}, {"persistent": True, "importance": 0.9}, True),
        ({"persistent": True, "category": "a"}, {"persistent": True, "category": "b"}, False),
        ({"persistent": True}, {"persistent": False}, False),
        ({"persistent": False}, {"persistent": True}, False),
        ({"persistent": False}, {"persistent": False}, False),
    ],
    ids=str,
)
def test_only_an_equal_fact_of_the_same_category_is_a_duplicate(
    face: Face, first: dict[str, Any], second: dict[str, Any], same: bool
):
    one = face.remember("Likes  café", **first)
    other = face.remember("Likes cafe\u0301 ", **second)
    assert (one.id == other.id) is same
    assert face.memory_count == (1 if same else 2)


# -- hooks, limits and scopes ----------------------------------------------------------------


def test_a_rejected_text_is_written_nowhere(make: Callable[..., Face]):
    def no_secrets(text: str) -> str | None:
        return None if "secret" in text else text.replace("tea", "TEA")

    face = make(pre_save=[no_secrets])
    id = face.remember("tea", category="tea time", tags=["teapot"]).id
    memory = face.get(id)
    assert (memory.content, memory.category, memory.tags) == ("TEA", "TEA time", ["TEApot"])
    for wrong in (
        lambda: face.update(id, content="a secret"),
        lambda: face.update(id, tags=["secret"]),
        lambda: face.remember_many(["fine", "a secret"]),
    ):
        with pytest.raises(Rejected, match="no_secrets") as caught:
            wrong()
        assert caught.value.hook == "no_secrets"
    assert (found(face, "secret"), face.memory_count) == ([], 1)


def test_a_text_of_which_the_hooks_leave_nothing_is_rejected(make: Callable[..., Face]):
    face = make(pre_save=lambda text: text.strip("x"))
    with pytest.raises(Rejected, match="nothing"):
        face.remember_many(["xyx", "xxx"])
    [memory] = face.remember_many(["xyx"])
    with pytest.raises(Rejected, match="nothing"):
        face.update(memory.id, content="xx")
    assert found(face, "") == ["y"]


def test_dedupe_refuses_what_is_nearly_there_only_if_asked(make: Callable[..., Face]):
    face = make(dedupe=True, dedupe_threshold=0.9)
    face.remember_many(["The router is at 192.168.7.1"])
    with pytest.raises(Rejected):
        face.remember_many(["The router is at 192.168.9.1"])
    assert face.memory_count == 1


def test_the_least_important_goes_first_and_never_the_one_just_written(make: Callable[..., Face]):
    face = make(max_entries=3)
    face.remember("fact", importance=0.0, persistent=True)
    face.remember("poor and old", importance=0.1, created_at=NOW - timedelta(days=2))
    face.remember("poor", importance=0.1)
    face.remember("rich", importance=1.0)
    assert found(face, "") == ["fact", "poor", "rich"]
    face.remember("poorest", importance=0.0)
    assert found(face, "") == ["fact", "poorest", "rich"]
    face.remember_many([{"content": f"new {n}", "importance": 0.0} for n in range(4)])
    assert found(face, "") == ["fact", "new 0", "new 1", "new 2", "new 3"]
    face.remember("last", importance=0.0)
    assert {"fact", "last"} < set(found(face, "")) and face.memory_count == 3


def test_limits_duplicates_and_scores_are_a_scopes_own():
    store = InMemoryStore()
    options = {"max_entries": 2, "dedupe": True}
    ann = AgentMemory(store, scope=Scope(user="ann"), **options)
    bob = AgentMemory(store, scope=Scope(user="bob"), **options)
    ann.remember("My door code is 4711", importance=0.1)
    scores = [result.relevance_score for result in ann.recall("door code zebra")]
    bob.remember("My door code is 4711")
    bob.remember("zebra", importance=0.9)
    bob.remember("another animal", importance=0.9)
    assert (found(ann, ""), found(bob, "")) == (
        ["My door code is 4711"],
        ["another animal", "zebra"],
    )
    assert [result.relevance_score for result in ann.recall("door code zebra")] == scores
    assert ann.scope == Scope(user="ann") and ann.recall("door")[0].memory.scope == ann.scope
    store.forget_scope(Scope(user="ann"))
    assert (found(ann, "door"), ann.memory_count, bob.memory_count) == ([], 0, 2)


def test_the_stores_own_scope_counts_unless_another_is_given():
    store = InMemoryStore().scoped(Scope(user="ann"))
    assert AgentMemory(store).scope == Scope(user="ann")
    assert AgentMemory(store, scope=Scope()).scope == Scope()
    with pytest.raises(InvalidType):
        AgentMemory(store, scope="ann")  # type: ignore[arg-type]


# -- the place -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["agent on sqlite", "agent on json", "vector on files", "conversation on sqlite", "knowledge"],
)
def test_the_next_process_finds_what_is_there_and_nothing_that_was_forgotten(
    name: str, tmp_path: Path
):
    with FACES[name](tmp_path) as face:
        kept = face.remember("green tea", tags=["drink"]).id
        face.forget(face.remember("black tea").id)
        face.update(face.remember("coffee").id, content="cocoa")
        face.get(kept)
    with FACES[name](tmp_path) as face:
        assert (found(face, "tea"), found(face, "coffee")) == (["green tea"], [])
        assert (found(face, "drink"), face.memory_count) == (["green tea"], 2)
        assert face.get(kept).access_count == 4  # two recalls now, a get then and now


def test_a_closed_face_refuses_every_call(face: Face):
    face.remember("tea")
    with face as same:
        assert same is face
    face.close()
    calls: list[Callable[[], Any]] = [
        lambda: face.remember("x"),
        lambda: face.recall("tea"),
        lambda: face.recall(""),
        lambda: face.get("m1"),
        lambda: face.forget("m1"),
        lambda: face.update("m1", content="x"),
        lambda: face.memory_count,
        face.prune,
    ]
    for call in calls:
        with pytest.raises(StoreClosed):
            call()


def test_an_empty_memory_is_a_memory(face: Face):
    assert face
    assert (len(face), face.memory_count, face.recall("tea"), face.recall("")) == (0, 0, [], [])


def test_threads_share_a_face(face: Face):
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for n in range(8):
                face.remember(f"thread {number} note {n}")
                assert face.recall(f"thread {number}", k=1)
        except BaseException as error:  # noqa: BLE001 - shown by the assert below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert (face.memory_count, len(face.recall("note", k=99))) == (32, 32)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
def test_a_forked_child_uses_a_face_of_its_parent(make: Callable[..., Face]):
    face = make()
    face.remember("from the parent")
    assert face.recall("parent")
    child = os.fork()
    if child == 0:
        try:
            face.remember("from the child")
            both = {"from the parent", "from the child"}
            os._exit(0 if set(found(face, "from child parent")) == both else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    face.remember("from the parent again")
    assert {"from the parent", "from the parent again"} <= set(found(face, "parent"))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"store": b"memory.db"}, TypeError),
        ({"store": "memory.db"}, ValueError),
        ({"max_entries": 0}, ValueError),
        ({"max_entries": "5"}, TypeError),
        ({"half_life": 0}, ValueError),
        ({"pre_save": "strip"}, TypeError),
        ({"dedupe": True, "dedupe_threshold": 1.5}, ValueError),
        ({"dedupe": True, "dedupe_window": 0}, ValueError),
        ({"scope": "ann"}, TypeError),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [AgentMemory, ConversationMemory, KnowledgeMemory])
def test_a_face_of_wrong_arguments_is_not_made(
    kind: Any, options: dict[str, Any], error: Any, tmp_path: Path
):
    place = {"storage_dir": tmp_path} if kind is KnowledgeMemory else {}
    with pytest.raises(error) as caught:
        kind(**place, **options)
    assert isinstance(caught.value, (InvalidValue, InvalidType))
