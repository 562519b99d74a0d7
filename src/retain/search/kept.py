"""One file of an index: a header, and arrays that are read where they lie."""

from __future__ import annotations

import json
import mmap
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import StoreCorrupt
from .segment import Postings, Segment

__all__ = ["POSTINGS", "Arrays", "IndexFile", "KeptSegment", "packed"]

POSTINGS = ("terms", "starts", "rows", "counts")

Arrays = Mapping[str, npt.NDArray[Any]]

_MAGIC = b"retain index\n"
_ALIGNED = 64
_BLOCK = 1 << 16  # bytes that have a checksum together
_OPEN = 1 << 21  # bytes that an open file counts as: a process may have some thousand
_LAZY = {"rows", "counts", "vectors"}  # arrays of which most queries need little


def packed(header: Mapping[str, Any], arrays: Arrays) -> list[bytes | memoryview]:
    """The parts of a file: magic, the header's length and checksum, the header, the arrays.

    The header is JSON; it says where each array lies, and the checksum of each block of them.
    """
    places: dict[str, tuple[str, list[int], int]] = {}
    body: list[bytes | memoryview] = []
    at = 0
    for name, array in arrays.items():
        places[name] = (array.dtype.str, list(array.shape), at)
        body += [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data]
        body += [bytes(-array.nbytes % _ALIGNED)]
        at += -(-array.nbytes // _ALIGNED) * _ALIGNED
    sums = list(_checksums(body))
    about = json.dumps({**header, "arrays": places, "bytes": at, "sums": sums}).encode()
    about += b" " * (-(len(_MAGIC) + 12 + len(about)) % _ALIGNED)
    length, checksum = len(about).to_bytes(8, "little"), zlib.crc32(about).to_bytes(4, "little")
    return [_MAGIC, length, checksum, about, *body]


def _checksums(parts: Iterable[bytes | memoryview]) -> Iterator[int]:
    """The CRC-32 of every block of what the parts are together."""
    checksum, filled = 0, 0
    for part in parts:
        at = 0
        while at < len(part):
            piece = part[at : at + _BLOCK - filled]
            checksum = zlib.crc32(piece, checksum)
            at, filled = at + len(piece), filled + len(piece)
            if filled == _BLOCK:
                yield checksum
                checksum, filled = 0, 0
    if filled:
        yield checksum


class IndexFile:
    """A file that is open: its ``header``, and its ``arrays`` by name, which can't be written.

    ``content``: what is in it, mapped or read.

    Those that few queries need as a whole (``_LAZY``) are to be verified before they are used;
    the others are. Raises ``StoreCorrupt`` (also ``ValueError`` and the like, where the header
    is none) and ``OSError``.
    """

    def __init__(self, content: bytes | mmap.mmap) -> None:
        whole, self._mapped = memoryview(content), isinstance(content, mmap.mmap)
        start = bytes(whole[: len(_MAGIC) + 12])
        length = int.from_bytes(start[len(_MAGIC) : len(_MAGIC) + 8], "little")
        if start[: len(_MAGIC)] != _MAGIC or length > len(whole):
            raise StoreCorrupt("it is no index file")
        about = bytes(whole[len(start) : len(start) + length])
        if zlib.crc32(about) != int.from_bytes(start[-4:], "little"):
            raise StoreCorrupt("its header is damaged")
        self.header: dict[str, Any] = json.loads(about)
        begin, count = len(start) + length, self.header["bytes"]
        if len(whole) != begin + count:
            raise StoreCorrupt(f"it has {len(whole)} bytes, not {begin + count}")
        self._body = whole[begin:]
        self._sums = self.header["sums"]
        self._sound = bytearray(len(self._sums))
        self._places: dict[str, tuple[int, int]] = {}
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        for name, (kind, shape, at) in self.header["arrays"].items():
            dtype = np.dtype(kind)
            some = int(np.prod(shape))  # numpy maps no part without bytes
            array = np.frombuffer(self._body, dtype, some, at) if some else np.zeros(0, dtype)
            self.arrays[name] = array.reshape(shape)
            self._places[name] = (at, dtype.itemsize)
            if name not in _LAZY:
                self.verify(name, 0, array.size)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it counts as; one that is mapped stays open, and files are few."""
        return _OPEN if self._mapped else len(self._body)

    def verify(self, name: str, start: int, end: int) -> None:
        """See that the elements from ``start`` to ``end`` of an array are what was written."""
        at, size = self._places[name]
        first, last = (at + start * size) // _BLOCK, -(-(at + end * size) // _BLOCK)
        if 0 not in self._sound[first:last]:
            return
        for number in range(first, last):
            if not self._sound[number]:
                block = self._body[number * _BLOCK : (number + 1) * _BLOCK]
                if zlib.crc32(block) != self._sums[number]:
                    raise StoreCorrupt(f"its {name} are damaged")
                self._sound[number] = 1

    def verify_all(self) -> None:
        """See that all arrays are what was written."""
        for name, array in self.arrays.items():
            self.verify(name, 0, array.size)


@dataclass(frozen=True, slots=True)
class KeptSegment(Segment):
    """A segment in a file, of which no posting is used unverified."""

    file: IndexFile

    @classmethod
    def of(cls, file: IndexFile, first: int, size: int) -> KeptSegment:
        """The segment of a file, its rows from ``first`` on."""
        terms, starts, rows, counts = (file.arrays[name] for name in POSTINGS)
        if len(starts) != len(terms) + 1 or not len(rows) == len(counts) == starts[-1]:
            raise StoreCorrupt("its parts don't fit each other")
        return cls(first, size, terms, starts, rows, counts, file)

    @property
    def nbytes(self) -> int:
        return self.file.nbytes

    def posted(self, term: int) -> Postings | None:
        at = int(self.terms.searchsorted(np.uint64(term)))
        if at < len(self.terms) and self.terms[at] == term:
            start, end = int(self.starts[at]), int(self.starts[at + 1])
            self.file.verify("rows", start, end)
            self.file.verify("counts", start, end)
        return Segment.posted(self, term)

    def verify(self) -> None:
        self.file.verify_all()
