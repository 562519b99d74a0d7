from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import pytest

from retain import ConversationMemory, InvalidValue, NotFound, clock
from retain.evaluation import evaluate, load_dataset


def split(questions):
    """The same data as questions, and sessions beside them."""
    sessions = {}
    found = []
    for question in questions:
        rest = {k: v for k, v in question.items() if not k.startswith("haystack")}
        ids, dates = question["haystack_session_ids"], question["haystack_dates"]
        sessions |= dict(zip(ids, question["haystack_sessions"], strict=True))
        found.append({**rest, "haystack": list(zip(ids, dates, strict=True))})
    return found, [{"session_id": id, "turns": turns} for id, turns in sessions.items()]


def test_each_question_is_a_case_with_its_own_haystack(write, longmemeval):
    dataset = load_dataset(write("data.json", longmemeval))
    assert (dataset.format, dataset.question_count, dataset.item_count) == ("longmemeval", 2, 8)
    assert dataset.left_out == {"abstention": 1}
    case = dataset.cases[0]
    assert [item.role for item in case.items] == ["user", "assistant"] * 2
    assert [item.session for item in case.items] == ["noise"] * 2 + ["answer_1"] * 2
    assert clock.iso(case.items[1].created_at or 0) == "2023-05-20T02:21:01Z"
    (question,) = case.questions
    assert (question.id, question.category) == ("q1", "single-session-user")
    assert clock.iso(question.asked_at or 0) == "2023-05-30T23:40:00Z"


def test_relevant_are_turns_that_answer_or_sessions_that_do(write, longmemeval):
    path = write("data.json", longmemeval)
    turns = load_dataset(path)
    assert turns.cases[0].questions[0].relevant == {"answer_1:1"}
    sessions = load_dataset(path, unit="session")
    assert sessions.cases[0].questions[0].relevant == {"answer_1"}
    assert len(sessions.cases[0].items) == 4
    documents = load_dataset(path, unit="session-document")
    assert [item.id for item in documents.cases[0].items] == ["noise", "answer_1"]
    assert documents.cases[1].questions[0].relevant == {"noise"}


def test_what_has_no_evidence_in_the_unit_is_left_out(write, longmemeval):
    longmemeval[0]["haystack_sessions"][1][0]["has_answer"] = False
    path = write("data.json", longmemeval)
    assert load_dataset(path, unit="session").question_count == 2
    with pytest.raises(NotFound, match="no question"):
        load_dataset(path)  # the second shares the sessions
    longmemeval[0]["haystack_sessions"][0][1]["has_answer"] = True
    longmemeval[1]["haystack_sessions"] = [[], []]
    dataset = load_dataset(write("data.json", longmemeval))
    assert dataset.left_out == {"abstention": 1, "without evidence": 1}
    assert [len(case.questions) for case in dataset.cases] == [1, 0, 0]


def test_a_session_that_is_there_twice_is_two(write, longmemeval):
    for name in ("session_ids", "dates", "sessions"):
        longmemeval[0][f"haystack_{name}"] *= 2
    case = load_dataset(write("data.json", longmemeval[:1])).cases[0]
    assert len({item.id for item in case.items}) == 8
    assert case.questions[0].relevant == {"answer_1:1", "answer_1 (2):1"}
    case = load_dataset(write("data.json", longmemeval[:1]), unit="session").cases[0]
    assert case.questions[0].relevant == {"answer_1", "answer_1 (2)"}


@pytest.mark.parametrize("ending", ["", ".xz", ".gz"])
def test_questions_and_sessions_may_be_apart(write, longmemeval, ending: str):
    pack = {"": bytes, ".xz": lzma.compress, ".gz": gzip.compress}[ending]
    whole = load_dataset(write("data.json", longmemeval))
    questions, sessions = split(longmemeval)
    paths = []
    for name, values in (("questions", questions), ("sessions", sessions)):
        path = write(f"x.{name}.jsonl", *values, lines=True)
        data = path.read_bytes()
        path.unlink()
        paths.append(path.with_name(path.name + ending))
        paths[-1].write_bytes(pack(data))
    for apart in (load_dataset(paths[0]), load_dataset(*paths)):
        assert apart.cases == whole.cases
        assert apart.name == paths[0].name
    assert apart.digest != whole.digest
    paths[1].rename(paths[1].with_name("elsewhere"))
    with pytest.raises(NotFound, match="its sessions are in another file"):
        load_dataset(paths[0])
    assert load_dataset(paths[0], paths[1].with_name("elsewhere")).cases == whole.cases


def test_the_list_may_be_a_line_for_each_question(write, longmemeval):
    whole = load_dataset(write("data.json", longmemeval))
    for some in (longmemeval, longmemeval[:1]):
        lines = load_dataset(write("data.jsonl", *some, lines=True))
        assert lines.cases == whole.cases[: len(some)]


def test_no_id_is_shown_to_the_memory(write, longmemeval):
    """A session's id says whether it answers: nothing that is remembered may hold it."""
    for unit in ("turn", "session", "session-document"):
        dataset = load_dataset(write("data.json", longmemeval[:1]), unit=unit)
        memory = ConversationMemory()
        memory.close = lambda: None  # type: ignore[method-assign]
        evaluate(dataset, lambda memory=memory: memory)
        seen = [json.dumps(each.to_dict()) for each in memory.engine.store.iterate()]
        assert seen
        assert not [text for text in seen if "answer_1" in text or "noise" in text]


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("question_id", None, "[0] has no 'question_id'"),
        ("question", "", "[0].question is blank"),
        ("question_type", 3, "[0].question_type is 3; give text"),
        ("question_date", "yesterday", "[0].question_date is 'yesterday'; give a time such as"),
        ("question_date", "2023/02/30 (Thu) 10:00", "[0].question_date is"),
        ("answer_session_ids", "x", '[0].answer_session_ids is "x"; give a list'),
        ("haystack_session_ids", ["a"], "[0].haystack_session_ids has 1 elements; give 2"),
        ("haystack_dates", ["a"], "[0].haystack_dates has 1 elements; give 2"),
        ("haystack_sessions", [[{"role": "user"}], []], "haystack_sessions[0][0] has no 'content'"),
        (
            "haystack_sessions",
            [[{"role": "user", "content": "x", "has_answer": "yes"}], []],
            'haystack_sessions[0][0].has_answer is "yes"; give true or false',
        ),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_place(write, longmemeval, member, value, message):
    longmemeval[0][member] = value
    with pytest.raises(InvalidValue) as caught:
        load_dataset(write("data.json", longmemeval), format="longmemeval")
    assert message in str(caught.value)


def test_a_session_that_is_nowhere_is_named_with_the_line(write, longmemeval, tmp_path: Path):
    questions, sessions = split(longmemeval)
    write("x.sessions.jsonl", *sessions[:1], lines=True)
    path = write("x.questions.jsonl", *questions, lines=True)
    with pytest.raises(InvalidValue, match=r"line 1: haystack\[1\]\[0\] is 'answer_1', which"):
        load_dataset(path)
