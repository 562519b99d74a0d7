"""What a memory is found by, as numbers."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain import Memory, text
from retain.search.terms import (
    BYTES,
    category_label,
    document_terms,
    hashed,
    labels_of,
    said_by,
    tag_label,
)
from retain.testing import memories, texts


def numbers(memory: Memory) -> list[int]:
    found, _ = document_terms(memory)
    return [hashed_key(found[at : at + BYTES]) for at in range(0, len(found), BYTES)]


def hashed_key(key: bytes) -> int:
    return int.from_bytes(key, sys.byteorder)


def test_content_category_tags_and_role_give_terms_and_each_label_one_more():
    memory = Memory("m", "red red house", category="Homes", tags=["for sale"])
    memory.metadata["role"] = "Dr. Sam-Bo"
    found = numbers(memory)
    assert found.count(hashed("red")) == 2
    for form in ("hous", "home", "sale", "dr", "sam", "bo", "sambo"):
        assert hashed(form) in found
    for label in (category_label("Homes"), tag_label("for sale")):
        assert found.count(hashed(label)) == 1
    for form in ("dr", "sam", "sambo", "bo"):
        assert found.count(hashed(said_by(form))) == 1


def test_the_length_is_that_of_the_text_alone():
    memory = Memory("m", "red red house", category="homes", tags=["sale"], metadata={"role": "Ann"})
    assert document_terms(memory)[1] == 3
    assert document_terms(Memory("m", "", category="homes"))[1] == 0


@pytest.mark.parametrize("role", [None, 5, ["user"], {"user": 1}, True], ids=repr)
def test_a_role_that_is_no_text_is_none(role: object):
    without = document_terms(Memory("m", "tea"))
    assert document_terms(Memory("m", "tea", metadata={"role": role})) == without


@settings(max_examples=15)
@given(memory=memories())
def test_every_term_is_one_of_a_form_or_of_a_label(memory: Memory):
    labels = [memory.category, *memory.tags]
    role = memory.metadata.get("role")
    spoken = [role] if isinstance(role, str) else []
    forms = [
        form
        for part in (memory.content, *labels, *spoken)
        for forms in text.terms(part)
        for form in forms
    ]
    names = {form for part in spoken for forms in text.terms(part) for form in forms}
    expected = [*forms, *map(said_by, names), *labels_of(memory.tags, memory.category)]
    assert sorted(numbers(memory)) == sorted(map(hashed, expected))


@given(one=texts(), other=texts())
def test_labels_of_different_kinds_or_names_never_meet(one: str, other: str):
    made = {category_label(one), tag_label(one), said_by(one), category_label(other)}
    assert len(made) == (3 if one == other else 4)
    assert made.isdisjoint(form for forms in text.terms(one) for form in forms)


@given(form=st.text(max_size=20))
def test_a_form_has_one_number_of_eight_bytes_lone_surrogates_too(form: str):
    assert hashed(form) == hashed_key(text.key(form))
    assert 0 <= hashed(form) < 2**64


def test_a_filter_asks_for_each_tag_and_the_category():
    assert labels_of((), None) == []
    assert labels_of(("a", "b"), "c") == [tag_label("a"), tag_label("b"), category_label("c")]
