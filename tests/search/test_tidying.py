"""Merging segments, and what happens to them meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

from retain import Memory
from retain.search import tidying
from retain.search.index import ScopeIndex
from retain.search.tidying import tidy
from search.reference import TinyEmbedder


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retain.search.index._TAIL", 3)
    monkeypatch.setattr("retain.search.segment._FEW", 3)
    monkeypatch.setattr(tidying, "_QUICK", 0)


class Filling:
    """An index that is filled, and what is to be in it."""

    def __init__(self) -> None:
        self.index = ScopeIndex(TinyEmbedder())
        self.there: dict[str, str] = {}
        self.numbers = count()
        self.revisions = count(1)

    def add(self, number: int, word: str = "tea") -> list[str]:
        new = {f"m{next(self.numbers)}": word for _ in range(number)}
        memories = [
            Memory(id, text, metadata={"session": len(id), "turn": int(id[1:])}, created_at=1.0)
            for id, text in new.items()
        ]
        self.index.apply([], memories, next(self.revisions))
        self.there |= new
        return list(new)

    def drop(self, *ids: str) -> None:
        self.index.apply(ids, [], next(self.revisions))
        for id in ids:
            del self.there[id]

    def check(self) -> None:
        index = self.index
        live = index.columns["live"]
        assert len(index) == len(self.there) == np.count_nonzero(live)
        for word in ("tea", "milk"):
            rows = index.posted(word).rows
            assert (np.diff(rows) > 0).all()
            found = {index.columns.id(int(row)) for row in rows if live[row]}
            assert found == {id for id, text in self.there.items() if text == word}
        alike = index.similar(TinyEmbedder().embed_query("milk"))
        for row in np.flatnonzero(live).tolist():
            assert (alike[row] > 0.95) == (self.there[index.columns.id(row)] == "milk")
        for session in {len(id) for id in self.there}:
            turns = sorted(
                (id for id in self.there if len(id) == session), key=lambda i: int(i[1:])
            )
            assert index.beside(turns[0], 10**6) == turns[1:]
            assert index.beside(turns[-1], 10**6) == turns[:-1]

    @property
    def sizes(self) -> list[int]:
        return [stretch.segment.size for stretch in self.index.stretches]


def test_what_there_is_nothing_to_do_for_is_left_as_it_is():
    filling = Filling()
    tidy(filling.index)
    assert filling.sizes == []
    filling.add(9)
    filling.add(3)
    generation, sizes = filling.index.generation, filling.sizes
    tidy(filling.index)
    assert (filling.index.generation, filling.sizes) == (generation, sizes)
    filling.check()


def test_dead_rows_go_when_a_fourth_is_dead_and_the_others_move_up():
    filling = Filling()
    first = filling.add(40)
    filling.add(2, "milk")
    filling.drop(*first[::4])
    tidy(filling.index)
    assert (filling.sizes, filling.index.columns.size) == ([40], 42)  # not more than a fourth
    filling.drop(first[1])
    tidy(filling.index)
    assert (len(filling.sizes), filling.index.columns.size) == (1, 31)
    assert filling.index.posted("milk").rows.tolist() == [29, 30]
    filling.check()


def test_where_that_takes_no_time_nothing_dead_is_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tidying, "_QUICK", 20_000)
    filling = Filling()
    first = filling.add(40)
    filling.drop(first[7])
    tidy(filling.index)
    assert filling.index.columns.size == 39
    filling.check()


def test_an_eighth_of_new_rows_merges_all_and_less_merges_the_small_ones():
    filling = Filling()
    filling.add(400)
    for _ in range(3):
        filling.add(5, "milk")
    assert filling.sizes == [400, 5, 5, 5]
    tidy(filling.index)
    assert filling.sizes == [400, 15]
    filling.check()
    filling.add(44)
    tidy(filling.index)
    assert filling.sizes == [459]
    filling.check()


def test_many_small_additions_leave_few_segments():
    filling = Filling()
    filling.add(2_000)
    for _ in range(60):
        filling.add(4, "milk")
        tidy(filling.index)
        assert len(filling.sizes) <= 6
    filling.check()


def test_when_everything_is_dead_nothing_is_left():
    filling = Filling()
    filling.drop(*filling.add(20))
    tidy(filling.index)
    assert filling.index.columns.size == 0
    filling.add(9, "milk")
    filling.check()


Meanwhile = Callable[[Filling], Any]
MEANWHILE: dict[str, Meanwhile] = {
    "add": lambda filling: filling.add(2, "milk"),
    "add a segment": lambda filling: filling.add(30, "milk"),
    "delete": lambda filling: filling.drop("m1", "m33"),
    "delete and add": lambda filling: (filling.drop("m2"), filling.add(5, "milk")),
    "replace": lambda filling: (filling.drop("m3"), filling.add(1, "milk"), filling.drop("m41")),
    "tidy": lambda filling: (filling.drop("m5"), tidy(filling.index)),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize(
    ("at", "dead"), [("merged", 0), ("merged", 15), ("_compacted", 15)], ids=str
)
def test_what_comes_while_segments_are_merged_is_not_lost(
    meanwhile: str, at: str, dead: int, monkeypatch: pytest.MonkeyPatch
):
    filling = Filling()
    filling.add(32)
    filling.add(9)
    filling.drop(*[f"m{n}" for n in range(6, 6 + dead)])
    work, calls = getattr(tidying, at), []

    def interrupted(*arguments: Any) -> Any:
        calls.append(arguments)
        done = work(*arguments)
        if len(calls) == 1:
            MEANWHILE[meanwhile](filling)
        return done

    monkeypatch.setattr(tidying, at, interrupted)
    tidy(filling.index)
    assert calls
    filling.check()
    tidy(filling.index)
    filling.check()


def test_a_merge_of_what_was_cleared_meanwhile_is_dropped(monkeypatch: pytest.MonkeyPatch):
    filling = Filling()
    filling.add(32)
    filling.add(9)
    merge = tidying.merged

    def merged(*arguments: Any) -> Any:
        one = merge(*arguments)
        filling.index.clear()
        filling.there.clear()
        return one

    monkeypatch.setattr(tidying, "merged", merged)
    tidy(filling.index)
    assert (len(filling.index), filling.index.stretches) == (0, [])
    filling.add(7, "milk")
    filling.check()
