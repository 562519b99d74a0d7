"""From what was said to what is remembered: the turns first, then what is found in them."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Any, cast

from .. import clock
from ..errors import ExtractionFailed, InvalidType, InvalidValue, Rejected
from ..messages import Message, as_message
from ..models import Memory, MemoryType

if TYPE_CHECKING:
    from ..extraction import Finding
    from .base import Face

__all__ = ["Observed", "Said", "observe"]

Said = str | Message | Memory | Mapping[str, Any]

_TOOLS = ("tool", "function")  # whose results are no turns
_ZONE = re.compile(r"([+-])(\d\d):?(\d\d)\Z")


class Observed(list[Memory]):
    """What was remembered of a conversation, as it is stored.

    ``turns``: the memories of what was said. ``rejected``: what was found and a hook refused,
    each with the refusal.
    """

    def __init__(
        self,
        found: Iterable[Memory] = (),
        turns: Iterable[Memory] = (),
        rejected: Iterable[tuple[Memory, Rejected]] = (),
    ) -> None:
        super().__init__(found)
        self.turns = list(turns)
        self.rejected = list(rejected)


@dataclass(frozen=True)
class _Heard:
    """One of the messages: its turn (``None`` for a tool's), and the message if it is new."""

    turn: Memory | None
    message: Message | None


def observe(
    face: Face,
    messages: Said | Iterable[Said],
    provider: Any,
    model: str,
    session: str | None,
    timeout: float | None,
) -> Observed:
    """See :meth:`retain.memories.base.Face.observe`."""
    one = isinstance(messages, (str, Mapping, Message, Memory))
    said: list[Any] = [messages] if one else list(cast(Iterable[Said], messages))
    heard = [_heard(each, at, session, face.turn_category) for at, each in enumerate(said)]
    turns = _kept(face, heard)
    try:
        drafts = _drafts(turns, provider, model, timeout)
    except ExtractionFailed as error:
        error.turns = turns
        raise
    found, rejected = _remembered(face, drafts, turns)
    return Observed(found, turns, rejected)


# -- the turns -------------------------------------------------------------------------------


def _heard(said: Said, at: int, session: str | None, category: str) -> _Heard:
    if isinstance(said, Memory):
        return _Heard(said, None)
    if isinstance(said, str):
        said = {"role": "user", "content": said}
    if isinstance(said, Message):
        message, role, content, when = said, said.role.value, said.content, None
    elif isinstance(said, Mapping):
        role, content, when = _members(said)
        message = as_message(role, content)
    else:
        raise InvalidType(
            f"messages[{at}] is a {type(said).__name__}; give a text, a Message, a dict with role "
            "and content, or a turn that was kept"
        )
    if role in _TOOLS or not content.strip():
        return _Heard(None, message)
    moment = _moment(when)
    metadata: dict[str, Any] = {"role": role, "turn": at}
    if session is not None:
        metadata["session"] = session
    if offset := moment.utcoffset():  # else a later attempt would see other days
        metadata["zone"] = _spelt(offset)
    turn = Memory(
        None,
        content,
        MemoryType.EPISODIC,
        metadata=metadata,
        created_at=clock.as_epoch(moment),
        category=category,
        source=role,
    )
    return _Heard(turn, message)


def _members(said: Mapping[str, Any]) -> tuple[str, str, Any]:
    """Role, content and time of a dict; what else it has is not a turn's."""
    role, content = said.get("role"), said.get("content")
    if not isinstance(role, str):
        raise InvalidType(f"the role of a message is {role!r}; give text, such as 'user'")
    if content is not None and not isinstance(content, str):
        raise InvalidType(f"the content of a message is a {type(content).__name__}; give text")
    when = said.get("at")
    return role, content or "", said.get("created_at") if when is None else when


def _moment(when: object) -> datetime:
    """A time in its zone: this machine's for now, UTC where none is named."""
    if when is None:
        return clock.as_datetime(clock.now()).astimezone()
    if isinstance(when, str):
        epoch = clock.from_iso(when)
        match = _ZONE.search(when.strip()) if re.search(r"[T ]", when.strip()) else None
        zone: tzinfo = timezone.utc if match is None else _zone(match[0])
        return clock.as_datetime(epoch).astimezone(zone)
    epoch = clock.as_epoch(when, "at")
    return when if isinstance(when, datetime) else clock.as_datetime(epoch)


def _zone(text: object) -> tzinfo:
    match = _ZONE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return timezone.utc
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(-offset if match[1] == "-" else offset)


def _spelt(offset: timedelta) -> str:
    minutes = round(offset / timedelta(minutes=1))
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _kept(face: Face, heard: Sequence[_Heard]) -> list[Memory]:
    """The turns, as they are stored; those that are not there yet are written, all or none."""
    turns = [each.turn for each in heard if each.turn is not None]
    face._look()
    known = {memory.id: memory for memory in face.engine.store.peek([turn.id for turn in turns])}
    unlike: dict[str, Memory] = {}
    for turn in turns:
        if turn.id not in known and unlike.setdefault(turn.id, turn).content != turn.content:
            raise InvalidValue(
                f"two turns with the id {turn.id!r} differ; give each an id of its own"
            )
    new = list(unlike.values())
    if new:
        with face._writing():
            saved = face.engine.remember_many(new)
        known.update({turn.id: memory for turn, memory in zip(new, saved, strict=True)})
    face._heard([each.message for each in heard if each.message is not None])
    return [known[turn.id] for turn in turns]


# -- what is found in them -------------------------------------------------------------------


def _drafts(
    turns: Sequence[Memory], provider: Any, model: str, timeout: float | None
) -> list[Memory]:
    from ..extraction import Turn, by_model, by_rules  # whose patterns take time to load

    said = [
        Turn(
            str(turn.metadata.get("role") or turn.source or "user"),
            turn.content,
            clock.as_datetime(turn.created_at).astimezone(_zone(turn.metadata.get("zone"))),
        )
        for turn in turns
    ]
    if provider is None:
        found, means = by_rules(said), "rules"
    else:
        found, means = by_model(said, provider, model=model, timeout=timeout), f"provider:{model}"
    try:
        return [_draft(each, turns[each.turn], means) for each in found]
    except (InvalidValue, InvalidType) as error:
        raise ExtractionFailed(f"what the model found can't be kept: {error}") from error


def _draft(found: Finding, turn: Memory, means: str) -> Memory:
    metadata: dict[str, Any] = {"turn_id": turn.id, "extracted": means}
    if found.date is not None:
        metadata["date"] = found.date
    name = f"{turn.id}\n{found.content}".encode("utf-8", "surrogatepass")
    return Memory(
        # the same of the same turn is the same memory
        str(uuid.UUID(hex=hashlib.blake2b(name, digest_size=16).hexdigest(), version=5)),
        found.content,
        found.memory_type,
        metadata=metadata,
        tags=found.tags,
        created_at=turn.created_at,
        importance_score=found.importance,
        category=found.category,
        source=str(turn.metadata.get("role") or turn.source or "user"),
        persistent=found.persistent,
    ).checked()


def _remembered(
    face: Face, drafts: Sequence[Memory], turns: Sequence[Memory]
) -> tuple[list[Memory], list[tuple[Memory, Rejected]]]:
    """What of ``drafts`` was not remembered before, as it is stored, and what was refused."""
    drafts = list({draft.id: draft for draft in drafts}.values())
    there = {memory.id for memory in face.engine.store.peek([draft.id for draft in drafts])}
    new = [draft for draft in drafts if draft.id not in there]
    if not new:
        return [], []
    with face._writing():
        return face.engine.remember_accepted(new, unlike={turn.id for turn in turns})
