"""``planewise query INPUT --kind K``: one bounded, labelled question to one run (protocol 13.8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import duckdb

from ..recorder.errors import InputRefused, UsageError
from .output import plain

PAGE_ROWS = 50
"""Rows of a page when no limit is given (protocol 13.4)."""
MAX_LIMIT = 1000
"""Largest page that can be asked for; ``--all`` exports everything (protocol 13.4)."""


@dataclass(frozen=True)
class Kind:
    """One query kind: what it shows, its SQL, whether it needs a graph, and the column that labels match.

    ``brief`` names the columns that the table format shows, where all of them would not fit a terminal.
    """

    about: str
    sql: str
    needs_graph: bool = False
    label: str | None = None
    brief: tuple[str, ...] = ()


_GPU = "SELECT field, level, source, reason FROM capabilities WHERE field IN ('gpu_correlation', 'provenance_binding')"

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "slowest-host": Kind(
            "Host spans by self time inside the measured region; concurrent rows are no part of its wall time.",
            "SELECT * EXCLUDE (run_id) FROM slowest_host ORDER BY rank",
            needs_graph=True,
            label="name",
        ),
        "slowest-device": Kind(
            "Spans of the measured subtree by device busy time, per device clock.",
            "SELECT * EXCLUDE (run_id) FROM slowest_device ORDER BY rank, id, device, clock_id",
            needs_graph=True,
            label="name",
        ),
        "heaviest": Kind(
            "Spans of the measured subtree by bytes allocated directly in them.",
            "SELECT * EXCLUDE (run_id) FROM heaviest ORDER BY rank",
            needs_graph=True,
            label="name",
        ),
        "memory": Kind(
            "Live-byte peaks per device and over all (device empty); logical storage only.",
            "SELECT * EXCLUDE (run_id) FROM live_bytes_peak ORDER BY device NULLS FIRST",
        ),
        "memory-timeline": Kind(
            "Live logical bytes after all events of each timestamp.",
            "SELECT * EXCLUDE (run_id) FROM live_bytes ORDER BY timestamp_ns",
        ),
        "memory-lifetimes": Kind(
            "Every logical storage lifetime; an end is absent when no free was observed.",
            "SELECT * EXCLUDE (run_id) FROM storage_lifetimes"
            " ORDER BY start_timestamp_ns, device, storage_id, alloc_seq",
            brief=(
                "device",
                "storage_id",
                "allocation_span_id",
                "op_name",
                "bytes",
                "category",
                "start_timestamp_ns",
                "end_timestamp_ns",
            ),
        ),
        "physical-memory": Kind(
            "Extrema of the physical checkpoints per device.",
            "SELECT * EXCLUDE (run_id) FROM physical_memory_extrema ORDER BY device",
        ),
        "spans": Kind(
            "Host spans and operations with total and self time.",
            "SELECT * EXCLUDE (run_id) FROM host_self_time ORDER BY seq, node_id",
            needs_graph=True,
            label="name",
            brief=("node_id", "parent_id", "node_kind", "name", "start_ns", "host_total_time_ns", "host_self_time_ns"),
        ),
        "tensors": Kind(
            "Tensor observations.",
            "SELECT * EXCLUDE (run_id), coalesce(label, tensor_id) AS match FROM tensors ORDER BY seq",
            needs_graph=True,
            label="match",
            brief=("span_id", "tensor_id", "label", "shape", "dtype", "device", "dense_bytes", "category"),
        ),
        "tensor-stats": Kind(
            "Labelled tensor summaries and scalars.",
            "SELECT * EXCLUDE (run_id) FROM tensor_stats ORDER BY seq",
            label="label",
        ),
        "gradients": Kind(
            "Gradient facts.",
            "SELECT * EXCLUDE (run_id), root || '/' || key AS parameter FROM gradients ORDER BY seq",
            needs_graph=True,
            label="parameter",
        ),
        "capabilities": Kind(
            "What may be claimed from this run, and why.",
            "SELECT * EXCLUDE (run_id, field_order) FROM capabilities ORDER BY field_order",
        ),
        "health": Kind(
            "Every structural finding.",
            "SELECT severity, code, subject, message FROM health_issues ORDER BY code_order, subject, message",
            label="code",
        ),
        "activations": Kind(
            "Activation-producing operations with one rank per metric; the metrics are never merged.",
            "SELECT * EXCLUDE (run_id) FROM activation_hotspots ORDER BY host_rank NULLS LAST, id",
            needs_graph=True,
            label="name",
            brief=(
                "id",
                "name",
                "shape",
                "observed_host_duration_ns",
                "host_rank",
                "dense_output_bytes",
                "dense_output_rank",
                "logical_allocated_bytes",
                "logical_allocated_rank",
                "logical_byte_nanoseconds",
                "logical_byte_nanoseconds_rank",
            ),
        ),
        "activations-device": Kind(
            "Activation-producing operations by device busy time, one ranking per device clock.",
            "SELECT * EXCLUDE (run_id) FROM activation_device_hotspots ORDER BY device, clock_id, device_rank, id",
            needs_graph=True,
        ),
        "labels": Kind(
            "Every label of the run, by what carries it.",
            "SELECT plane, label, count(*) AS rows FROM ("
            " SELECT 'spans' AS plane, name AS label FROM spans"
            " UNION ALL SELECT 'tensor_stats', label FROM tensor_stats"
            " UNION ALL SELECT 'tensors', label FROM tensors WHERE label IS NOT NULL"
            " UNION ALL SELECT 'gradients', root || '/' || key FROM gradients"
            ") GROUP BY ALL ORDER BY ALL",
            label="label",
        ),
        "gpu-status": Kind("Whether GPU label correlation and provenance binding can be claimed.", _GPU),
    }
)


@dataclass(frozen=True)
class Page:
    """One page of a query: the rows, how many matched, and where the next page starts (None at the end)."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    total: int
    offset: int
    next_offset: int | None

    def brief(self, kind: str) -> Page:
        """This page with the columns that fit a terminal."""
        chosen = [self.columns.index(name) for name in KINDS[kind].brief or self.columns]
        rows = [tuple(row[index] for index in chosen) for row in self.rows]
        return replace(self, columns=[self.columns[index] for index in chosen], rows=rows)

    def to_json(self) -> dict[str, Any]:
        """The ``result`` object of a query document."""
        return {
            "total": self.total,
            "displayed": len(self.rows),
            "truncated": self.next_offset is not None,
            "offset": self.offset,
            "next_offset": self.next_offset,
            "rows": [plain(dict(zip(self.columns, row, strict=True))) for row in self.rows],
        }


