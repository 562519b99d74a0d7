"""What LangGraph's stores promise, asked of ``RetainStore``, and of both side by side."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore as Theirs

from retain import AgentMemory, InMemoryStore, Scope, clock
from retain.adapters.langgraph import RetainStore
from retain.errors import InvalidType, InvalidValue, RetainError


@pytest.fixture(params=["memory:", "sqlite", "file:folder"])
def store(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RetainStore]:
    monkeypatch.chdir(tmp_path)
    with RetainStore("notes.db" if request.param == "sqlite" else request.param) as store:
        yield store


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock, in minutes from now."""
    start = clock.now()
    return lambda minutes: monkeypatch.setattr(clock, "now", lambda: start + minutes * 60)


def keys(found: list[Any]) -> list[str]:
    return [item.key for item in found]


# -- side by side with LangGraph's own -----------------------------------------------------

labels = st.sampled_from(["a", "b", "a b", "*", "ä", "東京", '"', "a,b", "\\", "x" * 600])
namespaces = st.lists(labels, min_size=1, max_size=3).map(tuple)
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["x", "ß", "", 0.5])
values = st.dictionaries(
    st.sampled_from(["n", "t", "langgraph", "$"]),
    scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.just("m"), scalars),
    max_size=3,
)
item_keys = st.sampled_from(["k", "", "K", ".", "a\0b", "ключ", "k" * 2_000])
filters = st.none() | st.dictionaries(
    st.sampled_from(["n", "t"]),
    scalars
    | st.builds(lambda op, v: {op: v}, st.sampled_from(["$eq", "$ne"]), scalars)
    | st.dictionaries(st.just("m"), scalars, min_size=1)
    | st.lists(scalars, max_size=2),
    max_size=2,
)
conditions = st.tuples(st.sampled_from(["prefix", "suffix"]), namespaces).map(
    lambda condition: MatchCondition(*condition)
)
operations = st.one_of(
    st.tuples(namespaces, item_keys, values).map(lambda put: PutOp(*put)),
    st.tuples(namespaces, item_keys, st.none() | values, st.just(False)).map(lambda p: PutOp(*p)),
    st.tuples(namespaces, item_keys).map(lambda get: GetOp(*get)),
    st.tuples(namespaces.map(lambda n: n[:1]) | st.just(()), filters, st.just(1_000)).map(
        lambda search: SearchOp(*search)
    ),
    st.tuples(
        st.none() | st.lists(conditions, max_size=2).map(tuple),
        st.none() | st.integers(1, 3),
        st.integers(0, 9),
        st.integers(0, 2),
    ).map(lambda listing: ListNamespacesOp(*listing)),
)


def comparable(op: Any, answer: Any) -> Any:
    if isinstance(answer, Item):
        return repr((answer.namespace, answer.key, sorted(answer.value.items())))
    if isinstance(op, SearchOp):
        return sorted(comparable(None, item) for item in answer)
    return answer


class TheirsWithoutEmpty(Theirs):
    """Theirs lists a namespace that was only asked for, or emptied; its servers' stores don't."""

    def batch(self, ops: Any) -> Any:
        self._tidy()
        answers = []
        for op in (asked := list(ops)):
            if not isinstance(op, PutOp):
                answers.append(super().batch([op])[0])
                self._tidy()
            else:
                answers.append(None)
        super().batch([op for op in asked if isinstance(op, PutOp)])
        return answers

    def _tidy(self) -> None:
        for namespace in [n for n, there in self._data.items() if not there]:
            del self._data[namespace]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(operations, max_size=6), max_size=8))
def test_every_operation_answers_as_langgraph_s_own_store(batches: list[list[Any]]) -> None:
    theirs = TheirsWithoutEmpty()
    with RetainStore("memory:", embedder=None) as ours:
        for batch in batches:
            pairs = zip(batch, theirs.batch(batch), ours.batch(batch), strict=True)
            for op, expected, found in pairs:
                assert comparable(op, found) == comparable(op, expected)


numbers = st.integers(-3, 3) | st.floats(-3, 3)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(numbers, max_size=8),
    st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte", "$ne"]), numbers, max_size=2),
)
def test_comparisons_are_langgraph_s(there: list[float], filter: dict[str, float]) -> None:
    theirs = Theirs()
    with RetainStore("memory:", embedder=None) as ours:
        for each in (theirs, ours):
            each.batch([PutOp(("n",), str(at), {"n": n}) for at, n in enumerate(there)])
        ops = [SearchOp(("n",), {"n": filter}, 100)] if filter else []
        for found, expected in zip(ours.batch(ops), theirs.batch(ops), strict=True):
            assert sorted(keys(found)) == sorted(keys(expected))


