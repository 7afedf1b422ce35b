"""Recording calls: what each writes, and what each refuses at the call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from recorder_support import TRAINING, counts, values

from planewise import ContractError, EdgeKind, GradientState, MemoryCategory, RecordingError, SpanGuard, TraceSession

OP: dict[str, Any] = {"shape": [2, 3], "dtype": "f32", "device": "cpu", "duration_ns": 1, "input_dense_bytes": 8}
STORAGE: dict[str, Any] = {"device": "cpu", "bytes": 512, "dtype": "f32"}
STATS: dict[str, Any] = {
    "shape": [2],
    "dtype": "f32",
    "elements": 2,
    "non_finite": 0,
    "rms": 1.0,
    "abs_max": 1.0,
    "mean": 0.0,
}
INTERVAL: dict[str, Any] = {
    "device": "cuda:0",
    "stream_id": "7",
    "clock_id": "c",
    "backend": "cuda-event",
    "start_ns": 5,
    "duration_ns": 2,
}


class Recording:
    """An open session with one span, and what its folder holds once it has finished."""

    def __init__(self, folder: Path) -> None:
        self.session = TraceSession.open(folder, TRAINING, run_id="r")
        self.span: SpanGuard = self.session.begin_span("span")
        self.id = self.span.id

    def of(self, family: str) -> list[dict[str, Any]]:
        if self.session.is_open:
            self.span.close()
            self.session.finish()
        return values(self.session.path, family)


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    recording = Recording(tmp_path / "c")
    yield recording
    recording.of("ops")


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(ContractError) as caught:
        call()
    return caught.value.code


def test_op_without_a_time_ends_now_and_derives_its_output_footprint(recording: Recording) -> None:
    recording.session.record_op(recording.id, "matmul", **OP, inputs=["a", "b"], output="c")
    now = recording.session.elapsed_ns()
    (op,) = recording.of("ops")
    assert 0 < op.pop("timestamp_ns") < now
    assert op == {
        "span_id": "s2",
        "op_name": "matmul",
        "inputs": ["a", "b"],
        "output": "c",
        "shape": [2, 3],
        "dtype": "f32",
        "device": "cpu",
        "duration_ns": 1,
        "output_dense_bytes": 24,
        "input_dense_bytes": 8,
    }


def test_op_keeps_an_explicit_time_and_footprint_and_an_unknown_dtype_has_none(recording: Recording) -> None:
    recording.session.record_op(recording.id, "a", **{**OP, "output_dense_bytes": 5, "timestamp_ns": 7})
    recording.session.record_op(recording.id, "b", **{**OP, "dtype": "q4", "timestamp_ns": 0})
    first, second = recording.of("ops")
    assert (first["timestamp_ns"], first["output_dense_bytes"]) == (7, 5)
    assert (second["output_dense_bytes"], second["output"], second["timestamp_ns"] > 0) == (None, None, True)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"duration_ns": 2**63}, "integer_out_of_range"),
        ({"duration_ns": -1}, "integer_out_of_range"),
        ({"duration_ns": 1.5}, "not_an_integer"),
        ({"duration_ns": True}, "not_an_integer"),
        ({"timestamp_ns": 2**63 - 1}, "integer_out_of_range"),
        ({"timestamp_ns": 10**17}, "after_now"),
        ({"duration_ns": 10**17}, "before_session"),
        ({"shape": [2**40, 2**40, 0]}, "shape_overflow"),
        ({"shape": [-1]}, "integer_out_of_range"),
        ({"shape": "12"}, "not_an_integer"),
        ({"inputs": "ab"}, "not_a_list"),
        ({"dtype": None}, "not_text"),
        ({"device": "\ud800"}, "not_utf8"),
        ({"input_dense_bytes": 2**63}, "integer_out_of_range"),
    ],
)
def test_op_refuses_at_the_call_what_no_reader_could_take(
    recording: Recording, change: dict[str, Any], code: str
) -> None:
    assert refused(lambda: recording.session.record_op(recording.id, "a", **{**OP, **change})) == code
    assert recording.of("ops") == []


def test_integers_of_other_libraries_pass(recording: Recording) -> None:
    numpy = pytest.importorskip("numpy")
    recording.session.record_op(
        recording.id, "a", **{**OP, "shape": numpy.array([4, 5]), "duration_ns": numpy.int64(3)}
    )
    (op,) = recording.of("ops")
    assert (op["shape"], op["duration_ns"]) == ([4, 5], 3)


def test_tensor_derives_its_footprint_and_an_absent_label_stays_absent(recording: Recording) -> None:
    tensor: dict[str, Any] = {"shape": [4], "dtype": "BF16 ", "device": "cpu"}
    recording.session.record_tensor(recording.id, "t1", **tensor, category=MemoryCategory.ACTIVATION, label="x")
    recording.session.record_tensor(recording.id, "t2", **tensor, requires_grad=True, dense_bytes=9)
    first, second = recording.of("tensors")
    assert (first["dense_bytes"], first["label"], first["category"], first["requires_grad"]) == (
        8,
        "x",
        "activation",
        False,
    )
    assert (second["dense_bytes"], second["label"], second["category"], second["requires_grad"]) == (
        9,
        None,
        "other",
        True,
    )


def test_tensor_refuses_an_unknown_category(recording: Recording) -> None:
    call = lambda: recording.session.record_tensor(  # noqa: E731
        recording.id,
        "t",
        shape=(),
        dtype="f32",
        device="cpu",
        category="weights",  # type: ignore[arg-type]
    )
    assert refused(call) == "unknown_category"


def test_stats_write_aggregates_that_are_not_finite_as_zero_beside_their_count(recording: Recording) -> None:
    change = {"non_finite": 1, "rms": math.nan, "abs_max": math.inf, "mean": 2.0}
    recording.session.record_tensor_stats_values(recording.id, "x", **{**STATS, **change})
    (row,) = recording.of("tensor_stats")
    assert [row[name] for name in ("non_finite", "rms", "abs_max", "mean")] == [1, 0.0, 0.0, 2.0]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"elements": 3}, "elements_mismatch"),
        ({"non_finite": 3}, "non_finite_exceeds"),
        ({"rms": math.nan}, "aggregate_not_finite"),
        ({"abs_max": -1.0}, "aggregate_negative"),
        ({"mean": "1"}, "not_a_number"),
        ({"label": " "}, "blank_label"),
    ],
)
def test_stats_refuse_what_a_reader_would(recording: Recording, change: dict[str, Any], code: str) -> None:
    arguments = {"label": "x", **STATS, **change}
    assert refused(lambda: recording.session.record_tensor_stats_values(recording.id, **arguments)) == code


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (-2.5, [0, 2.5, 2.5, -2.5]),
        (math.nan, [1, 0.0, 0.0, 0.0]),
        (-math.inf, [1, 0.0, 0.0, 0.0]),
        (3, [0, 3.0, 3.0, 3.0]),
    ],
)
def test_scalar_is_a_statistic_of_one_element(recording: Recording, value: float, expected: list[float]) -> None:
    recording.session.record_scalar(recording.id, "loss", value)
    (row,) = recording.of("tensor_stats")
    assert [row[name] for name in ("non_finite", "rms", "abs_max", "mean")] == expected
    assert (row["shape"], row["dtype"], row["elements"]) == ([], "f64", 1)


def test_memory_events_default_to_now_and_keep_actual_bytes(recording: Recording) -> None:
    recording.session.record_memory_alloc(recording.id, "st", "t", **STORAGE, op_name="mm", shape=[4], timestamp_ns=3)
    recording.session.record_memory_free(recording.id, "st", "t", **STORAGE)
    alloc, free = recording.of("memory_events")
    assert (alloc["timestamp_ns"], alloc["action"], alloc["bytes"], alloc["op_name"]) == (3, "alloc", 512, "mm")
    assert (free["timestamp_ns"] > 3, free["action"], free["op_name"], free["category"]) == (
        True,
        "free",
        None,
        "other",
    )


def test_memory_event_after_now_is_refused(recording: Recording) -> None:
    call = lambda: recording.session.record_memory_free(recording.id, "s", "t", **STORAGE, timestamp_ns=2**62)  # noqa: E731
    assert refused(call) == "after_now"


def test_device_memory_keeps_unobserved_values_absent_and_needs_one(recording: Recording) -> None:
    recording.session.record_device_memory("cuda:0", used_bytes=0, timestamp_ns=2)
    assert refused(lambda: recording.session.record_device_memory("cuda:0")) == "empty_checkpoint"
    assert recording.of("device_memory") == [
        {
            "timestamp_ns": 2,
            "device": "cuda:0",
            "used_bytes": 0,
            "free_bytes": None,
            "reserved_bytes": None,
            "capacity_bytes": None,
        }
    ]


def test_device_interval_is_positive_and_fits(recording: Recording) -> None:
    record = recording.session.record_device_interval
    assert refused(lambda: record(recording.id, **{**INTERVAL, "duration_ns": 0})) == "zero_duration_ns"
    assert refused(lambda: record(recording.id, **{**INTERVAL, "start_ns": 2**63 - 2})) == "integer_out_of_range"
    record(recording.id, **{**INTERVAL, "start_ns": 2**63 - 3}, name="kernel")
    (row,) = recording.of("device_intervals")
    assert (row["start_ns"], row["duration_ns"], row["name"], row["correlation_id"]) == (2**63 - 3, 2, "kernel", None)


@pytest.mark.parametrize(
    ("state", "norm", "accepted"),
    [
        ("present", 0.5, True),
        ("present", 0.0, False),
        ("present", None, False),
        ("present", math.inf, False),
        ("zero", 0.0, True),
        ("zero", -0.0, False),
        ("zero", 1.0, False),
        ("missing", None, True),
        ("missing", 0.0, False),
        ("non_finite", None, True),
        ("non_finite", math.nan, False),
    ],
)
def test_gradient_state_decides_its_norm(recording: Recording, state: str, norm: float | None, accepted: bool) -> None:
    record = lambda: recording.session.record_gradient("vb", "w", GradientState(state), norm)  # noqa: E731
    if accepted:
        record()
        assert recording.of("gradients") == [
            {"event_id": "gradient-1", "root": "vb", "key": "w", "state": state, "norm": norm}
        ]
    else:
        assert refused(record) == "state_norm_inconsistent"


def test_gradient_events_count_from_one_and_need_names(recording: Recording) -> None:
    for key in ("a", "b"):
        recording.session.record_gradient("vb", key, GradientState.MISSING)
    assert refused(lambda: recording.session.record_gradient(" ", "a", GradientState.MISSING)) == "blank_root"
    assert refused(lambda: recording.session.record_gradient("vb", "", GradientState.MISSING)) == "blank_key"
    assert [row["event_id"] for row in recording.of("gradients")] == ["gradient-1", "gradient-2"]


def test_edges_of_both_kinds_fill_only_their_own_columns(recording: Recording) -> None:
    session = recording.session
    session.record_call_edge(session.root_id, recording.id, 4)
    session.record_edge(EdgeKind.CALL, session.root_id, recording.id, host_duration_ns=5)
    session.record_edge(EdgeKind.DATA, "a", "b")
    assert [list(row.values()) for row in recording.of("edges")] == [
        ["call", "s1", "s2", 4, None, None],
        ["call", "s1", "s2", 5, None, None],
        ["data", None, None, None, "a", "b"],
    ]


def test_edges_refuse_empty_tensors_and_durations_of_data(recording: Recording) -> None:
    session = recording.session
    assert refused(lambda: session.record_data_edge("a", "")) == "empty_data_edge_endpoint"
    assert refused(lambda: session.record_edge(EdgeKind.DATA, "a", "b", host_duration_ns=1)) == "data_edge_duration"
    assert refused(lambda: session.record_edge(EdgeKind.CALL, session.root_id, recording.id)) == "not_an_integer"


def test_engine_events_keep_the_rest_as_json(recording: Recording) -> None:
    session = recording.session
    session.record_engine_event("request", request_id="q", start_ns=1, attributes={"tokens": 2**60})
    session.record_engine_event("stage", event_id="mine")
    assert refused(lambda: session.record_engine_event("stage", attributes={"x": math.nan})) == "not_json"
    assert (
        refused(lambda: session.record_engine_event("stage", start_ns=2**62, duration_ns=2**62))
        == "integer_out_of_range"
    )
    first, second = recording.of("engine_events")
    assert (first["event_id"], first["attributes"], first["start_ns"]) == (
        "engine-1",
        '{"tokens": 1152921504606846976}',
        1,
    )
    assert (second["event_id"], second["attributes"], second["clock_id"]) == ("mine", None, None)


def test_attachments_are_copied_with_size_and_digest(recording: Recording, tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_bytes(b"abc")
    recording.session.record_attachment(tmp_path / "trace.json", title="raw trace")
    (row,) = recording.of("attachments")
    assert (row["path"], row["title"], row["bytes"]) == ("attachments/trace.json", "raw trace", 3)
    assert row["sha256"] == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (recording.session.path / row["path"]).read_bytes() == b"abc"


def test_attachments_never_leave_the_capture(recording: Recording, tmp_path: Path) -> None:
    for name in ("../x", "..", "a/b", "x.tmp", ""):
        with pytest.raises(ContractError):
            recording.session.record_attachment(tmp_path / "missing", title="t", name=name)
    with pytest.raises(RecordingError, match="cannot attach"):
        recording.session.record_attachment(tmp_path / "missing", title="t")
    recording.of("ops")
    assert "attachments" not in counts(recording.session.path)
