import json
from pathlib import Path

import pytest

from retain import JSONFileStore, Memory, Scope
from retain.testing import StoreConformance


class TestJSONFileStore(StoreConformance):
    histories = 10

    def open_store(self, place: Path) -> JSONFileStore:
        return JSONFileStore(place / "memories.json")


def test_the_file_is_one_readable_array_oldest_first(tmp_path: Path):
    path = tmp_path / "memories.json"
    with JSONFileStore(path) as store:
        store.save(Memory("new", "東京", created_at=9.0))
        store.save(Memory("old", "tea", created_at=5.0))
        store.scoped(Scope(user="ann")).save(Memory("hers", "cocoa", created_at=7.0))
        rows = json.loads(path.read_text(encoding="utf-8"))
        assert [row["id"] for row in rows] == ["old", "hers", "new"]
        assert [row["scope"] for row in rows] == [{}, {"user": "ann"}, {}]
        assert "東京" in path.read_text(encoding="utf-8")
        assert len(path.read_text(encoding="utf-8").splitlines()) == 5


def test_what_a_person_wrote_into_the_file_is_seen_and_kept(tmp_path: Path):
    path = tmp_path / "memories.json"
    with JSONFileStore(path) as store:
        store.save(Memory("m1", "tea"))
        seen = store.changes(0).revision
        rows = json.loads(path.read_text())
        rows[0]["content"] = "cocoa"
        rows.append({"id": "m2", "content": "by hand", "mood": "good"})
        path.write_text(json.dumps(rows, indent=4))
        assert {m.id: m.content for m in store.list_all()} == {"m1": "cocoa", "m2": "by hand"}
        assert {m.id for m in store.changes(seen).saved} == {"m1", "m2"}
        store.save(Memory("m3", "ours"))
        assert {row["id"]: row["content"] for row in json.loads(path.read_text())} == {
            "m1": "cocoa",
            "m2": "by hand",
            "m3": "ours",
        }
        assert store.peek(["m2"])[0].metadata == {"mood": "good"}


def test_the_folders_above_are_made_and_a_tilde_is_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    with JSONFileStore("~/a/b/memories.json") as store:
        assert store.path == tmp_path / "a" / "b" / "memories.json"
        assert store.list_all() == []


def test_a_store_that_is_only_opened_writes_no_array(tmp_path: Path):
    JSONFileStore(tmp_path / "memories.json").close()
    assert not (tmp_path / "memories.json").exists()