def run_query(
    con: duckdb.DuckDBPyConnection,
    kind: str,
    *,
    label: str | None = None,
    label_prefix: str | None = None,
    limit: int | None = PAGE_ROWS,
    offset: int = 0,
) -> Page:
    """Answer one query over the single run of ``con``: filtered first, then paged; ``limit=None`` gives every row.

    Raises
    ------
    UsageError
        For an unknown kind, a label filter on a kind without labels, both label filters, or a limit out of range.
    InputRefused
        For a graph-dependent kind on a failed or invalid capture (protocol 13.2).
    """
    chosen = _checked(kind, label, label_prefix, limit)
    if chosen.needs_graph:
        _require_graph(con, kind)
    source, parameters = _filtered(chosen, label, label_prefix)
    total = con.execute(f"SELECT count(*) FROM {source}", parameters).fetchall()[0][0]
    paging = "" if limit is None else f" LIMIT {int(limit)}"
    con.execute(f"SELECT * FROM {source}{paging} OFFSET {int(offset)}", parameters)
    columns = [item[0] for item in con.description or []]
    rows = con.fetchall()
    end = offset + len(rows)
    return Page(columns, rows, total, offset, end if end < total and rows else None)


def _checked(kind: str, label: str | None, label_prefix: str | None, limit: int | None) -> Kind:
    if kind not in KINDS:
        raise UsageError(f"no query kind {kind!r}", remedy=f"use one of {', '.join(KINDS)}")
    chosen = KINDS[kind]
    if label is not None and label_prefix is not None:
        raise UsageError("--label and --label-prefix exclude each other", remedy="give one of them")
    if chosen.label is None and (label is not None or label_prefix is not None):
        labelled = ", ".join(name for name, known in KINDS.items() if known.label)
        raise UsageError(f"kind {kind} has no labels to filter", remedy=f"kinds with labels: {labelled}")
    if limit is not None and not 1 <= limit <= MAX_LIMIT:
        raise UsageError(f"limit {limit} is outside 1 to {MAX_LIMIT}", remedy="use --all to export everything")
    return chosen


def _require_graph(con: duckdb.DuckDBPyConnection, kind: str) -> None:
    for run_id, status in con.execute("SELECT run_id, status FROM run_health").fetchall():
        if status != "valid":
            raise InputRefused(
                f"kind {kind} needs a complete, structurally valid capture; this one is {status}",
                source=run_id,
                code="graph_unavailable",
                remedy="look at --kind health for what is wrong",
            )


def _filtered(kind: Kind, label: str | None, label_prefix: str | None) -> tuple[str, list[str]]:
    if label is not None:
        return f"({kind.sql}) WHERE {kind.label} = ?", [label]
    if label_prefix is not None:
        return f"({kind.sql}) WHERE starts_with({kind.label}, ?)", [label_prefix]
    return f"({kind.sql})", []
