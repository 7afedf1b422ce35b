"""What evidence is made of: a fixed number of queries over all runs at once, read run by run side by side.

Every query names ``run_id`` first and is ordered by it and then by a unique key, so that the same planes give the same
packet. None gives rows without bound: a packet holds conclusions, and the rows behind them are in the planes beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import duckdb

Row = dict[str, Any]

ISSUE_ROWS = 100
"""Issues, and gaps, that a packet lists; their totals are always complete."""
RANKED_ROWS = 8
"""Rows of each ranking in a graph summary (protocol 13.4)."""
DEVICE_ROWS = 50
"""Rows of each list by device, clock or span and device."""
ALLOCATION_ROWS = 50
"""Live allocations listed at the peak."""
ACTIVATION_ROWS = 20
"""Rows of each ranking of activations."""
CONTRACT_ROWS = 20
"""Expected gradients, and rules of families, that the provenance repeats."""

_FETCH_ROWS = 10_000
_INT64_MAX = 2**63 - 1


def _top(source: str, columns: str, order: str, rows: int) -> str:
    """A query for a bounded list: one row a run with the total and the first ``rows`` rows by a unique order.

    The aggregate keeps the first rows only, so a long list is neither sorted nor moved as a whole.
    """
    row = ", ".join(f"{name}: {name}" for name in columns.split())
    return (
        f"SELECT run_id, count(*) AS total, min_by({{{row}}}, {{{order}}}, {rows}) AS rows"
        f" FROM {source} GROUP BY run_id ORDER BY run_id"
    )


_ACTIVATION = (
    "id span_id op_index name output_tensor_id shape dtype device observed_host_duration_ns dense_output_bytes"
    " logical_allocated_bytes logical_storage_count logical_storage_live_duration_ns logical_byte_nanoseconds"
    " logical_retained_bytes_at_measured_end classification_sources"
)
# Byte-nanoseconds are text whatever their size.
_HOTSPOTS = (
    "(SELECT * REPLACE (logical_byte_nanoseconds::VARCHAR AS logical_byte_nanoseconds) FROM activation_hotspots"
    " WHERE {rank} IS NOT NULL)"
)
_CLOCK_RANKINGS = f"""(
    SELECT run_id, device, clock_id, count(*) AS total, min_by(
        {{id: id, backends: backends, streams: streams, interval_count: interval_count, busy_ns: busy_ns}},
        {{r: device_rank}}, {ACTIVATION_ROWS}
    ) AS rows
    FROM activation_device_hotspots GROUP BY run_id, device, clock_id
)"""
# Why a capability falls short comes before single warnings; there are few of those and there may be many of these.
_GAPS = """(
    SELECT run_id, text, min(priority) AS priority
    FROM (
        SELECT run_id, reason AS text, 0 AS priority FROM capabilities WHERE level <> 'complete'
        UNION ALL
        SELECT run_id, message, code_order FROM health_issues WHERE severity = 'warning'
    )
    GROUP BY run_id, text
)"""
_AT_PEAK = "(FROM live_bytes_peak_storages WHERE peak_device IS NULL)"
_PEAK_OF_DEVICES = f"(SELECT run_id, device, sum(bytes) AS live_bytes FROM {_AT_PEAK} GROUP BY run_id, device)"

QUERIES: Mapping[str, str] = MappingProxyType(
    {
        "coverage": "FROM health_coverage ORDER BY run_id",
        "issue_codes": (
            "SELECT run_id, severity, code, count(*) AS count FROM health_issues"
            " GROUP BY run_id, severity, code, code_order ORDER BY run_id, severity, code_order"
        ),
        "issues": _top(
            "health_issues",
            "severity code subject message",
            "s: severity, o: code_order, named: subject IS NOT NULL, t: subject, m: message",
            ISSUE_ROWS,
        ),
        "capabilities": (
            "SELECT run_id, field, kind, level, source, reason FROM capabilities ORDER BY run_id, field_order"
        ),
        "gaps": _top(_GAPS, "text", "p: priority, t: text", ISSUE_ROWS),
        "tensor_stats": (
            "SELECT run_id, count(*) AS events, count(*) FILTER (non_finite > 0) AS non_finite_events,"
            " count(DISTINCT label) AS labels FROM tensor_stats GROUP BY run_id ORDER BY run_id"
        ),
        "device_spans": _top(
            "device_span_busy",
            "span_id device clock_id backends streams interval_count busy_ns",
            "b: -busy_ns, s: span_id, d: device, c: clock_id",
            DEVICE_ROWS,
        ),
        "device_clocks": _top(
            "device_clock_busy", "device clock_id interval_count busy_ns", "d: device, c: clock_id", DEVICE_ROWS
        ),
        "memory_totals": "SELECT * EXCLUDE (device) FROM live_bytes_peak WHERE device IS NULL ORDER BY run_id",
        "memory_devices": _top(
            "(FROM live_bytes_peak WHERE device IS NOT NULL)",
            "device storage_allocation_count matched_storage_free_count total_allocated_bytes peak_live_bytes"
            " peak_timestamp_ns",
            "d: device",
            DEVICE_ROWS,
        ),
        "peak_devices": _top(_PEAK_OF_DEVICES, "device live_bytes", "d: device", DEVICE_ROWS),
        "peak_categories": (
            f"SELECT run_id, category, sum(bytes) AS live_bytes FROM {_AT_PEAK}"
            " GROUP BY run_id, category ORDER BY run_id, category"
        ),
        "peak_storages": _top(
            _AT_PEAK,
            "device storage_id tensor_ids allocation_span_id op_name bytes shape dtype category start_timestamp_ns",
            "b: -bytes::HUGEINT, t: start_timestamp_ns, d: device, s: storage_id, a: alloc_seq",
            ALLOCATION_ROWS,
        ),
        "physical_devices": _top(
            "physical_memory_extrema",
            "device sample_count used_sample_count free_sample_count reserved_sample_count capacity_sample_count"
            " peak_used_bytes peak_used_timestamp_ns peak_reserved_bytes peak_reserved_timestamp_ns"
            " minimum_free_bytes minimum_free_timestamp_ns maximum_observed_capacity_bytes",
            "d: device",
            DEVICE_ROWS,
        ),
        "activation_states": (
            "SELECT run_id, field, level, source, reason FROM activation_capabilities ORDER BY run_id, field_order"
        ),
        "activation_profile": "FROM activation_profile ORDER BY run_id",
        **{
            f"activations_{metric}": _top(_HOTSPOTS.format(rank=rank), _ACTIVATION, f"r: {rank}", ACTIVATION_ROWS)
            for metric, rank in (
                ("host", "host_rank"),
                ("dense_output", "dense_output_rank"),
                ("logical_allocated", "logical_allocated_rank"),
                ("logical_byte_nanoseconds", "logical_byte_nanoseconds_rank"),
            )
        },
        "activations_device": _top(
            _CLOCK_RANKINGS, "device clock_id total rows", "d: device, c: clock_id", DEVICE_ROWS
        ),
        "collisions": _top("_graph_collisions", "id kind other_kind", "i: id, k: kind, o: other_kind", 1),
        "nodes": "FROM _graph_counts ORDER BY run_id",
        "gradients": (
            "SELECT run_id, count(*) AS total, count(*) FILTER (state = 'present') AS present,"
            " count(*) FILTER (state = 'missing') AS missing, count(*) FILTER (state = 'zero') AS zero,"
            " count(*) FILTER (state = 'non_finite') AS non_finite FROM gradients GROUP BY run_id ORDER BY run_id"
        ),
        "slowest_host": _top(
            "slowest_host",
            "id name scope host_self_time_ns measured_overlap_self_time_ns full_duration_ns"
            " measured_overlap_duration_ns",
            "r: rank",
            RANKED_ROWS,
        ),
        "slowest_device": _top("slowest_device", "id name device clock_id device_busy_ns", "r: rank", RANKED_ROWS),
        "heaviest": _top("heaviest", "id name allocated_bytes peak_live_bytes", "r: rank", RANKED_ROWS),
    }
)
"""Every part of a packet by name; the row of the run itself is RUNS."""

_CONTRACT = f"""
    CASE WHEN capture_contract.gradient_contract IS NOT NULL THEN {{
        manifest_sha256: capture_contract.gradient_contract.manifest_sha256,
        expected: {{
            total: len(capture_contract.gradient_contract.expected),
            rows: capture_contract.gradient_contract.expected[:{CONTRACT_ROWS}]
        }},
        families: {{
            total: len(capture_contract.gradient_contract.families),
            rows: capture_contract.gradient_contract.families[:{CONTRACT_ROWS}]
        }}
    }} END
