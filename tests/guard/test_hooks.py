"""Hooks applied in order, and what a refusal says."""

from __future__ import annotations

import functools
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidType, Rejected
from retain.guard.hooks import HookChain


def refuse(text: str) -> str | None:
    return None


def shout(text: str) -> str:
    return text.upper()


class Censor:
    def __call__(self, text: str) -> str | None:
        return None if "secret" in text else text


@given(st.text())
def test_without_hooks_a_text_is_returned_as_it_is(text: str):
    for nothing in (None, [], ()):
        assert HookChain(nothing)(text) is text


def test_hooks_are_applied_in_order():
    assert HookChain([lambda text: text + "a", lambda text: text + "b"])("x") == "xab"
    assert HookChain((str.strip, shout))("  straße ") == "STRASSE"


def test_one_callable_is_a_chain_of_one():
    chain = HookChain(shout)
    assert chain("x") == "X"
    assert chain.hooks == (shout,)
    assert len(chain) == 1


def test_a_text_that_becomes_empty_is_not_refused():
    assert HookChain(lambda text: "")("x") == ""


def test_a_refusal_says_which_hook_it_was_and_stops_the_chain(caplog: pytest.LogCaptureFixture):
    seen = []
    chain = HookChain([shout, refuse, lambda text: seen.append(text) or text])
    with caplog.at_level(logging.DEBUG, "retain"), pytest.raises(Rejected) as caught:
        chain("the password is 1234")
    assert caught.value.hook == "refuse"
    assert "refuse" in caught.value.reason
    assert seen == []
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("retain", "DEBUG")
    assert "refuse" in record.getMessage()
    assert "1234" not in record.getMessage().replace("1234 characters", "")


def test_a_hook_without_a_name_goes_by_its_class():
    with pytest.raises(Rejected) as caught:
        HookChain(Censor())("a secret")
    assert caught.value.hook == "Censor"
    with pytest.raises(Rejected) as caught:
        HookChain(functools.partial(refuse))("x")
    assert caught.value.hook == "partial"
    assert repr(HookChain([shout, Censor()])) == "HookChain([shout, Censor])"


def test_a_hook_may_refuse_with_a_reason_of_its_own(caplog: pytest.LogCaptureFixture):
    def strict(text: str) -> str:
        raise Rejected("no digits, please")

    with caplog.at_level(logging.DEBUG, "retain"), pytest.raises(Rejected) as caught:
        HookChain(strict)("1")
    assert (caught.value.reason, caught.value.hook) == ("no digits, please", "strict")
    assert len(caplog.records) == 1


def test_a_chain_in_a_chain_names_the_inner_hook_and_logs_it_once(
    caplog: pytest.LogCaptureFixture,
):
    with caplog.at_level(logging.DEBUG, "retain"), pytest.raises(Rejected) as caught:
        HookChain([shout, HookChain(refuse)])("x")
    assert caught.value.hook == "refuse"
    assert len(caplog.records) == 1


@pytest.mark.parametrize("answer", [0, True, b"x", ["x"]])
def test_a_hook_that_returns_something_else_is_an_error_that_names_it(answer: object):
    def odd(text: str) -> object:
        return answer

    with pytest.raises(InvalidType, match=rf"odd returned a {type(answer).__name__}"):
        HookChain(odd)("x")


def test_what_a_hook_raises_passes_through():
    def broken(text: str) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        HookChain(broken)("x")


@pytest.mark.parametrize("hooks", ["", "strip", b"", 5, {str.strip}, {"a": str.strip}, iter([])])
def test_anything_but_a_callable_or_a_sequence_of_them_is_refused(hooks: object):
    with pytest.raises(InvalidType, match="pre_save is a"):
        HookChain(hooks)


def test_a_sequence_with_something_else_in_it_is_refused_by_its_place():
    with pytest.raises(InvalidType, match=r"pre_save\[1\] is a str"):
        HookChain([str.strip, "strip"])


def test_only_text_goes_through_a_chain():
    with pytest.raises(InvalidType, match="int"):
        HookChain()(5)


def test_the_chain_keeps_its_hooks_when_the_callers_list_changes():
    hooks = [shout]
    chain = HookChain(hooks)
    hooks.append(refuse)
    assert chain("x") == "X"
