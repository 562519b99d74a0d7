from __future__ import annotations

import pytest

from retain import InvalidValue
from retain.evaluation import Case, Dataset, Item, Question
from retain.evaluation.dataset import checked_case, in_sessions

ITEMS = [
    Item("1", "hi", "Ann", "a", 5.0),
    Item("2", "مرحبا", "Bob", "b", 7.0),
    Item("3", "bye", None, "a", 6.0),
]
CASE = Case("c", ITEMS, [Question("q", "who?", frozenset({"1", "3"}))], {"adversarial": 2})


def test_sessions_have_their_items_in_order():
    assert CASE.sessions() == {"a": [ITEMS[0], ITEMS[2]], "b": [ITEMS[1]]}


def test_a_session_document_holds_a_line_for_each_turn():
    case = in_sessions(CASE, "session-document")
    assert [(item.id, item.content, item.role, item.created_at) for item in case.items] == [
        ("a", "Ann: hi\nbye", None, 5.0),
        ("b", "Bob: مرحبا", None, 7.0),
    ]
    assert case.questions[0].relevant == {"a"}
    assert case.left_out == CASE.left_out


def test_sessions_that_are_relevant_may_be_given():
    case = in_sessions(CASE, "session", {"q": frozenset({"b"})})
    assert (case.items, case.questions[0].relevant) == (ITEMS, {"b"})


def test_an_id_that_is_there_twice_is_refused():
    with pytest.raises(InvalidValue, match="two questions have the id 'q'"):
        checked_case("c", ITEMS, [*CASE.questions, *CASE.questions], {})


def test_what_is_left_out_is_counted_over_all_cases():
    dataset = Dataset("d", "", [CASE, CASE, Case("e", ITEMS, [], {"abstention": 1, "other": 0})])
    assert dataset.left_out == {"adversarial": 4, "abstention": 1}
    assert (dataset.question_count, dataset.item_count) == (2, 6)
