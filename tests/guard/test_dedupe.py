"""Near-duplicates: difflib's answer, in bounded time."""

from __future__ import annotations

import random
import time
import unicodedata
from difflib import SequenceMatcher

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retain.errors import InvalidType, InvalidValue, Rejected
from retain.guard import dedupe
from retain.guard.dedupe import LONGEST, dedupe_against
from retain.guard.hooks import HookChain


def is_refused(text: str, *existing: str, threshold: float = 0.9) -> bool:
    answer = dedupe_against(lambda: existing, threshold)(text)
    assert answer is None or answer is text
    return answer is None


def ratio(a: str, b: str) -> float:
    return max(SequenceMatcher(None, *pair, autojunk=False).ratio() for pair in ((a, b), (b, a)))


def edited(text: str, edits: int, letters: str, chance: random.Random) -> str:
    characters = list(text)
    for _ in range(edits):
        place = chance.randrange(len(characters) + 1)
        characters[place : place + chance.randrange(3)] = chance.choice(["", *letters])
    return "".join(characters)


few_letters = st.text("ab ", max_size=30) | st.text("東京都aé\u0301", max_size=30)


@given(few_letters, few_letters, st.sampled_from([0.2, 0.5, 0.8, 0.9, 1.0]))
@example("tide", "diet", 0.5)  # of which difflib gives another ratio in the other order
def test_it_is_difflibs_ratio_that_decides(a: str, b: str, threshold: float):
    forms = [unicodedata.normalize("NFC", text) for text in (a, b)]
    alike = ratio(*forms) >= threshold or forms[0].split() == forms[1].split()
    assert is_refused(a, b, threshold=threshold) is alike
    assert is_refused(b, a, threshold=threshold) is alike


@pytest.mark.parametrize("letters", ["ab", "aaaaaaaaab", "etaoin shrdlu", "東京都に住む人"])
def test_it_is_difflibs_ratio_for_edited_texts_near_the_threshold(letters: str):
    chance = random.Random(letters)
    answers = set()
    for _ in range(60):
        text = "".join(chance.choices(letters, k=chance.randrange(60, 260)))
        other = edited(text, len(text) // chance.randrange(5, 25), letters, chance)
        alike = is_refused(other, text)
        assert alike is (ratio(text, other) >= 0.9)
        answers.add(alike)
    assert answers == {True, False}


def test_a_table_that_is_looked_through_in_bands_gives_the_same(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dedupe, "_BAND", 8)
    chance = random.Random(4)
    for _ in range(400):
        a, b = ("".join(chance.choices("aab", k=chance.randrange(1, 30))) for _ in "ab")
        assert is_refused(a, b, threshold=0.7) is (ratio(a, b) >= 0.7)


def test_the_first_text_that_is_alike_is_enough():
    def texts():
        yield "something quite different"
        yield "The user prefers dark mode."
        raise AssertionError("one text too many was fetched")

    assert dedupe_against(texts)("The user prefers dark mode") is None


def test_the_texts_are_fetched_anew_for_every_text():
    stored: list[str] = []
    hook = dedupe_against(lambda: stored)
    assert hook("tea, not coffee") == "tea, not coffee"
    stored.append("tea, not coffee")
    assert hook("tea, not coffee") is None


def test_the_spelling_of_white_space_and_accents_makes_no_difference():
    assert is_refused(" café\tau\u00a0lait\n", "cafe\u0301 au lait", threshold=1.0)
    assert is_refused("", " \n")
    assert is_refused("two  spaces", "two spaces", threshold=1.0)
    assert is_refused("two spaces", "two \t\u3000spaces", threshold=1.0)
    assert not is_refused("two  spaces", "two other", threshold=1.0)
    assert not is_refused("cafe", "café", threshold=1.0)
    assert not is_refused("a b", "ab", threshold=1.0)


def test_facts_that_are_not_written_in_ascii_are_told_apart():
    assert not is_refused("東京に住んでいる", "大阪に住んでいる")
    assert not is_refused("彼は医者です", "私の猫は黒い")
    assert not is_refused("Москва", "Казань")
    assert is_refused(
        "東京に住んでいて、犬を二匹飼っている人", "東京に住んでいて、犬を二匹飼っている人。"
    )


def test_a_changed_digit_is_near_enough_to_be_refused_and_passes_at_a_higher_threshold():
    old, new = "router IP is 192.168.7.1", "router IP is 192.168.9.1"
    assert is_refused(new, old)
    assert not is_refused(new, old, threshold=0.99)


def test_frequent_letters_of_a_long_text_count():
    chance = random.Random(1)
    text = "".join(chance.choices("etaoin ", k=600))
    other = edited(text, 12, "etaoin ", chance)
    assert SequenceMatcher(None, text, other).ratio() < 0.9 <= ratio(text, other)
    assert is_refused(other, text)


@pytest.mark.parametrize("threshold", [0, -0.1, 1.01, float("nan"), float("inf")])
def test_a_threshold_outside_its_range_is_refused(threshold: float):
    with pytest.raises(InvalidValue, match=r"outside \(0, 1\]"):
        dedupe_against(list, threshold)


@pytest.mark.parametrize("threshold", ["0.9", None, True])
def test_a_threshold_that_is_no_number_is_refused(threshold: object):
    with pytest.raises(InvalidType, match="threshold"):
        dedupe_against(list, threshold)


def test_a_fetcher_that_is_none_or_fetches_no_texts_is_refused():
    with pytest.raises(InvalidType, match="existing_fetcher is a list"):
        dedupe_against([])
    with pytest.raises(InvalidType, match="returned a bytes"):
        dedupe_against(lambda: [b"x"])("x")


def test_a_rejection_names_the_hook():
    with pytest.raises(Rejected) as caught:
        HookChain(dedupe_against(lambda: ["x"]))("x")
    assert caught.value.hook == "dedupe_against"


# -- bounded in time ----------------------------------------------------------------------

GENEROUS = 10.0  # seconds: about ten times what it takes; without the bound it is minutes


def shuffled(text: str, chance: random.Random) -> str:
    return "".join(chance.sample(text, len(text)))


@pytest.mark.parametrize("size", [300, 1000, pytest.param(LONGEST, marks=pytest.mark.slow)])
@pytest.mark.parametrize("letters", ["etaoin shrdlu", "a" * 19 + "b", "東京都に住む人"])
def test_two_hundred_texts_of_the_same_letters_are_compared_in_bounded_time(
    letters: str, size: int
):
    chance = random.Random(size)
    text = "".join(chance.choices(letters, k=size))
    others = [shuffled(text, chance) for _ in range(200)]
    begin = time.perf_counter()
    is_refused(text, *others)
    assert time.perf_counter() - begin < GENEROUS


@pytest.mark.parametrize("size", [100, 1000])
def test_ordinary_texts_take_little_of_the_effort(size: int):
    chance = random.Random(size)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(300)]
    texts = [" ".join(chance.choices(words, k=size))[:size] for _ in range(201)]
    candidate = dedupe._Candidate(texts[0], 0.9)
    assert not any(map(candidate.is_like, texts[1:]))
    assert dedupe.EFFORT - candidate.effort < dedupe.EFFORT / 10


