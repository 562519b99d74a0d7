"""Hosts that change one memory at the same time, over a back end that can compare."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import servers
from carriers import maker
from retain import (
    Conflict,
    FileStore,
    FsspecKnowledgeBackend,
    InvalidValue,
    JSONFileStore,
    KnowledgeMemory,
    Memory,
    RedisKnowledgeBackend,
    Scope,
    SQLiteStore,
    StoreFailed,
    StoreTooNew,
    clock,
)
from retain.backends.archive import pack, unpack


class Shelf:
    """A back end as a user writes it who can compare; ``down`` where it doesn't answer."""

    def __init__(self) -> None:
        self.data: bytes | None = None
        self.down = False
        self.refusals = 0
        self._lock = threading.Lock()

    def load_bytes(self) -> bytes | None:
        self._answer()
        return self.data

    def save_bytes(self, data: bytes) -> None:
        self._answer()
        self.data = data

    def replace_bytes(self, old: bytes | None, new: bytes) -> bool:
        self._answer()
        with self._lock:
            fits = self.data == old
            self.data = new if fits else self.data
        self.refusals += not fits
        return fits

    def _answer(self) -> None:
        if self.down:
            raise ConnectionError("the shelf is away")

    def files(self) -> dict[str, bytes]:
        return unpack(self.data or b"")


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


class Hosts:
    """Hosts by number, each with a disk of its own."""

    def __init__(self, folder: Path, backend: Any) -> None:
        self.folder, self.backend = folder, backend
        self.opened: list[KnowledgeMemory] = []

    def __call__(self, number: int, **options: Any) -> KnowledgeMemory:
        place = self.folder / f"host {number}"
        memory = KnowledgeMemory(place, backend=self.backend, embedder=None, **options)
        self.opened.append(memory)
        return memory


@pytest.fixture
def host(tmp_path: Path, shelf: Shelf) -> Any:
    hosts = Hosts(tmp_path, shelf)
    yield hosts
    shelf.down = False
    for memory in hosts.opened:
        memory.close()


def contents(memory: KnowledgeMemory) -> list[str]:
    return sorted(found.content for found in memory.engine.store.list_all())


def settle(*memories: KnowledgeMemory) -> None:
    """Let each hear of all the others."""
    for _ in range(2):
        for memory in memories:
            memory.flush()


def edit(memory: KnowledgeMemory, old: str, new: str) -> None:
    assert memory.directory is not None
    file = memory.directory / "MEMORY.md"
    assert old in file.read_text("utf-8")
    file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")


# -- memories --------------------------------------------------------------------------------


def test_what_two_hosts_remember_at_once_is_on_both(host: Any, shelf: Shelf):
    one, other = host(1), host(2)
    one.remember("Likes 東京", "taste", persistent=True)
    other.remember("Hates rain", persistent=True)
    other.remember("Saw a zebra")
    assert contents(other) == ["Hates rain", "Likes 東京", "Saw a zebra"]
    one.flush()
    assert contents(one) == contents(other)
    expected = {"general": ["Hates rain"], "taste": ["Likes 東京"]}
    assert one.get_persistent_facts() == other.get_persistent_facts() == expected
    assert {entry["content"] for entry in one.get_recent_entries()} == set(contents(one))
    assert one.recall("zebra")[0].memory.content == "Saw a zebra"
    assert contents(host(3)) == contents(one)
    assert shelf.refusals == 2


def test_what_changed_on_one_side_is_taken_from_it(host: Any):
    one = host(1)
    here = one.remember("Likes tea", persistent=True, tags=["a"]).id
    there = one.remember("Hates rain", persistent=True).id
    other = host(2)
    one.update(here, content="Likes cocoa", tags=["b"])
    other.update(there, importance=0.9, metadata={"why": ["wet"]})
    settle(one, other)
    for memory in (one, other):
        found = {m.id: m for m in memory.engine.store.list_all()}
        assert (found[here].content, found[here].tags) == ("Likes cocoa", ["b"])
        assert (found[there].importance_score, found[there].metadata) == (0.9, {"why": ["wet"]})
        assert memory.forgotten() == []


