"""A directory as one blob and back: nothing lost, nothing written that isn't safe."""

from __future__ import annotations

import base64
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from retain.backends import KnowledgeBackend, pack, read_directory, unpack, write_directory
from retain.errors import InvalidType, InvalidValue, StoreCorrupt, StoreFailed, StoreTooNew

MEMORY = {
    "MEMORY.md": "# Agent Memory\n\n## personal\n- Café in 東京 👩‍👧\n".encode(),
    "logs/2026-03-13.jsonl": b'{"content": "x"}\r\n',
    "retain.db": bytes(range(256)),
    "empty": b"",
}


def blob(members: object, version: object = 1) -> bytes:
    return json.dumps({"version": version, "files": members}).encode()


def member(content: object = "x", encoding: object = "utf-8") -> dict[str, object]:
    return {"encoding": encoding, "content": content}


def snapshot(directory: Path) -> dict[str, str]:
    """Everything below the directory, links as links."""
    return {
        str(path.relative_to(directory)): (
            f"-> {path.readlink()}"
            if path.is_symlink()
            else path.read_bytes().hex()
            if path.is_file()
            else "folder"
        )
        for path in sorted(directory.rglob("*"))
    }


names = st.text(st.sampled_from("aB9-_. é東😀\u0301ß"), min_size=1, max_size=8).filter(
    lambda name: not name.endswith((".", " "))
)
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@st.composite
def archives(draw: st.DrawFn) -> dict[str, bytes]:
    content = st.binary(max_size=40) | st.text(max_size=20).map(str.encode)
    files = draw(st.dictionaries(paths, content, max_size=6))
    try:
        pack(files)
    except InvalidValue as error:  # two of them are one file somewhere
        assume("one file on some systems" not in str(error) and "needs a folder" not in str(error))
        raise
    return files


# -- packing and unpacking ----------------------------------------------------------------


@given(archives())
def test_unpacking_gives_what_was_packed(files: dict[str, bytes]):
    packed = pack(files)
    assert unpack(packed) == files
    assert list(unpack(packed)) == sorted(files)
    assert pack(dict(reversed(files.items()))) == packed
    assert pack(unpack(packed)) == packed


def test_the_archive_is_readable_json_of_the_documented_shape():
    archive = json.loads(pack(MEMORY))
    assert archive["version"] == 1
    assert archive["files"]["MEMORY.md"] == {
        "encoding": "utf-8",
        "content": MEMORY["MEMORY.md"].decode(),
    }
    assert archive["files"]["retain.db"] == {
        "encoding": "base64",
        "content": base64.b64encode(bytes(range(256))).decode(),
    }
    assert "Café in 東京" in pack(MEMORY).decode()


def test_an_archive_written_by_other_hands_is_read_too():
    text = '{\n "files": {"b": {"content": "\\u00e9", "encoding": "utf-8"}},\n "version": 1}\n'
    assert unpack(text.encode()) == {"b": "é".encode()}
    assert unpack(memoryview(pack(MEMORY))) == MEMORY
    assert unpack(blob({})) == {}


@given(st.binary())
def test_any_bytes_are_an_archive_or_a_clear_error(data: bytes):
    with pytest.raises(StoreCorrupt):
        unpack(data)


@given(st.data())
def test_an_archive_with_a_changed_byte_is_read_or_refused(data: st.DataObject):
    packed = bytearray(pack(MEMORY))
    packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    try:
        files = unpack(packed)
    except (StoreCorrupt, StoreTooNew, InvalidValue):
        return
    assert unpack(pack(files)) == files


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'"text"',
        b'\xef\xbb\xbf{"version":1,"files":{}}',
        json.dumps({"version": 1, "files": {}}).encode("utf-16"),
        b'{"version":1}',
        b'{"files":{}}',
        b'{"version":1,"files":{},"more":1}',
        b'{"version":1,"files":{},"files":{}}',
        b'{"version":1,"version":1,"files":{}}',
        b'{"version":1,"files":{}}{}',
        b'{"version":NaN,"files":{}}',
        b'{"version":' + b"9" * 100_000 + b',"files":{}}',
        b"[" * 200_000,
        b'{"a":' * 200_000,
        *(blob({}, version) for version in (0, -1, 1.0, "1", None, True)),
        *(blob(members) for members in ([], None, "x", 1)),
        *(blob({"a": value}) for value in ("x", None, [], {}, {"content": "x"})),
        blob({"a": member() | {"mode": 511}}),
        blob({"a": member(encoding="latin-1")}),
        blob({"a": member(encoding=None)}),
        blob({"a": member(encoding=["utf-8"])}),
        blob({"a": member(5)}),
        blob({"a": member(None, "base64")}),
        blob({"a": member("\ud800")}),
        *(blob({"a": member(text, "base64")}) for text in ("x", "é", "YQ", "YQ==\n", "YR==", " ")),
        b'{"version":1,"files":{"a":{"encoding":"utf-8","content":"x","content":"y"}}}',
    ],
    ids=lambda data: ascii(data[:40]),
)
def test_what_is_no_archive_is_corrupt(data: bytes):
    with pytest.raises(StoreCorrupt):
        unpack(data)


