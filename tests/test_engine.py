"""The engine against a reference that scores every memory by the definition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retain import (
    Conflict,
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
from retain.search.blend import Blend
from retain.testing import filters, texts
from search.reference import (
    BACKGROUND,
    Reference,
    TinyEmbedder,
    TinyWords,
    at_once,
    check,
    ids,
    never,
)

NOW = 2_000_000_000.0


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with InMemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "m.db") as store:
        yield store


# -- against the reference -------------------------------------------------------------------

WORDS = ["tea", "teas", "coffee", "東京タワー", "café", "STRASSE", "straße", "the", "192.168.7.1"]
ASKED = [*WORDS, "green", "drinks", "user", "Caroline", "yesterday", "in May 2033", "nothing"]
IDS = st.sampled_from([f"m{n}" for n in range(30)])
VOCABULARY = [*WORDS, "cocoa", "milk", "green", "harbour", "drinks", "travel", "place", "user"]


def metadata() -> st.SearchStrategy[dict[str, object]]:
    """Of what is no turn, and of turns of three sessions and of days, some of them at odds."""
    return st.fixed_dictionaries(
        {},
        optional={
            "role": st.sampled_from(["user", "assistant", "Caroline", "Dr. Ann-Lee", 5]),
            "session": st.sampled_from(["one", "one", "two", 2, None]),
            "turn": st.sampled_from([0, 1, 2, 2, 3, 9, True, -1, 2**70, "4"]),
        },
    )


@st.composite
def notes(draw: st.DrawFn) -> Memory:
    words = draw(st.lists(st.sampled_from(WORDS), max_size=5))
    return Memory(
        draw(IDS),
        " ".join(words) * draw(st.sampled_from([1, 1, 1, 30, 300])),
        draw(st.sampled_from(MemoryType)),
        draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])),
        draw(metadata()),
        draw(st.lists(st.sampled_from(["green", "tea", "東京"]), max_size=2)),
        NOW - draw(st.sampled_from([-5, 0, 0, 1, 86_400, 604_800, 9_999_999])),
        category=draw(st.sampled_from(["general", "drinks", "places"])),
        ttl_days=draw(st.sampled_from([None, None, None, 1, 8])),
    ).checked()


def steps() -> st.SearchStrategy[list[tuple[str, object]]]:
    """What happens to a scope, as names and arguments for :func:`take`."""
    step = st.one_of(
        st.tuples(st.just("write"), st.lists(notes(), max_size=14)),
        st.tuples(st.just("remember"), notes()),
        st.tuples(st.just("update"), st.tuples(IDS, st.sampled_from(WORDS))),
        st.tuples(st.just("forget"), IDS),
        st.tuples(st.just("forget_many"), st.lists(IDS, max_size=20)),
        st.tuples(st.sampled_from(["forget_all", "prune", "settle", "ask", "ask"]), st.none()),
    )
    return st.lists(step, min_size=1, max_size=8)


def stored(engine: Engine) -> list[Memory]:
    """All that the scope's store holds, what is expired too."""
    return list(engine.store.changes().saved)


def take(engine: Engine, step: str, argument: object) -> None:
    there = {memory.id for memory in engine.store.list_all()}
    if step == "write":
        engine.store.save_many(argument)
    elif step == "remember":
        engine.remember(argument)
    elif step == "update":
        id, word = argument
        if id in there:
            engine.update(id, content=word)
    elif step == "forget":
        engine.forget(argument)
    elif step == "forget_many":
        engine.forget_many(argument)
    elif step == "ask":
        engine.recall("tea")
    else:
        getattr(engine, step)()


SIZED = (
    "index._TAIL",
    "segment._FEW",
    "index._AT_ONCE",
    "tidying._QUICK",
    "blend._FEW",
    "rank._BLOCK",
)
SIZES = {
    "small": (2, 2, 3, 0, 1, 2),
    "middling": (5, 9, 12, 0, 3, 3),
    "as they are": (512, 512, 32_768, 20_000, 50, 256),
}
EMBEDDERS = {"none": None, "meaning": TinyEmbedder(), "related words": TinyWords(VOCABULARY)}


