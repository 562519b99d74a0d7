"""What a recall is to find, by the definitions: every memory scored by itself, in plain Python.

No arrays, no postings, no index. Only the words of a text (``retain.text``), the times that a
question names (``retain.search.when``) and the rounding of vectors are taken from retain; they
have tests of their own.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from retain import Filter, Memory, RetrievalResult, text
from retain.clock import DAY
from retain.engine import Engine
from retain.search import blend as blending
from retain.search.blend import Blend
from retain.search.vector import quantised
from retain.search.when import closeness, spans

EXACT = 1e-9
NEARLY = 1e-6  # where vectors play a part: their cosines are float32's
SATURATION, LENGTH = 1.2, 0.75
SHORT, LONGEST, MOST_COUNTED, MOST_RELATED = 40, 4_000, 255, 10


# -- embedders ---------------------------------------------------------------------------------


class TinyEmbedder:
    """The direction of a text is that of the sum of its words', which their hashes give.

    As far as signs tell it: such vectors are the same in whole numbers.
    """

    name = "tiny"
    dimensions = 8

    def embed(self, texts: Sequence[str]) -> Any:
        return np.array([self.embed_query(text) for text in texts], np.float32).reshape(
            -1, self.dimensions
        )

    def embed_query(self, query: str) -> Any:
        total = np.zeros(8)
        for forms in text.terms(query):
            total += direction(forms[0])
        signs = np.sign(total)
        return (signs / max(1.0, np.sqrt(np.abs(signs).sum()))).astype(np.float32)


def direction(form: str) -> Any:
    """Eight whole numbers from -7 to 8 that a form always has."""
    letters = hashlib.sha256(form.encode("utf-8", "surrogatepass")).digest()[:8]
    return np.array([letter % 16 - 7 for letter in letters])


class TinyWords(TinyEmbedder):
    """The same, and one that knows some words by themselves."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        forms = {form for word in vocabulary for forms in text.terms(word) for form in forms}
        rows = sorted((int(np.frombuffer(text.key(form), np.uint64)[0]), form) for form in forms)
        self.forms = [form for _, form in rows]
        self.keys = np.array([key for key, _ in rows], np.uint64)
        self.rows = np.array([direction(form) for form in self.forms], np.int8).reshape(-1, 8)
        self.name = f"tiny words {' '.join(self.forms)}"

    def related(self, form: str, least: float) -> list[tuple[str, float]]:
        """Other words by their cosine with one, the most alike first."""
        if form not in self.forms:
            return []
        own = direction(form).tolist()
        found = [
            (other, cosine(own, direction(other).tolist())) for other in self.forms if other != form
        ]
        alike = [pair for pair in found if pair[1] >= least]
        return sorted(alike, key=lambda pair: -pair[1])[:MOST_RELATED]


def cosine(one: list[int], other: list[int]) -> float:
    def dot(a: list[int], b: list[int]) -> int:
        return sum(x * y for x, y in zip(a, b, strict=True))

    lengths = math.sqrt(dot(one, one) * dot(other, other))
    return dot(one, other) / lengths if lengths else 0.0


def similarity(query: Any, vector: Any) -> float:
    """The cosine of two unit vectors in whole numbers, at least 0."""
    (one, other), (worth, scale) = quantised(np.array([query, vector], np.float32))
    product = sum(int(a) * int(b) for a, b in zip(one, other, strict=True))
    return min(1.0, max(0.0, float(np.float32(product * float(np.float32(worth * scale))))))


# -- the definitions ---------------------------------------------------------------------------


def counts_of(memory: Memory) -> Counter[str]:
    """How often each form of a word stands in what a memory is searched by."""
    labels = [memory.content, memory.category, *memory.tags]
    if isinstance(memory.metadata.get("role"), str):
        labels.append(memory.metadata["role"])
    return Counter(form for label in labels for forms in text.terms(label) for form in forms)


def names_of(memory: Memory) -> set[str]:
    role = memory.metadata.get("role")
    return (
        {form for forms in text.terms(role) for form in forms} if isinstance(role, str) else set()
    )


def length_of(memory: Memory) -> int:
    return min(LONGEST, sum(len(forms) for forms in text.terms(memory.content)))


