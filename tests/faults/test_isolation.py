"""Nothing crosses a scope, however it is named, in a place that a thousand of them share."""

from __future__ import annotations

import json
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import servers
from retain import (
    AgentMemory,
    FileStore,
    JSONFileStore,
    Memory,
    NotFound,
    Scope,
    SQLiteStore,
    Store,
    SupabaseStore,
)
from retain.moving import copy_store
from retain.moving.export import export_lines
from retain.stores.memory import InMemoryStore
from retain.stores.opening import open_store
from retain.stores.postgres import PostgresStore
from retain.stores.redis import RedisStore
from served import Served

NAMES = [
    *("%", "_", "*", "?", ":", "::", "{}", "{a}", "}{", "[a-z]", "^", "$", ".", "..", "/", "a/b"),
    *("'", '"', "''", "\\", "\\\\", '"]', '","b",null]', '["ann",null,null]', "null", "None", "0"),
    *("ann", "Ann", "ANN", "anna", "ann ", " ann", "ann\0", "ann\0bob", "\0", "\x01", "\x01\x01"),
    *("ann\n", "\n", "\r\n", "\t", "ann%", "an_", "a*", "ann:m1", "ann;", "--", "'; DROP TABLE m"),
    *("аnn", "аnn\u0301", "café", "cafe\u0301", "CAFÉ", "straße", "strasse", "STRASSE", "ﬁ", "fi"),
    *("İ", "i\u0307", "ı", "I", "K", "\u212a", "Å", "\u212b", "東京", "東\u200b京", "\u202eann"),
    *("\ufeffann", "\ufffe", "\U0010ffff", "🏳️‍🌈", "🏳", "a" * 511, "a" * 512, "東" * 512),
]  # fmt: skip
"""Names that a pattern, a quote, a separator or a normalisation could take for another."""


def scopes_of(count: int) -> list[Scope]:
    """So many scopes, which differ in as little as can be."""
    random = Random(count)
    found = dict.fromkeys([Scope()])
    for name in NAMES:
        found[Scope(name)] = found[Scope(None, name)] = found[Scope(None, None, name)] = None
    made = list(found)
    random.shuffle(made)
    found = dict.fromkeys([Scope(), *made[: count - 1]])
    while len(found) < count:
        user, agent, session = (random.choice([None, *NAMES]) for _ in range(3))
        found[Scope(user, agent, session)] = None
    return list(found)


KINDS = ["memory", "sqlite", "file", "json", "postgres", "redis", "supabase"]


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[Store]:
    makers: dict[str, Callable[[], Store]] = {
        "memory": InMemoryStore,
        "sqlite": lambda: SQLiteStore(folder / "memory.db"),
        "file": lambda: FileStore(folder / "file"),
        "json": lambda: JSONFileStore(folder / "memory.json"),
        "postgres": lambda: PostgresStore(servers.new_database(), tell=False),
        "redis": lambda: RedisStore(servers.new_redis()),
        "supabase": supabase_store,
    }
    with makers[kind]() as store:
        yield store


def supabase_store() -> Store:
    import supabase

    project = servers.new_supabase(SupabaseStore.sql())
    return SupabaseStore(supabase.create_client(project, servers.SUPABASE_KEY))


