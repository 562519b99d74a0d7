"""A delete is a delete: no byte of any file says the text any more, and nothing brings it back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from faults.places import KINDS, STORES, Place, assert_in_step, holders, leftovers, open_place
from faults.workers import Child, run
from retain import KnowledgeMemory, Memory, NotFound, Scope, SQLiteStore, clock
from retain.directory import daily_log

MARKERS = ["zq-marker-7731", "秘密の合言葉", "naïve «clé» 🦊", 'quoted "tab\\back']
SIZES = [1, 2_000]  # a line, and many pages

Step = Callable[[Place, str], Any]


def forget(place: Place, id: str) -> None:
    assert place.forget(id)


def update(place: Place, id: str) -> None:
    place.update(id, "something else")


def make_long(place: Place, id: str) -> None:
    place.update(id, "something else " * 5_000)


STEPS: dict[str, Step] = {"forget": forget, "update": update, "a longer text": make_long}


def busy(place: Place) -> None:
    """Other memories around it, before and after."""
    for number in range(5):
        place.remember(f"other {number}", persistent=number % 2 == 1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_was_deleted_or_replaced_is_in_no_file(
    kind: str, step: str, size: int, tmp_path: Path
) -> None:
    texts = [f"{marker} " * size for marker in MARKERS]
    with open_place(kind, tmp_path) as place:
        busy(place)
        ids = [place.remember(text, persistent=n % 2 == 1) for n, text in enumerate(texts)]
        busy(place)
        assert all(holders(tmp_path, marker) for marker in MARKERS)
        for id in ids:
            STEPS[step](place, id)
        assert [holders(tmp_path, marker) for marker in MARKERS] == [[]] * 4, "while it is open"
    assert [holders(tmp_path, marker) for marker in MARKERS] == [[]] * 4, "once it is closed"
    with open_place(kind, tmp_path) as place:
        assert not any(marker in text for marker in MARKERS for text in place.contents().values())
        place.remember("and on", persistent=True)
        if kind == "directory":
            assert_in_step(place)
    assert [holders(tmp_path, marker) for marker in MARKERS] == [[]] * 4, "after a restart"


@pytest.mark.parametrize("kind", ["json", "file", "sqlite", "directory"])
def test_no_part_of_a_memory_stays_behind(kind: str, tmp_path: Path) -> None:
    marks = ["content-mark", "category-mark", "tag-mark", "meta-mark", "key-mark", "source-mark"]
    with open_place(kind, tmp_path) as place:
        memory = place.face.remember(
            marks[0],
            category=marks[1],
            tags=[marks[2]],
            metadata={marks[4]: marks[3]},
            source=marks[5],
            persistent=True,
        )
        busy(place)
        place.forget(memory.id)
        assert [holders(tmp_path, mark) for mark in marks] == [[]] * 6


@pytest.mark.parametrize("kind", ["json", "file", "sqlite", "directory"])
def test_what_is_deleted_is_not_recalled_then_nor_later(kind: str, tmp_path: Path) -> None:
    with open_place(kind, tmp_path) as place, open_place(kind, tmp_path) as other:
        id = place.remember("the zebra likes 東京", persistent=True)
        kept = place.remember("the zebra stays")
        for face in (place.face, other.face):
            assert {each.memory.id for each in face.recall("zebra")} == {id, kept}
        place.forget(id)
        for face in (place.face, other.face):
            assert [each.memory.id for each in face.recall("zebra")] == [kept]
            assert face.recall("東京") == []
            assert face.get(id) is None
            assert not face.forget(id)
    with open_place(kind, tmp_path) as place:
        assert [each.memory.id for each in place.face.recall("zebra")] == [kept]


@pytest.mark.parametrize("kind", STORES)
def test_a_forgotten_scope_leaves_neither_texts_nor_its_name(kind: str, tmp_path: Path) -> None:
    ann = Scope(user="ann-of-marker")
    with open_place(kind, tmp_path) as place:
        busy(place)
        store = place.face.store.scoped(ann)
        store.save_many([Memory(content=f"{marker} " * 300) for marker in MARKERS])
        store.delete(store.list_all()[0].id)
        assert holders(tmp_path, "ann-of-marker")
        assert place.face.store.forget_scope(ann) == 3
        for text in [*MARKERS, "ann-of-marker"]:
            assert holders(tmp_path, text) == []
        assert len(place.contents()) == 5
        assert store.list_all() == []
        store.save(Memory("again", "x"))
        assert [memory.id for memory in store.list_all()] == ["again"]


@pytest.mark.parametrize("kind", ["json", "file", "sqlite", "directory"])
def test_what_is_expired_or_evicted_leaves_no_text(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now()
    with open_place(kind, tmp_path) as place:
        busy(place)
        place.face.remember(f"expired {MARKERS[0]}", ttl_days=1)
        monkeypatch.setattr(clock, "now", lambda: now + 2 * clock.DAY)
        assert place.face.recall(MARKERS[0]) == []
        assert place.face.prune() == 1
        assert holders(tmp_path, MARKERS[0]) == []
        place.face.remember(f"least {MARKERS[1]}", importance=0.0)
        place.face.engine.max_entries = len(place.contents())
        place.face.remember("one more", importance=1.0)
        assert holders(tmp_path, MARKERS[1]) == []


def test_an_idle_process_that_has_the_place_open_does_not_keep_the_text(tmp_path: Path) -> None:
    def look_and_wait(kind: str, tell: Callable[[Any], None]) -> None:
        place = open_place(kind, tmp_path / kind)
        place.face.recall("marker")
        tell(len(place.contents()))
        signal_never()

    for kind in ("json", "file", "sqlite", "directory"):
        with open_place(kind, tmp_path / kind) as place:
            id = place.remember(MARKERS[0], persistent=True)
            idle = Child(partial(look_and_wait, kind))
            assert idle.listen(60, enough=1)
            place.forget(id)
            assert holders(tmp_path, MARKERS[0]) == []
            idle.kill()


def signal_never() -> None:
    import signal

    signal.pause()


def test_a_reader_can_hold_a_text_in_the_log_of_sqlite_no_longer_than_it_reads(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        store.save(Memory("m1", MARKERS[0]))
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM memories").fetchone() == (1,)
        assert store.delete("m1")
        reader.execute("COMMIT")
        store.save(Memory("m2", "x"))
        assert holders(tmp_path, MARKERS[0]) == []
        reader.close()


def test_what_a_killed_process_had_no_time_to_clean_the_next_one_does(tmp_path: Path) -> None:
    """The delete was done, and answered; a reader was in the way of cleaning the log."""
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        store.save(Memory("m1", MARKERS[0]))
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memories").fetchone()

    def delete(tell: Callable[[Any], None]) -> None:
        store = SQLiteStore(path)
        tell(store.delete("m1"))
        signal_never()

    deleter = Child(delete)
    assert deleter.listen(60, enough=1)
    assert deleter.kill() == [True]
    reader.execute("COMMIT")
    with SQLiteStore(path) as store:
        store.save(Memory("m2", "x"))
        assert holders(tmp_path, MARKERS[0]) == []
    reader.close()


# -- a memory directory --------------------------------------------------------------------


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with KnowledgeMemory(tmp_path) as memory:
        yield memory


def test_clearing_leaves_nothing_but_a_title(memory: KnowledgeMemory, tmp_path: Path) -> None:
    for marker in MARKERS:
        memory.remember(marker, persistent=True)
        memory.remember(f"note {marker}")
    memory.clear()
    assert [holders(tmp_path, marker) for marker in MARKERS] == [[]] * 4
    assert (tmp_path / "MEMORY.md").read_text() == "# Agent Memory\n"
    assert list((tmp_path / "logs").iterdir()) == []


def test_clearing_and_pruning_logs_takes_the_notes_out_and_leaves_the_facts(
    memory: KnowledgeMemory, tmp_path: Path
) -> None:
    fact = memory.remember("a lasting fact", persistent=True)
    memory.remember(f"note {MARKERS[0]}")
    memory.clear_logs()
    assert holders(tmp_path, MARKERS[0]) == []
    old = clock.now() - 3 * clock.DAY
    memory.remember(f"old note {MARKERS[1]}", created_at=old)
    assert memory.prune_logs(1) == 1
    assert holders(tmp_path, MARKERS[1]) == []
    assert memory.get(fact.id) is not None
    assert memory.get_persistent_facts() == {"general": ["a lasting fact"]}


def test_a_line_deleted_by_hand_is_kept_for_a_restore_alone_and_a_forget_ends_that(
    memory: KnowledgeMemory, tmp_path: Path
) -> None:
    receipt = memory.remember(MARKERS[0], persistent=True)
    memory.remember("another", persistent=True)
    page = tmp_path / "MEMORY.md"
    page.write_text(page.read_text().replace(f"- {MARKERS[0]}\n", ""))
    assert memory.recall(MARKERS[0]) == []
    assert holders(tmp_path, MARKERS[0]) == ["MEMORY.forgotten.jsonl"]
    assert memory.forget(receipt.id)
    assert holders(tmp_path, MARKERS[0]) == []
    with pytest.raises(NotFound):
        memory.restore(receipt.id)


def test_after_thirty_days_a_line_deleted_by_hand_is_gone_for_good(
    memory: KnowledgeMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receipt = memory.remember(MARKERS[0], persistent=True)
    memory.remember("another", persistent=True)
    page = tmp_path / "MEMORY.md"
    page.write_text(page.read_text().replace(f"- {MARKERS[0]}\n", ""))
    memory.flush()
    later = clock.now() + 31 * clock.DAY
    monkeypatch.setattr(clock, "now", lambda: later)
    assert memory.forgotten() == []
    memory.prune_logs()
    assert holders(tmp_path, MARKERS[0]) == []
    with pytest.raises(NotFound):
        memory.restore(receipt.id)


@pytest.mark.parametrize("change", ["forget", "update", "note"])
def test_a_line_that_says_the_same_goes_with_the_memory(
    change: str, memory: KnowledgeMemory, tmp_path: Path
) -> None:
    """A person wrote the fact down twice: one memory has two lines."""
    receipt = memory.remember(MARKERS[0], category="one", persistent=True)
    memory.remember("another", category="one", persistent=True)
    page = tmp_path / "MEMORY.md"
    page.write_text(page.read_text() + f"\nMy own words.\n- {MARKERS[0]}\n\n- {MARKERS[0]}  \n")
    assert [m.id for m in memory.engine.store.list_all() if m.content == MARKERS[0]] == [receipt.id]
    if change == "forget":
        assert memory.forget(receipt.id)
        assert holders(tmp_path, MARKERS[0]) == []
    elif change == "update":
        memory.update(receipt.id, content="something else")
        assert holders(tmp_path, MARKERS[0]) == []
    else:
        memory.update(receipt.id, persistent=False)
        assert MARKERS[0] not in page.read_text()
    (tmp_path / ".MEMORY.synced").unlink()
    with KnowledgeMemory(tmp_path) as again:
        found = [m.id for m in again.engine.store.list_all() if m.content == MARKERS[0]]
        assert found == ([receipt.id] if change == "note" else [])
    assert "My own words." in page.read_text()


@pytest.mark.parametrize("jump", [-3 * clock.DAY, -1.0, 0.0, 5 * clock.DAY])
def test_an_update_reaches_the_log_whatever_the_clock_says(
    jump: float, memory: KnowledgeMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now)
    note = memory.remember(f"a note {MARKERS[0]}")
    fact = memory.remember(f"a fact {MARKERS[0]}", persistent=True)
    monkeypatch.setattr(clock, "now", lambda: now + jump)
    memory.update(note.id, content="another note")
    memory.update(fact.id, content="another fact")
    assert holders(tmp_path, MARKERS[0]) == []
    lines = memory.get_recent_entries(days=9)
    assert {line["content"] for line in lines} == {"another note", "another fact"}


def test_half_a_line_that_a_kill_left_in_a_log_does_not_keep_its_text(tmp_path: Path) -> None:
    def remember_many(tell: Callable[[Any], None]) -> None:
        with KnowledgeMemory(tmp_path) as memory:
            tell(memory.remember(f"{MARKERS[0]} {MARKERS[1]} and so on").id)
            tell(memory.remember("the next").id)

    marked, _ = run(remember_many)
    [path] = (tmp_path / "logs").glob("*.jsonl")
    line, rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(line[: len(line) - 20])  # neither the next line: the write was cut short
    for notes in tmp_path.glob(".MEMORY.*"):
        notes.unlink()
    with KnowledgeMemory(tmp_path) as memory:
        assert path.read_bytes() == line + rest
        assert memory.forget(marked)
        assert holders(tmp_path, MARKERS[0]) == []
        assert path.read_bytes() == rest


def test_a_persons_half_line_in_a_log_stays(memory: KnowledgeMemory, tmp_path: Path) -> None:
    path = tmp_path / "logs" / daily_log.log_name(clock.now())
    path.write_bytes(b'{"timestamp": "2026-01-01T00:00:00Z", "content": "mine"}')
    memory.remember("a note")
    assert path.read_bytes().startswith(
        b'{"timestamp": "2026-01-01T00:00:00Z", "content": "mine"}\n'
    )


@pytest.mark.parametrize("kind", ["json", "file", "directory"])
def test_what_a_killed_writer_left_goes_with_the_next_delete(kind: str, tmp_path: Path) -> None:
    """Another process is killed amid a write while this one has the place open."""
    with open_place(kind, tmp_path) as place:
        id = place.remember(MARKERS[0], persistent=True)
        files = {"json": "memories.json", "file": "memory/memories.jsonl"}
        path = tmp_path / files.get(kind, "agent_memory/MEMORY.md")
        left = path.with_name(f".{path.name}.{'0' * 32}.tmp")
        left.write_bytes(path.read_bytes())
        place.forget(id)
        assert holders(tmp_path, MARKERS[0]) == []
        assert leftovers(tmp_path) == []
