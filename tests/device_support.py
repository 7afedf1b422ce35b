"""Helpers of the device tests: one foreign run with work, launches and operations in few characters."""

from __future__ import annotations

from typing import Any

from support import TinyStore

CLOCK = "host"
"""Clock that host and device share unless a test says otherwise."""


def traced(store: TinyStore, run_id: str = "r1", *, host_clock: str | None = CLOCK, **values: Any) -> TinyStore:
    """A run of a foreign trace; its host times are on ``host_clock``."""
    return store.run(run_id, source_format="kineto", host_clock_id=host_clock, **values)


def work(store: TinyStore, start: int, duration: int, run_id: str = "r1", **values: Any) -> int:
    """One kernel on the shared clock; returns its seq."""
    row = {"start_ns": start, "duration_ns": duration, "clock_id": CLOCK, "category": "kernel", "name": "k", **values}
    return _added(store, "device_intervals", row, run_id)


def launch(store: TinyStore, start: int, correlation: str | None, run_id: str = "r1", **values: Any) -> int:
    """One launch; returns its seq."""
    row = {"start_ns": start, "duration_ns": 1, "name": "cudaLaunchKernel", "correlation_id": correlation, **values}
    return _added(store, "launches", row, run_id)


def op(store: TinyStore, name: str, run_id: str = "r1", **values: Any) -> int:
    """One operation; returns its seq."""
    return _added(store, "ops", {"op_name": name, "timestamp_ns": 0, "duration_ns": 9, **values}, run_id)


def step(store: TinyStore, number: int, start: int, duration: int | None, run_id: str = "r1", **values: Any) -> None:
    """One step marker of torch.profiler."""
    row = {"id": f"s{number}", "name": f"ProfilerStep#{number}", "start_ns": start, "duration_ns": duration, **values}
    store.add("spans", row, run_id=run_id)


def _added(store: TinyStore, plane: str, row: dict[str, Any], run_id: str) -> int:
    store.add(plane, row, run_id=run_id)
    [(seq,)] = store.rows(f"SELECT max(seq) FROM {plane}")
    return int(seq)
