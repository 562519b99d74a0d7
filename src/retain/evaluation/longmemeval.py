"""LongMemEval (Wu et al., ICLR 2025): questions, each with a haystack of chat sessions.

Each question is a case of its own, since it has its own haystack.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import NamedTuple

from ..clock import as_epoch
from ..errors import InvalidValue
from .dataset import Case, Dataset, Item, Question, checked_case, in_sessions
from .reading import DataFile, Node, digest

__all__ = ["read_longmemeval"]

_ABSTENTION = "_abs"
_TIME = re.compile(r"([0-9]{4})/([0-9]{2})/([0-9]{2}) \(\w{3}\) ([0-9]{2}):([0-9]{2})")


class _Turn(NamedTuple):
    role: str
    content: str
    answers: bool


class _Session(NamedTuple):
    id: str
    start: float | None
    turns: list[_Turn]


def read_longmemeval(
    file: DataFile, sessions: DataFile | None = None, unit: str = "turn"
) -> Dataset:
    """The dataset in ``file``: the original list, or the same a line for each question.

    With ``sessions``, the questions' ``haystack`` names sessions of that file, each with its
    date. Relevant are, for ``unit="turn"``, the turns with ``has_answer``; otherwise the
    sessions of ``answer_session_ids``. Questions on what was never said (``_abs`` in their
    id) and those without anything relevant are left out.

    An item's time is its session's, in UTC, and a second more for each turn before it.
    """
    turns = {} if sessions is None else dict(map(_session_line, sessions.lines()))
    cases = []
    for node in file.records():
        id = node["question_id"].id()
        if _ABSTENTION in id:
            cases.append(Case(id, [], [], {"abstention": 1}))
            continue
        haystack = list(_haystack(node) if sessions is None else _named(node, turns))
        case = _case(node, haystack, unit)
        if not case.questions[0].relevant:
            case = Case(id, [], [], {"without evidence": 1})
        cases.append(case)
    files = [file] if sessions is None else [file, sessions]
    return Dataset(file.path.name, digest(*files), cases, "longmemeval", unit)


def _case(node: Node, haystack: list[_Session], unit: str) -> Case:
    id = node["question_id"].id()
    items: list[Item] = []
    answering = set()
    wanted = node["answer_session_ids"].ids()
    relevant = set()
    times: Counter[str] = Counter()
    for session in haystack:
        times[session.id] += 1  # a few haystacks hold one twice
        name = session.id if times[session.id] == 1 else f"{session.id} ({times[session.id]})"
        if session.id in wanted and session.turns:
            relevant.add(name)
        for at, turn in enumerate(session.turns):
            time = None if session.start is None else session.start + at
            items.append(Item(f"{name}:{at + 1}", turn.content, turn.role, name, time))
            if turn.answers:
                answering.add(items[-1].id)
    asked = node.get("question_date")
    question = Question(
        id,
        node["question"].words(),
        frozenset(answering),
        node["question_type"].words(),
        None if asked is None else _time(asked),
    )
    case = checked_case(id, items, [question], {})
    return case if unit == "turn" else in_sessions(case, unit, {id: frozenset(relevant)})


# -- haystacks -------------------------------------------------------------------------------


def _haystack(node: Node) -> Iterator[_Session]:
    """The sessions that stand in the question itself."""
    found = node["haystack_sessions"].items()
    ids = node["haystack_session_ids"].items(len(found))
    dates = node.get("haystack_dates")
    times = [None] * len(found) if dates is None else map(_time, dates.items(len(found)))
    for id, time, turns in zip(ids, times, found, strict=True):
        yield _Session(id.id(), time, _turns(turns))


def _named(node: Node, known: Mapping[str, list[_Turn]]) -> Iterator[_Session]:
    """The sessions that the question names."""
    for pair in node["haystack"].items():
        id, date = pair.items(2)
        if id.id() not in known:
            raise id.wrong(f"is {id.id()!r}, which the file of sessions does not have")
        yield _Session(id.id(), _time(date), known[id.id()])


def _session_line(node: Node) -> tuple[str, list[_Turn]]:
    return node["session_id"].id(), _turns(node["turns"])


def _turns(node: Node) -> list[_Turn]:
    return [
        _Turn(
            turn["role"].words(),
            turn["content"].text(),
            (answers := turn.get("has_answer")) is not None and answers.flag(),
        )
        for turn in node.items()
    ]


def _time(node: Node) -> float:
    """``2023/12/21 (Thu) 21:31`` in epoch seconds."""
    found = _TIME.fullmatch(node.text().strip())
    problem = f"is {node.text()!r}; give a time such as '2023/12/21 (Thu) 21:31'"
    if found is None:
        raise node.wrong(problem)
    year, month, day, hour, minute = map(int, found.groups())
    try:
        return as_epoch(datetime(year, month, day, hour, minute, tzinfo=timezone.utc))
    except (ValueError, InvalidValue):
        raise node.wrong(problem) from None
