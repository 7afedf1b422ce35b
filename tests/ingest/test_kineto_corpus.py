"""Every published trace of the corpus: read whole, counted whole, and busy for exactly as long as it was."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kineto_support import CORPUS, corpus_bytes, read_tables, records, rows_by_ledger

from planewise.ingest.kineto import KinetoReader

if not CORPUS.is_dir():
    pytest.skip("the corpus of real traces is not beside the repository", allow_module_level=True)

FILES = [*sorted((CORPUS / "kineto").iterdir()), *sorted((CORPUS / "chrome_other").glob("cprof*"))]
ORACLE: dict[str, Any] = json.loads((CORPUS / "oracle_gpu_busy.json").read_text())
GPU = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
FOLDED = ("runs", "ingest_counts", "ingest_issues")


def busy(intervals: list[tuple[int, int]]) -> dict[str, int]:
    """Number, sum and union of intervals, and from the first start to the last end."""
    union, end = 0, -(2**63)
    for start, stop in sorted(intervals):
        union += max(0, stop - max(start, end))
        end = max(end, stop)
    span = end - min(start for start, _ in intervals)
    total = sum(stop - start for start, stop in intervals)
    return {"n": len(intervals), "sum_ns": total, "union_ns": union, "span_ns": span}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_real_trace_is_read_whole_and_its_devices_are_exactly_as_busy_as_they_were(path: Path) -> None:
    tables = read_tables(path)
    planes = {name: table.to_pylist() for name, table in tables.items() if name in FOLDED}
    events = json.loads(corpus_bytes(path).replace(b",\n]", b"\n]"))
    events = events if isinstance(events, list) else events["traceEvents"]
    assert records(planes) == len(events)
    rows = Counter({name: table.num_rows for name, table in tables.items() if name not in FOLDED})
    assert rows_by_ledger(planes) == rows
    by_process: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in tables["device_intervals"].to_pylist():
        if row["category"] in GPU:
            by_process[str(row["process_id"])].append((row["start_ns"], row["start_ns"] + row["duration_ns"]))
    wanted = ORACLE.get(path.relative_to(CORPUS).as_posix(), {})
    assert {process: busy(found) for process, found in by_process.items()} == wanted


def test_no_busy_time_is_known_of_a_trace_without_device_work() -> None:
    tables = read_tables(CORPUS / "kineto" / "mlops_mac_empty.pt.trace.json")
    assert set(tables) == {"runs", "ingest_counts"}
    contract = tables["runs"].to_pylist()[0]["capture_contract"]
    assert contract["device_timing"] == "none"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_real_trace_is_recognised(path: Path) -> None:
    assert KinetoReader().detect(path)


@pytest.mark.parametrize("folder", ["exec_trace", "memtimeline", "rocprof", "ascend_trace", "lfs_pointer", "nsys_csv"])
def test_traces_of_other_formats_are_not_claimed(folder: str) -> None:
    assert [path.name for path in (CORPUS / folder).iterdir() if KinetoReader().detect(path)] == []


def test_triton_server_events_have_no_phase_and_are_not_claimed() -> None:
    assert not KinetoReader().detect(CORPUS / "chrome_other" / "mlserving_triton_trace.json")


def test_links_of_real_operations_are_innermost_by_brute_force() -> None:
    tables = read_tables(CORPUS / "kineto" / "hta_mi250_rocm62_kineto.json.gz")
    ops = tables["ops"].to_pylist()
    for op in ops + tables["launches"].to_pylist():
        start = op.get("timestamp_ns", op.get("start_ns"))
        around = [
            (other["timestamp_ns"], -other["duration_ns"], other["seq"])
            for other in ops
            if other["thread_id"] == op["thread_id"]
            and other["timestamp_ns"] <= start
            and start + op["duration_ns"] <= other["timestamp_ns"] + other["duration_ns"]
            and (other["timestamp_ns"], -other["duration_ns"], other["seq"]) < (start, -op["duration_ns"], op["seq"])
        ]
        assert op.get("parent_seq", op.get("op_seq")) == (max(around)[2] if around else None)


def test_device_names_and_collectives_of_a_real_job_are_kept() -> None:
    tables = read_tables(CORPUS / "kineto" / "hta_nccl_data.json.gz")
    found = Counter(row["name"] for row in tables["collectives"].to_pylist() if row["interval_seq"] is not None)
    text = corpus_bytes(CORPUS / "kineto" / "hta_nccl_data.json.gz")
    events = msgspec.json.decode(text)["traceEvents"]
    kernels = [event["args"] for event in events if event.get("cat") == "kernel"]
    assert found == Counter(args["Collective name"] for args in kernels if "Collective name" in args)
    run = tables["runs"].to_pylist()[0]
    assert (run["rank"], run["world_size"]) == (0, 2)
