"""SQLite files that are not what they should be: refused, or read as far as that goes; mended."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from faults.damages import TEXTS, damaged, every_damage
from faults.places import set_aside
from retain import Memory, SQLiteStore, StoreCorrupt, StoreFailed


def filled_database(path: Path, count: int = 300) -> dict[str, str]:
    with SQLiteStore(path) as store:
        memories = [Memory(content=f"Ann likes tea {n}, 東京 «naïve»" * 9) for n in range(count)]
        store.save_many(memories)
        return {memory.id: memory.content for memory in memories}


def rows_of(path: Path) -> set[Any]:
    """The rows that SQLite can still read, each asked for alone."""
    found: set[Any] = set()
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    db.text_factory = bytes
    for rowid in range(1, 301):
        with suppress(sqlite3.Error):
            found |= set(db.execute("SELECT * FROM memories WHERE rowid = ?", (rowid,)))
    db.close()
    return found


def ids_of(rows: set[Any]) -> set[str]:
    return {row[1].decode() for row in rows}


@every_damage
def test_a_broken_database_is_refused_or_read_and_repaired(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    texts = filled_database(path)
    whole = rows_of(path)
    data = damaged(path, damage)
    readable = ids_of(whole & rows_of(path))
    try:
        with SQLiteStore(path) as store:
            for memory in store.iterate():
                assert texts[memory.id]
            store.check()
    except StoreFailed as error:
        assert str(path) in str(error)
        assert path.read_bytes() == data, "an attempt to read has changed the file"
    try:
        with SQLiteStore(path) as store:
            problems = store.check(fix=True)
            assert all(problem.fixed for problem in problems)
    except StoreFailed:
        problems = SQLiteStore.repair(path)
        assert all(problem.fixed for problem in problems)
        assert any(copy.read_bytes() == data for copy in set_aside(tmp_path))
    with SQLiteStore(path) as store:
        assert store.check() == []
        found = {memory.id: memory.content for memory in store.list_all()}
        assert found.keys() >= readable
        store.save(Memory("new", "and on"))
    with SQLiteStore(path) as store:
        assert store.get("new") is not None


def test_a_database_with_two_bad_pages_is_repaired_from_what_lies_between(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    texts = filled_database(path)
    data = path.read_bytes()
    leaves = [
        at
        for at in range(4096, len(data), 4096)
        if data[at] == 13 and data[at : at + 4096].count(b"Ann likes tea") > 9
    ]
    for at in (leaves[2], leaves[-3]):
        data = data[:at] + b"\xff" * 4096 + data[at + 4096 :]
    path.write_bytes(data)
    readable = ids_of(rows_of(path))
    assert len(readable) > len(texts) / 2
    SQLiteStore.repair(path)
    with SQLiteStore(path) as store:
        assert {memory.id for memory in store.list_all()} >= readable
        assert store.check() == []


# SQLite takes most types in any column; what a reading program can make sense of, it does.
BAD_COLUMNS = {
    "content": [b"\xff\xfe"],
    "memory_type": ["mystic", b"x"],
    "importance": [7.0, "high"],
    "category": [" ", b"\xff"],
    "persistent": ["yes", 5],
    "ttl_days": [-1.0, "soon"],
    "tags": ["[", "5", "[5]", "[" * 100_000, '["\\ud800"]'],
    "metadata": ["{", "[]", "[" * 100_000, '{"a": "\\ud800"}'],
    "source": [b"\xff"],
    "created_at": ["yesterday", 1e30],
    "access_count": [-1, "many"],
    "revision": [10**9, "one"],
    "scope": [77, "x"],
    "id": ["", b"\xff"],
    "fact": ["nonsense"],
    "expires_at": [5.0],
}


@pytest.mark.parametrize(
    ("column", "value"), [(name, value) for name in BAD_COLUMNS for value in BAD_COLUMNS[name]]
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_row_with_a_bad_column_costs_no_other(column: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        store.save_many([Memory(f"m{n}", TEXTS[n], persistent=n > 5) for n in range(10)])
    with sqlite3.connect(path) as db:
        db.execute(f"UPDATE memories SET {column} = ? WHERE id = 'm4'", (value,))
    db.close()
    others = {f"m{n}": TEXTS[n] for n in range(10) if n != 4}
    with SQLiteStore(path) as store:
        try:
            found = {memory.id: memory.content for memory in store.list_all()}
            assert found.items() >= others.items()
        except StoreCorrupt as error:
            assert "check --fix" in str(error)
        assert store.check()
        problems = store.check(fix=True)
        assert problems
        assert all(problem.fixed for problem in problems)
        assert store.check() == []
        found = {memory.id: memory.content for memory in store.list_all()}
        assert found.items() >= others.items()
        store.save(Memory("m4", "again"))
    assert "m4" in found or set_aside(tmp_path)


def test_text_that_is_no_utf_8_is_set_aside_by_check(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        store.save_many([Memory(f"m{n}", TEXTS[n]) for n in range(10)])
    data = path.read_bytes()
    at = data.index(TEXTS[4].encode())
    path.write_bytes(data[:at] + b"\xff\xfe" + data[at + 2 :])
    with SQLiteStore(path) as store:
        with pytest.raises(StoreCorrupt, match="check --fix"):
            store.list_all()
        assert [problem.fixed for problem in store.check(fix=True)] == [True]
        assert {m.id for m in store.list_all()} == {f"m{n}" for n in range(10)} - {"m4"}
        assert store.check() == []
    [copy] = set_aside(tmp_path)
    assert b"\xff\xfen likes tea 4" in copy.read_bytes()


def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")
        db.execute("INSERT INTO bookmarks VALUES ('about:blank')")
    db.close()
    with pytest.raises(StoreCorrupt, match="another program"):
        SQLiteStore(path)
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT url FROM bookmarks").fetchall() == [("about:blank",)]
    db.close()


def test_an_unreadable_log_of_the_database_costs_nothing_that_is_in_the_database(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    texts = filled_database(path, 20)
    for content in (b"x" * 1_100, b"", bytes(8_192)):
        path.with_name("memory.db-wal").write_bytes(content)
        path.with_name("memory.db-shm").write_bytes(content)
        with SQLiteStore(path) as store:
            assert {m.id: m.content for m in store.list_all()} == texts
