from __future__ import annotations

import json
from pathlib import Path

import pytest

from retain import KnowledgeMemory, Scope, __version__
from retain.cli import main


def test_the_version_and_the_help_are_there(retain):
    assert retain("--version").out == f"retain {__version__}\n"
    assert retain("-h").out == retain("--help").out
    for name in main.commands:
        assert name in retain("-h").out
        assert f"Usage: retain {name} " in retain(name, "-h").out


def test_without_a_command_the_help_says_what_there_is(retain):
    assert "Commands:" in retain(expect=2).err


def test_a_scope_may_stand_before_or_after_the_command(retain, place: Path):
    retain("--user", "ann", "--session", "s1", "remember", "hers")
    retain("remember", "hers too", "--user", "ann", "--session", "s1")
    retain("--user", "ann", "remember", "hers as well", "--session", "s1")
    with KnowledgeMemory(place, scope=Scope("ann", session="s1")) as memory:
        assert memory.memory_count == 3
    assert retain("list", "--json").rows == []


def test_a_scope_may_come_from_the_environment_and_options_win(retain, monkeypatch):
    monkeypatch.setenv("RETAIN_USER", "ann")
    monkeypatch.setenv("RETAIN_AGENT", "helper")
    monkeypatch.setenv("RETAIN_SESSION", "s1")
    assert retain("remember", "x").code == 0
    scope = {"user": "ann", "agent": "helper", "session": "s1"}
    assert retain("stats", "--json").value["scope"] == scope
    assert retain("stats", "--user", "bob", "--json").value["scope"] == {**scope, "user": "bob"}
    monkeypatch.setenv("RETAIN_USER", "")
    assert "user" not in retain("stats", "--json").value["scope"]


def test_a_place_may_stand_before_or_after_the_command(retain, tmp_path: Path):
    other = tmp_path / "other"
    retain("--dir", str(other), "remember", "x")
    assert retain("list", "--dir", str(other), "--json").value["content"] == "x"
    assert retain("list", expect=1).err.startswith("retain: nothing is remembered in ")


def test_the_home_directory_may_be_a_tilde(retain, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    retain("remember", "x", "--dir", "~/mine")
    assert (tmp_path / "mine" / "memory.db").exists()


def test_a_home_directory_of_nobody_is_a_mistake(retain):
    retain("remember", "x")
    for words in (
        ("list", "--dir", "~nobody-of-that-name/x"),
        ("export", "~nobody-of-that-name/x"),
        ("backup", "~nobody-of-that-name/x"),
        ("demo", "--keep", "~nobody-of-that-name/x"),
    ):
        assert "is no path" in retain(*words, expect=2).err


def test_without_a_name_the_place_is_where_the_platform_keeps_data(
    retain, monkeypatch, tmp_path: Path
):
    monkeypatch.delenv("RETAIN_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    retain("remember", "x")
    assert list(tmp_path.rglob("retain/memory.db"))


def test_json_may_stand_before_or_after_the_command(retain):
    assert retain("--json", "remember", "x").value["created"] is True
    assert retain("recall", "x", "--json").value["memory"]["content"] == "x"


@pytest.mark.parametrize(
    "words",
    [
        ("--user", "ann", "list", "--user", "bob"),
        ("list", "--user", "ann", "--user", "bob"),
        ("--dir", "a", "list", "--dir", "b"),
    ],
)
def test_two_values_of_one_option_are_a_mistake(retain, words):
    assert "given twice" in retain(*words, expect=2).err


def test_the_same_value_twice_is_none(retain):
    retain("--user", "ann", "remember", "x", "--user", "ann")


@pytest.mark.parametrize("name", ["--dir", "--user", "--agent", "--session"])
def test_an_empty_name_is_a_missing_one(retain, name: str):
    assert "empty" in retain("remember", "x", name, "", expect=2).err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("frobnicate",), "No such command"),
        (("recall",), "Missing argument"),
        (("recall", "x", "-k", "-1"), "'-k'"),
        (("recall", "x", "-k", "many"), "'-k'"),
        (("recall", "x", "--type", "vague"), "episodic, semantic, procedural"),
        (("recall", "x", "--since", "yesterday"), "ISO 8601"),
        (("recall", "x", "--min-importance", "2"), "low, medium, high, critical"),
        (("remember", "x", "--metadata", "{"), "not JSON"),
        (("remember", "x", "--metadata", "[1]"), "no JSON object"),
        (("remember", "x", "--metadata", "[" * 100_000), "nested too deeply"),
        (("remember", "x", "--metadata", '{"a": "\\ud800"}'), "surrogate"),
        (("remember", "x", "--ttl-days", "-1"), "ttl_days=-1.0"),
        (("remember", "x", "--ttl-days", "nan"), "ttl_days=nan"),
        (("remember", "x", "--category", " "), "category is blank"),
        (("remember", "x", "--user", "u" * 600), "600 characters"),
        (("list", "--limit", "0"), "--limit"),
        (("log", "--days", "-1"), "--days"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(retain, words, told: str):
    retain("remember", "there is something")
    outcome = retain(*words, expect=2)
    assert told in outcome.err
    assert outcome.err.startswith("retain: ")
    assert outcome.err.count("\n") == 1
    assert outcome.out == ""


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        *(("help", "--help"), ("search", "recall"), ("find", "recall"), ("add", "remember")),
        *(("save", "remember"), ("delete", "forget"), ("remove", "forget"), ("rm", "forget")),
    ],
)
def test_what_other_programs_call_a_command_leads_to_it(retain, word: str, meant: str):
    outcome = retain(word, "x", expect=2)
    assert f"No such command {word!r}; did you mean 'retain {meant}'?" in outcome.err
    assert retain(meant, *([] if meant == "--help" else ["--help"])).out.startswith("Usage: ")


def test_a_file_is_no_memory_directory(retain, tmp_path: Path):
    (path := tmp_path / "file").write_text('{"content": "mine"}')
    for words in (("recall", "x"), ("remember", "x"), ("check",), ("import", str(path))):
        outcome = retain(*words, "--dir", str(path), expect=3)
        assert f"{path} is a file, not a directory" in outcome.err
    assert path.read_text() == '{"content": "mine"}'


def test_with_json_an_error_is_a_json_object(retain):
    outcome = retain("recall", "x", "--json", "--since", "yesterday", expect=2)
    error = json.loads(outcome.err)
    assert error["type"] == "BadParameter" and error["exit_code"] == 2
    assert "ISO 8601" in error["error"]
    assert json.loads(retain("--json", "show", "abcd", expect=1).err)["type"] == "NotFound"


def test_words_after_two_dashes_are_no_options(retain):
    retain("remember", "--", "--json")
    assert retain("list").out.rstrip().endswith("--json")
    outcome = retain("show", "--", "--json", expect=1)
    assert outcome.err.startswith("retain: ")
