"""What a conversation is made of: messages, who said them, and the tool calls in them."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .errors import InvalidType, InvalidValue

__all__ = ["Message", "Role", "ToolCall", "as_message"]


class Role(str, Enum):
    """Who says a message; a text itself, so ``Role.USER == "user"``."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"

    # Both, since Enum's own differ between Python versions.
    def __str__(self) -> str:
        return self.value

    def __format__(self, format_spec: str) -> str:
        return format(self.value, format_spec)


def _call_id() -> str:
    return f"call_{uuid.uuid4().hex}"


@dataclass(slots=True)
class ToolCall:
    """A model's wish that a tool be called.

    ``tool_name``: which one. ``parameters``: its arguments, by name, as the model gave them.
    ``id``: what the answer refers to; a new one unless given.

    >>> ToolCall("recall", {"query": "tea"}, id="c1").to_dict()
    {'tool_name': 'recall', 'parameters': {'query': 'tea'}, 'id': 'c1'}
    """

    tool_name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=_call_id)

    def __post_init__(self) -> None:
        _text(self.tool_name, "tool_name")
        self.id = self.id or _call_id()  # some providers give none
        _text(self.id, "id")
        if not isinstance(self.parameters, Mapping):
            raise InvalidType(
                f"parameters of the call of {self.tool_name!r} is a "
                f"{type(self.parameters).__name__}; give a dict of arguments by name"
            )

    def to_dict(self) -> dict[str, Any]:
        """The call as a JSON object that shares nothing with it."""
        return {
            "tool_name": self.tool_name,
            "parameters": copy.deepcopy(dict(self.parameters)),
            "id": self.id,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolCall:
        """The call of which ``data`` is the JSON object; only ``tool_name`` is required.

        Raises ``InvalidType`` or ``InvalidValue``, naming the member that is wrong.
        """
        known = _members(data, ("tool_name", "parameters", "id"), "a tool call")
        if "tool_name" not in known:
            raise InvalidValue('a tool call needs "tool_name"')
        return cls(**copy.deepcopy(known))


@dataclass(slots=True)
class Message:
    """One turn of a conversation.

    ``role``: a :class:`Role`, or its text. ``content``: what is said. ``tool_calls``: the
    calls that an assistant's message asks for. A tool's answer has ``tool_name``,
    ``tool_result`` (its text, ``content`` too) and ``tool_call_id``, the call it answers.

    Raises ``InvalidValue`` for an unknown role and ``InvalidType`` for a member that is of
    another type.

    >>> Message(Role.USER, "Hello").to_dict()["role"]
    'user'
    """

    role: Role
    content: str = ""
    tool_name: str | None = None
    tool_result: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None

    def __post_init__(self) -> None:
        try:
            self.role = Role(self.role)
        except ValueError:
            known = ", ".join(repr(role.value) for role in Role)
            raise InvalidValue(f"role={self.role!r} is none of {known}") from None
        _text(self.content, "content")
        for name in ("tool_name", "tool_result", "tool_call_id"):
            if getattr(self, name) is not None:
                _text(getattr(self, name), name)
        calls = self.tool_calls
        if calls is None:
            return
        if not isinstance(calls, (list, tuple)) or not all(isinstance(c, ToolCall) for c in calls):
            raise InvalidType(f"tool_calls is {calls!r}; give a list of ToolCall, or None")
        self.tool_calls = list(calls)

    def to_dict(self) -> dict[str, Any]:
        """The message as a JSON object that shares nothing with it; every member is there."""
        calls = self.tool_calls
        return {
            "role": self.role.value,
            "content": self.content,
            "tool_name": self.tool_name,
            "tool_result": self.tool_result,
            "tool_calls": None if calls is None else [call.to_dict() for call in calls],
            "tool_call_id": self.tool_call_id,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """The message of which ``data`` is the JSON object; only ``role`` is required.

        A ``content`` of ``null`` counts as ``""``. Raises ``InvalidType`` or ``InvalidValue``,
        naming the member that is wrong; one that a message doesn't have is refused, since
        it would be lost.

        >>> Message.from_dict({"role": "user", "content": "Hello"}).role is Role.USER
        True
        """
        known = _members(data, cls.__slots__, "a message")
        if "role" not in known:
            raise InvalidValue('a message needs "role"')
        if "tool_calls" in known:
            if not isinstance(known["tool_calls"], (list, tuple)):
                raise InvalidType(f"tool_calls is {known['tool_calls']!r}; give a list of objects")
            known["tool_calls"] = [ToolCall.from_dict(call) for call in known["tool_calls"]]
        return cls(**known)


def _members(data: object, names: tuple[str, ...], what: str) -> dict[str, Any]:
    """The members of ``data`` that are not null, if it has none but ``names``."""
    if not isinstance(data, Mapping):
        raise InvalidType(f"{what} is a JSON object, not a {type(data).__name__}")
    for name in data:
        if name not in names:
            raise InvalidValue(f"{what} has no member {name!r}; its members are {', '.join(names)}")
    return {name: value for name, value in data.items() if value is not None}


def _text(value: object, name: str) -> None:
    if not isinstance(value, str):
        raise InvalidType(f"{name} is a {type(value).__name__}; give text")


def as_message(role: str, content: str) -> Message:
    """A turn as a message: whoever is no role of the protocol speaks as a user, by name.

    >>> as_message("Ann", "Hello").content
    'Ann: Hello'
    """
    try:
        return Message(Role(role), content)
    except ValueError:
        return Message(Role.USER, f"{role}: {content}")
