"""Index files under attack: kills, damage, full disks, other processes. Recall stays right."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from faults.damages import DAMAGES, MORE
from faults.workers import Child, at_point, die, disk_full, run
from retain import Memory, Scope, files
from retain.indexing import background, indexes
from retain.search import cache, kept
from search.opened import (
    WordEmbedder,
    assert_right,
    engine_of,
    files_of,
    filled,
    found,
    index_of,
    memories,
    rows_from_files,
)

Tell = Callable[[Any], None]

FEW_AND_MANY_KILLS = [
    2,
    pytest.param(12, marks=pytest.mark.slow),
    pytest.param(50, marks=[pytest.mark.slow, pytest.mark.thorough]),
]


@pytest.fixture(autouse=True)
def _quick_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedder of these tests is as quick as the one that comes with the install."""
    monkeypatch.setattr("retain.search.index._EAGER_SLOW", 2_000)


@pytest.fixture(autouse=True)
def _nothing_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but what a test does itself; children that are to have a thread get it back."""
    monkeypatch.setattr(background, "add", lambda job: None)


@pytest.fixture(params=[None, "words"], ids=["lexical", "vectors"])
def embedder(request: pytest.FixtureRequest) -> Any:
    return request.param and WordEmbedder(request.param)


# -- kills ---------------------------------------------------------------------------------


def fold_over_and_over(folder: Path, embedder: Any, name: int, tell: Tell) -> None:
    """Write, delete, recall; with each recall something to be merged and kept."""
    del background.add  # type: ignore[method-assign]  # the real one
    engine = engine_of(folder, embedder)
    for number in range(1_000):
        first = name * 1_000_000 + number * 1_000
        engine.store.save_many(memories(300, first))
        engine.recall("word1")
        engine.forget_many([f"m{first + n}" for n in range(0, 200, 2)])
        engine.recall("word2")
        tell(number)
        engine.settle()


@pytest.mark.parametrize("kills", FEW_AND_MANY_KILLS)
def test_after_a_kill_while_files_are_written_the_next_recall_is_right(
    kills: int, embedder: Any, memory_folder: Path
) -> None:
    if kills > FEW_AND_MANY_KILLS[0] and embedder is None:
        pytest.skip("files without vectors are a part of those with")
    random = Random(kills)
    seen = 0
    for number in range(kills):
        child = Child(partial(fold_over_and_over, memory_folder, embedder, number))
        assert child.listen(60, enough=1), "the child ended by itself"
        child.listen(random.uniform(0, 0.25))
        child.kill()
        engine = engine_of(memory_folder, embedder)
        if embedder is None:
            assert_right(engine, memory_folder)
        else:  # some may have no vector yet
            engine.settle()
            assert_right(engine, memory_folder)
        seen += rows_from_files(engine) > 0
        # Not more than a few seconds of reading for the next one.
        engine.forget_many([memory.id for memory in engine.store.page(100_000)[1_500:]])
        engine.close()
        for copy in memory_folder.glob("copy-*"):
            shutil.rmtree(copy)
    assert seen > 0


def keep(folder: Path, embedder: Any) -> None:
    engine = engine_of(folder, embedder)
    engine.recall("word1")
    engine.settle()


def killed_at(number: int, folder: Path, embedder: Any, tell: Tell) -> None:
    with at_point(number, die, database=False) as passed:
        keep(folder, embedder)
    tell(len(passed))


@pytest.mark.parametrize(
    "step", [9, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.thorough])]
)
def test_a_kill_at_any_point_of_keeping_leaves_files_that_are_right(
    step: int, embedder: Any, memory_folder: Path
) -> None:
    if step == 1 and embedder is None:
        pytest.skip("files without vectors are a part of those with")
    template = memory_folder / "template"
    filled(template, 300, embedder)
    engine = engine_of(template, embedder)
    engine.forget_many([f"m{number}" for number in range(0, 200, 3)])
    engine.store.save_many(memories(300, 300))
    engine.store.close()
    number = 0
    while True:
        place = memory_folder / f"at-{number}"
        shutil.copytree(template, place)
        child = Child(partial(killed_at, number, place, embedder))
        ended = child.wait() == 0
        engine = engine_of(place, embedder)
        if embedder is None:  # else some may have no vector yet
            assert_right(engine, memory_folder)
        engine.settle()
        assert_right(engine, memory_folder)
        assert len(files_of(place)) == 1
        engine.close()
        if ended:
            assert number > 3 * step
            return
        shutil.rmtree(place)
        number += step


# -- damage --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(name, marks=pytest.mark.slow if name in MORE and name != "cut at 50 %" else ())
        for name in DAMAGES
        if "surrogate" not in name
    ],
)
@pytest.mark.parametrize("end", ["terms", pytest.param("vectors", marks=pytest.mark.slow)])
def test_whatever_happens_to_a_file_a_recall_is_right(
    damage: str, end: str, tmp_path: Path
) -> None:
    embedder = WordEmbedder()
    filled(tmp_path, 300, embedder)
    [path] = files_of(tmp_path, end)
    data = DAMAGES[damage](path.read_bytes(), Random(damage))
    path.write_bytes(data)
    engine = engine_of(tmp_path, embedder)
    engine.settle()
    assert_right(engine, tmp_path)
    engine.close()
    engine = engine_of(tmp_path, embedder)
    found(engine)
    assert rows_from_files(engine) == 300
    assert index_of(engine).made() == (300, 300)
    assert not path.exists() or path.read_bytes() != data


@pytest.mark.parametrize("mapped", [0, 1 << 30], ids=["mapped", "read"])
def test_a_byte_that_changed_anywhere_is_never_believed(
    mapped: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every array, also in those that an opening does not read."""
    monkeypatch.setattr(files, "_MAPPED", mapped)
    monkeypatch.setattr(kept, "_BLOCK", 512)
    embedder = WordEmbedder()
    filled(tmp_path, 300, embedder)
    shutil.copytree(tmp_path / "m.db-index", tmp_path / "kept")
    right = engine_of(tmp_path, embedder)
    expected = found(right)
    for kind in ("terms", "vectors"):
        [path] = files_of(tmp_path, kind)
        opened = kept.IndexFile(path.read_bytes())
        begin = path.stat().st_size - opened.header["bytes"]
        for name, (_, _, at) in opened.header["arrays"].items():
            data = bytearray(path.read_bytes())
            data[begin + at + opened.arrays[name].nbytes // 2] ^= 1
            path.unlink()
            path.write_bytes(data)
            engine = engine_of(tmp_path, embedder)
            engine.settle()
            assert found(engine) == expected, name
            engine.close()
            shutil.rmtree(tmp_path / "m.db-index")
            shutil.copytree(tmp_path / "kept", tmp_path / "m.db-index")


def test_damage_that_shows_only_when_files_are_merged_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_BLOCK", 512)
    filled(tmp_path, 300)
    [path] = files_of(tmp_path)
    opened = kept.IndexFile(path.read_bytes())
    data = bytearray(path.read_bytes())
    begin = len(data) - opened.header["bytes"] + opened.header["arrays"]["rows"][2]
    for at in range(1_024, opened.arrays["rows"].nbytes - 1_024, 4):
        data[begin + at] ^= 1
    path.write_bytes(data)
    engine = engine_of(tmp_path)
    engine.recall("nothing of it")
    assert rows_from_files(engine) == 300
    engine.store.save_many(memories(300, 300))
    engine.settle()
    assert_right(engine, tmp_path)
    engine.close()
    engine = engine_of(tmp_path)
    assert_right(engine, tmp_path)
    assert rows_from_files(engine) in (0, 600)


@pytest.mark.parametrize("lost", ["the folder", "the terms", "the vectors", "all of a scope"])
def test_files_that_are_lost_are_made_anew(lost: str, embedder: Any, tmp_path: Path) -> None:
    filled(tmp_path, 300, embedder)
    if lost == "the folder":
        shutil.rmtree(tmp_path / "m.db-index")
    elif lost == "all of a scope":
        shutil.rmtree(files_of(tmp_path)[0].parent)
    else:
        for path in files_of(tmp_path, lost.split()[1]):
            path.unlink()
    engine = engine_of(tmp_path, embedder)
    engine.settle()
    assert_right(engine, tmp_path)
    assert len(files_of(tmp_path)) == 1
    engine.close()


def test_files_that_go_while_they_are_open_are_still_good(embedder: Any, tmp_path: Path) -> None:
    filled(tmp_path, 300, embedder)
    engine = engine_of(tmp_path, embedder)
    found(engine)
    shutil.rmtree(tmp_path / "m.db-index")
    engine.store.save_many(memories(300, 300))
    engine.forget("m5")
    assert_right(engine, tmp_path)
    engine.settle()
    assert_right(engine, tmp_path)


# -- places that take no file --------------------------------------------------------------


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_disk_that_is_full_costs_a_warning_and_no_answer(
    step: int, embedder: Any, memory_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = engine_of(memory_folder, embedder)
    engine.store.save_many(memories(300))
    engine.recall("word1")
    number, full = 0, True
    while full:
        with at_point(number, disk_full, database=False) as passed:
            engine.settle()
        full = len(passed) > number
        assert_right(engine, memory_folder)
        assert list((memory_folder / "m.db-index").rglob("*.tmp")) == []
        engine.forget(f"m{number}")
        number += step
    assert number > step
    assert any("the disk is full" in record.message for record in caplog.records)


def test_a_folder_that_cannot_be_made_costs_a_warning_and_no_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "m.db-index").write_bytes(b"a file in its place")
    engine = engine_of(tmp_path)
    engine.store.save_many(memories(300))
    engine.settle()
    assert_right(engine, tmp_path)
    assert "could not be looked after" in caplog.text
    engine.close()


def test_files_that_are_of_no_use_and_cannot_be_removed_cost_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, 300)
    [path] = files_of(tmp_path)
    data = bytearray(path.read_bytes())
    opened = kept.IndexFile(path.read_bytes())
    data[len(data) - opened.header["bytes"] + opened.header["arrays"]["rows"][2]] ^= 1
    path.write_bytes(data)

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "unlink", refuse)
    engine = engine_of(tmp_path)
    there = found(engine)
    monkeypatch.undo()
    copy = engine_of(tmp_path / "other")
    copy.store.save_many(memories(300))
    assert there.keys() == found(copy).keys()
    assert {query: set(ids) for query, ids in there.items()} == {
        query: set(ids) for query, ids in found(copy).items()
    }


