"""Measuring retrieval: datasets in, figures out, each defined in docs/evaluation.md."""

from .dataset import UNITS, Case, Dataset, Item, Question
from .datasets import FORMATS, load_dataset
from .measure import CONFIGURATIONS, DEPTH, evaluate
from .plot import plot_recall
from .report import METRICS, Outcome, Report, comparison

__all__ = [
    "CONFIGURATIONS",
    "DEPTH",
    "FORMATS",
    "METRICS",
    "UNITS",
    "Case",
    "Dataset",
    "Item",
    "Outcome",
    "Question",
    "Report",
    "comparison",
    "evaluate",
    "load_dataset",
    "plot_recall",
]
