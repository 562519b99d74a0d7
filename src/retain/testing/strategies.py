"""Any memory, any filter, and texts that are awkward: what stores are tested with."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ..models import Filter, Memory, MemoryType

__all__ = ["HOSTILE", "filters", "json_objects", "memories", "same", "texts"]

HOSTILE = [
    "' OR 1=1 --",
    '"',
    "%",
    "_",
    "*",
    ":",
    "{}",
    "../../etc/passwd",
    "a/b\\c",
    "nul\0byte",
    "line\nbreak\r\n",
    "\u2028",
    " ",
    "NULL",
    "0",
    "東京",
    "cafe\u0301",
    "café",
    "\u202eRTL",
    "🏳️‍🌈",
    "x" * 500,
]
"""Texts that are awkward as an id, a name or a content."""


def texts(max_size: int = 30) -> st.SearchStrategy[str]:
    """Any text that UTF-8 can hold, awkward ones among it."""
    return st.one_of(st.sampled_from(HOSTILE), st.text(_characters(), max_size=max_size))


def _characters() -> st.SearchStrategy[str]:
    return st.characters(exclude_categories=["Cs"])


def json_objects() -> st.SearchStrategy[dict[str, Any]]:
    """Any JSON object."""
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    leaves = st.one_of(st.none(), st.booleans(), st.integers(), numbers, texts(10))
    values = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(5), inner, max_size=3),
        max_leaves=8,
    )
    return st.dictionaries(texts(5), values, max_size=3)


def _labels() -> st.SearchStrategy[str]:
    return texts(8).filter(lambda text: bool(text.strip()))


@st.composite
def memories(draw: st.DrawFn, ids: st.SearchStrategy[str] | None = None) -> Memory:
    """Any memory that keeps the rules of the record, with few ids so that they meet."""
    created = draw(st.one_of(st.floats(0, 4e9), st.sampled_from([0.0, 1e9, 1e9 + 0.000001])))
    persistent = draw(st.booleans())
    lives = st.none() if persistent else st.sampled_from([None, 0.0, 1.0, 30, 1e5])
    return Memory(
        draw(ids if ids is not None else st.sampled_from([*"abcdef", *HOSTILE[:10]])),
        draw(texts(60)),
        draw(st.sampled_from(MemoryType)),
        draw(st.floats(0, 1)),
        draw(json_objects()),
        draw(st.lists(_labels(), max_size=3)),
        created,
        draw(st.integers(0, 1000)),
        category=draw(st.one_of(st.just("general"), _labels())),
        persistent=persistent,
        ttl_days=draw(lives),
        source=draw(texts(10)),
    ).checked()


@st.composite
def filters(draw: st.DrawFn, like: list[Memory]) -> Filter:
    """A filter that some of the memories ``like`` may pass."""
    model = draw(st.sampled_from(like)) if like else Memory()
    maybe = st.booleans()
    return Filter(
        model.memory_type if draw(maybe) else None,
        model.category if draw(maybe) else None,
        tuple(model.tags[:2]) if draw(maybe) else (),
        model.importance_score if draw(maybe) else 0.0,
        model.created_at if draw(maybe) else None,
        model.created_at + draw(st.floats(0, 1e9)) if draw(maybe) else None,
        model.persistent if draw(maybe) else None,
    )


def same(one: Memory, other: Memory) -> bool:
    """Whether two memories are equal but for their revision and their retrievals."""
    neutral = {"revision": 0, "access_count": 0, "last_accessed": 0.0}
    return one.copy(**neutral) == other.copy(**neutral)
