"""Memories in a PostgreSQL database: the store of a team, for any number of processes and hosts."""

from __future__ import annotations

import functools
import os
import re
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .. import awaiting
from ..errors import (
    InvalidType,
    InvalidValue,
    MissingPackage,
    StoreBusy,
    StoreCorrupt,
    StoreFailed,
    StoreTooNew,
)
from ..models import Memory, as_number
from ..scope import Scope
from . import postgres_calls as calls
from .base import Store
from .opening import hidden
from .postgres_async import LoopPools
from .postgres_calls import Call
from .postgres_driver import CallingDriver
from .postgres_files import PostgresFiles
from .postgres_listening import Listener
from .postgres_schema import INCOMING, VERSION, migrations, named, to_row
from .postgres_search import PostgresSearch

if TYPE_CHECKING:
    import psycopg
    from psycopg_pool import ConnectionPool

    from .postgres_connection import PatientConnection

    Connection = psycopg.Connection[Any]
    Cursor = psycopg.Cursor[Any]
    Pool = ConnectionPool[Connection]

__all__ = ["PostgresStore"]

T = TypeVar("T")

_COPIED = 100  # memories from which on a write goes through COPY
_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between attempts
_PROBE = 2  # seconds for which to see whether a server is there
_SLICE = 5.0  # seconds for which a pool tries, less and less often, until it is asked anew
_UNREADABLE = (ValueError, TypeError, RecursionError)

_BUSY = ("55P03", "53300", "57014")  # a lock, too many connections, a statement that took too long
_AGAIN = ("40001", "40P01")  # serialization, deadlock: nothing of it was done
_GONE = ("57P01", "57P02", "57P03")  # the server ends, or has only begun
_ADVICE = {
    "42501": "give the role the right, or let its owner open it once",
    "25006": "it is a standby: name the primary",
    "53100": "its disk is full: make room and call again",
    "53200": "it is out of memory: call again later",
    "28000": "check the role and the password",
    "28P01": "check the role and the password",
    "3D000": "make the database, or name another",
}


