"""The curve of recall by k, drawn with matplotlib, which is an extra."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from importlib import import_module, util
from typing import Any

from ..errors import InvalidValue, NotFound, installing
from ..files import real_path, write_atomically
from .report import Report, heading, on_one_dataset

__all__ = ["check_plot", "plot_recall"]

_FORMATS = (".png", ".svg", ".pdf")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's, which are told apart with any colour vision."""
_LINES = ("-", "--", "-.", ":")
_TICKS = (5, 10, 20, 30, 40, 50)
_NAMED = 10  # the k whose recall stands in the legend


def check_plot(path: str | os.PathLike[str]) -> None:
    """Raise now what :func:`plot_recall` would raise after the measurement.

    ``InvalidValue`` where matplotlib is missing or the name ends in none of its formats,
    ``NotFound`` where there is no such folder.
    """
    if util.find_spec("matplotlib") is None:
        raise InvalidValue(f"a plot needs matplotlib; install it with: {installing('plot')}")
    place = real_path(path)
    if place.suffix.lower() not in _FORMATS:
        raise InvalidValue(f"{place.name} ends in none of {', '.join(_FORMATS)}; name it so")
    if not place.parent.is_dir():
        raise NotFound(f"there is no folder {place.parent}; make it, or name another place")


def plot_recall(reports: Sequence[Report], path: str | os.PathLike[str]) -> None:
    """Draw recall@k, k from 1 to the depth, of reports on one dataset into a file.

    ``path`` ends in ``.png``, ``.svg`` or ``.pdf``; what is there already is written over.
    Needs matplotlib (extra ``plot``). Raises as :func:`check_plot`, and
    ``StoreFailed``.
    """
    check_plot(path)
    place = real_path(path)
    drawn = io.BytesIO()
    with warnings.catch_warnings():
        # a name in a script that the font lacks is drawn as boxes, and the rest is fine
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        _drawn(reports).savefig(drawn, format=place.suffix[1:].lower(), dpi=150)
    write_atomically(place, drawn.getvalue())


def _drawn(reports: Sequence[Report]) -> Any:
    figure = import_module("matplotlib.figure").Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    first = on_one_dataset(reports)
    for number, report in enumerate(reports):
        recall = report.recall_by_k()
        at = min(_NAMED, report.depth)
        axes.plot(
            range(1, report.depth + 1),
            recall,
            label=_escaped(f"{report.configuration}: {recall[at - 1]:.3f} at {at}"),
            color=_COLOURS[number % len(_COLOURS)],
            linestyle=_LINES[number % len(_LINES)],
            linewidth=2,
        )
    axes.set_title(
        _escaped(f"{heading(first)}\nn = {len(first.outcomes):,} questions"),
        fontsize=11,
    )
    results = "results" if first.unit == "turn" else "sessions"
    axes.set_xlabel(f"k: the first k {results}")
    axes.set_ylabel("Recall@k: share of a question's evidence, averaged")
    axes.set_xlim(0, first.depth + 1)
    axes.set_xticks([1, *(k for k in _TICKS if k <= first.depth)])
    axes.set_ylim(0, 1.02)
    axes.set_yticks([tenth / 10 for tenth in range(11)])
    axes.grid(True, color="#dddddd")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="best", framealpha=1)
    return figure


def _escaped(text: str) -> str:
    """Text that is no mathematics, though it may hold dollar signs."""
    return text.replace("$", r"\$")
