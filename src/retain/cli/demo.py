"""``retain demo``: the main job, on texts in seven languages, before one's eyes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import clock
from ..errors import InvalidValue, StoreFailed
from .app import App, command

if TYPE_CHECKING:
    from ..models import Memory

__all__ = ["demo"]

_FACTS = (
    ("health", "Ann is allergic to peanuts"),
    ("travel", "Ann prefers trains to planes, and a seat by the window"),
    ("family", "Ann's daughter Mia turns six on 12 May"),
    ("home", "The router's address is 192.168.7.1"),
)
_TURNS = (  # days ago, who said it, what
    (6, "user", "Der Zug nach Köln fährt am Freitag um 7:42 Uhr von Gleis 9"),
    (5, "user", "四月に家族で東京へ行きます。ホテルは新宿です。"),
    (4, "assistant", "Entendido: la reunión con el arquitecto es el martes a las diez"),
    (3, "user", "مفتاح الشقة عند جارتنا سارة"),
    (2, "user", "Бабушка просила привезти клубничное варенье"),
    (1, "user", "On retrouve Élodie au café de la gare à 18 h"),
    (0, "assistant", "I have ordered a strawberry cake for Mia's birthday 🎂"),
)
_QUESTIONS = (
    "what is Ann allergic to?",
    "Züge nach Köln",
    "東京",
    "варенье",
    "مفتاح",
    "Mia's birthday",
)


@command()
@click.option("--keep", type=click.Path(), metavar="DIR", help="Do it in DIR, and leave it there.")
def demo(app: App, /, keep: str | None) -> None:
    """Show the main job: remember, restart, recall, correct, forget.

    In a directory of its own, which is deleted at the end. Nothing else is touched.
    """
    from tempfile import TemporaryDirectory

    from ..files import real_path

    with ExitStack() as stack:
        if keep is None:
            place = Path(stack.enter_context(TemporaryDirectory(prefix="retain-demo-")))
        else:
            place = real_path(keep)
            if place.exists():
                raise InvalidValue(f"{place} is there already; name a new directory")
        stage = _Stage(app, place / "memory" if keep is None else place)
        _remember(stage)
        _recall(stage)
        _correct(stage)
        _context(stage)
        _forget(stage)
        _close(stage, kept=keep is not None)


class _Stage:
    """Tells what is done and does it, mostly as a person would: a command, a process."""

    def __init__(self, app: App, place: Path) -> None:
        self.out = app.out
        self.place = place
        self._steps: list[dict[str, Any]] = []

    def say(self, text: str) -> None:
        """What comes next."""
        self._steps.append({"step": text})
        if not self.out.as_json:
            bold = self.out.coloured(text, "bold")
            sys.stdout.write(f"\n{bold}\n" if len(self._steps) > 1 else f"{bold}\n")
            sys.stdout.flush()

    def show(self, text: str) -> None:
        """What came of it."""
        self._steps[-1].setdefault("output", []).extend(text.splitlines())
        if not self.out.as_json:
            for line in text.splitlines():
                self.out.line(f"  {line}")
            sys.stdout.flush()

    def run(self, *words: str, expect: int = 0) -> None:
        """Run ``retain`` with these words in another process, and show both sides."""
        self.run_all([words], expect)

    def run_all(self, commands: Sequence[tuple[str, ...]], expect: int = 0) -> None:
        """Run several at the same time, and show them one after the other."""
        import subprocess

        # what the caller's environment names is not the demo's
        env = {name: value for name, value in os.environ.items() if not name.startswith("RETAIN_")}
        runs = [
            subprocess.Popen(
                [sys.executable, "-m", "retain", "--dir", str(self.place), *words],
                env={**env, "PYTHONUTF8": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
            )
            for words in commands
        ]
        for words, run in zip(commands, runs, strict=True):
            shown = f"$ retain {' '.join(map(_quoted, words))}"
            self._steps[-1].setdefault("commands", []).append(shown)
            if not self.out.as_json:
                self.out.line(f"  {shown}", "cyan")
            output, errors = run.communicate()
            if run.returncode != expect:
                raise StoreFailed(f"{shown} ended with {run.returncode}: {errors.strip()}")
            self.show(output)

    def end(self) -> None:
        if self.out.as_json:
            self.out.json({"directory": str(self.place), "steps": self._steps})


def _quoted(word: str) -> str:
    """A word as one would type it in a shell."""
    if re.fullmatch(r"[\w@%+=:,./-]+", word):
        return word
    return f'"{word}"'  # none of the demo's words has anything that would need more


def _remember(stage: _Stage) -> None:
    from ..memories.knowledge import KnowledgeMemory
    from ..models import Memory, MemoryType

    now = clock.now()
    stage.say(f"Facts for good and a week of conversation, remembered by process {os.getpid()}:")
    facts = [
        Memory(content=text, category=category, memory_type=MemoryType.SEMANTIC, persistent=True)
        for category, text in _FACTS
    ]
    turns = [
        Memory(
            content=text,
            category="conversation",
            metadata={"role": role},
            created_at=now - days * clock.DAY,
        )
        for days, role, text in _TURNS
    ]
    with KnowledgeMemory(stage.place) as memory:
        memory.remember_many([*facts, *turns])
    for each in [*facts, *turns]:
        stage.show(_line(each))


def _line(memory: Memory) -> str:
    return f"{clock.iso(memory.created_at)[:10]}  {memory.category}  {memory.content}"


def _recall(stage: _Stage) -> None:
    stage.say("That memory is closed. New processes, which know nothing but the directory:")
    stage.run_all([("recall", question, "-k", "1") for question in _QUESTIONS])


def _id_of(stage: _Stage, text: str) -> str:
    from ..memories.knowledge import KnowledgeMemory

    with KnowledgeMemory(stage.place) as memory:
        return memory.search(text, 1)[0].memory.id[:8]


def _correct(stage: _Stage) -> None:
    stage.say("The router has moved. A correction keeps the memory and changes what it says:")
    stage.run("update", _id_of(stage, "router address"), "The router's address is 192.168.9.1")


def _context(stage: _Stage) -> None:
    stage.say("What an agent is given before each conversation:")
    stage.run("context")


def _forget(stage: _Stage) -> None:
    stage.say("Forgetting is for good: the store, MEMORY.md and the logs let go of it.")
    stage.run("forget", _id_of(stage, "architect reunión"))
    stage.run("recall", "arquitecto", expect=1)
    files = [path for path in sorted(stage.place.rglob("*")) if path.is_file()]
    left = [path.name for path in files if b"arquitecto" in path.read_bytes()]
    found = f"still in {', '.join(left)}" if left else f"in none of the {len(files)} files"
    stage.show(f"(nothing found; the word is {found} of the directory)")


def _close(stage: _Stage, kept: bool) -> None:
    ending = "and stays there" if kept else "and is now deleted"
    stage.say(f"All of it was in {stage.place}, {ending}:")
    for path in sorted(stage.place.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            name = path.relative_to(stage.place).as_posix()
            stage.show(f"{name}  {path.stat().st_size:,} bytes")
    stage.end()
