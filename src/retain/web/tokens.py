"""Who may do what: bearer tokens, each bound to one scope.

A token is a long random text that only its holder has: the file keeps SHA-256 digests, from
which no token can be made. (A slow hash is for passwords, which can be guessed.)
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import files
from ..errors import InvalidValue, RetainError
from ..locks import FileLock
from ..scope import Scope

__all__ = ["Grant", "Tokens", "digest"]

log = logging.getLogger("retain")

_LOOKED = 1.0  # seconds after which the file is looked at again
_MEMBERS = {"sha256", "scope", "read_only"}
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token allows: all of one scope, or only reading it. ``key`` is the digest."""

    scope: Scope
    read_only: bool = False
    key: str = ""


def digest(token: str) -> str:
    """What the file keeps of a token: its SHA-256 in hexadecimal digits.

    >>> digest("secret")[:8]
    '2bb80d53'
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Tokens:
    """The tokens of a file, read again when it changes.

    A file that can't be read any more, or holds a mistake, changes nothing: what was read
    last goes on to hold, and the log says why. Raises ``InvalidValue`` where that is so at
    the beginning.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = files.real_path(path)
        self._seen = files.signature(self.path)
        self._looked = time.monotonic()
        self._grants = _read(self.path)

    def __len__(self) -> int:
        return len(self._grants)

    def grant(self, token: str) -> Grant | None:
        """What ``token`` allows, ``None`` if it is none of them."""
        if time.monotonic() - self._looked > _LOOKED:
            self.refresh()
        mine = digest(token)
        # Found by its digest, which nobody can steer towards another; then in constant time.
        found = self._grants.get(mine)
        return found if found is not None and hmac.compare_digest(found.key, mine) else None

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        self._looked = time.monotonic()
        seen = files.signature(self.path)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._grants = _read(self.path)
        except RetainError as error:
            log.error("%s; the tokens that were read before go on to hold", error)
        else:
            log.info("%d tokens were read from %s", len(self._grants), self.path)

    @staticmethod
    def add(path: str | os.PathLike[str], scope: Scope, *, read_only: bool = False) -> str:
        """Put a new token into a file, made if it is not there; the token, which is not kept."""
        place = files.real_path(path)
        token = f"retain_{secrets.token_urlsafe(32)}"
        entry: dict[str, Any] = {"sha256": digest(token), "scope": scope.to_dict()}
        if read_only:
            entry["read_only"] = True
        files.make_folder(place.parent)
        with FileLock(files.beside(place, ".lock")).held(), files.store_errors(place):
            known = list(_read(place).values()) if place.exists() else []
            entries = [*map(_entry, known), entry]
            text = json.dumps({"tokens": entries}, ensure_ascii=False, indent=2)
            files.write_atomically(place, f"{text}\n".encode())
        return token


def _entry(grant: Grant) -> dict[str, Any]:
    entry: dict[str, Any] = {"sha256": grant.key, "scope": grant.scope.to_dict()}
    return {**entry, "read_only": True} if grant.read_only else entry


def _read(path: Path) -> dict[str, Grant]:
    if not path.exists():
        raise InvalidValue(f"there is no file of tokens {path}; retain serve --new-token makes one")
    with files.store_errors(path):
        data = path.read_bytes()
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"{path} is no JSON: {error}") from None
    entries = (
        found.get("tokens") if isinstance(found, dict) and found.keys() == {"tokens"} else None
    )
    if not isinstance(entries, list):
        raise InvalidValue(f'{path} is not {{"tokens": [...]}}; retain serve --new-token makes one')
    grants: dict[str, Grant] = {}
    for number, entry in enumerate(entries, 1):
        grant = _grant(entry, f"token {number} of {path}")
        if grant.key in grants:
            raise InvalidValue(f"token {number} of {path} is there twice; a token has one scope")
        grants[grant.key] = grant
    return grants


def _grant(entry: object, where: str) -> Grant:
    if not isinstance(entry, Mapping) or entry.keys() - _MEMBERS:
        raise InvalidValue(f"{where} is no object of {', '.join(sorted(_MEMBERS))}")
    key, scope = entry.get("sha256"), entry.get("scope")
    if not isinstance(key, str) or len(key) != 64 or not _HEX.issuperset(key):
        raise InvalidValue(f"{where} needs sha256, 64 digits of 0-9 and a-f")
    if not isinstance(scope, Mapping) or scope.keys() - {"user", "agent", "session"}:
        raise InvalidValue(f"{where} needs a scope, an object of user, agent and session")
    read_only = entry.get("read_only", False)
    if not isinstance(read_only, bool):
        raise InvalidValue(f"{where} has read_only={read_only!r}; give true or false")
    return Grant(Scope(**scope), read_only, key)
