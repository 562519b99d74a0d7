"""Index files beside a store: what another process finds in them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retain import Memory, Scope, files
from retain.engine import Engine
from retain.errors import StoreCorrupt
from retain.indexing import _Care, background
from retain.search import disk
from retain.search.kept import IndexFile, packed
from search.opened import (
    WordEmbedder,
    assert_right,
    engine_of,
    files_of,
    filled,
    found,
    index_of,
    memories,
    rows_from_files,
)

# -- one file ------------------------------------------------------------------------------

ARRAYS = {
    "rows": np.arange(50_000, dtype=np.int32),
    "none": np.zeros((0, 3), np.int8),
    "terms": np.arange(7, dtype=np.uint64),
    "vectors": np.arange(90_000, dtype=np.int8).reshape(-1, 3),
}


@pytest.fixture(autouse=True)
def _quick_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedder of these tests is as quick as the one that comes with the install."""
    monkeypatch.setattr("retain.search.index._EAGER_SLOW", 2_000)


def opened_file(path: Path) -> IndexFile:
    return IndexFile(files.Folder(path.parent).open(path.name))


@pytest.fixture(params=["read", "mapped"])
def file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(files, "_MAPPED", 0 if request.param == "mapped" else 1 << 30)
    path = tmp_path / "file"
    path.write_bytes(b"".join(packed({"name": "東京"}, ARRAYS)))
    return path


