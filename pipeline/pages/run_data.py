"""What the page of a run shows, asked in SQL; every list says how much there is beside how much it shows."""

from __future__ import annotations

from typing import Any

import duckdb

from .lanes import Row, Timeline, timeline

LISTED = 100
"""Rows of a table on the page."""
INSTANTS = 1_000
"""Instants of the chart of live bytes; of more, the largest of each stretch of time is shown."""
HOST_LEGEND = ["outside the measured region", "beside the measured region, in its time", "measured region"]

# An operation that has a span of its own name is shown once.
_HOST_ROWS = """
    WITH shown AS (
        SELECT id, name, start_ns, duration_ns, process_id, thread_id FROM spans
        UNION ALL
        SELECT span_id, op_name, timestamp_ns, o.duration_ns, o.process_id, o.thread_id
        FROM ops AS o ANTI JOIN spans AS s ON s.id = o.span_id AND s.name = o.op_name
    ),
    marked AS (
        SELECT
            shown.*,
            CASE
                WHEN inside.span_id IS NOT NULL THEN 2
                WHEN shown.start_ns < region.end_ns
                    AND shown.start_ns::HUGEINT + shown.duration_ns > region.start_ns THEN 1
                ELSE 0
            END AS mark
        FROM shown
        LEFT JOIN (SELECT DISTINCT span_id FROM _measured_subtree) AS inside ON inside.span_id = shown.id
        LEFT JOIN _measured_region AS region ON true
    )
"""
_HOST = (
    _HOST_ROWS
    + "SELECT name, start_ns, duration_ns, mark, process_id, thread_id FROM marked WHERE duration_ns IS NOT NULL"
    + " ORDER BY duration_ns DESC, start_ns, name LIMIT ?"
)
_HOST_COUNTS = (
    _HOST_ROWS + "SELECT count(*) FILTER (duration_ns IS NOT NULL), count(*) FILTER (duration_ns IS NULL) FROM marked"
)
_CLOCKS = """
    SELECT device, clock_id, count(*), any_value(busy_ns)
    FROM device_intervals LEFT JOIN device_clock_busy USING (run_id, device, clock_id)
    GROUP BY device, clock_id ORDER BY device, clock_id
"""
_WORK = """
    SELECT coalesce(name, 'not named'), start_ns, duration_ns, coalesce(class, 'unknown'), stream_id
    FROM device_work WHERE device = ? AND clock_id = ?
    ORDER BY duration_ns DESC, start_ns, seq LIMIT ?
"""
_LIVE = """
    WITH instants AS (
        SELECT timestamp_ns, live_bytes,
            ntile(?) OVER (ORDER BY timestamp_ns) AS stretch
        FROM live_bytes
    ),
    chosen AS (
        SELECT arg_max(timestamp_ns, (live_bytes, -timestamp_ns)) AS timestamp_ns FROM instants GROUP BY stretch
    )
    SELECT timestamp_ns, category, live_bytes
    FROM chosen LEFT JOIN live_bytes_by_category USING (timestamp_ns)
    ORDER BY timestamp_ns, category
"""


def host_timeline(con: duckdb.DuckDBPyConnection, limit: int) -> Timeline | None:
    """Spans, and operations that have no span of their own name, on the host clock; None without any."""
    [(total, open_rows)] = con.execute(_HOST_COUNTS).fetchall()
    found = _all(con, _HOST, [limit])
    several = len({row[4:] for row in found}) > 1
    rows = [
        Row(name, start, length, mark, _thread(process, thread) if several else None)
        for name, start, length, mark, process, thread in found
    ]
    return timeline("Host", rows, HOST_LEGEND, total=total, open_rows=open_rows)


def _thread(process_id: int | None, thread_id: int | None) -> str:
    if thread_id is None:
        return "thread not recorded"
    return f"thread {thread_id}" + ("" if process_id is None else f" of process {process_id}")


def device_timelines(con: duckdb.DuckDBPyConnection, limit: int) -> list[Timeline]:
    """One axis for each clock of each device, a lane for each stream; no two clocks are ever put on one axis."""
    found = []
    for device, clock_id, total, busy_ns in _all(con, _CLOCKS):
        work = _all(con, _WORK, [device, clock_id, limit])
        classes = sorted({row[3] for row in work})
        rows = [
            Row(name, start, length, classes.index(class_), f"stream {stream}" if stream is not None else "no stream")
            for name, start, length, class_, stream in work
        ]
        title = f"{device}, clock {clock_id}" + ("" if busy_ns is None else f": busy {busy_ns / 1e6:,.3f} ms")
        one = timeline(title, rows, classes, total=total)
        if one is not None:
            found.append(one)
    return found


def live_points(con: duckdb.DuckDBPyConnection) -> dict[str, Any] | None:
    """Live bytes by category at up to ``INSTANTS`` instants, None without any; ``start_ns`` is the first of them."""
    [(total,)] = con.execute("SELECT count(*) FROM live_bytes").fetchall()
    if not total:
        return None
    rows = _all(con, _LIVE, [min(total, INSTANTS)])
    categories = sorted({category for _, category, _ in rows if category is not None})
    by_time: dict[int, dict[str, int]] = {}
    for at, category, size in rows:
        by_time.setdefault(at, {}).update({} if category is None else {category: size})
    return {"total": total, "displayed": len(by_time), "start_ns": rows[0][0], "categories": categories, "at": by_time}


def listed(con: duckdb.DuckDBPyConnection, query: str, total: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Rows of a query as a bounded list; ``total`` counts them all."""
    [(count,)] = con.execute(total).fetchall()
    rows = [dict(zip(names, row, strict=True)) for row in _all(con, f"{query} LIMIT {LISTED}")]
    return {"total": count, "displayed": len(rows), "truncated": len(rows) < count, "rows": rows}


def gradients(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Gradients, those that are not simply present first."""
    query = """
        SELECT root, key, state, norm FROM gradients
        ORDER BY CASE state WHEN 'non_finite' THEN 0 WHEN 'missing' THEN 1 WHEN 'zero' THEN 2 ELSE 3 END, seq
    """
    return listed(con, query, "SELECT count(*) FROM gradients", ("root", "key", "state", "norm"))


def tensor_stats(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Numerical summaries, those with elements that are not finite first."""
    names = ("label", "shape", "dtype", "non_finite", "rms", "abs_max", "mean")
    query = f"SELECT {', '.join(names)} FROM tensor_stats ORDER BY non_finite > 0 DESC, seq"
    return listed(con, query, "SELECT count(*) FROM tensor_stats", names)


def _all(con: duckdb.DuckDBPyConnection, query: str, values: list[Any] | None = None) -> list[tuple[Any, ...]]:
    return con.execute(query, values or []).fetchall()
