"""What evidence costs for one large capture: seconds and peak memory of each stage, as ratios to reading its planes.

Run: ``python benchmarks/evidence.py [--events N]``. Every stage runs in a process of its own, so that its peak is its
own. Shared machines are noisy; believe the ratios of processor time, not the seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from planewise.pipeline.bundle import verify_semantic
from planewise.pipeline.inputs import open_input
from planewise.pipeline.overview import overview
from planewise.pipeline.publish import publish
from planewise.pipeline.qualify import qualify
from planewise.pipeline.store import Store, run_key
from planewise.pipeline.views import create_input_tables
from planewise.recorder.planes import COVERAGE_FIELDS, PLANES

RUN_ID = "large"
GENERATE = "generate"
"""The stage that is not measured."""
OPS_PER_SPAN = 4
SPANS_PER_MODULE = 25
STEP_NS = 1_000
"""Duration of one innermost span; its operations follow each other inside it."""

# Of N events 0.4 are operations, 0.3 allocations and frees, 0.1 each spans and device intervals, 0.05 each tensors and
# statistics. Innermost spans follow each other, 25 in a module, all modules in the measured root. Every second or third
# operation allocates its output, which lives for some fifty spans.
GENERATORS = {
    "spans": f"""
        SELECT
            'root' AS id, NULL AS parent_id, 'step' AS name, 0 AS start_ns, n // 10 * {STEP_NS} AS duration_ns,
            'function' AS span_kind, TRUE AS measured, NULL AS step, 0 AS seq, 9_000_000_000 AS end_seq
        FROM size
        UNION ALL
        SELECT
            'm' || i, 'root', 'module.' || (i % 40), i * {STEP_NS * SPANS_PER_MODULE}, {STEP_NS * SPANS_PER_MODULE},
            'module', FALSE, ['forward', 'backward', 'optimizer'][1 + i % 3], 1 + i, 8_000_000_000 + i
        FROM size, range(n // {10 * SPANS_PER_MODULE}) AS t (i)
        UNION ALL
        SELECT
            's' || i, 'm' || (i // {SPANS_PER_MODULE}), 'layer.' || (i % 200), i * {STEP_NS}, {STEP_NS}, 'op', FALSE,
            NULL, 1_000_000_000 + i, 7_000_000_000 + i
        FROM size, range(n // 10) AS t (i)
    """,
    "ops": f"""
        SELECT
            's' || (i // {OPS_PER_SPAN}) AS span_id, 'op' || (i % 30) AS op_name,
            ['t' || greatest(i - 1, 0), 'w'] AS inputs, 't' || i AS output, [64, 64] AS shape, 'f32' AS dtype,
            'cuda:0' AS device, 100 + i % 100 AS duration_ns, i * 250 AS timestamp_ns, 16384 AS output_dense_bytes,
            32768 AS input_dense_bytes, 2_000_000_000 + i AS seq
        FROM size, range(n * 4 // 10) AS t (i)
    """,
    "memory_events": """
        SELECT
            unnest([moment, moment + 50_000]) AS timestamp_ns, 'st' || k AS storage_id, 't' || op AS tensor_id,
            unnest(['s' || (op // 4), NULL]) AS span_id, unnest(['op' || (op % 30), NULL]) AS op_name,
            'cuda:0' AS device, 16384 + k % 4096 AS bytes, unnest(['alloc', 'free']) AS action, [64, 64] AS shape,
            'f32' AS dtype, ['activation', 'gradient', 'other'][1 + k % 3] AS category,
            3_000_000_000 + unnest([op, op + 200]) AS seq
        FROM (SELECT k, k * 8 // 3 AS op, op * 250 AS moment FROM size, range(n * 15 // 100) AS t (k))
    """,
    "device_intervals": """
        SELECT
            's' || i AS span_id, 'cuda:0' AS device, (i % 4)::VARCHAR AS stream_id, 'cuda-event:0' AS clock_id,
            'cuda-event' AS backend, i * 1000 + (hash(i) % 500)::BIGINT AS start_ns, 900 AS duration_ns,
            4_000_000_000 + i AS seq
        FROM size, range(n // 10) AS t (i)
    """,
    "tensors": """
        SELECT
            's' || (i * 2) AS span_id, 't' || (i * 8) AS tensor_id, 'hidden.' || (i % 500) AS label, [64, 64] AS shape,
            'f32' AS dtype, 'cuda:0' AS device, FALSE AS requires_grad, 16384 AS dense_bytes, 'activation' AS category,
            5_000_000_000 + i AS seq
        FROM size, range(n * 5 // 100) AS t (i)
    """,
    "tensor_stats": """
        SELECT
            's' || (i * 2) AS span_id, 'norm.' || (i % 500) AS label, [64, 64] AS shape, 'f32' AS dtype,
            4096 AS elements, (i % 997 = 0)::BIGINT AS non_finite, 1.0 AS rms, 2.0 AS abs_max, 0.5 AS mean,
            6_000_000_000 + i AS seq
        FROM size, range(n * 5 // 100) AS t (i)
    """,
}


def generate(store: Store, events: int) -> Path:
    """Stage one synthetic capture of about ``events`` events, complete and valid; returns its folder."""
    folder = store.path / "staging" / run_key(RUN_ID)
    (folder / "planes").mkdir(parents=True)
    with duckdb.connect() as con:
        create_input_tables(con)
        con.execute("CREATE TABLE size AS SELECT ?::BIGINT AS n", [events])
        con.register("_run", pa.Table.from_pylist([_run()], schema=PLANES["runs"].schema))
        con.execute("INSERT INTO runs FROM _run")
        for name, rows in GENERATORS.items():
            con.execute(f"INSERT INTO {name} BY NAME SELECT '{RUN_ID}' AS run_id, * FROM ({rows})")
        for name in ("runs", *GENERATORS):
            file = folder / "planes" / f"{name}.parquet"
            con.execute(f"COPY (FROM {name} ORDER BY seq) TO '{file}' (FORMAT parquet)")
    return folder


def _run() -> dict[str, Any]:
    contract: dict[str, Any] = dict.fromkeys(COVERAGE_FIELDS, "none")
    complete = ("operations", "activations", "tensors", "logical_memory", "device_timing")
    contract |= dict.fromkeys(complete, "complete") | {"measurement_scope": "full_diagnostic"}
    labels = ("required_semantic_labels", "gpu_expected_semantic_labels", "cpu_only_semantic_labels")
    contract |= {name: [] for name in labels}
    run = dict.fromkeys(PLANES["runs"].column_names)
    return run | {
        "run_id": RUN_ID,
        "seq": 0,
        "schema": "planewise/capture/1",
        "source_format": "capture",
        "source_name": "synthetic",
        "source_digest": "sha256:" + "0" * 64,
        "correlation_id": "synthetic",
        "entrypoint": "train",
        "phase": "train",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "capture_step": 3,
        "warmup_steps": 2,
        "device": "cuda:0",
        "measured_region_device_synchronized": True,
        "timing_mode": "device_synchronized",
        "capture_contract": contract,
        "tags": [],
        "outcome": "complete",
        "terminal_timestamp_ns": 2**62,
    }


def read_planes(folder: Path) -> None:
    """The floor: read and hash every value of every plane."""
    with duckdb.connect() as con:
        for file in sorted((folder / "planes").iterdir()):
            con.execute("SELECT bit_xor(hash(planes)) FROM read_parquet(?) AS planes", [str(file)]).fetchall()


def look(bundle: Path) -> None:
    """The first look at a published run."""
    with open_input(bundle) as opened:
        overview(opened)


def stages(store: Path, events: int) -> dict[str, Callable[[], object]]:
    """What is measured, by name, in the order in which a run goes through it."""
    key = run_key(RUN_ID)
    return {
        GENERATE: lambda: generate(Store.open(store), events),
        "read planes": lambda: read_planes(store / "staging" / key),
        "qualify": lambda: qualify(Store.open(store)),
        "publish": lambda: publish(Store.open(store)),
        "overview": lambda: look(store / "bundles" / key),
        "verify --semantic": lambda: verify_semantic(store / "bundles" / key),
    }


def measure(store: Path, stage: str, events: int) -> tuple[float, float, float]:
    """Seconds, seconds of computing, and peak resident bytes of one stage in a new process.

    A process inherits the peak of the one that starts it, so nothing large is done here.
    """
    command = [sys.executable, __file__, "--stage", stage, "--store", str(store), "--events", str(events)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, computing, peak = json.loads(done.stdout)
    return seconds, computing, peak


def _stage(store: Path, stage: str, events: int) -> None:
    start = time.perf_counter()
    stages(store, events)[stage]()
    seconds = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps([seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024]))


def main() -> None:
    """Print one row per stage and the size of the packet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000, help="events of the capture (default: %(default)s)")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        _stage(options.store, options.stage, options.events)
        return
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "store", create=True).path
        print(f"{options.events} events; x = times the processor time of reading every value of the planes")
        measured = {stage: measure(store, stage, options.events) for stage in stages(store, options.events)}
        del measured[GENERATE]
        _, floor, _ = measured["read planes"]
        for stage, (seconds, computing, peak) in measured.items():
            ratio = computing / floor
            print(f"{stage:18} {seconds:6.2f} s, cpu {computing:6.2f} s  x {ratio:5.1f}  peak {peak / 2**20:5.0f} MiB")
        packet = store / "bundles" / run_key(RUN_ID) / "evidence.json"
        print(f"evidence.json      {packet.stat().st_size:9,} bytes")


if __name__ == "__main__":
    main()