# -- items and namespaces ------------------------------------------------------------------


def test_a_value_comes_back_equal_and_is_nobody_else_s(store: RetainStore) -> None:
    value = {"text": "Zażółć 🥐", "deep": [{"n": 1.5, "none": None}, [], {}], "": "", "b": True}
    store.put(("a", "東京"), "k", value)
    item = store.get(("a", "東京"), "k")
    assert item is not None and item.value == value
    item.value["deep"].append("changed")
    value["b"] = False
    again = store.get(("a", "東京"), "k")
    assert again is not None and again.value["b"] is True and len(again.value["deep"]) == 3


def test_an_update_keeps_when_it_was_created(store: RetainStore, at: Any) -> None:
    at(0)
    store.put(("a",), "k", {"n": 1})
    at(5)
    store.put(("a",), "k", {"n": 2})
    item = store.get(("a",), "k")
    assert item is not None and item.value == {"n": 2}
    assert (item.updated_at - item.created_at).total_seconds() == 300
    assert item.created_at.tzinfo == timezone.utc


def test_namespaces_are_apart_and_prefixes_find_exactly_what_is_under_them(
    store: RetainStore,
) -> None:
    for namespace in [("u",), ("u", "a"), ("u", "a", "x"), ("u", "ab"), ("ua",), ("u a",)]:
        store.put(namespace, "k", {"text": "tea"})
    for query in (None, "tea"):
        found = store.search(("u", "a"), query=query)
        assert {item.namespace for item in found} == {("u", "a"), ("u", "a", "x")}
        assert len(store.search(("u",), query=query)) == 4
        assert len(store.search((), query=query)) == 6
        assert store.search(("nobody",), query=query) == []


@pytest.mark.parametrize(
    "bad", [(), ("a", ""), ("a.b",), ("langgraph", "x"), ("a\0",), (1,), "abc"]
)
def test_namespaces_that_langgraph_refuses_are_refused(bad: Any) -> None:
    with RetainStore("memory:") as store:
        with pytest.raises(InvalidNamespaceError):
            store.put(bad, "k", {})
        with pytest.raises(InvalidNamespaceError) as raised:
            store.batch([PutOp(("fine",), "k", {}), PutOp(bad, "k", {})])
        assert isinstance(raised.value, RetainError)
        assert store.search(()) == []


def test_what_json_can_not_hold_is_refused_and_nothing_of_the_batch_written() -> None:
    with RetainStore("memory:") as store:
        for bad in ({"n": float("nan")}, {"s": {1}}, {1: 2}, {"x": "\ud800"}, [1]):
            with pytest.raises((InvalidType, InvalidValue)):
                store.batch([PutOp(("a",), "fine", {}), PutOp(("a",), "bad", bad)])  # type: ignore[arg-type]
        for op in (SearchOp(("a",), limit=-1), SearchOp(("a",), offset=-1), "nonsense"):
            with pytest.raises((InvalidType, InvalidValue)):
                store.batch([PutOp(("a",), "fine", {}), op])  # type: ignore[list-item]
        store.put(("a",), "k", {"n": 1})
        with pytest.raises(InvalidValue, match=r"\$in"):
            store.search(("a",), filter={"n": {"$in": [1]}})
        assert keys(store.search(())) == ["k"]


def test_list_namespaces_shows_those_that_hold_something(store: RetainStore, at: Any) -> None:
    at(0)
    every = [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "x", "c"), ("z", "c")]
    for namespace in every:
        store.put(namespace, "k", {}, ttl=1 if namespace[0] == "z" else None)
    assert store.list_namespaces() == sorted(every)
    assert store.list_namespaces(prefix=("a", "*", "c")) == [("a", "b", "c"), ("a", "x", "c")]
    assert store.list_namespaces(suffix=("c",), prefix=("a", "b")) == [("a", "b", "c")]
    assert store.list_namespaces(prefix=("a", "b"), max_depth=2) == [("a", "b")]
    assert store.list_namespaces(limit=2, offset=1) == sorted(every)[1:3]
    store.delete(("a", "x", "c"), "k")
    at(2)
    assert store.list_namespaces() == [("a", "b", "c"), ("a", "b", "d", "e")]