# -- several processes ---------------------------------------------------------------------


def write_and_recall(folder: Path, name: int, times: int, tell: Tell) -> None:
    """Whatever it has said before, a recall finds; and nothing that is gone."""
    del background.add  # type: ignore[method-assign]
    random = Random(name)
    engine = engine_of(folder, WordEmbedder() if name % 2 else None)
    own: dict[str, str] = {}
    for number in range(times):
        texts = [
            Memory(f"p{name}-{number}-{n}", f"process{name} step{number} item{n} word{n % 50}")
            for n in range(40)
        ]
        engine.remember_many(texts)
        own |= {memory.id: memory.content for memory in texts}
        gone = random.sample(sorted(own), 10)
        assert engine.forget_many(gone) == 10
        for id in gone:
            del own[id]
        results = engine.recall(f"process{name}", k=100_000)
        assert {each.memory.id for each in results} >= own.keys()
        assert not {each.memory.id for each in results} & set(gone)
        if number % 5 == 4:
            engine.close()
            engine = engine_of(folder, WordEmbedder() if name % 2 else None)
    engine.close()
    tell(sorted(own))


@pytest.mark.parametrize("times", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_processes_that_write_merge_and_recall_find_all_that_they_wrote(
    times: int, tmp_path: Path
) -> None:
    children = [Child(partial(write_and_recall, tmp_path, name, times)) for name in range(3)]
    assert [child.wait() for child in children] == [0] * 3
    engine = engine_of(tmp_path, WordEmbedder())
    engine.settle()
    assert_right(engine, tmp_path)
    there = {each.memory.id for each in engine.recall("word1 process0 process1 process2", 100_000)}
    assert there == {id for child in children for id in child.said[0]}
    assert not list(tmp_path.rglob("*.tmp"))


def forget(folder: Path, ids: list[str], tell: Tell) -> None:
    engine = engine_of(folder)
    tell(engine.forget_many(ids) if ids else engine.forget_all())
    engine.close()


def test_what_another_process_deletes_is_gone_at_once_and_after_reopening(
    embedder: Any, tmp_path: Path
) -> None:
    filled(tmp_path, 300, embedder)
    engine = engine_of(tmp_path, embedder)
    assert "m7" in found(engine)["東京"]
    assert rows_from_files(engine) == 300
    assert run(partial(forget, tmp_path, ["m7", "m8"])) == [2]
    assert not {"m7", "m8"} & found(engine)["東京"].keys()
    assert_right(engine, tmp_path)
    engine.close()
    engine = engine_of(tmp_path, embedder)
    assert_right(engine, tmp_path)
    assert run(partial(forget, tmp_path, [])) == [298]
    assert found(engine)["東京"] == {}
    engine.close()
    assert files_of(tmp_path) == []


def test_no_process_waits_for_another_that_keeps_its_index(tmp_path: Path) -> None:
    filled(tmp_path, 300)
    folder = files_of(tmp_path)[0].parent

    def stop_while_it_writes(tell: Tell) -> None:
        def stop(_: Any) -> None:
            tell("in the middle")
            os.kill(os.getpid(), signal.SIGSTOP)

        engine = engine_of(tmp_path)
        engine.store.save_many(memories(300, 300))
        engine.recall("word1")
        with at_point(6, stop, database=False):
            engine.settle()

    child = Child(stop_while_it_writes)
    assert child.listen(60, enough=1)
    assert list(folder.glob("*.tmp"))
    engine = engine_of(tmp_path)
    engine.store.save_many(memories(300, 600))
    engine.settle()
    assert_right(engine, tmp_path)
    engine.close()
    child.kill()


# -- the end of a process ------------------------------------------------------------------


def ended(program: str, *arguments: object) -> tuple[str, float]:
    """What a program of its own said, and how many seconds it took to end after its last line."""
    code = textwrap.dedent(program)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    tests = Path(__file__).parents[1]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tests)},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    said = process.stdout.readline()
    begun = time.monotonic()
    errors = process.stderr.read()
    assert process.wait(60) == 0, errors
    assert errors == ""
    process.stdout.close()
    process.stderr.close()
    return said.strip(), time.monotonic() - begun