@st.composite
def histories(draw: st.DrawFn) -> dict[str, object]:
    words = st.lists(st.sampled_from(ASKED), max_size=4).map(" ".join)
    return {
        "happened": draw(steps()),
        "queries": draw(st.lists(words, min_size=1, max_size=3)),
        "k": draw(st.integers(0, 12)),
        "sizes": draw(st.sampled_from(list(SIZES))),
        "cared_for": draw(st.booleans()),
    }


KINDS = pytest.mark.parametrize("kind", ["share", "none", "meaning", "related words"])
NO_CHECKS = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@KINDS
@settings(max_examples=25, **NO_CHECKS)
@given(history=histories(), data=st.data())
def test_recall_is_exactly_the_k_best_of_a_brute_force_reference(
    kind: str, history: dict[str, object], data: st.DataObject
) -> None:
    compare(kind, data, **history)


@pytest.mark.slow
@KINDS
@settings(max_examples=150, **NO_CHECKS)
@given(history=histories(), data=st.data())
def test_recall_is_exactly_the_k_best_after_many_more_histories(
    kind: str, history: dict[str, object], data: st.DataObject
) -> None:
    compare(kind, data, **history)


def compare(
    kind: str,
    data: st.DataObject,
    happened: list[tuple[str, object]],
    queries: list[str],
    k: int,
    sizes: str,
    cared_for: bool,
) -> None:
    """Let it all happen, and hold recall against the reference, before and after it settles."""
    blend = None if kind == "share" else Blend()
    embedder = EMBEDDERS.get(kind)
    with pytest.MonkeyPatch.context() as patch, InMemoryStore() as store:
        for name, size in zip(SIZED, SIZES[sizes], strict=True):
            patch.setattr(f"retain.search.{name}", size, raising=False)
        # What is done in the background is done at once, or when the scope is settled.
        patch.setattr(BACKGROUND, at_once if cared_for else never)
        engine = Engine(store, blend=blend, embedder=embedder)
        other = Engine(store.scoped(Scope(user="other")), blend=blend, embedder=embedder)
        other.remember_many([Memory(f"o{n}", "tea tea coffee") for n in range(3)])
        for step, argument in happened:
            take(engine, step, argument)
        there = stored(engine)
        reference = Reference(there, NOW, blend, embedder)
        narrow = data.draw(filters(there))
        for _ in range(2):
            for query in queries:
                check(engine, reference, query, k)
                check(engine, reference, query, k, narrow)
            engine.settle()


@settings(max_examples=20, **NO_CHECKS)
@given(
    first=st.lists(notes(), min_size=1, max_size=10),
    later=st.lists(notes(), max_size=5),
    words=st.lists(st.sampled_from(ASKED), max_size=3).map(" ".join),
)
def test_recall_is_as_exact_while_vectors_are_still_to_be_made(
    first: list[Memory], later: list[Memory], words: str
) -> None:
    with pytest.MonkeyPatch.context() as patch, InMemoryStore() as store:
        patch.setattr("retain.search.index._EAGER_SLOW", 0)
        patch.setattr(BACKGROUND, never)
        engine = Engine(store, blend=Blend(), embedder=TinyEmbedder())

        def compare_without(unmade: list[Memory]) -> None:
            ids = frozenset(memory.id for memory in unmade)
            there = stored(engine)
            check(engine, Reference(there, NOW, Blend(), TinyEmbedder(), unmade=ids), words, 3)

        store.save_many(first)
        compare_without(first)
        engine.settle()
        compare_without([])
        store.save_many(later)
        compare_without(later)
        engine.settle()
        compare_without([])


