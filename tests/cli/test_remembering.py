from __future__ import annotations

from pathlib import Path

import pytest

from retain import KnowledgeMemory, MemoryType


def ids(retain) -> list[str]:
    return [row["id"] for row in retain("list", "--all", "--json").rows]


# -- remember ----------------------------------------------------------------------------------


def test_a_memory_is_remembered_with_all_that_was_said_about_it(retain, place: Path):
    outcome = retain(
        *("remember", "四月に東京へ行く", "--category", "travel", "--tag", "a", "--tag", "b"),
        *("--importance", "high", "--type", "procedural", "--source", "Ann", "--ttl-days", "90000"),
        *("--metadata", '{"page": [1, null]}', "--at", "2026-03-13T10:15:00+01:00"),
    )
    (id,) = ids(retain)
    assert outcome.out == f"Remembered for now in travel. {id}\n"
    with KnowledgeMemory(place) as memory:
        found = memory.get(id)
    assert found is not None
    assert (found.content, found.category, found.tags) == ("四月に東京へ行く", "travel", ["a", "b"])
    assert (found.importance_score, found.memory_type) == (0.75, MemoryType.PROCEDURAL)
    assert (found.source, found.ttl_days, found.metadata) == ("Ann", 90000, {"page": [1, None]})
    assert found.created_at == 1773393300.0


def test_what_is_not_said_is_as_the_library_has_it(retain):
    retain("remember", "x")
    row = retain("list", "--json").value
    assert (row["memory_type"], row["importance_score"], row["category"]) == (
        *("semantic", 0.5, "general"),
    )


def test_a_fact_goes_to_memory_md_and_is_known_the_second_time(retain, place: Path):
    first = retain("remember", "Likes tea", "--persistent", "--category", "prefs", "--json").value
    assert first["created"] is True
    assert "## prefs\n- Likes tea\n" in (place / "MEMORY.md").read_text()
    again = retain("remember", "Likes tea", "--persistent", "--category", "prefs", "--json").value
    assert again == {"id": first["id"], "created": False}
    outcome = retain("remember", "Likes tea", "--persistent", "--category", "prefs")
    assert outcome.out == f"Already remembered in prefs. {first['id']}\n"


def test_content_may_be_piped(retain):
    retain("remember", stdin="from a pipe\nsecond line\n")
    retain("remember", "-", stdin="with a dash\r\n")
    found = {row["content"] for row in retain("list", "--json").rows}
    assert found == {"from a pipe\nsecond line", "with a dash"}


def test_an_argument_wins_over_a_pipe(retain):
    retain("remember", "the argument", stdin="the pipe")
    assert retain("list", "--json").value["content"] == "the argument"


def test_content_may_be_a_file(retain, tmp_path: Path):
    path = tmp_path / "note.txt"
    path.write_bytes(b"\xef\xbb\xbf  two\n\nlines \n")
    retain("remember", "--file", str(path))
    assert retain("list", "--json").value["content"] == "  two\n\nlines "


def test_each_line_can_be_a_memory_and_all_are_written_or_none(retain):
    outcome = retain("remember", "--lines", "--tag", "t", stdin="one\n\n  \ntwo\r\nthree")
    assert outcome.out == "Remembered 3.\n"
    rows = retain("list", "--json").rows
    assert {row["content"] for row in rows} == {"one", "two", "three"}
    assert all(row["tags"] == ["t"] for row in rows)
    retain("remember", "--lines", "--category", " ", stdin="four\nfive", expect=2)
    assert len(ids(retain)) == 3


def test_lines_that_are_known_already_are_told(retain):
    retain("remember", "one", "--persistent")
    outcome = retain("remember", "--lines", "--persistent", stdin="one\ntwo\ntwo\n")
    assert outcome.out == "Remembered 1. Known already: 2.\n"
    rows = retain("remember", "--lines", "--persistent", "--json", stdin="two\nsix\n").rows
    assert [row["created"] for row in rows] == [False, True]


def test_there_must_be_something_to_remember(retain, tmp_path: Path):
    for words, stdin in (
        (("remember",), ""),
        (("remember", ""), ""),
        (("remember", " \n"), ""),
        (("remember", "--lines"), "\n \n"),
        (("remember", "x", "--file", str(tmp_path / "nowhere")), ""),
        (("remember", "--file", str(tmp_path)), ""),
    ):
        assert retain(*words, stdin=stdin, expect=2).err.startswith("retain: ")
    (tmp_path / "note").write_text("x")
    assert "twice" in retain("remember", "x", "--file", str(tmp_path / "note"), expect=2).err


