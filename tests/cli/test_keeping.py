from __future__ import annotations

import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from retain import KnowledgeMemory, clock

NOW = clock.now()


def test_pruning_deletes_what_is_expired_and_old_logs_with_their_notes(retain, place: Path):
    with KnowledgeMemory(place, max_log_days=100) as memory:
        memory.remember("old note", created_at=NOW - 40 * clock.DAY)
        memory.remember("older note", created_at=NOW - 50 * clock.DAY)
        memory.remember("old fact", created_at=NOW - 40 * clock.DAY, persistent=True)
        memory.remember("gone", created_at=NOW - 2 * clock.DAY, ttl_days=1)
        memory.remember("new note")
    assert retain("prune", "--logs-days", "45", "--json").value == {
        "expired": 1,
        "logs": 1,
        "notes": 1,
    }
    assert retain("prune").out == "Deleted 0 expired memories, 1 logs and 1 notes in them.\n"
    assert {row["content"] for row in retain("list", "--json").rows} == {"old fact", "new note"}


def test_the_statistics_count_what_is_there(retain, place: Path):
    retain("remember", "--lines", "--persistent", "--category", "c", stdin="one\ntwo\n")
    retain("remember", "three", "--type", "episodic", "--at", "2026-03-13")
    retain("remember", "hers", "--user", "ann")
    found = retain("stats", "--json").value
    assert found["directory"] == str(place)
    assert (found["memories"], found["facts"], found["expired"]) == (3, 2, 0)
    assert found["by_type"] == {"semantic": 2, "episodic": 1}
    assert found["by_category"] == {"c": 2, "general": 1}
    assert found["oldest"] == 1773360000.0
    assert found["revision"] == 4
    assert found["bytes"]["store"] > 0 and found["bytes"]["facts"] > 0
    assert found["scopes"] == [
        {"scope": {}, "memories": 3},
        {"scope": {"user": "ann"}, "memories": 1},
    ]
    out = retain("stats").out
    assert "default: 3, user=ann: 1" in out and "semantic: 2" in out and "2026-03-13T00" in out


def test_the_statistics_of_nothing_are_zeros(retain, place: Path):
    with KnowledgeMemory(place):
        pass
    found = retain("stats", "--json").value
    assert (found["memories"], found["oldest"], found["scopes"]) == (0, None, [])
    assert retain("stats").code == 0


def test_a_whole_store_has_no_problems(retain):
    retain("remember", "x")
    assert retain("check").out == "No problems.\n"
    assert retain("check", "--fix", "--json").value == {"ok": True, "problems": []}


@pytest.fixture
def broken(retain, place: Path) -> Path:
    retain("remember", "Likes tea", "--persistent")
    retain("remember", "a note")
    with (place / "memory.db").open("r+b") as file:
        file.write(b"\xff" * 4096)
    return place


def test_a_store_that_cannot_be_used_is_exit_code_3(retain, broken: Path):
    for words in (("recall", "tea"), ("remember", "x"), ("list",)):
        outcome = retain(*words, expect=3)
        assert "memory.db" in outcome.err and outcome.err.count("\n") == 1


def test_a_broken_store_is_a_problem_and_can_be_mended(retain, broken: Path):
    outcome = retain("check", expect=1)
    assert "memory.db" in outcome.out and "check --fix" in outcome.err
    assert retain("check", "--json", expect=1).value["ok"] is False
    outcome = retain("check", "--fix")
    assert f"{broken / 'memory.db'}: file is not a database (mended)" in outcome.lines
    assert "check --fix" not in outcome.out and "nothing was changed" not in outcome.out
    assert retain("check").out == "No problems.\n"
    assert {row["content"] for row in retain("list", "--json").rows} == {"Likes tea", "a note"}


def test_a_backup_is_a_memory_in_itself(retain, tmp_path: Path):
    retain("remember", "x")
    retain("remember", "hers", "--user", "ann")
    target = str(tmp_path / "backup")
    assert retain("backup", target).out.endswith(f" bytes, to {target}\n")
    retain("remember", "later")
    assert retain("--dir", target, "list", "--json").value["content"] == "x"
    assert retain("--dir", target, "list", "--user", "ann", "--json").value["content"] == "hers"
    assert "there already" in retain("backup", target, expect=2).err
    other = retain("backup", str(tmp_path / "other"), "--json").value
    assert "memory.db" in other["files"] and other["bytes"] > 0


def test_a_place_that_cannot_be_written_is_exit_code_3(retain, tmp_path: Path):
    (tmp_path / "file").write_text("x")
    outcome = retain("remember", "x", "--dir", str(tmp_path / "file"), expect=3)
    assert outcome.err.startswith(f"retain: {tmp_path / 'file'}")
    retain("remember", "x")
    retain("backup", str(tmp_path / "file" / "backup"), expect=3)


def test_a_store_of_a_newer_version_is_exit_code_3_and_left_alone(retain, place: Path):
    retain("remember", "x")
    with closing(sqlite3.connect(place / "memory.db")) as db:
        db.execute("PRAGMA user_version = 999")
    assert "upgrade retain" in retain("list", expect=3).err
    assert "upgrade retain" in retain("check", "--fix", expect=3).err


def test_a_network_file_system_needs_to_be_insisted_on(retain, place: Path, monkeypatch):
    from retain import files

    monkeypatch.setattr(files, "_filesystem", lambda path: "nfs4")
    assert "give --allow-network" in retain("remember", "x", expect=3).err
    retain("remember", "x", "--allow-network")
    monkeypatch.setenv("RETAIN_ALLOW_NETWORK", "1")
    assert len(retain("list").lines) == 1
    monkeypatch.setenv("RETAIN_ALLOW_NETWORK", "0")
    retain("list", expect=3)


def test_warnings_of_the_library_are_notes(retain, place: Path):
    retain("remember", "x")
    log = next((place / "logs").glob("*.jsonl"))
    log.write_text(log.read_text() + "broken\n")
    assert retain("log").err.startswith("retain: ")
    assert "line 2" in json.loads(retain("log", "--json").err)["note"]
    assert not logging.getLogger("retain").handlers
