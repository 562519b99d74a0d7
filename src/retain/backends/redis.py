"""A memory directory as one value of a Redis or Valkey server."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import InvalidType, InvalidValue, MissingPackage, StoreBusy, StoreFailed
from .keys import checked_key

__all__ = ["RedisKnowledgeBackend"]

LARGEST = 512 * 2**20
"""Bytes of the largest value that Redis keeps."""

# One step for the server: nobody writes between the comparison and the write. What is there
# already counts as written, so that a retry after a lost answer is no conflict.
_REPLACE = """
local kept = redis.call('GET', KEYS[1])
if (kept and redis.sha1hex(kept) or '') ~= ARGV[1] and kept ~= ARGV[2] then return 0 end
if ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[2])
else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1
"""


class RedisKnowledgeBackend:
    """Keeps the blob under ``prefix`` + ``key``; for ``KnowledgeMemory(backend=...)``.

    ``key``: whose memory it is, 1 to 512 characters without NUL. ``url``: the server. ``ttl``:
    seconds after the last save until the server deletes it; ``None`` for never. ``timeout``:
    seconds to wait for the server. Redis 6.2 or later, or Valkey.

    Two hosts that save at once don't lose each other's facts: a save that would overwrite what
    this host has not seen is refused by the server, merged and tried again. A save is as durable
    as the server: with ``appendfsync always`` when the call returns, by default within a second,
    and not at all where it only caches. Every call raises ``StoreFailed``, or its subclass
    ``StoreBusy`` after ``timeout``, where the server can't be reached or refuses.

    >>> from retain import KnowledgeMemory, RedisKnowledgeBackend
    >>> backend = RedisKnowledgeBackend("user-123", "redis://localhost:6379/0")
    >>> with KnowledgeMemory("here", backend=backend) as memory:
    ...     _ = memory.remember("Likes tea", persistent=True)
    >>> with KnowledgeMemory("on another host", backend=backend) as memory:
    ...     memory.get_persistent_facts()
    {'general': ['Likes tea']}
    """

    def __init__(
        self,
        key: str,
        url: str = "redis://localhost:6379/0",
        prefix: str = "selectools:knowledge:",
        ttl: float | None = None,
        *,
        timeout: float = 30.0,
    ) -> None:
        try:
            import redis
        except ImportError as error:
            raise MissingPackage.needed("RedisKnowledgeBackend", "redis", error) from error
        self.key = checked_key(key)
        for name, value in (("url", url), ("prefix", prefix)):
            if not isinstance(value, str):
                raise InvalidType(f"{name} is a {type(value).__name__}; give text")
        self._life = "" if ttl is None else str(_milliseconds(ttl))
        try:
            pool = redis.ConnectionPool.from_url(
                url, socket_timeout=timeout, socket_connect_timeout=timeout
            )
            pool.connection_class(**pool.connection_kwargs)  # else a save would tell what is wrong
        except TypeError as error:
            raise InvalidValue(
                f"url has behind its ? what redis-py doesn't take: {error}"
            ) from None
        except ValueError:  # whose text may quote the password
            raise InvalidValue(
                "url is no address of a Redis server; give something like "
                "redis://user:password@host:6379/0, with %2F for a / in the password"
            ) from None
        given = pool.connection_kwargs
        given["decode_responses"] = False  # whatever the URL says: a blob is bytes
        place = given.get("path") or f"{given.get('host', 'localhost')}:{given.get('port', 6379)}"
        self._place = f"{place}/{given.get('db', 0)}"
        self._name = f"{prefix}{key}".encode()
        self._client = redis.Redis(connection_pool=pool)
        self._replace = self._client.register_script(_REPLACE)
        weakref.finalize(self, pool.disconnect)

    def load_bytes(self) -> bytes | None:
        """The blob, ``None`` if there is none."""
        with self._errors():
            kept: Any = self._client.get(self._name)
            return None if kept is None else bytes(kept)

    def save_bytes(self, data: bytes) -> None:
        """Keep ``data``, whatever was there."""
        _refuse_large(data)
        with self._errors():
            self._client.set(self._name, data, px=int(self._life) if self._life else None)

    def replace_bytes(self, old: bytes | None, new: bytes) -> bool:
        """Keep ``new`` if ``old`` is still what is kept (``None``: nothing); whether it was."""
        _refuse_large(new)
        known = "" if old is None else hashlib.sha1(old, usedforsecurity=False).hexdigest()
        with self._errors():
            return bool(self._replace([self._name], [known, new, self._life]))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        import redis.exceptions as theirs

        try:
            yield
        except (theirs.TimeoutError, theirs.BusyLoadingError) as error:
            raise StoreBusy(
                f"Redis at {self._place} did not answer in time: {error}; call again later"
            ) from error
        except theirs.ConnectionError as error:
            raise StoreFailed(
                f"Redis at {self._place} can't be reached: {error}; see that it runs, and that "
                "the URL is right"
            ) from error
        except theirs.RedisError as error:
            raise StoreFailed(
                f"Redis at {self._place} refused {self._name.decode()[:99]!r}: {error}"
            ) from error


def _milliseconds(ttl: float) -> int:
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)):
        raise InvalidType(f"ttl is a {type(ttl).__name__}; give seconds, or None for ever")
    if not 0.001 <= ttl <= 1e12:
        raise InvalidValue(f"ttl={ttl!r}; give seconds above 0, or None for ever")
    return round(ttl * 1000)


def _refuse_large(data: bytes) -> None:
    if len(data) > LARGEST:
        raise StoreFailed(
            f"the memory has {len(data):,} bytes, and Redis keeps values up to {LARGEST:,}: prune "
            "it, divide it by users, or use a bucket (FsspecKnowledgeBackend) or a database"
        )