def test_bytes_that_are_no_utf_8_are_told_by_their_place(retain, tmp_path: Path):
    (tmp_path / "latin").write_bytes("café".encode("latin-1"))
    assert "byte 4" in retain("remember", "--file", str(tmp_path / "latin"), expect=2).err
    assert "byte 2" in retain("remember", stdin=b"a\xff", expect=2).err


def test_words_need_no_quotes(retain):
    retain("remember", "hello", "there", "--category", "c", "you")
    id = retain("list", "--json").value["id"]
    assert retain("show", id, "--json").value["content"] == "hello there you"
    retain("update", id, "good", "bye")
    assert retain("list", "--json").value["content"] == "good bye"


def test_a_text_that_begins_with_a_dash_needs_two_before_it(retain):
    for words in (("remember", "-5 degrees"), ("recall", "-5"), ("update", "abcd", "-5")):
        assert "put -- before" in retain(*words, expect=2).err
    assert "put --" not in retain("list", "-5", expect=2).err
    assert "put --" not in retain("remember", "x", "--categry", "c", expect=2).err
    retain("remember", "--", "-5 degrees")
    assert retain("list", "--json").value["content"] == "-5 degrees"


@pytest.mark.parametrize("category", ["a\nb", "a\r\nb", "a\u2028b"])
def test_a_confirmation_is_one_line_whatever_is_in_it(retain, category: str):
    outcome = retain("remember", "hi", "--category", category)
    assert outcome.lines == [f"Remembered for now in a b. {ids(retain)[0]}"]
    assert retain("list", "--json").value["category"] == category


@pytest.mark.parametrize(
    "words",
    [
        ("x", "--ttl-days", "nan"),
        ("x", "--persistent", "--ttl-days", "3"),
        ("x", "--category", " "),
        ("x", "--metadata", '{"a": "\\ud800"}'),
        ("x", "--user", "u" * 600),
        ("--lines", "x", "--ttl-days", "-1"),
        (" ",),
    ],
)
def test_what_cannot_be_remembered_makes_no_directory(retain, place: Path, words):
    retain("remember", *words, expect=2)
    assert not place.exists()


# -- observe -----------------------------------------------------------------------------------


def test_a_conversation_is_kept_and_what_is_worth_it_remembered(retain, place: Path):
    lines = [
        '{"role": "user", "content": "I live in Łódź. I have an exam tomorrow.", '
        '"at": "2026-12-01T10:00+01:00"}',
        "",
        '{"role": "assistant", "content": "Good luck!", "more": 1}',
    ]
    outcome = retain("observe", "-", "--conversation", "s", stdin="\n".join(lines))
    assert "I live in Łódź" in outcome.lines[0] and "(2026-12-02)" in outcome.lines[1]
    assert outcome.lines[-1] == "Turns kept: 2. Remembered: 2."
    assert "I live in Łódź" in (place / "MEMORY.md").read_text("utf-8")
    rows = retain("list", "--all", "--json").rows
    assert sum(row["metadata"].get("session") == "s" for row in rows) == 2
    assert retain("observe", "-", "--json", stdin=lines[2]).rows == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "nothing to observe"),
        ("[1]", "line 1 is no turn"),
        ('{"role": "user", "content": "x"}\n{', "line 2 is no JSON"),
        ('{"role": "user", "content": null}', "line 1"),
        ('{"role": "user", "content": "x", "at": "soon"}', "ISO 8601"),
    ],
)
def test_a_line_that_is_no_turn_is_told_and_nothing_made(retain, place: Path, text: str, why: str):
    assert why in retain("observe", "-", stdin=text, expect=2).err
    assert not place.exists()


# -- update ------------------------------------------------------------------------------------


def test_a_memory_is_corrected_in_place(retain, place: Path):
    id = retain("remember", "address 192.168.7.1", "--persistent", "--json").value["id"]
    assert retain("update", id[:8], "address 192.168.9.1").out == f"Updated {id}\n"
    assert "- address 192.168.9.1" in (place / "MEMORY.md").read_text()
    row = retain("list", "--json").value
    assert (row["id"], row["content"]) == (id, "address 192.168.9.1")


def test_everything_about_a_memory_can_be_changed(retain):
    id = retain("remember", "x", "--tag", "a", "--ttl-days", "3", "--json").value["id"]
    changed = retain(
        *("update", id, "--category", "c", "--tag", "b", "--importance", "0.9", "--no-ttl"),
        *("--type", "episodic", "--source", "me", "--metadata", '{"a": 1}', "--persistent"),
        "--json",
    ).value
    assert (changed["category"], changed["tags"], changed["importance_score"]) == ("c", ["b"], 0.9)
    assert (changed["memory_type"], changed["source"]) == ("episodic", "me")
    assert (changed["metadata"], changed["persistent"], changed["ttl_days"]) == (
        {"a": 1},
        True,
        None,
    )
    changed = retain("update", id, "--no-tags", "--no-persistent", "--json").value
    assert (changed["tags"], changed["persistent"]) == ([], False)


