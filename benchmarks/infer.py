"""What an append to an inference artifact costs, and accounting over it, against stormlog 0.4.3 in the same run.

Run: ``python benchmarks/infer.py [launches] [--stormlog PYTHON]``. An engine gives one iteration a hundred launches, a
tracer as many kernels; both make their events while they are collected, in either library. Every measurement is a
process of its own, interleaved; believe the ratios. ``PYTHON`` is an interpreter that has stormlog 0.4.3 (the extra
``stormlog``); without it only ours is measured.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_EVENTS = """
import resource, sys, time
from pathlib import Path
count, folder = int(sys.argv[1]), Path(sys.argv[2])
OWN = dict(run_id="run", session_id="session", source="bench", collection_mode="active", provenance="observed")

def engine_events():
    host = E.CorrelationContext(**OWN, producer_id="engine", clock_domain="host", clock_kind="monotonic", pid=1,
        host="h", device_uuid="GPU-0")
    scope = E.EntityRef("engine", "process")
    for number in range(count):
        iteration = E.EntityRef("engine", f"it{number // 100}")
        if number % 100 == 0:
            yield E.IterationEvent(context=host, event_id=f"i{number}", iteration_ref=iteration,
                start_ns=number * 1000, end_ns=number * 1000 + 90_000)
        yield E.ActivityReferenceEvent(context=host, event_id=f"l{number}", activity_kind="cudaLaunchKernel",
            activity_ref=E.EntityRef("engine", f"l{number}"), activity_domain="runtime", attribution_status="linked",
            iteration_ref=iteration, correlation_scope=scope, cuda_correlation_id=number,
            start_ns=number * 1000, end_ns=number * 1000 + 500)

def trace_events():
    device = E.CorrelationContext(**OWN, producer_id="tracer", clock_domain="gpu", clock_kind="device", pid=1, host="h",
        device_uuid="GPU-0")
    scope = E.EntityRef("engine", "process")
    for number in range(count):
        yield E.ActivityReferenceEvent(context=device, event_id=f"k{number}", activity_kind="kernel",
            activity_ref=E.EntityRef("tracer", f"k{number}"), activity_domain="gpu", attribution_status="unresolved",
            correlation_scope=scope, cuda_correlation_id=number, stream_id=7,
            start_ns=number * 1000 + 600, end_ns=number * 1000 + 1600)

class Part:
    def __init__(self, kind, events): self.kind, self.events = kind, events
    def collect(self, *, run_id, session_id):
        return self.kind(capabilities=C.CaptureCapabilities(("x",), ("x",), ("x",)), events=EVENTS(self.events()))

def measured(work):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    found = work()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print("MEASURED", time.perf_counter() - begun, (after - before) / 1024, after / 1024, found, flush=True)

def made():
    events = tuple(engine_events()), tuple(trace_events())
    kinds = (C.EngineCapture, lambda: events[0]), (C.TraceCapture, lambda: events[1])
    return dict(zip(("engine_adapter", "trace_collector"), (Part(*kind) for kind in kinds)))

session = create_session_summary(source="bench", session_id="session", host="h", pid=1, started_at_ns=1)
parts = dict(engine_adapter=Part(C.EngineCapture, engine_events), trace_collector=Part(C.TraceCapture, trace_events))
"""

_WARM = """
def append(**given): return append_inference_capture(path, run_id="run", session=session, **given)
path = new(folder / f"warm-{time.time_ns()}")
append()  # What is imported on first use is no cost of an append.
path = folder / "own" / NAME
"""
_OURS = f"""
from planewise import infer as E
from planewise.infer import append_inference_capture, create_session_summary
from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.loose import bundle_connection
from planewise.pipeline.store import Store
C, EVENTS, NAME = E, iter, "artifact"
def new(folder): return E.create_inference_artifact(folder / NAME, run_id="run")
{_EVENTS}{_WARM}
def account():
    store = Store.open(folder / "store", create=True)
    ingest_sources(store, [path])
    with bundle_connection([store.staged()[0].path]) as con:
        return con.sql("SELECT sum(busy_ns)::BIGINT FROM iteration_gpu_time").fetchall()[0][0]
