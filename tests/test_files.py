"""Files that survive: all of a write or nothing, for its owner only; and copies set aside."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from retain import JSONFileStore, NetworkFilesystem, SQLiteStore, StoreFailed, files

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("name", ["memory.db", "memory", ".hidden", "東京.db.db"])
def test_the_file_beside_another_has_all_of_its_name_and_the_end(tmp_path: Path, name: str):
    assert files.beside(tmp_path / name, "-wal") == tmp_path / f"{name}-wal"


# -- writing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_replaced_as_a_whole_and_nothing_else_is_left(tmp_path: Path, durable: bool):
    path = tmp_path / "東京.md"
    files.write_atomically(path, b"a much longer text than the next one", durable=durable)
    files.write_atomically(path, b"short", durable=durable)
    assert path.read_bytes() == b"short"
    assert list(tmp_path.iterdir()) == [path]


@posix
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_what_is_new_is_its_owners_only_whatever_the_umask(tmp_path: Path, umask: int):
    before = os.umask(umask)
    try:
        files.make_folder(tmp_path / "a" / "b")
        files.write_atomically(tmp_path / "a" / "atomic", b"x")
        files.write_new(tmp_path / "a" / "new", b"x")
    finally:
        os.umask(before)
    assert [mode(tmp_path / name) for name in ("a", "a/b")] == [0o700, 0o700]
    assert [mode(tmp_path / "a" / name) for name in ("atomic", "new")] == [0o600, 0o600]


def test_a_write_that_fails_leaves_the_old_file_and_no_temporary_one(tmp_path: Path):
    folder = tmp_path / "taken"
    (folder / "inside").mkdir(parents=True)
    with pytest.raises(StoreFailed):
        files.write_atomically(folder, b"x")  # a folder can't be replaced by a file
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
    with pytest.raises(StoreFailed):
        files.write_atomically(tmp_path / "missing" / "file", b"x")


def test_writers_at_the_same_time_never_mix_their_texts(tmp_path: Path):
    path = tmp_path / "file"
    texts = [bytes([letter]) * 50_000 for letter in b"abcd"]
    failures: list[BaseException] = []

    def write(data: bytes) -> None:
        try:
            for _ in range(15):
                files.write_atomically(path, data, durable=False)
                assert path.read_bytes() in texts
        except BaseException as error:  # noqa: BLE001 - shown by the assert below
            failures.append(error)

    threads = [threading.Thread(target=write, args=(data,)) for data in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_is_never_an_old_one(tmp_path: Path):
    path = tmp_path / "file"
    files.write_new(path, b"mine")
    with pytest.raises(FileExistsError):
        files.write_new(path, b"yours")
    assert path.read_bytes() == b"mine"


# -- folders ---------------------------------------------------------------------------------


def test_a_folder_is_made_with_its_parents_and_once(tmp_path: Path):
    for _ in range(2):
        files.make_folder(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()


@posix
def test_a_folder_that_is_there_keeps_its_permissions(tmp_path: Path):
    (tmp_path / "a").mkdir(mode=0o755)
    (tmp_path / "a").chmod(0o755)
    files.make_folder(tmp_path / "a")
    assert mode(tmp_path / "a") == 0o755


@pytest.mark.parametrize("below", ["", "/folder", "/folder/deeper"])
def test_a_file_in_a_folders_place_is_an_error_that_names_it(tmp_path: Path, below: str):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreFailed, match=r"file.*choose another place"):
        files.make_folder(Path(f"{tmp_path}/file{below}"))
    assert (tmp_path / "file").read_text() == "x"


# -- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "way_out"),
    [
        (errno.ENOSPC, "make room"),
        (errno.EDQUOT, "make room"),
        (errno.EROFS, "another place"),
        (errno.EACCES, "another place"),
        (errno.EISDIR, "name a file"),
        (errno.EIO, "nothing was kept"),
    ],
)
def test_an_error_of_the_disk_names_the_place_and_the_way_out(number: int, way_out: str):
    with pytest.raises(StoreFailed, match=way_out) as caught, files.store_errors("some/place"):
        raise OSError(number, os.strerror(number))
    assert str(caught.value).startswith("some/place: ")
    assert caught.value.errno == number
    assert isinstance(caught.value, OSError)


def test_an_error_that_was_told_is_not_told_again():
    inner = StoreFailed("inner: the disk is full")
    with pytest.raises(StoreFailed) as caught, files.store_errors("outer"):
        raise inner
    assert caught.value is inner


# -- copies set aside ------------------------------------------------------------------------


def test_what_is_set_aside_is_kept_once_however_often_it_is_met(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    path = tmp_path / "notes.json"
    path.write_bytes(b"{broken")
    copies = {files.set_aside(path) for _ in range(3)}
    [copy] = copies
    assert copy.name.startswith("notes.json.set-aside-") and copy.read_bytes() == b"{broken"
    assert path.read_bytes() == b"{broken"
    assert [copy.name in record.message for record in caplog.records] == [True]


def test_other_bytes_are_set_aside_beside_the_first(tmp_path: Path):
    path = tmp_path / "notes.json"
    path.write_bytes(b"one")
    first = files.set_aside(path)
    second = files.set_aside(path, b"two")
    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two")


def test_what_can_not_be_set_aside_is_an_error(tmp_path: Path):
    with pytest.raises(StoreFailed, match="missing"):
        files.set_aside(tmp_path / "missing")


# -- network file systems --------------------------------------------------------------------

linux = pytest.mark.skipif(
    not Path("/proc/self/mounts").exists(), reason="the table of mounts is Linux's"
)


@pytest.fixture
def on_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place whose file system counts as one across a network."""
    kind = files._filesystem(tmp_path)
    assert kind
    monkeypatch.setattr(files, "_NETWORK", [kind])
    return tmp_path


@linux
@pytest.mark.parametrize(
    "open_store",
    [
        lambda place, **options: SQLiteStore(place / "memory.db", **options),
        lambda place, **options: JSONFileStore(place / "memory.json", **options),
    ],
    ids=["sqlite", "json"],
)
def test_a_network_file_system_is_refused_unless_the_user_insists(
    on_a_network: Path, open_store: Callable[..., SQLiteStore | JSONFileStore]
):
    with pytest.raises(NetworkFilesystem, match="allow_network=True"):
        open_store(on_a_network)
    assert list(on_a_network.iterdir()) == []
    open_store(on_a_network, allow_network=True).close()


@linux
def test_the_place_counts_and_not_the_link_that_leads_to_it(on_a_network: Path):
    (on_a_network / "real").mkdir()
    (on_a_network / "link").symlink_to(on_a_network / "real")
    with pytest.raises(NetworkFilesystem):
        files.refuse_network(on_a_network / "link" / "not there yet" / "memory.db")


@linux
def test_local_file_systems_are_taken(tmp_path: Path):
    files.refuse_network(tmp_path)
    assert files._filesystem(Path("/proc/self")) == "proc"
