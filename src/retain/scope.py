"""Whose memory it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .errors import InvalidType, InvalidValue

__all__ = ["Scope"]

_LONGEST = 512


@dataclass(frozen=True, slots=True, order=False)
class Scope:
    """Whose memory it is: a user, an agent, a session, each optional.

    A scope matches exactly: ``None`` is a value, never a wildcard, so ``Scope(user="ann")``
    does not see what ``Scope(user="ann", session="s1")`` holds. Names are any text of 1 to
    512 characters that UTF-8 can hold; ``Scope(user="")`` is refused, since an empty name is
    nearly always a missing one.

    >>> Scope(user="ann").key
    '["ann",null,null]'
    """

    user: str | None = None
    agent: str | None = None
    session: str | None = None

    def __post_init__(self) -> None:
        for name in ("user", "agent", "session"):
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, str):
                raise InvalidType(f"scope {name} is a {type(value).__name__}; give text or None")
            if not 1 <= len(value) <= _LONGEST:
                raise InvalidValue(
                    f"scope {name} has {len(value)} characters; give 1 to {_LONGEST}, or None"
                )
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise InvalidValue(f"scope {name} is not valid Unicode text: {error}") from None

    @property
    def key(self) -> str:
        """The scope as one text, different for every scope: what stores key their rows by."""
        return json.dumps(
            [self.user, self.agent, self.session], ensure_ascii=False, separators=(",", ":")
        )

    @classmethod
    def from_key(cls, key: str) -> Scope:
        """The scope of which ``key`` is the key."""
        try:
            user, agent, session = json.loads(key)
        except (ValueError, TypeError):
            raise InvalidValue(f"{key!r} is no key of a scope") from None
        return cls(user, agent, session)

    def to_dict(self) -> dict[str, Any]:
        """The parts that are set."""
        parts = {"user": self.user, "agent": self.agent, "session": self.session}
        return {name: value for name, value in parts.items() if value is not None}

    def __str__(self) -> str:
        return ",".join(f"{k}={v}" for k, v in self.to_dict().items()) or "default"
