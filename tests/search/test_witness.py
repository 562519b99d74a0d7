"""Why a memory was found: what a result has as its evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retain import Blend, Evidence, InMemoryStore, Memory, clock
from retain.clock import DAY
from retain.engine import Engine
from search.reference import BACKGROUND, TinyEmbedder, direction, never

NOW = 2_000_000_000.0


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)


def evidence(engine: Engine, query: str) -> dict[str, Evidence]:
    found = {result.memory.id: result.evidence for result in engine.recall(query, 99)}
    assert None not in found.values()
    return found


def engine_of(*memories: Memory, **options: Any) -> Engine:
    engine = Engine(InMemoryStore(), **options)
    engine.store.save_many(memories)
    return engine


def test_the_share_of_words_is_all_the_evidence_where_nothing_else_is_asked():
    engine = engine_of(
        Memory("both", "tea and milk", created_at=NOW - 3.5 * DAY),
        Memory("one", "teas", created_at=NOW + DAY),
    )
    found = evidence(engine, "tea with milk")
    assert found["both"] == Evidence("tea with milk", ("tea", "milk"), 1.0, age=3.5)
    assert (found["one"].words, found["one"].age) == (("tea",), 0.0)
    assert found["one"].share == engine.recall("tea with milk")[1].relevance_score
    assert (found["one"].lent, found["one"].similarity, found["one"].embedded) == (0.0, None, True)


def test_an_empty_query_is_found_by_nothing():
    [one] = evidence(engine_of(Memory("m", "tea")), "  ").values()
    assert (one.words, one.share, one.similarity) == ((), 0.0, None)
    [one] = evidence(engine_of(Memory("m", "tea"), blend=Blend()), "").values()
    assert (one.words, one.share, one.similarity) == ((), 0.0, None)


def test_the_neighbours_part_is_told_from_the_texts_own():
    turns = [
        Memory(f"t{n}", word, metadata={"session": "s", "turn": n})
        for n, word in enumerate(["harbour", "boat", "word"])
    ]
    found = evidence(engine_of(*turns, blend=Blend()), "harbour")
    assert (found["t0"].words, found["t0"].share, found["t0"].lent) == (("harbour",), 1.0, 0.0)
    assert (found["t1"].words, found["t1"].share) == ((), 0.0)
    assert found["t1"].lent == pytest.approx(0.6)
    assert found["t2"].lent == pytest.approx(0.4)


def test_without_an_embedder_there_is_no_similarity_and_with_one_there_is():
    memories = Memory("a", "tea"), Memory("b", "tea boat cup")
    for one in evidence(engine_of(*memories, blend=Blend()), "tea").values():
        assert (one.similarity, one.embedded) == (None, True)
    found = evidence(engine_of(*memories, blend=Blend(), embedder=TinyEmbedder()), "tea")
    assert found["a"].similarity == pytest.approx(1.0, abs=0.01)
    assert 0.0 <= found["b"].similarity < found["a"].similarity


class Uneven(TinyEmbedder):
    """One whose vectors are not quite the same in whole numbers."""

    name = "uneven"

    def embed_query(self, query: str) -> Any:
        vector = direction(query)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def test_a_similarity_is_within_its_bounds():
    embedder = Uneven()
    words = [f"word{n}" for n in range(40)]
    memories = [Memory(word, word) for word in words]
    engine = engine_of(*memories, blend=Blend(alike=-1.0), embedder=embedder)
    for word in words[::7]:
        for one in evidence(engine, word).values():
            assert 0.0 <= one.similarity <= 1.0


def test_a_memory_whose_meaning_is_not_known_yet_says_so_until_it_is(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("retain.search.index._EAGER_SLOW", 0)
    monkeypatch.setattr(BACKGROUND, never)
    engine = engine_of(Memory("a", "tea", created_at=NOW), blend=Blend(), embedder=TinyEmbedder())
    [result] = engine.recall("tea")
    assert (result.evidence.embedded, result.evidence.similarity) == (False, 0.0)
    assert result.explain() == (
        "tea: 100 % of the query · meaning not known yet · new · importance 0.50"
    )
    engine.settle()
    [result] = engine.recall("tea")
    assert result.evidence.embedded
    assert result.evidence.similarity == pytest.approx(1.0, abs=0.01)
    assert "similarity 1.00" in result.explain()
    engine.remember(Memory("b", "tea"))
    embedded = {result.memory.id: result.evidence.embedded for result in engine.recall("tea")}
    assert embedded == {"a": True, "b": False}


def test_evidence_is_of_the_time_of_the_recall(monkeypatch: pytest.MonkeyPatch):
    engine = engine_of(Memory("m", "tea", created_at=NOW))
    assert "new" in engine.recall("tea")[0].explain()
    for days, said in ((1.0, "1 day old"), (2.0, "2 days old"), (59.6, "60 days old")):
        monkeypatch.setattr(clock, "now", lambda days=days: NOW + days * DAY)
        assert said in engine.recall("tea")[0].explain()
