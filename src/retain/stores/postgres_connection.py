"""A connection to a PostgreSQL server that doesn't wait for one which is no longer there."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator
from typing import Any

import psycopg

__all__ = ["PatientConnection", "state_of"]

_TOLD = {
    "28000": r'role ".*" does not exist|no pg_hba\.conf entry|is not permitted to log in',
    "28P01": r"authentication failed|no password supplied",
    "3D000": r'database ".*" does not exist',
    "53300": r"too many (connections|clients)|remaining connection slots",
    "57P03": r"the database system is (starting up|shutting down|in recovery|not yet)",
}


def state_of(error: psycopg.Error) -> str:
    """The SQLSTATE of an error, "" for none.

    Where no connection was made there is only what the server said, of which the commonest are
    known in English.
    """
    if error.sqlstate:
        return error.sqlstate
    text = str(error)
    return next((state for state, told in _TOLD.items() if re.search(told, text)), "")


class PatientConnection(psycopg.Connection[Any]):
    """Waits for an answer for as long as the server takes connections.

    Once it was silent for ``patience`` seconds, ``probe`` is called, which connects; if that
    fails, the connection is lost. So long work is waited for, and a server that hangs is not.
    """

    patience = 30.0
    probe: Callable[[], object] | None = None

    def wait(self, gen: Any, *arguments: Any, **more: Any) -> Any:
        """As in psycopg, whose generators tell what they wait for, and are told if it came."""
        return super().wait(self._watched(gen), *arguments, **more)

    def _watched(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        until = time.monotonic() + self.patience
        try:
            wanted = next(gen)
            while True:
                came = yield wanted
                if came:
                    until = time.monotonic() + self.patience
                elif time.monotonic() > until:
                    self._look()
                    until = time.monotonic() + self.patience
                wanted = gen.send(came)
        except StopIteration as end:
            return end.value

    def _look(self) -> None:
        if self.probe is None:
            return
        try:
            self.probe()
        except psycopg.OperationalError as error:
            if state_of(error):  # it answers, if only to say no
                return
            self.close()
            raise
