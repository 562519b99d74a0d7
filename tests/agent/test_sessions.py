"""Sessions: stored, found, isolated, shared by processes, and an agent that goes on with one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from retain import (
    Agent,
    AgentConfig,
    ConversationMemory,
    InMemoryStore,
    LocalProvider,
    Memory,
    Message,
    Role,
    Scope,
    SQLiteSessionStore,
    SQLiteStore,
    StoreSessions,
    ToolCall,
)
from retain.agent import SessionStore, tool
from retain.errors import (
    InvalidType,
    InvalidValue,
    NotFound,
    StoreCorrupt,
    StoreFailed,
    StoreTooNew,
)


def talk(*texts: str, most: int = 50) -> ConversationMemory:
    memory = ConversationMemory(most)
    memory.add_many([Message(Role.USER, text) for text in texts])
    return memory


def texts(memory: ConversationMemory | None) -> list[str]:
    assert memory is not None
    return [message.content for message in memory.get_history()]


@pytest.fixture
def sessions() -> StoreSessions:
    return StoreSessions(InMemoryStore())


# -- the store ----------------------------------------------------------------------------


def test_a_session_is_whole_after_a_restart(tmp_path: Path):
    memory = talk("Où est la gare ?", most=7)
    call = ToolCall("find", {"place": "gare\0", "n": [1.5, None, {"é": float("inf")}]}, "c1")
    memory.add(Message(Role.ASSISTANT, "", tool_calls=[call]))
    memory.add(Message(Role.TOOL, "half \ud800", "find", "half \ud800", tool_call_id="c1"))
    with SQLiteSessionStore(db_path=str(tmp_path / "deep" / "sessions.db")) as store:
        store.save("user-42", memory)
        assert isinstance(store, SessionStore)
    with SQLiteSessionStore(tmp_path / "deep" / "sessions.db") as store:
        loaded = store.load("user-42")
        assert isinstance(loaded, ConversationMemory)
        assert loaded.to_dict() == memory.to_dict()
        assert store.exists("user-42")
        assert store.delete("user-42") and not store.delete("user-42")
        assert store.load("user-42") is None and not store.exists("user-42")
        assert store.list() == store.search("gare") == []


@pytest.mark.parametrize(
    "id", ["x", "é" * 512, "../../etc/passwd", "a\nb", "𝔘𝔫𝔦 👩‍👩‍👧", " ", "a:b", "%00"]
)
def test_any_text_of_512_characters_is_an_id(sessions: StoreSessions, id: str):
    sessions.save(id, talk("Hi"))
    assert texts(sessions.load(id)) == ["Hi"]
    assert sessions.list() == [id]


@pytest.mark.parametrize(
    ("id", "error", "said"),
    [
        ("", InvalidValue, "0 characters; give 1 to 512"),
        ("é" * 513, InvalidValue, "513 characters; give 1 to 512"),
        ("a\0b", InvalidValue, "NUL"),
        ("\udcff", InvalidValue, "surrogate"),
        (None, InvalidType, "session_id is a NoneType"),
        (b"x", InvalidType, "session_id is a bytes"),
    ],
)
def test_an_id_that_can_not_be_is_refused_by_every_call(sessions: StoreSessions, id, error, said):
    calls = [
        lambda: sessions.save(id, talk("Hi")),
        lambda: sessions.load(id),
        lambda: sessions.delete(id),
        lambda: sessions.exists(id),
        lambda: sessions.extend(id, []),
    ]
    for call in calls:
        with pytest.raises(error, match=said):
            call()
    if id is not None:
        with pytest.raises(error, match=said.replace("session_id", "namespace")):
            StoreSessions(InMemoryStore(), namespace=id)
    assert sessions.list() == []


def test_a_namespace_is_seen_under_no_other_name(tmp_path: Path):
    place = tmp_path / "s.db"
    with SQLiteSessionStore(place) as plain, SQLiteSessionStore(place, namespace="a") as named:
        plain.save("s", talk("plain"))
        named.save("s", talk("named"))
        plain.save("s", talk("other"), namespace="b")
        for store, namespace, said in [(plain, None, "plain"), (named, None, "named")]:
            assert texts(store.load("s", namespace)) == [said]
            assert store.list() == store.search(said) == ["s"]
            assert store.search("other") == []
        assert texts(named.load("s", namespace="b")) == ["other"]
        assert named.load("s", namespace="A") is None
        assert named.delete("s")
        assert texts(plain.load("s")) == ["plain"] and not plain.exists("s", "a")


def test_sessions_are_listed_newest_first_and_say_what_they_are(sessions: StoreSessions):
    sessions.save("one", talk("a"))
    sessions.save("two", talk("a", "b"))
    sessions.save("one", talk("a", "b", "c"))
    one, two = sessions.list()
    assert (one, one.session_id, one.message_count, two.message_count) == ("one", "one", 3, 2)
    assert one.created_at <= two.created_at <= two.updated_at <= one.updated_at


def test_a_search_finds_what_was_said_in_any_language_by_tools_too(sessions: StoreSessions):
    sessions.save("travel", talk("Der Zug nach Köln fährt um neun", "明日は東京に行きます"))
    kitchen = talk("What can I cook?")
    kitchen.add(Message(Role.ASSISTANT, "", tool_calls=[ToolCall("look", {}, "c")]))
    kitchen.add(Message(Role.TOOL, "two aubergines", "look", tool_call_id="c"))
    sessions.save("kitchen", kitchen)
    assert sessions.search("KÖLN") == sessions.search("東京") == ["travel"]
    (found,) = sessions.search("aubergine")
    assert found == "kitchen" and 0 < found.score <= 1
    assert sessions.search("zebra") == [] and len(sessions.search("", limit=1)) == 1
    sessions.save("kitchen", talk("Never mind"))
    assert sessions.search("aubergine") == []


def test_long_sessions_fit(sessions: StoreSessions):
    memory = talk(*(f"{number} " + "é" * 20_000 for number in range(60)), most=60)
    sessions.save("long", memory)
    assert sessions.load("long").to_dict() == memory.to_dict()  # type: ignore[union-attr]


def test_messages_are_added_in_one_step_and_the_window_never_shrinks(sessions: StoreSessions):
    assert texts(sessions.extend("s", [Message(Role.USER, "1")], 3)) == ["1"]
    sessions.extend("s", [Message(Role.USER, text) for text in "234"], 2)
    assert texts(sessions.load("s")) == ["2", "3", "4"]


def test_a_branch_goes_on_apart(sessions: StoreSessions):
    sessions.save("s", talk("1"))
    sessions.branch("s", "t")
    sessions.extend("t", [Message(Role.USER, "2")])
    assert (texts(sessions.load("s")), texts(sessions.load("t"))) == (["1"], ["1", "2"])
    with pytest.raises(InvalidValue, match="'t' already"):
        sessions.branch("s", "t")
    with pytest.raises(NotFound, match="'u'"):
        sessions.branch("u", "v")


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({}, StoreCorrupt),
        ({"session": "?"}, StoreCorrupt),
        ({"session": {"format": 1}}, StoreCorrupt),
        ({"session": {"format": 1, "window": '{"messages": ['}}, StoreCorrupt),
        ({"session": {"format": 1, "window": '{"messages": [{}]}'}}, StoreCorrupt),
        ({"session": {"format": 2, "window": "{}"}}, StoreTooNew),
    ],
)
def test_what_can_not_be_read_is_said_and_never_overwritten(metadata: Any, error: type):
    store = InMemoryStore()
    sessions = StoreSessions(store)
    broken = Memory("session:s", "?", metadata=metadata, category="session")
    store.save(broken)
    for call in (
        lambda: sessions.load("s"),
        lambda: sessions.save("s", talk("new")),
        lambda: sessions.extend("s", [Message(Role.USER, "new")]),
        lambda: Agent([], config=AgentConfig(session_store=sessions, session_id="s")),
    ):
        with pytest.raises(error, match="'s'"):
            call()
    assert store.peek(["session:s"])[0].metadata == metadata
    assert sessions.delete("s")
    sessions.save("s", talk("new"))


def test_a_file_that_is_no_store_and_a_thing_that_is_no_memory_are_refused(tmp_path, sessions):
    (tmp_path / "s.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreFailed):
        SQLiteSessionStore(tmp_path / "s.db")
    with pytest.raises(InvalidType, match="no ConversationMemory"):
        sessions.save("s", {"messages": []})
    with pytest.raises(InvalidType, match="retain store"):
        StoreSessions(5)  # type: ignore[arg-type]
    unsound = talk("x")
    unsound.add(Message(Role.ASSISTANT, "", tool_calls=[ToolCall("f", {"x": object()})]))
    with pytest.raises(InvalidValue, match="not JSON"):
        sessions.save("s", unsound)


def test_sessions_and_other_memories_of_one_store_leave_each_other_alone(tmp_path: Path):
    store = SQLiteStore(tmp_path / "memory.db", scope=Scope(user="ann"))
    store.save(Memory("s", "a cat", category="session"))
    with StoreSessions(store) as sessions:
        sessions.save("s", talk("a dog"))
        assert sessions.list() == ["s"] and sessions.search("cat") == []
        assert sessions.delete("s") and store.count() == 1


WRITER = """
import sys
from retain import Message, SQLiteSessionStore
with SQLiteSessionStore(sys.argv[1]) as store:
    for number in range(20):
        store.extend("s", [Message("user", f"{sys.argv[2]} {number}")], 100)
