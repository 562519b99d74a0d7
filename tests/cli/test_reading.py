from __future__ import annotations

import json
from pathlib import Path

import pytest

from retain import KnowledgeMemory, Memory, MemoryType, clock

DAY = 86_400
NOW = clock.now()


@pytest.fixture
def stocked(place: Path) -> Path:
    """Five memories; the newest is the first."""
    found = [
        Memory("11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "Likes green tea", category="prefs"),
        Memory("note-2", "Der Zug nach Köln", MemoryType.EPISODIC, 0.9, tags=["travel"]),
        Memory("note-3", "四月に東京へ行く", tags=["travel", "asia"], category="plans"),
        Memory("note-4", "several\nlines\tof tea", memory_type=MemoryType.PROCEDURAL),
        Memory("fact-5", "Ann drinks tea", category="prefs", persistent=True),
    ]
    for number, memory in enumerate(found):
        memory.created_at = memory.updated_at = memory.last_accessed = NOW - number * DAY
    with KnowledgeMemory(place) as memory:
        memory.remember_many(found)
    return place


def contents(outcome) -> list[str]:
    return [row.get("memory", row)["content"] for row in outcome.rows]


# -- recall ------------------------------------------------------------------------------------


def test_the_best_come_first_a_line_each(retain, stocked):
    lines = retain("recall", "green", "tea").lines
    assert len(lines) == 3
    score, id, date, category, text = lines[0].split("  ")
    assert 0.8 < float(score) <= 1
    assert (id, category, text) == ("11111111", "prefs", "Likes green tea")
    assert date == clock.iso(NOW)[:10]
    assert next(line for line in lines if "note-4" in line).endswith("  several lines of tea")


def test_the_words_of_a_query_need_no_quotes_and_may_be_in_any_language(retain, stocked):
    assert (
        retain("recall", "green", "tea", "-k", "1").out
        == retain("recall", "green tea", "-k", "1").out
    )
    assert contents(retain("recall", "東京", "--json")) == ["四月に東京へ行く"]
    assert contents(retain("recall", "Züge KÖLN", "--json")) == ["Der Zug nach Köln"]


def test_json_has_the_whole_record_and_its_scores(retain, stocked):
    row = retain("recall", "東京", "--json").value
    assert set(row) == {
        *("memory", "relevance_score", "recency_score", "importance_score", "combined_score"),
        "explanation",
    }
    assert row["memory"]["tags"] == ["travel", "asia"]


def test_explain_says_below_each_why_it_is_there(retain, stocked):
    lines = retain("recall", "東京", "--explain", "-k", "1").out.splitlines()
    assert len(lines) == 2
    assert "東京: 100 % of the query" in lines[1]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("-k", "2"), 2),
        (("-k", "0"), 0),
        (("--category", "prefs"), 2),
        (("--type", "procedural"), 1),
        (("--persistent",), 1),
        (("--no-persistent",), 2),
        (("--min-importance", "high"), 0),
        (("--since", clock.iso(NOW - DAY / 2)), 1),
        (("--until", clock.iso(NOW - DAY / 2)), 2),
        (("--tag", "travel"), 0),
    ],
)
def test_a_recall_can_be_narrowed(retain, stocked, words, expected: int):
    outcome = retain("recall", "tea", *words, "--json", expect=0 if expected else 1)
    assert len(outcome.rows) == expected


def test_tags_narrow_to_those_that_have_all_of_them(retain, stocked):
    assert len(retain("recall", "", "--tag", "travel", "--json").rows) == 2
    assert len(retain("recall", "", "--tag", "travel", "--tag", "asia", "--json").rows) == 1


def test_an_empty_query_finds_what_is_newest_and_most_important(retain, stocked):
    assert len(retain("recall", "").lines) == 5


def test_nothing_found_is_silent_and_exit_code_1(retain, stocked):
    outcome = retain("recall", "zebra", expect=1)
    assert outcome.out == outcome.err == ""


def test_reading_makes_nothing_where_nothing_is(retain, place: Path):
    for words in (("recall", "x"), ("list",), ("show", "abcd"), ("facts",), ("log",), ("context",)):
        assert retain(*words, expect=1).err == f"retain: nothing is remembered in {place} yet\n"
    for words in (
        ("stats",),
        ("check",),
        ("prune",),
        ("export",),
        ("restore",),
        ("forget", "abcd"),
    ):
        retain(*words, expect=1)
    assert not place.exists()