def test_an_archive_of_a_newer_version_says_so_whatever_its_shape():
    with pytest.raises(StoreTooNew, match="version 2"):
        unpack(b'{"version":2,"entries":[]}')


@pytest.mark.parametrize("data", ["{}", None, 5, ["a"]])
def test_only_bytes_are_unpacked(data: object):
    with pytest.raises(InvalidType):
        unpack(data)


@pytest.mark.parametrize("files", [None, [("a", b"")], {"a": "text"}, {"a": None}, {5: b""}])
def test_only_paths_and_bytes_are_packed(files: object):
    with pytest.raises(InvalidType):
        pack(files)


# -- hostile paths ------------------------------------------------------------------------

UNSAFE = [
    *["", "/", "/etc/passwd", "//host/share", ".", "..", "../x", "a/../../x", "a/./b", "./a"],
    *[
        "a//b",
        "a/",
        "a/..",
        "C:",
        "C:/x",
        "c:x",
        "a/C:/x",
        "MEMORY.md:stream",
        "\\",
        "..\\x",
        "a\\b",
    ],
    *["a\0b", "\0", "a\nb", "\x1b[2J", "a\x7f", "\ud800", "a/\udfff/b"],
    *["CON", "nul", "aux.txt", "a/COM1", "lpt9.log", "com¹", "PRN/x", "x.", "x ", "a. /b", "..."],
    *["x" * 256, "é" * 128, "/".join("ab" for _ in range(100)), "a/" * 600 + "a"],
    *[f".x.{'0' * 32}.tmp", f"logs/.retain.{'a' * 32}.tmp"],
]


@pytest.mark.parametrize("path", UNSAFE, ids=lambda path: ascii(path[:40]))
def test_an_unsafe_path_refuses_the_whole_archive_and_nothing_is_written(path: str, tmp_path: Path):
    directory = tmp_path / "inside"
    files = {"MEMORY.md": b"new", path: b"evil", "zzz": b"new"}
    for refusing in (
        lambda: pack(files),
        lambda: unpack(blob({name: member() for name in files})),
        lambda: write_directory(directory, files),
    ):
        with pytest.raises(InvalidValue, match="nothing of it was written") as caught:
            refusing()
        assert repr(path[:200]) in str(caught.value)
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize(
    "path",
    [
        *["a", "a b", ".hidden", "..a", "a..b", "...a", "-rf", "~", "$HOME", "%2e%2e", "console"],
        *["com10", "null", "東京/日記.md", "cafe\u0301", "👩‍👧", "é" * 127, "a/b/c/d/e", "\u2028"],
    ],
)
def test_other_paths_are_safe(path: str, tmp_path: Path):
    write_directory(tmp_path, unpack(pack({path: b"x"})))
    assert (tmp_path / path).read_bytes() == b"x"


def test_a_path_that_is_there_twice_refuses_the_archive():
    twice = b'{"version":1,"files":{"a":%s,"a":%s}}' % ((json.dumps(member()).encode(),) * 2)
    with pytest.raises(InvalidValue, match="twice"):
        unpack(twice)


@pytest.mark.parametrize(
    ("one", "other"), [("A.md", "a.md"), ("caf\u00e9", "cafe\u0301"), ("x/STRASSE", "x/straße")]
)
def test_paths_that_are_one_file_on_some_systems_refuse_the_archive(one: str, other: str):
    with pytest.raises(InvalidValue, match="one file on some systems"):
        unpack(blob({one: member(), other: member()}))


