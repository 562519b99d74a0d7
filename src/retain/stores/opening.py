"""One URL opens any store."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, unquote

from .. import files
from ..errors import InvalidType, InvalidValue, MissingPackage
from ..models import as_text
from ..scope import Scope
from .base import Store

__all__ = ["Address", "address", "hidden", "is_url", "open", "open_store"]


def _flag(value: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    return known[value.casefold()]


Reader = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of store: its class, and what may be said of it behind the ``?`` of a URL."""

    module: str
    store: str
    options: Mapping[str, Reader] = field(default_factory=dict)

    @property
    def opener(self) -> Callable[..., Store]:
        """The class, which is loaded here."""
        found = getattr(import_module(f".{self.module}", __package__), self.store)
        return cast("Callable[..., Store]", found)


_NETWORK: dict[str, Reader] = {"allow_network": _flag}
_SQLITE = Kind("sqlite", "SQLiteStore", {"busy_timeout": float, **_NETWORK})
_FOLDER = Kind("file", "FileStore", _NETWORK)
_JSON = Kind("json_file", "JSONFileStore", _NETWORK)
_MEMORY = Kind("memory", "InMemoryStore")
_SUPABASE = Kind("supabase", "SupabaseStore", {"table": str, "schema": str, "timeout": float})
_POOL: dict[str, Reader] = {"connections": int, "timeout": float, "prepare": _flag, "tell": _flag}
_POSTGRES = Kind(
    "postgres",
    "PostgresStore",
    {"schema": str, "partitions": int, "native_search": _flag, **_POOL},
)
_REDIS = Kind("redis", "RedisStore", {"prefix": str, "timeout": float})
_SERVERS = {
    **dict.fromkeys(("postgresql", "postgres"), _POSTGRES),
    **dict.fromkeys(("redis", "rediss", "unix", "valkey", "valkeys"), _REDIS),
}
_EXAMPLES = {
    "sqlite": "sqlite:///notes.db, or sqlite:////var/notes.db for an absolute path",
    "file": "file:folder, or file:/var/folder for an absolute path",
}
_KNOWN = (
    "sqlite:///notes.db, file:folder, file:notes.json, memory:, postgresql://…, redis://…, "
    "supabase:https://…"
)

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):", re.IGNORECASE)  # one letter is a drive of Windows
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
_NO_ESCAPE = re.compile(r"%(?![0-9a-f]{2})", re.IGNORECASE)
_FILE = re.compile(r"(sqlite|file):(?!//[^/])", re.IGNORECASE)  # with no host, and so no password
_SECRET = re.compile(r"(?i)((?:pass|pwd|secret|token|key)\w*\s*=\s*)[^&\s]+")


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """What a URL says: the kind of store, and where it is."""

    kind: Kind
    target: str
    """What the store is given: a path, or the URL of a server."""
    options: dict[str, Any]
    shown: str
    """The URL without its passwords, for messages."""

    @property
    def path(self) -> Path | None:
        """The file or folder, ``None`` where there is none."""
        return files.real_path(self.target) if self.kind in (_SQLITE, _FOLDER, _JSON) else None

    @property
    def lasts(self) -> bool:
        """Whether it outlives the process."""
        return self.kind is not _MEMORY

    def exists(self) -> bool:
        """Whether a store is there already; of a server only opening it can tell."""
        path = self.path
        if path is None:
            return self.lasts
        return (path / "memories.jsonl" if self.kind is _FOLDER else path).exists()

    def open(self, *, scope: Scope | None = None, **options: Any) -> Store:
        """Open the store; see :func:`open_store`."""
        self._refuse_mistaken()
        places: list[Any] = [] if self.kind is _MEMORY else [self.target]
        if self.kind is _SUPABASE:
            places = [_supabase(self.target)]
        opener = self.kind.opener
        can = [each.name for each in inspect.signature(opener).parameters.values() if _named(each)]
        for name in options:
            if name not in can:
                raise InvalidType(
                    f"{name!r} is no option of a {self.kind.store}; those are: {', '.join(can)}"
                )
        return opener(*places, **{**self.options, **options, "scope": scope})

    def __repr__(self) -> str:
        return f"<Address {self.shown}>"

    def _refuse_mistaken(self) -> None:
        """A folder for a file, or a file for a folder, before anything is made."""
        path = self.path
        if path is None:
            return
        if path.is_dir() and (path / "memory.db").exists():
            raise InvalidValue(
                f"{path} is a memory directory; open it with KnowledgeMemory or --dir, or its "
                f"store alone with sqlite:///{path / 'memory.db'}"
            )
        if path.is_dir() and self.kind is not _FOLDER:
            raise InvalidValue(
                f"{path} is a folder, and a {self.kind.store} is a file; name a file in it"
            )
        if path.is_file() and self.kind is _FOLDER:
            raise InvalidValue(
                f"{path} is a file, and a FileStore is a folder; name a folder, a file that ends "
                "in .json, or a SQLite file with sqlite:///"
            )


