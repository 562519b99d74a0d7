"""Several processes in one place: nobody's write is lost, and nobody sees half of one."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from faults.places import (
    KINDS,
    STORES,
    DirectoryPlace,
    assert_in_step,
    leftovers,
    open_place,
    set_aside,
)
from faults.workers import Child, run
from retain import Conflict, FileStore, JSONFileStore, Memory, SQLiteStore, StoreBusy
from retain.locks import FileLock

Tell = Callable[[Any], None]

FEW_AND_MANY = [25, pytest.param(250, marks=[pytest.mark.slow, pytest.mark.thorough])]
AGENT_KINDS = ["json", "file", "sqlite", "directory"]


def together(*works: Callable[[Tell], None]) -> list[list[Any]]:
    """What children said that ran at the same time; all must end well."""
    children = [Child(work) for work in works]
    assert [child.wait() for child in children] == [0] * len(children)
    return [child.said for child in children]


# -- everyone writes, and one reads --------------------------------------------------------


def remember_many_times(kind: str, folder: Path, name: int, times: int, tell: Tell) -> None:
    with open_place(kind, folder) as place:
        for number in range(times):
            content = f"process {name}, memory {number}: 東京 «naïve»"
            tell([place.remember(content, persistent=number % 10 == 3), content])


def look_again_and_again(kind: str, folder: Path, tell: Tell) -> None:
    for _ in count():
        with open_place(kind, folder) as place:
            tell(len(place.contents()))


@pytest.mark.parametrize("times", FEW_AND_MANY)
@pytest.mark.parametrize("kind", KINDS)
def test_four_processes_lose_nothing_and_a_reader_sees_no_step_back(
    kind: str, times: int, tmp_path: Path
) -> None:
    reader = Child(partial(look_again_and_again, kind, tmp_path))
    said = together(*(partial(remember_many_times, kind, tmp_path, n, times) for n in range(4)))
    expected = {id: content for lines in said for id, content in lines}
    assert len(expected) == 4 * times
    seen = len(reader.said)
    assert reader.listen(60, enough=seen + 1), "the reader ended by itself"
    counts = reader.kill()
    assert counts == sorted(counts)
    with open_place(kind, tmp_path) as place:
        assert place.contents() == expected
        if isinstance(place, DirectoryPlace):
            assert_in_step(place)
    assert leftovers(tmp_path) == []
    assert set_aside(tmp_path) == []


def open_and_write(kind: str, folder: Path, name: int, tell: Tell) -> None:
    with open_place(kind, folder) as place:
        tell(place.remember(f"from {name}", persistent=True))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_eight_processes_may_open_a_new_place_at_once(kind: str, tmp_path: Path) -> None:
    for number in range(3):
        folder = tmp_path / str(number) / "below"
        said = together(*(partial(open_and_write, kind, folder, name) for name in range(8)))
        with open_place(kind, folder) as place:
            assert place.contents() == {said[name][0]: f"from {name}" for name in range(8)}
            if isinstance(place, DirectoryPlace):
                assert_in_step(place)


def work_on(kind: str, folder: Path, name: int, times: int, tell: Tell) -> None:
    """Remember, update and forget at random; tells what is left of it."""
    random = Random(name)
    own: dict[str, str] = {}
    with open_place(kind, folder) as place:
        for number in range(times):
            content = f"process {name}, step {number}"
            chosen = random.choice(sorted(own)) if own else ""
            step = random.choice(["remember", "fact", "update", "forget"]) if own else "remember"
            if step in ("remember", "fact"):
                own[place.remember(content, persistent=step == "fact")] = content
            elif step == "update":
                place.update(chosen, content)
                own[chosen] = content
            else:
                assert place.forget(chosen)
                del own[chosen]
            if number % 5 == 0:
                assert own.items() <= place.contents().items()
    tell(own)


@pytest.mark.parametrize("times", [20, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_all_that_four_processes_did_is_done(kind: str, times: int, tmp_path: Path) -> None:
    said = together(*(partial(work_on, kind, tmp_path, name, times) for name in range(4)))
    expected = {id: content for [own] in said for id, content in own.items()}
    with open_place(kind, tmp_path) as place:
        assert place.contents() == expected
        if isinstance(place, DirectoryPlace):
            assert_in_step(place)
    assert leftovers(tmp_path) == []
    assert set_aside(tmp_path) == []


# -- on one and the same memory ------------------------------------------------------------


def state_a_fact(kind: str, folder: Path, times: int, tell: Tell) -> None:
    with open_place(kind, folder) as place:
        tell([place.remember(f"fact {number}", persistent=True) for number in range(times)])


@pytest.mark.parametrize("kind", AGENT_KINDS)
def test_a_fact_that_all_state_is_one_memory(kind: str, tmp_path: Path) -> None:
    said = together(*(partial(state_a_fact, kind, tmp_path, 10) for _ in range(4)))
    assert all(ids == said[0] for ids in said)
    with open_place(kind, tmp_path) as place:
        assert place.contents() == {id: f"fact {n}" for n, id in enumerate(said[0][0])}
        if isinstance(place, DirectoryPlace):
            assert_in_step(place)


def increment(kind: str, folder: Path, times: int, tell: Tell) -> None:
    with open_place(kind, folder) as place:
        store = place.face.engine.store
        for _ in range(times):
            while True:
                [found] = store.peek(["counter"])
                try:
                    changed = found.copy(content=str(int(found.content) + 1))
                    store.write([changed], expect={"counter": found.revision})
                    break
                except Conflict:
                    continue


@pytest.mark.parametrize("kind", ["json", "file", "sqlite"])
def test_a_write_that_expects_a_revision_never_overwrites_another(
    kind: str, tmp_path: Path
) -> None:
    with open_place(kind, tmp_path) as place:
        place.face.store.save(Memory("counter", "0"))
    together(*(partial(increment, kind, tmp_path, 15) for _ in range(4)))
    with open_place(kind, tmp_path) as place:
        assert place.contents() == {"counter": "60"}


def update_over_and_over(kind: str, folder: Path, id: str, name: int, tell: Tell) -> None:
    with open_place(kind, folder) as place:
        for number in range(15):
            place.face.update(id, tags=[f"tag {name}.{number}"])


@pytest.mark.parametrize("kind", AGENT_KINDS)
def test_updates_of_one_memory_follow_one_another(kind: str, tmp_path: Path) -> None:
    with open_place(kind, tmp_path) as place:
        id = place.remember("shared", persistent=True)
        first = place.memories()[0].revision
    together(*(partial(update_over_and_over, kind, tmp_path, id, name) for name in range(4)))
    with open_place(kind, tmp_path) as place:
        [memory] = place.memories()
        assert memory.content == "shared"
        assert memory.tags in [[f"tag {name}.14"] for name in range(4)]
        assert kind == "json" or memory.revision == first + 60
        if isinstance(place, DirectoryPlace):
            assert_in_step(place)


# -- what another process did is seen at once ----------------------------------------------


@pytest.mark.parametrize("kind", AGENT_KINDS)
def test_a_recall_sees_what_another_process_has_just_done(kind: str, tmp_path: Path) -> None:
    with open_place(kind, tmp_path) as place:
        found: list[str] = []
        assert place.face.recall("zebra") == []
        for number in range(5):
            [id] = run(partial(open_and_write, kind, tmp_path, number))
            found.append(id)
            assert {each.memory.id for each in place.face.recall("from")} == set(found)
        for id in found:
            run(lambda tell, id=id: tell(open_place(kind, tmp_path).forget(id)))
            assert id not in {each.memory.id for each in place.face.recall("from")}
            assert place.face.get(id) is None
        assert place.contents() == {}


def test_a_file_that_took_the_place_of_another_is_told_from_it(tmp_path: Path) -> None:
    """File systems give the inode of a file that is gone to the next one, sizes can be equal."""
    with FileStore(tmp_path) as one, FileStore(tmp_path) as other:
        for number in range(50):
            one.save_many([Memory(f"{number}.{n}", f"text {n}") for n in range(5)])
            assert other.count() == one.count()
            one.delete(f"{number}.0")
            one.driver._compact()
            one.save(Memory(f"{number}.5", "text 5"))
            one.driver._compact()
            one.save(Memory(f"{number}.6", "text 6"))
            assert {m.id for m in other.list_all()} == {m.id for m in one.list_all()}
            other.delete(f"{number}.1")
            assert {m.id for m in other.list_all()} == {m.id for m in one.list_all()}
        assert one.check() == other.check() == []
    assert set_aside(tmp_path) == []


@pytest.mark.parametrize("make", [JSONFileStore, FileStore, SQLiteStore])
def test_a_change_that_leaves_the_size_as_it_is_is_seen(make: Any, tmp_path: Path) -> None:
    with make(tmp_path / "place") as one, make(tmp_path / "place") as other:
        one.save(Memory("m1", "000", created_at=1e9, updated_at=1e9))
        for number in range(100, 200):
            one.save(Memory("m1", str(number), created_at=1e9, updated_at=1e9))
            one.save(Memory("m1", str(number + 100), created_at=1e9, updated_at=1e9))
            assert [m.content for m in other.list_all()] == [str(number + 100)]


@pytest.mark.parametrize("kind", STORES)
def test_two_ways_to_one_file_are_one_store(kind: str, tmp_path: Path) -> None:
    """A link to the file or to its folder must not have a lock of its own."""
    real, linked, beside = tmp_path / "real", tmp_path / "linked", tmp_path / "beside"
    with open_place(kind, real) as place:
        path: Path = place.face.store.path
    linked.symlink_to(real)
    link = beside / path.relative_to(real)
    link.parent.mkdir(parents=True)
    link.symlink_to(path)
    said = together(
        *(
            partial(remember_many_times, kind, folder, name, 25)
            for name, folder in enumerate([real, linked, beside])
        )
    )
    with open_place(kind, real) as place:
        assert place.contents() == {id: content for lines in said for id, content in lines}


# -- a person edits meanwhile --------------------------------------------------------------


def edit_over_and_over(folder: Path, tell: Tell) -> None:
    path = folder / "agent_memory" / "MEMORY.md"
    for number in range(20):
        page = path.read_text(encoding="utf-8")
        copy = path.with_name("MEMORY.md~")
        copy.write_text(f"{page}\n## by hand\n- line {number}\n", encoding="utf-8")
        copy.replace(path)
        tell(f"line {number}")


def test_a_person_who_saves_an_old_buffer_costs_no_fact(tmp_path: Path) -> None:
    """What a save of an old buffer takes out of the file can be restored."""
    with open_place("directory", tmp_path):
        pass
    *agents, _ = together(
        *(partial(remember_many_times, "directory", tmp_path, name, 20) for name in range(3)),
        partial(edit_over_and_over, tmp_path),
    )
    with open_place("directory", tmp_path) as place:
        restorable = {memory.id: memory.content for _, memory in place.face.forgotten()}
        found = {**place.contents(), **restorable}
        for lines in agents:
            assert dict(lines).items() <= found.items()
        assert "line 19" in found.values()
        assert_in_step(place)


# -- one holds on --------------------------------------------------------------------------


def hold(enter: Callable[[], Any], tell: Tell) -> None:
    with enter():
        tell("held")
        os.read(os.pipe()[0], 1)  # until it is killed


def test_a_lock_that_another_process_holds_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    holder = Child(partial(hold, lambda: FileLock(tmp_path / "lock").held()))
    assert holder.listen(60, enough=1)
    with pytest.raises(StoreBusy, match="another process"), lock.held(timeout=0.1):
        pass
    holder.kill()
    with lock.held(timeout=60):
        pass


def test_a_database_that_another_process_writes_is_waited_for_and_then_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    SQLiteStore(path).close()
    holder = Child(partial(hold, lambda: SQLiteStore(path).driver._transaction()))
    assert holder.listen(60, enough=1)
    with SQLiteStore(path, busy_timeout=0.1) as store:
        with pytest.raises(StoreBusy, match="another process"):
            store.save(Memory("m1", "x"))
        assert store.list_all() == []
        holder.kill()
        store.save(Memory("m1", "x"))
        assert store.count() == 1
