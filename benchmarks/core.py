"""The speed and the weight of the main job: a line a figure, with the bar that it must pass.

    python -m benchmarks.core [--quick] [--strict] [--selectools PYTHON]

What each figure means, and how it is measured: docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.comparing import comparing, selectools
from benchmarks.measuring import Figure, tell
from benchmarks.plan import QUICK, Bench, Plan
from benchmarks.reading import reading
from benchmarks.starting import installing, starting
from benchmarks.writing import writing

__all__ = ["main"]

Part = Callable[[Bench], Iterator[Figure]]


def measured(plan: Plan, folder: Path, python: str | None) -> Iterator[Figure]:
    """Every figure, in the order of the page; each part in a place of its own."""
    reference = selectools(folder / "selectools", python, plan.installs)
    parts: dict[str, Part] = {
        "writing": writing,
        "comparing": partial(comparing, reference=reference),
        "starting": starting,
        "installing": installing,
        "reading": reading,
    }
    for name, part in parts.items():
        tell(name)
        place = folder / name
        place.mkdir()
        with ExitStack() as stack:
            yield from part(Bench(plan, place, stack))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every figure; 0, or with ``--strict`` 1 where a bar was missed or not measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: only whether it runs")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a bar is missed")
    parser.add_argument("--selectools", metavar="PYTHON", help="an interpreter that has it")
    parser.add_argument("--dir", type=Path, help="work on this disk; the system's own unless given")
    options = parser.parse_args(arguments)
    missed = 0
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        plan = QUICK if options.quick else Plan()
        for figure in measured(plan, Path(folder), options.selectools):
            print(figure.line(judged=not options.quick), flush=True)
            missed += figure.passed is False
    return int(options.strict and missed > 0)


if __name__ == "__main__":
    sys.exit(main())
