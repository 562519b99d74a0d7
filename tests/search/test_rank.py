"""The exact best k, and recency."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.clock import DAY
from retain.search.rank import HALF_LIFE, best, recency

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
