from __future__ import annotations

import threading
from pathlib import Path

import pytest

from retain import KnowledgeMemory, Scope
from retain.errors import InvalidValue, StoreFailed
from retain.moving import back_up


def test_a_backup_is_a_memory_directory_with_all_scopes(tmp_path: Path):
    place = tmp_path / "memory"
    with (
        KnowledgeMemory(place) as memory,
        KnowledgeMemory(place, scope=Scope("ann")) as hers,
    ):
        memory.remember("a fact", persistent=True)
        hers.remember("her fact", category="東京", persistent=True)
        hers.remember("her note", tags=["t"])
        names = back_up(memory, tmp_path / "backup")
        memory.remember("later")
    assert {"memory.db", "MEMORY.md", "scopes/user=ann/MEMORY.md"} < set(names)
    with KnowledgeMemory(tmp_path / "backup") as memory:
        assert memory.get_persistent_facts() == {"general": ["a fact"]}
        assert memory.memory_count == 1
    with KnowledgeMemory(tmp_path / "backup", scope=Scope("ann")) as hers:
        assert hers.get_persistent_facts() == {"東京": ["her fact"]}
        assert hers.recall("note")[0].memory.tags == ["t"]


def test_a_persons_own_lines_are_in_the_backup(tmp_path: Path):
    with KnowledgeMemory(tmp_path / "memory") as memory:
        memory.remember("a fact", persistent=True)
        facts = tmp_path / "memory" / "MEMORY.md"
        facts.write_text(facts.read_text() + "\nMy own words.\n")
        back_up(memory, tmp_path / "backup")
    assert "My own words." in (tmp_path / "backup" / "MEMORY.md").read_text()


def test_only_what_is_retains_is_copied(tmp_path: Path):
    place = tmp_path / "project"
    place.mkdir()
    (place / "main.py").write_text("print()")
    with KnowledgeMemory(place) as memory:
        memory.remember("a note")
        back_up(memory, tmp_path / "backup")
    names = {path.name for path in (tmp_path / "backup").rglob("*") if path.is_file()}
    assert "main.py" not in names
    assert not [name for name in names if name.endswith((".lock", "-wal", ".synced"))]


def test_a_backup_while_others_write_is_consistent(tmp_path: Path):
    place = tmp_path / "memory"
    done = threading.Event()

    def write() -> None:
        with KnowledgeMemory(place) as other:
            for number in range(10_000):
                if done.is_set():
                    return
                other.remember(f"fact {number}", persistent=number % 3 == 0)

    with KnowledgeMemory(place) as memory:
        writer = threading.Thread(target=write)
        writer.start()
        try:
            for number in range(5):
                back_up(memory, tmp_path / f"backup{number}")
        finally:
            done.set()
            writer.join()
    for number in range(5):
        with KnowledgeMemory(tmp_path / f"backup{number}") as copy:
            assert copy.engine.store.check() == []
            facts = [each for each in copy.engine.store.list_all() if each.persistent]
            assert len(facts) == len({each.content for each in facts})
            assert len(facts) == len(copy.get_persistent_facts().get("general", []))


def test_nothing_is_written_over_and_nothing_is_left_by_a_failure(tmp_path: Path):
    with KnowledgeMemory(tmp_path / "memory") as memory:
        (tmp_path / "there").mkdir()
        with pytest.raises(InvalidValue, match="there already"):
            back_up(memory, tmp_path / "there")
        with pytest.raises(InvalidValue, match="inside"):
            back_up(memory, tmp_path / "memory" / "backup")
        (tmp_path / "file").write_text("x")
        with pytest.raises(StoreFailed):
            back_up(memory, tmp_path / "file" / "backup")
    assert {path.name for path in tmp_path.iterdir()} == {"memory", "there", "file"}


def test_a_memory_without_a_directory_has_none(tmp_path: Path):
    with pytest.raises(InvalidValue, match="no directory"):
        back_up(KnowledgeMemory(None), tmp_path / "backup")
