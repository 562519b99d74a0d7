"""A full disk: a write is done or refused, and all goes on once there is room again."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from faults.places import KINDS, DirectoryPlace, Place, assert_in_step, leftovers, open_place
from faults.workers import at_point, disk_full, run
from retain import Memory, SQLiteStore, StoreFailed
from retain.stores import file

Tell = Callable[[Any], None]

# -- at every point that writes ------------------------------------------------------------

KEPT = ["kept 0", "kept 1\nin two lines", "kept 2"]
LONG = "long " * 3_000


def fill(kind: str, folder: Path) -> dict[str, str]:
    with open_place(kind, folder) as place:
        for number, content in enumerate(KEPT):
            place.remember(content, persistent=number == 1)
        place.remember(LONG)
        place.forget(place.remember("gone " * 500))
        return place.contents()


def id_of(place: Place, content: str) -> str:
    return next(id for id, found in place.contents().items() if found == content)


JOBS: dict[str, tuple[Callable[[Place], Any], list[str]]] = {
    "remember": (lambda place: place.remember("new"), [*KEPT, LONG, "new"]),
    "remember a fact": (lambda place: place.remember("new", True), [*KEPT, LONG, "new"]),
    "remember many": (lambda place: place.remember_many(["a", "b"]), [*KEPT, LONG, "a", "b"]),
    "update": (lambda place: place.update(id_of(place, KEPT[1]), "new"), [*KEPT[::2], LONG, "new"]),
    "forget": (lambda place: place.forget(id_of(place, LONG)), KEPT),
}


def assert_sound(kind: str, folder: Path, expected: list[list[str]]) -> None:
    """A new open finds one of these states, and can be written to."""
    with open_place(kind, folder) as place:
        assert sorted(place.contents().values()) in [sorted(each) for each in expected]
        if isinstance(place, DirectoryPlace):
            assert_in_step(place)
        place.forget(place.remember("and on", persistent=True))
    assert leftovers(folder) == []


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("kind", ["json", "file", "directory"])
def test_a_call_that_the_disk_refuses_at_any_point_is_done_or_not_done(
    kind: str, job: str, memory_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "_SLACK", 0)  # a compaction is a part of most writes
    template = memory_folder / "template"
    fill(kind, template)
    work, after = JOBS[job]
    before = [*KEPT, LONG]
    for number in count():
        folder = memory_folder / "place"
        shutil.copytree(template, folder)
        with open_place(kind, folder) as place:
            refusal = None
            try:
                with at_point(number, disk_full, database=False) as passed:
                    work(place)
            except StoreFailed as error:
                refusal = error
            possible = [before] if refusal else [after]
            if refusal is not None:
                assert "No space left" in str(refusal) or "disk is full" in str(refusal)
            if refusal is not None and "may not last" in str(refusal):
                possible = [after]
            assert sorted(place.contents().values()) == sorted(possible[0])
            assert place.face.recall("kept")
            assert leftovers(folder) == []
            if refusal is not None and possible == [before]:
                work(place)
                possible = [after]
                assert sorted(place.contents().values()) == sorted(after)
        assert_sound(kind, folder, possible)
        shutil.rmtree(folder)
        if len(passed) <= number:
            assert number > 3
            return


@pytest.mark.parametrize("kind", ["json", "file", "sqlite", "directory"])
def test_a_place_that_could_not_be_made_can_be_made_later(kind: str, memory_folder: Path) -> None:
    for number in count():
        folder = memory_folder / "place"
        refused = False
        with at_point(number, disk_full) as passed:
            try:
                open_place(kind, folder).close()
            except StoreFailed:
                refused = True
        assert leftovers(memory_folder) == []
        assert_sound(kind, folder, [[]])
        shutil.rmtree(folder)
        if len(passed) <= number:
            assert not refused
            assert number > 3
            return


# -- for real: no file may grow beyond a limit ---------------------------------------------


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Writes beyond ``size`` bytes of any file fail, in part or as a whole."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        signal.signal(signal.SIGXFSZ, ignored)


def write_until_refused(kind: str, folder: Path, room: int, tell: Tell) -> None:
    """Remember, update and forget beyond the limit; tells what is to be there."""
    with open_place(kind, folder) as place:
        expected = place.contents()
        largest = max(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        refusals = 0
        with no_file_beyond(largest + room):
            for number in range(60):
                content = f"memory {number} " + "x" * (number * 37 % 900)
                try:
                    expected[place.remember(content, persistent=number % 4 == 1)] = content
                except StoreFailed as error:
                    refusals += 1
                    assert str(folder) in str(error)
                assert place.contents() == expected
            for id in list(expected)[::9]:
                try:
                    assert place.forget(id)
                    del expected[id]
                except StoreFailed:
                    refusals += 1
                assert place.contents() == expected
        expected[place.remember("there is room again", persistent=True)] = "there is room again"
        assert place.contents() == expected
        tell([refusals, expected])


ROOMS = [1_000, *(pytest.param(room, marks=pytest.mark.slow) for room in (0, 100, 5_000, 20_000))]


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("kind", KINDS)
def test_beyond_a_limit_writes_are_refused_and_none_is_lost(
    kind: str, room: int, memory_folder: Path
) -> None:
    fill(kind, memory_folder)
    [[refusals, expected]] = run(partial(write_until_refused, kind, memory_folder, room))
    assert refusals or room == 20_000
    with open_place(kind, memory_folder) as place:
        assert place.contents() == expected
        if isinstance(place, DirectoryPlace):
            assert_in_step(place)
        assert place.face.memories.check() == [] if "knowledge" in kind else True
    assert leftovers(memory_folder) == []


def go_on_without(folder: Path, name: str, tell: Tell) -> None:
    """Work in a directory in which one file is beyond the limit already."""
    with open_place("directory", folder) as place:
        path = next(place.face.directory.glob(name))
        with path.open("a", encoding="utf-8") as big:
            big.write(" " * 2_000_000 + "\n")
        with no_file_beyond(1_500_000):
            expected = place.contents()
            for number in range(6):
                content = f"memory {number}\nof two lines"
                expected[place.remember(content, persistent=number % 2 == 1)] = content
            gone, changed, *_ = expected
            place.forget(gone)
            del expected[gone]
            place.update(changed, "changed")
            expected[changed] = "changed"
            assert place.contents() == expected
        tell(expected)


@pytest.mark.parametrize("name", ["MEMORY.md", "logs/*.jsonl"])
def test_a_file_that_cannot_follow_the_store_is_brought_in_step_later(
    name: str, memory_folder: Path
) -> None:
    fill("directory", memory_folder)
    [expected] = run(partial(go_on_without, memory_folder, name))
    with open_place("directory", memory_folder) as place:
        assert place.contents() == expected
        assert_in_step(place)


# -- for real: SQLite ----------------------------------------------------------------------


def test_a_database_that_may_not_grow_refuses_and_goes_on(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "memory.db") as store:
        store.save(Memory("m0", "x"))
        with store.driver._open() as db:
            pages = db.execute("PRAGMA page_count").fetchone()[0]
            db.execute(f"PRAGMA max_page_count = {pages + 3}")
        kept = {"m0"}
        with pytest.raises(StoreFailed, match="the disk is full: make room and call again"):
            for number in range(1, 100):
                store.save(Memory(f"m{number}", "x" * 1_000))
                kept.add(f"m{number}")
        assert {memory.id for memory in store.list_all()} == kept
        with pytest.raises(StoreFailed, match="disk is full"):
            store.save_many([Memory(content="x" * 500) for _ in range(50)])
        assert {memory.id for memory in store.list_all()} == kept
        assert store.check() == []
        with store.driver._open() as db:
            db.execute(f"PRAGMA max_page_count = {pages + 1_000}")
        store.save(Memory("last", "x"))
    with SQLiteStore(tmp_path / "memory.db") as store:
        assert {memory.id for memory in store.list_all()} == {*kept, "last"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with room for 600 KB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=600k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only an administrator can mount a small file system")
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_file_system_refuses_writes_and_loses_none(kind: str, small_disk: Path) -> None:
    folder = small_disk / "place"
    expected: dict[str, str] = {}
    with open_place(kind, folder) as place:
        place.remember("first", persistent=True)
        expected = place.contents()
        for size in (200_000, 20_000, 2_000, 200):
            with pytest.raises(StoreFailed) as refusal:
                for number in range(10_000):
                    content = f"{size} {number} " + "x" * size
                    expected[place.remember(content)] = content
            assert str(folder) in str(refusal.value)
            assert place.contents() == expected
        largest = max(expected, key=lambda id: len(expected[id]))
        try:
            place.forget(largest)  # a delete needs room too, and may be refused
            del expected[largest]
        except StoreFailed:
            pass
        assert place.contents() == expected
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    with open_place(kind, folder) as place:
        assert place.contents() == expected
        expected[place.remember("room again", persistent=True)] = "room again"
        assert place.contents() == expected
        if isinstance(place, DirectoryPlace):
            assert_in_step(place)
    assert leftovers(folder) == []
