"""Which dataset a file is, and reading it."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from ..engine import whole
from ..errors import InvalidType, InvalidValue, NotFound
from ..files import real_path
from .dataset import UNITS, Dataset
from .locomo import read_locomo
from .longmemeval import read_longmemeval
from .plain import read_plain
from .reading import DataFile
from .xquad import read_corpora

__all__ = ["FORMATS", "load_dataset"]

FORMATS = ("auto", "locomo", "longmemeval", "plain", "xquad")
"""What can be read; ``auto`` finds it out from the content."""

_PACKED = ("", ".xz", ".gz")


def load_dataset(
    path: str | os.PathLike[str],
    queries: str | os.PathLike[str] | None = None,
    *,
    format: str = "auto",
    unit: str = "turn",
    conversations: Collection[int] | None = None,
    limit: int | None = None,
) -> Dataset:
    """The dataset in the file ``path``, or in a folder with memories.jsonl and queries.jsonl.

    ``queries``: the second file, where the memories and the queries are named apart, or
    LongMemEval's questions and sessions. ``format``: one of ``FORMATS``. ``unit``: one of
    ``UNITS``. ``conversations``: only the cases of these numbers, from 1. ``limit``: only the
    first so many questions.

    Raises ``InvalidValue`` with the place of what can't be used, ``NotFound`` where there is
    no such file or nothing to ask, and ``StoreFailed`` where it can't be read.
    """
    if format not in FORMATS:
        raise InvalidValue(f"format={format!r} is none of {', '.join(FORMATS)}")
    if unit not in UNITS:
        raise InvalidValue(f"unit={unit!r} is none of {', '.join(UNITS)}")
    dataset = _read(real_path(path), None if queries is None else real_path(queries), format, unit)
    if conversations is not None:
        dataset = _chosen(dataset, conversations)
    if limit is not None:
        dataset = dataset.limited(whole(limit, "limit", 1))
    if not dataset.question_count:
        raise NotFound(f"{dataset.name} has no question that could be asked")
    return dataset


def _chosen(dataset: Dataset, numbers: Collection[int]) -> Dataset:
    there = len(dataset.cases)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int):
            raise InvalidType(f"conversation {number!r} is no whole number")
        if not 1 <= number <= there:
            raise InvalidValue(f"conversation {number} is not there; {dataset.name} has {there}")
    chosen = sorted(set(numbers))
    part = f"conversations {_ranges(chosen)}"
    return replace(dataset, cases=[dataset.cases[at - 1] for at in chosen], part=part)


def _ranges(numbers: Sequence[int]) -> str:
    """``1-3, 5``: runs of ascending numbers by their ends."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _read(path: Path, second: Path | None, format: str, unit: str) -> Dataset:
    if path.is_dir():
        if second is not None:
            raise InvalidValue(f"{path} is a folder; name the file of memories beside {second}")
        path, second = _in_folder(path, "memories.jsonl"), _in_folder(path, "queries.jsonl")
    file = DataFile(path)
    other = None if second is None else DataFile(second)
    found = _recognised(file) if format == "auto" else format
    if found == "plain":
        if other is None:
            raise InvalidValue(f"{file.place}name the file of queries after that of memories")
        return read_plain(file, other, unit)
    if found == "longmemeval":
        return read_longmemeval(file, other or _sessions_of(file), unit)
    if other is not None:
        raise InvalidValue(f"{found} is one file; what is {other.path.name} to be?")
    if found == "locomo":
        return read_locomo(file, unit)
    if unit != "turn":
        raise InvalidValue(f"{file.place}{found} has no sessions; evaluate it with the unit 'turn'")
    return read_corpora(file)


def _in_folder(folder: Path, name: str) -> Path:
    for ending in _PACKED:
        path = folder / f"{name}{ending}"
        if path.is_file():
            return path
    raise NotFound(f"{folder} has no {name}; name a folder with memories.jsonl and queries.jsonl")


def _recognised(file: DataFile) -> str:
    first = file.first()
    names = set(first.value) if isinstance(first.value, dict) else set()
    if "conversation" in names and "qa" in names:
        return "locomo"
    if "question_id" in names:
        return "longmemeval"
    if "corpora" in names:
        return "xquad"
    if "content" in names:
        return "plain"
    known = ", ".join(FORMATS[1:])
    raise InvalidValue(f"{file.place}it is none of the formats that are known: {known}")


def _sessions_of(file: DataFile) -> DataFile | None:
    """The file of sessions that belongs to one of questions, where they are two."""
    first = file.first()
    if not isinstance(first.value, dict) or "haystack" not in first.value:
        return None
    name = file.path.name
    stem = name.removesuffix(".xz").removesuffix(".gz")
    for ending in _PACKED:
        path = file.path.with_name(stem.replace("questions", "sessions") + ending)
        if path != file.path and path.is_file():
            return DataFile(path)
    raise NotFound(f"{file.place}its sessions are in another file; name that after it")
