"""What holds of every adapter: its examples run, it brings no other framework, it has a page.

Run in the environment of each (``RETAIN_ADAPTER``), and here for MCP, whose SDK is at hand.
"""

from __future__ import annotations

import doctest
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pages import PAGES, program

NAME = os.environ.get("RETAIN_ADAPTER", "mcp")
MODULE = f"retain.adapters.{NAME}"
ROOT = Path(__file__).resolve().parents[2]

IMPORTED_AS = {
    "agent_framework": {"agent_framework"},
    "anthropic": {"anthropic"},
    "google_adk": {"google.adk"},
    "langgraph": {"langgraph", "langchain_core", "langchain"},
    "llama_index": {"llama_index"},
    "mcp": {"mcp"},
    "openai_agents": {"agents", "openai"},
    "pydantic_ai": {"pydantic_ai"},
    "selectools": {"selectools"},
}
"""The packages of each framework; one may need another, but then it imports it itself."""

has_module = pytest.mark.skipif(
    not (ROOT / "src/retain/adapters" / f"{NAME}.py").exists(),
    reason="retain is used here as it is",
)


@has_module
def test_its_examples_run():
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(MODULE)):
        runner.run(test, out=report.append)
    assert not report, "".join(report)


@has_module
def test_importing_it_imports_no_framework_but_its_own_and_what_that_imports():
    def loaded(code: str) -> set[str]:
        names = sorted(set().union(*IMPORTED_AS.values()))
        code += f"\nimport sys; print(*[name for name in {names} if name in sys.modules])"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return set(run.stdout.split())

    own = IMPORTED_AS[NAME]
    theirs = loaded("\n".join(f"import {name}" for name in sorted(own)))
    assert loaded(f"import {MODULE}") <= own | theirs
    assert loaded("import retain.adapters, retain") == set()


@pytest.mark.skipif(NAME == "mcp", reason="docs/mcp.md is run by tests/test_docs.py")
def test_it_has_a_page_with_one_whole_program():
    name = NAME.replace("_", "-")
    assert compile(program(name), str(PAGES / f"{name}.md"), "exec")
