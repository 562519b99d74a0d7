"""What a call has written is forced to the disk before the call returns."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from faults.places import open_place
from faults.workers import at_point
from retain import FileStore, JSONFileStore, KnowledgeMemory, Memory, SQLiteStore
from retain.stores import file


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """Gives the inodes that were forced to the disk since it was last called, in their order."""
    inodes: list[int] = []
    fsync = os.fsync

    def noted(handle: int) -> None:
        fsync(handle)
        inodes.append(os.fstat(handle).st_ino)

    def since() -> list[int]:
        found = inodes[:]
        inodes.clear()
        return found

    monkeypatch.setattr(os, "fsync", noted)
    return since


def inode(path: Path) -> int:
    return path.stat().st_ino


@contextmanager
def no_call() -> Iterator[list[str]]:
    """The calls to the disk, all of which go through."""
    with at_point(-1, lambda function: None) as passed:
        yield passed


def test_a_json_file_is_forced_to_the_disk_and_so_is_its_name(
    tmp_path: Path, synced: Callable[[], list[int]]
) -> None:
    path = tmp_path / "memories.json"
    with JSONFileStore(path) as store:
        synced()
        for number in range(3):
            with no_call() as calls:
                store.save(Memory(content=f"text {number}"))
            assert synced() == [inode(path), inode(tmp_path)]
            order = [call for call in calls if call in ("write", "flush", "fsync", "replace")]
            assert order == ["write", "flush", "fsync", "replace", "fsync"]
        store.get(store.list_all()[0].id)
    assert synced() == [inode(path), inode(tmp_path)]


def test_an_append_is_forced_to_the_disk_and_a_new_file_with_its_name(
    tmp_path: Path, synced: Callable[[], list[int]]
) -> None:
    folder = tmp_path / "memory"
    path = folder / "memories.jsonl"
    with FileStore(folder) as store:
        assert inode(tmp_path) in synced()  # in which the folder is new
        store.save(Memory("m1", "x"))
        created, named, appended = synced()
        assert (created, named, appended) == (inode(path), inode(folder), inode(path))
        store.save(Memory("m2", "x"))
        assert synced() == [inode(path)]
        store.save_many([Memory(content=f"text {number}") for number in range(50)])
        assert synced() == [inode(path)]
        store.delete("m1")
        assert synced() == [inode(path)] * 2  # the deletion, and the text that it voids


def test_a_compaction_is_forced_to_the_disk(
    tmp_path: Path, synced: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memories.jsonl"
    with FileStore(tmp_path) as store:
        store.save_many([Memory(f"m{n}", "x" * 500) for n in range(10)])
        before = inode(path)
        monkeypatch.setattr(file, "_SLACK", 0)
        synced()
        store.delete_many([f"m{n}" for n in range(9)])
        assert synced() == [before, before, inode(path), inode(tmp_path)]


def test_memory_md_is_forced_to_the_disk_and_so_is_its_name(
    tmp_path: Path, synced: Callable[[], list[int]]
) -> None:
    with KnowledgeMemory(tmp_path) as memory:
        memory.remember("one", persistent=True)
        synced()
        memory.remember("two", persistent=True)
        forced = synced()
        at = forced.index(inode(tmp_path / "MEMORY.md"))
        assert inode(tmp_path) in forced[at + 1 :]


def test_new_folders_are_forced_to_the_disk_each_in_the_one_above(
    tmp_path: Path, synced: Callable[[], list[int]]
) -> None:
    for number, kind in enumerate(["json", "file", "sqlite", "directory"]):
        folder = tmp_path / f"{number}" / "one" / "two"
        open_place(kind, folder).close()
        above = [inode(tmp_path), inode(folder.parent.parent), inode(folder.parent)]
        found = synced()
        assert [each for each in found if each in above][:3] == above


def pragmas(store: SQLiteStore) -> dict[str, object]:
    names = ("synchronous", "journal_mode", "secure_delete")
    with store.driver._open() as db:
        return {name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in names}


def test_sqlite_is_told_to_force_every_commit_to_the_disk(tmp_path: Path) -> None:
    wanted = {"synchronous": 2, "journal_mode": "wal", "secure_delete": 1}
    for _ in range(2):  # a new file, and one that is there
        with SQLiteStore(tmp_path / "memory.db") as store:
            assert pragmas(store) == wanted
            store.save(Memory(content="x"))
            assert pragmas(store) == wanted
    with KnowledgeMemory(tmp_path / "directory") as memory:
        assert pragmas(memory.engine.store) == wanted


TRACED = """
import os, sys
from retain import Memory, SQLiteStore
store = SQLiteStore(sys.argv[1])
store.save(Memory(content="the first one makes the log"))
os.write(1, b"begin")
store.save(Memory(content="x"))
os.write(1, b"end")
"""


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not here")
def test_a_commit_of_sqlite_forces_its_log_to_the_disk(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-y", "-e", "trace=write,fsync,fdatasync", "-o", str(trace)]
    path = tmp_path / "memory.db"
    traced = subprocess.run(
        [*command, sys.executable, "-c", TRACED, str(path)], capture_output=True, check=False
    )
    if traced.returncode or not trace.exists():
        pytest.skip(f"strace may not trace here: {traced.stderr[-200:]!r}")
    lines = trace.read_text(errors="replace").splitlines()
    begin = next(n for n, line in enumerate(lines) if '"begin"' in line)
    end = next(n for n, line in enumerate(lines) if '"end"' in line)
    forced = [line for line in lines[begin:end] if "sync(" in line]
    assert any(f"{path}-wal" in line for line in forced), lines[begin:end]