def test_of_two_changes_the_later_counts_and_the_other_text_can_be_restored(host: Any):
    one = host(1)
    id = one.remember("Likes tea", "taste", persistent=True).id
    other = host(2)
    one.update(id, content="Likes cocoa")
    other.update(id, content="Likes coffee")
    settle(one, other)
    for memory in (one, other, host(3)):
        assert memory.get_persistent_facts() == {"taste": ["Likes coffee"]}
        assert [(m.id, m.content) for _, m in memory.forgotten()] == [(id, "Likes cocoa")]
    restored = other.restore(id)
    assert (restored.content, restored.id == id) == ("Likes cocoa", False)
    settle(one, other)
    assert sorted(one.get_persistent_facts()["taste"]) == ["Likes cocoa", "Likes coffee"]
    assert one.forgotten() == other.forgotten() == []


@pytest.mark.parametrize("persistent", [True, False])
def test_what_was_forgotten_on_one_host_and_not_changed_on_the_other_is_gone(
    persistent: bool, host: Any, shelf: Shelf
):
    one = host(1)
    id = one.remember("Likes zebras", persistent=persistent).id
    other = host(2)
    one.forget(id)
    other.remember("Hates rain")
    settle(one, other)
    assert contents(one) == contents(other) == ["Hates rain"]
    assert one.forgotten() == other.forgotten() == []
    assert not [name for name, data in shelf.files().items() if b"zebra" in data]
    for memory in (one, other):
        agreed = (memory.directory / ".backend.last").read_bytes().split(b"\n", 2)[2]
        assert not [name for name, data in unpack(agreed).items() if b"zebra" in data]
        assert "zebra" not in (memory.directory / "MEMORY.md").read_text("utf-8")
        assert memory.recall("zebras") == []


def test_what_was_changed_on_one_host_outlives_that_the_other_forgot_it(host: Any):
    one = host(1)
    id = one.remember("Likes tea", persistent=True).id
    other = host(2)
    other.update(id, content="Likes green tea")
    one.forget(id)
    settle(one, other)
    for memory in (one, other):
        assert memory.get_persistent_facts() == {"general": ["Likes green tea"]}


def test_equal_facts_of_two_hosts_become_one(host: Any):
    one, other = host(1), host(2)
    one.remember("Likes café", persistent=True)
    other.remember("Likes cafe\u0301", persistent=True)
    one.remember("ok")
    other.remember("ok")
    settle(one, other)
    for memory in (one, other):
        assert len(memory.get_persistent_facts()["general"]) == 1
        assert contents(memory).count("ok") == 2
    assert [m.id for m in one.engine.store.list_all()] == [
        m.id for m in other.engine.store.list_all()
    ]


def test_all_scopes_are_merged_with_their_files(host: Any):
    ann = Scope(user="Ann")
    one, other = host(1), host(2, scope=ann)
    tea = other.remember("Likes tea", persistent=True).id
    one.remember("Office opens at nine", persistent=True)
    with host(1, scope=ann) as same:  # on the disk of the first
        assert same.get_persistent_facts() == {"general": ["Likes tea"]}
        same.remember("Likes cocoa", persistent=True)
    other.forget(tea)
    settle(one, other)
    with host(3) as fresh, host(3, scope=ann) as fresh_ann:
        assert fresh.get_persistent_facts() == {"general": ["Office opens at nine"]}
        assert fresh_ann.get_persistent_facts() == {"general": ["Likes cocoa"]}
        assert contents(fresh_ann) == ["Likes cocoa"]


def test_the_larger_retrieval_count_stays(host: Any):
    one = host(1)
    id = one.remember("Likes tea").id
    other = host(2)
    for memory, times in ((one, 3), (other, 5)):
        for _ in range(times):
            memory.get(id)
        memory.remember(f"asked {times} times")
    settle(one, other)
    for memory in (one, other):
        assert memory.engine.store.peek([id])[0].access_count == 5