def test_a_memory_md_that_a_person_wrote_is_a_memory(retain, place: Path):
    place.mkdir()
    (place / "MEMORY.md").write_text("# Agent Memory\n\n## prefs\n- Likes tea\n")
    assert contents(retain("recall", "tea", "--json")) == ["Likes tea"]


# -- list --------------------------------------------------------------------------------------


def test_a_list_is_newest_first(retain, stocked):
    lines = retain("list").lines
    assert [line.split("  ")[0] for line in lines] == [
        *("11111111", "note-2", "note-3", "note-4", "fact-5"),
    ]
    assert lines[2] == f"note-3  {clock.iso(NOW - 2 * DAY)[:10]}  plans  四月に東京へ行く"


def test_a_list_says_when_there_is_more_and_how_to_go_on(retain, stocked):
    first = retain("list", "--limit", "2")
    assert len(first.lines) == 2
    assert "--after note-2" in first.err
    second = retain("list", "--limit", "2", "--after", "note-2", "--json")
    assert [row["id"] for row in second.rows] == ["note-3", "note-4"]
    assert "--after note-4" in json.loads(second.err)["note"]
    last = retain("list", "--limit", "2", "--after", "note-4")
    assert len(last.lines) == 1 and last.err == ""
    assert retain("list", "--all").lines == retain("list", "--limit", "5").lines


def test_a_list_can_be_narrowed(retain, stocked):
    assert len(retain("list", "--category", "prefs").lines) == 2
    assert len(retain("list", "--tag", "asia").lines) == 1
    assert len(retain("list", "--all", "--min-importance", "0.9").lines) == 1
    assert retain("list", "--category", "none").out == ""


def test_all_and_after_contradict_each_other(retain, stocked):
    assert "contradict" in retain("list", "--all", "--after", "note-2", expect=2).err


# -- show, facts, log --------------------------------------------------------------------------


def test_one_memory_is_shown_whole(retain, stocked):
    out = retain("show", "note-4").out
    assert out.endswith("\n\nseveral\nlines\tof tea\n")
    assert "procedural" in out
    assert retain("show", "note-3", "--json").value["tags"] == ["travel", "asia"]
    assert "travel, asia" in retain("show", "note-3").out


def test_looking_at_a_memory_does_not_count_as_a_retrieval(retain, stocked):
    retain("show", "note-4")
    assert retain("show", "note-4", "--json").value["access_count"] == 0
    retain("recall", "several")
    assert retain("show", "note-4", "--json").value["access_count"] == 1


def test_facts_are_shown_by_category(retain, stocked):
    assert retain("facts").out == "## prefs\n- Ann drinks tea\n"
    assert retain("facts", "--json").value == {"prefs": ["Ann drinks tea"]}


def test_the_log_is_newest_first(retain, stocked):
    lines = retain("log").lines
    assert len(lines) == 5
    assert lines[0] == f"{clock.iso(NOW)[:16].replace('T', ' ')}  prefs  Likes green tea"
    row = retain("log", "--json", "--limit", "1").rows[0]
    assert set(row) == {"timestamp", "category", "content", "persistent", "id"}
    assert "raise --limit" in retain("log", "--limit", "4").err
    assert len(retain("log", "--days", "0").lines) == 1


# -- context -----------------------------------------------------------------------------------


def test_a_context_block_has_facts_and_notes(retain, stocked):
    out = retain("context").out
    assert out.startswith("[Long-term Memory]\n## prefs\n- Ann drinks tea\n\n[Recent Memory]\n- [")
    assert retain("context", "--json").value == {"context": out.removesuffix("\n")}


def test_a_context_may_be_for_a_query(retain, stocked):
    assert retain("context", "green", "tea", "-k", "1").out == "- Likes green tea\n"
    assert retain("context", "zebra", expect=1).out == ""
    assert "-k" in retain("context", "-k", "1", expect=2).err


def test_a_context_can_be_fenced_as_data(retain, stocked):
    out = retain("context", "zug", "--fence").out
    assert out.splitlines()[1:] == ["<from-memory>", "- Der Zug nach Köln", "</from-memory>"]


def test_a_context_prunes_nothing(retain, stocked, monkeypatch):
    monkeypatch.setattr(clock, "now", lambda: NOW + 100 * DAY)
    assert "green tea" in retain("context").out
    assert len(retain("list").lines) == 5
