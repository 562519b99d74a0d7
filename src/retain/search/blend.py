"""Relevance beyond shared words: how long a text is, what stands beside it, what it means.

The parts and their weights were chosen on conversations 1 to 5 of LoCoMo and held against
others; ``docs/evaluation.md`` has what each is worth, and what was tried and left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .index import ScopeIndex
from .lexical import Found, Word, seen
from .related import related
from .terms import hashed, said_by
from .when import closeness, spans

__all__ = ["Blend", "Blended", "Query", "blended"]

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]

_SATURATION = 1.2  # k1 and b of Okapi BM25, as usual
_LENGTH = 0.75
_BRIEF = 64  # words; a longer query says itself what it means
_FEW = 50  # memories that are few in a scope of any size


@dataclass(frozen=True, slots=True)
class Blend:
    """What the parts of relevance weigh beside the words, which weigh 1.

    ``near``: what a turn is lent of a word that stands one turn from it, two turns …, in the
    same session. ``session``: the words of the whole session. ``speaker``: the question names
    who said it. ``user``: a user's own words. ``time``: the question names the time, and
    ``days`` after it still count a little. ``meaning``: similarity of the vectors.
    ``related``: what a word of related meaning counts, times its similarity, if that is at
    least ``relation``. ``common``: a word that a larger share of all memories holds says
    little: it neither lends nor has related words, nor counts for a session. ``alike``:
    similarity from which on a memory that shares no word is a result.
    """

    near: tuple[float, ...] = (0.6, 0.4)
    session: float = 0.5
    speaker: float = 0.3
    user: float = 0.1
    time: float = 0.35
    days: float = 20.0
    meaning: float = 0.4
    related: float = 0.5
    relation: float = 0.5
    common: float = 0.125
    alike: float = 0.35


@dataclass(frozen=True, slots=True)
class Query:
    """A question to an index: its text, when it is asked, and the rows that count."""

    text: str
    now: float
    words: Sequence[Word]
    visible: Mask | None


@dataclass(frozen=True, slots=True)
class Blended(Found):
    """What was found, and what its relevance is made of, by row.

    ``own``: the share of the query's words that the text itself holds, by rarity and length;
    ``held``: the same with what related words and neighbours lend it. ``similarity``: the
    cosine of its vector with the query's, ``None`` where meaning was not asked.
    """

    own: Floats
    held: Floats
    similarity: npt.NDArray[np.float32] | None


def blended(index: ScopeIndex, query: Query, blend: Blend) -> Blended:
    """What a query finds: each part of its relevance lies in [0, 1] and is weighted by ``blend``.

    Relevance is 1 for what has all of every part that the query asks for.
    """
    own, held = _words(index, query, blend)
    found = held > 0
    total, most = held.copy(), 1.0
    if index.sessions.inhabited and blend.session:
        few = _few(index, blend)
        telling = [word for word in query.words if word.holders <= few]
        total += blend.session * _of_session(index, telling)
        most += blend.session
    names = [said_by(form) for word in query.words for form in word.forms]
    for weight, labels in ((blend.speaker, names), (blend.user, [said_by("user")])):
        said = [seen(index.posted(label), query.visible)[0] for label in labels]
        rows = np.unique(np.concatenate(said)) if len(said) > 1 else np.concatenate([*said, _NONE])
        if len(rows):
            np.add.at(total, rows, weight)
            most += weight
    named = spans(query.text, query.now)
    if named:
        close = closeness(named, index.columns["created"], blend.days)
        total += blend.time * close
        most += blend.time
        found |= close > 0
    similarity = None
    vector = index.question(query.text)
    if vector is not None and vector.any():
        similarity = index.similar(vector)
        total += blend.meaning * np.maximum(similarity, 0.0)
        most += blend.meaning
        found |= similarity >= blend.alike
    if query.visible is not None:
        found &= query.visible
    total /= most
    return Blended(found, np.minimum(total, 1.0, out=total), own, held, similarity)


def _words(index: ScopeIndex, query: Query, blend: Blend) -> tuple[Floats, Floats]:
    """The share of the query's words, by rarity, that each text holds itself, and with what its
    neighbours and related words lend it."""
    size = index.columns.size
    own, total, held = np.zeros(size), np.zeros(size), np.zeros(size)
    lends = index.sessions.count > 0 and len(blend.near) > 0
    few = _few(index, blend)
    most = 0.0
    brief = len(query.words) <= _BRIEF
    for word in query.words:
        most += word.rarity
        rows = word.rows.astype(np.intp)
        well = _how_well(index, rows, word.counts)
        np.add.at(own, rows, word.rarity * well)
        if word.holders > few:
            np.add.at(total, rows, word.rarity * well)
            continue
        held[rows] = well
        touched = [rows]
        for term, alike in _related(index, word, blend) if brief else ():
            rows, counts = seen(index.posted(term), query.visible)
            rows = rows.astype(np.intp)
            well = blend.related * alike * _how_well(index, rows, counts)
            held[rows] = np.maximum(held[rows], well)
            touched.append(rows)
        if lends:
            touched += _lent(index, held, np.concatenate(touched), blend.near)
        rows = np.concatenate(touched)
        total[rows] += word.rarity * held[rows]  # a row that stands there twice is added once
        held[rows] = 0.0
    if most:
        own /= most
        total /= most
    return np.minimum(own, 1.0, out=own), np.minimum(total, 1.0, out=total)


def _few(index: ScopeIndex, blend: Blend) -> float:
    """How many memories may hold a word that still says something."""
    return max(_FEW, blend.common * len(index))


def _how_well(index: ScopeIndex, rows: Places, counts: Bytes) -> Floats:
    """How well each row holds a word that stands there so often, in [0, 1]: as in BM25, less in a
    longer text, but no text is long below the length that a quarter of all don't reach."""
    norm = _SATURATION * (1 - _LENGTH + _LENGTH * index.longer[rows])
    often = counts.astype(np.float64)
    return np.minimum(1.0, often * (_SATURATION + 1) / (often + norm))


