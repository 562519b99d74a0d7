"""The knowledge specification's stores, which are views of the house's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreign_store import ForeignStore
from retain import (
    FileKnowledgeStore,
    FileStore,
    InMemoryStore,
    InvalidType,
    InvalidValue,
    KnowledgeEntry,
    KnowledgeMemory,
    KnowledgeStore,
    Memory,
    Scope,
    SQLiteKnowledgeStore,
    SQLiteStore,
    Store,
    StoreClosed,
    clock,
)
from retain.stores.knowledge import KnowledgeView, as_store
from retain.testing import memories

UTC = timezone.utc
NOW = datetime(2026, 3, 13, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", NOW.timestamp)


def open_store(kind: str, place: Path) -> KnowledgeView:
    if kind == "file":
        return FileKnowledgeStore(place / "store")
    if kind == "sqlite":
        return SQLiteKnowledgeStore(place / "store.db")
    return KnowledgeView(InMemoryStore())


@pytest.fixture(params=["file", "sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KnowledgeView]:
    store = open_store(request.param, tmp_path)
    yield store
    store.close()


def entry(id: str, importance: float = 0.5, age: float = 0, **members: Any) -> KnowledgeEntry:
    created = NOW - age * DAY
    return KnowledgeEntry(
        id,
        f"text of {id}",
        importance=importance,
        created_at=created,
        updated_at=created,
        **members,
    )


def ids(entries: list[KnowledgeEntry]) -> list[str]:
    return [entry.id for entry in entries]


# -- the protocol ----------------------------------------------------------------------------


def test_every_store_of_entries_keeps_the_protocol(store: KnowledgeView, tmp_path: Path):
    assert isinstance(store, KnowledgeStore)
    assert isinstance(ForeignStore(), KnowledgeStore)
    assert not isinstance(store.memories, KnowledgeStore)
    for place in (None, store, ForeignStore(), InMemoryStore()):
        memory = KnowledgeMemory(None, store=place)
        assert isinstance(memory.store, KnowledgeStore)
        assert place is not store or memory.store is store


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_an_entry_is_read_back_whole_by_the_next_process(kind: str, tmp_path: Path):
    whole = KnowledgeEntry(
        "e1",
        "Le café\n東京",
        "places",
        0.3,
        False,
        9,
        datetime(2026, 3, 12, 10, 15, 0, 123456, UTC),
        datetime(2026, 3, 13, 10, 15, tzinfo=UTC),
        {"a": [1, None, {"b": "c"}]},
    )
    store = open_store(kind, tmp_path)
    assert store.save(whole) == "e1"
    store.close()
    again = open_store(kind, tmp_path)
    assert again.get("e1") == whole
    assert again.query() == [whole]
    again.close()


def test_save_replaces_by_id_and_delete_tells_whether_it_was_there(store: KnowledgeView):
    store.save(entry("e1"))
    store.save(entry("e1", 0.9, category="new"))
    [found] = store.query()
    assert (found.importance, found.category, store.count()) == (0.9, "new", 1)
    assert (store.delete("e1"), store.delete("e1")) == (True, False)
    assert (store.get("e1"), store.count(), store.query()) == (None, 0, [])


def test_a_store_of_entries_is_the_houses_store_of_that_kind(tmp_path: Path):
    with FileStore(tmp_path / "store") as files, SQLiteStore(tmp_path / "store.db") as sqlite:
        for kind, memories in (("file", files), ("sqlite", sqlite)):
            view = open_store(kind, tmp_path)
            view.save(entry("e1"))
            assert [memory.id for memory in memories.list_all()] == ["e1"]
            memories.save(Memory("m1", "x", tags=["t"]))
            found = view.get("m1")
            assert found is not None
            found.content = "y"
            view.save(found)
            assert memories.peek(["m1"])[0].tags == ["t"]
            view.close()


@pytest.mark.parametrize("kind", [FileKnowledgeStore, SQLiteKnowledgeStore])
def test_a_store_of_entries_can_be_bound_to_a_scope(kind: Any, tmp_path: Path):
    ann, other = kind(tmp_path / "s", scope=Scope(user="ann")), kind(tmp_path / "s")
    ann.save(entry("e1"))
    assert (ann.count(), other.count()) == (1, 0)
    ann.close()
    other.close()


# -- queries ---------------------------------------------------------------------------------


def test_a_query_gives_the_most_important_first_then_the_newest_then_by_id(store: KnowledgeView):
    for found in (
        entry("old", 0.5, 2),
        entry("b", 0.5, 1),
        entry("low", 0.1),
        entry("a", 0.5, 1),
        entry("high", 0.9, 9),
    ):
        store.save(found)
    assert ids(store.query()) == ["high", "a", "b", "old", "low"]
    assert ids(store.query(limit=2)) == ["high", "a"]
    assert ids(store.query(limit=0)) == []


def test_a_query_gives_fifty_unless_told_otherwise(store: KnowledgeView):
    store.memories.save_many([Memory(f"m{n}", "x") for n in range(60)])
    assert (len(store.query()), len(store.query(limit=999)), store.count()) == (50, 60, 60)


@pytest.mark.parametrize(
    ("narrow", "expected"),
    [
        ({"category": "places"}, ["tokyo", "rome"]),
        ({"category": "Places"}, []),
        ({"category": ""}, ["tea", "tokyo", "rome"]),
        ({"min_importance": 0.5}, ["tea", "tokyo"]),
        ({"min_importance": 1.0}, []),
        ({"since": NOW - 2 * DAY}, ["tokyo", "rome"]),
        ({"since": (NOW - 2 * DAY).replace(tzinfo=None)}, ["tokyo", "rome"]),
        ({"since": (NOW - 2 * DAY).astimezone(timezone(timedelta(hours=9)))}, ["tokyo", "rome"]),
        ({"since": NOW - 2 * DAY + timedelta(microseconds=1)}, ["rome"]),
        ({"since": NOW + DAY}, []),
        ({"category": "places", "min_importance": 0.5, "since": NOW - 5 * DAY}, ["tokyo"]),
        ({"category": "places", "min_importance": 0.5, "since": NOW - DAY}, []),
    ],
    ids=str,
)
def test_a_query_is_narrowed_by_all_that_is_given(
    store: KnowledgeView, narrow: dict[str, Any], expected: list[str]
):
    store.save(entry("tea", 0.9, 3))
    store.save(entry("tokyo", 0.5, 2, category="places"))
    store.save(entry("rome", 0.3, 1, category="places"))
    assert ids(store.query(**narrow)) == expected


def test_what_is_expired_is_seen_by_nothing(store: KnowledgeView):
    store.save(entry("gone", 1.0, 2, ttl_days=1))
    store.save(entry("here", 0.1, 2, ttl_days=3))
    assert (ids(store.query()), store.count(), store.get("gone")) == (["here"], 1, None)


# -- pruning ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ({}, ["fact", "note", "old", "poor"]),
        ({"max_age_days": 5}, ["fact", "note", "poor"]),
        ({"max_age_days": 10}, ["fact", "note", "old", "poor"]),
        ({"max_age_days": 0.5}, ["fact", "note"]),
        ({"max_age_days": 0}, ["fact", "note"]),
        ({"min_importance": 0.5}, ["fact", "note", "old"]),
        ({"min_importance": 1.0}, ["fact"]),
        ({"max_age_days": 5, "min_importance": 0.5}, ["fact", "note"]),
        ({"max_age_days": math.inf}, ["fact", "note", "old", "poor"]),
    ],
    ids=str,
)
def test_pruning_deletes_the_expired_the_old_and_the_unimportant_but_no_fact(
    store: KnowledgeView, arguments: dict[str, Any], left: list[str]
):
    store.save(entry("fact", 0.0, 99, persistent=True))
    store.save(entry("note", 0.5, 0))
    store.save(entry("old", 0.5, 10))
    store.save(entry("poor", 0.25, 1))
    store.save(entry("expired", 1.0, 2, ttl_days=1))
    assert store.prune(**arguments) == 5 - len(left)
    assert sorted(ids(store.query())) == left
    assert store.memories.expired() == []
    assert store.prune(**arguments) == 0


# -- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda s: s.save(Memory("m1", "x")), InvalidType),
        (lambda s: s.save({"id": "e1"}), InvalidType),
        (lambda s: s.save(entry("e1", 2.0)), InvalidValue),
        (lambda s: s.save(entry("")), InvalidValue),
        (lambda s: s.save(entry("e1", persistent=True, ttl_days=1)), InvalidValue),
        (lambda s: s.save(entry("e1", metadata={"a": math.nan})), InvalidValue),
        (lambda s: s.get(5), InvalidType),
        (lambda s: s.delete(None), InvalidType),
        (lambda s: s.query(limit=-1), InvalidValue),
        (lambda s: s.query(limit="5"), InvalidValue),
        (lambda s: s.query(min_importance=1.1), InvalidValue),
        (lambda s: s.query(min_importance="high"), InvalidType),
        (lambda s: s.query(category=5), InvalidType),
        (lambda s: s.query(since="yesterday"), InvalidType),
        (lambda s: s.prune(max_age_days=-1), InvalidValue),
        (lambda s: s.prune(max_age_days=math.nan), InvalidValue),
        (lambda s: s.prune(max_age_days="30"), InvalidType),
        (lambda s: s.prune(min_importance=-1), InvalidValue),
    ],
)
def test_a_wrong_argument_is_refused_with_nothing_changed(
    store: KnowledgeView, call: Any, error: type[Exception]
):
    store.save(entry("kept", 0.5, 99))
    with pytest.raises(error):
        call(store)
    assert ids(store.query()) == ["kept"]


def test_a_closed_store_raises_rather_than_answering_nothing(store: KnowledgeView):
    store.close()
    calls = [store.count, store.query, store.prune, lambda: store.get("e1")]
    for call in [*calls, lambda: store.save(entry("e1")), lambda: store.delete("e1")]:
        with pytest.raises(StoreClosed):
            call()


# -- a store that somebody else wrote --------------------------------------------------------


@pytest.fixture
def foreign() -> ForeignStore:
    return ForeignStore()


def test_a_memory_in_a_foreign_store_keeps_what_its_entry_has_no_member_for(foreign: ForeignStore):
    memory = Memory(
        "m1", "x", importance=0.3, tags=["t"], source="ann", metadata={"a": 1}, access_count=3
    )
    as_store(foreign).save(memory)
    [found] = as_store(foreign).list_all()  # another process: nothing but the rows is left
    assert found.copy(revision=0) == memory.checked()
    foreign.save(KnowledgeEntry("e1", "y", metadata={"retain": "a word of their own"}))
    [found] = as_store(foreign).peek(["e1"])
    assert found.metadata == {"retain": "a word of their own"}


@given(many=st.lists(memories(), max_size=4, unique_by=lambda memory: memory.id))
def test_a_foreign_store_gives_back_any_memory_as_it_was(many: list[Memory]):
    foreign = ForeignStore()
    as_store(foreign).save_many(many)
    found = {memory.id: memory for memory in as_store(foreign).driver.changes(Scope(), 0).saved}
    assert found == {m.id: m.copy(revision=found[m.id].revision) for m in many}


def test_counts_of_retrievals_are_exact_in_a_foreign_store_and_written_by_the_next_write(
    foreign: ForeignStore,
):
    store = as_store(foreign)
    store.save(Memory("m1", "x"))
    revision = store.changes(0).revision
    store.get("m1")
    store.get("m1")
    assert store.changes(0).revision == revision
    store.save(Memory("m2", "y"))
    found = store.get("m1")
    assert found is not None and found.access_count == 3
    assert as_store(foreign).peek(["m1"])[0].access_count == 2
    store.close()
    assert as_store(foreign).peek(["m1"])[0].access_count == 3


def test_what_others_did_to_a_foreign_store_is_seen_by_whoever_catches_up(foreign: ForeignStore):
    store = as_store(foreign)
    store.save_many([Memory(id, "x") for id in "abc"])
    seen = store.changes(0).revision
    foreign.delete("a")
    foreign.save(entry("d"))
    foreign.save(entry("b", 0.9))
    changes = store.changes(seen)
    assert sorted(memory.id for memory in changes.saved) == ["b", "d"]
    assert (changes.deleted, changes.reset) == (["a"], False)


def test_whoever_knows_a_foreign_store_from_an_earlier_process_begins_anew(foreign: ForeignStore):
    store = as_store(foreign)
    store.save_many([Memory(id, "x") for id in "abc"])
    seen = store.changes(0).revision
    foreign.delete("a")
    foreign.save(entry("d"))  # as many as before
    changes = as_store(foreign).changes(seen)
    assert changes.reset
    assert sorted(memory.id for memory in changes.saved) == ["b", "c", "d"]


def test_a_foreign_store_has_no_scopes_and_says_so(foreign: ForeignStore):
    store = as_store(foreign).scoped(Scope(user="ann"))
    with pytest.raises(InvalidValue, match="ForeignStore has no scopes"):
        store.save(Memory("m1", "x"))
    assert foreign.rows == {}


def test_a_foreign_store_is_closed_if_it_can_be(foreign: ForeignStore):
    closed = []
    store = as_store(foreign)
    store.close()  # it has no such method
    foreign.close = lambda: closed.append(True)  # type: ignore[attr-defined]
    again = as_store(foreign)
    again.close()
    again.close()
    assert closed == [True]
    with pytest.raises(StoreClosed):
        again.list_all()


def test_a_foreign_store_that_refuses_the_last_counts_is_closed_all_the_same(
    foreign: ForeignStore,
):
    def refuse(entry: KnowledgeEntry) -> str:
        raise ConnectionError("the server is away")

    closed = []
    store = as_store(foreign)
    store.save(Memory("m1", "x"))
    store.get("m1")
    foreign.save = refuse  # type: ignore[method-assign]
    foreign.close = lambda: closed.append(True)  # type: ignore[attr-defined]
    with pytest.raises(ConnectionError, match="the server is away"):
        store.close()
    store.close()
    assert closed == [True]


def test_a_foreign_store_has_neither_a_backup_nor_a_check_of_its_own(
    foreign: ForeignStore, tmp_path: Path
):
    store = as_store(foreign)
    assert store.check() == []
    with pytest.raises(InvalidValue, match="ForeignStore has no backup"):
        store.backup(tmp_path / "copy")


def test_an_error_of_a_foreign_store_is_not_swallowed(foreign: ForeignStore):
    def refuse(entry: KnowledgeEntry) -> str:
        raise ConnectionError("the server is away")

    foreign.save = refuse  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        as_store(foreign).save(Memory("m1", "x"))


@pytest.mark.parametrize("other", [InMemoryStore(), KnowledgeView(InMemoryStore())])
def test_the_houses_own_stores_are_taken_as_they_are(other: Any):
    assert as_store(other) is (other if isinstance(other, Store) else other.memories)
