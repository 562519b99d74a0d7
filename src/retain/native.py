"""Scopes that are searched where they are stored: candidates of the store, ranked here.

For scopes too large to hold in a process. The store's side index is brought level with the scope
before each question; then it offers some of its memories, and these are ranked as all would be.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from . import awaiting, text
from .clock import DAY
from .models import Filter, Memory
from .search.cache import background
from .search.candidates import Asked, Candidates, Known
from .search.columns import KINDS, LONGEST, Columns, session_of
from .search.embedders import Embedder, StaticEmbedder
from .search.index import UNAVAILABLE, ScopeIndex, vectors_for
from .search.lexical import rarity_of
from .search.related import related
from .search.terms import BYTES, document_terms, hashed, labels_of
from .search.vector import quantised
from .search.when import spans, windows
from .stores.base import Store
from .stores.offers import Entry, Offer, Probe, Search, SearchLevel, Wanted

__all__ = ["NativeIndexed"]

log = logging.getLogger("retain")

T = TypeVar("T")
Progress = Callable[[int, int], None]
Vectors = Sequence["list[int] | None"]
Holders = Mapping[text.Forms, int]
Kin = Mapping[text.Forms, Sequence[tuple[int, float]]]

_AT_ONCE = 1_000  # memories that are taken in by one transaction
_WAITED_FOR = 64  # texts that a caller waits for to be embedded by a model
_MOST = 500  # candidates by their words
_ALIKE = 100  # candidates by their vectors
_SCANNED = 10_000  # memories of which every one is looked at for the words it holds
_PAIRED = 6  # common words of which pairs are looked for, the rarest
_WALKED = 200  # the newest, and the most important, that hold a word which more hold than that
_UNINDEXED = 20_000  # vectors that are compared one by one
_STALE = 0.1  # of all memories: so many changes make what was measured out of date
_BRIEF = 64  # words; a longer query has no related ones
_KINDS = {kind.value: number for kind, number in KINDS.items()}
_LONG_AGO = 100 * 365 * DAY


class NativeIndexed:
    """One scope of a store that offers candidates: what an engine asks of an index."""

    def __init__(self, store: Store, embedder: Embedder | None = None) -> None:
        self.store = store
        self.embedder = embedder
        self._made: Search | None = None
        self._warned = False

    @property
    def _search(self) -> Search:
        if self._made is None:
            embedder = self.embedder
            made_by = [text.signature(), "" if embedder is None else embedder.name]
            size = 0 if embedder is None else embedder.dimensions
            self._made = self.store.driver.search("\n".join(made_by), size)
        return self._made

    @property
    def _embeds(self) -> bool:
        return self.embedder is not None and self._search.vectors

    # -- what is asked ---------------------------------------------------------------------

    def ask(self, question: Callable[[ScopeIndex], T], asked: Asked) -> T:
        """The answer of an index of the candidates for a query."""
        answer: T = awaiting.aside(self._ask, question, asked)
        return answer

    def _ask(self, question: Callable[[ScopeIndex], T], asked: Asked) -> T:
        words = text.query_terms(asked.query)
        kin = _kin(asked, words, self.embedder)
        akin = [term for word in kin for term, _ in kin[word]]
        terms = [*_labels(asked.narrow), *(n for word in words for n in _numbers(word)), *akin]
        level = self._level(terms)
        counts = dict(zip(terms, level.counts, strict=True))
        holders = {word: max(counts[number] for number in _numbers(word)) for word in words}
        vector = self._vector(asked, level)
        wanted = _wanted(asked, counts, holders, kin, level.rows)
        if vector is not None:
            wanted = replace(wanted, vector=_whole(vector[None])[0])
        offer = self._search.offer(self.store.scope, wanted) if level.rows else None
        known = Known(level.rows, holders, float(level.short), level.sessions, level.turns)
        if level.bare and self._embeds:
            background.add(_Dressing(self))
        return question(_candidates(offer, known, self.embedder, vector))

    def beside(self, id: str, count: int) -> list[str]:
        """The ids of the turns around one, at most ``count`` to each side, in order."""

        def found() -> list[str]:
            self._level([])
            return self._search.beside(self.store.scope, id, count)

        return awaiting.aside(found)

    def behind(self) -> int:
        """How many memories the side index has still to take in."""

        def missing() -> int:
            return max(0, self.store.count() - self._search.state(self.store.scope, []).rows)

        return awaiting.aside(missing)

    def settle(self, progress: Progress | None = None) -> None:
        """Take everything in, make the vectors that wait, and an index of them if they are many."""
        awaiting.aside(self._settle, progress)

    def _settle(self, progress: Progress | None) -> None:
        self._catch_up(progress)
        dressing = _Dressing(self)
        while dressing.step():
            pass
        scope, search = self.store.scope, self._search
        search.measure(scope)
        if self._embeds and search.state(scope, []).rows > _UNINDEXED:
            search.index_vectors(scope)

    def close(self) -> None:
        """Nothing is held: the side index stays in the database."""
        background.finish(self.store.driver)

    # -- level with the store --------------------------------------------------------------

    def _level(self, terms: Sequence[int]) -> SearchLevel:
        """Bring the side index to where the scope is, as of now."""
        scope, search = self.store.scope, self._search
        level = search.state(scope, terms)
        if level.revision != level.known:
            self._catch_up()
            level = search.state(scope, terms)
        if abs(level.rows - level.measured) > _STALE * level.measured:
            search.measure(scope)
            level = search.state(scope, terms)
        return level

    def _catch_up(self, progress: Progress | None = None) -> None:
        scope, search = self.store.scope, self._search
        level = search.state(scope, [])
        target, total = level.known, self.store.count() if progress else 0
        if level.revision > target:  # a copy from before was put back
            search.clear(scope)
            level = search.state(scope, [])
        while level.revision < target:
            since = level.revision
            changes = self.store.changes(since)
            waiting = iter(changes.saved)
            while batch := list(itertools.islice(waiting, _AT_ONCE)):
                until = batch[-1].revision
                if not search.put(scope, since, until, self._entries(batch)):
                    break  # somebody else is at it too
                since = until
                if progress is not None:
                    progress(min(search.state(scope, []).rows, total), total)
            else:
                if since < changes.revision:
                    search.put(scope, since, changes.revision, [])
            level = search.state(scope, [])
        if progress is not None:
            progress(total, total)

    def _entries(self, memories: Sequence[Memory]) -> list[Entry]:
        vectors: Vectors | None = [None] * len(memories)
        if self._embeds:
            few = isinstance(self.embedder, StaticEmbedder) or len(memories) <= _WAITED_FOR
            vectors = self._vectors([memory.content for memory in memories]) if few else None
        entries = []
        for at, memory in enumerate(memories):
            terms, length = document_terms(memory)
            session, turn = session_of(memory)
            keys = set(np.frombuffer(terms, np.int64).tolist())
            if session:
                keys.add(_signed(session))
            vector = None if vectors is None else vectors[at]
            entries.append(
                Entry(
                    memory.id,
                    memory.revision,
                    _signed(session),
                    turn,
                    min(length, LONGEST),
                    terms,
                    sorted(keys),
                    vectors is not None,
                    vector,
                )
            )
        return entries

    def _vectors(self, texts: Sequence[str]) -> Vectors | None:
        """Vectors as a store takes them, ``None`` where the embedder can't make them now."""
        assert self.embedder is not None
        try:
            return _whole(vectors_for(self.embedder, texts))
        except UNAVAILABLE as error:
            log.warning("%s; what is new is found by its words until then", error)
            return None

    def dress(self) -> int:
        """Make some of the vectors that wait; how many."""
        if not self._embeds:
            return 0
        assert self.embedder is not None
        scope, search = self.store.scope, self._search
        memories = self.store.driver.fetch(scope, search.bare(scope, _WAITED_FOR))
        if memories:
            made = _whole(vectors_for(self.embedder, [memory.content for memory in memories]))
            of = [(memory.id, memory.revision) for memory in memories]
            search.dress(scope, dict(zip(of, made, strict=True)))
        return len(memories)

    def _vector(self, asked: Asked, level: SearchLevel) -> npt.NDArray[np.float32] | None:
        """The question's vector, where vectors can be asked for."""
        if asked.blend is None or not asked.query.strip() or not self._embeds:
            return None
        if level.rows > _UNINDEXED and not level.near:
            if not self._warned:
                log.warning(
                    "%r has no index of its %d vectors yet, and is asked by words alone: "
                    "call settle() once",
                    self.store,
                    level.rows,
                )
            self._warned = True
            return None
        vector = ScopeIndex(self.embedder).question(asked.query)
        return vector if vector is not None and vector.any() else None


