"""Text files that are not what they should be: what is readable is kept, the rest set aside."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from faults.damages import TEXTS, damaged, every_damage, kept_somewhere
from faults.places import bytes_of, leftovers, open_place, set_aside
from retain import JSONFileStore, Memory

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
