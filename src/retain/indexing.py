"""The index of a scope as its store changes: opened, brought level, looked after.

Whoever asks an index finds all in it that anyone has written to the scope before. What can wait
(embedding many texts, merging, files) is done on the process's background thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from .errors import RetainError
from .models import Memory
from .search.cache import IndexCache, later
from .search.disk import IndexFolder
from .search.embedders import Embedder
from .search.index import ScopeIndex
from .search.tidying import tidy
from .stores.base import Store

__all__ = ["Indexed", "Progress", "indexes"]

log = logging.getLogger("retain")

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Told how many memories are ready, and of how many."""

_BATCH = 512  # texts that are embedded in one go
_SAMPLE = 32  # rows of a file that are compared with the store

indexes = IndexCache()
"""Every index of the process; ``indexes.budget`` is the bytes that they may take."""


class Indexed:
    """One scope of a store, with the index of it.

    ``embedder``: what makes its vectors, ``None`` for none. For any number of threads.
    """

    def __init__(self, store: Store, embedder: Embedder | None = None) -> None:
        self.store = store
        self.embedder = embedder
        folder = store.driver.index_folder(store.scope)
        self._folder = None if folder is None else IndexFolder(folder, store.driver.identity)

    def ask(self, question: Callable[[ScopeIndex], T]) -> T:
        """The answer of the index to a question, which has it for itself meanwhile.

        A damaged file shows at the latest here; the index is then made anew from the store.
        """
        index = indexes.index(self.store.driver, self.store.scope, self.embedder)
        with index.lock:
            self._level(index)
            try:
                answer = question(index)
            except (IndexError, ValueError) as error:
                if self._folder is None or not index.from_files:
                    raise
                log.warning("%s: it is damaged (%s) and is made anew", self._folder.path, error)
                self._begin_anew(index)
                self._level(index)
                answer = question(index)
        indexes.used(self.store.driver, self.store.scope, index)
        if index.untidy:
            index.untidy = False
            later(partial(self._look_after, index))
        return answer

    def behind(self) -> int:
        """How many memories are not in the index yet."""
        index = indexes.index(self.store.driver, self.store.scope, self.embedder)
        with index.lock:
            self._open(index)
            return max(0, self.store.count() - len(index))

    def settle(self, progress: Progress | None = None) -> None:
        """Do now what would be done in the background, and wait for it."""
        index = indexes.index(self.store.driver, self.store.scope, self.embedder)
        with index.lock:
            self._level(index, progress)
            index.untidy = False
        self._look_after(index, progress)
        indexes.used(self.store.driver, self.store.scope, index)

    def close(self) -> None:
        """Let go of it, once what goes on in the background has stopped."""
        indexes.forget(self.store.driver)

    # -- level with the store --------------------------------------------------------------

    def _level(self, index: ScopeIndex, progress: Progress | None = None) -> None:
        """Bring the index to where the store is."""
        self._open(index)
        changes = self.store.changes(index.revision)
        if changes.reset:
            self._begin_anew(index)
        saved = changes.saved
        if progress is not None:
            saved = self._told(changes.saved, progress)
        try:
            index.apply(changes.deleted, saved, changes.revision)
        except BaseException:
            index.clear()  # it has a part of the changes
            raise

    def _open(self, index: ScopeIndex) -> None:
        """Put into an empty index what its files hold."""
        if index.empty and self._folder is not None:
            self._folder.load(index)
            if not self._of_this_store(index):
                self._begin_anew(index)

    def _told(self, saved: Iterator[Memory], progress: Progress) -> Iterator[Memory]:
        total = self.store.count()
        for number, memory in enumerate(saved):
            if number % _BATCH == 0:
                progress(min(number, total), total)
            yield memory

    def _begin_anew(self, index: ScopeIndex) -> None:
        index.clear()
        if self._folder is not None:
            self._folder.remove()

    def _of_this_store(self, index: ScopeIndex) -> bool:
        """Whether what was kept is of this store's past: a copy of it may have been put back
        and gone on otherwise from there."""
        sample = index.sample(_SAMPLE)
        found = self.store.driver.fetch(self.store.scope, list(sample))
        there = {memory.id: memory.revision for memory in found}
        since = self.store.changes(index.revision)
        gone = set(since.deleted)
        return since.reset or all(
            there[id] == revision or there[id] > index.revision if id in there else id in gone
            for id, revision in sample.items()
        )

    # -- in the background -----------------------------------------------------------------

    def _look_after(self, index: ScopeIndex, progress: Progress | None = None) -> None:
        """Make the vectors that are still to be made, merge, and keep what is worth it."""
        try:
            self._embed(index, progress)
            with index.care:
                tidy(index)
                if self._folder is not None:
                    self._folder.save(index)
        except RetainError as error:
            if not self.store.driver.closed:
                # A recall finds all without it, and who changes something next tries again.
                log.warning("the index of %r could not be looked after: %s", self.store, error)

    def _embed(self, index: ScopeIndex, progress: Progress | None) -> None:
        if self.embedder is None:
            return
        while ids := index.unmade(_BATCH):
            if self.store.driver.closed or not threading.main_thread().is_alive():
                return  # whoever comes next goes on from here
            found = {memory.id: memory.content for memory in self.store.peek(ids)}
            vectors = self.embedder.embed([found.get(id, "") for id in ids])
            with index.lock:
                index.embedded(ids, vectors)
                if progress is not None:
                    progress(*index.made())
