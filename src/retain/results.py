"""What a recall returns: a memory that was found, its scores, and why it is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from string import punctuation
from typing import Any

from . import text
from .models import Memory, one_line

__all__ = ["Evidence", "RetrievalResult"]

_NAMED = 12  # words that an explanation names
_LONGEST = 40  # characters of one
_LOOKED_AT = 4_000  # characters of a query


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a memory was found.

    ``query``: what was asked. ``words``: the words of it that the memory holds, as the index
    knows them (stems); ``share``: what share of the query they are, by rarity and the text's
    length, in [0, 1]. ``lent``: how much more came from related words and from the turns beside
    it, in [0, 1]. ``similarity``: of meaning, a cosine in [0, 1], ``None`` where meaning was
    not asked for. ``embedded``: whether its vector is made yet. ``age``: days.
    """

    query: str
    words: tuple[str, ...]
    share: float
    lent: float = 0.0
    similarity: float | None = None
    embedded: bool = True
    age: float = 0.0


@dataclass(slots=True)
class RetrievalResult:
    """A memory that was found, and why; every score is in [0, 1].

    ``relevance_score``: the share of the query's terms that the memory holds, weighted by
    rarity; where meaning and neighbouring turns are asked too, a blend of all.
    ``recency_score``: 0.5 ** (age / half-life). ``importance_score``: the memory's.
    """

    memory: Memory
    relevance_score: float
    recency_score: float
    importance_score: float
    evidence: Evidence | None = field(default=None, repr=False, compare=False)

    def explain(self) -> str:
        """Why it is here, in one line.

        >>> from retain import AgentMemory
        >>> memory = AgentMemory()
        >>> _ = memory.remember("The deadline is 1 March")
        >>> memory.recall("Which deadline in March?")[0].explain()
        'deadline, march: 100 % of the query · new · importance 0.50'
        """
        parts = [] if self.evidence is None else _reasons(self.evidence)
        return " · ".join([*parts, f"importance {self.importance_score:.2f}"])

    @property
    def combined_score(self) -> float:
        """0.5 · relevance + 0.3 · recency + 0.2 · importance, in [0, 1]: what orders results."""
        score = 0.5 * self.relevance_score + 0.3 * self.recency_score + 0.2 * self.importance_score
        return min(1.0, max(0.0, score))

    def to_dict(self) -> dict[str, Any]:
        """The memory's object, with the four scores and the explanation beside it."""
        return {
            "memory": self.memory.to_dict(),
            "relevance_score": self.relevance_score,
            "recency_score": self.recency_score,
            "importance_score": self.importance_score,
            "combined_score": self.combined_score,
            "explanation": self.explain(),
        }


def _reasons(evidence: Evidence) -> list[str]:
    parts = []
    if evidence.words:
        words = ", ".join(_as_asked(evidence.query, evidence.words))
        parts.append(f"{words}: {_percent(evidence.share)} of the query")
    elif evidence.query.strip():
        parts.append("no word of the query")
    if evidence.lent >= 0.005:
        parts.append(f"related words and neighbours {_percent(evidence.lent)}")
    if not evidence.embedded:
        parts.append("meaning not known yet")
    elif evidence.similarity is not None:
        parts.append(f"similarity {evidence.similarity:.2f}")
    age = evidence.age
    parts.append("new" if age < 1 else "1 day old" if age < 2 else f"{age:.0f} days old")
    return parts


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def _as_asked(query: str, words: Sequence[str]) -> list[str]:
    """Stems as the words that the query has for them; the first ones, and none too long to read."""
    asked = {}
    for word in query[:_LOOKED_AT].split():
        forms = text.query_terms(word)
        if len(forms) == 1:
            asked[forms[0][0]] = word.strip(punctuation).lower()
    named = [_shown(asked.get(word, word)) for word in words[:_NAMED]]
    return named if len(words) <= _NAMED else [*named, f"{len(words) - _NAMED} more"]


def _shown(word: str) -> str:
    """A word as any terminal shows it: nothing in it steers one."""
    seen = "".join(char if char.isprintable() else "\ufffd" for char in one_line(word))
    return seen if len(seen) <= _LONGEST else f"{seen[:_LONGEST]}…"
