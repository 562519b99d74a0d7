"""What a memory is found by, as numbers: its words, and the exact labels that filters ask for."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence

from .. import text
from ..models import Memory

__all__ = ["BYTES", "category_label", "document_terms", "hashed", "said_by", "tag_label"]

BYTES = 8  # of a term


def hashed(form: str) -> int:
    """The number of a form or label, as it stands in an index."""
    return int.from_bytes(text.key(form), sys.byteorder)


def category_label(category: str) -> str:
    """What stands for a category; no word holds a NUL."""
    return f"\0category\0{category}"


def tag_label(tag: str) -> str:
    """What stands for a tag."""
    return f"\0tag\0{tag}"


def said_by(form: str) -> str:
    """What stands for a turn whose speaker's name, or role, has this form of a word."""
    return f"\0said\0{form}"


def document_terms(memory: Memory) -> tuple[bytes, int]:
    """The terms of a memory, eight bytes each, and how many of them are its text's.

    Of its content, category, tags and role, each occurrence by itself, and the labels.
    """
    content = text.keys(memory.content)
    found = [content, _label_terms(memory.category, category_label(memory.category))]
    found += [_label_terms(tag, tag_label(tag)) for tag in memory.tags]
    role = memory.metadata.get("role")
    if isinstance(role, str):
        found.append(_speaker_terms(role))
    return b"".join(found), len(content) // BYTES


@functools.lru_cache(maxsize=4096)
def _label_terms(label: str, exact: str) -> bytes:
    return text.keys(label) + text.key(exact)


@functools.lru_cache(maxsize=4096)
def _speaker_terms(role: str) -> bytes:
    names = dict.fromkeys(form for forms in text.terms(role) for form in forms)
    return text.keys(role) + b"".join(text.key(said_by(name)) for name in names)


def labels_of(tags: Sequence[str], category: str | None) -> list[str]:
    """The labels that a filter asks for, all of them."""
    labels = [tag_label(tag) for tag in tags]
    return labels if category is None else [*labels, category_label(category)]
