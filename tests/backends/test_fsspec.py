"""The back end for buckets and file systems, beside what test_contract.py asks of every one."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import fsspec
import pytest

from carriers import maker
from retain import (
    FsspecKnowledgeBackend,
    InvalidType,
    InvalidValue,
    KnowledgeMemory,
    MissingPackage,
    RetainError,
    StoreFailed,
)


def test_a_key_is_a_file_of_its_own_below_the_url(tmp_path: Path):
    FsspecKnowledgeBackend(f"file://{tmp_path}/kept/", "../Ann").save_bytes(b"1")
    [file] = (tmp_path / "kept").glob("*.json")
    assert file.name == "..%2F%41nn.json" and file.read_bytes() == b"1"


def test_without_a_key_the_url_is_the_file(tmp_path: Path):
    backend = FsspecKnowledgeBackend(f"file://{tmp_path}/a/b.json")
    assert backend.key is None
    assert backend.replace_bytes(None, b"1")
    assert (tmp_path / "a" / "b.json").read_bytes() == b"1"


def test_a_local_file_is_written_as_a_whole_and_for_its_owner_only(tmp_path: Path):
    backend = FsspecKnowledgeBackend(f"file://{tmp_path}/kept", "a")
    backend.save_bytes(b"1")
    assert backend.replace_bytes(b"1", b"2")
    names = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert names in (["a.json"], ["a.json", "a.json.lock"])
    assert stat.S_IMODE((tmp_path / "kept" / "a.json").stat().st_mode) == 0o600


def test_storage_options_are_the_file_system_s(tmp_path: Path):
    backend = FsspecKnowledgeBackend(
        "dir://kept", "a", storage_options={"target_protocol": "memory", "path": f"/{tmp_path}"}
    )
    backend.save_bytes(b"1")
    assert backend.replace_bytes(b"1", b"2") and not backend.replace_bytes(b"1", b"3")
    assert fsspec.filesystem("memory").cat_file(f"/{tmp_path}/kept/a.json") == b"2"


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        (5, InvalidType, "url"),
        ("nosuch://x", InvalidValue, "nosuch"),
        ("dropbox://x", MissingPackage, "dropbox"),
    ],
    ids=["number", "unknown", "package"],
)
def test_a_url_that_leads_nowhere_is_refused(url: Any, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        FsspecKnowledgeBackend(url, "a")


def test_s3_names_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(MissingPackage, match=r"pip install .* 's3fs>="):
        FsspecKnowledgeBackend("s3://bucket", "a")


def test_a_place_that_can_not_be_used_is_told_and_nothing_is_made(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    backend = FsspecKnowledgeBackend(f"file://{tmp_path}/file/kept", "a")
    with pytest.raises(StoreFailed, match="file"):
        backend.save_bytes(b"1")
    with pytest.raises(StoreFailed):
        KnowledgeMemory(tmp_path / "place", backend=backend)
    assert not (tmp_path / "place").exists()


# -- S3 --------------------------------------------------------------------------------------


def test_an_object_that_changes_between_reading_and_writing_is_not_overwritten(tmp_path: Path):
    make = maker("s3", tmp_path)
    one, other = make("a"), make("a")
    assert one.replace_bytes(None, b"1")
    put = one._put

    def overtaken(data: bytes, condition: dict[str, str]) -> bool:
        other.save_bytes(b"theirs")
        return bool(put(data, condition))

    one._put = overtaken
    assert not one.replace_bytes(b"1", b"2")
    assert other.load_bytes() == b"theirs"
    del one._put
    assert not make("b").replace_bytes(b"1", b"2")


def test_an_object_that_another_one_makes_first_is_not_overwritten(tmp_path: Path):
    make = maker("s3", tmp_path)
    one, other = make("a"), make("a")
    put = one._put

    def overtaken(data: bytes, condition: dict[str, str]) -> bool:
        other.save_bytes(b"theirs")
        return bool(put(data, condition))

    one._put = overtaken
    assert not one.replace_bytes(None, b"1")
    assert other.load_bytes() == b"theirs"


@pytest.mark.slow
def test_a_large_object_is_written_under_its_condition_too(tmp_path: Path):
    make = maker("s3", tmp_path)
    large = bytes(101 * 2**20)  # which s3fs would upload in parts
    assert make("a").replace_bytes(None, large)
    assert not make("a").replace_bytes(b"1", large[1:])
    assert make("a").replace_bytes(large, b"small")


def test_a_bucket_that_is_not_there_is_told(tmp_path: Path):
    options = maker("s3", tmp_path)("a")._fs.storage_options
    backend = FsspecKnowledgeBackend("s3://nosuch", "a", storage_options=options)
    with pytest.raises(StoreFailed, match="nosuch"):
        backend.save_bytes(b"1")


def test_no_message_has_the_password_of_a_url(tmp_path: Path):
    with pytest.raises(RetainError) as caught:
        FsspecKnowledgeBackend("nosuch://ann:s3/cr@et@host/kept", "user-123")
    assert "cr@et" not in str(caught.value) and "s3/" not in str(caught.value)
    assert "nosuch://host/kept" in str(caught.value)
