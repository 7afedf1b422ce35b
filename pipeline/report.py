"""The Markdown report of one evidence packet (protocol 7.7)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .output import printable

_MARKUP = re.compile(r"[\\`*\[\]<>|]")

CAPABILITY_TITLES = {
    "structural_trace": "Structural trace",
    "outer_wall_time": "Outer wall time",
    "nested_host_time": "Nested host time",
    "nested_device_time": "Nested device time",
    "operation_coverage": "Operations",
    "tensor_coverage": "Tensors",
    "gradient_coverage": "Gradients",
    "logical_memory_coverage": "Logical memory",
    "physical_memory_coverage": "Physical memory",
    "gpu_correlation": "GPU correlation",
    "provenance_binding": "Provenance binding",
}


def render_report(packet: Mapping[str, Any]) -> str:
    """The report as Markdown: status, capability matrix, qualified findings, evidence gaps.

    Names are data: markup in them is escaped and every character that is not printable is shown as an escape, so a
    name stays on its line and in its cell.
    """
    return "\n".join([*_head(packet), *_matrix(packet), *_findings(packet), *_gaps(packet)]) + "\n"


def _head(packet: Mapping[str, Any]) -> list[str]:
    provenance = packet["provenance"]
    lines = ["# planewise evidence", "", f"- Status: **{_status(packet['health'])}**"]
    lines += [f"- {title}: {_text(provenance[name])}" for title, name in _BULLETS]
    return lines


_BULLETS = (("Entrypoint", "entrypoint"), ("Run", "run_id"), ("Phase", "phase"), ("Device", "device"))


def _status(health: Mapping[str, Any]) -> str:
    if not health["structurally_valid"]:
        return "STRUCTURALLY INVALID"
    return "COMPLETE CAPTURE" if health["capture_complete"] else "FAILED CAPTURE"


def _matrix(packet: Mapping[str, Any]) -> list[str]:
    lines = ["", "## Capability matrix", "", "| Capability | Level | Source | Reason |", "| --- | --- | --- | --- |"]
    for field, state in packet["capabilities"].items():
        cells = (CAPABILITY_TITLES.get(field, field), state["level"], state["source"], state["reason"])
        lines.append(f"| {' | '.join(_text(cell) for cell in cells)} |")
    return lines


def _findings(packet: Mapping[str, Any]) -> list[str]:
    lines = ["", "## Qualified findings", ""]
    for finding in packet["findings"]:
        requires = ", ".join(finding["requires"])
        lines.append(f"- {finding['qualification']}: {_text(finding['summary'])} (requires {requires})")
    return lines if packet["findings"] else [*lines, "The evidence qualifies no finding."]


def _gaps(packet: Mapping[str, Any]) -> list[str]:
    lines = ["", "## Evidence gaps", ""]
    gaps = packet["gaps"]
    lines += [f"- {_text(gap)}" for gap in gaps["rows"]] or ["No capability is short of complete."]
    if gaps["truncated"]:
        lines += [
            "",
            f"{gaps['displayed']} of {gaps['total']} gaps are shown; `planewise query --kind health` shows all.",
        ]
    return lines


def _text(value: str | None) -> str:
    """One value as text in Markdown; a foreign trace may leave out what a capture states."""
    return "not recorded" if value is None else printable(_MARKUP.sub(r"\\\g<0>", value))
