"""The parts of an evidence packet: rows of the views, under the names of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

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
    """The run metadata of protocol 2.1 to 2.4; what the producer left out is left out here.

    The lists of a gradient contract grow with the model, so they are bounded; its digest covers them whole.
    """
    contract = _without(run["capture_contract"], "gradient_contract")
    for name in ("gpu_expected_semantic_labels", "cpu_only_semantic_labels"):
        if not contract[name]:
            del contract[name]
    if "gradient_contract" in contract:
        gradients = contract["gradient_contract"]
        contract["gradient_contract"] = {
            "manifest_sha256": gradients["manifest_sha256"],
            **{name: bounded([gradients[name]]) for name in ("expected", "families")},
        }
    found = {name: run[name] for name in _RUN_METADATA}
    found["capture_contract"] = contract
    if run["comparison_identity"] is not None:
        found["comparison_identity"] = _without(run["comparison_identity"], "implementation_id", "pair_id")
    found["tags"] = dict(sorted(run["tags"].items()))
    if run["candle_version"] is not None:
        found["candle_version"] = run["candle_version"]
    return found


def bounded(rows: list[Row]) -> Row:
    """The bounded list form: totals beside the rows, so that a cut is never silent (protocol 13.4).

    ``rows`` is the one row of a bounded query for a run, or empty for a run without any.
    """
    found: Row = rows[0] if rows else {"total": 0, "rows": []}
    total, shown = found["total"], found["rows"]
    return {"total": total, "displayed": len(shown), "truncated": len(shown) < total, "rows": shown}


def health(run: Row, rows: Rows) -> Row:
    """The object of protocol 3; an issue also names its subject, null for the run itself.

    The list of issues is bounded, errors first and then by the order of the codes; the counts are over all issues.
    """
    return {
        "structurally_valid": run["structurally_valid"],
        "capture_complete": run["capture_complete"],
        "error_count": run["error_count"],
        "warning_count": run["warning_count"],
        "issue_counts": rows["issue_codes"],
        "issues": bounded(rows["issues"]),
        "coverage": rows["coverage"][0],
    }


def states(rows: Iterable[Row]) -> dict[str, Row]:
    """Capability states by field (protocol 7.1)."""
    return {row["field"]: {name: row[name] for name in ("level", "source", "reason")} for row in rows}


def timing(run: Row, rows: Rows) -> Row:
    """The timing profile of protocol 4.2, the busiest spans first."""
    return {
        "device_coverage": run["device_coverage"],
        "device_spans": bounded(rows["device_spans"]),
        "device_clocks": bounded(rows["device_clocks"]),
    }


def memory(rows: Rows) -> Row:
    """The two planes of protocol 5 in totals, peaks and extrema; one without any record is absent."""
    found = {}
    if rows["memory_totals"]:
        found["logical"] = _logical(rows)
    if rows["physical_devices"]:
        found["physical"] = {"by_device": _each(bounded(rows["physical_devices"]), lambda row: _without(row, *row))}
    return found


def activations(rows: Rows) -> Row:
    """The profile of protocol 6.1 with one bounded ranking per metric, which are never merged.

    Its counts are null in a run without exactly one closed measured span.
    """
    profile = rows["activation_profile"][0] if rows["activation_profile"] else {}
    metrics = ("host", "dense_output", "logical_allocated", "logical_byte_nanoseconds")
    return {
        "definition": ACTIVATION_DEFINITION,
        **states(rows["activation_states"]),
        "operations": profile.get("operations"),
        "unattributed_activation_storages": profile.get("unattributed_activation_storages"),
        "ambiguous_operations": profile.get("ambiguous_operations"),
        "rankings": {
            **{metric: bounded(rows[f"activations_{metric}"]) for metric in metrics},
            "device": _each(bounded(rows["activations_device"]), _clock),
        },
    }


def graph(run: Row, rows: Rows) -> Row:
    """How large the graph of a complete and valid capture is, and its rankings (protocol 4.3 to 4.5).

    Raises :class:`InputRefused` when two nodes have one id (protocol 4.3).
    """
    _refuse_collision(run["run_id"], rows["collisions"])
    states = ("present", "missing", "zero", "non_finite")
    gradients = rows["gradients"][0] if rows["gradients"] else dict.fromkeys(("total", *states), 0)
    return {
        "nodes": rows["nodes"][0],
        "gradients": gradients,
        "summary": {
            "entrypoint": run["entrypoint"],
            "outer_wall_time_ns": run["measured_total_ns"],
            "slowest_host_spans": bounded(rows["slowest_host"]),
            "slowest_device_spans": bounded(rows["slowest_device"]),
            "heaviest_spans": _each(bounded(rows["heaviest"]), lambda row: _without(row, "peak_live_bytes")),
        },
    }


def gpu() -> Row:
    """The GPU evidence of protocol 12.3. No reader of Nsight folders exists yet, so no run has any."""
    return {"status": "unavailable", "reason": "no Nsight directory was given"}


def _logical(rows: Rows) -> Row:
    [total] = rows["memory_totals"]
    names = ("storage_allocation_count", "matched_storage_free_count", "total_allocated_bytes")
    found: Row = {name: total[name] for name in names}
    if total["peak_timestamp_ns"] is not None:
        found["peak"] = {
            "timestamp_ns": total["peak_timestamp_ns"],
            "live_bytes": total["peak_live_bytes"],
            "live_bytes_by_device": bounded(rows["peak_devices"]),
            "live_bytes_by_category": {row["category"]: row["live_bytes"] for row in rows["peak_categories"]},
            "live_allocations": bounded(rows["peak_storages"]),
        }
    devices = bounded(rows["memory_devices"])
    found["by_device"] = _each(devices, lambda row: _without(row, "peak_live_bytes", "peak_timestamp_ns"))
    return found


def _clock(row: Row) -> Row:
    return {"device": row["device"], "clock_id": row["clock_id"], **bounded([row])}


def _refuse_collision(run_id: str, collisions: list[Row]) -> None:
    for collision in collisions[:1]:
        [found] = collision["rows"]
        raise InputRefused(
            f"two nodes of its graph ({found['kind']} and {found['other_kind']}) have the id {found['id']!r};"
            " expected each id once",
            source=run_id,
            code="node_id_collision",
            remedy="record spans whose ids are not those of operations (<span>/op/<n>) or tensors (tensor/<id>)",
        )


def _each(listed: Row, change: Callable[[Row], Row]) -> Row:
    return {**listed, "rows": [change(row) for row in listed["rows"]]}


def _without(row: Row, *optional: str) -> Row:
    """The row without those of its optional values that were not recorded."""
    return {name: value for name, value in row.items() if value is not None or name not in optional}
