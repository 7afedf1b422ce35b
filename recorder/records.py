"""The recording calls that need no span stack: each checks its values, then buffers one row (protocol 14.3)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from .dense import dense_bytes, element_count
from .errors import ContractError
from .sink import RecordSink
from .spans import SpanId
from .values import (
    count,
    dimensions,
    end_of,
    filled_text,
    flag,
    items,
    member,
    number,
    optional_count,
    optional_text,
    shown,
    text,
)
from .vocabulary import EdgeKind, GradientState, MemoryCategory


class RecordCalls(RecordSink):
    """Recording calls for operations, tensors, gradients, edges and engine facts."""

    def record_op(
        self,
        span_id: SpanId,
        op_name: str,
        *,
        shape: Iterable[int],
        dtype: str,
        device: str,
        duration_ns: int,
        input_dense_bytes: int,
        inputs: Iterable[str] = (),
        output: str | None = None,
        timestamp_ns: int | None = None,
        output_dense_bytes: int | None = None,
    ) -> None:
        """Record one executed operation.

        ``inputs`` and ``output`` are tensor ids, ``shape``, ``dtype`` and ``device`` those of the output. The duration
        is host time. ``timestamp_ns`` is the start on the host clock; None or 0 means that the operation ends now.
        ``output_dense_bytes`` is derived from shape and dtype when None, and stays NULL for an unknown dtype.
        """
        span = self._span(span_id)
        sizes, names, kind = dimensions(shape), _names(inputs), text(dtype, "dtype")
        duration = count(duration_ns, "duration_ns")
        start = self._start(timestamp_ns, duration)
        dense = (
            dense_bytes(sizes, kind) if output_dense_bytes is None else count(output_dense_bytes, "output_dense_bytes")
        )
        self._put(
            "ops",
            (
                span,
                text(op_name, "op_name"),
                names,
                optional_text(output, "output"),
                sizes,
                kind,
                text(device, "device"),
                duration,
                start,
                dense,
                count(input_dense_bytes, "input_dense_bytes"),
            ),
            16 * len(names),
        )

    def record_tensor(
        self,
        span_id: SpanId,
        tensor_id: str,
        *,
        shape: Iterable[int],
        dtype: str,
        device: str,
        requires_grad: bool = False,
        category: MemoryCategory = MemoryCategory.OTHER,
        label: str | None = None,
        dense_bytes: int | None = None,
    ) -> None:
        """Record one tensor observation; the label is the caller's and never an identity.

        ``requires_grad`` says that the tensor is a variable. ``dense_bytes`` is derived when None.
        """
        span = self._span(span_id)
        sizes, kind = dimensions(shape), text(dtype, "dtype")
        footprint = _dense(sizes, kind) if dense_bytes is None else count(dense_bytes, "dense_bytes")
        self._put(
            "tensors",
            (
                span,
                text(tensor_id, "tensor_id"),
                optional_text(label, "label"),
                sizes,
                kind,
                text(device, "device"),
                flag(requires_grad, "requires_grad"),
                footprint,
                member(MemoryCategory, category, "category"),
            ),
        )

    def record_tensor_stats_values(
        self,
        span_id: SpanId,
        label: str,
        *,
        shape: Iterable[int],
        dtype: str,
        elements: int,
        non_finite: int,
        rms: float,
        abs_max: float,
        mean: float,
    ) -> None:
        """Record a numerical summary that the caller has computed; ``label`` joins runs, so keep it stable and unique.

        An aggregate that is not finite is written as 0 when ``non_finite`` counts an element, and refused otherwise.
        """
        span = self._span(span_id)
        sizes, total = dimensions(shape), count(elements, "elements")
        if element_count(sizes) != total:
            raise ContractError(
                f"found {total}, the shape has {element_count(sizes)}", position="elements", code="elements_mismatch"
            )
        bad = count(non_finite, "non_finite")
        if bad > total:
            raise ContractError(f"found {bad} of {total} elements", position="non_finite", code="non_finite_exceeds")
        values = (
            _aggregate(rms, "rms", bad, signed=False),
            _aggregate(abs_max, "abs_max", bad, signed=False),
            _aggregate(mean, "mean", bad, signed=True),
        )
        self._put("tensor_stats", (span, filled_text(label, "label"), sizes, text(dtype, "dtype"), total, bad, *values))

    def record_scalar(self, span_id: SpanId, label: str, value: float) -> None:
        """Record one scalar that the host already holds; one that is not finite counts as such and is written as 0."""
        span, found = self._span(span_id), number(value, "value")
        finite = math.isfinite(found)
        if not finite:
            found = 0.0
        size = abs(found)
        self._put("tensor_stats", (span, filled_text(label, "label"), (), "f64", 1, int(not finite), size, size, found))

    def record_gradient(self, root: str, key: str, state: GradientState, norm: float | None = None) -> None:
        """Record one parameter's gradient; which states take which norm is protocol 8.1. Event ids count from 1."""
        found = member(GradientState, state, "state")
        value = _norm(found, norm)
        names = filled_text(root, "root"), filled_text(key, "key")
        self._put("gradients", (f"gradient-{next(self._gradient_numbers)}", *names, found, value))

    def record_call_edge(self, from_span: SpanId, to_span: SpanId, host_duration_ns: int) -> None:
        """Record that one span called another; the duration is the called span's."""
        ends = self._span(from_span), self._span(to_span)
        self._put("edges", (EdgeKind.CALL, *ends, count(host_duration_ns, "host_duration_ns"), None, None))

    def record_data_edge(self, from_tensor: str, to_tensor: str) -> None:
        """Record that one tensor was made from another; neither id may be empty."""
        for name, value in (("from_tensor", from_tensor), ("to_tensor", to_tensor)):
            if not text(value, name):
                raise ContractError("is empty; expected a tensor id", position=name, code="empty_data_edge_endpoint")
        self._put("edges", (EdgeKind.DATA, None, None, None, str(from_tensor), str(to_tensor)))

    def record_edge(
        self, edge_kind: EdgeKind, source: Any, target: Any, *, host_duration_ns: int | None = None
    ) -> None:
        """Record an edge of either kind: spans and a duration for a call edge, tensor ids alone for a data edge."""
        if member(EdgeKind, edge_kind, "edge_kind") is EdgeKind.CALL:
            self.record_call_edge(source, target, count(host_duration_ns, "host_duration_ns"))
            return
        if host_duration_ns is not None:
            raise ContractError("a data edge has no duration", position="host_duration_ns", code="data_edge_duration")
        self.record_data_edge(source, target)

    def record_engine_event(
        self,
        event_type: str,
        *,
        event_id: str | None = None,
        request_id: str | None = None,
        iteration_id: str | None = None,
        clock_id: str | None = None,
        start_ns: int | None = None,
        duration_ns: int | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """Record one inference-engine fact; ``event_id`` counts up when None, every other None means not recorded."""
        kind = filled_text(event_type, "event_type")
        start, duration = optional_count(start_ns, "start_ns"), optional_count(duration_ns, "duration_ns")
        if start is not None and duration is not None:
            end_of(start, duration, "duration_ns")
        rest = None if attributes is None else _json_object(attributes)
        self._put(
            "engine_events",
            (
                kind,
                f"engine-{next(self._engine_numbers)}" if event_id is None else filled_text(event_id, "event_id"),
                optional_text(request_id, "request_id"),
                optional_text(iteration_id, "iteration_id"),
                optional_text(clock_id, "clock_id"),
                start,
                duration,
                rest,
            ),
            len(rest or ""),
        )


_dense = dense_bytes  # record_tensor has a keyword of that name.


def _names(values: Iterable[str]) -> tuple[str, ...]:
    names = values if type(values) is tuple else items(values, "inputs", "a list of tensor ids", "not_a_list")
    for name in names:
        text(name, "inputs")
    return names


def _aggregate(value: float, name: str, non_finite: int, *, signed: bool) -> float:
    found = number(value, name)
    if not math.isfinite(found):
        if not non_finite:
            raise ContractError(
                f"found {found}, but non_finite counts no element", position=name, code="aggregate_not_finite"
            )
        return 0.0
    if not signed and found < 0:
        raise ContractError(f"found {found}, expected 0 or more", position=name, code="aggregate_negative")
    return found


def _norm(state: GradientState, norm: float | None) -> float | None:
    if state in (GradientState.MISSING, GradientState.NON_FINITE):
        if norm is None:
            return None
    elif norm is not None:
        value = number(norm, "norm")
        if state is GradientState.ZERO and value == 0 and math.copysign(1, value) > 0:
            return value
        if state is GradientState.PRESENT and math.isfinite(value) and value > 0:
            return value
    raise ContractError(
        f"a {state} gradient has norm {shown(norm)}; expected {_NORMS[state]}",
        position="norm",
        code="state_norm_inconsistent",
    )


_NORMS = {
    GradientState.PRESENT: "a finite number above 0",
    GradientState.ZERO: "exactly +0.0",
    GradientState.MISSING: "none",
    GradientState.NON_FINITE: "none",
}


def _json_object(attributes: Mapping[str, Any]) -> str:
    try:
        return text(json.dumps(dict(attributes), ensure_ascii=False, allow_nan=False), "attributes")
    except (TypeError, ValueError) as fault:
        if isinstance(fault, ContractError):
            raise
        raise ContractError(f"has no JSON form: {fault}", position="attributes", code="not_json") from fault
