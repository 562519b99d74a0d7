"""Time: read in one place, UTC inside, in whole microseconds.

Whole microseconds because a ``datetime`` holds no more: a time goes through either form of
the record (epoch seconds or ``datetime``) and comes back as the same number.
"""

from __future__ import annotations

import math
import re
import time
from datetime import date, datetime, timedelta, timezone

from .errors import InvalidType, InvalidValue

__all__ = ["DAY", "FOR_EVER", "as_datetime", "as_epoch", "days_ago", "from_iso", "iso", "now"]

DAY = 86_400.0
"""Seconds in a day."""
FOR_EVER = 700_000
"""Days back, beyond which there may be no date any more."""

_ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?"
    r"(?: ?(?:[Zz]|([+-])([0-9]{2}):?([0-9]{2})?))?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST = -62_135_596_800.0  # 0001-01-01T00:00:00Z
_LAST = 253_402_300_799.0  # 9999-12-31T23:59:59Z


def now() -> float:
    """The time now, in epoch seconds rounded to microseconds."""
    return round(time.time(), 6)


def days_ago(days: int) -> date:
    """The UTC date ``days`` days before today's, at most ``FOR_EVER``.

    >>> days_ago(0) == as_datetime(now()).date()
    True
    """
    return as_datetime(now()).date() - timedelta(days=min(days, FOR_EVER))


def as_epoch(value: object, name: str = "created_at") -> float:
    """``value`` (epoch seconds, or an aware ``datetime``) as epoch seconds.

    Raises ``InvalidType`` for anything else and ``InvalidValue`` for a naive ``datetime``,
    for NaN and infinities, and for times outside the years 1 to 9999.

    >>> as_epoch(datetime(2026, 3, 13, tzinfo=timezone.utc))
    1773360000.0
    """
    if isinstance(value, datetime):
        if value.tzinfo is None or value.utcoffset() is None:
            raise InvalidValue(
                f"{name}={value.isoformat()!r} has no time zone; "
                "give an aware datetime, e.g. datetime.now(timezone.utc)"
            )
        return (value - _EPOCH) / timedelta(seconds=1)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidType(
            f"{name} is a {type(value).__name__}; give epoch seconds or an aware datetime"
        )
    if not _FIRST <= value <= _LAST:  # NaN and infinities neither
        raise InvalidValue(
            f"{name}={value!r} is no time between the years 1 and 9999 in epoch seconds"
        )
    return round(float(value), 6)


def as_datetime(epoch: float) -> datetime:
    """Epoch seconds as an aware UTC ``datetime``, on every platform and for every year."""
    whole = math.floor(epoch)  # apart, since epoch * 1_000_000 would round far from 1970
    return _EPOCH + timedelta(seconds=whole, microseconds=round((epoch - whole) * 1_000_000))


def iso(epoch: float) -> str:
    """Epoch seconds as ``2026-03-13T10:15:00Z``, with microseconds where there are any."""
    return as_datetime(epoch).isoformat().replace("+00:00", "Z")


def from_iso(text: str) -> float:
    """A text in ISO 8601 as epoch seconds: without an offset it is UTC, a date its first moment.

    Raises ``InvalidValue`` for any other text. (``datetime.fromisoformat`` of Python 3.10
    reads neither ``Z`` nor most fractions.)

    >>> from_iso("2026-03-13T10:15:00Z") == from_iso("2026-03-13 11:15+01:00")
    True
    """
    match = _ISO.fullmatch(text.strip())
    if match is None:
        example = "2026-03-13 or 2026-03-13T10:15:00Z"
        raise InvalidValue(f"{text[:40]!r} is no time in ISO 8601, such as {example}")
    *numbers, fraction, sign, hours, minutes = match.groups(default="")
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        zone = timezone(-offset if sign == "-" else offset)
        year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
        micros = int(fraction[:6].ljust(6, "0"))
        moment = datetime(year, month, day, hour, minute, second, micros, zone)
        return as_epoch(as_epoch(moment))  # the number's range is checked, too
    except ValueError:
        raise InvalidValue(f"{text[:40]!r} is no time that there is") from None
