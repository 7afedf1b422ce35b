"""The comparison document, its verdicts, cohorts by predicate and cohorts of bundles (protocol 10.1, 10.5)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bundles import publish
from cohorts import BASELINE_NS, CANDIDATE_NS, DIGEST, add_cohorts, add_run

from planewise.pipeline.compare import (
    CohortMember,
    compare_bundles,
    compare_cohorts,
    load_cohorts,
)
from planewise.pipeline.output import to_json
from planewise.pipeline.untrusted import members_where
from planewise.recorder.errors import InputRefused, UsageError, VerificationFailed
from support import TinyStore


def test_the_document_has_the_keys_of_the_protocol_in_order(tiny: TinyStore) -> None:
    document = compare_cohorts(add_cohorts(tiny).con, "c")
    assert list(document) == [
        *("schema", "metric", "inputs", "comparable", "paired", "verdict", "reasons", "baseline_implementation_id"),
        *("candidate_implementation_id", "identity", "baseline", "candidate", "median_delta_ns"),
        *("median_delta_percent", "confidence_interval", "tensor_stats"),
        *("interval", "verdict_rule", "verdict_by_protocol", "min_effect_percent", "runs_needed", "design", "findings"),
    ]
    assert document["schema"] == "planewise/comparison/1"
    assert document["metric"] == "outer_wall_time_ns"
    assert document["inputs"]["verification"] == "verified_bundles"
    assert document["inputs"]["candidate"][4] == {"run_id": "c4", "manifest_sha256": DIGEST}
    assert document["baseline"] == {
        "samples_ns": list(BASELINE_NS),
        "median_ns": 101.0,
        "p95_ns": pytest.approx(102.8),
        "mad_ns": 1.0,
    }
    assert to_json(document)


@pytest.mark.parametrize(
    ("candidate", "verdict"),
    [
        (CANDIDATE_NS, "candidate_faster"),
        ((200, 201, 202, 203, 204), "candidate_slower"),
        (BASELINE_NS, "inconclusive"),
        ((75, 80, 78, 79), "ineligible"),
    ],
)
def test_the_verdict_follows_the_interval(tiny: TinyStore, candidate: tuple[int, ...], verdict: str) -> None:
    document = compare_cohorts(add_cohorts(tiny, candidate=candidate).con, "c")
    assert document["verdict"] == verdict
    assert (document["confidence_interval"] is None) == (verdict == "ineligible")
    assert [reason["code"] for reason in document["reasons"]] == (
        ["insufficient_runs"] if verdict == "ineligible" else []
    )


def test_the_worked_values_of_the_protocol_come_out(tiny: TinyStore) -> None:
    document = compare_cohorts(add_cohorts(tiny).con, "c")
    assert document["confidence_interval"] == {"level": 0.95, "lower_delta_ns": -26.0, "upper_delta_ns": -20.0}
    assert document["median_delta_ns"] == -23.0


def test_full_pairs_are_drawn_as_pairs(tiny: TinyStore) -> None:
    runs = {f"{c}{n}": {"identity": {"pair_id": f"p{n}"}} for c in "bc" for n in range(5)}
    document = compare_cohorts(add_cohorts(tiny, runs=runs).con, "c")
    assert document["paired"]
    assert document["confidence_interval"] == {"level": 0.95, "lower_delta_ns": -26.0, "upper_delta_ns": -21.0}


def test_an_unverified_comparison_lists_no_inputs_and_is_ineligible(tiny: TinyStore) -> None:
    document = compare_cohorts(add_cohorts(tiny, members={"b0": {"verified": False}}).con, "c")
    assert document["inputs"] == {"verification": "unverified_traces", "baseline": [], "candidate": []}
    assert document["verdict"] == "ineligible"


def test_two_empty_cohorts_still_have_a_document(tiny: TinyStore) -> None:
    load_cohorts(tiny.con, "c", baseline=[], candidate=[])
    document = compare_cohorts(tiny.con, "c")
    assert document["reasons"][1]["code"] == "no_runs"
    assert document["tensor_stats"] == {
        "baseline_runs": 0,
        "candidate_runs": 0,
        "matched": [],
        "unmatched_a": [],
        "unmatched_b": [],
    }


def test_tensor_stats_name_their_rows_as_the_protocol_does(tiny: TinyStore) -> None:
    add_cohorts(tiny)
    for run_id, label, rms in (("b0", "loss", 2.0), ("c0", "loss", 1.0), ("b1", "only-a", 1.0), ("c1", "only-b", 1.0)):
        tiny.add("tensor_stats", {"label": label, "rms": rms, "abs_max": 1.0, "mean": 0.0}, run_id=run_id)
    assert compare_cohorts(tiny.con, "c")["tensor_stats"] == {
        "baseline_runs": 5,
        "candidate_runs": 5,
        "matched": [
            {
                "label": "loss",
                "rms_a": 2.0,
                "rms_b": 1.0,
                "rms_ratio": 0.5,
                "abs_max_ratio": 1.0,
                "non_finite_a": 0,
                "non_finite_b": 0,
                "samples_a": 1,
                "samples_b": 1,
                "runs_a": 1,
                "runs_b": 1,
            }
        ],
        "unmatched_a": ["only-a"],
        "unmatched_b": ["only-b"],
    }


def test_an_unknown_comparison_is_wrong_use(tiny: TinyStore) -> None:
    with pytest.raises(UsageError, match="no comparison named 'nope'"):
        compare_cohorts(tiny.con, "nope")


def test_loading_a_comparison_again_replaces_it(tiny: TinyStore) -> None:
    for run_id in ("b0", "c0"):
        add_run(tiny, run_id, 5)
    for baseline in ("b0", "c0"):
        load_cohorts(tiny.con, "c", baseline=[CohortMember(baseline)], candidate=[])
    assert tiny.rows("SELECT run_id FROM cohort_members") == [("c0",)]
    assert tiny.rows("SELECT count(*) FROM comparisons") == [(1,)]


def test_loading_an_unknown_run_is_refused_and_nothing_is_loaded(tiny: TinyStore) -> None:
    with pytest.raises(InputRefused, match="no such run: 'ghost'"):
        load_cohorts(tiny.con, "c", baseline=[CohortMember("ghost")], candidate=[])
    assert tiny.rows("SELECT count(*) FROM cohort_members") == [(0,)]


def test_a_predicate_selects_run_ids_in_ascending_order(tiny: TinyStore) -> None:
    add_cohorts(tiny, runs={"b3": {"identity": {"implementation_id": "git:2"}}})
    assert members_where(tiny.con, "comparison_identity.implementation_id = 'git:2'").complete == ("b3",)
    assert members_where(tiny.con, "run_id IN (SELECT run_id FROM run_health WHERE status = 'valid')").complete[:2] == (
        "b0",
        "b1",
    )
    assert members_where(tiny.con, "false").complete == ()


@pytest.mark.parametrize(
    "where",
    [
        *("", "nosuch = 1", "true; DROP TABLE runs", "true) UNION ALL FROM runs --", "true ORDER BY 1"),
        *("run_id = 'a', true", "SELECT 1", "error('boom')", "(DELETE FROM runs)"),
    ],
)
def test_what_is_no_predicate_is_refused_and_changes_nothing(tiny: TinyStore, where: str) -> None:
    add_run(tiny, "r", 5)
    with pytest.raises(UsageError, match="the predicate cannot be used"):
        members_where(tiny.con, where)
    assert tiny.rows("SELECT count(*) FROM runs") == [(1,)]


@pytest.fixture
def bundles(tiny: TinyStore, tmp_path: Path) -> dict[str, Path]:
    """Ten published runs that compare, in folders with wildcards and a Hive-like name."""
    add_cohorts(tiny)
    return {run: publish(tiny, run, tmp_path / "x=[1]" / run) for c in "bc" for run in (f"{c}{n}" for n in range(5))}


def test_bundles_are_compared_in_the_order_they_are_given(bundles: dict[str, Path]) -> None:
    cohorts = [[bundles[f"{cohort}{n}"] for n in range(5)] for cohort in "bc"]
    document = compare_bundles(*cohorts)
    assert document["verdict"] == "candidate_faster"
    assert document["baseline"]["samples_ns"] == list(BASELINE_NS)
    digests = [len(item["manifest_sha256"]) for item in document["inputs"]["baseline"]]
    assert digests == [64] * 5
    assert compare_bundles(cohorts[0][::-1], cohorts[1])["baseline"]["samples_ns"] == list(BASELINE_NS)[::-1]


def test_a_bundle_named_twice_or_copied_is_one_run_used_twice(bundles: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(bundles["b0"], tmp_path / "copy")
    baseline = [bundles["b0"], copy, *[bundles[f"b{n}"] for n in range(1, 5)]]
    document = compare_bundles(baseline, [bundles[f"c{n}"] for n in range(5)])
    assert [reason["code"] for reason in document["reasons"]] == ["duplicate_run_ids"]
    assert document["baseline"]["samples_ns"] == [100, 100, 102, 99, 101, 103]


def test_a_tampered_bundle_ends_the_comparison(bundles: dict[str, Path]) -> None:
    (bundles["c2"] / "planes" / "spans.parquet").write_bytes(b"other")
    with pytest.raises(VerificationFailed):
        compare_bundles([bundles["b0"]], [bundles["c2"]])


def test_two_different_bundles_of_one_run_id_are_refused(bundles: dict[str, Path], tmp_path: Path) -> None:
    other = TinyStore()
    add_run(other, "b0", 99_999)
    with pytest.raises(InputRefused, match="holds run 'b0'"):
        compare_bundles([bundles["b0"]], [publish(other, "b0", tmp_path / "other")])
