"""What rules find: measured on the labelled turns, and on any text."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain import MemoryType
from retain.extraction import Finding, Turn, by_rules
from retain.extraction.phrases import phrases_for

HERE = Path(__file__).parent
LABELLED, UNSEEN = (
    json.loads((HERE / f"{name}_turns.json").read_text("utf-8")) for name in ("labelled", "unseen")
)
AT = datetime(2026, 12, 1, 10, tzinfo=timezone.utc)  # a Tuesday
DATE = re.compile(r" \(\d{4}[-\dW]*\)")


def folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def found_in(*texts: str, at: datetime = AT) -> list[Finding]:
    return by_rules([Turn("user", text, at) for text in texts])


def contents(text: str, at: datetime = AT) -> list[str]:
    return [found.content for found in found_in(text, at=at)]


def words_said_of(content: str, text: str) -> str:
    """``content`` without its date: words that were said, one after the other."""
    said = DATE.sub("", content)
    place = " ".join(text.split()).replace("’", "'").find(said)
    assert place >= 0, f"{content!r} are not the words of {text!r}"
    return said


def matched(turn: dict[str, Any]) -> list[tuple[Finding, dict[str, Any] | None]]:
    """What is found of a turn, each with the label that it meets; a label is met once."""
    left = list(turn["memories"])
    pairs = []
    at = datetime.fromisoformat(turn["at"])
    for finding in by_rules([Turn(turn["role"], turn["text"], at)]):
        said = words_said_of(finding.content, turn["text"])
        met = next((m for m in left if all(folded(w) in folded(said) for w in m["must"])), None)
        if met:
            left.remove(met)
        pairs.append((finding, met))
    return pairs


@pytest.mark.parametrize("turns", [LABELLED, UNSEEN], ids=["labelled", "unseen"])
def test_what_is_found_is_right_and_most_is_found(turns: list[dict[str, Any]]):
    counts: Counter[tuple[str, str]] = Counter()
    dates: Counter[bool] = Counter()
    wrong = []
    for turn in turns:
        for label in turn["memories"]:
            counts["labels", turn["lang"]] += 1
            counts["labels", label["kind"]] += 1
        for finding, met in matched(turn):
            counts["found", turn["lang"]] += 1
            if met is None:
                wrong.append(finding.content)
                continue
            counts["right", turn["lang"]] += 1
            counts["right", met["kind"]] += 1
            if met["date"]:
                dates[finding.date == met["date"]] += 1
    languages = sorted({turn["lang"] for turn in turns})
    for name in [*languages, "fact", "preference", "request", "event", "plan"]:
        print(name, {what: counts[what, name] for what in ("labels", "found", "right")})
    found, right, labels = (
        sum(counts[what, name] for name in languages) for what in ("found", "right", "labels")
    )
    print(f"precision {right / found:.3f}, recall {right / labels:.3f}, dates {dates}", wrong)
    assert right / found >= 0.95, wrong
    assert right / labels >= 0.9
    assert all(counts["right", name] / counts["labels", name] >= 0.8 for name in languages)
    assert dates[True] / dates.total() >= 0.9


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Please remember that I prefer tea.", "I prefer tea"),
        ("Could you note that the spare key is under the blue pot?", "the spare key is under the"),
        ("Please remember this: the gate closes at nine.", "the gate closes at nine"),
        ("Please remember this. The gate closes at nine.", "The gate closes at nine"),
        ("Ok. By the way, I’m allergic to kiwis – ideas?", "I'm allergic to kiwis"),
        ("I hate olives and I love capers.", "I love capers"),
        ("Tomorrow I’m flying to Graz.", "Tomorrow (2026-12-02) I'm flying to Graz"),
        ("Remind me to water the ferns on Friday", "water the ferns on Friday (2026-12-04)"),
        ("Bitte merk dir, dass ich Nachtschicht habe.", "ich Nachtschicht habe"),
        ("Nächsten Montag ziehe ich nach Köln.", "Nächsten Montag (2026-12-07) ziehe ich nach"),
        ("No me gusta el pulpo.", "No me gusta el pulpo"),
        ("Soy alérgica al polen.", "Soy alérgica al polen"),
        ("Ma fille s'appelle Zoé.", "Ma fille s'appelle Zoé"),
        ("Moro em Évora.", "Moro em Évora"),
        ("私は札幌に住んでいます。", "私は札幌に住んでいます"),
        ("记住，我不吃羊肉。", "我不吃羊肉"),
        ("im vegan", "im vegan"),
        ("i really dont like rain", "i really dont like rain"),
        ("Meine Frau und ich wohnen in Köln.", "Meine Frau und ich wohnen in Köln"),
        ("I've got a test on Friday", "I've got a test on Friday (2026-12-04)"),
    ],
)
def test_the_words_stay_those_that_were_said(said: str, kept: str):
    assert any(content.startswith(kept) for content in contents(said))


@pytest.mark.parametrize(
    "said",
    [
        "Remember when we had floppy disks?",
        "Do you remember where I live?",
        "If I lived in Rome, I would eat out daily.",
        'Translate: "My name is Ute and I live in Bonn."',
        "Translate this into French. My name is Ute and I live in Bonn.",
        "Pretend you are my patient. I am a doctor and I have two kids.",
        "```\nI live in Bonn.\n```",
        "> I live in Bonn.",
        "My friend says she hates cheese.",
        "I like it. I love that!",
        "I have a question.",
        "Write a sort function. Remember that the input may be empty.",
        "I prefer vi, just kidding",
        "„Ich wohne in Bonn“, sagte sie.",
        "「私は猫が好きです」と書いてあった。",
        "你还记得我住在哪里吗？",
        "I started the server yesterday and got an error.",
        "I love the second paragraph.",
        "I've got a weird problem with my printer.",
        "Trabajo en este script.",
        "我喜欢第二个版本。",
        "ugh, I love rain 🙄",
        "My neighbour lives in Łódź.",
        "My main character is a witch. I live in a swamp.",
        "From: a@b.test\nSubject: Hi\n\nI live in Bonn.",
        "Fix it\n\nI live in Bonn.\nKind regards\nUte",
        "[2026-01-01 10:00] Ute: hi\nI live in Bonn.",
        "I live in fear of Mondays.",
        "my dog is barking",
    ],
)
def test_what_is_not_told_of_oneself_is_not_remembered(said: str):
    assert contents(said) == []


@pytest.mark.parametrize("role", ["assistant", "system", "tool", "Assistant"])
def test_what_a_machine_says_of_itself_is_not_remembered(role: str):
    assert by_rules([Turn(role, "I live in Bonn. Remember that I prefer tea.", AT)]) == []


def test_a_person_may_have_a_name():
    assert by_rules([Turn("Ann", "I live in Bonn.", AT)])[0].content == "I live in Bonn"


def test_a_finding_says_what_kind_of_memory_it_is():
    [fact, wish, plan, answer] = found_in(
        "My name is Ute.",
        "Note: I hate beetroot",
        "I have an exam next Friday.",
        "Always answer in French.",
    )
    assert (fact.memory_type, fact.category, fact.persistent) == (
        *(MemoryType.SEMANTIC, "facts", True),
    )
    assert (wish.category, wish.tags, wish.turn) == ("preferences", ("requested",), 1)
    assert wish.importance > fact.importance
    assert (plan.memory_type, plan.category, plan.persistent, plan.date) == (
        *(MemoryType.EPISODIC, "plans", False, "2026-12-11"),
    )
    assert (answer.memory_type, answer.category) == (MemoryType.PROCEDURAL, "instructions")


def test_days_are_those_of_the_speaker():
    late = datetime.fromisoformat("2026-12-01T23:30:00-05:00")  # the second in UTC
    assert contents("I met Bo yesterday.", late) == ["I met Bo yesterday (2026-11-30)"]


SPOKEN = r"""
    I I'm my we live in love hate remember that note : , . ? ! and but tomorrow next Friday ich
    wohne je suis not a nurse if ``` " ’ « „ 私は です 。 我叫 喜欢 ， 明天 5月20日 two days ago
"""
WORDS = st.sampled_from([*SPOKEN.split(), "\n"])
TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(WORDS, max_size=60).map(" ".join),
    st.lists(WORDS, max_size=60).map("".join),
)


@given(TEXTS)
@settings(deadline=None)
def test_any_text_gives_its_own_words_or_nothing(text: str):
    first = found_in(text)
    assert found_in(text) == first
    for finding in first:
        assert finding.content.strip()
        words_said_of(finding.content, text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "I live ",
        "my best ",
        "note: ",
        '"',
        "„",
        "?",
        " ",
        ", I ",
        "please ",
        "1 ",
        "私は",
        "我喜欢",
    ],
)
def test_long_texts_take_time_in_proportion(unit: str):
    def taken(length: int) -> float:
        text = (unit * length)[:length]
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            found_in(text, (text[:500] + ". ") * (length // 500))
            best = min(best, time.process_time() - start)
        return best

    phrases_for("I"), phrases_for("私")  # compiled once
    assert taken(80_000) < 40 * max(taken(8_000), 0.002)  # quadratic would be 100 times
