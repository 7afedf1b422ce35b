"""Rules about a run as a whole: provenance, outcome, span counts, absent planes, and the verdict."""

from __future__ import annotations

from typing import Any

import pytest
from health_support import NONE, errors, judged, tree, warnings

from support import IDENTITY, TinyStore, emptied

NO_BREAK_SPACE, FILE_SEPARATOR = "\u00a0", "\u001c"


@pytest.mark.parametrize(
    ("run", "found"),
    [
        ({"correlation_id": " \t"}, "correlation_id is blank; expected a text"),
        ({"entrypoint": NO_BREAK_SPACE}, "entrypoint is blank; expected a text"),
        ({"phase": "test"}, "phase is test; expected train or infer"),
        ({"timestamp": ""}, "timestamp is blank; expected a text"),
        ({"capture_step": 0, "warmup_steps": 0}, "capture_step is 0; expected more than 0"),
        ({"capture_step": 3, "warmup_steps": 3}, "warmup_steps is 3; expected less than capture_step, 3"),
        ({"capture_step": 3, "warmup_steps": -1}, "warmup_steps is -1; expected 0 or more"),
        ({"device": ""}, "device is blank; expected a text"),
        ({"timing_mode": "gpu"}, "timing_mode is gpu; expected host or device_synchronized"),
        ({"entrypoint": "", "device": ""}, "entrypoint is blank; expected a text"),
    ],
)
def test_provenance_names_the_first_broken_rule(tiny: TinyStore, run: dict[str, Any], found: str) -> None:
    assert judged(tiny, "run_provenance_invalid", tree, **run) == errors(None)
    messages = tiny.rows("SELECT DISTINCT message FROM health_issues WHERE code = 'run_provenance_invalid'")
    assert messages == [(found,)]


def test_provenance_refuses_a_blank_run_id(tiny: TinyStore) -> None:
    tiny.run("\u3000")
    query = "SELECT message FROM health_issues WHERE code = 'run_provenance_invalid'"
    assert tiny.rows(query) == [("run_id is blank; expected a text",)]


@pytest.mark.parametrize(
    ("members", "found"),
    [
        *[({name: " "}, name) for name in ("workload_id", "model_id", "config_id", "data_id", "seed_policy")],
        *[({name: ""}, name) for name in ("precision", "device_state", "implementation_id", "pair_id")],
        ({"physical_batch": 0}, "physical_batch"),
        ({"accumulation_steps": 0}, "accumulation_steps"),
        ({"implementation_id": "", "device_state": ""}, "device_state"),
        ({"physical_batch": 0, "pair_id": ""}, "pair_id"),
    ],
)
def test_an_invalid_comparison_identity_breaks_provenance(tiny: TinyStore, members: dict[str, Any], found: str) -> None:
    tiny.run(comparison_identity={**IDENTITY, **members})
    ((message,),) = tiny.rows("SELECT message FROM health_issues WHERE code = 'run_provenance_invalid'")
    assert message.startswith(f"comparison_identity.{found} is ")


def test_provenance_accepts_texts_that_only_look_blank_and_absent_optional_parts(tiny: TinyStore) -> None:
    identity = {**IDENTITY, "implementation_id": None, "pair_id": None}
    run: dict[str, Any] = {
        "entrypoint": FILE_SEPARATOR,
        "warmup_steps": 2,
        "capture_step": 3,
        "comparison_identity": identity,
    }
    assert judged(tiny, "run_provenance_invalid", tree, **run) == NONE


@pytest.mark.parametrize(
    ("outcome", "reason", "code"),
    [
        ("complete", "", "complete_with_failure_reason"),
        ("complete", "oom", "complete_with_failure_reason"),
        ("failed", None, "failed_without_reason"),
        ("failed", " \n", "failed_without_reason"),
        (None, None, "terminal_missing"),
    ],
)
def test_an_outcome_and_its_reason_must_agree(tiny: TinyStore, outcome: str, reason: str, code: str) -> None:
    tiny.run(outcome=outcome, failure_reason=reason)
    query = "SELECT code, severity FROM health_issues WHERE code_order BETWEEN 2 AND 5"
    assert tiny.rows(query) == [(code, "error")]


def test_an_agreeing_outcome_raises_nothing_about_its_reason(tiny: TinyStore) -> None:
    tiny.run("a").run("b", outcome="failed", failure_reason="oom")
    assert tiny.rows("FROM health_issues WHERE code_order BETWEEN 2 AND 5") == []


def test_a_failed_capture_warns_with_its_reason_and_an_interrupted_one_does_not(tiny: TinyStore) -> None:
    assert judged(tiny, "capture_failed", tree) == [[], [("warning", None)], []]
    assert tiny.rows("SELECT message FROM health_issues WHERE code = 'capture_failed'") == [("boom",)]


