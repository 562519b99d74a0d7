"""Other interpreters: new processes of this one, and throwaway environments."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .measuring import tell

__all__ = [
    "PACKAGES",
    "Packages",
    "Start",
    "Uninstallable",
    "install",
    "one_core",
    "start",
    "version_in",
]

PACKAGES = {
    "selectools": "1.3.0",
    "tantivy": "0.27.0",
    "chromadb": "1.5.9",
    "lancedb": "0.40.0",
}
"""What is compared with, in the version that it is compared with."""

_THREADS = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "TOKIO_WORKER_THREADS",
    "LANCE_CPU_THREADS",
]


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


class Packages:
    """Interpreters that have the packages which are compared with, installed when asked for.

    ``folder``: a new one for their environments. ``given``: interpreters that have a package
    already. ``installs``: whether one may be installed.
    """

    def __init__(self, folder: Path, given: Mapping[str, str], installs: bool) -> None:
        self._folder = folder
        self._pythons = dict(given)
        self._installs = installs

    def python(self, package: str) -> str:
        """An interpreter that has ``package``. Raises ``Uninstallable``."""
        if package not in self._pythons:
            if not self._installs:
                raise Uninstallable("--quick installs nothing")
            requirement = f"{package}=={PACKAGES[package]}"
            tell(f"installing {requirement} into a throwaway environment")
            self._pythons[package] = install(self._folder / package, requirement)
        return self._pythons[package]

    def title(self, package: str) -> str:
        """``package`` and its version. Raises ``Uninstallable``."""
        return f"{package} {version_in(self.python(package), package)}"


@contextmanager
def one_core() -> Iterator[None]:
    """Whatever is started within runs on one core, and is told to use one thread.

    Where the system can't pin a process, it is only told.
    """
    told, pinnable = dict(os.environ), hasattr(os, "sched_setaffinity")
    cores = os.sched_getaffinity(0) if pinnable else set()
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    if pinnable:
        os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        for name in _THREADS:
            os.environ.pop(name)
            if name in told:
                os.environ[name] = told[name]
        if pinnable:
            os.sched_setaffinity(0, cores)


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
