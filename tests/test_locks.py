"""Locks between threads and processes, and what a fork leaves of them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from retain import StoreBusy, StoreFailed
from retain.locks import FileLock, ThreadLock

HOLDER = """
import sys
from pathlib import Path
from retain.locks import FileLock
with FileLock(Path(sys.argv[1])).held():
    print("held", flush=True)
    sys.stdin.read()
"""

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")


def exit_code_of_child(work) -> int:
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def acquired_elsewhere(lock: FileLock) -> bool:
    """Whether another thread gets it at once."""
    found = []

    def attempt() -> None:
        try:
            with lock.held(timeout=0.02):
                found.append(True)
        except StoreBusy:
            found.append(False)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return found[0]


def test_a_lock_that_another_process_holds_is_busy_until_that_one_ends(tmp_path: Path):
    path = tmp_path / "lock"
    pipe = subprocess.PIPE
    code = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(code, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        held = FileLock(path).held(timeout=0.05)
        with pytest.raises(TimeoutError, match="another process has held") as caught, held:
            pytest.fail("two hold one lock")
        assert isinstance(caught.value, StoreBusy)
        process.kill()  # as a crash would: nothing is left to be cleaned up
        process.wait()
        with FileLock(path).held(timeout=30) as is_held:
            assert is_held


def test_a_thread_may_hold_it_twice_and_others_wait(tmp_path: Path):
    lock = FileLock(tmp_path / "lock")
    with lock.held():
        with lock.held():
            assert not acquired_elsewhere(lock)
        assert not acquired_elsewhere(lock)
    assert acquired_elsewhere(lock)


def test_it_is_let_go_when_the_work_fails(tmp_path: Path):
    lock = FileLock(tmp_path / "lock")
    with pytest.raises(RuntimeError), lock.held():
        raise RuntimeError
    assert acquired_elsewhere(lock)


def test_two_locks_on_one_path_exclude_each_other(tmp_path: Path):
    with FileLock(tmp_path / "lock").held():
        assert not acquired_elsewhere(FileLock(tmp_path / "lock"))


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_the_file_is_its_owners_only(tmp_path: Path):
    with FileLock(tmp_path / "lock").held():
        assert (tmp_path / "lock").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("required", [True, False])
def test_a_place_that_is_not_there_is_an_error_that_names_it(tmp_path: Path, required: bool):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreFailed, match="file"), FileLock(tmp_path / "file" / "lock").held():
        pytest.fail("held nothing")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes anywhere")
def test_a_reader_goes_on_without_it_where_it_may_not_write(tmp_path: Path):
    tmp_path.chmod(0o500)
    try:
        with FileLock(tmp_path / "lock").held(required=False) as held:
            assert not held
        with pytest.raises(StoreFailed), FileLock(tmp_path / "lock").held():
            pytest.fail("held nothing")
    finally:
        tmp_path.chmod(0o700)


@forks
def test_a_child_does_not_inherit_a_lock_on_a_file(tmp_path: Path):
    lock = FileLock(tmp_path / "lock")

    def refused() -> bool:
        try:
            with lock.held(timeout=0.05):
                return False
        except StoreBusy:
            return True

    with lock.held():
        assert exit_code_of_child(refused) == 0
        assert not acquired_elsewhere(lock)  # the child's end let go of nothing

    def taken() -> bool:
        with lock.held(timeout=5):
            return True

    assert exit_code_of_child(taken) == 0


@forks
def test_a_fork_waits_for_a_lock_between_threads_and_the_child_begins_with_a_free_one():
    lock = ThreadLock()
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            holding.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait()

    def free() -> bool:
        with lock, lock:
            return True

    threading.Timer(0.1, done.set).start()
    assert exit_code_of_child(free) == 0
    assert done.is_set()
    thread.join()


def test_threads_take_turns():
    lock = ThreadLock()
    counts = [0]

    def work() -> None:
        for _ in range(200):
            with lock:
                before = counts[0]
                threading.Event().wait(0)
                counts[0] = before + 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [800]
