from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from retain import AgentMemory, KnowledgeMemory
from retain.models import Memory
from retain.moving import ImportReport, import_path
from retain.moving.times import as_time

DAY = "2026-03-13"


def entry(id: str, content: str, time: str = "10:15:00", **more: Any) -> dict[str, Any]:
    moment = f"{DAY}T{time}.123456+00:00"
    return {
        "id": id,
        "content": content,
        "category": "general",
        "importance": 0.5,
        "persistent": False,
        "ttl_days": None,
        "created_at": moment,
        "updated_at": moment,
        "metadata": {},
        **more,
    }


def write_entries(place: Path, *entries: Any) -> None:
    text = "".join(f"{json.dumps(each)}\n" for each in entries)
    (place / "entries.jsonl").write_text(text, "utf-8")


def write_database(place: Path, *entries: dict[str, Any]) -> None:
    names = list(entry("x", "x"))
    with closing(sqlite3.connect(place / "knowledge.db")) as db:
        db.execute(f"CREATE TABLE knowledge ({', '.join(names)})")
        for each in entries:
            row = [json.dumps(each[name]) if name == "metadata" else each[name] for name in names]
            db.execute(f"INSERT INTO knowledge VALUES ({', '.join('?' * len(names))})", row)
        db.commit()


def write_log(place: Path, *lines: str) -> None:
    (place / f"{DAY}.log").write_text("".join(f"{line}\n" for line in lines), "utf-8")


