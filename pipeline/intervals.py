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
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from .rank_counts import EXACT_RUNS, LEVEL, Floats, RankNull, mann_whitney, signed_rank

__all__ = ["EXACT_RUNS", "LEVEL", "Shift", "Shifts", "paired_p", "paired_shift", "paired_shifts", "runs_needed"]
__all__ += ["unpaired_p", "unpaired_shift", "unpaired_shifts"]

POWER = 0.8
"""Chance to find a difference of the asked size that :func:`runs_needed` plans for."""

_RANK_EFFICIENCY = 3 / math.pi
"""Efficiency of rank intervals against the mean under normal noise (Hodges and Lehmann); higher under heavier tails."""

_AT_ONCE = 4_000_000
"""Differences that are held at once, 32 MB; more questions are answered in turns."""


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


class Shifts(NamedTuple):
    """Shifts of many questions of one size, one row each; the three first are NaN where runs are too few."""

    estimate: Floats
    lower: Floats
    upper: Floats
    p: Floats
    """The exact two-sided p of no shift; at most 1 - ``LEVEL`` exactly where the interval leaves 0 out."""


def unpaired_shifts(baseline: Any, candidate: Any) -> Shifts:
    """Shifts between two independent cohorts; rows are questions, columns runs. Conservative at ties."""
    first, second = np.asarray(baseline), np.asarray(candidate)  # Integers are subtracted as such.
    null, size = mann_whitney(first.shape[1], second.shape[1]), first.shape[1] * second.shape[1]

    def differences(rows: slice) -> Floats:
        found = second[rows, :, None] - first[rows, None, :]
        flat: Floats = found.reshape(len(found), size).astype(np.float64)
        return flat

    return _shifts(differences, len(first), size, null)


def paired_shifts(deltas: Any) -> Shifts:
    """Shifts of per-pair differences; rows are questions, columns pairs. Conservative at ties."""
    values = np.asarray(deltas)
    left, right = np.triu_indices(values.shape[1])

    def averages(rows: slice) -> Floats:
        found: Floats = (values[rows][:, left] + values[rows][:, right]) / 2
        return found

    return _shifts(averages, len(values), len(left), signed_rank(values.shape[1]))


def unpaired_shift(baseline: Sequence[float], candidate: Sequence[float]) -> Shift | None:
    """The shift between two independent cohorts; None when they are too few for any interval of ``LEVEL``."""
    return _one(unpaired_shifts([baseline], [candidate]), unpaired_cut(len(baseline), len(candidate)))


def paired_shift(deltas: Sequence[float]) -> Shift | None:
    """The shift of per-pair differences; None when they are too few for any interval of ``LEVEL`` (fewer than 6)."""
    return _one(paired_shifts([deltas]), paired_cut(len(deltas)))


def unpaired_p(baseline: Sequence[float], candidate: Sequence[float]) -> float:
    """The exact two-sided p of no shift between two cohorts: 1 - level of the widest interval that leaves 0 out.

    1 without runs. Conservative at ties, as the interval is.
    """
    return float(unpaired_shifts([baseline], [candidate]).p[0])


def paired_p(deltas: Sequence[float]) -> float:
    """As :func:`unpaired_p`, for per-pair differences."""
    return float(paired_shifts([deltas]).p[0])


def unpaired_cut(baseline_runs: int, candidate_runs: int) -> tuple[int, float]:
    """How many of the ordered differences lie outside the interval on each side, and its exact coverage; -1 when none
    can be left out without falling below ``LEVEL``."""
    return mann_whitney(baseline_runs, candidate_runs).cut


def paired_cut(pairs: int) -> tuple[int, float]:
    """As :func:`unpaired_cut`, for the ordered Walsh averages of so many pairs."""
    return signed_rank(pairs).cut


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


def _one(shifts: Shifts, cut: tuple[int, float]) -> Shift | None:
    if cut[0] < 0:
        return None
    return Shift(float(shifts.estimate[0]), float(shifts.lower[0]), float(shifts.upper[0]), cut[1])


def _shifts(differences: Any, questions: int, size: int, null: RankNull) -> Shifts:
    """``differences`` gives those of a slice of the questions, ``size`` each."""
    step = max(1, _AT_ONCE // max(size, 1))
    parts = [_part(differences(slice(at, at + step)), null) for at in range(0, max(questions, 1), step)]
    return Shifts(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _part(differences: Floats, null: RankNull) -> Shifts:
    rows, size = differences.shape
    against = np.minimum((differences >= 0).sum(axis=1), (differences <= 0).sum(axis=1))
    cut, _ = null.cut
    if cut < 0 or not size:
        none = np.full(rows, np.nan)
        return Shifts(none, none, none, null.p(against) if size else np.ones(rows))
    ordered = np.sort(differences, axis=1)
    middle = (ordered[:, (size - 1) // 2] + ordered[:, size // 2]) / 2
    return Shifts(middle, ordered[:, cut], ordered[:, -1 - cut], null.p(against))
