"""Any query, in any language, on every face: an answer, and what is there is found."""

from __future__ import annotations

import re
import sysconfig
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain import AgentMemory, ConversationMemory, KnowledgeMemory, RetrievalResult, SQLiteStore
from retain.testing import texts

Make = Callable[[Path], Any]
FACES: dict[str, Make] = {
    "agent": lambda path: AgentMemory(),
    "conversation": lambda path: ConversationMemory(),
    "conversation by words": lambda path: ConversationMemory(embedder=None),
    "conversation on disk": lambda path: ConversationMemory(store=SQLiteStore(path / "m.db")),
    "knowledge": lambda path: KnowledgeMemory(path / "knowledge"),
}


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with FACES[request.param](tmp_path) as face:
        yield face


def contents(results: list[RetrievalResult]) -> list[str]:
    return [result.memory.content for result in results]


# -- any query -------------------------------------------------------------------------------


KEPT = ["Prefers tea with milk", "the quick brown fox", "Ann lives near the harbour"]

ODD = {
    "nothing": "",
    "blank": " \t\r\n\u3000",
    "quotes": '"tea',
    "doubled quotes": '""tea"" \'"',
    "single quotes": "' OR 1=1 --",
    "operators": "tea AND NOT (milk OR",
    "operators alone": "AND OR NOT",
    "star": "te* *",
    "near": "NEAR/5 NEAR(tea milk, 5) tea NEAR/",
    "parentheses": "((((tea)",
    "column": "content:tea -tags:x ^tea {a b}:tea",
    "regular expression": "^(t+)+$ [a-z",
    "format": "%s %n {0} {} ${HOME} `tea`",
    "punctuation": "?!…—;:,.()[]{}<>/\\|@#$%^&*_+=~`",
    "stop words": "the of and with what is it",
    "stop words of others": "的 了 の は في не и",
    "emoji": "🍵👩‍👩‍👧‍👦🏳️‍🌈",
    "NUL": "\0tea\0\0milk\0",
    "controls": "".join(map(chr, range(32))),
    "surrogates": "\ud800 tea \udfff",
    "a pair of surrogates": "\ud83c\udf75",
    "not characters": "\uffff\ufffe\U0010ffff",
    "right to left": "\u202etea\u202c \u2067شاي",
    "private use": "\ue000\U000f0000",
    "numbers": "1 1.5 -3 1e999 ١٢٣ ½ NaN",
    "marks": "a" + "\u0301" * 500,
    "a path": "../../etc/passwd\\..\\x",
}


@pytest.mark.parametrize("query", ODD)
def test_any_query_is_answered(face: Any, query: str) -> None:
    assert face.recall(ODD[query]) == []
    for content in KEPT:
        face.remember(content)
    for k in (0, 1, 10, 10**12):
        found = face.recall(ODD[query], k=k)
        assert len(found) <= min(k, len(KEPT))
        assert all(0.0 <= result.combined_score <= 1.0 for result in found)
        assert all(isinstance(result.explain(), str) for result in found)
    if re.search(r"\btea\b", ODD[query]):
        assert contents(face.recall(ODD[query], k=1)) == [KEPT[0]]
    assert isinstance(face.get_context(ODD[query]), str)
    assert isinstance(face.engine.match(ODD[query], 3), list)


@settings(max_examples=60)
@given(query=st.one_of(st.text(max_size=60), texts(60)), kept=texts(60).filter(str.strip))
@pytest.mark.parametrize("name", ["agent", "conversation"])
def test_any_text_is_a_query(name: str, query: str, kept: str) -> None:
    with FACES[name](Path()) as face:
        face.remember(kept)
        face.remember("tea")
        for asked in (query, kept, kept + query):
            found = face.recall(asked)
            assert len(found) <= 2
            assert [r.memory.id for r in face.recall(asked, k=1)] == [
                r.memory.id for r in found[:1]
            ]


# -- long ones -------------------------------------------------------------------------------


