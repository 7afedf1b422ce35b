"""The records of a candle-graph trace as tagged structs: the strict gate (protocol 1.2).

Field order is the column order of the plane a record becomes, so a struct is a row. ``UNSET`` tells an absent key
from one that spells its default, which the duplicate-key rule needs (see ``strict_json``).
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from .run_metadata import Count, RunMetadata

SCHEMAS = ("candle-graph/trace/10", "candle-graph/trace/9")
"""The trace schemas that are read; the second has no ``tensor_stats``."""

Category = Literal["parameter", "activation", "gradient", "optimizer", "other"]


class Meta(RunMetadata, kw_only=True, tag_field="kind", tag="meta"):
    """First record: the schema and the run metadata, flattened."""

    schema: str


class SpanStart(msgspec.Struct, kw_only=True, gc=False, tag_field="kind", tag="span_start"):
    """A span opened."""

    id: str
    parent_id: str | UnsetType | None = UNSET
    name: str
    start_ns: Count
    span_kind: Literal["function", "op", "module"]
    measured: bool | UnsetType = UNSET
    step: Literal["forward", "backward", "optimizer"] | UnsetType | None = UNSET


class SpanEnd(msgspec.Struct, kw_only=True, gc=False, tag_field="kind", tag="span_end"):
    """A span closed."""

    id: str
    duration_ns: Count | UnsetType = UNSET


class Op(msgspec.Struct, kw_only=True, gc=False, tag_field="kind", tag="op"):
    """An operation ran."""

    span_id: str
    op_name: str
    inputs: list[str] | UnsetType = UNSET
    output: str | UnsetType | None = UNSET
    shape: list[Count]
    dtype: str
    device: str
    duration_ns: Count
    timestamp_ns: Count | UnsetType = UNSET
    output_dense_bytes: Count | UnsetType | None = UNSET
    input_dense_bytes: Count


class Tensor(msgspec.Struct, kw_only=True, gc=False, tag_field="kind", tag="tensor"):
    """A tensor was observed."""

    span_id: str
    tensor_id: str
    label: str | UnsetType | None = UNSET
    shape: list[Count]
    dtype: str
    device: str
    requires_grad: bool | UnsetType = UNSET
    dense_bytes: Count | UnsetType | None = UNSET
    category: Category | UnsetType = UNSET


class TensorStats(msgspec.Struct, kw_only=True, gc=False, tag_field="kind", tag="tensor_stats"):
    """A tensor or scalar was summarised."""

    span_id: str
    label: str
    shape: list[Count]
    dtype: str
    elements: Count
    non_finite: Count
    rms: float
    abs_max: float
    mean: float


class Memory(msgspec.Struct, kw_only=True, gc=False, tag_field="kind", tag="memory"):
    """A logical storage was allocated or freed."""

    timestamp_ns: Count
    storage_id: str
    tensor_id: str
    span_id: str
    op_name: str | UnsetType | None = UNSET
    device: str
    bytes: Count
    action: Literal["alloc", "free"]
    shape: list[Count] | UnsetType = UNSET
    dtype: str
    category: Category | UnsetType = UNSET


class DeviceMemory(msgspec.Struct, kw_only=True, gc=False, tag_field="kind", tag="device_memory"):
    """A physical memory checkpoint."""

    timestamp_ns: Count
    device: str
    used_bytes: Count | UnsetType | None = UNSET
    free_bytes: Count | UnsetType | None = UNSET
    reserved_bytes: Count | UnsetType | None = UNSET
    capacity_bytes: Count | UnsetType | None = UNSET


class DeviceInterval(msgspec.Struct, kw_only=True, gc=False, tag_field="kind", tag="device_interval"):
    """An interval of device work."""

    span_id: str
    device: str
    stream_id: str
    clock_id: str
    backend: str
    start_ns: Count
    duration_ns: Count


class Gradient(msgspec.Struct, kw_only=True, gc=False, tag_field="kind", tag="gradient"):
    """A gradient fact."""

    event_id: str
    root: str
    key: str
    state: Literal["present", "missing", "zero", "non_finite"]
    norm: float | UnsetType | None = UNSET


class Edge(msgspec.Struct, kw_only=True, gc=False, tag_field="kind", tag="edge"):
    """A call or data edge. The keys of the other kind are unknown extras here, so all are loose (see EDGE_KEYS)."""

    edge_kind: Literal["call", "data"]
    from_span: Any = UNSET
    to_span: Any = UNSET
    host_duration_ns: Any = UNSET
    from_tensor: Any = UNSET
    to_tensor: Any = UNSET


class Terminal(msgspec.Struct, kw_only=True, gc=False, tag_field="kind", tag="terminal"):
    """Last record: how the run ended."""

    outcome: Literal["complete", "failed"]
    timestamp_ns: Count
    reason: str | UnsetType | None = UNSET


EDGE_KEYS: dict[str, dict[str, type]] = {
    "call": {"from_span": str, "to_span": str, "host_duration_ns": int},
    "data": {"from_tensor": str, "to_tensor": str},
}
"""What each edge kind must carry."""

FLOAT_FIELDS = frozenset({"rms", "abs_max", "mean", "norm"})
"""The fields that are no integers; only there may ``-0`` stand, and it means -0.0."""

Record: TypeAlias = (
    Meta
    | SpanStart
    | SpanEnd
    | Op
    | Tensor
    | TensorStats
    | Memory
    | DeviceMemory
    | DeviceInterval
    | Gradient
    | Edge
    | Terminal
)

DECODER: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)

DEFAULTS: dict[type[Any], dict[str, Any]] = {
    SpanStart: {"parent_id": None, "measured": False, "step": None},
    SpanEnd: {"duration_ns": 0},
    Op: {"inputs": [], "output": None, "timestamp_ns": 0, "output_dense_bytes": None},
    Tensor: {"label": None, "requires_grad": False, "dense_bytes": None, "category": "other"},
    Memory: {"op_name": None, "shape": [], "category": "other"},
    DeviceMemory: dict.fromkeys(("used_bytes", "free_bytes", "reserved_bytes", "capacity_bytes")),
    Gradient: {"norm": None},
    Edge: dict.fromkeys(("from_span", "to_span", "host_duration_ns", "from_tensor", "to_tensor")),
    Terminal: {"reason": None},
}
"""What an absent key means, per record; the keys not listed are required."""
