"""The embedder that comes with the install: a table with a vector for every common word form.

A text is embedded as the weighted sum of the vectors of its word forms, scaled to unit length:
no network, no model to load, tens of thousands of short texts a second on one core. How the
table is made, from what and under which licences: ``docs/embeddings.md``.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import text as words
from ..errors import InvalidType, StoreCorrupt

__all__ = ["StaticEmbedder", "default_embedder"]

Floats = npt.NDArray[np.float32]
Near = tuple[npt.NDArray[np.int32], npt.NDArray[np.float16]]
Keys = npt.NDArray[np.uint64]
Places = npt.NDArray[np.intp]

_SHIPPED = Path(__file__).with_name("static")
_BYTES_AT_ONCE = 1 << 19  # of keys: 65,536 forms, some 3,000 turns
_LONGEST_STRETCH = 256  # forms of a text that are multiplied at once
_ROWS_AT_ONCE = 1024  # gathered as float32: 1 MB, which stays in the cache of a core


class StaticEmbedder:
    """Embeds by looking word forms up in a table. Safe for several threads.

    ``folder``: where a table is that ``tools/build_embeddings.py`` made; the shipped one if
    ``None``. Nothing is read before the first use, and then the table is memory-mapped.

    >>> embedder = StaticEmbedder()
    >>> near, far = embedder.embed(["We adopted a puppy", "The invoice is due"])
    >>> asked = embedder.embed_query("Which dog do they have?")
    >>> bool(asked @ near > asked @ far)
    True

    Raises :class:`StoreCorrupt` if the table is damaged or missing.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = _SHIPPED if folder is None else folder
        self._lock = threading.Lock()
        self._table: _Table | None = None

    @property
    def name(self) -> str:
        """Identifies the vectors: another table has another name."""
        return self._loaded().name

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        return int(self._loaded().rows.shape[1])

    @property
    def keys(self) -> Keys:
        """The keys (:func:`retain.text.key`) of the forms that have a vector, ascending."""
        return self._loaded().keys

    @property
    def rows(self) -> npt.NDArray[np.int8]:
        """The vectors of :attr:`keys`, each scaled to a largest absolute component of 127."""
        return self._loaded().rows

    @property
    def near(self) -> Near:
        """The words most like each, best first: places in :attr:`keys`, int32, and cosines."""
        return self._loaded().near

    def embed(self, texts: Sequence[str]) -> Floats:
        """A row for each text, of unit length, or zero where no form of the text is known.

        Raises :class:`InvalidType` for a lone string and for what is no string.
        """
        if isinstance(texts, (str, bytes)):
            raise InvalidType("embed() takes a list of texts, not one text: write embed([text])")
        table = self._loaded()
        vectors = np.zeros((len(texts), table.rows.shape[1]), np.float32)
        waiting: list[bytes] = []
        first = size = 0
        for text in texts:
            if not isinstance(text, str):
                raise InvalidType(f"a text to embed must be a str, not {type(text).__name__}")
            found = words.keys(text)
            waiting.append(found)
            size += len(found)
            if size >= _BYTES_AT_ONCE:
                table.add(vectors[first : first + len(waiting)], waiting)
                first, size, waiting = first + len(waiting), 0, []
        table.add(vectors[first:], waiting)
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors

    def embed_query(self, text: str) -> Floats:
        """The vector of a question: made as a text's is."""
        vector: Floats = self.embed([text])[0]
        return vector

    def vectors(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], Floats]:
        """Which of ``keys`` are known, and a unit vector for each (zero where not known)."""
        table = self._loaded()
        at, known = table.find(keys)
        units = table.rows[at].astype(np.float32)
        units /= np.sqrt(np.einsum("ij,ij->i", units, units))[:, None]
        units[~known] = 0
        return known, units

    def _loaded(self) -> _Table:
        table = self._table
        if table is None:
            with self._lock:
                table = self._table = self._table or _Table(self._folder)
        return table


