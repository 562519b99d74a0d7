from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
import time
from datetime import date
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retain import clock
from retain.directory.daily_log import (
    append,
    format_line,
    log_date,
    log_files,
    log_name,
    parse,
    with_content,
    without,
)
from retain.errors import InvalidValue, StoreFailed
from retain.models import Memory

relaxed = settings(max_examples=200)

NOON = 1773403200.0  # 2026-03-13T12:00:00Z


def entry(**fields: object) -> bytes:
    """A line that a person or another program wrote."""
    return json.dumps({"timestamp": "2026-03-13T10:15:00Z", "content": "x", **fields}).encode()


# -- strategies ------------------------------------------------------------------------------

ids = st.sampled_from(["a", "b", "ä", "東京", 'q"uote', "back\\slash", "/", "id", "\u2028"])
memories = st.builds(
    Memory,
    id=ids,
    content=st.text(),
    category=st.text(min_size=1).filter(str.strip),
    persistent=st.booleans(),
    created_at=st.integers(-(10**10), 10**11).map(lambda ms: ms / 1_000),
)


def escaped(text: str, which: int) -> str:
    """``text`` as a JSON text with some characters escaped that needn't be."""
    units = [
        f"\\u{ord(char):04x}" if which >> n & 1 and ord(char) < 0x10000 else json.dumps(char)[1:-1]
        for n, char in enumerate(text)
    ]
    return '"' + "".join(units) + '"'


@st.composite
def written_by_others(draw: st.DrawFn) -> bytes:
    names = {"id": draw(ids), "content": draw(st.text(max_size=9)), "x": draw(st.text(max_size=5))}
    if draw(st.booleans()):
        names["timestamp"] = "2026-03-13"
    members = [
        escaped(name, draw(st.integers(0, 7)))
        + draw(st.sampled_from([":", ": ", " :\t"]))
        + escaped(value, draw(st.integers(0, 127)))
        for name, value in draw(st.permutations(list(names.items())))
    ]
    if draw(st.booleans()):
        members.append('"meta": {"id": "b", "list": [{"id": "a"}]}')
    return ("{" + draw(st.sampled_from([",", " , "])).join(members) + "}").encode()


junk = st.one_of(
    st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")),
    st.sampled_from([b"", b"  ", b"\0" * 9, b"[]", b'"a"', b"null", b'{"id": "a"', b'{"id": 1}']),
    st.sampled_from([b"[" * 50_000, b'{"id":"a","x":' + b"9" * 5_000 + b"}", b'{"id": ["a"]}']),
    st.sampled_from([b'{"id":"a","id":"c"}', b'"id": "a"', b'{"x":"\\"id\\": \\"a\\""}', b"\xff"]),
)
log_lines = memories.map(lambda memory: format_line(memory)[:-1]) | written_by_others() | junk
logs = st.builds(
    lambda bom, lines, last: bom + b"".join(line + end for line, end in lines) + last,
    st.sampled_from([b"", b"", b"\xef\xbb\xbf"]),
    st.lists(st.tuples(log_lines, st.sampled_from([b"\n", b"\r\n", b"\n\n"])), max_size=8),
    log_lines | st.just(b""),
)


def id_on(line: bytes) -> object:
    """The id on a line, told the plain way."""
    try:
        return json.loads(line.removeprefix(b"\xef\xbb\xbf").decode())["id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def split(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    return [*lines[:-1], lines[-1][:-1]]


# -- names -----------------------------------------------------------------------------------


@given(st.integers(-62_135_596_800, 253_402_300_799))
def test_a_logs_name_tells_its_utc_day(moment):
    name = log_name(moment)
    assert log_date(name) == clock.as_datetime(moment).date()
    assert name == f"{clock.iso(moment)[:10]}.jsonl"


def test_a_day_begins_at_midnight_utc():
    assert log_name(1773360000.0) == "2026-03-13.jsonl"
    assert log_name(1773359999.999999) == "2026-03-12.jsonl"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "MEMORY.md",
        "2026-03-13",
        "2026-03-13.json",
        "2026-03-13.jsonl.tmp",
        "x2026-03-13.jsonl",
        "2026-3-13.jsonl",
        "2026-02-30.jsonl",
        "0000-01-01.jsonl",
        "2026-W11-5.jsonl",
        "२०२६-०३-१३.jsonl",
        "2026-03-13.jsonl\n",
    ],
)
def test_other_names_are_no_logs(name):
    assert log_date(name) is None


def test_logs_are_listed_by_day_and_other_files_are_not(tmp_path):
    for name in ("2026-03-13.jsonl", "2025-12-31.jsonl", "notes.txt", "2026-03-13.jsonl.bad"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "2026-01-01.jsonl").mkdir()
    assert log_files(tmp_path) == [
        (date(2025, 12, 31), tmp_path / "2025-12-31.jsonl"),
        (date(2026, 3, 13), tmp_path / "2026-03-13.jsonl"),
    ]
    assert log_files(tmp_path / "missing") == []
    with pytest.raises(StoreFailed, match=r"notes\.txt: Not a directory"):
        log_files(tmp_path / "notes.txt")