class PostgresDriver(CallingDriver):
    """Functions of one database, called over a pool of connections.

    Every operation is one statement, but for a batch, which is one transaction. No lock is held
    while the database works: threads go on side by side.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = "retain",
        timeout: float = 30.0,
        connections: int = 10,
        partitions: int = 0,
        prepare: bool = False,
        tell: bool = True,
        native_search: bool = False,
    ) -> None:
        super().__init__()
        try:
            import psycopg
            from psycopg_pool import ConnectionPool, PoolTimeout

            from .postgres_connection import PatientConnection, state_of
        except ImportError as error:
            raise MissingPackage.needed("PostgresStore", "postgres", error) from error
        as_number(timeout, "timeout", 0.001, 86_400, unit="seconds")
        as_number(connections, "connections", 1, 10_000, whole=True)
        as_number(partitions, "partitions", 0, 10_000, whole=True)
        self._psycopg, self._pools = psycopg, ConnectionPool
        self._connections, self._state_of = PatientConnection, state_of
        self._timed_out, self._probe = PoolTimeout, functools.partial(_probe, psycopg.connect, url)
        self._url, self.schema = url, schema
        self.where = _described(url) + ("" if schema == "retain" else f", schema {schema!r}")
        self.timeout = timeout
        self._settings: dict[str, Any] = {
            "min_size": 1,
            "max_size": connections,
            "timeout": timeout,
            "reconnect_timeout": _SLICE,
            "kwargs": {
                "autocommit": True,
                "prepare_threshold": 5 if prepare else None,
                "application_name": "retain",
                "keepalives_idle": 30,
                "keepalives_interval": 5,
                "keepalives_count": 3,
            },
        }
        if "connect_timeout" not in psycopg.conninfo.conninfo_to_dict(url):
            self._settings["kwargs"]["connect_timeout"] = max(2, round(timeout))
        self.searches = native_search
        self._searches: dict[tuple[str, int], PostgresSearch] = {}
        self._names = named(schema, "")
        self._statements: dict[str, str] = {}
        self.channel = f"retain_{schema}" if tell else None
        self._listener = self._listening() if tell else None
        known = self._listener.own.add if self._listener else _nothing
        # Not a method of this object, which its pool would keep alive.
        self._configure = functools.partial(_configure, known, timeout, self._probe)
        self._loops = LoopPools(url, known, **self._settings)
        self._pool: Pool | None = None
        self._parents: list[Pool] = []
        self._begin(partitions)

    def _listening(self) -> Listener:
        # Not a method of this object, which the thread would keep alive.
        connect = functools.partial(
            self._psycopg.connect, self._url, autocommit=True, application_name="retain listener"
        )
        listener = Listener(connect, f"retain_{self.schema}")
        weakref.finalize(self, listener.end)
        return listener

    # -- the connections -------------------------------------------------------------------

    def pool(self) -> Pool:
        """The pool of this process."""
        with self._own():
            if self._pool is None:
                self._pool = self._pools(
                    self._url,
                    connection_class=self._connections,
                    configure=self._configure,
                    open=True,
                    **self._settings,
                )
                self._finalizer = weakref.finalize(self, _close, self._pool, os.getpid())
            return self._pool

    @property
    def awaits(self) -> bool:
        return True

    def leave(self) -> None:
        self._loops.leave()

    def hear(self, scope: Scope, heard: Callable[[], None]) -> None:
        if self._listener is not None:
            self._listener.hear(scope, heard)

    def _renew(self) -> None:
        if self._listener is not None:
            self._listener.own.clear()  # which were the parent's
        if self._pool is not None:
            self._parents.append(self._pool)  # what it has open is not ours to end
            self._pool = None

    @contextmanager
    def _connection(self, give_up: float) -> Iterator[Connection]:
        with self._own():
            places: Any = self._loops if awaiting.on_loop() else None
        places = places or self.pool()
        left = give_up - time.monotonic()
        with places.connection(max(0.1, min(left, _SLICE))) as connection:
            yield connection

    def _cursor(self, connection: Connection) -> Cursor:
        """The one cursor of a connection: making one takes as long as a statement does."""
        cursor: Cursor | None = vars(connection).get("retain_cursor")
        if cursor is None:
            cursor = vars(connection)["retain_cursor"] = connection.cursor()
        return cursor

    def rows(self, call: Call) -> list[Any]:
        """What a function answers; called again after a lost connection, where that is safe."""
        statement = self._statement(call)
        arguments = {**call.arguments, "wait": round(self.timeout * 1000)}

        def ask(connection: Connection) -> list[Any]:
            return self._cursor(connection).execute(statement, arguments).fetchall()

        return self._attempts(ask, call.repeats)

    def work(self, work: Callable[[Connection], T]) -> T:
        """What ``work`` makes of a connection; done again after a lost one."""
        return self._attempts(work, repeats=True)

    @property
    def names(self) -> Mapping[str, str]:
        """The full names of tables and functions, by the short ones."""
        return self._names

    def _attempts(
        self,
        work: Callable[[Connection], T],
        repeats: bool,
        connect: Callable[[float], AbstractContextManager[Connection]] | None = None,
    ) -> T:
        """The result of ``work`` with a connection, until it is done or the time is over."""
        psycopg = self._psycopg
        give_up = time.monotonic() + self.timeout
        pause = _PAUSE
        while True:
            begun = False
            try:
                with (connect or self._connection)(give_up) as connection:
                    begun = True
                    return work(connection)
            except psycopg.Error as caught:
                error = caught if begun else self._cause(caught)
                state = self._state_of(error)
                if state == calls.CONFLICT:
                    calls.conflict(error.diag.message_detail)
                lost = begun and (not state or state in _GONE or state.startswith("08"))
                lost = lost and isinstance(error, psycopg.OperationalError)
                never = not begun or state in _AGAIN
                hopeless = state.startswith(("28", "3D"))  # waiting doesn't help against it
                never = never and not hopeless
                if time.monotonic() + pause > give_up or not (never or (lost and repeats)):
                    raise self._translated(error, begun=begun, lost=lost) from error
            awaiting.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _cause(self, error: psycopg.Error) -> psycopg.Error:
        """Why there is no connection, which a pool doesn't say."""
        if isinstance(error, self._timed_out):
            try:
                awaiting.aside(self._probe)
            except self._psycopg.OperationalError as cause:
                return cause
        return error

    def _translated(self, error: psycopg.Error, *, begun: bool, lost: bool) -> StoreFailed:
        state, text = self._state_of(error), str(error).strip().split("\n")[0]
        if state in _BUSY:
            return StoreBusy(
                f"{self.where}: {text}; another client has held it for {self.timeout:g} s: "
                "end that one, or call again later"
            )
        if state in ("42883", "42P01", "3F000"):
            return StoreCorrupt(
                f"{self.where}: {text}; what retain made in the schema {self.schema!r} is gone: "
                "put a backup back, or open another schema"
            )
        if not begun and state not in _ADVICE:
            return StoreFailed(
                f"{self.where}: no connection within {self.timeout:g} s ({text}); see that the "
                "server runs and takes more connections"
            )
        if lost:
            return StoreFailed(
                f"{self.where}: the connection was lost ({text}); whether it was done is not "
                "known: look before you call again"
            )
        advice = _ADVICE.get(state, "nothing was changed")
        return StoreFailed(f"{self.where}: {text}; {advice}")

    def _statement(self, call: Call) -> str:
        if call.name not in self._statements:
            names = [*call.arguments, "wait"]
            given = ", ".join(f"p_{name} => %({name})s" for name in names)
            name = self._names.get(call.name, call.name)
            self._statements[call.name] = f"SELECT * FROM {name}({given})"
        return self._statements[call.name]

    # -- the schema ------------------------------------------------------------------------

    def _begin(self, partitions: int) -> None:
        """Make the schema or bring it up to date, unless it is; who comes second waits."""

        def migrate(connection: Connection) -> str:
            wait = str(round(self.timeout * 1000))
            with connection.transaction():
                connection.execute("SELECT set_config('lock_timeout', %s, true)", (wait,))
                found = self._version(connection)
            if found[0] == VERSION:
                return found[1]
            with connection.transaction():  # another one, which sees what was made meanwhile
                connection.execute(
                    "SELECT set_config('lock_timeout', %s, true),"
                    " pg_advisory_xact_lock(hashtextextended('retain ' || %s, 0))",
                    (wait, self.schema),
                )
                number, _ = self._version(connection)
                if number > VERSION:
                    raise StoreTooNew(
                        f"{self.where} has schema version {number}, and this retain knows up to "
                        f"{VERSION}: upgrade retain"
                    )
                if not number:
                    self._refuse_encoding(connection)
                    there = "SELECT FROM pg_namespace WHERE nspname = %s"
                    if connection.execute(there, (self.schema,)).fetchone() is None:
                        # What is there may be used without the right to make it.
                        connection.execute(f'CREATE SCHEMA "{self.schema}"')
                for script in migrations(self.schema, "", partitions)[number:]:
                    connection.execute(script)
                connection.execute(f"UPDATE {self._names['place']} SET version = {VERSION}")
                return self._version(connection)[1]

        def connect(_: float) -> Connection:
            """Not from the pool, which would try for long where it can't help."""
            made = self._connections.connect(self._url, **self._settings["kwargs"])
            self._configure(made)
            return made

        self.identity = self._attempts(migrate, True, connect=connect)

    def _version(self, connection: Connection) -> tuple[int, str]:
        # Not by to_regclass(), which may still know that there was none before the lock was had.
        tables = "SELECT FROM pg_tables WHERE schemaname = %s AND tablename = 'place'"
        if connection.execute(tables, (self.schema,)).fetchone() is None:
            return 0, ""
        found = connection.execute(f"SELECT version, identity FROM {self._names['place']}")
        row = found.fetchone()
        return (0, "") if row is None else (int(row[0]), str(row[1]))

    def _refuse_encoding(self, connection: Connection) -> None:
        encoding = connection.execute("SHOW server_encoding").fetchone()
        if encoding is None or encoding[0] != "UTF8":
            raise StoreFailed(
                f"{self.where} is encoded in {encoding and encoding[0]}, which can't hold every "
                "text: make a database with ENCODING 'UTF8'"
            )

    # -- what is otherwise here ------------------------------------------------------------

    def _copies(self, save: Sequence[Memory]) -> bool:
        return len(save) >= _COPIED

    def _sent(self, call: Call, save: Sequence[Memory]) -> list[Any]:
        return self._copied(call, save) if self._copies(save) else self.rows(call)

    def _copied(self, call: Call, save: Sequence[Memory]) -> list[Any]:
        """As :meth:`rows`, with the memories through COPY: all of it one transaction."""
        statement, columns = self._statement(call), ", ".join(INCOMING)
        arguments = {**call.arguments, "wait": round(self.timeout * 1000)}
        table = (
            f"CREATE TEMP TABLE retain_incoming ON COMMIT DROP AS"
            f" SELECT * FROM {self._names['incoming']}(NULL)"
        )

        def ask(connection: Connection) -> list[Any]:
            with connection.transaction():
                connection.execute(table)
                with connection.cursor().copy(
                    f"COPY retain_incoming ({columns}) FROM STDIN"
                ) as copy:
                    for place, memory in enumerate(save):
                        copy.write_row(to_row(memory, place))
                return connection.execute(statement, arguments).fetchall()

        return self._attempts(ask, call.repeats)

    def search(self, made_by: str, dimensions: int) -> PostgresSearch:
        found = self._searches.get((made_by, dimensions))
        if found is None:
            found = self._searches[made_by, dimensions] = PostgresSearch(self, made_by, dimensions)
        return found

    def index_files(self, scope: Scope) -> PostgresFiles:
        return PostgresFiles(self.rows, scope)

    def backup(self, path: Path) -> None:
        """Refused: a database has its own."""
        raise InvalidValue(
            f"{self.where} is no file that could be copied to {path}; use pg_dump, or "
            "`retain copy` to a sqlite: store"
        )

    def close(self) -> None:
        """Write the retrieval counts that wait, and end the connections."""
        with self._lock:
            if self._closed:
                return
            mine = not self._forked()  # with no pool yet, an event loop may have counted
        try:
            if mine:
                self._write_counts()
        finally:
            if self._listener is not None:
                self._listener.end()
            with self._lock:
                self._closed = True
                pool, self._pool = (self._pool if mine else None), None
            if pool is not None:
                self._finalizer()


