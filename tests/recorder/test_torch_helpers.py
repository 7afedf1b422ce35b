"""Torch helpers on CPU tensors: identities, categories, operations, reductions, gradients, storages."""

from __future__ import annotations

import dataclasses
import gc
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recorder_support import TRAINING, values

from planewise import ContractError, ExecutionStep, SpanId, TraceSession
from planewise import GradientFamilyContract as Family

torch = pytest.importorskip("torch", reason="the torch extra is not installed")

from planewise.recorder.torch_helpers import (  # noqa: E402
    GradientCapturePlan,
    TorchCapture,
    TorchOpCapture,
    device_label,
    dtype_name,
    inputs_dense_bytes,
    record_op,
    record_tensor,
    record_tensor_stats,
    record_tensor_with_label,
)
from planewise.recorder.torch_storages import StorageTracker  # noqa: E402


@pytest.fixture
def session(tmp_path: Path) -> Iterator[TraceSession]:
    session = TraceSession.open(tmp_path / "c", TRAINING)
    yield session
    if session.is_open:
        session.finish()


@pytest.fixture
def span(session: TraceSession) -> SpanId:
    return session.root_id


def test_identities_are_of_objects_and_storages_and_are_read_only() -> None:
    base = torch.zeros(2, 3)
    first, again, view = (TorchCapture.from_tensor(t) for t in (base, base, base.t()))
    assert (first.tensor_id, first.storage_id) == (again.tensor_id, again.storage_id)
    assert (view.tensor_id != first.tensor_id, view.storage_id == first.storage_id) == (True, True)
    with pytest.raises(AttributeError):
        first.storage_id = "mine"  # type: ignore[misc]
    labelled = first.with_label("x")
    assert (labelled.label, dataclasses.replace(labelled, label=None)) == ("x", first)


def test_identities_are_never_given_twice() -> None:
    seen = {TorchCapture.from_tensor(torch.zeros(4)).storage_id for _ in range(50)}
    assert len(seen) == 50


def test_capture_reads_shape_dtype_device_and_dense_bytes_of_a_view() -> None:
    capture = TorchCapture.from_tensor(torch.zeros(4, 6, dtype=torch.bfloat16)[:, :2])
    assert (capture.shape, capture.dtype, capture.device, capture.tensor_bytes) == ((4, 2), "bf16", "cpu", 16)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (torch.float32, "f32"),
        (torch.float64, "f64"),
        (torch.float16, "f16"),
        (torch.bfloat16, "bf16"),
        (torch.float8_e4m3fn, "f8"),
        (torch.int64, "i64"),
        (torch.uint8, "u8"),
        (torch.bool, "bool"),
        (torch.complex64, "complex64"),
    ],
)
def test_dtypes_have_the_protocols_names(dtype: Any, name: str) -> None:
    assert dtype_name(dtype) == name


def test_device_labels_name_the_index() -> None:
    labels = [device_label(torch.device(name)) for name in ("cpu", "cuda:1", "mps:0", "meta")]
    assert labels == ["cpu", "cuda:1", "metal:0", "meta"]


def test_category_is_parameter_for_variables_and_else_of_the_step() -> None:
    leaf = torch.zeros(2, requires_grad=True)
    frozen = torch.nn.Parameter(torch.zeros(2), requires_grad=False)
    for variable in (leaf, frozen):
        capture = TorchCapture.from_tensor(variable, ExecutionStep.BACKWARD)
        assert (capture.category, capture.requires_grad) == ("parameter", True)
    result = leaf * 2
    categories = [TorchCapture.from_tensor(result, step).category for step in (None, *ExecutionStep)]
    assert categories == ["activation", "activation", "gradient", "optimizer"]
    assert not TorchCapture.from_tensor(result).requires_grad


def test_record_op_writes_the_op_and_its_category_linked_output(session: TraceSession, span: SpanId) -> None:
    x, w = torch.ones(4, 3), torch.ones(3, 2)
    capture = TorchOpCapture.new("matmul", [x, w], x @ w, duration_ns=1, step=ExecutionStep.FORWARD)
    record_op(session, span, capture)
    folder = session.finish()
    (op,), (tensor,) = values(folder, "ops"), values(folder, "tensors")
    assert op["inputs"] == [TorchCapture.from_tensor(t).tensor_id for t in (x, w)]
    assert (op["output"], op["input_dense_bytes"], op["output_dense_bytes"]) == (tensor["tensor_id"], 72, 32)
    assert (tensor["category"], tensor["shape"]) == ("activation", [4, 2])
    assert inputs_dense_bytes([x, w]) == 72


def test_tensors_are_recorded_with_and_without_a_label(session: TraceSession, span: SpanId) -> None:
    x = torch.ones(3)
    record_tensor(session, span, TorchCapture.from_tensor(x))
    record_tensor_with_label(session, span, "x", x)
    plain, labelled = values(session.finish(), "tensors")
    assert (plain["label"], labelled["label"], plain["tensor_id"]) == (None, "x", labelled["tensor_id"])


def stats(session: TraceSession, tensor: Any) -> list[Any]:
    record_tensor_stats(session, session.root_id, "x", tensor)
    (row,) = values(session.finish(), "tensor_stats")
    return [row[name] for name in ("shape", "dtype", "elements", "non_finite", "rms", "abs_max", "mean")]


def test_stats_are_real_reductions(session: TraceSession) -> None:
    tensor = torch.tensor([[3.0, -5.0], [1.0, 1.0]], dtype=torch.float64, requires_grad=True)
    assert stats(session, tensor) == [[2, 2], "f64", 4, 0, 3.0, 5.0, 0.0]


