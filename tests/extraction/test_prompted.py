"""What a model is asked, and what of its answer is believed."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from retain import ExtractionFailed, MemoryType
from retain.extraction import Turn, by_model

AT = datetime(2026, 12, 1, 9, tzinfo=timezone(timedelta(hours=9)))
TURNS = [Turn("user", "明日、京都へ行きます。", AT), Turn("assistant", "Bon voyage", AT)]
TRIP = {
    "content": " 2026-12-02に京都へ行く。 ",
    "memory_type": "episodic",
    "category": "plans\nand more",
    "importance": 1,
    "persistent": False,
    "turn": 0,
    "date": "2026-12-02",
}


class Gives:
    """A model that answers with these memories, and remembers what it was asked."""

    def __init__(self, *memories: Any) -> None:
        self.memories = list(memories)
        self.asked: list[dict[str, Any]] = []

    def complete_json(self, **prompt: Any) -> tuple[Any, None]:
        self.asked.append(prompt)
        return {"memories": self.memories}, None


def test_turns_go_out_numbered_as_json_and_come_back_as_findings():
    model = Gives(TRIP)
    [found] = by_model(TURNS, model, model="m", timeout=7)
    assert (found.content, found.turn, found.date) == ("2026-12-02に京都へ行く。", 0, "2026-12-02")
    assert (found.memory_type, found.category) == (MemoryType.EPISODIC, "plans and more")
    assert (found.importance, found.persistent) == (1.0, False)
    [asked] = model.asked
    assert (asked["model"], asked["timeout"]) == ("m", 7)
    assert json.loads(asked["messages"][0].content) == [
        {"turn": 0, "role": "user", "at": "2026-12-01T09:00:00+09:00", "text": TURNS[0].text},
        {"turn": 1, "role": "assistant", "at": "2026-12-01T09:00:00+09:00", "text": "Bon voyage"},
    ]


def test_nothing_is_asked_of_no_turns():
    model = Gives(TRIP)
    assert by_model([], model) == [] and model.asked == []


@pytest.mark.parametrize("date", [None, "", "2026-12", "2026", "2026-W49"])
def test_a_date_may_be_coarse_or_none(date: str | None):
    assert by_model(TURNS, Gives({**TRIP, "date": date}))[0].date == (date or None)


@pytest.mark.parametrize(
    "change",
    [
        {"turn": 2},
        {"turn": 0.5},
        {"turn": True},
        {"content": "　\n"},
        {"content": "x" * 4001},
        {"category": ""},
        {"importance": "high"},
        {"date": "tomorrow"},
        {"date": "2026-13-01"},
        {"persistent": None},
    ],
)
def test_one_wrong_memory_spoils_the_answer(change: dict[str, Any]):
    with pytest.raises(ExtractionFailed):
        by_model(TURNS, Gives(TRIP, {**TRIP, **change}))


def test_more_memories_than_turns_can_hold_are_refused():
    assert len(by_model(TURNS, Gives(*[TRIP] * 40))) == 40
    with pytest.raises(ExtractionFailed, match="41 items"):
        by_model(TURNS, Gives(*[TRIP] * 41))
