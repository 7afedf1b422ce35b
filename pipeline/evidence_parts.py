"""The parts of an evidence packet: rows of the views, under the names of the protocol."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from ..recorder.errors import InputRefused
from .evidence_rows import Row

Rows = Mapping[str, list[Row]]
"""The rows of one run by the name of their query."""

_RUN_METADATA = (
    "run_id",
    "correlation_id",
    "entrypoint",
    "phase",
    "timestamp",
    "capture_step",
    "warmup_steps",
    "device",
    "measured_region_device_synchronized",
    "timing_mode",
)

ACTIVATION_DEFINITION = (
    "An operation of the measured subtree whose output tensor is of category activation, or that an activation storage"
    " names as the only operation of its name in the span that allocated it."
)
"""What ``activations.operations`` lists (guide, activation hotspots)."""


def provenance(run: Row) -> Row:
    """The run metadata of protocol 2.1 to 2.4; what the producer left out is left out here."""
    contract = _without(run["capture_contract"], "gradient_contract")
    for name in ("gpu_expected_semantic_labels", "cpu_only_semantic_labels"):
        if not contract[name]:
            del contract[name]
    found = {name: run[name] for name in _RUN_METADATA}
    found["capture_contract"] = contract
    if run["comparison_identity"] is not None:
        found["comparison_identity"] = _without(run["comparison_identity"], "implementation_id", "pair_id")
    found["tags"] = dict(sorted(run["tags"].items()))
    if run["candle_version"] is not None:
        found["candle_version"] = run["candle_version"]
    return found


def health(run: Row, rows: Rows) -> Row:
    """The object of protocol 3; an issue also names its subject, null for the run itself."""
    return {
        "structurally_valid": run["structurally_valid"],
        "capture_complete": run["capture_complete"],
        "issues": rows["issues"],
        "coverage": rows["coverage"][0],
    }


def states(rows: Iterable[Row]) -> dict[str, Row]:
    """Capability states by field (protocol 7.1)."""
    return {row["field"]: {name: row[name] for name in ("level", "source", "reason")} for row in rows}


def timing(run: Row, rows: Rows) -> Row:
    """The timing profile of protocol 4.2."""
    return {
        "device_coverage": run["device_coverage"],
        "device_spans": rows["device_spans"],
        "device_clocks": rows["device_clocks"],
    }


def memory(rows: Rows) -> Row:
    """The two planes of protocol 5; one without any record is absent."""
    found = {}
    if rows["memory_totals"]:
        found["logical"] = _logical(rows)
    if rows["physical_timeline"]:
        found["physical"] = {
            "timeline": [_without(row, *row) for row in rows["physical_timeline"]],
            "by_device": [_without(row, *row) for row in rows["physical_devices"]],
        }
    return found


def activations(rows: Rows) -> Row:
    """The profile of protocol 6.1; its counts are null in a run without exactly one closed measured span."""
    timings = defaultdict(list)
    for row in rows["activation_timings"]:
        timings[row["id"]].append(_but(row, "id"))
    profile = rows["activation_profile"][0] if rows["activation_profile"] else {}
    return {
        "definition": ACTIVATION_DEFINITION,
        **states(rows["activation_states"]),
        "unattributed_activation_storages": profile.get("unattributed_activation_storages"),
        "ambiguous_operations": profile.get("ambiguous_operations"),
        # A timing has the id of a span, and so has the one operation that it belongs to.
        "operations": [
            {**row, "device_timings": timings[row["id"]] if row["id"] == row["span_id"] else []}
            for row in rows["activation_operations"]
        ],
    }


def graph(run: Row, rows: Rows) -> Row:
    """The graph of protocol 4.3 to 4.5, of a complete and valid capture.

    Raises :class:`InputRefused` when two nodes have one id (protocol 4.3).
    """
    _refuse_collision(run["run_id"], rows["nodes"])
    timings = defaultdict(list)
    for row in rows["device_spans"]:
        timings[row["span_id"]].append({name: row[name] for name in ("device", "clock_id", "busy_ns")})
    nodes = [_node(row, timings.get(row["id"])) for row in rows["nodes"]]
    measured = next((node for node in nodes if node["id"] == run["measured_span_id"]), None)
    return {
        "spans": nodes,
        "edges": [_edge(row) for row in rows["edges"]],
        "tensors": [_without(row, "label", "dense_bytes") for row in rows["tensors"]],
        "gradients": [_without(row, "norm") for row in rows["gradients"]],
        "summary": {
            "entrypoint": run["entrypoint"],
            "outer_wall_time_ns": measured["host_total_time_ns"] if measured else None,
            "slowest_host_spans": rows["slowest_host"],
            "slowest_device_spans": rows["slowest_device"],
            "heaviest_spans": [_without(row, "peak_live_bytes") for row in rows["heaviest"]],
        },
    }


def gpu() -> Row:
    """The GPU evidence of protocol 12.3. No reader of Nsight folders exists yet, so no run has any."""
    return {"status": "unavailable", "reason": "no Nsight directory was given"}


def _logical(rows: Rows) -> Row:
    total, *devices = rows["memory_totals"]
    by_device = _by_timestamp(rows["memory_devices"], "device")
    by_category = _by_timestamp(rows["memory_categories"], "category")
    timeline = [
        {
            **row,
            "live_bytes_by_device": by_device.get(row["timestamp_ns"], {}),
            "live_bytes_by_category": by_category.get(row["timestamp_ns"], {}),
        }
        for row in rows["memory_timeline"]
    ]
    names = ("storage_allocation_count", "matched_storage_free_count", "total_allocated_bytes")
    found = {name: total[name] for name in names}
    if total["peak_timestamp_ns"] is not None:
        point = next(row for row in timeline if row["timestamp_ns"] == total["peak_timestamp_ns"])
        found["peak"] = {**point, "live_allocations": rows["peak_storages"]}
    found["timeline"] = timeline
    found["lifetimes"] = [_without(row, "end_timestamp_ns") for row in rows["lifetimes"]]
    found["by_device"] = [_without(row, "peak_live_bytes", "peak_timestamp_ns") for row in devices]
    return found


def _by_timestamp(rows: Iterable[Row], key: str) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = defaultdict(dict)
    for row in rows:
        found[row["timestamp_ns"]][row[key]] = row["live_bytes"]
    return found


def _refuse_collision(run_id: str, nodes: list[Row]) -> None:
    for earlier, later in pairwise(nodes):
        if earlier["id"] == later["id"]:
            kinds = f"{earlier['kind']} and {later['kind']}"
            raise InputRefused(
                f"two nodes of its graph ({kinds}) have the id {later['id']!r}; expected each id once",
                source=run_id,
                code="node_id_collision",
                remedy="record spans whose ids are not those of operations (<span>/op/<n>) or tensors (tensor/<id>)",
            )


def _node(row: Row, timings: list[Row] | None) -> Row:
    optional = ("start_ns", "shape", "dtype", "device", "allocated_bytes", "peak_live_bytes", "residual_bytes")
    node = _without(row, *optional, "dense_bytes")
    if timings:
        node["device_timings"] = timings
    return node


def _edge(row: Row) -> Row:
    if row["kind"] == "call":
        ends = {"from_span": row["from_id"], "to_span": row["to_id"], "host_duration_ns": row["host_duration_ns"]}
    else:
        ends = {"from_tensor": row["from_id"], "to_tensor": row["to_id"]}
    return _without({"kind": row["kind"], **ends, "label": row["label"]}, "label")


def _without(row: Row, *optional: str) -> Row:
    """The row without those of its optional values that were not recorded."""
    return {name: value for name, value in row.items() if value is not None or name not in optional}


def _but(row: Row, name: str) -> Row:
    return {key: value for key, value in row.items() if key != name}
