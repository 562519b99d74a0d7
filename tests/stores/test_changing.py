"""A read and a write that belong together."""

from __future__ import annotations

import pytest

from retain import InMemoryStore, Memory
from retain.errors import Conflict
from retain.stores.changing import change


def test_what_another_writes_meanwhile_is_read_again_and_nothing_is_lost():
    store = InMemoryStore()
    store.save(Memory("m", "a"))
    others = ["é", "c"]

    def append(found: dict[str, Memory]) -> list[Memory]:
        new = found["m"].copy(content=found["m"].content + "!")
        if others:
            store.save(found["m"].copy(content=found["m"].content + others.pop(0)))
        return [new]

    assert [memory.content for memory in change(store, ["m"], append)] == ["aéc!"]
    assert store.peek(["m"])[0].content == "aéc!"


def test_a_new_memory_takes_no_place_that_another_took_meanwhile():
    store = InMemoryStore()
    seen: list[list[str]] = []

    def begin(found: dict[str, Memory]) -> list[Memory]:
        seen.append([memory.content for memory in found.values()])
        if not found:
            store.save(Memory("m", "theirs"))
            return [Memory("m", "mine")]
        return []

    assert change(store, ["m", "m"], begin) == []
    assert seen == [[], ["theirs"]]


def test_it_gives_up_where_others_never_pause():
    store = InMemoryStore()

    def lose(found: dict[str, Memory]) -> list[Memory]:
        store.save(Memory("m", "theirs"))
        return [Memory("m", "mine")]

    with pytest.raises(Conflict, match="100 times"):
        change(store, ["m"], lose)
    assert store.peek(["m"])[0].content == "theirs"