def known_words() -> list[str]:
    """English words and names, many of which the vectors of the install know."""
    words: dict[str, None] = {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        found = re.findall("[a-z]{3,14}", path.read_text("utf-8", "replace").lower())
        words.update(dict.fromkeys(found))
    return list(words)


LONG: dict[str, Callable[[int], str]] = {
    "one word": lambda size: "x" * size,
    "a word again and again": lambda size: "tea " * (size // 4),
    "words": lambda size: " ".join(known_words())[:size],
    "unknown words": lambda size: " ".join(f"w{n}x{n * 7919}" for n in range(size // 14))[:size],
    "punctuation": lambda size: "?!(\"'" * (size // 5),
    "stop words": lambda size: "the of and " * (size // 11),
    "han": lambda size: "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(size // 3)),
    "thai": lambda size: "พรุ่งนี้ไปเที่ยว" * (size // 48),
    "marks": lambda size: "a" + "\u0301\u0327" * (size // 4),
    "emoji": lambda size: "👩‍👩‍👧‍👦" * (size // 25),
    "a compound": lambda size: "a-b_c'd." * (size // 8),
    "digits": lambda size: "1,234" * (size // 5),
    "dates": lambda size: "last May 2023-05-07 " * (size // 20),
    "surrogates": lambda size: "\ud800a" * (size // 4),
}


@pytest.mark.parametrize("kind", LONG)
@pytest.mark.parametrize("name", ["agent", "conversation"])
def test_a_query_of_a_hundred_kilobytes_is_answered_in_bounded_time(name: str, kind: str) -> None:
    with FACES[name](Path()) as face:
        for content in KEPT:
            face.remember(content)
        face.recall("tea milk")
        begun = time.perf_counter()
        found = face.recall(LONG[kind](100_000), k=3)
        assert time.perf_counter() - begun < 10.0  # it takes less than one
        assert all(0.0 <= result.combined_score <= 1.0 for result in found)
        assert all(len(result.explain()) < 2_000 for result in found)


def test_a_word_of_a_megabyte_is_asked_and_kept(tmp_path: Path) -> None:
    word = "ab" * 500_000
    for name in ("agent", "conversation"):
        with FACES[name](tmp_path) as face:
            face.remember("tea")
            assert contents(face.recall(word)) == []
            kept = face.remember(word)
            assert [r.memory.id for r in face.recall(word)] == [kept.id]


# -- any language ----------------------------------------------------------------------------

# What a face has to find first for each of some queries.
FOUND = {
    "我们明天下午在上海开会讨论预算": ["上海", "开会", "预算", "明天", "讨论预算"],
    "来週の総会は京都の近くで開かれます": ["総会", "京都", "来週", "近く"],
    "พรุ่งนี้ฉันจะไปเที่ยวทะเลกับแม่": ["ไป", "แม่", "ทะเล"],
    "내일 친구와 도서관에서 공부하기로 했다": ["내일", "친구", "도서관", "공부"],
    "東京Tower visit": ["東京", "Tower", "tower visit", "東京 visit", "東京Tower"],
    "週末の会議meetingは中止": ["会議", "meeting", "会議meeting", "中止"],
    "新しいiPhone15を買った": ["iPhone15", "買った", "新しい"],
    "ซื้อlaptopใหม่แล้ว": ["laptop", "ซื้อ", "ใหม่"],
    "Купил новыйnotebook в магазине": ["купил", "магазин"],
    "اشترى أحمد الكتاب من المكتبة": ["كتاب", "أحمد", "المكتبة"],
    "הילדים קראו את הספר בבית": ["ספר", "הילדים"],
    "वह दिल्ली में रहता है": ["दिल्ली"],
    "Straße in Zürich": ["STRASSE", "zurich", "Zu\u0308rich"],
    "Im café crème, naïve": ["cafe", "CAFE\u0301", "creme", "nai\u0308ve"],
    "Đặng sống ở Hà Nội": ["ha noi", "Ha\u0300 No\u0323\u0302i", "dang"],
    "Kocaeli'de ışık": ["Kocaeli", "ışık"],
    "🍣 for dinner 👍🏽": ["🍣", "👍", "👍🏿"],
    "C++ and C# and wi-fi": ["c++", "C#", "wifi", "wi-fi"],
}
PAIRS = [(kept, query) for kept, queries in FOUND.items() for query in queries]


@pytest.fixture(scope="module", params=FACES)
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with FACES[request.param](tmp_path_factory.mktemp("face")) as face:
        for content in [*FOUND, *KEPT]:
            face.remember(content)
        yield face


@pytest.mark.parametrize(("kept", "query"), PAIRS, ids=[f"{n}" for n in range(len(PAIRS))])
def test_a_word_is_found_in_a_sentence_of_its_language(filled: Any, kept: str, query: str) -> None:
    assert contents(filled.recall(query, k=1)) == [kept]


FORMS = [
    "café",
    "Zürich",
    "한국어를 배운다",
    "ガラスの靴",
    "Việt Nam",
    "йогурт",
    "ἀρχή",
    "ﷺ",
    "ｱｲｳ",
]


@pytest.mark.parametrize("word", FORMS, ids=[f"{n}" for n in range(len(FORMS))])
def test_however_a_character_is_composed_it_is_the_same(face: Any, word: str) -> None:
    forms = ["NFC", "NFD", "NFKC", "NFKD"]
    kept = {face.remember(unicodedata.normalize(form, word) + f" {form}").id for form in forms}
    for form in forms:
        found = face.recall(unicodedata.normalize(form, word))
        assert {result.memory.id for result in found} == kept
