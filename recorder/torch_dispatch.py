"""Exact capture of every ATen call of a block, at a price that makes the timing its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .session import TraceSession
from .spans import SpanId
from .torch_helpers import (
    TorchCapture,
    TorchOpCapture,
    inputs_dense_bytes,
    record_op,
    record_tensor,
    tensor_id,
)
from .torch_known import Roles
from .torch_storages import StorageTracker
from .vocabulary import ExecutionStep, SpanKind


@contextmanager
def dispatch_capture(
    session: TraceSession, *, model: torch.nn.Module | None = None, optimizer: Any = None
) -> Iterator[None]:
    """Record every ATen call of the block as a span with one operation, its outputs and the storages they bring.

    Identities are those of tensors and storages themselves; a storage's free is recorded when its last owner, autograd
    included, lets go. Parameters and optimizer state are recorded as allocated before the block. The category of an
    output follows the step of the innermost span that names one (protocol 14.4): activation in forward and outside of
    any step, gradient in backward, optimizer in the optimizer's. Autograd runs backward on other threads for other
    devices, which a dispatch mode follows. The scope of such a run is profiled work.
    """
    observed = session.observe_spans()
    storages = StorageTracker(session)
    roles = Roles(model, optimizer)
    for parameter in roles.parameters():
        storages.record(session.root_id, parameter)
    for state in roles.optimizer_state():
        storages.record(session.root_id, state, step=ExecutionStep.OPTIMIZER)
    try:
        with RecordOps(session, storages, observed):
            yield
    finally:
        session.ignore_spans()


class RecordOps(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records every operation with its outputs, and every storage they bring."""

    def __init__(self, session: TraceSession, storages: StorageTracker, observed: list[tuple[Any, ...]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._session = session
        self._storages = storages
        self._observed = observed
        self._steps: list[tuple[str, ExecutionStep]] = []
        self._read = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self._session.is_open:
            return func(*args, **(kwargs or {}))
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        name = str(func.name()).removeprefix("aten::")
        step = self._step()
        with self._session.begin_span(name, SpanKind.OP) as span:
            start = time.perf_counter_ns()
            result = func(*args, **(kwargs or {}))
            duration = time.perf_counter_ns() - start
            outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
            begun = self._session.host_timestamp_ns(start)
            self._record(span.id, name, inputs, outputs, (begun, duration), step)
        return result

    def _step(self) -> ExecutionStep | None:
        """The step of the innermost open span that names one, from what was begun and ended since the last call."""
        while self._read < len(self._observed):
            row = self._observed[self._read]
            self._read += 1
            if len(row) == 2:
                self._steps = [item for item in self._steps if item[0] != row[0]]
            elif row[7] is not None:
                self._steps.append((row[1], ExecutionStep(row[7])))
        return self._steps[-1][1] if self._steps else None

    def _record(
        self,
        span_id: SpanId,
        name: str,
        inputs: list[torch.Tensor],
        outputs: list[torch.Tensor],
        times: tuple[int, int],
        step: ExecutionStep | None,
    ) -> None:
        start, duration = times
        if not outputs:
            self._record_valueless(span_id, name, inputs, start, duration)
            return
        first, *others = outputs
        captured = TorchOpCapture.new(name, inputs, first, duration_ns=duration, timestamp_ns=start, step=step)
        record_op(self._session, span_id, captured)
        for other in others:
            record_tensor(self._session, span_id, TorchCapture.from_tensor(other, step))
        for output in outputs:
            self._storages.record(span_id, output, op_name=name, step=step)

    def _record_valueless(
        self, span_id: SpanId, name: str, inputs: list[torch.Tensor], start: int, duration: int
    ) -> None:
        self._session.record_op(
            span_id,
            name,
            inputs=[tensor_id(tensor) for tensor in inputs],
            shape=(),
            dtype="none",
            device="cpu",
            duration_ns=duration,
            timestamp_ns=start,
            input_dense_bytes=inputs_dense_bytes(inputs),
        )
