"""What a carried directory and its back end last had in common: the base of a merge."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any, NamedTuple

from .. import files

__all__ = ["Agreed", "AgreedFile"]

log = logging.getLogger("retain")


class Agreed(NamedTuple):
    """``blob``: the archive that was saved or taken over last, ``None`` if there was none.

    ``key``: that of the back end, "" where it has none. ``store``: the kind of the directory's
    store, where it lies in it, and its identity; ``revision``: what of it the blob holds.
    """

    blob: bytes | None
    key: str = ""
    store: tuple[str, str, str] = ("", "", "")
    revision: int = 0


class AgreedFile:
    """``.backend.last``: a digest, a line of JSON, and the blob.

    Without it nobody could tell what is new here from what was forgotten elsewhere.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._signature: tuple[Any, ...] | None = None
        self._known: Agreed | None = None

    def load(self) -> Agreed | None:
        """What was agreed last, by any process; ``None`` where that is not known."""
        signature = files.signature(self.path)
        if signature != self._signature or signature is None:
            self._signature, self._known = signature, self._read()
        return self._known

    def _read(self) -> Agreed | None:
        with files.store_errors(self.path):
            try:
                digest, _, data = self.path.read_bytes().partition(b"\n")
            except FileNotFoundError:
                return None
        if digest != _digest(data):
            log.warning("%s is damaged, and is made anew", self.path)
            return None
        line, _, blob = data.partition(b"\n")
        head = json.loads(line)
        kind, place, identity = head["store"]
        return Agreed(
            blob if head["blob"] else None, head["key"], (kind, place, identity), head["revision"]
        )

    def save(self, agreed: Agreed) -> None:
        """Keep it, durably."""
        head = {
            "key": agreed.key,
            "store": agreed.store,
            "revision": agreed.revision,
            "blob": agreed.blob is not None,
        }
        data = json.dumps(head).encode() + b"\n" + (agreed.blob or b"")
        files.write_atomically(self.path, _digest(data) + b"\n" + data)
        self._signature, self._known = files.signature(self.path), agreed


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).hexdigest().encode()
