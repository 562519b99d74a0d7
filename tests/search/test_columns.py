"""Columns against a list of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain import Memory, MemoryType
from retain.search.columns import KINDS, LONGEST, Columns, id_key, session_of
from retain.testing import HOSTILE, memories

DAY = 86_400
NAMES = "created expires importance kind persistent live length session turn revision key".split()
many = st.lists(memories(), max_size=4)
few = settings(max_examples=12)


def columns_of(these: list[Memory]) -> Columns:
    return Columns.of_memories(these, [len(memory.content) for memory in these])


def rows_of(columns: Columns) -> list[dict[str, Any]]:
    return [
        {"id": columns.id(row), **{name: columns[name][row].item() for name in NAMES}}
        for row in range(columns.size)
    ]


@few
@given(these=many)
def test_a_row_is_what_the_memory_is(these: list[Memory]):
    for row, memory in zip(rows_of(columns_of(these)), these, strict=True):
        expires = memory.expires_at
        assert row["id"] == memory.id
        assert row["created"] == memory.created_at
        assert row["expires"] == (float("inf") if expires is None else expires)
        assert row["importance"] == memory.importance_score
        assert row["kind"] == KINDS[memory.memory_type]
        assert (row["persistent"], row["live"]) == (memory.persistent, True)
        assert row["length"] == min(LONGEST, len(memory.content))
        assert (row["session"], row["turn"]) == session_of(memory)
        assert (row["revision"], row["key"]) == (memory.revision, id_key(memory.id))


@few
@given(parts=st.lists(many, max_size=3))
def test_extending_puts_rows_one_after_the_other(parts: list[list[Memory]]):
    columns = Columns()
    for part in parts:
        columns.extend(columns_of(part))
    assert rows_of(columns) == [row for part in parts for row in rows_of(columns_of(part))]
    assert columns.ids.tobytes() == "".join(m.id for part in parts for m in part).encode()
    assert columns.nbytes >= 80 * columns.size


@few
@given(these=many, data=st.data())
def test_a_part_is_a_copy_of_some_rows_and_can_be_extended(
    these: list[Memory], data: st.DataObject
):
    columns = columns_of(these)
    first = data.draw(st.integers(0, len(these)))
    end = data.draw(st.integers(first, len(these)))
    part, rows = columns.part(first, end), rows_of(columns)
    assert rows_of(part) == rows[first:end]
    part.extend(columns)
    part["live"][:] = False
    assert rows_of(columns) == rows
    assert [row["id"] for row in rows_of(part)] == [m.id for m in these[first:end] + these]


@few
@given(these=many)
def test_the_arrays_make_the_same_columns_again(these: list[Memory]):
    columns = Columns()
    columns.extend(columns_of(these))  # with room at the end, which is not to be seen
    again = Columns.of(columns.arrays())
    assert rows_of(again) == rows_of(columns)
    again.extend(columns)
    assert rows_of(again) == 2 * rows_of(columns)


@few
@given(these=many, data=st.data())
def test_of_a_mask_the_rows_stay_in_their_order(these: list[Memory], data: st.DataObject):
    columns = Columns()
    columns.extend(columns_of(these))
    size = columns.size
    mask = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    expected = [row for row, stays in zip(rows_of(columns), mask, strict=True) if stays]
    columns.keep(np.array(mask, bool))
    assert rows_of(columns) == expected
    columns.extend(columns_of(these))
    assert [row["id"] for row in rows_of(columns)] == [
        *(row["id"] for row in expected),
        *(memory.id for memory in these),
    ]


def test_ids_of_any_text_are_told_apart_and_an_empty_one_too():
    these = [Memory(id, "x") for id in [*HOSTILE, "", "ä", "a\u0308"] if id.strip() or not id]
    columns = columns_of(these)
    assert [columns.id(row) for row in range(columns.size)] == [memory.id for memory in these]
    assert len(set(columns["key"].tolist())) == len({memory.id for memory in these})


def test_a_longer_text_than_the_longest_is_as_long_as_that():
    columns = Columns.of_memories([Memory("m", "x")], [10**9])
    assert columns["length"].tolist() == [LONGEST]


@pytest.mark.parametrize(
    ("metadata", "number"),
    [
        ({}, None),
        ({"session": None}, None),
        ({"session": 1.5, "turn": "4"}, None),
        ({"session": ["one"]}, None),
        ({"turn": True}, None),
        ({"session": "one"}, 0),
        ({"session": "one", "turn": 7}, 7),
        ({"session": "one", "turn": "7"}, 0),
        ({"session": 3, "turn": -5}, 0),
        ({"session": "", "turn": 10**30}, 2**62),
        ({"turn": 7}, 7),
    ],
    ids=repr,
)
def test_a_turn_is_what_has_a_session_or_a_number(metadata: dict[str, Any], number: int | None):
    session, turn = session_of(Memory("m", "x", metadata=metadata))
    assert (session != 0) == (number is not None)
    assert turn == (number or 0)


def test_sessions_of_different_names_and_days_are_different_ones():
    found = [
        session_of(Memory("m", "x", metadata=metadata, created_at=float(created)))[0]
        for metadata, created in (
            ({"session": "1"}, 0),
            ({"session": 1}, 0),
            ({"session": "2"}, 0),
            ({"turn": 1}, 0),
            ({"turn": 1}, DAY),
            ({"turn": 2}, DAY + 5),
            ({"turn": 3}, 2 * DAY - 1),
            ({"session": "1", "turn": 1}, DAY),
        )
    ]
    assert len(set(found[:5])) == 5
    assert found[4] == found[5] == found[6]
    assert found[0] == found[7]


def test_every_type_has_a_number_of_its_own():
    assert len({KINDS[kind] for kind in MemoryType}) == len(MemoryType)
