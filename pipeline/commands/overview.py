"""``planewise overview``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..bundle import refuse_output_inside_bundle
from ..inputs import open_input
from ..output import OutputFormat, Rows, write_document, write_rows
from ..overview import overview as build_overview
from .options import format_option, input_argument, output_option


@click.command()
@input_argument
@format_option()
@output_option
def overview(input_path: Path, output_format: OutputFormat, output: Path | None) -> int:
    """The bounded first look at one run: what it is, how healthy, what may be claimed, and its headlines.

    \b
    Example: planewise overview bundle/
    """
    if output is not None:
        refuse_output_inside_bundle(output, input_path)
    with open_input(input_path) as opened:
        document = build_overview(opened)
    if output is not None or output_format is OutputFormat.JSON:
        write_document(document, output)
    else:
        write_rows(Rows(("section", "name", "value", "reason"), _lines(document)), output_format)
    return 0


def _lines(document: dict[str, Any]) -> list[tuple[str, str, Any, str | None]]:
    run, health = document["provenance"], document["health"]
    lines: list[tuple[str, str, Any, str | None]] = [
        ("run", name, run[name], None) for name in ("run_id", "entrypoint", "phase", "capture_step", "device")
    ]
    lines += [("health", name, value, None) for name, value in health.items()]
    lines += [("capability", name, state["level"], state["reason"]) for name, state in document["capabilities"].items()]
    timing = document["timing"]
    reason = document["timing_unavailable_reason"]
    lines.append(("timing", "outer_wall_time_ns", timing["outer_wall_time_ns"] if timing else None, reason))
    if timing:
        for row in timing["slowest_host_spans"]["rows"]:
            lines.append(("host self time", row["name"], row["measured_overlap_self_time_ns"], row["scope"]))
    totals = document["memory"]["logical_totals"] or {}
    lines += [("logical memory", name, value, None) for name, value in totals.items()]
    for metric, rows in (document["activations"] or {"headlines": {}})["headlines"].items():
        lines += [(f"activations by {metric}", row["name"], list(row.values())[2], row["id"]) for row in rows]
    return lines
