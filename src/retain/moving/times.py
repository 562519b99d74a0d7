"""Points in time as people and other programs write them."""

from __future__ import annotations

from .. import clock
from ..errors import InvalidType, InvalidValue

__all__ = ["as_time"]


def as_time(value: object, name: str = "created_at") -> float:
    """``value`` in epoch seconds: a number of them, or a text in ISO 8601 (``clock.from_iso``).

    Raises ``InvalidValue`` or ``InvalidType``, with ``name``, for anything else.
    """
    if isinstance(value, str):
        try:
            return clock.from_iso(value)
        except InvalidValue as error:
            raise InvalidValue(f"{name} {error}".lstrip()) from None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return clock.as_epoch(value, name)
    raise InvalidType(f"{name} is a {type(value).__name__}; give epoch seconds or ISO 8601")
