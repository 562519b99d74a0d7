"""The order of what was found: mixing, recency, and the exact best k."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..clock import DAY

__all__ = ["HALF_LIFE", "Mixed", "best", "in_parts", "mixed", "recency"]

HALF_LIFE = 7.0
"""Days in which the recency of a memory halves, unless told otherwise."""

_SLACK = 1e-9  # more than rounding can come to
_PART = 32_768  # rows that are gone through at a time
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
    sure = np.empty(len(found))
    tops = np.empty(blocks, np.intp)
    newest = -np.inf
    for part in in_parts(len(found)):
        np.multiply(relevance[part], 0.5, out=sure[part])
        sure[part] += 0.2 * importance[part]
        sure[part] *= found[part]
        newest = max(newest, float(created[part].max()))
        whole = sure[part.start : part.stop - (part.stop - part.start) % _BLOCK]
        first = part.start // _BLOCK
        best_of = whole.reshape(-1, _BLOCK).argmax(axis=1)
        tops[first : first + len(best_of)] = best_of
    # k rows, each the best of its block, are at least as good as the k-th best of all is.
    tops += np.arange(blocks) * _BLOCK
    tops = tops[np.argpartition(sure[tops], blocks - k)[blocks - k :]]
    if not found[tops].all():
        return np.flatnonzero(found)
    least = float((sure[tops] + 0.3 * recency(created[tops], now, half_life)).min())
    freshest = float(recency(np.array([newest]), now, half_life)[0])
    enough = least - 0.3 * freshest - _SLACK
    return np.flatnonzero(sure >= enough if enough > 0 else found)


def in_parts(size: int) -> Iterator[slice]:
    """``size`` rows in parts that stay in the processor's cache while several steps are done."""
    for start in range(0, size, _PART):
        yield slice(start, min(size, start + _PART))


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
