from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidType, InvalidValue
from retain.moving.times import as_time

NOON = datetime(2026, 3, 13, 12, tzinfo=timezone.utc).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-13T12:00:00Z",
        "2026-03-13T12:00:00.000Z",
        "2026-03-13T12:00:00.0000000+00:00",
        "2026-03-13 12:00",
        "2026-03-13t12:00z",
        " 2026-03-13T13:00:00+01:00 ",
        "2026-03-13T13:00:00+0100",
        "2026-03-13T04:30:00-07:30",
        "2026-03-13T12:00:00,0",
    ],
)
def test_one_moment_is_read_however_it_is_written(text: str):
    assert as_time(text) == NOON


def test_a_date_alone_is_its_first_moment_in_utc():
    assert as_time("2026-03-13") == NOON - 12 * 3600


def test_a_number_is_epoch_seconds():
    assert as_time(NOON) == as_time(int(NOON)) == NOON


@given(st.datetimes(timezones=st.just(timezone.utc)))
def test_what_python_writes_is_read_as_it_was(moment: datetime):
    assert as_time(moment.isoformat()) == pytest.approx(moment.timestamp(), abs=1e-6)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "2026-02-30", "12:00", "٢٠٢٦-٠٣-١٣"]
)
def test_what_is_no_time_is_refused_by_its_name(text: str):
    with pytest.raises(InvalidValue, match=r"^since "):
        as_time(text, "since")


@pytest.mark.parametrize("value", [None, True, [1], float("nan"), 1e18])
def test_what_can_be_no_time_is_refused(value: object):
    with pytest.raises((InvalidType, InvalidValue)):
        as_time(value)
