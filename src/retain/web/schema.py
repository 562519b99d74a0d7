"""The bodies and parameters of requests.

They say which names there are and of which kind: another name is refused, never dropped, so
that nobody believes it did something. The rules of the values are the record's own.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..errors import InvalidValue
from ..models import Filter, Memory, MemoryImportance, MemoryType, as_importance

__all__ = ["Changes", "ContextOf", "Counted", "Item", "Items", "Listing", "Narrowed", "Question"]

_KIND = "episodic, semantic or procedural."
_STEP = "A step from 1 (low) to 4 (critical)."
_SCORE = "A number from 0 to 1, in place of the step."


class Body(BaseModel):
    """An object with these members and no other."""

    model_config = ConfigDict(extra="forbid", strict=True)

    def given(self) -> dict[str, Any]:
        """The members that were given."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class Parameters(Body):
    """The same for what stands in a URL, where all is text."""

    model_config = ConfigDict(extra="forbid", strict=False)


class Item(Body):
    """One memory to remember; only `content` is needed."""

    content: str
    id: str | None = Field(None, description="A new UUID unless given; an equal one is replaced.")
    memory_type: str | None = Field(None, description=_KIND)
    importance: int | None = Field(None, description=_STEP)
    importance_score: float | None = Field(None, description=_SCORE)
    category: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    source: str | None = None
    persistent: bool | None = None
    ttl_days: float | None = None
    created_at: float | None = Field(None, description="Epoch seconds.")
    updated_at: float | None = None
    last_accessed: float | None = None
    access_count: int | None = None

    def memory(self) -> Memory:
        """The memory, checked."""
        if not self.content.strip():
            raise InvalidValue("there is nothing to remember: the content is blank")
        return Memory.from_dict(self.given())


class Items(Body):
    """Memories to remember, all or none."""

    memories: list[Item]


class Changes(Body):
    """What to change of a memory; what is not given stays."""

    content: str | None = None
    memory_type: str | None = Field(None, description=_KIND)
    importance: int | None = Field(None, description=_STEP)
    importance_score: float | None = Field(None, description=_SCORE)
    category: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    source: str | None = None
    persistent: bool | None = None
    ttl_days: float | None = Field(None, description="Days, or null for no end.")

    def changes(self) -> dict[str, Any]:
        """The arguments of ``update``."""
        changes = self.given()
        for name, value in changes.items():
            if value is None and name != "ttl_days":
                raise InvalidValue(f"{name} is null; give a value, or leave it out")
        if "importance" in changes:
            changes["importance"] = _step(changes["importance"])
        if "importance_score" in changes:
            score = changes.pop("importance_score")
            changes["importance"] = as_importance(score, "importance_score")
        if "memory_type" in changes:
            changes["memory_type"] = _kind(changes["memory_type"])
        return changes


class Narrowed(Body):
    """What a listing or a recall is narrowed to; what is not given narrows nothing."""

    memory_type: str | None = Field(None, description=_KIND)
    category: str | None = None
    tags: list[str] | None = Field(None, description="All of these.")
    min_importance: float | None = Field(None, description="From 0 to 1.")
    since: float | None = Field(None, description="Epoch seconds, inclusive.")
    until: float | None = Field(None, description="Epoch seconds, exclusive.")
    persistent: bool | None = None

    def narrowing(self) -> dict[str, Any]:
        """The arguments of ``Filter.of``."""
        found: dict[str, Any] = {
            "category": self.category,
            "tags": self.tags,
            "min_importance": self.min_importance,
            "since": self.since,
            "until": self.until,
            "persistent": self.persistent,
        }
        if self.memory_type is not None:
            found["memory_type"] = _kind(self.memory_type)
        return found

    def filter(self) -> Filter:
        """The filter, checked."""
        return Filter.of(**self.narrowing())


class Question(Narrowed):
    """What to recall; a blank `query` finds what is newest and most important."""

    query: str
    k: int = 10
    explain: bool = Field(False, description="Say of each in a line why it is there.")


class ContextOf(Parameters):
    """A block for a prompt of what fits `query` best."""

    query: str
    k: int = 5
    fence: bool = Field(
        False, description="Labelled as data, so that no text passes for a command."
    )


class Counted(Narrowed, Parameters):
    """What to count."""


class Listing(Narrowed, Parameters):
    """A page of memories: `limit` of them, from just after the `cursor` of the page before."""

    limit: int | None = Field(None, description="100 unless given.")
    order: str = Field("newest", description="newest, important or dispensable.")
    cursor: str | None = None


def _kind(value: str) -> MemoryType:
    try:
        return MemoryType(value)
    except ValueError:
        raise InvalidValue(f"memory_type={value!r} is none of {_KIND}") from None


def _step(value: int) -> MemoryImportance:
    try:
        return MemoryImportance(value)
    except ValueError:
        raise InvalidValue(f"importance={value!r} is no step from 1 to 4") from None
