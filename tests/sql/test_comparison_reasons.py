"""Each reason of protocol 10.2, its near-misses, and the order in which reasons are collected."""

from __future__ import annotations

from typing import Any

import pytest
from cohorts import add_cohorts, codes

from support import TinyStore

ALL = tuple(f"{cohort}{position}" for cohort in "bc" for position in range(5))


def everywhere(**change: Any) -> dict[str, dict[str, Any]]:
    return dict.fromkeys(ALL, change)


def test_ten_equal_runs_are_comparable(tiny: TinyStore) -> None:
    add_cohorts(tiny)
    assert codes(tiny) == []
    assert tiny.rows("SELECT comparable FROM comparison_summary") == [(True,)]


def test_unverified_runs_raise_that_reason_alone_for_their_missing_receipts(tiny: TinyStore) -> None:
    none = {"verified": False, "receipt_run_id": None, "manifest_sha256": None}
    add_cohorts(tiny, members=everywhere(**none))
    assert codes(tiny) == ["unverified_inputs"]


def test_one_unverified_run_makes_the_whole_comparison_unverified(tiny: TinyStore) -> None:
    add_cohorts(tiny, members={"c4": {"verified": False}, "b0": {"manifest_sha256": "short"}})
    assert codes(tiny) == ["unverified_inputs"]


def test_a_missing_receipt_silences_the_other_receipt_rules_of_its_cohort_only(tiny: TinyStore) -> None:
    members = {
        "b0": {"receipt_run_id": None, "manifest_sha256": None},
        "b1": {"receipt_run_id": "other"},
        "c2": {"receipt_run_id": "other", "manifest_sha256": "zz"},
    }
    add_cohorts(tiny, members=members)
    rows = tiny.rows("SELECT code, cohort, position FROM comparison_reasons ORDER BY reason_order")
    assert rows == [
        ("receipt_count_mismatch", "baseline", None),
        ("receipt_run_id_mismatch", "candidate", 2),
        ("receipt_digest_invalid", "candidate", 2),
    ]


@pytest.mark.parametrize("digest", ["", "ab", "AB" * 32, "ab" * 32 + "\n", "sha256:" + "ab" * 32, None])
def test_a_digest_is_64_hex_digits_in_either_case(tiny: TinyStore, digest: str | None) -> None:
    add_cohorts(tiny, members={"b0": {"manifest_sha256": digest}})
    assert codes(tiny) == ([] if digest == "AB" * 32 else ["receipt_digest_invalid"])


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "failed", "failure_reason": "lost"},
        {"outcome": None, "terminal_timestamp_ns": None},
        {"capture_step": 3, "warmup_steps": 2, "correlation_id": " "},
    ],
    ids=["failed", "interrupted", "invalid"],
)
def test_a_run_that_is_not_complete_and_valid_is_an_incomplete_capture(tiny: TinyStore, change: dict[str, Any]) -> None:
    add_cohorts(tiny, runs={"b1": change})
    assert codes(tiny) == ["incomplete_capture"]


@pytest.mark.parametrize("scope", ["unknown", "profiled_work"])
def test_only_production_equivalent_scope_is_comparable(tiny: TinyStore, scope: str) -> None:
    add_cohorts(tiny, runs=everywhere(contract={"measurement_scope": scope}))
    assert codes(tiny) == ["not_production_equivalent"] * 10


@pytest.mark.parametrize(
    ("device", "synchronized", "raised"),
    [("cuda:0", False, 10), ("cuda:0", True, 0), ("cpu", False, 0), ("cpu:1", False, 0), ("CPU", False, 10)],
)
def test_a_device_that_is_no_cpu_needs_a_synchronized_region(
    tiny: TinyStore, device: str, synchronized: bool, raised: int
) -> None:
    add_cohorts(tiny, runs=everywhere(device=device, measured_region_device_synchronized=synchronized))
    assert codes(tiny) == ["unsynchronized_device_region"] * raised


def test_a_run_needs_exactly_one_measured_span_that_ended(tiny: TinyStore) -> None:
    # Health counts measured spans whether they ended or not, so both of these runs are incomplete captures too.
    add_cohorts(tiny, runs={"b0": {"walls": []}, "c0": {"walls": [10, 5]}})
    rows = tiny.rows("SELECT code, run_id FROM comparison_reasons ORDER BY reason_order")
    assert rows == [
        ("incomplete_capture", "b0"),
        ("measured_region_count_invalid", "b0"),
        ("incomplete_capture", "c0"),
        ("measured_region_count_invalid", "c0"),
    ]


def test_a_second_measured_span_that_never_ended_leaves_the_count_at_one(tiny: TinyStore) -> None:
    add_cohorts(tiny, runs={"b0": {"walls": [10, None]}})
    assert codes(tiny) == ["incomplete_capture"]