"""


def test_processes_that_add_to_one_session_lose_nothing(tmp_path: Path):
    place = str(tmp_path / "s.db")
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, place, name]) for name in ("ä", "b")
    ]
    assert [process.wait(60) for process in processes] == [0, 0]
    with SQLiteSessionStore(place) as store:
        said = texts(store.load("s"))
    assert [text for text in said if text[0] == "ä"] == [f"ä {n}" for n in range(20)]
    assert len(said) == 40


# -- the agent ----------------------------------------------------------------------------


def config(sessions: Any, id: str = "s", **settings: Any) -> AgentConfig:
    return AgentConfig(session_store=sessions, session_id=id, **settings)


def test_an_agent_goes_on_where_another_one_ended(sessions: StoreSessions):
    Agent([], memory=ConversationMemory(), config=config(sessions)).run("Ich heiße Änne")
    memory = ConversationMemory()
    again = Agent([], memory=memory, config=config(sessions))
    assert again.memory is memory
    assert texts(memory) == ["Ich heiße Änne", "You said: Ich heiße Änne"]
    Agent([], config=config(sessions)).run("And now?")
    assert len(texts(sessions.load("s"))) == 4
    assert Agent([], config=config(sessions, "t")).run("Hi").content == "You said: Hi"
    assert sorted(sessions.list()) == ["s", "t"]


def test_an_agent_that_only_began_stores_nothing(sessions: StoreSessions):
    Agent([], memory=ConversationMemory(), config=config(sessions))
    assert sessions.list() == []


def test_agents_that_take_turns_see_each_others(sessions: StoreSessions):
    one, two = (Agent([], config=config(sessions)) for _ in range(2))
    one.run("1")
    two.run("2")
    one.run("3")
    said = ["1", "You said: 1", "2", "You said: 2", "3", "You said: 3"]
    assert texts(one.memory) == texts(sessions.load("s")) == said


def test_what_a_memory_held_before_comes_after_what_is_stored_and_is_kept(sessions):
    sessions.save("s", talk("old"))
    agent = Agent([], memory=talk("own"), config=config(sessions))
    assert texts(agent.memory) == texts(sessions.load("s")) == ["old", "own"]
    again = Agent([], memory=agent.memory, config=config(sessions))
    assert texts(again.memory) == texts(sessions.load("s")) == ["old", "own"]


def test_the_same_message_may_be_said_twice(sessions: StoreSessions):
    agent = Agent([], config=config(sessions))
    again = Message(Role.USER, "Again")
    agent.run(again)
    agent.run([again])
    assert texts(sessions.load("s")) == ["Again", "You said: Again"] * 2


def test_a_window_that_is_cleared_clears_the_session_and_a_deleted_session_the_window(sessions):
    agent = Agent([], config=config(sessions))
    agent.run("1")
    agent.memory.clear()
    agent.run("2")
    assert texts(sessions.load("s")) == ["2", "You said: 2"]
    sessions.delete("s")
    agent.run("3")
    assert texts(agent.memory) == texts(sessions.load("s")) == ["3", "You said: 3"]


def test_a_window_that_slid_on_clears_nothing_that_others_stored(sessions: StoreSessions):
    small = Agent([], config=config(sessions), memory=ConversationMemory(2))
    small.run("1")
    Agent([], config=config(sessions)).run("Ź")
    small.memory.add_many([Message(Role.USER, "2"), Message(Role.ASSISTANT, "two")])
    small.run("3")
    said = ["1", "You said: 1", "Ź", "You said: Ź", "2", "two", "3", "You said: 3"]
    assert texts(sessions.load("s")) == said


def test_each_step_is_stored_before_the_next_even_if_that_fails(sessions: StoreSessions):
    seen: list[list[str]] = []

    @tool
    def look() -> str:
        seen.append(texts(sessions.load("s")))
        return "two aubergines"

    class Failing(LocalProvider):
        def complete(self, **prompt: Any) -> Any:
            seen.append(texts(sessions.load("s")))
            if len(seen) > 1:
                raise ConnectionError("no route")
            return Message(Role.ASSISTANT, "", tool_calls=[ToolCall("look")]), None

    with pytest.raises(ConnectionError):
        Agent([look], Failing(), config=config(sessions)).run("What's there?")
    assert seen == [["What's there?"], ["What's there?"], ["What's there?", "", "two aubergines"]]
    again = Agent([look], config=config(sessions))
    assert again.run([]).content == "You said: What's there?"


@pytest.mark.parametrize("amid", ["model", "tool"])
def test_a_run_that_is_cancelled_keeps_the_turn_and_no_half_of_an_exchange(sessions, amid: str):
    async def cancelled() -> None:
        reached = asyncio.Event()

        async def wait_at(place: str) -> None:
            if place == amid:
                reached.set()
                await asyncio.Event().wait()

        @tool
        async def quick() -> str:
            return "done"

        @tool
        async def look() -> str:
            await wait_at("tool")
            return "nothing"

        class Slow(LocalProvider):
            async def acomplete(self, **prompt: Any) -> Any:
                await wait_at("model")
                calls = [ToolCall("quick"), ToolCall("look")]
                return Message(Role.ASSISTANT, "", tool_calls=calls), None

        run = asyncio.ensure_future(
            Agent([quick, look], Slow(), config=config(sessions)).arun("Où ?")
        )
        await reached.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(cancelled())
    assert texts(sessions.load("s")) == ["Où ?"]
    assert Agent([], config=config(sessions)).run([]).content == "You said: Où ?"


def test_what_can_not_be_stored_is_refused_and_not_in_the_way_of_what_can(sessions):
    agent = Agent([], config=config(sessions))
    odd = Message(Role.ASSISTANT, "", tool_calls=[ToolCall("look", {"at": {1, 2}})])
    with pytest.raises(InvalidValue, match="not JSON"):
        agent.run([Message(Role.USER, "Voilà"), odd])
    agent.run("2")
    assert texts(agent.memory) == texts(sessions.load("s")) == ["2", "You said: 2"]


KILLED = """
import os, sys
from retain import Agent, AgentConfig, LocalProvider, SQLiteSessionStore
class Killed(LocalProvider):
    def complete(self, **prompt):
        os._exit(9)
