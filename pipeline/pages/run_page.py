"""The page of one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
from markupsafe import Markup

from ..report import CAPABILITY_TITLES
from . import charts
from .html import rendered
from .lanes import MOST_ROWS
from .run_data import device_timelines, gradients, host_timeline, live_points, tensor_stats

_FACTS = ("entrypoint", "phase", "capture_step", "device", "timestamp", "timing_mode", "correlation_id")
_RANKINGS = (
    ("host", "Observed host time", "observed_host_duration_ns"),
    ("dense_output", "Dense output", "dense_output_bytes"),
    ("logical_allocated", "Logical bytes allocated", "logical_allocated_bytes"),
    ("logical_byte_nanoseconds", "Logical byte-nanoseconds", "logical_byte_nanoseconds"),
)
_RANKED = 10


def run_page(packet: Mapping[str, Any], con: duckdb.DuckDBPyConnection, rows: int = MOST_ROWS) -> str:
    """The HTML of one run: ``packet`` is its evidence, ``con`` holds every view over this run alone.

    A timeline holds ``rows`` rows, of more the longest. The same run gives the same bytes.
    """
    capabilities = packet["capabilities"]
    provenance, health, activations = packet["provenance"], packet["health"], packet["activations"]
    return rendered(
        "run.html.j2",
        run=provenance,
        verdict=_verdict(health),
        health=health,
        facts=[(name.replace("_", " "), provenance[name]) for name in _FACTS if provenance.get(name) is not None],
        findings=packet["findings"],
        capabilities=[(CAPABILITY_TITLES.get(name, name), state) for name, state in capabilities.items()],
        issues=health["issues"],
        host=host_timeline(con, rows),
        devices=device_timelines(con, rows),
        memory=_memory(con),
        rankings=_rankings(activations),
        gradients=gradients(con),
        tensor_stats=tensor_stats(con),
        gaps=packet["gaps"],
        source=packet["source"],
        why={
            "device": capabilities["nested_device_time"]["reason"],
            "memory": capabilities["logical_memory_coverage"]["reason"],
            "memory_level": capabilities["logical_memory_coverage"]["level"],
            "gradients": capabilities["gradient_coverage"]["reason"],
            "activations": activations["coverage"]["reason"],
        },
    )


def _verdict(health: Mapping[str, Any]) -> dict[str, str]:
    if not health["structurally_valid"]:
        return {"look": "bad", "text": "structurally invalid"}
    if not health["capture_complete"]:
        return {"look": "warn", "text": "capture failed or was interrupted"}
    return {"look": "good", "text": "valid and complete"}


def _memory(con: duckdb.DuckDBPyConnection) -> dict[str, Any] | None:
    points = live_points(con)
    peaks = con.execute(
        "SELECT peak_live_bytes, peak_timestamp_ns FROM live_bytes_peak WHERE device IS NULL"
    ).fetchall()
    if points is None or not peaks or peaks[0][1] is None:
        return None
    [(size, at)] = peaks
    start, categories = points["start_ns"], {name: charts.named(name) for name in points["categories"]}
    values = [
        {"ms": (when - start) / 1e6, "MiB": sizes.get(name, 0) / 2**20, "category": shown, "rank": rank}
        for when, sizes in points["at"].items()
        for rank, (name, shown) in enumerate(categories.items())
    ]
    chart = charts.live_bytes(values, list(categories.values()), (at - start) / 1e6, size / 2**20)
    composition = con.execute(
        "SELECT category, live_bytes FROM live_bytes_by_category WHERE timestamp_ns = ?"
        " ORDER BY live_bytes DESC, category",
        [at],
    ).fetchall()
    return {
        "peak_bytes": size,
        "peak_ns": at - start,
        "total": points["total"],
        "displayed": points["displayed"],
        "composition": composition,
        "chart": Markup(chart),
    }


def _rankings(activations: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    for metric, title, column in _RANKINGS:
        ranked = activations["rankings"][metric]
        if ranked["rows"]:
            found.append({"title": title, "list": _ranked(ranked, column)})
    return found


def _ranked(ranked: Mapping[str, Any], column: str) -> dict[str, Any]:
    rows = [{"name": row["name"], "value": _told(column, row[column])} for row in ranked["rows"][:_RANKED]]
    return {"total": ranked["total"], "displayed": len(rows), "rows": rows}


def _told(column: str, value: Any) -> str:
    if column == "observed_host_duration_ns":
        return f"{value / 1e6:,.3f} ms"
    if column == "logical_byte_nanoseconds":
        return f"{int(value) / 2**20 / 1e6:,.3f} MiB·ms"
    return f"{value / 2**20:,.3f} MiB"
