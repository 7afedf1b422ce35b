"""Checks of the recorder that need a GPU: ``make gpu-check``, under four minutes. Without one it says so and exits 2.

One training step is recorded three times: between synchronisations with CUDA events and NVML, by the profiler, and by
two streams whose kernels overlap. Each claim below is asserted on the store that the captures give.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import planewise as pw
from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.store import Store
from planewise.pipeline.stores import OpenStore, open_store
from planewise.recorder.torch_timing import timed_region

CLAIMS = {
    "the union of device intervals is no longer than the synchronised region": """
        SELECT count(*) FROM device_clock_busy JOIN outer_wall_time USING (run_id)
        WHERE run_id IN ('events', 'streams') AND busy_ns > outer_wall_time_ns
    """,
    "the streams of a clock add up to its union or more": """
        SELECT count(*) FROM (
            SELECT run_id, device, clock_id, sum(busy_ns) AS streams FROM device_stream_busy GROUP BY ALL
        ) JOIN device_clock_busy USING (run_id, device, clock_id) WHERE streams < busy_ns
    """,
    "NVML sees at least what the allocator has reserved": """
        SELECT count(*) FROM (
            SELECT max(used_bytes) FILTER (capacity_bytes IS NOT NULL) AS nvml, max(reserved_bytes) AS reserved
            FROM device_memory WHERE run_id = 'events' GROUP BY run_id
        ) WHERE nvml IS NULL OR reserved IS NULL OR nvml < reserved
    """,
    "kernels of two streams that overlap are counted once": """
        SELECT count(*) FROM (
            SELECT run_id, clock_id, sum(duration_ns) AS sums FROM device_intervals GROUP BY ALL
        ) JOIN device_clock_busy USING (run_id, clock_id) WHERE run_id = 'streams' AND busy_ns >= sums
    """,
    "the profiler recorded kernels under operations": """
        SELECT (count(*) = 0)::INTEGER FROM device_intervals AS d JOIN ops AS o ON o.run_id = d.run_id
        AND o.span_id = d.span_id WHERE d.run_id = 'profiler'
    """,
    "every capture is valid": "SELECT count(*) FROM run_health WHERE status <> 'valid'",
}
"""What must hold, and a query for the number of rows that break it."""


def broken(store: OpenStore) -> list[str]:
    """The claims that do not hold."""
    found = []
    for claim, query in CLAIMS.items():
        ((count,),) = store.sql(query).fetchall()
        if count:
            found.append(claim)
    return found


def plan(name: str, contract: pw.CaptureContract) -> pw.ProfileRun:
    """A run on the first GPU whose region is synchronised."""
    run = pw.ProfileRun.training(f"gpu-check::{name}", 1, "cuda:0").capture_contract(contract)
    return run.measured_region_device_synchronized()


def step(model: Any, optimizer: Any) -> None:
    """One training step."""
    model(torch.randn(512, 2048, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def record(folder: Path) -> None:
    """The three captures."""
    model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(8))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    step(model, optimizer)
    timing = pw.CaptureContract(
        measurement_scope=pw.MeasurementScope.PROFILED_WORK, device_timing=pw.CoverageLevel.PARTIAL,
        physical_memory=pw.CoverageLevel.PARTIAL,
    )  # fmt: skip
    with pw.TraceSession.open(folder / "events", plan("events", timing), run_id="events") as session:
        timer = pw.CudaEventTimer(session)
        samplers = pw.NvmlSampler(session, interval_s=0.01), pw.TorchAllocatorSampler(session, interval_s=0.01)
        with samplers[0], samplers[1], timed_region(session, "step", device="cuda"), timer.interval("step"):
            step(model, optimizer)
        timer.resolve()
    with pw.TraceSession.open(folder / "profiler", plan("profiler", pw.torch_contract()), run_id="profiler") as session:
        automatic = pw.record_torch(session, model=model, optimizer=optimizer)
        with automatic, timed_region(session, "step", device="cuda"):
            step(model, optimizer)
    _record_streams(folder, timing)


def _record_streams(folder: Path, contract: pw.CaptureContract) -> None:
    streams = [torch.cuda.Stream() for _ in range(2)]
    big = [torch.randn(4096, 4096, device="cuda") for _ in streams]
    torch.cuda.synchronize()
    with pw.TraceSession.open(folder / "streams", plan("streams", contract), run_id="streams") as session:
        timer = pw.CudaEventTimer(session)
        with timed_region(session, "two streams", device="cuda"):
            for stream, matrix in zip(streams, big, strict=True):
                with torch.cuda.stream(stream), timer.interval("matmul"):
                    for _ in range(20):
                        matrix @ matrix
        timer.resolve()


def main() -> None:
    if not torch.cuda.is_available():
        print("not run: PyTorch sees no GPU here")
        sys.exit(2)
    print(torch.cuda.get_device_name(0), torch.__version__)
    with tempfile.TemporaryDirectory() as scratch:
        captures = Path(scratch) / "captures"
        captures.mkdir()
        record(captures)
        store = Store.open(Path(scratch) / "store", create=True)
        print([(result.run_id, result.status, result.message) for result in ingest_sources(store, [captures])])
        with open_store(store.path) as opened:
            print(opened.sql("SELECT run_id, device, clock_id, interval_count, busy_ns FROM device_clock_busy"))
            print(opened.sql("SELECT run_id, outer_wall_time_ns, qualified FROM outer_wall_time"))
            failed = broken(opened)
    for claim in CLAIMS:
        print("BROKEN" if claim in failed else "holds ", claim)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
