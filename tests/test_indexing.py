"""An index kept level with its store; what is about files is in ``tests/search/test_disk.py``."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from retain import (
    AgentMemory,
    Blend,
    ConversationMemory,
    InMemoryStore,
    Memory,
    RetainError,
    Scope,
)
from retain.engine import Engine
from retain.errors import EmbeddingFailed
from search.reference import BACKGROUND, TinyEmbedder, at_once, ids, never


class Moody(TinyEmbedder):
    """One that fails as long as ``error`` is set."""

    def __init__(self, name: str, error: RetainError | None = None) -> None:
        self.name = name
        self.error = error
        self.asked: list[int] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked.append(len(texts))
        if self.error is not None:
            raise self.error
        return super().embed(texts)

    def embed_query(self, query: str) -> Any:
        if self.error is not None:
            raise self.error
        return super().embed_query(query)


FAILURES = {
    "the service is down": EmbeddingFailed("the service is down"),
    "anything of retain's": RetainError("anything of retain's"),
}


@pytest.fixture(params=FAILURES)
def failure(request: pytest.FixtureRequest) -> RetainError:
    return FAILURES[request.param]


def engine_of(embedder: Any) -> Engine:
    return Engine(InMemoryStore(), blend=Blend(), embedder=embedder)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def test_what_an_embedder_fails_at_is_found_by_its_words_with_a_warning_and_later_by_meaning(
    failure: RetainError, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(BACKGROUND, at_once)
    embedder = Moody("fails first", failure)
    engine = engine_of(embedder)
    engine.remember_many([Memory("a", "tea with milk"), Memory("b", "coffee")])
    assert ids(engine.recall("tea")) == ["a"]
    assert any(str(failure) in warning for warning in warnings(caplog))
    [result] = engine.recall("tea")
    assert "meaning not known yet" in result.explain()

    embedder.error = None
    engine.remember(Memory("c", "tea too"))  # who changes something next tries again
    engine.recall("tea")
    found = {result.memory.id: result for result in engine.recall("tea")}
    assert found.keys() == {"a", "c"}
    assert all("similarity" in result.explain() for result in found.values())


def test_a_question_that_cannot_be_embedded_is_asked_by_its_words(
    failure: RetainError, caplog: pytest.LogCaptureFixture
):
    embedder = Moody("fails then")
    engine = engine_of(embedder)
    engine.remember(Memory("a", "tea with milk"))
    assert engine.recall("tea")[0].evidence.similarity > 0
    embedder.error = failure
    [result] = engine.recall("tea")
    assert result.relevance_score == 1.0
    assert any(str(failure) in warning for warning in warnings(caplog))
    embedder.error = None
    assert engine.recall("tea")[0].evidence.similarity > 0


def test_settling_makes_what_could_not_be_made_before(failure: RetainError):
    embedder = Moody("fails and settles", failure)
    engine = engine_of(embedder)
    engine.remember_many(Memory(f"m{n}", f"tea {n}") for n in range(20))
    assert len(engine.recall("tea", 99)) == 20
    engine.settle()  # fails again: what was asked for cannot be had, and nothing is lost
    embedder.error = None
    engine.settle()
    assert all(r.evidence.embedded for r in engine.recall("tea", 99))
    assert len(engine.recall("tea", 99)) == 20


WRONG = {
    "a vector too few": lambda vectors: vectors[:-1],
    "other dimensions": lambda vectors: np.ones((len(vectors), 5), np.float32),
    "no numbers": lambda vectors: vectors * np.nan,
}


@pytest.mark.parametrize("wrong", WRONG)
def test_vectors_that_are_none_are_not_taken_for_the_texts(
    wrong: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    class Broken(Moody):
        def embed(self, texts: Sequence[str]) -> Any:
            return WRONG[wrong](super().embed(texts))

    monkeypatch.setattr(BACKGROUND, never)
    engine = engine_of(Broken(wrong))
    engine.remember_many([Memory("a", "tea with milk"), Memory("b", "coffee")])
    [result] = engine.recall("tea milk", 1)
    assert result.memory.id == "a"
    assert not result.evidence.embedded
    assert warnings(caplog)


def test_texts_are_embedded_once_and_as_few_as_changed():
    embedder = Moody("counts")
    engine = engine_of(embedder)
    engine.remember_many(Memory(f"m{n}", f"tea {n}") for n in range(30))
    engine.recall("tea")
    engine.recall("milk")
    assert sum(embedder.asked) == 30
    engine.update("m3", content="milk")
    engine.forget("m4")
    engine.recall("tea")
    assert sum(embedder.asked) == 31


def test_many_texts_are_embedded_beside_the_recalls_which_need_not_wait(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("retain.search.index._EAGER_SLOW", 10)
    gate = threading.Event()

    class Slow(Moody):
        def embed(self, texts: Sequence[str]) -> Any:
            assert gate.wait(60)
            return super().embed(texts)

    engine = engine_of(Slow("slow"))
    engine.remember_many(Memory(f"m{n}", f"tea {n}") for n in range(40))
    found = engine.recall("tea", 99)  # would never return if it waited
    assert len(found) == 40
    assert not any(result.evidence.embedded for result in found)
    gate.set()
    engine.settle()
    assert all(result.evidence.embedded for result in engine.recall("tea", 99))


def test_progress_tells_how_many_memories_are_ready(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("retain.search.index._EAGER_SLOW", 10)
    engine = engine_of(Moody("progress"))
    engine.remember_many(Memory(f"m{n}", f"tea {n}") for n in range(50))
    told: list[tuple[int, int]] = []
    engine.settle(lambda ready, total: told.append((ready, total)))
    assert {total for _, total in told} == {50}
    assert [ready for ready, _ in told] == sorted(ready for ready, _ in told)
    assert (told[0], told[-1]) == ((0, 50), (50, 50))


def test_progress_ends_where_all_is_ready_without_an_embedder_too():
    engine = engine_of(None)
    engine.remember_many(Memory(f"m{n}", f"tea {n}") for n in range(1_100))
    told: list[tuple[int, int]] = []
    engine.settle(lambda ready, total: told.append((ready, total)))
    assert told[:3] == [(0, 1_100), (512, 1_100), (1_024, 1_100)]
    assert told[-1] == (1_100, 1_100)


def test_two_embedders_of_one_store_have_an_index_each():
    store = InMemoryStore()
    one, other = (Engine(store, blend=Blend(), embedder=Moody(name)) for name in ("one", "other"))
    plain = Engine(store)
    one.remember(Memory("m", "tea"))
    assert ids(one.recall("tea")) == ids(other.recall("tea")) == ids(plain.recall("tea")) == ["m"]
    assert plain.recall("tea")[0].evidence.similarity is None


def test_faces_of_one_store_and_scope_see_each_others_memories_at_once():
    store = InMemoryStore()
    first, second = AgentMemory(store), ConversationMemory(store=store)
    other = AgentMemory(store, scope=Scope(user="other"))
    kept = first.remember("The deadline is 1 March")
    turn = second.add_turn("user", "Is the deadline in March?")
    for memory in (first, second):
        assert {r.memory.id for r in memory.recall("deadline")} == {kept.id, turn.id}
    assert other.recall("deadline") == []
    second.forget(kept.id)
    assert ids(first.recall("deadline")) == [turn.id]


def test_threads_that_write_and_recall_at_once_find_what_they_wrote():
    engine = engine_of(TinyEmbedder())
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(25):
                word = f"word{number}x{step}"
                memory = engine.remember(Memory(content=f"tea {word}"))
                assert ids(engine.recall(word, 1)) == [memory.id]
                if step % 3 == 0:
                    engine.forget(memory.id)
                    assert memory.id not in ids(engine.recall(word, 99))
                if step % 10 == 0:
                    engine.settle()
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failed
    assert len(engine.recall("tea", 999)) == 4 * (25 - 9)


def test_a_store_that_fails_midway_leaves_an_index_that_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
):
    engine = engine_of(TinyEmbedder())
    engine.remember(Memory("a", "tea"))
    engine.recall("tea")
    engine.remember_many(Memory(f"m{n}", "tea") for n in range(5))
    with monkeypatch.context() as patch:
        patch.setattr(
            "retain.search.index.document_terms", lambda memory: (_ for _ in ()).throw(OSError())
        )
        with pytest.raises(OSError):
            engine.recall("tea")
    assert len(engine.recall("tea", 99)) == 6


@pytest.mark.parametrize("wrong", [np.ones(3), np.full(8, np.nan), np.ones((1, 8))], ids=str)
def test_a_vector_of_a_question_that_can_not_be_right_costs_a_warning_and_not_the_recall(
    wrong: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    embedder = Moody("wrong")
    engine = engine_of(embedder)
    engine.remember(Memory("m1", "tea"))
    assert ids(engine.recall("tea")) == ["m1"]
    monkeypatch.setattr(embedder, "embed_query", lambda query: wrong.astype(np.float32))
    assert ids(engine.recall("tea")) == ["m1"]
    assert "mend the embedder" in caplog.text
