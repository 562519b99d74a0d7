"""Where an adapter keeps what is no memory of the user's: in a scope of its own beside theirs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from ..errors import InvalidType
from ..models import as_text
from ..scope import Scope
from ..stores.base import Store
from ..stores.knowledge import as_store

__all__ = ["room_beside", "store_of"]

_LONGEST = 512  # characters of a scope's part


def room_beside(scope: Scope, use: str, name: str = "") -> Scope:
    """A scope of the same user and agent, another one for each ``use`` and each ``name``.

    Its session is ``use:name``, so that people can find it; where the scope is a session itself
    that is part of it, and what is too long for a scope is there by its digest. ``use`` is a word
    of letters and hyphens, ``name`` any text.

    >>> room_beside(Scope(user="ann"), "chats", "7").session
    'chats:7'
    """
    at = "" if scope.session is None else f"@{json.dumps(scope.session, ensure_ascii=False)}"
    session = f"{use}{at}:{as_text(name, 'the name')}"
    if len(session) > _LONGEST:
        session = f"{use}#{hashlib.sha256(session.encode()).hexdigest()}"
    return replace(scope, session=session)


def store_of(memory: object) -> Store:
    """The store of a memory, bound to its scope; or of a store, or of the URL of one."""
    engine = getattr(memory, "engine", None)
    if engine is not None:
        memory = engine.store
    if not isinstance(memory, (Store, str)):
        raise InvalidType(
            f"a {type(memory).__name__} is no place for this; give a memory of this process, "
            "a store, or its URL"
        )
    return as_store(memory)
