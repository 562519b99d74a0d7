"""Time: UTC, whole microseconds, and the same number after every detour."""

from __future__ import annotations

import math
import time
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain import InvalidType, InvalidValue, clock

UTC = timezone.utc
FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)

epochs = st.floats(clock.as_epoch(FIRST), clock.as_epoch(LAST)).map(lambda t: round(t, 6))


def test_now_is_the_time_in_whole_microseconds():
    before = time.time()
    now = clock.now()
    assert before - 1e-6 <= now <= time.time() + 1e-6
    assert now == round(now, 6)


@pytest.mark.parametrize(
    ("days", "day"),
    [
        (0, date(2026, 3, 13)),
        (1, date(2026, 3, 12)),
        (72, date(2025, 12, 31)),
        (700_000, date(109, 8, 30)),
        (700_001, date(109, 8, 30)),
        (10**12, date(109, 8, 30)),
    ],
)
@pytest.mark.parametrize("time", ["00:00:00", "23:59:59.999999"])
def test_days_ago_are_utc_dates_and_so_many_that_there_is_no_date_are_cut(
    monkeypatch: pytest.MonkeyPatch, time: str, days: int, day: date
):
    now = clock.from_iso(f"2026-03-13T{time}Z")
    monkeypatch.setattr(clock, "now", lambda: now)
    assert clock.days_ago(days) == day


@given(epoch=epochs)
def test_a_time_comes_back_from_a_datetime_as_the_same_number(epoch: float):
    assert clock.as_epoch(clock.as_datetime(epoch)) == epoch
    assert clock.as_epoch(epoch) == epoch


@given(moment=st.datetimes(datetime(1700, 1, 1), datetime(2242, 1, 1), timezones=st.timezones()))
def test_a_datetime_comes_back_from_a_number_as_the_same_moment(moment: datetime):
    again = clock.as_datetime(clock.as_epoch(moment))
    # of zones with gaps and folds only UTC compares as one expects
    assert again == moment.astimezone(UTC) and again.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("value", "epoch"),
    [
        (0, 0.0),
        (1773360000, 1773360000.0),
        (1.23456789, 1.234568),
        (-1.5, -1.5),
        (FIRST, -62135596800.0),
        (LAST, 253402300799.0),
        (datetime(2026, 3, 13, 1, tzinfo=timezone(timedelta(hours=1))), 1773360000.0),
        (datetime(2026, 3, 12, 18, 30, tzinfo=timezone(-timedelta(hours=5.5))), 1773360000.0),
    ],
)
def test_times_are_taken_as_numbers_and_as_aware_datetimes(value: Any, epoch: float):
    assert clock.as_epoch(value) == epoch
    assert isinstance(clock.as_epoch(value), float)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (datetime(2026, 3, 13), InvalidValue),
        (math.nan, InvalidValue),
        (10**400, InvalidValue),
        (math.inf, InvalidValue),
        (-1e12, InvalidValue),
        (1e12, InvalidValue),  # milliseconds, most likely
        ("2026-03-13T00:00:00Z", InvalidType),
        (None, InvalidType),
        (True, InvalidType),
    ],
    ids=str,
)
def test_what_is_no_time_is_refused_by_name(value: Any, error: Any):
    with pytest.raises(error, match="since"):
        clock.as_epoch(value, "since")


@pytest.mark.parametrize(
    ("epoch", "text"),
    [
        (0.0, "1970-01-01T00:00:00Z"),
        (1773396900.0, "2026-03-13T10:15:00Z"),
        (1773396900.25, "2026-03-13T10:15:00.250000Z"),
        (-0.5, "1969-12-31T23:59:59.500000Z"),
        (-62135596800.0, "0001-01-01T00:00:00Z"),
    ],
)
def test_a_time_is_written_in_utc(epoch: float, text: str):
    assert clock.iso(epoch) == text
