"""The agentic specification, done as it reads: what ``AgentMemory`` is compared with.

The package that it was written for is not in the package index.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

__all__ = ["Scanning"]


class Importance(Enum):
    """As the agentic specification has it."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4


@dataclass
class Memory:
    """As the agentic specification has it, without what is not measured."""

    content: str
    importance: Importance = Importance.MEDIUM
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created_at: float = field(default_factory=time.time)

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "importance": self.importance.value}


@dataclass
class Result:
    """As the agentic specification has it."""

    memory: Memory
    relevance: float
    recency: float
    importance: float

    @property
    def combined(self) -> float:
        return 0.5 * self.relevance + 0.3 * self.recency + 0.2 * self.importance


class Scanning:
    """What the agentic specification describes, done as it reads.

    Memories in a dict, a JSON file rewritten per write; per recall every memory is scored by
    the tokens it shares with the query, by its age and its importance.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.memories: dict[str, Memory] = {}

    def remember(self, *texts: str) -> None:
        """Take the texts in, and write the file once."""
        for memory in map(Memory, texts):
            self.memories[memory.id] = memory
        data = json.dumps([each.to_dict() for each in self.memories.values()])
        self.path.write_text(data, encoding="utf-8")

    def recall(self, query: str) -> list[Result]:
        """The ten best."""
        now = time.time()
        tokens = set(query.lower().split())
        results = []
        for memory in self.memories.values():
            shared = tokens & set(memory.content.lower().split())
            if shared:
                recency = 0.5 ** ((now - memory.created_at) / 604_800)
                importance = memory.importance.value / 4
                results.append(Result(memory, len(shared) / len(tokens), recency, importance))
        results.sort(key=lambda result: result.combined, reverse=True)
        return results[:10]
