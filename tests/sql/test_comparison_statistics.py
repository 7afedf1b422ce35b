"""Samples, statistics, pairs and the summary of a comparison (protocol 10.3), worked by hand."""

from __future__ import annotations

import math

import pytest
from cohorts import add_cohorts
from hypothesis import given
from hypothesis import strategies as st

from support import TinyStore, emptied

BIG = 2**63 - 1


def statistics(tiny: TinyStore, cohort: str = "baseline") -> tuple[object, ...]:
    query = f"SELECT samples_ns, median_ns, p95_ns, mad_ns FROM comparison_statistics WHERE cohort = '{cohort}'"
    return tiny.rows(query)[0]


def test_median_p95_and_mad_of_the_protocols_example(tiny: TinyStore) -> None:
    add_cohorts(tiny, (10, 11, 12, 13, 100))
    assert statistics(tiny) == ([10, 11, 12, 13, 100], 12.0, 82.6, 1.0)


def test_samples_stay_in_input_order(tiny: TinyStore) -> None:
    add_cohorts(tiny, (30, 10, 20))
    assert statistics(tiny) == ([30, 10, 20], 20.0, 29.0, 10.0)


def test_the_median_is_rounded_half_away_from_zero_before_the_deviations(tiny: TinyStore) -> None:
    # median 2.5 rounds to 3: deviations 1, 0 -> 0.5. Half to even would round to 2: deviations 0, 1 -> 0.5 as well,
    # so four samples: 1 2 3 9 -> deviations from 3 are 2 1 0 6 -> 1.5; from 2 they are 1 0 1 7 -> 1.
    add_cohorts(tiny, (1, 2, 3, 9))
    assert statistics(tiny)[1:] == (2.5, pytest.approx(8.1), 1.5)


def test_an_empty_cohort_has_the_protocols_zeros_and_no_samples(tiny: TinyStore) -> None:
    add_cohorts(tiny, ())
    assert statistics(tiny) == ([], 0.0, 0.0, 0.0)
    assert tiny.rows("SELECT median_delta_ns, median_delta_percent FROM comparison_summary") == [(78.0, None)]


def test_the_largest_durations_do_not_overflow(tiny: TinyStore) -> None:
    add_cohorts(tiny, (BIG, 0, BIG), (0, BIG, 0))
    assert statistics(tiny) == ([BIG, 0, BIG], float(BIG), float(BIG), 1.0)


def test_the_sample_is_the_first_measured_span_that_ended(tiny: TinyStore) -> None:
    runs = {"b0": {"walls": [None, 7, 9]}, "b1": {"walls": []}}
    add_cohorts(tiny, (1, 2), (), runs=runs)
    rows = tiny.rows("SELECT run_id, outer_wall_time_ns FROM comparison_samples ORDER BY position")
    assert rows == [("b0", 7), ("b1", 0)]


def test_unpaired_delta_is_the_difference_of_the_medians(tiny: TinyStore) -> None:
    add_cohorts(tiny)  # medians 101 and 78
    query = "SELECT paired, median_delta_ns, median_delta_percent FROM comparison_summary"
    assert tiny.rows(query) == [(False, -23.0, -23 / 101 * 100)]


def test_paired_delta_is_the_median_of_the_differences(tiny: TinyStore) -> None:
    # pairs p0 10->9, p1 20->25, p2 30->33, p3 40->48: differences -1, 5, 3, 8 -> median 4 (unpaired: 29 - 25).
    runs = {f"{c}{n}": {"identity": {"pair_id": f"p{n}"}} for c in "bc" for n in range(4)}
    add_cohorts(tiny, (10, 20, 30, 40), (9, 25, 33, 48), runs=runs)
    pairs = tiny.rows("SELECT pair_id, baseline_ns, candidate_ns, delta_ns FROM comparison_pairs ORDER BY pair_id")
    assert pairs == [("p0", 10, 9, -1), ("p1", 20, 25, 5), ("p2", 30, 33, 3), ("p3", 40, 48, 8)]
    assert tiny.rows("SELECT paired, median_delta_ns, median_delta_percent FROM comparison_summary") == [
        (True, 4.0, 16.0)
    ]


def test_the_common_identity_leaves_out_implementation_and_pair(tiny: TinyStore) -> None:
    add_cohorts(tiny)
    [(identity,)] = tiny.rows("SELECT identity FROM comparison_summary")
    assert identity["workload_id"] == "train-step"
    assert identity["physical_batch"] == 4
    assert "implementation_id" not in identity
    assert "pair_id" not in identity


def test_an_identity_that_does_not_hold_for_all_is_null(tiny: TinyStore) -> None:
    add_cohorts(tiny, runs={"c1": {"identity": {"data_id": "other"}}})
    assert tiny.rows("SELECT identity FROM comparison_summary") == [(None,)]


def percentile(values: list[float], q: float) -> float:
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    weight = place - math.floor(place)
    return ordered[math.floor(place)] * (1 - weight) + ordered[math.ceil(place)] * weight


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=12), st.sampled_from([0.0, 0.5, 0.95, 1.0]))
def test_percentiles_follow_the_protocols_formula_to_the_last_bit(values: list[int], q: float) -> None:
    found = emptied().con.execute("SELECT _percentile(list_sort(?::BIGINT[]), ?::DOUBLE)", [values, q]).fetchall()
    assert found == [(percentile([float(value) for value in values], q),)]