store = SQLiteSessionStore(sys.argv[1])
config = AgentConfig(session_store=store, session_id="s")
Agent([], config=config).run("Erst dies")
Agent([], Killed(), config=config).run("Dann das")
"""


def test_a_process_that_dies_while_the_model_thinks_has_lost_nothing_that_was_said(tmp_path):
    place = str(tmp_path / "s.db")
    assert subprocess.run([sys.executable, "-c", KILLED, place], timeout=60).returncode == 9
    with SQLiteSessionStore(place) as store:
        agent = Agent([], config=config(store))
        assert texts(agent.memory) == ["Erst dies", "You said: Erst dies", "Dann das"]
        assert agent.run([]).content == "You said: Dann das"


def test_threads_that_run_one_agent_lose_no_turn(sessions: StoreSessions):
    agent = Agent([], memory=ConversationMemory(200), config=config(sessions))
    threads = [threading.Thread(target=agent.run, args=[f"hi {n}"]) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = texts(sessions.load("s"))
    assert sorted(said) == sorted(f"{head}hi {n}" for head in ("", "You said: ") for n in range(20))
    assert texts(agent.memory) == said


def test_a_session_store_of_somebody_else_will_do():
    class Theirs:
        def __init__(self) -> None:
            self.kept: dict[str, Any] = {}

        def save(self, session_id: str, memory: ConversationMemory) -> None:
            self.kept[session_id] = memory.to_dict()

        def load(self, session_id: str) -> ConversationMemory | None:
            kept = self.kept.get(session_id)
            return None if kept is None else ConversationMemory.from_dict(kept)

        def list(self) -> list[str]:
            return [*self.kept]

        def delete(self, session_id: str) -> bool:
            return self.kept.pop(session_id, None) is not None

        def exists(self, session_id: str) -> bool:
            return session_id in self.kept

    theirs = Theirs()
    Agent([], config=config(theirs)).run("1")
    Agent([], memory=ConversationMemory(), config=config(theirs)).run("2")
    assert texts(theirs.load("s")) == ["1", "You said: 1", "2", "You said: 2"]


def test_a_session_needs_a_window_of_messages(sessions: StoreSessions):
    class Other:
        def add_many(self, messages: list[Message]) -> None: ...

        def get_history(self) -> list[Message]:
            return []

    with pytest.raises(InvalidType, match="needs a ConversationMemory"):
        Agent([], memory=Other(), config=config(sessions))