@pytest.mark.parametrize(
    "make",
    [
        lambda place: SQLiteStore(place / "own.db"),
        lambda place: SQLiteStore(place / "own.db").scoped(Scope(user="Ann")),
        lambda place: FileStore(place / "store"),
        lambda place: JSONFileStore(place / "store.json"),
    ],
    ids=["sqlite", "scoped", "files", "json"],
)
def test_another_store_in_the_directory_is_merged_too(make: Any, host: Any, tmp_path: Path):
    one, other = (host(n, store=make(tmp_path / f"host {n}")) for n in (1, 2))
    gone = one.remember("zebra one").id
    other.remember("zebra two")
    one.forget(gone)
    settle(one, other)
    assert contents(one) == contents(other) == ["zebra two"]


def test_a_store_elsewhere_is_not_merged_and_keeps_what_it_has(host: Any, tmp_path: Path):
    one, other = (host(n, store=SQLiteStore(tmp_path / f"{n}.db")) for n in (1, 2))
    one.remember("Likes tea", persistent=True)
    other.remember("Hates rain", persistent=True)
    one.flush()
    assert (contents(one), contents(other)) == (["Likes tea"], ["Hates rain"])


def test_hosts_that_share_a_store_elsewhere_lose_nothing(host: Any, tmp_path: Path):
    one, other = (host(n, store=SQLiteStore(tmp_path / "shared.db")) for n in (1, 2))
    tea = one.remember("Likes tea", persistent=True).id
    other.remember("Hates rain", persistent=True)
    one.forget(tea)
    settle(one, other)
    assert contents(one) == contents(other) == ["Hates rain"]
    assert one.get_persistent_facts() == other.get_persistent_facts()


# -- what people wrote -----------------------------------------------------------------------


def test_edits_by_hand_on_both_hosts_are_both_heard(host: Any):
    one = host(1)
    one.remember("Likes tea", "taste", persistent=True)
    one.remember("Hates rain", "taste", persistent=True)
    other = host(2)
    edit(one, "- Likes tea\n", "- Likes cocoa\n- Likes 東京\n")
    edit(other, "- Hates rain\n", "")
    settle(one, other)
    for memory in (one, other):
        assert memory.get_persistent_facts() == {"taste": ["Likes cocoa", "Likes 東京"]}
        assert {m.content for _, m in memory.forgotten()} == {"Likes tea", "Hates rain"}


def test_a_person_s_own_lines_come_along(host: Any):
    one = host(1)
    one.remember("Likes tea", persistent=True)
    other = host(2)
    edit(one, "# Agent Memory\n", "# Agent Memory\n\nWritten at home.\n")
    edit(other, "- Likes tea\n", "- Likes tea\n\nWritten on the train: ```x\n### Later\n")
    settle(one, other)
    for memory in (one, other):
        text = (memory.directory / "MEMORY.md").read_text("utf-8")
        for line in ("Written at home.", "Written on the train: ```x", "### Later"):
            assert text.count(line) == 1
        assert memory.get_persistent_facts() == {"general": ["Likes tea"]}


def test_lines_that_would_hide_facts_are_put_beside_them(
    host: Any, caplog: pytest.LogCaptureFixture
):
    one = host(1)
    one.remember("Likes tea", persistent=True)
    other = host(2)
    edit(one, "- Likes tea\n", "- Likes tea\n\n```\n")
    edit(other, "# Agent Memory\n", "# Agent Memory\n\n```python\n")
    with caplog.at_level(logging.WARNING, "retain"):
        settle(one, other)
    assert "would hide facts" in caplog.text
    for memory in (one, other):
        assert memory.get_persistent_facts() == {"general": ["Likes tea"]}
    assert list(other.directory.glob("MEMORY.md.conflict-*"))


