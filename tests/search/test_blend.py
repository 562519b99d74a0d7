"""What each part of relevance does; ``tests/test_engine.py`` holds them against a reference."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from retain import Blend, InMemoryStore, Memory, clock
from retain.clock import DAY
from retain.engine import Engine
from search.reference import Reference, TinyEmbedder, TinyWords, check

NOW = 2_000_000_000.0  # 18 May 2033
NOTHING = Blend((), 0.0, 0.0, 0.0, 0.0, 20.0, 0.0, 0.0, 0.5, alike=2.0)


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)


def turn(id: str, content: str, number: int, session: str = "s", **fields: Any) -> Memory:
    metadata = {"session": session, "turn": number, **fields.pop("metadata", {})}
    return Memory(id, content, metadata=metadata, **{"created_at": NOW - DAY, **fields})


def relevance(
    memories: Iterable[Memory], query: str, blend: Blend, embedder: Any = None
) -> dict[str, float]:
    """The relevance of each that is found, which the reference has too."""
    engine = Engine(InMemoryStore(), blend=blend, embedder=embedder)
    engine.store.save_many(memories)
    check(engine, Reference(list(engine.store.changes().saved), NOW, blend, embedder), query, 3)
    return {r.memory.id: r.relevance_score for r in engine.recall(query, 99)}


def test_words_alone_count_by_rarity_and_by_how_long_the_text_is():
    memories = [
        Memory("short", "harbour"),
        Memory("long", "harbour " + "word " * 400),
        Memory("often", "harbour " * 5 + "word " * 400),
        Memory("other", "boat"),
    ]
    found = relevance(memories, "harbour", NOTHING)
    assert found.keys() == {"short", "long", "often"}
    assert found["short"] == 1.0
    assert found["long"] < found["often"] < 1.0


def test_no_text_of_up_to_forty_terms_is_long():
    memories = [Memory("one", "harbour"), Memory("forty", "harbour " + "word " * 39)]
    found = relevance(memories, "harbour", NOTHING)
    assert found["one"] == found["forty"] == 1.0


def test_a_turn_lends_to_those_beside_it_in_its_session_and_less_farther_away():
    memories = [turn(f"t{n}", "word" if n != 3 else "harbour", n) for n in range(7)]
    memories.append(turn("other", "word", 3, "another session"))
    memories.append(Memory("none", "word", created_at=NOW - DAY))
    found = relevance(memories, "harbour", replace(NOTHING, near=(0.6, 0.4)))
    assert found == pytest.approx({"t3": 1.0, "t2": 0.6, "t4": 0.6, "t1": 0.4, "t5": 0.4})


def test_what_a_turn_holds_itself_is_not_less_for_its_neighbours_and_lending_is_no_chain():
    memories = [turn("a", "harbour boat", 1), turn("b", "harbour", 2), turn("c", "word", 3)]
    blend = replace(NOTHING, near=(0.5,))
    found = relevance(memories, "harbour boat", blend)
    assert found["a"] == 1.0
    assert found["b"] > relevance([memories[1], memories[2]], "harbour boat", blend)["b"] / 2
    assert "c" in found
    memories = [turn("a", "boat", 1), turn("b", "word", 2), turn("c", "word", 3)]
    assert relevance(memories, "boat", blend).keys() == {"a", "b"}


def test_a_long_turn_is_lent_less():
    memories = [
        turn("before", "word", 1),
        turn("says it", "harbour", 2),
        turn("after", "word " * 400, 3),
    ]
    found = relevance(memories, "harbour", replace(NOTHING, near=(0.6,)))
    assert found["before"] == pytest.approx(0.6)
    assert found["after"] == pytest.approx(0.6 / 10)


def test_an_expired_turn_lends_nothing_and_is_lent_nothing_but_stands_between():
    memories = [
        turn("a", "word", 1),
        turn("gone", "harbour", 2, ttl_days=0.5),
        turn("b", "word", 3),
        turn("c", "harbour", 4),
    ]
    found = relevance(memories, "harbour", replace(NOTHING, near=(0.6, 0.4)))
    assert found == pytest.approx({"c": 1.0, "b": 0.6})


def test_a_word_that_many_hold_lends_nothing(monkeypatch: pytest.MonkeyPatch):
    memories = [turn(f"t{n}", "harbour" if n % 2 else "word", n) for n in range(120)]
    blend = replace(NOTHING, near=(0.6,))
    assert len(relevance(memories, "harbour", blend)) == 60
    assert len(relevance(memories[:90], "harbour", blend)) == 90


def test_the_words_of_the_whole_session_count_for_each_of_its_turns():
    memories = [
        turn("a", "boat", 1, "one"),
        turn("b", "harbour", 9, "one"),
        turn("c", "boat", 1, "two"),
    ]
    found = relevance(memories, "boat harbour", replace(NOTHING, session=0.5))
    assert found["a"] > found["c"]
    assert relevance([memories[2]], "boat harbour", replace(NOTHING, session=0.5))["c"] < 1.0


@pytest.mark.parametrize(
    "query", ["What of the boat has Caroline?", "caroline's boat", "CAROLINE boat"]
)
def test_a_question_that_names_who_said_it_prefers_what_they_said(query: str):
    memories = [
        Memory("hers", "a boat", metadata={"role": "Caroline"}),
        Memory("his", "a boat, Caroline", metadata={"role": "Melanie"}),
    ]
    found = relevance(memories, query, replace(NOTHING, speaker=0.5))
    assert found["hers"] == pytest.approx(1.0)
    assert found["his"] == pytest.approx(1 / 1.5)
    assert relevance(memories, "boat", replace(NOTHING, speaker=0.5))["hers"] == 1.0


def test_a_users_own_words_are_preferred():
    memories = [
        Memory("mine", "a boat", metadata={"role": "user"}),
        Memory("yours", "a boat", metadata={"role": "assistant"}),
    ]
    found = relevance(memories, "boat", replace(NOTHING, user=0.25))
    assert found == pytest.approx({"mine": 1.0, "yours": 1 / 1.25})


def test_a_time_in_the_question_finds_what_was_then_and_a_little_after():
    def dated(id: str, date: str, content: str = "word") -> Memory:
        return Memory(id, content, created_at=clock.as_epoch(clock.from_iso(date)))

    memories = [
        dated("within", "2033-05-07T12:00:00+00:00"),
        dated("after", "2033-05-13T00:00:00+00:00"),
        dated("long after", "2033-05-18T00:00:00+00:00"),
        dated("before", "2033-05-06T23:59:59+00:00"),
        dated("boat", "2033-05-01T00:00:00+00:00", "boat"),
    ]
    blend = replace(NOTHING, time=0.5, days=10.0)
    found = relevance(memories, "the boat on 2033-05-07", blend)
    assert found.keys() == {"within", "after", "boat"}
    assert found["within"] > found["after"] > 0
    assert relevance(memories, "the boat", blend).keys() == {"boat"}


def test_what_means_the_same_is_found_without_a_word_in_common():
    memories = [Memory("same", "tea"), Memory("other", "boat"), Memory("word", "milk")]
    embedder = Meaning({"tea": (1, 0), "drink": (1, 0), "boat": (0, 1), "milk": (0.6, 0.8)})
    blend = replace(NOTHING, meaning=0.5, alike=0.35)
    found = relevance(memories, "drink", blend, embedder)
    assert found.keys() == {"same", "word"}
    assert found["same"] == pytest.approx(0.5 / 1.5, abs=0.01)
    assert found["word"] == pytest.approx(0.3 / 1.5, abs=0.01)
    for alike, expected in ((0.59, {"same", "word"}), (0.61, {"same"})):
        found = relevance(memories, "drink", replace(blend, alike=alike), embedder)
        assert found.keys() == expected
    assert relevance(memories, "milk", blend, embedder)["word"] == pytest.approx(1.0, abs=0.01)


def test_what_means_the_opposite_loses_nothing_by_it():
    embedder = Meaning({"tea": (1, 0), "drink": (-1, 0)})
    memories = [Memory("m", "tea drink tea tea")]
    found = relevance(memories, "drink", replace(NOTHING, meaning=0.5), embedder)
    assert found["m"] == pytest.approx(1 / 1.5)


def test_a_question_whose_meaning_is_not_known_is_asked_by_its_words_alone():
    memories = [Memory("m", "tea")]
    blend = replace(NOTHING, meaning=0.5, alike=0.35)
    assert relevance(memories, "tea", blend, Meaning({}))["m"] == 1.0


def test_a_word_of_related_meaning_counts_by_how_alike_it_is():
    vocabulary = [f"word{n}" for n in range(60)]
    words = TinyWords(vocabulary)
    asked = next(form for form in words.forms if words.related(form, 0.75))
    [(other, alike), *_] = words.related(asked, 0.75)
    memories = [Memory("itself", asked), Memory("related", other), Memory("not", "harbour")]
    blend = replace(NOTHING, related=0.5, relation=0.75)
    found = relevance(memories, asked, blend, words)
    assert found["itself"] == 1.0
    assert found["related"] == pytest.approx(0.5 * alike, abs=1e-6)
    assert "not" not in found
    assert relevance(memories, asked, replace(blend, related=0.0), words).keys() == {"itself"}


class Meaning(TinyEmbedder):
    """A direction for each text that it knows, by its last word that it does."""

    dimensions = 2

    def __init__(self, known: dict[str, tuple[float, float]]) -> None:
        self.known = known
        self.name = f"meaning {known}"

    def embed_query(self, query: str) -> Any:
        found = [self.known[word] for word in query.split() if word in self.known]
        return np.array(found[-1] if found else (0, 0), np.float32)


# -- what is gone has no part in it ------------------------------------------------------------


GONE = {
    "the only turn of a session": turn("x", "sugar", 1, "two"),
    "the only session": turn("x", "sugar", 1),
    "all that a speaker said": Memory("x", "hello", metadata={"role": "Caroline"}),
    "all that a user said": Memory("x", "hello", metadata={"role": "user"}),
    "what is long": Memory("x", "sugar " * 900),
    "what has the rarest word": Memory("x", "sugar"),
}


@pytest.mark.parametrize("gone", GONE)
@pytest.mark.parametrize("how", ["deleted", "replaced", "expired"])
def test_what_is_gone_leaves_no_trace_in_the_scores_of_others(gone: str, how: str):
    stays = [Memory("a", "tea and milk"), Memory("b", "coffee"), Memory("c", "tea for Caroline")]
    if gone != "the only session":
        stays = [*stays, turn("d", "tea", 1), turn("e", "milk", 2), turn("f", "boat", 1, "three")]
    query = "Did Caroline have tea with sugar?"
    plain = Memory("x", "nothing of it", created_at=NOW - 9 * DAY)
    with_it = Engine(InMemoryStore(), blend=Blend())
    without = Engine(InMemoryStore(), blend=Blend())
    without.store.save_many(stays)
    there = GONE[gone].copy(created_at=NOW - 9 * DAY)
    with_it.store.save_many([*stays, there.copy(ttl_days=1.0) if how == "expired" else there])
    with_it.recall(query)  # the index is made now
    if how == "deleted":
        with_it.forget("x")
    elif how == "replaced":
        with_it.store.save(plain)
        without.store.save(plain)
    else:
        with_it.prune()
    found, expected = (
        {r.memory.id: r.relevance_score for r in engine.recall(query, 99)}
        for engine in (with_it, without)
    )
    assert found == pytest.approx(expected, abs=1e-9)
    for engine in (with_it, without):
        check(engine, Reference(list(engine.store.changes().saved), NOW, Blend()), query, 2)
