"""A campaign night after night: what the first nightly costs, and one with a few new runs, by the runs that are new.

Run: ``python benchmarks/campaign.py [--runs N] [--events N] [--new N] [--jobs N] [--no-viewers]``. Runs are made as
staged folders of real planes: one measured span, host spans, device intervals, memory events; two implementations in
turn. Times are seconds of ``planewise nightly``'s own work in a process of its own; believe the ratio of the two
nights.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from planewise.pipeline.store import Store, run_key
from planewise.recorder.planes import PLANES

NIGHT = """
import sys, time, resource
from pathlib import Path
from contextlib import nullcontext
from planewise.pipeline.campaign import load_campaign
from planewise.pipeline.nightly import run_nightly
from planewise.pipeline.store import Store
begun = time.perf_counter()
stages = []
report = run_nightly(Store.open(sys.argv[1]), load_campaign(sys.argv[2]), [],
                     lambda title: stages.append((title, time.perf_counter())) or (lambda *_: None),
                     jobs=int(sys.argv[3]), viewers=sys.argv[4] == "True")
stages.append(("", time.perf_counter()))
print("  " + ", ".join(f"{a[0]} {b[1] - a[1]:.1f} s" for a, b in zip(stages, stages[1:])))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
fresh = sum(row.status == "published" for row in report.published)
print("MEASURED", time.perf_counter() - begun, peak, fresh, report.comparisons[0]["verdict"])
"""
QUESTIONS = (
    "SELECT count(*), median(outer_wall_time_ns) FROM outer_wall_time",
    "SELECT status, count(*) FROM run_health GROUP BY status",
    "SELECT count(*), median(outer_wall_time_ns) FROM results.outer_wall_time",
    "SELECT status, count(*) FROM results.run_health GROUP BY status",
    "SELECT device, sum(busy_ns) FROM results.device_clock_busy GROUP BY device",
    "SELECT label, median(host_self_time_ns) FROM results.host_label_time GROUP BY label",
    "SELECT * FROM cohort_comparisons",
    "SELECT device, sum(busy_ns) FROM device_clock_busy GROUP BY device",
)


def write_runs(store: Store, first: int, count: int, events: int) -> None:
    """Stage runs ``first`` to ``first + count``."""
    con = duckdb.connect()
    for number in range(first, first + count):
        run_id = f"run-{number:05}"
        folder = store.path / "staging" / run_key(run_id)
        (folder / "planes").mkdir(parents=True)
        for plane, rows in _planes(con, run_id, number, events).items():
            schema = PLANES[plane].schema
            columns = [_column(rows, field, run_id) for field in schema]
            pq.write_table(pa.Table.from_arrays(columns, schema=schema), folder / "planes" / f"{plane}.parquet",
                           compression="zstd", use_dictionary=False, column_encoding=None)  # fmt: skip


def _column(rows: pa.Table, field: pa.Field, run_id: str) -> pa.Array:
    if field.name == "run_id":
        return pa.repeat(run_id, rows.num_rows)
    if field.name in rows.column_names:
        return rows[field.name].cast(field.type).combine_chunks()
    return pa.nulls(rows.num_rows, field.type)


def _planes(con: duckdb.DuckDBPyConnection, run_id: str, number: int, events: int) -> dict[str, pa.Table]:
    part = events // 3
    wall = 1_000_000_000 + number * 7919 % 50_000_000
    at = (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)).isoformat()
    contract = {
        "measurement_scope": "production_equivalent", "operations": "none", "activations": "none", "tensors": "none",
        "gradients": "none", "logical_memory": "complete", "physical_memory": "none", "device_timing": "complete",
        "gradient_contract": None, "required_semantic_labels": [], "gpu_expected_semantic_labels": [],
        "cpu_only_semantic_labels": [],
    }  # fmt: skip
    identity = {
        "implementation_id": f"build-{number % 2}", "workload_id": "w", "model_id": "m", "config_id": "c",
        "data_id": "d", "seed_policy": "s", "physical_batch": 1, "accumulation_steps": 1, "precision": "f32",
        "device_state": "x", "pair_id": None,
    }  # fmt: skip
    run = {
        "run_id": run_id, "seq": 0, "source_name": run_id, "source_format": "capture", "schema": "planewise/capture/1",
        "source_digest": f"sha256:{number:064x}", "correlation_id": "c", "entrypoint": "bench", "phase": "train",
        "timestamp": at, "capture_step": 1, "warmup_steps": 0, "device": "cuda:0", "timing_mode": "host",
        "measured_region_device_synchronized": True, "capture_contract": contract, "comparison_identity": identity,
        "tags": [], "outcome": "complete", "terminal_timestamp_ns": 2 * wall,
    }  # fmt: skip
    spans = f"""
        SELECT i AS seq, 's' || i AS id, CASE WHEN i > 0 THEN 's0' END AS parent_id,
            CASE WHEN i = 0 THEN 'step' ELSE 'layer ' || i % 40 END AS name,
            CASE WHEN i = 0 THEN 0 ELSE i * {wall // (part + 2)} END AS start_ns,
            CASE WHEN i = 0 THEN {wall} ELSE {wall // (part + 2)} - 10 END AS duration_ns,
            'function' AS span_kind, i = 0 AS measured, i + 10000000 AS end_seq
        FROM range({part}) AS t (i)
    """
    intervals = f"""
        SELECT i AS seq, 's0' AS span_id, 'cuda:' || i % 2 AS device, (i % 3)::VARCHAR AS stream_id, 'gpu' AS clock_id,
            'cuda-event' AS backend, i * 900 AS start_ns, 300 + (hash(i) % 900)::BIGINT AS duration_ns,
            'kernel ' || i % 60 AS name
        FROM range({part}) AS t (i)
    """
    memory = f"""
        SELECT i AS seq, i * {wall // (part + 2)} AS timestamp_ns, 'st' || i // 2 AS storage_id,
            't' || i // 2 AS tensor_id, 's0' AS span_id, 'cuda:0' AS device, 1024 AS bytes,
            CASE WHEN i % 2 = 0 THEN 'alloc' ELSE 'free' END AS action, [4, 8] AS shape, 'f32' AS dtype,
            ['activation', 'gradient'][1 + i // 2 % 2] AS category
        FROM range({part // 2 * 2}) AS t (i)
    """
    tables = {"spans": spans, "device_intervals": intervals, "memory_events": memory}
    found = {plane: con.sql(query).to_arrow_table() for plane, query in tables.items()}
    return {"runs": pa.Table.from_pylist([run], schema=PLANES["runs"].schema), **found}


def write_manifest(path: Path, runs: int) -> None:
    """A campaign of all runs, and one comparison of its two implementations."""
    cohorts = {side: {"implementation_id": f"build-{at}"} for at, side in enumerate(("baseline", "candidate"))}
    document = {
        "schema": "planewise/campaign/1", "campaign_id": "bench", "entrypoint": "bench",
        "planned": [{"capture_step": 1, "run_id": f"run-{number:05}"} for number in range(runs)],
        "comparisons": [{"name": "builds", **cohorts}],
    }  # fmt: skip
    path.write_text(json.dumps(document))


def night(store: Store, manifest: Path, jobs: int, viewers: bool) -> tuple[float, float]:
    """Seconds and peak MB of one nightly."""
    words = [sys.executable, "-c", NIGHT, str(store.path), str(manifest), str(jobs), str(viewers)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    print(*[line for line in ran.stdout.splitlines() if line.startswith("  ")], sep="\n")
    lines = [line.split() for line in ran.stdout.splitlines() if line.startswith("MEASURED")]
    if not lines:
        raise SystemExit(ran.stderr)
    print(
        f"  {float(lines[-1][1]):8.1f} s  {float(lines[-1][2]):6.0f} MB  {lines[-1][3]} new  {lines[-1][4]}", flush=True
    )
    return float(lines[-1][1]), float(lines[-1][2])


def main() -> None:
    """Two nights, and the questions of an analyst."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--new", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--viewers", action=argparse.BooleanOptionalAction, default=True)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "store", create=True)
        manifest = Path(folder) / "campaign.json"
        write_runs(store, 0, given.runs, given.events)
        write_manifest(manifest, given.runs)
        print(f"{given.runs} runs of {given.events} events")
        first, _ = night(store, manifest, given.jobs, given.viewers)
        write_runs(store, given.runs, given.new, given.events)
        write_manifest(manifest, given.runs + given.new)
        print(f"{given.new} more")
        second, _ = night(store, manifest, given.jobs, given.viewers)
        print(f"the second night took {second / first:.1%} of the first")
        with store.connect() as con:
            for question in QUESTIONS:
                begun = time.perf_counter()
                con.execute(question).fetchall()
                print(f"  {time.perf_counter() - begun:6.2f} s  {question}")


if __name__ == "__main__":
    main()