def test_the_new_content_may_be_piped_or_a_file(retain, tmp_path: Path):
    id = retain("remember", "x", "--json").value["id"]
    retain("update", id, "-", stdin="piped\n")
    assert retain("list", "--json").value["content"] == "piped"
    (tmp_path / "note").write_text("filed\n")
    retain("update", id, "--file", str(tmp_path / "note"))
    assert retain("list", "--json").value["content"] == "filed"


def test_an_update_without_a_change_reads_no_pipe(retain):
    id = retain("remember", "x", "--json").value["id"]
    retain("update", id, "--category", "c", stdin="not this")
    assert retain("list", "--json").value["content"] == "x"


@pytest.mark.parametrize(
    "words", [(), ("--tag", "a", "--no-tags"), ("--ttl-days", "1", "--no-ttl"), (" ",)]
)
def test_an_update_that_says_nothing_is_a_mistake(retain, words):
    id = retain("remember", "x", "--json").value["id"]
    retain("update", id, *words, expect=2)
    assert retain("list", "--json").value["content"] == "x"


# -- ids ---------------------------------------------------------------------------------------


@pytest.fixture
def three(retain, place: Path) -> Path:
    from retain.models import Memory

    with KnowledgeMemory(place) as memory:
        memory.remember_many([Memory(id, id) for id in ("abcd", "abcdef12", "abcdef13")])
    return place


@pytest.mark.parametrize("command", ["show", "update", "forget"])
def test_an_id_may_be_its_beginning_if_that_is_one_memorys(retain, three, command: str):
    more = ("new",) if command == "update" else ()
    assert "abcdef12, abcdef13" in retain(command, "abcdef", *more, expect=2).err
    assert "too short" in retain(command, "abc", *more, expect=2).err
    assert "'xyz1'" in retain(command, "xyz1", *more, expect=1).err
    assert "abcdef13" in retain(command, "abcdef13", *more).out
    assert "abcd" in retain(command, "abcd", *more).out


def test_an_id_of_another_scope_is_not_found(retain, three):
    retain("--user", "ann", "remember", "x")
    assert "(user ann)" in retain("--user", "ann", "show", "abcd", expect=1).err


# -- forget and restore ------------------------------------------------------------------------


def test_several_memories_are_forgotten_for_good(retain, place: Path):
    retain("remember", "--lines", "--persistent", stdin="secret one\nsecret two\nkept\n")
    doomed = [
        row["id"] for row in retain("recall", "secret", "--json").rows for row in [row["memory"]]
    ]
    outcome = retain("forget", *doomed, doomed[0])
    assert outcome.lines == [f"Forgot {id}" for id in doomed]
    assert [row["content"] for row in retain("list", "--json").rows] == ["kept"]
    for path in place.rglob("*"):
        assert path.is_dir() or b"secret" not in path.read_bytes(), path


def test_where_one_id_is_unknown_nothing_is_forgotten(retain):
    id = retain("remember", "x", "--json").value["id"]
    retain("forget", id, "0000", expect=1)
    assert ids(retain) == [id]
    assert retain("forget", id, "--json").value == {"id": id, "forgotten": True}


@pytest.fixture
def deleted_by_hand(retain, place: Path) -> str:
    retain("remember", "kept", "--persistent")
    id: str = retain("remember", "Likes tea", "--persistent", "--json").value["id"]
    facts = place / "MEMORY.md"
    facts.write_text(facts.read_text().replace("- Likes tea\n", ""))
    assert [row["content"] for row in retain("list", "--json").rows] == ["kept"]
    return id


def test_what_was_deleted_by_hand_can_be_restored(retain, place: Path, deleted_by_hand: str):
    listed = retain("restore")
    assert listed.out.startswith(deleted_by_hand[:8]) and "Likes tea" in listed.out
    assert retain("restore", "--json").value["memory"]["id"] == deleted_by_hand
    assert retain("restore", deleted_by_hand[:6]).out == f"Restored {deleted_by_hand}\n"
    assert "- Likes tea" in (place / "MEMORY.md").read_text()
    assert retain("restore").out == ""


def test_what_was_deleted_by_hand_can_be_forgotten_for_good(retain, deleted_by_hand: str):
    retain("forget", deleted_by_hand[:8])
    assert retain("restore").out == ""
    assert "restored" in retain("restore", deleted_by_hand, expect=1).err


def test_a_restored_memory_is_printed_as_json(retain, deleted_by_hand: str):
    assert retain("restore", deleted_by_hand, "--json").value["content"] == "Likes tea"
