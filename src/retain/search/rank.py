"""The order of what was found: mixing, recency, and the exact best k."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..clock import DAY

__all__ = ["HALF_LIFE", "Mixed", "best", "mixed", "recency"]

HALF_LIFE = 7.0
"""Days in which the recency of a memory halves, unless told otherwise."""

_SLACK = 1e-9  # more than rounding can come to
_BLOCK = 256  # rows of which the best is looked for first

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]


def recency(created: Floats, now: float, half_life: float = HALF_LIFE) -> Floats:
    """0.5 ** (age / half-life) for times in epoch seconds; the future counts as now.

    ``half_life``: days. Result: float64 in [0, 1], of the shape of ``created``.
    """
    age = np.maximum(now - created, 0.0)
    result: Floats = np.exp2(-age / (half_life * DAY))
    return result


@dataclass(frozen=True, slots=True)
class Mixed:
    """One of the best: its row, and its scores, each in [0, 1]."""

    row: int
    relevance: float
    recency: float
    importance: float


def mixed(
    k: int,
    found: Mask,
    relevance: Floats,
    importance: Floats,
    created: Floats,
    id_of: Callable[[int], str],
    now: float,
    half_life: float = HALF_LIFE,
) -> list[Mixed]:
    """The k best by 0.5 · relevance + 0.3 · recency + 0.2 · importance, then newest, then by id.

    Of the rows that are ``found``, and exactly so; the arrays are aligned by row.
    """
    if k <= 0 or not found.any():
        return []
    rows = _candidates(k, found, relevance, importance, created, now, half_life)
    fresh = recency(created[rows], now, half_life)
    combined = 0.5 * relevance[rows] + 0.3 * fresh + 0.2 * importance[rows]
    chosen = best(k, (combined, created[rows]), lambda at: id_of(int(rows[at])))
    return [
        Mixed(
            int(rows[at]),
            float(relevance[rows[at]]),
            float(fresh[at]),
            float(importance[rows[at]]),
        )
        for at in chosen
    ]


def _candidates(
    k: int,
    found: Mask,
    relevance: Floats,
    importance: Floats,
    created: Floats,
    now: float,
    half_life: float,
) -> Places:
    """The rows that may be among the k best: recency need not be known of all the others."""
    blocks = len(found) // _BLOCK
    if blocks < 2 * k:
        return np.flatnonzero(found)
    sure = np.where(found, 0.5 * relevance + 0.2 * importance, -1.0)
    # k rows, each the best of its block, are at least as good as the k-th best of all is.
    tops = sure[: blocks * _BLOCK].reshape(blocks, _BLOCK).argmax(axis=1)
    tops += np.arange(blocks) * _BLOCK
    tops = tops[np.argpartition(sure[tops], blocks - k)[blocks - k :]]
    least = (sure[tops] + 0.3 * recency(created[tops], now, half_life)).min()
    freshest = float(recency(created.max(keepdims=True), now, half_life)[0])
    return np.flatnonzero(sure >= max(0.0, least - 0.3 * freshest - _SLACK))


def best(k: int, keys: Sequence[Floats], id_of: Callable[[int], str]) -> list[int]:
    """The positions of the k best, best first: greatest first key, then second …, then by id.

    ``keys``: float64 arrays of one length, the most important first; ``id_of`` gives the id
    at a position. Exact: where more than k tie on a key, the next one decides, and the id at
    the last.
    """
    if not len(keys[0]) or k <= 0:
        return []
    tied = np.arange(len(keys[0]))
    certain: list[npt.NDArray[np.intp]] = []
    wanted = k
    for key in keys:
        if len(tied) <= wanted:
            break
        values = key[tied]
        worst = np.partition(values, len(values) - wanted)[len(values) - wanted]
        certain.append(tied[values > worst])
        wanted -= len(certain[-1])
        tied = tied[values == worst]
    positions: list[int] = np.concatenate([*certain, tied]).tolist()
    positions.sort(key=lambda at: (*(-float(key[at]) for key in keys), id_of(at)))
    return positions[:k]
