"""The index of a scope as its store changes: opened, brought level, looked after.

Whoever asks an index finds all in it that anyone has written to the scope before. What can wait
(embedding many texts, merging, files) is done on the process's background thread.
"""

from __future__ import annotations

import itertools
import logging
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from . import awaiting
from .awaiting import Together
from .errors import StoreCorrupt, StoreFailed
from .models import Memory
from .search.cache import IndexCache, background
from .search.candidates import Asked
from .search.disk import IndexFolder
from .search.embedders import Embedder, StaticEmbedder
from .search.index import UNAVAILABLE, ScopeIndex, vectors_for
from .search.tidying import tidy
from .stores.base import Changes, Store

__all__ = ["Indexed", "Progress", "indexes"]

log = logging.getLogger("retain")

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Told how many memories are ready, and of how many."""

_TOLD = 512  # memories after which progress is told
_FIRST = 8  # texts that are embedded in one go, until it is known how long that takes …
_MOST = 512  # … and at most
_QUICK, _SLOW = 0.1, 0.4  # seconds that one go should take
_KEPT_EACH = 60.0  # seconds after which vectors are kept while others are made
_LAST = 10.0  # seconds that may pass before who closes gives up keeping more
_WORTH = 256  # rows: a smaller index is made in no time, unless vectors are dear
_SAMPLE = 32  # rows of a file that are compared with the store
_ATTEMPTS = 3  # to ask an index that others change meanwhile
_FEW = 64  # memories that an event loop waits for to be indexed
_SMALL = 20_000  # rows of an index that an event loop asks itself

indexes = IndexCache()
"""Every index of the process; ``indexes.budget`` is the bytes that they may take."""


class Indexed:
    """One scope of a store, with the index of it.

    ``embedder``: what makes its vectors, ``None`` for none. For any number of threads.
    """

    def __init__(self, store: Store, embedder: Embedder | None = None) -> None:
        self.store = store
        self.embedder = embedder
        place = store.driver.index_files(store.scope)
        self._worth = _WORTH if embedder is None or isinstance(embedder, StaticEmbedder) else 1
        self._folder = (
            None if place is None else IndexFolder(place, store.driver.identity, worth=self._worth)
        )
        self._together: Together[tuple[ScopeIndex, int]] = Together()
        store.driver.hear(store.scope, self._heard)

    def _heard(self) -> None:
        """Another process wrote to the scope: let the index follow, if there is one."""
        index = self._index()
        if not index.empty:
            care = _Care(self, index)
            care.follows = True
            background.add(care)

    def ask(self, question: Callable[[ScopeIndex], T], asked: Asked | None = None) -> T:
        """The answer of the index to a question, which has it for itself meanwhile.

        ``asked``: what it is about, for those that have no index of everything.
        A damaged file shows at the latest here; the index is then made anew from the store.
        """
        if not awaiting.on_loop():
            return self._ask(question)
        found = self._ask_meanwhile(question)
        return found[0] if found else awaiting.aside(self._ask, question)

    def beside(self, id: str, count: int) -> list[str]:
        """The ids of the turns around one, at most ``count`` to each side, in order."""
        return self.ask(lambda index: index.beside(id, count))

    def _ask(self, question: Callable[[ScopeIndex], T]) -> T:
        index = self._index()
        with index.lock:
            self._level(index)
            try:
                return self._answer(index, question)
            except StoreCorrupt as error:
                if self._folder is None or not index.from_files:
                    raise
                log.warning("%s: it is damaged (%s) and is made anew", self._folder.place, error)
                self.begin_anew(index)
                self._catch_up(index)
                return self._answer(index, question)

    def _answer(self, index: ScopeIndex, question: Callable[[ScopeIndex], T]) -> T:
        answer = question(index)
        indexes.used(self.store.driver, self.store.scope, index)
        if index.untidy:
            background.add(_Care(self, index))
        return answer

    def _ask_meanwhile(self, question: Callable[[ScopeIndex], T]) -> tuple[T] | None:
        """The answer, while an event loop goes on; ``None`` where it is not to be had that way.

        The store is read without the index's lock, and what takes the processor long is done on a
        thread.
        """
        for _ in range(_ATTEMPTS):
            index, revision = self._together(self._level_meanwhile)
            found = self._quickly(index, self._answer_from, index, revision, question)
            if found:
                return found
        return None

    def _level_meanwhile(self) -> tuple[ScopeIndex, int]:
        """The index, level with the store as of now, and its revision."""
        index = self._index()
        since = index.revision
        if since:
            changes = self.store.changes(since)
            saved = list(itertools.islice(changes.saved, _FEW + 1))
            if not changes.reset and len(saved) <= _FEW:
                news = replace(changes, saved=iter(saved))
                if self._quickly(index, self._take_in, index, since, news):
                    return index, news.revision
        return index, awaiting.aside(self.level, index)

    def _take_in(self, index: ScopeIndex, since: int, news: Changes) -> bool:
        """Whether it is level with the ``news``: taken in, unless others have."""
        with index.lock:
            if index.revision == since:
                self._apply(index, news, news.saved)
            return index.revision >= news.revision

    def _answer_from(
        self, index: ScopeIndex, revision: int, question: Callable[[ScopeIndex], T]
    ) -> tuple[T] | None:
        """The answer of an index that is still at a revision at least."""
        with index.lock:
            try:
                return (self._answer(index, question),) if index.revision >= revision else None
            except StoreCorrupt:
                return None  # who asks next makes it anew

    def _quickly(self, index: ScopeIndex, work: Callable[..., T], *arguments: Any) -> T:
        """What ``work`` with an index gives: at once, or on a thread where it takes longer."""
        plain = self.embedder is None or isinstance(self.embedder, StaticEmbedder)
        if plain and index.columns.size <= _SMALL:
            with index.lock.at_once() as held:
                if held:
                    return work(*arguments)
        return awaiting.aside(work, *arguments)

    def behind(self) -> int:
        """How many memories the index has still to take in."""
        index = self._index()
        with index.lock:
            self._open(index)
            return max(0, self.store.count() - len(index))

    def settle(self, progress: Progress | None = None) -> None:
        """Do now what would be done in the background, and wait for it."""
        index = self._index()
        with index.lock:
            self._level(index, progress)
        care = _Care(self, index)
        while care.step():
            if progress is not None:
                with index.lock:
                    made, there = index.made()
                # The words of all are ready, which was half of it.
                progress(there if self.embedder is None else (there + made) // 2, there)
        indexes.used(self.store.driver, self.store.scope, index)

    def close(self) -> None:
        """Let go of the indexes of the whole store; no file of theirs is written any more.

        What was not kept yet is kept first. Vectors that are still to be made are not waited for:
        those that are made are kept, and whoever comes next goes on from there.
        """
        driver = self.store.driver
        background.finish(driver)
        give_up = time.monotonic() + _LAST
        for scope, index in indexes.of(driver):
            care = _Care(Indexed(self.store.scoped(scope), index.embedder), index)
            care.ending = True
            if self._folder is not None and time.monotonic() < give_up:
                care.step()
        indexes.forget(driver)

    def _index(self) -> ScopeIndex:
        return indexes.index(self.store.driver, self.store.scope, self.embedder)

    # -- level with the store --------------------------------------------------------------

    def level(self, index: ScopeIndex) -> int:
        """Bring the index to where the store is; its revision."""
        with index.lock:
            self._level(index)
            return index.revision

    def _level(self, index: ScopeIndex, progress: Progress | None = None) -> None:
        """Bring the index to where the store is, from what is kept of it if it is empty."""
        self._open(index)
        self._catch_up(index, progress)

    def _open(self, index: ScopeIndex) -> None:
        if index.empty and self._folder is not None:
            self._folder.load(index)
            if not self._of_this_store(index):
                self.begin_anew(index)

    def _catch_up(self, index: ScopeIndex, progress: Progress | None = None) -> None:
        changes = self.store.changes(index.revision)
        if changes.reset:
            self.begin_anew(index)
        saved = changes.saved
        if progress is not None:
            saved = self._told(changes.saved, progress)
        self._apply(index, changes, saved)

    def _apply(self, index: ScopeIndex, changes: Changes, saved: Iterator[Memory]) -> None:
        try:
            index.apply(changes.deleted, saved, changes.revision)
        except BaseException:
            index.clear()  # it has a part of the changes
            raise

    def _told(self, saved: Iterator[Memory], progress: Progress) -> Iterator[Memory]:
        total = self.store.count()
        for number, memory in enumerate(saved):
            if number % _TOLD == 0:
                ready = min(number, total)
                progress(ready if self.embedder is None else ready // 2, total)
            yield memory

    def begin_anew(self, index: ScopeIndex) -> None:
        """Forget all that it has, also in files."""
        index.clear()
        self._remove()

    def _remove(self) -> None:
        if self._folder is not None:
            try:
                self._folder.remove()
            except StoreFailed as error:  # whoever opens it next finds the same
                log.warning("files of an index that is of no use can't be removed: %s", error)

    def _of_this_store(self, index: ScopeIndex) -> bool:
        """Whether what was kept is of this store's past.

        A copy of it may have been put back and gone on otherwise from there. Then the last
        changes that the index knows of never were: they are looked at, and some of the others.
        """
        sample = index.sample(_SAMPLE)
        found = self.store.driver.fetch(self.store.scope, [*sample, *index.gone])
        since = self.store.changes(index.revision)
        lost = sample.keys() - {memory.id for memory in found} - set(since.deleted)
        other = (
            memory
            for memory in found
            if memory.revision <= index.revision
            and sample.get(memory.id) != memory.revision
            and not index.has(memory.id, memory.revision)
        )
        return since.reset or not (lost or any(other) or self._has_other_news(index, sample))

    def _has_other_news(self, index: ScopeIndex, sample: Mapping[str, int]) -> bool:
        """Whether something was saved after the newest that an index has, and before its end."""
        news = self.store.changes(max(sample.values(), default=0))
        first = None if news.reset else next(news.saved, None)
        return first is not None and first.revision <= index.revision

    # -- in the background -----------------------------------------------------------------

    def keep(self, index: ScopeIndex, still: Callable[[], bool]) -> None:
        """Merge, and write files, as far as that is worth it."""
        with index.lock:
            if self._folder is not None:
                index.seal(self._worth)
            index.untidy = False
        try:
            tidy(index)
        except StoreCorrupt as error:
            log.warning("the index of %r is damaged (%s) and is made anew", self.store, error)
            with index.lock:
                self.begin_anew(index)
        if self._folder is not None:
            self._folder.save(index, still)
            # It was forgotten meanwhile, and its files must not come back.
            if self.store.changes(index.revision).reset:
                self._remove()

    def embed(self, index: ScopeIndex, count: int) -> tuple[int, float]:
        """Make at most ``count`` of the vectors that wait; how many, and the seconds it took."""
        if self.embedder is None:
            return 0, 0.0
        with index.lock:
            self._level(index)
            ids = index.unmade(count)
        if not ids:
            return 0, 0.0
        found = {each.id: each for each in self.store.driver.fetch(self.store.scope, ids)}
        begun = time.monotonic()
        texts = [found[id].content if id in found else "" for id in ids]
        vectors = vectors_for(self.embedder, texts)
        took = time.monotonic() - begun
        revisions = [found[id].revision if id in found else -1 for id in ids]
        with index.lock:
            return index.embedded(ids, revisions, vectors), took


class _Care:
    """A job: what there is to do for an index, in the background or at once."""

    def __init__(self, indexed: Indexed, index: ScopeIndex) -> None:
        self.owner: object = indexed.store.driver
        self.subject: object = weakref.ref(index)
        self.ending = self.optional = self.given_up = self.follows = False
        self._indexed = indexed
        self._index = weakref.ref(index)  # one that is dropped meanwhile needs no care
        self._begun = False
        self._batch = _FIRST
        self._unkept = 0  # vectors
        self._kept = time.monotonic()

    def step(self) -> bool:
        index = self._index()
        if index is None or not self._allowed():
            return False
        with index.care:
            try:
                return self._step(index)
            except UNAVAILABLE as error:
                if self._allowed():
                    # A recall finds all without it, and who changes something next tries again.
                    store = self._indexed.store
                    log.warning("the index of %r could not be looked after: %s", store, error)
            return False

    def _step(self, index: ScopeIndex) -> bool:
        if self.follows:
            self.follows = False
            self._indexed.level(index)
        due = self._unkept and time.monotonic() - self._kept > _KEPT_EACH
        if self.ending or not self._begun or index.untidy or due:
            self._keep(index)
            return not self.ending
        if self._embed(index):
            return True
        if self._unkept:
            self._keep(index)
        return False

    def _keep(self, index: ScopeIndex) -> None:
        self._begun = True
        self._indexed.keep(index, self._allowed)
        self._unkept, self._kept = 0, time.monotonic()

    def _embed(self, index: ScopeIndex) -> bool:
        self.optional = True
        try:
            made, took = self._indexed.embed(index, self._batch)
        finally:
            self.optional = False
        self._unkept += made
        if took < _QUICK:
            self._batch = min(self._batch * 4, _MOST)
        elif took > _SLOW:
            self._batch = max(self._batch // 2, 1)
        return made > 0

    def _allowed(self) -> bool:
        return not self.given_up and not self._indexed.store.driver.closed
