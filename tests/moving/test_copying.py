from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import retain
import servers
from retain import (
    Conflict,
    FileStore,
    InMemoryStore,
    InvalidType,
    InvalidValue,
    KnowledgeMemory,
    Memory,
    NotFound,
    Scope,
    SQLiteStore,
    Store,
)
from retain.moving import copying
from retain.moving.copying import copy_store
from retain.testing.strategies import HOSTILE, json_objects, memories, texts

PLACES: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda place: f"sqlite:{place}/store.db",
    "file": lambda place: f"file:{place}/folder",
    "json": lambda place: f"file:{place}/store.json",
    "memory": lambda place: "memory:",
}
"""What gives the URL of a new and empty store of each kind."""


def new_redis() -> str:
    """A part of a database of its own, so that one test can have two."""
    return f"{servers.redis_url().rsplit('/', 1)[0]}/14?prefix={uuid.uuid4().hex}"


for module, new in (("postgres", servers.new_database), ("redis", new_redis)):
    if importlib.util.find_spec(f"retain.stores.{module}"):
        PLACES[module] = lambda place, new=new: new()


@pytest.fixture(params=PLACES)
def source(request, tmp_path: Path) -> Iterator[Store]:
    with retain.open(PLACES[request.param](tmp_path / "source")) as store:
        yield store


@pytest.fixture(params=PLACES)
def target(request, tmp_path: Path) -> Iterator[Store]:
    with retain.open(PLACES[request.param](tmp_path / "target")) as store:
        yield store


@pytest.fixture
def old() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def new() -> InMemoryStore:
    return InMemoryStore()


def filled(store: Store) -> Store:
    """A store with what is easily lost: scopes, expired and equal ones, counts, awkward texts."""
    store.save_many(
        [
            Memory("same", "Likes tea", persistent=True, created_at=1e9),
            Memory("same too", "Likes tea", persistent=True, created_at=1e9),
            Memory("gone", "long ago", ttl_days=1.0, created_at=1e9),
            Memory("soon", "not yet", ttl_days=1e5, tags=["a", "b"], source="Ann"),
            Memory("seen", "often", access_count=7, last_accessed=1.5e9, importance_score=0.3),
            Memory("n", "numbers", metadata={"a": [1, 1.0, True, None, {"b": "東京"}], "c": 2**53}),
        ]
    )
    store.scoped(Scope("ann")).save(Memory("same", "Likes coffee"))
    hostile = store.scoped(Scope("%", "*", "{}'\""))
    hostile.save_many([Memory(f"{n}", text) for n, text in enumerate(HOSTILE)])
    return store


def content(store: Store) -> dict[str, Any]:
    """All that a store holds, by scope and id."""
    found: dict[str, Any] = {}
    for scope in store.scopes():
        for memory in store.scoped(scope).changes(0).saved:
            record = memory.to_dict()
            del record["revision"]
            record["ttl_days"] = record["ttl_days"] and float(record["ttl_days"])
            found[f"{scope.key} {memory.id}"] = json.dumps(record, sort_keys=True)
    return found


def test_everything_arrives_in_a_store_of_any_kind(source: Store, target: Store):
    before = content(filled(source))
    report = copy_store(source, target)
    arrived = content(target)
    if report.total("dropped"):  # a store may delete what is over its time to live
        assert before.pop("[null,null,null] gone")
        assert report.total("dropped") == 1
    assert arrived == before
    assert report.verified
    assert report.total("copied") == report.total("memories") == len(before)
    assert content(source) == before or report.total("dropped")
    again = copy_store(source, target)
    assert again.verified
    assert (again.total("copied"), again.total("same")) == (0, len(before))


def test_what_is_there_already_is_not_written_again(old: Store, new: Store):
    filled(old)
    copy_store(old, new)
    revision = new.revision
    report = copy_store(old, new)
    assert new.revision == revision
    assert (report.total("copied"), report.total("replaced")) == (0, 0)


