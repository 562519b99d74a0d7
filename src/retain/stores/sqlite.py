"""Memories in one SQLite file: the store for a laptop, from one memory to millions."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .. import files
from ..errors import StoreBusy, StoreCorrupt, StoreFailed, StoreTooNew
from ..models import Memory, as_number
from ..scope import Scope
from .base import (
    DELETIONS,
    PAGE,
    Changes,
    Driver,
    Problem,
    Selection,
    Store,
    Written,
    fact_key,
    log,
)
from .sqlite_schema import (
    COLUMNS,
    MIGRATIONS,
    ORDERS,
    SAVE,
    UNREADABLE,
    any_text,
    equal,
    expect_revision,
    fault,
    scope_key,
    to_memory,
    to_row,
    trim,
    where,
)

__all__ = ["SQLiteStore"]


class SQLiteDriver(Driver):
    """One connection for all threads, in turn; every operation is one transaction."""

    path: Path

    def __init__(
        self, path: Path, *, busy_timeout: float = 30.0, allow_network: bool = False
    ) -> None:
        super().__init__()
        as_number(busy_timeout, "busy_timeout", 0, 86_400, unit="seconds")
        self.path = path
        self._busy_timeout = busy_timeout
        files.refuse_network(path, allow=allow_network)
        self._connection: sqlite3.Connection | None = None
        self._unclean = False
        self._deleted = 0
        with self._open():
            pass

    # -- the connection --------------------------------------------------------------------

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """The connection, under the lock; SQLite's errors become retain's."""
        with self._lock:
            self._forked()
            self._usable()
            with self._errors():
                if self._connection is None:
                    self._connection = self._connect()
                yield self._connection

    def _connect(self) -> sqlite3.Connection:
        files.make_folder(self.path.parent)
        with files.store_errors(self.path):
            if not self.path.exists():
                with suppress(FileExistsError):  # another process was quicker
                    files.write_new(self.path, b"")
                    files.sync_folder(self.path.parent)
        connection = sqlite3.connect(
            self.path, timeout=self._busy_timeout, isolation_level=None, check_same_thread=False
        )
        try:
            connection.create_function("carries", 2, lambda tags, tag: tag in json.loads(tags))
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA synchronous = FULL")
            refuse_foreign(connection, self.path)
            # Deleted text may lie in a log that another process could not empty any more.
            log_file = files.beside(self.path, "-wal")
            self._unclean = log_file.exists() and log_file.stat().st_size > 0
            self._use_log(connection)
            self._migrate(connection)
            self.identity = connection.execute("SELECT identity FROM place").fetchone()[0]
        except BaseException:
            connection.close()
            raise
        # Stores that nobody closes are closed with their process, or when nothing names them.
        self._finalizer = weakref.finalize(self, _close, connection, os.getpid())
        return connection

    def _use_log(self, connection: sqlite3.Connection) -> None:
        """Switch to the write-ahead log; SQLite doesn't wait there for others who do the same."""
        give_up = time.monotonic() + self._busy_timeout
        while True:
            try:
                mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > give_up:
                    raise
                time.sleep(0.005)
        if mode != "wal":
            raise StoreFailed(
                f"{self.path}: SQLite can't keep a write-ahead log there (it uses {mode!r}); "
                "choose a place on a local disk"
            )

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Bring the schema up to date; refuse one that a newer version made."""
        if _version(connection) == len(MIGRATIONS):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = _version(connection)  # another process may have been quicker
            if found > len(MIGRATIONS):
                raise StoreTooNew(
                    f"{self.path} has schema version {found}, and this retain knows up to "
                    f"{len(MIGRATIONS)}: upgrade retain"
                )
            for number in range(found, len(MIGRATIONS)):
                for statement in MIGRATIONS[number].split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number + 1}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: sqlite3.Error) -> StoreFailed:
        text = str(error)
        if "locked" in text or "busy" in text:
            return StoreBusy(
                f"{self.path}: another process has held the store for {self._busy_timeout:g} s; "
                "end it, or call again later"
            )
        if any(word in text for word in ("malformed", "not a database", "decode", "no such")):
            return StoreCorrupt(
                f"{self.path}: {text}; nothing was changed: repair it with SQLiteStore.repair(), "
                "or a memory directory with `retain check --fix`; both keep the old file"
            )
        advice = {
            "full": "the disk is full: make room and call again",
            "readonly": "it can't be written: choose another place, or change its owner",
            "unable to open": "choose another place, or change its owner",
        }
        way_out = next((a for word, a in advice.items() if word in text), "nothing was kept of it")
        return StoreFailed(f"{self.path}: {text}; {way_out}")

    @contextmanager
    def _transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
        with self._open() as connection:
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    # -- writing ---------------------------------------------------------------------------

    def write(
        self,
        scope: Scope,
        save: Sequence[Memory] = (),
        delete: Sequence[str] = (),
        *,
        unique: bool = False,
        expect: Mapping[str, int] | None = None,
    ) -> Written:
        if not save and not delete:
            return Written([], [])
        with self._open():
            with self._transaction() as db:
                key = scope_key(db, scope, make=bool(save))
                for id, revision in (expect or {}).items():
                    expect_revision(db, key, id, revision)
                before = self.revision()
                self._write_retrievals(db)
                gone = self._delete(db, key, delete, before)
                saved, duplicates, at = self._save(db, scope, key, save, before + len(gone), unique)
                if at > before:
                    db.execute("UPDATE place SET revision = ?", (at,))
            self._retrievals.clear()
            self._clean()
        return Written(saved, gone, duplicates)

    def _delete(
        self, db: sqlite3.Connection, key: int, delete: Sequence[str], revision: int
    ) -> list[str]:
        gone = []
        for id in delete:
            cursor = db.execute("DELETE FROM memories WHERE scope = ? AND id = ?", (key, id))
            if cursor.rowcount:
                gone.append(id)
                row = (key, revision + len(gone), id)
                db.execute("INSERT INTO deletions VALUES (?, ?, ?)", row)
        self._unclean = self._unclean or bool(gone)
        self._deleted += len(gone)
        if self._deleted > DELETIONS:
            self._deleted = 0
            trim(db, key)
        return gone

    def _save(
        self,
        db: sqlite3.Connection,
        scope: Scope,
        key: int,
        save: Sequence[Memory],
        revision: int,
        unique: bool,
    ) -> tuple[list[Memory], frozenset[str], int]:
        saved: list[Memory] = []
        duplicates: set[str] = set()
        for memory in save:
            fact = fact_key(memory)
            if unique and fact:
                known_as = equal(db, scope, key, fact, memory.id)
                if known_as is not None:
                    saved.append(known_as)
                    duplicates.add(known_as.id)
                    continue
            revision += 1
            known = db.execute(
                "SELECT access_count, last_accessed FROM memories WHERE scope = ? AND id = ?",
                (key, memory.id),
            ).fetchone()
            db.execute(SAVE, (key, fact, memory.expires_at, *to_row(memory, revision)))
            count, last = known or (0, 0.0)
            saved.append(
                memory.copy(
                    revision=revision,
                    access_count=max(count, memory.access_count),
                    last_accessed=max(last, memory.last_accessed),
                )
            )
            self._unclean = self._unclean or known is not None  # the old text lies in the log
        return saved, frozenset(duplicates), revision

    def _write_retrievals(self, db: sqlite3.Connection) -> None:
        for scope, waiting in self._retrievals.items():
            key = scope_key(db, scope)
            db.executemany(
                "UPDATE memories SET access_count = min(access_count + ?, 9223372036854775807),"
                " last_accessed = max(last_accessed, ?) WHERE scope = ? AND id = ?",
                [(count, last, key, id) for id, (count, last) in waiting.items()],
            )

    def _clean(self) -> None:
        """Take deleted text out of the write-ahead log; again later while someone reads."""
        if self._unclean:
            with self._open() as db:
                db.execute("PRAGMA busy_timeout = 0")
                try:
                    busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                except sqlite3.OperationalError:
                    busy = True
                db.execute(f"PRAGMA busy_timeout = {round(self._busy_timeout * 1000)}")
                self._unclean = bool(busy)

    def forget_scope(self, scope: Scope) -> int:
        with self._open():
            with self._transaction() as db:
                key = scope_key(db, scope)
                count = db.execute("DELETE FROM memories WHERE scope = ?", (key,)).rowcount
                db.execute("DELETE FROM deletions WHERE scope = ?", (key,))
                db.execute("DELETE FROM scopes WHERE scope = ?", (key,))
                db.execute("UPDATE place SET revision = revision + ?", (count,))
                self._unclean = True
            self._retrievals.pop(scope, None)
            self._clean()
        try:
            self.index_files(scope).clear()
        except StoreFailed as error:  # the memories are gone, and who opens the index removes it
            log.warning("the index of a forgotten scope could not be removed: %s", error)
        return count

    def index_files(self, scope: Scope) -> files.Folder:
        digest = hashlib.blake2b(scope.key.encode("utf-8", "surrogatepass"), digest_size=12)
        return files.Folder(files.beside(self.path, "-index") / digest.hexdigest())

    # -- reading ---------------------------------------------------------------------------

    def fetch(self, scope: Scope, ids: Sequence[str]) -> list[Memory]:
        found: dict[str, Memory] = {}
        with self._open() as db:
            key = scope_key(db, scope)
            for at in range(0, len(ids), 500):
                some = ids[at : at + 500]
                marks = ",".join("?" * len(some))
                rows = db.execute(
                    f"SELECT {COLUMNS} FROM memories WHERE scope = ? AND id IN ({marks})",
                    (key, *some),
                )
                found.update((memory.id, memory) for memory in self._memories(rows, scope))
        return [found[id] for id in ids if id in found]

    def select(self, scope: Scope, selection: Selection) -> list[Memory]:
        order, after = ORDERS[selection.order]
        condition, values = where(selection)
        if selection.after is not None:
            condition += f" AND {after}"
            names = ("importance", "created", "id")
            values.update(zip(names, selection.after, strict=True))
        values["limit"] = -1 if selection.limit is None else selection.limit
        with self._open() as db:
            values["scope"] = scope_key(db, scope)
            rows = db.execute(
                f"SELECT {COLUMNS} FROM memories WHERE {condition} ORDER BY {order} LIMIT :limit",
                values,
            )
            return list(self._memories(rows, scope))

    def count(self, scope: Scope, selection: Selection) -> int:
        condition, values = where(selection)
        with self._open() as db:
            values["scope"] = scope_key(db, scope)
            query = f"SELECT count(*) FROM memories WHERE {condition}"
            return int(db.execute(query, values).fetchone()[0])

    def changes(self, scope: Scope, since: int) -> Changes:
        if self.revision() == since:  # before every recall, and mostly there is nothing new
            return Changes(iter(()), [], since)
        with self._transaction("BEGIN") as db:
            revision = self.revision()
            known = db.execute(
                "SELECT scope, floor FROM scopes WHERE key = ?", (scope.key,)
            ).fetchone()
            key, floor = known or (0, revision)
            reset = since < floor or since > revision
            since = 0 if reset else since
            # A first read, and one that begins anew, have nothing to take back.
            deleted = db.execute(
                "SELECT id FROM deletions WHERE scope = ? AND revision > ?",
                (key, since if since else revision),
            ).fetchall()
        saved = self._saved(scope, key, since, revision)
        return Changes(saved, [id for (id,) in deleted], revision, reset)

    def revision(self) -> int:
        with self._open() as db:
            return int(db.execute("SELECT revision FROM place").fetchone()[0])

    def _saved(self, scope: Scope, key: int, since: int, until: int) -> Iterator[Memory]:
        while since < until:
            with self._open() as db:
                rows = db.execute(
                    f"SELECT {COLUMNS} FROM memories "
                    "WHERE scope = ? AND revision > ? AND revision <= ? ORDER BY revision LIMIT ?",
                    (key, since, until, PAGE),
                ).fetchall()
            yield from self._memories(rows, scope)
            if len(rows) < PAGE:
                return
            since = rows[-1][-1]

    def _memories(self, rows: Any, scope: Scope) -> Iterator[Memory]:
        for row in rows:
            try:
                yield to_memory(row, scope)
            except UNREADABLE as error:
                log.warning(
                    "%s: memory %r can't be read (%s) and was left as it is; "
                    "`retain check` tells more",
                    self.path,
                    row[0],
                    error,
                )

    def scopes(self) -> list[Scope]:
        with self._open() as db:
            rows = db.execute(
                "SELECT key FROM scopes s WHERE EXISTS"
                " (SELECT 1 FROM memories m WHERE m.scope = s.scope) ORDER BY scope"
            )
            return [Scope.from_key(key) for (key,) in rows]

    # -- the place as a whole --------------------------------------------------------------

    def check(self, fix: bool = False) -> list[Problem]:
        """SQLite's own check, and every row against the rules of the record.

        With ``fix``: indexes are rebuilt, derived columns set right, and rows that can't be
        read set aside in a file. A file that can't be opened at all is for
        :meth:`SQLiteStore.repair`.
        """
        with self._open():
            with self._transaction("BEGIN IMMEDIATE" if fix else "BEGIN") as db:
                found = [text for (text,) in db.execute("PRAGMA integrity_check")]
                problems = [Problem(text, fix) for text in found if text != "ok"]
                if fix and problems:
                    db.execute("REINDEX")
                db.text_factory = any_text
                try:
                    faults = self._faults(db)
                finally:
                    db.text_factory = str
                for row, reason in faults:
                    problems.append(Problem(f"memory {row[3]!r}: {reason}", fix))
                    if fix:
                        self._mend(db, row[0], row[1], row[2], row[3:])
            if fix and problems:
                self._unclean = True
                self._clean()
            return problems

    def _faults(self, db: sqlite3.Connection) -> list[tuple[Any, str]]:
        revision = self.revision()
        rows = db.execute(
            f"SELECT fact, expires_at, m.rowid, m.scope, s.key, {COLUMNS} FROM memories m"
            " LEFT JOIN scopes s ON s.scope = m.scope"
        )
        faults = []
        for fact, expires, rowid, scope, key, *row in rows:
            reason = fault(row, fact, expires, key, revision)
            if reason:
                faults.append(((rowid, scope, key, *row), reason))
        return faults

    def _mend(
        self, db: sqlite3.Connection, rowid: int, scope: int, key: str | None, row: Sequence[Any]
    ) -> None:
        try:
            memory = to_memory(row, Scope.from_key(key or "")).checked()
        except UNREADABLE:
            text = json.dumps({"scope": key, "row": row}, default=repr, ensure_ascii=False)
            files.set_aside(self.path, text.encode("utf-8", "surrogateescape") + b"\n")
            db.execute("DELETE FROM memories WHERE rowid = ?", (rowid,))
            return
        db.execute("UPDATE place SET revision = revision + 1")
        db.execute(
            "UPDATE memories SET fact = ?, expires_at = ?, revision ="
            " (SELECT revision FROM place) WHERE rowid = ?",
            (fact_key(memory), memory.expires_at, rowid),
        )

    def backup(self, path: Path) -> None:
        files.make_folder(path.parent)
        with files.store_errors(path):
            files.write_new(path, b"")
        with self._open() as db:
            target = sqlite3.connect(path)
            try:
                db.backup(target)
                target.execute("PRAGMA journal_mode = DELETE")  # one file, whole in itself
            finally:
                target.close()
        with files.store_errors(path):
            files.sync_folder(path.parent)

    def _before_fork(self) -> None:
        # SQLite's locks are the process's. A child that had the connection, or only the memory
        # of it, would write without any, and lose what it wrote.
        if self._connection is not None and not self._connection.in_transaction:
            self._finalizer()
            self._connection = None

    def close(self) -> None:
        """Write the retrieval counts that wait, empty the write-ahead log, close the file."""
        with self._lock:
            self._forked()
            waiting = any(self._retrievals.values())
            if self._closed or (self._connection is None and not waiting):
                self._closed = True
                return
            with self._open():
                try:
                    if waiting:
                        with self._transaction() as db:
                            self._write_retrievals(db)
                    self._clean()
                finally:
                    self._closed = True
                    self._finalizer()
                    self._connection = None


def _close(connection: sqlite3.Connection, pid: int) -> None:
    if os.getpid() == pid:  # else it is a parent's, whom closing it would disturb
        connection.close()


def refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse another program's file, before anything in it is changed."""
    connection.execute("BEGIN")  # one moment, whatever others do meanwhile
    try:
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        foreign = tables and _version(connection) == 0
    finally:
        connection.execute("ROLLBACK")
    if foreign:
        raise StoreCorrupt(f"{path} is a SQLite file of another program; name another place")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


