"""Calibrated intervals of a shift between two cohorts: exact by ranks, whatever the shape of the distribution.

The percentile bootstrap of medians (protocol 10.4, :mod:`~planewise.pipeline.bootstrap`) is too narrow for the few
runs that people have. These intervals invert rank tests, whose null distribution is counted, not approximated:

- unpaired: the Hodges-Lehmann interval of the Mann-Whitney test, an interval of the shift candidate - baseline. Exact
  when the two cohorts would have one distribution but for a shift.
- paired: the interval of the Wilcoxon signed-rank test over the averages of two differences (Walsh averages). Exact
  when a difference is as likely as its opposite but for a shift, which holds whenever nothing but the order in a pair
  would tell baseline and candidate apart.

Both are conservative at ties. Too few runs have no interval at all: no ordering of them would be unlikely enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

LEVEL = 0.95
POWER = 0.8
"""Chance to find a difference of the asked size that :func:`runs_needed` plans for."""

EXACT_RUNS = 100
"""Up to so many runs (pairs) the null distribution is counted; above, the normal approximation is near enough."""

_RANK_EFFICIENCY = 3 / math.pi
"""Efficiency of rank intervals against the mean under normal noise (Hodges and Lehmann); higher under heavier tails."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Shift:
    """A shift candidate - baseline with its interval, in the unit of the samples.

    ``estimate`` is the Hodges-Lehmann estimate: the median of all differences (paired: of all Walsh averages).
    ``coverage`` is the exact coverage of the interval, at least ``LEVEL``.
    """

    estimate: float
    lower: float
    upper: float
    coverage: float


def unpaired_shift(baseline: Sequence[float], candidate: Sequence[float]) -> Shift | None:
    """The shift between two independent cohorts; None when they are too few for any interval of ``LEVEL``."""
    first, second = np.asarray(baseline), np.asarray(candidate)
    if not len(first) or not len(second):
        return None
    cut, coverage = unpaired_cut(len(first), len(second))
    return _cut_out(np.subtract.outer(second, first).ravel(), cut, coverage)


def paired_shift(deltas: Sequence[float]) -> Shift | None:
    """The shift of per-pair differences; None when they are too few for any interval of ``LEVEL`` (fewer than 6)."""
    values = np.asarray(deltas)
    if not len(values):
        return None
    rows, columns = np.triu_indices(len(values))
    cut, coverage = paired_cut(len(values))
    return _cut_out((values[rows] + values[columns]) / 2, cut, coverage)


def unpaired_p(baseline: Sequence[float], candidate: Sequence[float]) -> float:
    """The exact two-sided p of no shift between two cohorts: 1 - level of the widest interval that leaves 0 out.

    1 without runs. Conservative at ties, as the interval is.
    """
    first, second = np.asarray(baseline), np.asarray(candidate)
    if not len(first) or not len(second):
        return 1.0
    differences = np.subtract.outer(second, first).ravel()
    if max(len(first), len(second)) > EXACT_RUNS:
        mean = len(first) * len(second) / 2
        deviation = math.sqrt(len(first) * len(second) * (len(first) + len(second) + 1) / 12)
        return _normal_p(differences, mean, deviation)
    return _exact_p(differences, _mann_whitney_counts(len(first), len(second)))


def paired_p(deltas: Sequence[float]) -> float:
    """As :func:`unpaired_p`, for per-pair differences."""
    values = np.asarray(deltas)
    if not len(values):
        return 1.0
    rows, columns = np.triu_indices(len(values))
    averages = (values[rows] + values[columns]) / 2
    if len(values) > EXACT_RUNS:
        size = len(values)
        return _normal_p(averages, size * (size + 1) / 4, math.sqrt(size * (size + 1) * (2 * size + 1) / 24))
    return _exact_p(averages, _signed_rank_counts(len(values)))