def test_a_copy_catches_up(old: Store, new: Store):
    filled(old)
    copy_store(old, new)
    old.save(Memory("same", "Likes juice", updated_at=2e9, created_at=1e9))
    old.save(Memory("more", "new"))
    report = copy_store(old, new)
    assert (report.total("copied"), report.total("replaced")) == (1, 1)
    assert report.verified
    assert content(new) == content(old)


def test_numbers_that_python_takes_for_equal_are_told_apart(old: Store, new: Store):
    old.save(Memory("m", metadata={"a": 1}, created_at=1.0))
    new.save(Memory("m", metadata={"a": True}, created_at=1.0))
    assert copy_store(old, new).total("replaced") == 1
    assert new.peek(["m"])[0].metadata["a"] is not True


def test_what_was_updated_later_in_the_destination_stays(old: Store, new: Store):
    old.save(Memory("m", "old", created_at=1e9))
    new.save(Memory("m", "new", created_at=1e9, updated_at=1.5e9))
    report = copy_store(old, new)
    assert (report.total("newer"), report.total("replaced"), report.verified) == (1, 0, True)
    assert new.peek(["m"])[0].content == "new"
    assert copy_store(old, new, mirror=True).total("replaced") == 1
    assert new.peek(["m"])[0].content == "old"


def test_a_retrieval_count_never_falls(old: Store, new: Store):
    old.save(Memory("m", access_count=2, last_accessed=1e9))
    copy_store(old, new)
    new.get("m")
    old.get("m")
    old.get("m")
    report = copy_store(old, new)
    assert report.verified
    assert new.peek(["m"])[0].access_count == 4
    new.get("m")
    assert copy_store(old, new).total("same") == 1
    assert new.peek(["m"])[0].access_count == 5


def test_deletions_are_copied_by_a_mirror_alone(old: Store, new: Store):
    filled(old)
    copy_store(old, new)
    old.delete("same")
    old.forget_scope(Scope("ann"))
    new.save(Memory("mine", "own"))
    report = copy_store(old, new)
    assert (report.total("beyond"), report.total("deleted"), report.verified) == (2, 0, True)
    report = copy_store(old, new, mirror=True)
    assert (report.total("beyond"), report.total("deleted"), report.verified) == (0, 3, True)
    assert content(new) == content(old)


def test_one_scope_can_be_copied_alone(old: Store, new: Store):
    filled(old)
    new.scoped(Scope("bob")).save(Memory("his"))
    report = copy_store(old, new, scope=Scope("ann"), mirror=True)
    assert [each.scope for each in report.scopes] == [Scope("ann")]
    assert set(new.scopes()) == {Scope("ann"), Scope("bob")}


def test_the_scope_that_a_store_is_bound_to_plays_no_part(old: Store, new: Store):
    filled(old)
    copy_store(old.scoped(Scope("ann")), new.scoped(Scope("bob")))
    assert content(new) == content(old)


@pytest.mark.parametrize("mirror", [False, True])
def test_an_empty_source_is_told_and_empties_nothing(old: Store, new: Store, mirror: bool):
    new.save(Memory("mine"))
    with pytest.raises(NotFound, match="nothing to copy"):
        copy_store(old, new, mirror=mirror)
    assert new.count() == 1


def test_a_store_is_not_copied_to_itself(tmp_path: Path, old: Store):
    with pytest.raises(InvalidValue, match="same place"):
        copy_store(filled(old), old.scoped(Scope("ann")))
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    with (
        SQLiteStore(tmp_path / "a.db") as one,
        SQLiteStore(tmp_path / "link" / "a.db") as other,
        pytest.raises(InvalidValue, match="same place"),
    ):
        copy_store(filled(one), other)


