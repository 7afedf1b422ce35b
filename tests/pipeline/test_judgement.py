"""Verdicts from intervals, margins, the order of captures, and what an open question would need."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from cohorts import BASELINE_NS, CANDIDATE_NS, add_cohorts
from hypothesis import given, settings
from hypothesis import strategies as st

from planewise.pipeline.capture_order import OrderedRun, capture_order, trend_p
from planewise.pipeline.compare import compare_cohorts
from planewise.pipeline.intervals import LEVEL, paired_p, paired_shift, unpaired_p, unpaired_shift
from planewise.pipeline.judgement import Rules, decided
from support import TinyStore

SMALL = st.lists(st.integers(0, 20), min_size=4, max_size=8)


@pytest.mark.parametrize(
    ("bounds", "margin", "verdict"),
    [
        (None, None, "inconclusive"),
        ((-3, -1), None, "candidate_faster"),
        ((1, 3), None, "candidate_slower"),
        ((-1, 1), None, "inconclusive"),
        ((0, 3), None, "inconclusive"),  # 0 is in it.
        ((-3, -1), 4, "no_relevant_change"),  # Faster by a hair.
        ((-4, -1), 4, "candidate_faster"),  # The margin itself is relevant.
        ((-3, 5), 4, "inconclusive"),
        ((-3, 3), 4, "no_relevant_change"),
        ((3, 9), 4, "candidate_slower"),
    ],
)
def test_the_verdict_is_what_the_interval_carries(bounds, margin, verdict) -> None:
    assert decided(bounds, margin) == verdict


@settings(max_examples=200, deadline=None)
@given(SMALL, SMALL)
def test_p_and_interval_say_the_same_of_independent_cohorts(baseline: list[int], candidate: list[int]) -> None:
    shift = unpaired_shift(baseline, candidate)
    assert shift is not None
    assert (unpaired_p(baseline, candidate) <= 1 - LEVEL) == (not shift.lower <= 0 <= shift.upper)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=6, max_size=10))
def test_p_and_interval_say_the_same_of_pairs(deltas: list[int]) -> None:
    shift = paired_shift(deltas)
    assert shift is not None
    assert (paired_p(deltas) <= 1 - LEVEL) == (not shift.lower <= 0 <= shift.upper)


def test_p_counts_every_arrangement_of_the_runs() -> None:
    # Of the 70 ways to choose 4 of 8 places, two are as extreme as all of one cohort before the other.
    assert unpaired_p([1, 2, 3, 4], [5, 6, 7, 8]) == pytest.approx(2 / 70)
    assert paired_p([1, 2, 3, 4, 5, 6]) == pytest.approx(2 / 64)


def test_the_worked_cohorts_are_decided_by_the_calibrated_interval(tiny: TinyStore) -> None:
    document = compare_cohorts(add_cohorts(tiny).con, "c")
    assert (document["verdict"], document["verdict_rule"]) == ("candidate_faster", "calibrated")
    differences = sorted(c - b for b in BASELINE_NS for c in CANDIDATE_NS)
    # 5 against 5: two orderings of 252 have no crossing, and with at most two crossings 2 * 4 of 252 do.
    assert document["interval"]["method"] == "hodges_lehmann"
    assert document["interval"]["lower_delta_ns"] == differences[2]
    assert document["interval"]["upper_delta_ns"] == differences[-3]
    assert document["interval"]["coverage"] == pytest.approx(1 - 2 * 4 / 252)


def test_a_hair_is_no_relevant_change_where_a_margin_says_so(tiny: TinyStore) -> None:
    add_cohorts(tiny, baseline=(1000, 1001, 1002, 1003, 1004), candidate=(991, 992, 993, 994, 995))
    assert compare_cohorts(tiny.con, "c")["verdict"] == "candidate_faster"
    document = compare_cohorts(tiny.con, "c", Rules(min_effect=0.02))
    assert (document["verdict"], document["min_effect_percent"]) == ("no_relevant_change", 2.0)


def test_an_open_question_says_how_many_runs_would_settle_it(tiny: TinyStore) -> None:
    add_cohorts(tiny, baseline=(100, 110, 120, 130, 140), candidate=(101, 111, 121, 131, 141))
    document = compare_cohorts(tiny.con, "c", Rules(min_effect=0.05))
    assert document["verdict"] == "inconclusive"
    # spread sqrt(250), effect 6, (1.96 + 0.842) squared, two cohorts, efficiency 3 / pi
    assert document["runs_needed"] == pytest.approx(2 * (2.8016 * 250**0.5 / 6) ** 2 * np.pi / 3, abs=1)


def test_the_protocols_interval_decides_when_it_is_asked_to(tiny: TinyStore) -> None:
    runs = {f"{c}{n}": {"identity": {"pair_id": f"p{n}"}} for c in "bc" for n in range(5)}
    add_cohorts(tiny, runs=runs)
    document = compare_cohorts(tiny.con, "c")
    assert (document["verdict"], document["interval"]) == ("inconclusive", None)
    assert [finding["code"] for finding in document["findings"]][-1] == "too_few_for_interval"
    assert document["verdict_by_protocol"] == "candidate_faster"
    assert compare_cohorts(tiny.con, "c", Rules(by_protocol=True))["verdict"] == "candidate_faster"


def ordered(cohorts: str, values: list[float], *, timed: bool = True) -> list[OrderedRun]:
    """Runs captured one a minute; b is of the baseline, c of the candidate."""
    names = {"b": "baseline", "c": "candidate"}
    return [
        OrderedRun(f"r{n}", names[cohort], value, f"2026-01-01T00:{n:02d}:00Z" if timed else None)
        for n, (cohort, value) in enumerate(zip(cohorts, values, strict=True))
    ]


@pytest.mark.parametrize(
    ("cohorts", "design", "codes"),
    [
        ("bcbcbcbc", "interleaved", []),
        ("bbbbcccc", "separated", ["time_confounded"]),
        ("bbbcccbc", "mixed", []),
    ],
)
def test_the_order_of_captures_is_told(cohorts: str, design: str, codes: list[str]) -> None:
    found = capture_order(ordered(cohorts, [5, 3, 6, 4, 3, 5, 4, 6]))
    assert (found.design, [finding["code"] for finding in found.findings]) == (design, codes)


def test_runs_without_a_time_are_of_unknown_order() -> None:
    found = capture_order(ordered("bc", [1, 2], timed=False))
    assert (found.design, found.findings[0]["code"], found.is_confounded) == ("unknown", "capture_time_unknown", False)


def test_cohorts_captured_at_one_time_have_no_order() -> None:
    names = ["baseline", "candidate"] * 4
    runs = [OrderedRun(f"r{n}", cohort, float(n), "2026-01-01T00:00:00Z") for n, cohort in enumerate(names)]
    found = capture_order(runs)
    assert (found.design, found.findings[0]["code"], found.trend) == ("unknown", "capture_time_unknown", False)


def test_a_cohort_that_drifts_is_named_and_confounds_what_came_apart() -> None:
    values = [float(n) for n in range(12)]
    found = capture_order(ordered("bbbbbbcccccc", values))
    codes = [finding["code"] for finding in found.findings]
    assert codes == ["time_confounded", "trend_in_baseline", "trend_in_candidate"]
    assert found.is_confounded
    assert not capture_order(ordered("bcbcbcbcbcbc", values)).is_confounded


def test_a_difference_that_may_be_the_machines_decides_nothing(tiny: TinyStore) -> None:
    times = {f"b{n}": {"timestamp": f"2026-01-01T00:{n:02d}:00Z"} for n in range(8)}
    times |= {f"c{n}": {"timestamp": f"2026-01-01T01:{n:02d}:00Z"} for n in range(8)}
    add_cohorts(tiny, baseline=tuple(range(100, 108)), candidate=tuple(range(110, 118)), runs=times)
    document = compare_cohorts(tiny.con, "c")
    assert (document["verdict"], document["design"]) == ("inconclusive", "separated")
    assert [finding["code"] for finding in document["findings"]][-1] == "drift_not_separable"


def test_trends_are_counted_over_every_order() -> None:
    orders = list(itertools.permutations(range(5)))
    for order in random.Random(1).sample(orders, 30):
        rising = sum(b > a for a, b in itertools.combinations(order, 2))
        extreme = min(rising, 10 - rising)
        as_extreme = sum(
            min(up, 10 - up) <= extreme for up in (sum(b > a for a, b in itertools.combinations(o, 2)) for o in orders)
        )
        assert trend_p(order)[0] == pytest.approx(min(1.0, as_extreme / len(orders)))
    assert trend_p([1, 2]) == (1.0, "slower")
