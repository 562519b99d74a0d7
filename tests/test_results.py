"""Why a memory was found, in one line."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain import AgentMemory, ConversationMemory, Evidence, Memory, RetrievalResult
from retain.testing import texts


def explained(evidence: Evidence | None, importance: float = 0.5) -> str:
    return RetrievalResult(Memory("m", "x"), 0.5, 0.5, importance, evidence).explain()


LASTING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # of direction


def one_line(said: str) -> bool:
    """Whether it is one line, without what moves a cursor, turns what follows, or is no text."""
    unfit = {"Cc", "Cs", "Zl", "Zp"}
    return not any(unicodedata.category(char) in unfit or char in LASTING for char in said)


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (None, "importance 0.50"),
        (
            Evidence("Which deadlines?", ("deadlin",), 1.0),
            "deadlines: 100 % of the query · new · importance 0.50",
        ),
        (
            Evidence("deadline, March!", ("deadlin", "march"), 0.754, age=1.0),
            "deadline, march: 75 % of the query · 1 day old · importance 0.50",
        ),
        (
            Evidence("tea", (), 0.0, 0.25, 0.456, True, 3.2),
            "no word of the query · related words and neighbours 25 % · similarity 0.46 · "
            "3 days old · importance 0.50",
        ),
        (
            Evidence("tea", ("tea",), 0.5, 0.004, None, False, 0.99),
            "tea: 50 % of the query · meaning not known yet · new · importance 0.50",
        ),
        (Evidence("  ", (), 0.0, age=1.99), "1 day old · importance 0.50"),
        (Evidence("", (), 0.0, age=400.4), "400 days old · importance 0.50"),
        (
            Evidence("東京タワー", ("東京", "京タ"), 1.0),
            "東京, 京タ: 100 % of the query · new · importance 0.50",
        ),
    ],
    ids=["nothing", "words", "a day", "meaning", "not yet", "blank", "empty", "han"],
)
def test_the_line_says_what_there_is(evidence: Evidence | None, expected: str):
    assert explained(evidence) == expected


AWKWARD = {
    "newlines": "one\ntwo\r\nthree\u2028four\u2029five\x0bsix\x0cseven\x85eight",
    "escapes": "one\x1b[31mtwo three\x07\x00four",
    "right to left": "one\u202e owt \u2066three\u2069 \u200efour",
    "odd signs": "one\tc\ue000de\ufeff x\u00ady z\u061cw",
    "surrogates": "one \ud800two thr\udfffee",
    "tags": "flag\U000e0067\U000e0062 one",
}


@pytest.mark.parametrize("words", AWKWARD)
@pytest.mark.parametrize("embeds", [True, False], ids=["by meaning", "by words"])
def test_an_explanation_is_one_line_whatever_query_and_memory_are(words: str, embeds: bool):
    options = {} if embeds else {"embedder": None}
    with ConversationMemory(**options) as memory:
        kept = AWKWARD[words].encode("utf-8", "ignore").decode()
        memory.remember(kept, tags=["one"], category="one two")
        found = memory.recall(AWKWARD[words])
        assert found
        for result in found:
            assert one_line(result.explain()), ascii(result.explain())


@given(query=st.text(max_size=40), kept=texts(40).filter(str.strip))
def test_any_query_is_explained_in_one_line(query: str, kept: str):
    with AgentMemory() as memory:
        memory.remember(kept)
        for asked in (query, kept):
            for result in memory.recall(asked):
                assert one_line(result.explain()), ascii(result.explain())


def test_words_are_named_as_they_were_asked():
    with AgentMemory() as memory:
        memory.remember("She runs marathons in Zürich, and her wi-fi is slow")
        [result] = memory.recall("Running a MARATHON? (Zürich's wi-fi)")
        assert result.explain().startswith("running, marathon, zürich's, ")


def test_scores_are_kept_and_the_evidence_is_no_part_of_what_is_equal():
    memory = Memory("m", "x")
    one = RetrievalResult(memory, 1.0, 0.5, 0.25, Evidence("x", ("x",), 1.0))
    assert one == RetrievalResult(memory, 1.0, 0.5, 0.25)
    assert one.combined_score == 0.5 + 0.15 + 0.05
    assert "evidence" not in repr(one)
    assert one.to_dict() == {
        "memory": memory.to_dict(),
        "relevance_score": 1.0,
        "recency_score": 0.5,
        "importance_score": 0.25,
        "combined_score": one.combined_score,
        "explanation": one.explain(),
    }


@pytest.mark.parametrize("scores", [(1.0, 1.0, 1.0), (0.0, 0.0, 0.0)], ids=str)
def test_the_combined_score_stays_within_its_bounds(scores: tuple[float, float, float]):
    assert RetrievalResult(Memory("m", "x"), *scores).combined_score == scores[0]


@pytest.mark.parametrize(
    "query",
    [" ".join(f"word{n}" for n in range(10_000)), "ab" * 50_000, "東京" * 20_000],
    ids=["many words", "a long word", "no spaces"],
)
def test_an_explanation_of_a_long_query_is_still_one_that_can_be_read(query: str):
    with AgentMemory() as memory:
        memory.remember(query)
        [result] = memory.recall(query)
        assert len(result.explain()) < 1_000