"""

RUNS = f"""
    SELECT
        runs.* REPLACE (struct_update(capture_contract, gradient_contract := {_CONTRACT}) AS capture_contract),
        health.structurally_valid,
        health.capture_complete,
        health.error_count,
        health.warning_count,
        region.duration_ns AS outer_wall_time_ns,
        node.host_total_time_ns AS measured_total_ns,
        CASE
            WHEN capture_contract.device_timing = 'none' AND coverage.device_intervals > 0 THEN 'partial'
            ELSE capture_contract.device_timing
        END AS device_coverage
    FROM runs
    JOIN run_health AS health USING (run_id)
    JOIN health_coverage AS coverage USING (run_id)
    LEFT JOIN _measured_region AS region USING (run_id)
    LEFT JOIN _span_host_total AS node ON node.run_id = runs.run_id AND node.span_id = region.span_id
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
    """The JSON value of a result value, whatever it is nested in.

    An integer that a signed 64-bit reader cannot hold becomes a decimal string; a float that is not finite becomes
    None, because JSON has no such number and the count of non-finite elements speaks for it.
    """
    if isinstance(value, dict):
        return {key: exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [exact(item) for item in value]
    if isinstance(value, int) and not -_INT64_MAX - 1 <= value <= _INT64_MAX:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
