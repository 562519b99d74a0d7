from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain import AgentMemory, InMemoryStore, KnowledgeMemory, Scope, SQLiteStore
from retain.errors import InvalidValue, StoreFailed
from retain.models import Memory
from retain.moving import export_array, export_jsonl, export_path, import_path
from retain.testing.strategies import memories

NOW = 1_790_000_000.0


def held(found: list[Memory]) -> dict[str, Memory]:
    return {memory.id: memory.copy(revision=0) for memory in found}


def some(count: int = 5) -> list[Memory]:
    return [
        Memory(f"m{n}", f"text {n} 東京", persistent=n % 2 == 0, created_at=NOW + n)
        for n in range(count)
    ]


def store_of(found: list[Memory]) -> InMemoryStore:
    store = InMemoryStore()
    store.save_many(found)
    return store


IDS = st.text(min_size=1, max_size=8)


@pytest.mark.parametrize("format", ["jsonl", "codomyrmex", "selectools"])
@settings(max_examples=25)
@given(found=st.lists(memories(ids=IDS), max_size=6, unique_by=lambda memory: memory.id))
def test_what_is_exported_comes_back_equal(
    format: str, found: list[Memory], tmp_path_factory: pytest.TempPathFactory
):
    source = AgentMemory()
    for memory in found:
        source.engine.remember(memory.copy(scope=Scope()))
    there = source.engine.store.list_all()
    path = tmp_path_factory.mktemp("export") / "out"
    assert export_path(source.engine.store, path, format=format) == len(there)
    target = AgentMemory()
    report = import_path(target, path, format=format)
    assert held(target.engine.store.list_all()) == held(there)
    assert report.imported == len(there) and not report.troubles


def test_facts_come_first_and_in_their_order_then_notes_the_newest_first():
    file = io.BytesIO()
    assert export_jsonl(store_of(some()), file) == 5
    order = [json.loads(line)["id"] for line in file.getvalue().splitlines()]
    assert order == ["m0", "m2", "m4", "m3", "m1"]


def test_text_is_written_as_utf_8_and_readable():
    file = io.BytesIO()
    export_jsonl(store_of(some(1)), file)
    assert "東京".encode() in file.getvalue()


def test_only_the_scope_of_the_store_is_exported():
    store = store_of(some(2))
    store.scoped(Scope("ann")).save(Memory("a1", "hers"))
    file = io.BytesIO()
    assert export_jsonl(store.scoped(Scope("ann")), file) == 1
    assert json.loads(file.getvalue())["scope"] == {"user": "ann"}


def test_what_is_expired_is_not_exported():
    store = store_of([Memory("old", "x", created_at=0.0, ttl_days=1), Memory("new", "y")])
    file = io.BytesIO()
    assert export_jsonl(store, file) == 1


def test_an_empty_store_makes_an_empty_file_and_an_empty_array():
    lines, array = io.BytesIO(), io.BytesIO()
    assert export_jsonl(InMemoryStore(), lines) == export_array(InMemoryStore(), array) == 0
    assert lines.getvalue() == b""
    assert json.loads(array.getvalue()) == []


def test_the_array_is_one_json_document():
    file = io.BytesIO()
    export_array(store_of(some()), file)
    assert [each["id"] for each in json.loads(file.getvalue())] == ["m0", "m2", "m4", "m3", "m1"]


@pytest.mark.parametrize("format", ["jsonl", "codomyrmex", "selectools"])
def test_progress_is_told_up_to_the_end(tmp_path: Path, format: str):
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))

    export_path(store_of(some()), tmp_path / "out", format=format, progress=progress)
    assert told[-1] == (5, 5)


def test_the_file_is_for_its_owner_only_and_nothing_else_is_left(tmp_path: Path):
    export_path(store_of(some()), tmp_path / "out.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o600


def test_a_file_that_is_there_is_not_written_over_unless_told_so(tmp_path: Path):
    path = tmp_path / "out.jsonl"
    path.write_text("mine")
    with pytest.raises(InvalidValue, match="there already"):
        export_path(store_of(some()), path)
    assert path.read_text() == "mine"
    export_path(store_of(some()), path, overwrite=True)
    assert len(path.read_text("utf-8").splitlines()) == 5


@pytest.mark.parametrize("format", ["jsonl", "codomyrmex", "selectools"])
def test_a_folder_that_is_in_the_way_is_left_alone(tmp_path: Path, format: str):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    with pytest.raises(InvalidValue, match="there already"):
        export_path(store_of(some()), tmp_path / "out", format=format, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("format", ["jsonl", "codomyrmex", "selectools"])
def test_an_export_that_fails_leaves_nothing(tmp_path: Path, format: str):
    class Broken(InMemoryStore):
        def iterate(self, **given: object):  # type: ignore[override]
            yield from some(2)
            raise StoreFailed("the disk is gone")

    with pytest.raises(StoreFailed):
        export_path(Broken(), tmp_path / "out", format=format)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_not_there_is_a_clear_error(tmp_path: Path):
    with pytest.raises(StoreFailed, match="nowhere"):
        export_path(store_of(some()), tmp_path / "nowhere" / "out.jsonl")


def test_an_unknown_format_is_refused(tmp_path: Path):
    with pytest.raises(InvalidValue, match="jsonl, selectools, codomyrmex"):
        export_path(store_of(some()), tmp_path / "out", format="xml")


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(
        [sys.executable, "-c", f"print(open({str(pipe)!r}).read())"], stdout=subprocess.PIPE
    )
    assert export_path(store_of(some()), pipe) == 5
    output, _ = reader.communicate(timeout=60)
    assert len(output.splitlines()) == 6
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_large_store_is_read_in_pages(tmp_path: Path):
    with SQLiteStore(tmp_path / "memory.db") as store:
        store.save_many(Memory(f"m{n:04}", f"text {n}", created_at=NOW + n) for n in range(2500))
        file = io.BytesIO()
        assert export_jsonl(store, file) == 2500
    assert len({json.loads(line)["id"] for line in file.getvalue().splitlines()}) == 2500


def test_a_directory_for_selectools_has_its_files(tmp_path: Path):
    found = [
        Memory("f1", "Likes\ntea", category="prefs", persistent=True, created_at=NOW),
        Memory("f2", " ", persistent=True, created_at=NOW + 1),
        Memory("n1", "a note", created_at=NOW - 86_400),
    ]
    assert export_path(store_of(found), tmp_path / "out", format="selectools") == 3
    entries = (tmp_path / "out" / "entries.jsonl").read_text("utf-8").splitlines()
    assert {json.loads(line)["id"] for line in entries} == {"f1", "f2", "n1"}
    facts = (tmp_path / "out" / "MEMORY.md").read_text("utf-8")
    assert facts == "# Agent Memory\n\n## prefs\n- Likes tea\n"
    logs = sorted(path.name for path in (tmp_path / "out" / "logs").iterdir())
    assert logs == ["2026-09-20.jsonl", "2026-09-21.jsonl"]


def test_memory_md_has_the_same_order_after_moving(tmp_path: Path):
    with KnowledgeMemory(tmp_path / "one") as one:
        for n in range(30):
            one.remember(f"fact {n}", category="ab"[n % 2], persistent=True, created_at=NOW + n)
        one.remember("a note")
        export_path(one.engine.store, tmp_path / "out.jsonl")
        export_path(one.engine.store, tmp_path / "out", format="selectools")
        facts = one.get_persistent_facts()
    for source in ("out.jsonl", "out"):
        with KnowledgeMemory(tmp_path / f"from {source}") as other:
            import_path(other, tmp_path / source)
            assert other.get_persistent_facts() == facts
