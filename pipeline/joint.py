"""One test of many labels together: the runs change their cohort, and every label of a run goes with it.

With few runs the exact p of one label cannot be small: 2 of 252 orders at five against five. Adjusted for a hundred
labels, nothing could ever be found. Exchanging whole runs asks how often chance alone, over all labels at once, makes a
difference as large as one that was seen (Westfall and Young's step-down of the largest statistic). Its floor does not
rise with the number of labels, and labels that move together count once.

The statistic is the difference of means over the spread of the runs, an increasing function of Student's t; its
distribution comes from the exchanges and from no shape of noise. Every false finding among all labels has a chance of
at most the level, where the runs of both cohorts were otherwise alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np

from .rank_counts import Floats

RESAMPLES = 10_000
"""Exchanges that are drawn where there are more; where there are not, all of them are taken and p is exact."""

_SEED = 20_260_101
_AT_ONCE = 256
"""Labels whose statistics are held at once, 20 MB."""

_TIES = 1e-9
"""Relative distance within which two statistics are one: they are sums of the same numbers in another order."""


def joint_p(baseline: Any, candidate: Any) -> Floats:
    """Adjusted p of each label (rows), over the same runs (columns) of two independent cohorts."""
    first, second = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    pooled = np.concatenate([second, first], axis=1)
    if not pooled.shape[0] or not first.shape[1] or not second.shape[1]:
        return np.ones(len(pooled))
    centred = pooled - pooled.mean(axis=1, keepdims=True)
    return _step_down(_scaled(centred, pooled), _splits(second.shape[1], pooled.shape[1]))


def joint_paired_p(deltas: Any) -> Floats:
    """As :func:`joint_p`, over per-pair differences: a pair changes the sign of all its labels."""
    values = np.asarray(deltas, dtype=np.float64)
    if not values.size:
        return np.ones(len(values))
    return _step_down(_scaled(values, values), _signs(values.shape[1]))


def _scaled(values: Floats, raw: Floats) -> Floats:
    """Rows of length 1; what is no larger than the rounding of its numbers is no difference at all."""
    length = np.linalg.norm(values, axis=1, keepdims=True)
    noise = np.abs(raw).max(axis=1, keepdims=True) * 1e-12
    scaled: Floats = np.divide(values, length, out=np.zeros_like(values), where=length > noise)
    return scaled


def _splits(chosen: int, runs: int) -> Floats:
    """Which runs are the candidate's (1) in each exchange, the one that was seen first."""
    if math.comb(runs, chosen) <= RESAMPLES:
        places = np.array(list(combinations(range(runs), chosen)))
    else:
        drawn = np.random.default_rng(_SEED).random((RESAMPLES, runs)).argsort(axis=1)[:, :chosen]
        places = np.concatenate([np.arange(chosen)[None], drawn])
    splits = np.zeros((len(places), runs))
    np.put_along_axis(splits, places, 1, axis=1)
    return splits


def _signs(pairs: int) -> Floats:
    if 2**pairs <= RESAMPLES:
        return np.array(list(product((1.0, -1.0), repeat=pairs)))
    drawn = np.random.default_rng(_SEED).integers(0, 2, (RESAMPLES, pairs)) * 2 - 1
    return np.concatenate([np.ones((1, pairs)), drawn.astype(np.float64)])


def _step_down(scaled: Floats, exchanges: Floats) -> Floats:
    """From the weakest label up, each against the largest statistic of itself and of all weaker ones."""
    seen = np.abs(scaled @ exchanges[0])
    order = np.argsort(seen, kind="stable")
    p = np.empty(len(seen))
    for rows, largest in _largest(scaled[order], exchanges):
        asked = order[rows]
        p[asked] = (largest >= (seen[asked] * (1 - _TIES))[:, None]).mean(axis=1)
    strongest_first = order[::-1]
    p[strongest_first] = np.maximum.accumulate(p[strongest_first])
    return p


def _largest(scaled: Floats, exchanges: Floats) -> Iterator[tuple[slice, Floats]]:
    """The running maximum of the statistics over the labels so far, per exchange, for a few labels at a time."""
    before = np.zeros(len(exchanges))
    for at in range(0, len(scaled), _AT_ONCE):
        rows = slice(at, at + _AT_ONCE)
        statistics = np.abs(scaled[rows] @ exchanges.T)
        np.maximum(statistics[0], before, out=statistics[0])
        largest = np.maximum.accumulate(statistics, axis=0)
        before = largest[-1]
        yield rows, largest
