"""``retain eval``: how well recall finds what answers a question, on data with known answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from .app import App, command
from .options import TEXT, ParamType

if TYPE_CHECKING:
    from ..evaluation import Dataset, Report

__all__ = ["eval_"]

_FILE = click.Path(exists=True)
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_MOST = 100_000  # numbers that a range may name


class Numbers(ParamType):
    """Whole numbers from 1, such as ``1-5`` or ``1,3,7-9``."""

    name = "numbers"

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        found: set[int] = set()
        for part in str(value).split(","):
            match = _RANGE.fullmatch(part.strip())
            first = int(match[1]) if match else 0
            last = int(match[2] or first) if match else 0
            if not 1 <= first <= last < first + _MOST:
                self.fail(f"{value!r} is no list of numbers such as 1-5 or 1,3", param, context)
            found.update(range(first, last + 1))
        return tuple(sorted(found))


@command("eval")
@click.argument("data", type=_FILE)
@click.argument("queries", type=_FILE, required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["auto", "locomo", "longmemeval", "plain", "xquad"]),
    default="auto",
    help="What DATA is.  [auto]",
)
@click.option(
    "--unit",
    type=click.Choice(["turn", "session", "session-document"]),
    default="turn",
    help="What is to be found.  [turn]",
)
@click.option(
    "--config",
    "configurations",
    type=TEXT,
    multiple=True,
    metavar="NAME",
    help="What to measure; several stand side by side.  [default]",
)
@click.option("--conversations", type=Numbers(), metavar="N-M", help="Only these, from 1.")
@click.option("--limit", type=click.IntRange(min=1), help="Only the first so many questions.")
@click.option("--plot", type=click.Path(), metavar="FILE", help="Draw recall by k into a .png.")
def eval_(
    app: App,
    /,
    data: str,
    queries: str | None,
    form: str,
    unit: str,
    configurations: tuple[str, ...],
    conversations: tuple[int, ...] | None,
    limit: int | None,
    plot: str | None,
) -> None:
    """Measure recall on DATA: memories, and questions with the memories that answer them.

    DATA: a file of LoCoMo or LongMemEval, or a folder with memories.jsonl and queries.jsonl
    (or name the two files). A table by category: the share of what is relevant among the
    first k results (R@k), how often any or all of it is, nDCG and MRR. Your own memory is
    not touched.
    """
    from ..evaluation import comparison, load_dataset
    from ..evaluation.plot import check_plot, plot_recall

    app.listen()
    names = tuple(dict.fromkeys(configurations)) or ("default",)
    _check(names)
    if plot is not None:
        check_plot(plot)
    with app.out.working(f"reading {data}"):
        dataset = load_dataset(
            data, queries, format=form, unit=unit, conversations=conversations, limit=limit
        )
    reports = _measured(app, dataset, names)
    if plot is not None:
        plot_recall(reports, plot)
    if app.out.as_json:
        for report in reports:
            app.out.json(report.to_dict())
    else:
        app.out.text(comparison(reports))
        if plot is not None:
            app.out.text(f"Drew {plot}")


def _check(names: Sequence[str]) -> None:
    """Refuse a configuration that there is not, before minutes are spent on the others."""
    from ..evaluation import CONFIGURATIONS

    for name in names:
        if name not in CONFIGURATIONS:
            known = ", ".join(CONFIGURATIONS)
            raise click.BadParameter(f"{name!r} is none of {known}", param_hint="'--config'")


def _measured(app: App, dataset: Dataset, names: Sequence[str]) -> list[Report]:
    from ..evaluation import evaluate

    reports = []
    with app.out.progress("Asking") as progress:
        for done, name in enumerate(names):

            def move(asked: int, total: int, before: int = done) -> None:
                if progress is not None:
                    progress(before * total + asked, len(names) * total)

            reports.append(evaluate(dataset, name, progress=move))
    return reports
