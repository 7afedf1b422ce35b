"""What PyTorch tensors say of themselves: captures of tensors and operations, and their recording (protocol 14.4).

Identities are process-local and never reused: a tensor and a storage each get a number when they are first seen.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary, WeakTensorKeyDictionary

from .session import TraceSession
from .spans import SpanId
from .torch_gradients import GradientCapturePlan
from .vocabulary import ExecutionStep, MemoryCategory

__all__ = [
    "GradientCapturePlan",
    "TorchCapture",
    "TorchOpCapture",
    "device_label",
    "dtype_name",
    "inputs_dense_bytes",
    "record_op",
    "record_tensor",
    "record_tensor_stats",
    "record_tensor_with_label",
    "storage_id",
    "tensor_id",
]

_STEP_CATEGORIES = {
    None: MemoryCategory.ACTIVATION,
    ExecutionStep.FORWARD: MemoryCategory.ACTIVATION,
    ExecutionStep.BACKWARD: MemoryCategory.GRADIENT,
    ExecutionStep.OPTIMIZER: MemoryCategory.OPTIMIZER,
}


class _Numbers:
    """Gives each object its own id for as long as it lives; the object is held weakly."""

    def __init__(self, prefix: str, known: MutableMapping[Any, str]) -> None:
        self._prefix = prefix
        self._known = known
        self._next = itertools.count(1)
        self._lock = threading.RLock()  # Reentrant: the collector may free another object in here.

    def of(self, thing: Any) -> str:
        with self._lock:
            found = self._known.get(thing)
            if found is None:
                found = self._known[thing] = f"{self._prefix}{next(self._next)}"
            return found


_TENSORS = _Numbers("t", WeakTensorKeyDictionary())
_STORAGES = _Numbers("st", WeakIdKeyDictionary())


def tensor_id(tensor: torch.Tensor) -> str:
    """Identity of the tensor object in this process; two views of one storage are two tensors."""
    return _TENSORS.of(tensor)


def storage_id(tensor: torch.Tensor) -> str:
    """Identity of the storage behind the tensor, shared by its views. Raises ``NotImplementedError`` without one."""
    return _STORAGES.of(tensor.untyped_storage())


@lru_cache(maxsize=64)
def dtype_name(dtype: torch.dtype) -> str:
    """The protocol's name of an element type: ``f32``, ``bf16``, ``i64``, ``f8``; torch's own name for any other."""
    name = str(dtype).removeprefix("torch.")
    if name.startswith("float8"):
        return "f8"
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i")):
        bits = name.removeprefix(long)
        if bits != name and bits.isdigit():
            return short + bits
    return name


def device_label(device: torch.device) -> str:
    """``cpu``, ``cuda:<n>``, ``metal:<n>``, or torch's own type with an index."""
    if device.type in ("cpu", "meta"):
        return device.type
    index: int | None = getattr(device, "index", None)  # None for a device that was named without one.
    if index is None:
        index = torch.cuda.current_device() if device.type == "cuda" else 0
    return f"{'metal' if device.type == 'mps' else device.type}:{index}"


def is_variable(tensor: torch.Tensor) -> bool:
    """True for a parameter, frozen ones included, and for any other leaf that asks for a gradient."""
    return isinstance(tensor, torch.nn.Parameter) or (tensor.is_leaf and tensor.requires_grad)


@dataclass(frozen=True)
class TorchCapture:
    """What one tensor says of itself. Both identities are read-only and come from the tensor alone."""

    _tensor_id: str
    _storage_id: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    tensor_bytes: int
    """Dense footprint: elements times element size, not the storage."""
    requires_grad: bool
    """The tensor is a variable (:func:`is_variable`)."""
    category: MemoryCategory
    label: str | None = None

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor, step: ExecutionStep | None = None) -> TorchCapture:
        """Capture a tensor seen in a step: a variable is a parameter, else the step says the category (14.4)."""
        variable = is_variable(tensor)
        return cls(
            tensor_id(tensor),
            storage_id(tensor),
            tuple(tensor.shape),
            dtype_name(tensor.dtype),
            device_label(tensor.device),
            tensor.numel() * tensor.element_size(),
            variable,
            MemoryCategory.PARAMETER if variable else _STEP_CATEGORIES[step],
        )

    @property
    def tensor_id(self) -> str:
        """Identity of the tensor."""
        return self._tensor_id

    @property
    def storage_id(self) -> str:
        """Identity of the storage behind it."""
        return self._storage_id

    def with_label(self, label: str) -> TorchCapture:
        """The same capture under the caller's label, which never replaces an identity."""
        return replace(self, label=label)