def test_a_long_list_of_edited_texts_is_compared_in_bounded_time():
    chance = random.Random(7)
    text = "".join(chance.choices("etaoin shrdlu", k=2000))
    others = [edited(text, 300, "etaoin", chance) for _ in range(200)]
    begin = time.perf_counter()
    assert not is_refused(text, *others, threshold=0.95)
    assert time.perf_counter() - begin < GENEROUS


MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    "text",
    ["a" * MEGABYTE, "東京に住む" * (MEGABYTE // 5), "e\u0301\u0327" * (MEGABYTE // 3)],
    ids=["letters", "kanji", "accents"],
)
def test_texts_of_a_megabyte_are_compared_in_bounded_time(text: str):
    half = text[: MEGABYTE // 2]
    others = [half + chr(0x4E00 + i) * (MEGABYTE // 2) for i in range(3)]
    begin = time.perf_counter()
    assert not is_refused(text, *others)
    assert is_refused(text, *others, f" {text}\n")
    assert time.perf_counter() - begin < GENEROUS


def test_a_run_of_combining_marks_takes_no_quadratic_time():
    text = "e" + "\u0301\u0327" * 200_000
    begin = time.perf_counter()
    assert is_refused(text, f"{text} ")
    assert not is_refused(text, text[:1000])
    assert time.perf_counter() - begin < GENEROUS


def test_long_texts_are_alike_when_one_place_of_them_was_edited():
    chance = random.Random(3)
    text = "".join(chance.choices("etaoin shrdlu", k=3 * LONGEST))
    assert is_refused(text[:5000] + "news" + text[5000:], text)
    assert is_refused(text.replace("e", "e ", 1), text)
    assert not is_refused(text[:5000] + "news" * 700 + text[5000:], text)
    assert not is_refused(shuffled(text, chance), text)


@pytest.mark.slow
def test_when_the_effort_is_spent_equal_texts_and_edits_in_one_place_are_still_found():
    chance = random.Random(9)
    text = "".join(chance.choices("aaaaaaaaaaaaaaaaaaab", k=LONGEST))
    one = text[:2000] + "c" + text[2001:]
    two = text[:1000] + "c" + text[1001:3000] + "c" + text[3001:]
    assert is_refused(text, one)
    assert is_refused(text, two)
    spend = [shuffled(text, chance) for _ in range(60)]
    assert not is_refused(text, *spend)
    assert is_refused(text, *spend, f"{text} ")
    assert is_refused(text, *spend, one)
    assert not is_refused(text, *spend, two)  # so the effort was spent
