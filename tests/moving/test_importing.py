from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from retain import AgentMemory, KnowledgeMemory, MemoryType, Scope
from retain.errors import InvalidType, InvalidValue, StoreFailed
from retain.models import Memory
from retain.moving import ImportReport, import_path
from retain.moving.json_text import json_elements, json_lines


def lines(*records: Any) -> io.BytesIO:
    return io.BytesIO("".join(f"{json.dumps(record)}\n" for record in records).encode())


def contents(memory: AgentMemory | KnowledgeMemory) -> list[str]:
    return sorted(each.content for each in memory.engine.store.list_all())


def record(id: str, content: str = "x", **more: Any) -> dict[str, Any]:
    return {"id": id, "content": content, "created_at": 1e9, **more}


# -- what is kept ------------------------------------------------------------------------------


def test_everything_of_a_record_is_kept():
    whole = Memory(
        "m1",
        "Likes 東京",
        MemoryType.PROCEDURAL,
        0.3,
        {"page": [1, None]},
        ["a", "ü"],
        1e9,
        7,
        1e9 + 5,
        category="travel",
        ttl_days=1e5,
        updated_at=1e9 + 1,
        source="Ann",
    )
    memory = AgentMemory()
    assert import_path(memory, lines(whole.to_dict())).imported == 1
    assert memory.engine.store.peek(["m1"])[0].copy(revision=0) == whole


def test_memories_come_into_the_scope_of_the_memory():
    memory = AgentMemory(scope=Scope("ann"))
    import_path(memory, lines(record("m1", scope={"user": "bob"})))
    assert memory.engine.store.peek(["m1"])[0].scope == Scope("ann")


def test_the_scope_of_the_records_can_be_kept():
    memory = AgentMemory()
    faces = {scope: AgentMemory(memory.store, scope=scope) for scope in (Scope("bob"), Scope())}
    found = lines(record("m1", scope={"user": "bob"}), record("m1", "y"))
    report = import_path(memory, found, scoped=faces.__getitem__)
    assert report.imported == 2
    assert contents(memory) == ["y"]
    assert contents(faces[Scope("bob")]) == ["x"]


def test_a_large_import_is_searchable_at_once():
    memory = AgentMemory()
    report = import_path(memory, lines(*(record(f"m{n}", f"word{n}") for n in range(2500))))
    assert report.imported == memory.memory_count == 2500
    assert memory.recall("word2499")[0].memory.id == "m2499"


def test_hooks_and_files_see_what_is_imported(tmp_path: Path):
    with KnowledgeMemory(tmp_path / "memory", pre_save=str.upper) as memory:
        import_path(memory, lines(record("m1", "likes tea", persistent=True)))
        assert "- LIKES TEA" in (tmp_path / "memory" / "MEMORY.md").read_text("utf-8")


# -- what is there already ---------------------------------------------------------------------


def test_an_import_can_be_run_again():
    memory = AgentMemory()
    found = [record("m1"), {"content": "no id"}, {"content": "no id"}]
    assert import_path(memory, lines(*found)).imported == 3
    again = import_path(memory, lines(*found))
    assert (again.imported, again.known, again.troubles) == (0, 3, [])
    assert memory.memory_count == 3


def test_a_conflict_is_told_and_left_out():
    memory = AgentMemory()
    import_path(memory, lines(record("m1", "old")))
    report = import_path(memory, lines(record("m2"), record("m1", "new")))
    assert contents(memory) == ["old", "x"]
    assert (report.imported, len(report.conflicts)) == (1, 1)
    assert str(report.conflicts[0]) == "line 2: the id 'm1' is there already, with something else"


def test_a_conflict_can_be_decided_for_what_is_imported():
    memory = AgentMemory()
    import_path(memory, lines(record("m1", "old"), record("m2")))
    report = import_path(memory, lines(record("m1", "new"), record("m2")), replace=True)
    assert contents(memory) == ["new", "x"]
    assert (report.imported, report.replaced, report.known) == (0, 1, 1)


