"""In which order the runs of two cohorts were captured, and what that says against their comparison.

A machine changes over a day. Cohorts whose runs alternate share every change; a baseline captured wholly before its
candidate has the machine's change in its difference, and no statistic takes it out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any

TREND_LEVEL = 0.01
"""A trend in one cohort is reported when so few orders of its runs would show one as strong."""

COMMON_LEVEL = 0.05
"""The same for the trend of both together, where one came wholly first: there a doubt is to be told early."""

INTERLEAVED, SEPARATED, MIXED, UNKNOWN = "interleaved", "separated", "mixed", "unknown"


@dataclass(frozen=True)
class OrderedRun:
    """One run of a comparison: its cohort, its sample, and when it was captured (None: not said)."""

    run_id: str
    cohort: str
    value: float
    timestamp: str | None


@dataclass(frozen=True)
class CaptureOrder:
    """``design`` is interleaved, separated, mixed or unknown; ``findings`` are codes with a sentence each.

    ``trend`` is True when a cohort drifts over time.
    """

    design: str
    findings: tuple[dict[str, str], ...]
    trend: bool

    @property
    def can_confound(self) -> bool:
        """A drift would reach the difference: the cohorts were not captured in turn."""
        return self.design in (SEPARATED, MIXED)

    @property
    def is_confounded(self) -> bool:
        """The difference may be the machine's: the cohorts were not captured in turn, and at least one drifts."""
        return self.can_confound and self.trend


def capture_order(runs: Sequence[OrderedRun]) -> CaptureOrder:
    """Judge the order of the runs; without a time on every run nothing is known of it, and that is a finding."""
    moments = [_moment(run.timestamp) for run in runs]
    unsaid = [run.run_id for run, moment in zip(runs, moments, strict=True) if moment is None]
    if unsaid or not runs:
        return _unknown(f"{len(unsaid)} runs do not say when they were captured, so drift over time cannot be judged")
    shared = len({(moment, run.cohort) for moment, run in zip(moments, runs, strict=True)}) - len(set(moments))
    if shared:
        return _unknown(f"runs of both cohorts were captured at the same time, {shared} times, so they have no order")
    ordered = [run for _, run in sorted(zip(moments, runs, strict=True), key=lambda pair: (pair[0], pair[1].run_id))]
    design, findings = _design([run.cohort for run in ordered]), []
    if design == SEPARATED:
        first = ordered[0].cohort
        message = f"every {first} run was captured before the others; interleave the cohorts to tell the builds apart"
        findings.append({"code": "time_confounded", "message": message})
    trends = [
        finding
        for cohort in ("baseline", "candidate")
        if (finding := _trend(cohort, [run.value for run in ordered if run.cohort == cohort])) is not None
    ]
    if design == SEPARATED and not trends:
        trends = _common_trend(ordered)
    return CaptureOrder(design, (*findings, *trends), bool(trends))


def _unknown(message: str) -> CaptureOrder:
    return CaptureOrder(UNKNOWN, ({"code": "capture_time_unknown", "message": message},), False)


def _moment(timestamp: str | None) -> float | None:
    try:
        found = datetime.fromisoformat(timestamp) if timestamp else None
    except ValueError:
        return None
    return None if found is None or found.tzinfo is None else found.timestamp()


def _design(cohorts: Sequence[str]) -> str:
    """Interleaved: the cohort changes at least half as often as it could."""
    changes = sum(a != b for a, b in pairwise(cohorts))
    smaller = min(cohorts.count("baseline"), cohorts.count("candidate"))
    if changes <= 1:
        return SEPARATED if smaller else UNKNOWN
    return INTERLEAVED if changes >= smaller else MIXED


def _trend(cohort: str, values: Sequence[float]) -> dict[str, str] | None:
    p, direction = trend_p(values)
    if p > TREND_LEVEL:
        return None
    message = f"the {cohort} runs get {direction} from first to last (Mann-Kendall, p = {p:.2g})"
    return {"code": f"trend_in_{cohort}", "message": message}


def _common_trend(ordered: Sequence[OrderedRun]) -> list[dict[str, str]]:
    """The trend that both cohorts share, each judged within itself; what one lacks in runs the other may have."""
    groups = [[run.value for run in ordered if run.cohort == cohort] for cohort in ("baseline", "candidate")]
    p, direction = trend_p(*groups)
    if p > COMMON_LEVEL:
        return []
    message = f"within both cohorts runs get {direction} from first to last (Mann-Kendall over both, p = {p:.2g})"
    return [{"code": "trend_in_both", "message": message}]


def trend_p(*groups: Sequence[float]) -> tuple[float, str]:
    """The exact two-sided Mann-Kendall p of sequences, judged together, and whether they get slower or faster.

    Counted over all orders within each sequence, ties taken as half of each; 1 where none has three values.
    """
    if all(len(group) < 3 for group in groups):
        return 1.0, "slower"
    pairs = [(a, b) for group in groups for at, a in enumerate(group) for b in group[at + 1 :]]
    rising = sum(b > a for a, b in pairs) + sum(a == b for a, b in pairs) / 2
    counts = [1]
    for group in groups:
        counts = _both(counts, _inversions(len(group)))
    fewer = int(min(rising, len(pairs) - rising) + 0.5)  # A half counts as the less extreme.
    tail = sum(counts[: fewer + 1])
    return min(1.0, 2 * tail / sum(counts)), "slower" if rising > len(pairs) / 2 else "faster"


def _both(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """How many choices of two orders have each number of inversions together."""
    found = [0] * (len(first) + len(second) - 1)
    for at, count in enumerate(first):
        for shift, other in enumerate(second):
            found[at + shift] += count * other
    return found


@lru_cache(maxsize=128)
def _inversions(size: int) -> tuple[int, ...]:
    """How many orders of ``size`` values have each number of inversions."""
    counts = [1]
    for values in range(2, size + 1):
        longer = [0] * (len(counts) + values - 1)
        for shift in range(values):
            for at, count in enumerate(counts):
                longer[at + shift] += count
        counts = longer
    return tuple(counts)


def ordered_runs(rows: Sequence[dict[str, Any]]) -> list[OrderedRun]:
    """Rows with run_id, cohort, value and timestamp."""
    return [OrderedRun(row["run_id"], row["cohort"], float(row["value"]), row["timestamp"]) for row in rows]
