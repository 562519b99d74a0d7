"""Measuring side by side, and telling it in one line a figure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

__all__ = ["Child", "Figure", "Side", "interleaved", "ms", "tell", "timed"]

_NOT_MEASURED = "not measured"

Side = Callable[[], float]
"""Does a thing once; the seconds it took."""


def timed(action: Callable[..., object], *args: Any, **options: Any) -> float:
    """The seconds that ``action`` takes."""
    start = time.perf_counter()
    action(*args, **options)
    return time.perf_counter() - start


def interleaved(
    rounds: int, sides: Mapping[str, Side], warm_up: int = 2, burst: int = 1
) -> dict[str, float]:
    """The median seconds of each side, done in turn: A B C, A B C, …

    In turn, so that whatever else the machine does falls on all of them alike: the ratios hold
    on a busy machine too, where the seconds alone would not. ``burst``: how often a side is
    done before the next has its turn, so that one which reads megabytes doesn't have the
    other begin with an empty processor cache each time.
    """
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(warm_up + rounds):
        for name, side in sides.items():
            taken = [side() for _ in range(burst)]
            if number >= warm_up:
                seconds[name] += taken
    return {name: median(found) for name, found in seconds.items()}


def ms(seconds: float) -> str:
    """Seconds as milliseconds, for a reader."""
    return _with_unit(seconds * 1_000, "ms")


def _with_unit(value: float, unit: str) -> str:
    digits = 0 if value >= 100 or isinstance(value, int) else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}".rstrip()


def tell(text: str) -> None:
    """What is being done, for the person who waits."""
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: what was measured, what came out, and the bar it must pass, if any.

    ``passed``: ``None`` where there is no bar. ``why``: how the value came about.
    """

    name: str
    value: str
    bar: str = ""
    passed: bool | None = None
    why: str = ""

    @classmethod
    def at_most(cls, name: str, value: float, bar: float, unit: str, why: str = "") -> Figure:
        """A figure that must not be above ``bar``."""
        told = f"<= {bar:,g} {unit}".rstrip()
        return cls(name, _with_unit(value, unit), told, value <= bar, why)

    @classmethod
    def at_least(cls, name: str, value: float, bar: float, unit: str, why: str = "") -> Figure:
        """A figure that must not be below ``bar``."""
        told = f">= {bar:,g} {unit}".rstrip()
        return cls(name, _with_unit(value, unit), told, value >= bar, why)

    @classmethod
    def missing(cls, name: str, bar: str, why: str) -> Figure:
        """A figure that could not be measured here: a bar is missed by that, if there is one."""
        return cls(name, _NOT_MEASURED, bar, False if bar else None, why)

    def line(self, judged: bool = True) -> str:
        """The figure in one line, its verdict first; none at sizes too small to judge by."""
        verdict = {None: "info", True: "pass", False: "FAIL"}[self.passed]
        if self.value == _NOT_MEASURED:
            verdict = "none"
        elif self.passed is not None and not judged:
            verdict = "tiny"
        columns = f"{self.name:56}  {self.value:>14}  {self.bar:14}"
        return f"{verdict}  {columns}  {self.why}".rstrip()


class Child:
    """A side in a process of its own, which times itself (see ``child.py``).

    ``kind``: which one. ``folder``: for its files. ``python``: the interpreter that has what
    it needs. To be used in a ``with`` block.
    """

    def __init__(self, kind: str, folder: Path, python: str = sys.executable) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.child", kind, str(folder)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def call(self, do: str, *args: object) -> float:
        """Let it do something; the seconds it took, by its own clock."""
        return self.both(do, *args)[0]

    def ask(self, do: str, *args: object) -> Any:
        """Let it do something; what came of it."""
        return self.both(do, *args)[1]

    def both(self, do: str, *args: object) -> tuple[float, Any]:
        """Let it do something; the seconds it took, and what came of it."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([do, *args]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process ended with code {self._process.wait()}")
        seconds, result = json.loads(answer)
        return float(seconds), result

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()