@pytest.mark.parametrize(("file", "below"), [("a", "a/b"), ("a/b", "a/b/c/d"), ("LOGS", "logs/x")])
def test_a_file_that_another_path_needs_as_a_folder_refuses_the_archive(file: str, below: str):
    for files in ({file: b"", below: b""}, {below: b"", file: b""}):
        with pytest.raises(InvalidValue, match="needs a folder"):
            pack(files)


# -- writing a directory ------------------------------------------------------------------


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_directory_comes_back_from_its_archive(tmp_path: Path):
    first, second = tmp_path / "first", tmp_path / "deep" / "second"
    write_directory(first, MEMORY)
    write_directory(second, unpack(pack(read_directory(first))))
    assert read_directory(second) == MEMORY
    assert snapshot(first) == snapshot(second)


@given(archives())
def test_any_files_come_back_from_a_directory(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
):
    directory = tmp_path_factory.mktemp("any") / "memory"
    write_directory(directory, files)
    assert read_directory(directory) == files
    assert list(read_directory(directory)) == sorted(files)


def test_new_files_and_folders_are_their_owners_only(tmp_path: Path):
    before = os.umask(0)
    try:
        write_directory(tmp_path / "new" / "place", MEMORY)
    finally:
        os.umask(before)
    for path in (tmp_path / "new").rglob("*"):
        assert mode(path) == (0o700 if path.is_dir() else 0o600)
    assert mode(tmp_path / "new") == 0o700


def test_files_are_replaced_and_others_stay(tmp_path: Path):
    (tmp_path / "MEMORY.md").write_text("old")
    (tmp_path / "MEMORY.md").chmod(0o644)
    (tmp_path / "mine.txt").write_text("mine")
    kept = os.open(tmp_path / "MEMORY.md", os.O_RDONLY)
    write_directory(tmp_path, {"MEMORY.md": b"new"})
    assert os.read(kept, 10) == b"old"  # another file took its place; it was not written over
    os.close(kept)
    assert read_directory(tmp_path) == {"MEMORY.md": b"new", "mine.txt": b"mine"}
    assert mode(tmp_path / "MEMORY.md") == 0o600


@pytest.mark.parametrize(
    ("obstacle", "path"),
    [
        ("link", "link"),
        ("link", "link/x"),
        ("logs/link", "logs/link/a/b"),
        ("dangling", "dangling"),
    ],
)
def test_a_path_through_a_symbolic_link_refuses_everything(
    obstacle: str, path: str, tmp_path: Path
):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    (inside / obstacle).parent.mkdir(parents=True)
    target = outside / "gone" if obstacle == "dangling" else outside
    (inside / obstacle).symlink_to(target, target_is_directory=True)
    before = snapshot(tmp_path)
    with pytest.raises(InvalidValue, match="symbolic link"):
        write_directory(inside, {"MEMORY.md": b"new", path: b"evil", "zzz": b"new"})
    assert snapshot(tmp_path) == before


def test_a_link_to_a_file_is_refused_too(tmp_path: Path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "MEMORY.md").symlink_to("../secret")
    with pytest.raises(InvalidValue, match=r"MEMORY\.md is a symbolic link"):
        write_directory(tmp_path / "inside", {"MEMORY.md": b"new"})
    assert (tmp_path / "secret").read_text() == "secret"


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    for path, kind in [("logs", "folder"), ("file/x", "file"), ("pipe", "special file")]:
        with pytest.raises(InvalidValue, match=f"is a {kind}"):
            write_directory(tmp_path, {"MEMORY.md": b"new", path: b"x"})
    assert sorted(tmp_path.iterdir()) == before


def test_the_directory_itself_may_be_a_link(tmp_path: Path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "memory").symlink_to("disk")
    write_directory(tmp_path / "memory", MEMORY)
    assert read_directory(tmp_path / "disk") == read_directory(tmp_path / "memory") == MEMORY