RECALL = """
    import sys
    from pathlib import Path
    from search.opened import WordEmbedder, engine_of, memories

    engine = engine_of(Path(sys.argv[1]), WordEmbedder(seconds=float(sys.argv[2])))
    if int(sys.argv[3]):
        engine.store.save_many(memories(int(sys.argv[3])))
    print(len(engine.recall("word1", 5)), flush=True)
"""


@pytest.mark.parametrize("seconds", [0.01, 5.0], ids=["slow", "stuck"])
def test_a_process_ends_soon_however_many_texts_wait_and_leaves_the_files(
    seconds: float, tmp_path: Path
) -> None:
    said, took = ended(RECALL, tmp_path, seconds, 3_000)
    assert said == "5"
    assert took < 8  # a second, and what a machine under load adds
    assert len(files_of(tmp_path)) == 1
    engine = engine_of(tmp_path, WordEmbedder())
    assert engine.store.count() == 3_000
    engine.recall("word1")
    assert rows_from_files(engine) == 3_000
    engine.settle()
    assert_right(engine, tmp_path)


def test_a_process_that_forks_while_its_index_is_looked_after_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(cache, "_LAST_CALL", 60.0)
    begun, go_on = threading.Event(), threading.Event()

    class Waiting(WordEmbedder):
        def embed(self, texts: Any) -> Any:
            if threading.current_thread().name == "retain-index" and os.getpid() == parent:
                begun.set()
                go_on.wait(60)
            return super().embed(texts)

    parent = os.getpid()
    embedder = Waiting()
    engine = engine_of(tmp_path, embedder)
    engine.store.save_many(memories(2_200))
    engine.recall("word1")
    assert begun.wait(60)

    def work(tell: Tell) -> None:
        engine.remember(Memory("child", "word1 of a child"))
        tell("child" in {each.memory.id for each in engine.recall("word1 child", 5_000)})
        engine.settle()
        tell(index_of(engine).made())
        engine.close()

    assert run(work) == [True, [2_201, 2_201]]
    go_on.set()
    assert "child" in {each.memory.id for each in engine.recall("word1 child", 5_000)}
    engine.settle()
    assert_right(engine, tmp_path)
    engine.close()


def test_indexes_that_leave_the_cache_while_threads_ask_are_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(indexes, "budget", 400_000)
    scopes = [Scope(user=str(number)) for number in range(4)]
    for scope in scopes:
        filled(tmp_path, 300, scope=scope)
    engines = [engine_of(tmp_path, scope=scope) for scope in scopes]
    failed: list[BaseException] = []

    def ask(first: int) -> None:
        try:
            for number in range(first, first + 24):
                engine = engines[number % 4]
                memory = engine.remember(Memory(content=f"tea{number} for all"))
                assert [each.memory.id for each in engine.recall(f"tea{number}")] == [memory.id]
                assert len(engine.recall("東京", 1_000)) == 300
        except BaseException as error:  # noqa: BLE001  # told below
            failed.append(error)

    threads = [threading.Thread(target=ask, args=(100 * n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    for engine in engines:
        assert_right(engine, tmp_path)
        engine.close()