@pytest.mark.parametrize("kind", [kind for kind in PLACES if kind != "memory"])
def test_a_store_that_is_opened_twice_is_one_place(tmp_path: Path, kind: str):
    url = PLACES[kind](tmp_path)
    with (
        retain.open(url) as one,
        retain.open(url) as other,
        pytest.raises(InvalidValue, match="same place"),
    ):
        copy_store(filled(one), other)


def test_a_backup_is_another_place(tmp_path: Path):
    with SQLiteStore(tmp_path / "a.db") as store:
        filled(store).backup(tmp_path / "b.db")
        with SQLiteStore(tmp_path / "b.db") as backup:
            assert copy_store(store, backup).total("same") == len(content(store))


def test_what_is_no_store_is_refused(old: Store):
    with pytest.raises(InvalidType):
        copy_store("memory:", old)
    with pytest.raises(InvalidType):
        copy_store(old, KnowledgeMemory)


def test_nothing_is_written_to_the_source(tmp_path: Path, new: Store):
    with SQLiteStore(tmp_path / "a.db") as store:
        filled(store)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with SQLiteStore(tmp_path / "a.db") as store:
        copy_store(store, new, mirror=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_digest_depends_on_the_content_and_not_on_its_order(old: Store, new: Store):
    some = [Memory(f"{n}", f"text {n}", created_at=float(n)) for n in range(5)]
    old.save_many(some)
    new.save_many(some[::-1])
    first, second = (copy_store(each, InMemoryStore()).scopes[0] for each in (old, new))
    assert first.digest == second.digest == first.arrived_digest
    old.save(some[0].copy(source="else"))
    assert copy_store(old, InMemoryStore()).scopes[0].digest != first.digest


class Forgetful(InMemoryStore):
    """A store that says it has saved, and has lost something of it."""

    def __init__(self, spoil: Callable[[Memory], Memory | None]) -> None:
        super().__init__()
        write = self.driver.write

        def spoiled(scope: Scope, save: Any = (), *rest: Any, **options: Any) -> Any:
            kept = [each for memory in save if (each := spoil(memory)) is not None]
            return write(scope, kept, *rest, **options)

        self.driver.write = spoiled  # type: ignore[method-assign]


def test_what_did_not_arrive_is_found(old: Store):
    filled(old)
    report = copy_store(old, Forgetful(lambda memory: None if memory.id == "n" else memory))
    (bad,) = [each for each in report.scopes if not each.verified]
    assert not report.verified
    assert (bad.memories, bad.arrived) == (6, 5)


def test_what_arrived_otherwise_is_found(old: Store):
    filled(old)
    report = copy_store(old, Forgetful(lambda memory: memory.copy(source="x")))
    assert not report.verified
    assert all(each.memories == each.arrived for each in report.scopes)
    assert all(each.digest != each.arrived_digest for each in report.scopes)


def test_progress_goes_one_way_and_ends_where_all_is_done(old: Store, new: Store, monkeypatch):
    monkeypatch.setattr(copying, "_BATCH", 4)
    filled(old)
    told: list[tuple[int, int]] = []
    copy_store(old, new, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (2 * len(content(old)),) * 2


@pytest.mark.parametrize("batch", [1, 2, 3, 1000])
def test_batches_of_any_size_bring_the_same(old: Store, new: Store, monkeypatch, batch: int):
    monkeypatch.setattr(copying, "_BATCH", batch)
    filled(old)
    new.save(Memory("mine"))
    assert copy_store(old, new, mirror=True).verified
    assert content(new) == content(old)


def scopes() -> st.SearchStrategy[Scope]:
    names = st.none() | texts(5).filter(bool)
    return st.builds(Scope, names, names, names)


@given(
    st.dictionaries(scopes(), st.lists(memories(), max_size=4), max_size=3),
    st.lists(memories(), max_size=3),
    json_objects(),
)
def test_any_content_arrives_whole(
    told: dict[Scope, list[Memory]], there: list[Memory], metadata: dict[str, Any]
):
    with InMemoryStore() as old, InMemoryStore() as new:
        old.save(Memory("always", metadata=metadata))
        for scope, some in told.items():
            old.scoped(scope).save_many(some)
        new.save_many(there)
        assert copy_store(old, new, mirror=True).verified
        assert content(new).keys() == content(old).keys()
        both = zip(sorted(content(new).items()), sorted(content(old).items()), strict=True)
        for (_, one), (_, other) in both:
            assert neutral(one) == neutral(other)
        assert copy_store(old, new).total("same") == len(content(old))


def neutral(record: str) -> dict[str, Any]:
    """Without the counts, which may be greater where something was there."""
    return {**json.loads(record), "access_count": 0, "last_accessed": 0}


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_content_arrives_whole_in_a_store_of_any_kind(target: Store, data: st.DataObject):
    with InMemoryStore() as old:
        for scope in data.draw(st.lists(scopes(), min_size=1, max_size=2, unique=True)):
            some = st.lists(memories(), min_size=1, max_size=5, unique_by=lambda each: each.id)
            old.scoped(scope).save_many(data.draw(some))
        report = copy_store(old, target, mirror=True)  # what the last example left goes
        assert report.verified
        before, arrived = content(old), content(target)
        assert arrived.keys() <= before.keys()
        assert len(before) - len(arrived) == report.total("dropped")
        assert all(neutral(arrived[key]) == neutral(before[key]) for key in arrived)


# -- while others write ------------------------------------------------------------------------


def meddling(store: Store, at: int, meddle: Callable[[], None]) -> None:
    """Let something happen just before the ``at``-th fetch from a store."""
    fetch, calls = store.driver.fetch, iter(range(1000))

    def fetched(*arguments: Any) -> list[Memory]:
        if next(calls) == at:
            meddle()
        return fetch(*arguments)

    store.driver.fetch = fetched  # type: ignore[method-assign]


def after_fetch(store: Store, meddle: Callable[[], None]) -> None:
    """Let something happen once, just after the first fetch from a store."""
    fetch, left = store.driver.fetch, [meddle]

    def fetched(*arguments: Any) -> list[Memory]:
        found = fetch(*arguments)
        if left:
            left.pop()()
        return found

    store.driver.fetch = fetched  # type: ignore[method-assign]


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_source_that_changes_is_told_and_the_next_run_catches_up(
    old: Store, new: Store, monkeypatch, at: int
):
    monkeypatch.setattr(copying, "_BATCH", 3)
    old.save_many([Memory(f"{n}", created_at=float(n)) for n in range(6)])

    def meddle() -> None:
        old.save_many([Memory("1", "changed"), Memory("9", "new")])
        old.delete("5")

    meddling(new, at, meddle)
    report = copy_store(old, new, mirror=True)
    assert report.changed
    assert report.verified
    report = copy_store(old, new, mirror=True)
    assert (report.changed, report.verified) == (False, True)
    assert content(new) == content(old)


def test_a_destination_that_others_write_to_loses_nothing(old: Store, new: Store):
    old.save(Memory("m", "old", created_at=1e9, updated_at=1.2e9))
    new.save(Memory("m", "older", created_at=1e9))
    after_fetch(new, lambda: new.save(Memory("m", "newest", created_at=1e9, updated_at=1.5e9)))
    report = copy_store(old, new)
    assert (report.total("newer"), report.verified) == (1, True)
    assert new.peek(["m"])[0].content == "newest"


def test_a_destination_that_others_keep_writing_to_is_given_up(old: Store, new: Store):
    old.save(Memory("m", "mine", created_at=1e9))
    new.save(Memory("m", "theirs", created_at=1e9))
    fetch = new.driver.fetch

    def fetched(*arguments: Any) -> list[Memory]:
        found = fetch(*arguments)
        new.save(Memory("m", "theirs", created_at=1e9))
        return found

    new.driver.fetch = fetched  # type: ignore[method-assign]
    with pytest.raises(Conflict, match="run the copy again"):
        copy_store(old, new)
    assert new.page(1)[0].content == "theirs"


def test_a_source_that_is_written_to_all_the_while_is_copied(tmp_path: Path):
    with SQLiteStore(tmp_path / "a.db") as old, SQLiteStore(tmp_path / "b.db") as new:
        old.save_many([Memory(f"{n}") for n in range(2_000)])
        stop = threading.Event()

        def write() -> None:
            with SQLiteStore(tmp_path / "a.db") as own:
                for n in range(100_000):
                    own.write([Memory(f"{n % 3_000}", f"{n}")], [f"{n * 7 % 3_000}"])
                    if stop.is_set():
                        return

        writer = threading.Thread(target=write)
        writer.start()
        try:
            assert copy_store(old, new).verified
        finally:
            stop.set()
            writer.join()
        report = copy_store(old, new, mirror=True)
        assert (report.verified, report.changed) == (True, False)
        assert content(new) == content(old)


COPY = """
import os, signal, sys
import retain
from retain.moving.copying import copy_store

source, target, batches = sys.argv[1:]
left = int(batches)
with retain.open(source) as old, retain.open(target) as new:
    write = new.driver.write

    def writing(*arguments, **options):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return write(*arguments, **options)

    new.driver.write = writing
    copy_store(old, new)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.parametrize("kind", [kind for kind in PLACES if kind != "memory"])
def test_a_copy_that_was_killed_is_finished_by_the_next(tmp_path: Path, kind: str):
    source = f"sqlite:{tmp_path}/a.db"
    target = PLACES[kind](tmp_path / "target")
    with retain.open(source) as old:
        old.save_many([Memory(f"{n}", f"text {n}") for n in range(2_500)])
        run = subprocess.run([sys.executable, "-c", COPY, source, target, "2"])
        assert run.returncode == -signal.SIGKILL
        with retain.open(target) as new:
            assert new.count() == 2_000
            report = copy_store(old, new)
            assert (report.total("same"), report.total("copied")) == (2_000, 500)
            assert report.verified
            assert content(new) == content(old)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_copy_killed_at_any_time_is_finished_by_the_next(tmp_path: Path):
    source, target = f"sqlite:{tmp_path}/a.db", f"sqlite:{tmp_path}/b.db"
    with retain.open(source) as old:
        for start in range(0, 50_000, 5_000):
            old.save_many([Memory(f"{n}", f"text {n}") for n in range(start, start + 5_000)])
        for seconds in (0.6, 0.9, 1.2, 1.5, 1.8):
            run = subprocess.Popen([sys.executable, "-c", COPY, source, target, "-1"])
            try:
                run.wait(seconds)
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()
            with retain.open(target) as new:
                assert new.count() % 1_000 == 0
                assert new.check() == []
        with retain.open(target) as new:
            assert copy_store(old, new).verified
            assert content(new) == content(old)


def test_the_report_is_json(old: Store, new: Store):
    filled(old)
    report = json.loads(json.dumps(copy_store(old, new).to_dict()))
    assert report["verified"] is True
    assert {"user": "ann"} in [each["scope"] for each in report["scopes"]]


def test_a_row_that_cannot_be_read_is_told(tmp_path: Path, new: Store, caplog):
    import sqlite3

    with SQLiteStore(tmp_path / "a.db") as old:
        filled(old)
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("UPDATE memories SET metadata = '{' WHERE id = 'n'")
    database.close()
    with SQLiteStore(tmp_path / "a.db") as old:
        report = copy_store(old, new)
    assert not report.verified
    assert report.total("unreadable") == 1
    assert "can't be read" in caplog.text


def test_a_store_of_files_holds_what_was_copied_when_it_is_opened_again(tmp_path: Path, old: Store):
    with FileStore(tmp_path / "files") as new:
        copy_store(filled(old), new)
    with FileStore(tmp_path / "files") as new:
        assert content(new) == content(old)
