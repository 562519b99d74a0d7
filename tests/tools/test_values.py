"""Types as JSON schemas, and values as types."""

# The older spellings of unions are among what is tested.
# ruff: noqa: UP007, UP045

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Optional, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidType, InvalidValue, RetainError
from retain.tools.values import coerce, did_you_mean, type_schema

SCHEMAS: list[tuple[Any, dict[str, Any]]] = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, {"type": "null"}),
    (Any, {}),
    (object, {}),
    (list, {"type": "array", "items": {}}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (Sequence[list[str]], {"type": "array", "items": type_schema(list[str], "")}),
    (Iterable, {"type": "array", "items": {}}),
    (dict, {"type": "object", "additionalProperties": {}}),
    (Mapping[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
    (int | str, {"type": ["integer", "string"]}),
    (Optional[int], {"type": ["integer", "null"]}),
    (Union[bool, list[int]], {"anyOf": [{"type": "boolean"}, type_schema(list[int], "")]}),
    (Literal["a", 1, None], {"enum": ["a", 1, None]}),
]


@pytest.mark.parametrize(("annotation", "schema"), SCHEMAS, ids=str)
def test_a_type_has_a_schema(annotation: Any, schema: dict[str, Any]):
    assert type_schema(annotation, "x") == schema


@pytest.mark.parametrize("annotation", [bytes, set[int], tuple[int, ...], object(), list[bytes]])
def test_a_type_that_json_does_not_have_is_refused(annotation: Any):
    with pytest.raises(InvalidType, match="x is annotated"):
        type_schema(annotation, "x")


TAKEN: list[tuple[Any, Any, Any]] = [
    (str, "5", "5"),
    (str, 5, "5"),
    (str, 5.5, "5.5"),
    (str, True, "true"),
    (str, False, "false"),
    (str, ["é", 1], '["é", 1]'),
    (str, {"a": None}, '{"a": null}'),
    (int, 5, 5),
    (int, 5.0, 5),
    (int, "5", 5),
    (int, " -5 ", -5),
    (int, "5.0", 5),
    (int, "1e3", 1000),
    (int, "٥", 5),
    (int, 2**70, 2**70),
    (float, 5, 5.0),
    (float, "5", 5.0),
    (float, "5.5", 5.5),
    (bool, True, True),
    (bool, "true", True),
    (bool, " TRUE ", True),
    (bool, "Yes", True),
    (bool, "1", True),
    (bool, 1, True),
    (bool, 1.0, True),
    (bool, "false", False),
    (bool, "off", False),
    (bool, 0, False),
    (None, None, None),
    (None, "null", None),
    (list, (1, 2), [1, 2]),
    (list, "[1, 2]", [1, 2]),
    (list[int], ["1", 2.0], [1, 2]),
    (list[list[int]], "[[1], []]", [[1], []]),
    (dict, '{"a": 1}', {"a": 1}),
    (dict[str, int], {"a": "1"}, {"a": 1}),
    (Any, "5", "5"),
    (int | str, "5", "5"),
    (int | str, 5, 5),
    (str | int, 5, 5),
    (str | int, True, "true"),
    (int | str, 5.5, "5.5"),
    (bool | str, "maybe", "maybe"),
    (bool | str, 1, True),
    (Optional[int], None, None),
    (Optional[int], "5", 5),
    (Optional[int], "null", None),
    (Optional[str], "null", "null"),
    (Union[list[int], None], "[1]", [1]),
    (Union[list[int], list[str]], ["a"], ["a"]),
    (Literal["a", "b"], "b", "b"),
    (Literal[1, 2], "2", 2),
    (Literal["1", "2"], 2, "2"),
    (Literal[1, True], True, True),
    (Literal[1, "1"], "1", "1"),
    (Literal["a", None], None, None),
]


@pytest.mark.parametrize(("annotation", "value", "expected"), TAKEN, ids=str)
def test_a_value_that_can_only_mean_one_thing_is_taken(annotation, value, expected):
    result = coerce(annotation, value, "x")
    assert result == expected
    assert type(result) is type(expected)


REFUSED: list[tuple[Any, Any, type[RetainError]]] = [
    (str, None, InvalidType),
    (str, object(), InvalidType),
    (str, [object()], InvalidValue),
    (int, "", InvalidValue),
    (int, "five", InvalidValue),
    (int, 5.5, InvalidValue),
    (int, math.nan, InvalidValue),
    (int, math.inf, InvalidValue),
    (int, "1e999", InvalidValue),
    (int, "9" * 5000, InvalidValue),
    (int, True, InvalidType),
    (int, None, InvalidType),
    (int, [5], InvalidType),
    (float, "nan", InvalidValue),
    (float, math.inf, InvalidValue),
    (float, 10**400, InvalidValue),
    (float, True, InvalidType),
    (bool, "maybe", InvalidValue),
    (bool, "", InvalidValue),
    (bool, 2, InvalidValue),
    (bool, math.nan, InvalidValue),
    (bool, None, InvalidType),
    (bool, [], InvalidType),
    (None, 0, InvalidValue),
    (list, "a, b", InvalidValue),
    (list, '{"a": 1}', InvalidValue),
    (list, "[" * 100_000, InvalidValue),
    (list, {"a": 1}, InvalidType),
    (list[int], [1, "x"], InvalidValue),
    (dict, "[]", InvalidValue),
    (dict, [], InvalidType),
    (int | None, "x", InvalidValue),
    (Literal["a"], "A", InvalidValue),
    (Literal[1], True, InvalidValue),
]


@pytest.mark.parametrize(("annotation", "value", "error"), REFUSED, ids=lambda x: str(x)[:20])
def test_a_value_that_means_nothing_of_the_type_is_refused(annotation, value, error):
    with pytest.raises(error, match="the place") as caught:
        coerce(annotation, value, "the place")
    assert len(str(caught.value)) < 250


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
annotations: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([str, int, float, bool, None, Any, Literal["a", 1, True, None]]),
    lambda inner: st.one_of(
        inner.map(lambda each: list[each]),  # type: ignore[valid-type]
        inner.map(lambda each: dict[str, each]),  # type: ignore[valid-type]
        st.lists(inner, min_size=1, max_size=3).map(lambda each: Union[tuple(each)]),
    ),
    max_leaves=4,
)


@given(annotations, json_values | json_values.map(json.dumps))
def test_any_value_is_taken_or_refused_and_stays_the_same_when_taken_again(annotation, value):
    try:
        taken = coerce(annotation, value, "x")
    except RetainError as error:
        assert str(error).startswith("x")
        return
    assert repr(coerce(annotation, taken, "x")) == repr(taken)


@given(st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_and_truth_come_back_from_their_own_text(value):
    text = coerce(str, value, "x")
    assert coerce(type(value), text, "x") == value


def test_the_nearest_name_is_named_or_else_all():
    assert did_you_mean("Contents", ["content", "limit"]) == "; did you mean 'content'?"
    assert did_you_mean("qqq", ["content", "limit"]) == "; known: content, limit"
    assert did_you_mean("qqq", []) == "; known: none"
