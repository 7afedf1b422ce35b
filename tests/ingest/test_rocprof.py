"""rocprofiler-sdk JSON: hand-worked records, and the corpus file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from planewise.ingest.base import detect_format
from planewise.recorder.errors import InputRefused

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
AGENTS = [
    {"id": {"handle": 10}, "type": 1, "logical_node_type_id": 0},
    {"id": {"handle": 20}, "type": 2, "logical_node_type_id": 1},
]
NAMES = [{"kind": "NONE", "operations": []}, {"kind": "MEMORY_COPY", "operations": ["NONE", "HOST_TO_DEVICE"]}]
SYMBOLS = [{"kernel_id": 7, "kernel_name": "_Z3addv", "demangled_kernel_name": "add()"}]


def dispatch(start: Any, end: Any, **more: Any) -> dict[str, Any]:
    info = {"agent_id": {"handle": 20}, "queue_id": {"handle": 3}, "kernel_id": 7}
    link = {"internal": 5, "external": 0}
    return {"start_timestamp": start, "end_timestamp": end, "dispatch_info": info, "correlation_id": link, **more}


def document(path: Path, **sections: list[Any]) -> Path:
    tool = {
        "metadata": {"pid": 42, "command": ["python", "train.py"]},
        "agents": AGENTS,
        "strings": {"buffer_records": NAMES},
        "kernel_symbols": SYMBOLS,
        "buffer_records": sections,
    }
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [tool]}))
    return path


def test_a_dispatch_is_an_interval_of_its_agent_named_by_its_symbol(read, tmp_path):
    path = document(tmp_path / "r.json", kernel_dispatch=[dispatch(100, 130), dispatch(200, 201)])
    planes = read("rocprof-json", path)
    (first, _) = planes["device_intervals"]
    expected = {"seq": 0, "device": "rocm:1", "stream_id": "3", "start_ns": 100, "duration_ns": 30, "name": "add()"}
    assert expected.items() <= first.items()
    assert (first["correlation_id"], first["external_id"], first["process_id"]) == ("5", None, 42)
    (run,) = planes["runs"]
    assert (run["outcome"], run["host_clock_id"], run["device"]) == ("complete", first["clock_id"], "rocm:1")


def test_a_copy_belongs_to_its_gpu_and_a_call_is_a_launch(read, tmp_path):
    times = {"start_timestamp": 5, "end_timestamp": 9}
    copy = {**times, "kind": 1, "operation": 1, "bytes": 64}
    copy |= {"dst_agent_id": {"handle": 20}, "src_agent_id": {"handle": 10}, "stream_id": {"handle": 2}}
    call = {**times, "kind": 9, "operation": 4, "thread_id": 6, "correlation_id": {"internal": 8, "external": 11}}
    planes = read("rocprof-json", document(tmp_path / "r.json", memory_copy=[copy], hip_api=[call]))
    (interval,), (launch,) = planes["device_intervals"], planes["launches"]
    assert (interval["device"], interval["name"], interval["bytes"]) == ("rocm:1", "HOST_TO_DEVICE", 64)
    assert interval["category"] == "memory_copy"
    assert (launch["seq"], launch["name"], launch["duration_ns"], launch["thread_id"]) == (1, "hip_api 4", 4, 6)
    assert (launch["correlation_id"], launch["external_id"]) == ("8", "11")


def test_a_broken_record_costs_itself_and_the_ledger_adds_up(read, tmp_path):
    records = [dispatch(1, 2), dispatch("x", 2), dispatch(9, 3), dispatch(0, 3), {"start_timestamp": 1}, 7]
    planes = read("rocprof-json", document(tmp_path / "r.json", kernel_dispatch=records, marker_api=[{}, {}]))
    counts = {(r["kind"], r["fate"], r["reason"]): r["records"] for r in planes["ingest_counts"]}
    assert counts["kernel_dispatch", "kept", None] == len(planes["device_intervals"]) == 1
    assert counts["kernel_dispatch", "dropped", "undecodable_record"] == 3
    assert counts["kernel_dispatch", "dropped", "no_interval"] == 2
    assert counts["marker_api", "dropped", "section_not_read"] == 2
    assert planes["runs"][0]["outcome"] is None


@pytest.mark.parametrize("cut", [30, 400, -3])
def test_a_cut_document_is_refused(read, tmp_path, cut):
    path = document(tmp_path / "r.json", kernel_dispatch=[dispatch(1, 2)])
    path.write_bytes(path.read_bytes()[:cut])
    assert detect_format(path).name == "rocprof-json"
    with pytest.raises(InputRefused) as caught:
        read("rocprof-json", path)
    assert caught.value.code == "invalid_document"


def test_a_cut_gzip_stream_is_refused_with_its_place(read, tmp_path):
    path = document(tmp_path / "r.json", kernel_dispatch=[dispatch(n, n + 1) for n in range(1, 300)])
    path.write_bytes(gzip.compress(path.read_bytes())[:-20])
    with pytest.raises(InputRefused, match="ends early") as caught:
        read("rocprof-json", path)
    assert caught.value.code == "damaged_stream"


def test_the_corpus_file_comes_out_whole(read):
    path = CORPUS / "rocprof" / "tl_rocprof_908_results.json.gz"
    if not path.exists():
        pytest.skip("the corpus of real traces is not here")
    planes = read("rocprof-json", path)
    intervals = planes["device_intervals"]
    assert len(intervals) == 43915
    assert sum(row["duration_ns"] for row in intervals) == 4_441_741_378
    assert {row["device"] for row in intervals} == {"rocm:0"}
    end = union = 0
    for start, duration in sorted((row["start_ns"], row["duration_ns"]) for row in intervals):
        union += max(start + duration - max(start, end), 0)
        end = max(end, start + duration)
    assert union == 4_233_112_334
