"""The tests that every store must pass."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from .. import clock
from ..errors import Conflict, InvalidType, InvalidValue, StoreClosed
from ..models import Filter, Memory, MemoryType
from ..scope import Scope
from ..stores.base import Order, Store, order_key
from .machine import store_machine
from .strategies import HOSTILE, filters, memories, same

__all__ = ["StoreConformance"]

_STATEFUL = settings(
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),  # on a loaded machine they fail on slowness
)


class StoreConformance:
    """The tests; subclass it, and say how your store is opened."""

    durable = True
    """Whether what was written is there when the place is opened again."""
    histories = 25
    """How many sequences of calls are compared with a dictionary."""

    def open_store(self, place: Path) -> Store:
        """The store in the folder ``place``; called again for the same one to reopen it."""
        raise pytest.UsageError("a subclass of StoreConformance defines open_store")

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """An empty store."""
        store = self.open_store(tmp_path)
        yield store
        store.close()

    # -- one memory ------------------------------------------------------------------------

    def test_a_saved_memory_is_read_back_whole(self, store: Store) -> None:
        memory = Memory(
            "m1",
            "Le café — 東京\n\0 end",
            MemoryType.PROCEDURAL,
            0.3,
            {"a": [1, {"b": None}], "": "x"},
            ["one", "zwei"],
            1e9 + 0.25,
            7,
            2e9,
            category="places",
            ttl_days=99_999,
            updated_at=1.5e9,
            source="turn:7",
        )
        store.save(memory)
        [found] = store.peek(["m1"])
        assert same(found, memory)
        assert (found.access_count, found.last_accessed) == (7, 2e9)
        assert found.revision > 0

    def test_save_replaces_by_id(self, store: Store) -> None:
        store.save(Memory("m1", "old", tags=["x"], metadata={"a": 1}))
        store.save(Memory("m1", "new"))
        [found] = store.list_all()
        assert (found.content, found.tags, found.metadata) == ("new", [], {})
        assert store.count() == 1

    def test_delete_tells_whether_it_was_there(self, store: Store) -> None:
        store.save(Memory("m1", "x"))
        assert store.delete("m1") is True
        assert store.delete("m1") is False
        assert store.get("m1") is None
        assert store.list_all() == []

    def test_what_is_read_shares_nothing_with_what_is_stored(self, store: Store) -> None:
        memory = Memory("m1", "x", metadata={"list": [1]}, tags=["t"])
        store.save(memory)
        memory.metadata["list"].append(2)
        memory.content = "changed"
        [found] = store.list_all()
        found.tags.append("u")
        found.metadata["list"].append(3)
        [again] = store.list_all()
        assert (again.content, again.tags, again.metadata) == ("x", ["t"], {"list": [1]})

    @pytest.mark.parametrize("text", HOSTILE)
    def test_hostile_text_is_kept_as_content_id_tag_category_and_key(
        self, store: Store, text: str
    ) -> None:
        label = text if text.strip() else "blank"
        memory = Memory(text, text, metadata={text: text}, tags=[label], category=label)
        store.save(memory)
        assert same(store.peek([text])[0], memory)
        narrow = Filter(category=label, tags=(label,))
        assert [m.id for m in store.page(narrow=narrow)] == [text]
        assert store.delete(text)

    def test_a_large_memory_is_kept_whole(self, store: Store) -> None:
        content = "naïve 東京 " * 200_000
        store.save(Memory("m1", content, metadata={"x": "y" * 100_000}))
        assert store.peek(["m1"])[0].content == content

    @pytest.mark.parametrize(
        "change",
        [
            {"content": "lone \ud800"},
            {"content": None},
            {"content": b"bytes"},
            {"id": ""},
            {"id": 7},
            {"id": "\udfff"},
            {"id": "x" * 2000},
            {"metadata": {"x": float("nan")}},
            {"metadata": {"x": {1, 2}}},
            {"metadata": {"x": b"bytes"}},
            {"metadata": {1: "x"}},
            {"metadata": {"x": "\ud800"}},
            {"metadata": {"x": 1 << 2000}},
            {"tags": [""]},
            {"tags": [1]},
            {"category": "  "},
            {"importance_score": 1.5},
            {"importance_score": float("nan")},
            {"created_at": float("inf")},
            {"created_at": "yesterday"},
            {"ttl_days": -1},
            {"ttl_days": float("nan")},
            {"persistent": True, "ttl_days": 1},
            {"persistent": "yes"},
            {"memory_type": "semantic"},
            {"access_count": -1},
        ],
        ids=repr,
    )
    def test_bad_input_is_refused_with_nothing_changed(
        self, store: Store, change: dict[str, Any]
    ) -> None:
        store.save(Memory("kept", "x"))
        before = store.changes(0).revision
        bad = Memory("bad", "x")
        for name, value in change.items():
            setattr(bad, name, value)
        with pytest.raises((InvalidValue, InvalidType)):
            store.save_many([Memory("good", "y"), bad])
        assert [m.id for m in store.list_all()] == ["kept"]
        assert store.changes(0).revision == before

    def test_metadata_nested_without_end_is_refused(self, store: Store) -> None:
        deep: dict[str, Any] = {}
        for _ in range(10_000):
            deep = {"x": deep}
        memory = Memory("m1", "x")
        memory.metadata = deep
        with pytest.raises(InvalidValue):
            store.save(memory)
        assert store.count() == 0

    # -- retrievals ------------------------------------------------------------------------

    def test_get_counts_retrievals_exactly_and_changes_nothing_else(self, store: Store) -> None:
        store.save(Memory("m1", "x", created_at=1e9, updated_at=1e9))
        before = store.peek(["m1"])[0]
        counts = [found.access_count for _ in range(3) if (found := store.get("m1"))]
        after = store.peek(["m1"])[0]
        assert counts == [1, 2, 3]
        assert after.access_count == 3
        assert after.last_accessed > before.last_accessed
        assert (after.revision, after.updated_at) == (before.revision, before.updated_at)
        assert store.get("missing") is None

    def test_a_save_never_lowers_a_count(self, store: Store) -> None:
        store.save(Memory("m1", "x"))
        found = [store.get("m1"), store.get("m1")][-1]
        assert found is not None
        store.save(found.copy(content="y"))
        assert store.peek(["m1"])[0].access_count == 2
        store.save(Memory("m1", "z"))
        assert store.peek(["m1"])[0].access_count == 2

    def test_counts_are_written_by_close(self, tmp_path: Path) -> None:
        if not self.durable:
            return
        with self.open_store(tmp_path) as store:
            store.save(Memory("m1", "x"))
            store.get("m1")
        with self.open_store(tmp_path) as store:
            assert store.peek(["m1"])[0].access_count == 1

    # -- listings --------------------------------------------------------------------------

    @pytest.mark.parametrize("order", Order)
    def test_pages_hold_every_memory_once_in_order(self, store: Store, order: Order) -> None:
        many = [
            Memory(f"m{n:02}", "x", importance=n % 3 / 2, created_at=1e9 + n % 5) for n in range(25)
        ]
        store.save_many(many)
        listed = list(store.iterate(order=order, size=4))
        assert [m.id for m in listed] == [m.id for m in sorted(many, key=order_key(order))]
        assert store.page(0) == []

    def test_expired_memories_are_invisible_to_every_read(self, store: Store) -> None:
        old = clock.now() - 2 * clock.DAY
        store.save(Memory("gone", "x", created_at=old, ttl_days=1))
        store.save(Memory("here", "x", created_at=old, ttl_days=3))
        assert store.get("gone") is None
        assert store.peek(["gone", "here"])[0].id == "here"
        assert [m.id for m in store.list_all()] == ["here"]
        assert store.count() == 1
        assert store.expired() == ["gone"]
        assert store.delete("gone")

    # -- scopes ----------------------------------------------------------------------------

    def test_scopes_share_nothing(self, store: Store) -> None:
        names = [name for name in HOSTILE if name]
        scopes = [Scope(), *(Scope(user=name) for name in names)]
        scopes += [Scope(agent="%"), Scope(session="%"), Scope(user="%", session="%")]
        for scope in scopes:
            store.scoped(scope).save(Memory("same id", f"of {scope.key}"))
        for scope in scopes:
            [memory] = store.scoped(scope).list_all()
            assert (memory.content, memory.scope) == (f"of {scope.key}", scope)
        assert set(store.scopes()) == set(scopes)
        assert store.forget_scope(Scope(user="%")) == 1
        assert set(store.scopes()) == set(scopes) - {Scope(user="%")}
        assert store.forget_scope(Scope(user="nobody")) == 0

    def test_a_forgotten_scope_can_begin_anew(self, store: Store) -> None:
        mine = store.scoped(Scope(user="ann"))
        mine.save(Memory("m1", "old"))
        seen = mine.changes(0).revision
        store.forget_scope(Scope(user="ann"))
        gone = mine.changes(seen)
        assert gone.reset and list(gone.saved) == []
        mine.save(Memory("m2", "new"))
        assert [m.id for m in mine.list_all()] == ["m2"]
        again = mine.changes(gone.revision)
        assert [m.id for m in again.saved] == ["m2"]

    # -- changes ---------------------------------------------------------------------------

    def test_changes_tell_saves_and_deletes_since_a_revision(self, store: Store) -> None:
        store.save_many([Memory("a", "x"), Memory("b", "x"), Memory("c", "x")])
        first = store.changes(0)
        assert [m.id for m in first.saved] == ["a", "b", "c"]
        store.save(Memory("a", "y"))
        store.delete("b")
        second = store.changes(first.revision)
        assert [(m.id, m.content) for m in second.saved] == [("a", "y")]
        assert (second.deleted, second.reset) == (["b"], False)
        store.save(Memory("b", "again"))
        third = store.changes(second.revision)
        assert [m.id for m in third.saved] == ["b"]
        assert third.revision > second.revision > first.revision
        nothing = store.changes(third.revision)
        assert (list(nothing.saved), nothing.deleted) == ([], [])
        assert nothing.revision == third.revision

    def test_a_revision_that_the_store_never_had_begins_anew(self, store: Store) -> None:
        store.save(Memory("a", "x"))
        ahead = store.changes(store.changes(0).revision + 1000)
        assert ahead.reset
        assert [m.id for m in ahead.saved] == ["a"]

    def test_revisions_grow_with_every_memory_and_across_scopes(self, store: Store) -> None:
        store.save_many([Memory(str(n), "x") for n in range(5)])
        store.scoped(Scope(user="ann")).save(Memory("other", "x"))
        store.save(Memory("0", "y"))
        revisions = [m.revision for m in store.changes(0).saved]
        assert revisions == sorted(set(revisions))
        assert store.peek(["0"])[0].revision == store.changes(0).revision

    def test_whoever_catches_up_after_reopening_misses_no_delete(self, tmp_path: Path) -> None:
        if not self.durable:
            return
        with self.open_store(tmp_path) as store:
            store.save_many([Memory("a", "x"), Memory("b", "x")])
            seen = store.changes(0).revision
            store.delete("b")
        with self.open_store(tmp_path) as store:
            changes = store.changes(seen)
            left = {m.id for m in changes.saved} if changes.reset else {"a", "b"}
            assert left - set(changes.deleted) == {"a"}

    # -- conditions ------------------------------------------------------------------------

    def test_unique_returns_the_equal_fact_that_is_there(self, store: Store) -> None:
        fact = Memory("f1", "Likes  cafe\u0301 ", persistent=True, category="taste")
        store.write([fact], unique=True)
        same_fact = Memory("f2", "Likes café", persistent=True, category="taste")
        other = Memory("f3", "Likes café", persistent=True, category="drinks")
        passing = Memory("f4", "Likes café", category="taste")
        written = store.write([same_fact, other, passing, passing.copy(id="f5")], unique=True)
        assert [m.id for m in written.saved] == ["f1", "f3", "f4", "f5"]
        assert written.duplicates == {"f1"}
        assert store.count() == 4

    def test_equal_facts_within_one_write_are_one(self, store: Store) -> None:
        facts = [Memory(f"f{n}", "東京に住む", persistent=True) for n in range(3)]
        written = store.write(facts, unique=True)
        assert [m.id for m in written.saved] == ["f0", "f0", "f0"]
        store.delete("f0")
        assert [m.id for m in store.write(facts[1:], unique=True).saved] == ["f1", "f1"]

    def test_an_expected_revision_that_changed_is_a_conflict(self, store: Store) -> None:
        store.save(Memory("m1", "x"))
        revision = store.peek(["m1"])[0].revision
        store.write([Memory("m1", "y")], expect={"m1": revision})
        with pytest.raises(Conflict):
            store.write([Memory("m1", "z"), Memory("m2", "z")], expect={"m1": revision})
        assert [(m.id, m.content) for m in store.list_all()] == [("m1", "y")]
        store.write([Memory("m3", "x")], expect={"m3": 0})

    # -- sharing ---------------------------------------------------------------------------

    def test_two_open_stores_see_each_others_writes(self, tmp_path: Path) -> None:
        if not self.durable:
            return
        with self.open_store(tmp_path) as one, self.open_store(tmp_path) as two:
            one.save(Memory("a", "x"))
            assert [m.id for m in two.list_all()] == ["a"]
            seen = one.changes(0).revision
            two.save(Memory("b", "x"))
            two.delete("a")
            changes = one.changes(seen)
            assert [m.id for m in changes.saved] == ["b"]
            assert changes.reset or changes.deleted == ["a"]
            assert [m.id for m in one.list_all()] == ["b"]

    def test_threads_lose_nothing(self, store: Store) -> None:
        errors: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for n in range(20):
                    store.save(Memory(f"{number}-{n}", "x"))
                    store.get(f"{number}-{n}")
                    store.count()
            except BaseException as error:  # noqa: BLE001 - shown by the assert below
                errors.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert store.count() == 80
        assert all(m.access_count == 1 for m in store.list_all())

    def test_a_forked_child_works_and_leaves_the_parent_whole(self, store: Store) -> None:
        if not hasattr(os, "fork"):
            return
        store.save(Memory("parent", "x"))
        store.get("parent")
        child = os.fork()
        if child == 0:
            try:
                store.save(Memory("child", "x"))
                os._exit(0 if store.count() == 2 else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        store.save(Memory("after", "x"))
        expected = {"parent", "after"} | ({"child"} if self.durable else set())
        assert {m.id for m in store.list_all()} == expected
        assert store.peek(["parent"])[0].access_count == 1

    # -- the place -------------------------------------------------------------------------

    def test_a_closed_store_refuses_every_call(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.save(Memory("m1", "x"))
        store.close()
        store.close()
        calls: list[Callable[[], object]] = [
            store.list_all,
            lambda: store.get("m1"),
            lambda: store.save(Memory("m2", "x")),
            lambda: store.changes(0),
            store.check,
        ]
        for call in calls:
            with pytest.raises(StoreClosed):
                call()

    def test_what_was_written_is_there_after_reopening(self, tmp_path: Path) -> None:
        if not self.durable:
            return
        with self.open_store(tmp_path) as store:
            store.save_many([Memory(str(n), f"text {n}", tags=["t"]) for n in range(10)])
            store.delete("3")
            store.scoped(Scope(user="ann")).save(Memory("hers", "x"))
            kept = store.list_all()
        with self.open_store(tmp_path) as store:
            assert all(map(same, store.list_all(), kept))
            assert store.count() == len(kept) == 9
            assert [m.id for m in store.scoped(Scope(user="ann")).list_all()] == ["hers"]
            assert store.check() == []

    def test_check_finds_nothing_wrong_with_a_store_in_use(self, store: Store) -> None:
        store.save_many([Memory(str(n), "x", persistent=True) for n in range(5)])
        store.delete("1")
        assert store.check() == []
        assert store.check(fix=True) == []
        assert store.count() == 4

    # -- against a dictionary --------------------------------------------------------------

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def test_listings_agree_with_the_filter_on_each_memory(
        self, store: Store, data: st.DataObject
    ) -> None:
        store.delete_many([m.id for m in store.list_all()] + store.expired())
        many = data.draw(st.lists(memories(), max_size=8, unique_by=lambda m: m.id))
        store.save_many(many)
        now = clock.now()
        narrow = data.draw(filters(many))
        order = data.draw(st.sampled_from(Order))
        limit = data.draw(st.integers(0, 9))
        visible = [m for m in many if not m.is_expired(now) and narrow.admits(m)]
        visible.sort(key=order_key(order))
        page = store.page(limit, narrow=narrow, order=order)
        assert [m.id for m in page] == [m.id for m in visible[:limit]]
        assert store.count(narrow) == len(visible)

    def test_any_sequence_of_calls_agrees_with_a_dictionary(self, tmp_path: Path) -> None:
        machine = store_machine(self.open_store, tmp_path, self.durable)
        chosen = settings(_STATEFUL, max_examples=self.histories)
        run_state_machine_as_test(machine, settings=chosen)