def _nothing(_: object) -> None:
    pass


def _configure(
    known: Callable[[int], None],
    patience: float,
    probe: Callable[[], None],
    connection: PatientConnection,
) -> None:
    known(connection.info.backend_pid)
    connection.patience, connection.probe = patience, probe


def _probe(connect: Callable[..., Connection], url: str) -> None:
    """Whether a server takes connections, or why not."""
    connect(url, connect_timeout=_PROBE).close()


def _close(pool: Pool, pid: int) -> None:
    if os.getpid() == pid:  # else it is a parent's
        pool.close()


def _described(url: str) -> str:
    """A database as messages name it: without a password."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.pq import Conninfo

    parts = None
    with suppress(ProgrammingError):  # whose text may quote the password
        parts = conninfo_to_dict(url)
    ports = str((parts or {}).get("port") or "").split(",")
    wrong = any(port and not (port.isdecimal() and int(port) < 2**16) for port in ports)
    cut = re.match(r"\w+://[^/?]*/[^?]*@", url)  # by a / in the password
    if parts is None or wrong or cut or "\0" in url:  # where libpq would take it to end
        shown = hidden(url)
        known = {each.keyword.decode() for each in Conninfo.get_defaults()}
        unknown = [name for name in re.findall(r"[?&](\w+)=", shown) if name not in known]
        raise InvalidValue(
            f"{shown!r} can't be read as the URL of a database"
            f"{f', which has no {unknown[0]!r}' if unknown else ''}; give something like "
            "postgresql://user:password@host:5432/database, with %2F for a / in the password"
        )
    host = parts.get("host") or "localhost"
    return f"PostgreSQL {parts.get('dbname') or ''}@{host}"


class PostgresStore(Store):
    """Memories in a PostgreSQL database (14 or later), for any number of processes and hosts.

    A write is one statement: durable when the call returns, as far as the server's
    ``synchronous_commit`` goes, or nothing of it is. A batch of 100 or more goes through COPY, in
    one transaction. Writers of one scope take turns; those of different scopes don't wait for each
    other. Row security keeps each statement inside its scope, also for the tables' owner.

    A connection that is lost is made again: reads and writes are then repeated for up to
    ``timeout`` seconds, and a write that was done already is not done twice. (Forgetting a whole
    scope isn't repeated: that it is not known is told.) A server that neither answers nor takes
    connections is given up after that time; long work is waited for.

    ``url``: ``postgresql://user:password@host/database`` or anything else that libpq takes.
    ``schema``: where the tables are, made if it is not there. ``timeout``: seconds to wait for a
    connection or a lock. ``connections``: the most that are open at once. ``partitions``: parts
    that the table of memories is cut into by scope, when it is made; 0 for none. ``prepare``: let
    the server keep statements prepared in its sessions: quicker, and not for a pooler that gives
    every statement another session. ``tell``: let other processes know at once of each write, so
    that their indexes follow in the background (LISTEN and NOTIFY). ``native_search``: for scopes
    too large to hold in a process: the database offers candidates for each query, and these alone
    are ranked (``docs/native-search.md``).

    Needs the extra ``retain[postgres]``. Raises ``StoreFailed`` where the server can't be reached,
    ``StoreBusy`` where others hold what is needed for too long, ``StoreTooNew`` where a newer
    version made the schema, ``InvalidValue`` for a URL that is none.

    >>> from retain import Memory, PostgresStore
    >>> with PostgresStore("postgresql://localhost/agents") as store:
    ...     store.save(Memory("m1", "The deadline is 1 March"))
    ...     store.get("m1").content
    'The deadline is 1 March'
    """

    def __init__(
        self,
        url: str,
        *,
        scope: Scope | None = None,
        schema: str = "retain",
        timeout: float = 30.0,
        connections: int = 10,
        partitions: int = 0,
        prepare: bool = False,
        tell: bool = True,
        native_search: bool = False,
    ) -> None:
        if not isinstance(url, str):
            raise InvalidType(f"url is a {type(url).__name__}; give text")
        driver = PostgresDriver(
            url,
            schema=schema,
            timeout=timeout,
            connections=connections,
            partitions=partitions,
            prepare=prepare,
            tell=tell,
            native_search=native_search,
        )
        super().__init__(driver, scope)
