"""Turns what the PyTorch profiler kept of a region into rows of planes (docs/record-torch.md has every rule).

An operation is a span of kind op with one row of ``ops`` in it, so that what it allocated is attributed to it alone.
Ranges (``record_function``, the optimizer's, autograd's wrappers) are spans of kind function. The profiler keeps no
outputs: an operation's output, its shape and its type are NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any

import torch
from torch._C._profiler import RecordScope, _EventType, _TensorMetadata

from .planes import INT64_MAX
from .torch_clock import MARK, HostClock
from .torch_helpers import device_label
from .torch_known import Place
from .torch_spans import SeenSpan, SessionSpans
from .vocabulary import ExecutionStep, SpanKind

BACKEND = "torch-profiler"
_BLOCK_CELLS = 1 << 20
_WRAPPER = "autograd::engine::evaluate_function: "
_ACCUMULATE = "torch::autograd::AccumulateGrad"
_OPTIMIZER = "Optimizer.step#"
_OP, _RANGE = SpanKind.OP.value, SpanKind.FUNCTION.value
_FORWARD = ExecutionStep.FORWARD.value


@dataclass(slots=True)
class Within:
    """Where an event lies: its parent's span, and what the events around it say of what is allocated in it.

    ``phase`` is forward, backward or optimizer; ``graph`` says that autograd recorded an operation around it, or that
    the user's span calls it forward; ``outer_end_ns`` is the profiler's time at which the outermost operation (in
    backward the function) around it returned, None outside of any.
    """

    span_id: str
    op_name: str | None
    phase: str
    graph: bool
    outer_end_ns: int | None


@dataclass(slots=True)
class Allocation:
    """One allocation (positive bytes) or free (negative), as the profiler saw it."""

    profiler_ns: int
    place: Place
    bytes: int
    tensor_id: str | None
    within: Within


@dataclass(slots=True)
class Walked:
    """What one walk over the events found beside the rows it wrote.

    ``gradients`` are (profiler's time, place) of what was accumulated into a leaf; ``spans_of`` maps the profiler's
    correlation ids to spans, for device work; ``left_out`` counts events of kinds that no plane holds.
    """

    allocations: list[Allocation] = field(default_factory=list)
    gradients: list[tuple[int, Place]] = field(default_factory=list)
    spans_of: dict[int, str] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    events: int = 0


class RowWriter:
    """Gathers rows of families flat, and hands blocks of them to the session."""

    def __init__(self, session: Any, first_seq: int) -> None:
        self.seq = first_seq
        self._session = session
        self._flat: dict[str, list[Any]] = {}

    def add(self, family: str, *cells: Any) -> None:
        """One row; its number is the next one."""
        flat = self._flat.get(family)
        if flat is None:
            flat = self._flat[family] = []
        flat += (self.seq, *cells)
        self.seq += 1
        if len(flat) > _BLOCK_CELLS:
            self.flush()

    def flush(self) -> None:
        """Hand over what was gathered."""
        for family in ("spans_start", *(name for name in self._flat if name not in ("spans_start", "spans_end"))):
            self._put(family)
        self._put("spans_end")

    def _put(self, family: str) -> None:
        if flat := self._flat.pop(family, None):
            self._session.put_rows(family, flat)


class TreeWalk:
    """One walk over the profiler's event tree, depth first."""

    def __init__(self, rows: RowWriter, clock: HostClock, spans: SessionSpans, thread_id: int, own_tid: int) -> None:
        self.found = Walked()
        self._rows = rows
        self._clock = clock
        self._spans = spans
        self._thread_id = thread_id
        self._own_tid = own_tid
        self._number = 0

    def walk(self, roots: Iterable[Any]) -> Walked:
        """Write spans and operations; returns the rest."""
        for root in roots:
            if root.name != MARK:
                self._below_session(root)
        return self.found

    def _below_session(self, root: Any) -> None:
        """Put a root event under the span of the session that was open on the caller's thread in its middle.

        On that thread it cannot reach beyond this span, whatever the uncertainty of the clock says.
        """
        start = self._clock.host_ns(root.start_time_ns)
        end = self._clock.host_ns(root.start_time_ns + max(root.duration_time_ns, 0))
        above = self._spans.at((start + end) // 2)
        within = Within(above.id, None, "forward", above.step == _FORWARD, None)
        bounds = (above.start_ns, above.end_ns) if root.start_tid == self._own_tid else (0, INT64_MAX)
        self._descend(root, within, above, bounds)

    def _descend(self, root: Any, within: Within, above: SeenSpan, bounds: tuple[int, int]) -> None:
        ends: list[tuple[str, int]] = []
        pending: list[tuple[Any, Within] | None] = [(root, within)]
        while pending:
            item = pending.pop()
            if item is None:
                self._rows.add("spans_end", *ends.pop())
                continue
            event, around = item
            kind, extra = event.typed
            if kind == _EventType.TorchOp:
                inner = self._operation(event, extra, around, above, bounds, ends)
                pending.append(None)
                pending += [(child, inner) for child in reversed(event.children)]
            elif kind == _EventType.Allocation:
                self._allocation(event, extra, around)
            else:
                name = str(kind).rpartition(".")[2]
                self.found.left_out[name] = self.found.left_out.get(name, 0) + 1
                pending += [(child, around) for child in reversed(event.children)]

    def _operation(
        self,
        event: Any,
        extra: Any,
        around: Within,
        above: SeenSpan,
        bounds: tuple[int, int],
        ends: list[tuple[str, int]],
    ) -> Within:
        """Write one operation or range; returns what is so within it."""
        found, rows, name = self.found, self._rows, event.name
        found.events += 1
        self._number += 1
        span_id = f"p{self._number}"
        began, took = event.start_time_ns, max(event.duration_time_ns, 0)
        start = min(max(self._clock.host_ns(began), bounds[0]), bounds[1])
        duration = min(max(self._clock.host_ns(began + took), start), bounds[1]) - start
        scope = extra.scope
        is_op = scope != RecordScope.USER_SCOPE and not name.startswith(_WRAPPER)
        thread = self._thread_id if event.start_tid == self._own_tid else None
        kind = _OP if is_op else _RANGE
        rows.add("spans_start", span_id, around.span_id, name, start, kind, False, None, thread)
        if is_op:
            inputs, size = self._inputs(name, began, extra.inputs)
            rows.add("ops", span_id, name, inputs, None, None, None, None, duration, start, None, size)
        ends.append((span_id, duration))
        found.spans_of[event.correlation_id] = span_id
        return _within(span_id, name, began + took, extra, is_op, around, above)

    def _inputs(self, name: str, began: int, inputs: list[Any]) -> tuple[list[str], int]:
        """Ids of the input tensors, in order, and the sum of their dense footprints."""
        names, size = [], 0
        for tensor in _tensors(inputs):
            if tensor.id is not None:
                names.append(f"t{tensor.id}")
            size += prod(tensor.sizes) * _element_bytes(tensor.dtype)
            if name == _ACCUMULATE and (address := tensor.storage_data_ptr) is not None:
                self.found.gradients.append((began, (device_label(tensor.device), address)))
        return names, min(size, INT64_MAX)

    def _allocation(self, event: Any, extra: Any, around: Within) -> None:
        self.found.events += 1
        tensor = None if extra.id is None else f"t{extra.id}"
        label = device_label(extra.device)
        size = extra.alloc_size
        self.found.allocations.append(Allocation(event.start_time_ns, (label, extra.ptr), size, tensor, around))
        if extra.device.type != "cpu" and extra.total_reserved > 0:  # The allocator's own counters; the CPU has none.
            at = self._clock.host_ns(event.start_time_ns)
            totals = (max(extra.total_allocated, 0), None, extra.total_reserved, None)
            self._rows.add("device_memory", at, label, *totals)


def _within(span_id: str, name: str, end_ns: int, extra: Any, is_op: bool, around: Within, above: SeenSpan) -> Within:
    scope = extra.scope
    if scope == RecordScope.BACKWARD_FUNCTION:
        return Within(span_id, name, "backward", False, end_ns)
    if not is_op:
        phase = "optimizer" if name.startswith(_OPTIMIZER) else around.phase
        return Within(span_id, None, phase, around.graph, around.outer_end_ns)
    graph = around.graph or extra.sequence_number >= 0
    if around.phase == "backward" and extra.sequence_number >= 0:
        return Within(span_id, name, "forward", True, end_ns)  # Forward work that a checkpoint does again.
    outer = end_ns if around.outer_end_ns is None else around.outer_end_ns
    return Within(span_id, name, around.phase, graph, outer)


def _tensors(inputs: list[Any]) -> Iterable[Any]:
    for value in inputs:
        if isinstance(value, _TensorMetadata):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, _TensorMetadata))


@lru_cache(maxsize=64)
def _element_bytes(dtype: torch.dtype) -> int:
    return dtype.itemsize