def test_an_id_that_comes_twice_in_one_source_is_a_conflict_too():
    memory = AgentMemory()
    found = [record("m1", "first"), record("m1", "first"), record("m1", "second")]
    report = import_path(memory, lines(*found))
    assert contents(memory) == ["first"]
    assert (report.imported, report.known, len(report.conflicts)) == (1, 1, 1)
    last = AgentMemory()
    assert import_path(last, lines(*found), replace=True).replaced == 1
    assert contents(last) == ["second"]


def test_an_equal_fact_under_another_id_is_a_duplicate():
    memory = AgentMemory()
    known = memory.remember("Likes tea", category="prefs", persistent=True)
    fact = record("m1", " Likes  tea", category="prefs", persistent=True)
    report = import_path(memory, lines(fact, {**fact, "id": "m2"}))
    assert (report.imported, report.duplicates) == (0, 2)
    assert memory.memory_count == 1
    assert memory.get(known.id) is not None


def test_what_is_expired_is_counted_and_left_out():
    memory = AgentMemory()
    report = import_path(memory, lines(record("m1", ttl_days=1), record("m2", ttl_days=1e6)))
    assert (report.imported, report.expired) == (1, 1)


def test_a_dry_run_tells_the_same_and_writes_nothing():
    memory = AgentMemory()
    import_path(memory, lines(record("m1", "old"), record("m2", "same")))
    fact = {"content": "Likes tea", "persistent": True}
    found = [record("m1", "new"), record("m2", "same"), record("m3"), "broken"]
    found += [record("f1", **fact), record("f2", **fact), record("old", ttl_days=0)]
    dry = import_path(memory, lines(*found), dry_run=True)
    assert contents(memory) == ["old", "same"]
    wet = import_path(memory, lines(*found))
    assert dry == wet
    assert (wet.imported, wet.duplicates, wet.known, wet.expired) == (2, 1, 1, 1)
    assert (len(wet.conflicts), len(wet.unreadable)) == (1, 1)
    assert wet.total == len(found)


# -- what can't be read ------------------------------------------------------------------------


def test_unreadable_lines_are_told_by_number_and_all_others_come_in():
    data = b"\n".join(
        [
            b'\xef\xbb\xbf{"content": "one"}',
            b"not json",
            b"",
            b'{"content": "\xff"}',
            b'{"content": 3}',
            b"null",
            b"[" * 100_000,
            b"\0\0\0",
            b'{"content": "two", "importance": "huge"}',
            b'{"content": "three", "created_at": ' + b"9" * 5000 + b"}",
            b'{"content": "four"}\r',
            b'{"content": "torn',
        ]
    )
    memory = AgentMemory()
    report = import_path(memory, io.BytesIO(data))
    assert contents(memory) == ["four", "one"]
    told = [(each.where, each.reason) for each in report.unreadable]
    assert [where for where, _ in told] == [f"line {n}" for n in (2, 4, 5, 6, 7, 8, 9, 10, 12)]
    reasons = ["not JSON", "not UTF-8", '"content" is number', "null", "nested", "not JSON"]
    reasons += ["importance", "number", "the file ends there"]
    assert all(part in reason for part, (_, reason) in zip(reasons, told, strict=True)), told


def test_a_file_of_something_else_is_told_line_by_line_and_nothing_is_written(tmp_path: Path):
    (tmp_path / "photo.jpg").write_bytes(bytes(range(256)) * 10)
    memory = AgentMemory()
    report = import_path(memory, tmp_path / "photo.jpg")
    assert report.imported == 0 and report.unreadable
    assert memory.memory_count == 0


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_an_empty_source_has_nothing(data: bytes):
    assert import_path(AgentMemory(), io.BytesIO(data)) == ImportReport("jsonl")


