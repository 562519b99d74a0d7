"""What each adapter adds to a recall: see ``adapting.py``, which runs beside the framework."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .adapting import ADAPTERS
from .measuring import Figure, ms
from .plan import Bench

__all__ = ["adapters"]

_ROOT = Path(__file__).resolve().parents[1]
_BAR = 1.0  # milliseconds


def adapters(bench: Bench) -> Iterator[Figure]:
    """What an adapter adds to the recall of 10,000 memories, SQLite."""
    for name in ADAPTERS:
        python = Path(sys.executable)
        if name != "mcp":
            python = _ROOT / ".venv-adapters" / name / "bin" / "python"
        title = f"{name.replace('_', ' ')}, added to a recall"
        if not bench.plan.installs:
            yield Figure.missing(title, f"<= {_BAR:g} ms", "--quick installs nothing")
        elif not python.exists():
            yield Figure.missing(title, f"<= {_BAR:g} ms", "make test-adapters installs it")
        else:
            yield from _added(bench, title, name, python)


def _added(bench: Bench, title: str, name: str, python: Path) -> Iterator[Figure]:
    folder = bench.folder / name
    folder.mkdir()
    command = [python, "-m", "benchmarks.adapting", name, bench.plan.sizes[1], bench.plan.rounds]
    run = subprocess.run(
        [*map(str, command), str(folder)],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    seconds: dict[str, float] = json.loads(run.stdout)
    plain = seconds.pop("plain")
    for call, taken in seconds.items():
        why = f"{ms(taken)} beside {ms(plain)}"
        yield Figure.at_most(f"{title}: {call}", (taken - plain) * 1_000, _BAR, "ms", why)
