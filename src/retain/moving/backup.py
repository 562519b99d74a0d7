"""A consistent copy of a memory directory that is in use."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from .. import files
from ..errors import InvalidValue
from ..memories.knowledge import DATABASE, KnowledgeMemory

__all__ = ["back_up"]

_FACTS = ("MEMORY.md", "MEMORY.forgotten.jsonl")


def back_up(memory: KnowledgeMemory, target: str | os.PathLike[str]) -> list[str]:
    """Copy the whole memory directory, all scopes, to a new one while it is in use.

    The store is copied as it is at one moment, MEMORY.md and the logs right after it; the
    copy is a memory directory itself. It appears under its name once it is whole and on the
    disk. Returns the names of the copied files. Raises ``InvalidValue`` where something is in
    the way, ``StoreFailed`` where the disk refuses.
    """
    place, path = memory.directory, files.real_path(target)
    if place is None:
        raise InvalidValue("this memory has no directory; back up its store instead")
    if path.exists():
        raise InvalidValue(f"{path} is there already; name a new directory")
    if place.resolve() in path.resolve().parents:
        raise InvalidValue(f"{path} is inside of {place}; name a place outside of it")
    memory.flush()
    temporary = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex}.tmp")
    files.make_folder(temporary)
    try:
        memory.engine.store.backup(temporary / DATABASE)
        # What was written after this moment may be in these and not in the store, and comes
        # into it when the copy is opened; what was forgotten after it is in the store alone.
        names = [DATABASE, *_copied(place, temporary)]
        with files.store_errors(path):
            temporary.replace(path)
            files.sync_folder(path.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return names


def _copied(place: Path, target: Path) -> Iterator[str]:
    for folder in (place, *sorted((place / "scopes").glob("*"))):
        found = [folder / name for name in _FACTS] + sorted((folder / "logs").glob("*.jsonl"))
        for source in found:
            if source.is_file():
                name = source.relative_to(place)
                files.make_folder((target / name).parent)
                with files.store_errors(source):
                    files.write_new(target / name, source.read_bytes())
                    files.sync_folder((target / name).parent)
                yield name.as_posix()
