"""The words of a query, through the engine: who holds them, and what they weigh."""

from __future__ import annotations

import math

import pytest

from retain import Filter, InMemoryStore, Memory, clock
from retain.engine import Engine

NOW = 2_000_000_000.0


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)


def engine_of(*memories: Memory) -> Engine:
    engine = Engine(InMemoryStore())
    engine.store.save_many(memories)
    return engine


def search(engine: Engine, query: str, narrow: Filter | None = None) -> list[str]:
    return sorted(result.memory.id for result in engine.recall(query, 99, narrow))


def relevance(engine: Engine, query: str) -> dict[str, float]:
    return {result.memory.id: result.relevance_score for result in engine.recall(query, 99)}


def weight(visible: int, having: int) -> float:
    return math.log1p((visible - having + 0.5) / (having + 0.5))


@pytest.mark.parametrize(
    "query",
    ["harbour", "HARBOURS", "transport", "travel", "assistant", "東京", "CAFÉ", "cafe\u0301"],
    ids=ascii,
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
    engine = engine_of(memory)
    assert search(engine, query) == ["m1"]
    assert search(engine, "zebra lion") == []


@pytest.mark.parametrize("role", [None, 5, ["user"], {"user": 1}], ids=repr)
def test_a_role_that_is_no_text_is_none(role: object):
    assert search(engine_of(Memory("m1", "tea", metadata={"role": role})), "user") == []


def test_a_term_weighs_by_its_rarity_among_the_visible_memories():
    engine = engine_of(
        *(Memory(f"c{n}", "common") for n in range(3)),
        Memory("both", "common rare"),
        Memory("gone", "rare rare", created_at=NOW - 9e6, ttl_days=1),
    )
    weights = {n: weight(4, n) for n in (0, 1, 4)}
    total = sum(weights.values())
    found = relevance(engine, "common rare absent")
    assert found.keys() == {"c0", "c1", "c2", "both"}
    assert found["c0"] == pytest.approx(weights[4] / total)
    assert found["both"] == pytest.approx((weights[4] + weights[1]) / total)


def test_the_only_memory_that_holds_all_terms_has_a_relevance_of_one_even_if_all_are_common():
    engine = engine_of(*(Memory(f"m{n}", "tea") for n in range(5)))
    assert relevance(engine, "tea") == {f"m{n}": 1.0 for n in range(5)}


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 30])
def test_all_words_there_make_exactly_one(count: int):
    words = [f"word{n}" for n in range(count)]
    engine = engine_of(
        Memory("all", " ".join(words)),
        *(Memory(f"m{n}", " ".join(words[n:])) for n in range(count)),
    )
    assert relevance(engine, " ".join(words))["all"] == 1.0


def test_however_often_a_word_stands_in_a_text_or_a_query_it_counts_once():
    engine = engine_of(Memory("once", "tea milk"), Memory("often", "tea tea tea"), Memory("x", "y"))
    found = relevance(engine, "tea tea milk")
    assert found["once"] == 1.0
    assert found["often"] == pytest.approx(weight(3, 2) / (weight(3, 2) + weight(3, 1)))


def test_a_word_is_held_by_who_holds_any_of_its_forms():
    # Of "wi-fi" the first word is found as "wifi" too.
    engine = engine_of(Memory("apart", "the wi-fi is out"), Memory("as one", "wifi"))
    assert search(engine, "wifi") == search(engine, "wi-fi") == ["apart", "as one"]
    assert relevance(engine, "wi-fi")["apart"] == 1.0


def test_a_text_that_was_replaced_or_deleted_is_not_found_and_an_id_may_come_back():
    engine = engine_of(Memory("m1", "tea"), Memory("m2", "tea"))
    assert search(engine, "tea") == ["m1", "m2"]
    engine.store.write([Memory("m1", "coffee")], ["m2", "never there"])
    assert (search(engine, "tea"), search(engine, "coffee")) == ([], ["m1"])
    engine.store.save(Memory("m2", "cocoa"))
    assert (search(engine, "cocoa"), search(engine, "tea")) == (["m2"], [])
    engine.store.save(Memory("m2", "tea again"))
    assert (search(engine, "cocoa"), search(engine, "tea")) == ([], ["m2"])
    engine.forget_all()
    assert (search(engine, "tea"), search(engine, "")) == ([], [])