@pytest.mark.parametrize(
    ("plane", "row"),
    [
        ("spans", {"id": "s", "start_ns": 60, "duration_ns": 41, "end_seq": 0}),
        ("spans", {"id": "s", "start_ns": 101}),
        ("ops", {"span_id": "s", "op_name": "add", "timestamp_ns": 100, "duration_ns": 1}),
        ("ops", {"span_id": "s", "op_name": "add", "timestamp_ns": 2**63 - 1, "duration_ns": 2**63 - 1}),
        ("memory_events", {"storage_id": "a", "span_id": "s", "timestamp_ns": 101, "bytes": 1, "action": "alloc"}),
        ("device_memory", {"timestamp_ns": 101, "used_bytes": 1}),
    ],
)
def test_host_evidence_after_the_terminal_record_is_an_error(tiny: TinyStore, plane: str, row: dict[str, Any]) -> None:
    tiny.run("early", terminal_timestamp_ns=100).add(plane, row, run_id="early")
    latest = min(2**63 - 1, row.get("start_ns", row.get("timestamp_ns", 0)) + (row.get("duration_ns") or 0))
    tiny.run("equal", terminal_timestamp_ns=latest)
    if latest < 2**63 - 1:
        tiny.add(plane, row, run_id="equal")
    query = "SELECT run_id, severity FROM health_issues WHERE code = 'terminal_precedes_evidence'"
    assert tiny.rows(query) == [("early", "error")]


def test_evidence_on_another_clock_never_precedes_the_terminal_record(tiny: TinyStore) -> None:
    tiny.run(terminal_timestamp_ns=5)
    tiny.add("device_intervals", {"span_id": "s", "start_ns": 900, "duration_ns": 10})
    assert tiny.rows("FROM health_issues WHERE code = 'terminal_precedes_evidence'") == []


def test_root_count_asks_for_exactly_one_span_without_a_parent(tiny: TinyStore) -> None:
    assert judged(tiny, "root_count") == errors(None)
    other = emptied()
    assert judged(other, "root_count", tree) == NONE
    other.add("spans", {"id": "s9"}, run_id="complete")
    assert other.rows("SELECT message FROM health_issues WHERE code = 'root_count'") == [
        ("2 spans without a parent; expected 1",)
    ]


def test_measurement_count_is_judged_in_complete_captures_only(tiny: TinyStore) -> None:
    extra = {"id": "s3", "parent_id": "s1", "measured": True}
    found = judged(tiny, "measurement_count", tree, lambda add: add("spans", extra))
    assert found == [[("error", None)], [], []]


def test_one_open_measured_span_is_a_measurement(tiny: TinyStore) -> None:
    assert judged(tiny, "measurement_count", lambda add: add("spans", {"id": "s1", "measured": True})) == NONE


ABSENT: dict[str, tuple[str, dict[str, Any]]] = {
    "operations_absent": ("ops", {"span_id": "s1", "op_name": "add", "duration_ns": 1}),
    "tensors_absent": ("tensors", {"span_id": "s1", "tensor_id": "x"}),
    "logical_memory_absent": (
        "memory_events",
        {"span_id": "s1", "storage_id": "a", "timestamp_ns": 1, "bytes": 1, "action": "alloc"},
    ),
    "physical_memory_absent": ("device_memory", {"timestamp_ns": 1, "used_bytes": 1}),
    "device_timing_absent": ("device_intervals", {"span_id": "s1", "start_ns": 0, "duration_ns": 1}),
    "gradients_absent": ("gradients", {"event_id": "g", "root": "r", "key": "k", "state": "missing"}),
    "forward_absent": ("spans", {"id": "f", "parent_id": "s1", "step": "forward"}),
    "backward_absent": ("spans", {"id": "b", "parent_id": "s1", "step": "backward"}),
    "optimizer_absent": ("spans", {"id": "o", "parent_id": "s1", "step": "optimizer"}),
}
TRAINING_ONLY = {"gradients_absent", "forward_absent", "backward_absent", "optimizer_absent"}


@pytest.mark.parametrize("code", ABSENT)
def test_an_absent_plane_is_a_warning_until_one_record_exists(tiny: TinyStore, code: str) -> None:
    assert judged(tiny, code, tree, phase="train") == warnings(None)
    assert judged(emptied(), code, tree, lambda add: add(*ABSENT[code]), phase="train") == NONE


@pytest.mark.parametrize("code", ABSENT)
def test_training_evidence_is_not_missed_in_inference(tiny: TinyStore, code: str) -> None:
    expected = NONE if code in TRAINING_ONLY else warnings(None)
    assert judged(tiny, code, tree, phase="infer") == expected


def test_run_health_tells_valid_failed_and_invalid_apart(tiny: TinyStore) -> None:
    assert judged(tiny, "root_count", tree) == NONE
    tiny.run("broken")
    assert tiny.rows("FROM run_health ORDER BY run_id") == [
        ("broken", "complete", False, True, 2, 5, "invalid"),
        ("complete", "complete", True, True, 0, 5, "valid"),
        ("failed", "failed", True, False, 0, 6, "failed"),
        ("interrupted", "interrupted", False, False, 1, 5, "invalid"),
    ]


def test_a_run_without_issues_still_has_its_row(tiny: TinyStore) -> None:
    tiny.run()
    tree(tiny.add)
    for plane, row in ABSENT.values():
        if plane != "memory_events":
            tiny.add(plane, {**row, **({"duration_ns": 1, "end_seq": 9} if plane == "spans" else {})})
    for action in ("alloc", "free"):
        event = {"span_id": "s1", "storage_id": "a", "timestamp_ns": 1, "bytes": 1, "action": action}
        tiny.add("memory_events", event)
    assert tiny.rows("FROM health_issues") == []
    assert tiny.rows("FROM run_health") == [("r1", "complete", True, True, 0, 0, "valid")]
