"""Threads, forks, interrupts and a jumping clock in one process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from faults.places import (
    AGENTS,
    DirectoryPlace,
    Place,
    assert_in_step,
    leftovers,
    open_place,
    set_aside,
)
from faults.workers import Child, at_any_call, run
from retain import (
    AgentMemory,
    ConversationMemory,
    InMemoryStore,
    JSONFileStore,
    KnowledgeMemory,
    Memory,
    SQLiteStore,
    clock,
)

Tell = Callable[[Any], None]


def in_threads(work: Callable[[int], None], number: int = 6) -> None:
    """Run ``work`` in threads at once; the first thing that one of them raised is raised."""
    raised: list[BaseException] = []
    start = threading.Barrier(number)

    def run_one(name: int) -> None:
        start.wait()
        try:
            work(name)
        except BaseException as error:  # noqa: BLE001  # told to the thread that waits
            raised.append(error)

    threads = [threading.Thread(target=run_one, args=(name,)) for name in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def work_hard(face: Any, name: int, own: dict[str, str], steps: int) -> None:
    """Remember, recall, update and forget; ``own`` is what is left. No other works on these."""
    random = Random(name)
    word = f"word{name}"
    for number in range(steps):
        content = f"{word} step{number} 東京"
        chosen = random.choice(sorted(own)) if own else ""
        step = random.choice(["remember", "remember", "update", "forget"]) if own else "remember"
        if step == "remember":
            own[face.remember(content, persistent=number % 3 == 0).id] = content
        elif step == "update":
            face.update(chosen, content=content)
            own[chosen] = content
        else:
            assert face.forget(chosen)
            del own[chosen]
        found = {each.memory.id: each.memory.content for each in face.recall(word, k=100)}
        assert found == own, "a recall right after a write sees it, and all before it"


@pytest.mark.parametrize("kind", AGENTS)
def test_threads_share_a_face(kind: str, tmp_path: Path) -> None:
    with open_place(kind, tmp_path) as place:
        owned: list[dict[str, str]] = [{} for _ in range(6)]
        in_threads(lambda name: work_hard(place.face, name, owned[name], 12))
        expected = {id: content for own in owned for id, content in own.items()}
        assert place.contents() == expected
    with open_place(kind, tmp_path) as place:
        assert place.contents() == expected
        if isinstance(place, DirectoryPlace):
            assert_in_step(place)
    assert leftovers(tmp_path) == set_aside(tmp_path) == []


@pytest.mark.parametrize("kind", AGENTS)
def test_threads_with_a_place_of_their_own_each_share_the_files(kind: str, tmp_path: Path) -> None:
    owned: list[dict[str, str]] = [{} for _ in range(4)]

    def work(name: int) -> None:
        with open_place(kind, tmp_path) as place:
            work_hard(place.face, name, owned[name], 8)

    in_threads(work, 4)
    with open_place(kind, tmp_path) as place:
        assert place.contents() == {id: each for own in owned for id, each in own.items()}
        if isinstance(place, DirectoryPlace):
            assert_in_step(place)


@pytest.mark.parametrize("make", [InMemoryStore, None])
def test_several_faces_over_one_store_see_each_others_writes(make: Any, tmp_path: Path) -> None:
    store = make() if make else SQLiteStore(tmp_path / "memory.db")
    faces = [AgentMemory(store), AgentMemory(store), AgentMemory(store, max_entries=10_000)]
    owned: list[dict[str, str]] = [{} for _ in range(6)]
    in_threads(lambda name: work_hard(faces[name % 3], name, owned[name], 12))
    expected = {id: content for own in owned for id, content in own.items()}
    for face in faces:
        assert {m.id: m.content for m in face.store.list_all()} == expected
        assert {each.memory.id for each in face.recall("東京", k=1_000)} == set(expected)
    store.close()


def test_turns_of_a_conversation_from_many_threads_are_all_kept(tmp_path: Path) -> None:
    with ConversationMemory(store=SQLiteStore(tmp_path / "memory.db")) as memory:
        in_threads(
            lambda name: [memory.add_turn("user", f"{name} {n}") for n in range(10)] and None
        )
        assert len(memory.turns()) == 60


@pytest.mark.parametrize("kind", AGENTS)
def test_retrievals_are_counted_exactly_by_threads(kind: str, tmp_path: Path) -> None:
    with open_place(kind, tmp_path) as place:
        id = place.remember("zebra")
        in_threads(lambda name: [place.face.get(id) for _ in range(10)] and None)
        assert place.face.engine.store.peek([id])[0].access_count == 60
    with open_place(kind, tmp_path) as place:
        assert place.face.engine.store.peek([id])[0].access_count == 60


# -- a fork in the middle ------------------------------------------------------------------


@pytest.mark.parametrize("kind", AGENTS)
def test_a_forked_child_and_its_parent_go_on_with_one_face(kind: str, tmp_path: Path) -> None:
    with open_place(kind, tmp_path) as place:
        first = place.remember("from before the fork", persistent=True)
        assert place.face.recall("fork")
        expected = {first: "from before the fork"}

        def work(name: int, tell: Tell) -> None:
            assert place.face.recall("before")[0].memory.id == first
            for number in range(5):
                content = f"child {name} says {number}"
                tell([place.remember(content, persistent=number == 3), content])
            assert len(place.face.recall("says", k=100)) >= 5
            place.close()

        children = [Child(partial(work, name)) for name in range(3)]
        for number in range(5):
            expected[place.remember(f"parent says {number}")] = f"parent says {number}"
        for child in children:
            assert child.wait() == 0
            expected |= dict(child.said)
        assert place.contents() == expected
        assert {each.memory.id for each in place.face.recall("says", k=100)} == {*expected} - {
            first
        }
    with open_place(kind, tmp_path) as place:
        assert place.contents() == expected
        if isinstance(place, DirectoryPlace):
            assert_in_step(place)


@pytest.mark.parametrize("kind", AGENTS)
def test_a_child_that_is_forked_amid_a_threads_write_is_not_locked_out(
    kind: str, tmp_path: Path
) -> None:
    with open_place(kind, tmp_path) as place:
        stop = threading.Event()
        written: dict[str, str] = {}

        def write_on() -> None:
            for number in count():
                if stop.is_set():
                    return
                content = f"thread says {number}"
                written[place.remember(content)] = content

        thread = threading.Thread(target=write_on)
        thread.start()
        try:
            for number in range(5):
                content = f"child says {number}"
                [id] = run(lambda tell, content=content: tell(place.remember(content)))
                written[id] = content
        finally:
            stop.set()
            thread.join()
        assert place.contents() == written


@pytest.mark.parametrize("kind", AGENTS)
def test_a_child_that_outlives_its_parents_place_loses_nothing(kind: str, tmp_path: Path) -> None:
    """SQLite takes a file whose other users it can't see for its own, and drops its log."""
    with open_place(kind, tmp_path) as place:
        expected = {place.remember("parent"): "parent"}
        ours, theirs = os.pipe()

        def work(tell: Tell) -> None:
            tell([place.remember("child first"), "child first"])
            os.read(ours, 1)
            tell([place.remember("child second"), "child second"])
            os.read(ours, 1)
            tell([place.remember("child third"), "child third"])
            place.close()

        child = Child(work)
        assert child.listen(60, enough=1)
    os.write(theirs, b"!")
    assert child.listen(60, enough=2)
    with open_place(kind, tmp_path) as again:
        expected |= dict(child.said)
        assert again.contents() == expected
        fourth = again.remember("another")
        os.write(theirs, b"!")
        assert child.wait() == 0
        expected |= {**dict(child.said), fourth: "another"}
        assert again.contents() == expected
    os.close(ours)
    os.close(theirs)
    with open_place(kind, tmp_path) as again:
        assert again.contents() == expected
        assert again.face.engine.store.check() == []


