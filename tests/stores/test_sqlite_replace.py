"""A SQLite file that gets another content while it is open."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from retain import Memory, Scope, SQLiteStore
from retain.stores.sqlite_replace import is_sqlite, replace_content


def content_of(path: Path, *memories: Memory, scope: Scope | None = None) -> bytes:
    with SQLiteStore(path, scope=scope) as store:
        store.save_many(memories)
    return path.read_bytes()


def test_whoever_has_it_open_goes_on_with_the_new_content_and_begins_anew(tmp_path: Path):
    data = content_of(tmp_path / "other.db", Memory("m2", "cocoa"), Memory("m3", "tea"))
    with SQLiteStore(tmp_path / "memory.db") as store:
        store.save_many([Memory(f"m{n}", "old") for n in range(9)])
        store.scoped(Scope(user="ann")).save(Memory("m1", "old"))
        seen = store.changes(0).revision
        replace_content(tmp_path / "memory.db", data)
        changes = store.changes(seen)
        assert changes.reset and changes.revision > seen
        assert [memory.id for memory in changes.saved] == ["m2", "m3"]
        assert store.scoped(Scope(user="ann")).changes(seen).reset
        store.save(Memory("m4", "new"))
        assert store.check() == []
    with SQLiteStore(tmp_path / "memory.db") as store:
        assert sorted(m.id for m in store.list_all()) == ["m2", "m3", "m4"]
        assert store.scopes() == [Scope()]


def test_a_content_with_more_changes_behind_it_is_told_from_what_was_known_too(tmp_path: Path):
    data = content_of(tmp_path / "other.db", *(Memory(f"m{n}", "tea") for n in range(30)))
    with SQLiteStore(tmp_path / "memory.db") as store:
        store.save(Memory("m1", "old"))
        seen = store.changes(0).revision
        replace_content(tmp_path / "memory.db", data)
        assert store.changes(seen).reset


def test_any_other_sqlite_file_is_replaced_too(tmp_path: Path):
    for name in ("one", "two"):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as db:
            db.execute(f"CREATE TABLE {name} (x)")
    with closing(sqlite3.connect(tmp_path / "one.db")) as open_one:
        replace_content(tmp_path / "one.db", (tmp_path / "two.db").read_bytes())
        assert open_one.execute("SELECT name FROM sqlite_master").fetchall() == [("two",)]


@pytest.mark.parametrize("broken", ["source", "target"])
def test_what_is_no_sqlite_file_is_an_error_with_nothing_changed(broken: str, tmp_path: Path):
    data = content_of(tmp_path / "other.db", Memory("m1", "tea"))
    path = tmp_path / "memory.db"
    if broken == "source":
        content_of(path, Memory("m2", "cocoa"))
        data = data[:16] + b"garbage" * 999
    else:
        path.write_bytes(b"garbage" * 999)
    before = path.read_bytes()
    with pytest.raises(sqlite3.DatabaseError):
        replace_content(path, data)
    assert path.read_bytes() == before


def test_a_sqlite_file_is_told_by_its_first_bytes(tmp_path: Path):
    assert is_sqlite(content_of(tmp_path / "memory.db"))
    assert not is_sqlite(b"") and not is_sqlite(b"# Agent Memory")
