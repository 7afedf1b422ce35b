"""The claims of the GPU check, on captures that keep or break them; the check itself needs a GPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the torch extra is not installed")

import planewise as pw  # noqa: E402
from planewise.pipeline.ingest_stage import ingest_sources  # noqa: E402
from planewise.pipeline.store import Store  # noqa: E402
from planewise.pipeline.stores import open_store  # noqa: E402
from planewise.recorder.torch_timing import timed_region  # noqa: E402

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu_check.py"
KEPT = [("7", 0, 100), ("8", 50, 100)]


def check() -> Any:
    spec = importlib.util.spec_from_file_location("gpu_check", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def broken(folder: Path, intervals: list[tuple[str, int, int]], used: int) -> list[str]:
    for run_id in ("events", "profiler", "streams"):
        run = pw.ProfileRun.training("g::u", 1, "cuda:0").measured_region_device_synchronized()
        with pw.TraceSession.open(folder / "captures" / run_id, run, run_id=run_id) as session:
            with timed_region(session, "region"), session.begin_span("op", pw.SpanKind.OP) as span:
                session.record_op(
                    span.id, "mm", shape=(1,), dtype="f32", device="cuda:0", duration_ns=1, input_dense_bytes=4
                )
            session.record_device_memory("cuda:0", used_bytes=used, capacity_bytes=1000)
            session.record_device_memory("cuda:0", used_bytes=4, reserved_bytes=100)
            for stream, start, duration in intervals:
                place = {"device": "cuda:0", "stream_id": stream, "clock_id": "c", "backend": "b"}
                session.record_device_interval(span.id, **place, start_ns=start, duration_ns=duration)
    store = Store.open(folder / "store", create=True)
    ingest_sources(store, [folder / "captures"])
    with open_store(store.path) as opened:
        return list(check().broken(opened))


def test_every_claim_holds_on_captures_that_keep_them(tmp_path: Path) -> None:
    assert broken(tmp_path, KEPT, used=500) == []


@pytest.mark.parametrize(
    ("intervals", "used", "claim"),
    [
        ([("7", 0, 10**12), ("8", 5, 10**12)], 500, "no longer than the synchronised region"),
        ([("7", 0, 100), ("8", 200, 100)], 500, "counted once"),
        (KEPT, 50, "NVML"),
        ([], 500, "kernels under operations"),
    ],
)
def test_a_capture_that_breaks_a_claim_is_found(tmp_path: Path, intervals: Any, used: int, claim: str) -> None:
    assert any(claim in found for found in broken(tmp_path, intervals, used))