def test_fewer_than_five_runs_in_either_cohort_are_insufficient_once(tiny: TinyStore) -> None:
    add_cohorts(tiny, (1, 2, 3, 4), (1, 2, 3, 4))
    assert codes(tiny) == ["insufficient_runs"]


def test_a_run_in_both_cohorts_is_a_duplicate(tiny: TinyStore) -> None:
    add_cohorts(tiny, members={"c0": {"run_id": "b0", "receipt_run_id": "b0"}})
    assert codes(tiny) == ["duplicate_run_ids"]


def test_an_unknown_run_fails_and_never_passes_by_absence(tiny: TinyStore) -> None:
    add_cohorts(tiny, members={"b1": {"run_id": "nowhere", "receipt_run_id": "nowhere"}})
    assert codes(tiny) == [
        "incomplete_capture",
        "not_production_equivalent",
        "measured_region_count_invalid",
        "capture_semantics_mismatch",
        "identity_missing",
        "implementation_id_missing",
    ]


def test_two_empty_cohorts_have_no_runs(tiny: TinyStore) -> None:
    add_cohorts(tiny, (), ())
    empty = ["insufficient_runs", "no_runs", "identity_missing"]
    assert codes(tiny) == [*empty, "implementation_id_missing", "implementation_id_missing"]


@pytest.mark.parametrize(("baseline", "candidate"), [((), (1, 2, 3, 4, 5)), ((1, 2, 3, 4, 5), ())])
def test_one_empty_cohort_is_insufficient_and_has_no_identity(
    tiny: TinyStore, baseline: tuple[int, ...], candidate: tuple[int, ...]
) -> None:
    add_cohorts(tiny, baseline, candidate)
    assert codes(tiny) == ["insufficient_runs", "identity_missing", "implementation_id_missing"]


@pytest.mark.parametrize(
    "change",
    [
        {"entrypoint": "other"},
        {"phase": "train"},
        {"device": "cpu:1"},
        {"timing_mode": "device_synchronized"},
        {"warmup_steps": 1},
        {"capture_step": 4},
        {"measured_region_device_synchronized": True},
        {"contract": {"tensors": "partial"}},
        {"contract": {"required_semantic_labels": ["span"]}},
    ],
    ids=lambda change: str(next(iter(change))),
)
def test_runs_that_differ_in_capture_semantics_do_not_compare(tiny: TinyStore, change: dict[str, Any]) -> None:
    add_cohorts(tiny, runs={"c3": change})
    assert codes(tiny) == ["capture_semantics_mismatch"]


def test_an_absent_gradient_contract_equals_an_absent_one_and_differs_from_any_other(tiny: TinyStore) -> None:
    contract = {
        "manifest_sha256": "sha256:" + "0" * 64,
        "expected": [{"root": "vb", "key": "w", "family": "trunk"}],
        "families": [{"family": "trunk", "expectation": "active", "min_present": 1}],
    }
    add_cohorts(tiny, runs={"c4": {"contract": {"gradient_contract": contract}}})
    assert "capture_semantics_mismatch" in codes(tiny)


def test_tags_correlation_timestamp_and_version_play_no_part(tiny: TinyStore) -> None:
    other = {"tags": [("a", "b")], "correlation_id": "x", "timestamp": "never", "candle_version": "9"}
    add_cohorts(tiny, runs={"b2": other})
    assert codes(tiny) == []


@pytest.mark.parametrize("run_id", ["b0", "c4"])
def test_one_run_without_identity_is_enough_to_miss_it(tiny: TinyStore, run_id: str) -> None:
    add_cohorts(tiny, runs={run_id: {"identity": None}})
    assert codes(tiny) == ["identity_missing", "implementation_id_missing"]


@pytest.mark.parametrize(
    ("member", "value"),
    [
        *[(name, " ") for name in ("workload_id", "model_id", "config_id", "data_id", "seed_policy")],
        *[(name, "\u2003") for name in ("precision", "device_state", "pair_id")],
        ("physical_batch", 0),
        ("accumulation_steps", 0),
    ],
)
def test_an_identity_that_breaks_its_rules_is_invalid(tiny: TinyStore, member: str, value: Any) -> None:
    add_cohorts(tiny, runs=everywhere(identity={member: value}))
    found = codes(tiny)
    # Such an identity also makes the provenance invalid; equal pair ids repeat in their cohort.
    assert found == [*["incomplete_capture"] * 10, "identity_invalid", *found[11:]]
    assert found[11:] == (["pair_ids_duplicated"] if member == "pair_id" else [])


def test_only_the_first_identity_is_judged_for_validity(tiny: TinyStore) -> None:
    add_cohorts(tiny, runs={"b1": {"identity": {"model_id": " "}}})
    assert codes(tiny) == ["incomplete_capture", "identity_conditions_differ"]


