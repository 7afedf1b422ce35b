"""What automatic capture costs: the region against torch.profiler alone and nothing, and the conversion after it.

Run: ``python benchmarks/torch_record.py [--steps N]``. The region is N training steps of a small model, each candidate
in turn, medians of five; ratios are to ``torch.profiler`` with the same options. The conversion is timed apart: events
a second, and the growth of the process against the Arrow size of the rows.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch

from planewise import ProfileRun, TraceSession, torch_contract
from planewise.recorder.torch_known import Roles
from planewise.recorder.torch_record import _Capture

REPETITIONS = 5


def program(steps: int) -> tuple[Any, Any, Callable[[], None]]:
    """A model, its optimizer, and the region."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(8)))
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randn(32, 64)

    def region() -> None:
        for _ in range(steps):
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    return model, optimizer, region


def timed(region: Callable[[], None], around: Any) -> float:
    """Seconds inside of a context manager, its own beginning and end left out."""
    with around:
        begun = time.perf_counter()
        region()
        return time.perf_counter() - begun


def profiler() -> Any:
    """torch.profiler with the options of the capture."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    return torch.profiler.profile(activities=activities, record_shapes=True, profile_memory=True)


def captured(folder: Path, model: Any, optimizer: Any, region: Callable[[], None]) -> tuple[float, float, int, float]:
    """Seconds of the region and of the conversion, events, and megabytes that the process grew in the conversion."""
    run = ProfileRun.training("bench", 1, "cpu").capture_contract(torch_contract())
    with TraceSession.open(folder, run) as session, session.begin_measurement("region"):
        capture = _Capture(session, Roles(model, optimizer))
        capture.begin()
        begun = time.perf_counter()
        region()
        inside = time.perf_counter() - begun
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begun = time.perf_counter()
        capture.end()
        after = time.perf_counter() - begun
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        events = len(capture._profiler.profiler.kineto_results.events())
    return inside, after, events, grown


def arrow_megabytes(folder: Path) -> float:
    """The size of a capture's rows in Arrow."""
    return sum(pq.read_table(shard).nbytes for shard in folder.glob("*.parquet")) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    torch.set_num_threads(1)
    model, optimizer, region = program(parser.parse_args().steps)
    region()
    found: dict[str, list[float]] = {"nothing": [], "torch.profiler": [], "record_torch": []}
    conversions = []
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(REPETITIONS):
            found["nothing"].append(timed(region, nullcontext()))
            found["torch.profiler"].append(timed(region, profiler()))
            inside, *conversion = captured(Path(scratch) / str(number), model, optimizer, region)
            found["record_torch"].append(inside)
            conversions.append(conversion)
        size = arrow_megabytes(Path(scratch) / "0")
    base = statistics.median(found["torch.profiler"])
    for name, seconds in found.items():
        print(
            f"{name:16} {statistics.median(seconds):7.3f} s   x torch.profiler {statistics.median(seconds) / base:5.2f}"
        )
    seconds, events = statistics.median(row[0] for row in conversions), conversions[0][1]
    print(f"conversion       {seconds:7.3f} s   {events} events, {events / seconds:,.0f} a second")
    print(f"rows in Arrow    {size:7.1f} MB; the first conversion grew the process by {conversions[0][2]:.0f} MB")


if __name__ == "__main__":
    main()
