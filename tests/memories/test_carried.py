"""A memory directory that is carried between hosts by a back end of two methods."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retain import (
    FileStore,
    InvalidType,
    InvalidValue,
    JSONFileStore,
    KnowledgeBackend,
    KnowledgeEntry,
    KnowledgeMemory,
    Scope,
    SQLiteKnowledgeStore,
    SQLiteStore,
    StoreFailed,
    StoreTooNew,
    clock,
)
from retain.backends.archive import pack, unpack


class Blob:
    """A back end as a user writes it: a blob, and how often it was saved."""

    def __init__(self, data: bytes | None = None) -> None:
        self.data = data
        self.saves = 0

    def load_bytes(self) -> bytes | None:
        return self.data

    def save_bytes(self, data: bytes) -> None:
        self.data = data
        self.saves += 1

    def files(self) -> dict[str, bytes]:
        assert self.data is not None
        return unpack(self.data)


class Hosts:
    """Makes a memory on another host each time, with an empty disk."""

    def __init__(self, folder: Path, blob: Blob) -> None:
        self.folder, self.blob = folder, blob
        self.count = 0

    def __call__(self, **options: Any) -> KnowledgeMemory:
        self.count += 1
        return KnowledgeMemory(self.folder / f"host {self.count}", backend=self.blob, **options)


@pytest.fixture
def blob() -> Blob:
    return Blob()


@pytest.fixture
def host(tmp_path: Path, blob: Blob) -> Hosts:
    return Hosts(tmp_path, blob)


def contents(memory: KnowledgeMemory) -> list[str]:
    return sorted(found.content for found in memory.engine.store.list_all())


def test_two_methods_make_a_back_end(blob: Blob):
    assert isinstance(blob, KnowledgeBackend)
    assert not isinstance(object(), KnowledgeBackend)


def test_the_next_host_goes_on_where_the_last_one_was(host: Hosts):
    with host() as memory:
        fact = memory.remember(
            "Likes 東京", "taste", persistent=True, importance=0.9, tags=["city"]
        )
        note = memory.remember("Saw a zebra")
        own = memory.directory
        assert own is not None
        (own / "MEMORY.md").write_text((own / "MEMORY.md").read_text() + "\nMy own words.\n")
        memory.flush()
    with host() as memory:
        assert memory.get_persistent_facts() == {"taste": ["Likes 東京"]}
        assert [e["content"] for e in memory.get_recent_entries()] == ["Saw a zebra", "Likes 東京"]
        found = memory.get(fact.id)
        assert found is not None and (found.importance_score, found.tags) == (0.9, ["city"])
        assert memory.recall("zebra")[0].memory.id == note.id
        assert memory.directory is not None
        assert "My own words." in (memory.directory / "MEMORY.md").read_text()


# -- what is packed --------------------------------------------------------------------------


def test_the_archive_holds_memory_md_the_logs_and_one_copy_of_the_store(host: Hosts, blob: Blob):
    with host() as memory:
        memory.remember("Likes tea", "taste", persistent=True)
        place = memory.directory
        assert place is not None
        (place / ".MEMORY.md.0123.tmp").write_text("half")
        (place / "left.tmp").write_text("half")
        (place / "notes.txt").write_text("mine")
        (place / "MEMORY.md.set-aside-0123456789ab").write_text("broken")
        memory.flush()
        assert (place / "memory.db-wal").exists()
        [log] = (place / "logs").iterdir()
    assert blob.files().keys() == {"MEMORY.md", f"logs/{log.name}", "memory.db", "notes.txt"}
    assert blob.data is not None
    archive = json.loads(blob.data)
    assert archive["version"] == 1
    assert archive["files"]["MEMORY.md"] == {
        "encoding": "utf-8",
        "content": "# Agent Memory\n\n## taste\n- Likes tea\n",
    }
    assert archive["files"]["memory.db"]["encoding"] == "base64"


def test_the_copy_of_the_store_is_whole_in_itself(host: Hosts, blob: Blob, tmp_path: Path):
    memory = host()
    for n in range(20):
        memory.remember(f"note {n}")
    (tmp_path / "copy.db").write_bytes(blob.files()["memory.db"])
    with SQLiteStore(tmp_path / "copy.db") as copy:
        assert copy.count() == 20 and copy.check() == []
    memory.close()


def test_every_scope_of_the_directory_is_carried(host: Hosts):
    with host(scope=Scope(user="J. R.")) as memory:
        memory.remember("Likes tea", persistent=True)
    with host() as memory:
        memory.remember("Office opens at nine", persistent=True)
    with host(scope=Scope(user="J. R.")) as memory:
        assert memory.get_persistent_facts() == {"general": ["Likes tea"]}


@pytest.mark.parametrize(
    "make",
    [
        lambda place: SQLiteStore(place / "own.db"),
        lambda place: SQLiteKnowledgeStore(place / "sub" / "entries.db"),
        lambda place: FileStore(place / "store"),
        lambda place: JSONFileStore(place / "store.json"),
    ],
    ids=["sqlite", "entries", "files", "json"],
)
def test_another_store_in_the_directory_is_carried_though_it_was_opened_before(
    make: Callable[[Path], Any], blob: Blob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        store = make(tmp_path / f"host {number}")  # by its whole path, the directory from here
        with KnowledgeMemory(f"host {number}", backend=blob, store=store) as memory:
            assert len(memory.recall("zebra")) == number
            memory.remember(f"zebra {number}")


def test_a_process_that_has_the_directory_open_goes_on_with_what_another_one_restored(
    tmp_path: Path, blob: Blob
):
    one = KnowledgeMemory(tmp_path / "place", backend=blob)
    one.remember("zebra one")
    assert len(one.recall("zebra")) == 1
    with KnowledgeMemory(tmp_path / "elsewhere", backend=blob) as memory:
        memory.remember("zebra two")
        memory.forget(memory.recall("one")[0].memory.id)
    other = KnowledgeMemory(tmp_path / "place", backend=blob)
    assert [r.memory.content for r in one.recall("zebra")] == ["zebra two"]
    one.remember("zebra three")
    other.remember("zebra four")
    one.close()
    other.close()
    with KnowledgeMemory(tmp_path / "next", backend=blob) as memory:
        assert contents(memory) == ["zebra four", "zebra three", "zebra two"]


def test_a_broken_store_in_the_directory_gives_way_to_the_one_that_was_carried(
    tmp_path: Path, blob: Blob, host: Hosts
):
    with host() as memory:
        memory.remember("Likes tea")
    (tmp_path / "place").mkdir()
    for name in ("memory.db", "memory.db-wal"):
        (tmp_path / "place" / name).write_bytes(b"no database at all" * 99)
    with KnowledgeMemory(tmp_path / "place", backend=blob) as memory:
        assert contents(memory) == ["Likes tea"]


def test_a_store_elsewhere_is_not_carried(blob: Blob, tmp_path: Path):
    store = SQLiteStore(tmp_path / "elsewhere.db")
    with KnowledgeMemory(tmp_path / "one", backend=blob, store=store) as memory:
        memory.remember("Likes tea", persistent=True)
    assert [name for name in blob.files() if not name.startswith("logs/")] == ["MEMORY.md"]


# -- when it is saved ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda m, id: m.remember("new"), ["fact", "new", "note"]),
        (lambda m, id: m.remember_many(["new", "newer"]), ["fact", "new", "newer", "note"]),
        (lambda m, id: m.add_fact("new"), ["fact", "new", "note"]),
        (lambda m, id: m.update(id, content="other"), ["fact", "other"]),
        (lambda m, id: m.forget(id), ["fact"]),
        (lambda m, id: m.clear(), []),
        (lambda m, id: m.clear_logs(), ["fact"]),
        (lambda m, id: (m.update(id, ttl_days=0), m.prune()), ["fact"]),
        (
            lambda m, id: (m.store.save(KnowledgeEntry("e1", "new")), m.flush()),
            ["fact", "new", "note"],
        ),
        (lambda m, id: (m.store.delete(id), m.get_recent_entries()), ["fact"]),
    ],
    ids="remember many fact update forget clear clear_logs prune flush store".split(),
)
def test_every_change_is_saved_before_the_call_returns(
    change: Callable[[KnowledgeMemory, str], Any], left: list[str], host: Hosts
):
    memory = host()
    memory.remember("fact", persistent=True)
    id = memory.remember("note").id
    change(memory, id)
    # the process is killed here: nothing is closed
    with host() as again:
        assert contents(again) == left
        assert again.build_context().count("- ") == len(left)
    memory.close()


def test_pruning_by_the_context_and_eviction_are_saved(
    host: Hosts, monkeypatch: pytest.MonkeyPatch
):
    memory = host(max_log_days=1, max_entries=2)
    for name in ("one", "two", "three"):
        memory.remember(name)
    with host() as again:
        assert contents(again) == ["three", "two"]
    later = clock.now() + 3 * clock.DAY
    monkeypatch.setattr(clock, "now", lambda: later)
    assert memory.build_context() == ""
    with host() as again:
        assert contents(again) == []
    memory.close()


def test_an_edit_by_hand_is_saved_once_it_is_taken_over(host: Hosts):
    memory = host()
    id = memory.remember("Likes tea", "taste", persistent=True).id
    assert memory.directory is not None
    file = memory.directory / "MEMORY.md"
    file.write_text("# Agent Memory\n\n## taste\n- Likes cocoa\n- Hates rain\n")
    assert memory.recall("rain")
    with host() as again:
        assert again.get_persistent_facts() == {"taste": ["Likes cocoa", "Hates rain"]}
        found = again.get(id)
        assert found is not None and found.content == "Likes cocoa"
    file.write_text("# Agent Memory\n\n## taste\n- Likes cocoa\n")
    assert memory.get_persistent_facts() == {"taste": ["Likes cocoa"]}
    with host() as again:
        assert again.get_persistent_facts() == {"taste": ["Likes cocoa"]}
        kept = {found.content: found.id for _, found in again.forgotten()}
        assert kept.keys() == {"Hates rain", "Likes tea"}  # deleted, and changed before
        assert again.restore(kept["Hates rain"]).content == "Hates rain"
    memory.close()


def test_reading_saves_nothing(host: Hosts, blob: Blob):
    with host() as memory:
        memory.recall("tea")
        memory.build_context()
        assert blob.saves == 0
        memory.remember("Likes tea")
        assert blob.saves == 1
    with host() as memory:
        memory.recall("tea")
        memory.build_context()
        memory.get_persistent_facts()
        memory.get_recent_entries()
        assert memory.memory_count == 1
    assert blob.saves == 1


def test_a_reader_does_not_undo_what_another_host_saved_meanwhile(host: Hosts):
    with host() as memory:
        memory.remember("one")
    reader, writer = host(), host()
    writer.remember("two")
    reader.recall("one")
    reader.close()
    writer.close()
    with host() as memory:
        assert contents(memory) == ["one", "two"]


def test_a_directory_that_was_there_before_its_back_end_is_saved(tmp_path: Path, blob: Blob):
    with KnowledgeMemory(tmp_path / "one") as memory:
        memory.remember("Likes tea", persistent=True)
    with KnowledgeMemory(tmp_path / "one", backend=blob) as memory:
        memory.flush()
    with KnowledgeMemory(tmp_path / "two", backend=blob) as memory:
        assert memory.get_persistent_facts() == {"general": ["Likes tea"]}


def test_a_back_end_that_fails_is_heard_of_and_the_next_save_has_everything(
    host: Hosts, blob: Blob
):
    def refuse(data: bytes) -> None:
        raise ConnectionError("the server is away")

    memory = host()
    memory.remember("one")
    blob.save_bytes, save = refuse, blob.save_bytes  # type: ignore[method-assign]
    with pytest.raises(StoreFailed, match=r"server is away; .* is safe in"):
        memory.remember("two")
    blob.save_bytes = save  # type: ignore[method-assign]
    assert contents(memory) == ["one", "two"]
    memory.flush()
    with host() as again:
        assert contents(again) == ["one", "two"]
    memory.close()


def test_the_last_of_many_writes_at_once_is_in_the_archive_that_stays(host: Hosts):
    memory = host()
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for n in range(4):
                memory.remember(f"{number}-{n}")
        except BaseException as error:  # noqa: BLE001 - shown by the assert below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with host() as again:
        assert len(contents(again)) == 16
    memory.close()


# -- what is restored ------------------------------------------------------------------------


def test_what_was_forgotten_elsewhere_does_not_come_back_from_a_host_that_was_used_before(
    tmp_path: Path, blob: Blob
):
    with KnowledgeMemory(tmp_path / "warm", backend=blob) as memory:
        tea = memory.remember("Likes tea", persistent=True).id
        note = memory.remember("Saw a zebra").id
        (tmp_path / "warm" / "MEMORY.md").write_text("# Agent Memory\n\n## general\n")
        assert [found.id for _, found in memory.forgotten()] == [tea]
        memory.flush()
    with KnowledgeMemory(tmp_path / "other", backend=blob) as memory:
        memory.forget(tea)
        memory.forget(note)
        memory.remember("Likes cocoa", persistent=True)
    with KnowledgeMemory(tmp_path / "warm", backend=blob) as memory:
        assert memory.get_persistent_facts() == {"general": ["Likes cocoa"]}
        assert [e["content"] for e in memory.get_recent_entries()] == ["Likes cocoa"]
        assert (memory.forgotten(), memory.memory_count) == ([], 1)
        memory.remember("Hates rain")
    assert not [name for name, data in blob.files().items() if b"zebra" in data or b"tea" in data]


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff\xfe", b"[]", b'{"version": 1}', b'{"version": 1, "files": []}', b"x" * 999],
)
def test_a_corrupt_archive_is_set_aside_reported_and_not_overwritten_until_the_user_agrees(
    data: bytes, host: Hosts, blob: Blob, caplog: pytest.LogCaptureFixture
):
    blob.data = data
    with caplog.at_level(logging.WARNING, "retain"):
        memory = host()
        assert memory.directory is not None
        [copy] = memory.directory.glob("archive.set-aside-*")
        assert copy.read_bytes() == data
        assert any("flush(overwrite=True)" in record.message for record in caplog.records)
        caplog.clear()
        memory.remember("Likes tea", persistent=True)
        assert (blob.data, blob.saves) == (data, 0)
        assert [copy.name in record.message for record in caplog.records] == [True]
        caplog.clear()
        memory.recall("tea")
        memory.flush()
        assert (blob.saves, len(caplog.records)) == (0, 1)  # of flush: a read has nothing to say
    memory.flush(overwrite=True)
    memory.remember("Hates rain")
    memory.close()
    assert blob.saves == 2
    with host() as again:
        assert contents(again) == ["Hates rain", "Likes tea"]
    assert not [name for name in blob.files() if "set-aside" in name]


def test_an_archive_of_a_newer_version_is_refused(host: Hosts, blob: Blob, tmp_path: Path):
    blob.data = b'{"version": 2, "files": {}}'
    with pytest.raises(StoreTooNew, match="upgrade"):
        host()
    assert blob.saves == 0


def test_what_is_no_bytes_is_refused(host: Hosts, blob: Blob):
    blob.data = "text"  # type: ignore[assignment]
    with pytest.raises(InvalidType, match="bytes"):
        host()


def archive(*paths: str) -> bytes:
    files = {path: {"encoding": "utf-8", "content": "hostile"} for path in ("fine.txt", *paths)}
    return json.dumps({"version": 1, "files": files}).encode()


@pytest.mark.parametrize(
    "path",
    [
        "/tmp/outside",
        "../outside",
        "logs/../../outside",
        "C:\\outside",
        "c:outside",
        "a\0b",
        "a//b",
        "",
    ],
)
def test_an_unsafe_path_refuses_the_whole_archive_before_anything_is_written(
    path: str, host: Hosts, blob: Blob, tmp_path: Path
):
    blob.data = archive(path)
    with pytest.raises(InvalidValue, match="path"):
        host()
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and b"hostile" in p.read_bytes()]
    assert blob.saves == 0


@pytest.mark.parametrize("name", ["link/memory.db", "link"])
def test_a_path_through_a_symbolic_link_is_refused_and_harms_nothing_beyond_it(
    name: str, tmp_path: Path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    kept = ["memory.db", "memory.db-wal", "memory.db-shm", "MEMORY.forgotten.jsonl"]
    for file in kept:
        (outside / file).write_text("precious")
    place = tmp_path / "place"
    with KnowledgeMemory(place) as memory:
        memory.remember("Likes tea", persistent=True)
    (place / "link").symlink_to(outside)

    def files() -> dict[Path, bytes]:
        found = [path for path in place.rglob("*") if path.is_file() and path.suffix != ".lock"]
        return {path: path.read_bytes() for path in found}

    before = files()
    with pytest.raises(InvalidValue, match="symbolic link"):
        KnowledgeMemory(place, backend=Blob(archive("memory.db", name)))
    assert sorted(path.name for path in outside.iterdir()) == sorted(kept)
    assert files() == before


def test_what_is_never_packed_is_not_restored_either(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    blob = Blob(pack({"MEMORY.md": b"# Agent Memory\n\n- Likes tea\n", "memory.db-wal": b"x" * 99}))
    with KnowledgeMemory(tmp_path / "one", backend=blob) as memory:
        assert memory.get_persistent_facts() == {"general": ["Likes tea"]}
    assert any("memory.db-wal" in record.message for record in caplog.records)


def test_without_a_back_end_nothing_is_packed(tmp_path: Path):
    with KnowledgeMemory(tmp_path / "one") as memory:
        memory.flush(overwrite=True)
        assert memory.backend is None
    names = {path.name for path in (tmp_path / "one").iterdir()}
    assert ".backend.lock" not in names and not [name for name in names if "archive" in name]