def write_daily_log(place: Path, *lines: dict[str, Any]) -> None:
    (place / "logs").mkdir(exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (place / "logs" / f"{DAY}.jsonl").write_text(text, "utf-8")


def said(content: str, time: str = "10:15:00", **more: Any) -> dict[str, Any]:
    line = {"timestamp": f"{DAY}T{time}Z", "category": "general", "content": content}
    return {**line, "persistent": False, **more}


def taken(place: Path) -> tuple[list[Memory], ImportReport]:
    memory = AgentMemory()
    report = import_path(memory, place)
    assert report.format == "selectools"
    return sorted(memory.store.list_all(), key=lambda each: each.created_at), report


def told(memories: list[Memory]) -> list[tuple[str, str, bool]]:
    return sorted((each.category, each.content, each.persistent) for each in memories)


# -- the layout of version 1.3 -----------------------------------------------------------------


@pytest.mark.parametrize("write", [write_entries, write_database])
def test_an_entry_in_the_store_the_log_and_memory_md_comes_in_once(tmp_path: Path, write: Any):
    fact = {"category": "prefs", "persistent": True, "importance": 1, "metadata": {"by": ["Ann"]}}
    write(
        tmp_path,
        entry("e1", "Likes tea", **fact),
        entry("e2", "東京へ行く", "10:16:00", ttl_days=100_000),
    )
    write_log(
        tmp_path,
        f"[{DAY} 10:15:00] [prefs] Likes tea",
        f"[{DAY} 10:16:01] [general] 東京へ行く",
    )
    (tmp_path / "MEMORY.md").write_text("- [prefs] Likes tea\n")
    memories, report = taken(tmp_path)
    assert (report.imported, report.total) == (2, 2)
    first, second = memories
    assert (first.id, first.category, first.persistent) == ("e1", "prefs", True)
    assert (first.importance_score, first.metadata) == (1.0, {"by": ["Ann"]})
    assert first.created_at == as_time(f"{DAY}T10:15:00.123456Z")
    assert (second.id, second.content, second.ttl_days) == ("e2", "東京へ行く", 100_000)


def test_what_the_store_has_evicted_comes_in_from_the_log_with_its_time(tmp_path: Path):
    write_entries(tmp_path, entry("e1", "kept"))
    write_log(tmp_path, f"[{DAY} 10:15:00] [general] kept", f"[{DAY} 11:00:00] [context] evicted")
    memories, _ = taken(tmp_path)
    assert told(memories) == [("context", "evicted", False), ("general", "kept", False)]
    assert memories[1].created_at == as_time(f"{DAY}T11:00:00Z")


def test_what_was_said_twice_is_two_memories(tmp_path: Path):
    write_entries(tmp_path, entry("e1", "ok"), entry("e2", "ok"), entry("e3", "ok", "12:00:00"))
    write_log(tmp_path, *[f"[{DAY} 10:15:00] [general] ok"] * 3, f"[{DAY} 12:00:00] [general] ok")
    memories, _ = taken(tmp_path)
    assert len(memories) == 4  # three at a quarter past ten, of which the store kept two


def test_a_text_of_several_lines_is_one_memory(tmp_path: Path):
    write_entries(tmp_path, entry("e1", "one\n\ntwo", persistent=True))
    write_log(
        tmp_path,
        f"[{DAY} 10:15:00] [general] one",
        "",
        "two",
        f"[{DAY} 10:20:00] [a]b] three",
        "  four",
    )
    (tmp_path / "MEMORY.md").write_text("- [general] one\n\ntwo\n")
    memories, _ = taken(tmp_path)
    assert told(memories) == [("a]b", "three\n  four", False), ("general", "one\n\ntwo", True)]


def test_a_directory_without_a_store_is_read_from_its_files(tmp_path: Path):
    write_log(tmp_path, f"[{DAY} 10:15:00] [prefs] Likes tea", f"[{DAY} 10:16:00] [a] a note")
    (tmp_path / "MEMORY.md").write_text("- [prefs] Likes tea\n- [prefs] Likes trains\n")
    os.utime(tmp_path / "MEMORY.md", (1e9, 1e9))
    memories, report = taken(tmp_path)
    assert report.imported == 3
    assert told(memories) == [
        ("a", "a note", False),
        ("prefs", "Likes tea", True),
        ("prefs", "Likes trains", True),
    ]
    times = {each.content: each.created_at for each in memories}
    assert times["Likes tea"] == as_time(f"{DAY}T10:15:00Z")
    assert times["Likes trains"] == 1e9


def test_a_line_of_a_log_that_is_no_entry_is_told(tmp_path: Path):
    write_log(tmp_path, "what is this", f"[{DAY} 25:15:00] [general] late", f"[{DAY} 10:15:00] ok")
    memories, report = taken(tmp_path)
    assert told(memories) == [("general", "ok", False)]
    assert [each.where for each in report.unreadable] == [
        f"{DAY}.log, line 1",
        f"{DAY}.log, line 2",
    ]


def test_lines_that_are_no_utf_8_are_told_and_the_others_come_in(tmp_path: Path):
    (tmp_path / f"{DAY}.log").write_bytes(
        f"[{DAY} 10:15:00] [a] one\r\n".encode()
        + b"\xff\xfe\r\n"
        + f"[{DAY} 10:16:00] two".encode()
    )
    (tmp_path / "MEMORY.md").write_bytes(b"\xef\xbb\xbf# Agent Memory\n\n## a\n- \xff\n- fact\n")
    memories, report = taken(tmp_path)
    assert told(memories) == [("a", "fact", True), ("a", "one", False), ("general", "two", False)]
    assert len(report.unreadable) == 2


def test_entries_that_are_broken_are_told_and_the_others_come_in(tmp_path: Path):
    write_entries(tmp_path, entry("e1", "one"), "no entry", entry("e2", "two", importance=7))
    with (tmp_path / "entries.jsonl").open("a") as file:
        file.write('{"id": "torn", "cont')
    memories, report = taken(tmp_path)
    assert told(memories) == [("general", "one", False)]
    assert [each.where for each in report.unreadable] == [
        f"entries.jsonl, line {number}" for number in (2, 3, 4)
    ]


def test_rows_that_are_broken_are_told_and_the_others_come_in(tmp_path: Path):
    write_database(tmp_path, entry("e1", "one"), entry("e2", "two", created_at="soon"))
    with closing(sqlite3.connect(tmp_path / "knowledge.db")) as db:
        db.execute("UPDATE knowledge SET metadata = '{' WHERE id = 'e1'")
        db.execute("INSERT INTO knowledge SELECT * FROM knowledge WHERE id = 'e1'")
        db.execute("UPDATE knowledge SET id = 'e3', metadata = NULL WHERE rowid = 3")
        db.execute("INSERT INTO knowledge (id, content) VALUES ('e4', CAST(X'FF' AS TEXT))")
        db.commit()
    memories, report = taken(tmp_path)
    assert [each.id for each in memories] == ["e3"]
    assert [each.where for each in report.unreadable] == [
        f"knowledge.db, row {number}" for number in (1, 2, 4)
    ]


def test_a_database_that_is_broken_is_told_and_the_files_come_in(tmp_path: Path):
    (tmp_path / "knowledge.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    (tmp_path / "MEMORY.md").write_text("- [a] fact\n")
    memories, report = taken(tmp_path)
    assert told(memories) == [("a", "fact", True)]
    assert "SQLite" in report.unreadable[0].reason


def test_a_database_of_another_program_beside_them_is_passed_over(tmp_path: Path):
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as db:
        db.execute("CREATE TABLE sessions (id TEXT)")
    write_entries(tmp_path, entry("e1", "one"))
    _, report = taken(tmp_path)
    assert (report.imported, report.troubles) == (1, [])


# -- the layout of the specification -----------------------------------------------------------

FACTS = "# Agent Memory\n\nSome prose.\n\n## prefs\n- Likes tea\n\n## personal\n- Name: Ann\n"


def test_facts_come_from_memory_md_and_notes_from_the_logs(tmp_path: Path):
    (tmp_path / "MEMORY.md").write_text(FACTS)
    write_daily_log(
        tmp_path,
        said("Likes tea", category="prefs", persistent=True),
        said("Likes tea", "11:00:00", category="prefs", persistent=True),
        said("a note", "12:00:00", category="context"),
        said("a note", "12:00:00", category="context"),
    )
    memories, report = taken(tmp_path)
    assert report.imported == 4
    assert told(memories) == [
        ("context", "a note", False),
        ("context", "a note", False),
        ("personal", "Name: Ann", True),
        ("prefs", "Likes tea", True),
    ]
    times = {each.content: each.created_at for each in memories}
    assert times["Likes tea"] == as_time(f"{DAY}T10:15:00Z")
    assert times["a note"] == as_time(f"{DAY}T12:00:00Z")


def test_a_fact_that_was_taken_out_of_memory_md_is_none_any_more(tmp_path: Path):
    (tmp_path / "MEMORY.md").write_text(FACTS)
    write_daily_log(tmp_path, said("Likes coffee", category="prefs", persistent=True))
    memories, _ = taken(tmp_path)
    assert ("prefs", "Likes coffee", False) in told(memories)


def test_logs_alone_tell_what_was_a_fact(tmp_path: Path):
    write_daily_log(tmp_path, said("Likes tea", persistent=True), said("a note"))
    memories, _ = taken(tmp_path)
    assert told(memories) == [("general", "Likes tea", True), ("general", "a note", False)]


def test_the_ids_of_the_logs_are_kept(tmp_path: Path):
    (tmp_path / "MEMORY.md").write_text(FACTS)
    write_daily_log(
        tmp_path,
        said("Likes tea", category="prefs", persistent=True, id="f1"),
        said("a note", id="n1"),
    )
    memories, _ = taken(tmp_path)
    assert {"f1", "n1"} < {each.id for each in memories}


def test_a_fact_and_an_earlier_note_of_the_same_text_are_two(tmp_path: Path):
    (tmp_path / "MEMORY.md").write_text(FACTS)
    write_daily_log(tmp_path, said("Name: Ann", category="personal"))
    memories, _ = taken(tmp_path)
    assert told(memories).count(("personal", "Name: Ann", False)) == 1
    assert told(memories).count(("personal", "Name: Ann", True)) == 1


def test_unreadable_lines_of_a_log_are_told(tmp_path: Path):
    write_daily_log(tmp_path, said("one"))
    with (tmp_path / "logs" / f"{DAY}.jsonl").open("a") as file:
        file.write('{"timestamp": "never"}\n')
    _, report = taken(tmp_path)
    assert str(report.unreadable[0]).startswith(f"logs/{DAY}.jsonl, line 2: it ")


# -- both --------------------------------------------------------------------------------------


def test_an_import_can_be_run_again_and_goes_on_where_more_was_written(tmp_path: Path):
    (tmp_path / "MEMORY.md").write_text("- [a] fact\n")
    write_log(tmp_path, f"[{DAY} 10:15:00] [general] ok", f"[{DAY} 10:15:00] [general] ok")
    memory = AgentMemory()
    assert import_path(memory, tmp_path).imported == 3
    write_log(tmp_path, *[f"[{DAY} 10:15:00] [general] ok"] * 3)
    os.utime(tmp_path / "MEMORY.md", (1e9, 1e9))
    again = import_path(memory, tmp_path)
    assert (again.imported, again.known, again.troubles) == (1, 3, [])


@pytest.mark.parametrize("name", ["MEMORY.md", "entries.jsonl", f"{DAY}.log", f"{DAY}.jsonl"])
def test_a_single_file_of_one_is_read_too(tmp_path: Path, name: str):
    write_entries(tmp_path, entry("e1", "ok", importance=1))
    write_log(tmp_path, f"[{DAY} 10:15:00] [general] ok")
    write_daily_log(tmp_path, said("ok"))
    (tmp_path / "MEMORY.md").write_text("# Notes\n- ok\n")
    path = tmp_path / ("logs" if name == f"{DAY}.jsonl" else "") / name
    memories, _ = taken(path)
    assert [each.content for each in memories] == ["ok"]
    assert memories[0].persistent is (name == "MEMORY.md")


def test_nothing_in_the_directory_is_changed(tmp_path: Path):
    source = tmp_path / "source"
    source.mkdir()
    write_entries(source, entry("e1", "one"), "broken")
    (source / "MEMORY.md").write_text(FACTS)
    write_daily_log(source, said("a note"))
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    with KnowledgeMemory(tmp_path / "target") as memory:
        import_path(memory, source)
    assert {path: path.read_bytes() for path in source.rglob("*") if path.is_file()} == before


def test_facts_keep_the_order_of_memory_md(tmp_path: Path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "MEMORY.md").write_text("# Agent Memory\n\n## b\n- 3\n- 1\n\n## a\n- 2\n")
    write_entries(source, entry("e1", "1", category="b", persistent=True))
    with KnowledgeMemory(tmp_path / "target") as memory:
        import_path(memory, source)
        assert memory.get_persistent_facts() == {"b": ["3", "1"], "a": ["2"]}
