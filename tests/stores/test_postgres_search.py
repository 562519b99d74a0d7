"""Native search: candidates from real PostgreSQL servers, ranked by the engine."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql
from psycopg.conninfo import make_conninfo

import servers
from retain import Filter, InMemoryStore, InvalidValue, Memory, PostgresStore, Scope, awaiting
from retain import native as module
from retain.engine import Engine
from retain.errors import EmbeddingFailed
from retain.search.blend import Blend
from retain.search.embedders import default_embedder
from retain.testing import StoreConformance
from retain.testing.strategies import HOSTILE, texts

NOW = 1_790_000_000.0
WORDS = "tea cat köln 東京 варенье ship train router cellar green".split()


@pytest.fixture(scope="module")
def database() -> str:
    return servers.new_database()


def opened(url: str, schema: str | None = None, **more: Any) -> PostgresStore:
    schema = schema or f"t_{uuid.uuid4().hex[:20]}"
    return PostgresStore(url, schema=schema, native_search=True, **more)


@pytest.fixture
def store(database: str) -> Iterator[PostgresStore]:
    with opened(database) as store:
        yield store


def plain(store: PostgresStore) -> PostgresStore:
    """The same place, opened by who knows nothing of native search."""
    return PostgresStore(store.driver._url, schema=store.driver.schema)


def answered(store: PostgresStore, text: str, *arguments: Any) -> list[Any]:
    """What a statement about the side index answers (SIDE: its schema), for all scopes."""
    [side] = {search._schema for search in store.driver._searches.values()}
    with psycopg.connect(store.driver._url, autocommit=True) as connection:
        connection.execute("SELECT set_config('retain.scope', '*', false)")
        statement = text.replace("SIDE", f'"{side}"').replace("STORE", store.driver.schema)
        cursor = connection.execute(statement, arguments)
        return cursor.fetchall() if cursor.description else []


def assert_in_step(store: PostgresStore) -> None:
    """Nothing is in the side index but what the memories are, and it counts itself rightly."""
    lost = answered(
        store,
        "SELECT t.id FROM SIDE.terms t LEFT JOIN STORE.memories m"
        " ON m.scope = t.scope AND m.id = t.id AND m.revision = t.revision WHERE m.id IS NULL",
    )
    assert lost == []
    counted = answered(store, "SELECT scope, term, n, length FROM SIDE.counts ORDER BY 1, 2")
    held = answered(
        store,
        "SELECT scope, k # scope, count(*), sum(length)::bigint FROM SIDE.terms, unnest(keys) k"
        " GROUP BY 1, 2 ORDER BY 1, 2",
    )
    assert counted == held
    rows = answered(store, "SELECT scope, rows FROM SIDE.level WHERE rows > 0 ORDER BY 1")
    assert rows == answered(store, "SELECT scope, count(*) FROM SIDE.terms GROUP BY 1 ORDER BY 1")


def ids(found: list[Any]) -> list[str]:
    return [each.memory.id for each in found]


def turns(count: int, seed: int = 1) -> list[Memory]:
    chance = random.Random(seed)
    return [
        Memory(
            f"m{at}",
            " ".join(chance.choices(WORDS, range(1, len(WORDS) + 1), k=chance.randint(1, 8))),
            importance_score=chance.choice((0.1, 0.5, 0.9)),
            metadata={"session": at // 7, "turn": at % 7, "role": chance.choice(("user", "Ann"))},
            tags=[chance.choice(("red", "blue"))],
            category=chance.choice(("general", "places")),
            created_at=NOW - chance.randint(0, 40) * 86_400.0,
        )
        for at in range(count)
    ]


@pytest.mark.slow
class TestNativeStore(StoreConformance):
    """What every store must do, it does with a side index that follows."""

    histories = 5

    @pytest.fixture(autouse=True)
    def _database(self, database: str) -> None:
        self.url = database

    def open_store(self, place: Path) -> PostgresStore:
        store = opened(self.url, f"t_{hashlib.sha256(str(place).encode()).hexdigest()[:20]}")
        store.driver.search("terms", 0)
        return store


# --- the same answers ---------------------------------------------------------------------------


@pytest.mark.parametrize("blend", [None, Blend()], ids=["words", "blend"])
def test_while_all_are_candidates_the_answer_is_the_exact_one(store, blend):
    embedder = None if blend is None else default_embedder()
    near = Engine(store, blend=blend, embedder=embedder)
    exact = Engine(InMemoryStore(), blend=blend, embedder=embedder)
    for engine in (near, exact):
        engine.store.save_many(turns(200))
        engine.settle()
    narrows = [None]
    if blend is None:  # what a filter leaves out lends nothing, where it is no candidate
        narrows += [Filter(tags=("red",), category="places"), Filter(min_importance=0.6)]
    queries = [
        "router in the cellar",
        "東京 tea",
        "варенье",
        "köln",
        "",
        "what did Ann say?",
        "zebra",
    ]
    for narrow in narrows:
        for query in queries:
            found, best = near.recall(query, 10, narrow), exact.recall(query, 10, narrow)
            assert ids(found) == ids(best), (query, narrow)
            for one, other in zip(found, best, strict=True):
                assert one.combined_score == pytest.approx(other.combined_score, abs=2e-3)
                assert one.evidence.words == other.evidence.words
    assert [m.id for m in near.match("tea train", 9)] == [m.id for m in exact.match("tea train", 9)]
    for id in ("m0", "m3", "m199"):
        beside = [[m.id for m in each.neighbours(id, 3)] for each in (near, exact)]
        assert beside[0] == beside[1]


operations = st.lists(
    st.one_of(
        st.tuples(st.just("save"), st.sampled_from("abcdef"), st.sampled_from(WORDS + HOSTILE)),
        st.tuples(st.just("delete"), st.sampled_from("abcdef"), st.just("")),
        st.tuples(st.just("old client"), st.sampled_from("abcdef"), st.sampled_from(WORDS)),
        st.tuples(st.just("recall"), st.sampled_from(WORDS), st.just("")),
        st.tuples(st.just("forget all"), st.just(""), st.just("")),
    ),
    max_size=12,
)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(operations)
def test_after_any_history_it_is_in_step_and_answers_as_the_whole_index_does(database, history):
    with opened(database) as store, plain(store) as older:
        near, exact = Engine(store), Engine(InMemoryStore())
        near.recall("tea")
        for number, (what, id, text) in enumerate(history):
            memory = Memory(id, text, created_at=NOW + number)
            if what == "save":
                near.store.save(memory)
                exact.store.save(memory)
            elif what == "old client":
                older.save(memory)
                exact.store.save(memory)
            elif what == "delete":
                assert near.forget(id) == exact.forget(id)
            elif what == "forget all":
                assert near.forget_all() == exact.forget_all()
            else:
                assert ids(near.recall(id)) == ids(exact.recall(id))
            assert_in_step(store)
        assert ids(near.recall("tea ship")) == ids(exact.recall("tea ship"))
        assert ids(near.recall("")) == ids(exact.recall(""))
        assert_in_step(store)


def test_a_common_word_finds_what_passes_a_filter_that_few_do(store, monkeypatch):
    monkeypatch.setattr(module, "_SCANNED", 20)
    engine = Engine(store)
    memories = [Memory(f"m{at}", "green tea", created_at=NOW - at) for at in range(300)]
    memories[250] = memories[250].copy(category="rare")
    memories[280] = memories[280].copy(importance_score=1.0)
    memories[290] = memories[290].copy(persistent=True)
    engine.store.save_many(memories)
    assert ids(engine.recall("tea", narrow=Filter(category="rare"))) == ["m250"]
    assert ids(engine.recall("tea green", narrow=Filter(persistent=True))) == ["m290"]
    assert ids(engine.recall("tea", narrow=Filter(until=NOW - 297))) == ["m298", "m299"]
    assert "m280" in ids(engine.recall("tea green"))
    assert len(engine.recall("tea", 250)) == 250


def test_what_expired_is_no_candidate(store, monkeypatch):
    engine = Engine(store)
    engine.store.save_many(
        [Memory("old", "tea", ttl_days=1, created_at=NOW), Memory("new", "tea", created_at=NOW)]
    )
    monkeypatch.setattr("retain.clock.now", lambda: NOW + 60)
    assert set(ids(engine.recall("tea"))) == {"old", "new"}
    monkeypatch.setattr("retain.clock.now", lambda: NOW + 3 * 86_400)
    assert ids(engine.recall("tea")) == ["new"]
    assert ids(engine.recall("")) == ["new"]


# --- in step with the memories ------------------------------------------------------------------


def test_a_delete_is_a_delete(store):
    engine = Engine(store)
    engine.store.save_many([Memory("a", "the secret is tea"), Memory("b", "ship")])
    engine.recall("secret")
    plain(store).delete("a")  # and nobody asks anything afterwards
    assert answered(store, "SELECT id FROM SIDE.terms") == [("b",)]
    assert_in_step(store)
    plain(store).forget_scope(store.scope)
    for table in ("terms", "counts"):
        assert answered(store, f"SELECT * FROM SIDE.{table}") == []


def test_a_text_that_was_replaced_is_out_at_once_and_the_new_one_found(store):
    engine = Engine(store)
    engine.store.save(Memory("a", "tea"))
    engine.recall("tea")
    plain(store).save(Memory("a", "ship"))
    assert answered(store, "SELECT * FROM SIDE.terms") == []
    assert engine.recall("tea") == []
    assert ids(engine.recall("ship")) == ["a"]


def test_a_retrieval_leaves_it_as_it_is(store):
    engine = Engine(store)
    engine.store.save_many([Memory("a", "tea"), Memory("b", "tea")])
    engine.recall("tea")
    before = answered(store, "SELECT ctid, id FROM SIDE.terms ORDER BY id")
    engine.store.save(Memory("c", "ship"))  # with which the counts are written
    engine.recall("ship")
    assert answered(store, "SELECT ctid, id FROM SIDE.terms WHERE id <> 'c' ORDER BY id") == before


def test_several_that_fill_it_at_once_fill_it_once(store):
    store.save_many(turns(2_500))
    others = [Engine(opened(store.driver._url, store.driver.schema)) for _ in range(3)]
    failed: list[Exception] = []

    def fill(engine: Engine) -> None:
        try:
            assert len(engine.recall("tea")) == 10
        except Exception as error:  # noqa: BLE001  # told below
            failed.append(error)

    threads = [threading.Thread(target=fill, args=(engine,)) for engine in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert Engine(store).behind() == 0
    assert_in_step(store)
    for engine in others:
        engine.close()


def test_behind_and_settle_tell_of_what_is_to_be_taken_in(store):
    engine = Engine(store)
    store.save_many(turns(2_100))
    told: list[tuple[int, int]] = []
    assert engine.behind() == 2_100
    engine.settle(lambda ready, there: told.append((ready, there)))
    assert engine.behind() == 0
    assert told == sorted(told)
    assert told[-1] == (2_100, 2_100)
    assert len(told) > 2


def test_a_copy_from_before_that_was_put_back_makes_it_anew(store):
    engine = Engine(store)
    store.save(Memory("a", "tea"))
    engine.recall("tea")
    answered(store, "UPDATE SIDE.level SET revision = revision + 1000")
    assert ids(engine.recall("tea")) == ["a"]
    assert_in_step(store)


def test_without_its_triggers_it_is_made_anew(store):
    Engine(store).store.save(Memory("a", "tea"))
    Engine(store).recall("tea")
    [(name,)] = answered(
        store,
        "SELECT tgname FROM pg_trigger WHERE tgrelid = 'STORE.memories'::regclass"
        " AND tgname LIKE 'retain_%%_delete'",
    )
    answered(store, f"DROP TRIGGER {name} ON STORE.memories")
    plain(store).delete("a")
    with opened(store.driver._url, store.driver.schema) as again:
        assert Engine(again).recall("tea") == []
        assert_in_step(again)


def test_it_can_be_dropped_at_any_time_and_is_made_anew(store):
    engine = Engine(store)
    store.save_many(turns(50))
    before = ids(engine.recall("tea ship"))
    answered(store, "DROP SCHEMA SIDE CASCADE")
    store.delete("m49")
    store.save(turns(50)[49])
    assert ids(engine.recall("tea ship")) == before
    assert_in_step(store)


def test_it_follows_a_table_in_parts(database):
    with opened(database, partitions=3) as store:
        engines = [Engine(store.scoped(Scope(user=name))) for name in ("ann", "bob", "eve")]
        for engine in engines:
            engine.store.save_many(turns(20))
            engine.recall("tea")
            engine.forget("m3")
            engine.update("m4", content="zebra")
        assert_in_step(store)
        for engine in engines:
            assert ids(engine.recall("zebra")) == ["m4"]
        assert engines[0].forget_all() == 19
        assert_in_step(store)
        assert ids(engines[1].recall("zebra")) == ["m4"]


async def on_a_loop(store: PostgresStore) -> tuple[list[str], list[str]]:
    engine = Engine(store)
    found = await awaiting.carried(engine.recall, "tea ship")
    beside = await awaiting.carried(engine.neighbours, "m3")
    return ids(found), [memory.id for memory in beside]


def test_an_event_loop_can_ask_too(store):
    store.save_many(turns(50))
    found, beside = asyncio.run(on_a_loop(store))
    assert found == ids(Engine(store).recall("tea ship"))
    assert beside == [memory.id for memory in Engine(store).neighbours("m3")]


def test_a_role_that_is_not_the_owner_needs_to_call_the_functions_alone(store):
    store.save(Memory("a", "tea"))
    Engine(store).settle()
    [side] = {search._schema for search in store.driver._searches.values()}
    role, main = f"app_{uuid.uuid4().hex[:8]}", store.driver.schema
    with psycopg.connect(servers.postgres_url(), dbname=store.driver._url.rsplit("/", 1)[1]) as it:
        it.execute(f"CREATE ROLE {role} LOGIN")
        it.execute(f'GRANT USAGE ON SCHEMA "{main}", "{side}" TO {role}')
        it.execute(f'GRANT ALL ON ALL TABLES IN SCHEMA "{main}" TO {role}')
        it.execute(f'GRANT ALL ON ALL SEQUENCES IN SCHEMA "{main}" TO {role}')
        it.execute(f'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA "{main}" TO {role}')
        it.execute(f'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA "{side}" TO {role}')
    url = make_conninfo(store.driver._url, user=role)
    with opened(url, main) as as_role:
        engine = Engine(as_role)
        assert ids(engine.recall("tea")) == ["a"]
        engine.remember(Memory("b", "tea and milk"))
        assert set(ids(engine.recall("tea"))) == {"a", "b"}
        assert engine.forget("a")
    assert_in_step(store)


def test_hostile_ids_and_texts_are_found(store):
    engine = Engine(store)
    memories = [Memory(text, f"tea {text}", created_at=NOW) for text in HOSTILE]
    memories.append(Memory("東" * 1_000, "tea " * 3_000, created_at=NOW))
    store.save_many(memories)
    assert set(ids(engine.recall("tea", 50))) == {memory.id for memory in memories}
    for query in HOSTILE:
        engine.recall(query)
        engine.match(query, 3)


# --- isolation ----------------------------------------------------------------------------------


def test_candidates_never_cross_scopes(store):
    names = [name for name in HOSTILE if name.strip()]
    scopes = [Scope(), *(Scope(user=name) for name in names), *(Scope(agent=n) for n in names)]
    for number, scope in enumerate(scopes):
        store.scoped(scope).save_many(
            Memory(f"{number}", f"tea and secret{number}", metadata={"session": 1, "turn": 1})
            for _ in range(1)
        )
    embedder = default_embedder()
    for number, scope in enumerate(scopes):
        engine = Engine(store.scoped(scope), blend=Blend(), embedder=embedder)
        for query in ("tea", "", "secret0", f"secret{number}", "the drink"):
            assert set(ids(engine.recall(query, 50))) <= {f"{number}"}, (scope, query)
        assert ids(engine.recall("tea")) == [f"{number}"]
        assert engine.neighbours(f"{number}") == []
    assert_in_step(store)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(texts(8), texts(8), st.sampled_from(WORDS)), min_size=1, max_size=8))
def test_under_any_names_a_scope_finds_its_own_and_nothing_else(database, written):
    with opened(database) as store:
        own: dict[Scope, set[str]] = {}
        for number, (user, agent, word) in enumerate(written):
            scope = Scope(user=user or None, agent=agent or None)
            store.scoped(scope).save(Memory(f"m{number}", f"{word} ship"))
            own.setdefault(scope, set()).add(f"m{number}")
        for scope, expected in own.items():
            assert set(ids(Engine(store.scoped(scope)).recall("ship", 50))) == expected
        unknown = Engine(store.scoped(Scope(user="nobody", session="else")))
        assert unknown.recall("ship") == unknown.recall("") == []


def test_row_security_hides_what_belongs_to_other_scopes(store):
    Engine(store).store.save(Memory("a", "tea"))
    Engine(store).recall("tea")
    [side] = {search._schema for search in store.driver._searches.values()}
    with psycopg.connect(store.driver._url, autocommit=True) as owner:
        for table in ("counts", "level"):  # also from their owner
            found = owner.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(side, table)))
            assert found.fetchall() == []
    role = f"reader_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(servers.postgres_url(), autocommit=True) as server:
        server.execute(f"CREATE ROLE {role}")
    with psycopg.connect(servers.postgres_url(), dbname=store.driver._url.rsplit("/", 1)[1]) as it:
        it.execute(f'GRANT USAGE ON SCHEMA "{side}" TO {role}')
        it.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{side}" TO {role}')
        it.execute(f"SET ROLE {role}")
        assert it.execute(f'SELECT * FROM "{side}".terms').fetchall() == []
        it.execute("SELECT set_config('retain.scope', '1', true)")
        assert len(it.execute(f'SELECT * FROM "{side}".terms').fetchall()) == 1


# --- vectors ------------------------------------------------------------------------------------


def test_what_means_the_same_is_found_without_a_common_word(store):
    engine = Engine(store, blend=Blend(), embedder=default_embedder())
    store.save_many([Memory("a", "my automobile is broken"), Memory("b", "tea with milk")])
    found = engine.recall("car repair")
    assert ids(found)[:1] == ["a"]
    assert found[0].evidence.similarity > 0.3


def test_many_vectors_are_asked_by_an_index_of_the_scope(store, monkeypatch, caplog):
    monkeypatch.setattr(module, "_UNINDEXED", 50)
    engine = Engine(store, blend=Blend(related=0.0), embedder=default_embedder())
    store.save_many([*turns(100), Memory("car", "my automobile is broken")])
    with caplog.at_level(logging.WARNING, "retain"):
        assert "car" not in ids(engine.recall("vehicle repair", 5))
    assert "settle()" in caplog.text
    engine.settle()
    assert ids(engine.recall("vehicle repair", 5))[0] == "car"
    [(name, valid)] = answered(
        store,
        "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " WHERE i.indrelid = 'SIDE.terms'::regclass AND c.relname LIKE 'near%%'",
    )
    assert valid
    with psycopg.connect(
        servers.postgres_url(), dbname=store.driver._url.rsplit("/", 1)[1]
    ) as server:  # as if whoever made it had been interrupted
        server.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass",
            (f'"{next(iter(store.driver._searches.values()))._schema}".{name}',),
        )
    engine.settle()
    assert answered(
        store, f"SELECT indisvalid FROM pg_index WHERE indexrelid = 'SIDE.{name}'::regclass"
    ) == [(True,)]
    assert ids(engine.recall("vehicle repair", 5))[0] == "car"


class _Letters:
    """An embedder that takes its time as a model does: counts of letters."""

    name, dimensions = "letters", 26
    failing = False

    def embed(self, texts):
        if self.failing:
            raise EmbeddingFailed("the service is down; call again later")
        found = np.zeros((len(texts), 26), np.float32)
        for row, text in enumerate(texts):
            for letter in text.lower():
                if "a" <= letter <= "z":
                    found[row, ord(letter) - 97] += 1
        return found / np.maximum(1e-9, np.linalg.norm(found, axis=1, keepdims=True))

    def embed_query(self, text):
        return self.embed([text])[0]


def test_vectors_of_a_model_follow_and_settle_waits_for_them(store):
    embedder = _Letters()
    engine = Engine(store, blend=Blend(), embedder=embedder)
    embedder.failing = True
    store.save_many([Memory(f"m{at}", f"tea number {at}") for at in range(150)])
    found = engine.recall("tea number 7")
    assert found[0].memory.id == "m7"
    assert not found[0].evidence.embedded
    embedder.failing = False
    engine.settle()
    found = engine.recall("tea number 7")
    assert all(each.evidence.embedded for each in found)
    assert answered(store, "SELECT count(*) FROM SIDE.terms WHERE NOT embedded") == [(0,)]


def test_without_pgvector_words_alone_are_asked_and_that_is_told(caplog):
    url = servers.new_database()
    name = url.rsplit("/", 1)[1]
    with psycopg.connect(servers.postgres_url(), dbname=name, autocommit=True) as server:
        server.execute("DROP EXTENSION vector")
        # nobody here may make it again
        server.execute(f"REVOKE CREATE ON DATABASE {name} FROM PUBLIC")
    with opened(url) as store, caplog.at_level(logging.WARNING, "retain"):
        engine = Engine(store, blend=Blend(), embedder=default_embedder())
        store.save(Memory("a", "tea"))
        found = engine.recall("tea")
        assert ids(found) == ["a"]
        assert found[0].evidence.similarity is None
    assert "pgvector" in caplog.text


def test_a_store_without_a_search_of_its_own_says_so():
    with pytest.raises(InvalidValue, match="no search of its own"):
        InMemoryStore().driver.search("terms", 0)


# --- others -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_works_on_an_older_server_too():
    url = servers.running(servers.Postgres, 16).url
    with opened(url) as store:
        engine = Engine(store, blend=Blend(), embedder=default_embedder())
        store.save_many(turns(100))
        engine.settle()
        exact = Engine(InMemoryStore(), blend=Blend(), embedder=default_embedder())
        exact.store.save_many(turns(100))
        for query in ("router cellar", "東京", ""):
            assert ids(engine.recall(query)) == ids(exact.recall(query))
        store.delete("m1")
        assert_in_step(store)


@pytest.mark.slow
@pytest.mark.thorough
def test_the_top_ten_of_many_is_nearly_the_exact_one(store):
    embedder = default_embedder()
    near = Engine(store, blend=Blend(), embedder=embedder)
    exact = Engine(InMemoryStore(), blend=Blend(), embedder=embedder)
    chance = random.Random(7)
    vocabulary = [f"w{at}" for at in range(20_000)]
    weights = [1 / rank for rank in range(1, 20_001)]
    memories = [
        Memory(
            f"m{at}",
            " ".join(chance.choices(vocabulary, weights, k=15)),
            metadata={"session": at // 10, "turn": at % 10},
            created_at=NOW - chance.random() * 3e7,
        )
        for at in range(20_000)
    ]
    for engine in (near, exact):
        engine.store.save_many(memories)
        engine.settle()
    shared = 0
    for _ in range(50):
        query = " ".join(chance.sample(chance.choice(memories).content.split(), 5))
        shared += len({*ids(near.recall(query))} & {*ids(exact.recall(query))})
    assert shared >= 0.95 * 500
