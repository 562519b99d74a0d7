"""Files that are not what they should be: refused or set aside, and what is readable kept."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from faults.places import (
    assert_in_step,
    bytes_of,
    leftovers,
    logged,
    open_place,
    set_aside,
)
from faults.workers import run
from retain import (
    JSONFileStore,
    Memory,
    RetainError,
    SQLiteStore,
    StoreCorrupt,
    StoreFailed,
)

Damage = Callable[[bytes, Random], bytes]


def truncated(share: float) -> Damage:
    return lambda data, random: data[: int(len(data) * share)]


def cut_somewhere(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data))]


def flipped(data: bytes, random: Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(5):
        damaged[random.randrange(len(data))] = random.randrange(256)
    return bytes(damaged)


def holed(data: bytes, random: Random) -> bytes:
    """As a crash of the machine leaves a file: a part of it was never written."""
    start = random.randrange(len(data))
    stop = min(len(data), start + 4096)
    return data[:start] + bytes(stop - start) + data[stop:]


DAMAGES: dict[str, Damage] = {
    **{f"cut at {share} %": truncated(share / 100) for share in range(10, 100, 10)},
    **{f"cut somewhere {number}": cut_somewhere for number in range(4)},
    **{f"flipped {number}": flipped for number in range(4)},
    **{f"holed {number}": holed for number in range(3)},
    "empty": lambda data, random: b"",
    "blank": lambda data, random: b" \n\n",
    "binary": lambda data, random: random.randbytes(5_000),
    "NULs": lambda data, random: bytes(len(data)),
    "{}": lambda data, random: b"{}",
    "null": lambda data, random: b"null\n",
    "[1,2]": lambda data, random: b"[1,2]",
    "a text": lambda data, random: b'"text"\n',
    "a number": lambda data, random: b"1" * 10_000 + b"\n",
    "nested deeply": lambda data, random: b"[" * 100_000 + b"]" * 100_000,
    "objects nested deeply": lambda data, random: b'{"a":' * 100_000,
    "UTF-16": lambda data, random: data.decode(errors="replace").encode("utf-16"),
    "a byte order mark": lambda data, random: b"\xef\xbb\xbf" + data,
    "a long line": lambda data, random: data + b"x" * 10_000_000 + b"\n",
    "a long line before": lambda data, random: b"x" * 10_000_000 + b"\n" + data,
    "twice": lambda data, random: data + data,
    "a surrogate": lambda data, random: data.replace(b"tea 2", b"\\ud800"),
}

every_damage = pytest.mark.parametrize("damage", DAMAGES)


def damaged(path: Path, damage: str) -> bytes:
    """Do the damage to the file; what it is then."""
    data = DAMAGES[damage](path.read_bytes(), Random(damage))
    path.write_bytes(data)
    return data


TEXTS = [f"Ann likes tea {number}, 東京 «naïve»" for number in range(12)]


# What retain writes itself whenever it is wanted: heads, void lines, headings.
MADE_ANEW = (b'{"retain"', b'{"left":0}', b"## ")


def kept_somewhere(folder: Path, data: bytes) -> bool:
    """Whether all that ``data`` said is still in some file: each line, or each row of an array."""
    there = b"\n".join(bytes_of(folder).values())
    lines = [line.rstrip(b", \r") for line in data.split(b"\n")]
    if all(is_in(there, line) for line in lines if not line.startswith(MADE_ANEW)):
        return True
    rows = read(data)
    return isinstance(rows, list) and all(is_in(there, json.dumps(row).encode()) for row in rows)


def is_in(there: bytes, line: bytes) -> bool:
    """Whether a line is there, or another one with its content, if it can be read."""
    row = read(line)
    row = row.get("save", row) if isinstance(row, dict) else row
    content = row.get("content") if isinstance(row, dict) else None
    if line in there or not isinstance(content, str):
        return line in there
    forms = (json.dumps(content, ensure_ascii=ascii) for ascii in (True, False))
    return any(form.encode(errors="replace") in there for form in forms)


def read(data: bytes) -> Any:
    try:
        return json.loads(data.decode(errors="surrogateescape"))
    except (ValueError, RecursionError):
        return None


# -- the stores that are text --------------------------------------------------------------

TEXT_FILES = {"json": "memories.json", "file": "memory/memories.jsonl"}


def filled(kind: str, folder: Path) -> tuple[Path, dict[str, bytes]]:
    """The file of a store that holds ``TEXTS``, and the line of each by its id."""
    with open_place(kind, folder) as place:
        ids = [place.remember(content, persistent=content[-1] == "1") for content in TEXTS]
    path = folder / TEXT_FILES[kind]
    lines = path.read_bytes().split(b"\n")
    return path, {id: next(each for each in lines if id.encode() in each) for id in ids}


@every_damage
@pytest.mark.parametrize("kind", TEXT_FILES)
def test_a_text_store_keeps_what_is_readable_and_sets_the_rest_aside(
    kind: str, damage: str, tmp_path: Path
) -> None:
    path, lines = filled(kind, tmp_path)
    data = damaged(path, damage)
    readable = {id for id, line in lines.items() if line.rstrip(b",") in data}
    with open_place(kind, tmp_path) as place:
        assert place.contents().keys() >= readable
        assert len(place.contents()) <= len(TEXTS)
        assert path.read_bytes() == data, "a read has changed the file"
        new = place.remember("and on")
    assert kept_somewhere(tmp_path, data)
    with open_place(kind, tmp_path) as place:
        assert place.contents().keys() >= {*readable, new}
    assert leftovers(tmp_path) == []


@every_damage
@pytest.mark.parametrize("kind", TEXT_FILES)
def test_check_mends_a_text_store(kind: str, damage: str, tmp_path: Path) -> None:
    path, _ = filled(kind, tmp_path)
    data = damaged(path, damage)
    with open_place(kind, tmp_path) as place:
        found = place.contents()
        store = place.face.store
        problems = store.check()
        assert path.read_bytes() == data
        assert all(not problem.fixed for problem in problems)
        assert all(problem.fixed for problem in store.check(fix=True))
        assert store.check() == []
        assert place.contents() == found
    assert bool(set_aside(tmp_path)) >= bool(problems)
    with open_place(kind, tmp_path) as place:
        assert place.face.store.check() == []
        assert place.contents() == found
    assert kept_somewhere(tmp_path, data)


ROWS: dict[str, Any] = {
    "no object": 1,
    "a list": [1, 2],
    "null": None,
    "empty": {},
    "no content": {"id": "x"},
    "content null": {"content": None},
    "content a number": {"content": 5},
    "unknown enum": {"content": "x", "memory_type": "mystic"},
    "importance too high": {"content": "x", "importance_score": 7},
    "surrogate": {"content": "\ud800"},
    "surrogate id": {"id": "\udfff", "content": "x"},
    "surrogate key": {"content": "x", "metadata": {"\ud800": 1}},
    "infinite": {"content": "x", "created_at": float("inf")},
    "NaN": {"content": "x", "metadata": {"a": float("nan")}},
    "a time that is text": {"content": "x", "created_at": "yesterday"},
    "a time out of range": {"content": "x", "created_at": 1e30},
    "tags a text": {"content": "x", "tags": "abc"},
    "metadata a list": {"content": "x", "metadata": [1]},
    "a scope that is none": {"content": "x", "scope": {"planet": "mars"}},
    "a scope of numbers": {"content": "x", "scope": {"user": 1}},
    "a negative count": {"content": "x", "access_count": -1},
    "a blank category": {"content": "x", "category": " "},
    "both lasting and passing": {"content": "x", "persistent": True, "ttl_days": 1},
    "a revision of text": {"content": "x", "revision": "7"},
}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_that_is_no_memory_is_set_aside_and_costs_no_other(row: str, tmp_path: Path) -> None:
    path, _ = filled("json", tmp_path)
    bad = ROWS[row]
    path.write_text(json.dumps([bad, *json.loads(path.read_text("utf-8"))]), "utf-8")
    with open_place("json", tmp_path) as place:
        assert sorted(place.contents().values()) == sorted(TEXTS)
        place.remember("and on")
    with open_place("json", tmp_path) as place:
        assert sorted(place.contents().values()) == sorted([*TEXTS, "and on"])
    rows = [
        json.loads(line) for copy in set_aside(tmp_path) for line in copy.read_bytes().splitlines()
    ]
    assert [repr(each) for each in rows] == [repr(bad)]


LINES: dict[str, Any] = {
    "no members": {},
    "only a scope": {"s": "[null,null,null]", "left": 0},
    "no revision": {"s": "[null,null,null]", "left": 0, "delete": "x"},
    "a revision of text": {"r": "7", "s": "[null,null,null]", "left": 0, "delete": "x"},
    "a revision that is null": {"r": None, "s": "[null,null,null]", "left": 0, "delete": "x"},
    "a revision beyond all": {"r": 10**30, "s": "[null,null,null]", "left": 0, "delete": "x"},
    "a negative revision": {"r": -5, "s": "[null,null,null]", "left": 0, "delete": "x"},
    "a scope that is none": {"r": 5, "s": "[1]", "left": 0, "delete": "x"},
    "a scope that is a number": {"r": 5, "s": 5, "left": 0, "delete": "x"},
    "an id that is an object": {"r": 5, "s": "[null,null,null]", "left": 0, "delete": {}},
    "an id that is a list": {"r": 5, "s": "[null,null,null]", "left": 0, "delete": ["x"]},
    "counts that are text": {"r": 5, "s": "[null,null,null]", "left": 0, "seen": "x"},
    "a count that is none": {"r": 5, "s": "[null,null,null]", "left": 0, "seen": {"x": 5}},
    "counts of text": {"r": 5, "s": "[null,null,null]", "left": 0, "seen": {"x": ["a", "b"]}},
    "saves a number": {"r": 5, "s": "[null,null,null]", "left": 0, "save": 5},
    "saves null": {"r": 5, "s": "[null,null,null]", "left": 0, "save": None},
    "saves a surrogate": {
        "r": 5,
        "s": "[null,null,null]",
        "left": 0,
        "save": {"content": "\ud800"},
    },
    "left is text": {"left": "x"},
    "left is null": {"left": None},
    "left is negative": {"left": -1, "r": 9, "s": "[null,null,null]", "delete": "x"},
    "another head": {"retain": "memories", "version": 1},
    "a head of text": {"retain": "memories", "version": "one"},
}


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("line", LINES)
def test_a_line_that_is_no_change_is_set_aside_and_costs_no_other(
    line: str, first: bool, tmp_path: Path
) -> None:
    path, _ = filled("file", tmp_path)
    bad = json.dumps(LINES[line]).encode() + b"\n"
    data = path.read_bytes()
    path.write_bytes(bad + data if first else data + bad)
    with open_place("file", tmp_path) as place:
        assert sorted(place.contents().values()) == sorted(TEXTS)
        assert place.face.recall("tea")
        place.remember("and on")
        place.forget(next(iter(place.contents())))
    with open_place("file", tmp_path) as place:
        assert len(place.contents()) == len(TEXTS)
        place.face.store.check(fix=True)
        assert place.face.store.check() == []
    assert kept_somewhere(tmp_path, bad)


def test_a_time_that_is_null_counts_as_not_given(tmp_path: Path) -> None:
    path = tmp_path / "memories.json"
    path.write_text('[{"id": "m1", "content": "x", "created_at": null, "last_accessed": null}]')
    with JSONFileStore(path) as store:
        [found] = store.list_all()
        assert (found.id, found.content) == ("m1", "x")
        assert found.created_at > 1.7e9
        store.save(Memory("m2", "y"))
    with JSONFileStore(path) as store:
        [again] = [memory for memory in store.list_all() if memory.id == "m1"]
        assert again.created_at == found.created_at


def test_of_an_id_that_is_there_twice_the_later_row_counts_and_the_other_is_set_aside(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memories.json"
    path.write_text('[{"id": "m1", "content": "early"}, {"id": "m1", "content": "late"}]')
    with JSONFileStore(path) as store:
        assert [memory.content for memory in store.list_all()] == ["late"]
    [copy] = set_aside(tmp_path)
    assert b'"early"' in copy.read_bytes()


def test_a_set_aside_copy_is_made_once(tmp_path: Path) -> None:
    path, _ = filled("file", tmp_path)
    path.write_bytes(path.read_bytes() + b"nonsense\n")
    for _ in range(3):
        with open_place("file", tmp_path) as place:
            place.remember("and on")
    [copy] = set_aside(tmp_path)
    assert copy.read_bytes() == b"nonsense\n"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_a_line_that_was_blanked_by_half_is_no_loss_and_is_blanked_whole(tmp_path: Path) -> None:
    """A kill can interrupt an overwriting of more than a page."""
    with open_place("file", tmp_path) as place:
        long = place.remember("secret " * 3_000)
        place.remember("kept")
    path = tmp_path / "memory" / "memories.jsonl"
    before = path.read_bytes()
    with open_place("file", tmp_path) as place:
        place.forget(long)
    data = path.read_bytes()
    start = before.index(b"secret") - 400
    start = before.rindex(b"\n", 0, before.index(b"secret")) + 1
    path.write_bytes(
        data[: start + 4096] + before[start + 4096 : len(before)] + data[len(before) :]
    )
    with open_place("file", tmp_path) as place:
        assert list(place.contents().values()) == ["kept"]
        assert place.face.store.check() == []
        place.remember("and on")
    assert not any(b"secret" in data for data in bytes_of(tmp_path).values())


# -- SQLite --------------------------------------------------------------------------------


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


# -- a memory directory --------------------------------------------------------------------

SHOWN = ["MEMORY.md", ".MEMORY.synced", ".MEMORY.added", "logs", "MEMORY.forgotten.jsonl"]
NOTES = (".MEMORY.synced", ".MEMORY.added")  # which can be made again


def filled_directory(folder: Path) -> tuple[Path, dict[str, str], dict[str, str]]:
    """A directory with facts, notes, and a fact that was deleted by hand."""
    with open_place("directory", folder) as place:
        texts = {place.remember(text, persistent=n % 2 == 1): text for n, text in enumerate(TEXTS)}
        doomed = place.remember("deleted by hand", persistent=True)
        directory: Path = place.face.directory
        page = (directory / "MEMORY.md").read_text("utf-8")
        (directory / "MEMORY.md").write_text(page.replace("- deleted by hand\n", ""), "utf-8")
        assert [memory.id for _, memory in place.face.forgotten()] == [doomed]
        place.remember("and one more", persistent=True)
        texts = place.contents()
    return directory, texts, {doomed: "deleted by hand"}


def noted_directory(folder: Path) -> tuple[Path, dict[str, str], dict[str, str]]:
    """Such a directory as a process leaves it that ends without closing it."""
    directory, texts, forgotten = filled_directory(folder)

    def remember_on(tell: Callable[[Any], None]) -> None:
        place = open_place("directory", folder)
        for number in range(3):
            place.remember(f"likes tea {number}", persistent=True)
        tell(place.contents())

    [texts] = run(remember_on)
    return directory, texts, forgotten


def file_named(directory: Path, name: str) -> Path:
    return next((directory / name).glob("*.jsonl")) if name == "logs" else directory / name


@every_damage
@pytest.mark.parametrize("name", SHOWN)
def test_a_damaged_file_of_a_directory_costs_no_memory(
    name: str, damage: str, tmp_path: Path
) -> None:
    make = noted_directory if name == ".MEMORY.added" else filled_directory
    directory, texts, forgotten = make(tmp_path)
    path = file_named(directory, name)
    data = damaged(path, damage)
    with open_place("directory", tmp_path) as place:
        found = place.contents()
        restorable = {memory.id: memory.content for _, memory in place.face.forgotten()}
        assert {**found, **restorable}.keys() >= texts.keys()
        if name != "MEMORY.md":
            assert found == texts
            assert restorable == forgotten or name == "MEMORY.forgotten.jsonl"
        place.face.build_context()
        place.face.get_recent_entries()
        place.face.recall("tea")
        new = place.remember("after that", persistent=True)
        place.remember("and that")
        assert place.forget(new)
    assert name in NOTES or kept_somewhere(directory, data)
    with open_place("directory", tmp_path) as place:
        assert {**place.contents(), **restorable}.keys() >= texts.keys()
        if name == "logs":
            lines = {entry["id"] for entry in place.face.get_recent_entries(limit=1_000)}
            assert lines >= place.contents().keys() - texts.keys()
        elif (name, damage) != ("MEMORY.md", "twice"):  # where each fact has two lines
            assert_in_step(place)
    assert leftovers(directory) == []


@every_damage
def test_a_directory_with_a_broken_database_says_so_or_takes_over_what_the_files_hold(
    damage: str, tmp_path: Path
) -> None:
    directory, texts, _ = filled_directory(tmp_path)
    damaged(directory / "memory.db", damage)
    before = bytes_of(directory)
    try:
        with open_place("directory", tmp_path) as place:
            found = place.contents()
            assert_in_step(place)
        assert sorted(found.values()) == sorted(texts.values())
    except StoreFailed:
        after = bytes_of(directory)
        for name in ("MEMORY.md", "memory.db", *(n for n in before if n.startswith("logs"))):
            assert after[name] == before[name]


FORGOTTEN: list[Any] = [
    5,
    [],
    {},
    {"memory": 5, "forgotten_at": 1},
    {"memory": {"content": "x"}, "forgotten_at": None},
    {"memory": {"content": "\ud800"}, "forgotten_at": 1e9},
    {"memory": None, "forgotten_at": 1e9},
    {"memory": {"content": "x", "created_at": "y"}, "forgotten_at": 1e9},
]


@pytest.mark.parametrize("row", FORGOTTEN, ids=str)
def test_a_bad_row_of_the_forgotten_costs_no_other(row: Any, tmp_path: Path) -> None:
    directory, _, forgotten = filled_directory(tmp_path)
    path = directory / "MEMORY.forgotten.jsonl"
    bad = json.dumps(row).encode() + b"\n"
    path.write_bytes(bad + path.read_bytes())
    with open_place("directory", tmp_path) as place:
        assert {memory.id: memory.content for _, memory in place.face.forgotten()} == forgotten
        for id in forgotten:
            place.face.restore(id)
            assert place.contents()[id] == forgotten[id]
    assert kept_somewhere(directory, bad)


# -- something else in its place -----------------------------------------------------------

FILES = {
    "json": ["memories.json", "memories.json.lock"],
    "file": ["memory/memories.jsonl", "memory/memories.jsonl.lock", "memory"],
    "sqlite": ["memory.db"],
    "directory": [
        *(f"agent_memory/{name}" for name in ("MEMORY.md", "memory.db", ".lock", "logs")),
        "agent_memory",
    ],
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in FILES for name in FILES[kind]])
def test_a_folder_where_a_file_should_be_and_a_file_for_a_folder_are_refused(
    kind: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(("memory", "logs")):
        path.write_bytes(b"a file")
    else:
        path.mkdir()
        (path / "inside").write_bytes(b"kept")
    with pytest.raises(RetainError) as refusal, open_place(kind, tmp_path) as place:
        place.remember("x")
    assert str(path) in str(refusal.value)
    assert b"a file" in bytes_of(tmp_path).values() or b"kept" in bytes_of(tmp_path).values()


@pytest.mark.parametrize("name", [".MEMORY.synced", "MEMORY.forgotten.jsonl", "log"])
def test_a_folder_in_the_place_of_what_can_be_made_again_costs_no_memory(
    name: str, tmp_path: Path
) -> None:
    with open_place("directory", tmp_path) as place:
        texts = {place.remember(text): text for text in TEXTS}
        directory: Path = place.face.directory
    path = file_named(directory, "logs") if name == "log" else directory / name
    path.unlink(missing_ok=True)
    path.mkdir()
    with open_place("directory", tmp_path) as place:
        assert place.contents() == texts
        place.remember("after that")
    path.rmdir()
    with open_place("directory", tmp_path) as place:
        assert len(place.contents()) == len(TEXTS) + 1
        assert logged(directory)[-1]["content"] == "after that"


LINKED = {
    "json": "memories.json",
    "file": "memory/memories.jsonl",
    "sqlite": "memory.db",
    "directory": "agent_memory/MEMORY.md",
}


@pytest.mark.parametrize("kind", LINKED)
def test_a_file_that_is_a_link_stays_one_and_nothing_is_lost(kind: str, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    there.mkdir()
    with open_place(kind, here) as place:
        texts = {place.remember(text, True): text for text in TEXTS}
    link = here / LINKED[kind]
    target = there / link.name
    link.rename(target)
    link.symlink_to(target)
    with open_place(kind, here) as place:
        assert place.contents() == texts
        texts[place.remember("more", True)] = "more"
        gone = next(iter(texts))
        place.forget(gone)
        if kind == "file":
            place.face.store.driver._compact()
    assert link.is_symlink()
    assert leftovers(tmp_path) == []
    data = target.read_bytes()
    assert b"more" in data
    assert texts.pop(gone).encode() not in data
    with open_place(kind, here) as place:
        assert place.contents() == texts


@pytest.mark.parametrize("kind", ["json", "file", "sqlite"])
def test_two_ways_to_one_file_lead_to_one_store(kind: str, tmp_path: Path) -> None:
    """A link beside the file, or to its folder, must not mean a lock of its own."""
    real, other = tmp_path / "real", tmp_path / "other"
    real.mkdir()
    with open_place(kind, real):
        pass
    other.symlink_to(real)
    link = tmp_path / "link"
    (link / LINKED[kind]).parent.mkdir(parents=True)
    (link / LINKED[kind]).symlink_to(real / LINKED[kind])
    places = [open_place(kind, folder) for folder in (real, other, link)]
    expected = {}
    for number in range(30):
        place = places[number % 3]
        content = f"number {number}"
        expected[place.remember(content)] = content
        assert place.contents() == expected
    for place in places:
        place.close()


@pytest.mark.parametrize("kind", ["json", "file", "sqlite", "directory"])
def test_a_place_stays_where_it_is_when_the_process_goes_elsewhere(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "start").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "start")
    place = open_place(kind, Path("place"))
    one = place.remember("one", persistent=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    two = place.remember("two", persistent=True)
    assert place.contents() == {one: "one", two: "two"}
    place.close()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    with open_place(kind, tmp_path / "start" / "place") as place:
        assert place.contents() == {one: "one", two: "two"}


@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_a_file_name_may_be_long_and_of_any_script(kind: str, tmp_path: Path) -> None:
    path = tmp_path / ("東京" * 35 + ".db")  # 213 bytes
    make = JSONFileStore if kind == "json" else SQLiteStore
    with make(path) as store:
        store.save(Memory("m1", "x"))
    with make(path) as store:
        assert [memory.id for memory in store.list_all()] == ["m1"]


# -- what may not be read or written -------------------------------------------------------

ROOT = os.geteuid() == 0
NOBODY = 65_534


def as_nobody(work: Callable[[], Any], *folders: Path) -> Any:
    """What ``work`` returns in a child that is no administrator, who may do anything."""

    def child(tell: Callable[[Any], None]) -> None:
        if ROOT:
            os.setgroups([])
            os.setegid(NOBODY)
            os.seteuid(NOBODY)
        tell(work())

    [said] = run(child)
    return said


def open_to_all(folder: Path) -> None:
    """Let everybody do everything below ``folder``, and come to it."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o777 if path.is_dir() else 0o666)
    for parent in folder.parents:
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)


