"""Calibrated intervals: cuts against all orderings, shifts by hand, and how often they err without a difference."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planewise.pipeline import intervals
from planewise.pipeline.intervals import (
    EXACT_RUNS,
    paired_cut,
    paired_p,
    paired_shift,
    paired_shifts,
    runs_needed,
    unpaired_cut,
    unpaired_p,
    unpaired_shift,
    unpaired_shifts,
)

SAMPLES = st.lists(st.integers(-1000, 1000), min_size=4, max_size=9)


def test_five_against_five_leave_out_two_differences_on_each_side() -> None:
    # Of the 252 orderings of 5 and 5, 4 have a statistic of at most 2: 2 * 4 / 252 = 3.2 %; 2 * 7 / 252 is above 5 %.
    cut, coverage = unpaired_cut(5, 5)
    assert cut == 2
    assert coverage == pytest.approx(1 - 8 / 252)


def test_four_against_four_have_an_interval_and_three_against_three_have_none() -> None:
    assert unpaired_cut(4, 4)[0] == 0  # 2 / 70 = 2.9 %
    assert unpaired_cut(3, 3)[0] == -1  # 2 / 20 = 10 %
    assert unpaired_shift([1, 2, 3], [7, 8, 9]) is None


def test_six_pairs_have_an_interval_and_five_have_none() -> None:
    assert paired_cut(6) == (0, 1 - 2 / 64)
    assert paired_cut(5)[0] == -1  # 2 / 32 = 6.25 %
    assert paired_shift([1, 1, 1, 1, 1]) is None


@pytest.mark.parametrize(("first", "second"), [(4, 4), (5, 4), (5, 6), (3, 7)])
def test_unpaired_cut_is_that_of_all_orderings(first: int, second: int) -> None:
    places = range(first + second)
    statistics = sorted(
        sum(a > b for a in chosen for b in set(places) - set(chosen)) for chosen in combinations(places, first)
    )
    allowed = [c for c in statistics if 2 * sum(s <= c for s in statistics) <= 0.05 * len(statistics)]
    assert unpaired_cut(first, second)[0] == max(allowed, default=-1)


@pytest.mark.parametrize("pairs", [5, 6, 8, 10])
def test_paired_cut_is_that_of_all_signs(pairs: int) -> None:
    sums = sorted(sum(rank for rank, sign in enumerate(signs, 1) if sign) for signs in product((0, 1), repeat=pairs))
    allowed = [c for c in set(sums) if 2 * sum(s <= c for s in sums) <= 0.05 * len(sums)]
    assert paired_cut(pairs)[0] == max(allowed, default=-1)


def test_shift_of_two_cohorts_by_hand() -> None:
    # Differences of 10, 12, 14, 16 and 1, 2, 3, 5: from 5 to 15, median of the 16 is 10.5.
    found = unpaired_shift([1, 2, 3, 5], [10, 12, 14, 16])
    assert found is not None
    assert (found.lower, found.upper, found.estimate) == (5.0, 15.0, 10.5)


def test_shift_of_pairs_by_hand() -> None:
    # Walsh averages of six differences reach from the smallest to the largest of them; nothing may be left out.
    found = paired_shift([-1, -2, -3, -4, -5, -6])
    assert found is not None
    assert (found.lower, found.upper, found.estimate) == (-6.0, -1.0, -3.5)


@given(SAMPLES, SAMPLES, st.integers(-500, 500))
def test_a_shift_of_the_candidate_shifts_the_interval(first: list[int], second: list[int], shift: int) -> None:
    found, moved = unpaired_shift(first, second), unpaired_shift(first, [value + shift for value in second])
    assert found is not None
    assert moved is not None
    assert (moved.lower, moved.upper) == (found.lower + shift, found.upper + shift)


@given(SAMPLES, SAMPLES)
def test_swapping_the_cohorts_mirrors_the_interval(first: list[int], second: list[int]) -> None:
    found, mirrored = unpaired_shift(first, second), unpaired_shift(second, first)
    assert found is not None
    assert mirrored is not None
    assert (mirrored.lower, mirrored.upper) == (-found.upper, -found.lower)
    assert found.lower <= found.estimate <= found.upper


def test_the_normal_approximation_joins_the_exact_cuts() -> None:
    exact, near = unpaired_cut(EXACT_RUNS, EXACT_RUNS), unpaired_cut(EXACT_RUNS, EXACT_RUNS + 1)
    assert exact[0] < near[0] < exact[0] * 1.03
    assert near[1] == pytest.approx(0.95, abs=0.001)
    assert paired_cut(EXACT_RUNS)[0] < paired_cut(EXACT_RUNS + 1)[0] < paired_cut(EXACT_RUNS)[0] * 1.05


def test_runs_needed_grow_with_the_square_of_spread_over_effect() -> None:
    # (1.96 + 0.84)^2 * 2 * 1.047 = 16.4 runs a cohort for an effect of one standard deviation.
    assert runs_needed(1.0, 1.0, paired=False) == 17
    assert runs_needed(2.0, 1.0, paired=False) == 66
    assert runs_needed(1.0, 100.0, paired=True) == 6
    assert runs_needed(1.0, 0.0, paired=False) is None


@pytest.mark.parametrize("runs", [5, 8, 12])
def test_without_a_difference_at_most_one_in_twenty_intervals_excludes_zero(runs: int) -> None:
    generator = np.random.default_rng(runs)
    tries = 4000
    wrong = 0
    for _ in range(tries):
        found = unpaired_shift(generator.lognormal(4, 0.4, runs), generator.lognormal(4, 0.4, runs))
        assert found is not None
        wrong += found.lower > 0 or found.upper < 0
    assert wrong / tries <= 0.05 + 2 * (0.05 * 0.95 / tries) ** 0.5


def test_the_runs_needed_do_resolve_the_effect_four_times_in_five() -> None:
    runs = runs_needed(1.0, 1.0, paired=False)
    assert runs is not None
    generator = np.random.default_rng(7)
    found = [unpaired_shift(generator.normal(0, 1, runs), generator.normal(1, 1, runs)) for _ in range(2000)]
    assert 0.77 <= sum(shift is not None and shift.lower > 0 for shift in found) / len(found) <= 0.86


def test_many_questions_in_one_pass_are_those_asked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    first, second = rng.integers(0, 30, (25, 6)), rng.integers(0, 30, (25, 5))
    monkeypatch.setattr(intervals, "_AT_ONCE", 200)  # Six questions of thirty differences in each turn.
    many, pairs = unpaired_shifts(first, second), paired_shifts(first - 15)
    for at in range(25):
        one, pair = unpaired_shift(first[at].tolist(), second[at].tolist()), paired_shift((first[at] - 15).tolist())
        assert one is not None
        assert pair is not None
        p = unpaired_p(first[at].tolist(), second[at].tolist())
        assert [column[at] for column in many] == [one.estimate, one.lower, one.upper, p]
        p = paired_p((first[at] - 15).tolist())
        assert [column[at] for column in pairs] == [pair.estimate, pair.lower, pair.upper, p]


def test_no_questions_and_no_runs_have_no_answer() -> None:
    assert len(unpaired_shifts(np.empty((0, 5)), np.empty((0, 5))).p) == 0
    assert (unpaired_p([], [1.0]), paired_p([])) == (1.0, 1.0)
    assert (unpaired_shift([], [1.0]), paired_shift([])) == (None, None)


def test_the_largest_durations_are_subtracted_as_integers() -> None:
    # As floats these are all equal; their differences are 1 to 7, the median of 16 is 4.
    big = 2**63 - 8
    found = unpaired_shift([big - n for n in range(4)], [big + 4 - n for n in range(4)])
    assert found is not None
    assert (found.lower, found.estimate, found.upper) == (1.0, 4.0, 7.0)