class _Dressing:
    """A job: the vectors that wait."""

    def __init__(self, native: NativeIndexed) -> None:
        self.owner: object = native.store.driver
        self.subject: object = native
        self.ending = self.optional = self.given_up = False
        self._native = native

    def step(self) -> bool:
        if self.ending or self.given_up or self._native.store.driver.closed:
            return False
        self.optional = True
        try:
            return self._native.dress() > 0
        except UNAVAILABLE as error:
            if not self._native.store.driver.closed:
                log.warning("vectors of %r could not be made: %s", self._native.store, error)
            return False
        finally:
            self.optional = False


def _labels(narrow: Filter) -> list[int]:
    return [_signed(hashed(label)) for label in labels_of(narrow.tags, narrow.category)]


def _kin(asked: Asked, words: Sequence[text.Forms], embedder: Embedder | None) -> Kin:
    """The words related to each, and what one counts beside it."""
    blend = asked.blend
    if blend is None or not blend.related or len(words) > _BRIEF:
        return {}
    return {
        word: [
            (_signed(term), blend.related * alike)
            for term, alike in related(embedder, hashed(word[0]), blend.relation)
        ]
        for word in words
    }


def _wanted(
    asked: Asked, counts: Mapping[int, int], holders: Holders, kin: Kin, rows: int
) -> Wanted:
    """Whom to ask for: every memory that holds a rare word, and some that hold common ones."""
    labels = _labels(asked.narrow)
    most = max(_MOST, 4 * asked.k)
    if not asked.query.strip():
        return Wanted(asked.now, asked.narrow, asked.half_life * DAY, labels, walk=most // 2)
    rarity = {word: rarity_of(holding, rows) for word, holding in holders.items()}
    total = 2 * sum(rarity.values()) or 1.0  # relevance is half of what ranks a memory
    limit = min([rows, *(counts[label] for label in labels)])
    probes: list[Probe] = []
    common: list[text.Forms] = []
    looked_at = 0
    for word in sorted((word for word in holders if holders[word]), key=holders.__getitem__):
        looked_at += min(limit, holders[word])
        if looked_at <= _SCANNED:
            probes.append(Probe(_numbers(word), rarity[word] / total))
        else:
            common.append(word)
    looked_at = 0
    akin = [(rarity[word] * worth, term) for word in kin for term, worth in kin[word]]
    for worth, term in sorted(akin, reverse=True):
        looked_at += min(limit, counts[term])
        if counts[term] and looked_at <= _SCANNED // 4:
            probes.append(Probe([term], worth / total))
    return Wanted(
        asked.now,
        asked.narrow,
        asked.half_life * DAY,
        labels,
        probes,
        together=_pairs(common, holders, {word: rarity[word] / total for word in common}, rows),
        common=[number for word in common for number in _numbers(word)],
        walk=max(_WALKED, asked.k) if common else 0,
        times=_times(asked),
        alike=max(_ALIKE, 2 * asked.k),
        most=most,
    )


def _pairs(
    common: Sequence[text.Forms], holders: Holders, worth: Mapping[text.Forms, float], rows: int
) -> list[Probe]:
    """Pairs of common words that few should hold both of: fewest first, up to a number of them."""
    pairs = [
        (holders[one] * holders[other] / rows, one, other)
        for one, other in itertools.combinations(common[:_PAIRED], 2)
    ]
    found: list[Probe] = []
    looked_at = 0.0
    for both, one, other in sorted(pairs):
        looked_at += both
        if looked_at <= _SCANNED or not found:
            terms = [_numbers(one)[0], _numbers(other)[0]]
            found.append(Probe(terms, worth[one] + worth[other]))
    return found


def _times(asked: Asked) -> list[tuple[float, float]]:
    """From when to when a query names times, and how long after that still counts a little."""
    if asked.blend is None:
        return []
    named = spans(asked.query, asked.now)
    if not named:
        return []
    found = windows(named, asked.now - _LONG_AGO, asked.now + _LONG_AGO)
    later = asked.blend.days * DAY
    found += [(end, end + later) for _, end in found if later > 0]
    return sorted(found, reverse=True)


def _candidates(
    offer: Offer | None,
    known: Known,
    embedder: Embedder | None,
    vector: npt.NDArray[np.float32] | None,
) -> Candidates:
    """An index of what was offered."""
    if offer is None:
        none = np.zeros(0)
        no_terms, no_rows = np.zeros(0, np.uint64), np.zeros(0, np.int32)
        return Candidates(embedder, known, Columns(), no_terms, no_rows, (), {}, vector, none)
    ids = [id.encode("utf-8", "surrogatepass") for id in offer.ids]
    columns = Columns.of(
        {
            "created": np.frombuffer(offer.created, ">f8"),
            "expires": np.frombuffer(offer.expires, ">f8"),
            "importance": np.frombuffer(offer.importance, ">f8"),
            "kind": [_KINDS[kind] for kind in offer.kinds],
            "persistent": offer.persistent,
            "live": np.ones(len(ids), np.bool_),
            "length": np.frombuffer(offer.length, ">i4"),
            "session": np.frombuffer(offer.session, ">i8").astype(np.int64).view(np.uint64),
            "turn": np.frombuffer(offer.turn, ">i8"),
            "revision": np.frombuffer(offer.revision, ">i8"),
            "key": np.zeros(len(ids), np.uint64),  # nobody looks for an id
            "id_end": np.cumsum([len(id) for id in ids]),
            "ids": np.frombuffer(b"".join(ids), np.uint8),
        }
    )
    sizes = np.frombuffer(offer.size, ">i4").astype(np.int64) // BYTES
    lengths = np.frombuffer(offer.session_length or b"", ">i8").astype(np.int64).reshape(-1, 2)
    sessions = lengths[:, 0].copy().view(np.uint64).tolist()
    return Candidates(
        embedder,
        known,
        columns,
        np.frombuffer(offer.terms, np.uint64),
        np.repeat(np.arange(len(ids), dtype=np.int32), sizes),
        _beside(offer),
        dict(zip(sessions, lengths[:, 1].tolist(), strict=True)),
        vector,
        np.frombuffer(offer.similarity, ">f8").astype(np.float64),
    )


def _beside(offer: Offer) -> list[tuple[int, int]]:
    """Pairs of rows of which the second follows the first in its session."""
    row_of = {key: row for row, key in enumerate(offer.keys)}
    pairs = set()
    for key, earlier in offer.before.items():
        chain = [*reversed(earlier), key, *offer.after[key]]
        for first, second in itertools.pairwise(chain):
            if first in row_of and second in row_of:
                pairs.add((row_of[first], row_of[second]))
    return sorted(pairs)


def _numbers(word: text.Forms) -> list[int]:
    return [_signed(hashed(form)) for form in word]


def _signed(number: int) -> int:
    """A number of 64 bits as a database has it."""
    return number - 2**64 if number >= 2**63 else number


def _whole(vectors: npt.NDArray[np.float32]) -> list[list[int] | None]:
    """Vectors in whole numbers; one of zeros is none."""
    numbers, _ = quantised(vectors)
    return [row.tolist() if row.any() else None for row in numbers]