def _related(index: ScopeIndex, word: Word, blend: Blend) -> Sequence[tuple[int, float]]:
    if not blend.related:
        return ()
    return related(index.embedder, hashed(word.forms[0]), blend.relation)


def _lent(index: ScopeIndex, held: Floats, rows: Places, near: Sequence[float]) -> list[Places]:
    """Lend what ``rows`` hold to the turns beside them; which these are.

    A long turn needs its neighbours less, and is lent less.
    """
    given = held[rows]
    reached = []
    for beside in (index.sessions.before, index.sessions.after):
        to, worth = rows, given
        for part in near:
            next_one = beside[to]
            there = next_one >= 0
            to, worth = next_one[there].astype(np.intp), worth[there]
            held[to] = np.maximum(held[to], part * worth / index.longer[to])
            reached.append(to)
    return reached


def _of_session(index: ScopeIndex, words: Sequence[Word]) -> Floats:
    """The share of the words, by their rarity among sessions, that each row's session holds."""
    sessions = index.sessions
    number = sessions.number
    total = np.zeros(sessions.count + 1)  # the last one: of what is in no session
    longer = sessions.lengths / max(1.0, sessions.mean)
    norm = _SATURATION * (1 - _LENGTH + _LENGTH * longer)
    most = 0.0
    for word in words:
        of = number[word.rows]
        inside = of >= 0
        often = np.bincount(of[inside], word.counts[inside], sessions.count)
        having = sessions.having(int(np.count_nonzero(often)), len(word.rows), word.holders)
        rarity = float(np.log1p((sessions.inhabited - having + 0.5) / (having + 0.5)))
        total[:-1] += rarity * often / (often + norm)
        most += rarity
    return total[number] / max(most, 1e-9)


_NONE = np.zeros(0, np.int32)
