"""The index of one scope by itself; ``tests/test_engine.py`` holds recall against a reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain import Filter, Memory
from retain.search import index as module
from retain.search.index import ScopeIndex
from retain.search.tidying import tidy
from retain.testing import filters, memories
from search.reference import TinyEmbedder

NOW = 2_000_000_000.0


def index_of(*memories: Memory, embedder: TinyEmbedder | None = None) -> ScopeIndex:
    index = ScopeIndex(embedder)
    index.apply([], memories, 1)
    return index


def seen(index: ScopeIndex, now: float = NOW) -> np.ndarray:
    visible = index.visible(now)
    return np.ones(index.columns.size, bool) if visible is None else visible


def ids(index: ScopeIndex, rows: Sequence[int] | np.ndarray) -> list[str]:
    return sorted(index.columns.id(int(row)) for row in rows)


def holding(index: ScopeIndex, form: str, now: float = NOW) -> list[str]:
    rows = index.posted(form).rows
    return ids(index, rows[seen(index, now)[rows]])


def small(patch: pytest.MonkeyPatch, tail: int = 2, at_once: int = 3) -> None:
    patch.setattr(module, "_TAIL", tail)
    patch.setattr("retain.search.segment._FEW", tail)
    patch.setattr(module, "_AT_ONCE", at_once)


def test_a_new_index_is_empty():
    index = ScopeIndex()
    assert (len(index), index.empty, index.folded, index.untidy) == (0, True, 0, False)
    assert (index.visible(NOW), index.from_files) == (None, False)
    assert index.posted("tea").rows.tolist() == []
    assert index.admitted(Filter(category="x")).tolist() == []
    assert (index.unmade(9), index.made(), index.sample(3)) == ([], (0, 0), {})
    assert index.beside("m", 2) == []


@pytest.mark.parametrize("sizes", [(512, 32_768), (2, 3), (0, 1)], ids=str)
def test_what_was_replaced_or_deleted_counts_no_more_and_an_id_may_come_back(
    sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
):
    small(monkeypatch, *sizes)
    index = index_of(Memory("m1", "tea"), Memory("m2", "tea"))
    index.apply(["m2", "never there"], [Memory("m1", "coffee")], 2)
    assert (holding(index, "tea"), holding(index, "coffe"), len(index)) == ([], ["m1"], 1)
    index.apply([], [Memory("m2", "cocoa")], 3)
    index.apply([], [Memory("m2", "tea again")], 4)
    assert (holding(index, "cocoa"), holding(index, "tea"), len(index)) == ([], ["m2"], 2)
    assert (index.revision, index.empty) == (4, False)
    index.clear()
    assert (holding(index, "tea"), len(index), index.empty) == ([], 0, True)


def test_clearing_tells_whoever_made_something_of_the_rows_as_they_were():
    index = index_of(Memory("m", "tea"))
    generation = index.generation
    index.clear()
    assert index.generation > generation


def test_expired_rows_are_not_visible_from_the_moment_they_expire():
    index = index_of(Memory("m1", "tea", created_at=0.0, ttl_days=1), Memory("m2", "tea"))
    assert holding(index, "tea", 86_399.0) == ["m1", "m2"]
    assert holding(index, "tea", 86_400.0) == ["m2"]
    assert len(index) == 2


@settings(max_examples=40)
@given(data=st.data(), cut=st.booleans())
def test_a_mask_admits_exactly_what_the_filter_does(data: st.DataObject, cut: bool):
    many = data.draw(st.lists(memories(), max_size=6, unique_by=lambda m: m.id))
    narrow = data.draw(filters(many))
    index = ScopeIndex()
    with pytest.MonkeyPatch.context() as patch:
        if cut:
            small(patch, 0, 2)
        for revision, memory in enumerate(many, 1):
            index.apply([], [memory], revision)
    found = ids(index, np.flatnonzero(index.admitted(narrow) & seen(index, -1e12)))
    assert found == sorted(memory.id for memory in many if narrow.admits(memory))


def test_a_label_is_found_as_what_it_is_only():
    index = index_of(
        Memory("tag", "x", tags=["green"]),
        Memory("category", "x", category="green"),
        Memory("content", "green"),
    )
    for narrow, expected in (
        (Filter(tags=("green",)), ["tag"]),
        (Filter(category="green"), ["category"]),
        (Filter(tags=("gree",)), []),
        (Filter(tags=("green", "x")), []),
    ):
        assert ids(index, np.flatnonzero(index.admitted(narrow))) == expected
    assert holding(index, "green") == ["category", "content", "tag"]


@settings(max_examples=60)
@given(
    happened=st.lists(
        st.one_of(
            st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("xyz")), max_size=9),
            st.sets(st.sampled_from("abcdefgh"), min_size=1),
            st.just("tidy"),
        ),
        max_size=9,
    ),
    tail=st.sampled_from([0, 2, 512]),
)
def test_whatever_comes_and_goes_each_word_is_where_it_is(happened, tail):
    index, model = ScopeIndex(TinyEmbedder()), {}
    with pytest.MonkeyPatch.context() as patch:
        small(patch, tail, 3 + tail)
        patch.setattr("retain.search.tidying._QUICK", 0)
        for revision, what in enumerate(happened, 1):
            if what == "tidy":
                tidy(index)
            elif isinstance(what, set):
                index.apply(what, [], revision)
                model = {id: word for id, word in model.items() if id not in what}
            else:
                new = dict(what)
                index.apply([], [Memory(id, word) for id, word in new.items()], revision)
                model |= new
        assert len(index) == len(model)
        assert ids(index, np.flatnonzero(seen(index))) == sorted(model)
        for word in "xyz":
            assert holding(index, word) == sorted(id for id in model if model[id] == word)
        assert set(index.sample(99)) == set(model)
        assert (index.unmade(9), index.made()) == ([], (len(model), len(model)))
        query = TinyEmbedder().embed_query("x")
        alike = index.similar(query)
        for row in np.flatnonzero(seen(index)):
            expected = TinyEmbedder().embed_query(model[index.columns.id(int(row))]) @ query
            assert alike[row] == pytest.approx(expected, abs=0.02)
            assert index.has_vector(int(row))


def test_many_rows_at_once_become_one_segment_of_one_stretch(monkeypatch: pytest.MonkeyPatch):
    small(monkeypatch, 4, 5)
    index = index_of(Memory("a", "tea"))
    before = len(index.stretches)
    index.apply(["a"], [Memory(f"m{n}", "tea") for n in range(23)], 7)
    assert len(index.stretches) == before + 1
    assert index.stretches[-1].until == 7
    assert index.untidy
    index.apply(["m3"], [Memory(f"n{n}", "tea") for n in range(12)], 9)
    assert len(index.stretches) == before + 2
    assert (index.stretches[-1].since, index.stretches[-1].until) == (7, 9)
    assert "m3" in index.stretches[-1].dropped
    assert holding(index, "tea") == sorted(
        [f"m{n}" for n in range(23) if n != 3] + [f"n{n}" for n in range(12)]
    )


def test_ids_whose_keys_are_the_same_are_told_apart(monkeypatch: pytest.MonkeyPatch):
    for place in ("index", "columns"):
        monkeypatch.setattr(f"retain.search.{place}.id_key", lambda id: 7)
    index = index_of(*(Memory(f"m{n}", "tea") for n in range(20)))
    index.apply(["m3", "m20"], [Memory("m4", "milk"), Memory("n", "milk")], 2)
    index.apply(["m0", "n"], [Memory("m3", "milk")], 3)
    assert holding(index, "milk") == ["m3", "m4"]
    assert holding(index, "tea") == sorted(f"m{n}" for n in range(20) if n not in (0, 3, 4))


def test_the_size_in_memory_grows_with_what_is_in_it():
    small_one, large = index_of(), index_of(*(Memory(f"m{n}", "tea milk") for n in range(3000)))
    assert small_one.nbytes < large.nbytes
    assert large.nbytes > 3000 * 80
    embedded = index_of(*(Memory(f"m{n}", "tea") for n in range(1500)), embedder=TinyEmbedder())
    assert embedded.nbytes > small_one.nbytes + 1500 * 8


def test_a_text_counts_as_short_up_to_the_lower_quartile_but_always_up_to_forty_terms():
    def short(*lengths: int) -> float:
        index = index_of(*(Memory(f"m{n}", "tea " * size) for n, size in enumerate(lengths)))
        return index.short

    assert short() == short(1) == short(40) == 40
    assert short(100) == 100
    assert short(60, 70, 80, 90) == 60
    assert short(60, 70, 80, 90, 100) == 70
    assert short(9_000) == 4_000
    index = index_of(*(Memory(f"m{size}", "tea " * size) for size in (60, 70, 80, 90, 100)))
    index.apply(["m60", "m70"], [Memory("m100", "tea " * 200)], 2)
    assert index.short == 80


# -- vectors that have still to be made ------------------------------------------------------


def test_more_texts_than_few_wait_for_their_vectors(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_EAGER_SLOW", 2)
    embedder = TinyEmbedder()
    index = index_of(Memory("a", "tea"), Memory("b", "milk"), embedder=embedder)
    assert (index.made(), index.unmade(9)) == ((2, 2), [])
    index.untidy = False
    index.apply(["a"], [Memory(id, "cocoa") for id in "cde"], 2)
    assert (index.made(), index.untidy) == ((1, 4), True)
    assert sorted(index.unmade(2)) == ["c", "d"]
    assert sorted(index.unmade(9)) == ["c", "d", "e"]
    query = embedder.embed_query("cocoa")
    assert index.similar(query)[2:].tolist() == [0.0] * 3
    assert index.embedded(["e", "gone", "c"], [0, -1, 0], embedder.embed(["cocoa"] * 3)) == 2
    assert index.unmade(9) == ["d"]
    assert index.similar(query)[[2, 4]] == pytest.approx(1.0, abs=0.01)
    index.apply([], [Memory("f", "tea")], 3)
    assert index.unmade(9) == ["d"]
    index.apply(["d"], [], 4)
    assert (index.unmade(9), index.made()) == ([], (4, 4))


def test_a_vector_that_comes_too_late_is_not_put_on_what_took_the_texts_place(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "_EAGER_SLOW", 0)
    first, second = Memory("a", "tea"), Memory("b", "milk")
    first.revision, second.revision = 1, 2
    index = index_of(first, second, embedder=TinyEmbedder())
    replaced = second.copy(content="cocoa", revision=3)
    index.apply(["a"], [replaced], 3)
    index.embedded(["a", "b"], [1, 2], TinyEmbedder().embed(["tea", "milk"]))
    assert (index.made(), index.unmade(9)) == ((0, 1), ["b"])
    index.embedded(["b"], [3], TinyEmbedder().embed(["cocoa"]))
    assert index.made() == (1, 1)


# -- turns beside one ------------------------------------------------------------------------


def test_the_turns_beside_one_come_in_the_order_in_which_they_were_said():
    turns = [
        Memory(f"t{n}", "x", metadata={"session": "s", "turn": n}, created_at=5.0) for n in range(7)
    ]
    other = [Memory(f"o{n}", "x", metadata={"session": "o", "turn": n}) for n in range(3)]
    index = index_of(*turns[::-1], *other, Memory("alone", "x"))
    assert index.beside("t3", 2) == ["t1", "t2", "t4", "t5"]
    assert index.beside("t0", 2) == ["t1", "t2"]
    assert index.beside("t6", 9) == [f"t{n}" for n in range(6)]
    assert index.beside("t3", 0) == index.beside("alone", 3) == index.beside("gone", 3) == []
    index.apply(["t4", "t2"], [], 2)
    assert index.beside("t3", 1) == ["t1", "t5"]
    index.apply([], [turns[4], turns[2].copy(metadata={"session": "o", "turn": 9})], 3)
    assert index.beside("t3", 2) == ["t0", "t1", "t4", "t5"]


def test_of_two_with_one_id_that_come_together_the_later_counts():
    index = ScopeIndex()
    index.apply([], [Memory("m1", "tea"), Memory("m1", "coffee")], 1)
    assert (len(index), index.posted("tea").rows.tolist()) == (1, [])
    assert index.columns["live"].tolist() == [True]