# -- search --------------------------------------------------------------------------------


def test_a_query_ranks_what_matches_first_and_then_the_rest(store: RetainStore) -> None:
    store.put(("d",), "rome", {"text": "The hotel in Rome has a garden"})
    store.put(("d",), "tea", {"text": "Drinks green tea at five"})
    store.put(("d",), "off", {"text": "Green tea, not indexed"}, index=False)
    found = store.search(("d",), query="green tea")
    assert keys(found) == ["tea", "rome", "off"]
    assert found[0].score > found[1].score and found[2].score is None  # type: ignore[operator]
    assert all(item.score is None for item in store.search(("d",)))
    assert keys(store.search(("d",), query="green tea", limit=1, offset=1)) == ["rome"]
    assert keys(store.search(("d",), query=" ")) == ["off", "tea", "rome"]  # last put first


def test_what_no_query_finds_stands_last_however_new_it_is() -> None:
    with RetainStore("memory:", embedder=None) as store:
        store.batch([PutOp(("d",), f"on{n}", {"text": "oboe"}) for n in range(5)])
        for n in range(5):
            store.put(("d",), f"off{n}", {"text": "walrus"}, index=False)
        for limit in range(1, 11):
            found = keys(store.search(("d",), query="walrus", limit=limit))
            assert [key[:2] for key in found] == (["on"] * 5 + ["of"] * 5)[:limit]


def test_pages_of_a_search_are_all_of_it_and_nothing_twice(store: RetainStore) -> None:
    store.batch(
        [PutOp(("p", str(n % 3)), f"k{n}", {"text": f"note {n}", "n": n}) for n in range(40)]
    )
    for query in (None, "note 7"):
        pages = [
            store.search(("p",), query=query, filter={"n": {"$gte": 8}}, limit=7, offset=start)
            for start in range(0, 42, 7)
        ]
        found = [key for page in pages for key in keys(page)]
        assert sorted(found) == sorted(f"k{n}" for n in range(8, 40)) and pages[-1] == []
    assert store.search(("p",), limit=0) == []


def test_only_the_fields_that_are_named_are_searched() -> None:
    with RetainStore("memory:", index={"fields": ["title", "parts[*].text"]}) as store:
        value = {"title": "Łódź", "body": "walrus", "parts": [{"text": "oboe"}, {"text": "viola"}]}
        store.put(("d",), "by default", value)
        store.put(("d",), "by name", value, index=["body"])

        def best(query: str) -> list[str]:
            return keys([item for item in store.search(("d",), query=query) if item.score])

        assert best("viola") == best("Łódź") == ["by default"]
        assert best("walrus") == ["by name"]


def test_a_model_of_langchain_s_compares_meanings(store: RetainStore) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[3.0, 0.0] if "cat" in text or "Miau" in text else [0.0, 2.0] for text in texts]

    index = {"embed": embed, "dims": 2, "fields": ["text"]}
    with RetainStore("memory:", index=index) as store:
        store.put(("d",), "cat", {"text": "A cat"})
        store.put(("d",), "dog", {"text": "A dog"})
        assert keys(store.search(("d",), query="Miau", limit=1)) == ["cat"]
    with pytest.raises(InvalidValue, match="dims"):
        RetainStore("memory:", index={"embed": embed})


def test_what_is_deleted_is_in_no_answer_and_no_index(store: RetainStore) -> None:
    store.put(("d",), "k", {"text": "the walrus"})
    assert store.search(("d",), query="walrus")[0].score
    store.delete(("d",), "k")
    store.delete(("d",), "never there")
    assert store.get(("d",), "k") is None
    assert store.search((), query="walrus") == store.search(()) == store.list_namespaces() == []
    assert store.engine.recall("walrus") == [] and len(store.store.list_all()) == 0
    store.put(("d",), "k", {"text": "the oboe"})
    assert not store.search(("d",), query="walrus")[0].score


# -- time to live --------------------------------------------------------------------------


