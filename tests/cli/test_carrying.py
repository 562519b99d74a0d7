from __future__ import annotations

import json
from pathlib import Path

import pytest

from foreign_exports import as_file, as_lines, bread, claude_chat, claude_message, zipped
from retain.cli.carrying import import_
from retain.moving import FORMATS


@pytest.fixture
def stocked(retain) -> None:
    retain("remember", "Likes tea", "--persistent", "--category", "prefs", "--tag", "drinks")
    retain("remember", "四月に東京へ行く", "--type", "episodic")


def records(outcome) -> list[dict]:
    hidden = {"revision", "access_count", "last_accessed", "scope"}
    rows = [{k: v for k, v in row.items() if k not in hidden} for row in outcome.rows]
    return sorted(rows, key=lambda row: row["id"])


def test_an_export_to_standard_output_is_nothing_but_the_lines(retain, stocked):
    outcome = retain("export")
    assert [row["content"] for row in outcome.rows] == ["Likes tea", "四月に東京へ行く"]
    assert outcome.err == ""
    assert retain("export", "-", "--json").out == outcome.out


@pytest.mark.parametrize("format", ["jsonl", "codomyrmex", "selectools"])
def test_what_was_exported_can_be_imported_elsewhere(retain, stocked, tmp_path: Path, format: str):
    path = str(tmp_path / "out")
    assert retain("export", path, "--format", format).out == f"Exported 2 to {path}\n"
    other = ("--dir", str(tmp_path / "other"))
    assert retain("import", path, *other).out == f"Imported 2 ({format}).\n"
    assert records(retain("list", "--json", *other)) == records(retain("list", "--json"))
    again = retain("import", path, "--format", format, *other)
    assert again.out == f"Imported 0, known already: 2 ({format}).\n"


@pytest.mark.parametrize(
    ("format", "source"),
    [
        ("mem0", as_file({"results": [{"id": "1", "memory": "Likes tea"}]})),
        ("mcp-graph", as_lines({"type": "relation", "from": "a", "relationType": "b", "to": "c"})),
        ("chatgpt", as_file([bread()])),
        ("claude", zipped(conversations=[claude_chat(claude_message(1, "human", "Чай"))])),
    ],
)
def test_what_other_programs_keep_is_imported_once(retain, tmp_path: Path, format: str, source):
    path = tmp_path / "export"
    path.write_bytes(source.getvalue())
    found = retain("import", str(path), "--json").value
    assert (found["format"], found["unreadable"]) == (format, [])
    assert len(retain("list").lines) == found["imported"] > 0
    again = retain("import", str(path), "--format", format, "--json").value
    assert (again["imported"], again["known"]) == (0, found["imported"])


def test_every_format_can_be_named():
    (form,) = [each for each in import_.params if each.name == "form"]
    assert tuple(form.type.choices) == FORMATS


def test_an_export_can_be_piped_into_an_import(retain, stocked):
    lines = retain("export").out
    assert retain("--user", "ann", "import", "-", stdin=lines).out == "Imported 2 (jsonl).\n"
    array = retain("export", "--format", "codomyrmex").out
    outcome = retain("--user", "bob", "import", "-", "--json", stdin=array)
    assert (outcome.value["imported"], outcome.value["format"]) == (2, "codomyrmex")


def test_all_scopes_can_be_exported_and_kept(retain, stocked, tmp_path: Path):
    retain("remember", "hers", "--user", "ann")
    path = str(tmp_path / "all.jsonl")
    assert retain("export", path, "--all-scopes", "--json").value["exported"] == 3
    other = ("--dir", str(tmp_path / "other"))
    assert retain("import", path, "--keep-scope", *other).out == "Imported 3 (jsonl).\n"
    assert retain("list", "--user", "ann", "--json", *other).value["content"] == "hers"
    assert len(retain("list", *other).lines) == 2
    merged = ("--dir", str(tmp_path / "merged"))
    retain("import", path, *merged)
    assert len(retain("list", *merged).lines) == 3


def test_a_file_that_is_there_needs_force(retain, stocked, tmp_path: Path):
    path = tmp_path / "out"
    path.write_text("mine")
    assert "--force" in retain("export", str(path), expect=2).err
    assert path.read_text() == "mine"
    retain("export", str(path), "--force")
    assert len(path.read_text("utf-8").splitlines()) == 2


@pytest.mark.parametrize(
    "words", [("--format", "selectools"), ("--format", "codomyrmex", "--all-scopes")]
)
def test_an_export_that_makes_no_sense_is_a_mistake(retain, stocked, words):
    retain("export", *words, expect=2)


def test_what_cannot_be_taken_over_is_told_and_exit_code_1(retain, tmp_path: Path):
    path = tmp_path / "in.jsonl"
    good = {"id": "m1", "content": "one"}
    path.write_text(f"{json.dumps(good)}\nbroken\n{json.dumps({**good, 'content': 'two'})}\n")
    outcome = retain("import", str(path), expect=1)
    assert outcome.out == "Imported 1, unreadable: 1, in conflict: 1 (jsonl).\n"
    assert "line 2: it is not JSON" in outcome.err
    assert "line 3: the id 'm1'" in outcome.err
    assert "--replace" in outcome.err
    found = retain("import", str(path), "--json", expect=1).value
    assert [each["where"] for each in found["unreadable"]] == ["line 2"]
    path.write_text(json.dumps({**good, "content": "two"}))
    assert retain("import", str(path), "--replace").out == "Imported 0, replaced: 1 (jsonl).\n"


def test_many_troubles_are_cut_with_a_word_about_it(retain, tmp_path: Path):
    path = tmp_path / "in.jsonl"
    path.write_text("broken\n" * 100)
    outcome = retain("import", str(path), expect=1)
    assert outcome.err.count("\n") == 21
    assert "80 more" in outcome.err
    assert len(retain("import", str(path), "--json", expect=1).value["unreadable"]) == 100


def test_a_dry_run_makes_nothing(retain, place: Path, tmp_path: Path):
    path = tmp_path / "in.jsonl"
    path.write_text('{"content": "x", "scope": {"user": "ann"}}\n')
    for words in ((), ("--keep-scope",)):
        outcome = retain("import", str(path), "--dry-run", *words)
        assert outcome.out == "Would import 1 (jsonl).\n"
    assert not place.exists()
    retain("remember", "y")
    found = retain("import", str(path), "--dry-run", "--keep-scope", "--json").value
    assert (found["imported"], found["dry_run"]) == (1, True)
    assert len(retain("list", "--all").lines) == 1
    assert not (place / "scopes").exists()


def test_nothing_to_import_is_exit_code_1(retain, tmp_path: Path):
    (tmp_path / "empty").write_text("")
    assert "nothing to import" in retain("import", str(tmp_path / "empty"), expect=1).err
    assert "does not exist" in retain("import", str(tmp_path / "nowhere"), expect=2).err


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_an_import_of_nothing_makes_no_directory(retain, stocked, place: Path, tmp_path, dry):
    other = tmp_path / "other"
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("my-computer\n")
    (tmp_path / "empty").write_text("")
    for source, code in ((place, 2), ("folder", 2), ("file", 1), ("empty", 1)):
        retain("import", str(tmp_path / source), "--dir", str(other), *dry, expect=code)
        assert not other.exists()
    retain("import", "-", "--dir", str(other), stdin="\n", expect=1)
    assert not other.exists()


def test_a_memory_of_retain_itself_is_to_be_exported(retain, stocked, place: Path, tmp_path: Path):
    outcome = retain("import", str(place), "--dir", str(tmp_path / "other"), expect=2)
    assert f"retain --dir {place} export" in outcome.err
