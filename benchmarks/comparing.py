"""The memories against what they were specified from, on the same work in the same minute."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from retain import KnowledgeMemory, make_recall_tool

from .environments import Packages, Uninstallable
from .measuring import Child, Figure, Side, interleaved, ms, tell
from .plan import Bench
from .scanning import Scanning

__all__ = ["comparing"]


@dataclass(frozen=True, slots=True)
class _Reference:
    """What is compared with: its name for the reader, its kind, its interpreter."""

    name: str
    kind: str
    python: str = sys.executable


_REWRITING = _Reference("the own baseline, a JSONL file rewritten per write", "rewriting")


def _selectools(packages: Packages) -> _Reference:
    """selectools where it is to be had, else a baseline of its design."""
    try:
        return _Reference(packages.title("selectools"), "selectools", packages.python("selectools"))
    except Uninstallable as error:
        tell(str(error))
        return _REWRITING


def comparing(bench: Bench) -> Iterator[Figure]:
    """Remembering and recalling with ``KnowledgeMemory``, recalling with ``AgentMemory``."""
    reference = _selectools(bench.packages)
    yield from _knowledge(bench, reference, persistent=False, bar=20)
    yield from _knowledge(bench, reference, persistent=True, bar=10)
    yield _agent(bench)


def _knowledge(
    bench: Bench, reference: _Reference, *, persistent: bool, bar: float
) -> Iterator[Figure]:
    size = bench.plan.knowledge
    texts = bench.corpus.texts(size)
    memory = bench.keep(KnowledgeMemory(bench.place()))
    memory.remember_many({"content": text, "persistent": persistent} for text in texts)
    child = bench.keep(Child(reference.kind, bench.place(), reference.python))
    child.call("fill", texts, persistent)
    yield _faster(
        bench.plan.slow_rounds,
        f"KnowledgeMemory.remember, {'persistent' if persistent else 'transient'}, at {size:,}",
        bench.remembering(memory.remember, persistent=persistent),
        lambda: child.call("remember", bench.corpus.text(), persistent),
        reference.name,
        bar,
    )
    if not persistent:
        recall = make_recall_tool(memory)
        yield _faster(
            bench.plan.slow_rounds,
            f"the recall tool, at {size:,}",
            bench.recalling(lambda query: recall(query=query), texts),
            lambda: child.call("recall", bench.corpus.query(texts)),
            reference.name,
            20,
            burst=5,
        )


def _agent(bench: Bench) -> Figure:
    size = bench.plan.knowledge
    texts = bench.corpus.texts(size)
    memory = bench.agent_memory(texts)
    scanning = Scanning(bench.place())
    scanning.remember(*texts)
    return _faster(
        bench.plan.rounds,
        f"AgentMemory.recall, SQLite, at {size:,}",
        bench.recalling(memory.recall, texts),
        bench.recalling(scanning.recall, texts),
        "the own baseline, codomyrmex's scan of a dict",
        20,
        burst=5,
    )


def _faster(
    rounds: int,
    name: str,
    ours: Side,
    theirs: Side,
    reference: str,
    bar: float,
    burst: int = 1,
) -> Figure:
    took = interleaved(rounds, {"retain": ours, "theirs": theirs}, burst=burst)
    why = f"{ms(took['retain'])} against {ms(took['theirs'])} of {reference}"
    return Figure.at_least(name, took["theirs"] / took["retain"], bar, "x", why)
