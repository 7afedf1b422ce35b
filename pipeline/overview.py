"""``planewise overview``: the bounded first look at one run (protocol 13.6)."""

from __future__ import annotations

from typing import Any

from .inputs import OpenInput

LIST_ROWS = 20
"""Findings and gaps shown (protocol 13.4)."""
SPAN_ROWS = 5
"""Host spans and activation headlines shown (protocol 13.4)."""


def overview(opened: OpenInput) -> dict[str, Any]:
    """The overview document: provenance, health counts, capabilities, bounded findings and gaps, headlines.

    A headline that the evidence does not qualify is null; ``timing_unavailable_reason`` says why there is no timing.
    """
    packet = opened.packet
    health = packet["health"]
    severities = [issue["severity"] for issue in health["issues"]]
    graph = packet.get("graph")
    stats = packet.get("tensor_stats") or []
    return {
        "schema": "planewise/overview/1",
        "input": opened.description,
        "provenance": packet["provenance"],
        "health": {
            "structurally_valid": health["structurally_valid"],
            "capture_complete": health["capture_complete"],
            "error_count": severities.count("error"),
            "warning_count": severities.count("warning"),
        },
        "capabilities": packet["capabilities"],
        "findings": bounded(packet["findings"], LIST_ROWS),
        "gaps": bounded(packet["gaps"], LIST_ROWS),
        "counts": {
            "tensor_stat_events": len(stats),
            "tensor_stat_non_finite_events": sum(1 for row in stats if row["non_finite"]),
            "graph_spans": len(graph["spans"]) if graph else None,
        },
        "timing": _timing(graph),
        "timing_unavailable_reason": None if graph else "the capture is not complete and structurally valid",
        "memory": _memory(packet),
        "activations": _activations(opened),
        "gpu": packet["gpu"],
    }


def bounded(rows: list[Any], limit: int) -> dict[str, Any]:
    """The bounded list form: totals beside the rows, so that a cut is never silent (protocol 13.4)."""
    shown = rows[:limit]
    return {"total": len(rows), "displayed": len(shown), "truncated": len(shown) < len(rows), "rows": shown}


def _timing(graph: dict[str, Any] | None) -> dict[str, Any] | None:
    if graph is None:
        return None
    summary = graph["summary"]
    return {
        "outer_wall_time_ns": summary["outer_wall_time_ns"],
        "entrypoint": summary["entrypoint"],
        "slowest_host_spans": bounded(summary["slowest_host_spans"], SPAN_ROWS),
    }


def _memory(packet: dict[str, Any]) -> dict[str, Any]:
    memory = packet["memory"]
    logical = memory.get("logical")
    totals = None
    if logical:
        peak = logical.get("peak") or {}
        totals = {
            "storage_allocation_count": logical["storage_allocation_count"],
            "matched_storage_free_count": logical["matched_storage_free_count"],
            "total_allocated_bytes": logical["total_allocated_bytes"],
            "peak_live_bytes": peak.get("live_bytes"),
            "peak_timestamp_ns": peak.get("timestamp_ns"),
        }
    return {"logical": bool(logical), "physical": bool(memory.get("physical")), "logical_totals": totals}


def _activations(opened: OpenInput) -> dict[str, Any] | None:
    profile = opened.packet.get("activations")
    if not profile:
        return None
    headlines = {}
    for metric, column, rank in _HEADLINES:
        rows = opened.con.execute(
            f"SELECT id, name, {column} FROM activation_hotspots WHERE {rank} <= {SPAN_ROWS} ORDER BY {rank}"
        ).fetchall()
        headlines[metric] = [{"id": id_, "name": name, column: value} for id_, name, value in rows]
    return {
        "coverage": profile["coverage"],
        "operations": len(profile["operations"]),
        "unattributed_activation_storages": profile["unattributed_activation_storages"],
        "headlines": headlines,
    }


_HEADLINES = (
    ("host_time", "observed_host_duration_ns", "host_rank"),
    ("dense_output", "dense_output_bytes", "dense_output_rank"),
    ("logical_allocated", "logical_allocated_bytes", "logical_allocated_rank"),
    ("logical_byte_nanoseconds", "logical_byte_nanoseconds", "logical_byte_nanoseconds_rank"),
)
