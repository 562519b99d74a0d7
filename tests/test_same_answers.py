"""The same memories and the same questions have the same answers, wherever the memories are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

import servers
from retain import AgentMemory, ConversationMemory, Memory, MemoryType, SQLiteStore, Store
from retain.evaluation import evaluate, load_dataset
from retain.stores.memory import InMemoryStore
from retain.stores.postgres import PostgresStore
from retain.stores.redis import RedisStore

NOW = 1_790_000_000.25
DAY = 86_400.0
LOCOMO = Path(__file__).resolve().parents[2] / "shared" / "data" / "locomo10.json"

SUBJECTS = """
Ann Bob Carla Дмитрий 健太 سارة José Zoë the_team my_sister our_neighbour Großmutter
""".split()
VERBS = """
likes bought painted forgot repaired planted любит купила 飲む 買った aime achète trinkt verlor
يحب promised cooked returned measured
""".split()
OBJECTS = """
tea coffee café cafe\u0301 Straße STRASSE bicycle bicycles rosebush guitar чай
велосипед 東京 京都 お茶 thé vélo Fahrrad Kaffee قهوة
password router server deadline kitchen birthday 🎂 music 音楽 музыка
""".split()
PLACES = """
at_home in_Paris in_München в_Москве 東京で yesterday last_March tomorrow on_Friday with_friends
in_the_garden for_work في_البيت
""".split()
TAGS = ["home", "work", "heim", "дом", "家", "🏠"]


def sentence(random: Random) -> str:
    words = [random.choice(part) for part in (SUBJECTS, VERBS, OBJECTS, PLACES)]
    words += random.choices(OBJECTS, k=random.randrange(3))
    return " ".join(words).replace("_", " ")


def population(count: int) -> list[Memory]:
    """Memories in several languages, with ties, sessions, facts and expiry."""
    random = Random(7)
    made: list[Memory] = []
    for number in range(count):
        content = sentence(random)
        if made and random.random() < 0.1:
            content = random.choice(made).content  # which only time and id tell apart
        created = NOW - random.choice([0.0, 1.0, 2.5, 30.0, 400.0]) * DAY
        if random.random() < 0.7:
            created -= random.randrange(0, 90 * 86_400) + 0.123456
        session = f"s{number // 12}" if random.random() < 0.7 else ""
        persistent = random.random() < 0.1
        days = random.choice([None, None, None, 1.5, 60.0, 1000.0])
        made.append(
            Memory(
                f"{random.choice('amzé東')}{number:05d}",
                content,
                random.choice(list(MemoryType)),
                random.choice([0.25, 0.5, 0.5, 0.75, 1.0, 0.1, 1 / 3]),
                {"session": session, "turn_index": number} if session else None,
                random.sample(TAGS, random.randrange(3)),
                created,
                category=random.choice(["general", "people", "places", "人"]),
                source=random.choice(["", "user", "doc.md"]),
                persistent=persistent,
                ttl_days=None if persistent else days,
            )
        )
    return made


def questions(count: int) -> list[tuple[str, dict[str, Any]]]:
    """Queries, each with what it is narrowed by."""
    random = Random(11)
    asked: list[tuple[str, dict[str, Any]]] = []
    for number in range(count):
        words = sentence(random).split()
        query = " ".join(random.sample(words, random.randrange(1, len(words) + 1)))
        if number % 40 == 0:
            query = ""
        filters: dict[str, Any] = {
            "memory_type": random.choice(list(MemoryType)),
            "min_importance": random.choice([0.3, 0.5, 0.9]),
            "tags": random.sample(TAGS, 1),
            "category": random.choice(["people", "人", "nothing of it"]),
            "since": NOW - random.choice([10, 100]) * DAY,
            "until": NOW - random.choice([1, 20]) * DAY,
            "persistent": random.random() < 0.5,
        }
        narrow = {name: value for name, value in filters.items() if random.random() < 0.12}
        asked.append((query, narrow))
    return asked


KINDS = ("memory", "sqlite", "postgres", "redis")


def open_kind(kind: str, folder: Path) -> Store:
    if kind == "memory":
        return InMemoryStore()
    if kind == "sqlite":
        return SQLiteStore(folder / "answers.db")
    if kind == "postgres":
        return PostgresStore(servers.new_database())
    return RedisStore(servers.new_redis())


def changed(store: Store, memories: list[Memory]) -> None:
    """Some more writes, so that what is known of the past has to be put right."""
    store.delete_many(memory.id for memory in memories[::17])
    store.save_many(memory.copy(content=f"{memory.content} again") for memory in memories[5::23])
    store.delete(memories[3].id)
    store.save(memories[3])


FACES: dict[str, Callable[[Store], Any]] = {
    "words": AgentMemory,
    "blended": lambda store: ConversationMemory(store=store, embedder=None),
    "by meaning": lambda store: ConversationMemory(store=store),
}
SIZES = pytest.mark.parametrize(
    ("count", "asked"), [(400, 60), pytest.param(5_000, 500, marks=pytest.mark.slow)]
)


@pytest.fixture
def fixed_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("retain.clock.now", lambda: NOW)
    yield


@pytest.mark.usefixtures("fixed_clock")
@SIZES
@pytest.mark.parametrize("face", FACES)
def test_every_store_gives_the_same_answers(
    face: str, count: int, asked: int, tmp_path: Path
) -> None:
    memories, queries = population(count), questions(asked)
    with ExitStack() as stack:
        faces = {}
        for kind in KINDS:
            store = open_kind(kind, tmp_path)
            faces[kind] = stack.enter_context(FACES[face](store))
            store.save_many(memories[: count // 2])
            faces[kind].recall("tea")  # the index is begun, and caught up from here on
            store.save_many(memories[count // 2 :])
            changed(store, memories)
            faces[kind].settle()
        found = 0
        for query, narrow in queries:
            expected = faces["memory"].recall(query, k=10, **narrow)
            found += len(expected)
            for kind in KINDS[1:]:
                results = faces[kind].recall(query, k=10, **narrow)
                assert [r.memory.id for r in results] == [r.memory.id for r in expected], (
                    kind,
                    query,
                    narrow,
                )
                for result, other in zip(results, expected, strict=True):
                    for score in ("relevance_score", "recency_score", "combined_score"):
                        assert getattr(result, score) == pytest.approx(
                            getattr(other, score), abs=1e-6
                        )
                    assert result.memory.content == other.memory.content
                    assert result.memory.metadata == other.memory.metadata
                    assert result.memory.tags == other.memory.tags
                    assert result.memory.access_count == other.memory.access_count
        assert found > 4 * asked  # the questions have answers


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgres", "redis"])
def test_locomo_is_answered_as_well_from_a_server(kind: str, tmp_path: Path) -> None:
    if not LOCOMO.is_file():
        pytest.skip(f"{LOCOMO.name} is not in shared/data beside the repository")
    dataset = load_dataset(LOCOMO)
    expected = evaluate(dataset).scores()
    scores = evaluate(dataset, lambda: ConversationMemory(store=open_kind(kind, tmp_path))).scores()
    assert scores.keys() == expected.keys()
    for name, value in expected.items():
        assert scores[name] == pytest.approx(value, abs=0.01), name
