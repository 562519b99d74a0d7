"""What a ranking is worth, from the places of what is relevant in it.

``ranks``: the places of the relevant results, from 1, ascending. ``relevant``: how many there
are to be found, at least one. Gains are binary: something is relevant or it is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set

__all__ = ["all_at", "any_at", "ndcg_at", "ranks_of", "recall_at", "reciprocal_rank"]


def ranks_of(ranking: Iterable[str], relevant: Set[str]) -> list[int]:
    """The places in ``ranking`` of what is relevant; of what stands there twice, the first.

    >>> ranks_of(["b", "a", "c"], {"a", "c", "d"})
    [2, 3]
    """
    left = set(relevant)
    ranks = []
    for place, id in enumerate(ranking, 1):
        if id in left:
            left.remove(id)
            ranks.append(place)
    return ranks


def recall_at(ranks: Sequence[int], relevant: int, k: int) -> float:
    """The share of the relevant that stands among the first k.

    >>> recall_at([2, 3], relevant=3, k=2)
    0.3333333333333333
    """
    return sum(rank <= k for rank in ranks) / relevant


def any_at(ranks: Sequence[int], relevant: int, k: int) -> float:
    """1 if at least one of the relevant stands among the first k, else 0 (the hit rate)."""
    return float(any(rank <= k for rank in ranks))


def all_at(ranks: Sequence[int], relevant: int, k: int) -> float:
    """1 if all of the relevant stand among the first k, else 0: so of more than k always 0."""
    return float(sum(rank <= k for rank in ranks) == relevant)


def ndcg_at(ranks: Sequence[int], relevant: int, k: int) -> float:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002) of the first k.

    The sum of 1 / log2(rank + 1) over the relevant among the first k, divided by the most
    that it could be: all of them first.
    """
    gain = math.fsum(1 / math.log2(rank + 1) for rank in ranks if rank <= k)
    most = math.fsum(1 / math.log2(rank + 1) for rank in range(1, min(relevant, k) + 1))
    return gain / most


def reciprocal_rank(ranks: Sequence[int]) -> float:
    """1 / the place of the first that is relevant; 0 if none was found."""
    return 1 / ranks[0] if ranks else 0.0
