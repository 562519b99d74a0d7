"""The indexes of a process: the budget, and the thread in the background."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faults.workers import run
from retain import Memory
from retain.search.cache import Background, IndexCache

TEXTS = [Memory(f"m{number}", f"tea number {number} with milk") for number in range(300)]


class Owner:
    pass


def filled(cache: IndexCache, owner: object, scope: str) -> None:
    index = cache.index(owner, scope, None)
    with index.lock:
        index.apply([], TEXTS, 300)
    cache.used(owner, scope, index)


# -- the budget ----------------------------------------------------------------------------


def test_the_index_not_used_for_longest_goes_when_the_budget_is_spent():
    cache, owner = IndexCache(), Owner()
    filled(cache, owner, "a")
    cache.budget = cache.nbytes * 5 // 2
    filled(cache, owner, "b")
    cache.index(owner, "a", None)  # used again
    filled(cache, owner, "c")
    assert [scope for scope, _ in cache.of(owner)] == ["a", "c"]
    assert cache.nbytes <= cache.budget
    assert len(cache.index(owner, "b", None)) == 0


def test_an_index_larger_than_the_budget_stays_while_it_is_in_use():
    cache, owner = IndexCache(budget=1), Owner()
    filled(cache, owner, "a")
    assert len(cache.index(owner, "a", None)) == 300
    filled(cache, owner, "b")
    assert [scope for scope, _ in cache.of(owner)] == ["b"]


def test_indexes_go_with_their_owner():
    cache, owner, other = IndexCache(), Owner(), Owner()
    filled(cache, owner, "a")
    filled(cache, other, "a")
    filled(cache, other, "b")
    del other
    gc.collect()
    assert len(cache) == 1
    assert cache.nbytes == cache.of(owner)[0][1].nbytes
    cache.forget(owner)
    assert len(cache) == 0
    assert cache.nbytes == 0


def test_an_index_that_went_while_it_was_in_use_does_not_count():
    cache, owner = IndexCache(budget=1), Owner()
    old = cache.index(owner, "a", None)
    filled(cache, owner, "b")
    cache.index(owner, "a", None)
    old.apply([], TEXTS, 300)
    cache.used(owner, "a", old)
    assert cache.nbytes == sum(index.nbytes for _, index in cache.of(owner) if len(index))


def test_indexes_that_go_while_other_threads_ask_are_found_again():
    cache, owner = IndexCache(budget=200_000), Owner()
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            for number in range(60):
                scope = str(number % 7)
                index = cache.index(owner, scope, None)
                with index.lock:
                    if index.empty:
                        index.apply([], TEXTS, 300)
                    assert len(index) == 300
                    assert len(index.posted("milk").rows) == 300
                cache.used(owner, scope, index)
        except BaseException as error:  # noqa: BLE001  # told below
            failed.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert cache.nbytes == sum(index.nbytes for _, index in cache.of(owner) if len(index))


MANY_SCOPES = """
import os, sys
from retain import InMemoryStore, Memory, Scope
from retain.engine import Engine
from retain.indexing import indexes

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

scopes, budget = int(sys.argv[1]), int(sys.argv[2])
store = InMemoryStore()
def texts(scope):
    return [
        Memory(content=" ".join(f"word{(scope * 31 + n * 7 + w * w) % 5000}" for w in range(15)))
        for n in range(50)
    ]
stores = [store.scoped(Scope(user=str(number))) for number in range(scopes)]
for number, each in enumerate(stores):
    each.save_many(texts(number))
engines = [Engine(each) for each in stores]
engines[0].recall("word7")
indexes.budget = budget
before = resident()
most = 0
for engine in engines:
    assert engine.recall("word7 word8", 3) is not None
    most = max(most, resident() - before)
assert len(indexes) > 10
print(most, indexes.nbytes)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is told on Linux only")
@pytest.mark.parametrize(
    "scopes", [600, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.thorough])]
)
def test_scopes_touched_in_turn_stay_within_the_budget(scopes: int):
    budget = 8 * 2**20
    command = [sys.executable, "-c", MANY_SCOPES, str(scopes), str(budget)]
    most, said = map(int, subprocess.run(command, capture_output=True, check=True).stdout.split())
    assert said <= budget
    # What a process takes beside: results, compiled patterns, memory that is not given back.
    assert most < 1.5 * budget + 12 * 2**20


