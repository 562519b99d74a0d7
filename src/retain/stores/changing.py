"""A read and a write that belong together: made anew where somebody else wrote between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from ..errors import Conflict
from ..models import Memory
from .base import Store

__all__ = ["change"]

_ATTEMPTS = 100


class Write(Protocol):
    """Writes memories, if those of these ids still have these revisions (0: are not there)."""

    def __call__(
        self, memories: Iterable[Memory], *, expect: Mapping[str, int]
    ) -> list[Memory]: ...


def change(
    store: Store,
    ids: Iterable[str],
    changed: Callable[[dict[str, Memory]], list[Memory]],
    write: Write | None = None,
) -> list[Memory]:
    """Write what ``changed`` makes of the memories of ``ids`` that are there; as it is stored.

    ``changed`` is given those, by id, and is called again with newer ones where another
    process wrote one of them meanwhile. ``write``: how it is written, at once by the store
    unless given. Raises ``Conflict`` after 100 attempts.
    """
    wanted = list(dict.fromkeys(ids))
    for _ in range(_ATTEMPTS):
        found = {memory.id: memory for memory in store.peek(wanted)}
        new = changed(found)
        if not new:
            return []
        expect = {m.id: found[m.id].revision if m.id in found else 0 for m in new}
        try:
            if write is not None:
                return write(new, expect=expect)
            return store.write(new, expect=expect).saved
        except Conflict:
            continue
    raise Conflict(f"others changed the same memories {_ATTEMPTS} times; call again later")
