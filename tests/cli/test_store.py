"""``--store``: every command over a store that is named by a URL."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import retain as library
import servers
from retain import Memory, Scope, SQLiteStore

PLACES = {
    "sqlite": lambda place: f"sqlite:///{place}/store.db",
    "file": lambda place: f"file:{place}/folder",
    "json": lambda place: f"file:{place}/store.json",
}
for module, new in (("postgres", servers.new_database), ("redis", servers.new_redis)):
    if importlib.util.find_spec(f"retain.stores.{module}"):
        PLACES[module] = lambda place, new=new: new()
ON_DISK = ("sqlite", "file", "json")


@pytest.fixture(params=PLACES)
def url(request, tmp_path: Path) -> str:
    return PLACES[request.param](tmp_path)


@pytest.fixture
def one(tmp_path: Path) -> str:
    return PLACES["sqlite"](tmp_path)


def test_every_command_works_over_a_store_of_any_kind(retain, url: str, tmp_path: Path, place):
    def there(*words: str, **how):
        return retain("--store", url, *words, **how)

    there("remember", "Likes tea", "--persistent", "--category", "prefs")
    id = there("remember", "buy bread", "--json").value["id"]
    assert there("remember", "Likes tea", "--persistent", "--category", "prefs").out.startswith(
        "Already remembered"
    )
    assert there("recall", "tea", "--json").value["memory"]["content"] == "Likes tea"
    assert [row["content"] for row in there("list", "--json").rows] == ["buy bread", "Likes tea"]
    assert there("update", id, "buy milk").out == f"Updated {id}\n"
    assert there("show", id[:8], "--json").value["content"] == "buy milk"
    assert there("facts").out == "## prefs\n- Likes tea\n"
    assert [row["content"] for row in there("log", "--json").rows] == ["buy milk", "Likes tea"]
    assert "buy milk" in there("context").out
    assert there("context", "tea").out == "- Likes tea\n"
    assert there("check").out == "No problems.\n"
    assert there("restore").out == ""
    assert "nothing that can be restored" in there("restore", id, expect=1).err
    there("remember", "hers", "--user", "ann")
    assert there("stats", "--json").value["memories"] == 2
    lines = there("export", "--all-scopes").out
    assert len(lines.splitlines()) == 3
    assert there("import", "-", "--keep-scope", stdin=lines).out.startswith("Imported 0, known")
    assert there("forget", id).out == f"Forgot {id}\n"
    assert there("prune").out.startswith("Deleted 0 expired")
    assert there("list", "--json").value["content"] == "Likes tea"
    assert not place.exists(), "no memory directory is made"


def test_the_store_is_the_one_that_a_program_opens(retain, url: str):
    retain("--store", url, "remember", "Likes tea", "--user", "ann")
    with library.open(url, scope=Scope("ann")) as store:
        assert [memory.content for memory in store.list_all()] == ["Likes tea"]


def test_statistics_name_the_kind_of_store_and_no_password(retain, url: str):
    retain("--store", url, "remember", "Likes tea")
    found = retain("--store", url, "stats", "--json").value
    kinds = {"sqlite": "SQLiteStore", "postgresql": "PostgresStore", "redis": "RedisStore"}
    scheme = url.partition(":")[0]
    kind = "JSONFileStore" if url.endswith(".json") else kinds.get(scheme, "FileStore")
    assert found["store"] == kind
    assert "retain:retain@" not in found["url"]
    assert "directory" not in found
    assert bool(found["bytes"]) == (scheme in ("sqlite", "file"))


def test_the_statistics_of_a_directory_name_its_store(retain, place: Path):
    retain("remember", "x")
    found = retain("stats", "--json").value
    assert (found["directory"], found["store"]) == (str(place), "SQLiteStore")


@pytest.mark.parametrize("kind", ON_DISK)
def test_a_command_that_reads_makes_no_store(retain, tmp_path: Path, kind: str):
    url = PLACES[kind](tmp_path)
    for words in (("list",), ("recall", "x"), ("check",), ("export",), ("stats",)):
        outcome = retain("--store", url, *words, expect=1)
        assert outcome.err.startswith("retain: nothing is remembered in ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ON_DISK)
def test_a_backup_is_a_store_of_the_same_kind(retain, tmp_path: Path, kind: str):
    retain("--store", PLACES[kind](tmp_path), "remember", "Likes tea")
    target = tmp_path / "backup" / ("copy.json" if kind == "json" else "copy")
    found = retain("--store", PLACES[kind](tmp_path), "backup", str(target), "--json").value
    assert found["bytes"] > 0
    copy = f"sqlite:{target}" if kind == "sqlite" else f"file:{target}"
    assert retain("--store", copy, "list", "--json").value["content"] == "Likes tea"
    assert "exists" in retain("--store", copy, "backup", str(target), expect=2).err


@pytest.mark.skipif("redis" not in PLACES, reason="there is no Redis")
def test_a_backup_of_redis_is_a_sqlite_file(retain, tmp_path: Path):
    url, target = PLACES["redis"](tmp_path), str(tmp_path / "copy.db")
    retain("--store", url, "remember", "Likes tea")
    assert retain("--store", url, "backup", target).out.startswith("Copied 1 files, ")
    copy = ("--store", f"sqlite:{target}")
    assert retain(*copy, "list", "--json").value["content"] == "Likes tea"


@pytest.mark.skipif("postgres" not in PLACES, reason="there is no PostgreSQL")
def test_a_database_is_backed_up_by_its_own_means(retain, tmp_path: Path):
    url = PLACES["postgres"](tmp_path)
    retain("--store", url, "remember", "Likes tea")
    outcome = retain("--store", url, "backup", str(tmp_path / "copy"), expect=2)
    assert "pg_dump" in outcome.err
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "copy").exists()


def test_a_broken_store_is_checked_and_mended(retain, one: str, tmp_path: Path):
    import sqlite3

    retain("--store", one, "remember", "Likes tea")
    with sqlite3.connect(tmp_path / "store.db") as database:
        database.execute("UPDATE memories SET metadata = '{'")
    database.close()
    assert retain("--store", one, "check", expect=1).out.startswith("memory '")
    assert "(mended)" in retain("--store", one, "check", "--fix").out
    assert retain("--store", one, "check").out == "No problems.\n"


def test_a_store_in_memory_is_refused(retain):
    assert "gone when a command ends" in retain("--store", "memory:", "list", expect=2).err
    assert "gone when a command ends" in retain("remember", "x", "--store", "memory:", expect=2).err


@pytest.mark.parametrize("url", ["notes.db", "mysql://h/x", "sqlite:", "sqlite:///a.db#b"])
def test_a_url_of_no_store_is_a_mistake(retain, url: str):
    assert retain("--store", url, "list", expect=2).err.count("\n") == 1


def test_a_memory_directory_is_told_from_a_store(retain, place: Path):
    retain("remember", "x")
    assert "memory directory" in retain("--store", f"sqlite:{place}", "remember", "x", expect=2).err
    assert "memory directory" in retain("--store", f"file:{place}", "remember", "x", expect=2).err


def test_every_error_of_a_server_is_one_line_without_the_password(retain):
    for url in (
        "postgresql://ann:s3cr3t@127.0.0.1:1/x?timeout=0.1",
        "postgresql://ann:s3cr3t@[127.0.0.1/x",
        "postgresql://ann:s3cr3t@127.0.0.1:port/x?timeout=0.1",
        "postgresql://ann:s3cr3t@127.0.0.1/x?no_such_option=1&timeout=0.1",
        "redis://ann:s3cr3t@127.0.0.1:1/0",
        "redis://ann:s3cr3t@127.0.0.1:port/0",
        "redis://ann:s3cr3t@127.0.0.1:1/0?socket_timeout=soon",
        "redis//ann:s3cr3t@127.0.0.1:1/0",
        "mysql://ann:s3cr3t@127.0.0.1:1/0",
    ):
        for words in (("list",), ("copy", url, "x"), ("--json", "stats")):
            if words[0] == "copy":
                outcome = retain(*words, expect=None)
            else:
                outcome = retain("--store", url, *words, expect=None)
            assert outcome.code in (1, 2, 3), outcome
            assert "s3cr3t" not in outcome.err + outcome.out
            assert outcome.err.count("\n") == 1


def test_a_server_that_is_not_there_is_told_in_one_line(process):
    outcome = process("--store", "postgresql://a:s3cr3t@127.0.0.1:1/x?timeout=1", "list", expect=3)
    assert outcome.err.count("\n") == 1
    assert "s3cr3t" not in outcome.err


# -- which place it is -------------------------------------------------------------------------


def test_a_store_may_stand_before_or_after_the_command(retain, one: str):
    retain("remember", "x", "--store", one)
    assert retain("--store", one, "list", "--store", one, "--json").value["content"] == "x"


def test_a_store_on_the_command_line_wins_over_a_directory_of_the_environment(
    retain, one: str, place: Path
):
    retain("--store", one, "remember", "x")
    assert not place.exists()


def test_a_directory_on_the_command_line_wins_over_a_store_of_the_environment(
    retain, one: str, place: Path, monkeypatch
):
    monkeypatch.setenv("RETAIN_STORE", one)
    retain("--dir", str(place), "remember", "x")
    assert (place / "memory.db").exists()


def test_a_store_may_come_from_the_environment(retain, one: str, tmp_path: Path, monkeypatch):
    monkeypatch.delenv("RETAIN_DIR")
    monkeypatch.setenv("RETAIN_STORE", one)
    retain("remember", "x")
    with SQLiteStore(tmp_path / "store.db") as store:
        assert store.count() == 1
    monkeypatch.setenv("RETAIN_STORE", "")
    monkeypatch.setenv("RETAIN_DIR", str(tmp_path / "other"))
    assert retain("list", expect=1).err.startswith("retain: nothing is remembered in ")


def test_two_places_are_a_mistake(retain, one: str, place: Path, monkeypatch):
    outcome = retain("--store", one, "--dir", str(place), "remember", "x", expect=2)
    assert "--dir and --store are two places" in outcome.err
    monkeypatch.setenv("RETAIN_STORE", one)
    outcome = retain("remember", "x", expect=2)
    assert "RETAIN_DIR and RETAIN_STORE are both set" in outcome.err
    assert not place.exists()


def test_two_stores_are_a_mistake_that_tells_no_password(retain):
    words = ("--store", "redis://:s3cr3t@a", "list", "--store", "redis://:s3cr3t@b")
    outcome = retain(*words, expect=2)
    assert "--store is given twice" in outcome.err
    assert "s3cr3t" not in outcome.err


# -- copy --------------------------------------------------------------------------------------


@pytest.fixture
def stocked(retain, place: Path) -> None:
    retain("remember", "Likes tea", "--persistent")
    retain("remember", "buy bread")
    retain("remember", "hers", "--user", "ann", "--agent", "helper")


def by_id(rows: list[dict]) -> dict[str, dict]:
    return {row["id"]: row | {"revision": 0} for row in rows}


def test_a_directory_is_copied_to_a_store_and_back(
    retain, stocked, url: str, place: Path, tmp_path: Path
):
    assert retain("copy", str(place), url).out == "Copied 3 in 2 scopes. Verified.\n"
    outcome = retain("copy", str(place), url)
    assert outcome.out == "Copied 0 in 2 scopes, there already: 3. Verified.\n"
    other = tmp_path / "other"
    assert retain("copy", url, str(other)).out == "Copied 3 in 2 scopes. Verified.\n"
    assert "- Likes tea" in (other / "MEMORY.md").read_text()
    assert len(list(other.glob("logs/*.jsonl"))) == len(list(other.glob("scopes/*/logs/*"))) == 1
    before, after = (retain("--dir", str(p), "export", "--all-scopes") for p in (place, other))
    assert by_id(after.rows) == by_id(before.rows)


def test_a_copy_reports_in_json(retain, stocked, one: str, place: Path):
    found = retain("copy", str(place), one, "--json").value
    assert (found["verified"], found["copied"], found["memories"]) == (True, 3, 3)
    assert [each["scope"] for each in found["scopes"]] == [{}, {"user": "ann", "agent": "helper"}]
    assert all(each["digest"] == each["arrived_digest"] for each in found["scopes"])


def test_a_scope_of_the_command_line_alone_narrows_a_copy(
    retain, stocked, one: str, place: Path, monkeypatch
):
    words = ("copy", str(place), one)
    outcome = retain(*words, "--user", "ann", "--agent", "helper")
    assert outcome.out == "Copied 1 in 1 scope. Verified.\n"
    assert "nothing to copy" in retain(*words, "--user", "bob", expect=1).err
    monkeypatch.setenv("RETAIN_USER", "bob")
    assert retain(*words).out == "Copied 2 in 2 scopes, there already: 1. Verified.\n"


def test_a_mirror_deletes_what_the_source_has_not(retain, stocked, one: str, place: Path):
    retain("copy", str(place), one)
    retain("--store", one, "remember", "own")
    outcome = retain("copy", str(place), one)
    assert "only in DST: 1" in outcome.out
    assert "--mirror" in outcome.err
    assert "deleted in DST: 1" in retain("copy", str(place), one, "--mirror").out
    assert len(retain("--store", one, "list").lines) == 2


def test_a_source_that_is_not_there_is_told_and_nothing_is_made(retain, tmp_path: Path, one: str):
    for source in (str(tmp_path / "nowhere"), f"sqlite:{tmp_path}/no.db", f"file:{tmp_path}/no"):
        assert "nothing is remembered in" in retain("copy", source, one, expect=1).err
    assert list(tmp_path.iterdir()) == []


def test_a_place_is_not_copied_to_itself(retain, stocked, place: Path):
    for target in (str(place), f"{place}/../memory"):
        assert "same place" in retain("copy", str(place), target, expect=2).err
    assert len(retain("list").lines) == 2


def test_a_file_is_no_memory_directory(retain, stocked, place: Path, one: str):
    outcome = retain("copy", str(place / "memory.db"), one, expect=2)
    assert "sqlite:///path" in outcome.err


def test_copy_names_its_places_itself(retain, stocked, place: Path, one: str):
    for option in (("--dir", str(place)), ("--store", one)):
        assert "SRC and DST" in retain("copy", str(place), one, *option, expect=2).err


def test_a_store_in_memory_is_no_place_to_copy_to(retain, stocked, place: Path):
    assert "gone when a command ends" in retain("copy", str(place), "memory:", expect=2).err


def test_a_copy_that_is_not_whole_is_told(retain, stocked, place: Path, one: str):
    import sqlite3

    with sqlite3.connect(place / "memory.db") as database:
        database.execute("UPDATE memories SET metadata = '{' WHERE content = 'hers'")
    database.close()
    outcome = retain("copy", str(place), one, expect=1)
    assert "unreadable in SRC: 1." in outcome.out
    assert "Verified" not in outcome.out
    assert "1 in SRC can't be read" in outcome.err


def test_what_is_newer_at_the_destination_is_told(retain, stocked, place: Path, tmp_path, one):
    retain("copy", str(place), one)
    with SQLiteStore(tmp_path / "store.db") as store:
        memory = store.page(1)[0]
        store.save(Memory(memory.id, "edited", created_at=memory.created_at, updated_at=4e9))
    outcome = retain("copy", str(place), one)
    assert "newer in DST and left: 1" in outcome.out
    assert "--mirror makes it the same" in outcome.err
