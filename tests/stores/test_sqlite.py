import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from retain import (
    InvalidType,
    InvalidValue,
    Memory,
    Scope,
    SQLiteStore,
    StoreBusy,
    StoreCorrupt,
    StoreTooNew,
)
from retain.stores.base import DELETIONS
from retain.stores.sqlite_schema import MIGRATIONS
from retain.testing import StoreConformance


class TestSQLiteStore(StoreConformance):
    def open_store(self, place: Path) -> SQLiteStore:
        return SQLiteStore(place / "memory.db")


@pytest.mark.parametrize("seconds", [-1, "soon", True, float("nan"), float("inf")], ids=repr)
def test_a_time_to_wait_that_makes_no_sense_is_refused_and_makes_nothing(
    tmp_path: Path, seconds: object
) -> None:
    with pytest.raises((InvalidValue, InvalidType), match="busy_timeout"):
        SQLiteStore(tmp_path / "memory.db", busy_timeout=seconds)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("pragma", "value"),
    [("secure_delete", 1), ("synchronous", 2), ("journal_mode", "wal"), ("user_version", 1)],
)
def test_every_connection_deletes_securely_and_syncs_fully(
    tmp_path: Path, pragma: str, value: object
) -> None:
    with SQLiteStore(tmp_path / "memory.db") as store, store.driver._open() as connection:
        assert connection.execute(f"PRAGMA {pragma}").fetchone()[0] == value


def test_deleted_and_replaced_text_leaves_the_disk_before_the_call_returns(
    tmp_path: Path,
) -> None:
    with SQLiteStore(tmp_path / "memory.db") as store:
        for id in ("m1", "m2"):
            store.save(Memory(id, f"a zebra and {id} " * 300, tags=["zebra"]))
        store.save(Memory("m1", "nothing"))
        store.delete("m2")
        found = [path.name for path in tmp_path.iterdir() if b"zebra" in path.read_bytes()]
        assert found == []


@pytest.mark.parametrize("use", [SQLiteStore, SQLiteStore.repair])
def test_another_programs_file_is_refused_and_left_as_it_is(
    tmp_path: Path, use: Callable[[Path], object]
) -> None:
    path = tmp_path / "cookies.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE cookies (name)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="another program"):
        use(path)
    assert path.read_bytes() == before
    assert [left.name for left in tmp_path.iterdir()] == ["cookies.db"]


def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        store.save(Memory("m1", "x"))
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    with pytest.raises(StoreTooNew, match="upgrade retain"):
        SQLiteStore(path)
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT content FROM memories").fetchall() == [("x",)]
    db.close()


def test_a_lock_that_another_program_holds_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path, busy_timeout=0.05) as store:
        store.save(Memory("m1", "x"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="another process"):
            store.save(Memory("m2", "x"))
        assert store.count() == 1  # reading waits for no one
        other.execute("ROLLBACK")
        other.close()
        store.save(Memory("m2", "x"))
        assert store.count() == 2


def test_a_scope_remembers_a_bounded_number_of_deletions(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "memory.db") as store:
        many = [Memory(str(n), "x") for n in range(DELETIONS + 200)]
        store.save_many(many)
        seen = store.changes(0).revision
        for start in range(0, len(many), 400):
            store.delete_many([memory.id for memory in many[start : start + 400]])
        late = store.changes(seen)
        assert late.reset and list(late.saved) == []
        recent = store.changes(late.revision - 50)
        assert not recent.reset
        assert len(recent.deleted) == 50


def test_a_backup_is_whole_and_taken_from_the_open_store(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "memory.db") as store:
        store.save_many([Memory(str(n), f"text {n}") for n in range(50)])
        store.scoped(Scope(user="ann")).save(Memory("hers", "x"))
        store.backup(tmp_path / "copies" / "copy.db")
        store.save(Memory("later", "x"))
        with SQLiteStore(tmp_path / "copies" / "copy.db") as copy:
            assert copy.count() == 50
            assert copy.scoped(Scope(user="ann")).count() == 1
            assert copy.check() == []
    assert (tmp_path / "copies" / "copy.db").stat().st_mode & 0o077 == 0


def test_check_mends_what_was_derived_and_sets_aside_what_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        store.save(Memory("good", "x", persistent=True))
        store.save(Memory("bad", "a text to keep"))
    with sqlite3.connect(path) as db:
        db.execute("UPDATE memories SET fact = NULL WHERE id = 'good'")
        db.execute("UPDATE memories SET memory_type = 'dream' WHERE id = 'bad'")
    db.close()
    with SQLiteStore(path) as store:
        assert [m.id for m in store.list_all()] == ["good"]  # the rest is readable meanwhile
        found = store.check()
        assert sorted(problem.text.split(":")[0] for problem in found) == [
            "memory 'bad'",
            "memory 'good'",
        ]
        assert all(problem.fixed for problem in store.check(fix=True))
        assert store.check() == []
        equal = store.write([Memory("other", "x", persistent=True)], unique=True)
        assert [m.id for m in equal.saved] == ["good"]
    [aside] = tmp_path.glob("memory.db.set-aside-*")
    assert "a text to keep" in aside.read_text(encoding="utf-8")
