"""What evidence is made of: a fixed number of queries over all runs at once, read run by run side by side.

Every query names ``run_id`` first and is ordered by it and then by a unique key, so that the same planes give the same
packet. Each is a cursor of its own and holds the rows of one run at a time in Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import duckdb

Row = dict[str, Any]

GRAPH_ROWS = 8
"""Rows of each ranking in a graph summary (protocol 13.4)."""

_FETCH_ROWS = 10_000
_INT64_MAX = 2**63 - 1

QUERIES: Mapping[str, str] = MappingProxyType(
    {
        "coverage": "FROM health_coverage ORDER BY run_id",
        "issues": (
            "SELECT run_id, severity, code, subject, message FROM health_issues"
            " ORDER BY run_id, code_order, subject NULLS FIRST, message"
        ),
        "capabilities": (
            "SELECT run_id, field, kind, level, source, reason FROM capabilities ORDER BY run_id, field_order"
        ),
        "tensor_stats": "SELECT * EXCLUDE (seq) FROM tensor_stats ORDER BY run_id, seq",
        "device_spans": "FROM device_span_busy ORDER BY run_id, span_id, device, clock_id",
        "device_clocks": "FROM device_clock_busy ORDER BY run_id, device, clock_id",
        "memory_totals": "FROM live_bytes_peak ORDER BY run_id, device NULLS FIRST",
        "memory_timeline": "FROM live_bytes ORDER BY run_id, timestamp_ns",
        "memory_devices": "FROM live_bytes_by_device ORDER BY run_id, timestamp_ns, device",
        "memory_categories": "FROM live_bytes_by_category ORDER BY run_id, timestamp_ns, category",
        "lifetimes": (
            "SELECT * EXCLUDE (alloc_seq) FROM storage_lifetimes"
            " ORDER BY run_id, start_timestamp_ns, device, storage_id, alloc_seq"
        ),
        "peak_storages": (
            "SELECT * EXCLUDE (alloc_seq, peak_device) FROM live_bytes_peak_storages WHERE peak_device IS NULL"
            " ORDER BY run_id, start_timestamp_ns, device, storage_id, alloc_seq"
        ),
        "physical_timeline": ("SELECT * EXCLUDE (seq) FROM device_memory ORDER BY run_id, timestamp_ns, device, seq"),
        "physical_devices": "FROM physical_memory_extrema ORDER BY run_id, device",
        "activation_states": (
            "SELECT run_id, field, level, source, reason FROM activation_capabilities ORDER BY run_id, field_order"
        ),
        "activation_profile": "FROM activation_profile ORDER BY run_id",
        # In the order in which the operations ran; ids alone would sort the tenth before the second.
        "activation_operations": (
            "SELECT h.* EXCLUDE (host_rank, dense_output_rank, logical_allocated_rank, logical_byte_nanoseconds_rank)"
            " REPLACE (logical_byte_nanoseconds::VARCHAR AS logical_byte_nanoseconds)"
            " FROM activation_hotspots AS h JOIN _op_nodes AS o USING (run_id, span_id, op_index)"
            " ORDER BY run_id, o.seq"
        ),
        "activation_timings": (
            "SELECT * EXCLUDE (device_rank) FROM activation_device_hotspots ORDER BY run_id, id, device, clock_id"
        ),
        "nodes": "FROM _graph_nodes ORDER BY run_id, id",
        "edges": "FROM _graph_edges ORDER BY run_id, from_id, to_id, kind",
        "tensors": "SELECT * EXCLUDE (seq) FROM tensors ORDER BY run_id, seq",
        "gradients": "SELECT run_id, root, key, state, norm FROM gradients ORDER BY run_id, seq",
        "slowest_host": (f"SELECT * EXCLUDE (rank) FROM slowest_host WHERE rank <= {GRAPH_ROWS} ORDER BY run_id, rank"),
        "slowest_device": (
            f"SELECT * EXCLUDE (rank) FROM slowest_device WHERE rank <= {GRAPH_ROWS} ORDER BY run_id, rank"
        ),
        "heaviest": f"SELECT * EXCLUDE (rank) FROM heaviest WHERE rank <= {GRAPH_ROWS} ORDER BY run_id, rank",
    }
)
"""Every part of a packet by name; the row of the run itself is RUNS."""

RUNS = """
    SELECT
        runs.*,
        health.structurally_valid,
        health.capture_complete,
        region.span_id AS measured_span_id,
        region.duration_ns AS outer_wall_time_ns,
        CASE
            WHEN capture_contract.device_timing = 'none' AND coverage.device_intervals > 0 THEN 'partial'
            ELSE capture_contract.device_timing
        END AS device_coverage
    FROM runs
    JOIN run_health AS health USING (run_id)
    JOIN health_coverage AS coverage USING (run_id)
    LEFT JOIN _measured_region AS region USING (run_id)
    ORDER BY run_id
"""
"""One row a run. Observed device intervals raise an undeclared coverage to partial (protocol 4.2)."""


class RunRows:
    """The rows of one query, handed out run by run in the order of run ids."""

    def __init__(self, con: duckdb.DuckDBPyConnection, query: str) -> None:
        self._cursor = con.cursor()
        self._cursor.execute(query)
        described = self._cursor.description or []
        self._columns = [column[0] for column in described]
        self._rows = self._fetch()
        self._next = next(self._rows, None)

    def __iter__(self) -> Iterator[Row]:
        """Every row that is left, with its run id."""
        while self._next is not None:
            row, self._next = self._next, next(self._rows, None)
            yield self._named(row)

    def take(self, run_id: str) -> list[Row]:
        """The rows of one run without its id. Rows of earlier runs are passed over: no run owns them."""
        found = []
        while self._next is not None and self._next[0] <= run_id:
            if self._next[0] == run_id:
                row = self._named(self._next)
                del row["run_id"]
                found.append(row)
            self._next = next(self._rows, None)
        return found

    def close(self) -> None:
        """Give the rows back."""
        self._cursor.close()

    def _named(self, row: tuple[Any, ...]) -> Row:
        return {name: exact(value) for name, value in zip(self._columns, row, strict=True)}

    def _fetch(self) -> Iterator[tuple[Any, ...]]:
        while rows := self._cursor.fetchmany(_FETCH_ROWS):
            yield from rows


def exact(value: Any) -> Any:
    """The JSON value of a result value.

    An integer that a signed 64-bit reader cannot hold becomes a decimal string; a float that is not finite becomes
    None, because JSON has no such number and the count of non-finite elements speaks for it.
    """
    if isinstance(value, int) and not -_INT64_MAX - 1 <= value <= _INT64_MAX:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
