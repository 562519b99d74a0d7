"""Relationships between named things: a triple is one memory of a store."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from .. import clock, text
from ..errors import InvalidType, InvalidValue, StoreCorrupt
from ..locks import ThreadLock
from ..models import Memory, MemoryType, as_text, one_line
from ..scope import Scope
from .base import Store
from .changing import change
from .memory import InMemoryStore
from .opening import open_store
from .sqlite import SQLiteStore

__all__ = ["SQLiteTripleStore", "Triple", "TripleStore", "Triples"]

_LONGEST = 500  # characters of a part
_PREFIX = "triple:"
_CATEGORY = "triple"


@dataclass(frozen=True, slots=True)
class Triple:
    """That ``subject`` stands in ``relation`` to ``object``, and how sure that is.

    The three are texts of 1 to 500 characters that are not blank; ``confidence`` is a number
    from 0 to 1. Raises ``InvalidValue`` or ``InvalidType``, naming the part.

    >>> from retain import Triple
    >>> print(Triple("Alice", "works_at", "Acme"))
    Alice --[works_at]--> Acme
    >>> print(Triple("Alice", "knows", "Bob", 0.9))
    Alice --[knows]--> Bob (confidence: 0.9)
    """

    subject: str
    relation: str
    object: str
    confidence: float = 1.0

    def __post_init__(self) -> None:
        for name in ("subject", "relation", "object"):
            part = as_text(getattr(self, name), name)
            if not part.strip():
                raise InvalidValue(f"{name} is blank; a triple says who, what and whom")
            if len(part) > _LONGEST:
                raise InvalidValue(f"{name} has {len(part)} characters; give 1 to {_LONGEST}")
        sure = self.confidence
        if isinstance(sure, bool) or not isinstance(sure, (int, float)):
            raise InvalidType(f"confidence is {sure!r}; give a number from 0 to 1")
        if not 0 <= sure <= 1:  # NaN fails this too
            raise InvalidValue(f"confidence={sure!r}; give a number from 0 to 1")

    @property
    def key(self) -> tuple[str, str, str]:
        """What equal triples share: the parts without regard to case, width or white space."""
        subject, relation, object = (
            text.fold(one_line(part)) for part in (self.subject, self.relation, self.object)
        )
        return subject, "_".join(relation.replace("-", " ").replace("_", " ").split()), object

    def __str__(self) -> str:
        """One line, whatever newlines the parts hold."""
        subject, relation, object = map(one_line, (self.subject, self.relation, self.object))
        sure = math.floor(self.confidence * 100 + 0.5) / 100
        # 0.999 is below 1, and so must its number be
        shown = "" if self.confidence >= 1 else f" (confidence: {min(sure, 0.99):g})"
        return f"{subject} --[{relation}]--> {object}{shown}"

    def to_dict(self) -> dict[str, Any]:
        """The triple as a JSON object."""
        return {
            "subject": self.subject,
            "relation": self.relation,
            "object": self.object,
            "confidence": self.confidence,
        }


@runtime_checkable
class Triples(Protocol):
    """Where a ``KnowledgeGraphMemory`` keeps its triples: any object with these six methods."""

    def add(self, triple: Triple, /) -> Any:
        """Keep a triple."""

    def add_many(self, triples: list[Triple], /) -> Any:
        """Keep all of them, or none."""

    def query(self, keywords: list[str], /) -> list[Triple]:
        """Those that hold any of the keywords."""

    def all(self) -> list[Triple]:
        """Every triple, as they came."""

    def count(self) -> int:
        """How many there are."""

    def clear(self) -> Any:
        """Delete all of them."""


class TripleStore:
    """Triples in any store: ``memories`` is that store.

    ``store``: a retain store, or its URL; in the process, gone when it ends, unless given. A
    triple is kept once, however often it is added: ``Alice works_at ACME`` is the same as
    ``alice works at Acme``. What is added with a higher confidence takes the old one's place.

    Writes are atomic, also against other processes, and durable when they return, where the
    store is. Usable from any thread.

    >>> from retain import Triple, TripleStore
    >>> store = TripleStore()
    >>> store.add_many([Triple("Alice", "works_at", "Acme"), Triple("Alice", "knows", "Bob")])
    2
    >>> store.add(Triple("ALICE", "works at", "acme"))
    False
    >>> print(store.query(["acme"])[0])
    Alice --[works_at]--> Acme
    """

    def __init__(self, store: Store | str | None = None) -> None:
        if isinstance(store, str):
            store = open_store(store)
        elif store is not None and not isinstance(store, Store):
            raise InvalidType(
                f"store is a {type(store).__name__}; give a retain store, its URL, or None"
            )
        self.memories = InMemoryStore() if store is None else store
        self._lock = ThreadLock()
        self._forget()

    def _forget(self) -> None:
        self._revision = 0
        self._triples: dict[str, Triple] = {}
        self._came: dict[str, int] = {}  # in which order
        self._holding: dict[str, dict[str, None]] = {}  # by a word's form, the ids

    # -- in --------------------------------------------------------------------------------

    def add(self, triple: Triple) -> bool:
        """Keep a triple; whether anything was written."""
        return self.add_many([triple]) == 1

    def add_many(self, triples: Iterable[Triple]) -> int:
        """Keep all of them in one write, or none; how many were new, or surer than before."""
        best: dict[str, Triple] = {}
        for triple in triples:
            if not isinstance(triple, Triple):
                raise InvalidType(f"a {type(triple).__name__} is no Triple")
            known = best.get(_id(triple))
            if known is None or known.confidence < triple.confidence:
                best[_id(triple)] = triple

        def changed(found: dict[str, Memory]) -> list[Memory]:
            return [
                _as_memory(triple, found.get(id))
                for id, triple in best.items()
                if id not in found or _as_triple(found[id]).confidence < triple.confidence
            ]

        return len(change(self.memories, best, changed))

    def delete(self, triple: Triple) -> bool:
        """Delete a triple for good; whether it was there."""
        if not isinstance(triple, Triple):
            raise InvalidType(f"a {type(triple).__name__} is no Triple")
        return self.memories.delete(_id(triple))

    def clear(self) -> int:
        """Delete every triple, and nothing else that the store holds; how many there were."""
        with self._lock:
            self._catch_up()
            return self.memories.delete_many(list(self._triples))

    # -- out -------------------------------------------------------------------------------

    def query(self, keywords: str | Sequence[str], limit: int | None = None) -> list[Triple]:
        """The triples that hold any word of ``keywords``, at most ``limit``.

        Those that hold the most come first, the newest among equals. Words are compared as
        everywhere in retain: in any language, without regard to case, by their stems.
        """
        words = [keywords] if isinstance(keywords, str) else list(keywords)
        distinct = [forms for word in words for forms in text.query_terms(_spaced(word))]
        asked = {form: word for word, forms in enumerate(distinct) for form in forms}
        with self._lock:
            self._catch_up()
            held: dict[str, set[int]] = {}
            for form, word in asked.items():
                for id in self._holding.get(form, ()):
                    held.setdefault(id, set()).add(word)
            ids = sorted(held, key=lambda id: (-len(held[id]), -self._came[id]))
            return [self._triples[id] for id in ids[:limit]]

    def all(self) -> list[Triple]:
        """Every triple, oldest first."""
        with self._lock:
            self._catch_up()
            return list(self._triples.values())

    def count(self) -> int:
        """How many triples there are."""
        with self._lock:
            self._catch_up()
            return len(self._triples)

    def _catch_up(self) -> None:
        """Learn what anybody wrote since the last call."""
        changes = self.memories.changes(self._revision)
        if changes.reset:
            self._forget()
        for id in changes.deleted:
            self._drop(id)
        for memory in changes.saved:
            if memory.id.startswith(_PREFIX) and memory.category == _CATEGORY:
                self._drop(memory.id)  # so that the newest stand last
                triple = self._triples[memory.id] = _as_triple(memory)
                self._came[memory.id] = memory.revision
                for form in _forms(triple):
                    self._holding.setdefault(form, {})[memory.id] = None
        self._revision = changes.revision

    def _drop(self, id: str) -> None:
        triple = self._triples.pop(id, None)
        self._came.pop(id, None)
        for form in () if triple is None else _forms(triple):
            held = self._holding[form]
            del held[id]
            if not held:
                del self._holding[form]

    def close(self) -> None:
        """Let go of the store."""
        self.memories.close()

    def __enter__(self) -> TripleStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SQLiteTripleStore(TripleStore):
    """Triples in a SQLite file: see :class:`~retain.SQLiteStore`.

    ``db_path``: the file, made with its folders if it is not there. ``scope``: whose they are.
    """

    def __init__(
        self, db_path: str | os.PathLike[str] = "triples.db", *, scope: Scope | None = None
    ) -> None:
        super().__init__(SQLiteStore(db_path, scope=scope))


def _id(triple: Triple) -> str:
    key = json.dumps(triple.key, ensure_ascii=False).encode()
    return _PREFIX + hashlib.blake2b(key, digest_size=16).hexdigest()


def _as_memory(triple: Triple, before: Memory | None) -> Memory:
    now = clock.now()
    return Memory(
        _id(triple),
        f"{triple.subject} {triple.relation} {triple.object}",
        MemoryType.SEMANTIC,
        metadata={"triple": triple.to_dict()},
        created_at=now if before is None else before.created_at,
        updated_at=now,
        category=_CATEGORY,
    )


def _as_triple(memory: Memory) -> Triple:
    try:
        return Triple(**memory.metadata["triple"])
    except (KeyError, TypeError, ValueError) as error:
        raise StoreCorrupt(
            f"memory {memory.id!r} is filed as a triple and is none ({error}); "
            "delete it, or restore it from a backup"
        ) from error


def _forms(triple: Triple) -> set[str]:
    said = f"{triple.subject} {triple.relation} {triple.object}"
    return set(itertools.chain.from_iterable(text.terms(_spaced(said))))


def _spaced(words: str) -> str:
    """``words`` with the relation ``works_at`` as two of them."""
    return words.replace("_", " ")