def test_a_person_s_lines_in_a_log_come_along(host: Any):
    one, other = host(1), host(2)
    one.remember("Likes tea")
    [log] = (one.directory / "logs").iterdir()
    with log.open("a", encoding="utf-8") as file:
        file.write('{"timestamp": "2026-01-02T03:04:05Z", "content": "by hand 東京"}\n')
    one.flush()
    other.remember("Hates rain")
    settle(one, other)
    for memory in (one, other):
        found = [entry["content"] for entry in memory.get_recent_entries()]
        assert sorted(found) == ["Hates rain", "Likes tea", "by hand 東京"]


def test_what_was_deleted_by_hand_and_then_forgotten_for_good_can_not_be_restored(
    host: Any, shelf: Shelf
):
    one = host(1)
    id = one.remember("Likes zebras", persistent=True).id
    other = host(2)
    edit(one, "- Likes zebras\n", "")
    one.flush()
    other.forget(id)
    settle(one, other)
    assert one.forgotten() == other.forgotten() == []
    assert not [name for name, data in shelf.files().items() if b"zebra" in data]


def test_other_files_are_merged_as_files(host: Any):
    one = host(1)
    long = "x" * 251
    for name in ("here", "there", "both", "gone", "kept", long):
        (one.directory / f"{name}.txt").write_text("first")
    one.flush()
    other = host(2)
    for memory, name in ((one, "here"), (other, "there"), (one, "both"), (other, "both")):
        (memory.directory / f"{long}.txt").write_text(f"by {memory.directory.name}")
        (memory.directory / f"{name}.txt").write_text(f"by {memory.directory.name}")
    (one.directory / "gone.txt").unlink()
    settle(one, other)
    for memory in (one, other, host(3)):
        paths = [*memory.directory.glob("*.txt"), *memory.directory.glob("*.conflict-*")]
        found = {path.name: path.read_text() for path in paths}
        copies = [found.pop(name) for name in list(found) if ".conflict-" in name]
        assert found.pop("both.txt") in ("by host 1", "by host 2") and len(copies) == 2
        assert found.pop(f"{long}.txt") in ("by host 1", "by host 2")
        assert found == {
            "here.txt": "by host 1",
            "there.txt": "by host 2",
            "kept.txt": "first",
        }


# -- when the back end is away ---------------------------------------------------------------


def test_a_back_end_that_is_away_at_first_is_told_and_nothing_is_made(
    tmp_path: Path, shelf: Shelf, host: Any
):
    shelf.down = True
    with pytest.raises(ConnectionError, match="away"):
        host(1)
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_fails_says_what_is_safe_and_the_next_one_makes_up_for_it(
    host: Any, shelf: Shelf, caplog: pytest.LogCaptureFixture
):
    one, other = host(1), host(2)
    one.remember("one")
    shelf.down = True
    with pytest.raises(StoreFailed, match=r"away; .* is safe in .*host 1"):
        one.remember("two")
    assert [found.memory.content for found in one.recall("two")] == ["two"]  # reading goes on
    shelf.down = False
    other.remember("three")
    one.remember("four")
    assert contents(one) == ["four", "one", "three", "two"]
    other.flush()
    assert contents(other) == contents(one)


def test_an_edit_that_can_not_be_saved_does_not_keep_anybody_from_reading(
    host: Any, shelf: Shelf, caplog: pytest.LogCaptureFixture
):
    one = host(1)
    one.remember("Likes tea", persistent=True)
    edit(one, "- Likes tea\n", "- Likes cocoa\n")
    shelf.down = True
    with caplog.at_level(logging.WARNING, "retain"):
        assert one.get_persistent_facts() == {"general": ["Likes cocoa"]}
        assert one.recall("cocoa")
    assert caplog.text.count("is safe in") == 1
    shelf.down = False
    one.close()
    assert host(2).get_persistent_facts() == {"general": ["Likes cocoa"]}


def test_closing_saves_what_could_not_be_saved_or_says_so(host: Any, shelf: Shelf):
    one = host(1)
    shelf.down = True
    with pytest.raises(StoreFailed):
        one.remember("one")
    with pytest.raises(StoreFailed, match="not saved"):
        one.close()
    one.close()
    shelf.down = False
    with host(1) as again:
        assert contents(again) == ["one"]
        again.flush()
    assert contents(host(2)) == ["one"]


