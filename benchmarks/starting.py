"""What it costs to begin: importing, a command as a whole process, the installation."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from retain import KnowledgeMemory

from .environments import Start, Uninstallable, install, start
from .measuring import Figure, ms, tell
from .plan import Bench

__all__ = ["installing", "starting"]

_ROOT = Path(__file__).resolve().parents[1]
_IMPORT = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
_WEIGHT = "what is installed, dependencies included"
_SILENCE = "uses of a socket by remember, recall, context, check"


def starting(bench: Bench) -> Iterator[Figure]:
    """``import retain``, everything imported, and ``retain recall`` in processes of their own."""
    size = bench.plan.command
    texts = bench.corpus.texts(size)
    folder = bench.place()
    with KnowledgeMemory(folder) as memory:
        memory.remember_many(texts)
    commands: dict[str, list[str]] = {
        "bare": ["-c", "pass"],
        "light": ["-c", _IMPORT.format("import retain")],
        "whole": ["-c", _IMPORT.format("from retain import KnowledgeMemory")],
        "recall": ["-m", "retain", "recall", "--dir", str(folder)],
    }
    bytecode = bench.place()
    found: dict[str, list[Start]] = {name: [] for name in commands}
    for number in range(bench.plan.starts + 1):
        for name, command in commands.items():
            query = [bench.corpus.query(texts)] if name == "recall" else []
            run = start([*command, *query], bytecode)
            if number:  # the first one compiles
                found[name].append(run)
    assert all(run.printed.strip() for run in found["recall"])
    bare = f"a bare interpreter {ms(median(run.wall for run in found['bare']))}"

    for name, statement in (("light", "import retain"), ("whole", "KnowledgeMemory")):
        imported = [float(run.printed) for run in found[name]]
        why = f"least {ms(min(imported))}; the process {_told(found[name])}, {bare}"
        if name == "light":
            yield Figure.at_most(statement, 1_000 * median(imported), 100, "ms", why)
        else:
            yield Figure(f"from retain import {statement}", ms(median(imported)), why=why)
    wall = median(run.wall for run in found["recall"])
    yield Figure.at_most(
        f"retain recall, the whole process, at {size:,}",
        1_000 * wall,
        400,
        "ms",
        f"{_told(found['recall'])}, {bare}",
    )


def _told(runs: list[Start]) -> str:
    wall, processor = (run.wall for run in runs), median(run.processor for run in runs)
    return f"least {ms(min(wall))}, of the processor {ms(processor)}"


def installing(bench: Bench) -> Iterator[Figure]:
    """The library in an environment of its own: what it weighs, and whether it talks."""
    try:
        if not bench.plan.installs:
            raise Uninstallable("--quick installs nothing")
        tell("installing the library into a throwaway environment")
        report = _report(bench)
    except Uninstallable as error:
        yield Figure.missing(_WEIGHT, "<= 110 MB", str(error))
        yield Figure.missing(_SILENCE, "<= 0", str(error))
        return
    sizes = sorted(report["sizes"].items(), key=lambda pair: -pair[1])
    yield Figure.at_most(
        _WEIGHT,
        sum(report["sizes"].values()) / 1e6,
        110,
        "MB",
        ", ".join(f"{name} {size / 1e6:.1f}" for name, size in sizes),
    )
    why = ", ".join(report["spoke"]) or f"by {', '.join(name for name, _ in sizes)}"
    for name, where in report["able"].items():
        why += f"; {name} could, in {', '.join(where)}"
    yield Figure.at_most(_SILENCE, len(report["spoke"]), 0, "", why)


def _report(bench: Bench) -> dict[str, Any]:
    python = install(bench.place(), str(_ROOT))
    program = Path(__file__).with_name("installed.py")
    run = subprocess.run(
        [python, str(program), str(bench.place())],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    report: dict[str, Any] = json.loads(run.stdout)
    return report