# -- in the background ---------------------------------------------------------------------


class Steps:
    """A job of so many steps."""

    def __init__(self, count: int, step: Callable[[Steps], Any], owner: object = None) -> None:
        self.owner, self.subject = owner, self
        self.ending = self.optional = self.given_up = False
        self.count, self._step = count, step
        self.ends = 0

    def step(self) -> bool:
        if self.ending:
            self.ends += 1
            return False
        self.count -= 1
        self._step(self)
        return self.count > 0


def wait_for(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.002)


def test_jobs_take_turns():
    background, done = Background(), []
    begin = threading.Event()

    def one(job: Steps) -> None:
        begin.wait()
        done.append("one")

    background.add(Steps(3, one))
    background.add(Steps(3, lambda job: done.append("two")))
    begin.set()
    wait_for(lambda: len(done) == 6)
    assert done == ["one", "two"] * 3


def test_a_thread_lives_only_while_there_are_jobs():
    background, done = Background(), []
    for _ in range(2):
        background.add(Steps(1, done.append))
        wait_for(lambda: background._thread is None)
    assert len(done) == 2


def test_one_of_two_jobs_with_one_subject_is_done():
    background, done = Background(), []
    begin = threading.Event()
    background.add(Steps(1, lambda job: begin.wait()))
    first, second = Steps(1, done.append), Steps(1, done.append)
    second.subject = first.subject
    background.add(first)
    background.add(second)
    begin.set()
    wait_for(lambda: background._thread is None)
    assert done == [first]


def test_a_job_that_fails_is_told_of_and_others_go_on(caplog: pytest.LogCaptureFixture):
    background, done = Background(), []

    def fail(job: Steps) -> None:
        raise ZeroDivisionError("a fault")

    with caplog.at_level(logging.ERROR):
        background.add(Steps(2, fail))
        background.add(Steps(2, done.append))
        wait_for(lambda: background._thread is None)
    assert len(done) == 2
    assert "a fault" in caplog.text


def test_who_finishes_waits_for_the_step_under_way_and_ends_what_waits():
    background, owner = Background(), Owner()
    under_way, go_on = threading.Event(), threading.Event()

    def slow(job: Steps) -> None:
        under_way.set()
        go_on.wait(60)

    running, waiting = Steps(1_000, slow, owner), Steps(1_000, slow, owner)
    others = Steps(1, lambda job: None, Owner())
    for job in (running, waiting, others):
        background.add(job)
    assert under_way.wait(60)
    threading.Timer(0.05, go_on.set).start()
    background.finish(owner)
    assert go_on.is_set()
    assert (running.ends, running.count) == (1, 999)
    assert (waiting.ends, waiting.count) == (1, 1_000)
    wait_for(lambda: background._thread is None)
    assert (others.ends, others.count) == (0, 0)


def test_a_step_that_can_be_left_is_left_after_a_while():
    background, owner, go_on = Background(), Owner(), threading.Event()

    def hang(job: Steps) -> None:
        job.optional = True
        go_on.wait(60)

    job = Steps(1_000, hang, owner)
    background.add(job)
    wait_for(lambda: job.optional)
    begun = time.monotonic()
    background.finish(owner)
    assert time.monotonic() - begun < 8
    assert job.given_up
    go_on.set()
    wait_for(lambda: background._thread is None)
    assert job.count == 999


def test_a_child_does_its_own_part_of_what_waited():
    background, begin = Background(), threading.Event()
    done: list[int] = []

    def note(job: Steps) -> None:
        if os.getpid() == parent:
            begin.wait(60)
        done.append(os.getpid())

    parent = os.getpid()
    background.add(Steps(1, note))
    background.add(Steps(1, note))

    def look(tell: Callable[[Any], None]) -> None:
        background.finish()  # nothing that is its parent's is waited for
        background.add(Steps(1, note))
        wait_for(lambda: len(done) == 3)
        tell(set(done) == {os.getpid()})

    assert run(look) == [True]
    begin.set()
    wait_for(lambda: background._thread is None)
    assert done == [parent, parent]


def test_an_index_is_kept_by_nothing_but_the_cache():
    cache, owner = IndexCache(), Owner()
    filled(cache, owner, "a")
    index = weakref.ref(cache.index(owner, "a", None))
    cache.forget(owner)
    gc.collect()
    assert index() is None