def test_what_could_not_be_saved_outlives_the_process(host: Any, shelf: Shelf):
    one, other = host(1), host(2)
    kept = one.remember("Likes tea", persistent=True).id
    gone = one.remember("Hates zebras", persistent=True).id
    shelf.down = True
    with pytest.raises(StoreFailed):
        one.remember("Saw a giraffe")
    with pytest.raises(StoreFailed):
        one.forget(gone)
    shelf.down = False  # and the process is killed
    other.remember("Likes rain")
    again = host(1)
    assert contents(again) == ["Likes rain", "Likes tea", "Saw a giraffe"]
    assert contents(host(3)) == ["Hates zebras", "Likes rain", "Likes tea"]
    assert again.get(kept) is not None  # whatever is called next saves
    assert contents(host(4)) == contents(again)


def test_an_edit_between_two_processes_is_heard_though_others_saved_meanwhile(host: Any):
    with host(1) as one:
        one.remember("Likes tea", persistent=True)
    edit(one, "- Likes tea\n", "- Likes cocoa\n")
    host(2).remember("Hates rain", persistent=True)
    with host(1) as again:
        assert again.get_persistent_facts() == {"general": ["Likes cocoa", "Hates rain"]}


def test_a_blob_that_vanished_is_saved_again(host: Any, shelf: Shelf):
    one = host(1)
    one.remember("one")
    shelf.data = None
    one.remember("two")
    assert contents(host(2)) == ["one", "two"]
    one.close()
    shelf.data = None
    with host(1) as again:
        assert len(again) == 2
    assert contents(host(3)) == ["one", "two"]


def test_a_store_that_was_lost_does_not_count_as_forgotten(host: Any, tmp_path: Path):
    with host(1) as one:
        one.remember("Likes tea", persistent=True)
    host(2).remember("Hates rain")
    for path in (tmp_path / "host 1").glob("memory.db*"):
        path.unlink() if path.is_file() else None
    with host(1) as again:
        assert contents(again) == ["Hates rain", "Likes tea"]


def test_a_store_that_is_broken_gives_way_and_one_of_a_newer_retain_does_not(
    host: Any, tmp_path: Path
):
    with host(1) as one:
        one.remember("Likes tea")
    database = tmp_path / "host 1" / "memory.db"
    good = database.read_bytes()
    database.write_bytes(b"no database at all" * 99)
    with host(1) as again:
        assert contents(again) == ["Likes tea"]
    database.write_bytes(good)
    with closing(sqlite3.connect(database)) as newer:
        newer.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreTooNew, match="upgrade"):
        host(1)
    with closing(sqlite3.connect(database)) as newer:
        assert newer.execute("PRAGMA user_version").fetchone() == (99,)


