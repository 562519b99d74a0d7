from __future__ import annotations

import importlib.util
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

import postgrest_server
import retain
import servers
from retain import (
    AgentMemory,
    ConversationMemory,
    FileStore,
    InMemoryStore,
    InvalidType,
    InvalidValue,
    JSONFileStore,
    KnowledgeMemory,
    Memory,
    RetainError,
    Scope,
    SQLiteStore,
    Store,
    SupabaseStore,
    VectorStoreMemory,
)
from retain.stores.opening import address, hidden


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize(
    ("url", "kind", "path"),
    [
        ("sqlite:///notes.db", SQLiteStore, "notes.db"),
        ("sqlite:notes.db", SQLiteStore, "notes.db"),
        ("SQLite:///deep/down/notes.db", SQLiteStore, "deep/down/notes.db"),
        ("sqlite:///{here}/notes.db", SQLiteStore, "notes.db"),
        ("sqlite:{here}/notes.db", SQLiteStore, "notes.db"),
        ("sqlite:///~/notes.db", SQLiteStore, "home/notes.db"),
        ("sqlite:~/notes.db", SQLiteStore, "home/notes.db"),
        ("sqlite:///my notes.db", SQLiteStore, "my notes.db"),
        ("sqlite:///my%20notes.db", SQLiteStore, "my notes.db"),
        ("sqlite:///100%25%3F%23.db", SQLiteStore, "100%?#.db"),
        ("sqlite:///東京/café.db", SQLiteStore, "東京/café.db"),
        ("sqlite:///%E6%9D%B1%E4%BA%AC.db", SQLiteStore, "東京.db"),
        ("sqlite:///postgresql://x.db", SQLiteStore, "postgresql:/x.db"),
        ("sqlite:///a@b.db", SQLiteStore, "a@b.db"),
        ("file:folder", FileStore, "folder/memories.jsonl"),
        ("file:folder/", FileStore, "folder/memories.jsonl"),
        ("file:.", FileStore, "memories.jsonl"),
        ("file://{here}/folder", FileStore, "folder/memories.jsonl"),
        ("file:{here}/folder", FileStore, "folder/memories.jsonl"),
        ("file:~/folder", FileStore, "home/folder/memories.jsonl"),
        ("file:notes.json", JSONFileStore, "notes.json"),
        ("file:Notes.JSON", JSONFileStore, "Notes.JSON"),
        ("file://{here}/notes.json", JSONFileStore, "notes.json"),
    ],
)
def test_a_url_of_a_path_opens_its_store_there(here: Path, url: str, kind: type, path: str):
    with retain.open(url.format(here=here)) as store, kind(store_place(here / path)) as own:
        assert isinstance(store, kind)
        store.save(Memory("m1", "Likes tea"))
        assert store.path == here / path
        assert own.get("m1").content == "Likes tea"


def store_place(path: Path) -> Path:
    return path.parent if path.name == "memories.jsonl" else path


@pytest.mark.parametrize("url", ["memory:", "memory://", "MEMORY:"])
def test_memory_is_a_store_in_the_process(url: str):
    with retain.open(url) as store, retain.open(url) as other:
        assert isinstance(store, InMemoryStore)
        store.save(Memory("m1"))
        assert other.count() == 0


SERVERS = [
    (package, url)
    for package, url in (("redis", servers.new_redis), ("postgres", servers.new_database))
    if importlib.util.find_spec(f"retain.stores.{package}")
]


@pytest.mark.parametrize(("kind", "server"), SERVERS, ids=[kind for kind, _ in SERVERS])
def test_a_url_of_a_server_opens_its_store_there(kind: str, server):
    url = server()
    with retain.open(url) as store, retain.open(url, scope=Scope("ann")) as anns:
        store.save(Memory("m1", "Likes tea"))
        assert anns.scope == Scope("ann")
        assert anns.scoped(Scope()).get("m1").content == "Likes tea"
        assert "retain@" not in repr(store)


@pytest.mark.parametrize(("kind", "server"), SERVERS, ids=[kind for kind, _ in SERVERS])
def test_a_part_of_a_server_may_be_named(kind: str, server):
    url, option = server(), {"redis": "prefix", "postgres": "schema"}[kind]
    with retain.open(f"{url}?{option}=one") as one, retain.open(url, **{option: "two"}) as two:
        one.save(Memory("m1"))
        assert two.count() == 0
        with retain.open(f"{url}?{option}=two", **{option: "one"}) as again:
            assert again.count() == 1


ROLES = """
DO $$ BEGIN
    CREATE ROLE anon NOLOGIN;
    CREATE ROLE authenticated NOLOGIN;
    CREATE ROLE service_role NOLOGIN BYPASSRLS;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
GRANT anon, authenticated, service_role TO retain_tests;
"""


