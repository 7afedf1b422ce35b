"""Tensor statistics of two cohorts side by side (protocol 10.6), worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from support import TinyStore

MATCHED = "FROM comparison_tensor_stats WHERE matching = 'matched' ORDER BY row_order"


def add_events(tiny: TinyStore, cohort: str, *runs: list[dict[str, Any]]) -> TinyStore:
    """One run per list; each event is a label, its rms, and what else a test sets."""
    for position, events in enumerate(runs):
        run_id = f"{cohort[0]}{position}"
        tiny.run(run_id)
        tiny.add("cohort_members", {"comparison_id": "c", "cohort": cohort, "position": position}, run_id=run_id)
        filled = [{"abs_max": 1.0, "mean": 0.0, **event} for event in events]
        if filled:
            tiny.add("tensor_stats", *filled, run_id=run_id)
    return tiny


def test_values_are_averaged_over_all_events_of_all_runs(tiny: TinyStore) -> None:
    # baseline loss: 1 and 3 in one run, 5 in the next -> mean 3 over 3 samples; candidate: 6 over 1
    add_events(
        tiny,
        "baseline",
        [
            {"label": "loss", "rms": 1.0, "non_finite": 1, "abs_max": 2.0},
            {"label": "loss", "rms": 3.0, "abs_max": 4.0},
        ],
        [{"label": "loss", "rms": 5.0, "non_finite": 2, "abs_max": 6.0}],
    )
    add_events(tiny, "candidate", [{"label": "loss", "rms": 6.0, "abs_max": 2.0}], [])
    columns = "rms_a, rms_b, rms_ratio, abs_max_ratio, non_finite_a, non_finite_b, samples_a, samples_b, runs_a, runs_b"
    assert tiny.rows(f"SELECT {columns} {MATCHED}") == [(3.0, 6.0, 2.0, 0.5, 3, 0, 3, 1, 2, 1)]


def test_a_label_of_one_cohort_is_unmatched_and_has_no_value_for_the_other(tiny: TinyStore) -> None:
    add_events(tiny, "baseline", [{"label": "b", "rms": 1.0}, {"label": "a", "rms": 1.0}])
    add_events(tiny, "candidate", [{"label": "z", "rms": 1.0}])
    query = "SELECT matching, row_order, label, rms_a, rms_b, rms_ratio FROM comparison_tensor_stats ORDER BY ALL"
    assert tiny.rows(query) == [
        ("unmatched_a", 1, "a", 1.0, None, None),
        ("unmatched_a", 2, "b", 1.0, None, None),
        ("unmatched_b", 1, "z", None, 1.0, None),
    ]


@pytest.mark.parametrize(
    ("a", "b", "ratio"), [(0.0, 0.0, 1.0), (0.0, 2.0, None), (4.0, 0.0, 0.0), (4.0, 1.0, 0.25), (1e-308, 1e308, None)]
)
def test_ratio_is_one_for_two_zeros_and_absent_for_a_zero_base(
    tiny: TinyStore, a: float, b: float, ratio: float | None
) -> None:
    add_events(tiny, "baseline", [{"label": "x", "rms": a}])
    add_events(tiny, "candidate", [{"label": "x", "rms": b}])
    assert tiny.rows(f"SELECT rms_ratio {MATCHED}") == [(ratio,)]


def test_the_largest_change_comes_first_and_ties_go_by_label(tiny: TinyStore) -> None:
    # |ln ratio|: half and double tie; null and zero ratios count as infinite
    ratios = {"same": (1.0, 1.0), "half": (2.0, 1.0), "double": (1.0, 2.0), "zero": (1.0, 0.0), "new": (0.0, 1.0)}
    add_events(tiny, "baseline", [{"label": label, "rms": a} for label, (a, _) in ratios.items()])
    add_events(tiny, "candidate", [{"label": label, "rms": b} for label, (_, b) in ratios.items()])
    labels = [label for (label,) in tiny.rows(f"SELECT label {MATCHED}")]
    assert labels == ["new", "zero", "double", "half", "same"]


def test_sums_of_non_finite_elements_are_exact_beyond_64_bits(tiny: TinyStore) -> None:
    event = {"label": "x", "rms": 0.0, "non_finite": 2**63 - 1, "elements": 2**63 - 1}
    add_events(tiny, "baseline", [event, event, event])
    assert tiny.rows("SELECT non_finite_a FROM comparison_tensor_stats") == [(3 * (2**63 - 1),)]


def test_rows_do_not_depend_on_eligibility(tiny: TinyStore) -> None:
    add_events(tiny, "baseline", [{"label": "x", "rms": 1.0}])
    add_events(tiny, "candidate", [{"label": "x", "rms": 1.0}])
    assert tiny.rows("SELECT comparable FROM comparison_summary") == [(False,)]
    assert tiny.rows(f"SELECT label {MATCHED}") == [("x",)]
