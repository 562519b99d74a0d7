"""The day that a sentence names."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.extraction.dates import is_past, may_begin, named

DAY = date(2026, 12, 1)  # a Tuesday


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("tomorrow", "2026-12-02"),
        ("the day after tomorrow", "2026-12-03"),
        ("on Friday", "2026-12-04"),
        ("this Tuesday", "2026-12-08"),
        ("next Friday", "2026-12-11"),
        ("I saw her last Friday", "2026-11-27"),
        ("On Monday I broke it", "2026-11-30"),
        ("in two weeks", "2026-12-15"),
        ("three days ago", "2026-11-28"),
        ("this weekend", "2026-12-05"),
        ("next week", "2026-W50"),
        ("last month", "2026-11"),
        ("in July", "2027-07"),
        ("we met in July", "2026-07"),
        ("September 1st", "2027-09-01"),
        ("14 May 2031", "2031-05-14"),
        ("2027-02-28", "2027-02-28"),
        ("it was moved to 14 May", "2027-05-14"),
        ("übermorgen", "2026-12-03"),
        ("vor drei Tagen", "2026-11-28"),
        ("am 24.12.", "2026-12-24"),
        ("pasado mañana", "2026-12-03"),
        ("el próximo viernes", "2026-12-04"),
        ("hace dos semanas", "2026-11-17"),
        ("avant-hier", "2026-11-29"),
        ("hier, j'ai nagé", "2026-11-30"),
        ("na próxima sexta-feira", "2026-12-04"),
        ("来週の金曜日", "2026-12-11"),
        ("5月20日", "2027-05-20"),
        ("下周三", "2026-12-09"),
        ("三天前", "2026-11-28"),
    ],
)
def test_a_date_is_seen_from_the_day_on_which_it_was_said(text: str, when: str):
    found = named(text, DAY)
    assert found is not None
    assert found.date == when


@pytest.mark.parametrize(
    "text",
    ["every Monday", "2026-02-30", "guten Morgen", "ich bin hier", "may I go?", "since 2014", ""],
)
def test_what_is_no_day_is_none(text: str):
    assert named(text, DAY) is None


def test_the_edges_of_the_calendar_are_no_trouble():
    assert named("in 999 years", date(9999, 12, 31)) is not None
    assert named("999 weeks ago", date(1, 1, 1)) is not None


def test_weeks_months_and_years_are_past_when_they_are_over():
    assert is_past("2026-W48", DAY) and not is_past("2026-W49", DAY)
    assert is_past("2025", DAY) and not is_past("2026", DAY)


@given(st.text(alphabet="0123456789 .-/年月日周 agoinvoruntildaysMaytomorrow", max_size=60))
def test_any_text_is_read(text: str):
    found = named(text, DAY)
    assert found is None or 0 <= found.start < found.end <= len(text)
    may_begin(text)
