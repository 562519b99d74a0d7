"""A memory directory of which a file is not what it should be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faults.damages import TEXTS, damaged, every_damage, kept_somewhere
from faults.places import assert_in_step, bytes_of, leftovers, logged, open_place
from faults.workers import run
from retain import StoreFailed

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


@pytest.mark.slow
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
