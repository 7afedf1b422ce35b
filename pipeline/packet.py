"""The shape of an evidence packet: what every reader of ``evidence.json`` may rely on (protocol 7.7).

The bytes of a verified bundle are what its manifest says; that does not make them a packet. Whoever reads one checks
it against these declarations first. Members that no reader needs one by one are left open.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

import msgspec

from ..recorder.errors import IncompatibleInput, InputRefused

SCHEMA = "planewise/evidence/1"
"""Format of an evidence packet."""

Total = int | str
"""A sum: a JSON integer while it fits 64 signed bits, else a decimal string."""


class Bounded(TypedDict):
    """A list that was cut in SQL: ``total`` counts what there is, ``displayed`` the rows that are here."""

    total: int
    displayed: int
    truncated: bool
    rows: list[dict[str, Any]]


class Gaps(Bounded):
    """The gaps are texts."""

    rows: list[str]  # type: ignore[misc]


class State(TypedDict):
    """What one capability is worth."""

    level: str
    source: str
    reason: str


class Source(TypedDict):
    """What the run was read from."""

    format: str
    digest: str


class Provenance(TypedDict):
    """The members of the run metadata that are shown one by one; None: the source does not say."""

    run_id: str
    entrypoint: str | None
    phase: str | None
    capture_step: int | None
    device: str | None
    capture_contract: dict[str, Any]


class Health(TypedDict):
    """Structural health; the counts are over all issues."""

    structurally_valid: bool
    capture_complete: bool
    error_count: int
    warning_count: int
    issue_counts: list[dict[str, Any]]
    issues: Bounded
    coverage: dict[str, int]


class Finding(TypedDict):
    """One qualified observation."""

    code: str
    summary: str
    source: str
    requires: list[str]
    qualification: str


class HostSpan(TypedDict):
    """A row of the ranking of host spans."""

    id: str
    name: str
    scope: str
    measured_overlap_self_time_ns: Total


class HostSpans(Bounded):
    """The ranking of host spans."""

    rows: list[HostSpan]  # type: ignore[misc]


class Summary(TypedDict):
    """Rankings of a graph."""

    entrypoint: str | None
    outer_wall_time_ns: Total | None
    slowest_host_spans: HostSpans
    slowest_device_spans: Bounded
    heaviest_spans: Bounded


class Graph(TypedDict):
    """How large the graph of a complete and valid capture is, and its rankings."""

    nodes: dict[str, int]
    gradients: dict[str, int]
    summary: Summary


class TensorStats(TypedDict):
    """How many tensor statistics were recorded."""

    events: int
    non_finite_events: int
    labels: int


class Timing(TypedDict):
    """Device time."""

    device_coverage: str
    device_spans: Bounded
    device_clocks: Bounded


class Peak(TypedDict):
    """The largest sum of live logical storage."""

    timestamp_ns: int
    live_bytes: Total
    live_bytes_by_device: Bounded
    live_bytes_by_category: dict[str, Total]
    live_allocations: Bounded


class LogicalMemory(TypedDict):
    """Logical storage; no peak when nothing was allocated."""

    storage_allocation_count: int
    matched_storage_free_count: int
    total_allocated_bytes: Total
    peak: NotRequired[Peak]
    by_device: Bounded


class PhysicalMemory(TypedDict):
    """Extrema of the checkpoints."""

    by_device: Bounded


class Memory(TypedDict):
    """The two planes of memory; one without a record is absent."""

    logical: NotRequired[LogicalMemory]
    physical: NotRequired[PhysicalMemory]


class Activation(TypedDict):
    """An operation in a ranking of activations."""

    id: str
    name: str
    observed_host_duration_ns: int | None
    dense_output_bytes: int | None
    logical_allocated_bytes: Total | None
    logical_byte_nanoseconds: str | None


class Activations(Bounded):
    """One ranking of activations."""

    rows: list[Activation]  # type: ignore[misc]


class Rankings(TypedDict):
    """One ranking per metric, never merged; the device ranking is one for each clock."""

    host: Activations
    dense_output: Activations
    logical_allocated: Activations
    logical_byte_nanoseconds: Activations
    device: Bounded


class ActivationProfile(TypedDict):
    """What activations cost; the counts are None without exactly one closed measured span."""

    definition: str
    coverage: State
    operations: int | None
    unattributed_activation_storages: int | None
    ambiguous_operations: int | None
    rankings: Rankings


class Packet(TypedDict):
    """One evidence packet."""

    schema: str
    views_digest: str
    source: Source
    provenance: Provenance
    health: Health
    capabilities: dict[str, State]
    findings: list[Finding]
    facts: list[dict[str, Any]]
    gaps: Gaps
    graph: NotRequired[Graph]
    tensor_stats: NotRequired[TensorStats]
    timing: Timing
    memory: Memory
    activations: ActivationProfile
    gpu: dict[str, Any]


def encode_packet(packet: dict[str, Any]) -> bytes:
    """The bytes of evidence.json: pretty-printed in the packet's own key order, with a final newline."""
    return msgspec.json.format(msgspec.json.encode(packet), indent=1) + b"\n"


def decode_packet(content: bytes, source: object) -> dict[str, Any]:
    """The packet that these bytes of ``source`` hold, whole.

    Raises
    ------
    IncompatibleInput
        It is of another format.
    InputRefused
        It is no JSON object, or not of the shape of a packet.
    """
    try:
        value = msgspec.json.decode(content)
        found = value.get("schema") if isinstance(value, dict) else None
        if isinstance(value, dict) and found != SCHEMA:
            raise IncompatibleInput(
                f"evidence.json has schema {found!r}; this planewise knows {SCHEMA}",
                source=source,
                remedy="ingest the source again, or read it with the planewise that published it",
            )
        msgspec.convert(value, Packet)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputRefused(
            f"evidence.json is no evidence packet: {error}",
            source=source,
            code="bad_evidence",
            remedy="ingest the source again and publish it",
        ) from error
    packet: dict[str, Any] = value
    return packet