def open_store(url: str, *, scope: Scope | None = None, **options: Any) -> Store:
    """Open the store that ``url`` names; it is made if it is not there.

    ``sqlite:///notes.db`` (relative), ``sqlite:////var/notes.db`` (absolute),
    ``file:folder``, ``file:notes.json``, ``memory:``, ``postgresql://…``, ``redis://…``
    (``rediss``, ``unix``, ``valkey``), ``supabase:https://…`` (with the key in the
    environment, ``SUPABASE_KEY``). In a path ``%20`` stands for a space, and ``~`` at its
    beginning for the home. ``scope``: whose memories; the default one unless given.
    ``options``: further arguments of the store's class, which win over those behind the
    ``?`` of the URL.

    Raises ``InvalidValue`` for a URL that names no store, ``InvalidType`` for an option that
    the store has not, ``MissingPackage`` where a server needs a package, and what opening
    that store raises. No message holds a password.

    >>> import retain
    >>> with retain.open("memory:") as store:
    ...     store.save(retain.Memory("m1", "Likes tea"))
    ...     store.get("m1").content
    'Likes tea'
    """
    return address(url).open(scope=scope, **options)


def is_url(text: str) -> bool:
    """Whether ``text`` begins as a URL does, and so is no path."""
    return _SCHEME.match(text) is not None


def address(url: str) -> Address:
    """What ``url`` says, checked; nothing is opened. Raises ``InvalidValue``."""
    as_text(url, "a store's URL")
    shown = hidden(url)
    found = _SCHEME.match(url)
    if _CONTROLS.search(url) or url != url.strip():
        raise InvalidValue(
            f"{shown!r} has a control character in it, or white space around it; a store's URL "
            "has none (in a path, %20 is a space)"
        )
    if found is None:
        raise InvalidValue(
            f"{shown!r} is no URL of a store, nor is a path alone: write sqlite:///path for a "
            f"SQLite file, file:path for a folder. Known are {_KNOWN}"
        )
    scheme, rest = found[1].lower(), url[found.end() :]
    if scheme == "memory":
        if rest.strip("/"):
            raise InvalidValue(f"{shown!r} names a place in memory; write memory: and no more")
        return Address(_MEMORY, "", {}, shown)
    if scheme in ("sqlite", "file"):
        return _local(scheme, rest, shown)
    if scheme == "supabase":
        target, options = _taken(_SUPABASE, rest, shown)
        return Address(_SUPABASE, target, options, shown)
    if scheme not in _SERVERS:
        raise InvalidValue(f"no store is opened by {scheme}: URLs; known are {_KNOWN}")
    if not rest.startswith("//"):
        raise InvalidValue(f"{shown!r} names no server; write {scheme}://host/…")
    kind = _SERVERS[scheme]
    scheme = scheme.replace("valkey", "redis")  # the client knows them by that name
    target, options = _taken(kind, f"{scheme}:{rest}", shown)
    return Address(kind, target, options, shown)