def test_the_parent_keeps_the_counts_that_wait_and_the_child_begins_with_none(
    tmp_path: Path,
) -> None:
    for kind in ("json", "file", "sqlite"):
        with open_place(kind, tmp_path / kind) as place:
            id = place.remember("zebra")
            for _ in range(3):
                place.face.get(id)

            def work(tell: Tell, place: Place = place, id: str = id) -> None:
                place.face.get(id)
                place.close()

            run(work)
        with open_place(kind, tmp_path / kind) as place:
            assert place.face.store.peek([id])[0].access_count == 4


FORKED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from faults.places import open_place

place = open_place(sys.argv[1], Path(sys.argv[2]))
place.remember("before")
pid = os.fork()
place.remember("child" if pid == 0 else "parent")
if pid:
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    place.remember("parent again")
    print(sorted(place.contents().values()))
"""  # and both end as programs end, with the place left open


@pytest.mark.parametrize("kind", AGENTS)
def test_programs_that_forked_may_end_without_closing_anything(kind: str, tmp_path: Path) -> None:
    tests = str(Path(__file__).parent.parent)
    command = [sys.executable, "-W", "error", "-c", FORKED, kind, str(tmp_path), tests]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == "['before', 'child', 'parent', 'parent again']"
    assert ended.stderr == ""
    with open_place(kind, tmp_path) as place:
        assert len(place.contents()) == 4


# -- interrupted at any moment -------------------------------------------------------------


def interrupt(_: Any) -> None:
    raise KeyboardInterrupt


JOBS: dict[str, tuple[Callable[[Place], Any], set[str]]] = {
    "remember": (lambda place: place.remember("new"), {"one", "two", "new"}),
    "remember many": (lambda place: place.remember_many(["a", "b", "c"]), {"one", "two", *"abc"}),
    "update": (lambda place: place.update("id-one", "three"), {"three", "two"}),
    "forget": (lambda place: place.forget("id-one"), {"two"}),
}


# An interrupt between the opening of a file and its "with" leaves the closing to the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("step", [97, pytest.param(29, marks=pytest.mark.slow)])
@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("kind", AGENTS)
def test_a_call_that_is_interrupted_is_done_or_not_done(
    kind: str, job: str, step: int, memory_folder: Path
) -> None:
    work, after = JOBS[job]
    for number in count(step // 2, step):
        folder = memory_folder / str(number)
        with open_place(kind, folder) as place:
            place.face.engine.store.save_many([Memory("id-one", "one"), Memory("id-two", "two")])
            place.remember("gone")
            place.forget(next(id for id, text in place.contents().items() if text == "gone"))
            ended = False
            try:
                with at_any_call(number, interrupt):
                    work(place)
                ended = True
            except KeyboardInterrupt:
                pass
            found = set(place.contents().values())
            assert found == after or (not ended and found == {"one", "two"})
            place.remember("and on", persistent=True)
            assert set(place.contents().values()) == {*found, "and on"}
            with open_place(kind, folder) as other:
                assert set(other.contents().values()) == {*found, "and on"}
                other.remember("too")
            assert set(place.contents().values()) == {*found, "and on", "too"}
        with open_place(kind, folder) as place:
            assert set(place.contents().values()) == {*found, "and on", "too"}
            if isinstance(place, DirectoryPlace):
                assert_in_step(place)
        assert set_aside(folder) == []
        if ended:
            assert number > step
            return


# -- a clock that jumps --------------------------------------------------------------------


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], None]]:
    """Sets the clock to so many days from now."""
    now = clock.now()
    yield lambda days: monkeypatch.setattr(clock, "now", lambda: now + days * clock.DAY)


@pytest.mark.parametrize("days", [-400, -1, -1e-5, 0, 1e-5, 1, 400])
@pytest.mark.parametrize("kind", AGENTS)
def test_a_clock_that_jumps_loses_nothing(
    kind: str, days: float, tmp_path: Path, at: Callable[[float], None]
) -> None:
    with open_place(kind, tmp_path) as place, open_place(kind, tmp_path) as other:
        kept = place.remember("kept zebra", persistent=True)
        gone = place.remember("gone zebra")
        at(days)
        assert place.forget(gone)
        later = place.remember("later zebra")
        place.update(kept, "changed zebra")
        expected = {kept: "changed zebra", later: "later zebra"}
        for each in (place, other):
            assert each.contents() == expected
            assert {found.memory.id for found in each.face.recall("zebra")} == set(expected)
            for found in each.face.recall("zebra"):
                assert 0 <= found.recency_score <= 1
                assert 0 <= found.combined_score <= 1
    with open_place(kind, tmp_path) as place:
        assert place.contents() == expected
        assert {found.memory.id for found in place.face.recall("zebra")} == set(expected)
        at(-days)
        assert place.forget(later)
    at(days)
    with open_place(kind, tmp_path) as place:
        assert place.contents() == {kept: "changed zebra"}
        if isinstance(place, DirectoryPlace):
            place.face.flush()
            assert holds_no(place.face.directory, "kept zebra", "later zebra", "gone zebra")


def holds_no(folder: Path, *texts: str) -> bool:
    data = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return not any(text.encode() in data for text in texts)


@pytest.mark.parametrize("days", [-30, -1, 1, 30])
def test_a_directory_over_a_json_file_survives_a_jump_between_two_opens(
    days: float, tmp_path: Path, at: Callable[[float], None]
) -> None:
    """The revisions of that store begin at the time."""

    def opened() -> KnowledgeMemory:
        return KnowledgeMemory(tmp_path / "place", store=JSONFileStore(tmp_path / "memories.json"))

    with opened() as memory:
        kept = memory.remember("kept fact", persistent=True)
        note = memory.remember("kept note")
        doomed = [memory.remember("gone fact", persistent=True), memory.remember("gone note")]
        for receipt in doomed:
            assert memory.forget(receipt.id)
    at(days)
    with opened() as memory:
        store = memory.engine.store
        assert {m.id for m in store.list_all()} == {kept.id, note.id}
        assert memory.get_persistent_facts() == {"general": ["kept fact"]}
        assert memory.forget(note.id)
    at(0)
    with opened() as memory:
        assert [m.id for m in memory.engine.store.list_all()] == [kept.id]
        assert holds_no(tmp_path, "gone fact", "gone note", "kept note")


@pytest.mark.parametrize("kind", AGENTS)
def test_what_expires_comes_back_if_the_clock_goes_back_unless_it_was_pruned(
    kind: str, tmp_path: Path, at: Callable[[float], None]
) -> None:
    with open_place(kind, tmp_path) as place:
        id = place.face.remember("zebra for a day", ttl_days=1).id
        at(2)
        assert place.face.recall("zebra") == []
        assert place.contents() == {}
        at(0)
        assert [each.memory.id for each in place.face.recall("zebra")] == [id]
        at(2)
        assert place.face.prune() == 1
        at(0)
        assert place.face.recall("zebra") == []
        assert place.contents() == {}


def test_no_environment_variable_moves_a_temporary_file(tmp_path: Path) -> None:
    """Renames are atomic within one file system only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", "/nonexistent")
        for kind in AGENTS:
            with open_place(kind, tmp_path / kind) as place:
                place.remember("x", persistent=True)
    assert os.environ.get("TMPDIR") != "/nonexistent"
