"""The notes beside .MEMORY.synced: short writes, and nothing that a loss of them could cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from retain import KnowledgeMemory
from retain.directory.memory_md import Recorded
from retain.memories.synced import State, Synced


def test_what_is_noted_is_read_back_after_what_was_saved(tmp_path: Path) -> None:
    synced = Synced(tmp_path / ".MEMORY.synced")
    assert synced.load() is None
    assert synced.note([Recorded("a", "c", "t")]) is False  # nothing was saved yet
    synced.save("s", 3, "# Agent Memory\n\n## c\n- 東京\n", ["m1"])
    assert synced.note([Recorded("m2", "c", "naïve\ttext")]) is True
    assert synced.note([Recorded("m3", "new", "x")]) is True
    again = Synced(tmp_path / ".MEMORY.synced")
    added = [Recorded("m2", "c", "naïve\ttext"), Recorded("m3", "new", "x")]
    assert again.load() == State("s", 3, "# Agent Memory\n\n## c\n- 東京\n", ["m1"], added)
    again.save("s", 4, "text\n", [])
    assert Synced(tmp_path / ".MEMORY.synced").load() == State("s", 4, "text\n", [], [])


@pytest.mark.parametrize("cut", range(1, 20, 3))
def test_half_a_note_counts_as_none_and_nothing_is_added_to_it(tmp_path: Path, cut: int) -> None:
    synced = Synced(tmp_path / ".MEMORY.synced")
    synced.save("s", 1, "", [])
    synced.note([Recorded("m1", "c", "kept")])
    synced.note([Recorded("m2", "c", "torn by a kill")])
    synced.notes.write_bytes(synced.notes.read_bytes()[:-cut])
    again = Synced(tmp_path / ".MEMORY.synced")
    state = again.load()
    assert state is not None and [line.id for line in state.added] == ["m1"]
    assert again.note([Recorded("m3", "c", "x")]) is False


def test_notes_to_another_state_are_not_read(tmp_path: Path) -> None:
    synced = Synced(tmp_path / ".MEMORY.synced")
    synced.save("s", 1, "one", [])
    synced.note([Recorded("m1", "c", "x")])
    old = synced.notes.read_bytes()
    synced.save("s", 2, "two", [])
    synced.notes.write_bytes(old)
    again = Synced(tmp_path / ".MEMORY.synced")
    assert again.load() == State("s", 2, "two", [], [])
    assert again.note([Recorded("m2", "c", "x")]) is False


def test_an_edit_of_a_line_that_was_only_noted_keeps_its_memory(tmp_path: Path) -> None:
    memory = KnowledgeMemory(tmp_path)
    receipts = [memory.remember(f"fact {n}", "c", persistent=True) for n in range(5)]
    assert (tmp_path / ".MEMORY.added").exists()
    del memory  # never closed: what another process finds
    file = tmp_path / "MEMORY.md"
    file.write_text(file.read_text().replace("fact 3", "another 3").replace("- fact 1\n", ""))
    with KnowledgeMemory(tmp_path) as again:
        assert again.get_persistent_facts() == {"c": ["fact 0", "fact 2", "another 3", "fact 4"]}
        found = again.get(receipts[3].id)
        assert found is not None and found.content == "another 3"
        gone = {memory.id for _, memory in again.forgotten()}
        assert gone == {receipts[1].id, receipts[3].id}  # the one deleted, and what one was


def test_the_notes_hold_nothing_that_was_forgotten_or_changed(tmp_path: Path) -> None:
    with KnowledgeMemory(tmp_path) as memory:
        one = memory.remember("a zebra", persistent=True)
        two = memory.remember("a walrus", persistent=True)
        assert b"walrus" in (tmp_path / ".MEMORY.added").read_bytes()
        memory.forget(one.id)
        memory.update(two.id, content="a lynx")
        bytes_there = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
        assert b"zebra" not in bytes_there
        assert b"walrus" not in bytes_there


def test_the_notes_are_gathered_before_they_grow_long(tmp_path: Path) -> None:
    with KnowledgeMemory(tmp_path) as memory:
        for n in range(60):
            memory.remember(f"{n} " + "long " * 600, persistent=True)
        assert (tmp_path / ".MEMORY.added").stat().st_size < 80_000
        assert len(memory.get_persistent_facts()["general"]) == 60
    with KnowledgeMemory(tmp_path) as memory:
        assert len(memory.get_persistent_facts()["general"]) == 60
        assert memory.memory_count == 60
