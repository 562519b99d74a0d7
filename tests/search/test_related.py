"""Words of a like meaning, by a table of words."""

from __future__ import annotations

import numpy as np
import pytest

from retain.search.embedders import default_embedder
from retain.search.related import WordVectors, nearest, related
from retain.search.terms import hashed
from search.reference import TinyEmbedder, TinyWords, cosine, direction

VOCABULARY = [f"word{n}" for n in range(60)]


@pytest.mark.parametrize("least", [0.0, 0.3, 0.5, 0.9])
def test_the_related_words_of_one_are_the_ten_most_alike_and_never_itself(least: float):
    words = TinyWords(VOCABULARY)
    for form in words.forms:
        found = related(words, hashed(form), least)
        expected = words.related(form, least)
        assert len(found) == len(expected) <= 10
        assert [alike for _, alike in found] == pytest.approx(
            [alike for _, alike in expected], abs=1e-6
        )
        assert hashed(form) not in {term for term, _ in found}
        own = direction(form).tolist()
        known = {hashed(other): other for other in words.forms}
        for term, alike in found:
            assert cosine(own, direction(known[term]).tolist()) == pytest.approx(alike, abs=1e-6)


def test_a_word_that_is_not_known_has_none_and_an_embedder_without_words_has_none():
    words = TinyWords(VOCABULARY)
    assert related(words, hashed("elsewhere"), 0.0) == ()
    assert related(words, 0, 0.0) == related(words, 2**64 - 1, 0.0) == ()
    for embedder in (TinyEmbedder(), None, object()):
        assert related(embedder, hashed("word1"), 0.0) == ()
    assert isinstance(words, WordVectors)
    assert not isinstance(TinyEmbedder(), WordVectors)


def test_what_was_found_is_remembered_by_the_embedders_name():
    one, other = TinyWords(VOCABULARY[:30]), TinyWords(VOCABULARY[30:])
    for _ in range(2):
        assert related(one, hashed("word3"), 0.0) != ()
        assert related(other, hashed("word3"), 0.0) == ()
    assert related(TinyWords(VOCABULARY[:30]), hashed("word3"), 0.0) == related(
        one, hashed("word3"), 0.0
    )


def test_the_words_that_come_with_the_install_know_some_of_a_like_meaning():
    embedder = default_embedder()
    assert isinstance(embedder, WordVectors)
    found = related(embedder, hashed("dog"), 0.5)
    assert {hashed("puppi"), hashed("cat")} & {term for term, _ in found}
    assert all(0.5 <= alike <= 1.0 for _, alike in found)
    assert list(np.argsort([-alike for _, alike in found], kind="stable")) == list(
        range(len(found))
    )


@pytest.mark.parametrize("count", [1, 3, 10, 500])
def test_the_nearest_of_each_word_are_found_for_all_at_once(count: int):
    words = TinyWords(VOCABULARY)
    places, alike = nearest(words.rows, count)
    size = len(words.forms)
    assert places.shape == alike.shape == (size, min(count, size - 1))
    for at, form in enumerate(words.forms):
        expected = [cosine for _, cosine in words.related(form, -1.0)][:count]
        assert alike[at][: len(expected)] == pytest.approx(expected, abs=2e-3)
        assert at not in places[at]
        assert len(set(places[at].tolist())) == places.shape[1]
        own = direction(form).tolist()
        for place, one in zip(places[at].tolist(), alike[at].tolist(), strict=True):
            other = direction(words.forms[place]).tolist()
            assert cosine(own, other) == pytest.approx(one, abs=2e-3)


def test_a_table_that_has_the_nearest_words_gives_the_same_without_comparing():
    class Kept(TinyWords):
        def __init__(self, vocabulary: list[str]) -> None:
            super().__init__(vocabulary)
            self.name = f"kept {self.name}"
            self.near = nearest(self.rows)

    words, kept = TinyWords(VOCABULARY), Kept(VOCABULARY)
    kept.rows = kept.rows * 0
    for form in words.forms:
        compared, known = related(words, hashed(form), 0.41), related(kept, hashed(form), 0.41)
        assert [term for term, _ in compared] == [term for term, _ in known]
        assert [alike for _, alike in compared] == pytest.approx(
            [alike for _, alike in known], abs=2e-3
        )


def test_of_one_word_alone_nothing_is_near():
    places, alike = nearest(np.ones((1, 8), np.int8))
    assert places.shape == alike.shape == (1, 0)
    assert related(TinyWords(["alone"]), hashed("alon"), -1.0) == ()
