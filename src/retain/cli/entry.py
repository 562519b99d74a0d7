"""The command ``retain`` itself: its options, its errors, its exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from importlib import import_module
from typing import Any

import click

from .. import __version__
from ..errors import RetainError
from .options import place_options
from .output import WRONG, hang_up, report

__all__ = ["main"]


_ROOMS = {
    "remember": "remembering",
    "observe": "remembering",
    "recall": "reading",
    "update": "remembering",
    "forget": "remembering",
    "restore": "remembering",
    "list": "reading",
    "show": "reading",
    "facts": "reading",
    "log": "reading",
    "context": "reading",
    "prune": "keeping",
    "stats": "keeping",
    "check": "keeping",
    "backup": "keeping",
    "export": "carrying",
    "import": "carrying",
    "copy": "carrying",
    "serve": "serving",
    "mcp": "mcp",
    "eval": "evaluating",
    "demo": "demo",
}
"""The modules of the commands, in the order of the help."""


_MEANT = {
    "help": "--help",
    "add": "remember",
    "save": "remember",
    "search": "recall",
    "find": "recall",
    "delete": "forget",
    "remove": "forget",
    "rm": "forget",
}
"""What other programs call them."""


class Commands(Mapping[str, click.Command]):
    """The commands by name, each loaded when it is asked for."""

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f".{_ROOMS[name]}", __package__)
        word = f"{name}_" if name in ("eval", "import", "list") else name  # those are Python's
        command: click.Command = getattr(module, word)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_ROOMS)

    def __len__(self) -> int:
        return len(_ROOMS)


class Retain(click.Group):
    """Commands in the order of their table, and every error as one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names: what is needed first stands first."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named; where another program's is, the error says which to use."""
        if args[0] in _MEANT:
            ctx.fail(f"No such command {args[0]!r}; did you mean 'retain {_MEANT[args[0]]}'?")
        return super().resolve_command(ctx, args)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and end the process, unless told not to."""
        words = list(sys.argv[1:] if args is None else args)
        if not standalone_mode:
            return super().main(words, prog_name, complete_var, False, **extra)
        sys.exit(self._run(words, prog_name or "retain", complete_var, extra))

    def _run(
        self, words: list[str], name: str, complete_var: str | None, extra: MutableMapping[str, Any]
    ) -> int:
        if sys.stdout is None:  # closed by whoever started the process
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
        # nothing here multiplies matrices, and numpy's threads take some 50 ms to start
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        as_json = "--json" in words[: words.index("--") if "--" in words else None]
        try:
            code = super().main(words, name, complete_var, False, **extra)
            sys.stdout.flush()
        except BrokenPipeError:
            return hang_up()
        except (RetainError, click.ClickException, click.Abort, OSError) as error:
            return report(error, as_json)
        return code if isinstance(code, int) else 0

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; its reader may go away, and a person may interrupt it."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return hang_up()
        except KeyboardInterrupt:
            raise click.Abort from None


@click.group(
    name="retain",
    cls=Retain,
    commands=Commands(),  # which click only reads
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "--version", prog_name="retain", message="%(prog)s %(version)s")
@place_options
@click.pass_context
def main(context: click.Context) -> int:
    """Long-term memory: remember something today, recall it in another process next month.

    The memory is a directory with a database, a MEMORY.md to read and edit, and a log for
    each day; or --store names another store by its URL. --dir, --store, --user, --agent,
    --session and --json may stand before or after the subcommand.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        return WRONG
    return 0
