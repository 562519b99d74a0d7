"""What is printed: for people on a terminal, for scripts, and as JSON."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from ..errors import InvalidType, InvalidValue, NetworkFilesystem, NotFound, Rejected, RetainError

__all__ = [
    "NOT_FOUND",
    "REJECTED",
    "UNUSABLE",
    "WRONG",
    "Printer",
    "exit_code",
    "hang_up",
    "report",
]

NOT_FOUND, WRONG, UNUSABLE, REJECTED, INTERRUPTED = 1, 2, 3, 4, 130
"""The exit codes, 0 aside: see docs/command-line.md."""

_BROKEN_PIPE = 141  # what a shell shows for a process that SIGPIPE ended

_COLOURS = {"dim": "2", "bold": "1", "cyan": "36", "yellow": "33"}
_LINES = "\t\n"
_ESCAPES = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in _LINES
}


class Printer:
    """Prints a command's results: text, or with ``as_json`` an object a line.

    On a terminal lines are cut to its width, coloured unless ``NO_COLOR`` is set, and shown
    with their control characters escaped: what was stored must not steer the terminal.
    Elsewhere text is printed as it is.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.terminal = _is_terminal(sys.stdout)
        self._coloured = self.terminal and not os.environ.get("NO_COLOR")
        self._coloured = self._coloured and os.environ.get("TERM") != "dumb"
        self._width = shutil.get_terminal_size().columns if self.terminal else 0
        self._unicode = (sys.stdout.encoding or "").casefold().replace("-", "") == "utf8"
        if hasattr(sys.stdout, "reconfigure"):
            # an old locale's terminal shows what it can't as escapes
            sys.stdout.reconfigure(errors="backslashreplace")

    def json(self, value: dict[str, Any]) -> None:
        """One object on a line of its own."""
        from ..moving.export import json_text

        text = json_text(value) if self._unicode else json.dumps(value)
        sys.stdout.write(f"{text}\n")

    def text(self, text: str) -> None:
        """Text of any number of lines."""
        sys.stdout.write(f"{clean(text) if self.terminal else text}\n")

    def done(self, text: str) -> None:
        """A sentence on what was done: one line, whatever is in it, and whole."""
        self.text(" ".join(text.split()))

    def line(self, text: str, colour: str = "") -> None:
        """One line as it is, cut where the terminal ends."""
        if self.terminal:
            text = cut(clean(text), self._width)
        sys.stdout.write(f"{self.coloured(text, colour)}\n")

    def row(self, *parts: tuple[str, str]) -> None:
        """One line of ``(text, colour)``; the last part is cut where the terminal ends."""
        shown, room = [], self._width
        for text, colour in parts:
            text = " ".join(text.split())
            if self.terminal:
                text = cut(clean(text), max(0, room))
                room -= width(text) + 2
            shown.append(self.coloured(text, colour))
        sys.stdout.write("  ".join(shown).rstrip(" ") + "\n")

    def field(self, name: str, value: str) -> None:
        """A name and all of its value."""
        value = " ".join(value.split())
        label = self.coloured(f"{name:16}", "dim")
        sys.stdout.write(f"{label}  {clean(value) if self.terminal else value}\n")

    def coloured(self, text: str, colour: str) -> str:
        """``text`` in a colour, where there are any."""
        if not (self._coloured and colour and text):
            return text
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"

    def note(self, text: str) -> None:
        """Something to know that is no result: on standard error."""
        _tell("note", text, self.as_json)

    @property
    def watched(self) -> bool:
        """Whether a person reads the notes, who wonders where nothing is printed."""
        return not self.as_json and _is_terminal(sys.stderr)

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Say on a terminal what takes its time, while it does."""
        if not _is_terminal(sys.stderr):
            yield
            return
        text = cut(f"retain: {clean(what)} …", shutil.get_terminal_size().columns - 1)
        sys.stderr.write(text)
        sys.stderr.flush()
        try:
            yield
        finally:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    @contextmanager
    def progress(
        self, label: str, hidden: bool = False
    ) -> Iterator[Callable[[int, int], None] | None]:
        """A bar on standard error that a long task moves; ``None`` where nobody looks."""
        if hidden or not _is_terminal(sys.stderr):
            yield None
            return
        with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

            def move(done: int, total: int) -> None:
                if total:
                    bar.length = total
                    bar.update(done - bar.pos)

            yield move


def _is_terminal(stream: IO[str] | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def clean(text: str) -> str:
    """``text`` with its control characters, lines and tabs aside, as escapes."""
    return text.translate(_ESCAPES)


def width(text: str) -> int:
    """The columns that ``text`` takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, columns: int) -> str:
    """``text`` in at most so many columns, with an ellipsis where it was longer."""
    if width(text) <= columns:
        return text
    kept, room = [], columns - 1
    for char in text:
        room -= _columns(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept) + "…" if columns > 0 else ""


# -- what went wrong -------------------------------------------------------------------------


def exit_code(error: BaseException) -> int:
    """The exit code that an error ends the command with."""
    if isinstance(error, NotFound):
        return NOT_FOUND
    if isinstance(error, Rejected):
        return REJECTED
    if isinstance(error, click.Abort):
        return INTERRUPTED
    if isinstance(error, (InvalidValue, InvalidType)):
        return WRONG
    if isinstance(error, click.ClickException):
        return error.exit_code
    return UNUSABLE


def report(error: BaseException, as_json: bool) -> int:
    """Say on standard error what went wrong; the exit code."""
    code = exit_code(error)
    kind = type(error).__name__
    _tell("error", _message(error), as_json, type=kind, exit_code=code)
    return code


def _message(error: BaseException) -> str:
    if isinstance(error, click.Abort):
        return "interrupted"
    if isinstance(error, click.UsageError):
        context = error.ctx
        hint = f" (see {context.command_path} -h)" if context is not None else ""
        return error.format_message().rstrip(".") + _dashes(error) + hint
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, NetworkFilesystem):
        return str(error).replace("pass allow_network=True", "give --allow-network")
    if isinstance(error, OSError) and not isinstance(error, RetainError):
        return f"{error.filename or 'input or output'}: {error.strerror or error}"
    return str(error)


def _dashes(error: click.UsageError) -> str:
    """How to say a text that was taken for an option, where the command takes texts."""
    if not isinstance(error, click.NoSuchOption) or error.possibilities or error.ctx is None:
        return ""
    texts = [each for each in error.ctx.command.params if isinstance(each, click.Argument)]
    return "; put -- before a text that begins with -" if texts else ""


def _tell(kind: str, text: str, as_json: bool, **more: Any) -> None:
    if sys.stderr is None:
        return
    text = " ".join(text.split())
    if as_json:
        line = json.dumps({kind: text, **more}, ensure_ascii=True)
    else:
        line = f"retain: {clean(text)}"
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def hang_up() -> int:
    """The reader of the output has gone: no word of it, nor one by Python at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = None
    return _BROKEN_PIPE


class Notes(logging.Handler):
    """Warnings of the library, told as notes."""

    def __init__(self, printer: Printer) -> None:
        super().__init__(logging.WARNING)
        self._printer = printer

    def emit(self, record: logging.LogRecord) -> None:
        self._printer.note(record.getMessage())
