"""A store driven side by side with a dictionary, by any sequence of calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from .. import clock
from ..models import Memory
from ..stores.base import Order, Store, order_key
from .strategies import memories, same

__all__ = ["store_machine"]


def store_machine(
    open_store: Callable[[Path], Store], place: Path, durable: bool
) -> type[RuleBasedStateMachine]:
    """The machine for one kind of store; cases get folders of their own in ``place``."""
    count = iter(range(1_000_000))

    class StoreMachine(RuleBasedStateMachine):
        ids = Bundle("ids")

        @initialize()
        def start(self) -> None:
            self.place = place / f"case-{next(count)}"
            self.place.mkdir()
            self.store = open_store(self.place)
            self.model: dict[str, Memory] = {}
            self.counts: dict[str, int] = {}
            self.known: dict[str, Memory] = {}
            self.revision = 0

        def _saved(self, memory: Memory) -> None:
            before = self.counts.get(memory.id, 0) if memory.id in self.model else 0
            self.counts[memory.id] = max(before, memory.access_count)
            self.model[memory.id] = memory

        @rule(target=ids, memory=memories())
        def save(self, memory: Memory) -> str:
            self.store.save(memory)
            self._saved(memory)
            return memory.id

        @rule(target=ids, batch=st.lists(memories(), max_size=4))
        def save_many(self, batch: list[Memory]) -> Any:
            self.store.save_many(batch)
            for memory in batch:
                self._saved(memory)
            return multiple(*(memory.id for memory in batch))

        @rule(id=consumes(ids))
        def delete(self, id: str) -> None:
            assert self.store.delete(id) == (id in self.model)
            self.model.pop(id, None)

        @rule(ids=st.lists(ids, max_size=4))
        def delete_many(self, ids: list[str]) -> None:
            assert self.store.delete_many(ids) == len(set(ids) & self.model.keys())
            for id in ids:
                self.model.pop(id, None)

        @rule(id=ids)
        def get(self, id: str) -> None:
            found = self.store.get(id)
            expected = self.model.get(id)
            if expected is None or expected.is_expired(clock.now()):
                assert found is None
                return
            assert found is not None
            self.counts[id] += 1
            assert same(found, expected)
            assert found.access_count == self.counts[id]

        @rule()
        def catch_up(self) -> None:
            changes = self.store.changes(self.revision)
            if changes.reset:
                self.known.clear()
            for id in changes.deleted:
                self.known.pop(id, None)
            for memory in changes.saved:
                self.known[memory.id] = memory
            self.revision = changes.revision
            assert self.known.keys() == self.model.keys()
            assert all(same(self.known[id], self.model[id]) for id in self.model)

        @rule()
        def reopen(self) -> None:
            if durable:
                self.store.close()
                self.store = open_store(self.place)

        @invariant()
        def the_listing_is_the_dictionarys(self) -> None:
            if not hasattr(self, "store"):
                return
            now = clock.now()
            expected = sorted(
                (m for m in self.model.values() if not m.is_expired(now)),
                key=order_key(Order.NEWEST),
            )
            listed = self.store.list_all()
            assert [m.id for m in listed] == [m.id for m in expected]
            assert all(map(same, listed, expected))
            assert [m.access_count for m in listed] == [self.counts[m.id] for m in listed]

        def teardown(self) -> None:
            if hasattr(self, "store"):
                assert self.store.check() == []
                self.store.close()

    return StoreMachine