def test_a_damaged_note_of_what_was_agreed_costs_no_memory_that_was_saved(
    host: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with host(1) as one:
        one.remember("Likes tea", persistent=True)
    note = tmp_path / "host 1" / ".backend.last"
    note.write_bytes(note.read_bytes()[:-9])
    host(2).remember("Hates rain")
    with host(1) as again:
        assert contents(again) == ["Hates rain", "Likes tea"]
    assert "damaged" in caplog.text


# -- what can't be merged --------------------------------------------------------------------


def test_an_archive_that_became_corrupt_is_set_aside_and_not_overwritten(
    host: Any, shelf: Shelf, caplog: pytest.LogCaptureFixture
):
    one = host(1)
    one.remember("one")
    for broken in (b"{", pack({**shelf.files(), "memory.db": b"SQLite format 3\0" + b"x" * 9999})):
        shelf.data = broken
        caplog.clear()
        one.remember("two")
        assert shelf.data == broken
        assert "flush(overwrite=True)" in caplog.text
        one.flush(overwrite=True)
        assert "two" in contents(host(2))
    copies = [path.read_bytes() for path in one.directory.glob("archive.set-aside-*")]
    assert b"{" in copies


def test_a_newer_or_unsafe_archive_is_not_merged_and_what_is_here_stays(host: Any, shelf: Shelf):
    one = host(1)
    one.remember("one")
    for theirs, error in (
        (b'{"version": 2, "files": {}}', StoreTooNew),
        (
            b'{"version": 1, "files": {"../x": {"encoding": "utf-8", "content": ""}}}',
            InvalidValue,
        ),
    ):
        good, shelf.data = shelf.data, theirs
        with pytest.raises(error, match="is safe in"):
            one.remember("two")
        assert shelf.data == theirs
        shelf.data = good
    one.flush()
    assert contents(host(2)) == ["one", "two", "two"]


def test_a_back_end_where_others_are_always_quicker_is_told_in_the_end(
    host: Any, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("retain.memories.carried._ATTEMPTS", 3)
    one = host(1)
    one.remember("one")
    shelf.replace_bytes = lambda old, new: False  # type: ignore[method-assign]
    with pytest.raises(Conflict, match="is safe in"):
        one.remember("two")
    assert contents(one) == ["one", "two"]
    del shelf.replace_bytes  # type: ignore[method-assign]
    one.flush()


def test_what_is_no_back_end_is_refused(tmp_path: Path):
    for nothing in (object(), Shelf):
        with pytest.raises(TypeError, match="load_bytes"):
            KnowledgeMemory(tmp_path / "x", backend=nothing)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


# -- whose directory it is -------------------------------------------------------------------


class Keyed(Shelf):
    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key


def test_a_directory_that_is_used_for_one_key_after_the_other_mixes_nothing(tmp_path: Path):
    ann, bob = Keyed("ann"), Keyed("bob")
    with KnowledgeMemory(tmp_path / "warm", backend=ann) as memory:
        memory.remember("Ann likes tea", persistent=True)
        (tmp_path / "warm" / "notes.txt").write_text("Ann's")
        memory.flush()
    with KnowledgeMemory(tmp_path / "warm", backend=bob) as memory:
        assert (contents(memory), memory.get_recent_entries()) == ([], [])
        memory.remember("Bob likes rain")
    assert not [data for data in bob.files().values() if b"Ann" in data]
    with KnowledgeMemory(tmp_path / "warm", backend=ann) as memory:
        assert contents(memory) == ["Ann likes tea"]
        assert (tmp_path / "warm" / "notes.txt").read_text() == "Ann's"


def test_a_directory_with_something_unsaved_is_not_given_to_another_key(tmp_path: Path):
    ann, bob = Keyed("ann"), Keyed("bob")
    memory = KnowledgeMemory(tmp_path / "warm", backend=ann)
    ann.down = True
    with pytest.raises(StoreFailed):
        memory.remember("Ann likes tea", persistent=True)
    with pytest.raises(InvalidValue, match=r"'ann'.*not saved"):
        KnowledgeMemory(tmp_path / "warm", backend=bob)
    ann.down = False
    memory.flush()
    with KnowledgeMemory(tmp_path / "warm", backend=bob) as other:
        assert contents(other) == []
        with pytest.raises(InvalidValue, match="taken over"):
            memory.flush()
    assert contents_of(ann) == ["Ann likes tea"]
    memory.engine.store.close()


def contents_of(shelf: Shelf) -> list[str]:
    with tempfile.TemporaryDirectory() as folder, KnowledgeMemory(folder, backend=shelf) as memory:
        return contents(memory)


# -- any order of anything -------------------------------------------------------------------

HOST, WHICH = st.integers(0, 2), st.integers(0, 20)
STEP = st.one_of(
    st.tuples(st.just("remember"), HOST, st.booleans()),
    st.tuples(st.just("update"), HOST, WHICH),
    st.tuples(st.just("forget"), HOST, WHICH),
    st.tuples(st.just("flush"), HOST, st.just(0)),
    st.tuples(st.just("reopen"), HOST, st.just(0)),
    st.tuples(st.just("move"), HOST, st.just(0)),
    st.tuples(st.just("edit"), HOST, st.booleans()),
    st.tuples(st.just("network"), st.just(0), st.booleans()),
)


class History:
    """What was done and acknowledged, and what must therefore be so in the end."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.shelf = folder, Shelf()
        self.disks = 0
        self.texts: dict[str, list[str]] = {}  # by id, the last one last
        self.forgotten: set[str] = set()
        self.hosts = [self.new_host() for _ in range(3)]

    def new_host(self) -> KnowledgeMemory:
        self.disks += 1
        return self.open(self.folder / f"disk {self.disks}")

    def open(self, place: Path | None) -> KnowledgeMemory:
        return KnowledgeMemory(place, backend=self.shelf, embedder=None)

    def step(self, action: str, number: int, argument: Any) -> None:
        memory = self.hosts[number]
        try:
            getattr(self, action)(memory, number, argument)
        except StoreFailed as error:
            assert self.shelf.down and "is safe in" in str(error)

    def remember(self, memory: KnowledgeMemory, number: int, persistent: bool) -> None:
        draft = Memory(content=f"fact 東{len(self.texts)}", persistent=persistent)
        self.texts[draft.id] = [draft.content]
        memory.remember_many([draft])

    def known(self, memory: KnowledgeMemory, which: int) -> str | None:
        ids = sorted(m.id for m in memory.engine.store.list_all())
        return ids[which % len(ids)] if ids else None

    def update(self, memory: KnowledgeMemory, number: int, which: int) -> None:
        id = self.known(memory, which)
        if id is not None:
            text = f"{self.texts[id][0]} changed {len(self.texts[id])}"
            self.texts[id].append(text)
            memory.update(id, content=text)

    def forget(self, memory: KnowledgeMemory, number: int, which: int) -> None:
        id = self.known(memory, which)
        if id is not None:
            self.forgotten.add(id)
            memory.forget(id)

    def flush(self, memory: KnowledgeMemory, number: int, _: int) -> None:
        memory.flush()

    def reopen(self, memory: KnowledgeMemory, number: int, _: int) -> None:
        if not self.shelf.down:  # killed, so to speak: what is not saved is on the disk
            self.hosts[number] = self.open(memory.directory)
            memory.engine.store.close()

    def move(self, memory: KnowledgeMemory, number: int, _: int) -> None:
        if not self.shelf.down:
            memory.flush()
            memory.close()
            self.hosts[number] = self.new_host()

    def edit(self, memory: KnowledgeMemory, number: int, adds: bool) -> None:
        """By hand: a new fact, or a line deleted, which is heard with the next call."""
        assert memory.directory is not None
        file = memory.directory / "MEMORY.md"
        text = file.read_text("utf-8")
        if adds:
            new = f"fact by hand {len(self.texts)}"
            file.write_text(f"{text}\n## hand\n- {new}\n", "utf-8")
            memory.get_persistent_facts()
            [id] = [m.id for m in memory.engine.store.list_all() if m.content == new]
            self.texts[id] = [new]
        else:
            lines = [line for line in text.splitlines() if line.startswith("- ")]
            if lines:
                gone = [m for m in memory.engine.store.list_all() if f"- {m.content}" == lines[-1]]
                file.write_text(text.replace(f"{lines[-1]}\n", "", 1), "utf-8")
                self.forgotten.update(m.id for m in gone)
                memory.get_persistent_facts()

    def network(self, memory: KnowledgeMemory, number: int, down: bool) -> None:
        self.shelf.down = down

    def check(self) -> None:
        self.shelf.down = False
        settle(*self.hosts)
        self.hosts.append(self.new_host())
        states = [
            {m.id: m.content for m in memory.engine.store.list_all()} for memory in self.hosts
        ]
        assert all(state == states[0] for state in states)
        facts = [
            {category: sorted(lines) for category, lines in memory.get_persistent_facts().items()}
            for memory in self.hosts
        ]
        assert all(found == facts[0] for found in facts)
        for id, texts in self.texts.items():
            if id not in self.forgotten:
                assert states[0].get(id) == texts[-1]
            elif len(texts) == 1:
                assert id not in states[0]
        self.close()

    def close(self) -> None:
        self.shelf.down = False
        for memory in self.hosts:
            memory.close()


def run(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder))
        try:
            for step in steps:
                history.step(*step)
            history.check()
        finally:
            history.close()


@settings(max_examples=6)
@given(st.lists(STEP, min_size=4, max_size=12))
def test_whatever_hosts_do_in_whatever_order_none_loses_or_revives_anything(steps: list[Any]):
    run(steps)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(STEP, min_size=4, max_size=25))
def test_however_much_hosts_do_in_whatever_order_none_loses_or_revives_anything(steps: list[Any]):
    run(steps)


# -- at once, for real -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        "valkey",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("supabase", "file", "s3")),
    ],
)
def test_threads_that_save_at_once_lose_nothing(kind: str, tmp_path: Path):
    make = maker(kind, tmp_path)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            place = tmp_path / f"host {number}"
            with KnowledgeMemory(place, backend=make("user"), embedder=None) as memory:
                gone = memory.remember(f"passing {number}").id
                for n in range(3):
                    memory.remember(f"fact {number}-{n}", persistent=n == 1)
                memory.forget(gone)
        except BaseException as error:  # noqa: BLE001 - shown by the assert below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with KnowledgeMemory(tmp_path / "next", backend=make("user"), embedder=None) as memory:
        assert contents(memory) == [f"fact {a}-{b}" for a in range(3) for b in range(3)]


PROGRAM = """
import sys
from retain import FsspecKnowledgeBackend, KnowledgeMemory, RedisKnowledgeBackend
kind, where, place, number = sys.argv[1:]
backend = (
    RedisKnowledgeBackend("user", where) if kind == "redis" else
    FsspecKnowledgeBackend(where, "user")
)
with KnowledgeMemory(place, backend=backend, embedder=None) as memory:
    for n in range(5):
        memory.remember(f"fact {number}-{n}", persistent=n % 2 == 0)
"""


@pytest.mark.parametrize("kind", ["redis", pytest.param("file", marks=pytest.mark.slow)])
def test_processes_that_save_at_once_lose_nothing(kind: str, tmp_path: Path):
    where = servers.new_redis() if kind == "redis" else f"file://{tmp_path}/kept"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), kind, where, tmp_path / n, n],
            stderr=subprocess.PIPE,
        )
        for n in "ab"
    ]
    for run in runs:
        assert run.communicate()[1] == b""
        assert run.returncode == 0
    backend: Any = (
        RedisKnowledgeBackend("user", where)
        if kind == "redis"
        else FsspecKnowledgeBackend(where, "user")
    )
    with KnowledgeMemory(tmp_path / "next", backend=backend, embedder=None) as memory:
        assert contents(memory) == sorted(f"fact {a}-{n}" for a in "ab" for n in range(5))


def test_two_processes_on_one_disk_keep_one_note_of_what_was_agreed(host: Any, shelf: Shelf):
    one, same = host(1), host(1)
    gone = one.remember("Likes zebras", persistent=True).id
    same.forget(gone)
    same.remember("Likes tea")
    one.remember("Hates rain")
    assert shelf.refusals == 0
    assert contents(host(2)) == ["Hates rain", "Likes tea"]
    kept = shelf.data
    assert same.recall("rain") and shelf.data is kept  # which the other one has saved


def test_history_older_than_the_logs_is_merged_without_a_line(host: Any):
    one, other = host(1), host(2)
    old = clock.now() - 90 * clock.DAY
    one.remember("Born in Rio", created_at=old)
    other.remember("Hates rain")
    settle(one, other)
    assert contents(other) == ["Born in Rio", "Hates rain"]
    assert [entry["content"] for entry in other.get_recent_entries()] == ["Hates rain"]
