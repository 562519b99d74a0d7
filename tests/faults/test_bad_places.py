"""Something else where a file should be, and places that may not be read or written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faults.damages import TEXTS
from faults.places import bytes_of, leftovers, open_place
from faults.workers import run
from retain import JSONFileStore, Memory, RetainError, SQLiteStore

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


def as_nobody(work: Callable[[], Any]) -> Any:
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
