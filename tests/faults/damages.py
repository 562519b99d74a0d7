"""What can happen to a file, and whether all that it said is still somewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from faults.places import bytes_of

Damage = Callable[[bytes, Random], bytes]


def truncated(share: float) -> Damage:
    return lambda data, random: data[: int(len(data) * share)]


def cut_somewhere(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data))]


def flipped(data: bytes, random: Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(5):
        damaged[random.randrange(len(data))] = random.randrange(256)
    return bytes(damaged)


def holed(data: bytes, random: Random) -> bytes:
    """As a crash of the machine leaves a file: a part of it was never written."""
    start = random.randrange(len(data))
    stop = min(len(data), start + 4096)
    return data[:start] + bytes(stop - start) + data[stop:]


DAMAGES: dict[str, Damage] = {
    **{f"cut at {share} %": truncated(share / 100) for share in range(10, 100, 10)},
    **{f"cut somewhere {number}": cut_somewhere for number in range(4)},
    **{f"flipped {number}": flipped for number in range(4)},
    **{f"holed {number}": holed for number in range(3)},
    "empty": lambda data, random: b"",
    "blank": lambda data, random: b" \n\n",
    "binary": lambda data, random: random.randbytes(5_000),
    "NULs": lambda data, random: bytes(len(data)),
    "{}": lambda data, random: b"{}",
    "null": lambda data, random: b"null\n",
    "[1,2]": lambda data, random: b"[1,2]",
    "a text": lambda data, random: b'"text"\n',
    "a number": lambda data, random: b"1" * 10_000 + b"\n",
    "nested deeply": lambda data, random: b"[" * 100_000 + b"]" * 100_000,
    "objects nested deeply": lambda data, random: b'{"a":' * 100_000,
    "UTF-16": lambda data, random: data.decode(errors="replace").encode("utf-16"),
    "a byte order mark": lambda data, random: b"\xef\xbb\xbf" + data,
    "a long line": lambda data, random: data + b"x" * 10_000_000 + b"\n",
    "a long line before": lambda data, random: b"x" * 10_000_000 + b"\n" + data,
    "twice": lambda data, random: data + data,
    "a surrogate": lambda data, random: data.replace(b"tea 2", b"\\ud800"),
}

# The core does each kind of damage once.
MORE = [name for name in DAMAGES if name[-1] in "123" or name[-3:] in ("0 %", "ore")]
every_damage = pytest.mark.parametrize(
    "damage",
    [
        pytest.param(name, marks=pytest.mark.slow if name in MORE and name != "cut at 50 %" else ())
        for name in DAMAGES
    ],
)


def damaged(path: Path, damage: str) -> bytes:
    """Do the damage to the file; what it is then."""
    data = DAMAGES[damage](path.read_bytes(), Random(damage))
    path.write_bytes(data)
    return data


TEXTS = [f"Ann likes tea {number}, 東京 «naïve»" for number in range(12)]


# What retain writes itself whenever it is wanted: heads, void lines, headings.
MADE_ANEW = (b'{"retain"', b'{"left":0}', b"## ")


def kept_somewhere(folder: Path, data: bytes) -> bool:
    """Whether all that ``data`` said is still in some file: each line, or each row of an array."""
    there = b"\n".join(bytes_of(folder).values())
    lines = [line.rstrip(b", \r") for line in data.split(b"\n")]
    if all(is_in(there, line) for line in lines if not line.startswith(MADE_ANEW)):
        return True
    rows = read(data)
    return isinstance(rows, list) and all(is_in(there, json.dumps(row).encode()) for row in rows)


def is_in(there: bytes, line: bytes) -> bool:
    """Whether a line is there, or another one with its content, if it can be read."""
    row = read(line)
    row = row.get("save", row) if isinstance(row, dict) else row
    content = row.get("content") if isinstance(row, dict) else None
    if line in there or not isinstance(content, str):
        return line in there
    forms = (json.dumps(content, ensure_ascii=ascii) for ascii in (True, False))
    return any(form.encode(errors="replace") in there for form in forms)


def read(data: bytes) -> Any:
    try:
        return json.loads(data.decode(errors="surrogateescape"))
    except (ValueError, RecursionError):
        return None
