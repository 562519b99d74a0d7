"""The order of what was found: mixing, recency, and the exact best k."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ..clock import DAY

__all__ = ["HALF_LIFE", "best", "recency"]

HALF_LIFE = 7.0
"""Days in which the recency of a memory halves, unless told otherwise."""

Floats = npt.NDArray[np.float64]


def recency(created: Floats, now: float, half_life: float = HALF_LIFE) -> Floats:
    """0.5 ** (age / half-life) for times in epoch seconds; the future counts as now.

    ``half_life``: days. Result: float64 in [0, 1], of the shape of ``created``.
    """
    age = np.maximum(now - created, 0.0)
    result: Floats = np.exp2(-age / (half_life * DAY))
    return result


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