def test_a_file_has_the_header_and_the_arrays_that_were_written(file: Path):
    opened = opened_file(file)
    opened.verify_all()
    assert opened.header["name"] == "東京"
    assert list(opened.arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert opened.arrays[name].dtype == array.dtype
        assert np.array_equal(opened.arrays[name], array)
        assert not opened.arrays[name].flags.writeable or not array.size


def test_a_byte_that_is_not_as_it_was_written_is_told_before_it_is_used(file: Path):
    whole = file.read_bytes()
    quiet = 0
    for place in [*range(0, 300, 7), *range(300, len(whole), 1_009), len(whole) - 1]:
        data = bytearray(whole)
        data[place] ^= 16
        file.write_bytes(data)
        with pytest.raises((StoreCorrupt, ValueError)):
            opened = opened_file(file)
            quiet += 1
            opened.verify_all()
        file.unlink()  # not written over: a map of it may still be there
    assert quiet > 100  # those of which an opening reads nothing


def test_only_what_is_used_is_verified(file: Path):
    data = bytearray(file.read_bytes())
    place = data.index(ARRAYS["rows"][40_000:40_010].tobytes())
    data[place] ^= 1
    file.write_bytes(data)
    opened = opened_file(file)
    opened.verify("rows", 0, 10_000)
    with pytest.raises(StoreCorrupt, match="rows are damaged"):
        opened.verify("rows", 39_999, 40_001)


@pytest.mark.parametrize("length", [0, 1, 12, 13, 24, 25, 100, -1, -100_000])
def test_a_file_that_was_cut_is_none(file: Path, length: int):
    data = file.read_bytes()
    file.write_bytes(data[:length])
    with pytest.raises(StoreCorrupt):
        opened_file(file)
    file.write_bytes(data + b"\0")
    with pytest.raises(StoreCorrupt):
        opened_file(file)


# -- opened by another process -------------------------------------------------------------


@pytest.fixture
def in_the_background() -> None:
    """For a test in which the background thread does its work meanwhile."""


@pytest.fixture(autouse=True)
def _nothing_in_the_background(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "in_the_background" not in request.fixturenames:
        monkeypatch.setattr(background, "add", lambda job: None)


@pytest.fixture(params=[None, "words"], ids=["lexical", "vectors"])
def embedder(request: pytest.FixtureRequest) -> Any:
    return request.param and WordEmbedder(request.param)


def test_what_was_kept_is_opened_and_the_rest_read_from_the_store(tmp_path: Path, embedder: Any):
    filled(tmp_path, 600, embedder)
    engine = engine_of(tmp_path, embedder)
    if embedder:
        embedder.texts = 0
    engine.remember_many(memories(50, 600))
    engine.forget_many(["m3", "m601"])
    engine.update("m4", content="word1 replaced")
    assert_right(engine, tmp_path)
    assert rows_from_files(engine) == 600
    engine.close()
    if embedder:
        assert embedder.texts == 50 + 648  # the new ones; and all of the copy
    assert_right(engine_of(tmp_path, embedder), tmp_path)


def test_a_small_index_is_not_worth_a_file_unless_its_vectors_are_dear(tmp_path: Path):
    filled(tmp_path, 50)
    assert files_of(tmp_path) == []
    embedder = WordEmbedder()
    filled(tmp_path, 50, embedder)
    embedder.texts = 0
    engine = engine_of(tmp_path, embedder)
    assert found(engine)["word1 word2"]
    assert embedder.texts == 0


@pytest.mark.slow
def test_stretches_follow_one_another_and_are_merged_in_time(tmp_path: Path):
    first = 0
    for _ in range(8):
        engine = engine_of(tmp_path)
        engine.store.save_many(memories(600, first))
        first += 600
        found(engine)
        engine.close()
        engine = engine_of(tmp_path)
        assert len(files_of(tmp_path)) <= 3
        found(engine)
        assert rows_from_files(engine) == first
        assert_right(engine, tmp_path)
        engine.close()


def test_a_recall_leaves_files_when_its_engine_is_closed(tmp_path: Path):
    engine = engine_of(tmp_path)
    engine.store.save_many(memories(2_000))
    engine.recall("word1")
    engine.close()
    assert files_of(tmp_path)
    engine = engine_of(tmp_path)
    engine.recall("word1")
    assert rows_from_files(engine) == 2_000


def test_what_came_last_is_kept_when_the_engine_is_closed(tmp_path: Path):
    filled(tmp_path, 600)
    engine = engine_of(tmp_path)
    engine.store.save_many(memories(300, 600))  # too few for a segment of their own
    engine.recall("word1")
    engine.close()
    engine = engine_of(tmp_path)
    engine.recall("word1")
    assert rows_from_files(engine) == 900


def test_of_all_scopes_of_a_store_what_is_worth_it_is_kept_at_the_end(tmp_path: Path):
    engine = engine_of(tmp_path)
    for name in "ab":
        other = Engine(engine.store.scoped(Scope(user=name)))
        other.store.save_many(memories(600))
        other.recall("word1")
    engine.close()
    assert len({path.parent for path in files_of(tmp_path)}) == 2


@pytest.mark.usefixtures("in_the_background")
def test_nothing_is_written_once_an_engine_is_closed(tmp_path: Path):
    embedder = WordEmbedder(seconds=0.001)
    engine = engine_of(tmp_path, embedder)
    engine.store.save_many(memories(5_000))
    engine.recall("word1")
    engine.close()
    assert not background._jobs
    shutil.rmtree(tmp_path)
    time.sleep(0.3)
    assert not tmp_path.exists()


@pytest.mark.usefixtures("in_the_background")
def test_vectors_that_were_made_before_the_end_need_not_be_made_again(tmp_path: Path):
    embedder = WordEmbedder(seconds=0.0002)
    engine = engine_of(tmp_path, embedder)
    engine.store.save_many(memories(3_000))
    rounds = 0
    while True:
        engine.recall("word1")
        give_up = time.monotonic() + 60
        before = embedder.texts
        while embedder.texts == before and background._thread and time.monotonic() < give_up:
            time.sleep(0.005)
        engine.close()
        engine = engine_of(tmp_path, embedder)
        engine.recall("word1")
        made, count = index_of(engine).made()
        rounds += 1
        assert rounds < 500
        if made == count == 3_000:
            break
    assert rounds > 1
    assert embedder.texts < 3_000 + 512 * 3
    assert_right(engine, tmp_path)


def test_an_update_while_its_text_is_embedded_gets_its_own_vector(tmp_path: Path):
    class Overtaken(WordEmbedder):
        def embed(self, texts: Any) -> Any:
            if engine is not None and not self.texts:
                self.texts = 1
                engine.update("m0", content="word299 anew")
                engine.recall("word299")
            return super().embed(texts)

    engine = None
    embedder = Overtaken()
    engine = engine_of(tmp_path, embedder)
    engine.store.save_many(memories(2_500))
    engine.settle()
    assert engine.store.peek(["m0"])[0].content == "word299 anew"
    index = index_of(engine)
    assert index.made() == (2_500, 2_500)
    row = max(row for row in range(index.columns.size) if index.columns.id(row) == "m0")
    assert index.similar(embedder.embed_query("word299 anew"))[row] > 0.99
    engine._indexed.embedder.__class__ = WordEmbedder
    assert_right(engine, tmp_path)


# -- other embedders -----------------------------------------------------------------------


def test_a_changed_embedder_leaves_the_words_and_makes_its_own_vectors(tmp_path: Path):
    filled(tmp_path, 2_500, WordEmbedder("old"))
    [old] = files_of(tmp_path, "vectors")
    new = WordEmbedder("new", seconds=0.0001)
    engine = engine_of(tmp_path, new)
    result = engine.recall("word7 word8")[0]
    assert rows_from_files(engine) == 2_500
    assert result.relevance_score > 0
    engine.settle()
    assert_right(engine, tmp_path)
    assert len(files_of(tmp_path)) == 1  # words are words
    assert old.exists()
    engine.forget_many([f"m{number}" for number in range(0, 2_500, 3)])
    engine.settle()
    assert not old.exists()
    assert len(files_of(tmp_path, "vectors")) == 1
    assert_right(engine, tmp_path)
    engine.close()


def test_two_embedders_share_the_words_that_one_of_them_kept(tmp_path: Path):
    one, other = (engine_of(tmp_path, WordEmbedder(name)) for name in ("one", "other"))
    one.store.save_many(memories(600))
    for engine in (one, other):
        engine.settle()
    assert len(files_of(tmp_path)) == 1
    assert len(files_of(tmp_path, "vectors")) == 2
    for engine in (one, other):
        assert_right(engine, tmp_path)
        engine.close()


# -- several at once -----------------------------------------------------------------------


def test_a_delete_that_one_process_never_had_the_memory_of_counts_for_whoever_opens_both(
    tmp_path: Path,
):
    """One keeps the changes to 10, another those from 5 to 20, of which one deletes the 7th."""
    late = engine_of(tmp_path)
    late.store.save_many(memories(600))
    late.settle()
    early = engine_of(tmp_path)
    early.store.save_many(memories(600, 600))
    early.recall("word1")
    early.settle()
    shutil.copytree(tmp_path / "m.db-index", tmp_path / "kept")
    early.forget("m777")
    early.store.save_many(memories(600, 1_200))
    late.recall("word1")  # which hears of a delete of what it never saw
    index = index_of(late)
    assert len(index.stretches) == 2
    disk.IndexFolder(late._indexed._folder.place, late.store.driver.identity).save(index)
    for path in (tmp_path / "kept").rglob("*.terms"):
        shutil.copy(path, late._indexed._folder.place.path)
    reader = engine_of(tmp_path)
    assert_right(reader, tmp_path)
    assert "m777" not in found(reader)["東京"]
    assert rows_from_files(reader) > 1_800


def test_two_that_keep_the_same_leave_one_file(tmp_path: Path):
    one, other = engine_of(tmp_path), engine_of(tmp_path)
    one.store.save_many(memories(600))
    one.recall("word1")
    other.recall("word1")
    one.settle()
    other.settle()
    assert len(files_of(tmp_path)) == 1
    for engine in (one, other):
        assert_right(engine, tmp_path)


def test_a_file_that_goes_while_it_is_opened_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    filled(tmp_path)
    real = disk.IndexFolder._open

    def vanish(folder: disk.IndexFolder, name: str) -> Any:
        folder.place.remove([name])
        return real(folder, name)

    monkeypatch.setattr(disk.IndexFolder, "_open", vanish)
    engine = engine_of(tmp_path)
    found(engine)
    assert rows_from_files(engine) == 0
    monkeypatch.undo()
    assert_right(engine, tmp_path)


def test_too_many_open_files_cost_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    filled(tmp_path)

    def refuse(*_: Any) -> Any:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(disk.IndexFolder, "_open", refuse)
    assert found(engine_of(tmp_path))["word7"]
    monkeypatch.undo()
    engine = engine_of(tmp_path)
    found(engine)
    assert rows_from_files(engine) == 600


# -- another store, or this one as it was --------------------------------------------------


def test_files_of_a_store_that_was_lost_are_not_the_new_ones(tmp_path: Path, embedder: Any):
    filled(tmp_path, 600, embedder)
    for path in tmp_path.glob("m.db*"):
        if path.is_file():
            path.unlink()
    engine = engine_of(tmp_path, embedder)
    engine.store.save_many(memories(700, 5_000))
    assert_right(engine, tmp_path)
    assert rows_from_files(engine) == 0


def changes_after_a_copy() -> dict[str, tuple[Callable[[Engine], Any], Callable[[Engine], Any]]]:
    """What was done before the copy was put back, and after; equally many revisions each."""

    def save(*ids: str) -> Callable[[Engine], Any]:
        texts = [Memory(id, f"word1 {id}") for id in ids]
        return lambda engine: [engine.store.save(each) for each in texts]

    def forget(*ids: str) -> Callable[[Engine], Any]:
        return lambda engine: [engine.forget(id) for id in ids]

    def both(*steps: Callable[[Engine], Any]) -> Callable[[Engine], Any]:
        return lambda engine: [step(engine) for step in steps]

    def elsewhere(engine: Engine) -> None:
        other = engine.store.scoped(Scope(user="other"))
        other.save_many(memories(10))

    return {
        "other memories": (save("a", "b"), save("c", "d")),
        "more of them": (save("a"), save("c", "d", "e")),
        "a delete and a memory": (forget("m5"), save("c")),
        "a memory and a delete": (save("a"), forget("m5")),
        "other deletes": (forget("m5"), forget("m6")),
        "a memory that came and went": (both(save("a"), forget("a")), save("c", "d")),
        "a delete, and nothing here": (forget("m5"), elsewhere),
        "a memory, and nothing here": (save("a"), elsewhere),
        "updates": (save("m5"), save("m6")),
        "an update and a delete": (save("m5"), both(forget("m6"), elsewhere)),
    }


@pytest.mark.parametrize("changes", changes_after_a_copy().values(), ids=changes_after_a_copy())
def test_files_are_not_taken_for_those_of_an_older_copy_that_went_on_otherwise(
    changes: tuple[Callable[[Engine], Any], Callable[[Engine], Any]], tmp_path: Path
):
    before, after = changes
    filled(tmp_path)
    engine = engine_of(tmp_path)
    engine.recall("word1")
    engine.store.backup(tmp_path / "older.db")
    before(engine)
    engine.recall("word1")
    index_of(engine).seal(0)  # so that they are in the files
    engine.settle()
    engine.close()
    shutil.copy(tmp_path / "older.db", tmp_path / "m.db")
    engine = engine_of(tmp_path)
    after(engine)
    assert_right(engine, tmp_path)
    engine.close()


@pytest.mark.parametrize(
    ("member", "value"),
    [("format", 0), ("format", 99), ("format", None), ("signature", "x"), ("store", "x")],
)
def test_files_of_another_version_or_store_are_made_anew(
    member: str, value: Any, tmp_path: Path, embedder: Any
):
    filled(tmp_path, 600, embedder)
    for path in files_of(tmp_path) + files_of(tmp_path, "vectors"):
        opened = opened_file(path)
        header = {**opened.header, member: value}
        path.write_bytes(b"".join(packed(header, opened.arrays)))
    engine = engine_of(tmp_path, embedder)
    found(engine)
    assert rows_from_files(engine) == 0
    engine.settle()
    assert_right(engine, tmp_path)
    engine.close()
    engine = engine_of(tmp_path, embedder)
    found(engine)
    assert rows_from_files(engine) == 600


@pytest.mark.parametrize(
    "name", ["zz-b-c.terms", "a-b-c.terms", "x.vectors", "notes.txt", "-.terms"]
)
def test_a_file_that_is_none_of_ours_is_left_alone(name: str, tmp_path: Path):
    filled(tmp_path)
    strange = files_of(tmp_path)[0].with_name(name)
    strange.write_bytes(b"strange")
    engine = engine_of(tmp_path)
    engine.store.save_many(memories(600, 600))
    engine.settle()
    assert_right(engine, tmp_path)
    assert strange.read_bytes() == b"strange"


def test_what_a_killed_writer_left_goes_after_a_while(tmp_path: Path):
    filled(tmp_path)
    folder = files_of(tmp_path)[0].parent
    old, young = folder / f".old.{'0' * 32}.tmp", folder / f".young.{'0' * 32}.tmp"
    for path in (old, young):
        path.write_bytes(b"x")
    os.utime(old, (time.time() - 3_000, time.time() - 3_000))
    orphan = folder / f"{0:016x}-{600:016x}-{'f' * 32}.{'0' * 16}.vectors"
    orphan.write_bytes(b"x")
    engine = engine_of(tmp_path)
    engine.settle()
    assert young.exists()
    assert not old.exists()
    assert not orphan.exists()


# -- what is forgotten ---------------------------------------------------------------------


def test_a_scope_that_is_forgotten_leaves_no_file(tmp_path: Path):
    engine = engine_of(tmp_path, scope=Scope(user="a"))
    engine.store.save_many(memories(600))
    engine.settle()
    assert engine.forget_all() == 600
    assert list((tmp_path / "m.db-index").iterdir()) == []
    assert found(engine)["東京"] == {}
    engine.close()


def test_a_scope_that_is_forgotten_while_its_index_is_kept_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    engine, other = engine_of(tmp_path), engine_of(tmp_path)
    engine.store.save_many(memories(600))
    engine.recall("word1")
    real = disk.IndexFolder._write

    def overtaken(folder: disk.IndexFolder, name: str, about: Any, arrays: Any) -> None:
        real(folder, name, about, arrays)
        path = folder.place.path / name
        shutil.move(path, tmp_path / "moved")
        other.forget_all()
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(tmp_path / "moved", path)

    monkeypatch.setattr(disk.IndexFolder, "_write", overtaken)
    care = _Care(engine._indexed, index_of(engine))
    while care.step():
        pass
    assert files_of(tmp_path) == []
    monkeypatch.undo()
    assert found(engine)["東京"] == {}


def test_a_store_that_forgot_its_deletions_is_read_anew(tmp_path: Path):
    filled(tmp_path)
    engine = engine_of(tmp_path)
    engine.forget("m3")
    engine.close()
    with sqlite3.connect(tmp_path / "m.db") as db:
        db.execute("UPDATE scopes SET floor = (SELECT revision FROM place)")
        db.execute("DELETE FROM deletions")
    db.close()
    engine = engine_of(tmp_path)
    assert_right(engine, tmp_path)
    assert rows_from_files(engine) == 0
