"""The planes: every table planewise knows, declared once.

The recorder, every ingester, the SQL layer, the generated docs and ``planewise schema`` read these declarations.
A plane is one table with one meaning; a plane never speaks for another. NULL means "not recorded", never zero.

Rules that hold for all planes (design, "Planes"): names are the protocol's JSON names; every time is a BIGINT of
nanoseconds; each row carries ``run_id`` and ``seq``, its position in its source, so that rows with one timestamp
have one order. Host times are on the run's host clock (nanoseconds since its session opened); device times are on
the clock that their row names and are never aligned to the host clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import pyarrow as pa

PLANE_VERSION = 1
"""Version of all plane schemas together; stored in each shard's metadata and raised when any column changes."""

INT64_MAX = 2**63 - 1

STRING = pa.string()
#: Strings that repeat. Dictionary encoding is a matter of the file (see ``shards``), the logical type stays a string.
INT = pa.int64()
FLOAT = pa.float64()
BOOL = pa.bool_()
STRINGS = pa.list_(pa.field("element", pa.string(), nullable=False))
INTS = pa.list_(pa.field("element", pa.int64(), nullable=False))

GRADIENT_CONTRACT = pa.struct(
    [
        pa.field("manifest_sha256", STRING, nullable=False),
        pa.field(
            "expected",
            pa.list_(pa.struct([pa.field(n, STRING, nullable=False) for n in ("root", "key", "family")])),
            nullable=False,
        ),
        pa.field(
            "families",
            pa.list_(
                pa.struct(
                    [
                        pa.field("family", STRING, nullable=False),
                        pa.field("expectation", STRING, nullable=False),
                        pa.field("min_present", INT, nullable=False),
                    ]
                )
            ),
            nullable=False,
        ),
    ]
)

COVERAGE_FIELDS = (
    "operations",
    "activations",
    "tensors",
    "gradients",
    "logical_memory",
    "physical_memory",
    "device_timing",
)
"""The coverage members of a capture contract, in the guide's order (guide 2)."""

CAPTURE_CONTRACT = pa.struct(
    [
        pa.field("measurement_scope", STRING, nullable=False),
        *[pa.field(name, STRING, nullable=False) for name in COVERAGE_FIELDS],
        pa.field("gradient_contract", GRADIENT_CONTRACT),
        pa.field("required_semantic_labels", STRINGS, nullable=False),
        pa.field("gpu_expected_semantic_labels", STRINGS, nullable=False),
        pa.field("cpu_only_semantic_labels", STRINGS, nullable=False),
    ]
)

COMPARISON_IDENTITY = pa.struct(
    [
        pa.field("implementation_id", STRING),
        *[
            pa.field(name, STRING, nullable=False)
            for name in ("workload_id", "model_id", "config_id", "data_id", "seed_policy")
        ],
        pa.field("physical_batch", INT, nullable=False),
        pa.field("accumulation_steps", INT, nullable=False),
        pa.field("precision", STRING, nullable=False),
        pa.field("device_state", STRING, nullable=False),
        pa.field("pair_id", STRING),
    ]
)


@dataclass(frozen=True)
class Column:
    """One column of a table: its Arrow type, whether NULL may stand in it, its unit and its meaning."""

    name: str
    type: Any
    doc: str
    nullable: bool = False
    unit: str | None = None
    since: int = 1

    @cached_property
    def field(self) -> Any:
        """The Arrow field; doc, unit and since travel as field metadata."""
        metadata = {"doc": self.doc, "since": str(self.since)}
        if self.unit:
            metadata["unit"] = self.unit
        return pa.field(self.name, self.type, nullable=self.nullable, metadata=metadata)


@dataclass(frozen=True)
class Plane:
    """One plane: a name, the meaning of one row, and its columns in order."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    version: int = PLANE_VERSION

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema; its metadata names the plane and its version."""
        metadata = {"planewise.plane": self.name, "planewise.plane_version": str(self.version)}
        return pa.schema([column.field for column in self.columns], metadata=metadata)

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)


def _col(name: str, type_: Any, doc: str, *, null: bool = False, unit: str | None = None) -> Column:
    return Column(name, type_, doc, nullable=null, unit=unit)


def _ns(name: str, doc: str, *, null: bool = False) -> Column:
    return Column(name, INT, doc, nullable=null, unit="ns")


def _bytes(name: str, doc: str, *, null: bool = False) -> Column:
    return Column(name, INT, doc, nullable=null, unit="bytes")


def _plane(name: str, doc: str, *columns: Column) -> Plane:
    key = (
        _col("run_id", STRING, "The run this row belongs to."),
        _col("seq", INT, "Position of the record in its source; orders rows that share a timestamp."),
    )
    return Plane(name, doc, key + columns)


_SHAPE = "Dimensions, outermost first; an empty list is a scalar."
_CATEGORY = "Semantic memory category: parameter, activation, gradient, optimizer or other."

