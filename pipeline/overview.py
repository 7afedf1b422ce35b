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
    graph = packet.get("graph")
    stats = packet.get("tensor_stats") or {"events": 0, "non_finite_events": 0}
    return {
        "schema": "planewise/overview/1",
        "input": opened.description,
        "provenance": packet["provenance"],
        "health": {name: health[name] for name in _HEALTH},
        "capabilities": packet["capabilities"],
        "findings": bounded(packet["findings"], LIST_ROWS),
        "gaps": narrowed(packet["gaps"], LIST_ROWS),
        "counts": {
            "tensor_stat_events": stats["events"],
            "tensor_stat_non_finite_events": stats["non_finite_events"],
            "graph_spans": sum(graph["nodes"].values()) if graph else None,
        },
        "timing": _timing(graph),
        "timing_unavailable_reason": None if graph else "the capture is not complete and structurally valid",
        "memory": _memory(packet),
        "activations": _activations(packet),
        "gpu": packet["gpu"],
    }


def bounded(rows: list[Any], limit: int) -> dict[str, Any]:
    """The bounded list form: totals beside the rows, so that a cut is never silent (protocol 13.4)."""
    shown = rows[:limit]
    return {"total": len(rows), "displayed": len(shown), "truncated": len(shown) < len(rows), "rows": shown}


def narrowed(listed: dict[str, Any], limit: int) -> dict[str, Any]:
    """A bounded list of a packet with fewer rows; its total stays."""
    return {**bounded(listed["rows"], limit), "total": listed["total"], "truncated": listed["total"] > limit}


def _timing(graph: dict[str, Any] | None) -> dict[str, Any] | None:
    if graph is None:
        return None
    summary = graph["summary"]
    return {
        "outer_wall_time_ns": summary["outer_wall_time_ns"],
        "entrypoint": summary["entrypoint"],
        "slowest_host_spans": narrowed(summary["slowest_host_spans"], SPAN_ROWS),
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


def _activations(packet: dict[str, Any]) -> dict[str, Any]:
    profile = packet["activations"]
    headlines = {}
    for metric, column in _HEADLINES.items():
        rows = profile["rankings"][metric]["rows"][:SPAN_ROWS]
        headlines[_NAMES.get(metric, metric)] = [{name: row[name] for name in ("id", "name", column)} for row in rows]
    return {
        "coverage": profile["coverage"],
        "operations": profile["operations"],
        "unattributed_activation_storages": profile["unattributed_activation_storages"],
        "headlines": headlines,
    }


_HEALTH = ("structurally_valid", "capture_complete", "error_count", "warning_count")
_HEADLINES = {
    "host": "observed_host_duration_ns",
    "dense_output": "dense_output_bytes",
    "logical_allocated": "logical_allocated_bytes",
    "logical_byte_nanoseconds": "logical_byte_nanoseconds",
}
"""Ranking of the packet -> the column it ranks by."""
_NAMES = {"host": "host_time"}
