"""Many labels at once: adjusted p values, verdicts of a family, metrics and what must hold before they are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cohorts import add_cohorts
from hypothesis import given, settings
from hypothesis import strategies as st

from planewise.pipeline.cli import run
from planewise.pipeline.families import FamilyRules, compare_metric
from planewise.pipeline.judgement import Samples
from planewise.pipeline.metrics import METRICS
from planewise.pipeline.multiple import adjusted, family, fewest_runs
from support import TinyStore

ROOT = Path(__file__).parents[2]
LOW, HIGH = [1.0, 2, 3, 4, 5, 6, 7, 8], [11.0, 12, 13, 14, 15, 16, 17, 18]


def test_p_values_are_adjusted_by_hand() -> None:
    # Holm: 4 * 0.01, 3 * 0.02, then the larger so far; Benjamini-Hochberg: 4/1, 4/2, 4/3, 4/4 times, from the end.
    holm, bh = adjusted([0.04, 0.01, 0.5, 0.02])
    assert holm.tolist() == pytest.approx([0.08, 0.04, 0.5, 0.06])
    assert bh.tolist() == pytest.approx([0.04 * 4 / 3, 0.04, 0.5, 0.04])
    assert [values.tolist() for values in adjusted([])] == [[], []]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_p_values_are_those_of_their_definitions(p: list[float]) -> None:
    holm, bh = adjusted(p)
    order = sorted(range(len(p)), key=lambda at: (p[at], at))
    for rank, at in enumerate(order):
        before = [(len(p) - r) * p[order[r]] for r in range(rank + 1)]
        after = [len(p) / (r + 1) * p[order[r]] for r in range(rank, len(p))]
        assert holm[at] == pytest.approx(min(1, max(before)))
        assert bh[at] == pytest.approx(min(1, *after))
        assert holm[at] >= bh[at] >= p[at] - 1e-12


def test_one_changed_label_among_many_is_found_and_no_other() -> None:
    rng = np.random.default_rng(7)
    labels = [(f"same {n}", Samples(list(rng.normal(0, 1, 8)), list(rng.normal(0, 1, 8)))) for n in range(50)]
    rows = family([*labels, ("slower", Samples(LOW, HIGH))])
    assert [row["label"] for row in rows if row["verdict"] != "inconclusive"] == ["slower"]
    assert (rows[0]["verdict"], rows[0]["shift"]) == ("candidate_higher", 10.0)


def test_too_few_runs_stay_open() -> None:
    (row,) = family([("few", Samples([1.0, 2], [8.0, 9]))])
    assert (row["verdict"], row["shift"], row["baseline_median"]) == ("inconclusive", None, 1.5)


def test_how_many_runs_a_family_needs_is_counted() -> None:
    # 2 / C(2n, n) a label: 2 / 70 at four runs, 2 / 252, 2 / 924; 2 / 2^n for pairs.
    assert fewest_runs(1, paired=False) == 4
    assert fewest_runs(7, paired=False) == 6
    assert fewest_runs(1000, paired=False) == 9  # 2 / 48,620
    assert fewest_runs(10, paired=True) == 9  # 10 * 2 / 512


def cohorts(tiny: TinyStore, **contract: str) -> TinyStore:
    names = [f"{c}{n}" for c in "bc" for n in range(5)]
    runs = {name: {"contract": {"measurement_scope": "profiled_work", **contract}} for name in names}
    add_cohorts(tiny, runs=runs)
    for position, name in enumerate(names):
        slower = 40 if name.startswith("c") else 0
        span = {"id": "x", "parent_id": "s0", "name": "attention", "start_ns": 1, "duration_ns": 10 + position + slower}
        tiny.add("spans", span, run_id=name)
        memory = {"storage_id": "a", "bytes": 100 + position, "action": "alloc", "timestamp_ns": 1, "span_id": "s0"}
        tiny.add("memory_events", memory, run_id=name)
    return tiny


def test_host_time_is_compared_by_label_whatever_the_scope(tiny: TinyStore) -> None:
    document = compare_metric(cohorts(tiny).con, "c", "host_self_time")
    assert document["reasons"] == []
    verdicts = {row["label"]: row["verdict"] for row in document["rows"]}
    assert verdicts["attention"] == "candidate_higher"
    assert document["only_in"] == {"baseline": [], "candidate": []}
    chosen = compare_metric(tiny.con, "c", "host_self_time", FamilyRules("att"))
    assert [row["label"] for row in chosen["rows"]] == ["attention"]


def test_peaks_need_a_complete_plane(tiny: TinyStore) -> None:
    document = compare_metric(cohorts(tiny, logical_memory="partial").con, "c", "live_bytes_peak")
    assert {reason["code"] for reason in document["reasons"]} == {"logical_memory_incomplete"}
    assert len(document["reasons"]) == 10
    assert {row["verdict"] for row in document["rows"]} == {"ineligible"}


def test_peaks_of_complete_planes_are_compared(tiny: TinyStore) -> None:
    document = compare_metric(cohorts(tiny, logical_memory="complete").con, "c", "live_bytes_peak")
    assert document["reasons"] == []
    assert {row["label"]: row["shift"] for row in document["rows"]} == {"all devices": 5.0, "cpu": 5.0}


def test_device_time_needs_a_synchronised_region(tiny: TinyStore) -> None:
    names = [f"{c}{n}" for c in "bc" for n in range(5)]
    contract = {"device_timing": "complete"}
    runs = {name: {"device": "cuda:0", "contract": contract} for name in names}
    add_cohorts(tiny, runs=runs)
    codes = {reason["code"] for reason in compare_metric(tiny.con, "c", "device_busy")["reasons"]}
    assert codes == {"unsynchronized_device_region"}


def test_a_label_of_one_cohort_alone_is_named_and_not_compared(tiny: TinyStore) -> None:
    cohorts(tiny).add("tensor_stats", {"label": "loss", "rms": 1.0, "abs_max": 1.0, "mean": 0.0}, run_id="b0")
    document = compare_metric(tiny.con, "c", "tensor_rms")
    assert (document["rows"], document["only_in"]) == ([], {"baseline": ["loss"], "candidate": []})


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_every_metric_answers_on_runs_that_have_none_of_it(tiny: TinyStore, metric: str) -> None:
    assert compare_metric(add_cohorts(tiny).con, "c", metric)["metric"] == metric


def test_the_command_compares_labels_of_the_shipped_captures(tmp_path: Path, capsys: Any) -> None:
    store = str(tmp_path / "store")
    for words in (["ingest", str(ROOT / "examples" / "captures")], ["qualify"], ["publish"]):
        run([*words, "--store", store])
    where = "comparison_identity.implementation_id = 'train_tiny:{}' AND run_id NOT LIKE '%profile%'"
    cohort = ["--baseline-where", where.format("eager"), "--candidate-where", where.format("fused")]
    capsys.readouterr()
    assert run(["compare", "--store", store, *cohort, "--metric", "host_self_time", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {row["label"]: row["verdict"] for row in document["rows"]}["train_tiny/update-000006"] == "candidate_lower"
    summary = tmp_path / "summary.md"
    turned = ["--baseline-where", where.format("fused"), "--candidate-where", where.format("eager")]
    assert run(["compare", "--store", store, *turned, "--fail-on", "slower", "--summary-file", str(summary)]) == 1
    assert "| **slower** |" in summary.read_text()
    assert run(["compare", "--store", store, *turned, "--min-effect", "5"]) == 2
