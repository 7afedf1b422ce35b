"""Odd values at the recorder's edge: numbers of numpy and torch, extremes, texts; refused in words or recorded."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorder_support import TRAINING, rows

from planewise import ContractError, RecorderOptions, TraceSession

OP: dict[str, Any] = {"shape": [2], "dtype": "f32", "device": "cpu", "duration_ns": 0, "input_dense_bytes": 0}


@pytest.fixture
def session(tmp_path: Path) -> TraceSession:
    return TraceSession.open(tmp_path / "c", TRAINING, run_id="r")


def refused(call: Callable[[], object]) -> ContractError:
    with pytest.raises(ContractError) as caught:
        call()
    assert len(str(caught.value)) < 400
    return caught.value


def scalars(session: TraceSession) -> list[tuple[float, int]]:
    return [(row["mean"], row["non_finite"]) for row in rows(session.finish(), "tensor_stats")]


def test_numbers_of_numpy_are_recorded_as_what_they_are(session: TraceSession) -> None:
    np = pytest.importorskip("numpy")
    for value in (np.float64(0.5), np.float32(0.25), np.int8(-3), np.uint64(2**53), np.array(2.5), np.float16("nan")):
        session.record_scalar(session.root_id, "x", value)
    session.record_op(
        session.root_id, "a", **{**OP, "shape": np.array([2, 3], np.int32), "input_dense_bytes": np.uint8(7)}
    )
    assert scalars(session) == [(0.5, 0), (0.25, 0), (-3.0, 0), (2.0**53, 0), (2.5, 0), (0.0, 1)]
    (op,) = rows(session.path, "ops")
    assert (op["shape"], op["input_dense_bytes"]) == ([2, 3], 7)


def test_tensors_without_dimensions_are_recorded_and_a_loss_in_autograd_neither_warns_nor_stays(
    session: TraceSession,
) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in (torch.tensor(0.5, requires_grad=True), torch.tensor(3), torch.tensor(math.inf).bfloat16()):
            session.record_scalar(session.root_id, "x", value)
    session.record_op(session.root_id, "a", **{**OP, "shape": torch.Size([4]), "input_dense_bytes": torch.tensor(9)})
    assert scalars(session) == [(0.5, 0), (3.0, 0), (0.0, 1)]
    assert rows(session.path, "ops")[0]["input_dense_bytes"] == 9


def test_what_is_no_single_number_is_refused(session: TraceSession) -> None:
    np, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")
    meta = torch.tensor(1.0, device="meta")
    bad = (True, np.True_, torch.tensor(True), "1", b"1", None, [1.0], np.ones(2), torch.ones(2), meta, 10**5000, 1j)
    for value in bad:
        fault = refused(lambda value=value: session.record_scalar(session.root_id, "x", value))
        assert (fault.code, fault.position) == ("not_a_number", "value")
    assert scalars(session) == []


def test_what_is_no_count_is_refused(session: TraceSession) -> None:
    np, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")
    bad = (True, np.True_, torch.tensor(True), 1.0, np.float32(1), torch.tensor(1.5), "1", None, torch.ones(2))
    for value in bad:
        call = {**OP, "input_dense_bytes": value}
        assert refused(lambda call=call: session.record_op(session.root_id, "a", **call)).code == "not_an_integer"
    session.finish()


@pytest.mark.parametrize("value", [-1, -(2**70), 2**63, 2**64, 10**5000], ids=["-1", "-2^70", "2^63", "2^64", "huge"])
def test_integers_outside_int64_are_refused_whatever_their_size(session: TraceSession, value: int) -> None:
    root = session.root_id
    calls = (
        lambda: session.record_op(root, "a", **{**OP, "duration_ns": value}),
        lambda: session.record_op(root, "a", **{**OP, "timestamp_ns": value}),
        lambda: session.record_op(root, "a", **{**OP, "shape": [value]}),
        lambda: session.record_memory_alloc(root, "s", "t", device="cpu", bytes=value, dtype="f32"),
        lambda: session.record_device_memory("d", used_bytes=value),
        lambda: session.record_call_edge(root, root, value),
        lambda: session.record_engine_event("e", start_ns=value),
    )
    assert {refused(call).code for call in calls} == {"integer_out_of_range"}
    assert list(rows(session.finish(), "ops")) == []


def test_the_largest_integer_is_recorded_exactly(session: TraceSession) -> None:
    session.record_memory_alloc(session.root_id, "s", "t", device="cpu", bytes=2**63 - 1, dtype="f32")
    assert rows(session.finish(), "memory_events")[0]["bytes"] == 2**63 - 1


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\ud800" * 10**6], ids=["one", "last", "many"])
def test_a_lone_surrogate_is_refused_wherever_a_text_goes(session: TraceSession, text: str) -> None:
    root = session.root_id
    calls = (
        lambda: session.begin_span(text),
        lambda: session.begin_measurement(text),
        lambda: session.record_scalar(root, text, 1.0),
        lambda: session.record_op(root, text, **OP),
        lambda: session.record_op(root, "a", **{**OP, "inputs": [text]}),
        lambda: session.record_gradient(text, "w", "missing"),
        lambda: session.record_engine_event("e", attributes={"x": text}),
        lambda: session.record_attachment(__file__, title=text),
        lambda: session.finish_failed(text),
    )
    assert {refused(call).code for call in calls} == {"not_utf8"}
    session.finish()
    assert {path.name.split("-")[0] for path in session.path.glob("*.parquet")} == {"spans_start", "spans_end"}


@pytest.mark.parametrize("value", [5, None, 1.5, "ab"])
def test_what_is_no_list_is_refused_in_words(session: TraceSession, value: object) -> None:
    root = session.root_id
    assert refused(lambda: session.record_op(root, "a", **{**OP, "shape": value})).code == "not_an_integer"
    assert refused(lambda: session.record_op(root, "a", **{**OP, "inputs": value})).code == "not_a_list"
    session.finish()


class Rude:
    """A value whose text cannot be had."""

    def __repr__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize("value", [10**5000, "x" * 10**6, Rude()], ids=["integer", "text", "rude"])
def test_a_refusal_of_an_enormous_or_broken_value_is_short_and_no_other_error(
    session: TraceSession, value: object
) -> None:
    root = session.root_id
    for call in (
        lambda: session.begin_span("a", value),  # type: ignore[arg-type]
        lambda: session.record_scalar(value, "x", 1.0),  # type: ignore[arg-type]
        lambda: session.record_tensor(root, "t", shape=[], dtype="f32", device="d", requires_grad=value),  # type: ignore[arg-type]
        lambda: session.record_gradient("r", "k", "zero", value),  # type: ignore[arg-type]
        lambda: session.record_gradient("r", "k", "missing", value),  # type: ignore[arg-type]
    ):
        refused(call)
    session.finish()


def test_very_long_names_are_recorded_whole(session: TraceSession) -> None:
    name = "é" * 500_000
    with session.begin_span(name) as span:
        session.record_scalar(span.id, name, 1.0)
    folder = session.finish()
    assert (rows(folder, "spans_start")[1]["name"], rows(folder, "tensor_stats")[0]["label"]) == (name, name)


def test_long_names_count_for_the_bytes_limit_so_that_memory_stays_bounded(tmp_path: Path) -> None:
    options = RecorderOptions(flush_rows=10**9, flush_bytes=2**20, flush_seconds=10**6)
    session = TraceSession.open(tmp_path / "c", TRAINING, options=options)
    held = []
    for number in range(400):
        session.record_scalar(session.root_id, f"{number:010000d}", 1.0)
        held.append(sum(len(cell) for flat in session._writer._buffers.values() for cell in flat if type(cell) is str))
    session.finish()
    assert max(held) <= 2**20 + 64 * 10_000
    assert len(rows(tmp_path / "c", "tensor_stats")) == 400
