from __future__ import annotations

import pytest

from retain import InvalidValue
from retain.evaluation import load_dataset


def test_each_language_is_a_case_and_a_category(write, corpora):
    dataset = load_dataset(write("xquad.json", corpora))
    assert dataset.format == "xquad"
    assert [case.id for case in dataset.cases] == ["en", "zh"]
    assert dataset.cases[1].items[0].content == "猫在睡觉。"
    assert [q.category for case in dataset.cases for q in case.questions] == ["en", "zh"]
    assert dataset.left_out == {"without evidence": 1}


def test_paragraphs_have_no_sessions(write, corpora):
    with pytest.raises(InvalidValue, match="xquad has no sessions"):
        load_dataset(write("xquad.json", corpora), unit="session")


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("id", None, "corpora[0] has no 'id'"),
        ("docs", [["p0"]], "corpora[0].docs[0] has 1 elements; give 2"),
        ("docs", [["p0", 1]], "corpora[0].docs[0][1] is 1; give text"),
        ("docs", [["p1", "x"], ["p1", "y"]], "en: two memories have the id 'p1'"),
        ("queries", {}, "corpora[0].queries is a JSON object; give a list"),
        ("queries", [{"id": "q", "text": "x", "rel": ["p9"]}], "rel has 'p9', which is none"),
        ("queries", 2 * [{"id": "q", "text": "x", "rel": ["p1"]}], "two questions have the id 'q'"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_place(write, corpora, member, value, message):
    corpora["corpora"][0][member] = value
    with pytest.raises(InvalidValue) as caught:
        load_dataset(write("xquad.json", corpora))
    assert message in str(caught.value)
