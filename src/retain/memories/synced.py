"""What was last in step: which line of MEMORY.md was which memory, at which revision."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import files
from ..directory.memory_md import Recorded

__all__ = ["State", "Synced"]

log = logging.getLogger("retain")

_MOST_NOTED = 1 << 16  # bytes of notes, beyond which the whole is written anew


@dataclass(frozen=True, slots=True)
class State:
    """Which ``store`` it was, its ``revision``, the ``text`` of MEMORY.md with the id of each of
    its facts, and the lines that were ``added`` to it since, in this order."""

    store: str
    revision: int
    text: str
    ids: Sequence[str | None]
    added: Sequence[Recorded] = field(default=())


class Synced:
    """``.MEMORY.synced`` and, beside it, ``.MEMORY.added``.

    The first holds a digest, then the store, its revision and the ids, then the text of
    MEMORY.md. With thousands of facts that is long, and nearly every change is one more line:
    such a line is noted in the second, which begins with the digest of the first; each line
    begins with its own. Both can be lost: then nothing that is missing from MEMORY.md counts
    as deleted. So nothing of it is fsynced; it is written after what it tells of.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes = path.with_suffix(".added")
        self._digest = b""

    def signature(self) -> tuple[Any, ...] | None:
        """What changes when another process writes either; ``None`` where there is nothing."""
        first = files.signature(self.path)
        return None if first is None else (first, files.signature(self.notes))

    def load(self) -> State | None:
        """What was last in step; ``None`` where that is not known."""
        self._digest = b""
        try:
            digest, _, data = self.path.read_bytes().partition(b"\n")
            if digest != _digest(data):
                log.warning("%s is damaged, and is made anew", self.path)
                return None
            head, _, text = data.decode().partition("\n")
            state = json.loads(head)
            self._digest = digest
            return State(state["store"], state["revision"], text, state["ids"], self._noted())
        except FileNotFoundError:
            return None
        except OSError as error:
            log.warning("%s can't be read (%s), and is made anew", self.path, error)
            return None

    def _noted(self) -> list[Recorded]:
        found: list[Recorded] = []
        with suppress(FileNotFoundError):
            digest, *lines = self.notes.read_bytes().split(b"\n")
            if digest == self._digest:
                for line in lines[:-1]:
                    check, _, data = line.partition(b" ")
                    if check != _digest(data):
                        break
                    found.append(Recorded(*json.loads(data)))
                if len(found) < len(lines) - 1 or lines[-1]:
                    self._digest = b""  # damaged, or cut short by a kill: add nothing to it
        return found

    def save(self, store: str, revision: int, text: str, ids: Sequence[str | None]) -> None:
        """Write all of it anew."""
        head = {"store": store, "revision": revision, "ids": ids}
        line = json.dumps(head, ensure_ascii=False, separators=(",", ":"))
        data = f"{line}\n{text}".encode()
        self._digest = _digest(data)
        files.write_atomically(self.path, self._digest + b"\n" + data, durable=False)
        with files.store_errors(self.notes):
            self.notes.unlink(missing_ok=True)

    def note(self, added: Iterable[Recorded]) -> bool:
        """Add lines to what was saved; ``False`` where all is to be saved anew instead."""
        if not self._digest:
            return False
        rows = [json.dumps([r.id, r.category, r.text], ensure_ascii=False) for r in added]
        data = b"".join(b"%b %b\n" % (_digest(row), row) for row in map(str.encode, rows))
        with files.store_errors(self.notes):
            with suppress(FileExistsError):
                files.write_new(self.notes, self._digest + b"\n", durable=False)
            with self.notes.open("r+b") as file:
                if not file.readline().startswith(self._digest) or file.seek(0, 2) > _MOST_NOTED:
                    return False
                file.write(data)
        return True


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).hexdigest().encode()
