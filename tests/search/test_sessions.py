"""The turns beside each other, against a sort."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from retain import Memory
from retain.search.columns import Columns
from retain.search.sessions import Sessions


class Turns(RuleBasedStateMachine):
    """Rows that come in any order and go, beside a list of their numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.columns = Columns()
        self.sessions = Sessions(self.columns)
        self.rows: list[tuple[object, float, int, int] | None] = []  # None: not live

    @rule(
        session=st.sampled_from(["one", "two", 3, None]),
        created=st.sampled_from([5.0, 6.0, 7.0]),
        turn=st.sampled_from([0, 1, 2]),
        revision=st.integers(1, 3),
    )
    def add(self, session: object, created: float, turn: int, revision: int) -> None:
        metadata = {} if session is None else {"session": session, "turn": turn}
        memory = Memory(str(len(self.rows)), "x", metadata=metadata, created_at=created)
        memory.revision = revision
        self.columns.extend(Columns.of_memories([memory], [turn + 1]))
        self.sessions.add(len(self.rows))
        self.rows.append((session, created, turn, revision))

    @precondition(lambda self: any(self.rows))
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        live = [row for row, known in enumerate(self.rows) if known is not None]
        row = data.draw(st.sampled_from(live))
        self.columns["live"][row] = False
        self.sessions.remove(row)
        self.rows[row] = None

    @rule()
    def keep(self) -> None:
        kept = np.array([known is not None for known in self.rows], bool)
        self.sessions.keep(kept)
        self.columns.keep(kept)
        self.rows = [known for known in self.rows if known is not None]

    @rule()
    def begin_anew(self) -> None:
        self.sessions = Sessions(self.columns)

    @invariant()
    def each_session_is_in_order(self) -> None:
        expected: dict[object, list[int]] = {}
        for row, known in enumerate(self.rows):
            if known is not None and known[0] is not None:
                expected.setdefault(known[0], []).append(row)
        before, after = [-1] * len(self.rows), [-1] * len(self.rows)
        for turns in expected.values():
            turns.sort(key=lambda row: (*self.rows[row][1:], row))
            for one, other in pairwise(turns):
                after[one], before[other] = other, one
        assert self.sessions.before.tolist() == before
        assert self.sessions.after.tolist() == after
        numbers = self.sessions.number.tolist()
        of = {session: {numbers[row] for row in turns} for session, turns in expected.items()}
        assert all(len(found) == 1 and min(found) >= 0 for found in of.values())
        assert len({number for found in of.values() for number in found}) == len(of)
        inside = {row for turns in expected.values() for row in turns}
        assert all(numbers[row] == -1 for row in range(len(self.rows)) if row not in inside)
        assert self.sessions.count >= len(of)
        for session, turns in expected.items():
            length = sum(self.rows[row][2] + 1 for row in turns)
            assert self.sessions.lengths[min(of[session])] == length
        assert self.sessions.lengths.sum() == sum(self.rows[row][2] + 1 for row in inside)


Turns.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestTurns = Turns.TestCase


def test_many_rows_find_their_place_whether_they_come_one_by_one_or_at_once():
    random = np.random.default_rng(5)
    memories = [
        Memory(
            f"m{n}",
            "x",
            metadata={"session": int(random.integers(5)), "turn": int(random.integers(4))},
            created_at=float(random.integers(6)),
        )
        for n in range(400)
    ]
    columns = Columns()
    sessions = Sessions(columns)
    for row, memory in enumerate(memories):
        columns.extend(Columns.of_memories([memory], [1]))
        sessions.add(row)
    at_once = Sessions(columns)
    assert sessions.before.tolist() == at_once.before.tolist()
    assert sessions.after.tolist() == at_once.after.tolist()
    assert sessions.count == at_once.count == 5
    assert sorted(sessions.lengths) == sorted(at_once.lengths)
    assert sessions.nbytes >= 3 * 4 * 400


def test_without_turns_there_is_no_session():
    columns = Columns()
    columns.extend(Columns.of_memories([Memory("m", "x")], [1]))
    sessions = Sessions(columns)
    assert (sessions.count, sessions.number.tolist()) == (0, [-1])
    assert sessions.lengths.tolist() == []
