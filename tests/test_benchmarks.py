"""The benchmarks run, at sizes too small to judge by, and print every promised figure."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VERDICTS = {"pass", "FAIL", "tiny", "none", "info"}
COUNT = r"[\d,]+"
PROMISED = {
    rf"AgentMemory\.remember, SQLite, at {COUNT}": 3,
    rf"AgentMemory\.remember, SQLite, at {COUNT} and at {COUNT}": 1,
    rf"AgentMemory\.remember_many, SQLite, {COUNT} at once": 1,
    rf"FileKnowledgeStore\.save, at {COUNT} and at {COUNT}": 1,
    rf"KnowledgeMemory\.remember, transient, at {COUNT}": 1,
    rf"KnowledgeMemory\.remember, persistent, at {COUNT}": 1,
    rf"the recall tool, at {COUNT}": 1,
    rf"AgentMemory\.recall, SQLite, at {COUNT}": 1,
    r"import retain": 1,
    rf"retain recall, the whole process, at {COUNT}": 1,
    r"what is installed, dependencies included": 1,
    r"uses of a socket by remember, recall, context, check": 1,
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=240
    )


@pytest.fixture(scope="module")
def lines() -> list[list[str]]:
    """The columns of each line: the verdict, the name, the value, the bar, what it is made of."""
    done = run("-m", "benchmarks", "--quick")
    assert done.returncode == 0, done.stderr
    return [re.split(r"\s{2,}", line) for line in done.stdout.splitlines()]


def test_a_quick_run_prints_every_promised_figure_with_its_bar(lines: list[list[str]]):
    found = {
        name: [columns for columns in lines if re.fullmatch(name, columns[1])] for name in PROMISED
    }
    assert {name: len(each) for name, each in found.items()} == PROMISED
    for columns in (each for some in found.values() for each in some):
        assert columns[0] in {"tiny", "none"}
        assert re.match(r"[\d,.]+|not measured", columns[2])
        assert re.match("[<>]= ", columns[3])


def test_only_what_needs_an_installation_is_not_measured_in_a_quick_run(lines: list[list[str]]):
    assert {columns[0] for columns in lines} <= VERDICTS
    missing = [columns[1] for columns in lines if columns[0] == "none"]
    assert missing == list(PROMISED)[-2:]


def test_a_run_is_strict_if_asked_to_be():
    # nothing is installed, so two bars are not measured
    assert run("benchmarks/core.py", "--quick", "--strict").returncode == 1
