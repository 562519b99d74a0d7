"""An event loop on a thread, and a store whose every call it carries."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from retain import Changes, Driver, Memory, Problem, Scope, Selection, Store, Written, awaiting


class Loop:
    """An event loop on a thread of its own, until it is ended."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def carry(self, function: Any, *arguments: Any, **named: Any) -> Any:
        """What ``function`` gives, carried by a task of the loop."""
        task = awaiting.carried(function, *arguments, **named)
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(120)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class CarriedDriver(Driver):
    """A driver that is only ever called by tasks of an event loop."""

    def __init__(self, real: Driver) -> None:
        super().__init__()
        assert real.awaits
        self._real, self._loop = real, Loop()
        self.retrieved = real.retrieved  # type: ignore[method-assign]
        self.with_retrievals = real.with_retrievals  # type: ignore[method-assign]
        self.index_files = real.index_files  # type: ignore[method-assign]

    def write(self, scope: Scope, *given: Any, **named: Any) -> Written:
        return self._loop.carry(self._real.write, scope, *given, **named)

    def fetch(self, scope: Scope, ids: Sequence[str]) -> list[Memory]:
        return self._loop.carry(self._real.fetch, scope, ids)

    def select(self, scope: Scope, selection: Selection) -> list[Memory]:
        return self._loop.carry(self._real.select, scope, selection)

    def count(self, scope: Scope, selection: Selection) -> int:
        return self._loop.carry(self._real.count, scope, selection)

    def changes(self, scope: Scope, since: int) -> Changes:
        found = self._loop.carry(self._real.changes, scope, since)
        return replace(found, saved=self._steps(found.saved))

    def _steps(self, saved: Iterator[Memory]) -> Iterator[Memory]:
        while (memory := self._loop.carry(next, saved, None)) is not None:
            yield memory

    def revision(self) -> int:
        return self._loop.carry(self._real.revision)

    def scopes(self) -> list[Scope]:
        return self._loop.carry(self._real.scopes)

    def forget_scope(self, scope: Scope) -> int:
        return self._loop.carry(self._real.forget_scope, scope)

    def check(self, fix: bool = False) -> list[Problem]:
        return self._loop.carry(self._real.check, fix)

    def backup(self, path: Path) -> None:
        self._loop.carry(self._real.backup, path)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.carry(self._real.leave)
            self._real.close()
            self._loop.end()

    def __getattribute__(self, name: str) -> Any:
        # A closed driver refuses by the real one, whose loop is gone by then.
        found = super().__getattribute__(name)
        if name in _CALLS and super().__getattribute__("_closed"):
            return getattr(super().__getattribute__("_real"), name)
        return found


_CALLS = {"write", "fetch", "select", "count", "changes", "scopes", "forget_scope", "check"}


def carried(store: Store) -> Store:
    """The same store, as the tasks of an event loop have it."""
    return Store(CarriedDriver(store.driver), store.scope)
