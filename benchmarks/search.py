"""Recalling, side by side with other searches of the same texts.

Every side is a process of its own on one core, which times itself; they take turns with the
same queries (see ``engines.py`` for what each one does).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from .environments import Uninstallable
from .measuring import Child, Figure, Side, interleaved, ms
from .plan import Bench
from .stores import Filled

__all__ = ["asking", "compared", "full_text", "hybrid", "others", "words", "writes"]


def asking(child: Child, queries: Sequence[str], do: str = "recall", *args: object) -> Side:
    """A side that asks ``child`` one of ``queries`` after the other; it finds something at all."""
    assert child.ask(do, queries[0], *args)
    number = count()
    return lambda: child.call(do, queries[next(number) % len(queries)], *args)


def compared(bench: Bench, filled: Filled, kind: str, python: str | None = None) -> Child:
    """Another search, on the texts that ``filled`` has."""
    child = bench.keep(Child(kind, bench.place(), *([python] if python else [])))
    for texts in filled.batches():
        child.call("add", texts)
    child.call("ready", *([filled.queries] if kind in ("chromadb", "lancedb") else []))
    return child


def words(bench: Bench) -> Iterator[Figure]:
    """``AgentMemory.recall`` against a bare query of tantivy."""
    size = bench.plan.search
    name, bar = f"AgentMemory.recall and tantivy, at {size:,}", 4.0
    try:
        python, title = bench.packages.python("tantivy"), bench.packages.title("tantivy")
    except Uninstallable as error:
        yield Figure.missing(name, f"<= {bar:g} x", str(error))
        return
    filled = bench.stores.of(size)
    child = compared(bench, filled, "tantivy", python)
    took = interleaved(
        bench.plan.rounds,
        {
            "retain": asking(bench.keep(filled.opened()), filled.queries),
            "bare": asking(child, filled.queries),
            "counting": asking(child, filled.queries, "recall", True),
        },
        burst=5,
    )
    why = f"{ms(took['retain'])} against {ms(took['bare'])} of {title}"
    counted = f"{ms(took['counting'])} with all matches counted, its default"
    yield Figure.at_most(name, took["retain"] / took["bare"], bar, "x", f"{why}, {counted}")


def hybrid(bench: Bench) -> Iterator[Figure]:
    """``VectorStoreMemory`` with the embedder that comes with the install."""
    size = bench.plan.search
    filled, lexical = bench.stores.of(size, "hybrid"), bench.stores.of(size)
    took = interleaved(
        bench.plan.rounds,
        {
            "hybrid": asking(bench.keep(filled.opened()), filled.queries),
            "words": asking(bench.keep(lexical.opened()), lexical.queries),
        },
        burst=5,
    )
    why = f"AgentMemory.recall takes {ms(took['words'])}"
    name = f"VectorStoreMemory.recall, at {size:,}"
    yield Figure.at_most(name, 1_000 * took["hybrid"], 10, "ms", why)


def writes(bench: Bench) -> Iterator[Figure]:
    """A recall of what was remembered just before, against the same where nothing is written."""
    filled = bench.stores.of(bench.plan.search)
    still = bench.keep(filled.opened())
    written = bench.keep(filled.opened(bench.place()))
    text, query = "", ""

    def undisturbed() -> float:
        nonlocal text, query
        text = bench.corpus.text()
        query = bench.corpus.query([text])
        return still.call("recall", query)

    def after_a_write() -> float:
        written.call("remember", text)
        seconds, found = written.both("recall", query)
        assert text in found, f"{text!r} was remembered, and is not recalled by {query!r}"
        return seconds

    took = interleaved(bench.plan.rounds, {"still": undisturbed, "written": after_a_write})
    yield Figure.at_most(
        f"AgentMemory.recall, of what was just remembered, at {filled.size:,}",
        took["written"] / took["still"],
        2.0,
        "x",
        f"{ms(took['written'])} against {ms(took['still'])} without writes; "
        f"found {bench.plan.rounds:,} times of {bench.plan.rounds:,}",
    )


def full_text(bench: Bench) -> Iterator[Figure]:
    """``AgentMemory.recall`` against SQLite's FTS5 at every size."""
    for size in bench.plan.full_text:
        filled = bench.stores.of(size)
        yield ahead_of_fts5(bench, filled, bench.keep(filled.opened()))


def ahead_of_fts5(bench: Bench, filled: Filled, retain: Child) -> Figure:
    """How many times as fast ``retain``, which has ``filled`` open, is as FTS5."""
    sides = {
        "retain": asking(retain, filled.queries),
        "fts5": asking(compared(bench, filled, "fts5"), filled.queries),
    }
    took = interleaved(bench.plan.slow_rounds, sides)
    return Figure.at_least(
        f"AgentMemory.recall and SQLite FTS5, at {filled.size:,}",
        took["fts5"] / took["retain"],
        1.0,
        "x",
        f"{ms(took['retain'])} against {ms(took['fts5'])}",
    )


def others(bench: Bench) -> Iterator[Figure]:
    """What other stores for agents take for their default query, without a bar."""
    size = bench.plan.search
    asked = {
        "chromadb": {"by_vector": "query by vector, approximate"},
        "lancedb": {"by_words": "full-text query", "by_vector": "query by vector, exact"},
    }
    names = {
        (package, do): f"{package}, {title}, at {size:,}"
        for package, found in asked.items()
        for do, title in found.items()
    }
    sides: dict[str, Side] = {}
    whys: dict[str, str] = {}
    for package, found in asked.items():
        try:
            python, title = bench.packages.python(package), bench.packages.title(package)
        except Uninstallable as error:
            whys |= {names[package, do]: str(error) for do in found}
            continue
        filled = bench.stores.of(size)
        child = compared(bench, filled, package, python)
        for do in found:
            name = names[package, do]
            sides[name], whys[name] = asking(child, filled.queries, do), title
            if do == "by_vector":
                whys[name] += ", the query's 256 numbers being there"
    yield from _beside(bench, sides, whys)


def _beside(bench: Bench, sides: Mapping[str, Side], whys: Mapping[str, str]) -> Iterator[Figure]:
    """A line for each of ``whys``; what AgentMemory.recall takes beside, for those measured."""
    if not sides:
        yield from (Figure.missing(name, "", why) for name, why in whys.items())
        return
    filled = bench.stores.of(bench.plan.search)
    ours = asking(bench.keep(filled.opened()), filled.queries)
    took = interleaved(bench.plan.slow_rounds, {"retain": ours, **sides}, burst=3)
    for name, why in whys.items():
        if name in took:
            ratio = took[name] / took["retain"]
            beside = f"{ratio:.1f} x the {ms(took['retain'])} of AgentMemory.recall"
            yield Figure(name, ms(took[name]), why=f"{beside}; {why}")
        else:
            yield Figure.missing(name, "", why)
