"""The knowledge specification's memory: facts for good, notes for a while, files to read."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from .. import clock, files
from ..backends import KnowledgeBackend
from ..backends.keys import quoted
from ..context import knowledge_context
from ..engine import Engine, whole
from ..errors import InvalidType, Rejected, RetainError
from ..guard.hooks import Hook
from ..models import Memory, MemoryImportance, MemoryType, one_line
from ..scope import Scope
from ..search.embedders import Embedder, default_embedder
from ..search.rank import HALF_LIFE
from ..stores.base import Store
from ..stores.knowledge import KnowledgeStore, KnowledgeView, as_store
from ..stores.memory import InMemoryStore
from ..stores.sqlite import SQLiteStore
from .base import Face
from .carried import Carried, Room
from .directory import BareNotebook, MemoryDirectory, Notebook

__all__ = ["DATABASE", "KnowledgeMemory", "Receipt", "scope_folder"]

log = logging.getLogger("retain")

DATABASE = "memory.db"
"""The store's file in a memory directory."""

_DEFAULT_PLACE = "./agent_memory"


class Receipt(str):
    """What ``remember`` answers: a sentence, with the memory's ``id``.

    Empty, and so falsy, where a hook rejected the text; ``reason`` then says which.
    """

    id: str
    reason: str

    def __new__(cls, text: str, *, id: str = "", reason: str = "") -> Receipt:
        receipt = super().__new__(cls, text)
        receipt.id = id
        receipt.reason = reason
        return receipt