def test_a_file_in_the_directorys_place_is_an_error_that_names_it(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    for call in (lambda: write_directory(tmp_path / "file", MEMORY), read_it(tmp_path / "file")):
        with pytest.raises(StoreFailed, match="file"):
            call()
    assert (tmp_path / "file").read_text() == "x"


def read_it(path: Path):
    return lambda: read_directory(path)


FULL_DISK = """
import resource, signal, sys
from retain.backends import write_directory
from retain.errors import StoreFailed
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_directory(sys.argv[1], {"MEMORY.md": b"new", "logs/a": b"new", "zzz": b"x" * 5000})
except StoreFailed as error:
    print("failed at", str(error).partition(":")[0])
"""


def test_a_write_that_fails_leaves_the_directory_as_it_was(tmp_path: Path):
    pytest.importorskip("resource")  # its limit of a file's size stands in for a full disk
    write_directory(tmp_path, {"MEMORY.md": b"old", "logs/a": b"old"})
    before = snapshot(tmp_path)
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == f"failed at {tmp_path / 'zzz'}\n"
    assert snapshot(tmp_path) == before


# -- reading a directory ------------------------------------------------------------------


def test_links_pipes_and_temporary_files_are_not_read(tmp_path: Path):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    write_directory(outside, {"secret": b"secret"})
    write_directory(inside, {"a": b"1", "logs/b": b"2"})
    (inside / "link").symlink_to(outside / "secret")
    (inside / "folder").symlink_to(outside)
    (inside / "logs" / "loop").symlink_to(inside)
    (inside / f".MEMORY.md.{'0' * 32}.tmp").write_text("half")
    os.mkfifo(inside / "pipe")
    assert read_directory(inside) == {"a": b"1", "logs/b": b"2"}


def test_what_is_to_be_skipped_is_asked_by_relative_path_and_folders_are_not_entered(
    tmp_path: Path,
):
    write_directory(tmp_path, {"a": b"", "index/x": b"", "logs/index": b"", "logs/b": b""})
    asked = []

    def skip(path: str) -> bool:
        asked.append(path)
        return path in ("index", "logs/b")

    assert read_directory(tmp_path, skip) == {"a": b"", "logs/index": b""}
    assert sorted(asked) == ["a", "index", "logs", "logs/b", "logs/index"]


def test_a_file_that_changes_its_nature_between_listing_and_reading_is_not_read(tmp_path: Path):
    write_directory(tmp_path, {"gone": b"1", "kept": b"2", "pipe": b"3"})

    def meanwhile(path: str) -> bool:
        if path != "kept":
            (tmp_path / path).unlink()
        if path == "pipe":
            os.mkfifo(tmp_path / path)
        return False

    assert read_directory(tmp_path, meanwhile) == {"kept": b"2"}


def test_a_file_that_becomes_a_link_between_listing_and_reading_is_an_error(tmp_path: Path):
    write_directory(tmp_path / "inside", {"a": b"1"})
    (tmp_path / "secret").write_text("secret")

    def meanwhile(path: str) -> bool:
        (tmp_path / "inside" / path).unlink()
        (tmp_path / "inside" / path).symlink_to(tmp_path / "secret")
        return False

    with pytest.raises(StoreFailed):
        read_directory(tmp_path / "inside", meanwhile)


def test_a_directory_that_is_not_there_is_an_error_and_not_empty(tmp_path: Path):
    with pytest.raises(StoreFailed, match="missing"):
        read_directory(tmp_path / "missing")
    assert read_directory(tmp_path) == {}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_a_file_that_can_not_be_read_is_an_error(tmp_path: Path):
    write_directory(tmp_path, {"a": b"", "b": b""})
    (tmp_path / "b").chmod(0)
    with pytest.raises(StoreFailed, match=re.escape(str(tmp_path / "b"))):
        read_directory(tmp_path)


# -- the protocol -------------------------------------------------------------------------


class Cupboard:
    """A back end of one's own."""

    def __init__(self) -> None:
        self.data: bytes | None = None

    def load_bytes(self) -> bytes | None:
        return self.data

    def save_bytes(self, data: bytes) -> None:
        self.data = data


def test_anything_with_the_two_methods_is_a_backend(tmp_path: Path):
    cupboard: KnowledgeBackend = Cupboard()
    assert isinstance(cupboard, KnowledgeBackend)
    assert not isinstance(object(), KnowledgeBackend)
    assert cupboard.load_bytes() is None
    write_directory(tmp_path / "one", MEMORY)
    cupboard.save_bytes(pack(read_directory(tmp_path / "one")))
    saved = cupboard.load_bytes()
    assert saved is not None
    write_directory(tmp_path / "two", unpack(saved))
    assert snapshot(tmp_path / "one") == snapshot(tmp_path / "two")
