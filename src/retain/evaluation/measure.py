"""Measuring: a fresh memory for each case, filled and asked as a program would do it."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from .. import clock
from ..engine import whole
from ..errors import InvalidType, InvalidValue, NotFound
from ..memories.agent import AgentMemory
from ..memories.base import Face
from ..memories.conversation import ConversationMemory
from ..models import Memory
from ..search.blend import Blend
from .dataset import Case, Dataset, Item, Question
from .metrics import ranks_of
from .report import Outcome, Report

__all__ = ["CONFIGURATIONS", "DEPTH", "Configuration", "Progress", "evaluate"]

Configuration = Callable[[], Face]
Progress = Callable[[int, int], None]

DEPTH = 50
"""How many results of a question are looked at, unless told otherwise."""


def _without(**parts: Any) -> Configuration:
    """The default with some parts of its relevance weighted otherwise."""

    def made() -> Face:
        memory = ConversationMemory()
        memory.engine.blend = replace(Blend(), **parts)
        return memory

    return made


CONFIGURATIONS: dict[str, Configuration] = {
    "default": ConversationMemory,
    "lexical": lambda: ConversationMemory(embedder=None),
    "words": AgentMemory,
    "no-near": _without(near=()),
    "no-session": _without(session=0.0),
    "no-speaker": _without(speaker=0.0),
    "no-user": _without(user=0.0),
    "no-time": _without(time=0.0),
    "no-meaning": _without(meaning=0.0, alike=2.0),
    "no-related": _without(related=0.0),
}
"""What can be measured by name: functions that make an empty memory.

``lexical``: without an embedder. ``words``: the share of a question's words and nothing else.
``no-…``: the default without one part of its relevance.
"""


def evaluate(
    dataset: Dataset,
    configuration: str | Configuration = "default",
    *,
    name: str | None = None,
    depth: int = DEPTH,
    progress: Progress | None = None,
) -> Report:
    """Ask every question of ``dataset`` and score the answers.

    For every case, ``configuration`` (one of ``CONFIGURATIONS``, or any function that returns
    an empty face) makes a memory; all items go into it by one ``remember_many``, turns as
    ``add_turn`` makes them; every question is asked by ``recall(k=depth)``. ``name``: what
    the report calls it. ``progress`` is called with the questions done and all there are.

    >>> from retain.evaluation import Case, Dataset, Item, Question, evaluate
    >>> items = [Item("m1", "Ann drinks tea"), Item("m2", "Bob drinks coffee")]
    >>> case = Case("c", items, [Question("q", "who drinks tea?", frozenset({"m1"}))])
    >>> evaluate(Dataset("mine", "", [case])).scores()["recall@1"]
    1.0
    """
    make, named = _configured(configuration)
    whole(depth, "depth", 1)
    total = dataset.question_count
    if not total:
        raise NotFound(f"{dataset.name} has no question that could be asked")
    outcomes: list[Outcome] = []
    if progress is not None:
        progress(0, total)
    for case in dataset.cases:
        if not case.questions:
            continue
        for outcome in _asked(case, dataset.unit, make, depth):
            outcomes.append(outcome)
            if progress is not None:
                progress(len(outcomes), total)
    return Report(
        dataset=dataset.name,
        digest=dataset.digest,
        format=dataset.format,
        unit=dataset.unit,
        part=dataset.part,
        configuration=named if name is None else name,
        depth=depth,
        memories=dataset.item_count,
        left_out=dataset.left_out,
        outcomes=tuple(outcomes),
    )


def _configured(configuration: str | Configuration) -> tuple[Configuration, str]:
    if isinstance(configuration, str):
        if configuration not in CONFIGURATIONS:
            known = ", ".join(CONFIGURATIONS)
            raise InvalidValue(f"configuration {configuration!r} is none of {known}")
        return CONFIGURATIONS[configuration], configuration
    if not callable(configuration):
        raise InvalidType(
            f"configuration is a {type(configuration).__name__}; "
            "give a name or a function that returns a face"
        )
    return configuration, getattr(configuration, "__name__", type(configuration).__name__)


def _asked(case: Case, unit: str, make: Configuration, depth: int) -> Iterator[Outcome]:
    face = make()
    if not isinstance(face, Face):
        raise InvalidType(f"the configuration made a {type(face).__name__}, not a face")
    with face as memory:
        names = _remembered(memory, case, by_session=unit == "session")
        memory.settle()  # the index is whole, and no question pays for it
        # any number of turns may stand before the first of the last session
        k = len(case.items) if unit == "session" else depth
        for question in case.questions:
            yield _answered(memory, question, k, depth, names)


def _answered(
    memory: Face, question: Question, k: int, depth: int, names: Mapping[str, list[str]]
) -> Outcome:
    begun = time.perf_counter()
    results = memory.recall(question.text, k=k)
    seconds = time.perf_counter() - begun
    ranking = dict.fromkeys(name for result in results for name in names[result.memory.id])
    ranks = ranks_of(list(ranking)[:depth], question.relevant)
    relevant = len(question.relevant)
    return Outcome(question.id, question.category, relevant, tuple(ranks), seconds)


def _remembered(memory: Face, case: Case, *, by_session: bool) -> dict[str, list[str]]:
    """Fill ``memory``; what each of its ids stands for: items, or with ``by_session`` theirs.

    Several, where the memory kept an equal fact once.
    """
    saved = memory.remember_many(list(_memories(case)))
    names: dict[str, list[str]] = {}
    for item, kept in zip(case.items, saved, strict=True):
        name = item.session if by_session else item.id
        assert name is not None  # in_sessions() made sure of it
        names.setdefault(kept.id, []).append(name)
    return names


def _memories(case: Case) -> Iterator[Memory]:
    """The items as they are remembered.

    A turn is what ``add_turn`` makes of it, the turns of a session numbered from 1. Ids are
    the same in every run, and sessions are numbered, so that nothing is in a name.
    """
    now = clock.now()
    sessions = {name: f"session_{number}" for number, name in enumerate(case.sessions(), 1)}
    turns: Counter[str | None] = Counter()
    for item in case.items:
        fields = dict(item.fields)
        metadata = dict(fields.pop("metadata", {}))
        if item.role is not None:
            turns[item.session] += 1
            metadata = {"turn": turns[item.session], **metadata, "role": item.role}
            fields.setdefault("source", item.role)
        if item.session is not None:
            metadata["session"] = sessions[item.session]
        yield Memory(
            _id(case, item),
            item.content,
            metadata=metadata,
            created_at=now if item.created_at is None else item.created_at,
            **fields,
        )


def _id(case: Case, item: Item) -> str:
    return hashlib.sha256(f"{case.id}\0{item.id}".encode()).hexdigest()[:32]