_DECLARED = (
    _plane(
        "runs",
        "One captured invocation: provenance, contract, identity, outcome, producer and source digest.",
        _col("schema", STRING, "Schema the source declares, e.g. candle-graph/trace/10 or planewise/capture/1."),
        _col("source_format", STRING, "Reader that read the source, e.g. capture, candle-trace."),
        _col("source_name", STRING, "Base name of the source file or folder as it was given."),
        _col("source_digest", STRING, "sha256: and 64 hex digits over the content of the source."),
        _col("producer", STRING, "Program and version that wrote the source; NULL when it does not say.", null=True),
        _col("correlation_id", STRING, "Shared with NVTX labels and external artefacts."),
        _col("entrypoint", STRING, "Name of the instrumented entry point."),
        _col("phase", STRING, "train or infer."),
        _col("timestamp", STRING, "Wall-clock time the session opened, as the producer wrote it."),
        _col("capture_step", INT, "One-based number of the captured invocation."),
        _col("warmup_steps", INT, "Invocations before the captured one."),
        _col("device", STRING, "Primary device label, e.g. cpu or cuda:0."),
        _col("measured_region_device_synchronized", BOOL, "The measured region was bounded by device syncs."),
        _col("timing_mode", STRING, "host or device_synchronized."),
        _col("capture_contract", CAPTURE_CONTRACT, "What the producer asserts about the whole measured region."),
        _col("comparison_identity", COMPARISON_IDENTITY, "Identity for comparison; NULL when none.", null=True),
        _col("tags", pa.map_(STRING, STRING), "Descriptive only; never affects comparability."),
        _col("candle_version", STRING, "Version of candle; NULL when not recorded.", null=True),
        _col("outcome", STRING, "complete or failed; NULL when no terminal record exists (interrupted).", null=True),
        _ns("terminal_timestamp_ns", "Host time of the terminal record; NULL when interrupted.", null=True),
        _col("failure_reason", STRING, "Reason of the terminal record; NULL when it has none.", null=True),
    ),
    _plane(
        "spans",
        "One host span.",
        _col("id", STRING, "Identity of the span, unique in its run."),
        _col("parent_id", STRING, "Enclosing span; NULL for the root.", null=True),
        _col("name", STRING, "Semantic label."),
        _ns("start_ns", "Start on the host clock."),
        _ns("duration_ns", "Wall duration; NULL for a span that never ended.", null=True),
        _col("span_kind", STRING, "function, op or module."),
        _col("measured", BOOL, "True for the measured region."),
        _col("step", STRING, "forward, backward or optimizer; NULL when untagged.", null=True),
        _col("end_seq", INT, "Position of the end record; NULL for a span that never ended.", null=True),
        _col("thread_id", INT, "Thread the span ran on; NULL when not recorded.", null=True),
    ),
    _plane(
        "ops",
        "One executed operation.",
        _col("span_id", STRING, "Span the operation ran in."),
        _col("op_name", STRING, "Name of the operation."),
        _col("inputs", STRINGS, "Input tensor ids, in order."),
        _col("output", STRING, "Output tensor id; NULL when not recorded.", null=True),
        _col("shape", INTS, "Output shape. " + _SHAPE),
        _col("dtype", STRING, "Output dtype, e.g. f32."),
        _col("device", STRING, "Device of the output."),
        _ns("duration_ns", "Host duration (enqueue time on an asynchronous device)."),
        _ns("timestamp_ns", "Start on the host clock."),
        _bytes("output_dense_bytes", "Dense output footprint, not storage; NULL when the dtype is unknown.", null=True),
        _bytes("input_dense_bytes", "Sum of the dense footprints of the inputs."),
    ),
    _plane(
        "tensors",
        "One tensor observation.",
        _col("span_id", STRING, "Span the observation was made in."),
        _col("tensor_id", STRING, "Backend identity of the tensor."),
        _col("label", STRING, "Caller's label, never an identity; NULL when unlabelled.", null=True),
        _col("shape", INTS, _SHAPE),
        _col("dtype", STRING, "Element type, e.g. f32."),
        _col("device", STRING, "Device label."),
        _col("requires_grad", BOOL, "The tensor is a variable."),
        _bytes("dense_bytes", "Elements times element size; NULL when the dtype is unknown.", null=True),
        _col("category", STRING, _CATEGORY),
    ),
    _plane(
        "tensor_stats",
        "One labelled numerical summary of a tensor, or one scalar.",
        _col("span_id", STRING, "Span the summary was made in."),
        _col("label", STRING, "Stable join key across runs."),
        _col("shape", INTS, _SHAPE),
        _col("dtype", STRING, "Element type of the summarised tensor."),
        _col("elements", INT, "Number of elements.", unit="count"),
        _col("non_finite", INT, "NaN or infinite elements; authoritative over the aggregates.", unit="count"),
        _col("rms", FLOAT, "Root mean square; written as 0 when not finite."),
        _col("abs_max", FLOAT, "Largest absolute value; written as 0 when not finite."),
        _col("mean", FLOAT, "Mean; written as 0 when not finite."),
    ),
    _plane(
        "memory_events",
        "One logical storage allocation or free.",
        _ns("timestamp_ns", "Host time of the event."),
        _col("storage_id", STRING, "Backend storage identity; pairing key is (device, storage_id)."),
        _col("tensor_id", STRING, "Tensor using the storage."),
        _col("span_id", STRING, "Span the event happened in."),
        _col("op_name", STRING, "Operation that allocated or freed; NULL when not recorded.", null=True),
        _col("device", STRING, "Device of the storage."),
        _bytes("bytes", "Actual allocation size, not the dense footprint."),
        _col("action", STRING, "alloc or free."),
        _col("shape", INTS, "Shape of the tensor. " + _SHAPE),
        _col("dtype", STRING, "Element type of the tensor."),
        _col("category", STRING, _CATEGORY),
    ),
    _plane(
        "device_memory",
        "One physical or allocator checkpoint; its four values are independent observations.",
        _ns("timestamp_ns", "Host time of the checkpoint."),
        _col("device", STRING, "Device label."),
        _bytes("used_bytes", "Bytes in use; NULL when not observed.", null=True),
        _bytes("free_bytes", "Bytes free; NULL when not observed.", null=True),
        _bytes("reserved_bytes", "Bytes the allocator holds; NULL when not observed.", null=True),
        _bytes("capacity_bytes", "Capacity as observed, never computed; NULL when not observed.", null=True),
    ),
    _plane(
        "device_intervals",
        "One interval of device work on one (device, clock_id).",
        _col("span_id", STRING, "Span the work belongs to."),
        _col("device", STRING, "Device label."),
        _col("stream_id", STRING, "Stream or queue."),
        _col("clock_id", STRING, "Clock of start_ns; the clock domain is (device, clock_id)."),
        _col("backend", STRING, "What measured the interval, e.g. cuda-event."),
        _ns("start_ns", "Start on the device clock, not the host clock."),
        _ns("duration_ns", "Duration on the device clock."),
        _col("name", STRING, "Name of the work, e.g. a kernel; NULL when not recorded.", null=True),
        _col("correlation_id", STRING, "Id shared with the launch; NULL when not recorded.", null=True),
    ),
    _plane(
        "gradients",
        "One per-parameter gradient fact.",
        _col("event_id", STRING, "Identity of the fact, unique in its run."),
        _col("root", STRING, "Parameter root."),
        _col("key", STRING, "Parameter key under the root."),
        _col("state", STRING, "present, missing, zero or non_finite."),
        _col("norm", FLOAT, "L2 norm; NULL for missing and non_finite.", null=True),
    ),
    _plane(
        "edges",
        "One recorded call or data edge.",
        _col("edge_kind", STRING, "call or data."),
        _col("from_span", STRING, "Calling span; NULL for a data edge.", null=True),
        _col("to_span", STRING, "Called span; NULL for a data edge.", null=True),
        _ns("host_duration_ns", "Duration of the call; NULL for a data edge.", null=True),
        _col("from_tensor", STRING, "Source tensor id; NULL for a call edge.", null=True),
        _col("to_tensor", STRING, "Target tensor id; NULL for a call edge.", null=True),
    ),
    _plane(
        "engine_events",
        "One inference-engine record: a request, an iteration, a stage or a membership.",
        _col("event_type", STRING, "What the record is about, e.g. request, iteration, stage, membership."),
        _col("event_id", STRING, "Identity of the record, unique in its run."),
        _col("request_id", STRING, "Request; NULL when the record names none.", null=True),
        _col("iteration_id", STRING, "Iteration; NULL when the record names none.", null=True),
        _col("clock_id", STRING, "Clock of start_ns; NULL when the record has no time.", null=True),
        _ns("start_ns", "Start on clock_id; NULL when not recorded.", null=True),
        _ns("duration_ns", "Duration on clock_id; NULL when not recorded.", null=True),
        _col("attributes", STRING, "Remaining fields as one JSON object; NULL when there are none.", null=True),
    ),
    _plane(
        "attachments",
        "One raw artefact kept beside the run.",
        _col("path", STRING, "Path inside the run's folder, / separated."),
        _col("title", STRING, "What the artefact is."),
        _bytes("bytes", "Size of the file."),
        _col("sha256", STRING, "64 lowercase hex digits over the file's bytes."),
    ),
    _plane(
        "ingest_issues",
        "One refused or repaired input record, or one fact about the input that its reader had to note.",
        _col("file", STRING, "File of the source the issue is in, relative to the source."),
        _col("line", INT, "Line from 1; NULL when the input has no lines.", null=True),
        _col("byte_offset", INT, "Byte offset from 0; NULL when unknown.", null=True, unit="bytes"),
        _col("code", STRING, "Stable snake_case code."),
        _col("severity", STRING, "info, warning, error or data_loss."),
        _col("message", STRING, "What was found, and what was done about it."),
    ),
)

PLANES: Mapping[str, Plane] = MappingProxyType({plane.name: plane for plane in _DECLARED})
"""Every plane by name, in the order of the design."""


def iter_columns() -> Iterator[tuple[Plane, Column]]:
    """Every (plane, column) pair in declaration order."""
    for plane in PLANES.values():
        for column in plane.columns:
            yield plane, column