class Population:
    """Scopes in one store, and what each of them must hold.

    The ids are the same in all of them, and so is most of the text: whatever crosses is seen.
    """

    def __init__(self, store: Store, scopes: list[Scope], each: int) -> None:
        self.store, self.scopes = store, scopes
        self.expected: dict[Scope, dict[str, str]] = {}
        for number, scope in enumerate(scopes):
            memories = [
                Memory(f"m{n}", f"a common note {n} of number{number}", persistent=n % 7 == 3)
                for n in range(each)
            ]
            memories.append(Memory(f"only{number}", f"a common secret of number{number}"))
            store.scoped(scope).save_many(memories)
            self.expected[scope] = {memory.id: memory.content for memory in memories}

    def attack(self, number: int) -> None:
        """Every call under one scope: what it gives is its own, and what it changes too."""
        scope = self.scopes[number]
        mine, other = self.expected[scope], (number + 1) % len(self.scopes)
        face = AgentMemory(self.store.scoped(scope))
        store = face.store
        foreign = f"only{other}"
        # read
        assert {m.id: m.content for m in store.list_all()} == mine
        assert all(m.scope == scope for m in store.list_all())
        assert face.memory_count == len(mine)
        assert face.get(foreign) is None
        assert store.peek([foreign, "m0"])[0].content == mine["m0"]
        assert {m.id: m.content for m in store.changes(0).saved} == mine
        for query in ("", "common note secret", f"number{other}", f"secret of number{other}"):
            found = face.recall(query, k=1000)
            assert {r.memory.id: r.memory.content for r in found}.items() <= mine.items()
        assert len(face.recall("common", k=1000)) == len(mine)
        lines = [json.loads(line) for line in export_lines(store)]
        assert {line["id"]: line["content"] for line in lines if "id" in line} == mine
        assert f"number{other} " not in face.get_context("common secret", k=50) + " "
        with InMemoryStore() as target:
            copy_store(self.store, target, scope=scope)
            assert target.scopes() == [scope]
            assert {m.id: m.content for m in target.scoped(scope).list_all()} == mine
        # change
        assert not face.forget(foreign)
        with pytest.raises(NotFound):
            face.update(foreign, content="taken")
        assert face.engine.forget_many([foreign, "nobody's"]) == 0
        face.update("m0", content=f"changed by number{number}")
        mine["m0"] = f"changed by number{number}"
        assert face.forget("m1")
        del mine["m1"]
        store.save(Memory("m2", f"replaced by number{number}"))
        mine["m2"] = f"replaced by number{number}"
        fact = store.write(
            [Memory("f", f"a common note 3 of number{other}", persistent=True)], unique=True
        )
        assert fact.duplicates == frozenset()  # that fact is another scope's
        mine["f"] = fact.saved[0].content
        assert face.prune() == 0

    def verify(self) -> None:
        """Every scope is as it should be, looked at one by one."""
        there = {scope for scope, memories in self.expected.items() if memories}
        assert set(self.store.scopes()) == there
        for scope, mine in self.expected.items():
            mine_there = self.store.scoped(scope).list_all()
            assert {m.id: m.content for m in mine_there} == mine, scope

    def forget(self, numbers: list[int]) -> None:
        """Forget whole scopes."""
        for number in numbers:
            scope = self.scopes[number]
            assert self.store.forget_scope(scope) == len(self.expected[scope])
            self.expected[scope] = {}
            assert self.store.scoped(scope).list_all() == []


def assert_isolated(kind: str, folder: Path, scopes: int, each: int, attacked: int) -> None:
    with opened(kind, folder) as store:
        population = Population(store, scopes_of(scopes), each)
        population.verify()
        numbers = Random(1).sample(range(scopes), attacked)
        for number in numbers:
            population.attack(number)
        population.verify()
        population.forget(numbers[:4])
        population.verify()
        assert store.check() == []


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow if kind in ("supabase", "json") else [])
        for kind in KINDS
    ],
)
def test_no_call_under_one_scope_gives_or_changes_what_is_anothers(
    kind: str, tmp_path: Path
) -> None:
    assert_isolated(kind, tmp_path, scopes=30, each=4, attacked=10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "scopes", "each"),
    [
        ("postgres", 1_000, 100),
        *((kind, 300, 20) for kind in ("memory", "sqlite", "file", "redis")),
        *(
            pytest.param(*much, marks=pytest.mark.thorough)
            for much in (
                *((kind, 1_000, 100) for kind in ("memory", "sqlite", "file", "redis")),
                ("json", 200, 10),  # which is written as a whole each time
                ("supabase", 200, 20),
            )
        ),
    ],
)
def test_a_thousand_scopes_stay_apart(kind: str, scopes: int, each: int, tmp_path: Path) -> None:
    assert_isolated(kind, tmp_path, scopes, each, attacked=100)


# -- over HTTP -----------------------------------------------------------------------------


class Over:
    """One token's view of a server."""

    def __init__(self, served: Served, scope: Scope) -> None:
        self.served, self.token = served, served.token(scope)

    def ask(self, method: str, target: str, body: Any = None) -> Any:
        return self.served.ask(method, target, body, self.token)

    def attack(self, mine: dict[str, str], foreign: str, scope: Scope, other: Scope) -> None:
        """Every route; ``foreign`` is an id that only ``other`` has."""
        exported = self.ask("GET", "/v1/export").body.decode().splitlines()
        lines = [json.loads(line) for line in exported]
        assert {line["id"]: line["content"] for line in lines if "id" in line} == mine
        assert self.ask("GET", "/v1/count").json["count"] == len(mine)
        body = {"query": f"common secret of {foreign}", "k": 100}
        results = self.ask("POST", "/v1/recall", body).json["results"]
        found = {each["memory"]["id"]: each["memory"]["content"] for each in results}
        assert found.items() <= mine.items() and found
        listed = self.ask("GET", "/v1/memories?limit=100").json["memories"]
        assert {each["id"]: each["content"] for each in listed}.items() <= mine.items()
        for method, body in (("GET", None), ("DELETE", None), ("PATCH", {"content": "taken"})):
            assert self.ask(method, f"/v1/memories/{quote(foreign)}", body).status == 404
        widened = {"content": "planted", "scope": other.to_dict() or {"user": "x"}}
        assert self.ask("POST", "/v1/memories", widened).status in (400, 422)
        answer = self.ask("PATCH", "/v1/memories/m0", {"content": "changed over HTTP"})
        assert answer.status == 200
        mine["m0"] = "changed over HTTP"
        assert self.ask("DELETE", "/v1/memories/m1").status in (200, 204)
        del mine["m1"]


