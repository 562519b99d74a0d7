from __future__ import annotations

import hashlib
import json
import os
import pty
import sys
from importlib import util
from pathlib import Path

import pytest

from retain.cli.evaluating import Numbers, eval_
from retain.evaluation import CONFIGURATIONS, FORMATS, UNITS, evaluate, load_dataset

MEMORIES = [
    {"id": "m1", "content": "Ann drinks green tea", "session": "s1", "role": "Ann"},
    {"id": "m2", "content": "四月に東京へ行く", "session": "s2", "role": "Bob"},
]
QUERIES = [
    {"query": "who drinks tea?", "relevant": ["m1"], "category": "easy"},
    {"query": "東京", "relevant": ["m2"], "category": "日本語"},
    {"query": "zebra", "relevant": ["m1"], "category": "hard"},
]
needs_matplotlib = pytest.mark.skipif(
    util.find_spec("matplotlib") is None, reason="matplotlib is not installed"
)


def lines(values) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


@pytest.fixture
def data(tmp_path: Path, monkeypatch) -> str:
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path.parent / "matplotlib"))
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "memories.jsonl").write_text(lines(MEMORIES))
    (folder / "queries.jsonl").write_text(lines(QUERIES))
    return str(folder)


def test_a_table_tells_each_category(retain, data: str, place: Path):
    outcome = retain("eval", data)
    paths = [Path(data) / name for name in ("memories.jsonl", "queries.jsonl")]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()
    assert outcome.lines[0] == (
        f"mine/memories.jsonl (sha256 {digest[:12]}), unit turn, configuration default"
    )
    assert outcome.lines[1] == "3 questions on 2 memories"
    figures = {line.split()[0]: line.split()[1:4] for line in outcome.lines[4:8]}
    assert figures == {
        "all": ["3", ".667", ".667"],
        "easy": ["1", "1.00", "1.00"],
        "hard": ["1", ".000", ".000"],
        "日本語": ["1", "1.00", "1.00"],
    }
    assert outcome.err == ""
    assert not place.exists()  # one's own memory is not touched


def test_the_two_files_may_be_named(retain, data: str):
    named = retain("eval", f"{data}/memories.jsonl", f"{data}/queries.jsonl")
    assert named.lines[:-1] == retain("eval", data).lines[:-1]
    assert "name the file of queries" in retain("eval", f"{data}/memories.jsonl", expect=2).err


def test_json_is_what_the_python_api_says(retain, data: str):
    rows = retain("eval", data, "--json", "--config", "default", "--config", "lexical").rows
    assert [row["configuration"] for row in rows] == ["default", "lexical"]
    report = evaluate(load_dataset(data)).to_dict()
    assert {**rows[0], "seconds_per_query": 0} == {**report, "seconds_per_query": 0}


def test_configurations_stand_side_by_side(retain, data: str):
    outcome = retain("eval", data, "--config", "lexical", "--config", "default")
    assert [line.split()[2] for line in outcome.lines[3:5]] == ["configuration", "lexical"]
    assert outcome.lines[5].split()[0] == "default"
    twice = retain("eval", data, "--config", "lexical", "--config", "lexical")
    assert "configuration lexical" in twice.lines[0]


def test_another_unit_may_be_asked_for(retain, data: str):
    assert "unit session," in retain("eval", data, "--unit", "session").lines[0]
    found = retain("eval", data, "--unit", "session-document", "--json").value
    assert (found["unit"], found["memories"]) == ("session-document", 2)


def test_a_part_may_be_asked_for(retain, data: str):
    found = retain("eval", data, "--limit", "2", "--conversations", "1", "--json").value
    assert (found["questions"], found["part"]) == (2, "the first 2 questions of conversations 1")
    outcome = retain("eval", data, "--conversations", "1-2", expect=2)
    assert outcome.err == "retain: conversation 2 is not there; mine/memories.jsonl has 1\n"


@pytest.mark.parametrize(
    ("text", "numbers"), [("1", (1,)), ("1-3", (1, 2, 3)), ("7, 1-2,2", (1, 2, 7))]
)
def test_numbers_are_read(text: str, numbers: tuple[int, ...]):
    assert Numbers().convert(text, None, None) == numbers
    assert Numbers().convert(numbers, None, None) == numbers  # click may convert twice


@pytest.mark.parametrize("text", ["", "0", "3-1", "a", "1-", "-1", "1,,2", "1-999999999", "١"])
def test_what_is_no_list_of_numbers_is_a_mistake(retain, data: str, text: str):
    assert "numbers" in retain("eval", data, f"--conversations={text}", expect=2).err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--config", "nonsense"), 2, "'nonsense' is none of default, lexical"),
        (("--format", "csv"), 2, "'csv' is not one of"),
        (("--format", "locomo"), 2, "locomo is one file"),
        (("--limit", "0"), 2, "--limit"),
        (("--plot", "nowhere/x.png"), None, "there is no folder"),
        (("--plot", "x.txt"), 2, "ends in none of .png"),
    ],
)
def test_a_mistake_is_one_line_and_an_exit_code(retain, data: str, words, code, told):
    if words[0] == "--plot" and util.find_spec("matplotlib") is None:
        pytest.skip("matplotlib is not installed")
    outcome = retain("eval", data, *words, expect=1 if code is None else code)
    assert told in outcome.err
    assert outcome.err.count("\n") == 1
    assert outcome.out == ""


def test_a_broken_file_is_named_with_the_line(retain, data: str, tmp_path: Path):
    with (Path(data) / "queries.jsonl").open("a") as file:
        file.write("{broken\n")
    told = retain("eval", data, expect=2).err
    assert told.startswith("retain: queries.jsonl line 4: it is not JSON at character 2")
    (tmp_path / "odd.json").write_text('{"a": 1}')
    assert "none of the formats" in retain("eval", str(tmp_path / "odd.json"), expect=2).err
    assert "does not exist" in retain("eval", str(tmp_path / "nowhere"), expect=2).err
    assert "no memories.jsonl" in retain("eval", str(tmp_path), expect=1).err


def test_without_matplotlib_nothing_is_measured_for_a_plot(retain, data: str, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = retain("eval", data, "--plot", "x.png", expect=2)
    assert outcome.err.endswith("install it with: pip install 'matplotlib>=3.8'\n")
    assert outcome.out == ""


@needs_matplotlib
def test_a_plot_is_drawn(retain, data: str, tmp_path: Path):
    path = tmp_path / "curve.png"
    outcome = retain(
        "eval", data, "--plot", str(path), "--config", "default", "--config", "lexical"
    )
    assert outcome.lines[-1] == f"Drew {path}"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert len(retain("eval", data, "--plot", str(path), "--json").rows) == 1


def test_a_person_sees_how_far_it_is(data: str):
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", PYTHONUTF8="1")
        os.execv(sys.executable, [sys.executable, "-m", "retain", "eval", data])
    seen = b""
    try:
        while read := os.read(terminal, 65536):
            seen += read
    except OSError:  # Linux says so when the other side has closed
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"Asking" in seen
    assert b"100%" in seen
    assert b"3 questions" in seen


def test_the_command_offers_what_there_is():
    choices = {option.name: option.type for option in eval_.params}
    assert sorted(choices["form"].choices) == sorted(FORMATS)
    assert tuple(choices["unit"].choices) == UNITS
    assert "default" in CONFIGURATIONS
