"""Memories in a Supabase project, for those who have only its REST key."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidType, InvalidValue, MissingPackage, StoreBusy, StoreFailed, StoreTooNew
from ..models import Memory, as_number
from ..scope import Scope
from . import postgres_calls as calls
from .base import Selection, Store
from .knowledge import KnowledgeView
from .postgres_calls import Call
from .postgres_driver import CallingDriver
from .postgres_schema import VERSION, named, script

if TYPE_CHECKING:
    from supabase import Client

__all__ = ["SupabaseKnowledgeStore", "SupabaseStore"]

_MOST = 500  # rows that are asked for at once: a project answers with 1,000 at most, and no word
_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between attempts
_BUSY = ("55P03", "53300", "57014", "PGRST003")


class SupabaseDriver(CallingDriver):
    """The functions of :class:`~retain.PostgresStore`'s schema, called through PostgREST."""

    def __init__(self, client: Client, *, table: str, schema: str, timeout: float) -> None:
        super().__init__()
        try:
            from supabase import create_client
        except ImportError as error:
            raise MissingPackage.needed("SupabaseStore", "supabase", error) from error
        if not hasattr(client, "rpc") or not hasattr(client, "supabase_url"):
            raise InvalidType(
                f"client is a {type(client).__name__}; give what supabase.create_client returns"
            )
        as_number(timeout, "timeout", 0.001, 86_400, unit="seconds")
        self._create, self._client = create_client, client
        self._names = named(schema, table)
        self.schema, self.table = schema, table
        self.where = f"Supabase {client.supabase_url}"
        self.timeout = timeout
        [(version, self.identity)] = self.rows(Call("about"))
        if version > VERSION:
            raise StoreTooNew(
                f"{self.where} has schema version {version}, and this retain knows up to "
                f"{VERSION}: upgrade retain"
            )

    def _renew(self) -> None:
        # The parent's connections are no two processes'.
        client = self._client
        self._client = self._create(str(client.supabase_url), client.supabase_key, client.options)

    def rows(self, call: Call) -> list[Any]:
        import httpx
        from postgrest.exceptions import APIError

        name = self._names[call.name].rpartition(".")[2].strip('"')
        arguments = {
            f"p_{key}": json.loads(value) if key in _JSON and value is not None else value
            for key, value in call.arguments.items()
        }
        arguments["p_wait"] = round(self.timeout * 1000)
        give_up, pause = time.monotonic() + self.timeout, _PAUSE
        while True:
            with self._own():
                client = self._client
            try:
                asked = client.schema(self.schema).rpc(name, arguments)
                return _as_rows(asked.execute().data)
            except APIError as error:
                raise self._translated(error) from error
            except httpx.TransportError as error:
                made = not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
                if (made and not call.repeats) or time.monotonic() + pause > give_up:
                    raise self._lost(error, made) from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _lost(self, error: Exception, made: bool) -> StoreFailed:
        if made:
            return StoreFailed(
                f"{self.where}: the connection was lost ({error}); whether it was done is not "
                "known: look before you call again"
            )
        return StoreFailed(f"{self.where}: no connection ({error}); see that the project runs")

    def _translated(self, error: Any) -> StoreFailed:
        if error.code == calls.CONFLICT:
            calls.conflict(error.details)
        text = error.message or str(error)
        if error.code in _BUSY:
            return StoreBusy(f"{self.where}: {text}; call again later")
        if error.code in ("PGRST202", "PGRST106", "42883"):
            return StoreFailed(
                f"{self.where}: {text}; run the text of SupabaseStore.sql(table={self.table!r}, "
                f"schema={self.schema!r}) once in the project's SQL editor"
            )
        if error.code == "42501":
            return StoreFailed(f"{self.where}: {text}; use the service role's key")
        return StoreFailed(f"{self.where}: {text}; nothing was changed")

    # -- no more rows than are answered ----------------------------------------------------

    def _sent(self, call: Call, save: Sequence[Memory]) -> list[Any]:
        if call.name == "write":  # else it is one row
            call = replace(call, name="write_json")
        return super()._sent(call, save)

    def fetch(self, scope: Scope, ids: Sequence[str]) -> list[Memory]:
        parts = [ids[at : at + _MOST] for at in range(0, len(ids), _MOST)] or [ids]
        return [
            memory for part in parts for memory in super(SupabaseDriver, self).fetch(scope, part)
        ]

    def select(self, scope: Scope, selection: Selection) -> list[Memory]:
        found: list[Memory] = []
        left = selection.limit
        while left is None or left > 0:
            most = _MOST if left is None else min(left, _MOST)
            last = found[-1] if found else None
            place = (last.importance_score, last.created_at, last.id) if last else selection.after
            page = super().select(scope, replace(selection, limit=most, after=place))
            found += page
            if not page:
                break
            left = None if left is None else left - len(page)
        return found

    def backup(self, path: Path) -> None:
        """Refused: a project has its own."""
        raise InvalidValue(
            f"{self.where} is no file that could be copied to {path}; use the project's backups, "
            "or `retain copy` to a sqlite: store"
        )

    def close(self) -> None:
        """Write the retrieval counts that wait; the client stays open, for it is the caller's."""
        with self._lock:
            if self._closed:
                return
            if self._forked():
                self._renew()
        try:
            self._write_counts()
        finally:
            self._closed = True


