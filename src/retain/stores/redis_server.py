"""The connection to a Redis server: commands, tried again while the server can't be reached."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit

from .. import awaiting
from ..errors import InvalidType, InvalidValue, MissingPackage, StoreBusy, StoreFailed
from .base import log
from .opening import hidden
from .redis_async import LoopClients
from .redis_scripts import Script

__all__ = ["Server"]

T = TypeVar("T")

_OLDEST = (6, 2)


class Server:
    """A server, or the servers of a cluster, behind a pool of connections.

    Answers are bytes, whatever the client makes of answers elsewhere. A call that failed of
    something that may pass is made again on another connection, for up to ``timeout`` seconds;
    then, and for all other reasons at once, ``StoreFailed``.
    """

    def __init__(self, url: str, client: Any, prefix: str, timeout: float) -> None:
        try:
            import redis
        except ImportError as error:
            raise MissingPackage.needed("RedisStore", "redis", error) from error
        self._redis = redis
        errors = redis.exceptions
        self._failures = (errors.RedisError, errors.RedisClusterException, OSError)
        self._own = client is None
        self._prefix = prefix
        self._timeout = timeout
        self.name = _shown(url) if self._own else f"the server of the {type(client).__name__} given"
        self._client = self._connect(url) if self._own else self._accepted(client)
        self.loops: LoopClients | None = None
        try:
            self._greet(url)
            if self._own and not self.clustered:
                self.loops = LoopClients(_understood(url), timeout)
        except BaseException:
            self.close()
            raise

    def _connect(self, url: str, *, cluster: bool = False) -> Any:
        address = _understood(url)
        options: dict[str, Any] = {
            "socket_timeout": self._timeout / 2,
            "socket_connect_timeout": self._timeout / 2,
        }
        kind: Any = self._redis.RedisCluster if cluster else self._redis.Redis
        if not cluster:  # whether to try again is decided here
            options["retry"] = self._redis.retry.Retry(self._redis.backoff.NoBackoff(), 0)
        try:
            made = self.retried(lambda: kind.from_url(address, **options), patient=False)
            if not cluster:  # else the first command would tell what is wrong behind the ?
                made.connection_pool.connection_class(**made.connection_pool.connection_kwargs)
            return made
        except (ValueError, TypeError) as error:
            raise InvalidValue(f"{self.name} can't be opened with this URL: {error}") from error

    def _accepted(self, client: Any) -> Any:
        if not isinstance(client, (self._redis.Redis, self._redis.RedisCluster)):
            kind = type(client).__name__
            raise InvalidType(f"client is a {kind}; give a redis.Redis or a redis.RedisCluster")
        if getattr(client, "connection", None) is not None:
            raise InvalidValue("client has a single connection; give one with a pool")
        pool = getattr(client, "connection_pool", None)
        if getattr(pool, "cache", None) is not None:
            raise InvalidValue("client keeps a cache of what it read; give one without")
        return client

    def _greet(self, url: str) -> None:
        """See what server it is; say what it can't promise."""
        info = self.retried(lambda: self.clients()[0].info(), patient=False)
        version = str(info.get("redis_version", ""))
        found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
        if found and found < _OLDEST:
            raise StoreFailed(f"{self.name} is Redis {version}; retain needs 6.2 or later")
        if info.get("cluster_enabled") and not self.clustered:
            if not self._own:
                raise InvalidValue(f"{self.name} is part of a cluster; give a redis.RedisCluster")
            self.close()
            self._client = self._connect(url, cluster=True)
        policy = info.get("maxmemory_policy", "noeviction")
        if info.get("maxmemory") and policy != "noeviction":
            log.warning(
                "%s deletes memories when it is full (maxmemory-policy %s): set it to noeviction",
                self.name,
                policy,
            )

    @property
    def clustered(self) -> bool:
        """Whether what one script touches must lie in one slot."""
        return isinstance(self._client, self._redis.RedisCluster)

    @property
    def _here(self) -> Any:
        """The client, or that of the event loop which carries this call."""
        if self.loops is not None and awaiting.on_loop():
            return self.loops.client()
        return self._client

    def clients(self) -> list[Any]:
        """One for each server that holds a part."""
        if self.clustered:
            return [node.redis_connection for node in self._client.get_primaries()]
        return [self._client]

    def retried(self, call: Callable[[], T], *, patient: bool = True) -> T:
        """What ``call`` gives, tried again; not ``patient``: unless the server isn't there."""
        give_up = time.monotonic() + self._timeout
        pause = 0.01
        while True:
            try:
                return call()
            except self._failures as error:
                late = time.monotonic() + pause > give_up
                if late or not _is_passing(error, patient):
                    waited = self._timeout if patient else None
                    raise _translated(error, self.name, self._prefix, waited) from error
                log.debug("%s: %s; it is tried again", self.name, error)
            awaiting.sleep(pause)
            pause = min(2 * pause, 0.5)

    def call(self, *command: Any) -> Any:
        """The answer to one command."""
        return self.retried(lambda: self._here.execute_command(*command, NEVER_DECODE=True))

    def script(self, script: Script, keys: Sequence[bytes], *arguments: Any) -> Any:
        """The answer of a script, which the server has or is given."""
        tail = (len(keys), *keys, *arguments)

        def call() -> Any:
            run = self._here.execute_command
            try:
                return run("EVALSHA", script.sha, *tail, NEVER_DECODE=True)
            except self._redis.exceptions.NoScriptError:
                return run("EVAL", script.text, *tail, NEVER_DECODE=True)

        return self.retried(call)

    def several(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """The answers to several commands, sent in one go."""

        def call() -> list[Any]:
            with self._here.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command, NEVER_DECODE=True)
                answers: list[Any] = pipeline.execute()
                return answers

        return self.retried(call)

    def scored(self, *command: Any) -> list[tuple[bytes, float]]:
        """Members of a sorted set with their scores: pairs in one protocol, flat in the other."""
        found = self.call(*command, "WITHSCORES")
        if found and isinstance(found[0], bytes):
            found = zip(found[::2], found[1::2], strict=True)
        return [(member, float(score)) for member, score in found]

    def scan(self, client: Any, cursor: int, pattern: str, count: int) -> tuple[int, list[bytes]]:
        """Some of the keys of one server, and where to go on."""
        command = ("SCAN", cursor, "MATCH", pattern, "COUNT", count)
        after, keys = self.retried(lambda: client.execute_command(*command, NEVER_DECODE=True))
        return int(after), keys

    def close(self) -> None:
        """End the connections, if they are not a caller's."""
        if self._own:
            self._client.close()