def _local(scheme: str, rest: str, shown: str) -> Address:
    if "#" in rest:
        raise InvalidValue(f"{shown!r} has a # in it; in a path write %23")
    path, mark, query = rest.partition("?")
    if path.startswith("///"):  # a path after sqlite:///, an absolute one after file://
        path = path[3 if scheme == "sqlite" else 2 :]
    elif path.startswith("//"):
        raise InvalidValue(f"{shown!r} names no file, or a host; write {_EXAMPLES[scheme]}")
    if _NO_ESCAPE.search(path):
        raise InvalidValue(f"{shown!r} has a % that begins no %20 or the like; write %25 for it")
    try:
        path = unquote(path, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{shown!r} is not UTF-8 in its %…: {error.reason}") from None
    if os.name == "nt" and re.match(r"/[A-Za-z]:", path):
        path = path[1:]
    if not path.strip("/"):
        raise InvalidValue(f"{shown!r} names no file; write {_EXAMPLES[scheme]}")
    if path == ":memory:":
        raise InvalidValue(f"{shown!r}: a store in memory is memory:, and gone with the process")
    kind = _SQLITE
    if scheme == "file":
        kind = _JSON if path.casefold().endswith(".json") else _FOLDER
    options = _read(kind, query, shown) if mark else {}
    files.real_path(path)  # which refuses what is no path
    return Address(kind, path, options, shown)


def _read(kind: Kind, query: str, shown: str) -> dict[str, Any]:
    """The options of a local store: nothing else may stand behind the ``?``."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True, errors="strict")
    except ValueError:
        raise InvalidValue(
            f"{shown!r} has no name=value behind its ?; in a path write %3F"
        ) from None
    return dict(_option(kind, name, value, shown) for name, value in pairs)


def _option(kind: Kind, name: str, value: str, shown: str) -> tuple[str, Any]:
    if name not in kind.options:
        known = f"those are: {', '.join(kind.options)}" if kind.options else "it has none"
        raise InvalidValue(f"{shown!r}: {name!r} is no option of a {kind.store}; {known}")
    try:
        return name, kind.options[name](value)
    except (ValueError, KeyError):
        raise InvalidValue(f"{shown!r}: {name}={value!r} is no value for it") from None


def _taken(kind: Kind, url: str, shown: str) -> tuple[str, dict[str, Any]]:
    """The URL of a server without the options that are ours, as it is else; and those."""
    base, _, query = url.partition("?")
    theirs: list[str] = []
    ours: dict[str, Any] = {}
    for part in query.split("&") if query else []:
        name, _, value = part.partition("=")
        if name in kind.options:
            ours.update([_option(kind, name, unquote(value), shown)])
        else:
            theirs.append(part)
    return f"{base}?{'&'.join(theirs)}" if theirs else base, ours


def hidden(url: str) -> str:
    """``url`` without what may be a password, however broken it is.

    >>> hidden("postgresql://ann:s3cret@db.example.org/agents?sslpassword=x")
    'postgresql://***@db.example.org/agents?sslpassword=***'
    """
    url = _SECRET.sub(r"\1***", url)
    if _FILE.match(url):
        return url
    before, at, after = url.rpartition("@")
    mark = "//" if "//" in before else ":"
    if not at or mark not in before:
        return url
    return f"{before.partition(mark)[0]}{mark}***@{after}"


def _named(parameter: inspect.Parameter) -> bool:
    return parameter.kind is parameter.KEYWORD_ONLY and parameter.name != "scope"


def _supabase(url: str) -> Any:
    """A client of supabase-py, with the key from the environment: it belongs in no URL."""
    key = os.environ.get("SUPABASE_KEY")
    if not key:
        raise InvalidValue("supabase: needs the key of the project in SUPABASE_KEY; set it")
    try:
        import supabase
    except ImportError as error:
        raise MissingPackage.needed("SupabaseStore", "supabase", error) from error
    try:
        return supabase.create_client(url, key)
    except (supabase.SupabaseException, ValueError) as error:
        raise InvalidValue(
            f"supabase:{hidden(url)} can't be used ({error}); write supabase:https://…, as the "
            "project's settings show it"
        ) from None


open = open_store
"""As it is called from outside: ``retain.open``."""
