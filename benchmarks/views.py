"""What the heaviest views cost, as ratios against scanning the columns that they read, interleaved, medians.

Run: ``python benchmarks/views.py [--rows N] [--repetitions N] [--run-filter]``. Shared machines are noisy; believe the
ratios, not the seconds. ``--run-filter`` asks for one run of sixteen, which has to reach the scan.
"""

from __future__ import annotations

import argparse
import statistics
import time

import duckdb

from planewise.pipeline.views import create_input_tables, create_views

RUNS = 16

INTERVALS = f"""
INSERT INTO device_intervals (run_id, seq, span_id, device, stream_id, clock_id, backend, start_ns, duration_ns)
SELECT
    'run-' || (i % {RUNS}), i, 's' || (hash(i) % 1000), 'cuda:' || (i // {RUNS} % 4), (hash(i * 3) % 4)::VARCHAR,
    'cuda-event', 'cuda-event', i * 40 + (hash(i * 7) % 100000)::BIGINT, (hash(i * 5) % 500)::BIGINT
FROM range(?) AS t (i) ORDER BY hash(i)
"""
# A storage lives while some hundred others come and go; each id is used again after its free.
EVENTS = f"""
INSERT INTO memory_events BY NAME
SELECT
    'run-' || (k % {RUNS}) AS run_id, row_number() OVER (ORDER BY moment) AS seq, moment AS timestamp_ns,
    'st' || (k % 100000) AS storage_id, 't' || k AS tensor_id, 's' || (hash(k) % 1000) AS span_id,
    'cuda:' || (k // {RUNS} % 4) AS device, (hash(k) % 1000000)::BIGINT AS bytes, action, [4, 8] AS shape,
    'f32' AS dtype, ['activation', 'gradient', 'parameter'][1 + k % 3] AS category
FROM (
    SELECT k, unnest([k * 10, k * 10 + 5 + (hash(k) % 20000)::BIGINT]) AS moment, unnest(['alloc', 'free']) AS action
    FROM range(? // 2) AS t (k)
)
"""

# The phrasing of the union without partitions: fastest over everything, but blind to a filter on run_id.
PACKED = """
(WITH tracks AS (
    SELECT *, row_number() OVER () * 73786976294838206464::HUGEINT AS base
    FROM (SELECT DISTINCT run_id, device, clock_id FROM device_intervals)
),
keyed AS (
    SELECT run_id, device, clock_id, base + start_ns AS s, s + duration_ns AS e
    FROM device_intervals JOIN tracks USING (run_id, device, clock_id)
),
reached AS (SELECT *, max(e) OVER (ORDER BY s ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS r FROM keyed)
SELECT run_id, device, clock_id, sum(_uncovered_ns(s, e, r)) AS busy_ns FROM reached GROUP BY ALL)
"""

INTERVAL_SCAN = "SELECT max(run_id), max(device), max(clock_id), sum(start_ns), sum(duration_ns) FROM device_intervals"
EVENT_SCAN = (
    "SELECT max(run_id), max(device), max(storage_id), sum(timestamp_ns), sum(bytes), max(action) FROM memory_events"
)

#: What is measured: name, query, and the scan it is held against.
CANDIDATES: tuple[tuple[str, str, str], ...] = (
    ("scan intervals", INTERVAL_SCAN, "scan intervals"),
    ("device_clock_busy", "SELECT sum(busy_ns) FROM device_clock_busy", "scan intervals"),
    ("  packed, no partition", f"SELECT sum(busy_ns) FROM {PACKED}", "scan intervals"),
    ("device_stream_busy", "SELECT sum(busy_ns) FROM device_stream_busy", "scan intervals"),
    ("device_span_busy", "SELECT sum(busy_ns), max(streams) FROM device_span_busy", "scan intervals"),
    ("scan memory events", EVENT_SCAN, "scan memory events"),
    (
        "storage_lifetimes",
        "SELECT sum(bytes), max(tensor_ids), max(shape) FROM storage_lifetimes",
        "scan memory events",
    ),
    ("live_bytes", "SELECT max(live_bytes) FROM live_bytes", "scan memory events"),
    ("live_bytes_by_device", "SELECT max(live_bytes) FROM live_bytes_by_device", "scan memory events"),
    ("live_bytes_peak", "SELECT max(peak_live_bytes) FROM live_bytes_peak", "scan memory events"),
)


def connect(rows: int) -> duckdb.DuckDBPyConnection:
    """A connection with every view over synthetic intervals and memory events, ``rows`` of each."""
    con = duckdb.connect()
    create_input_tables(con)
    create_views(con)
    con.execute(INTERVALS, [rows])
    con.execute(EVENTS, [rows])
    return con


def measure(con: duckdb.DuckDBPyConnection, repetitions: int, where: str) -> dict[str, float]:
    """Median seconds of each candidate."""
    seconds: dict[str, list[float]] = {name: [] for name, _, _ in CANDIDATES}
    for _ in range(repetitions):
        for name, query, _ in CANDIDATES:
            start = time.perf_counter()
            con.execute(query + where).fetchall()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def main() -> None:
    """Print one row per candidate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each plane (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=5, help="interleaved repetitions (default: %(default)s)")
    parser.add_argument("--run-filter", action="store_true", help=f"ask for one run of {RUNS}")
    options = parser.parse_args()
    con = connect(options.rows)
    medians = measure(con, options.repetitions, " WHERE run_id = 'run-3'" if options.run_filter else "")
    print(f"{options.rows} rows a plane, {RUNS} runs; x = times the scan of the same columns")
    for name, _, floor in CANDIDATES:
        rate = medians[name] / options.rows * 1e9
        print(f"{name:24} {medians[name]:7.3f} s  {rate:7.0f} ns/row  x {medians[name] / medians[floor]:6.1f}")


if __name__ == "__main__":
    main()