def _understood(url: str) -> str:
    """A URL as the client knows it."""
    return re.sub(r"^valkey(s?)://", r"redis\1://", url)


def _shown(url: object) -> str:
    """A URL without its password."""
    if not isinstance(url, str):
        raise InvalidType(f"url is a {type(url).__name__}; give text, as redis://localhost:6379/0")
    with suppress(ValueError):  # whose text may quote the password
        parts = urlsplit(url)
        address = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
        if parts.scheme == "unix" or re.fullmatch(r"/?\d*/?", parts.path):
            return f"{parts.scheme}://{address}{parts.path}"
    raise InvalidValue(
        f"{hidden(url)!r} can't be read as the URL of a server; give something like "
        "redis://user:password@host:6379/0, with the number of a database, and %2F for a / in the "
        "password"
    )


# -- what a server answers when it can't do something --------------------------------------

_PASSING = (
    *("ConnectionError", "TimeoutError", "ReadOnlyError", "READONLY", "TryAgainError"),
    *("ClusterDownError", "CLUSTERDOWN", "MASTERDOWN", "SlotNotCoveredError", "NOREPLICAS"),
    *("BUSY ", "is busy running a script", "NoReplicas", "cannot be connected"),
)
_LOADING = ("BusyLoadingError", "LOADING")

_ADVICE = (
    (
        ("AuthenticationError", "NOAUTH", "WRONGPASS"),
        "it wants another user or password: put them into the URL, redis://user:password@host",
    ),
    (
        ("NoPermissionError", "NOPERM"),
        "the user may not do that: give it the rights that the page of Redis in the docs names",
    ),
    (
        ("OutOfMemoryError", "OOM command"),
        "it is full (maxmemory): delete something or raise the limit; nothing was changed",
    ),
    (
        ("ReadOnlyError", "READONLY"),
        "it is a replica, which can't be written: name the primary, or ask Sentinel for it",
    ),
    (
        ("WRONGTYPE",),
        "a key of retain's holds something else, perhaps another program's: choose another prefix "
        "than {prefix!r}; nothing was changed",
    ),
    (
        ("MISCONF",),
        "it can't save to its own disk and so refuses writes: its log says why; nothing was "
        "changed",
    ),
    (_LOADING, "it is still loading its data: call again later"),
    (
        ("CROSSSLOT", "CrossSlot", "MovedError", "MOVED"),
        "it is a cluster behind one address: give client=redis.RedisCluster(…)",
    ),
    (("MaxConnectionsError",), "all connections of the pool are in use: allow more of them"),
    (("NoReplicas", "NOREPLICAS"), "it has too few replicas to write: nothing was changed"),
    (_PASSING, "it could not be reached{after}"),
)
_ONCE = ": see whether it runs at that address"
_AFTER = (
    " for {:g} s: see whether it runs; a write may have been done, and calling again with the same "
    "ids makes no duplicate"
)


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    text = " ".join([*(kind.__name__ for kind in type(error).__mro__), str(error)])
    return any(word in text for word in words)


def _is_passing(error: BaseException, patient: bool = True) -> bool:
    """Whether a call that failed of ``error`` may succeed later.

    Not ``patient``: a server that isn't there may be the wrong address; one that is still loading
    its data is not.
    """
    if _says(error, ("AuthenticationError", "AuthorizationError", "NOAUTH", "WRONGPASS")):
        return False
    return _says(error, _LOADING) or (patient and _says(error, _PASSING))


def _translated(error: BaseException, name: str, prefix: str, waited: float | None) -> StoreFailed:
    """The error of retain's that says what to do about ``error``; ``None``: tried once."""
    after = _ONCE if waited is None else _AFTER.format(waited)
    text = " ".join(str(error).split())[:300]
    if _says(error, ("BUSY ", "is busy running a script")):
        return StoreBusy(
            f"{name}: another program's script keeps it busy; call again later ({text})"
        )
    advice = next((advice for words, advice in _ADVICE if _says(error, words)), "")
    way_out = advice.format(prefix=prefix, after=after) or "nothing was kept of it"
    return StoreFailed(f"{name}: {way_out} ({text or type(error).__name__})")