_JSON = ("save", "expect", "retrieved")


def _as_rows(data: Any) -> list[Any]:
    """An answer as rows: a function of one value answers with that alone."""
    if isinstance(data, list) and all(isinstance(row, dict) for row in data):
        return [list(row.values()) for row in data]
    return [[data]]


class SupabaseStore(Store):
    """Memories in a Supabase project, through its REST interface and ``supabase-py``.

    For those who have only the key; with a connection string, :class:`~retain.PostgresStore` is
    several times as quick, and can keep the index of a scope there too. What is stored is the
    same, under the same rules; each write is one transaction. The index is made in each process.

    ``client``: what ``supabase.create_client`` returns, with the **service role's** key: the
    functions are for that role alone. ``table``: the beginning of the names of tables and
    functions. ``schema``: one that the project's REST interface exposes. ``timeout``: seconds to
    wait for a lock, and for a project that can't be reached.

    Run :meth:`sql` once in the project's SQL editor before. Needs ``retain[supabase]``. Raises
    ``StoreFailed`` where that was not done, or the project can't be reached, and ``StoreTooNew``.

    >>> from supabase import create_client
    >>> from retain import Memory, SupabaseStore
    >>> client = create_client("https://project.supabase.co", "service-role-key")
    >>> store = SupabaseStore(client)
    >>> store.save(Memory("m1", "The deadline is 1 March"))
    >>> store.get("m1").content
    'The deadline is 1 March'
    """

    def __init__(
        self,
        client: Client,
        *,
        scope: Scope | None = None,
        table: str = "retain",
        schema: str = "public",
        timeout: float = 30.0,
    ) -> None:
        super().__init__(SupabaseDriver(client, table=table, schema=schema, timeout=timeout), scope)

    @staticmethod
    def sql(table: str = "retain", schema: str = "public") -> str:
        """What makes the tables and functions: to be run once, in the project's SQL editor.

        Running it again changes nothing. The public key and signed-in users get no right to any
        of it.

        >>> from retain import SupabaseStore
        >>> "retain_memories" in SupabaseStore.sql()
        True
        """
        return script(schema, table)


class SupabaseKnowledgeStore(KnowledgeView):
    """Entries in a Supabase project: see :class:`~retain.SupabaseStore`.

    ``table``: the beginning of the names; ``SupabaseStore.sql(table)`` makes what is needed.
    """

    def __init__(
        self, client: Client, table: str = "knowledge", *, scope: Scope | None = None
    ) -> None:
        super().__init__(SupabaseStore(client, table=table, scope=scope))
