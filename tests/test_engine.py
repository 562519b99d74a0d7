"""The engine against a reference that scores every memory by the definition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retain import (
    Conflict,
    Filter,
    InMemoryStore,
    InvalidType,
    InvalidValue,
    Memory,
    MemoryImportance,
    MemoryType,
    NotFound,
    Rejected,
    Scope,
    SQLiteStore,
    Store,
    clock,
    text,
)
from retain.engine import Engine
from retain.testing import filters, texts

NOW = 2_000_000_000.0


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with InMemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "m.db") as store:
        yield store


# -- the reference ---------------------------------------------------------------------------


def terms(memory: Memory) -> set[str]:
    labels = [memory.content, memory.category, *memory.tags]
    if isinstance(memory.metadata.get("role"), str):
        labels.append(memory.metadata["role"])
    return {form for label in labels for forms in text.terms(label) for form in forms}


def reference(
    memories: list[Memory], query: str, k: int, narrow: Filter, half_life: float = 7.0
) -> list[tuple[str, float]]:
    """The k best (id, combined score), each memory scored by itself."""
    visible = [m for m in memories if not m.is_expired(NOW)]
    words = text.query_terms(query)
    held = [{m.id for m in visible if not terms(m).isdisjoint(forms)} for forms in words]
    # In numpy's arithmetic and in this order, so that what ties there ties here.
    weights = [float(np.log1p((len(visible) - len(ids) + 0.5) / (len(ids) + 0.5))) for ids in held]
    scored = []
    for memory in visible:
        hits = [w for w, ids in zip(weights, held, strict=True) if memory.id in ids]
        if (query.strip() and not hits) or not narrow.admits(memory):
            continue
        relevance = added(hits) / added(weights) if hits else 0.0
        age = max(0.0, NOW - memory.created_at)
        recency = float(np.exp2(-age / (half_life * clock.DAY)))
        combined = 0.5 * relevance + 0.3 * recency + 0.2 * memory.importance_score
        scored.append((-combined, -memory.created_at, memory.id))
    return [(id, -score) for score, _, id in sorted(scored)[:k]]


def added(numbers: list[float]) -> float:
    """Their sum, one after the other: sum() of later Pythons is more exact than arrays are."""
    total = 0.0
    for number in numbers:
        total += number
    return total


WORDS = ["tea", "teas", "coffee", "東京タワー", "café", "STRASSE", "straße", "the", "192.168.7.1"]


@st.composite
def notes(draw: st.DrawFn) -> Memory:
    words = draw(st.lists(st.sampled_from(WORDS), max_size=5))
    return Memory(
        draw(st.sampled_from([f"m{n}" for n in range(30)])),
        " ".join(words),
        draw(st.sampled_from(MemoryType)),
        draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])),
        draw(st.sampled_from([{}, {"role": "user"}])),
        draw(st.lists(st.sampled_from(["green", "tea", "東京"]), max_size=2)),
        NOW - draw(st.sampled_from([0, 0, 1, 86_400, 604_800, 9_999_999])),
        category=draw(st.sampled_from(["general", "drinks", "places"])),
        ttl_days=draw(st.sampled_from([None, None, None, 1, 8])),
    ).checked()


def equal(found: list[tuple[str, float]], expected: list[tuple[str, float]]) -> bool:
    """Whether both have the same ids in the same order, with the same scores."""
    return [id for id, _ in found] == [id for id, _ in expected] and all(
        abs(one - other) < 1e-8 for (_, one), (_, other) in zip(found, expected, strict=True)
    )


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    batches=st.lists(st.lists(notes(), max_size=12), min_size=1, max_size=4),
    deletes=st.lists(st.sampled_from([f"m{n}" for n in range(30)]), max_size=6),
    query=st.lists(st.sampled_from([*WORDS, "green", "drinks", "user", "nothing"]), max_size=4),
    k=st.integers(0, 12),
    data=st.data(),
)
def test_recall_is_exactly_the_k_best_of_a_brute_force_reference(
    batches: list[list[Memory]],
    deletes: list[str],
    query: list[str],
    k: int,
    data: st.DataObject,
) -> None:
    store = InMemoryStore()
    engine = Engine(store)
    others = Engine(store.scoped(Scope(user="other")))
    model: dict[str, Memory] = {}
    for batch in batches:
        store.save_many(batch)
        others.store.save_many([Memory(f"o{n}", "tea tea coffee") for n in range(3)])
        model.update((memory.id, memory) for memory in batch)
        engine.recall("tea")  # the index is built now and catches up later
    for id in deletes:
        assert engine.forget(id) == (model.pop(id, None) is not None)
    words = " ".join(query)
    narrow = data.draw(filters(list(model.values())))
    found = [(r.memory.id, r.combined_score) for r in engine.recall(words, k, narrow)]
    assert equal(found, reference(list(model.values()), words, k, narrow))


def test_the_index_stays_exact_when_it_folds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retain.search.lexical._SMALL", 7)
    engine = Engine(store)
    kept: list[Memory] = []
    for n in range(120):
        words = " ".join(WORDS[(n * step) % len(WORDS)] for step in (1, 3, 7))
        memory = Memory(f"m{n}", words, importance=n % 5 / 4, created_at=NOW - n % 11 * 1e5)
        store.save(memory)
        kept.append(memory)
        if n % 4 == 0:
            engine.forget(kept.pop(n % len(kept)).id)
        query = WORDS[n % len(WORDS)]
        found = [(r.memory.id, r.combined_score) for r in engine.recall(query, 6)]
        assert equal(found, reference(kept, query, 6, Filter()))


def test_a_query_that_is_blank_finds_the_best_by_recency_and_importance(store: Store) -> None:
    engine = Engine(store)
    store.save(Memory("old", "x", importance=1.0, created_at=NOW - 70 * clock.DAY))
    store.save(Memory("new", "y", importance=0.5, created_at=NOW))
    results = engine.recall("  ", 5)
    assert [r.memory.id for r in results] == ["new", "old"]
    assert [r.relevance_score for r in results] == [0.0, 0.0]


@pytest.mark.parametrize("query", ["???", "zebra", "\0", "的", "🦓", "AND OR NOT", '"unclosed'])
def test_what_shares_nothing_with_a_query_is_no_result(store: Store, query: str) -> None:
    engine = Engine(store)
    store.save(Memory("m1", "Prefers tea"))
    assert engine.recall(query, 5) == []


def test_all_terms_give_a_relevance_of_one_and_rare_ones_weigh_more(store: Store) -> None:
    engine = Engine(store)
    for n in range(9):
        store.save(Memory(f"tea{n}", "tea", created_at=NOW))
    store.save(Memory("both", "tea with saffron", created_at=NOW))
    results = engine.recall("saffron tea", 10)
    assert results[0].memory.id == "both"
    assert results[0].relevance_score == 1.0
    assert 0 < results[1].relevance_score < 0.2


def test_recency_halves_every_half_life_and_the_future_is_now(store: Store) -> None:
    engine = Engine(store, half_life=2.0)
    for name, age in (("now", 0.0), ("half", 2.0), ("quarter", 4.0), ("future", -9.0)):
        store.save(Memory(name, "tea", created_at=NOW - age * clock.DAY))
    found = {r.memory.id: r.recency_score for r in engine.recall("tea", 9)}
    assert found == pytest.approx({"now": 1.0, "half": 0.5, "quarter": 0.25, "future": 1.0})


def test_one_scopes_texts_never_show_in_anothers_scores(store: Store) -> None:
    ann, bob = (Engine(store.scoped(Scope(user=user))) for user in ("ann", "bob"))
    ann.store.save(Memory("a1", "tea with milk", created_at=NOW))
    ann.store.save(Memory("a2", "coffee", created_at=NOW))
    alone = [r.relevance_score for r in ann.recall("tea milk sugar", 5)]
    for n in range(50):
        bob.store.save(Memory(f"b{n}", "tea sugar milk", created_at=NOW))
    assert [r.relevance_score for r in ann.recall("tea milk sugar", 5)] == alone
    assert {r.memory.id for r in ann.recall("tea sugar", 50)} == {"a1"}


def test_recall_counts_as_a_retrieval(store: Store) -> None:
    engine = Engine(store)
    store.save(Memory("m1", "tea"))
    assert engine.recall("tea", 5)[0].memory.access_count == 1
    assert engine.recall("tea", 5)[0].memory.access_count == 2
    assert engine.recall("coffee", 5) == []
    assert store.peek(["m1"])[0].access_count == 2


def test_recall_sees_what_another_handle_wrote_and_deleted(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "m.db") as one, SQLiteStore(tmp_path / "m.db") as two:
        mine, theirs = Engine(one), Engine(two)
        first = theirs.remember(Memory(content="tea"))
        assert [r.memory.id for r in mine.recall("tea")] == [first.id]
        theirs.update(first.id, content="coffee")
        assert mine.recall("tea") == []
        theirs.forget(first.id)
        assert mine.recall("coffee") == []
        theirs.remember(Memory(content="coffee again"))
        assert len(mine.recall("coffee")) == 1
        theirs.forget_all()
        assert mine.recall("coffee") == []


def test_match_orders_by_share_then_importance_then_relevance_then_newest(store: Store) -> None:
    engine = Engine(store)
    store.save(Memory("one", "dark", importance=1.0, created_at=NOW))
    store.save(Memory("both", "dark mode", importance=0.1, created_at=NOW - 9))
    store.save(Memory("later", "mode", importance=0.5, created_at=NOW - 1))
    store.save(Memory("older", "mode", importance=0.5, created_at=NOW - 2))
    assert [m.id for m in engine.match("dark mode", 9)] == ["both", "one", "later", "older"]
    assert [m.id for m in engine.match("", 2)] == ["one", "later"]
    assert engine.match("zebra", 9) == []


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda e: e.recall("x", -1), InvalidValue),
        (lambda e: e.recall("x", "5"), InvalidType),
        (lambda e: e.recall("x", True), InvalidType),
        (lambda e: e.recall(None, 5), InvalidType),
        (lambda e: e.match("x", -1), InvalidValue),
        (lambda e: e.remember("text"), InvalidType),
        (lambda e: e.update("missing", content="x"), NotFound),
        (lambda e: Engine("store"), InvalidType),
        (lambda e: Engine(e.store, half_life=0), InvalidValue),
        (lambda e: Engine(e.store, half_life=float("nan")), InvalidValue),
        (lambda e: Engine(e.store, half_life="week"), InvalidType),
        (lambda e: Engine(e.store, max_entries=0), InvalidValue),
        (lambda e: Engine(e.store, dedupe=True, dedupe_window=0), InvalidValue),
        (lambda e: Engine(e.store, dedupe_threshold=2), InvalidValue),
        (lambda e: Engine(e.store, pre_save="strip"), InvalidType),
    ],
)
def test_a_wrong_argument_is_refused(call: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        call(Engine(InMemoryStore()))  # type: ignore[operator]


# -- the way in ------------------------------------------------------------------------------


def test_hooks_see_content_category_and_tags_and_not_the_default_category(store: Store) -> None:
    seen: list[str] = []

    def hook(value: str) -> str:
        seen.append(value)
        return value.replace("x", "y")

    engine = Engine(store, pre_save=hook)
    memory = engine.remember(Memory(content="x1", category="x2", tags=["x3"]))
    assert (memory.content, memory.category, memory.tags) == ("y1", "y2", ["y3"])
    assert seen == ["x1", "x2", "x3"]
    engine.remember(Memory(content="x"))
    assert seen[3:] == ["x"]
    engine.update(memory.id, content="x9")
    assert seen[4:] == ["x9"]
    assert store.peek([memory.id])[0].content == "y9"


def test_a_rejected_memory_of_a_batch_leaves_nothing_of_it(store: Store) -> None:
    engine = Engine(store, pre_save=lambda value: None if "secret" in value else value)
    with pytest.raises(Rejected):
        engine.remember_many([Memory(content="fine"), Memory(content="a secret")])
    assert store.count() == 0


def test_dedupe_compares_with_the_window_and_within_the_batch(store: Store) -> None:
    engine = Engine(store, dedupe=True, dedupe_window=2)
    engine.remember(Memory(content="The router is at 192.168.7.1", created_at=NOW - 9))
    with pytest.raises(Rejected):
        engine.remember(Memory(content="The router is at 192.168.9.1"))
    with pytest.raises(Rejected):
        engine.remember_many([Memory(content="one more thing"), Memory(content="one more thing")])
    engine.remember_many([Memory(content="ein Satz"), Memory(content="noch etwas anderes")])
    engine.remember(Memory(content="The router is at 192.168.9.1"))  # beyond the window
    assert store.count() == 4


def test_without_dedupe_a_near_duplicate_is_kept(store: Store) -> None:
    engine = Engine(store)
    for address in ("192.168.7.1", "192.168.9.1"):
        engine.remember(Memory(content=f"The router is at {address}", persistent=True))
    engine.remember(Memory(content="東京に住む", persistent=True))
    engine.remember(Memory(content="京都に住む", persistent=True))
    assert store.count() == 4


def test_eviction_takes_the_least_important_then_the_oldest(store: Store) -> None:
    engine = Engine(store, max_entries=3)
    for name, importance, age in (("a", 0.5, 9), ("b", 0.1, 8), ("c", 0.1, 7), ("d", 0.9, 6)):
        engine.remember(Memory(name, name, importance=importance, created_at=NOW - age))
    assert {m.id for m in store.list_all()} == {"a", "c", "d"}


def test_eviction_never_takes_the_one_just_written_nor_a_persistent_one(store: Store) -> None:
    engine = Engine(store, max_entries=2)
    engine.remember(Memory("fact", "x", importance=0.0, persistent=True))
    engine.remember(Memory("rich", "y", importance=1.0))
    written = engine.remember(Memory("poor", "z", importance=0.0))
    assert written.id == "poor"
    assert {m.id for m in store.list_all()} == {"fact", "poor"}
    engine.remember_many([Memory(f"f{n}", f"{n}", persistent=True) for n in range(3)])
    assert {m.id for m in store.list_all()} == {"fact", "f0", "f1", "f2"}


def test_an_update_changes_what_it_names_and_keeps_the_rest(store: Store) -> None:
    engine = Engine(store)
    memory = engine.remember(Memory("m1", "tea", tags=["t"], importance=0.25, created_at=5.0))
    store.get("m1")
    changed = engine.update("m1", content="coffee", importance=MemoryImportance.HIGH)
    assert (changed.content, changed.importance_score, changed.tags) == ("coffee", 0.75, ["t"])
    assert (changed.created_at, changed.updated_at) == (5.0, NOW)
    assert changed.access_count == 1
    assert changed.revision > memory.revision


def test_an_update_that_others_overtake_is_made_on_what_they_wrote(store: Store) -> None:
    engine = Engine(store)
    engine.remember(Memory("m1", "tea", tags=["old"]))
    overtaken = []

    class Overtaken(Store):
        def peek(self, ids: object, now: float | None = None) -> list[Memory]:
            found = super().peek(ids, now)  # type: ignore[arg-type]
            if not overtaken:
                overtaken.append(True)
                store.save(found[0].copy(tags=["new"]))
            return found

    Engine(Overtaken(store.driver)).update("m1", content="coffee")
    [memory] = store.list_all()
    assert (memory.content, memory.tags) == ("coffee", ["new"])
    with pytest.raises(Conflict):
        store.write([memory], expect={"m1": memory.revision - 1})


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=texts(200), query=texts(200))
def test_any_text_can_be_remembered_and_any_query_is_answered(content: str, query: str) -> None:
    engine = Engine(InMemoryStore())
    memory = engine.remember(Memory(content=content))
    assert engine.store.peek([memory.id])[0].content == content
    results = engine.recall(query, 3)
    assert all(0 <= result.combined_score <= 1 for result in results)
    if text.query_terms(content):
        assert [r.memory.id for r in engine.recall(content, 3)] == [memory.id]