def test_a_project_of_supabase_is_opened_with_the_key_of_the_environment(monkeypatch):
    database = servers.new_database()
    with psycopg.connect(servers.postgres_url(), autocommit=True) as server:
        server.execute(ROLES)
    with psycopg.connect(database, autocommit=True) as own:
        own.execute("GRANT USAGE ON SCHEMA public TO service_role")
        own.execute(SupabaseStore.sql("notes"))
    project = postgrest_server.start(database, "s3cr3t", role="service_role")
    try:
        url = f"supabase:{project.url}?table=notes"
        monkeypatch.delenv("SUPABASE_KEY", raising=False)
        with pytest.raises(InvalidValue, match="SUPABASE_KEY"):
            retain.open(url)
        monkeypatch.setenv("SUPABASE_KEY", "s3cr3t")
        with retain.open(url, scope=Scope("ann")) as store:
            assert isinstance(store, SupabaseStore)
            store.save(Memory("m1", "Likes tea"))
            assert [memory.content for memory in store.list_all()] == ["Likes tea"]
    finally:
        project.stop()


@pytest.mark.parametrize("url", ["", "nonsense", "https://h:port", "//ann:s3cr3t@h"])
def test_an_address_that_is_no_project_of_supabase_is_refused(monkeypatch, url: str):
    monkeypatch.setenv("SUPABASE_KEY", "s3cr3t")
    with pytest.raises(InvalidValue) as refusal:
        retain.open(f"supabase:{url}")
    assert SECRET not in str(refusal.value)


def test_a_scope_is_bound():
    with retain.open("memory:", scope=Scope("ann")) as store:
        assert store.scope == Scope("ann")


def test_options_may_stand_in_the_url_and_an_argument_wins(here: Path):
    with retain.open("sqlite:///a.db?busy_timeout=2.5&allow_network=yes") as store:
        assert store.driver._busy_timeout == 2.5
    with retain.open("sqlite:///a.db?busy_timeout=2.5", busy_timeout=1.0) as store:
        assert store.driver._busy_timeout == 1.0


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("", "no URL of a store"),
        ("notes.db", "sqlite:///path"),
        ("/var/notes.db", "sqlite:///path"),
        ("./notes:1.db", "sqlite:///path"),
        ("C:\\notes.db", "sqlite:///path"),
        ("C:/notes", "sqlite:///path"),
        (":memory:", "Known are"),
        ("mysql://localhost/x", "mysql: URLs"),
        ("http://localhost/x", "http: URLs"),
        ("postgresql+psycopg://localhost/x", "postgresql+psycopg: URLs"),
        ("sqlite:", "names no file"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:////", "names no file"),
        ("sqlite:///:memory:", "memory:, and gone"),
        ("sqlite://notes.db", "or a host; write sqlite:///notes.db"),
        ("file:", "names no file"),
        ("file:/", "names no file"),
        ("file:///", "names no file"),
        ("file://localhost/folder", "or a host"),
        ("memory:notes", "names a place in memory"),
        ("postgresql:agents", "postgresql://host"),
        ("redis:localhost", "redis://host"),
        ("sqlite:///a.db#b", "write %23"),
        ("sqlite:///100%.db", "write %25"),
        ("sqlite:///%zz.db", "write %25"),
        ("sqlite:///%ff.db", "not UTF-8"),
        ("sqlite:///a%00.db", "is no path"),
        ("sqlite:///a\0.db", "control character"),
        ("sqlite:///a.db\n", "control character"),
        (" sqlite:///a.db", "white space around it"),
        ("sqlite:///a.db ", "white space around it"),
        ("sqlite:///~nobody-of-that-name/a.db", "is no path"),
        ("sqlite:///what?.db", "no name=value"),
        ("sqlite:///a.db?mode=ro", "'mode' is no option of a SQLiteStore"),
        ("sqlite:///a.db?busy_timeout=soon", "busy_timeout='soon'"),
        ("sqlite:///a.db?allow_network=maybe", "allow_network='maybe'"),
        ("file:a?scope=ann", "'scope' is no option"),
    ],
)
def test_a_url_that_names_no_store_is_refused_and_makes_nothing(here: Path, url: str, told: str):
    with pytest.raises(InvalidValue) as refusal:
        retain.open(url)
    assert told in str(refusal.value)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("url", [None, 3, b"memory:", Path("notes.db")], ids=repr)
def test_what_is_no_text_is_refused(url):
    with pytest.raises(InvalidType):
        retain.open(url)


def test_a_surrogate_is_refused():
    with pytest.raises(InvalidValue):
        retain.open("sqlite:///\ud800.db")


def test_an_option_that_the_store_has_not_is_refused(here: Path):
    with pytest.raises(InvalidType, match="'size' is no option of a SQLiteStore; those are: busy"):
        retain.open("sqlite:///a.db", size=3)
    with pytest.raises(InvalidType, match="InMemoryStore"):
        retain.open("memory:", busy_timeout=3.0)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("sqlite:///folder", "is a folder, and a SQLiteStore is a file"),
        ("file:folder.json", "is a folder, and a JSONFileStore is a file"),
        ("file:notes.txt", "is a file, and a FileStore is a folder"),
        ("file:agent", "is a memory directory"),
        ("sqlite:///agent", "is a memory directory"),
    ],
)
def test_a_folder_for_a_file_and_a_file_for_a_folder_are_told(here: Path, url: str, told: str):
    for name in ("folder", "folder.json"):
        (here / name).mkdir()
    (here / "notes.txt").write_text("mine")
    KnowledgeMemory(here / "agent").close()
    before = sorted(here.rglob("*"))
    with pytest.raises(InvalidValue) as refusal:
        retain.open(url)
    assert told in str(refusal.value)
    assert sorted(here.rglob("*")) == before


SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql//ann:s3cr3t@localhost/x",
        "mysql://ann:s3cr3t@localhost/x",
        "ann:s3cr3t@localhost",
        "postgresql:ann:s3cr3t@localhost",
        "redis://:s3cr3t@localhost:6379/0 ",
        "redis://:s3cr3t/@:with/odd?signs@localhost:6379/0\n",
        "host=localhost password=s3cr3t",
        "host=localhost password = s3cr3t",
        "redis//localhost?password=s3cr3t",
        "sqlite:///x.db?sslpassword=s3cr3t@1",
        "supabase:https://x.example?key=s3cr3t",
        "postgresql://ann:s3cr3t/x@localhost/x",
        "redis://ann:s3cr3t/x@localhost:6379/0",
    ],
)
def test_a_password_is_in_no_message(monkeypatch, url: str):
    monkeypatch.delenv("SUPABASE_KEY", raising=False)
    with pytest.raises(RetainError) as refusal:
        retain.open(url)
    assert SECRET not in str(refusal.value)


@given(st.text(max_size=20), st.text(st.characters(exclude_characters="&\n ", min_codepoint=33)))
def test_what_is_hidden_holds_no_password(user: str, password: str):
    password = f"<{SECRET}{password}>"
    shown = hidden(f"redis://{user}:{password}@localhost:6379/0?prefix=x")
    assert SECRET not in shown
    assert shown.endswith("@localhost:6379/0?prefix=x")


@pytest.mark.parametrize("url", ["sqlite:///a:b@c.db", "file:/home/ann@work/a:b@c", "file:a@b"])
def test_a_path_is_shown_as_it_is(url: str):
    assert address(url).shown == url
    assert hidden("file://ann:s3cr3t@host/folder") == "file://***@host/folder"


def test_all_names_of_retain_leave_pythons_open_alone():
    names: dict = {}
    exec("from retain import *", names)
    assert "AgentMemory" in names and "open" not in names


def test_an_address_says_no_password():
    there = address("redis://ann:s3cr3t@localhost/0?prefix=mine&password=s3cr3t&socket_timeout=3")
    assert SECRET not in there.shown + repr(there)
    assert there.options == {"prefix": "mine"}
    assert there.target == "redis://ann:s3cr3t@localhost/0?password=s3cr3t&socket_timeout=3"


def test_what_is_the_servers_stays_as_it_is():
    url = "postgresql://ann:p%40ss?word@h1,h2:5433/db?options=-c%20x%3D1&&target=any#x"
    assert address(url).target == url
    assert address("postgres://h/db?schema=a%20b").options == {"schema": "a b"}
    assert address("postgres://h/db?schema=a%20b").target == "postgres://h/db"


@pytest.mark.parametrize("scheme", ["redis", "rediss", "valkey", "valkeys"])
def test_valkey_is_spoken_to_as_redis_is(scheme: str):
    assert address(f"{scheme}://h/0").target == f"{scheme.replace('valkey', 'redis')}://h/0"


@given(st.text(max_size=40) | st.text(max_size=20).map("sqlite:///{}".format))
def test_any_text_is_an_address_or_refused_as_no_url(url: str):
    try:
        address(url)
    except InvalidValue as error:
        assert str(error)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20))
def test_any_name_of_a_file_can_be_written_as_a_url(name: str):
    from urllib.parse import quote

    name = f"x/{name}"
    assert address(f"sqlite:///{quote(name)}").target == name


def test_every_face_takes_a_url(here: Path):
    for number, face in enumerate((AgentMemory, VectorStoreMemory)):
        with face(f"sqlite:///{number}.db") as memory:
            memory.remember("Likes tea")
        with SQLiteStore(f"{number}.db") as store:
            assert store.count() == 1
    with ConversationMemory(store="file:talk") as talk:
        talk.add_turn("user", "hello")
    with FileStore("talk") as store:
        assert store.count() == 1
    with KnowledgeMemory(None, store="sqlite:///k.db") as knowledge:
        knowledge.remember("Likes tea", persistent=True)
        assert knowledge.store.count() == 1
    with SQLiteStore("k.db") as store:
        assert store.count() == 1


def test_a_face_refuses_a_bad_url(here: Path):
    with pytest.raises(InvalidValue, match="no URL of a store"):
        AgentMemory("notes.db")


def test_opening_is_there_from_the_front_door():
    assert issubclass(type(retain.open("memory:")), Store)
    assert "open" in dir(retain)
