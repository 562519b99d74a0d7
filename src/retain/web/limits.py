"""What one request may ask for, and how many there may be."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, fields

from ..errors import InvalidType, InvalidValue

__all__ = ["Bucket", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server takes on; each can be given on the command line.

    ``body``: bytes of a request's body. ``items``: memories that one request writes. ``k``:
    results of a recall. ``page``: memories of a page. ``at_once``: requests under way in one
    process. ``rate``: requests a second of one token in one process, 0 for any number; as many
    may come in one burst. ``patience``: seconds to wait for the next part of a body.
    """

    body: int = 16 * 2**20
    items: int = 10_000
    k: int = 1_000
    page: int = 1_000
    at_once: int = 256
    rate: float = 0.0
    patience: float = 30.0

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise InvalidType(f"{part.name} is a {type(value).__name__}; give a number")
            if not math.isfinite(value) or value < 0 or (value == 0 and part.name != "rate"):
                raise InvalidValue(f"{part.name}={value!r}; give a number above 0")


class Bucket:
    """A token bucket: ``rate`` requests a second, as many at once after a pause.

    >>> bucket = Bucket(1)
    >>> bucket.wait(now=0.0), bucket.wait(now=0.0), bucket.wait(now=1.5)
    (0.0, 1.0, 0.0)
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = self._left = max(1.0, rate)
        self._last = -math.inf

    def wait(self, now: float | None = None) -> float:
        """Take one; 0, or the seconds after which there will be one."""
        now = time.monotonic() if now is None else now
        self._left = min(self._most, self._left + (now - self._last) * self._rate)
        self._last = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) / self._rate
