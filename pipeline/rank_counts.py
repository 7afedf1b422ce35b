"""Null distributions of rank statistics: what chance alone does to an order, counted and not approximated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

LEVEL = 0.95

EXACT_RUNS = 100
"""Up to so many runs (pairs) the null distribution is counted; above, the normal approximation is near enough."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RankNull:
    """Distribution of a rank statistic, from 0 and symmetric, where nothing changed.

    ``tails[u]`` is the chance of at most u; None: ``normal`` approximates it.
    """

    tails: tuple[float, ...] | None
    normal: NormalDist

    def p(self, against: Any) -> Floats:
        """Two-sided p of statistics, given as how many comparisons speak against the direction of each."""
        values = np.asarray(against, dtype=np.int64)
        if self.tails is None:
            distinct, place = np.unique(values, return_inverse=True)
            tails = np.array([self.normal.cdf(value + 0.5) for value in distinct.tolist()])[place]
        else:
            tails = np.asarray(self.tails)[values]
        found: Floats = np.minimum(1.0, 2 * tails)
        return found

    @property
    def cut(self) -> tuple[int, float]:
        """The largest statistic that both tails may lose together, -1 for none; and the coverage of what is left."""
        if self.tails is None:
            # Below it lies (1 - LEVEL) / 2 of a normal distribution, with the continuity correction.
            lost = math.floor(self.normal.inv_cdf((1 - LEVEL) / 2) - 0.5)
            return lost, 1 - 2 * self.normal.cdf(lost + 0.5)
        # A hair of tolerance: 1 - LEVEL is not exact in binary, the smallest step between tails is far larger.
        lost = sum(2 * tail <= 1 - LEVEL + 1e-12 for tail in self.tails) - 1
        return lost, 1.0 if lost < 0 else 1 - 2 * self.tails[lost]


@lru_cache(maxsize=256)
def mann_whitney(first: int, second: int) -> RankNull:
    """Of the number of crossings between two samples."""
    deviation = math.sqrt(first * second * (first + second + 1) / 12)
    normal = NormalDist(first * second / 2, deviation)
    return RankNull(None if max(first, second) > EXACT_RUNS else _tails(mann_whitney_counts(first, second)), normal)


@lru_cache(maxsize=256)
def signed_rank(pairs: int) -> RankNull:
    """Of the sum of the ranks of positive differences."""
    deviation = math.sqrt(pairs * (pairs + 1) * (2 * pairs + 1) / 24)
    normal = NormalDist(pairs * (pairs + 1) / 4, deviation)
    return RankNull(None if pairs > EXACT_RUNS else _tails(signed_rank_counts(pairs)), normal)


def mann_whitney_counts(first: int, second: int) -> list[int]:
    """How many of the orderings of two samples have each value of the Mann-Whitney statistic.

    The generating function is the Gaussian binomial: a product of (1 - x^(first + k)) / (1 - x^k) for k = 1 .. second.
    """
    size = first * second + 1
    counts = [1] + [0] * (size - 1)
    for k in range(1, second + 1):
        for u in range(size - 1, first + k - 1, -1):
            counts[u] -= counts[u - first - k]
        for u in range(k, size):
            counts[u] += counts[u - k]
    return counts


def signed_rank_counts(pairs: int) -> list[int]:
    """How many of the 2^pairs choices of signs have each sum of positive ranks."""
    counts = [1]
    for rank in range(1, pairs + 1):
        shifted = [0] * rank + counts
        counts = [a + b for a, b in zip(counts + [0] * rank, shifted, strict=True)]
    return counts


def _tails(counts: list[int]) -> tuple[float, ...]:
    total = sum(counts)  # Exact integers until here: the counts of 100 against 100 runs exceed any float's digits.
    return tuple(so_far / total for so_far in accumulate(counts))
