"""What is evaluated: memories, questions on them, and which memories answer which question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import InvalidValue

__all__ = ["UNITS", "Case", "Dataset", "Item", "Question", "checked_case", "in_sessions"]

UNITS = ("turn", "session", "session-document")
"""What a ranking is made of: memories; the sessions that ranked turns belong to, each once;
or whole sessions, each kept as one memory."""


@dataclass(frozen=True, slots=True)
class Item:
    """One memory to be: a turn of a conversation, a document.

    ``id``: unique in its case. ``role``: who said it. ``session``: which session it belongs
    to. ``created_at``: epoch seconds. ``fields``: other arguments of ``Memory``. Neither ids
    nor sessions' names are shown to the memory that is evaluated: they may give answers away.
    """

    id: str
    content: str
    role: str | None = None
    session: str | None = None
    created_at: float | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question:
    """One query. ``relevant``: ids of items, or of sessions where those are ranked.

    ``asked_at``: when it is asked, in epoch seconds; no part of a measurement so far.
    """

    id: str
    text: str
    relevant: frozenset[str]
    category: str = "general"
    asked_at: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One corpus, which becomes one memory, and the questions that are put to it.

    ``left_out``: how many questions of the source are not asked, by reason.
    """

    id: str
    items: Sequence[Item]
    questions: Sequence[Question]
    left_out: Mapping[str, int] = field(default_factory=dict)

    def sessions(self) -> dict[str, list[Item]]:
        """The items of each session, in order."""
        found: dict[str, list[Item]] = {}
        for item in self.items:
            if item.session is not None:
                found.setdefault(item.session, []).append(item)
        return found


@dataclass(frozen=True)
class Dataset:
    """Cases, and where they are from.

    ``name``: the data file's. ``digest``: the SHA-256 of its bytes in hex; of several files',
    one after the other. ``format``: how it was read. ``unit``: one of ``UNITS``. ``part``:
    which part of the file it is, "" for all of it.

    >>> case = Case("c", [Item("m1", "tea")], [Question("q1", "what to drink?", frozenset({"m1"}))])
    >>> Dataset("mine", "", [case]).question_count
    1
    """

    name: str
    digest: str
    cases: Sequence[Case]
    format: str = "plain"
    unit: str = "turn"
    part: str = ""

    @property
    def left_out(self) -> dict[str, int]:
        """How many questions of the source are not asked, by reason."""
        counts: Counter[str] = Counter()
        for case in self.cases:
            counts.update(case.left_out)
        return dict(+counts)

    @property
    def question_count(self) -> int:
        """How many questions are asked."""
        return sum(len(case.questions) for case in self.cases)

    @property
    def item_count(self) -> int:
        """How many memories there are in all cases together that have a question."""
        return sum(len(case.items) for case in self.cases if case.questions)

    def limited(self, most: int) -> Dataset:
        """The first ``most`` questions, and the cases that they need."""
        kept: list[Case] = []
        left = most
        for case in self.cases:
            if left <= 0:
                break
            kept.append(replace(case, questions=case.questions[:left]))
            left -= len(case.questions)
        said = f"the first {most:,} questions"
        part = f"{said} of {self.part}" if self.part else said
        return replace(self, cases=kept, part=part)


def checked_case(
    id: str, items: Sequence[Item], questions: Sequence[Question], left_out: Mapping[str, int]
) -> Case:
    """A case in which every id is there once."""
    for what, ids in (
        ("memories", [item.id for item in items]),
        ("questions", [question.id for question in questions]),
    ):
        twice = [id for id, times in Counter(ids).items() if times > 1]
        if twice:
            raise InvalidValue(f"{id}: two {what} have the id {twice[0]!r}; give each its own")
    return Case(id, items, questions, left_out)


def in_sessions(
    case: Case, unit: str, relevant: Mapping[str, frozenset[str]] | None = None
) -> Case:
    """``case`` with sessions to be found rather than turns.

    ``relevant``: those of each question; the sessions of its relevant turns unless given. For
    ``session-document`` each session becomes one item: a line ``role: content`` for each of
    its turns, and the time of its first.
    """
    session_of = {item.id: item.session for item in case.items if item.session is not None}
    if len(session_of) < len(case.items):
        raise InvalidValue(
            f"{case.id}: not every memory belongs to a session; evaluate it with the unit 'turn'"
        )
    questions = [
        replace(
            question,
            relevant=frozenset(session_of[id] for id in question.relevant)
            if relevant is None
            else relevant[question.id],
        )
        for question in case.questions
    ]
    if unit == "session":
        return replace(case, questions=questions)
    documents = [
        Item(name, "\n".join(map(_line, turns)), created_at=turns[0].created_at)
        for name, turns in case.sessions().items()
    ]
    return replace(case, items=documents, questions=questions)


def _line(turn: Item) -> str:
    return f"{turn.role}: {turn.content}" if turn.role else turn.content
