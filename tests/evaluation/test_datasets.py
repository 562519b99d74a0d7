from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retain import InvalidType, InvalidValue, NotFound, RetainError
from retain.evaluation import FORMATS, evaluate, load_dataset


def test_the_format_is_found_in_the_content(write, locomo, longmemeval, corpora):
    for name, value in (("locomo", locomo), ("longmemeval", longmemeval), ("xquad", corpora)):
        path = write("data", value)
        assert load_dataset(path).format == name
        assert load_dataset(path, format=name) == load_dataset(path)
    assert set(FORMATS) == {"auto", "locomo", "longmemeval", "xquad", "plain"}


@pytest.mark.parametrize("value", [[], {}, [1], {"a": 1}, "text", None, [{"qa": []}]])
def test_what_is_no_format_is_refused(write, value):
    with pytest.raises(InvalidValue, match="none of the formats that are known"):
        load_dataset(write("data.json", value))


def test_a_format_that_was_named_is_not_guessed(write, locomo, corpora):
    with pytest.raises(InvalidValue, match="has no 'question_id'"):
        load_dataset(write("data.json", locomo), format="longmemeval")
    with pytest.raises(InvalidValue, match="it is a JSON object; give a list"):
        load_dataset(write("data.json", corpora), format="locomo")
    with pytest.raises(InvalidValue, match="locomo is one file"):
        load_dataset(write("data.json", locomo), write("other.json", corpora))


def test_only_some_conversations_and_questions_can_be_taken(write, locomo):
    second = {**locomo[0], "sample_id": "conv-2"}
    path = write("data.json", [locomo[0], second])
    dataset = load_dataset(path, conversations=[2, 2])
    assert [case.id for case in dataset.cases] == ["conv-2"]
    assert (dataset.part, dataset.left_out["adversarial"]) == ("conversations 2", 1)
    dataset = load_dataset(path, limit=4)
    assert [len(case.questions) for case in dataset.cases] == [3, 1]
    assert dataset.part == "the first 4 questions"
    assert len(load_dataset(path, limit=3).cases) == 1
    dataset = load_dataset(path, conversations=[1, 2], limit=1)
    assert dataset.part == "the first 1 questions of conversations 1-2"
    assert dataset.digest == load_dataset(path).digest
    with pytest.raises(InvalidValue, match="conversation 3 is not there"):
        load_dataset(path, conversations=[3])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"format": "csv"}, InvalidValue),
        ({"unit": "word"}, InvalidValue),
        ({"limit": 0}, InvalidValue),
        ({"limit": "3"}, InvalidType),
        ({"conversations": [0]}, InvalidValue),
        ({"conversations": ["1"]}, InvalidType),
        ({"conversations": []}, NotFound),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(write, locomo, options, error):
    with pytest.raises(error):
        load_dataset(write("data.json", locomo), **options)


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path):
    with pytest.raises(NotFound, match="there is no file"):
        load_dataset(tmp_path / "nowhere.json")


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda values: st.lists(values, max_size=2) | st.dictionaries(st.text(max_size=3), values),
    max_leaves=4,
)


def places(value, path=()):
    """The path to everything inside of a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in inside:
        yield (*path, name)
        if isinstance(each, (dict, list)):
            yield from places(each, (*path, name))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.data())
@pytest.mark.parametrize("name", ["locomo", "longmemeval", "xquad", "plain"])
def test_whatever_stands_in_a_place_is_read_or_refused(request, tmp_path, name, data):
    if name == "plain":
        memories = [{"id": "a", "content": "tea", "role": "Ann", "tags": ["x"], "ttl_days": 9}]
        value = {"m": memories, "q": [{"query": "東京", "relevant": ["a"], "asked_at": 3}]}
    else:
        value = copy.deepcopy(request.getfixturevalue({"xquad": "corpora"}.get(name, name)))
    *parents, last = data.draw(st.sampled_from(list(places(value))))
    inside = value
    for parent in parents:
        inside = inside[parent]
    inside[last] = data.draw(ODD)
    parts = [value["m"], value["q"]] if name == "plain" else [value]
    paths = [tmp_path / f"{number}.json" for number, _ in enumerate(parts)]
    for path, part in zip(paths, parts, strict=True):
        lines = part if name == "plain" and isinstance(part, list) else [part]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    try:
        dataset = load_dataset(*paths, format=name)
    except RetainError as error:
        assert "\n" not in str(error)
        return
    assert evaluate(dataset).outcomes