@pytest.mark.parametrize("blend", [None, Blend()], ids=["share", "blend"])
def test_the_index_stays_exact_when_it_folds(
    store: Store, blend: Blend | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retain.search.index._TAIL", 7)
    engine = Engine(store, blend=blend)
    for n in range(120):
        words = " ".join(WORDS[(n * step) % len(WORDS)] for step in (1, 3, 7))
        turn = {"session": n % 7, "role": "user"} if n % 3 else {}
        store.save(Memory(f"m{n}", words, importance=n % 5 / 4, metadata=turn, created_at=NOW - n))
        if n % 4 == 0:
            engine.forget(f"m{n // 3}")
        if n % 5 == 0:
            there = stored(engine)
            check(engine, Reference(there, NOW, blend), WORDS[n % len(WORDS)], 6)


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


def test_faces_and_engine_agree_that_nothing_is_no_result(store: Store) -> None:
    engine = Engine(store, blend=Blend(), embedder=TinyEmbedder())
    for query in ("tea", "", "?!", "the"):
        assert engine.recall(query, 5) == []
        assert engine.recall(query, 0) == []
        assert engine.match(query, 5) == []
    store.save(Memory("m1", "tea"))
    for query in ("tea", ""):
        assert engine.recall(query, 0) == engine.match(query, 0) == []
        for k in (1, 10**6, 10**18, 2**64, 10**30):
            assert ids(engine.recall(query, k)) == ["m1"]
            assert [memory.id for memory in engine.match(query, k)] == ["m1"]


# -- turns around one ------------------------------------------------------------------------


def turn(id: str, number: int, session: str | None = "s", at: float = NOW) -> Memory:
    metadata = {"turn": number} if session is None else {"session": session, "turn": number}
    return Memory(id, f"turn {id}", metadata=metadata, created_at=at)


def around(engine: Engine, id: str, k: int = 2) -> list[str]:
    return [memory.id for memory in engine.neighbours(id, k)]


def test_the_neighbours_of_a_turn_are_those_of_its_session_in_order(store: Store) -> None:
    engine = Engine(store)
    store.save_many([turn(f"a{n}", n) for n in (3, 1, 4, 2, 5)])
    store.save_many([turn(f"b{n}", n, "other") for n in (1, 2)])
    store.save_many([turn("c1", 1, None), turn("c2", 2, None), turn("d1", 3, None, NOW - 2e5)])
    store.save(Memory("alone", "no turn"))
    assert around(engine, "a3", 1) == ["a2", "a4"]
    assert around(engine, "a3") == ["a1", "a2", "a4", "a5"]
    assert around(engine, "a1", 10**9) == ["a2", "a3", "a4", "a5"]
    assert around(engine, "a5", 1) == ["a4"]
    assert around(engine, "b1") == ["b2"]
    assert around(engine, "c1") == ["c2"]
    assert around(engine, "a3", 0) == around(engine, "alone") == around(engine, "d1") == []


def test_neighbours_follow_what_is_written_deleted_and_moved(store: Store) -> None:
    engine = Engine(store)
    store.save_many([turn(f"a{n}", n) for n in range(5)])
    engine.forget("a1")
    assert around(engine, "a2", 1) == ["a0", "a3"]
    store.save(turn("a1", 1, at=NOW + 5))  # said again, after the others
    assert around(engine, "a4", 1) == ["a3", "a1"]
    engine.update("a3", metadata={"session": "other", "turn": 0})
    assert around(engine, "a4", 2) == ["a0", "a2", "a1"]
    engine.settle()
    assert around(engine, "a4", 2) == ["a0", "a2", "a1"]
    assert [memory.content for memory in engine.neighbours("a2", 1)] == ["turn a0", "turn a4"]


def test_an_expired_neighbour_is_not_shown(store: Store) -> None:
    engine = Engine(store)
    store.save_many([turn(f"a{n}", n, at=NOW - 5) for n in range(3)])
    store.save(turn("a1", 1, at=NOW - 5).copy(ttl_days=1 / clock.DAY))
    assert "a1" not in around(engine, "a0")


@pytest.mark.parametrize(
    ("id", "k", "error"),
    [
        ("gone", 1, NotFound),
        ("", 1, NotFound),
        ("elsewhere", 1, NotFound),
        ("a1", -1, InvalidValue),
        ("a1", "1", InvalidType),
        ("a1", True, InvalidType),
    ],
)
def test_neighbours_of_what_is_not_there_are_refused(
    store: Store, id: str, k: int, error: type[Exception]
) -> None:
    engine = Engine(store)
    store.save_many([turn("a1", 1), turn("gone", 2)])
    store.scoped(Scope(user="other")).save(turn("elsewhere", 1))
    engine.forget("gone")
    with pytest.raises(error):
        engine.neighbours(id, k)


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
