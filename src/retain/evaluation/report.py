"""The figures of one measurement, overall and by category, and the table of several."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from ..errors import InvalidValue
from ..models import one_line
from .metrics import all_at, any_at, ndcg_at, recall_at, reciprocal_rank

__all__ = ["METRICS", "Outcome", "Report", "comparison", "heading", "on_one_dataset"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one question went.

    ``relevant``: how many there were to be found. ``ranks``: their places in the ranking,
    from 1, of those that were found within the depth. ``seconds``: what ``recall`` took.
    """

    question: str
    category: str
    relevant: int
    ranks: tuple[int, ...]
    seconds: float


Metric = Callable[[Outcome], float]


def _at(metric: Callable[[Sequence[int], int, int], float], k: int) -> Metric:
    return lambda outcome: metric(outcome.ranks, outcome.relevant, k)


METRICS: dict[str, tuple[int, Metric]] = {
    **{f"recall@{k}": (k, _at(recall_at, k)) for k in (1, 5, 10, 20, 50)},
    **{f"any@{k}": (k, _at(any_at, k)) for k in (5, 10)},
    **{f"all@{k}": (k, _at(all_at, k)) for k in (5, 10)},
    "ndcg@10": (10, _at(ndcg_at, 10)),
    "mrr": (1, lambda outcome: reciprocal_rank(outcome.ranks)),
}
"""What is computed of each question and averaged; and the depth that it needs."""

_HEADS = {"ndcg@10": "nDCG@10", "mrr": "MRR"}


@dataclass(frozen=True)
class Report:
    """What a configuration reached on a dataset, question by question.

    The first members are the dataset's, ``memories`` is how many were remembered, ``depth``
    how many results of each question were looked at.
    """

    dataset: str
    digest: str
    format: str
    unit: str
    part: str
    configuration: str
    depth: int
    memories: int
    left_out: Mapping[str, int]
    outcomes: Sequence[Outcome]

    def categories(self) -> dict[str, list[Outcome]]:
        """The outcomes by category, in the order of their names."""
        found: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            found.setdefault(outcome.category, []).append(outcome)
        return {name: found[name] for name in sorted(found)}

    def scores(self, category: str | None = None) -> dict[str, float]:
        """Each of ``METRICS`` within the depth, averaged over questions: all, or a category's."""
        outcomes = self._of(category)
        return {
            name: _mean(map(metric, outcomes), len(outcomes))
            for name, (needs, metric) in METRICS.items()
            if needs <= self.depth
        }

    def recall_by_k(self, category: str | None = None) -> list[float]:
        """Recall@k for each k from 1 to the depth."""
        outcomes = self._of(category)
        return [
            _mean((recall_at(each.ranks, each.relevant, k) for each in outcomes), len(outcomes))
            for k in range(1, self.depth + 1)
        ]

    @property
    def seconds_per_query(self) -> float:
        """The median of what a ``recall`` took, its index being up to date."""
        return median(each.seconds for each in self.outcomes)

    def _of(self, category: str | None) -> Sequence[Outcome]:
        if category is None:
            return self.outcomes
        found = self.categories()
        if category not in found:
            raise InvalidValue(f"category {category!r} is none of {', '.join(found)}")
        return found[category]

    def to_dict(self) -> dict[str, Any]:
        """All figures as a JSON object."""
        return {
            "dataset": self.dataset,
            "sha256": self.digest,
            "format": self.format,
            "unit": self.unit,
            "part": self.part,
            "configuration": self.configuration,
            "depth": self.depth,
            "memories": self.memories,
            "questions": len(self.outcomes),
            "left_out": dict(self.left_out),
            "overall": self.scores(),
            "categories": {
                name: {"questions": len(outcomes), **self.scores(name)}
                for name, outcomes in self.categories().items()
            },
            "recall_by_k": self.recall_by_k(),
            "seconds_per_query": self.seconds_per_query,
        }

    def __str__(self) -> str:
        return comparison([self])


def _mean(values: Iterable[float], count: int) -> float:
    return float(sum(values)) / count


# -- the table -------------------------------------------------------------------------------


def on_one_dataset(reports: Sequence[Report]) -> Report:
    """The first report, if all are of the same questions and can be compared."""
    if not reports:
        raise InvalidValue("there is no report; give one at least")
    asked = {(each.digest, each.unit, each.part, each.depth) for each in reports}
    if len(asked) > 1:
        raise InvalidValue(
            "the reports are on different questions, units or depths; compare equals"
        )
    return reports[0]


def heading(report: Report) -> str:
    """What was measured: the file, its hash, the part of it, the unit."""
    part = f", {report.part}" if report.part else ""
    return f"{report.dataset} (sha256 {report.digest[:12]}){part}, unit {report.unit}"


def comparison(reports: Sequence[Report]) -> str:
    """A table of one or several configurations' reports on one dataset, by category.

    Raises ``InvalidValue`` where they are on several, or there are none.
    """
    first = on_one_dataset(reports)
    several = len(reports) > 1
    names = [name for name, (needs, _) in METRICS.items() if needs <= first.depth]
    head = ["category", "questions", *(["configuration"] if several else [])]
    rows = [head + [_HEADS.get(name, name.replace("recall", "R")) for name in names]]
    categories = list(first.categories())
    for category in [None, *(categories if len(categories) > 1 else [])]:
        for place, report in enumerate(reports):
            scores = report.scores(category)
            label = one_line("all" if category is None else category) if place == 0 else ""
            count = f"{len(report._of(category)):,}" if place == 0 else ""
            named = [report.configuration] if several else []
            rows.append([label, count, *named, *(_figure(scores[name]) for name in names)])
    left = {0, 2} if several else {0}
    return "\n".join([_heading(reports), "", *_aligned(rows, left), "", _times(reports)])


def _heading(reports: Sequence[Report]) -> str:
    first = reports[0]
    reasons = ", ".join(f"{count} {reason}" for reason, count in first.left_out.items())
    said = f"; left out: {reasons}" if reasons else ""
    configuration = f", configuration {first.configuration}" if len(reports) == 1 else ""
    return (
        f"{heading(first)}{configuration}\n"
        f"{len(first.outcomes):,} questions on {first.memories:,} memories{said}"
    )


def _times(reports: Sequence[Report]) -> str:
    def took(report: Report) -> str:
        return f"{report.seconds_per_query * 1000:.2f} ms"

    if len(reports) == 1:
        return f"median of a query: {took(reports[0])}"
    return "median of a query: " + ", ".join(
        f"{each.configuration} {took(each)}" for each in reports
    )


def _figure(score: float) -> str:
    """Three digits: ``.725``, and ``1.00``."""
    shown = f"{score:.3f}"
    return shown[1:] if shown.startswith("0") else shown[:-1]


def _aligned(rows: Sequence[Sequence[str]], left: set[int]) -> list[str]:
    widths = [max(_columns(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = []
        for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - _columns(cell))
            cells.append(cell + space if at in left else space + cell)
        lines.append("  ".join(cells).rstrip())
    return lines


def _columns(text: str) -> int:
    """How wide ``text`` is on a terminal: Chinese takes two columns a character."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.category(char) in ("Mn", "Me", "Cf") for char in text)