def refusal(kind: str, folder: Path) -> str:
    """What opening and writing is answered with."""
    try:
        with open_place(kind, folder) as place:
            place.remember("x")
    except RetainError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


PROTECTED = {
    "json": "memories.json",
    "file": "memory/memories.jsonl",
    "sqlite": "memory.db",
    "directory": "agent_memory/memory.db",
}


@pytest.mark.parametrize("kind", PROTECTED)
def test_a_file_that_may_not_be_read_is_a_clear_error(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "place"
    with open_place(kind, folder) as place:
        place.remember("kept")
    open_to_all(folder)
    path = folder / PROTECTED[kind]
    path.chmod(0)
    data = path.read_bytes() if ROOT else b""
    answer = as_nobody(lambda: refusal(kind, folder))
    assert answer.startswith("StoreFailed")
    assert str(path) in answer
    path.chmod(0o600)
    assert not data or path.read_bytes() == data
    with open_place(kind, folder) as place:
        assert list(place.contents().values()) == ["kept"]


@pytest.mark.parametrize("kind", PROTECTED)
def test_a_read_only_folder_is_a_clear_error_for_a_write(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "place"
    with open_place(kind, folder) as place:
        place.remember("kept", persistent=True)
    open_to_all(folder)
    before = bytes_of(folder)
    for path in sorted(folder.rglob("*"), reverse=True):
        path.chmod(0o555 if path.is_dir() else 0o444)
    folder.chmod(0o555)
    answer = as_nobody(lambda: refusal(kind, folder))
    assert answer.startswith("StoreFailed")
    assert "choose another place" in answer
    open_to_all(folder)
    assert bytes_of(folder) == before
    with open_place(kind, folder) as place:
        assert list(place.contents().values()) == ["kept"]


@pytest.mark.parametrize("kind", ["json", "file"])
def test_a_text_store_in_a_read_only_folder_can_be_read(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "place"
    with open_place(kind, folder) as place:
        place.remember("kept")
    open_to_all(folder)
    for path in sorted(folder.rglob("*"), reverse=True):
        path.chmod(0o555 if path.is_dir() else 0o444)
    folder.chmod(0o555)

    def read() -> list[str]:
        place = open_place(kind, folder)
        return [result.memory.content for result in place.face.recall("kept")]

    assert as_nobody(read) == ["kept"]
    open_to_all(folder)


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    folder = tmp_path / "place"
    folder.mkdir()
    open_to_all(folder)
    folder.chmod(0o555)
    for kind in PROTECTED:
        answer = as_nobody(lambda kind=kind: refusal(kind, folder / "new" / "one"))
        assert answer.startswith("StoreFailed")
        assert "permission denied" in answer
    folder.chmod(0o777)
    assert list(folder.iterdir()) == []
