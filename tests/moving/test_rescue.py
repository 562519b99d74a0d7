from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from retain import KnowledgeMemory, Scope
from retain.errors import InvalidValue
from retain.moving import mend

ANN = Scope("ann/x", session="1,2=3")


def made(place: Path) -> None:
    for scope in (Scope(), ANN):
        with KnowledgeMemory(place, scope=scope) as memory:
            whose = scope.user or "nobody"
            memory.remember(f"a fact of {whose}", category="東京", persistent=True, tags=["t"])
            memory.remember(f"a note of {whose}")


def told(place: Path, scope: Scope | None = None) -> list[tuple[str, bool]]:
    with KnowledgeMemory(place, scope=scope) as memory:
        return sorted((each.content, each.persistent) for each in memory.engine.store.list_all())


WHOLE = {
    Scope(): [("a fact of nobody", True), ("a note of nobody", False)],
    ANN: [("a fact of ann/x", True), ("a note of ann/x", False)],
}


def overwrite(path: Path, data: bytes, at: int = 0) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_a_whole_store_has_no_problems(tmp_path: Path):
    made(tmp_path)
    assert mend(tmp_path) == mend(tmp_path, fix=True) == []


def test_a_broken_store_is_told_and_left_alone_without_fix(tmp_path: Path):
    made(tmp_path)
    overwrite(tmp_path / "memory.db", b"\xff" * 8192)
    before = (tmp_path / "memory.db").read_bytes()
    (problem,) = mend(tmp_path)
    assert "memory.db" in problem.text and not problem.fixed
    assert (tmp_path / "memory.db").read_bytes() == before


@pytest.mark.parametrize("damage", ["header", "everything", "empty", "text", "missing"])
def test_what_a_broken_store_has_lost_comes_back_from_the_files(tmp_path: Path, damage: str):
    made(tmp_path)
    path = tmp_path / "memory.db"
    if damage == "header":
        overwrite(path, b"\xff" * 100)
    elif damage == "everything":
        overwrite(path, os.urandom(path.stat().st_size))
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "text":
        path.write_text("This is no database at all.\n" * 100)
    else:
        path.unlink()
    problems = mend(tmp_path, fix=True)
    assert problems and all(problem.fixed for problem in problems)
    assert mend(tmp_path) == []
    for scope, memories in WHOLE.items():
        assert told(tmp_path, scope) == memories
    facts = (tmp_path / "MEMORY.md").read_text("utf-8")
    assert facts == "# Agent Memory\n\n## 東京\n- a fact of nobody\n"


def test_the_broken_file_is_kept(tmp_path: Path):
    made(tmp_path)
    overwrite(tmp_path / "memory.db", b"\xff" * 100)
    broken = (tmp_path / "memory.db").read_bytes()
    mend(tmp_path, fix=True)
    kept = [path for path in tmp_path.iterdir() if ".set-aside-" in path.name]
    assert broken in [path.read_bytes() for path in kept]


def test_what_can_be_read_of_the_store_is_kept_whole(tmp_path: Path):
    made(tmp_path)
    with KnowledgeMemory(tmp_path) as memory:
        for number in range(400):
            memory.remember(f"text {number} " + "x" * 500, tags=["tag"], metadata={"n": number})
    path = tmp_path / "memory.db"
    overwrite(path, b"\xff" * 4096, path.stat().st_size // 2 // 4096 * 4096)
    assert any(not problem.fixed for problem in mend(tmp_path))
    mend(tmp_path, fix=True)
    assert mend(tmp_path) == []
    with KnowledgeMemory(tmp_path) as memory:
        found = {each.content[:9].strip(): each for each in memory.engine.store.list_all()}
        assert len(found) == 402
        whole = [each for each in found.values() if each.tags]
        assert len(whole) > 300  # the others came from the log, which knows no tags


def test_a_forgotten_memory_stays_forgotten(tmp_path: Path):
    made(tmp_path)
    with KnowledgeMemory(tmp_path) as memory:
        receipt = memory.remember("a secret", persistent=True)
        memory.forget(receipt.id)
    overwrite(tmp_path / "memory.db", b"\xff" * 8192)
    mend(tmp_path, fix=True)
    assert told(tmp_path) == WHOLE[Scope()]


def test_a_database_of_another_program_is_left_alone(tmp_path: Path):
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE cookies (name TEXT)")
    (problem,) = mend(tmp_path)
    assert not problem.fixed and problem.text.count(str(path)) == 1
    with pytest.raises(InvalidValue, match="another program"):
        mend(tmp_path, fix=True)
    with closing(sqlite3.connect(path)) as db:
        assert list(db.execute("SELECT name FROM sqlite_master")) == [("cookies",)]
    assert [each.name for each in tmp_path.iterdir() if "set-aside" in each.name] == []


def test_a_folder_whose_scope_is_not_known_keeps_its_facts(tmp_path: Path):
    long = Scope("x" * 300)
    with KnowledgeMemory(tmp_path, scope=long) as memory:
        memory.remember("a fact", persistent=True)
    (tmp_path / "memory.db").unlink()
    mend(tmp_path, fix=True)
    assert told(tmp_path, long) == [("a fact", True)]


def test_a_damaged_index_file_is_told_and_with_fix_made_anew(tmp_path: Path):
    with KnowledgeMemory(tmp_path) as memory:
        memory.remember_many([f"note {number} of many" for number in range(600)])
        memory.settle()
    assert mend(tmp_path) == []
    [file] = (tmp_path / "memory.db-index").glob("*/*.terms")
    overwrite(file, b"\xff" * 64, file.stat().st_size // 2)
    [problem] = mend(tmp_path)
    assert (file.name in problem.text, problem.fixed) == (True, False)
    assert [problem.fixed for problem in mend(tmp_path, fix=True)] == [True]
    assert mend(tmp_path) == []
    with KnowledgeMemory(tmp_path) as memory:
        assert memory.recall("note 599", k=1)[0].memory.content == "note 599 of many"