# -- one line --------------------------------------------------------------------------------


def test_a_line_has_the_specified_members_in_their_order():
    memory = Memory("m1", 'Straße "5"\n東京', category="café", persistent=True, created_at=NOON)
    assert format_line(memory).decode() == (
        '{"timestamp": "2026-03-13T12:00:00Z", "category": "café", '
        '"content": "Straße \\"5\\"\\n東京", "persistent": true, "id": "m1"}\n'
    )


def test_a_lone_surrogate_is_refused():
    with pytest.raises(InvalidValue, match="lone surrogate"):
        format_line(Memory("m1", "\ud800"))


@relaxed
@given(st.lists(memories))
def test_what_is_written_is_read_back(written):
    log = parse(b"".join(map(format_line, written)))
    assert log.unreadable == []
    assert log.times == [math.floor(memory.created_at) for memory in written]
    assert log.entries == [
        {
            "timestamp": clock.iso(math.floor(memory.created_at)),
            "category": memory.category,
            "content": memory.content,
            "persistent": memory.persistent,
            "id": memory.id,
        }
        for memory in written
    ]


# -- reading ---------------------------------------------------------------------------------


def test_a_line_written_by_hand_needs_only_time_and_content():
    for extra in ({}, {"category": None, "persistent": None, "id": None}, {"category": " "}):
        (read,) = parse(entry(**extra)).entries
        assert read == {
            "timestamp": "2026-03-13T10:15:00Z",
            "category": "general",
            "content": "x",
            "persistent": False,
            "id": None,
        }


@pytest.mark.parametrize("id", [17, "", ["a"], None])
def test_an_id_of_another_kind_is_none(id):
    assert parse(entry(id=id)).entries[0]["id"] is None


@pytest.mark.parametrize(
    ("timestamp", "read"),
    [
        ("2026-03-13T10:15:00Z", "2026-03-13T10:15:00Z"),
        ("2026-03-13t10:15:00z", "2026-03-13T10:15:00Z"),
        ("2026-03-13T10:15:00", "2026-03-13T10:15:00Z"),
        (" 2026-03-13 10:15 ", "2026-03-13T10:15:00Z"),
        ("2026-03-13", "2026-03-13T00:00:00Z"),
        ("2026-03-13T10:15:00+02:00", "2026-03-13T08:15:00Z"),
        ("2026-03-13T23:15:00-0530", "2026-03-14T04:45:00Z"),
        ("2026-03-13T10:15:00 +02", "2026-03-13T08:15:00Z"),
        ("2026-03-13T10:15:00.5Z", "2026-03-13T10:15:00.500000Z"),
        ("2026-03-13T10:15:00,123456789Z", "2026-03-13T10:15:00.123456Z"),
    ],
)
def test_timestamps_are_read_in_every_usual_form(timestamp, read):
    log = parse(entry(timestamp=timestamp))
    assert [line["timestamp"] for line in log.entries] == [read]
    assert clock.iso(log.times[0]) == read


@pytest.mark.parametrize(
    "timestamp",
    [
        None,
        "",
        1773403200,
        True,
        [],
        {},
        "yesterday",
        "2026-02-30",
        "2026-03-13T25:00",
        "٢٠٢٦-٠٣-١٣",
        "0001-01-01T00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2026-03-13T10:15+99:00",
        "\ud800",
    ],
)
def test_a_line_without_a_time_is_unreadable(timestamp):
    log = parse(entry(timestamp=timestamp))
    assert not log.entries
    assert "timestamp" in log.unreadable[0].reason


DEEP = b'{"content":' * 400 + b"1" + b"}" * 400


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\0" * 4096, "NUL"),
        (b"\xff\xfe\x01", "UTF-8 at byte 0"),
        (entry()[:-9], "JSON at character .*the file ends there"),
        (b"- a", "JSON"),
        (b"[1]", "list, not an object"),
        (b"null", "NoneType, not an object"),
        (b"[" * 100_000, "nested too deeply"),
        (DEEP, "content that is a dict"),
        (b'{"content": ' + b"9" * 5_000 + b"}", "number too long|content that is 9"),
        (b'{"timestamp": "2026-03-13"}', "content that is missing"),
        (entry(content=5), "content that is 5, not text"),
        (entry(content=None), "content that is missing or null"),
        (entry(content="\ud800"), "content with a lone surrogate"),
        (entry(category=[]), "category that is a list"),
        (entry(category="\udfff"), "category with a lone surrogate"),
        (entry(id="\ud800"), "id with a lone surrogate"),
        (entry(persistent="x" * 99), "persistent that is 'x{40}…'"),
        (entry(persistent=1), "persistent that is 1"),
    ],
)
def test_what_cannot_be_read_is_counted_with_its_line_and_reason(line, reason):
    good = entry(content="good")
    log = parse(good + b"\n\n" + line)
    assert [read["content"] for read in log.entries] == ["good"]
    (bad,) = log.unreadable
    assert bad.line == 3
    assert re.search(reason, bad.reason)


