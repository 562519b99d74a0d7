"""Other interpreters: new processes of this one, and throwaway environments."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Start", "Uninstallable", "install", "start", "version_in"]


class Uninstallable(Exception):
    """A package could not be installed here; the text says why, in a line."""


def install(folder: Path, package: str) -> str:
    """A new environment in ``folder`` with ``package`` in it; its interpreter.

    Raises ``Uninstallable``, which is no failure of a benchmark: there may be no network.
    """
    venv.create(folder, with_pip=True)
    python = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        lines = run.stderr.strip().splitlines() or ["pip did not say why"]
        raise Uninstallable(f"{package} could not be installed: {lines[-1]}")
    return python


def version_in(python: str, package: str) -> str:
    """The version of ``package`` in the environment of ``python``."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    run = subprocess.run([python, "-c", code], capture_output=True, text=True)
    if run.returncode:
        raise Uninstallable(f"{package} is not in the environment of {python}")
    return run.stdout.strip()


@dataclass(frozen=True, slots=True)
class Start:
    """A process from its start to its end: seconds by the clock, and of the processor."""

    wall: float
    processor: float
    printed: str


def start(arguments: Sequence[str], bytecode: Path) -> Start:
    """Run this interpreter anew with ``arguments``, its modules compiled into ``bytecode``.

    A development environment may be told to keep no bytecode, and would compile all of the
    library at every start; an installation has it.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Start(wall, processor, run.stdout)