@dataclass(frozen=True, slots=True)
class TorchOpCapture:
    """One executed operation with its output."""

    op_name: str
    inputs: tuple[str, ...]
    """Tensor ids, in order."""
    output: TorchCapture
    input_dense_bytes: int
    duration_ns: int
    """Host time; on an asynchronous device the time to enqueue."""
    timestamp_ns: int | None = None
    """Start on the host clock; None: the operation ends when it is recorded."""

    @classmethod
    def new(
        cls,
        op_name: str,
        inputs: Iterable[torch.Tensor],
        output: torch.Tensor,
        *,
        duration_ns: int,
        timestamp_ns: int | None = None,
        step: ExecutionStep | None = None,
    ) -> TorchOpCapture:
        """Capture an operation from its tensors; ``step`` says the output's category."""
        tensors = tuple(inputs)
        return cls(
            op_name,
            tuple(tensor_id(tensor) for tensor in tensors),
            TorchCapture.from_tensor(output, step),
            inputs_dense_bytes(tensors),
            duration_ns,
            timestamp_ns,
        )


def inputs_dense_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Sum of the dense footprints in bytes."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def record_tensor(session: TraceSession, span_id: SpanId, capture: TorchCapture) -> None:
    """Record one tensor observation."""
    session.record_tensor(
        span_id,
        capture.tensor_id,
        shape=capture.shape,
        dtype=capture.dtype,
        device=capture.device,
        requires_grad=capture.requires_grad,
        category=capture.category,
        label=capture.label,
        dense_bytes=capture.tensor_bytes,
    )


def record_tensor_with_label(
    session: TraceSession, span_id: SpanId, label: str, tensor: torch.Tensor, step: ExecutionStep | None = None
) -> None:
    """Capture and record one tensor under a label."""
    record_tensor(session, span_id, TorchCapture.from_tensor(tensor, step).with_label(label))


def record_op(session: TraceSession, span_id: SpanId, capture: TorchOpCapture) -> None:
    """Record the operation *and* its category-linked output tensor; do not record that output again (guide 5)."""
    output = capture.output
    session.record_op(
        span_id,
        capture.op_name,
        inputs=capture.inputs,
        output=output.tensor_id,
        shape=output.shape,
        dtype=output.dtype,
        device=output.device,
        duration_ns=capture.duration_ns,
        timestamp_ns=capture.timestamp_ns,
        output_dense_bytes=output.tensor_bytes,
        input_dense_bytes=capture.input_dense_bytes,
    )
    record_tensor(session, span_id, output)


def record_tensor_stats(session: TraceSession, span_id: SpanId, label: str, tensor: torch.Tensor) -> None:
    """Reduce a tensor in f32 and record the result; ``label`` joins runs (14.3).

    Real work: on an accelerator it adds kernels and one readback. A result that is not finite is written as 0, and
    ``non_finite`` counts the elements; an empty tensor gives zeros.
    """
    non_finite, rms, abs_max, mean = _reduced(tensor)
    session.record_tensor_stats_values(
        span_id,
        label,
        shape=tuple(tensor.shape),
        dtype=dtype_name(tensor.dtype),
        elements=tensor.numel(),
        non_finite=int(non_finite),
        rms=_finite(rms),
        abs_max=_finite(abs_max),
        mean=_finite(mean),
    )


def _reduced(tensor: torch.Tensor) -> list[float]:
    if not tensor.numel():
        return [0.0] * 4
    # Doubles carry every count exactly; MPS has none.
    wide = torch.float32 if tensor.device.type == "mps" else torch.float64
    with torch.no_grad():
        values = tensor.detach().to(torch.float32)
        results = (
            (~torch.isfinite(values)).sum(),
            values.square().mean().sqrt(),
            values.abs().max(),
            values.mean(),
        )
        found: list[float] = torch.stack([result.to(wide) for result in results]).tolist()
    return found


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0
