"""What is raised: caught as an error of retain, and as the built-in one for the same mistake."""

from __future__ import annotations

import copy
import pickle

import pytest

from retain import Engine, InMemoryStore, RetainError, errors

BUILT_IN = {
    "Conflict": RuntimeError,
    "EmbeddingFailed": RuntimeError,
    "ExtractionFailed": RuntimeError,
    "InvalidType": TypeError,
    "InvalidValue": ValueError,
    "MissingPackage": ImportError,
    "MissingRow": RuntimeError,
    "NetworkFilesystem": OSError,
    "NotFound": KeyError,
    "ProviderFailed": RuntimeError,
    "Rejected": Exception,
    "StoreBusy": TimeoutError,
    "StoreClosed": RuntimeError,
    "StoreCorrupt": OSError,
    "StoreFailed": OSError,
    "StoreTooNew": OSError,
}


def test_every_error_stands_here():
    assert set(errors.__all__) == {*BUILT_IN, "RetainError"}


@pytest.mark.parametrize("name", BUILT_IN)
def test_an_error_is_caught_under_both_names(name: str):
    kind = getattr(errors, name)
    for caught in (RetainError, BUILT_IN[name]):
        with pytest.raises(caught):
            raise kind("the message")


@pytest.mark.parametrize("name", [*BUILT_IN, "RetainError"])
def test_an_error_says_its_message_and_keeps_it_on_its_way_to_another_process(name: str):
    error = getattr(errors, name)("id '7' is 東京")
    for found in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(found) is type(error)
        assert str(found) == "id '7' is 東京"


def test_a_rejection_tells_its_hook_and_reason_also_in_another_process():
    error = errors.Rejected("the hook no_secrets refused the text", hook="no_secrets")
    found = pickle.loads(pickle.dumps(error))
    assert (found.hook, found.reason) == ("no_secrets", "the hook no_secrets refused the text")


def test_a_missing_memory_is_a_key_error_whose_message_is_not_quoted():
    store = InMemoryStore()
    with pytest.raises(KeyError) as caught:
        Engine(store).update("m1", content="x")
    assert str(caught.value) == "no memory 'm1' in scope default"
    assert str(errors.NotFound()) == "not found"
