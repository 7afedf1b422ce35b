"""Parquet folders of Nsight Systems: recipe output, parquetdir exports, damage, and the corpus."""

from __future__ import annotations

import contextlib
import csv
import json
import lzma
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mutate import mutant

from planewise.ingest.nsys_recipe import NsysRecipeReader
from planewise.recorder.errors import InputRefused

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "nsys_recipe"
PROCESS = (1 << 48) | (7 << 24)
PROJECTION = {
    "Name": [None, "outer", "inner"],
    "Projected Start": [100, 110, 120],
    "Projected Duration": [900, 50, 20],
    "Orig Start": [None, 10.0, 20.0],
    "Orig Duration": [None, 80.0, 30.0],
    "Style": [None, "PushPop", "PushPop"],
    "PID": [7, 7, 7],
    "TID": [9, 9, 9],
    "NumGPUOps": [5, 2, 1],
    "RangeId": [None, 4.0, 5.0],
    "ParentId": [None, None, 4.0],
    "Rank": [0, 0, 0],
}
RANGES = """Start (ns),End (ns),Duration (ns),Name,PID,TID,Lvl,RangeId,ParentId
10,90,80,outer,7,9,0,4,
20,50,30,inner,7,9,1,5,4
55,60,5,idle,7,9,1,6,4
"""
TABLES: dict[str, dict[str, list[Any]]] = {
    "StringIds": {"id": [1, 2], "value": ["kernel_a", "cudaLaunchKernel"]},
    "CUPTI_ACTIVITY_KIND_KERNEL": {
        "start": [50],
        "end": [60],
        "deviceId": [1],
        "streamId": [7],
        "correlationId": [3],
        "globalPid": [PROCESS],
        "demangledName": [1],
    },
    "CUPTI_ACTIVITY_KIND_RUNTIME": {
        "start": [40],
        "end": [45],
        "globalTid": [PROCESS | 9],
        "correlationId": [3],
        "nameId": [2],
    },
    "OSRT_API": {"start": [1, 2], "end": [2, 3]},
    "META_DATA_EXPORT": {"name": ["EXPORT_SCHEMA_VERSION"], "value": ["3.20.3"]},
}


@pytest.fixture
def recipe(tmp_path):
    folder = tmp_path / "out"
    (folder / "nvtx_gpu_proj_trace").mkdir(parents=True)
    pq.write_table(pa.table(PROJECTION), folder / "nvtx_gpu_proj_trace" / "trace.parquet")
    return folder


@pytest.fixture
def export(tmp_path):
    folder = tmp_path / "export_pqtdir"
    folder.mkdir()
    for name, columns in TABLES.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


def read(path: Path) -> dict[str, list[dict[str, Any]]]:
    assert NsysRecipeReader().detect(path)
    planes: dict[str, list[dict[str, Any]]] = {}
    for part in NsysRecipeReader().read(path):
        planes.setdefault(part.plane, []).extend(part.table.to_pylist())
    return planes


def test_a_projection_gives_ranges_of_the_host_and_lines_of_a_report_and_no_work(recipe):
    planes = read(recipe)
    spans = [(s["name"], s["start_ns"], s["duration_ns"], s["thread_id"]) for s in planes["spans"]]
    assert spans == [("outer", 10, 80, 9), ("inner", 20, 30, 9)]
    assert planes["spans"][1]["parent_id"] == planes["spans"][0]["id"]
    lines = [(row["report"], row["name"], row["gpu_operations"]) for row in planes["range_projections"]]
    assert lines == [("nvtx_gpu_proj_trace", "outer", 2), ("nvtx_gpu_proj_trace", "inner", 1)]
    assert json.loads(planes["range_projections"][0]["attributes"])["Projected Duration"] == "50"
    assert "device_intervals" not in planes
    assert planes["runs"][0]["rank"] is None


@pytest.mark.parametrize("ending", ["csv", "csv.xz"])
def test_ranges_of_a_report_of_their_own_are_not_made_twice(recipe, ending):
    text = RANGES.encode()
    (recipe / f"report_nvtx_pushpop_trace.{ending}").write_bytes(lzma.compress(text) if ending == "csv.xz" else text)
    planes = read(recipe)
    assert [row["name"] for row in planes["spans"]] == ["outer", "inner", "idle"]
    assert [row["name"] for row in planes["range_projections"]] == ["outer", "inner"]
    counts = {row["kind"]: row["records"] for row in planes["ingest_counts"] if row["plane"]}
    assert counts == {"nvtx_gpu_proj_trace": 2, "nvtx_pushpop_trace": 3}


