"""Points in time as people and other programs write them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from .. import clock
from ..errors import InvalidType, InvalidValue

__all__ = ["as_time"]

_ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?"
    r"(?: ?(?:[Zz]|([+-])([0-9]{2}):?([0-9]{2})?))?)?"
)


def as_time(value: object, name: str = "created_at") -> float:
    """``value`` in epoch seconds: a number of them, or a text in ISO 8601.

    A text without an offset is UTC, a date alone its first moment. Raises ``InvalidValue``
    or ``InvalidType``, with ``name``, for anything else. (``datetime.fromisoformat`` of
    Python 3.10 reads neither ``Z`` nor most fractions.)

    >>> as_time("2026-03-13T10:15:00Z") == as_time("2026-03-13 11:15+01:00")
    True
    """
    if not isinstance(value, str):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return clock.as_epoch(value, name)
        raise InvalidType(f"{name} is a {type(value).__name__}; give epoch seconds or ISO 8601")
    match = _ISO.fullmatch(value.strip())
    if match is None:
        example = "2026-03-13 or 2026-03-13T10:15:00Z"
        reason = f"{name} {value[:40]!r} is no time in ISO 8601, such as {example}"
        raise InvalidValue(reason.lstrip())
    *numbers, fraction, sign, hours, minutes = match.groups(default="")
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        zone = timezone(-offset if sign == "-" else offset)
        year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
        micros = int(fraction[:6].ljust(6, "0"))
        moment = datetime(year, month, day, hour, minute, second, micros, zone)
        return clock.as_epoch(clock.as_epoch(moment, name), name)
    except ValueError:
        raise InvalidValue(f"{name} {value!r} is no time that there is".lstrip()) from None