@relaxed
@given(st.binary() | logs)
def test_any_bytes_are_read_and_every_line_is_accounted_for(data):
    log = parse(data)
    lines = [line.removeprefix(b"\xef\xbb\xbf").strip() for line in split(data)]
    assert len(log.entries) + len(log.unreadable) == sum(map(bool, lines))
    assert len(log.times) == len(log.entries)
    assert all(1 <= bad.line <= len(lines) and bad.reason for bad in log.unreadable)


def test_a_byte_order_mark_is_no_part_of_the_first_line():
    assert len(parse(b"\xef\xbb\xbf" + entry() + b"\r\n").entries) == 1


# -- rewriting -------------------------------------------------------------------------------


@relaxed
@given(logs, st.sets(ids))
@example(b'{"\\u0069d": "\\u0061"}\n', {"a"})
@example(b'{"id":"\\/"}', {"/"})
@example(b'\xef\xbb\xbf{"id":"a"}\nx', {"a"})
def test_without_drops_the_lines_of_these_ids_and_changes_no_other_byte(data, doomed):
    mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    lines = split(data.removeprefix(mark))
    expected = mark + b"".join(line for line in lines if id_on(line) not in list(doomed))
    assert without(data, doomed) == expected


@relaxed
@given(logs, memories)
def test_with_content_rewrites_the_memorys_line_and_changes_no_other_byte(data, memory):
    after = with_content(data, memory)
    before, now = split(data), split(after)
    number = next((n for n, line in enumerate(before) if id_on(line) == memory.id), None)
    if number is None:
        assert after == data
        return
    others = [line for line in before[number + 1 :] if id_on(line) != memory.id]
    assert now[:number] == before[:number]
    assert now[number].removeprefix(b"\xef\xbb\xbf").rstrip() == format_line(memory).rstrip()
    # blank lines apart: where the last line went, the one above it keeps its line end
    assert [line for line in now[number + 1 :] if line] == [line for line in others if line]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_rewritten_line_keeps_its_end(end):
    memory = Memory("a", "new", created_at=NOON)
    data = b"x\r\n" + entry(id="a") + end
    assert with_content(data, memory) == b"x\r\n" + format_line(memory)[:-1] + end


def test_a_line_is_an_ids_even_if_its_other_members_cannot_be_read():
    data = b"torn\n" + entry(id="a", content="secret", timestamp=None) + b"\n"
    assert without(data, {"a"}) == b"torn\n"


def test_nothing_to_rewrite_gives_the_same_bytes():
    data = entry(id="a") + b"\n"
    assert without(data, set()) is data
    assert without(data, {"b"}) is data
    assert with_content(data, Memory("b", "x")) is data


def test_a_line_of_ten_megabytes_is_a_line():
    data = entry(id="a", content="x" * 10_000_000) + b"\n" + entry(id="b") + b"\n"
    assert [len(read["content"]) for read in parse(data).entries] == [10_000_000, 1]
    assert without(data, {"a"}) == entry(id="b") + b"\n"


def test_thousands_of_ids_are_dropped_from_thousands_of_lines_in_a_moment():
    written = [Memory(f"id {n}", f"note {n}", created_at=NOON + n) for n in range(5_000)]
    data = b"".join(map(format_line, written))
    started = time.perf_counter()
    rest = without(data, {memory.id for memory in written[::2]})
    assert time.perf_counter() - started < 5  # quadratic: much longer
    assert rest == b"".join(map(format_line, written[1::2]))


# -- files -----------------------------------------------------------------------------------


def test_lines_are_appended_and_a_new_log_is_its_owners_only(tmp_path):
    path = tmp_path / "2026-03-13.jsonl"
    first, second = Memory("a", "x", created_at=NOON), Memory("b", "y", created_at=NOON)
    append(path, format_line(first))
    append(path, format_line(second))
    assert path.read_bytes() == format_line(first) + format_line(second)
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("cut", [1, 20, 90])
def test_half_of_a_line_that_is_appended_again_goes(tmp_path, before, cut):
    path = tmp_path / "2026-03-13.jsonl"
    lines = [format_line(Memory(f"m{n}", "東京 " * 20, created_at=NOON)) for n in range(5)]
    path.write_bytes(b"".join(lines[:before]) + lines[before][:-cut])
    append(path, b"".join(lines[before:]))
    assert path.read_bytes() == b"".join(lines)


def test_a_line_after_half_a_line_begins_on_a_new_one(tmp_path):
    path = tmp_path / "2026-03-13.jsonl"
    path.write_bytes(b'{"content": "a person was typ')
    append(path, format_line(Memory("a", "x", created_at=NOON)))
    log = parse(path.read_bytes())
    assert [read["id"] for read in log.entries] == ["a"]
    assert [bad.line for bad in log.unreadable] == [1]


def test_a_disk_that_refuses_is_reported(tmp_path):
    with pytest.raises(StoreFailed, match=r"2026-03-13\.jsonl: No such file"):
        append(tmp_path / "missing" / "2026-03-13.jsonl", b"x\n")
    with pytest.raises(OSError, match="Is a directory"):
        append(tmp_path, b"x\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_reported():
    with pytest.raises(StoreFailed, match=os.strerror(errno.ENOSPC)):
        append(Path("/dev/full"), b"x\n")
