"""What every command has at hand: the memory that was named, and the printer."""

from __future__ import annotations

import functools
import logging
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidValue, NotFound
from .options import Place, place_options
from .output import Notes, Printer

if TYPE_CHECKING:
    from ..memories.knowledge import KnowledgeMemory
    from ..models import Memory
    from ..scope import Scope
    from ..stores.base import Store
    from ..stores.opening import Address

__all__ = ["App", "command", "is_piped", "pick", "read_text", "short"]

Command = Callable[..., "int | None"]

_SHORTEST = 4  # characters of an id
_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}")


class App:
    """A command's surroundings: ``place`` is what was named, ``out`` where it prints."""

    def __init__(self, context: click.Context) -> None:
        self._context = context
        self.place = Place(context)
        self.out = Printer(self.place.as_json)
        self._opened: dict[Scope, KnowledgeMemory] = {}

    @property
    def directory(self) -> Path:
        """The memory directory, where no store is named."""
        return self.place.directory

    @functools.cached_property
    def address(self) -> Address | None:
        """The store that is named in place of a directory."""
        url = self.place.store
        return None if url is None else self.address_of(url)

    def address_of(self, url: str) -> Address:
        """The store that a URL of the command line names: one that outlives the command."""
        from ..stores.opening import address

        found = address(url)
        if not found.lasts:
            raise InvalidValue(f"{found.shown} is gone when a command ends; name another store")
        return found

    @property
    def where(self) -> str:
        """The directory or the store, as messages name it: without a password."""
        return str(self.directory) if self.address is None else self.address.shown

    @property
    def scope(self) -> Scope:
        """Whose memory it is."""
        from ..scope import Scope

        return Scope(**self.place.scope)

    @property
    def given_scope(self) -> Scope | None:
        """The scope that the command line itself names, ``None`` for none."""
        from ..scope import Scope

        given = {
            name: name_of for name, name_of in self.place.scope.items() if name in self.place.given
        }
        return Scope(**given) if given else None

    def exists(self) -> bool:
        """Whether there is a memory at the place, or a MEMORY.md to make one of."""
        if self.address is not None:
            return self.address.exists()
        return any((self.directory / name).exists() for name in ("memory.db", "MEMORY.md"))

    def require(self) -> None:
        """A command that reads makes nothing: a place that isn't there is a wrong one."""
        if not self.exists():
            raise NotFound(f"nothing is remembered in {self.where} yet")

    def reading(self) -> KnowledgeMemory:
        """The memory, which must be there."""
        self.require()
        return self.memory()

    def memory(self, scope: Scope | None = None) -> KnowledgeMemory:
        """The memory, made if it is not there; closed when the command ends."""
        from ..memories.knowledge import KnowledgeMemory

        self.listen()
        scope = self.scope if scope is None else scope
        if scope not in self._opened:
            if self.address is None:
                memory = KnowledgeMemory(
                    self.directory, scope=scope, allow_network=self.place.allow_network
                )
            else:
                memory = KnowledgeMemory(None, store=self.store, scope=scope)
            self._opened[scope] = self._context.with_resource(memory)
        return self._opened[scope]

    @functools.cached_property
    def store(self) -> Store:
        """The store that is named, made if it is not there; closed when the command ends."""
        assert self.address is not None
        return self.open(self.address)

    def open(self, address: Address, scope: Scope | None = None) -> Store:
        """Open a store, which is closed when the command ends."""
        options = {}
        if self.place.allow_network and address.path is not None:
            options["allow_network"] = True
        return self.closing(address.open(scope=scope, **options))

    def closing(self, store: Store) -> Store:
        """``store``, which is closed when the command ends."""
        return self._context.with_resource(store)

    def listen(self) -> None:
        """Let the library's warnings come out as notes."""
        logger = logging.getLogger("retain")
        if not any(isinstance(handler, Notes) for handler in logger.handlers):
            notes, quiet = Notes(self.out), logging.NullHandler()
            pool = logging.getLogger("psycopg.pool")  # tells each attempt; the error tells all
            logger.addHandler(notes)
            pool.addHandler(quiet)
            self._context.call_on_close(lambda: logger.removeHandler(notes))
            self._context.call_on_close(lambda: pool.removeHandler(quiet))

    # -- ids ---------------------------------------------------------------------------------

    def find(
        self, memory: KnowledgeMemory, ids: Iterable[str], beside: Sequence[Memory] = ()
    ) -> list[Memory]:
        """The memories of these ids, each whole or at least four characters of its beginning.

        ``beside``: others that may be meant. Raises ``NotFound`` where there is none, and
        ``InvalidValue`` where it is the beginning of several.
        """
        store = memory.engine.store
        ids = list(ids)
        whole = {found.id: found for found in (*beside, *store.peek(ids))}
        known = [] if all(id in whole for id in ids) else [*beside, *store.iterate()]
        return [whole[id] if id in whole else self._one(id, known) for id in ids]

    def _one(self, part: str, known: Iterable[Memory]) -> Memory:
        found = pick(part, known)
        if found is None:
            raise NotFound(
                f"no memory in {self._whose()} has an id that begins with {part!r}; "
                "'retain list' shows them"
            )
        return found

    def _whose(self) -> str:
        scope = ", ".join(f"{name} {value}" for name, value in self.scope.to_dict().items())
        return f"{self.where}{f' ({scope})' if scope else ''}"


def pick(part: str, known: Iterable[Memory]) -> Memory | None:
    """The one memory whose id is ``part``, or begins with it; ``None`` if there is none."""
    found = {memory.id: memory for memory in known if memory.id.startswith(part)}
    if part in found:
        return found[part]
    if found and len(part) < _SHORTEST:
        raise InvalidValue(f"{part!r} is too short; give at least {_SHORTEST} characters of an id")
    if len(found) > 1:
        names = ", ".join(sorted(found)[:5]) + (", …" if len(found) > 5 else "")
        raise InvalidValue(f"{part!r} is the beginning of {len(found)} ids: {names}")
    return next(iter(found.values()), None)


def short(id: str) -> str:
    """An id as listings show it: enough of a UUID, all of others."""
    return id[:8] if _UUID.fullmatch(id) else id


def command(name: str = "", **settings: Any) -> Callable[[Command], click.Command]:
    """Make a subcommand of a function of an ``App`` and options that may return an exit code."""

    def add(function: Command) -> click.Command:
        @functools.wraps(function)
        def run(**arguments: Any) -> int:
            return function(App(click.get_current_context()), **arguments) or 0

        name_or_own = name or function.__name__
        make: Callable[[Any], click.Command] = click.command(name_or_own, **settings)
        return make(place_options(run))

    return add


def read_text(path: str) -> str:
    """All of a file, or of standard input for ``-``, without the line end at its end."""
    if path == "-":
        data = sys.stdin.buffer.read()
        name = "standard input"
    else:
        data = Path(path).read_bytes()
        name = path
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{name} is not UTF-8 at byte {error.start + 1}") from None
    return text.removesuffix("\n").removesuffix("\r")


def is_piped() -> bool:
    """Whether standard input is something else than a person at a keyboard."""
    return sys.stdin is not None and not sys.stdin.isatty()
