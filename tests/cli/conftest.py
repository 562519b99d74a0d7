"""A command line to test: ``retain("recall", "tea")`` in a place of its own."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from retain.cli import main

# click kept the two streams apart only when told to, before 8.2
APART: dict[str, Any] = (
    {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
)


class Outcome:
    """What a command line did: its exit code, what it printed, and that as JSON."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def rows(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]

    @property
    def value(self) -> Any:
        (row,) = self.rows
        return row

    def __repr__(self) -> str:
        return f"exit code {self.code}\n{self.out}\n--\n{self.err}"


Retain = Callable[..., Outcome]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("RETAIN_")]:
        monkeypatch.delenv(name)
    place = tmp_path / "memory"
    monkeypatch.setenv("RETAIN_DIR", str(place))
    return place


@pytest.fixture
def retain(place: Path) -> Retain:
    """Run a command line in this process; ``expect`` is its exit code, ``None`` any."""

    def run(*words: str, expect: int | None = 0, stdin: str | bytes | None = "") -> Outcome:
        result = CliRunner(**APART).invoke(main, list(words), input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        outcome = Outcome(result.exit_code, result.stdout, result.stderr)
        assert expect in (outcome.code, None), outcome
        return outcome

    return run


@pytest.fixture
def process(place: Path) -> Retain:
    """Run a command line in a process of its own."""

    def run(*words: str | bytes, expect: int = 0, stdin: bytes = b"", **env: str) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "retain", *words],
            input=stdin,
            capture_output=True,
            env={**os.environ, "PYTHONUTF8": "1", **env},
            timeout=120,
        )
        outcome = Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert outcome.code == expect, outcome
        return outcome

    return run
