import json
from pathlib import Path

import pytest

from retain import FileStore, Memory, StoreTooNew
from retain.testing import StoreConformance


class TestFileStore(StoreConformance):
    histories = 10

    def open_store(self, place: Path) -> FileStore:
        return FileStore(place / "memory")


def test_a_write_appends_and_a_deleted_text_is_overwritten_where_it_stood(tmp_path: Path):
    with FileStore(tmp_path) as store:
        store.save(Memory("m1", "a zebra"))
        store.save(Memory("m2", "a lion"))
        before = (tmp_path / "memories.jsonl").read_bytes()
        store.save(Memory("m3", "an okapi"))
        assert (tmp_path / "memories.jsonl").read_bytes().startswith(before)
        store.delete("m1")
        data = (tmp_path / "memories.jsonl").read_bytes()
        assert b"zebra" not in data and b"a lion" in data and len(data) > len(before)


def test_dead_space_is_won_back(tmp_path: Path):
    with FileStore(tmp_path) as store:
        for n in range(60):
            store.save(Memory("m1", f"{n} " * 2000))
        assert (tmp_path / "memories.jsonl").stat().st_size < 60 * 2000
        assert store.count() == 1 and store.check() == []
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock") == [
        "memories.jsonl"
    ]


def test_a_file_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path):
    line = json.dumps({"retain": "memories", "version": 99}) + "\n"
    (tmp_path / "memories.jsonl").write_text(line)
    with pytest.raises(StoreTooNew, match=r"99.*upgrade retain"):
        FileStore(tmp_path)
    assert (tmp_path / "memories.jsonl").read_text() == line