class SQLiteStore(Store):
    """Memories in one SQLite file: durable, shared between processes, flat to the millions.

    A write is one transaction (``BEGIN IMMEDIATE``, write-ahead log, ``synchronous=FULL``):
    it is on the disk when the call returns, or nothing of it is. Deleted and replaced text
    is overwritten (``secure_delete``) and taken out of the log.

    ``path``: the file, made with its folders if it is not there, for its owner only; ``~``
    is expanded. ``busy_timeout``: seconds to wait for another writer before ``StoreBusy``.
    ``allow_network``: accept a network file system, where locks may not hold. Raises
    ``StoreFailed`` where the place can't be used, ``StoreCorrupt`` where it is no store of
    retain's, ``StoreTooNew`` where a newer version made it.

    >>> import tempfile
    >>> from retain import Memory, SQLiteStore
    >>> place = tempfile.mkdtemp()
    >>> with SQLiteStore(f"{place}/memory.db") as store:
    ...     store.save(Memory("m1", "The deadline is 1 March"))
    >>> SQLiteStore(f"{place}/memory.db").get("m1").content
    'The deadline is 1 March'
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        scope: Scope | None = None,
        busy_timeout: float = 30.0,
        allow_network: bool = False,
    ) -> None:
        place = files.real_path(path)
        driver = SQLiteDriver(place, busy_timeout=busy_timeout, allow_network=allow_network)
        super().__init__(driver, scope)

    @staticmethod
    def repair(path: str | os.PathLike[str]) -> list[Problem]:
        """Save what can be read of a broken file into a new one in its place.

        For a file that can't even be opened; ``check(fix=True)`` does the rest. Nobody may
        have it open. The broken file stays beside the new one, as ``<name>.set-aside-…``.
        """
        from .sqlite_repair import repair

        return repair(files.real_path(path))