def test_what_a_hook_rejects_is_told_and_the_rest_comes_in():
    def no_secrets(text: str) -> str | None:
        return None if "secret" in text else text

    memory = AgentMemory(pre_save=no_secrets)
    found = [record(f"m{n}", "a secret" if n in (3, 77) else f"text {n}") for n in range(100)]
    report = import_path(memory, lines(*found))
    assert (report.imported, len(report.rejected)) == (98, 2)
    assert {each.where for each in report.rejected} == {"line 4", "line 78"}
    assert "no_secrets" in report.rejected[0].reason


def test_what_is_no_source_is_refused(tmp_path: Path):
    with pytest.raises(InvalidValue, match="is not there"):
        import_path(AgentMemory(), tmp_path / "nowhere")
    with pytest.raises(InvalidValue, match="auto, jsonl"):
        import_path(AgentMemory(), lines(), format="xml")
    with pytest.raises(InvalidType, match="dict"):
        import_path({}, lines())  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="path"):
        import_path(AgentMemory(), lines(), format="selectools")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidValue, match="no memory directory"):
        import_path(AgentMemory(), tmp_path / "empty")
    with pytest.raises(StoreFailed):
        import_path(AgentMemory(), tmp_path / "empty", format="jsonl")


def test_a_memory_of_retain_itself_is_not_read_by_its_files(tmp_path: Path):
    with KnowledgeMemory(tmp_path / "other") as other:
        other.remember("x", tags=["not in any file but the store"])
    for source in (tmp_path / "other", tmp_path / "other" / "memory.db"):
        for format in ("auto", "selectools"):
            with pytest.raises(InvalidValue, match="export"):
                import_path(AgentMemory(), source, format=format)


def test_a_database_of_another_program_is_told(tmp_path: Path):
    with closing(sqlite3.connect(tmp_path / "x.db")) as db:
        db.execute("CREATE TABLE cookies (name TEXT)")
    with pytest.raises(InvalidValue, match="no table 'knowledge'"):
        import_path(AgentMemory(), tmp_path / "x.db")