def assert_isolated_over_http(folder: Path, url: str, scopes: int, each: int, asked: int) -> None:
    with open_store(url) as store:
        population = Population(store, scopes_of(scopes), each)
    with Served(folder, store=url) as served:
        numbers = Random(2).sample(range(scopes), asked)
        views = [Over(served, population.scopes[number]) for number in numbers]
        served.process.send_signal(signal.SIGHUP)  # it reads the tokens
        wait_for_tokens(views)
        for number, view in zip(numbers, views, strict=True):
            scope, other = population.scopes[number], (number + 1) % scopes
            view.attack(population.expected[scope], f"only{other}", scope, population.scopes[other])
    with open_store(url) as store:
        population.store = store
        population.verify()


def wait_for_tokens(views: list[Over]) -> None:
    give_up = time.monotonic() + 30
    while any(view.ask("GET", "/v1/count").status == 401 for view in views):
        assert time.monotonic() < give_up
        time.sleep(0.05)


URLS: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder / 'served.db'}",
    "postgres": lambda folder: servers.new_database(),
    "redis": lambda folder: servers.new_redis(),
}


@pytest.mark.parametrize(
    "kind",
    [
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.slow),
        pytest.param("redis", marks=pytest.mark.slow),
    ],
)
def test_no_request_under_one_token_gives_or_changes_what_is_anothers(
    kind: str, tmp_path: Path
) -> None:
    assert_isolated_over_http(tmp_path, URLS[kind](tmp_path), scopes=40, each=4, asked=12)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["postgres", "sqlite", "redis"])
def test_tokens_of_a_thousand_scopes_stay_apart(kind: str, tmp_path: Path) -> None:
    assert_isolated_over_http(tmp_path, URLS[kind](tmp_path), scopes=1_000, each=100, asked=100)


# -- any history ---------------------------------------------------------------------------

CHARACTERS = st.characters(exclude_categories=["Cs"])
PARTS = st.none() | st.sampled_from(NAMES) | st.text(CHARACTERS, min_size=1, max_size=5)
SCOPES = st.lists(st.builds(Scope, PARTS, PARTS, PARTS), min_size=2, max_size=5, unique=True)
IDS = st.sampled_from(["m1", "m2", "m3", "*", "%"])
OPERATIONS = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from(["save", "delete", "update", "get", "recall", "forget_scope", "fact"]),
        IDS,
    ),
    max_size=20,
)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            kind, marks=[] if kind in ("sqlite", "postgres", "redis") else pytest.mark.slow
        )
        for kind in ("memory", "sqlite", "file", "json", "postgres", "redis")
    ],
)
@given(scopes=SCOPES, operations=OPERATIONS)
@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_history_leaves_each_scope_what_was_done_in_it(
    kind: str,
    scopes: list[Scope],
    operations: list[tuple[int, str, str]],
    shared_stores: dict[str, Store],
) -> None:
    store = shared_stores[kind]
    for scope in store.scopes():
        store.forget_scope(scope)
    model: dict[Scope, dict[str, str]] = defaultdict(dict)
    faces = [AgentMemory(store.scoped(scope)) for scope in scopes]
    for step, (who, what, id) in enumerate(operations):
        face = faces[who % len(faces)]
        mine, text = model[face.scope], f"step {step}"
        if what == "save":
            face.store.save(Memory(id, text))
            mine[id] = text
        elif what == "fact":
            written = face.store.write([Memory(id, "one fact", persistent=True)], unique=True)
            equal = {i for i, c in mine.items() if c == "one fact"} - {id}
            assert bool(written.duplicates) == bool(equal)
            if not equal:
                mine[id] = "one fact"
        elif what == "delete":
            assert face.forget(id) == (mine.pop(id, None) is not None)
        elif what == "update" and id in mine:
            mine[id] = face.update(id, content=text, persistent=False).content
        elif what == "get":
            found = face.get(id)
            assert (found and found.content) == mine.get(id)
        elif what == "recall":
            for query in ("", "step one fact"):
                found_all = {r.memory.id: r.memory.content for r in face.recall(query, k=50)}
                assert found_all == mine
        elif what == "forget_scope":
            assert store.forget_scope(face.scope) == len(mine)
            mine.clear()
    assert set(store.scopes()) == {scope for scope, mine in model.items() if mine}
    for face in faces:
        assert {m.id: m.content for m in face.store.list_all()} == model[face.scope]


@pytest.fixture(scope="module")
def shared_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Store]]:
    """A store of each kind, opened when it is first asked for."""
    folder = tmp_path_factory.mktemp("any-history")

    class Stores(dict):  # type: ignore[type-arg]
        def __missing__(self, kind: str) -> Store:
            self[kind] = stack.enter_context(opened(kind, folder))
            return self[kind]

    with ExitStack() as stack:
        yield Stores()
