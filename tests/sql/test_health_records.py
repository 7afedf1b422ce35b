"""Rules about single records and the spans they name."""

from __future__ import annotations

from typing import Any

import pytest
from health_support import NONE, Add, errors, judged, tree

from support import TinyStore

RECORDS: dict[str, dict[str, Any]] = {
    "ops": {"op_name": "add", "timestamp_ns": 20, "duration_ns": 5},
    "tensors": {"tensor_id": "x"},
    "tensor_stats": {"label": "loss", "rms": 1.0, "abs_max": 1.0, "mean": 1.0},
    "memory_events": {"storage_id": "a", "timestamp_ns": 20, "bytes": 1, "action": "alloc"},
    "device_intervals": {"start_ns": 9000, "duration_ns": 5},
}


def records(plane: str, *rows: dict[str, Any], span_id: str = "s2") -> Any:
    """A build step that adds records of one plane with the defaults above."""

    def step(add: Add) -> None:
        add(plane, *[{"span_id": span_id, **RECORDS[plane], **row} for row in rows])

    return step


@pytest.mark.parametrize("plane", RECORDS)
def test_a_record_that_names_no_span_is_an_error(tiny: TinyStore, plane: str) -> None:
    step = records(plane, {}, {}, span_id="s9")
    assert judged(tiny, "unknown_span", tree, step) == errors("s9", "s9")


@pytest.mark.parametrize("plane", RECORDS)
def test_a_record_inside_a_known_span_breaks_no_rule_about_spans(tiny: TinyStore, plane: str) -> None:
    assert judged(tiny, "unknown_span", tree, records(plane, {})) == NONE
    assert tiny.rows("FROM health_issues WHERE code_order BETWEEN 14 AND 18") == []


def test_a_repeated_span_id_does_not_repeat_the_issues_of_its_records(tiny: TinyStore) -> None:
    second = {"id": "s2", "parent_id": "s1", "start_ns": 10, "duration_ns": 1}
    step = records("ops", {"timestamp_ns": 9})
    found = judged(tiny, "operation_outside_span", tree, lambda add: add("spans", second), step)
    assert found == errors("s2")


def test_an_operation_must_run_inside_its_span_and_may_touch_it(tiny: TinyStore) -> None:
    # s2 is [10, 90]
    times = [(9, 5), (85, 6), (10, 80), (2**63 - 1, 2**63 - 1)]
    step = records("ops", *[{"timestamp_ns": start, "duration_ns": length} for start, length in times])
    assert judged(tiny, "operation_outside_span", tree, step) == errors("s2", "s2", "s2")
    message = "operation add at [9, 14] ns; expected inside its span, [10, 90] ns"
    assert (message,) in tiny.rows("SELECT message FROM health_issues")


def test_a_memory_event_must_lie_in_its_span_whatever_its_action(tiny: TinyStore) -> None:
    events = [(9, "alloc"), (91, "free"), (10, "alloc"), (90, "free")]
    rows = [{"timestamp_ns": time, "action": action} for time, action in events]
    assert judged(tiny, "memory_outside_span", tree, records("memory_events", *rows)) == errors("s2", "s2")
    message = "memory event cpu/a at [91, 91] ns; expected inside its span, [10, 90] ns"
    assert (message,) in tiny.rows("SELECT message FROM health_issues")


@pytest.mark.parametrize(
    ("code", "plane"), [("operation_outside_span", "ops"), ("memory_outside_span", "memory_events")]
)
def test_nothing_is_outside_an_open_span(tiny: TinyStore, code: str, plane: str) -> None:
    opened = {"id": "s3", "parent_id": "s1", "start_ns": 50}
    step = records(plane, {"timestamp_ns": 1}, span_id="s3")
    assert judged(tiny, code, tree, lambda add: add("spans", opened), step) == NONE


def test_a_device_interval_of_no_length_is_an_error_beside_its_unknown_span(tiny: TinyStore) -> None:
    step = records("device_intervals", {"duration_ns": 0}, span_id="s9")
    assert judged(tiny, "empty_device_interval", tree, step) == errors("s9")
    query = "SELECT count(*) FROM health_issues WHERE code = 'unknown_span'"
    assert tiny.rows(query) == [(3,)]


def test_a_device_interval_of_one_nanosecond_is_no_empty_one(tiny: TinyStore) -> None:
    step = records("device_intervals", {"duration_ns": 1})
    assert judged(tiny, "empty_device_interval", tree, step) == NONE


def test_a_checkpoint_must_hold_a_value(tiny: TinyStore) -> None:
    def empty(add: Add) -> None:
        add("device_memory", {"timestamp_ns": 5})

    assert judged(tiny, "empty_device_memory_sample", tree, empty) == errors("cuda:0")


@pytest.mark.parametrize("column", ["used_bytes", "free_bytes", "reserved_bytes", "capacity_bytes"])
def test_any_one_value_fills_a_checkpoint_even_zero(tiny: TinyStore, column: str) -> None:
    def sample(add: Add) -> None:
        add("device_memory", {"timestamp_ns": 5, column: 0})

    assert judged(tiny, "empty_device_memory_sample", tree, sample) == NONE
