"""The index of one scope by itself; ``tests/test_engine.py`` holds it against a reference."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain import Filter, Memory, MemoryType
from retain.search import lexical
from retain.search.lexical import LexicalIndex, Matches
from retain.testing import filters, memories

NOW = 2_000_000_000.0


def index_of(*memories: Memory) -> LexicalIndex:
    index = LexicalIndex()
    index.apply([], memories)
    return index


def ids(index: LexicalIndex, found: Matches) -> list[str]:
    return sorted(index.ids[row] for row in found.rows)


def search(index: LexicalIndex, query: str) -> list[str]:
    return ids(index, index.match(query, NOW))


@pytest.mark.parametrize(
    "query",
    ["harbour", "HARBOURS", "transport", "travel", "assistant", "東京", "CAFÉ", "cafe\u0301"],
)
def test_content_category_tags_and_role_are_searched(query: str):
    memory = Memory(
        "m1",
        "The harbour of 東京タワー has a café",
        category="transport",
        tags=["travel"],
        metadata={"role": "assistant", "note": "zebra"},
        source="lion",
    )
    index = index_of(memory)
    assert search(index, query) == ["m1"]
    assert search(index, "zebra lion") == []


@pytest.mark.parametrize("role", [None, 5, ["user"], {"user": 1}])
def test_a_role_that_is_no_text_is_none(role: object):
    index = index_of(Memory("m1", "tea", metadata={"role": role}))
    assert search(index, "user") == []


def test_a_term_weighs_by_its_rarity_among_the_visible_memories():
    index = index_of(
        *(Memory(f"c{n}", "common") for n in range(3)),
        Memory("both", "common rare"),
        Memory("gone", "rare rare", created_at=NOW - 9e6, ttl_days=1),
    )
    found = index.match("common rare absent", NOW)
    weight = {n: math.log1p((4 - n + 0.5) / (n + 0.5)) for n in (0, 1, 4)}
    total = sum(weight.values())
    scores = {
        index.ids[row]: (score, share)
        for row, score, share in zip(found.rows, found.relevance, found.share, strict=True)
    }
    assert scores.keys() == {"c0", "c1", "c2", "both"}
    assert scores["c0"] == pytest.approx((weight[4] / total, 1 / 3))
    assert scores["both"] == pytest.approx(((weight[4] + weight[1]) / total, 2 / 3))


def test_the_only_memory_that_holds_all_terms_has_a_relevance_of_one_even_if_all_are_common():
    index = index_of(*(Memory(f"m{n}", "tea") for n in range(5)))
    assert index.match("tea", NOW).relevance.tolist() == [1.0] * 5


def test_a_text_that_was_replaced_or_deleted_is_not_found_and_an_id_may_come_back():
    index = index_of(Memory("m1", "tea"), Memory("m2", "tea"))
    index.apply(["m2", "never there"], [Memory("m1", "coffee")])
    assert (search(index, "tea"), search(index, "coffee"), len(index)) == ([], ["m1"], 1)
    index.apply([], [Memory("m2", "cocoa"), Memory("m2", "tea again")])
    assert (search(index, "cocoa"), search(index, "tea"), len(index)) == ([], ["m2"], 2)
    index.clear()
    assert (search(index, "tea"), len(index), index.ids) == ([], 0, [])


def test_expired_memories_are_passed_over_from_the_moment_they_expire():
    index = index_of(Memory("m1", "tea", created_at=0.0, ttl_days=1), Memory("m2", "tea"))
    assert ids(index, index.match("tea", 86_399.0)) == ["m1", "m2"]
    assert ids(index, index.match("tea", 86_400.0)) == ["m2"]
    assert [index.ids[row] for row in index.everything(86_400.0)] == ["m2"]


@settings(max_examples=30)
@given(data=st.data(), fold=st.booleans())
def test_a_mask_admits_exactly_what_the_filter_does(data: st.DataObject, fold: bool):
    many = data.draw(st.lists(memories(), max_size=6, unique_by=lambda m: m.id))
    narrow = data.draw(filters(many))
    index = LexicalIndex()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexical, "_SMALL", 0 if fold else 99)
        for memory in many:
            index.apply([], [memory])
    rows = index.everything(-1e12)
    admitted = index.admitted(rows, narrow)
    found = {index.ids[row] for row in rows[admitted]}
    assert found == {memory.id for memory in many if narrow.admits(memory)}


def test_a_label_is_found_as_what_it_is_only():
    index = index_of(
        Memory("tag", "x", tags=["green"]),
        Memory("category", "x", category="green"),
        Memory("content", "green"),
    )
    rows = index.everything(NOW)
    for narrow, expected in (
        (Filter(tags=("green",)), ["tag"]),
        (Filter(category="green"), ["category"]),
        (Filter(tags=("gree",)), []),
        (Filter(memory_type=MemoryType.SEMANTIC), []),
    ):
        assert [index.ids[row] for row in rows[index.admitted(rows, narrow)]] == expected
    assert search(index, "green") == ["category", "content", "tag"]
