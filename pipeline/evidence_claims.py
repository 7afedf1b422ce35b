"""What a packet claims: findings, facts and gaps (protocol 7.7), each from values that the packet already holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]


def findings(graph: Json | None, capabilities: Json) -> list[dict[str, Any]]:
    """The largest observations, each with the capability it needs and the level that capability has.

    Empty without a graph: a capture that is not complete and valid has observations and no findings.
    """
    if graph is None:
        return []
    found = []
    for host in graph["summary"]["slowest_host_spans"]["rows"][:1]:
        found.append(
            _finding(
                "largest_observed_host_self_time",
                f"{host['name']} has the largest host self time inside the measured region:"
                f" {host['measured_overlap_self_time_ns']} of {host['measured_overlap_duration_ns']} ns"
                f" ({host['scope']})",
                host["id"],
                "nested_host_time",
                capabilities["nested_host_time"],
            )
        )
    for device in graph["summary"]["slowest_device_spans"]["rows"][:1]:
        found.append(
            _finding(
                "largest_observed_device_busy_time",
                f"{device['name']} has the largest device busy time: {device['device_busy_ns']} ns"
                f" on {device['device']}, clock {device['clock_id']}",
                device["id"],
                "nested_device_time",
                capabilities["nested_device_time"],
            )
        )
    return found


def facts(packet: Json, outer_wall_time_ns: int | None) -> list[dict[str, Any]]:
    """Single values that their capability makes available, in the order of protocol 7.7.

    ``outer_wall_time_ns`` is the duration of the measured span; None without exactly one that ended.
    """
    found = []
    if outer_wall_time_ns is not None and _available(packet, "outer_wall_time"):
        label = "Wall time of the measured region"
        found.append(
            _fact("outer_wall_time", label, "duration_ns", outer_wall_time_ns, "measured_span", "outer_wall_time")
        )
    contract = packet["provenance"]["capture_contract"].get("gradient_contract")
    if contract is not None and _available(packet, "gradient_coverage"):
        found += _contract_facts(contract)
    gradients = (packet.get("graph") or {}).get("gradients")
    if gradients and gradients["total"]:
        label = "Gradient observations that are not present"
        value = gradients["total"] - gradients["present"]
        found.append(_fact("gradient_observations", label, "count", value, "trace.gradient", "gradients"))
    peak = packet["memory"].get("logical", {}).get("peak")
    if peak is not None and _available(packet, "logical_memory_coverage"):
        label = "Peak of live logical storage"
        source = "logical_storage_lifetimes"
        found.append(_fact("logical_peak_live_bytes", label, "bytes", peak["live_bytes"], source, "logical_memory"))
    return found


def gaps(listed: Json) -> dict[str, Any]:
    """What the run cannot show: why a capability is not complete, and every warning; sorted, each once.

    ``listed`` is the bounded list of them, which keeps the reasons first where it cuts.
    """
    return {**listed, "rows": sorted(row["text"] for row in listed["rows"])}


def _available(packet: Json, field: str) -> bool:
    return packet["capabilities"][field]["level"] in ("partial", "complete")


def _contract_facts(contract: Json) -> list[dict[str, Any]]:
    source = "capture_contract.gradient_contract"
    values = (
        ("gradient_manifest_sha256", "Digest of the gradient manifest", "text", contract["manifest_sha256"]),
        ("gradient_manifest_entries", "Parameters in the gradient manifest", "count", contract["expected"]["total"]),
        ("gradient_family_expectations", "Gradient family rules", "count", contract["families"]["total"]),
    )
    return [_fact(code, label, kind, value, source, "gradients") for code, label, kind, value in values]


def _fact(code: str, label: str, kind: str, value: Any, source: str, capability: str) -> dict[str, Any]:
    return {
        "code": code,
        "label": label,
        "value": {"kind": kind, "value": value},
        "source": source,
        "capability": capability,
    }


def _finding(code: str, summary: str, source: str, requires: str, state: Json) -> dict[str, Any]:
    return {
        "code": code,
        "summary": summary,
        "source": source,
        "requires": [requires],
        "qualification": state["level"],
    }
