"""Many questions at once: one test per label, and p values adjusted for how many were asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .intervals import LEVEL, unpaired_p, unpaired_shift

Label = tuple[str, Sequence[float], Sequence[float]]
"""A label with the samples of the baseline and of the candidate."""


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


def family(labels: Sequence[Label]) -> list[dict[str, Any]]:
    """One row per label, most surprising first: medians, shift with its interval, p, both adjusted p, and a verdict.

    The verdict is candidate_lower or candidate_higher where Holm's p is at most 5 %, else inconclusive; a label with
    too few runs for an interval has none and stays open. The order of equal ones is that of the labels.
    """
    p = [unpaired_p(baseline, candidate) for _, baseline, candidate in labels]
    holm, bh = adjusted(p)
    rows = [_row(label, *found) for label, *found in zip(labels, p, holm.tolist(), bh.tolist(), strict=True)]
    return sorted(rows, key=lambda row: row["p"])


def _row(label: Label, p: float, holm: float, bh: float) -> dict[str, Any]:
    name, baseline, candidate = label
    shift = unpaired_shift(baseline, candidate)
    verdict = "inconclusive"
    if shift is not None and holm <= 1 - LEVEL:
        verdict = "candidate_lower" if shift.estimate < 0 else "candidate_higher"
    return {
        "label": name,
        "baseline_runs": len(baseline),
        "candidate_runs": len(candidate),
        "baseline_median": float(np.median(baseline)) if len(baseline) else None,
        "candidate_median": float(np.median(candidate)) if len(candidate) else None,
        "shift": shift and shift.estimate,
        "lower": shift and shift.lower,
        "upper": shift and shift.upper,
        "p": p,
        "p_holm": holm,
        "p_bh": bh,
        "verdict": verdict,
    }
