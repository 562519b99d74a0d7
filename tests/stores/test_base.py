"""What every store is, whatever its kind; the conformance suite shows that each kind does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retain import (
    InMemoryStore,
    InvalidType,
    InvalidValue,
    Memory,
    Order,
    Problem,
    Scope,
    SQLiteStore,
    Store,
    StoreClosed,
)
from retain.stores.base import fact_key, order_key


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
