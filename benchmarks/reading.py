"""What recalling costs as a memory grows, and what the disk costs whoever writes to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from .measuring import Figure, Side, interleaved, ms, timed
from .plan import Bench

__all__ = ["reading"]


def reading(bench: Bench) -> Iterator[Figure]:
    """For whoever looks for what dominates: figures without a bar."""
    yield _disk(bench, bench.place())
    sides: dict[str, Side] = {}
    for size in bench.plan.recall_sizes:
        texts = bench.corpus.texts(size)
        memory = bench.agent_memory(texts)
        recall = bench.recalling(memory.recall, texts)
        why = "reads every memory and builds the index"
        yield Figure(f"AgentMemory.recall, the first, at {size:,}", ms(recall()), why=why)
        sides[f"AgentMemory.recall, at {size:,}"] = recall

        sides[f"AgentMemory.recall, right after a remember, at {size:,}"] = _second(
            bench.remembering(memory.remember), recall
        )
    for name, seconds in interleaved(bench.plan.rounds, sides).items():
        yield Figure(name, ms(seconds))


def _second(first: Side, second: Side) -> Side:
    """A side that does both and tells the time of the second."""

    def side() -> float:
        first()
        return second()

    return side


def _disk(bench: Bench, path: Path) -> Figure:
    with path.open("wb", buffering=0) as file:

        def side() -> float:
            file.write(bytes(4096))
            return timed(os.fsync, file.fileno())

        took = interleaved(bench.plan.rounds, {"fsync": side})
    return Figure("fsync of 4 KB that were appended", ms(took["fsync"]))
