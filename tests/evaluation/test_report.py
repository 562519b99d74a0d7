from __future__ import annotations

import json

import pytest

from retain import InvalidValue
from retain.evaluation import METRICS, Outcome, Report, comparison


def report(*outcomes, **changes):
    fields = {
        "dataset": "data.json",
        "digest": "0123456789abcdef" * 4,
        "format": "plain",
        "unit": "turn",
        "part": "",
        "configuration": "default",
        "depth": 50,
        "memories": 1234,
        "left_out": {},
        "outcomes": outcomes,
        **changes,
    }
    return Report(**fields)


TWO = (
    Outcome("q1", "temporal", 1, (1,), 0.001),
    Outcome("q2", "temporal", 2, (3,), 0.003),
    Outcome("q3", "日本語", 4, (2, 7, 40), 0.002),
)


def test_scores_are_averages_over_questions():
    scores = report(*TWO).scores()
    assert scores["recall@1"] == pytest.approx(1 / 3)
    assert scores["recall@5"] == pytest.approx((1 + 0.5 + 0.25) / 3)
    assert scores["recall@10"] == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert scores["recall@50"] == pytest.approx((1 + 0.5 + 0.75) / 3)
    assert scores["any@5"] == 1
    assert scores["all@10"] == pytest.approx(1 / 3)
    assert scores["mrr"] == pytest.approx((1 + 1 / 3 + 1 / 2) / 3)
    assert list(scores) == list(METRICS)


def test_scores_can_be_of_one_category():
    assert report(*TWO).scores("temporal")["recall@5"] == 0.75
    assert list(report(*TWO).categories()) == ["temporal", "日本語"]
    with pytest.raises(InvalidValue, match="'x' is none of temporal"):
        report(*TWO).scores("x")


def test_the_curve_goes_through_the_scores():
    curve = report(*TWO).recall_by_k()
    assert len(curve) == 50
    assert curve == sorted(curve)
    scores = report(*TWO).scores()
    assert [curve[k - 1] for k in (1, 5, 50)] == [scores[f"recall@{k}"] for k in (1, 5, 50)]
    assert report(*TWO).recall_by_k("日本語")[6] == 0.5


def test_what_needs_more_depth_than_there_was_is_not_told():
    scores = report(*TWO, depth=10).scores()
    assert "recall@10" in scores
    assert "recall@20" not in scores
    assert "R@20" not in str(report(*TWO, depth=10))


def test_a_report_is_a_json_object():
    found = report(*TWO, left_out={"abstention": 3}).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["questions"] == 3
    assert found["sha256"] == "0123456789abcdef" * 4
    assert found["left_out"] == {"abstention": 3}
    assert found["categories"]["temporal"]["questions"] == 2
    assert found["overall"] == report(*TWO).scores()
    assert found["seconds_per_query"] == 0.002


def test_a_table_has_a_row_for_each_category():
    table = str(report(*TWO, left_out={"abstention": 3}, part="conversations 1-5"))
    lines = table.splitlines()
    assert lines[0] == (
        "data.json (sha256 0123456789ab), conversations 1-5, unit turn, configuration default"
    )
    assert lines[1] == "3 questions on 1,234 memories; left out: 3 abstention"
    assert lines[3].split()[:4] == ["category", "questions", "R@1", "R@5"]
    assert lines[4].split()[:4] == ["all", "3", ".333", ".583"]
    assert lines[5].split()[:3] == ["temporal", "2", ".500"]
    assert lines[5].split()[5:7] == [".750", ".750"]
    assert lines[6].split()[-1] == ".500"
    assert lines[-1] == "median of a query: 2.00 ms"
    # 日本語 takes six columns, as three characters
    assert len(lines[4]) == len(lines[5]) == len(lines[6]) + 3


def test_one_category_is_not_told_twice():
    assert len(str(report(*TWO[:2])).splitlines()) == 7
    assert "1.00" in str(report(TWO[0]))


def test_several_configurations_stand_side_by_side():
    other = report(*(Outcome(o.question, o.category, o.relevant, (), 0.5) for o in TWO))
    other = report(*other.outcomes, configuration="nothing")
    lines = comparison([report(*TWO), other]).splitlines()
    assert "configuration" not in lines[0]
    assert lines[4].split()[:4] == ["all", "3", "default", ".333"]
    assert lines[5].split()[:2] == ["nothing", ".000"]
    assert lines[-1] == "median of a query: default 2.00 ms, nothing 500.00 ms"


@pytest.mark.parametrize("change", [{"digest": "f" * 64}, {"unit": "session"}, {"depth": 9}])
def test_what_cannot_be_compared_is_refused(change):
    with pytest.raises(InvalidValue, match="different"):
        comparison([report(*TWO), report(*TWO, **change)])
    with pytest.raises(InvalidValue, match="no report"):
        comparison([])


def test_no_name_breaks_the_table():
    table = str(report(TWO[0], Outcome("q", "a\nb\u2028c\td", 1, (), 0.0)))
    assert len(table.splitlines()) == 9
    assert "a b c d" in table
