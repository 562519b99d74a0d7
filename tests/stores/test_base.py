"""What every store is, whatever its kind; the conformance suite shows that each kind does it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foreign_store import ForeignStore
from retain import (
    Conflict,
    Driver,
    FileStore,
    InMemoryStore,
    InvalidType,
    InvalidValue,
    JSONFileStore,
    Memory,
    Order,
    Problem,
    Scope,
    SQLiteStore,
    Store,
    StoreClosed,
    StoreFailed,
)
from retain.stores.base import fact_key, order_key, refuse_conflict
from retain.stores.knowledge import as_store
from retain.stores.memory import InMemoryDriver

KINDS: dict[str, Callable[[Path], Store]] = {
    "memory": lambda place: InMemoryStore(),
    "json": lambda place: JSONFileStore(place / "memories.json"),
    "file": lambda place: FileStore(place),
    "sqlite": lambda place: SQLiteStore(place / "memory.db"),
    "foreign": lambda place: as_store(ForeignStore()),
}


def fact(content: str, category: str = "general", persistent: bool = True) -> str | None:
    return fact_key(Memory(content=content, category=category, persistent=persistent))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Likes tea", "  Likes\t\n tea\u3000 "),
        ("caf\u00e9", "cafe\u0301"),
        ("\u1100\u1161", "\uac00"),  # Hangul in parts and composed
    ],
)
def test_facts_are_equal_after_nfc_trimming_and_joining_of_white_space(one: str, other: str):
    assert fact(one) == fact(other) is not None


@pytest.mark.parametrize(
    "other",
    [
        "likes tea",
        "Likes tea.",
        "Likes teas",
        "Ｌikes tea",  # a full-width letter: compatible, not canonically equal
        "Likestea",
        "京都に住む",
    ],
)
def test_facts_that_differ_otherwise_are_two(other: str):
    assert fact("Likes tea") != fact(other)


def test_only_persistent_facts_of_one_category_can_be_equal():
    assert fact("ok", persistent=False) is None
    assert fact("ok", "one") != fact("ok", "two")
    assert fact("b", "a\0") != fact("\0b", "a")


def test_a_scoped_store_is_the_same_place_for_somebody_else(tmp_path: Path):
    with SQLiteStore(tmp_path / "memory.db", scope=Scope(user="ann")) as ann:
        bob = ann.scoped(Scope(user="bob"))
        assert (ann.scope, bob.scope) == (Scope(user="ann"), Scope(user="bob"))
        assert (bob.path, bob.driver) == (ann.path, ann.driver)
        ann.save(Memory("m1", "x"))
        assert (ann.count(), bob.count(), bob.scoped(Scope(user="ann")).count()) == (1, 0, 1)
    with pytest.raises(StoreClosed):
        bob.list_all()


@pytest.mark.parametrize(
    "wider",
    [
        Scope(),
        Scope(user="ann", session="s1"),
        Scope(agent="ann"),
        Scope(user="Ann"),
        Scope(user="an"),
        Scope(user="ann%"),
    ],
)
def test_no_other_scope_reads_or_deletes_what_one_holds(wider: Scope):
    store = InMemoryStore()
    store.scoped(Scope(user="ann")).save(Memory("m1", "x"))
    other = store.scoped(wider)
    assert (other.list_all(), other.count(), other.get("m1"), other.peek(["m1"])) == (
        [],
        0,
        None,
        [],
    )
    assert other.delete("m1") is False
    assert store.forget_scope(wider) == 0
    assert store.scoped(Scope(user="ann")).count() == 1


def test_what_is_saved_belongs_to_the_stores_scope_whatever_the_memory_says():
    store = InMemoryStore().scoped(Scope(user="ann"))
    memory = Memory("m1", "x", scope=Scope(user="bob"))
    store.save(memory)
    assert store.list_all()[0].scope == Scope(user="ann")
    assert memory.scope == Scope(user="bob")
    assert store.scopes() == [Scope(user="ann")]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda s: Store(s.driver, "ann"), InvalidType),
        (lambda s: s.scoped({"user": "ann"}), InvalidType),
        (lambda s: s.forget_scope("ann"), InvalidType),
        (lambda s: s.forget_scope(None), InvalidType),
        (lambda s: s.save("text"), InvalidType),
        (lambda s: s.save_many([Memory("m2", "y"), None]), InvalidType),
        (lambda s: s.get(None), InvalidType),
        (lambda s: s.peek(["m1", 5]), InvalidType),
        (lambda s: s.delete_many(["m1", 5]), InvalidType),
        (lambda s: s.page(-1), InvalidValue),
        (lambda s: s.page(True), InvalidValue),
        (lambda s: s.page(None), InvalidValue),
    ],
)
def test_a_wrong_argument_is_refused_with_nothing_changed(call: Any, error: type[Exception]):
    store = InMemoryStore()
    store.save(Memory("m1", "x"))
    with pytest.raises(error):
        call(store)
    assert [memory.id for memory in store.list_all()] == ["m1"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_revision_is_the_last_one_given_and_that_of_the_changes(kind: str, tmp_path: Path):
    with KINDS[kind](tmp_path) as store:
        assert store.revision == 0
        last = store.save_many([Memory("m1", "x"), Memory("m2", "y")])[-1].revision
        assert store.revision == store.changes(0).revision == last
        store.get("m1")
        assert store.revision == last
        store.delete("m1")
        assert store.revision == store.changes(last).revision == last + 1
        assert store.scoped(Scope(user="ann")).revision == last + 1
    with pytest.raises(StoreClosed):
        store.revision  # noqa: B018


@pytest.mark.parametrize("kind", ["json", "file", "sqlite"])
def test_the_revision_tells_what_another_one_wrote_there(kind: str, tmp_path: Path):
    with KINDS[kind](tmp_path) as one, KINDS[kind](tmp_path) as two:
        before = one.revision
        two.save(Memory("m1", "x"))
        assert one.revision > before


def test_a_driver_has_its_revision_from_its_changes_unless_it_says_otherwise():
    class Plain(InMemoryDriver):
        revision = Driver.revision

    store = Store(Plain(), Scope(user="ann"))
    store.save_many([Memory("m1", "x"), Memory("m2", "y")])
    assert store.revision == store.changes(0).revision == 2


@pytest.mark.parametrize("kind", ["memory", "json", "file", "foreign"])
def test_changes_that_are_read_later_are_those_of_their_revision(kind: str, tmp_path: Path):
    with KINDS[kind](tmp_path) as store:
        store.save_many([Memory("a", "x"), Memory("b", "x"), Memory("c", "x")])
        expected = list(store.changes(0).saved)
        changes = store.changes(0)
        first = next(changes.saved)
        store.get("b")
        store.write([Memory("a", "y"), Memory("d", "y")], ["c"])
        assert [m.access_count for m in store.peek(["a", "b"])] == [0, 1]
        assert [first, *changes.saved] == expected


def test_who_changes_what_changes_told_changes_nothing_in_the_store():
    store = InMemoryStore()
    store.save(Memory("m1", "x", metadata={"a": [1]}, tags=["t"]))
    [memory] = store.changes(0).saved
    memory.metadata["a"].append(2)
    memory.tags.append("u")
    [again] = store.changes(0).saved
    assert (again.metadata, again.tags) == ({"a": [1]}, ["t"])


def test_a_memory_at_another_revision_than_expected_is_a_conflict():
    refuse_conflict("m1", 7, 7)
    refuse_conflict("m1", 0, 0)
    with pytest.raises(Conflict, match=r"'m1' is at revision 8, not 7: .* read it again"):
        refuse_conflict("m1", 8, 7)


@pytest.mark.parametrize("kind", ["json", "file"])
def test_a_close_that_can_not_write_the_retrievals_says_so_and_closes(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = KINDS[kind](tmp_path)
    store.save(Memory("m1", "x"))
    store.get("m1")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreFailed, match="the disk is full"):
            store.close()
    store.close()
    with pytest.raises(StoreClosed):
        store.list_all()
    with KINDS[kind](tmp_path) as again:
        assert [(m.id, m.access_count) for m in again.list_all()] == [("m1", 0)]


def test_deleting_nothing_deletes_nothing():
    store = InMemoryStore()
    store.save(Memory("m1", "x"))
    assert (store.delete_many([]), store.delete("m2"), store.delete("")) == (0, False, False)
    assert store.save_many([]) == []
    assert store.count() == 1


def test_a_backup_never_replaces_a_file(tmp_path: Path):
    with SQLiteStore(tmp_path / "memory.db") as store:
        (tmp_path / "precious").write_text("mine")
        with pytest.raises(InvalidValue, match="precious exists"):
            store.backup(tmp_path / "precious")
    assert (tmp_path / "precious").read_text() == "mine"


ORDERED = [
    Memory("old", "x", importance=1.0, created_at=1.0),
    Memory("b", "x", importance=0.5, created_at=2.0),
    Memory("a", "x", importance=0.5, created_at=2.0),
    Memory("new", "x", importance=0.5, created_at=3.0),
    Memory("low", "x", importance=0.0, created_at=2.0),
]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (Order.NEWEST, ["new", "a", "b", "low", "old"]),
        (Order.IMPORTANT, ["old", "new", "a", "b", "low"]),
        (Order.DISPENSABLE, ["low", "a", "b", "new", "old"]),
    ],
)
def test_each_order_has_its_ties_by_time_and_then_by_id(order: Order, expected: list[str]):
    assert [memory.id for memory in sorted(ORDERED, key=order_key(order))] == expected
    store = InMemoryStore()
    store.save_many(ORDERED)
    assert [memory.id for memory in store.page(order=order)] == expected


def test_a_store_shows_its_place_and_scope(tmp_path: Path):
    assert repr(InMemoryStore()) == "<InMemoryStore in memory scope=default>"
    with SQLiteStore(tmp_path / "memory.db", scope=Scope(user="ann")) as store:
        assert "memory.db scope=user=ann" in repr(store)
    assert str(Problem("row 7 is bad")) == "row 7 is bad"
    assert str(Problem("row 7 is bad", True)) == "row 7 is bad (mended)"
