"""What is compared, each as a process that is driven by JSON lines on its standard input.

    python -m benchmarks.child KIND FOLDER

A line is ``[what, argument, …]``, the answer ``[seconds, what came of it]``. This file imports
nothing of retain's, for it also runs under the interpreter of another environment.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from .engines import ENGINES


class Selectools:
    """``KnowledgeMemory`` of selectools with its default store and its ``recall`` tool."""

    def __init__(self, folder: Path) -> None:
        from selectools.knowledge import KnowledgeMemory
        from selectools.toolbox.memory_tools import make_recall_tool

        self.folder = folder
        # It keeps 50 entries unless told otherwise, and drops the rest.
        self.memory: Any = KnowledgeMemory(directory=str(folder), max_entries=1_000_000)
        self.tool: Any = make_recall_tool(self.memory)

    def fill(self, texts: list[str], persistent: bool) -> None:
        """Write at once what ``remember`` would have written in as many whole files."""
        from selectools.knowledge import KnowledgeEntry

        entries = [KnowledgeEntry(content=text, persistent=persistent) for text in texts]
        self.memory.store._save_all(entries)
        _append(self.folder / "MEMORY.md", texts if persistent else [])

    def remember(self, text: str, persistent: bool) -> None:
        self.memory.remember(text, persistent=persistent)

    def recall(self, query: str) -> str:
        answer: str = self.tool.execute({"query": query, "limit": "5"})
        return answer


class Rewriting:
    """The same design without the package: a file of JSON lines, read and rewritten per write.

    For where the package can't be installed. As there, only the 500 most important entries
    are searched.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "entries.jsonl"

    def _read(self) -> list[dict[str, Any]]:
        with self.path.open(encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def _write(self, entries: list[dict[str, Any]]) -> None:
        _replace(self.path, "".join(json.dumps(entry) + "\n" for entry in entries))

    def fill(self, texts: list[str], persistent: bool) -> None:
        self._write([_entry(text, persistent) for text in texts])
        _append(self.folder / "MEMORY.md", texts if persistent else [])

    def remember(self, text: str, persistent: bool) -> None:
        self._write([*self._read(), _entry(text, persistent)])
        _append(self.folder / "today.log", [text])
        _append(self.folder / "MEMORY.md", [text] if persistent else [])

    def recall(self, query: str) -> list[dict[str, Any]]:
        window = sorted(self._read(), key=lambda entry: -entry["importance"])[:500]
        words = query.lower().split()
        scored = [
            (sum(word in entry["content"].lower() for word in words), entry) for entry in window
        ]
        found = [pair for pair in scored if pair[0]]
        found.sort(key=lambda pair: (-pair[0], -pair[1]["importance"]))
        return [entry for _, entry in found[:5]]


def _entry(text: str, persistent: bool) -> dict[str, Any]:
    now = time.time()
    return {
        "id": uuid.uuid4().hex,
        "content": text,
        "category": "general",
        "importance": 0.5,
        "persistent": persistent,
        "metadata": {},
        "created_at": now,
        "updated_at": now,
    }


def _replace(path: Path, text: str) -> None:
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _append(path: Path, texts: list[str]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"- [general] {text}\n" for text in texts)


def main() -> None:
    """Serve one side until standard input ends."""
    kinds: dict[str, type[Any]] = {"selectools": Selectools, "rewriting": Rewriting, **ENGINES}
    side = kinds[sys.argv[1]](Path(sys.argv[2]))
    answers, sys.stdout = sys.stdout, sys.stderr  # for whatever a package prints
    for line in sys.stdin:
        what, *args = json.loads(line)
        start = time.perf_counter()
        result = getattr(side, what)(*args)
        seconds = time.perf_counter() - start
        print(json.dumps([seconds, result]), file=answers, flush=True)
    if hasattr(side, "close"):
        side.close()


if __name__ == "__main__":
    main()