def test_a_cut_xz_stream_costs_its_rest_and_marks_the_run(recipe):
    lines = "".join(f"{n},{n + 1},1,r,7,9,0,{n + 100},\n" for n in range(20_000))
    packed = lzma.compress((RANGES + lines).encode())
    (recipe / "report_nvtx_pushpop_trace.csv.xz").write_bytes(packed[: len(packed) // 2])
    planes = read(recipe)
    assert "damaged_stream" in {row["code"] for row in planes["ingest_issues"]}
    assert planes["runs"][0]["outcome"] is None


def test_a_parquetdir_export_is_read_as_the_database_would_be(export):
    planes = read(export)
    (work,), (launch,), (run,) = planes["device_intervals"], planes["launches"], planes["runs"]
    assert (work["name"], work["device"], work["start_ns"], work["duration_ns"]) == ("kernel_a", "cuda:1", 50, 10)
    assert (launch["name"], launch["correlation_id"], launch["process_id"]) == ("cudaLaunchKernel", "3", 7)
    assert (run["source_format"], run["source_version"]) == ("nsys-recipe", "3.20.3")
    unread = [row["records"] for row in planes["ingest_counts"] if row["reason"] == "not_read"]
    assert unread == [2]


def test_a_folder_that_holds_more_than_a_recipe_is_none(recipe):
    assert NsysRecipeReader().detect(recipe)
    (recipe / "trace.pt").write_bytes(b"x")
    assert not NsysRecipeReader().detect(recipe)
    assert NsysRecipeReader().detect(recipe / "nvtx_gpu_proj_trace")
    assert not NsysRecipeReader().detect(recipe.parent)


def test_a_damaged_parquet_file_costs_itself_and_marks_the_run(recipe):
    (recipe / "report_nvtx_pushpop_trace.csv").write_text(RANGES)
    path = recipe / "nvtx_gpu_proj_trace" / "trace.parquet"
    (recipe / "nvtx_gpu_proj_trace" / "nvtx_gpu_proj_trace.nsys-analysis").write_text("{")
    path.write_bytes(path.read_bytes()[:-20])
    planes = read(recipe)
    assert [row["name"] for row in planes["spans"]] == ["outer", "inner", "idle"]
    assert [row["code"] for row in planes["ingest_issues"]] == ["damaged_parquet"]
    assert planes["runs"][0]["outcome"] is None


def test_a_folder_whose_only_report_is_damaged_is_refused(recipe):
    (recipe / "nvtx_gpu_proj_trace" / "nvtx_gpu_proj_trace.nsys-analysis").write_text("{")
    path = recipe / "nvtx_gpu_proj_trace" / "trace.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputRefused) as caught:
        list(NsysRecipeReader().read(recipe))
    assert caught.value.code == "damaged_parquet"


@pytest.mark.parametrize("kind", ["recipe", "export"])
def test_mutants_of_folders_are_read_or_refused(kind, request):
    folder, rng = request.getfixturevalue(kind), random.Random(26)
    (folder / "report_nvtx_pushpop_trace.csv").write_text(RANGES)
    seeds = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for _ in range(60):
        path = rng.choice(sorted(seeds))
        path.write_bytes(mutant(seeds[path], rng))
        with contextlib.suppress(InputRefused):
            list(NsysRecipeReader().read(folder))
        path.write_bytes(seeds[path])


@pytest.mark.parametrize(
    ("process", "ranges", "lines"), [(0, 27891, 14304), (1, 27885, 14298), (2, 27885, 14298), (3, 27885, 14298)]
)
def test_a_real_recipe_gives_the_ranges_that_plain_csv_counts(process, ranges, lines):
    folder = CORPUS / f"pax_fsdp4_proc{process}"
    if not folder.is_dir():
        pytest.skip("the corpus of real traces is not here")
    planes = read(folder)
    assert (len(planes["spans"]), len(planes["range_projections"])) == (ranges, lines)
    with lzma.open(folder / "report_nvtx_pushpop_trace.csv.xz", "rt") as stream:
        wanted = [(r["Name"], int(r["Start (ns)"]), int(r["Duration (ns)"])) for r in csv.DictReader(stream)]
    assert [(s["name"], s["start_ns"], s["duration_ns"]) for s in planes["spans"]] == wanted
    projected = pq.read_table(folder / "nvtx_gpu_proj_trace" / "trace.parquet").to_pylist()
    assert [(r["Name"], r["NumGPUOps"]) for r in projected if r["Name"] is not None] == [
        (row["name"], row["gpu_operations"]) for row in planes["range_projections"]
    ]
    ids = {span["id"] for span in planes["spans"]}
    assert all(span["parent_id"] in ids for span in planes["spans"] if span["parent_id"])
