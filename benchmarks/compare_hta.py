"""Our device times against HolisticTraceAnalysis 0.5.0 on the same traces: window, idle, compute, number of kernels.

Run: ``python benchmarks/compare_hta.py --hta PYTHON TRACE ...``; ``PYTHON`` is an interpreter with HTA, which pins
packages of its own. A trace is compared as HTA sees it, as one device: ours are added over devices only when there is
one. docs/compare-hta.md says where the two differ and which events do it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.store import Store
from planewise.pipeline.stores import open_store

_HTA = """
import json, logging, os, sys
logging.disable(logging.CRITICAL)
same = sys.argv[2] == "same"
if same:
    os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
from hta.common.trace import Trace
from hta.trace_analysis import TraceAnalysis
from hta.utils.utils import get_kernel_type
if same:
    Trace._filter_irrelevant_gpu_kernels = lambda *_: None
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, include_last_profiler_step=True)
if same:
    frame = analysis.t.traces[0]
    symbols = analysis.t.symbol_table.get_sym_table()
    work = frame["cat"].map(lambda cat: symbols[cat].lower().removeprefix("gpu_") in ("kernel", "memcpy", "memset"))
    analysis.t.traces[0] = frame[work | frame["stream"].eq(-1)]
row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
frame = analysis.t.traces[0]
names = analysis.t.symbol_table.get_sym_table()
device = frame[frame["stream"].ne(-1)]
kinds = device["name"].map(lambda name: get_kernel_type(names[name])).value_counts().to_dict()
print("FOUND" + json.dumps({
    "window": float(row["kernel_time(us)"]), "idle": float(row["idle_time(us)"]),
    "compute": float(row["compute_time(us)"]), "kernels": {key: int(value) for key, value in kinds.items()},
}))
"""

_OURS = """
    SELECT
        b.device,
        any_value(b.window_ns) AS window_ns,
        coalesce(sum(b.duration_ns) FILTER (b.classes = 'idle'), 0) AS idle_ns,
        (SELECT coalesce(sum(union_ns), 0) FROM device_class_time AS c WHERE c.device = b.device AND class = 'compute'),
        (SELECT count(*) FROM device_work AS w WHERE w.device = b.device AND class = 'compute'),
        (SELECT count(*) FROM device_work AS w WHERE w.device = b.device AND class = 'communication'),
        (SELECT count(*) FROM device_work AS w WHERE w.device = b.device AND class IN ('memcpy', 'memset'))
    FROM device_time_breakdown AS b
    GROUP BY b.device
"""


def theirs(python: str, trace: Path, mode: str) -> dict[str, Any] | str:
    """What HTA says, in microseconds; the last line of its error when it fails."""
    command = [python, "-W", "ignore", "-c", _HTA, str(trace), mode]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [line[5:] for line in ran.stdout.splitlines() if line.startswith("FOUND")]
    return json.loads(found[0]) if found else (ran.stderr.strip().splitlines() or ["no result"])[-1][:100]


def ours(trace: Path) -> list[tuple[Any, ...]] | str:
    """Rows of devices; why the trace was refused."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "store", create=True)
        (result,) = ingest_sources(store, [trace])
        if result.status != "ingested":
            return f"refused: {result.code}"
        return open_store(store.path).sql(_OURS).fetchall()


def verdict(mine: list[tuple[Any, ...]] | str, hta: dict[str, Any] | str) -> str:
    """One line: the same, or both values of what differs."""
    if isinstance(mine, str) or isinstance(hta, str):
        shown = mine if isinstance(mine, str) else f"{len(mine)} devices, {sum(row[4] for row in mine)} kernels"
        return f"planewise: {shown}; HTA: {hta if isinstance(hta, str) else 'ran'}"
    if len(mine) != 1:
        return f"{len(mine)} devices, which HTA takes for one"
    _, window, idle, compute, kernels, collectives, copies = mine[0]
    counts = [hta["kernels"].get(kind, 0) for kind in ("COMPUTATION", "COMMUNICATION", "MEMORY")]
    pairs = {
        "window us": (window / 1000, hta["window"]),
        "idle us": (idle / 1000, hta["idle"]),
        "compute us": (compute / 1000, hta["compute"]),
        "compute kernels": (kernels, counts[0]),
        "collectives": (collectives, counts[1]),
        "copies": (copies, counts[2]),
    }
    near = min(0.1, 1e-6 * hta["window"])  # HTA adds floats; counts differ by 1 or more.
    differ = [f"{name} {a:g} against {b:g}" for name, (a, b) in pairs.items() if abs(a - b) > near]
    return "the same" if not differ else "; ".join(differ)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--hta", help="interpreter with HolisticTraceAnalysis")
    parser.add_argument(
        "--same-events",
        action="store_true",
        help="let HTA see all device work and nothing else: no rounding, no filter by steps, no synchronisation",
    )
    given = parser.parse_args()
    if not given.hta:
        sys.exit("not run: needs --hta PYTHON, an interpreter with HolisticTraceAnalysis 0.5.0")
    mode = "same" if given.same_events else "default"
    for trace in given.traces:
        print(f"{trace.name}: {verdict(ours(trace), theirs(given.hta, trace, mode))}", flush=True)


if __name__ == "__main__":
    main()
