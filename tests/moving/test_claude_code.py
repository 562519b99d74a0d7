from __future__ import annotations

import os
from pathlib import Path

import pytest

from foreign_exports import contents, kept
from retain import AgentMemory, KnowledgeMemory
from retain.errors import InvalidValue
from retain.moving import import_path
from retain.moving.notes import front_matter, notes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As Claude Code keeps one: an index, a topic with front matter, and one of notes."""
    place = tmp_path / "-home-ann-bakery" / "memory"
    place.mkdir(parents=True)
    (place / "MEMORY.md").write_text(
        "# Memory\n\n"
        "- [Tests need a database](feedback_db.md) — never a mock\n"
        "- [Gone](gone.md) - the topic was deleted\n"
        "- Ann bakes rye\n\n"
        "## Ofen\n\nHeizt auf 250 °C.\n",
        "utf-8",
    )
    (place / "feedback_db.md").write_text(
        "---\nname: db-in-tests\ndescription: 'No mocks: a real database'\ntype: feedback\n"
        "---\n\nTests run against a real database.\n\n**Why:** a mock hid a bug.\n",
        "utf-8",
    )
    (place / "debugging.md").write_text(
        "# Debugging\n\n## Oven\n- Reset it\n  with the red key\n"
        "- Log:\n\n```sh\ntail -f log\n```\n",
        "utf-8",
    )
    for file in place.iterdir():
        os.utime(file, (1_750_000_000, 1_750_000_000))
    return place


def test_topics_and_notes_become_lasting_facts(folder: Path):
    memory = AgentMemory()
    report = import_path(memory, folder)
    assert (report.format, report.troubles) == ("claude-code", [])
    facts = {each.content: each for each in kept(memory)}
    assert set(facts) == {
        "Gone — the topic was deleted",
        "Ann bakes rye",
        "Heizt auf 250 °C.",
        "Tests run against a real database.\n\n**Why:** a mock hid a bug.",
        "Reset it\nwith the red key",
        "Log:\n```sh\ntail -f log\n```",
    }
    topic = facts["Tests run against a real database.\n\n**Why:** a mock hid a bug."]
    assert (topic.category, topic.tags) == ("feedback", ["db-in-tests"])
    assert topic.source == "-home-ann-bakery/feedback_db.md"
    assert topic.metadata == {
        "file": "feedback_db.md",
        "project": "-home-ann-bakery",
        "name": "db-in-tests",
        "description": "No mocks: a real database",
    }
    assert facts["Heizt auf 250 °C."].category == "Ofen"
    reset = facts["Reset it\nwith the red key"]
    assert (reset.category, reset.tags) == ("debugging", ["Oven"])
    assert {each.created_at for each in facts.values()} == {1_750_000_000}
    assert all(each.persistent for each in facts.values())


def test_an_import_that_is_run_again_brings_what_is_new_and_tells_what_changed(folder: Path):
    memory = AgentMemory()
    assert import_path(memory, folder).imported == 6
    assert import_path(memory, folder).known == 6
    with (folder / "debugging.md").open("a") as file:
        file.write("- And again\n")
    topic = folder / "feedback_db.md"
    topic.write_text(topic.read_text("utf-8").replace("Tests run", "All tests run"), "utf-8")
    report = import_path(memory, folder)
    assert (report.imported, report.known, len(report.conflicts)) == (1, 5, 1)
    assert import_path(memory, folder, replace=True).replaced == 1
    assert any(text.startswith("All tests run") for text in contents(memory))


def test_two_projects_with_a_topic_of_the_same_name_are_both_kept(folder: Path):
    other = folder.parent.parent / "other" / "memory"
    other.mkdir(parents=True)
    (other / "feedback_db.md").write_text("---\ntype: user\n---\nSomething else", "utf-8")
    memory = AgentMemory()
    import_path(memory, folder)
    assert import_path(memory, other).imported == 1


def test_a_topic_alone_is_read(folder: Path):
    memory = AgentMemory()
    report = import_path(memory, folder / "feedback_db.md")
    assert (report.format, report.imported) == ("claude-code", 1)


def test_the_facts_stand_in_memory_md(folder: Path, tmp_path: Path):
    with KnowledgeMemory(tmp_path / "mine") as memory:
        import_path(memory, folder)
        text = (tmp_path / "mine" / "MEMORY.md").read_text("utf-8")
    assert "## feedback\n- Tests run against a real database. **Why:** a mock hid a bug." in text


def test_a_file_that_is_no_text_is_told_and_the_others_come_in(folder: Path):
    (folder / "debugging.md").write_bytes(b"caf\xe9")
    (folder / "empty.md").write_text("---\nname: x\n---\n", "utf-8")
    report = import_path(AgentMemory(), folder)
    assert [str(each) for each in report.unreadable] == [
        "debugging.md: it is not UTF-8 at byte 4",
        "empty.md: it has front matter, and no text after it",
    ]
    assert report.imported == 4


def test_a_folder_without_notes_is_refused(tmp_path: Path):
    with pytest.raises(InvalidValue, match="folder 'memory'"):
        import_path(AgentMemory(), tmp_path, format="claude-code")


def test_a_directory_of_selectools_is_still_one(tmp_path: Path):
    (tmp_path / "MEMORY.md").write_text("# Agent Memory\n\n## food\n- Likes tea\n")
    assert import_path(AgentMemory(), tmp_path).format == "selectools"
    (tmp_path / "notes.md").write_text("My own notes")
    (tmp_path / "logs").mkdir()
    assert import_path(AgentMemory(), tmp_path).format == "selectools"


def test_front_matter_in_every_form_is_read():
    text = (
        '---\r\nname: "a \\"b\\""\ndescription: >-\n  on two: lines\n  of it\nkeep: |\n'
        "  one\n  two\nmetadata:\n  type: user\n  origin: 'it''s'\nlong: begins\n  and goes on\n"
        "# a comment\n---\nBody\n---\nmore\n"
    )
    members, body = front_matter(text)
    assert members["name"] == 'a "b"'
    assert members["description"] == "on two: lines of it"
    assert members["keep"] == "one\ntwo"
    assert (members["metadata.type"], members["metadata.origin"]) == ("user", "it's")
    assert members["long"].startswith("begins and goes on")
    assert body == "Body\n---\nmore\n"
    assert front_matter("---\nname: x\nnever ends") == ({}, "---\nname: x\nnever ends")


def test_notes_keep_everything_but_headings_and_rules():
    text = "intro\ngoes on\n\n---\n* a\n\n  still a\n1. b\nlazy\n\n~~~\n# code\n\n- x\n~~~\nafter\n"
    assert [note.text for note in notes(text)] == [
        "intro\ngoes on",
        "a\nstill a",
        "b\nlazy\n~~~\n# code\n\n- x\n~~~\nafter",
    ]
