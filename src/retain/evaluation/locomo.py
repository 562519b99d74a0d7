"""LoCoMo (Maharana et al., ACL 2024): very long conversations of two people.

A sample is a case, its turns are the items. Evidence names turns by their ``dia_id``.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, timezone

from ..clock import as_epoch
from .dataset import Case, Dataset, Item, Question, checked_case, in_sessions
from .reading import DataFile, Node, digest

__all__ = ["CATEGORIES", "read_locomo"]

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""The paper's names of what the file numbers; 5, adversarial, has no answer to be found."""

_ADVERSARIAL = 5
_SESSION = re.compile(r"session_([0-9]+)")
_TURN = re.compile(r"D:?([0-9]+):([0-9]+)")  # some strings hold several, or a stray character
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2}) ([ap]m) on ([0-9]{1,2}) ([A-Z][a-z]+), ([0-9]{4})")
_MONTHS = """
January February March April May June July August September October November December
""".split()


def read_locomo(file: DataFile, unit: str = "turn") -> Dataset:
    """The dataset in ``file``; questions of categories 1 to 4 that have evidence.

    An item's content is the turn's text, and where an image was shared its caption after it,
    in brackets: ``text [caption]``. Its time is the session's, in UTC, and a second more for
    each turn before it.
    """
    samples = enumerate(file.whole().items(), 1)
    cases = [_case(sample, unit, number) for number, sample in samples]
    return Dataset(file.path.name, digest(file), cases, "locomo", unit)


def _case(sample: Node, unit: str, number: int) -> Case:
    named = sample.get("sample_id")
    id = named.id() if named else f"conversation {number}"
    items = _items(sample["conversation"])
    turns = {_normal(item.id): item.id for item in items}
    questions = []
    left_out: Counter[str] = Counter()
    for at, each in enumerate(sample["qa"].items(), 1):
        category = each["category"].number()
        if category == _ADVERSARIAL:
            left_out["adversarial"] += 1
            continue
        if category not in CATEGORIES:
            raise each["category"].wrong(f"is {category}; give a number from 1 to 5")
        # two strings in the published file name turns that there are not
        relevant = frozenset(turns[name] for name in _evidence(each) if name in turns)
        if not relevant:
            left_out["without evidence"] += 1
            continue
        text = each["question"].words()
        questions.append(Question(f"{id} {at}", text, relevant, CATEGORIES[category]))
    case = checked_case(id, items, questions, left_out)
    return case if unit == "turn" else in_sessions(case, unit)


def _normal(turn: str) -> str:
    found = _TURN.fullmatch(turn)
    return f"D{int(found[1])}:{int(found[2])}" if found else turn


def _evidence(question: Node) -> list[str]:
    listed = question.get("evidence")
    texts = [each.text() for each in listed.items()] if listed else []
    return [_normal(found[0]) for text in texts for found in _TURN.finditer(text)]


def _items(conversation: Node) -> list[Item]:
    numbers = [
        int(found[1]) for name in conversation.names() if (found := _SESSION.fullmatch(name))
    ]
    if not numbers:
        raise conversation.wrong("has no 'session_1'; give the sessions with their turns")
    items = []
    for number in sorted(numbers):
        session = f"session_{number}"
        started = conversation.get(f"{session}_date_time")
        start = None if started is None else _time(started)
        turns = conversation[session].items() if conversation.get(session) else []
        for at, turn in enumerate(turns):
            caption = turn.get("blip_caption")
            text = turn["text"].text()
            content = text if caption is None else f"{text} [{caption.text()}]".lstrip()
            time = None if start is None else start + at
            speaker = turn["speaker"].words()
            items.append(Item(turn["dia_id"].id(), content, speaker, session, time))
    return items


def _time(node: Node) -> float:
    """``1:56 pm on 8 May, 2023`` in epoch seconds; months are English in every locale."""
    found = _TIME.fullmatch(node.text().strip())
    if found is None or found[5] not in _MONTHS:
        raise node.wrong(f"is {node.text()!r}; give a time such as '1:56 pm on 8 May, 2023'")
    hour = int(found[1]) % 12 + (12 if found[3] == "pm" else 0)
    month = _MONTHS.index(found[5]) + 1
    try:
        moment = datetime(
            int(found[6]), month, int(found[4]), hour, int(found[2]), tzinfo=timezone.utc
        )
    except ValueError:
        raise node.wrong(f"is {node.text()!r}, which is no time that there is") from None
    return as_epoch(moment)