def test_progress_is_told_in_bytes(tmp_path: Path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(lines(record("m1"), record("m2")).getvalue())
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))

    import_path(AgentMemory(), path, progress=progress)
    size = path.stat().st_size
    assert told == [(size // 2, size), (size, size)]


# -- the array of codomyrmex -------------------------------------------------------------------

ELEMENT = {
    "id": "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
    "content": "Prefers dark mode",
    "memory_type": "semantic",
    "importance": 3,
    "metadata": {"by": "Ann"},
    "tags": ["ui"],
    "created_at": 1e9,
    "access_count": 2,
    "last_accessed": 0.0,
}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("keyed", [False, True])
def test_the_file_of_codomyrmex_is_found_out_and_read(tmp_path: Path, indent: int, keyed: bool):
    path = tmp_path / "memories.json"
    data: Any = {ELEMENT["id"]: ELEMENT} if keyed else [ELEMENT]
    path.write_text(json.dumps(data, indent=indent))
    memory = AgentMemory()
    # an object on a single line could be one record of JSON lines as well
    report = import_path(memory, path, format="codomyrmex" if keyed and not indent else "auto")
    assert (report.format, report.imported) == ("codomyrmex", 1)
    (found,) = memory.store.list_all()
    assert found.to_dict() | {"scope": {}} == Memory.from_dict(ELEMENT).to_dict() | {
        "revision": found.revision
    }


def test_its_memories_are_episodic_where_they_do_not_say():
    memory = AgentMemory()
    import_path(memory, io.BytesIO(b'[{"content": "x"}]'))
    assert memory.store.list_all()[0].memory_type is MemoryType.EPISODIC


def test_a_type_of_its_own_is_kept_in_the_metadata():
    memory = AgentMemory()
    element = json.dumps([{**ELEMENT, "memory_type": "knowledge"}])
    import_path(memory, io.BytesIO(element.encode()))
    (found,) = memory.store.list_all()
    assert found.memory_type is MemoryType.SEMANTIC
    assert found.metadata == {"by": "Ann", "memory_type": "knowledge"}


def array(*contents: str, indent: int | None = 2) -> bytes:
    return json.dumps([{"content": text} for text in contents], indent=indent).encode()


def read_array(data: bytes) -> tuple[list[str], list[str]]:
    values = list(json_elements([data]))
    good = [each.value["content"] for each in values if not each.problem]
    return good, [f"{each.line}: {each.problem}" for each in values if each.problem]


def test_an_array_that_was_cut_short_gives_all_that_is_whole():
    for indent in (None, 2):
        whole = array("a", "b", "c", indent=indent)
        cut = whole[: whole.index(b'"c"') + 2]
        good, problems = read_array(cut)
        assert good == ["a", "b"]
        assert problems and "the end" in " ".join(problems)


def test_an_array_without_its_bracket_is_told():
    good, problems = read_array(array("a", "b").rstrip(b"]\n"))
    assert good == ["a", "b"]
    assert "ends in the middle" in problems[0]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_broken_element_costs_itself_only(indent: int | None):
    data = array("a", "b", "c", indent=indent)
    for broken in (b'b"', b'"b" "', b"'b'", b'"b\n"', b"\xff", b"\0"):
        good, problems = read_array(data.replace(b'"b"', broken))
        assert (good, len(problems)) == (["a", "c"], 1), broken


def test_a_quote_that_is_missing_costs_what_it_hides_and_that_is_told():
    good, problems = read_array(array("a", "b", "c").replace(b'"b"', b'"b'))
    assert (good, len(problems)) == (["a", "c"], 1)
    good, problems = read_array(array("a", "b", "c", indent=None).replace(b'"b"', b'"b'))
    assert good == ["a"]
    assert "passed over up to the end" in problems[0]


def test_a_byte_that_is_no_utf_8_costs_its_element_only():
    memory = AgentMemory()
    data = array("a", "b", "c").replace(b'"b"', b'"b\xff"')
    report = import_path(memory, io.BytesIO(data))
    assert contents(memory) == ["a", "c"]
    assert "surrogate" in report.unreadable[0].reason


def test_elements_that_are_no_objects_are_told_with_their_lines():
    memory = AgentMemory()
    report = import_path(memory, io.BytesIO(b'[\n1,\n"x",\n{"content": "a"},\nnull\n]\nmore'))
    assert contents(memory) == ["a"]
    assert [each.where for each in report.unreadable] == ["line 2", "line 3", "line 5", "line 6"]


def test_an_object_that_is_broken_is_told():
    good, problems = read_array(b'{"a": {"content"')
    assert good == [] and len(problems) == 1


def bad_arrays() -> Iterable[bytes]:
    yield b"[" + b"\n" * 1_000_000
    yield b"[" + b'{"a":\n' * 200_000
    yield b"[" + b"{" * 1_000_000
    yield b"[" + b'{"content": "x",},' * 50_000
    yield b"[" + b"x ," * 300_000
    yield b"[" + b"[" * 1_000_000


@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", range(6))
def test_a_megabyte_of_nonsense_is_read_in_reasonable_time(number: int):
    data = list(bad_arrays())[number]
    assert any(value.problem for value in json_elements([data]))


def test_a_long_line_is_one_record():
    data = lines(record("m1", "x" * 10_000_000)).getvalue()
    (value,) = json_lines(io.BytesIO(data))
    assert len(value.value["content"]) == 10_000_000


def test_a_report_is_a_json_object():
    memory = AgentMemory()
    report = import_path(memory, lines("broken", record("m1")))
    found = json.loads(json.dumps(report.to_dict()))
    assert found["imported"] == 1
    assert found["unreadable"][0]["where"] == "line 1"