def session_of(memory: Memory) -> tuple[object, ...] | None:
    session, turn = memory.metadata.get("session"), memory.metadata.get("turn")
    if isinstance(session, (str, int)):
        return "session", repr(session)
    if isinstance(turn, int) and not isinstance(turn, bool):
        return "day", int(memory.created_at // DAY)
    return None


def turn_of(memory: Memory) -> int:
    turn = memory.metadata.get("turn")
    return min(max(int(turn), 0), 2**62) if isinstance(turn, int) else 0


def sessions_of(memories: Iterable[Memory]) -> dict[object, list[Memory]]:
    """The turns of each session, in the order in which they were said."""
    sessions: dict[object, list[Memory]] = {}
    for memory in memories:
        session = session_of(memory)
        if session is not None:
            sessions.setdefault(session, []).append(memory)
    for turns in sessions.values():
        turns.sort(key=lambda m: (m.created_at, turn_of(m), m.revision))
    return sessions


def rarity(all_of_them: int, having: int) -> float:
    return math.log1p((all_of_them - having + 0.5) / (having + 0.5))


@dataclass(frozen=True)
class Score:
    """What one memory is found with."""

    relevance: float
    recency: float
    importance: float

    @property
    def combined(self) -> float:
        return 0.5 * self.relevance + 0.3 * self.recency + 0.2 * self.importance


@dataclass
class Reference:
    """The memories of one scope, as they are stored, at one time.

    ``blend``: ``None`` for the share of the query's words by rarity. ``unmade``: ids whose
    vector is not made yet.
    """

    memories: list[Memory]
    now: float
    blend: Blend | None = None
    embedder: Any = None
    half_life: float = 7.0
    unmade: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        self.visible = [m for m in self.memories if not m.is_expired(self.now)]
        self.counts = {m.id: counts_of(m) for m in self.visible}
        self.sessions = sessions_of(self.memories)

    @cached_property
    def longer(self) -> dict[str, float]:
        """How many times as long as a short text each is, at least 1."""
        lengths = {m.id: length_of(m) for m in self.memories}
        ascending = sorted(lengths.values())
        quartile = ascending[math.ceil(len(ascending) / 4) - 1] if ascending else 0
        short = max(SHORT, quartile)
        return {id: max(1.0, length / short) for id, length in lengths.items()}

    def scores(self, query: str, narrow: Filter | None = None) -> dict[str, Score]:
        """Every memory that a query finds, by its id."""
        if not query.strip():
            relevance = {m.id: 0.0 for m in self.visible}
        elif self.blend is None:
            relevance = self._share(query)
        else:
            relevance = self._blended(query, self.blend)
        return {
            m.id: Score(relevance[m.id], self._recency(m), m.importance_score)
            for m in self.visible
            if m.id in relevance and (narrow is None or narrow.admits(m))
        }

    def _recency(self, memory: Memory) -> float:
        return 0.5 ** (max(0.0, self.now - memory.created_at) / (self.half_life * DAY))

    def often(self, id: str, forms: Iterable[str]) -> int:
        return min(MOST_COUNTED, max(self.counts[id][form] for form in forms))

    def rarity(self, forms: text.Forms) -> float:
        return rarity(len(self.visible), sum(self.often(m.id, forms) > 0 for m in self.visible))

    def _share(self, query: str) -> dict[str, float]:
        words = text.query_terms(query)
        weights = [self.rarity(forms) for forms in words]
        found = {}
        for memory in self.visible:
            held = [self.often(memory.id, forms) > 0 for forms in words]
            if any(held):
                found[memory.id] = sum(
                    weight for weight, has in zip(weights, held, strict=True) if has
                ) / sum(weights)
        return found

    # -- the blend -------------------------------------------------------------------------

    def _blended(self, query: str, blend: Blend) -> dict[str, float]:
        words = text.query_terms(query)
        parts: list[tuple[float, dict[str, float]]] = []
        of_words = self._of_words(words, blend)
        found = {id for id, value in of_words.items() if value > 0}
        parts.append((1.0, of_words))
        if self.sessions:
            parts.append((blend.session, self._of_session(words, blend)))
        asked = {form for forms in words for form in forms}
        for weight, names in ((blend.speaker, asked), (blend.user, {"user"})):
            said = {m.id: float(not names.isdisjoint(names_of(m))) for m in self.visible}
            if any(said.values()):
                parts.append((weight, said))
        named = spans(query, self.now)
        if named:
            close = {
                m.id: float(closeness(named, np.array([m.created_at]), blend.days)[0])
                for m in self.visible
            }
            parts.append((blend.time, close))
            found |= {id for id, value in close.items() if value > 0}
        asked_vector = None if self.embedder is None else self.embedder.embed_query(query)
        if asked_vector is not None and asked_vector.any():
            alike = {m.id: self._similarity(asked_vector, m) for m in self.visible}
            parts.append((blend.meaning, alike))
            found |= {id for id, value in alike.items() if value >= blend.alike}
        most = sum(weight for weight, _ in parts)
        return {
            id: min(1.0, sum(w * part.get(id, 0.0) for w, part in parts) / most) for id in found
        }

    def _similarity(self, asked: Any, memory: Memory) -> float:
        if memory.id in self.unmade:
            return 0.0
        return similarity(asked, self.embedder.embed([memory.content])[0])

    def well(self, memory: Memory, forms: Iterable[str], most: float) -> float:
        """How well a text holds a word, up to ``most``: Okapi BM25's part of a word, at most 1."""
        often = self.often(memory.id, forms)
        norm = SATURATION * (1 - LENGTH + LENGTH * self.longer[memory.id])
        return most * min(1.0, often * (SATURATION + 1) / (often + norm)) if often else 0.0

    def _of_words(self, words: list[text.Forms], blend: Blend) -> dict[str, float]:
        total = dict.fromkeys((m.id for m in self.visible), 0.0)
        for forms in words:
            held = {m.id: self.well(m, forms, 1.0) for m in self.visible}
            if self._tells(forms, blend):
                for form, alike in self._related(forms[0], blend.relation):
                    for memory in self.visible:
                        well = self.well(memory, (form,), blend.related * alike)
                        held[memory.id] = max(held[memory.id], well)
                held = self._with_neighbours(held, blend.near)
            for id, well in held.items():
                total[id] += self.rarity(forms) * well
        most = sum(self.rarity(forms) for forms in words)
        return {id: min(1.0, value / most) if words else 0.0 for id, value in total.items()}

    def _tells(self, forms: text.Forms, blend: Blend) -> bool:
        """Whether a word is not so common that it says little."""
        having = sum(self.often(m.id, forms) > 0 for m in self.visible)
        return having <= max(blending._FEW, blend.common * len(self.memories))

    def _related(self, form: str, least: float) -> list[tuple[str, float]]:
        related = getattr(self.embedder, "related", None)
        return [] if related is None else related(form, least)

    def _with_neighbours(self, given: dict[str, float], near: Sequence[float]) -> dict[str, float]:
        held = dict(given)
        for turns in self.sessions.values():
            for at, turn in enumerate(turns):
                for distance, worth in enumerate(near, 1):
                    for place in (at - distance, at + distance):
                        if 0 <= place < len(turns) and turns[place].id in held:
                            other = turns[place].id
                            lent = worth * given.get(turn.id, 0.0) / self.longer[other]
                            held[other] = max(held[other], lent)
        return held

    def _of_session(self, words: list[text.Forms], blend: Blend) -> dict[str, float]:
        lengths = {key: sum(map(length_of, turns)) for key, turns in self.sessions.items()}
        mean = max(1.0, sum(lengths.values()) / len(lengths))
        totals, most = dict.fromkeys(self.sessions, 0.0), 0.0
        for forms in words:
            if not self._tells(forms, blend):
                continue
            often = {
                key: sum(self.often(m.id, forms) for m in turns if m.id in self.counts)
                for key, turns in self.sessions.items()
            }
            weight = rarity(len(often), sum(value > 0 for value in often.values()))
            most += weight
            for key, value in often.items():
                norm = SATURATION * (1 - LENGTH + LENGTH * lengths[key] / mean)
                totals[key] += weight * value / (value + norm)
        part = {}
        for key, turns in self.sessions.items():
            part.update((turn.id, totals[key] / max(most, 1e-9)) for turn in turns)
        return part


# -- the background ----------------------------------------------------------------------------


def at_once(job: Any) -> None:
    """In place of the background thread: a job is done when it comes up."""
    while job.step():
        pass


def never(job: Any) -> None:
    """In place of the background thread: only who settles has anything done."""


BACKGROUND = "retain.indexing.background.add"


# -- what was found against it -----------------------------------------------------------------


def check(
    engine: Engine, reference: Reference, query: str, k: int, narrow: Filter | None = None
) -> None:
    """Assert that the engine finds what the reference does: the same memories with the same
    scores, in the order of these, and the k best of them for k."""
    every = engine.recall(query, len(reference.memories) + 1, narrow)
    exact = EXACT if reference.embedder is None else NEARLY
    expected = reference.scores(query, narrow)
    assert {r.memory.id for r in every} == expected.keys()
    assert len(every) == len(expected)
    for result in every:
        score = expected[result.memory.id]
        assert abs(result.relevance_score - score.relevance) < exact, result.memory.id
        assert abs(result.recency_score - score.recency) < EXACT
        assert result.importance_score == score.importance
    assert in_order(every)
    # As far as they are apart by more than rounding, the order is the reference's too.
    combined = [expected[result.memory.id].combined for result in every]
    assert all(one > other - exact for one, other in pairwise(combined))
    assert [r.memory.id for r in engine.recall(query, k, narrow)] == ids(every)[:k]


def in_order(results: Sequence[RetrievalResult]) -> bool:
    """Whether they stand by their score, then newest first, then by id."""
    keys = [(-r.combined_score, -r.memory.created_at, r.memory.id) for r in results]
    return keys == sorted(keys)


def ids(results: Sequence[RetrievalResult]) -> list[str]:
    return [result.memory.id for result in results]
