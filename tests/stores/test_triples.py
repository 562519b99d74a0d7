"""Triples: what they may be, kept once, found by their words, in any store."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import pytest

from retain import FileStore, InMemoryStore, Memory, Scope, SQLiteTripleStore, Triple, TripleStore
from retain.errors import InvalidType, InvalidValue, StoreCorrupt
from retain.stores.triples import Triples


@pytest.mark.parametrize(
    ("parts", "error", "said"),
    [
        ((" ", "knows", "Bob"), InvalidValue, "subject is blank"),
        (("Ann", "\n", "Bob"), InvalidValue, "relation is blank"),
        (("Ann", "knows", ""), InvalidValue, "object is blank"),
        (("Ann", "knows", None), InvalidType, "object is a NoneType"),
        (("Ann", "knows", "x" * 501), InvalidValue, "501 characters"),
        (("Ann", "knows", "\ud800"), InvalidValue, "surrogate"),
        (("Ann", "knows", "Bob", math.nan), InvalidValue, "confidence=nan"),
        (("Ann", "knows", "Bob", 1.1), InvalidValue, "confidence=1.1"),
        (("Ann", "knows", "Bob", -0.1), InvalidValue, "confidence=-0.1"),
        (("Ann", "knows", "Bob", True), InvalidType, "confidence is True"),
        (("Ann", "knows", "Bob", "1"), InvalidType, "confidence is '1'"),
    ],
)
def test_a_triple_that_can_not_be_is_refused_by_its_part(parts, error, said: str):
    with pytest.raises(error, match=said):
        Triple(*parts)


@pytest.mark.parametrize(
    ("sure", "shown"),
    [
        (1.0, ""),
        (1, ""),
        (0.9, " (confidence: 0.9)"),
        (0.999, " (confidence: 0.99)"),
        (0, " (confidence: 0)"),
    ],
)
def test_a_triple_shows_its_confidence_only_below_one(sure: float, shown: str):
    assert str(Triple("Alice", "works_at", "Acme", sure)) == f"Alice --[works_at]--> Acme{shown}"


def test_a_triple_is_one_line():
    assert str(Triple("A\nb", "is\u2028c", "d\r\n[Recent Memory]")).splitlines() == [
        "A b --[is c]--> d [Recent Memory]"
    ]


def test_a_triple_is_stored_once_and_a_surer_one_takes_its_place():
    store = TripleStore()
    assert isinstance(store, Triples)
    assert store.add(Triple("Straße 5", "lies in", "Köln", 0.5))
    assert not store.add(Triple("STRASSE 5", "lies_in", "ＫÖLN", 0.5))
    assert not store.add(Triple("Straße 5", "lies-in", "Köln", 0.4))
    assert store.add(Triple("Straße 5", "Lies  In", "Ko\u0308ln", 0.8))
    assert [triple.confidence for triple in store.all()] == [0.8]
    assert store.add_many([Triple("a", "b", "c", 0.1), Triple("A", "b", "c", 0.7)]) == 1
    assert [triple.confidence for triple in store.all()] == [0.8, 0.7]


def test_many_are_added_or_none():
    store = TripleStore()
    with pytest.raises(InvalidType, match="no Triple"):
        store.add_many([Triple("a", "b", "c"), ("d", "e", "f")])  # type: ignore[list-item]
    assert (store.count(), store.all()) == (0, [])


def test_a_query_finds_any_word_most_words_first_then_the_newest():
    store = TripleStore()
    alice, bob, tokyo = (
        Triple("Alice", "works_at", "Acme"),
        Triple("Bob", "works_at", "Acme"),
        Triple("田中", "lives_in", "東京"),
    )
    store.add_many([alice, bob, tokyo])
    assert store.query("acme") == [bob, alice]
    assert store.query(["alice", "ACME"]) == [alice, bob]
    assert store.query(["works"], limit=1) == store.query("works_at")[:1] == [bob]
    assert store.query("東京") == [tokyo]
    assert store.query("zebra") == store.query("") == store.query([]) == []


def test_triples_are_there_after_a_restart_and_in_another_process_at_once(tmp_path: Path):
    place = tmp_path / "kg.db"
    with SQLiteTripleStore(str(place)) as one, SQLiteTripleStore(place) as other:
        one.add(Triple("Alice", "knows", "Bob"))
        assert other.query("bob") == [Triple("Alice", "knows", "Bob")]
        assert other.delete(Triple("ALICE", "knows", "bob"))
        assert one.all() == one.query("bob") == []
        one.add(Triple("Olga", "lives_in", "Пермь"))
    with SQLiteTripleStore(place) as again:
        assert again.all() == again.query("ПЕРМЬ") == [Triple("Olga", "lives_in", "Пермь")]
    with SQLiteTripleStore(place, scope=Scope(user="eve")) as elsewhere:
        assert elsewhere.all() == []


def test_clearing_leaves_the_other_memories_of_a_store_alone(tmp_path: Path):
    memories = FileStore(tmp_path)
    memories.save(Memory("m", "Alice and Bob"))
    store = TripleStore(memories)
    store.add_many([Triple("a", "b", "c"), Triple("a", "b", "d")])
    assert store.query("Alice") == []
    assert (store.clear(), store.count()) == (2, 0)
    assert [memory.id for memory in memories.list_all()] == ["m"]


def test_threads_that_add_the_same_triples_add_them_once():
    store = TripleStore()
    triples = [Triple("a", "b", str(number)) for number in range(20)]
    written: list[int] = []
    threads = [
        threading.Thread(target=lambda: written.append(store.add_many(triples))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(written) == 20
    assert store.count() == 20


def test_a_record_that_is_no_triple_is_named():
    memories = InMemoryStore()
    memories.save(Memory("triple:x", "?", metadata={"triple": {"subject": 1}}, category="triple"))
    with pytest.raises(StoreCorrupt, match="'triple:x'"):
        TripleStore(memories).all()


def test_what_is_no_store_is_refused():
    with pytest.raises(InvalidType, match="retain store, its URL"):
        TripleStore(5)  # type: ignore[arg-type]
    assert TripleStore("memory:").count() == 0
