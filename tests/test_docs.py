"""Every example is run: the README's, the documentation's and the docstrings'."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import retain
import servers

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    page
    for page in (ROOT / "README.md", ROOT / "dropin" / "README.md", *(ROOT / "docs").rglob("*.md"))
    if page.is_file()
]
# Run beside their frameworks: tests/adapters/.
FRAMEWORKS = [page for page in PAGES if page.parent.name == "frameworks"]
LOCKS = (ROOT / "tests" / "adapters" / "environments").glob("*.txt")
ADAPTERS = tuple(f"retain.adapters.{lock.stem}" for lock in LOCKS)
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>python|console|bash|sh)\n(?P<text>.*?)^ *```$", re.M | re.S
)
NOT_RUN = re.compile(r"<!-- not run: \S.*-->\s*$")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A fenced block: its language, the line of its first line, its text."""

    language: str
    line: int
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page that are to be run, in order."""
    text = servers.with_servers(page.read_text("utf-8"))
    for found in FENCE.finditer(text):
        if not NOT_RUN.search(text[: found.start()]):
            line = text.count("\n", 0, found.start()) + 2
            yield Block(found["language"], line, textwrap.dedent(found["text"]))


class Command(NamedTuple):
    """A command line, with the output that the page shows for it, if any."""

    line: int
    text: str
    output: str


def commands(block: Block) -> Iterator[Command]:
    r"""The ``retain`` commands of a shell block, continued lines (``\``) joined.

    >>> [command.text for command in commands(Block("console", 1, "$ ls\n$ retain list\none\n"))]
    ['retain list']
    """
    prompt = "$ " if block.language == "console" or block.text.startswith("$ ") else ""
    lines = iter(enumerate(block.text.splitlines(), block.line))
    found: list[Command] = []
    for number, line in lines:
        if line.startswith(prompt) and (prompt or line.strip()):
            text = line.removeprefix(prompt)
            while text.endswith("\\"):
                text = text[:-1] + next(lines)[1].removeprefix("> ").strip()
            found.append(Command(number, text, ""))
        elif found:
            found[-1] = found[-1]._replace(output=f"{found[-1].output}{line}\n")
    return (command for command in found if re.search(r"(^|[|;&] *)retain\b", command.text))


def alike(shown: str, real: str) -> bool:
    """Whether the real output is the one shown, where ``...`` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("..."))
    return re.fullmatch(pattern, real.strip(), re.S) is not None


def environment(home: Path) -> dict[str, str]:
    here = Path(sys.executable).parent
    return {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{here}{os.pathsep}{os.environ['PATH']}",
        "RETAIN_DIR": str(home / "memory"),
        "COLUMNS": "100",
    }


def run_command(command: Command, where: str, home: Path) -> None:
    run = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.text],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    place = f"{where}:{command.line}: {command.text}"
    if not command.output.startswith("retain: "):  # which is how an error is shown
        assert run.returncode == 0, f"{place}\n{run.stdout}"
    if command.output.strip():
        assert alike(command.output, run.stdout), f"{place} printed:\n{run.stdout}"


def run_python(block: Block, where: str, namespace: dict[str, Any]) -> None:
    name = f"{where}:{block.line}"
    if not block.text.lstrip().startswith(">>>"):
        code = "\n" * (block.line - 1) + block.text
        exec(compile(code, where, "exec", dont_inherit=True), namespace)
        return
    # not the parser's own namespace: a page's blocks go on where the last one stopped
    test = doctest.DocTestParser().get_doctest(block.text, {}, name, where, block.line - 1)
    test.globs = namespace
    report: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page not in FRAMEWORKS],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_examples_of_a_page_run_in_order(page: Path, somewhere: Path):
    where = str(page.relative_to(ROOT))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "python":
            run_python(block, where, namespace)
        else:
            for command in commands(block):
                run_command(command, where, somewhere)


MODULES = [
    found.name
    for found in pkgutil.walk_packages(retain.__path__, "retain.")
    if not found.name.endswith("__main__") and not found.name.startswith(ADAPTERS)
]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_run(module: str, somewhere: Path):
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module)):
        for example in test.examples:
            example.source = servers.with_servers(example.source)
        runner.run(test, out=report.append)
    assert not report, "".join(report)


def test_every_command_is_documented():
    from retain.cli import main

    text = "\n".join(
        page.read_text("utf-8")
        for page in (ROOT / "README.md", ROOT / "docs" / "command-line.md")
        if page.is_file()
    )
    assert main.commands
    assert not [name for name in main.commands if not re.search(rf"retain {name}\b", text)]


def test_every_link_to_a_file_leads_somewhere():
    links = [
        (page, target)
        for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    ]
    assert [
        f"{page.relative_to(ROOT)}: {target}"
        for page, target in links
        if not (page.parent / target).exists()
    ] == []


def test_a_shown_output_matches_with_dots_for_what_changes():
    assert alike("one\n... three", "one\ntwo three\n")
    assert not alike("one", "one\ntwo")
    assert not alike("on.", "one")


def test_commands_are_read_from_a_page_as_a_shell_would():
    text = "$ pip install x\nlots\n$ retain remember \\\n>   'a b'\n[1]\n$ echo a | retain list\n"
    assert list(commands(Block("console", 5, text))) == [
        Command(7, "retain remember 'a b'", "[1]\n"),
        Command(10, "echo a | retain list", ""),
    ]
    assert [each.text for each in commands(Block("sh", 1, "make\nretain demo\n"))] == [
        "retain demo"
    ]
