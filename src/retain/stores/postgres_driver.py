"""A driver that is calls of the functions in a PostgreSQL database, however they get there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..models import Memory
from ..scope import Scope
from . import postgres_calls as calls
from .base import PAGE, Changes, Driver, Problem, Selection, Written, fact_key
from .postgres_calls import Call
from .postgres_schema import given, kept, to_memory

__all__ = ["CallingDriver"]

_UNREADABLE = (ValueError, TypeError, RecursionError)


class CallingDriver(Driver):
    """All of a driver but how a function is called, which a subclass says.

    No lock is held while the database works: threads go on side by side.
    """

    channel: str | None = None
    """Where writes are told of, if they are."""

    @abstractmethod
    def rows(self, call: Call) -> list[Any]:
        """What a function answers, a sequence of its columns for each row.

        Called again after a lost connection, where that is safe. Raises ``StoreFailed`` and its
        kinds, and ``Conflict``.
        """

    @abstractmethod
    def _renew(self) -> None:
        """Let go of what is the parent's, in the child of a fork; the lock is held."""

    @contextmanager
    def _own(self) -> Iterator[None]:
        """The lock, and what is this process's; a closed store refuses."""
        with self._lock:
            if self._forked():
                self._renew()
            self._usable()
            yield

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
        with self._retrievals_of(scope) as retrieved:
            copied, tell = self._copies(save), self.channel
            call = calls.write(scope, save, delete, unique, expect, retrieved, tell, copied=copied)
            rows = self._sent(call, save)
        return calls.written(scope, save, rows)

    def _copies(self, save: Sequence[Memory]) -> bool:
        """Whether these go through COPY."""
        return False

    def _sent(self, call: Call, save: Sequence[Memory]) -> list[Any]:
        """The rows of a write, to which ``save`` belongs."""
        return self.rows(call)

    @contextmanager
    def _retrievals_of(self, scope: Scope) -> Iterator[Mapping[str, tuple[int, float]]]:
        """The counts of a scope that wait, which are written meanwhile; they wait again if not."""
        with self._own():
            taken = self._retrievals.pop(scope, {})
        try:
            yield taken
        except BaseException:
            with self._lock:
                waiting = self._retrievals.setdefault(scope, {})
                for id, (count, last) in taken.items():
                    more, later = waiting.get(id, (0, last))
                    waiting[id] = (count + more, max(last, later))
            raise

    def forget_scope(self, scope: Scope) -> int:
        # Called again, it would say that there were none.
        call = Call("forget_scope", {"key": kept(scope.key), "tell": self.channel}, repeats=False)
        with self._retrievals_of(scope):  # which are gone with it, unless it fails
            return int(self.rows(call)[0][0])

    # -- reading ---------------------------------------------------------------------------

    def fetch(self, scope: Scope, ids: Sequence[str]) -> list[Memory]:
        if not ids:
            with self._own():  # a closed store refuses every call
                pass
            return []
        found = {memory.id: memory for memory in self._memories(calls.fetch(scope, ids), scope)}
        return [found[id] for id in ids if id in found]

    def select(self, scope: Scope, selection: Selection) -> list[Memory]:
        return self._memories(calls.listing(scope, selection), scope)

    def count(self, scope: Scope, selection: Selection) -> int:
        call = Call("count", {"key": kept(scope.key), **calls.narrowed(selection)})
        return int(self.rows(call)[0][0])

    def changes(self, scope: Scope, since: int) -> Changes:
        call = Call("changes", {"key": kept(scope.key), "since": since})
        [(revision, reset, deleted)] = self.rows(call)
        begin = 0 if reset else since
        saved = self._saved(scope, begin, revision) if begin < revision else iter(())
        return Changes(saved, [given(id) for id in deleted or ()], revision, reset)

    def _saved(self, scope: Scope, since: int, until: int) -> Iterator[Memory]:
        while since < until:
            rows = self.rows(calls.saved(scope, since, until, PAGE))
            if not rows:
                return
            yield from (to_memory(row, scope) for row in rows)
            since = rows[-1][-1]

    def _memories(self, call: Call, scope: Scope) -> list[Memory]:
        return [to_memory(row, scope) for row in self.rows(call)]

    def revision(self) -> int:
        return int(self.rows(Call("last"))[0][0])

    def scopes(self) -> list[Scope]:
        found: list[Scope] = []
        after = 0
        while rows := self.rows(Call("all_scopes", {"after": after, "most": PAGE})):
            found += (Scope.from_key(given(key)) for _, key in rows)
            after = rows[-1][0]
        return found

    # -- the place as a whole --------------------------------------------------------------

    def check(self, fix: bool = False) -> list[Problem]:
        """Every row against the rules of the record, and what was derived of it.

        With ``fix``: derived columns are set right, and rows that are no memories put into the
        table ``set_aside``. Whether the database itself is sound only its own tools can tell.
        """
        problems = []
        for scope in self.scopes():
            for key, row, reason in self._faults(scope):
                problems.append(Problem(f"memory {given(key)!r}: {reason}", fix))
                if fix:
                    self._mend(scope, key, row)
        return problems

    def _faults(self, scope: Scope) -> Iterator[tuple[str, Sequence[Any], str]]:
        after = ""
        while rows := self.rows(calls.inspect(scope, after, PAGE)):
            for key, fact, expires, last, *row in rows:
                reason = _fault(row, fact, expires, scope, last)
                if reason:
                    yield key, row, reason
            after = rows[-1][0]

    def _mend(self, scope: Scope, key: str, row: Sequence[Any]) -> None:
        try:
            memory = to_memory(row, scope).checked()
        except _UNREADABLE:
            self.rows(Call("put_aside", {"key": kept(scope.key), "ids": [key]}))
        else:
            self.write(scope, [memory])

    def _write_counts(self) -> None:
        """Write all retrieval counts that wait."""
        for scope in list(self._retrievals):
            with self._retrievals_of(scope) as retrieved:
                if retrieved:
                    self.rows(calls.write(scope, (), (), False, None, retrieved, None))


def _fault(
    row: Sequence[Any], fact: str | None, expires: float | None, scope: Scope, last: int
) -> str | None:
    """What is wrong with a row, if anything."""
    try:
        memory = to_memory(row, scope).checked()
    except _UNREADABLE as error:
        return str(error)
    if (fact, expires) != (fact_key(memory), memory.expires_at):
        return "its derived columns are wrong"
    if memory.revision > last:
        return f"its revision {memory.revision} is beyond the scope's {last}"
    return None
