"""What the options say: whose memory, where it is, and the types of the arguments.

Nothing heavier than click is imported here, so that ``retain --help`` is there at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import InvalidValue, StoreFailed

if TYPE_CHECKING:
    from ..models import MemoryType

    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # which became generic with click 8.3

__all__ = [
    "IMPORTANCE",
    "KIND",
    "METADATA",
    "TEXT",
    "TIME",
    "Place",
    "filters",
    "place_options",
]

F = TypeVar("F", bound=Callable[..., Any])

_GIVEN = "retain.given"  # in the context's meta, which a command shares with its group
_STEPS = ("low", "medium", "high", "critical")


class Place:
    """The memory that a command line names, by options or else by the environment."""

    def __init__(self, context: click.Context) -> None:
        given: dict[str, str] = context.meta.get(_GIVEN, {})
        self._found = {
            name: given.get(name) or os.environ.get(f"RETAIN_{name.upper()}") or None
            for name in ("dir", "store", "user", "agent", "session")
        }
        self.given = frozenset(given)
        """The options that were given, environment aside."""
        self.allow_network = "allow_network" in given or _is_set("RETAIN_ALLOW_NETWORK")
        self.as_json = "json" in given

    @property
    def directory(self) -> Path:
        """``--dir``, ``RETAIN_DIR``, or where the platform keeps a user's data."""
        named = self._found["dir"]
        if named is None:
            from platformdirs import user_data_dir

            named = user_data_dir("retain", appauthor=False)
        from ..files import real_path

        path = real_path(named)
        if path.is_file():
            raise StoreFailed(f"{path} is a file, not a directory; name the directory of a memory")
        return path

    @property
    def store(self) -> str | None:
        """The URL of a store in place of a directory: ``--store``, or else ``RETAIN_STORE``.

        A command line names one of the two, or else the environment does.
        """
        named = self.given & {"dir", "store"}
        if len(named) == 2:
            raise click.UsageError("--dir and --store are two places; give one of them")
        if named == {"dir"}:
            return None
        if not named and self._found["dir"] and self._found["store"]:
            raise click.UsageError(
                "RETAIN_DIR and RETAIN_STORE are both set, and are two places; "
                "unset one of them, or give --dir or --store"
            )
        return self._found["store"]

    @property
    def scope(self) -> dict[str, str | None]:
        """The parts of the scope: user, agent and session."""
        return {name: self._found[name] for name in ("user", "agent", "session")}


def _is_set(name: str) -> bool:
    return os.environ.get(name, "").strip().casefold() not in ("", "0", "no", "false", "off")


def _gather(context: click.Context, option: click.Parameter, values: Any) -> None:
    """Take an option of the group or of the command; twice with two values is a mistake."""
    given: dict[str, str] = context.meta.setdefault(_GIVEN, {})
    name = str(option.name)
    if isinstance(values, bool):
        values = ["yes"] if values else []
    for value in values:
        if not value:
            raise click.BadParameter("it is empty; leave it out", context, option)
        if given.setdefault(name, value) != value:
            # a URL may hold a password
            values = "" if name == "store" else f", as {given[name]!r} and as {value!r}"
            raise click.UsageError(f"{option.opts[0]} is given twice{values}", context)


class Text(ParamType):
    """Text that UTF-8 can hold; an argument in another encoding is none."""

    name = "text"

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> str:
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            self.fail(f"it is not UTF-8 at character {error.start + 1}", param, context)
        return text


class Time(ParamType):
    """A time in ISO 8601, in UTC unless it has an offset; in epoch seconds."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> float:
        from ..moving.times import as_time

        try:
            return as_time(value, "")
        except InvalidValue as error:
            self.fail(str(error), param, context)


class Importance(ParamType):
    """``low``, ``medium``, ``high``, ``critical``, or a number from 0 to 1."""

    name = "importance"

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        name = str(value).casefold()
        if name in _STEPS:
            return (_STEPS.index(name) + 1) / 4
        try:
            number = float(name)
        except ValueError:
            number = -1.0
        if not 0 <= number <= 1:
            known = ", ".join(_STEPS)
            self.fail(f"{value!r} is none of {known}, and no number from 0 to 1", param, context)
        return number


class Metadata(ParamType):
    """A JSON object."""

    name = "json"

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        try:
            found = json.loads(value)
        except ValueError as error:
            self.fail(f"it is not JSON: {error}", param, context)
        except RecursionError:
            self.fail("it is nested too deeply", param, context)
        if not isinstance(found, dict):
            self.fail('it is no JSON object, such as {"page": 3}', param, context)
        return found


class Kind(ParamType):
    """A type of memory."""

    name = "type"

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> MemoryType:
        from ..models import MemoryType

        if isinstance(value, MemoryType):
            return value
        try:
            return MemoryType(str(value).casefold())
        except ValueError:
            known = ", ".join(kind.value for kind in MemoryType)
            self.fail(f"{value!r} is none of {known}", param, context)


TEXT, TIME, IMPORTANCE, METADATA, KIND = Text(), Time(), Importance(), Metadata(), Kind()


def _part(name: str) -> Callable[[F], F]:
    return click.option(
        f"--{name}",
        multiple=True,
        expose_value=False,
        type=TEXT,
        callback=_gather,
        metavar="NAME",
        help=f"Whose memory: the {name}. [RETAIN_{name.upper()}]",
    )


def place_options(command: F) -> F:
    """Add the options that stand before or after the subcommand."""
    for option in reversed(_PLACE):
        command = option(command)
    return command


def filters(command: F) -> F:
    """Add what recall and list are narrowed by: the arguments of ``Filter.of``."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


_PLACE: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--dir",
        multiple=True,
        expose_value=False,
        type=click.Path(),
        callback=_gather,
        metavar="PATH",
        help="The memory directory. [RETAIN_DIR]",
    ),
    click.option(
        "--store",
        multiple=True,
        expose_value=False,
        type=TEXT,
        callback=_gather,
        metavar="URL",
        help="A store in place of a directory. [RETAIN_STORE]",
    ),
    _part("user"),
    _part("agent"),
    _part("session"),
    click.option(
        "--allow-network",
        is_flag=True,
        expose_value=False,
        callback=_gather,
        help="Accept a directory on a network file system.",
    ),
    click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=_gather,
        help="Print JSON, an object a line.",
    ),
)
_FILTERS: tuple[Callable[[Any], Any], ...] = (
    click.option("--type", "memory_type", type=KIND, help="Only episodic, semantic or procedural."),
    click.option("--category", type=TEXT, help="Only of this category."),
    click.option("--tag", "tags", type=TEXT, multiple=True, help="Only with this tag (or these)."),
    click.option("--min-importance", type=IMPORTANCE, help="Only at least as important."),
    click.option("--since", type=TIME, help="Only from this time on."),
    click.option("--until", type=TIME, help="Only before this time."),
    click.option("--persistent/--no-persistent", default=None, help="Only facts, or only notes."),
)
