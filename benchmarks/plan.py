"""How much is measured, and what a part of it has at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from retain import AgentMemory, SQLiteStore

from .environments import Packages
from .measuring import Side, timed
from .stores import Stores
from .texts import Corpus

__all__ = ["QUICK", "Bench", "Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """Numbers of entries, and how often a thing is done."""

    sizes: tuple[int, int, int] = (100, 10_000, 100_000)
    file_sizes: tuple[int, int] = (100, 20_000)
    recall_sizes: tuple[int, ...] = (1_000, 10_000, 100_000)
    batch: int = 10_000
    knowledge: int = 5_000
    command: int = 10_000
    rounds: int = 200
    slow_rounds: int = 40  # of what takes a reference a quarter of a second
    starts: int = 15
    installs: bool = True
    search: int = 100_000
    grown: int = 1_000_000
    full_text: tuple[int, ...] = (10_000, 100_000)
    scopes: int = 1_000
    scope: int = 1_000
    touched: tuple[int, int] = (1_000, 10_000)
    touched_scope: int = 50
    requests: int = 100_000
    server_scopes: int = 100
    server_scope: int = 10_000


QUICK = Plan(
    sizes=(10, 20, 40),
    file_sizes=(10, 40),
    recall_sizes=(10, 40),
    batch=50,
    knowledge=30,
    command=50,
    rounds=3,
    slow_rounds=2,
    starts=2,
    installs=False,
    search=40,
    grown=80,
    full_text=(40,),
    scopes=3,
    scope=20,
    touched=(3, 6),
    touched_scope=5,
    requests=100,
    server_scopes=3,
    server_scope=20,
)
"""Everything once, at sizes too small to judge by: whether it runs."""


class Bench:
    """A place to work at: the plan, texts, a folder, and what is closed when the work is done.

    ``stores``, ``packages``: those of the whole run.
    """

    def __init__(
        self, plan: Plan, folder: Path, stack: ExitStack, stores: Stores, packages: Packages
    ) -> None:
        self.plan = plan
        self.stores = stores
        self.packages = packages
        self.folder = folder
        self.corpus = Corpus()
        self.keep = stack.enter_context
        self._number = count()

    def place(self) -> Path:
        """A new path."""
        return self.folder / str(next(self._number))

    def agent_memory(self, texts: Sequence[str]) -> AgentMemory:
        """An ``AgentMemory`` on a new SQLite store that holds ``texts``."""
        memory = self.keep(AgentMemory(SQLiteStore(self.place())))
        for start in range(0, len(texts), 10_000):
            memory.remember_many(texts[start : start + 10_000])
        return memory

    def remembering(self, remember: Callable[..., object], **options: object) -> Side:
        """A side that remembers the next text."""
        return lambda: timed(remember, self.corpus.text(), **options)

    def recalling(self, recall: Callable[[str], object], texts: Sequence[str]) -> Side:
        """A side that asks for one of ``texts`` after the other."""
        queries = [self.corpus.query(texts) for _ in range(100)]
        number = count()
        return lambda: timed(recall, queries[next(number) % len(queries)])
