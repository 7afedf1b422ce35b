"""Follows the storages of PyTorch tensors from their first sight to the moment their memory is given back."""

from __future__ import annotations

import contextlib
import weakref
from dataclasses import dataclass

import torch

from .errors import PlanewiseError
from .session import TraceSession
from .spans import SpanId
from .torch_helpers import TorchCapture, storage_id
from .vocabulary import ExecutionStep


@dataclass(frozen=True, slots=True)
class _Storage:
    storage_id: str
    bytes: int
    capture: TorchCapture


class StorageTracker:
    """Records each storage once as an allocation, and as a free when its last owner, autograd included, lets go.

    The size is the storage's own (an allocator may round it up on the device). The free is recorded against the span
    that is innermost on the freeing thread at that moment. A storage that outlives the session has no free. Scratch
    memory inside a kernel has no tensor and is not seen: declare ``logical_memory`` partial unless it is out of scope.
    """

    def __init__(self, session: TraceSession) -> None:
        self._session = session
        self._live: set[str] = set()

    def record(
        self,
        span_id: SpanId,
        tensor: torch.Tensor,
        *,
        op_name: str | None = None,
        step: ExecutionStep | None = None,
    ) -> bool:
        """Record the tensor's storage as allocated by ``op_name``; False when it is known or holds no bytes."""
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        if size == 0 or (found := storage_id(tensor)) in self._live:
            return False
        seen = _Storage(found, size, TorchCapture.from_tensor(tensor, step))
        self._session.record_memory_alloc(
            span_id,
            found,
            seen.capture.tensor_id,
            device=seen.capture.device,
            bytes=size,
            dtype=seen.capture.dtype,
            shape=seen.capture.shape,
            category=seen.capture.category,
            op_name=op_name,
        )
        self._live.add(found)
        weakref.finalize(storage, self._freed, seen).atexit = False
        return True

    def _freed(self, seen: _Storage) -> None:
        self._live.discard(seen.storage_id)
        if not self._session.is_open:
            return
        # Called from a destructor, where nobody could handle a refusal; the session may end in this very moment.
        with contextlib.suppress(PlanewiseError):
            self._session.record_memory_free(
                self._session.current_span_id,
                seen.storage_id,
                seen.capture.tensor_id,
                device=seen.capture.device,
                bytes=seen.bytes,
                dtype=seen.capture.dtype,
                shape=seen.capture.shape,
                category=seen.capture.category,
            )
