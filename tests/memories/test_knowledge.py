"""The knowledge specification's memory: its files, its context, and what goes and stays."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreign_store import ForeignStore
from retain import (
    AgentMemory,
    ConversationMemory,
    FileKnowledgeStore,
    FileStore,
    InMemoryStore,
    InvalidType,
    InvalidValue,
    JSONFileStore,
    KnowledgeEntry,
    KnowledgeMemory,
    Memory,
    MemoryImportance,
    MemoryType,
    NotFound,
    Receipt,
    Rejected,
    Scope,
    SQLiteKnowledgeStore,
    SQLiteStore,
    StoreFailed,
    clock,
    make_recall_tool,
    make_remember_tool,
)
from retain.memories.knowledge import scope_folder
from retain.testing import texts

UTC = timezone.utc
DAY = timedelta(days=1)
START = datetime(2026, 3, 13, 10, 15, tzinfo=UTC)


class Clock:
    """The time, which the tests set."""

    def __init__(self) -> None:
        self.time = START

    def set(self, time: datetime) -> None:
        self.time = time

    def wait(self, time: timedelta) -> None:
        self.time += time


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(clock, "now", lambda: found.time.timestamp())
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture(params=["directory", "no files"])
def memory(request: pytest.FixtureRequest, place: Path) -> Iterator[KnowledgeMemory]:
    """With its files, and without any: what it answers is the same."""
    with KnowledgeMemory(place if request.param == "directory" else None) as memory:
        yield memory


def log_of(place: Path, day: str = "2026-03-13") -> list[dict[str, Any]]:
    path = place / "logs" / f"{day}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def contents(memory: KnowledgeMemory) -> list[str]:
    return sorted(found.content for found in memory.engine.store.list_all())


def recent(memory: KnowledgeMemory, **arguments: Any) -> list[str]:
    return [entry["content"] for entry in memory.get_recent_entries(**arguments)]


# -- where it is -----------------------------------------------------------------------------


def test_it_is_in_agent_memory_below_the_working_directory_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with KnowledgeMemory() as memory:
        memory.remember("tea", persistent=True)
    assert [path.name for path in tmp_path.iterdir()] == ["agent_memory"]
    names = {path.name for path in (tmp_path / "agent_memory").iterdir()}
    assert names == {"MEMORY.md", "logs", "memory.db", ".MEMORY.synced", ".lock"}


@pytest.mark.parametrize(
    "arguments",
    [
        lambda place: ((str(place),), {}),
        lambda place: ((place, 7, 9), {}),
        lambda place: ((), {"storage_dir": place}),
        lambda place: ((), {"directory": str(place)}),
        lambda place: ((str(place),), {"directory": str(place)}),
    ],
)
def test_the_directory_is_named_in_either_way(arguments: Any, place: Path):
    given, named = arguments(place)
    with KnowledgeMemory(*given, **named) as memory:
        assert memory.directory == place
        assert (place / "memory.db").exists()


def test_a_tilde_is_the_home_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    with KnowledgeMemory("~/notes") as memory:
        assert memory.directory == tmp_path / "notes"
    assert (tmp_path / "notes" / "MEMORY.md").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"storage_dir": "a", "directory": "b"}, TypeError),
        ({"storage_dir": None, "directory": "b"}, TypeError),
        ({"storage_dir": 5}, TypeError),
        ({"max_log_days": -1}, ValueError),
        ({"max_log_days": "30"}, TypeError),
        ({"max_context_entries": -1}, ValueError),
        ({"max_context_entries": None}, TypeError),
        ({"storage_dir": None, "backend": "none"}, ValueError),
        ({"store": {"a": 1}}, TypeError),
    ],
    ids=str,
)
def test_a_memory_of_wrong_arguments_is_not_made(
    arguments: dict[str, Any],
    error: type[Exception],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error) as caught:
        KnowledgeMemory(**arguments)
    assert isinstance(caught.value, (InvalidType, InvalidValue))
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_directorys_place_is_an_error(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreFailed, match="file"):
        KnowledgeMemory(tmp_path / "file")


def test_without_a_directory_there_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with KnowledgeMemory(None, store=InMemoryStore()) as memory:
        memory.remember("tea", persistent=True)
        memory.build_context()
        memory.prune_logs()
        memory.flush()
        memory.clear()
        assert memory.directory is None and memory.forgotten() == []
        with pytest.raises(InvalidValue):
            memory.restore("m1")
    assert list(tmp_path.iterdir()) == []


# -- remember --------------------------------------------------------------------------------


def test_remember_answers_with_a_sentence_that_has_an_id(memory: KnowledgeMemory):
    receipt = memory.remember("Prefers dark mode", "preferences", True)
    assert isinstance(receipt, str) and isinstance(receipt, Receipt)
    assert "preferences" in receipt and receipt.reason == ""
    found = memory.get(receipt.id)
    assert found is not None
    assert (found.content, found.category, found.persistent) == (
        "Prefers dark mode",
        "preferences",
        True,
    )
    assert (found.memory_type, found.importance_score) == (MemoryType.SEMANTIC, 0.5)
    for other in (copy.copy(receipt), pickle.loads(pickle.dumps(receipt))):
        assert (other, other.id) == (receipt, receipt.id)


def test_an_equal_fact_is_not_written_again_and_its_id_returned(memory: KnowledgeMemory):
    first = memory.remember("Lives in café Tokyo", "places", persistent=True)
    again = memory.remember("  Lives in  cafe\u0301 Tokyo\n", "places", persistent=True)
    assert again and again.id == first.id
    assert (memory.memory_count, recent(memory)) == (1, ["Lives in café Tokyo"])


def test_a_rejected_text_is_answered_with_nothing_and_the_reason_and_logged_for_debugging(
    place: Path, caplog: pytest.LogCaptureFixture
):
    def no_secrets(text: str) -> str | None:
        return None if "secret" in text else text

    with KnowledgeMemory(place, pre_save=no_secrets) as memory:
        before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
        with caplog.at_level(logging.DEBUG, "retain"):
            receipt = memory.remember("a secret", persistent=True)
        assert (receipt, bool(receipt), receipt.id) == ("", False, "")
        assert "no_secrets" in receipt.reason
        [record] = [r for r in caplog.records if "no_secrets" in r.message]
        assert record.levelno == logging.DEBUG and "a secret" not in record.message
        assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
        with pytest.raises(Rejected):
            memory.add_fact("a secret")
        assert memory.memory_count == 0


def test_days_to_live_and_for_good_exclude_each_other(memory: KnowledgeMemory):
    with pytest.raises(ValueError, match="persistent"):
        memory.remember("tea", persistent=True, ttl_days=7)
    receipt = memory.remember("tea", ttl_days=7)
    with pytest.raises(ValueError, match="persistent"):
        memory.update(receipt.id, persistent=True)
    assert memory.update(receipt.id, persistent=True, ttl_days=None).persistent


def test_a_fact_of_the_agentic_specification_is_kept_for_good(memory: KnowledgeMemory):
    fact = memory.add_fact("Water boils at 100 °C", source="physics")
    assert (fact.memory_type, fact.importance) == (MemoryType.SEMANTIC, MemoryImportance.HIGH)
    assert (fact.metadata, fact.persistent) == ({"source": "physics"}, True)
    assert memory.add_fact("Ice melts at 0 °C").metadata == {"source": ""}
    assert memory.add_fact("Water boils at 100 °C").id == fact.id
    assert len(memory.get_persistent_facts()["general"]) == 2


# -- the files -------------------------------------------------------------------------------


def test_the_files_are_as_specified(place: Path, now: Clock):
    with KnowledgeMemory(place) as memory:
        fact = memory.remember("Name: Алиса", category="personal", persistent=True)
        now.wait(timedelta(minutes=1, microseconds=5))
        memory.remember("Prefers Python", category="preferences", persistent=True)
        note = memory.remember("Working on Atlas", category="context")
        memory.remember("Uses VS Code", category="preferences", persistent=True)
        assert (place / "MEMORY.md").read_text(encoding="utf-8") == (
            "# Agent Memory\n\n## personal\n- Name: Алиса\n\n"
            "## preferences\n- Prefers Python\n- Uses VS Code\n"
        )
        lines = (place / "logs" / "2026-03-13.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(lines) == 4 and json.loads(lines[2])["id"] == note.id
        assert lines[0] == (
            '{"timestamp": "2026-03-13T10:15:00Z", "category": "personal", '
            f'"content": "Name: Алиса", "persistent": true, "id": "{fact.id}"}}'
        )


def test_a_days_log_is_the_utc_days(place: Path, now: Clock):
    with KnowledgeMemory(place) as memory:
        now.set(datetime(2026, 3, 13, 23, 59, 59, 999_999, tzinfo=UTC))
        memory.remember("late")
        now.wait(timedelta(microseconds=1))
        memory.remember("early")
        memory.remember(
            "earlier", created_at=datetime(2026, 3, 14, 1, tzinfo=timezone(2 * DAY / 24))
        )
        assert [e["content"] for e in log_of(place, "2026-03-13")] == ["late", "earlier"]
        assert [e["content"] for e in log_of(place, "2026-03-14")] == ["early"]


def test_an_update_is_seen_in_the_files_and_the_old_text_leaves_them(place: Path):
    with KnowledgeMemory(place) as memory:
        fact = memory.remember("Likes zebras", "taste", persistent=True)
        note = memory.remember("Saw a zebra")
        memory.update(fact.id, content="Likes okapis", category="animals")
        memory.update(note.id, content="Saw an okapi", importance=0.9)
        assert memory.get_persistent_facts() == {"animals": ["Likes okapis"]}
        assert [e["content"] for e in log_of(place)] == ["Likes okapis", "Saw an okapi"]
        assert traces(place, "zebra") == []


def test_a_note_can_become_a_fact_and_a_fact_a_note(place: Path):
    with KnowledgeMemory(place) as memory:
        id = memory.remember("Likes tea", "taste").id
        memory.update(id, persistent=True)
        assert memory.get_persistent_facts() == {"taste": ["Likes tea"]}
        assert ([e["persistent"] for e in log_of(place)], memory.build_context()) == (
            [True],
            "[Long-term Memory]\n## taste\n- Likes tea",
        )
        memory.update(id, persistent=False)
        assert memory.get_persistent_facts() == {}
        assert "[Recent Memory]" in memory.build_context()
        assert memory.forgotten() == []  # nobody deleted a line


def traces(place: Path, word: str) -> list[str]:
    """The files that hold a word."""
    found = [path for path in place.rglob("*") if path.is_file()]
    return [path.name for path in found if word.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    "delete",
    [
        lambda memory, id, now: memory.forget(id),
        lambda memory, id, now: memory.update(id, ttl_days=0) and memory.prune(),
        lambda memory, id, now: memory.clear_logs(),
        lambda memory, id, now: memory.clear(),
        lambda memory, id, now: (now.wait(31 * DAY), memory.prune_logs()),
        lambda memory, id, now: (now.wait(31 * DAY), memory.build_context()),
        lambda memory, id, now: memory.store.delete(id) and memory.flush(),
        lambda memory, id, now: memory.engine.store.forget_scope(Scope()) and memory.flush(),
        lambda memory, id, now: memory.remember_many(
            [{"content": f"rich {n}", "importance": 1.0} for n in range(3)]
        ),
    ],
    ids=["forget", "expiry", "clear_logs", "clear", "prune", "context", "store", "scope", "evict"],
)
def test_what_is_deleted_leaves_every_file_and_index_and_stays_away(
    delete: Callable[..., Any], place: Path, now: Clock
):
    with KnowledgeMemory(place, max_entries=3) as memory:
        id = memory.remember("Saw a zebra", importance=0.0).id
        memory.remember("Saw a lion", importance=1.0)
        assert memory.recall("zebra") and traces(place, "zebra")
        delete(memory, id, now)
        assert traces(place, "zebra") == []
        assert (memory.recall("zebra"), memory.match("zebra"), memory.get(id)) == ([], [], None)
        assert "Saw a zebra" not in [*recent(memory, days=99), memory.build_context()]
    with KnowledgeMemory(place) as memory:
        assert (memory.recall("zebra"), memory.get(id)) == ([], None)
        assert "zebra" not in memory.build_context()


# -- reading ---------------------------------------------------------------------------------


def test_facts_are_listed_by_category(memory: KnowledgeMemory, now: Clock):
    assert memory.get_persistent_facts() == {}
    for text, category in (("one", "b"), ("two", "a"), ("three", "b"), ("vier\n- fünf", "a")):
        memory.remember(text, category, persistent=True)
        now.wait(timedelta(seconds=1))
    memory.remember("a note", "b")
    facts = memory.get_persistent_facts()
    assert list(facts.items()) == [("b", ["one", "three"]), ("a", ["two", "vier - fünf"])]


def test_recent_entries_are_newest_first_and_as_many_as_asked_for(
    memory: KnowledgeMemory, now: Clock
):
    for n in range(9):
        memory.remember(f"note {n}", "diary", persistent=n == 8)
        now.wait(DAY)
    # it is the 22nd now, and the last note is of the 21st
    assert recent(memory) == [f"note {n}" for n in (8, 7, 6, 5, 4, 3, 2)]
    assert recent(memory, days=1) == ["note 8"]
    assert recent(memory, days=0) == []
    assert recent(memory, days=10**9, limit=2) == ["note 8", "note 7"]
    assert recent(memory, limit=0) == []
    [newest] = memory.get_recent_entries(limit=1)
    assert newest == {
        "timestamp": "2026-03-21T10:15:00Z",
        "category": "diary",
        "content": "note 8",
        "persistent": True,
        "id": newest["id"],
    }
    assert memory.get(newest["id"]) is not None
    for wrong in ({"days": -1}, {"limit": -1}, {"days": "7"}, {"limit": None}):
        with pytest.raises((ValueError, TypeError)):
            memory.get_recent_entries(**wrong)


def test_lines_that_others_wrote_into_a_log_are_read_too(place: Path):
    (place / "logs").mkdir(parents=True)
    lines = [
        '{"timestamp": "2026-03-13T09:00:00+00:00", "category": "diary", "content": "by hand"}',
        "half a li",
        '{"timestamp": "2026-03-13T08:00:00", "content": "no category", "persistent": false}',
    ]
    (place / "logs" / "2026-03-13.jsonl").write_text("\n".join(lines))
    with KnowledgeMemory(place) as memory:
        memory.remember("ours", "diary")
        assert [
            (e["content"], e["category"], bool(e["id"])) for e in memory.get_recent_entries()
        ] == [
            ("ours", "diary", True),
            ("by hand", "diary", False),
            ("no category", "general", False),
        ]
        assert memory.build_context().splitlines()[1:] == [
            "- [2026-03-13 08:00] (general) no category",
            "- [2026-03-13 09:00] (diary) by hand",
            "- [2026-03-13 10:15] (diary) ours",
        ]
        assert (place / "logs" / "2026-03-13.jsonl").read_text().splitlines()[:3] == lines


def test_the_context_is_as_specified(memory: KnowledgeMemory, now: Clock):
    assert memory.build_context() == ""
    memory.remember("Preferred language: Python", "preferences", persistent=True)
    assert memory.build_context() == (
        "[Long-term Memory]\n## preferences\n- Preferred language: Python"
    )
    now.wait(timedelta(hours=4))
    memory.remember("Investigating a\ntimeout", "technical")
    memory.remember("Works at Acme", "personal", persistent=True)
    assert memory.build_context() == (
        "[Long-term Memory]\n"
        "## preferences\n- Preferred language: Python\n\n"
        "## personal\n- Works at Acme\n\n"
        "[Recent Memory]\n"
        "- [2026-03-13 14:15] (technical) Investigating a timeout"
    )
    for fact in memory.engine.store.list_all():
        if fact.persistent:
            memory.forget(fact.id)
    assert memory.build_context().startswith("[Recent Memory]\n- [2026-03-13 14:15]")


@pytest.mark.parametrize("files", [True, False])
@pytest.mark.parametrize("most", [0, 1, 3, 50])
def test_the_context_holds_the_last_notes_oldest_first(
    files: bool, most: int, place: Path, now: Clock
):
    with KnowledgeMemory(place if files else None, max_context_entries=most) as memory:
        for n in range(60):
            memory.remember(f"note {n}")
            memory.remember(f"fact {n}", persistent=True)
            now.wait(timedelta(hours=1))
        context = memory.build_context()
        _, _, notes = context.partition("[Recent Memory]\n")
        shown = [line.rpartition(" ")[2] for line in notes.splitlines()]
        assert shown == [str(n) for n in range(60 - most, 60)]
        assert context.count("- fact ") == 60


@settings(max_examples=25)
@given(
    notes=st.lists(st.tuples(texts(12).filter(str.strip), texts(6).filter(str.strip)), max_size=5)
)
def test_a_memory_is_one_line_of_the_context_whatever_it_holds(notes: list[tuple[str, str]]):
    memory = KnowledgeMemory(None)
    for at, (content, category) in enumerate(notes):
        memory.remember(content, category, persistent=at % 2 == 0)
    stored = memory.engine.store.list_all()
    facts = [m for m in stored if m.persistent]
    lines = memory.build_context().split("\n")
    assert sum(line.startswith("- ") for line in lines) == len(stored)
    assert len(memory.build_context().splitlines()) == len(lines) if stored else lines == [""]
    titles = {"[Long-term Memory]": facts, "[Recent Memory]": stored[len(facts) :]}
    for title, shown in titles.items():
        assert lines.count(title) <= bool(shown)


# -- what goes, and what stays ---------------------------------------------------------------


def test_a_log_is_pruned_when_its_utc_date_is_before_today_less_the_days(
    memory: KnowledgeMemory, now: Clock
):
    for _ in range(5):
        memory.remember(f"note of the {now.time.day}th")
        memory.remember(f"fact of the {now.time.day}th", persistent=True)
        now.wait(DAY)
    now.set(datetime(2026, 3, 17, 0, 0, 1, tzinfo=UTC))
    assert (memory.prune_logs(4), memory.prune_logs(3), memory.prune_logs(3)) == (0, 1, 0)
    assert memory.prune_old_logs(max_days=1) == 2
    notes = [text for text in contents(memory) if text.startswith("note")]
    assert notes == ["note of the 16th", "note of the 17th"]
    assert memory.recall("13th")[0].memory.persistent and len(memory.recall("fact")) == 5
    assert memory.prune_logs(0) == 1
    assert [text for text in contents(memory) if "note" in text] == ["note of the 17th"]
    assert len(memory.get_persistent_facts()["general"]) == 5
    for wrong in (-1, "7", 1.5):
        with pytest.raises((ValueError, TypeError)):
            memory.prune_logs(wrong)


@pytest.mark.parametrize("files", [True, False])
def test_the_context_prunes_what_is_too_old_first(files: bool, place: Path, now: Clock):
    with KnowledgeMemory(place if files else None, max_log_days=2) as memory:
        memory.remember("old note")
        memory.remember("old fact", persistent=True)
        now.wait(2 * DAY)
        assert "old note" in memory.build_context()
        now.wait(DAY)
        memory.remember("new note")
        context = memory.build_context()
        assert "old note" not in context and "new note" in context and "old fact" in context
        assert contents(memory) == ["new note", "old fact"]
        assert memory.prune_logs() == 0


def test_a_log_that_others_wrote_is_pruned_too(place: Path, now: Clock):
    (place / "logs").mkdir(parents=True)
    for day in ("2026-01-01", "2026-03-12"):
        line = {"timestamp": f"{day}T09:00:00Z", "content": f"of {day}"}
        (place / "logs" / f"{day}.jsonl").write_text(json.dumps(line) + "\n")
    (place / "logs" / "readme.txt").write_text("mine")
    with KnowledgeMemory(place, max_log_days=30) as memory:
        assert "of 2026-03-12" in memory.build_context()
        assert "of 2026-01-01" not in memory.build_context()
    assert sorted(path.name for path in (place / "logs").iterdir()) == [
        "2026-03-12.jsonl",
        "readme.txt",
    ]


def test_history_that_is_imported_gets_no_line_in_a_log_and_so_is_not_pruned(place: Path):
    with KnowledgeMemory(place, max_log_days=30) as memory:
        memory.remember("long ago", created_at=START - 300 * DAY)
        memory.remember("the other day", created_at=START - 3 * DAY)
        assert [e["content"] for e in log_of(place, "2026-03-10")] == ["the other day"]
        assert len(list((place / "logs").iterdir())) == 1
        assert "long ago" not in memory.build_context()
        memory.prune_logs()
        assert contents(memory) == ["long ago", "the other day"]


def test_clearing_the_logs_keeps_the_facts_and_clears_the_notes_for_good(
    memory: KnowledgeMemory, place: Path
):
    memory.remember("a fact", persistent=True)
    memory.remember("a note")
    memory.clear_logs()
    assert memory.get_persistent_facts() == {"general": ["a fact"]}
    assert (contents(memory), memory.recall("note")) == (["a fact"], [])
    if memory.directory is not None:
        assert recent(memory) == []
        assert list((place / "logs").iterdir()) == []
        memory.update(memory.recall("fact")[0].memory.id, importance=0.9)
        memory.remember("another note")
        assert recent(memory) == ["another note"]


def test_clearing_leaves_nothing_but_the_title(memory: KnowledgeMemory, place: Path):
    memory.remember("a fact", persistent=True)
    memory.remember("a note")
    memory.clear()
    assert (memory.memory_count, memory.get_persistent_facts(), recent(memory)) == (0, {}, [])
    assert (memory.build_context(), memory.recall("")) == ("", [])
    memory.clear()
    if memory.directory is not None:
        assert (place / "MEMORY.md").read_text() == "# Agent Memory\n"
        assert list((place / "logs").iterdir()) == []
    memory.remember("again", persistent=True)
    assert memory.get_persistent_facts() == {"general": ["again"]}


def test_nothing_is_evicted_unless_a_limit_is_set(memory: KnowledgeMemory):
    memory.remember_many([f"note {n}" for n in range(120)])
    assert memory.memory_count == 120


def test_what_is_evicted_leaves_the_log_and_facts_stay(place: Path):
    with KnowledgeMemory(place, max_entries=2) as memory:
        memory.remember("fact", persistent=True, importance=0.0)
        memory.remember("poor", importance=0.1)
        memory.remember("rich", importance=0.9)
        memory.remember("poorest", importance=0.0)
        assert [entry["content"] for entry in log_of(place)] == ["fact", "poorest"]
        assert contents(memory) == ["fact", "poorest"]


def test_what_is_expired_shows_nowhere(memory: KnowledgeMemory, now: Clock, place: Path):
    memory.remember("short", ttl_days=1, category="diary")
    memory.remember("long", ttl_days=3, category="diary")
    now.wait(timedelta(days=1))
    assert (recent(memory), memory.memory_count) == (["long"], 1)
    assert "short" not in memory.build_context()
    assert ([m.content for m in memory.match("diary")], memory.store.count()) == (["long"], 1)
    assert [entry.content for entry in memory.store.query()] == ["long"]
    assert memory.prune() == 1
    if memory.directory is not None:
        assert [entry["content"] for entry in log_of(place)] == ["long"]


# -- the store behind it ---------------------------------------------------------------------

STORES: dict[str, Callable[[Path], Any]] = {
    "its own": lambda place: None,
    "sqlite": lambda place: SQLiteStore(place / "other.db"),
    "sqlite entries": lambda place: SQLiteKnowledgeStore(place / "entries.db"),
    "files": lambda place: FileStore(place / "store"),
    "file entries": lambda place: FileKnowledgeStore(place / "entries"),
    "json": lambda place: JSONFileStore(place / "store.json"),
}


@pytest.mark.parametrize("kind", [*STORES, "foreign"])
def test_files_and_store_stay_in_step_from_process_to_process(kind: str, place: Path, now: Clock):
    foreign = ForeignStore()

    def make() -> KnowledgeMemory:
        now.wait(timedelta(seconds=1))
        store = foreign if kind == "foreign" else STORES[kind](place)
        return KnowledgeMemory(place, store=store)

    with make() as memory:
        tea = memory.remember("Likes tea", "taste", persistent=True, tags=["drink"]).id
        memory.remember("Hates rain", "taste", persistent=True)
        note = memory.remember("Saw a zebra").id
    with make() as memory:
        assert memory.get_persistent_facts() == {"taste": ["Likes tea", "Hates rain"]}
        assert sorted(recent(memory)) == ["Hates rain", "Likes tea", "Saw a zebra"]
        assert memory.recall("drink")[0].memory.id == tea
        memory.forget(note)
        memory.update(tea, content="Likes cocoa")
    file = place / "MEMORY.md"
    file.write_text(file.read_text().replace("- Hates rain\n", "- Likes snow\n- Plays chess\n"))
    with make() as memory:
        assert memory.get_persistent_facts() == {
            "taste": ["Likes cocoa", "Likes snow", "Plays chess"]
        }
        assert contents(memory) == ["Likes cocoa", "Likes snow", "Plays chess"]
        assert memory.recall("zebra rain tea") == []
        memory.clear_logs()
    with make() as memory:
        assert (recent(memory), memory.memory_count) == ([], 3)


@pytest.mark.parametrize("kind", ["its own", "sqlite", "files", "json", "in memory", "foreign"])
def test_a_store_that_was_lost_takes_no_fact_and_no_note_with_it(kind: str, place: Path):
    def make() -> KnowledgeMemory:
        lost = {"in memory": InMemoryStore, "foreign": ForeignStore}.get(kind)
        return KnowledgeMemory(place, store=lost() if lost else STORES[kind](place))

    with make() as memory:
        tea = memory.remember("Likes tea", "taste", persistent=True).id
        note = memory.remember("Saw a zebra", "diary").id
        pruned = memory.remember("Hates rain", "taste", persistent=True, created_at=5.0).id
        gone = memory.remember("gone").id
        memory.forget(gone)
    for path in [*place.glob("*.db*"), *place.glob("store*"), *place.glob("store/*")]:
        if path.is_file():
            path.unlink()
    with make() as memory:
        assert memory.get_persistent_facts() == {"taste": ["Likes tea", "Hates rain"]}
        assert sorted(recent(memory)) == ["Hates rain", "Likes tea", "Saw a zebra"]
        found = memory.get(note)
        assert found is not None
        assert (found.content, found.category, found.created_at) == (
            "Saw a zebra",
            "diary",
            START.timestamp(),
        )
        assert memory.get(tea) is not None and memory.get(pruned) is None
        assert memory.recall("tea")[0].memory.id == tea
        assert (memory.get(gone), memory.memory_count) == (None, 3)
        memory.forget(tea)
    if kind in ("its own", "sqlite", "files", "json"):
        with make() as memory:
            assert memory.get_persistent_facts() == {"taste": ["Hates rain"]}


def test_an_older_store_gets_what_was_written_since(place: Path, tmp_path: Path):
    with KnowledgeMemory(place) as memory:
        kept = memory.remember("kept", importance=0.9, tags=["t"]).id
        memory.engine.store.backup(tmp_path / "backup.db")
        memory.remember("since then", persistent=True)
        memory.remember("a note since then")
    (tmp_path / "backup.db").replace(place / "memory.db")
    with KnowledgeMemory(place) as memory:
        assert contents(memory) == ["a note since then", "kept", "since then"]
        found = memory.get(kept)
        assert found is not None and (found.importance_score, found.tags) == (0.9, ["t"])


def test_entries_that_were_saved_in_the_store_are_shown_from_the_next_call_on(place: Path):
    with KnowledgeMemory(place) as memory:
        memory.store.save(KnowledgeEntry("e1", "Likes tea", "taste", persistent=True))
        memory.store.save(KnowledgeEntry("e2", "Saw a zebra"))
        assert sorted(recent(memory)) == ["Likes tea", "Saw a zebra"]
        assert memory.recall("zebra")[0].memory.id == "e2"
        entry = memory.store.get("e1")
        assert entry is not None
        entry.content = "Likes cocoa"
        memory.store.save(entry)
        memory.flush()
        assert (place / "MEMORY.md").read_text() == "# Agent Memory\n\n## taste\n- Likes cocoa\n"
        assert traces(place, "Likes tea") == []
        memory.store.delete("e2")
        assert (recent(memory), memory.recall("zebra")) == (["Likes cocoa"], [])


def test_a_foreign_store_is_the_store_and_tells_its_own_errors(place: Path):
    foreign = ForeignStore()
    with KnowledgeMemory(place, store=foreign) as memory:
        assert memory.store is foreign
        receipt = memory.remember("Likes tea", "taste", persistent=True, ttl_days=None)
        assert [entry.content for entry in foreign.query()] == ["Likes tea"]
        foreign.save(KnowledgeEntry("e1", "Hates rain", "taste", 0.9, True))
        assert memory.get_persistent_facts() == {"taste": ["Likes tea", "Hates rain"]}
        assert [m.id for m in memory.match("")] == ["e1", receipt.id]
        assert memory.forget("e1") and foreign.count() == 1
        assert memory.remember("Likes tea", "taste", persistent=True).id == receipt.id
        memory.remember("brief", ttl_days=0)
        assert (memory.memory_count, foreign.count(), memory.prune(), foreign.count()) == (
            1,
            2,
            1,
            1,
        )
        foreign.rows.clear()
        assert (memory.get_persistent_facts(), memory.recall("")) == ({}, [])
    with pytest.raises(InvalidValue, match="no scopes"):
        KnowledgeMemory(None, store=foreign, scope=Scope(user="ann")).remember("x")


# -- several at once -------------------------------------------------------------------------


def test_several_faces_share_one_store(place: Path):
    with KnowledgeMemory(place) as knowledge:
        agent = AgentMemory(knowledge.engine.store)
        talk = ConversationMemory(store=knowledge.engine.store)
        agent.remember("Prefers pytest", category="taste", persistent=True)
        talk.add_turn("user", "My cat is called Miu")
        knowledge.remember("Likes tea", "taste", persistent=True)
        assert knowledge.get_persistent_facts() == {"taste": ["Prefers pytest", "Likes tea"]}
        assert "(general) My cat is called Miu" in knowledge.build_context()
        assert agent.recall("tea")[0].memory.persistent and len(talk.turns()) == 1
        agent.forget(agent.recall("pytest")[0].memory.id)
        assert knowledge.get_persistent_facts() == {"taste": ["Likes tea"]}


def test_two_on_one_directory_see_each_other(place: Path):
    with KnowledgeMemory(place) as one, KnowledgeMemory(place) as other:
        tea = one.remember("Likes tea", persistent=True)
        assert other.get_persistent_facts() == {"general": ["Likes tea"]}
        other.update(tea.id, content="Likes cocoa")
        assert one.build_context() == other.build_context()
        assert one.recall("cocoa")[0].memory.id == tea.id
        other.clear()
        assert (one.get_persistent_facts(), one.memory_count, recent(one)) == ({}, 0, [])


# -- scopes ----------------------------------------------------------------------------------


def test_each_scope_has_files_and_memories_of_its_own(place: Path):
    with (
        KnowledgeMemory(place) as everyone,
        KnowledgeMemory(place, scope=Scope(user="ann")) as ann,
        KnowledgeMemory(place, scope=Scope(user="ann", session="s1")) as session,
    ):
        everyone.remember("Office opens at nine", persistent=True)
        ann.remember("Likes tea", persistent=True)
        session.remember("Asked for the code")
        assert everyone.get_persistent_facts() == {"general": ["Office opens at nine"]}
        assert ann.get_persistent_facts() == {"general": ["Likes tea"]}
        assert (recent(session), recent(ann)) == (["Asked for the code"], ["Likes tea"])
        assert ann.recall("office") == session.recall("tea") == everyone.recall("tea code") == []
        assert "Likes tea" in (place / "scopes" / "user=ann" / "MEMORY.md").read_text()
        assert "tea" not in (place / "MEMORY.md").read_text()
        ann.clear()
        assert (ann.memory_count, session.memory_count, everyone.memory_count) == (0, 1, 1)


def test_a_forgotten_scope_leaves_its_files_when_it_is_looked_at(place: Path):
    with KnowledgeMemory(place, scope=Scope(user="ann")) as ann:
        ann.remember("Likes zebras", persistent=True)
        ann.remember("Saw a zebra")
    with KnowledgeMemory(place) as memory:
        memory.engine.store.forget_scope(Scope(user="ann"))
    with KnowledgeMemory(place, scope=Scope(user="ann")) as ann:
        assert (ann.get_persistent_facts(), recent(ann), ann.memory_count) == ({}, [], 0)
        assert traces(place, "zebra") == []


@given(
    names=st.lists(
        st.one_of(texts(12), st.text("Aa .%/\\:", max_size=6), st.text(max_size=300)).filter(
            lambda name: name.isprintable() and len(name) > 0
        ),
        min_size=1,
        max_size=4,
        unique=True,
    )
)
def test_the_folder_of_a_scope_is_its_own_and_below_the_place_on_any_system(names: list[str]):
    place = Path("place")
    scopes = [Scope(), *(Scope(user=name) for name in names), *(Scope(agent=n) for n in names)]
    scopes += [Scope(user=name, agent=name) for name in names]
    folders = [scope_folder(place, scope) for scope in scopes]
    assert folders[0] == place
    assert len({str(folder).lower() for folder in folders}) == len(scopes)
    for folder in folders[1:]:
        assert folder.parent == place / "scopes"
        assert len(folder.name.encode()) <= 255 and folder.name.isascii()
        assert not set(folder.name) & set('\\/:*?"<>|\0') and folder.name[-1] not in ". "


@pytest.mark.parametrize(
    "name", ["../../outside", "/abs", "a/b", "..", "C:\\x", "J. R.", "x" * 512]
)
def test_a_hostile_name_stays_below_the_directory(name: str, place: Path, tmp_path: Path):
    with KnowledgeMemory(place, scope=Scope(user=name)) as memory:
        memory.remember("Likes tea", persistent=True)
        [file] = tmp_path.rglob("MEMORY.md")
        assert file.parent.parent == place / "scopes"
    assert [path.name for path in tmp_path.iterdir()] == ["memory"]


# -- tools -----------------------------------------------------------------------------------


def test_the_tools_write_and_search_it(memory: KnowledgeMemory):
    remember, recall = make_remember_tool(memory), make_recall_tool(memory)
    remember.execute({"content": "User prefers dark mode", "category": "preferences"})
    remember.execute({"content": "Editor: vim", "persistent": "true"})
    memory.remember("Uses a mouse", tags=["editor"], importance=0.9)
    assert memory.get_persistent_facts() == {"general": ["Editor: vim"]}
    assert recall.execute({"query": "dark MODE", "limit": "3"}) == (
        "Found 1 memory:\n1. [preferences] User prefers dark mode"
    )
    assert recall.execute({"query": "preferences"}) == (
        "Found 1 memory:\n1. [preferences] User prefers dark mode"
    )
    assert recall.execute({"query": "editor"}) == (
        "Found 2 memories:\n1. Uses a mouse\n2. Editor: vim"
    )
    assert recall.execute({"query": "", "limit": 1}) == "Found 1 memory:\n1. Uses a mouse"
    assert recall.execute({"query": "zebra"}) == "No memories found matching 'zebra'."


def test_importance_decides_between_near_equals_and_then_relevance_and_then_the_newest(
    memory: KnowledgeMemory, now: Clock
):
    memory.remember("alpha", importance=0.9)
    memory.remember("alpha beta", importance=0.1)
    now.wait(timedelta(seconds=1))
    memory.remember("beta", importance=0.5)
    memory.remember("beta gamma", importance=0.5, created_at=START - DAY)
    assert [m.content for m in memory.match("alpha beta", 9)] == [
        "alpha beta",
        "alpha",
        "beta",
        "beta gamma",
    ]
    assert [m.content for m in memory.match("alpha beta")] == [
        m.content for m in memory.match("alpha beta", 5)
    ]


def test_many_are_remembered_with_their_lines(place: Path):
    with KnowledgeMemory(place) as memory:
        memory.remember_many(
            [
                "a note",
                {"content": "a fact", "category": "taste", "persistent": True},
                Memory("m1", "a memory", updated_at=START.timestamp() + 5),
            ]
        )
        assert [entry["content"] for entry in log_of(place)] == ["a note", "a fact", "a memory"]
        assert memory.get_persistent_facts() == {"taste": ["a fact"]}


def test_what_could_be_restored_is_not_there_after_clearing(place: Path):
    with KnowledgeMemory(place) as memory:
        id = memory.remember("Likes zebras", persistent=True).id
        (place / "MEMORY.md").write_text("# Agent Memory\n")
        assert [found.id for _, found in memory.forgotten()] == [id]
        memory.clear()
        assert memory.forgotten() == []
        with pytest.raises(NotFound):
            memory.restore(id)
        assert traces(place, "zebra") == []
