"""Many questions at once: one test per label, and p values adjusted for how many were asked."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from .intervals import LEVEL, Shifts, paired_shifts, unpaired_shifts
from .joint import joint_p, joint_paired_p
from .judgement import SAME, UNDECIDED, Samples

LOWER, HIGHER = "candidate_lower", "candidate_higher"

ADJUSTMENTS: Mapping[str, str] = MappingProxyType(
    {
        "holm": "bounds the chance of any false finding, whatever the labels have to do with each other",
        "bh": "bounds the share of false findings among the found (Benjamini and Hochberg)",
        "joint": "bounds the chance of any false finding by exchanging whole runs; for few runs and many labels",
    }
)
"""Which adjusted p decides, by name."""


def adjusted(p: Any) -> tuple[Any, Any]:
    """Holm's and Benjamini and Hochberg's adjusted p values, in the order of ``p``.

    Holm's bounds the chance of any false finding; Benjamini-Hochberg's bounds the share of false ones among the found.
    """
    values = np.asarray(p, dtype=np.float64)
    size = len(values)
    if not size:
        return values, values.copy()
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    steps = np.arange(size)
    holm, bh = np.empty(size), np.empty(size)
    holm[order] = np.minimum(np.maximum.accumulate(ranked * (size - steps)), 1)
    bh[order] = np.minimum(np.minimum.accumulate((ranked * size / (steps + 1))[::-1])[::-1], 1)
    return holm, bh


def family(
    labels: Sequence[tuple[str, Samples]], *, adjust: str = "holm", min_effect: float | None = None
) -> list[dict[str, Any]]:
    """One row per label, most surprising first: medians, shift with its interval, p, three adjusted p, and a verdict.

    The verdict is candidate_lower or candidate_higher where the p of ``adjust`` is at most 5 %, no_relevant_change
    where ``min_effect`` (a share of the baseline's median) holds the label's own interval, else inconclusive; a label
    with too few runs for an interval has none and stays open. ``p_joint`` is None for a label that not every run has.
    The order of equal ones is that of the labels.
    """
    shifts, joint = _shifts([samples for _, samples in labels]), _joint([samples for _, samples in labels])
    holm, bh = adjusted(shifts.p)
    rows = []
    for at, (label, samples) in enumerate(labels):
        p = {"p": shifts.p[at], "p_holm": holm[at], "p_bh": bh[at], "p_joint": joint[at]}
        known = {name: None if np.isnan(value) else float(value) for name, value in p.items()}
        rows.append(_row(label, samples, [float(column[at]) for column in shifts[:3]], known, adjust, min_effect))
    return sorted(rows, key=lambda row: (row["p"], 1.0 if row["p_joint"] is None else row["p_joint"]))


def fewest_runs(questions: int, *, paired: bool) -> int:
    """Runs a cohort (pairs) with which one of so many labels can pass Holm at all, however clear it is."""
    runs = 1
    while questions * (smallest_p(pairs=runs) if paired else smallest_p(runs, runs)) > 1 - LEVEL:
        runs += 1
    return runs


def smallest_p(baseline: int = 0, candidate: int = 0, *, pairs: int | None = None) -> float:
    """The smallest p that so many runs can have: 2 of all orders of two cohorts, or of all signs of pairs."""
    return min(1.0, 2 / (math.comb(baseline + candidate, baseline) if pairs is None else 2**pairs))


def _shifts(samples: Sequence[Samples]) -> Shifts:
    """One pass for all labels of one number of runs."""
    found = Shifts(*np.full((4, len(samples)), np.nan))
    for places, group in _groups(samples):
        if group[0].deltas is not None:
            part = paired_shifts([one.deltas for one in group])
        else:
            part = unpaired_shifts([one.baseline for one in group], [one.candidate for one in group])
        for column, values in zip(found, part, strict=True):
            column[places] = values
    return found


def _joint(samples: Sequence[Samples]) -> Any:
    """One pass for all labels that every run has: they are exchanged together."""
    found = np.full(len(samples), np.nan)
    groups = [(places, group) for places, group in _groups(samples) if not group[0].has_gaps]
    if groups:
        places, group = max(groups, key=lambda one: len(one[1][0].baseline) + len(one[1][0].candidate))
        if group[0].deltas is not None:
            found[places] = joint_paired_p([one.deltas for one in group])
        else:
            found[places] = joint_p([one.baseline for one in group], [one.candidate for one in group])
    return found


def _groups(samples: Sequence[Samples]) -> list[tuple[list[int], list[Samples]]]:
    """Places and samples of one shape together."""
    shapes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, one in enumerate(samples):
        pairs = -1 if one.deltas is None else len(one.deltas)
        shapes[len(one.baseline), len(one.candidate), pairs, one.has_gaps].append(place)
    return [(places, [samples[place] for place in places]) for places in shapes.values()]


def _row(
    label: str,
    samples: Samples,
    shift: list[float],
    p: dict[str, float | None],
    adjust: str,
    min_effect: float | None,
) -> dict[str, Any]:
    medians = [float(np.median(runs)) if len(runs) else None for runs in (samples.baseline, samples.candidate)]
    estimate, lower, upper = shift
    known = not np.isnan(estimate)
    margin = None if min_effect is None or medians[0] is None else abs(medians[0]) * min_effect
    return {
        "label": label,
        "baseline_runs": len(samples.baseline),
        "candidate_runs": len(samples.candidate),
        "baseline_median": medians[0],
        "candidate_median": medians[1],
        "shift": estimate if known else None,
        "lower": lower if known else None,
        "upper": upper if known else None,
        **p,
        "verdict": _verdict(estimate, lower, upper, p[f"p_{adjust}"], margin) if known else UNDECIDED,
    }


def _verdict(estimate: float, lower: float, upper: float, p: float | None, margin: float | None) -> str:
    if margin is not None and -margin < lower and upper < margin:
        return SAME
    if p is None or p > 1 - LEVEL or not estimate:
        return UNDECIDED
    return LOWER if estimate < 0 else HIGHER
