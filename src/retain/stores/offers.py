"""What a store offers that can look for candidates itself: a side index, and how it is asked.

The store knows numbers, not words: terms are hashes that the engine makes, and what they weigh it
says too. What a query's answer is the engine alone decides, among the candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..models import Filter
from ..scope import Scope

__all__ = ["Entry", "Offer", "Probe", "Search", "SearchLevel", "Wanted"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What is indexed of a memory at a ``revision``; numbers are of 64 bits, signed.

    ``session``: a hash, 0 for none, and its ``turn`` there. ``length``: terms of its text.
    ``terms``: eight bytes for each occurrence. ``keys``: those terms, each once, and the session.
    ``vector``: whole numbers whose direction counts, ``None`` for none; ``embedded``: whether it
    was made (or need not be).
    """

    id: str
    revision: int
    session: int
    turn: int
    length: int
    terms: bytes
    keys: list[int]
    embedded: bool
    vector: list[int] | None = None


@dataclass(frozen=True, slots=True)
class SearchLevel:
    """How far the side index of a scope goes, and what it counts.

    ``known``: the scope's revision; ``revision``: the index's, which is to be brought there.
    ``rows``: memories in it. ``measured``: how many there were when ``short`` (terms that a
    quarter of the texts don't exceed), ``sessions`` and ``turns`` (terms of a session) were
    measured. ``near``: whether its vectors have an index. ``bare``: whether some wait for theirs.
    ``counts``: how many memories hold
    each term that was asked for.
    """

    known: int = 0
    revision: int = 0
    rows: int = 0
    measured: int = 0
    short: int = 0
    sessions: int = 0
    turns: float = 0.0
    near: bool = False
    bare: bool = False
    counts: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Probe:
    """Terms, and what holding any of them (or all together) adds to a memory's worth."""

    terms: list[int]
    weight: float


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which candidates: visible at ``now`` and passing ``narrow``, whose labels are ``labels``.

    ``probes``: all memories that hold a term of one, the best ``most`` by the sum of their
    weights, 0.3 · recency (``half_life`` in seconds) and 0.2 · importance. ``together``: the
    same for memories that hold all terms of one. ``common``, ``walk``: so many of the newest, and
    of the most important, that hold any of these terms (any at all, where there are none).
    ``times``: from when to when, of each some of the newest. ``vector``, ``alike``: so many of the
    most alike.
    """

    now: float
    narrow: Filter
    half_life: float
    labels: Sequence[int] = ()
    probes: Sequence[Probe] = ()
    together: Sequence[Probe] = ()
    common: Sequence[int] = ()
    walk: int = 0
    times: Sequence[tuple[float, float]] = ()
    vector: list[int] | None = None
    alike: int = 0
    most: int = 1_000


@dataclass(frozen=True, slots=True)
class Offer:
    """Candidates, and the turns beside some of them; sequences by row.

    ``keys`` stand for ``ids`` in ``before`` and ``after``: the turns on either side, the nearest
    first. Numbers are packed, big-endian: ``revision``, ``session`` and ``turn`` int64,
    ``length`` and ``size`` (bytes of ``terms``, which follow each other) int32, the others
    float64. ``session_length``: pairs of int64, a session and the terms of all its turns.
    ``similarity``: cosine with the vector wanted, NaN for none.
    """

    ids: list[str]
    keys: list[str]
    before: Mapping[str, list[str]]
    after: Mapping[str, list[str]]
    revision: bytes
    created: bytes
    expires: bytes
    importance: bytes
    kinds: list[str]
    persistent: list[bool]
    session: bytes
    turn: bytes
    length: bytes
    size: bytes
    terms: bytes
    session_length: bytes | None = field(default=None)
    similarity: Any = None


class Search(Protocol):
    """The side index of a store, for all of its scopes.

    A memory that is deleted or replaced is out of it in the same transaction. What is saved comes
    in by :meth:`put`, in the order of revisions. ``vectors``: whether it can hold them.
    """

    vectors: bool

    def state(self, scope: Scope, terms: Sequence[int]) -> SearchLevel:
        """How far it goes, and how many memories hold each of ``terms``."""

    def put(self, scope: Scope, since: int, until: int, entries: Sequence[Entry]) -> bool:
        """Take in what was saved after ``since``, up to ``until``, unless another has: whether so.

        What was deleted or replaced since it was read stays out. Atomic.
        """

    def clear(self, scope: Scope) -> None:
        """Forget a scope, so that it is made anew."""

    def bare(self, scope: Scope, most: int) -> list[str]:
        """At most so many ids of those that wait for their vectors."""

    def dress(self, scope: Scope, vectors: Mapping[tuple[str, int], list[int] | None]) -> None:
        """Give vectors to memories by id and revision, where that is still theirs."""

    def measure(self, scope: Scope) -> None:
        """Measure what is too costly to know exactly at each change."""

    def index_vectors(self, scope: Scope) -> None:
        """Make an index of the scope's vectors, unless it is there; may take minutes."""

    def offer(self, scope: Scope, wanted: Wanted) -> Offer | None:
        """Candidates, ``None`` where there are none."""

    def beside(self, scope: Scope, id: str, count: int) -> list[str]:
        """The ids of the turns around one, at most ``count`` to each side, in order."""
