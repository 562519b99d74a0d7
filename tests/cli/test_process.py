"""What only a real process, pipe, signal or terminal shows."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

RETAIN = [sys.executable, "-m", "retain"]


def on_terminal(*words: str, columns: int = 60, stdin: bytes = b"") -> tuple[int, str]:
    """The exit code, and all that a terminal of that width got to see."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", PYTHONUTF8="1")
        os.environ.pop("COLUMNS", None)
        os.execv(sys.executable, [*RETAIN, *words])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    if stdin:
        os.write(terminal, stdin)
    seen = b""
    with contextlib.suppress(OSError):  # Linux says so when the other side has closed
        while data := os.read(terminal, 65536):
            seen += data
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), seen.decode()


def test_the_module_and_the_entry_point_are_one_command(process):
    assert process("remember", "x").out.startswith("Remembered")
    script = Path(sys.executable).with_name("retain")
    if script.exists():
        done = subprocess.run([script, "recall", "x"], capture_output=True, text=True, check=True)
        assert done.stdout.endswith("  x\n")


def test_what_one_process_remembers_another_recalls(process):
    process("remember", stdin="東京へ行く\n".encode())
    assert process("recall", "東京").out.endswith("東京へ行く\n")
    process("recall", "zebra", expect=1)


@pytest.mark.parametrize(
    ("words", "never"),
    [
        (["--help"], "numpy sqlite3 filelock platformdirs logging.handlers"),
        (["--version"], "numpy sqlite3 filelock platformdirs"),
        (["recall", "--help"], "numpy sqlite3 filelock platformdirs"),
        (["recall", "x"], "platformdirs retain.moving retain.agent"),
    ],
)
def test_nothing_is_imported_that_is_not_needed(process, words: list[str], never: str):
    process("remember", "x")
    code = (
        "import sys\n"
        "from retain.cli import main\n"
        f"try: main({words!r})\n"
        f"except SystemExit: print([n for n in {never.split()!r} if n in sys.modules])"
    )
    # coverage would load some of them itself
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert run.stdout.splitlines()[-1] == "[]", run