class KnowledgeMemory(Face):
    """Facts that last and notes of the day, in a directory that people can read and edit.

    Persistent facts stand in ``MEMORY.md`` and are never pruned; every memory has a line in
    the log of its day, ``logs/YYYY-MM-DD.jsonl``, which is pruned after ``max_log_days``
    days together with the memories in it that are not persistent. The store itself is
    ``memory.db`` beside them. A person may edit ``MEMORY.md`` at any time: the edits are
    honoured from the next call on, and lines deleted by hand can be restored for 30 days.
    Several processes may use one directory.

    ``storage_dir`` (or ``directory``): the directory, made if it is not there; ``None`` for no
    files at all. ``max_log_days``: days that logs are kept; 0 keeps today's.
    ``max_context_entries``: the most notes in :meth:`build_context`. ``store``: another store
    than the directory's own: a :class:`~retain.Store`, its URL, or any knowledge store.
    ``backend``: where the whole directory is loaded from now and saved to after every change.
    ``allow_network``: accept a directory on a network file system. A scope other than the
    default has its files under ``scopes/`` there. The other arguments are those of
    :class:`~retain.memories.base.Face`.

    >>> import tempfile
    >>> from retain import KnowledgeMemory
    >>> knowledge = KnowledgeMemory(tempfile.mkdtemp())
    >>> receipt = knowledge.remember("Likes tea", category="preferences", persistent=True)
    >>> print(knowledge.build_context())
    [Long-term Memory]
    ## preferences
    - Likes tea
    """

    default_type = MemoryType.SEMANTIC

    def __init__(
        self,
        storage_dir: str | os.PathLike[str] | None = _DEFAULT_PLACE,
        max_log_days: int = 30,
        max_context_entries: int = 50,
        *,
        directory: str | os.PathLike[str] | None = None,
        store: Store | KnowledgeStore | str | None = None,
        backend: KnowledgeBackend | None = None,
        scope: Scope | None = None,
        pre_save: Hook | Sequence[Hook] | None = None,
        dedupe: bool = False,
        dedupe_threshold: float = 0.9,
        dedupe_window: int = 200,
        max_entries: int | None = None,
        half_life: float = HALF_LIFE,
        embedder: Embedder | None = default_embedder(),  # noqa: B008  # reads nothing yet
        allow_network: bool = False,
    ) -> None:
        self.max_log_days = whole(max_log_days, "max_log_days", 0)
        self.max_context_entries = whole(max_context_entries, "max_context_entries", 0)
        place = _place(storage_dir, directory)
        self.directory = place
        self._given = store
        self._carried = Carried(place, backend, self._room)
        if store is not None:
            memories = as_store(store)
        elif place is None:
            memories = InMemoryStore()
        else:
            memories = SQLiteStore(place / DATABASE, allow_network=allow_network)
        self._carried.open(memories)
        super().__init__(
            memories,
            scope=scope,
            pre_save=pre_save,
            dedupe=dedupe,
            dedupe_threshold=dedupe_threshold,
            dedupe_window=dedupe_window,
            max_entries=max_entries,
            half_life=half_life,
            embedder=embedder,
        )
        self._notebook: Notebook = BareNotebook(self.engine)
        if place is not None:
            folder = scope_folder(place, self.scope)
            self._notebook = MemoryDirectory(folder, self.engine, self.max_log_days)
        try:
            self._carried.catch_up()
        except BaseException:
            super().close()
            raise

    @property
    def store(self) -> KnowledgeStore:
        """The entries as a knowledge store; call :meth:`flush` after changing them there."""
        if self._given is not None and not isinstance(self._given, (Store, str)):
            return self._given
        return KnowledgeView(self.engine.store)

    @property
    def backend(self) -> KnowledgeBackend | None:
        """Where the directory is carried to."""
        return self._carried.backend

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._carried.turn():
            with self._notebook.writing():
                yield
            self._carried.save()

    def _look(self) -> None:
        self._notebook.look()
        if self._carried.is_behind():  # perhaps an edit by hand was taken over
            try:
                self._carried.save()
            except RetainError as error:  # a read has all it needs here
                log.warning("%s", error)

    def _room(self, scope: Scope | None) -> Room:
        """A scope of the directory (``None``: this one), for what other hosts changed in it."""
        assert self.directory is not None
        folder = scope_folder(self.directory, self.scope if scope is None else scope)
        if scope is None or scope == self.scope:
            return Room(self.engine, self._notebook, folder)
        engine = Engine(self.engine.store.scoped(scope))
        if folder.exists():
            return Room(engine, MemoryDirectory(folder, engine, self.max_log_days), folder)
        return Room(engine, BareNotebook(engine), folder)

    # -- in --------------------------------------------------------------------------------

    def remember(
        self,
        content: str,
        category: str = "general",
        persistent: bool = False,
        *,
        importance: MemoryImportance | float = 0.5,
        ttl_days: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Iterable[str] | None = None,
        memory_type: MemoryType | None = None,
        source: str = "",
        created_at: float | datetime | None = None,
    ) -> Receipt:
        """Remember ``content``; a sentence that says so, with ``.id``.

        ``category``: what it is filed under. ``persistent``: a fact for good, in MEMORY.md; an
        equal one of the category is not written again, and its id returned. ``importance``:
        0 to 1. ``ttl_days``: days until it is invisible. ``memory_type``: SEMANTIC unless
        given. ``metadata``, ``tags``, ``source`` and ``created_at``: as in
        :meth:`AgentMemory.remember`.

        Durable when the call returns. Where a hook rejects the text, nothing is written and
        the receipt is empty. Raises ``InvalidValue`` (``ttl_days`` with ``persistent``, a
        blank content) or ``InvalidType``; then nothing was written.
        """
        draft = self._draft(
            content,
            category=category,
            persistent=persistent,
            importance=importance,
            ttl_days=ttl_days,
            metadata=metadata,
            tags=tags,
            memory_type=memory_type,
            source=source,
            created_at=created_at,
        )
        try:
            with self._writing():
                memory = self.engine.remember(draft)
        except Rejected as refusal:
            return Receipt("", reason=refusal.reason)
        if memory.id != draft.id:
            return Receipt(f"Already remembered in {one_line(memory.category)}.", id=memory.id)
        kept = "for good" if persistent else "for now"
        return Receipt(f"Remembered {kept} in {one_line(memory.category)}.", id=memory.id)

    def add_fact(self, fact: str, source: str = "") -> Memory:
        """Remember a persistent SEMANTIC memory of HIGH importance; it as it is stored.

        ``source`` goes into ``metadata["source"]``. Raises ``Rejected`` where a hook refuses.
        """
        return self._remember(
            fact,
            memory_type=MemoryType.SEMANTIC,
            importance=MemoryImportance.HIGH,
            metadata={"source": source},
            source=source,
            persistent=True,
        )

    def forget(self, id: str) -> bool:
        """Delete a memory for good, from the store, MEMORY.md, the logs; whether it was there.

        What was deleted from MEMORY.md by hand can then not be restored either.
        """
        with self._writing():
            found = self.engine.forget(id)
            return self._notebook.forget_for_good(id) or found

    def restore(self, id: str) -> Memory:
        """Bring back a fact whose line was deleted from MEMORY.md within 30 days.

        Raises ``NotFound`` where there is none of that id; see :meth:`forgotten`.
        """
        with self._writing():
            return self._notebook.restore(id)

    def forgotten(self) -> list[tuple[datetime, Memory]]:
        """The facts that can be restored, with the time their lines were deleted."""
        self._look()
        return [(clock.as_datetime(at), memory) for at, memory in self._notebook.forgotten()]

    def prune_logs(self, max_days: int | None = None) -> int:
        """Delete logs older than ``max_days`` days (``max_log_days`` unless given); how many.

        Their memories that are not persistent are deleted with them. 0 keeps today's log.
        Days are UTC.
        """
        days = self.max_log_days if max_days is None else whole(max_days, "max_days", 0)
        with self._writing():
            return self._notebook.prune(clock.days_ago(days))

    prune_old_logs = prune_logs

    def clear(self) -> None:
        """Delete every memory of the scope, the logs, and all of MEMORY.md but its title."""
        with self._carried.turn():
            self._notebook.clear()
            self._carried.save()

    def clear_logs(self) -> None:
        """Delete the logs, and their memories that are not persistent."""
        with self._writing():
            self._notebook.prune(None)

    def flush(self, *, overwrite: bool = False) -> None:
        """Bring files and store in step, and save to the back end, if there is one.

        ``overwrite``: also over an archive there that could not be read when this was opened.
        """
        with self._carried.turn():
            with self._notebook.writing():
                pass
            self._carried.save(overwrite=overwrite)

    # -- out -------------------------------------------------------------------------------

    def build_context(self) -> str:
        """A block for a prompt: ``[Long-term Memory]`` and ``[Recent Memory]``.

        The facts of MEMORY.md by category, then the last ``max_context_entries`` notes,
        oldest first, a line each; an empty section is left out. Old logs are pruned first.
        What is recalled is data: fence it (``retain.fence``) where it goes into a prompt.
        """
        self._look()
        if self._notebook.stale(clock.days_ago(self.max_log_days)):
            self.prune_logs()
        recent = self._notebook.recent(self.max_context_entries, transient=True)
        return knowledge_context(self._notebook.facts(), recent[::-1])

    def get_persistent_facts(self) -> dict[str, list[str]]:
        """The persistent facts by category, as they stand in MEMORY.md."""
        self._look()
        return self._notebook.facts()

    def get_recent_entries(self, days: int = 7, limit: int = 50) -> list[dict[str, Any]]:
        """The entries of the last ``days`` days' logs, newest first, at most ``limit``.

        Each has ``timestamp`` (ISO 8601, UTC), ``category``, ``content``, ``persistent`` and
        ``id`` (``None`` for a line that a person wrote). 0 days means today.
        """
        first = clock.days_ago(whole(days, "days", 0))
        self._look()
        return self._notebook.recent(whole(limit, "limit", 0), first)

    def match(self, query: str, k: int = 5) -> list[Memory]:
        """The k best memories in the order of the ``recall`` tool.

        By the share of the query's terms found, in steps of 0.05, then importance, then
        relevance, then newest.
        """
        self._look()
        return self.engine.match(query, k)

    def close(self) -> None:
        """Make everything last and close the store.

        What a failed save left is saved now, or ``StoreFailed`` raised once all is closed.
        """
        self._notebook.close()
        try:
            if self._carried.is_pending:
                self._carried.save()
        finally:
            super().close()


def scope_folder(place: Path, scope: Scope) -> Path:
    """Where the files of a scope are: ``place`` itself for the default one."""
    if scope == Scope():
        return place
    parts = [f"{name}={quoted(value)}" for name, value in scope.to_dict().items()]
    name = ",".join(parts)
    if name[-1] in ". ":  # which Windows drops
        name = f"{name[:-1]}%{ord(name[-1]):02X}"
    if len(name) > 200:  # file names end at 255 bytes
        import hashlib

        digest = hashlib.blake2b(scope.key.encode(), digest_size=16).hexdigest()
        name = f"{name[:150]}+{digest}"  # quote() leaves no plus
    return place / "scopes" / name


def _place(storage_dir: Any, directory: Any) -> Path | None:
    if directory is None:
        place = storage_dir
    elif storage_dir in (_DEFAULT_PLACE, directory):
        place = directory
    else:
        raise InvalidType(
            f"storage_dir={storage_dir!r} and directory={directory!r} are two names of one "
            "argument; give one of them"
        )
    if place is None:
        return None
    if not isinstance(place, (str, os.PathLike)):
        raise InvalidType(f"storage_dir is a {type(place).__name__}; give a path, or None")
    return files.real_path(place)
