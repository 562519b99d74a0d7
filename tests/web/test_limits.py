"""What one request may ask for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain import InvalidType, InvalidValue
from retain.web.limits import Bucket, Limits


@given(
    st.floats(0.1, 1_000),
    st.lists(st.floats(0, 2), max_size=60),
)
def test_a_bucket_lets_through_a_burst_and_then_its_rate(rate: float, pauses: list[float]):
    bucket, now, through = Bucket(rate), 0.0, 0
    for pause in pauses:
        now += pause
        wait = bucket.wait(now)
        through += wait == 0
        assert 0 <= wait <= 1 / rate
    assert through <= max(1.0, rate) + now * rate + 1


@pytest.mark.parametrize("wrong", [{"k": 0}, {"rate": -1}, {"body": float("inf")}], ids=str)
def test_limits_are_numbers_above_0(wrong: dict[str, Any]):
    with pytest.raises(InvalidValue):
        Limits(**wrong)
    with pytest.raises(InvalidType):
        Limits(k="5")  # type: ignore[arg-type]