"""
_THEIRS = f"""
import stormlog.infer.correlation_events as E, stormlog.infer.correlation_capture as C
from stormlog.infer.correlation_accounting import account_gpu_time, resolve_inference_events
from stormlog.infer.correlation_capture import append_inference_capture
from stormlog.session import create_session_summary
EVENTS, NAME = tuple, "run.jsonl"
def new(folder):
    folder.mkdir()
    (folder / NAME).touch()
    return folder / NAME
{_EVENTS}{_WARM}
def account():
    graph = resolve_inference_events(E.load_inference_artifact(path))
    return sum(gpu.busy_ns for timing in account_gpu_time(graph).iterations.values() for gpu in timing.gpu.values())
"""
STEPS = {
    "append": "there = made(); path = new(folder / 'own'); measured(lambda: append(**there))",
    "append of nothing": "measured(append)",
    "account": "measured(account)",
    "make events and append": "path = new(folder / 'again'); measured(lambda: append(**parts))",
}
"""The first finds the events in memory; in the last they are made while they are collected, and ours keeps none."""


def measure(python: str, code: str, launches: int, folder: Path) -> tuple[float, float, float, str]:
    """Seconds, memory that the work added in MB, peak memory in MB, and what it found, of one process."""
    words = [python, "-W", "ignore", "-c", code, str(launches), str(folder)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    lines = [line.split(maxsplit=4)[1:] for line in ran.stdout.splitlines() if line.startswith("MEASURED")]
    if not lines:
        raise SystemExit(ran.stderr.strip() or "nothing was measured")
    return float(lines[-1][0]), float(lines[-1][1]), float(lines[-1][2]), lines[-1][3]


def table(launches: int, stormlog: str | None, repetitions: int) -> None:
    """Medians of both, and their ratios."""
    sides = {"planewise": (sys.executable, _OURS)} | ({"stormlog 0.4.3": (stormlog, _THEIRS)} if stormlog else {})
    found: dict[tuple[str, str], list[tuple[float, float, float, str]]] = {}
    for _ in range(repetitions):
        for name, (python, code) in sides.items():
            with tempfile.TemporaryDirectory() as folder:
                for step, work in STEPS.items():
                    run = measure(str(python), code + work, launches, Path(folder))
                    found.setdefault((step, name), []).append(run)
    print(f"{launches:,} launches and {launches:,} kernels\n{'':36}  seconds  added MB  peak MB")
    medians = {key: [statistics.median(run[at] for run in runs) for at in range(3)] for key, runs in found.items()}
    for step in STEPS:
        for name in sides:
            seconds, added, peak = medians[step, name]
            print(f"{step + ', ' + name:36} {seconds:8.3f}  {added:8.0f}  {peak:7.0f}")
        if stormlog:
            (own, own_added, own_peak), (their, their_added, their_peak) = (medians[step, name] for name in sides)
            print(f"{'':36} {their / own:7.1f}x  {own_added / their_added:8.2f}  {own_peak / their_peak:7.2f}")
            if step == "account":
                assert {run[3] for name in sides for run in found[step, name]} == {found[step, "planewise"][0][3]}


def main() -> None:
    """Measure, with stormlog where an interpreter has it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("launches", nargs="?", type=int, default=100_000)
    parser.add_argument("--stormlog", help="interpreter with stormlog 0.4.3")
    parser.add_argument("--repetitions", type=int, default=3)
    given = parser.parse_args()
    own = sys.executable if importlib.util.find_spec("stormlog") else None
    table(given.launches, given.stormlog or own, given.repetitions)


if __name__ == "__main__":
    main()
