"""The shipped captures, and the example that records them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from recorder_support import counts, document, rows

EXAMPLES = Path(__file__).parents[2] / "examples"
CAPTURES = EXAMPLES / "captures"
TIMED = [f"{name}-{number:02d}" for name in ("eager", "fused") for number in range(1, 9)]
PROFILED = [f"{name}-profile-{number:02d}" for name in ("eager", "fused") for number in (1, 2)]


def load_example() -> Any:
    pytest.importorskip("torch", reason="the torch extra is not installed")
    spec = importlib.util.spec_from_file_location("train_tiny", EXAMPLES / "train_tiny.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_events(folder: Path) -> None:
    """The health rules that a recorder can break: containment, pairing, references."""
    ends = {row["id"]: row["duration_ns"] for row in rows(folder, "spans_end")}
    spans = {row["id"]: (row["start_ns"], row["start_ns"] + ends[row["id"]]) for row in rows(folder, "spans_start")}
    for op in rows(folder, "ops"):
        start, end = spans[op["span_id"]]
        assert start <= op["timestamp_ns"] <= op["timestamp_ns"] + op["duration_ns"] <= end
    live: dict[str, int] = {}
    for event in sorted(rows(folder, "memory_events"), key=lambda row: (row["timestamp_ns"], row["seq"])):
        start, end = spans[event["span_id"]]
        assert start <= event["timestamp_ns"] <= end
        if event["action"] == "alloc":
            assert event["storage_id"] not in live
            live[event["storage_id"]] = event["bytes"]
        else:
            assert live.pop(event["storage_id"]) == event["bytes"]


@pytest.mark.parametrize("name", TIMED + PROFILED)
def test_shipped_captures_are_complete_and_hold_the_event_rules(name: str) -> None:
    folder = CAPTURES / name
    terminal = document(folder, "terminal.json")
    assert (terminal["outcome"], terminal["rows"]) == ("complete", counts(folder))
    assert document(folder, "header.json")["run"]["run_id"] == name
    assert sum(row["measured"] for row in rows(folder, "spans_start")) == 1
    check_events(folder)


def test_shipped_cohorts_differ_in_implementation_alone() -> None:
    runs = [document(CAPTURES / name, "header.json")["run"] for name in TIMED]
    identities = [run["comparison_identity"] for run in runs]
    assert {i.pop("implementation_id") for i in identities} == {"train_tiny:eager", "train_tiny:fused"}
    assert all(identity == identities[0] for identity in identities)
    assert len({(run["capture_step"], run["entrypoint"]) for run in runs}) == 1


def test_only_captures_that_recorded_nothing_but_the_region_claim_production_equivalence() -> None:
    for name in TIMED + PROFILED:
        scope = document(CAPTURES / name, "header.json")["run"]["capture_contract"]["measurement_scope"]
        timed = counts(CAPTURES / name).keys() <= {"spans_start", "spans_end", "tensor_stats"}
        assert scope == ("production_equivalent" if timed else "profiled_work"), name


def test_shipped_implementations_compute_the_same_mathematics() -> None:
    losses = {
        row["mean"]
        for name in TIMED + PROFILED
        for row in rows(CAPTURES / name, "tensor_stats")
        if row["label"] == "loss/total"
    }
    assert max(losses) == pytest.approx(min(losses), rel=1e-5)


def test_shipped_failures_are_what_their_names_say() -> None:
    assert document(CAPTURES / "failed-01", "terminal.json")["outcome"] == "failed"
    assert not (CAPTURES / "killed-01" / "terminal.json").exists()
    with pytest.raises((OSError, ValueError)):
        rows(CAPTURES / "corrupt-01", "ops")


def test_shipped_captures_stay_small() -> None:
    assert sum(path.stat().st_size for path in CAPTURES.rglob("*") if path.is_file()) < 3 * 2**20


@pytest.mark.parametrize("implementation", ["eager", "fused"])
def test_the_example_records_a_sound_capture(tmp_path: Path, implementation: str) -> None:
    load_example().capture(implementation, "run", tmp_path / "c", depth="profile")
    assert document(tmp_path / "c", "terminal.json")["outcome"] == "complete"
    assert len(rows(tmp_path / "c", "gradients")) == 7
    check_events(tmp_path / "c")


def test_the_example_ends_a_failure_with_its_reason(tmp_path: Path) -> None:
    load_example().capture("fused", "run", tmp_path / "c", depth="profile", fail=True)
    assert "diverged" in document(tmp_path / "c", "terminal.json")["reason"]