def test_a_reader_that_goes_away_ends_it_quietly(process):
    process("remember", "--lines", stdin=b"a line of text\n" * 5000)
    for words in (["list", "--all"], ["export"], ["recall", "line", "-k", "5000"]):
        run = subprocess.Popen([*RETAIN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert run.stdout is not None and run.stderr is not None
        run.stdout.readline()
        run.stdout.close()
        assert run.stderr.read() == b""
        run.stderr.close()
        assert run.wait(60) == 141


def test_an_interrupt_ends_it_with_a_word_and_without_a_traceback(place: Path):
    code = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in the background
        "from retain.cli import keeping, main\n"
        "keeping._statistics = lambda app: os.kill(os.getpid(), signal.SIGINT)\n"
        "main()"
    )
    run = subprocess.run([sys.executable, "-c", code, "stats"], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "retain: interrupted\n")


def test_an_interrupted_wait_for_input_leaves_nothing(place: Path):
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from retain.cli import main\n"
        "class Slow:\n"
        "    def read(self): os.kill(os.getpid(), signal.SIGINT)\n"
        "class Input: buffer = Slow()\n"
        "sys.stdin = Input()\n"
        "main(['remember', '-'])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (130, "retain: interrupted\n")
    assert not place.exists()


def test_an_argument_in_another_encoding_is_a_mistake_but_a_path_is_not(process, tmp_path: Path):
    outcome = process("remember", b"caf\xe9", expect=2)
    assert "not UTF-8 at character 4" in outcome.err
    assert "UTF-8" in process("recall", b"\xff", expect=2).err
    strange = bytes(tmp_path / "dir") + b"\xff"
    process("remember", "x", "--dir", strange)
    assert process("stats", "--dir", strange, "--json").value["memories"] == 1
    assert process("stats", "--dir", strange).out


def test_streams_that_are_closed_are_no_reason_to_fail(place: Path):
    for close in (">&-", "2>&-", "<&-"):
        command = f"{sys.executable} -m retain remember x {close}"
        run = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
        assert (run.returncode, run.stderr) == (0, ""), close


def test_an_old_locale_prints_what_it_can(process):
    process("remember", "東京")
    env = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    assert "\\u6771\\u4eac" in process("list", **env).out
    assert process("list", "--json", **env).value["content"] == "東京"


def test_on_a_terminal_lines_are_cut_coloured_and_harmless(process):
    text = "\x1b]0;owned\x07 and a text that is much too long for one line of it"
    process("remember", text)
    code, seen = on_terminal("list", columns=50)
    assert code == 0
    assert "\x1b[33m" in seen
    assert "\\x1b]0;owned\\x07 a…" in seen and "\x07" not in seen
    code, seen = on_terminal("show", process("list", "--json").value["id"], columns=50)
    assert "much too long for one line of it" in seen and "\x07" not in seen
    assert (
        process("list")
        .out.rstrip()
        .endswith("\x1b]0;owned\x07 and a text that is much too long for one line of it")
    )


def test_on_a_terminal_nothing_found_is_said(process):
    process("remember", "x")
    assert on_terminal("recall", "zebra") == (1, "retain: nothing found\r\n")


def test_on_a_terminal_it_is_said_of_every_command_that_shows_nothing(process):
    process("remember", "x", "--at", "2020-01-01")
    for words, said in (
        (["list", "--category", "none"], "nothing found"),
        (["list", "--all", "--category", "none"], "nothing found"),
        (["facts"], "nothing found"),
        (["log"], "nothing found"),
        (["restore"], "nothing to restore"),
    ):
        assert on_terminal(*words) == (0, f"retain: {said}\r\n")
        assert on_terminal(*words, "--json")[1] in ("", "{}\r\n")
        outcome = process(*words)
        assert (outcome.out, outcome.err) == ("", "")


def test_on_a_terminal_an_empty_scope_tells_that_others_are_not(process):
    process("remember", "--lines", stdin=b"one\ntwo\n")
    process("remember", "three", "--user", "ann")
    said = "nothing found in this scope; others have 3: 'retain stats' names them"
    for words, code in ((["recall", "one"], 1), (["list"], 0)):
        seen = on_terminal(*words, "--user", "bob")
        assert seen == (code, f"retain: {said}\r\n")


def test_on_a_terminal_long_work_shows_how_far_it_is(process, tmp_path: Path):
    process("remember", "--lines", stdin=b"a line of text\n" * 200)
    path = str(tmp_path / "out.jsonl")
    assert "100%" in on_terminal("export", path)[1]
    assert "100%" in on_terminal("import", path)[1]
    assert "checking" in on_terminal("check")[1]
    for words in (["export", path, "--force"], ["import", path], ["check"]):
        outcome = process(*words)
        assert outcome.err == "" and "%" not in outcome.out


def test_shells_can_complete_it(process):
    process(_RETAIN_COMPLETE="bash_source").out.index("_retain_completion")
    words = {"COMP_WORDS": "retain re", "COMP_CWORD": "1"}
    found = process(_RETAIN_COMPLETE="bash_complete", **words).lines
    assert found == ["plain,remember", "plain,recall", "plain,restore"]


def test_at_a_keyboard_remember_wants_content(place: Path):
    code, seen = on_terminal("remember", columns=200)
    assert code == 2 and "give CONTENT, --file or a pipe" in seen
    code, seen = on_terminal("remember", "-", columns=200, stdin=b"typed\n\x04")
    assert code == 0 and "Remembered" in seen


def test_the_demo_does_the_main_job_and_leaves_nothing(process, place: Path, tmp_path: Path):
    outcome = process("demo", TMPDIR=str(tmp_path), RETAIN_USER="somebody else")
    assert re.search(r"\$ retain recall .*allergic.*\n.*Ann is allergic to peanuts", outcome.out)
    assert "東京" in outcome.out and "192.168.9.1" in outcome.out and "none of the" in outcome.out
    assert list(tmp_path.iterdir()) == [] and not place.exists()


@pytest.mark.slow
def test_the_demo_can_be_kept_and_told_as_json(process, tmp_path: Path):
    target = tmp_path / "demo"
    steps = process("demo", "--keep", str(target), "--json").value["steps"]
    assert len(steps) > 4 and all(step["output"] for step in steps)
    assert len(process("list", "--dir", str(target), "--json").rows) == 10
    assert "there already" in process("demo", "--keep", str(target), expect=2).err


def test_json_lines_are_lines_whatever_is_in_them(process):
    text = "line\u2028separator\u0085and\x0bothers, \x1b[31m \x9b1m \x7f"
    process("remember", text)
    for words in (["export"], ["list", "--json"], ["recall", "line", "--json"]):
        row = process(*words).value
        assert row.get("memory", row)["content"] == text
        code, seen = on_terminal(*words)
        assert code == 0 and not set("\x1b\x9b\x7f") & set(seen)
