"""Folders of Nsight artifacts: planes of the five reports, the manifest held against its folder, strict reports."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutate import mutant

from planewise.ingest.nsys_capture import NsightCaptureReader
from planewise.ingest.nsys_manifest import is_safe
from planewise.ingest.nsys_strict import failure, is_number, report_of

TRACE = 'Start (ns),Duration (ns),CorrId,Device,Ctx,Strm,Name\n1010,25,41,"Generic CUDA Device (0)",7,13,kernel_a\n'
PROJECTION = (
    "Name,Projected Start (ns),Projected Duration (ns),Orig Start (ns),Orig Duration (ns),Style,PID,TID,NumGPUOps,Lvl,"
    "NumChild,RangeId,ParentId,RangeStack\npipeline/gpu,1000,250,700,600,Push/Pop,4242,17,3,0,0,1,0,1\n"
)
SUMMARY = 'Time (%),Total Time (ns),Instances,Avg (ns),Min (ns),Max (ns),Name\n100.0,"1,000",4,250,100,400,kernel_a\n'
FILES = {
    "a_cuda_gpu_trace.csv": TRACE,
    "b_nvtx_gpu_proj_trace.csv": PROJECTION,
    "c_cuda_gpu_kern_sum.csv": SUMMARY,
    "capture.nsys-rep": "raw",
}
CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "candle_graph"


@pytest.fixture
def folder(tmp_path):
    def of(files: dict[str, str] | None = None, **manifest: Any) -> Path:
        path = tmp_path / "nsight"
        path.mkdir(exist_ok=True)
        for name, text in (FILES if files is None else files).items():
            (path / name).write_text(text)
        (path / "capture-manifest.json").write_text(json.dumps(declared(path) | manifest))
        return path

    return of


def declared(path: Path) -> dict[str, Any]:
    """A manifest that is true of a folder."""
    artifacts = [
        {"path": f.name, "size_bytes": f.stat().st_size, "sha256": hashlib.sha256(f.read_bytes()).hexdigest().upper()}
        for f in sorted(path.iterdir())
        if f.name != "capture-manifest.json"
    ]
    return {
        "schema": "candle-graph/nsight-capture/1",
        "run": {"id": "run-1"},
        "correlation": {"id": "demo/update-3"},
        "tool": {"name": "nsys", "version": "2025.3"},
        "commands": ["nsys profile app"],
        "hardware": {"host": "h", "devices": ["gpu"]},
        "source_revisions": {"app": "abc"},
        "required_semantic_labels": ["pipeline/gpu"],
        "artifacts": artifacts,
    }


@pytest.fixture
def rows(read_folder, folder):
    def of(files: dict[str, str] | None = None, **manifest: Any) -> dict[str, list[dict[str, Any]]]:
        return read_folder(folder(files, **manifest))

    return of


@pytest.fixture
def read_folder():
    def of(path: Path) -> dict[str, list[dict[str, Any]]]:
        planes: dict[str, list[dict[str, Any]]] = {}
        for part in NsightCaptureReader().read(path):
            planes.setdefault(part.plane, []).extend(part.table.to_pylist())
        return planes

    return of


def codes(planes: Any) -> set[str]:
    return {row["code"] for row in planes.get("ingest_issues", [])}


def test_a_whole_folder_gives_work_ranges_and_lines_and_no_fault(rows):
    planes = rows()
    (work,), (span,) = planes["device_intervals"], planes["spans"]
    assert (work["device"], work["stream_id"], work["context_id"], work["correlation_id"]) == (
        "cuda:0",
        "13",
        "7",
        "41",
    )
    assert (work["start_ns"], work["duration_ns"], work["name"]) == (1010, 25, "kernel_a")
    assert (span["name"], span["start_ns"], span["duration_ns"]) == ("pipeline/gpu", 700, 600)
    (projection,), (summary,) = planes["range_projections"], planes["report_rows"]
    assert (projection["report"], projection["gpu_operations"]) == ("nvtx_gpu_proj_trace", 3)
    assert (projection["projected_start_ns"], projection["projected_duration_ns"]) == (1000, 250)
    assert (projection["start_ns"], projection["duration_ns"], projection["span_id"]) == (700, 600, span["id"])
    assert projection["clock_id"] == work["clock_id"]
    assert json.loads(projection["attributes"])["Projected Duration (ns)"] == "250"
    assert (summary["report"], summary["calls"], summary["total_ns"]) == ("cuda_gpu_kern_sum", 4, 1000)
    assert codes(planes) == set()


def test_the_run_carries_what_the_manifest_shares_with_its_trace(rows):
    (run,) = rows()["runs"]
    contract, tags = run["capture_contract"], dict(run["tags"])
    assert run["correlation_id"] == "demo/update-3"
    assert tags["nsight.run_id"] == "run-1"
    assert contract["required_semantic_labels"] == contract["gpu_expected_semantic_labels"] == ["pipeline/gpu"]
    assert run["producer"] == "nsys 2025.3"


def test_device_times_are_not_on_the_clock_of_the_host(rows):
    planes = rows()
    assert planes["device_intervals"][0]["clock_id"] != planes["runs"][0]["host_clock_id"]


def test_every_file_and_row_is_accounted_for(rows):
    planes = rows({**FILES, "notes.md": "x"})
    kept = {row["plane"]: row["records"] for row in planes["ingest_counts"] if row["fate"] == "kept" and row["plane"]}
    assert kept["device_intervals"] == kept["spans"] == 1
    assert [row["reason"] for row in planes["ingest_counts"] if row["file"] == "notes.md"] == ["no_report"]
    assert [row["seq"] for row in planes["ingest_counts"]] == list(range(len(planes["ingest_counts"])))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"schema": "candle-graph/nsight-capture/2"}, "manifest_schema"),
        ({"required_semantic_labels": ["a", "a"]}, "label_repeated"),
        ({"artifacts": []}, "artifact_undeclared"),
        ({"artifacts": [{"path": "../x", "size_bytes": 0, "sha256": ""}]}, "artifact_path"),
        ({"artifacts": [{"path": "gone.csv", "size_bytes": 0, "sha256": ""}]}, "artifact_missing"),
        ({"artifacts": [{"path": "capture.nsys-rep", "size_bytes": 4, "sha256": "00"}]}, "artifact_size"),
        ({"artifacts": [{"path": "capture.nsys-rep", "size_bytes": 3, "sha256": "00"}]}, "artifact_digest"),
        ({"run": 5}, "manifest_unreadable"),
    ],
)
def test_a_false_manifest_is_an_issue_and_hides_no_report(rows, change, code):
    planes = rows(**change)
    assert code in codes(planes)
    assert len(planes["device_intervals"]) == len(planes["spans"]) == 1


def test_an_artifact_declared_twice_and_a_missing_raw_report_are_issues(rows):
    artifact = {"path": "a_cuda_gpu_trace.csv", "size_bytes": len(TRACE), "sha256": "00"}
    planes = rows({"a_cuda_gpu_trace.csv": TRACE}, artifacts=[artifact, artifact])
    assert codes(planes) == {"artifact_repeated", "artifact_digest", "raw_report_missing"}


@pytest.mark.parametrize(
    ("report", "text", "why"),
    [
        ("cuda_gpu_trace", TRACE + "1,-5,1,d,1,1,k\n", "line 3: its duration is '-5'"),
        ("cuda_gpu_trace", TRACE + "1,0,1,d,1,1,k\n", "line 3: its duration is 0, expected more than 0"),
        ("cuda_gpu_trace", TRACE + ",5,1,d,1,1,k\n", "line 3: its start is blank"),
        ("cuda_gpu_trace", TRACE.replace("(ns)", "(us)"), "the header has no column for its start"),
        ("nvtx_gpu_proj_trace", PROJECTION.replace("Projected Start", "X"), "no column for its projected start"),
        ("cuda_gpu_kern_sum", SUMMARY + "1,,2,3,4,5,k\n", "line 3: its total is blank"),
        ("cuda_gpu_kern_sum", SUMMARY + "1,2,x,3,4,5,k\n", "line 3: its count is 'x'"),
        ("cuda_gpu_kern_sum", "", "the file is empty"),
    ],
)
def test_a_report_that_breaks_the_protocol_is_left_out_whole(rows, report, text, why):
    planes = rows({f"r_{report}.csv": text, "capture.nsys-rep": "raw"})
    (issue,) = [row for row in planes["ingest_issues"] if row["code"] == "report_not_parsed"]
    assert why in issue["message"]
    assert not {"device_intervals", "spans", "report_rows", "range_projections"} & planes.keys()
    assert planes["runs"][0]["outcome"] is None


def test_a_blank_name_a_short_row_and_grouped_digits_parse(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(SUMMARY + '1,x,x,x,x,x,\n1,"2,000"\n')
    assert failure(path, "cuda_gpu_kern_sum") == (None, 3)


def test_the_first_report_in_the_name_of_a_file_decides():
    assert report_of("x_cuda_gpu_trace_cuda_api_sum.csv") == "cuda_api_sum"
    assert report_of("x_cuda_gpu_trace.CSV") is None


@given(st.one_of(st.integers(0, 2**64 - 1).map(str), st.floats(0, 1.8e19).map(repr)))
def test_numbers_of_the_protocol_are_numbers(text):
    assert is_number(text)


@pytest.mark.parametrize("text", ["-1", "-0.0", "18446744073709551616", "1e20", "nan", "inf", "0x1", "1 2", "1_0", "٣"])
def test_other_numbers_fail_a_report(text):
    assert not is_number(text)


def test_paths_that_leave_the_folder_are_unsafe_and_a_backslash_is_not():
    assert not any(map(is_safe, ("/a", "../a", "a/../b", "a//b", ".", "", "a\0b")))
    assert all(map(is_safe, ("a\\b", "sub/a")))


def test_the_reason_of_a_capture_without_reports_is_kept(folder, read_folder):
    path = folder({"status.txt": "state=failed\nreason=no permission\n"})
    planes = read_folder(path)
    assert dict(planes["runs"][0]["tags"])["nsight.status_reason"] == "no permission"
    assert planes["runs"][0]["capture_contract"]["device_timing"] == "none"


def test_the_real_fixtures_give_one_piece_of_work_and_one_range(rows):
    names = ("cuda_gpu_trace.csv", "nvtx_gpu_proj_trace.csv")
    if not all((CORPUS / name).is_file() for name in names):
        pytest.skip("the corpus of real traces is not here")
    planes = rows({name: (CORPUS / name).read_text() for name in names})
    assert len(planes["device_intervals"]) == len(planes["spans"]) == len(planes["range_projections"]) == 1


def test_a_folder_without_a_manifest_is_read_when_it_is_named_and_not_found_otherwise(folder, read_folder):
    path = folder()
    assert NsightCaptureReader().detect(path)
    (path / "capture-manifest.json").unlink()
    assert not NsightCaptureReader().detect(path)
    planes = read_folder(path)
    assert codes(planes) == {"manifest_missing"}
    assert len(planes["device_intervals"]) == 1


def test_mutants_of_folders_are_read(folder, read_folder):
    path, rng = folder(), random.Random(25)
    seeds = {name: (path / name).read_bytes() for name in (*FILES, "capture-manifest.json")}
    for _ in range(150):
        name = rng.choice(list(seeds))
        (path / name).write_bytes(mutant(seeds[name], rng))
        planes = read_folder(path)
        assert len(planes["runs"]) == 1
        (path / name).write_bytes(seeds[name])
