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
from types import MappingProxyType

import pyarrow as pa

from .columns import (
    BOOL,
    FLOAT,
    INT,
    INTS,
    PLANE_VERSION,
    STRING,
    STRINGS,
    UNSIGNED,
    Column,
    Plane,
    col,
    foreign,
    native,
    ns,
    plane,
    size,
)
from .foreign_planes import FOREIGN_PLANES

__all__ = [
    "BOOL",
    "COVERAGE_FIELDS",
    "INT",
    "INT64_MAX",
    "PLANES",
    "PLANE_VERSION",
    "STRING",
    "Column",
    "Plane",
    "iter_columns",
]

INT64_MAX = 2**63 - 1

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


_SHAPE = "Dimensions, outermost first; an empty list is a scalar."
_CATEGORY = "Semantic memory category: parameter, activation, gradient, optimizer or other."

_DECLARED = (
    plane(
        "runs",
        "One captured invocation: provenance, contract, identity, outcome, producer and source digest.",
        col("schema", STRING, "Schema the source declares, e.g. candle-graph/trace/10 or planewise/capture/1."),
        col("source_format", STRING, "Reader that read the source, e.g. capture, candle-trace."),
        col("source_name", STRING, "Base name of the source file or folder as it was given."),
        col("source_digest", STRING, "sha256: and 64 hex digits over the content of the source."),
        col("producer", STRING, "Program and version that wrote the source; NULL when it does not say.", null=True),
        col("correlation_id", STRING, "Shared with NVTX labels and external artefacts."),
        native("entrypoint", STRING, "Name of the instrumented entry point; NULL when not said."),
        native("phase", STRING, "train or infer; NULL when not said."),
        native(
            "timestamp", STRING, "Wall-clock time the session opened, as the producer wrote it; NULL when not said."
        ),
        native("capture_step", INT, "One-based number of the captured invocation; NULL when not said."),
        native("warmup_steps", INT, "Invocations before the captured one; NULL when not said."),
        native("device", STRING, "Primary device label, e.g. cpu or cuda:0; NULL when not said."),
        native(
            "measured_region_device_synchronized",
            BOOL,
            "The measured region was bounded by device syncs; NULL when not said.",
        ),
        native("timing_mode", STRING, "host or device_synchronized; NULL when not said."),
        col("capture_contract", CAPTURE_CONTRACT, "What the producer asserts about the whole measured region."),
        col("comparison_identity", COMPARISON_IDENTITY, "Identity for comparison; NULL when none.", null=True),
        col("tags", pa.map_(STRING, STRING), "Descriptive only; never affects comparability."),
        col("candle_version", STRING, "Version of candle; NULL when not recorded.", null=True),
        col("outcome", STRING, "complete or failed; NULL when no terminal record exists (interrupted).", null=True),
        ns("terminal_timestamp_ns", "Host time of the terminal record; NULL when interrupted.", null=True),
        col("failure_reason", STRING, "Reason of the terminal record; NULL when it has none.", null=True),
        foreign("source_version", STRING, "Version of the source's format as it states it; NULL when it states none."),
        foreign("time_unit", STRING, "Unit of the source's times, e.g. us, ns; NULL when it has no times."),
        foreign(
            "host_clock_id", STRING, "Clock of the host times; device intervals of the same clock_id share its axis."
        ),
        foreign(
            "link_keys", STRINGS, "Keys of the source that link host and device records, sorted, e.g. correlation."
        ),
        foreign("rank", INT, "Rank in its job; NULL when the source does not say."),
        foreign("world_size", INT, "Ranks of its job; NULL when the source does not say.", unit="count"),
        foreign("supplied", STRINGS, "Columns of this row that the user supplied at ingest; NULL: none."),
    ),
    plane(
        "spans",
        "One host span.",
        col("id", STRING, "Identity of the span, unique in its run."),
        col("parent_id", STRING, "Enclosing span; NULL for the root.", null=True),
        col("name", STRING, "Semantic label."),
        ns("start_ns", "Start on the host clock."),
        ns("duration_ns", "Wall duration; NULL for a span that never ended.", null=True),
        col("span_kind", STRING, "function, op or module."),
        col("measured", BOOL, "True for the measured region."),
        col("step", STRING, "forward, backward or optimizer; NULL when untagged.", null=True),
        col("end_seq", INT, "Position of the end record; NULL for a span that never ended.", null=True),
        col("thread_id", INT, "Thread the span ran on; NULL when not recorded.", null=True),
        foreign("process_id", INT, "Process the span ran in; NULL when not recorded."),
        foreign(
            "category", STRING, "The source's own class of the record, e.g. user_annotation; NULL when it has none."
        ),
    ),
    plane(
        "ops",
        "One executed operation.",
        native("span_id", STRING, "Innermost span the operation ran in; NULL when none encloses it."),
        col("op_name", STRING, "Name of the operation."),
        native("inputs", STRINGS, "Input tensor ids, in order; NULL when not recorded."),
        col("output", STRING, "Output tensor id; NULL when not recorded.", null=True),
        col("shape", INTS, "Output shape; NULL when not recorded. " + _SHAPE, null=True),
        col("dtype", STRING, "Output dtype, e.g. f32; NULL when not recorded.", null=True),
        col("device", STRING, "Device of the output; NULL when not recorded.", null=True),
        native(
            "duration_ns",
            INT,
            "Host duration (enqueue time on an asynchronous device); NULL when the operation never ended.",
            unit="ns",
        ),
        ns("timestamp_ns", "Start on the host clock."),
        size("output_dense_bytes", "Dense output footprint, not storage; NULL when the dtype is unknown.", null=True),
        native(
            "input_dense_bytes", INT, "Sum of the dense footprints of the inputs; NULL when not recorded.", unit="bytes"
        ),
        foreign("process_id", INT, "Process the operation ran in; NULL when not recorded."),
        foreign("thread_id", INT, "Thread the operation ran on; NULL when not recorded."),
        foreign("parent_seq", INT, "seq of the innermost operation that encloses it on its thread; NULL: none."),
        foreign("external_id", STRING, "Id that launches and device work repeat (Kineto's External id)."),
        foreign("sequence_number", INT, "Autograd sequence number, shared by a forward operation and its backward."),
        foreign("input_shapes", STRING, "Shapes of the inputs, as the source's own JSON text."),
    ),
    plane(
        "tensors",
        "One tensor observation.",
        col("span_id", STRING, "Span the observation was made in."),
        col("tensor_id", STRING, "Backend identity of the tensor."),
        col("label", STRING, "Caller's label, never an identity; NULL when unlabelled.", null=True),
        col("shape", INTS, _SHAPE),
        col("dtype", STRING, "Element type, e.g. f32."),
        col("device", STRING, "Device label."),
        col("requires_grad", BOOL, "The tensor is a variable."),
        size("dense_bytes", "Elements times element size; NULL when the dtype is unknown.", null=True),
        col("category", STRING, _CATEGORY),
    ),
    plane(
        "tensor_stats",
        "One labelled numerical summary of a tensor, or one scalar.",
        col("span_id", STRING, "Span the summary was made in."),
        col("label", STRING, "Stable join key across runs."),
        col("shape", INTS, _SHAPE),
        col("dtype", STRING, "Element type of the summarised tensor."),
        col("elements", INT, "Number of elements.", unit="count"),
        col("non_finite", INT, "NaN or infinite elements; authoritative over the aggregates.", unit="count"),
        col("rms", FLOAT, "Root mean square; written as 0 when not finite."),
        col("abs_max", FLOAT, "Largest absolute value; written as 0 when not finite."),
        col("mean", FLOAT, "Mean; written as 0 when not finite."),
    ),
    plane(
        "memory_events",
        "One logical storage allocation or free.",
        ns("timestamp_ns", "Host time of the event."),
        col("storage_id", STRING, "Backend storage identity; pairing key is (device, storage_id)."),
        col("tensor_id", STRING, "Tensor using the storage; NULL when not recorded.", null=True),
        native("span_id", STRING, "Span the event happened in; NULL when none encloses it."),
        col("op_name", STRING, "Operation that allocated or freed; NULL when not recorded.", null=True),
        col("device", STRING, "Device of the storage."),
        size("bytes", "Actual allocation size, not the dense footprint."),
        col("action", STRING, "alloc or free."),
        col("shape", INTS, "Shape of the tensor; NULL when not recorded. " + _SHAPE, null=True),
        col("dtype", STRING, "Element type of the tensor; NULL when not recorded.", null=True),
        col("category", STRING, _CATEGORY),
        foreign("address", UNSIGNED, "Address of the storage; NULL when not recorded."),
        foreign("process_id", INT, "Process of the event; NULL when not recorded."),
        foreign("thread_id", INT, "Thread of the event; NULL when not recorded."),
    ),
    plane(
        "device_memory",
        "One physical or allocator checkpoint; its four values are independent observations.",
        ns("timestamp_ns", "Host time of the checkpoint."),
        col("device", STRING, "Device label."),
        size("used_bytes", "Bytes in use; NULL when not observed.", null=True),
        size("free_bytes", "Bytes free; NULL when not observed.", null=True),
        size("reserved_bytes", "Bytes the allocator holds; NULL when not observed.", null=True),
        size("capacity_bytes", "Capacity as observed, never computed; NULL when not observed.", null=True),
        foreign("process_id", INT, "Process of the checkpoint; NULL when not recorded."),
    ),
    plane(
        "device_intervals",
        "One interval of device work on one (device, clock_id).",
        native("span_id", STRING, "Span the work belongs to; NULL when the source names none."),
        col("device", STRING, "Device label."),
        col("stream_id", STRING, "Stream or queue."),
        col("clock_id", STRING, "Clock of start_ns; the clock domain is (device, clock_id)."),
        col("backend", STRING, "What measured the interval, e.g. cuda-event."),
        ns("start_ns", "Start on the device clock, not the host clock."),
        ns("duration_ns", "Duration on the device clock."),
        col("name", STRING, "Name of the work, e.g. a kernel; NULL when not recorded.", null=True),
        col("correlation_id", STRING, "Id shared with the launch; NULL when not recorded.", null=True),
        foreign("external_id", STRING, "Id of the operation that launched it (Kineto's External id)."),
        foreign("category", STRING, "The source's own class, e.g. kernel, gpu_memcpy; NULL when it has none."),
        foreign("process_id", INT, "Process the source files the work under; NULL when not recorded."),
        foreign("context_id", STRING, "Device context; NULL when not recorded."),
        foreign("graph_id", STRING, "Device graph whose replay ran it; NULL when none or not recorded."),
        foreign(
            "bytes",
            INT,
            "Bytes moved or set by a copy or a fill; NULL for other work or when not recorded.",
            unit="bytes",
        ),
    ),
    plane(
        "gradients",
        "One per-parameter gradient fact.",
        col("event_id", STRING, "Identity of the fact, unique in its run."),
        col("root", STRING, "Parameter root."),
        col("key", STRING, "Parameter key under the root."),
        col("state", STRING, "present, missing, zero or non_finite."),
        col("norm", FLOAT, "L2 norm; NULL for missing and non_finite.", null=True),
    ),
    plane(
        "edges",
        "One recorded call or data edge.",
        col("edge_kind", STRING, "call or data."),
        col("from_span", STRING, "Calling span; NULL for a data edge.", null=True),
        col("to_span", STRING, "Called span; NULL for a data edge.", null=True),
        ns("host_duration_ns", "Duration of the call; NULL for a data edge.", null=True),
        col("from_tensor", STRING, "Source tensor id; NULL for a call edge.", null=True),
        col("to_tensor", STRING, "Target tensor id; NULL for a call edge.", null=True),
    ),
    plane(
        "engine_events",
        "One inference-engine record: a request, an iteration, a stage or a membership.",
        col("event_type", STRING, "What the record is about, e.g. request, iteration, stage, membership."),
        col("event_id", STRING, "Identity of the record, unique in its run."),
        col("request_id", STRING, "Request; NULL when the record names none.", null=True),
        col("iteration_id", STRING, "Iteration; NULL when the record names none.", null=True),
        col("clock_id", STRING, "Clock of start_ns; NULL when the record has no time.", null=True),
        ns("start_ns", "Start on clock_id; NULL when not recorded.", null=True),
        ns("duration_ns", "Duration on clock_id; NULL when not recorded.", null=True),
        col("attributes", STRING, "Remaining fields as one JSON object; NULL when there are none.", null=True),
    ),
    plane(
        "attachments",
        "One raw artefact kept beside the run.",
        col("path", STRING, "Path inside the run's folder, / separated."),
        col("title", STRING, "What the artefact is."),
        size("bytes", "Size of the file."),
        col("sha256", STRING, "64 lowercase hex digits over the file's bytes."),
    ),
    plane(
        "ingest_issues",
        "One refused or repaired input record, or one fact about the input that its reader had to note.",
        col("file", STRING, "File of the source the issue is in, relative to the source."),
        col("line", INT, "Line from 1; NULL when the input has no lines.", null=True),
        col("byte_offset", INT, "Byte offset from 0; NULL when unknown.", null=True, unit="bytes"),
        col("code", STRING, "Stable snake_case code."),
        col("severity", STRING, "info, warning, error or data_loss."),
        col("message", STRING, "What was found, and what was done about it."),
    ),
)

PLANES: Mapping[str, Plane] = MappingProxyType({declared.name: declared for declared in (*_DECLARED, *FOREIGN_PLANES)})
"""Every plane by name, in the order of the design."""


def iter_columns() -> Iterator[tuple[Plane, Column]]:
    """Every (plane, column) pair in declaration order."""
    for declared in PLANES.values():
        for column in declared.columns:
            yield declared, column
