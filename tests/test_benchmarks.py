"""The benchmarks run, at sizes too small to judge by, and print every promised figure."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.adapting import ADAPTERS

pytestmark = pytest.mark.slow

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
    rf"AgentMemory\.recall and tantivy, at {COUNT}": 1,
    rf"VectorStoreMemory\.recall, at {COUNT}": 1,
    rf"AgentMemory\.recall, of what was just remembered, at {COUNT}": 1,
    rf"AgentMemory\.recall and SQLite FTS5, at {COUNT}": 2,
    rf"opening a store and the first recall, at {COUNT}": 1,
    rf"AgentMemory\.recall, at {COUNT} and at {COUNT}": 1,
    rf"memory of a process that recalls, at {COUNT}": 1,
    rf"AgentMemory\.recall, a scope of {COUNT} among {COUNT} and alone": 1,
    rf"memory that {COUNT} scopes take, touched in turn": 1,
    rf"retain serve, {COUNT} scopes of {COUNT}, 2 workers(, p99|, failed)?": 3,
    rf"retain serve, one scope of {COUNT}, words alone, 2 workers(, p99|, failed)?": 3,
    r"AgentMemory\.remember, Postgres, and a bare INSERT": 1,
    rf"AgentMemory\.remember_many, Postgres, {COUNT} at once": 1,
    rf"AgentMemory\.recall, Postgres, a scope of {COUNT} among {COUNT}": 1,
    rf"opening Postgres and the first recall, {COUNT} of {COUNT}": 1,
    r"AgentMemory\.remember, (Redis|Valkey), and a bare pipeline": 2,
    rf"growth over {COUNT} recalls": 1,
}
INSTALLED = [
    "what is installed, dependencies included",
    "uses of a socket by remember, recall, context, check",
    "AgentMemory.recall and tantivy, at 40",
    "chromadb, query by vector, approximate, at 40",
    "lancedb, full-text query, at 40",
    "lancedb, query by vector, exact, at 40",
    *(f"{name.replace('_', ' ')}, added to a recall" for name in ADAPTERS),
]


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
    assert missing == INSTALLED
    reasons = {columns[-1] for columns in lines if columns[0] == "none"}
    assert reasons == {"--quick installs nothing"}


def test_what_is_only_compared_with_has_a_line_without_a_bar(lines: list[list[str]]):
    compared = [columns for columns in lines if columns[1].startswith(("chromadb", "lancedb"))]
    assert len(compared) == 3
    assert not any("= " in column for columns in compared for column in columns[2:4])


def test_a_run_is_strict_if_asked_to_be():
    # nothing is installed, so two bars are not measured
    done = run("benchmarks/core.py", "--quick", "--strict", "--only", "installing")
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 2


def test_what_is_only_compared_with_is_missed_by_no_strict_run():
    done = run("-m", "benchmarks", "--quick", "--strict", "--only", "search-others")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["none"] * 3


def test_an_unknown_part_is_refused_and_the_known_ones_named():
    done = run("-m", "benchmarks", "--only", "serch")
    assert done.returncode == 2
    assert "serch" in done.stderr and "search-words" in done.stderr