def _exact_p(differences: Any, counts: tuple[int, ...]) -> float:
    against = min(int((differences >= 0).sum()), int((differences <= 0).sum()))
    return min(1.0, 2 * sum(counts[: against + 1]) / sum(counts))


def _normal_p(differences: Any, mean: float, deviation: float) -> float:
    against = min(int((differences >= 0).sum()), int((differences <= 0).sum()))
    return min(1.0, 2 * NormalDist(mean, deviation).cdf(against + 0.5))


def unpaired_cut(baseline_runs: int, candidate_runs: int) -> tuple[int, float]:
    """How many of the ordered differences lie outside the interval on each side, and its exact coverage; -1 when none
    can be left out without falling below ``LEVEL``."""
    if max(baseline_runs, candidate_runs) > EXACT_RUNS:
        mean = baseline_runs * candidate_runs / 2
        deviation = math.sqrt(baseline_runs * candidate_runs * (baseline_runs + candidate_runs + 1) / 12)
        return _normal_cut(mean, deviation)
    return _exact_cut(_mann_whitney_counts(baseline_runs, candidate_runs))


def paired_cut(pairs: int) -> tuple[int, float]:
    """As :func:`unpaired_cut`, for the ordered Walsh averages of so many pairs."""
    if pairs > EXACT_RUNS:
        mean = pairs * (pairs + 1) / 4
        return _normal_cut(mean, math.sqrt(pairs * (pairs + 1) * (2 * pairs + 1) / 24))
    return _exact_cut(_signed_rank_counts(pairs))


def runs_needed(spread: float, effect: float, *, paired: bool) -> int | None:
    """Runs a cohort (pairs) that would resolve ``effect`` with a chance of ``POWER`` at this spread; None without one.

    ``spread`` is the standard deviation of one run (of one difference when paired), in the unit of ``effect``. At
    least the smallest number that has an interval.
    """
    if not effect or not math.isfinite(spread) or not math.isfinite(effect):
        return None
    normal = NormalDist()
    width = normal.inv_cdf((1 + LEVEL) / 2) + normal.inv_cdf(POWER)
    needed = (1 if paired else 2) * (width * spread / abs(effect)) ** 2 / _RANK_EFFICIENCY
    return max(math.ceil(needed), 6 if paired else 4)


def _cut_out(ordered: Any, cut: int, coverage: float) -> Shift | None:
    if cut < 0:
        return None
    ordered = np.sort(ordered.astype(np.float64))
    return Shift(float(np.median(ordered)), float(ordered[cut]), float(ordered[-1 - cut]), coverage)


def _exact_cut(counts: tuple[int, ...]) -> tuple[int, float]:
    """The largest tail that both sides may lose together; ``counts[u]`` orderings have the statistic u."""
    total = sum(counts)
    lost, tail = -1, 0
    while 2 * (tail + counts[lost + 1]) <= total * (1 - LEVEL):
        lost += 1
        tail += counts[lost]
    return lost, 1 - 2 * tail / total


def _normal_cut(mean: float, deviation: float) -> tuple[int, float]:
    """The statistic below which (1 - LEVEL) / 2 of a normal distribution lies, with the continuity correction."""
    lost = math.floor(mean - 0.5 + NormalDist().inv_cdf((1 - LEVEL) / 2) * deviation)
    return lost, 1 - 2 * NormalDist(mean, deviation).cdf(lost + 0.5)


@lru_cache(maxsize=256)
def _mann_whitney_counts(first: int, second: int) -> tuple[int, ...]:
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
    return tuple(counts)


@lru_cache(maxsize=256)
def _signed_rank_counts(pairs: int) -> tuple[int, ...]:
    """How many of the 2^pairs choices of signs have each sum of positive ranks."""
    counts = [1]
    for rank in range(1, pairs + 1):
        shifted = [0] * rank + counts
        counts = [a + b for a, b in zip(counts + [0] * rank, shifted, strict=True)]
    return tuple(counts)
