"""The recording calls for memory, logical and physical, and for device time (protocol 14.3, guide 4 and 6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Required, TypedDict, Unpack

from .errors import ContractError
from .sink import RecordSink
from .spans import SpanId
from .values import count, dimensions, end_of, member, optional_count, optional_text, positive, text
from .vocabulary import MemoryCategory


class StorageFacts(TypedDict, total=False):
    """Keywords of the memory calls: what is known of the storage and of the tensor that uses it."""

    device: Required[str]
    bytes: Required[int]
    """Actual allocation size, never the dense footprint."""
    dtype: Required[str]
    shape: Iterable[int]
    """Of the tensor; empty when not given."""
    category: MemoryCategory
    """``other`` when not given."""
    op_name: str | None
    """The operation that allocated or freed; None when not recorded."""
    timestamp_ns: int | None
    """On the host clock; None is now."""


class MemoryCalls(RecordSink):
    """Recording calls for storages, physical checkpoints and device intervals."""

    def record_memory_alloc(
        self, span_id: SpanId, storage_id: str, tensor_id: str, **storage: Unpack[StorageFacts]
    ) -> None:
        """Record the allocation of a storage, or an alias: a further tensor that uses a live one."""
        self._memory("alloc", span_id, storage_id, tensor_id, **storage)

    def record_memory_free(
        self, span_id: SpanId, storage_id: str, tensor_id: str, **storage: Unpack[StorageFacts]
    ) -> None:
        """Record the free of a storage; ``(device, storage_id)`` pairs it with its allocation."""
        self._memory("free", span_id, storage_id, tensor_id, **storage)

    def _memory(
        self,
        action: str,
        span_id: SpanId,
        storage_id: str,
        tensor_id: str,
        *,
        device: str,
        bytes: int,
        dtype: str,
        shape: Iterable[int] = (),
        category: MemoryCategory = MemoryCategory.OTHER,
        op_name: str | None = None,
        timestamp_ns: int | None = None,
    ) -> None:
        span = self._span(span_id)
        self._put(
            "memory_events",
            (
                self._instant(timestamp_ns),
                text(storage_id, "storage_id"),
                text(tensor_id, "tensor_id"),
                span,
                optional_text(op_name, "op_name"),
                text(device, "device"),
                count(bytes, "bytes"),
                action,
                dimensions(shape),
                text(dtype, "dtype"),
                member(MemoryCategory, category, "category"),
            ),
        )

    def record_device_memory(
        self,
        device: str,
        *,
        used_bytes: int | None = None,
        free_bytes: int | None = None,
        reserved_bytes: int | None = None,
        capacity_bytes: int | None = None,
        timestamp_ns: int | None = None,
    ) -> None:
        """Record one physical checkpoint: independent observations, None where not observed, at least one given."""
        names = ("used_bytes", "free_bytes", "reserved_bytes", "capacity_bytes")
        given = (used_bytes, free_bytes, reserved_bytes, capacity_bytes)
        values = [optional_count(value, name) for name, value in zip(names, given, strict=True)]
        if all(value is None for value in values):
            raise ContractError(
                f"no value; expected at least one of {', '.join(names)}",
                source="device memory",
                code="empty_checkpoint",
            )
        self._put("device_memory", (self._instant(timestamp_ns), text(device, "device"), *values))

    def record_device_interval(
        self,
        span_id: SpanId,
        *,
        device: str,
        stream_id: str,
        clock_id: str,
        backend: str,
        start_ns: int,
        duration_ns: int,
        name: str | None = None,
        correlation_id: str | None = None,
    ) -> None:
        """Record one interval of device work on the clock ``(device, clock_id)``, which is never the host clock."""
        span = self._span(span_id)
        start, duration = count(start_ns, "start_ns"), positive(duration_ns, "duration_ns")
        end_of(start, duration, "duration_ns")
        self._put(
            "device_intervals",
            (
                span,
                text(device, "device"),
                text(stream_id, "stream_id"),
                text(clock_id, "clock_id"),
                text(backend, "backend"),
                start,
                duration,
                optional_text(name, "name"),
                optional_text(correlation_id, "correlation_id"),
            ),
        )
