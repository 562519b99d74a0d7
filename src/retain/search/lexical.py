"""The words of a query in an index: who holds them, and what share of them each holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import text
from .index import ScopeIndex
from .rank import in_parts
from .segment import Postings

__all__ = ["Found", "Word", "everything", "rarity_of", "seen", "share", "shares", "words_of"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a query: the visible rows that hold it, how often each does, and its weight.

    ``holders``: how many memories of the scope hold it.
    """

    forms: text.Forms
    rows: npt.NDArray[np.int32]
    counts: npt.NDArray[np.uint8]
    rarity: float
    holders: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a query found: for each row of the index whether, and how relevant it is.

    ``rows``: bool. ``relevance``: float64 in [0, 1], of no meaning where nothing was found.
    """

    rows: Mask
    relevance: Floats


def words_of(index: ScopeIndex, query: str, visible: Mask | None) -> list[Word]:
    """The words of a query.

    A word weighs log(1 + (N - n + 0.5) / (n + 0.5)), where n of the N visible memories hold
    it: the inverse document frequency of Okapi BM25 (Robertson and Zaragoza, 2009), kept
    above 0.
    """
    count = index.population(visible)
    words = []
    for forms in text.query_terms(query):
        rows, counts = seen(_posted(index, forms), visible)
        holders = index.holders(forms, rows)
        words.append(Word(forms, rows, counts, rarity_of(holders, count), holders))
    return words


def rarity_of(holders: int, count: int) -> float:
    """What a word weighs that so many of ``count`` memories hold."""
    return float(np.log1p((count - holders + 0.5) / (holders + 0.5)))


def seen(posted: Postings, visible: Mask | None) -> tuple[Any, Any]:
    """The rows of postings that are visible, and how often each holds the term."""
    if visible is None:
        return posted.rows, posted.counts
    kept = visible[posted.rows]
    return posted.rows[kept], posted.counts[kept]


def _posted(index: ScopeIndex, forms: text.Forms) -> Postings:
    """Who holds any of the forms; as often as the one that stands there most."""
    found = [index.posted(form) for form in forms]
    if len(found) == 1:
        return found[0]
    rows = np.concatenate([posted.rows for posted in found])
    counts = np.concatenate([posted.counts for posted in found])
    order = np.lexsort((counts, rows))
    rows, counts = rows[order], counts[order]
    last = np.ones(len(rows), np.bool_)
    last[:-1] = rows[1:] != rows[:-1]
    return Postings(rows[last], counts[last])


def everything(index: ScopeIndex, visible: Mask | None) -> Found:
    """What an empty query finds: all that is visible."""
    size = index.columns.size
    return Found(np.ones(size, np.bool_) if visible is None else visible, np.zeros(size))


def share(index: ScopeIndex, words: Sequence[Word]) -> Found:
    """The rows that hold a word; relevance is the share of the words, weighted by rarity.

    All words there make exactly 1.
    """
    relevance = np.zeros(index.columns.size)
    total = 0.0
    for word in words:
        np.add.at(relevance, word.rows, word.rarity)
        total += word.rarity  # as the scores are added
    found = np.empty(len(relevance), np.bool_)
    for part in in_parts(len(relevance)):
        relevance[part] /= total or 1.0
        np.greater(relevance[part], 0.0, out=found[part])
    return Found(found, relevance)


def shares(index: ScopeIndex, words: Sequence[Word]) -> Floats:
    """The share of the words that each row holds, each word counted alike."""
    counts = np.zeros(index.columns.size)
    for word in words:
        np.add.at(counts, word.rows, 1.0)
    return counts / max(1, len(words))