def test_stats_count_what_is_not_finite_and_write_its_aggregates_as_zero(session: TraceSession) -> None:
    tensor = torch.tensor([1.0, math.nan, math.inf])
    assert stats(session, tensor) == [[3], "f32", 3, 2, 0.0, 0.0, 0.0]


def test_stats_of_an_f32_overflow_are_zero_though_every_element_is_finite(session: TraceSession) -> None:
    found = stats(session, torch.tensor([2.0**100, -(2.0**100)]))
    assert found[3:] == [0, 0.0, 2.0**100, 0.0]


def test_stats_of_nothing_are_zeros(session: TraceSession) -> None:
    assert stats(session, torch.empty(0, 3)) == [[0, 3], "f32", 0, 0, 0.0, 0.0, 0.0]


def test_stats_of_integers_are_reduced_too(session: TraceSession) -> None:
    assert stats(session, torch.tensor([1, -2, 7], dtype=torch.int32))[5:] == [7.0, 2.0]


def plan(**parameters: Any) -> GradientCapturePlan:
    return GradientCapturePlan.from_named_parameters(
        "vb",
        parameters.items(),
        lambda key: "frozen" if key.startswith("frozen") else "trunk",
        [Family.active("trunk", 1), Family.inactive("frozen")],
    )


def parameter(*gradient: float) -> Any:
    made = torch.nn.Parameter(torch.zeros(max(len(gradient), 1)))
    made.grad = torch.tensor(gradient) if gradient else None
    return made


def test_gradient_plan_sorts_keys_and_declares_the_manifest_it_records(session: TraceSession) -> None:
    made = plan(
        **{"z.weight": parameter(3.0, 4.0), "frozen.bias": parameter(), "b": parameter(0.0), "a": parameter(math.nan)}
    )
    assert [(entry.key, entry.family) for entry in made.contract.expected] == [
        ("a", "trunk"),
        ("b", "trunk"),
        ("frozen.bias", "frozen"),
        ("z.weight", "trunk"),
    ]
    made.record(session)
    assert [tuple(row.values()) for row in values(session.finish(), "gradients")] == [
        ("gradient-1", "vb", "a", "non_finite", None),
        ("gradient-2", "vb", "b", "zero", 0.0),
        ("gradient-3", "vb", "frozen.bias", "missing", None),
        ("gradient-4", "vb", "z.weight", "present", 5.0),
    ]


def test_gradient_plan_has_the_protocols_digest() -> None:
    made = plan(**{"layer.weight": parameter(1.0), "frozen.bias": parameter()})
    assert made.contract.manifest_sha256.startswith("sha256:3eb0aba921ad4af4")
    assert made.root == "vb"


def test_gradient_plan_refuses_repeated_keys_and_empty_sets() -> None:
    for parameters in ([], [("w", parameter()), ("w", parameter())]):
        with pytest.raises(ContractError):
            GradientCapturePlan.from_named_parameters("vb", parameters, lambda _: "trunk", [Family.active("trunk", 1)])


def test_gradient_norms_of_sparse_and_complex_gradients(session: TraceSession) -> None:
    embedding = torch.nn.Embedding(5, 2, sparse=True)
    embedding(torch.tensor([1, 1])).sum().backward()  # Row 1 twice: (2, 2).
    complex_ = torch.nn.Parameter(torch.zeros(1, dtype=torch.complex64))
    complex_.grad = torch.tensor([3 + 4j], dtype=torch.complex64)
    made = GradientCapturePlan.from_named_parameters(
        "vb", {"e": embedding.weight, "c": complex_}.items(), lambda _: "trunk", [Family.active("trunk", 1)]
    )
    made.record(session)
    assert [row["norm"] for row in values(session.finish(), "gradients")] == [5.0, pytest.approx(math.sqrt(8))]


def test_storages_are_recorded_once_and_freed_when_the_last_owner_lets_go(session: TraceSession) -> None:
    tracker = StorageTracker(session)
    with session.begin_span("make") as make:
        tensor = torch.zeros(8)
        assert tracker.record(make.id, tensor, op_name="zeros")
        assert not tracker.record(make.id, tensor.view(2, 4), op_name="view")
        assert not tracker.record(make.id, torch.empty(0))
    alias = tensor.view(2, 4)
    del tensor
    with session.begin_span("drop"):
        del alias
        gc.collect()
    events = values(session.finish(), "memory_events")
    assert [(row["action"], row["bytes"], row["span_id"], row["op_name"]) for row in events] == [
        ("alloc", 32, "s2", "zeros"),
        ("free", 32, "s3", None),
    ]


def test_storages_that_autograd_saves_live_until_the_backward_pass(session: TraceSession) -> None:
    tracker = StorageTracker(session)
    x = torch.ones(4, requires_grad=True)
    hidden = x.exp()
    tracker.record(session.root_id, hidden)
    loss = hidden.sum()
    del hidden
    with session.begin_span("backward") as backward:
        loss.backward()
    free = values(session.finish(), "memory_events")[1]
    assert (free["action"], free["span_id"]) == ("free", backward.id)


def test_a_storage_that_outlives_its_session_has_no_free(session: TraceSession) -> None:
    tensor = torch.zeros(8)
    StorageTracker(session).record(session.root_id, tensor)
    folder = session.finish()
    del tensor
    gc.collect()
    assert [row["action"] for row in values(folder, "memory_events")] == ["alloc"]
