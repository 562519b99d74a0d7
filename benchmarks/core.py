"""The speed and the weight of the main job: a line a figure, with the bar that it must pass.

What each figure means, and how it is measured: docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.adapters import adapters
from benchmarks.comparing import comparing
from benchmarks.environments import PACKAGES, Packages, one_core
from benchmarks.growing import growing, opening, scopes, touching
from benchmarks.measuring import Figure, tell
from benchmarks.plan import QUICK, Bench, Plan
from benchmarks.reading import reading
from benchmarks.search import full_text, hybrid, others, words, writes
from benchmarks.servers import postgres, redis
from benchmarks.serving import serving
from benchmarks.starting import installing, starting
from benchmarks.stores import Stores
from benchmarks.writing import writing

__all__ = ["main"]

PARTS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "writing": writing,
    "comparing": comparing,
    "starting": starting,
    "installing": installing,
    "reading": reading,
    "search-words": words,
    "search-hybrid": hybrid,
    "search-writes": writes,
    "search-fts5": full_text,
    "search-others": others,
    "search-opening": opening,
    "search-growing": growing,
    "search-scopes": scopes,
    "search-touching": touching,
    "serving": serving,
    "servers-postgres": postgres,
    "servers-redis": redis,
    "adapters": adapters,
}


def measured(
    plan: Plan, folder: Path, parts: Sequence[str], pythons: Mapping[str, str]
) -> Iterator[Figure]:
    """The figures of ``parts``, in the order of the page; each part in a place of its own."""
    packages = Packages(folder / "environments", pythons, plan.installs)
    stores = Stores(folder / "stores")
    for name in parts:
        tell(name)
        place = folder / name
        place.mkdir()
        with ExitStack() as stack:
            if name.startswith("search"):
                stack.enter_context(one_core())
            yield from PARTS[name](Bench(plan, place, stack, stores, packages))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: only whether it runs")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a bar is missed")
    parser.add_argument(
        "--only",
        action="append",
        metavar="PART",
        help="parts whose names begin so; may come more than once. There are: " + ", ".join(PARTS),
    )
    parser.add_argument("--dir", type=Path, help="work on this disk; the system's own unless given")
    for name in PACKAGES:
        parser.add_argument(f"--{name}", metavar="PYTHON", help=f"an interpreter that has {name}")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every figure; 0, or with ``--strict`` 1 where a bar was missed or not measured."""
    parser = _options()
    options = parser.parse_args(arguments)
    parts = [name for name in PARTS if name.startswith(tuple(options.only or [""]))]
    if not parts:
        parser.error(f"--only {options.only[0]}: no part begins so; there are {', '.join(PARTS)}")
    pythons = {name: getattr(options, name) for name in PACKAGES if getattr(options, name)}
    missed = 0
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        plan = QUICK if options.quick else Plan()
        for figure in measured(plan, Path(folder), parts, pythons):
            print(figure.line(judged=not options.quick), flush=True)
            missed += figure.passed is False
    return int(options.strict and missed > 0)


if __name__ == "__main__":
    sys.exit(main())
