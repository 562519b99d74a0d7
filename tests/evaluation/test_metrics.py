from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.evaluation.metrics import (
    all_at,
    any_at,
    ndcg_at,
    ranks_of,
    recall_at,
    reciprocal_rank,
)

IDS = st.integers(0, 30).map(str)
RANKINGS = st.lists(IDS, max_size=25, unique=True)
RELEVANT = st.sets(IDS, min_size=1, max_size=12)
KS = st.integers(1, 30)


def dcg(gains: list[int]) -> float:
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))


@given(RANKINGS, RELEVANT, KS)
def test_every_metric_is_what_its_definition_says(ranking, relevant, k):
    ranks = ranks_of(ranking, relevant)
    found = relevant & set(ranking[:k])
    assert recall_at(ranks, len(relevant), k) == len(found) / len(relevant)
    assert any_at(ranks, len(relevant), k) == (1 if found else 0)
    assert all_at(ranks, len(relevant), k) == (1 if found == relevant else 0)
    gains = [int(id in relevant) for id in ranking[:k]]
    best = [1] * min(k, len(relevant))
    assert ndcg_at(ranks, len(relevant), k) == pytest.approx(dcg(gains) / dcg(best))
    firsts = [place for place, id in enumerate(ranking, 1) if id in relevant]
    assert reciprocal_rank(ranks) == (1 / firsts[0] if firsts else 0)


@given(RANKINGS, RELEVANT, KS)
def test_metrics_lie_between_0_and_1_and_never_fall_with_k(ranking, relevant, k):
    ranks = ranks_of(ranking, relevant)
    for metric in (recall_at, any_at, all_at, ndcg_at):
        assert 0 <= metric(ranks, len(relevant), k) <= 1 + 1e-12
    for metric in (recall_at, any_at, all_at):
        assert metric(ranks, len(relevant), k) <= metric(ranks, len(relevant), k + 1)
    assert all_at(ranks, len(relevant), k) <= recall_at(ranks, len(relevant), k)
    assert recall_at(ranks, len(relevant), k) <= any_at(ranks, len(relevant), k)


@given(RELEVANT, KS)
def test_a_perfect_ranking_has_full_marks(relevant, k):
    ranks = ranks_of(sorted(relevant), relevant)
    assert ndcg_at(ranks, len(relevant), k) == pytest.approx(1)
    assert reciprocal_rank(ranks) == 1
    assert all_at(ranks, len(relevant), k) == (len(relevant) <= k)


@given(st.lists(IDS, max_size=25), RELEVANT)
def test_what_stands_twice_counts_once_at_its_first_place(ranking, relevant):
    ranks = ranks_of(ranking, relevant)
    assert ranks == sorted(ranking.index(id) + 1 for id in relevant & set(ranking))


def test_figures_that_were_worked_out_by_hand():
    ranks = ranks_of(["x", "a", "y", "b"], {"a", "b", "c"})
    assert ranks == [2, 4]
    assert recall_at(ranks, 3, 3) == pytest.approx(1 / 3)
    assert (any_at(ranks, 3, 1), any_at(ranks, 3, 2)) == (0, 1)
    assert reciprocal_rank(ranks) == 0.5
    # (1/log2 3 + 1/log2 5) / (1 + 1/log2 3 + 1/2)
    assert ndcg_at(ranks, 3, 10) == pytest.approx((0.63093 + 0.43068) / 2.13093, abs=1e-4)
