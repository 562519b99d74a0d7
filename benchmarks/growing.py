"""What recalling costs as a store grows, in time and in memory, and what a new process pays."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from .environments import Start, start
from .measuring import Child, Figure, interleaved, ms, tell
from .plan import Bench
from .search import ahead_of_fts5, asking

__all__ = ["growing", "opening", "scopes", "touching"]

_NO_PROC = "there is no /proc here to read it from"

_STORE = {"memory.db", "memory.db-wal"}  # the rest beside it is derived
_OPEN = """
import json, sys, time
def lap():
    global began
    began, before = time.perf_counter(), began
    return began - before
began = time.perf_counter()
from retain import AgentMemory, SQLiteStore
laps = {"importing": lap()}
with AgentMemory(SQLiteStore(sys.argv[1])) as memory:
    laps["opening"] = lap()
    found = memory.recall(sys.argv[2])
    laps["recalling"] = lap()
laps["closing"] = lap()
print(json.dumps([found[0].memory.content, laps]))
"""


def opening(bench: Bench) -> Iterator[Figure]:
    """A process that opens a store, recalls once, prints the best and closes it."""
    filled = bench.stores.of(bench.plan.search)
    in_place, without = bench.place(), bench.place()
    shutil.copytree(filled.folder, in_place)
    bytecode = bench.place()

    def process(folder: Path, number: int) -> Start:
        query = filled.queries[number % len(filled.queries)]
        return start(["-c", _OPEN, str(folder / "memory.db"), query], bytecode)

    process(in_place, 0)  # compiles
    indexed: list[Start] = []
    bare: list[Start] = []
    for number in range(bench.plan.starts):
        indexed.append(process(in_place, number))
        if number < 3:
            shutil.rmtree(without, ignore_errors=True)
            without.mkdir()
            for file in filled.folder.iterdir():
                if file.name in _STORE:
                    shutil.copy(file, without)
            bare.append(process(without, number))
    name = f"opening a store and the first recall, at {filled.size:,}"
    wall = median(run.wall for run in indexed)
    yield Figure.at_most(name, 1_000 * wall, 300, "ms", _laps(indexed))
    yield Figure(f"{name}, no index", ms(median(run.wall for run in bare)), why=_laps(bare))


def _laps(runs: Sequence[Start]) -> str:
    laps = [json.loads(run.printed)[1] for run in runs]
    parts = {name: ms(median(lap[name] for lap in laps)) for name in laps[0]}
    least = f"least {ms(min(run.wall for run in runs))}, of the processor "
    least += ms(median(run.processor for run in runs))
    return f"{least}; " + ", ".join(f"{name} {taken}" for name, taken in parts.items())


def growing(bench: Bench) -> Iterator[Figure]:
    """One scope that grows tenfold: the time of a recall, the memory of the process."""
    small, large = bench.stores.of(bench.plan.search), bench.stores.of(bench.plan.grown)
    few, many = bench.keep(small.opened()), bench.keep(large.opened())
    first = many.call("recall", large.queries[-1])
    took = interleaved(
        bench.plan.slow_rounds,
        {"few": asking(few, small.queries), "many": asking(many, large.queries)},
        burst=3,
    )
    yield Figure.at_most(
        f"AgentMemory.recall, at {large.size:,} and at {small.size:,}",
        took["many"] / took["few"],
        12.0,
        "x",
        f"{ms(took['many'])} against {ms(took['few'])}",
    )
    name = f"AgentMemory.recall, the first of a process, at {large.size:,}"
    yield Figure(name, ms(first))
    peak, unit = many.ask("memory", "VmHWM"), "MB"
    name = f"memory of a process that recalls, at {large.size:,}"
    if peak is None or large.peak is None:
        yield Figure.missing(name, "<= 1,500 MB", _NO_PROC)
    else:
        yield Figure.at_most(name, peak, 1_500, unit, "at its peak; opened with index in place")
        name = f"memory of a process that remembers, at {large.size:,}"
        yield Figure(name, f"{large.peak:,.0f} MB", why="at its peak; made the index too")
    yield ahead_of_fts5(bench, large, many)


def scopes(bench: Bench) -> Iterator[Figure]:
    """One scope among many of its size, against the same alone."""
    number, size = bench.plan.scopes, bench.plan.scope
    users = [f"user {each}" for each in range(number)]
    crowd, single = bench.place(), bench.place()
    tell(f"  {number:,} scopes of {size:,}")
    with Child("retain", crowd) as many, Child("retain", single) as alone:
        for user in users:
            texts = bench.corpus.texts(size)
            many.call("add", texts, user)
            if user == users[number // 2]:
                chosen, sample = user, texts
                alone.call("add", texts, user)
    queries = [bench.corpus.query(sample) for _ in range(100)]
    sides = {
        name: asking(bench.keep(Child("retain", place)), queries, "recall", chosen)
        for name, place in (("among", crowd), ("alone", single))
    }
    took = interleaved(bench.plan.rounds, sides, burst=5)
    yield Figure.at_most(
        f"AgentMemory.recall, a scope of {size:,} among {number:,} and alone",
        took["among"] / took["alone"],
        1.5,
        "x",
        f"{ms(took['among'])} against {ms(took['alone'])}",
    )


def touching(bench: Bench) -> Iterator[Figure]:
    """Scopes touched in turn, their memories kept open: what the process takes for them."""
    few, many = bench.plan.touched
    size = bench.plan.touched_scope
    users = [f"user {each}" for each in range(many)]
    tell(f"  {many:,} scopes of {size:,}")
    place = bench.place()
    with Child("retain", place) as writer:
        for user in users:
            texts = bench.corpus.texts(size)
            writer.call("add", texts, user)
    query = bench.corpus.query(texts)
    child = bench.keep(Child("retain", place))
    resident = []
    for some in (users[:1], users[1:few], users[few:]):  # the first one imports what it needs
        child.call("touch", some, query)
        resident.append(child.ask("memory", "VmRSS"))
    held, taken, budget = child.ask("indexes")
    name = f"memory that {many:,} scopes take, touched in turn"
    if None in resident:
        yield Figure.missing(name, f"<= {budget:,.0f} MB", _NO_PROC)
        return
    before, after_few, after_many = resident
    why = (
        f"of {size:,} memories each; {after_few - before:,.0f} MB after {few:,} of them; "
        f"{held:,.0f} indexes held, which say that they take {taken:,.0f} MB"
    )
    yield Figure.at_most(name, after_many - before, round(budget), "MB", why)
