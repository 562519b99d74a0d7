"""The exact best k, and recency."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain import Filter, InMemoryStore, Memory, clock
from retain.clock import DAY
from retain.engine import Engine
from retain.search import rank
from retain.search.rank import HALF_LIFE, best, recency
from search.reference import ids, in_order

NOW = 2_000_000_000.0

few = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@given(
    rows=st.lists(st.tuples(few, few, few, st.text("ab", max_size=3)), max_size=30),
    k=st.integers(-1, 35),
)
def test_the_best_are_those_a_sort_puts_first_whatever_ties(rows, k):
    keys = [np.array([row[at] for row in rows], float) for at in range(3)]
    order = sorted(range(len(rows)), key=lambda at: (*(-x for x in rows[at][:3]), rows[at][3]))
    found = best(k, keys, lambda at: rows[at][3])
    assert [rows[at] for at in found] == [rows[at] for at in order[: max(k, 0)]]
    assert len(set(found)) == len(found)


def test_the_id_decides_between_more_equals_than_are_wanted():
    keys = [np.zeros(1000)]
    assert best(3, keys, lambda at: f"{999 - at:03}") == [999, 998, 997]


@pytest.mark.parametrize(
    ("age", "score"), [(0, 1.0), (7, 0.5), (14, 0.25), (-3, 1.0), (70, 2**-10), (1e9, 0.0)]
)
def test_recency_halves_every_seven_days_and_the_future_is_now(age, score):
    assert HALF_LIFE == 7.0
    assert recency(np.array([1e9 - age * DAY]), 1e9)[0] == pytest.approx(score)


def test_the_half_life_can_be_set():
    assert recency(np.array([0.0]), 3 * DAY, half_life=3.0)[0] == 0.5
    assert recency(np.zeros(0), 1e9).shape == (0,)


# -- the mix, among many ---------------------------------------------------------------------


def scope(count: int, ages: str, seed: int) -> list[Memory]:
    """Memories with few kinds of words, ages and importance, so that many tie."""
    random = np.random.default_rng(seed)
    days = {
        "new": lambda: 0.0,
        "old": lambda: float(random.integers(400, 4000)),
        "one new": lambda: 0.0 if random.random() < 0.002 else 900.0,
        "of all kinds": lambda: float(random.choice([-1, 0, 0, 0.5, 7, 30, 2000])),
        "ever older": lambda: float(random.random() * 60),
    }[ages]
    return [
        Memory(
            f"{random.integers(10**9):09}-{n}",
            " ".join(random.choice(["tea", "milk", "sugar", "cup", "pot"], 2)),
            importance=float(random.choice([0.0, 0.25, 0.5, 1.0])),
            tags=["odd"] if n % 2 else [],
            created_at=round(NOW - days() * DAY, 6),
        )
        for n in range(count)
    ]


@pytest.mark.parametrize("ages", ["new", "old", "one new", "of all kinds", "ever older"])
@pytest.mark.parametrize("block", [None, 7])
def test_the_k_best_are_the_first_k_of_all(
    ages: str, block: int | None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(clock, "now", lambda: NOW)
    if block is not None:
        monkeypatch.setattr(rank, "_BLOCK", block, raising=False)
    with InMemoryStore() as store:
        engine = Engine(store)
        store.save_many(scope(1500, ages, seed=len(ages)))
        for query in ("tea milk", "sugar", "tea milk sugar cup pot", ""):
            for narrow in (None, Filter(tags=("odd",)), Filter(min_importance=1.0)):
                every = engine.recall(query, 1500, narrow)
                assert in_order(every)
                for k in (1, 2, 9, 40, 700):
                    assert ids(engine.recall(query, k, narrow)) == ids(every)[:k]


def test_equals_stand_newest_first_then_by_id(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clock, "now", lambda: NOW)
    # What lies in the future is as recent as now: these tie in all but their time.
    with InMemoryStore() as store:
        engine = Engine(store)
        store.save_many(
            Memory(f"{name}{n:03}", "tea", created_at=NOW + ahead)
            for name, ahead in (("b", 5.0), ("a", 0.0), ("c", 9.0))
            for n in range(200)
        )
        expected = [f"{name}{n:03}" for name in "cba" for n in range(200)]
        for k in (1, 3, 200, 201, 600, 10**9):
            assert ids(engine.recall("tea", k)) == ids(engine.recall("", k)) == expected[:k]
