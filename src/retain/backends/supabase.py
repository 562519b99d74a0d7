"""A memory directory as one row of a Supabase table, through its REST interface."""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import clock
from ..errors import (
    InvalidType,
    InvalidValue,
    MissingPackage,
    MissingRow,
    StoreBusy,
    StoreFailed,
)
from .keys import checked_key

__all__ = ["SupabaseKnowledgeBackend"]

log = logging.getLogger("retain")

_STAMP = "updated_at"
_BINARY = "b64:"
_ATTEMPTS = 5  # at a comparison that changes of other columns keep overtaking


class _Row(NamedTuple):
    """What is kept, and the time that its row has."""

    data: bytes | None
    stamp: str | None


class SupabaseKnowledgeBackend:
    """Keeps the blob in a row of a table; for ``KnowledgeMemory(backend=...)``.

    ``client``: what ``supabase.create_client`` gives. ``key``: whose memory it is, the value in
    ``key_column``, 1 to 512 characters without NUL. The blob stands as readable text in
    ``data_column``, or as ``b64:`` and base64 where it is no text. ``write_mode``: ``"upsert"``
    inserts the row where it is missing; ``"update"`` is for a table with other columns that
    must not be empty, and raises :class:`MissingRow` (a ``RuntimeError``) where there is no row.

    Two hosts that save at once don't lose each other's facts, if the table has a column
    ``updated_at`` (``timestamptz``): a save changes the row only if it still has the time that
    this host has seen; else it is merged and tried again. Without that column the row is read
    and compared just before it is written, and what another host writes in that moment is lost.
    Raises ``StoreFailed`` where the service can't be reached or refuses.
    """

    def __init__(
        self,
        client: Any,
        key: str,
        table_name: str = "selectools_knowledge",
        key_column: str = "key",
        data_column: str = "data",
        write_mode: str = "upsert",
    ) -> None:
        if not callable(getattr(client, "table", None)):
            raise InvalidType(
                f"client is a {type(client).__name__}; give what supabase.create_client returns"
            )
        names = {"table_name": table_name, "key_column": key_column, "data_column": data_column}
        for name, value in names.items():
            if not isinstance(value, str) or not value:
                raise InvalidValue(f"{name}={value!r}; give a name")
        if write_mode not in ("upsert", "update"):
            raise InvalidValue(f"write_mode={write_mode!r}; give 'upsert' or 'update'")
        self.key = checked_key(key)
        self._client = client
        self._table, self._key_column, self._data_column = table_name, key_column, data_column
        self._updates_only = write_mode == "update"
        self._stamped = True  # until the table turns out to have no such column
        self._seen: tuple[bytes, str | None] | None = None  # digest of a blob, its row's time

    def load_bytes(self) -> bytes | None:
        """The blob, ``None`` if there is none."""
        row = self._row()
        return None if row is None else row.data

    def save_bytes(self, data: bytes) -> None:
        """Keep ``data``, whatever was there."""
        if self._updates_only:
            if not self._write(data, lambda table, values: self._own(table.update(values, **_MIN))):
                raise self._missing()
            return
        on = self._key_column
        self._write(
            data, lambda table, values: table.upsert(self._whole(values), on_conflict=on, **_MIN)
        )

    def replace_bytes(self, old: bytes | None, new: bytes) -> bool:
        """Keep ``new`` if ``old`` is still what is kept (``None``: nothing); whether it was."""
        seen, stamp = self._seen or (b"", None)
        if old is not None and seen == _digest(old) and self._swap(_Row(old, stamp), new):
            return True
        for _ in range(_ATTEMPTS):
            row = self._row()
            kept = None if row is None else row.data
            if kept == new and kept is not None:
                return True  # by this very call, whose answer was lost
            if kept != old:
                return False
            if self._insert(new) if row is None else self._swap(row, new):
                return True
        return False

    # -- one request each ------------------------------------------------------------------

    def _row(self) -> _Row | None:
        columns = [self._data_column, *([_STAMP] if self._stamped else [])]
        query = self._client.table(self._table).select(",".join(map(_as_column, columns)))
        try:
            rows = self._execute(self._own(query).limit(1)).data
        except _NoStamp:
            return self._row()
        if not rows:
            return None
        row = _Row(self._decoded(rows[0][self._data_column]), rows[0].get(_STAMP))
        if row.data is not None:
            self._seen = _digest(row.data), row.stamp
        return row

    def _swap(self, row: _Row, new: bytes) -> bool:
        """Write where the row still has its time; whether it had."""

        def query(table: Any, values: dict[str, str]) -> Any:
            update = self._own(table.update(values, **_MIN))
            if not self._stamped:
                return update
            return update.is_(_STAMP, "null") if row.stamp is None else update.eq(_STAMP, row.stamp)

        return self._write(new, query)

    def _insert(self, new: bytes) -> bool:
        """Make the row; whether nobody was quicker."""
        if self._updates_only:
            raise self._missing()
        try:
            return self._write(new, lambda t, values: t.insert(self._whole(values), **_MIN))
        except _Taken:
            return False

    def _own(self, query: Any) -> Any:
        return query.eq(self._key_column, self.key)

    def _whole(self, values: dict[str, str]) -> dict[str, str]:
        return {self._key_column: self.key, **values}

    def _write(self, data: bytes, query: Callable[[Any, dict[str, str]], Any]) -> bool:
        """Run what ``query`` makes of the table and the columns to write; whether a row was."""
        self._seen = None
        values = {self._data_column: _encoded(data)}
        if self._stamped:
            values[_STAMP] = clock.as_datetime(clock.now()).isoformat()
        try:
            answer = self._execute(query(self._client.table(self._table), values))
        except _NoStamp:
            return self._write(data, query)
        if answer.count == 0:
            return False
        if self._stamped:
            self._seen = _digest(data), values[_STAMP]
        return True

    def _execute(self, query: Any) -> Any:
        try:
            import httpx
            from postgrest.exceptions import APIError
        except ImportError as error:
            raise MissingPackage.needed("SupabaseKnowledgeBackend", "supabase", error) from error
        try:
            return query.execute()
        except APIError as error:
            raise self._refused(error.code or "", error.message or "", error.hint or "") from error
        except httpx.TimeoutException as error:
            raise StoreBusy(
                f"Supabase did not answer in time: {error}; call again later"
            ) from error
        except httpx.HTTPError as error:
            raise StoreFailed(
                f"Supabase can't be reached: {error}; see that the URL is right and the "
                "project runs"
            ) from error

    # -- what goes wrong -------------------------------------------------------------------

    def _refused(self, code: str, message: str, hint: str) -> StoreFailed:
        if self._stamped and code in ("42703", "PGRST204") and f"{_STAMP}" in message:
            self._stamped = False
            log.warning(
                "the table %s has no column %s: two hosts that save at the same moment may lose "
                "each other's facts; add it: alter table ... add column %s timestamptz",
                self._table,
                _STAMP,
                _STAMP,
            )
            return _NoStamp(message)
        if code == "23505":
            return _Taken(message)
        advice = _ADVICE.get(code, hint or "nothing was kept of this save")
        return StoreFailed(f"Supabase refused {self._place()}: {message} ({code}); {advice}")

    def _missing(self) -> MissingRow:
        return MissingRow(
            f"there is no row {self._place()}, and write_mode='update' makes none: insert it "
            "first, or use write_mode='upsert'; nothing was saved"
        )

    def _place(self) -> str:
        return f"{self._key_column}={self.key[:99]!r} of table {self._table!r}"

    def _decoded(self, text: object) -> bytes | None:
        if text is None:
            return None
        if not isinstance(text, str):
            raise StoreFailed(
                f"{self._data_column} in {self._place()} is a {type(text).__name__}; "
                "make it a column of type text"
            )
        if text.startswith(_BINARY):
            try:
                return base64.b64decode(text[len(_BINARY) :], validate=True)
            except binascii.Error:  # no blob of ours, as whoever unpacks it will tell
                return text.encode()
        return text.encode()


class _NoStamp(StoreFailed):
    """The table has no ``updated_at``: ask again without it."""


class _Taken(StoreFailed):
    """The row is there already."""


_MIN: dict[str, Any] = {"count": "exact", "returning": "minimal"}
"""Of a write, tell how many rows it met, and not what is in them."""

_ADVICE = {
    "23502": "a column of the table must not be empty and is none of ours: make the row "
    "beforehand and use write_mode='update'",
    "42501": "the role of the key may not: use the service role's key, or write a policy",
    "42P01": "make it first; retain's documentation of back ends has the statement",
    "PGRST205": "make it first; retain's documentation of back ends has the statement",
}


def _as_column(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else '"' + name.replace('"', '\\"') + '"'


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _encoded(data: bytes) -> str:
    """``data`` as it is, if a text column can hold it, else in base64."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text or text.startswith(_BINARY):
        return _BINARY + base64.b64encode(data).decode("ascii")
    return text
