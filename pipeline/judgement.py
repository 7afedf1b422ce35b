"""What two cohorts of samples prove: the calibrated interval, the verdict, and what would settle an open one.

The interval is exact by ranks (:mod:`.intervals`): Hodges-Lehmann for independent cohorts, signed ranks for pairs. The
protocol's bootstrap of medians is too narrow for few runs (docs/decisions.md, Comparison); it stays beside, and decides
when it is asked to.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .bootstrap import Interval
from .capture_order import CaptureOrder
from .intervals import LEVEL, Shift, paired_p, paired_shift, runs_needed, unpaired_p, unpaired_shift

FASTER, SLOWER = "candidate_faster", "candidate_slower"
UNDECIDED, SAME, INELIGIBLE = "inconclusive", "no_relevant_change", "ineligible"
CALIBRATED, PROTOCOL = "calibrated", "protocol"


@dataclass(frozen=True)
class Rules:
    """How a verdict is reached.

    ``min_effect`` is the smallest change that matters, as a share of the baseline's median (0.01 is 1 %); None: every
    change matters. ``by_protocol`` lets the protocol's interval decide.
    """

    min_effect: float | None = None
    by_protocol: bool = False


EVERY_CHANGE = Rules()
"""The calibrated interval decides, and every change matters."""


@dataclass(frozen=True)
class Samples:
    """The samples of a comparison; ``deltas`` are those of pairs, None when the cohorts are not paired.

    ``has_gaps`` is True where runs of the cohorts have no value and are left out.
    """

    baseline: Sequence[float]
    candidate: Sequence[float]
    deltas: Sequence[float] | None = None
    has_gaps: bool = False

    @property
    def shift(self) -> Shift | None:
        """The calibrated shift with its interval; None for too few runs."""
        if self.deltas is not None:
            return paired_shift(self.deltas)
        return unpaired_shift(self.baseline, self.candidate)

    @property
    def p(self) -> float:
        """The exact two-sided p of no shift; the interval leaves 0 out exactly when it is at most 1 - level."""
        return paired_p(self.deltas) if self.deltas is not None else unpaired_p(self.baseline, self.candidate)

    @property
    def spread(self) -> float:
        """The standard deviation of one run (of one difference when paired), pooled over the cohorts."""
        groups = [self.deltas] if self.deltas is not None else [self.baseline, self.candidate]
        known = [group for group in groups if group and len(group) > 1]
        if not known:
            return float("nan")
        squares = sum(statistics.variance(group) * (len(group) - 1) for group in known)
        return float((squares / sum(len(group) - 1 for group in known)) ** 0.5)

    def margin(self, rules: Rules) -> float | None:
        """The smallest shift that matters, in the unit of the samples."""
        if rules.min_effect is None or not self.baseline:
            return None
        return abs(statistics.median(self.baseline)) * rules.min_effect


def judged(samples: Samples, protocol: Interval, order: CaptureOrder, rules: Rules) -> dict[str, Any]:
    """The members of a comparison document that this module decides; ``protocol`` is the interval of protocol 10.4."""
    shift, margin = samples.shift, samples.margin(rules)
    bounds = None if shift is None else (shift.lower, shift.upper)
    by_protocol = (protocol.lower_delta_ns, protocol.upper_delta_ns)
    found = decided(by_protocol if rules.by_protocol else bounds, margin)
    findings = list(order.findings)
    if shift is None:
        needed = 6 if samples.deltas is not None else 4
        what = "pairs" if samples.deltas is not None else "runs in each cohort"
        findings.append({"code": "too_few_for_interval", "message": f"an interval needs at least {needed} {what}"})
    if order.is_confounded and found in (FASTER, SLOWER) and not rules.by_protocol:
        found = UNDECIDED
        message = "the cohorts were not captured in turn and the machine drifted: the difference may be the machine's"
        findings.append({"code": "drift_not_separable", "message": message})
    return {
        "verdict": found,
        "interval": None if shift is None else _interval(shift, paired=samples.deltas is not None),
        "verdict_rule": PROTOCOL if rules.by_protocol else CALIBRATED,
        "verdict_by_protocol": decided(by_protocol, margin),
        "min_effect_percent": None if rules.min_effect is None else rules.min_effect * 100,
        "runs_needed": _needed(samples, shift, margin) if found == UNDECIDED else None,
        "design": order.design,
        "findings": findings,
    }


def decided(bounds: tuple[float, float] | None, margin: float | None = None) -> str:
    """The verdict that an interval of the shift carries; too few runs for one leave it open.

    An interval wholly inside the margin proves that nothing relevant changed, even one without 0.
    """
    if bounds is None:
        return UNDECIDED
    lower, upper = bounds
    if margin is not None and -margin < lower and upper < margin:
        return SAME
    if upper < 0:
        return FASTER
    return SLOWER if lower > 0 else UNDECIDED


def undecided(rules: Rules) -> dict[str, Any]:
    """The same members of a comparison that is not eligible."""
    return {
        "verdict": INELIGIBLE,
        "interval": None,
        "verdict_rule": PROTOCOL if rules.by_protocol else CALIBRATED,
        "verdict_by_protocol": INELIGIBLE,
        "min_effect_percent": None if rules.min_effect is None else rules.min_effect * 100,
        "runs_needed": None,
        "design": None,
        "findings": [],
    }


def _interval(shift: Shift, *, paired: bool) -> dict[str, Any]:
    return {
        "level": LEVEL,
        "method": "signed_rank" if paired else "hodges_lehmann",
        "estimate_ns": shift.estimate,
        "lower_delta_ns": shift.lower,
        "upper_delta_ns": shift.upper,
        "coverage": shift.coverage,
    }


def _needed(samples: Samples, shift: Shift | None, margin: float | None) -> int | None:
    """Runs a cohort that would resolve the margin, or without one the difference that was seen."""
    effect = margin if margin is not None else None if shift is None else shift.estimate
    return None if effect is None else runs_needed(samples.spread, effect, paired=samples.deltas is not None)