class _Table:
    """Sorted keys, a row of int8 for each, and what a row is multiplied by when it is summed."""

    def __init__(self, folder: Path) -> None:
        try:
            about = json.loads((folder / "about.json").read_text("utf-8"))
            self.name = f"{about['name']}:{about['digest']}"
            self.keys: Keys = np.load(folder / "keys.npy")
            self.scales: Floats = np.load(folder / "scales.npy")
            self.rows: npt.NDArray[np.int8] = np.load(folder / "rows.npy", mmap_mode="r")
            self.near: Near = (
                np.load(folder / "near.npy", mmap_mode="r"),
                np.load(folder / "alike.npy", mmap_mode="r"),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreCorrupt(_damaged(folder, error)) from error
        if (
            (self.keys.dtype, self.scales.dtype, self.rows.dtype)
            != (np.uint64, np.float32, np.int8)
            or not len(self.keys) == len(self.scales) == len(self.rows) > 0
            or self.rows.ndim != 2
            or not len(self.near[0]) == len(self.near[1]) == len(self.keys)
        ):
            raise StoreCorrupt(_damaged(folder, "its arrays do not fit each other"))
        self.keys.flags.writeable = self.scales.flags.writeable = False

    def find(self, keys: Keys) -> tuple[Places, npt.NDArray[np.bool_]]:
        """Where each key stands, and whether it does."""
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return at, self.keys[at] == keys

    def add(self, sums: Floats, texts: Sequence[bytes]) -> None:
        """Add to each row of ``sums`` the scaled rows of a text's keys.

        A form that a text holds n times counts the square root of n times. Stretches of about
        one length are multiplied together, weights with rows: one call for many, each too small
        a product for the linear algebra to start threads for it.
        """
        at, known = self.find(np.frombuffer(b"".join(texts), np.uint64))
        whose = np.repeat(np.arange(len(texts)), [len(found) // 8 for found in texts])
        size = len(self.keys)
        distinct, often = np.unique(whose[known] * size + at[known], return_counts=True)
        whose, at = np.divmod(distinct, size)
        scales = self.scales[at] * np.sqrt(often, dtype=np.float32)
        owners, starts, counts = _stretches(np.bincount(whose, minlength=len(texts)))
        first = 0
        while first < len(counts):
            alike = max(1, _ROWS_AT_ONCE // int(counts[first]))
            last = min(first + alike, len(counts))
            longest = int(counts[last - 1])
            inside = np.arange(longest) < counts[first:last, None]
            places = np.where(inside, starts[first:last, None] + np.arange(longest), 0)
            weights = np.where(inside, scales[places], np.float32(0))
            rows = self.rows[at[places]].astype(np.float32)
            np.add.at(sums, owners[first:last], (weights[:, None, :] @ rows)[:, 0, :])
            first = last


def _stretches(sizes: Places) -> tuple[Places, Places, Places]:
    """Texts of so many forms in stretches of at most 256, short ones first.

    Returns whose each is, where it starts among all forms, and how long it is.
    """
    pieces = -(-sizes // _LONGEST_STRETCH)
    owners = np.repeat(np.arange(len(sizes)), pieces)
    number = np.arange(len(owners)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    skipped = number * _LONGEST_STRETCH
    starts = (np.cumsum(sizes) - sizes)[owners] + skipped
    lengths = np.minimum(sizes[owners] - skipped, _LONGEST_STRETCH)
    order = np.argsort(lengths, kind="stable")
    return owners[order], starts[order], lengths[order]


def _damaged(folder: Path, why: Any) -> str:
    return (
        f"the embedding table in {folder} cannot be read ({why}): reinstall retain, "
        "or make the table anew with tools/build_embeddings.py"
    )


@functools.cache
def default_embedder() -> StaticEmbedder:
    """The one :class:`StaticEmbedder` of the shipped table that all of retain shares."""
    return StaticEmbedder()