def test_an_item_expires_and_reading_it_puts_that_off(store: RetainStore, at: Any) -> None:
    at(0)
    for key in ("got", "found", "looked at", "left", "put"):
        store.put(("t", key), key, {"text": "tea"}, ttl=10)
    store.put(("t",), "for good", {"text": "tea"})
    updated = store.get(("t", "got"), "got", refresh_ttl=False)
    at(8)
    assert store.get(("t", "got"), "got") == updated  # times and all
    assert keys(store.search(("t", "found"), query="tea")) == ["found"]
    assert store.get(("t", "looked at"), "looked at", refresh_ttl=False)
    store.put(("t", "put"), "put", {"text": "tea"}, ttl=10)
    at(12)
    there = {"got", "found", "put", "for good"}
    assert set(keys(store.search(("t",), refresh_ttl=False))) == there
    assert set(keys(store.search(("t",), query="tea", refresh_ttl=False))) == there
    assert store.get(("t", "left"), "left") is None
    at(19)
    assert keys(store.search(("t",))) == ["for good"]
    assert store.sweep_ttl() == 5 and store.store.expired() == []


def test_a_default_time_to_live_and_its_sweep_are_langgraph_s(at: Any) -> None:
    at(0)
    config: Any = {"default_ttl": 5, "refresh_on_read": False, "sweep_interval_minutes": 0}
    with RetainStore("memory:", ttl=config) as store:
        store.put(("t",), "short", {})
        store.put(("t",), "for good", {}, ttl=None)
        at(4)
        assert store.get(("t",), "short")
        at(6)
        assert keys(store.search(("t",))) == ["for good"] and len(store.store.expired()) == 1
        store.put(("t",), "another", {})
        assert store.store.expired() == []
        for bad in (-1, float("nan"), float("inf"), 6e9, "5", True):
            with pytest.raises((InvalidType, InvalidValue)):
                store.put(("t",), "k", {}, ttl=bad)  # type: ignore[arg-type]


# -- batches, loops, processes, scopes -----------------------------------------------------


def test_a_batch_reads_what_was_there_before_it_and_its_last_put_wins(store: RetainStore) -> None:
    at = ("b",)
    store.put(at, "old", {"n": 0})
    ops = [
        GetOp(at, "old"),
        PutOp(at, "old", None),
        PutOp(at, "new", {"n": 1}),
        PutOp(at, "new", {"n": 2}),
        GetOp(at, "new"),
        SearchOp(at),
        ListNamespacesOp(),
    ]
    old, *nothing, new, found, listed = store.batch(iter(ops))
    assert isinstance(old, Item) and old.value == {"n": 0} and nothing == [None] * 3
    assert new is None and keys(found) == ["old"] and listed == [at]  # type: ignore[arg-type]
    (item,) = store.search(at)
    assert (item.key, item.value) == ("new", {"n": 2})


def test_the_async_calls_do_the_same(store: RetainStore) -> None:
    async def many() -> list[Any]:
        await asyncio.gather(*(store.aput(("a",), f"k{n}", {"n": n}) for n in range(20)))
        await store.adelete(("a",), "k7")
        return [
            await store.aget(("a",), "k7"),
            len(await store.asearch(("a",), limit=50)),
            await store.alist_namespaces(),
        ]

    assert asyncio.run(many()) == [None, 19, [("a",)]]


def test_two_processes_see_each_other_s_items(tmp_path: Path) -> None:
    script = (
        "import sys; from retain.adapters.langgraph import RetainStore\n"
        "with RetainStore('m.db') as store:\n"
        "    for n in range(20): store.put(('p', sys.argv[1]), str(n), {'text': 'tea'})\n"
    )
    run = [sys.executable, "-c", script]
    with RetainStore(tmp_path / "m.db") as store:
        assert store.list_namespaces() == []
        writers = [subprocess.Popen([*run, name], cwd=tmp_path) for name in ("one", "two")]
        assert [writer.wait(60) for writer in writers] == [0, 0]
        assert store.list_namespaces() == [("p", "one"), ("p", "two")]
        assert len(store.search(("p",), query="tea", limit=100)) == 40


def test_it_shares_a_place_with_other_faces_and_keeps_to_its_scope() -> None:
    with InMemoryStore() as place:
        ann = RetainStore(place, scope=Scope(user="ann"))
        bob = RetainStore(place, scope=Scope(user="bob"))
        ann.put(("m",), "k", {"text": "the walrus"})
        AgentMemory(place, scope=Scope(user="ann")).remember("an event", metadata={"langgraph": 1})
        assert bob.search(()) == [] and bob.list_namespaces() == [] and not bob.get(("m",), "k")
        assert keys(ann.search(())) == ["k"] and ann.list_namespaces() == [("m",)]
    with pytest.raises(InvalidType, match="a URL or a path"):
        RetainStore(5)  # type: ignore[arg-type]
