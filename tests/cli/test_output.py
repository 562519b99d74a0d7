from __future__ import annotations

import io
import json
from collections.abc import Callable

import click
import pytest

from retain import errors
from retain.cli.output import Printer, clean, cut, exit_code, report, width


@pytest.mark.parametrize(
    ("text", "columns"),
    [("", 0), ("abc", 3), ("東京", 4), ("é", 1), ("e\u0301", 1), ("👍", 2), ("مفتاح", 5)],
)
def test_a_text_is_as_wide_as_a_terminal_shows_it(text: str, columns: int):
    assert width(text) == columns


def test_a_text_is_cut_to_columns_with_an_ellipsis():
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdef", 5) == "abcd…"
    assert cut("東京都", 5) == "東京…"
    assert cut("東京都", 4) == "東…"
    assert cut("abc", 0) == ""
    for columns in range(1, 9):
        assert width(cut("東京 abc e\u0301", columns)) <= columns


def test_control_characters_are_escaped_but_lines_and_tabs_stay():
    assert clean("a\x1b[31m\x07\x9b\x7f\r") == "a\\x1b[31m\\x07\\x9b\\x7f\\x0d"
    assert clean("a\tb\nc 東京 👨‍👩‍👧 مفتاح") == "a\tb\nc 東京 👨‍👩‍👧 مفتاح"


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Terminal]:
    """Called in the test, makes standard output a terminal of 20 columns."""
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "20")

    def use() -> Terminal:
        monkeypatch.setattr("sys.stdout", terminal := Terminal())
        return terminal

    return use


def test_a_terminal_gets_colours_and_lines_of_its_width(terminal):
    screen = terminal()
    Printer(False).row(("ab", "bold"), ("one two three four five six", ""))
    assert screen.getvalue() == "\x1b[1mab\x1b[0m  one two three f…\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_declined(terminal, monkeypatch, name: str, value: str):
    screen = terminal()
    monkeypatch.setenv(name, value)
    Printer(False).row(("ab", "bold"), ("c", "cyan"))
    assert screen.getvalue() == "ab  c\n"


def test_a_terminal_is_not_steered_by_what_was_stored(terminal, monkeypatch):
    screen = terminal()
    monkeypatch.setenv("NO_COLOR", "1")
    out = Printer(False)
    out.row(("\x1b]0;title\x07", ""))
    out.text("a\n\x1b[2J")
    out.line("\x9b1m")
    out.field("source", "\x1bc")
    assert "\x1b" not in screen.getvalue() and "\x9b" not in screen.getvalue()
    assert "a\n\\x1b[2J\n" in screen.getvalue()


def test_elsewhere_text_stays_as_it_is_and_nothing_is_cut(monkeypatch):
    monkeypatch.setattr("sys.stdout", stream := io.StringIO())
    out = Printer(False)
    out.row(("x", "bold"), ("\x1b[31m " + "long " * 100, ""))
    out.text("\x1b[2J")
    assert stream.getvalue() == "x  \x1b[31m " + ("long " * 100).strip() + "\n\x1b[2J\n"


def test_json_keeps_control_characters_and_is_ascii_where_the_encoding_needs_it(monkeypatch):
    value = {"content": "\x1b[31m 東京"}
    for encoding in ("utf-8", "ascii", "latin-1"):
        raw = io.BytesIO()
        monkeypatch.setattr("sys.stdout", stream := io.TextIOWrapper(raw, encoding))
        Printer(True).json(value)
        stream.flush()
        assert json.loads(raw.getvalue().decode(encoding)) == value
        assert ("東京".encode() in raw.getvalue()) is (encoding == "utf-8")


def test_an_encoding_that_has_not_all_letters_gets_escapes(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", stream := io.TextIOWrapper(raw, "latin-1"))
    Printer(False).text("café 東京")
    stream.flush()
    assert raw.getvalue() == b"caf\xe9 \\u6771\\u4eac\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.NotFound("x"), 1),
        (errors.InvalidValue("x"), 2),
        (errors.InvalidType("x"), 2),
        (click.UsageError("x"), 2),
        (errors.StoreFailed("x"), 3),
        (errors.StoreBusy("x"), 3),
        (errors.StoreCorrupt("x"), 3),
        (errors.StoreTooNew("x"), 3),
        (errors.StoreClosed("x"), 3),
        (errors.NetworkFilesystem("x"), 3),
        (errors.Conflict("x"), 3),
        (OSError(28, "No space left on device"), 3),
        (errors.Rejected("x", hook="h"), 4),
        (click.Abort(), 130),
    ],
)
def test_every_error_has_its_exit_code_and_one_line(error: BaseException, code: int, capsys):
    assert exit_code(error) == code
    assert report(error, as_json=False) == code
    line = capsys.readouterr().err
    assert line.startswith("retain: ") and line.count("\n") == 1
    report(error, as_json=True)
    assert json.loads(capsys.readouterr().err)["exit_code"] == code


def test_an_error_is_one_line_whatever_is_in_it(capsys):
    report(errors.InvalidValue("one\ntwo \x1b[31m three"), as_json=False)
    assert capsys.readouterr().err == "retain: one two \\x1b[31m three\n"


def test_an_error_of_the_system_names_the_file(capsys):
    report(OSError(13, "Permission denied", "/etc/shadow"), as_json=False)
    assert capsys.readouterr().err == "retain: /etc/shadow: Permission denied\n"