@pytest.mark.parametrize(
    ("member", "value"),
    [
        *[(name, "x") for name in ("workload_id", "model_id", "config_id", "data_id", "seed_policy")],
        *[("physical_batch", 5), ("accumulation_steps", 2), ("precision", "f16"), ("device_state", "shared")],
    ],
)
def test_runs_under_other_conditions_do_not_compare(tiny: TinyStore, member: str, value: Any) -> None:
    add_cohorts(tiny, runs={"c1": {"identity": {member: value}}})
    rows = tiny.rows("SELECT code, message FROM comparison_reasons")
    assert rows == [("identity_conditions_differ", f"run c1 differs from b0 in {member}")]


def test_implementations_may_differ_between_cohorts_but_not_within_one(tiny: TinyStore) -> None:
    second = {f"c{n}": {"identity": {"implementation_id": "git:2"}} for n in range(5)}
    add_cohorts(tiny, runs=second)
    assert codes(tiny) == []


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "implementation_id_missing"),
        ("\t", "implementation_id_empty"),
        ("git:2", "implementation_id_inconsistent"),
    ],
)
def test_a_cohort_needs_one_filled_implementation_id(tiny: TinyStore, value: str | None, code: str) -> None:
    add_cohorts(tiny, runs={"c2": {"identity": {"implementation_id": value}}})
    rows = tiny.rows("SELECT code, cohort FROM comparison_reasons WHERE code LIKE 'implementation%'")
    assert rows == [(code, "candidate")]
    summary = "SELECT baseline_implementation_id, candidate_implementation_id FROM comparison_summary"
    assert tiny.rows(summary) == [("git:0001", None)]


def test_a_missing_implementation_id_hides_a_blank_and_a_blank_hides_another_one(tiny: TinyStore) -> None:
    ids = {"b1": "other", "b2": "", "c1": "other", "c2": "", "c3": None}
    add_cohorts(tiny, runs={run: {"identity": {"implementation_id": name}} for run, name in ids.items()})
    assert [code for code in codes(tiny) if code.startswith("impl")] == [
        "implementation_id_empty",
        "implementation_id_missing",
    ]


def pairs(**changes: str | None) -> dict[str, dict[str, Any]]:
    ids = {run_id: f"p{run_id[1]}" for run_id in ALL} | changes
    return {run_id: {"identity": {"pair_id": pair}} for run_id, pair in ids.items()}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"c2": None}, ["pairing_incomplete"]),
        ({"b1": "p0"}, ["pair_ids_duplicated"]),
        ({"c4": "p9"}, ["pair_sets_mismatch"]),
        ({"b1": "p0", "b2": None}, ["pair_ids_duplicated"]),
        ({"b1": None, "b2": "p0"}, ["pairing_incomplete"]),
        ({"c1": None, "b4": "p0"}, ["pair_ids_duplicated"]),
    ],
)
def test_the_first_problem_of_a_pairing_is_its_only_one(
    tiny: TinyStore, changes: dict[str, str | None], expected: list[str]
) -> None:
    add_cohorts(tiny, runs=pairs(**changes))
    assert codes(tiny) == expected
    assert tiny.rows("SELECT paired FROM comparison_summary") == [(not expected,)]
    assert tiny.rows("SELECT count(*) FROM comparison_pairs") == [(0 if expected else 5,)]


def test_a_pair_without_a_measured_span_is_incomplete(tiny: TinyStore) -> None:
    add_cohorts(tiny, runs=pairs() | {"c0": {"identity": {"pair_id": "p0"}, "walls": []}})
    assert codes(tiny)[-1] == "pairing_incomplete"


def test_reasons_come_in_the_order_of_the_protocol(tiny: TinyStore) -> None:
    runs = {
        "b0": {"device": "cuda:0", "contract": {"measurement_scope": "unknown"}, "outcome": "failed",
               "failure_reason": "x", "walls": []},
        "b1": {"identity": {"pair_id": "p"}},
        "c0": {"identity": {"implementation_id": None, "model_id": "m2"}},
    }  # fmt: skip
    members = {"b1": {"receipt_run_id": None, "manifest_sha256": None}, "c1": {"run_id": "b2", "manifest_sha256": "no"}}
    add_cohorts(tiny, (1, 2, 3), (1, 2), runs=runs, members=members)
    assert codes(tiny) == [
        "receipt_count_mismatch",
        "receipt_run_id_mismatch",
        "receipt_digest_invalid",
        "incomplete_capture",
        "not_production_equivalent",
        "unsynchronized_device_region",
        "measured_region_count_invalid",
        "insufficient_runs",
        "duplicate_run_ids",
        "capture_semantics_mismatch",
        "identity_conditions_differ",
        "implementation_id_missing",
        "pairing_incomplete",
    ]


def test_two_comparisons_of_one_store_are_judged_apart(tiny: TinyStore) -> None:
    add_cohorts(tiny)
    tiny.add("cohort_members", {"comparison_id": "d", "cohort": "baseline", "position": 0}, run_id="b0")
    rows = tiny.rows("SELECT comparison_id, comparable FROM comparison_summary ORDER BY comparison_id")
    assert rows == [("c", True), ("d", False)]
