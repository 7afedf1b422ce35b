"""Ranges of iterations in a trace: work belongs to the range around its launch, on the thread that launched it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planewise.ingest.base import READERS
from support import TinyStore, emptied


def span(tiny: TinyStore, name: str, start: int, duration: int | None, thread: int = 1) -> None:
    row = {"id": f"{name}@{start}", "name": f"stormlog.iteration/{name}", "start_ns": start, "duration_ns": duration}
    tiny.add("spans", {**row, "thread_id": thread, "process_id": 9})


def work(tiny: TinyStore, name: str, start: int, launched: int | None, thread: int = 1, **values: Any) -> None:
    """A kernel of 10 ns, with its launch at a time; None: no launch is recorded."""
    own = {"name": name, "start_ns": start, "duration_ns": 10, "correlation_id": name, **values}
    tiny.add("device_intervals", own)
    if launched is not None:
        place = {"process_id": 9, "thread_id": thread, "correlation_id": own["correlation_id"]}
        tiny.add("launches", {"name": "cudaLaunchKernel", "start_ns": launched, "duration_ns": 2, **place})


def links(tiny: TinyStore) -> list[tuple[Any, ...]]:
    return tiny.rows(
        "SELECT name, iteration_id, reason, len(candidates) FROM launch_iteration_links JOIN device_intervals"
        " USING (run_id, seq) ORDER BY name"
    )


def test_the_launch_decides_and_each_other_case_has_its_reason(tiny: TinyStore) -> None:
    tiny.run()
    span(tiny, "p/1", 100, 50)
    span(tiny, "p/2", 140, 5)
    span(tiny, "p/1", 200, 50)
    work(tiny, "a-first", 1000, 100)
    work(tiny, "b-last", 1010, 249)
    work(tiny, "c-end", 1020, 250)
    work(tiny, "d-between", 1030, 170)
    work(tiny, "e-nested", 1040, 142)
    work(tiny, "f-thread", 1050, 120, thread=2)
    work(tiny, "g-unlaunched", 120, None)
    work(tiny, "h-no-id", 121, None, correlation_id=None)
    assert links(tiny) == [
        ("a-first", "p/1", None, 1),
        ("b-last", "p/1", None, 1),
        ("c-end", None, "launch_outside_iteration_range", 0),
        ("d-between", None, "launch_outside_iteration_range", 0),
        ("e-nested", None, "ambiguous_iteration_range", 2),
        ("f-thread", None, "launch_outside_iteration_range", 0),
        ("g-unlaunched", None, "no_launch_record", 0),
        ("h-no-id", None, "no_launch_record", 0),
    ]


def test_the_time_of_a_trace_is_accounted_like_that_of_an_engine(tiny: TinyStore) -> None:
    tiny.run()
    span(tiny, "p/1", 100, 50)
    span(tiny, "p/2", 200, 30)
    span(tiny, "p/2", 300, 30)
    work(tiny, "a", 1000, 110)
    work(tiny, "b", 1005, 210)
    work(tiny, "c", 1100, 500)
    query = "SELECT iteration_id, elapsed_ns, busy_ns, exclusive_ns, shared_ns FROM iteration_gpu_time ORDER BY 1"
    assert tiny.rows(query) == [("p/1", 50, 10, 5, 5), ("p/2", None, 10, 5, 5)]
    assert tiny.rows("SELECT reason, busy_ns FROM unattributed_gpu_time") == [("launch_outside_iteration_range", 10)]
    assert tiny.rows("SELECT device, clock_kind, busy_ns, activity_count FROM device_gpu_time") == [
        ("cuda:0", "device", 25, 3)
    ]


def test_a_trace_without_ranges_has_no_rows(tiny: TinyStore) -> None:
    tiny.run()
    span(tiny, "p/", 0, 10)
    span(tiny, "/1", 0, 10)
    span(tiny, "p/open", 0, None)
    work(tiny, "a", 5, 5)
    assert tiny.rows("FROM iteration_ranges") == []
    assert (links(tiny), tiny.rows("FROM device_gpu_time")) == ([], [])


@pytest.mark.parametrize(("name", "found"), [("p/a/b", "p/a/b"), ("50%/x%2F", "50%25/x%2F")])
def test_an_iteration_is_named_as_an_engine_names_it(tiny: TinyStore, name: str, found: str) -> None:
    span(tiny, name, 0, 10)
    assert tiny.rows("SELECT iteration_id FROM iteration_ranges") == [(found,)]


def test_a_kineto_trace_is_linked_from_its_file(tmp_path: Path) -> None:
    place = {"pid": 5, "tid": 7, "ph": "X"}
    events = [
        {**place, "cat": "user_annotation", "name": "stormlog.iteration/vllm/3", "ts": 1.0, "dur": 20.0},
        {**place, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 5.0, "dur": 1.0, "args": {"correlation": 4}},
        {
            "pid": 0,
            "tid": 7,
            "ph": "X",
            "cat": "kernel",
            "name": "gemm",
            "ts": 50.0,
            "dur": 8.0,
            "args": {"correlation": 4, "device": 0, "stream": 7},
        },
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    tiny = emptied()
    for part in READERS["kineto"].read(path):
        tiny.insert(part.plane, part.table)
    assert tiny.rows("SELECT iteration_id, reason FROM launch_iteration_links") == [("vllm/3", None)]
    assert tiny.rows("SELECT iteration_id, elapsed_ns, busy_ns FROM iteration_gpu_time") == [("vllm/3", 20000, 8000)]
