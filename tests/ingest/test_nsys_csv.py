"""Reports of nsys stats: what a header says, units to the digit, several reports in one text, and the corpus."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mutate import mutant

from planewise.ingest.base import READERS, detect_format
from planewise.ingest.nsys_report_text import ReportText
from planewise.recorder.errors import InputRefused

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
WORK = "Start (ns),Duration (ns),CorrId,GrdX,Bytes (MB),Device,Ctx,Strm,Name\n"
RANGES = "Start (ns),End (ns),Duration (ns),Name,PID,TID,Lvl,NumChild,RangeId,ParentId\n"
PROJECTED = "Name,Projected Start (ns),Projected Duration (ns),Orig Start (ns),Orig Duration (ns),Style,PID,TID,"
PROJECTED += "NumGPUOps,RangeId,ParentId\n"
SUMMARY = "Time (%),Total Time (ns),Instances,Avg (ns),Min (ns),Max (ns),Name\n"
BANNER = "Processing [{}.sqlite] with [/opt/reports/{}.py]... \n"


@pytest.fixture
def planes(read, tmp_path):
    def of(text: str, name: str = "report.csv") -> Any:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        assert detect_format(path).name == "nsys-csv"
        return read("nsys-csv", path)

    return of


def fates(planes: Any) -> dict[tuple[str, str, str | None, str | None], int]:
    return {(c["kind"], c["fate"], c["plane"], c["reason"]): c["records"] for c in planes["ingest_counts"]}


def test_a_gpu_trace_gives_device_intervals_with_their_links(planes):
    found = planes(WORK + '5,7,41,1,,NVIDIA H200 (3),2,13,"f<a, b>(int)"\n9,1,42,,0.004,0,1,7,[CUDA memcpy HtoD]\n')
    kernel, copy = found["device_intervals"]
    assert (kernel["start_ns"], kernel["duration_ns"], kernel["device"], kernel["stream_id"]) == (5, 7, "cuda:3", "13")
    assert (kernel["name"], kernel["correlation_id"], kernel["context_id"]) == ("f<a, b>(int)", "41", "2")
    assert (kernel["category"], kernel["bytes"]) == ("kernel", None)
    assert (copy["category"], copy["bytes"], copy["device"]) == ("memcpy", 4000, "cuda:0")
    assert found["runs"][0]["link_keys"] == ["CorrId"]


@pytest.mark.parametrize(
    ("unit", "start", "duration"),
    [("ns", 1_500, 2), ("us", 1_500_000, 2_000), ("ms", 1_500_000_000, 2_000_000), ("sec", 1_500 * 10**9, 2 * 10**9)],
)
def test_times_are_in_the_unit_of_their_header(planes, unit, start, duration):
    row = planes(f"Start ({unit}),Duration({unit}),Strm,Name\n1500,2,7,k\n")["device_intervals"][0]
    assert (row["start_ns"], row["duration_ns"]) == (start, duration)


def test_times_beyond_a_float_keep_every_digit_and_digits_below_a_nanosecond_are_cut(planes):
    found = planes("Start (us),Duration (us),Strm,Name\n9007199254740.993,0.0019,7,k\n")
    assert found["device_intervals"][0]["start_ns"] == 9007199254740993
    assert found["device_intervals"][0]["duration_ns"] == 1
    assert fates(found)["cuda_gpu_trace", "repaired", "device_intervals", "sub_nanosecond"] == 1


def test_a_size_printed_as_zero_in_a_larger_unit_is_not_zero_bytes(planes):
    found = planes("Total (MB),Count,Operation\n15231.546,2,[CUDA memcpy HtoD]\n0.000,118,[CUDA memcpy DtoH]\n")
    assert [row["total_bytes"] for row in found["report_rows"]] == [15231546000, None]
    assert [row["total_ns"] for row in found["report_rows"]] == [None, None]
    assert {row["report"] for row in found["report_rows"]} == {"cuda_gpu_mem_size_sum"}


def test_a_summary_keeps_its_cells_as_they_were_written(planes):
    row = planes(SUMMARY + '75.0,"1,234",2,617.0,34,1200,"k, l"\n')["report_rows"][0]
    assert (row["report"], row["name"], row["calls"]) == ("cuda_gpu_kern_sum", "k, l", 2)
    assert (row["total_ns"], row["min_ns"], row["max_ns"]) == (1234, 34, 1200)
    assert json.loads(row["attributes"])["Total Time (ns)"] == "1,234"


def test_ranges_are_spans_and_name_their_parents_even_later_ones(planes):
    found = planes(RANGES + "5,9,4,inner,1,2,1,0,8,7\n4,10,6,outer,1,2,0,1,7,\n20,30,10,stray,1,2,0,0,9,55\n")
    spans = [(s["id"], s["parent_id"], s["name"], s["start_ns"], s["duration_ns"]) for s in found["spans"]]
    assert spans == [("0", "1", "inner", 5, 4), ("1", None, "outer", 4, 6), ("2", None, "stray", 20, 10)]
    assert {(s["process_id"], s["thread_id"]) for s in found["spans"]} == {(1, 2)}


def test_a_projection_is_a_line_of_a_report_and_never_device_work(planes):
    found = planes(PROJECTED + "fwd,1000,250,700,600,PushPop,4,5,3,1,\n,1,2,,,,4,5,9,,\nroot,1,2,,,,4,5,9,,\n")
    assert "device_intervals" not in found
    assert [(s["name"], s["start_ns"], s["duration_ns"]) for s in found["spans"]] == [("fwd", 700, 600)]
    assert [(r["name"], r["gpu_operations"], r["start_ns"], r["span_id"]) for r in found["range_projections"]] == [
        ("fwd", 3, 700, "0"),
        ("root", 9, None, None),
    ]
    assert json.loads(found["range_projections"][0]["attributes"])["Projected Start (ns)"] == "1000"
    assert fates(found)["nvtx_gpu_proj_trace", "dropped", None, "no_name"] == 1


def test_ranges_and_their_projections_in_one_text_are_one_set_of_spans(planes):
    text = BANNER.format("a", "nvtx_gpu_proj_trace") + PROJECTED + "fwd,1000,250,700,600,PushPop,4,5,3,1,\n\n"
    found = planes(text + BANNER.format("a", "nvtx_pushpop_trace") + RANGES + "700,1300,600,fwd,4,5,0,0,1,\n")
    assert [span["id"] for span in found["spans"]] == ["1"]
    assert [projection["span_id"] for projection in found["range_projections"]] == [None]


def test_calls_of_the_runtime_are_launches(planes):
    found = planes("Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid\n5,6,cudaLaunchKernel,0,77,8,9\n")
    row = found["launches"][0]
    assert (row["start_ns"], row["duration_ns"], row["name"], row["correlation_id"]) == (5, 6, "cudaLaunchKernel", "77")
    assert (row["process_id"], row["thread_id"]) == (8, 9)


def test_reports_of_several_databases_are_on_clocks_of_their_own(planes):
    work = WORK + "5,7,41,1,,0,2,13,k\n\n"
    one = planes(BANNER.format("a", "cuda_gpu_trace") + work)
    assert one["device_intervals"][0]["clock_id"] == one["runs"][0]["host_clock_id"]
    two = planes(BANNER.format("a", "cuda_gpu_trace") + work + BANNER.format("b", "cuda_gpu_trace") + work)
    clocks = [row["clock_id"] for row in two["device_intervals"]]
    assert len(set(clocks)) == 2
    assert two["runs"][0]["host_clock_id"] is None


def test_the_banner_names_the_report_and_skipped_ones_are_said(planes):
    text = BANNER.format("a", "osrt_sum") + SUMMARY.replace("Instances", "Num Calls") + "1,2,3,4,5,6,poll\n\n"
    found = planes(text + BANNER.format("a", "cuda_api_sum") + "SKIPPED: a.sqlite does not contain CUDA trace data.\n")
    assert [(row["report"], row["calls"]) for row in found["report_rows"]] == [("osrt_sum", 3)]
    assert [(i["code"], i["message"][:12]) for i in found["ingest_issues"]] == [("report_skipped", "cuda_api_sum")]


def test_messages_without_a_report_are_refused_since_absence_is_no_zero(tmp_path, read):
    path = tmp_path / "kern_sum.csv"
    path.write_text(BANNER.format("a", "cuda_gpu_kern_sum") + "SKIPPED: a.sqlite does not contain CUDA kernel data.\n")
    with pytest.raises(InputRefused, match="says nothing of how busy") as caught:
        read("nsys-csv", path)
    assert caught.value.code == "no_report"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("5,-1,4,1,,0,1,7,k", "undecodable_record"),
        ("x,1,4,1,,0,1,7,k", "undecodable_record"),
        ("5,,4,1,,0,1,7,k", "undecodable_record"),
        ("99999999999999999999,1,4,1,,0,1,7,k", "undecodable_record"),
        (f"{2**63 - 1},1,4,1,,0,1,7,k", "undecodable_record"),
        ("5,1,4,1,,0,1,7,k,l", "undecodable_record"),
        ('5,1,4,1,,0,1,7,"k', "undecodable_record"),
        ("5,1,4,1,,0,1,7, ", "no_name"),
    ],
)
def test_a_bad_row_costs_itself_alone(planes, row, reason):
    found = planes(f"{WORK}{row}\n6,1,4,1,,0,1,7,good\n")
    assert [work["name"] for work in found["device_intervals"]] == ["good"]
    assert [i["code"] for i in found["ingest_issues"]] == [reason]
    assert (found["runs"][0]["outcome"] is None) == (reason == "undecodable_record")


def test_a_quoted_name_may_run_over_lines_and_a_row_may_be_short(planes):
    found = planes('Name,Start (ns),Duration (ns),Strm,Device\n"a\nb",1,2,7\nc,3,4,7,0\n')
    assert [(w["name"], w["device"]) for w in found["device_intervals"]] == [("a\nb", "cuda"), ("c", "cuda:0")]


def test_work_by_its_begin_and_end_is_one_interval(planes):
    head = "Name,streamId,type,bytes,Event Type,Timestamp (ns),_matching_timestamp\n"
    found = planes(f"{head}k,7,kernel,,Enter,5,9\nk,7,kernel,,Leave,9,5\nc,7,CUDA_MEMCPY_KIND_DTOH,8,Enter,10,\n")
    assert [(w["start_ns"], w["duration_ns"], w["category"]) for w in found["device_intervals"]] == [(5, 4, "kernel")]
    kinds = {(kind, fate, reason): n for (kind, fate, _, reason), n in fates(found).items()}
    assert kinds["report Leave", "kept", None] == kinds["report Enter", "dropped", "no_end"] == 1


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "Name,Count,Total\nx,1,2\n", "hello\n", '{"a": 1}', "", "\0\0\0\0"])
def test_tables_and_texts_of_others_are_not_claimed(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert not READERS["nsys-csv"].detect(path)


def union(intervals: list[tuple[int, int]]) -> int:
    """Length of a union, point by point of its ends."""
    ends = sorted({point for interval in intervals for point in interval})
    return sum(b - a for a, b in pairwise(ends) if any(s <= a and b <= e for s, e in intervals))


def corpus(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((CORPUS / folder).glob("*.csv"))]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the repository")
def test_the_corpus_gives_what_a_plain_csv_reader_counts(read):
    expected = {"kernel_summary": 30, "memcpy_summary": 3, "mineru_nsys_stats": 61, "vllm_cuda_gpu_mem_size_sum": 4}
    for path in corpus("nsys_csv"):
        if path.stem.startswith("miniaegaeon"):
            with pytest.raises(InputRefused) as caught:
                read("nsys-csv", path)
            assert caught.value.code == "no_report"
        elif path.stem in expected:
            rows = read(detect_format(path).name, path)["report_rows"]
            widths = Counter(len(row) for row in csv.reader(path.read_text().splitlines()))
            assert len(rows) == expected[path.stem] == max(widths.values()) - 1
    assert len(corpus("nsys_csv")) == 7


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the repository")
def test_the_corpus_gives_the_intervals_of_its_events(read):
    path = CORPUS / "nsys_csv" / "pipit_cloverleaf_gpu_events.csv"
    rows = [row for row in csv.DictReader(path.read_text().splitlines()) if row["Event Type"] == "Enter"]
    pairs = [(int(row["Timestamp (ns)"]), int(row["_matching_timestamp"])) for row in rows]
    work = read("nsys-csv", path)["device_intervals"]
    found = [(w["start_ns"], w["start_ns"] + w["duration_ns"]) for w in work]
    assert sorted(found) == sorted(pairs)
    assert len(found) == 1591
    assert union(found[:300]) == union(pairs[:300])
    assert sum(w["bytes"] or 0 for w in work) == sum(int(float(row["bytes"] or 0)) for row in rows)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the repository")
def test_the_fixtures_of_candle_graph_are_read(read):
    work = read("nsys-csv", CORPUS / "candle_graph" / "cuda_gpu_trace.csv")["device_intervals"][0]
    assert (work["start_ns"], work["duration_ns"], work["correlation_id"], work["device"]) == (1010, 25, "41", "cuda:0")
    found = read("nsys-csv", CORPUS / "candle_graph" / "nvtx_gpu_proj_trace.csv")
    assert (found["spans"][0]["name"], found["spans"][0]["start_ns"], found["spans"][0]["duration_ns"]) == (
        "pipeline/gpu",
        700,
        600,
    )
    assert found["range_projections"][0]["gpu_operations"] == 3


SEED = (
    BANNER.format("a", "cuda_gpu_trace") + WORK + '5,7,41,1,,NVIDIA H200 (3),2,13,"f<a, b>"\n9,1,42,,0.004,0,1,7,x\n\n'
    "** NVTX (nvtx_pushpop_trace):\n" + RANGES + "5,9,4,in,1,2,1,0,8,7\n4,10,6,out,1,2,0,1,7,\n\nNOTICE: x\n"
    "SKIPPED: y\n\n" + PROJECTED + "fwd,1000,250,700,600,PushPop,4,5,3,1,\n\n" + SUMMARY + "75.0,1234,2,6.0,3,12,k\n"
)


def test_mutants_are_counted_or_refused(tmp_path, read):
    rng, path = random.Random(23), tmp_path / "mutant.csv"
    for _ in range(400):
        path.write_bytes(mutant(SEED.encode(), rng))
        try:
            found = read("nsys-csv", path)
        except InputRefused:
            continue
        ledger: Counter[str] = Counter()
        for count in found["ingest_counts"]:
            ledger[count["plane"]] += count["records"]
        own = ("spans", "launches", "device_intervals", "report_rows", "range_projections")
        assert {plane: len(found[plane]) for plane in own if plane in found} == {
            plane: ledger[plane] for plane in own if ledger[plane]
        }
        ids = {span["id"] for span in found.get("spans", [])}
        assert all(span["parent_id"] in ids | {None} for span in found.get("spans", []))


def test_every_record_of_a_text_is_one_piece(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(SEED)
    kinds = Counter(piece.kind for piece in ReportText(path).pieces())
    assert kinds == {"banner": 2, "header": 4, "row": 6, "notice": 1, "skipped": 1}
