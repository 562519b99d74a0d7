"""Whose memory it is: exact, never a wildcard."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain import InvalidType, InvalidValue, Scope
from retain.testing import texts

scopes = st.builds(Scope, *[st.none() | texts(6).filter(bool) for _ in range(3)])


@given(one=scopes, other=scopes)
def test_two_scopes_have_the_same_key_only_if_they_are_equal(one: Scope, other: Scope):
    assert (one.key == other.key) is (one == other)
    assert Scope.from_key(one.key) == one
    assert Scope(**one.to_dict()) == one


def test_none_is_a_value_of_its_own():
    ann = Scope(user="ann")
    assert ann != Scope(user="ann", session="s1") != Scope(session="s1")
    assert Scope(user="ann") != Scope(agent="ann") != Scope(session="ann")
    assert len({ann, Scope(user="ann"), Scope()}) == 2
    assert Scope() == Scope(None, None, None)


def test_a_scope_can_not_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Scope().user = "ann"  # type: ignore[misc]


@pytest.mark.parametrize("name", ["user", "agent", "session"])
@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("", InvalidValue),
        ("x" * 513, InvalidValue),
        ("lone \ud800", InvalidValue),
        (5, InvalidType),
        (b"ann", InvalidType),
        (True, InvalidType),
    ],
    ids=ascii,
)
def test_a_name_that_is_none_is_refused_and_the_part_named(name: str, value: Any, error: Any):
    with pytest.raises(error, match=name):
        Scope(**{name: value})


def test_the_longest_name_is_kept_in_any_script():
    name = "東" * 512
    assert Scope.from_key(Scope(user=name).key).user == name


@pytest.mark.parametrize("key", ["", "null", "ann", "[]", '["a","b"]', '["a","b","c","d"]', "{}"])
def test_what_is_no_key_is_refused(key: str):
    with pytest.raises(InvalidValue):
        Scope.from_key(key)


@pytest.mark.parametrize("key", ["[1,null,null]", '["",null,null]', '[["a"],null,null]'])
def test_a_key_of_names_that_are_none_is_refused(key: str):
    with pytest.raises((InvalidValue, InvalidType)):
        Scope.from_key(key)


def test_a_scope_shows_what_is_set():
    assert str(Scope()) == "default"
    assert str(Scope(user="ann", session="s1")) == "user=ann,session=s1"
    assert Scope(agent="a").to_dict() == {"agent": "a"}
    assert json.loads(Scope(agent="東").key) == [None, "東", None]