def test_what_was_deleted_no_longer_counts_in_how_rare_a_word_is():
    engine = engine_of(*(Memory(f"m{n}", "tea") for n in range(9)), Memory("m", "tea milk"))
    before = relevance(engine, "tea milk absent")["m"]
    engine.forget_many([f"m{n}" for n in range(8)])
    alone = engine_of(Memory("m8", "tea"), Memory("m", "tea milk"))
    assert relevance(engine, "tea milk absent") == relevance(alone, "tea milk absent")
    assert relevance(engine, "tea milk absent")["m"] != before


def test_expired_memories_are_passed_over_from_the_moment_they_expire(
    monkeypatch: pytest.MonkeyPatch,
):
    engine = engine_of(Memory("m1", "tea", created_at=0.0, ttl_days=1), Memory("m2", "tea"))
    for now, expected in ((86_399.0, ["m1", "m2"]), (86_400.0, ["m2"])):
        monkeypatch.setattr(clock, "now", lambda now=now: now)
        assert search(engine, "tea") == search(engine, "") == expected


def test_a_label_is_found_as_what_it_is_only():
    engine = engine_of(
        Memory("tag", "x", tags=["green"]),
        Memory("category", "x", category="green"),
        Memory("content", "green"),
    )
    for narrow, expected in (
        (Filter(tags=("green",)), ["tag"]),
        (Filter(category="green"), ["category"]),
        (Filter(tags=("gree",)), []),
        (Filter(tags=("green", "green")), ["tag"]),
    ):
        assert search(engine, "", narrow) == search(engine, "green", narrow) == expected
    assert search(engine, "green") == ["category", "content", "tag"]


def test_what_a_filter_keeps_out_still_counts_in_how_rare_a_word_is():
    engine = engine_of(
        *(Memory(f"m{n}", "tea", tags=["a"]) for n in range(4)), Memory("b", "tea milk", tags=["b"])
    )
    everywhere = relevance(engine, "tea milk absent")
    narrowed = engine.recall("tea milk absent", 9, Filter(tags=("b",)))
    assert [(r.memory.id, r.relevance_score) for r in narrowed] == [("b", everywhere["b"])]


SENTENCES = {
    "zh": ("我们明天下午在上海开会讨论预算", ["上海", "开会", "预算", "明天"], ["北京", "海上"]),
    "ja": ("来週の会議は東京タワーの近くで開かれます", ["会議", "東京", "来週", "近く"], ["京都"]),
    "th": ("พรุ่งนี้ฉันจะไปเที่ยวทะเลกับแม่", ["ไป", "ทะเล", "แม่", "กับ"], ["ปู"]),
}
BESIDE = ["The weather is fine", "今天天气很好", "今日は天気がいい", "อากาศดีมาก"]


def sentences(language: str) -> tuple[list[Memory], list[str], list[str]]:
    text, inside, outside = SENTENCES[language]
    others = [Memory(f"o{n}", other) for n, other in enumerate(BESIDE)]
    return [*others, Memory("m", text)], inside, outside


@pytest.mark.parametrize("language", SENTENCES)
def test_a_word_of_two_characters_is_found_inside_a_sentence(language: str):
    memories, inside, outside = sentences(language)
    engine = engine_of(*memories)
    for word in inside:
        assert search(engine, word) == ["m"], ascii(word)
    for word in outside:
        assert search(engine, word) == [], ascii(word)


def test_a_word_that_every_memory_of_a_scope_holds_still_finds_all_of_them():
    engine = engine_of(*(Memory(f"m{n}", "会议记录") for n in range(3)))
    assert search(engine, "会议") == ["m0", "m1", "m2"]
