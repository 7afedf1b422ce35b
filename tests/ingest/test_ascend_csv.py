"""The three Ascend memory reports: hand-worked rows, broken rows, and the corpus."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from planewise.ingest.base import detect_format
from planewise.recorder.errors import IncompatibleInput

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "ascend_csv"
RECORD = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type\n"
OPERATOR = "Name,Size(KB),Allocation Time(us),Release Time(us),Device Type\n"
MODULE = "Component,Timestamp(us),Total Reserved(MB),Device\n"


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    assert detect_format(path).name == "ascend-csv"
    return path


def test_the_allocators_total_is_a_checkpoint_and_a_component_a_counter(read, tmp_path):
    rows = "PTA+GE,10.25\t,1.5,2,1.5,7,NPU:3\nAPP,11\t,,2116.09375,,,NPU:3\n"
    planes = read("ascend-csv", written(tmp_path / "x", RECORD + rows))
    (point,), (sample,) = planes["device_memory"], planes["counters"]
    assert (point["timestamp_ns"], point["used_bytes"], point["reserved_bytes"]) == (10250, 1572864, 2097152)
    assert (point["device"], point["free_bytes"]) == ("npu:3", None)
    assert (sample["name"], sample["series"], sample["value"]) == ("APP npu:3", "Total Reserved(MB)", 2116.09375)
    assert (sample["timestamp_ns"], sample["clock_id"]) == (11000, planes["runs"][0]["host_clock_id"])


def test_an_operator_row_is_an_allocation_and_its_release(read, tmp_path):
    rows = "aten::add,0.5,1.5\t,9\t,NPU:0\naten::mul,2,3\t,,NPU:0\n"
    events = read("ascend-csv", written(tmp_path / "x", OPERATOR + rows))["memory_events"]
    found = [(e["seq"], e["timestamp_ns"], e["storage_id"], e["op_name"], e["bytes"], e["action"]) for e in events]
    assert found == [
        (0, 1500, "row 2", "aten::add", 512, "alloc"),
        (1, 9000, "row 2", "aten::add", 512, "free"),
        (2, 3000, "row 3", "aten::mul", 2048, "alloc"),
    ]


def test_a_size_that_is_no_whole_number_of_bytes_is_rounded_and_said(read, tmp_path):
    planes = read("ascend-csv", written(tmp_path / "x", OPERATOR + "a,0.1,1,,NPU:0\n"))
    assert planes["memory_events"][0]["bytes"] == 102  # 102.4
    (count,) = planes["ingest_counts"]
    assert (count["fate"], count["reason"], count["plane"]) == ("repaired", "bytes_rounded", "memory_events")
    assert planes["ingest_issues"][0]["line"] == 2


@pytest.mark.parametrize("row", ["PTA+GE,x,1,2,3,,NPU:0", "PTA+GE,1,-1,2,3,,NPU:0", "PTA+GE,1", "APP,1,,1e,,,NPU:0"])
def test_a_broken_row_costs_itself(read, tmp_path, row):
    text = f"{RECORD}{row}\nPTA+GE,5,1,2,3,,NPU:0\n"
    planes = read("ascend-csv", written(tmp_path / "x", text))
    assert len(planes["device_memory"]) == 1
    (issue,) = planes["ingest_issues"]
    assert (issue["code"], issue["severity"], issue["line"]) == ("undecodable_record", "data_loss", 2)
    assert planes["runs"][0]["outcome"] is None


def test_a_report_without_a_needed_column_is_refused_by_name(read, tmp_path):
    path = tmp_path / "x"
    path.write_text("Component,Timestamp(us),Total Allocated(MB),Other\n")
    with pytest.raises(IncompatibleInput, match=r"Total Reserved\(MB\), Device Type"):
        read("ascend-csv", path)


def test_a_file_that_inflates_without_end_is_given_up(read, tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(f"{RECORD}PTA+GE,5,1,2,3,,NPU:0\n".encode() + b"\0" * (1 << 25)))
    planes = read("ascend-csv", path)
    assert len(planes["device_memory"]) == 1
    assert [issue["code"] for issue in planes["ingest_issues"]] == ["line_too_long"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("memory_record", {"device_memory": 439, "counters": 1255}),
        ("operator_memory", {"memory_events": 344}),
        ("npu_module_mem", {"counters": 1001}),
    ],
)
def test_the_corpus_reports_come_out_whole(read, name, expected):
    path = CORPUS / f"msinsight_l0_rank0_{name}.csv"
    if not path.exists():
        pytest.skip("the corpus of real traces is not here")
    planes = read("ascend-csv", path)
    kept = Counter()
    for row in planes["ingest_counts"]:
        kept[row["plane"]] += row["records"]
    assert dict(kept) == expected == {plane: len(planes[plane]) for plane in expected}
    assert "ingest_issues" not in planes
