from __future__ import annotations

import gzip
import hashlib
import lzma
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain import InvalidValue, NotFound, StoreFailed
from retain.evaluation.reading import DataFile, Node, digest


def read(path: Path, data: bytes) -> DataFile:
    path.write_bytes(data)
    return DataFile(path)


@pytest.mark.parametrize("pack", [bytes, lzma.compress, gzip.compress])
def test_a_file_may_be_packed_whatever_its_name(tmp_path: Path, pack):
    data = pack('\ufeff{"name": "東京"}'.encode())
    file = read(tmp_path / "data.json", data)
    assert file.whole()["name"].text() == "東京"
    assert digest(file) == hashlib.sha256(data).hexdigest()


def test_the_digest_of_two_files_is_that_of_their_bytes_in_a_row(tmp_path: Path):
    one, two = read(tmp_path / "one", b"[1]"), read(tmp_path / "two", b"[2]\n")
    assert digest(one, two) == hashlib.sha256(b"[1][2]\n").hexdigest()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "data.json: it is not JSON at character 1"),
        (b'[\n {"a": 1},\n {"a" 2}\n]', "data.json: it is not JSON at line 3, character 7"),
        (b"[" * 100_000, "data.json: it is nested too deeply"),
        (b"[" + b"9" * 10_000 + b"]", "data.json: it holds a number too long"),
        (b'{"a": "\xff"}', "data.json: it is not UTF-8 at byte 8"),
        (lzma.compress(b"{}" * 1000)[:40], "data.json: it can't be unpacked"),
        (gzip.compress(b"{}" * 1000, mtime=0)[:20], "data.json: it can't be unpacked"),
        (b"\x1f\x8bnonsense", "data.json: it can't be unpacked"),
    ],
)
def test_a_file_that_is_no_data_is_refused_with_the_place(tmp_path: Path, data, problem):
    with pytest.raises(InvalidValue) as caught:
        read(tmp_path / "data.json", data).whole()
    assert str(caught.value).startswith(problem)


def test_a_broken_line_is_named_by_its_number(tmp_path: Path):
    file = read(tmp_path / "data.jsonl", b'{"a": 1}\n\n{"a": \n')
    with pytest.raises(InvalidValue, match=r"^data\.jsonl line 3: it is not JSON at character 7"):
        list(file.lines())


def test_a_line_separator_inside_a_text_does_not_end_the_line(tmp_path: Path):
    file = read(tmp_path / "data.jsonl", '{"a": "x\u2028y\x85z"}\r\n{"a": "b"}'.encode())
    assert [line["a"].text() for line in file.lines()] == ["x\u2028y\x85z", "b"]


def test_records_are_the_elements_of_a_list_or_the_lines(tmp_path: Path):
    for data in (b' [{"a": 1}, {"a": 2}]', b'{"a": 1}\n{"a": 2}\n'):
        file = read(tmp_path / "data", data)
        assert [record.value for record in file.records()] == [{"a": 1}, {"a": 2}]
        assert file.first().value == {"a": 1}
    assert read(tmp_path / "data", b'{\n"a": 1\n}').first().value == {"a": 1}
    assert read(tmp_path / "data", b"[]").first().value == []


def test_a_file_that_cannot_be_read_is_told_apart_from_a_bad_one(tmp_path: Path):
    with pytest.raises(NotFound, match="no file"):
        DataFile(tmp_path / "nowhere")
    with pytest.raises(StoreFailed, match="can't be read"):
        DataFile(tmp_path)
    if os.getuid():
        (tmp_path / "secret").write_text("[]")
        (tmp_path / "secret").chmod(0)
        with pytest.raises(StoreFailed, match="can't be read"):
            DataFile(tmp_path / "secret")


NODE = Node({"qa": [{"text": 3, "blank": " ", "n": None, "half": "\ud800", "on": True}]}, "f: ")
FIRST = NODE["qa"].items()[0]


@pytest.mark.parametrize(
    ("reach", "message"),
    [
        (lambda: NODE["chat"], "f: it has no 'chat'"),
        (lambda: NODE["qa"]["x"], "f: qa is a list; give a JSON object"),
        (lambda: NODE["qa"].names(), "f: qa is a list; give a JSON object"),
        (lambda: NODE["qa"].items(2), "f: qa has 1 elements; give 2"),
        (lambda: NODE.items(), "f: it is a JSON object; give a list"),
        (lambda: FIRST["n"], "f: qa[0] has no 'n'"),
        (lambda: FIRST["text"].text(), "f: qa[0].text is 3; give text"),
        (lambda: FIRST["blank"].words(), "f: qa[0].blank is blank; give text"),
        (lambda: FIRST["half"].text(), "f: qa[0].half is no text: it holds a lone surrogate"),
        (lambda: FIRST["on"].id(), "f: qa[0].on is true; give text"),
        (lambda: Node("", "f: ").id(), "f: it is empty; give an id"),
        (lambda: FIRST["text"].flag(), "f: qa[0].text is 3; give true or false"),
        (lambda: Node("x" * 500, "f: ").items(), f'f: it is "{"x" * 39}…; give a list'),
    ],
)
def test_what_is_not_as_it_should_be_is_named_with_its_place(reach, message: str):
    with pytest.raises(InvalidValue) as caught:
        reach()
    assert str(caught.value).startswith(message)


def test_an_id_may_be_a_number():
    assert Node(["a", 7], "f: ").ids() == {"a", "7"}
    assert FIRST.get("n") is None


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_but_an_error_of_retain(tmp_path_factory, data: bytes):
    path = tmp_path_factory.getbasetemp() / "fuzzed"
    for use in (DataFile.whole, DataFile.first, lambda file: list(file.records())):
        try:
            use(read(path, data))
        except InvalidValue as error:
            assert str(error).startswith("fuzzed")
