"""Ascend's trace_view.json: hand-worked events, damage, and the corpus against the oracle of its own database."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from planewise.ingest.base import detect_format

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "ascend_trace"
PY, HW, HCCL, CANN = 7, (7 << 10) | (13 << 5) | 2, (7 << 10) | (15 << 5) | 2, (7 << 10) | (5 << 5)
LANES = {PY: ("Python", 0), HW: ("Ascend Hardware", 13), HCCL: ("HCCL", 15), CANN: ("CANN", 5)}


def slice_(name: str, pid: int, tid: int, ts: str, dur: Any, cat: str | None = None, **args: Any) -> dict[str, Any]:
    event = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}
    return event if cat is None else {**event, "cat": cat}


def flow(phase: str, pid: int, tid: int, ts: str, id_: int) -> dict[str, Any]:
    return {"ph": phase, "name": "torch_to_npu", "cat": "async_npu", "pid": pid, "tid": tid, "ts": ts, "id": id_}


def named() -> list[dict[str, Any]]:
    events = []
    for pid, (name, order) in LANES.items():
        events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
        events.append({"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": order}})
    events += [
        {"ph": "M", "name": "thread_name", "pid": HCCL, "tid": 0, "args": {"name": "Group 0 Communication"}},
        {"ph": "M", "name": "thread_name", "pid": HCCL, "tid": 1, "args": {"name": "Plane 0"}},
    ]
    return events


def task(name: str, ts: str, dur: Any, **args: Any) -> dict[str, Any]:
    link = {"Physic Stream Id": 4, "Task Id": 9, "Subtask Id": 0, "Model Id": 2**32 - 1, "connection_id": 55}
    return slice_(name, HW, 4, ts, dur, **{"Task Type": "AI_CORE", **link, **args})


@pytest.fixture
def rows(read, tmp_path):
    def of(*events: dict[str, Any]) -> Any:
        path = tmp_path / "trace_view.json"
        path.write_text(json.dumps([*events, *named()]))
        assert detect_format(path).name == "ascend-trace"
        return read("ascend-trace", path)

    return of


def test_a_hardware_task_is_an_interval_that_its_operation_and_its_call_name(rows):
    planes = rows(
        slice_("aten::add", PY, 3, "100.000", 10, "cpu_op", **{"Fwd thread id": 0, "Input Dims": "2,3;\r\n2,3"}),
        flow("s", PY, 3, "100.000", 777),
        flow("f", HW, 4, "120.500", 777),
        slice_("AscendCL@launch", CANN, 3, "101.000", 2, level="acl", connection_id=55),
        task("Add", "120.500", 1.25),
    )
    (op,), (launch,), (work,) = planes["ops"], planes["launches"], planes["device_intervals"]
    assert (op["timestamp_ns"], op["duration_ns"], op["input_shapes"]) == (100000, 10000, "2,3;\r\n2,3")
    assert (work["device"], work["stream_id"], work["start_ns"], work["duration_ns"]) == ("npu:2", "4", 120500, 1250)
    assert (work["category"], work["graph_id"], work["process_id"]) == ("AI_CORE", None, 7)
    assert op["external_id"] == work["external_id"] == launch["external_id"] == "777"
    assert work["correlation_id"] == launch["correlation_id"] == "55"
    assert (launch["op_seq"], launch["category"], launch["process_id"]) == (op["seq"], "acl", 7)
    assert planes["runs"][0]["host_clock_id"] == work["clock_id"]


def test_an_operation_that_starts_several_tasks_is_named_by_its_first_flow(rows):
    planes = rows(
        slice_("aten::add", PY, 3, "1.000", 10, "cpu_op", **{"Fwd thread id": 0}),
        *(flow("s", PY, 3, "1.000", id_) for id_ in (5, 6)),
        *(flow("f", HW, 4, ts, id_) for ts, id_ in (("20.000", 5), ("30.000", 6))),
        task("A", "20.000", 1),
        task("B", "30.000", 1),
    )
    assert [row["external_id"] for row in planes["ops"] + planes["device_intervals"]] == ["5", "5", "5"]


def test_a_task_of_a_collective_that_stands_in_two_lanes_is_one_interval(rows):
    part = {"stream id": 4, "task id": 9, "context id": 0, "size(Byte)": 64}
    planes = rows(
        slice_("hcom_allReduce__1_0_1", HCCL, 0, "50.000", 9, connection_id=55, data_type="FP32", count=16),
        task("SDMA", "50.000", 2),
        slice_("Memcpy", HCCL, 1, "50.000", 2, **part),
        slice_("Notify_Wait", HCCL, 1, "52.000", 2, **{**part, "task id": 10}),
    )
    whole, one = planes["device_intervals"]
    assert (whole["category"], whole["stream_id"]) == ("HCCL", "Group 0 Communication")
    assert (one["category"], one["name"], one["bytes"], one["stream_id"]) == ("HCCL task", "Memcpy", 64, "4")
    (collective,) = planes["collectives"]
    assert (collective["interval_seq"], collective["name"], collective["in_elements"]) == (0, "allreduce", 16)
    reasons = {row["reason"]: row["records"] for row in planes["ingest_counts"] if row["fate"] == "dropped"}
    assert reasons == {"same_as_hardware_task": 1, "synchronization": 1}


def test_waits_are_no_work_and_other_is_told_by_name_and_link(rows):
    planes = rows(
        task("EVENT_WAIT", "1.000", 5, **{"Task Type": "EVENT_WAIT_SQE"}),
        task("NOTIFY_RECORD", "2.000", 5, **{"Task Type": "Other"}),
        task("MEMCPY_ASYNC", "3.000", 5, **{"Task Type": "Other", "data size(Byte)": 8}),
        task("Add12", "4.000", 5, **{"Task Type": "Other"}),
        task("Other", "5.000", 5, **{"Task Type": "Other", "connection_id": -1}),
    )
    found = [(row["category"], row["bytes"]) for row in planes["device_intervals"]]
    assert found == [("MEMCPY_ASYNC", 8), ("kernel", None), ("Other", None)]


def test_digits_below_a_nanosecond_are_cut_and_the_record_counted_as_repaired(rows):
    planes = rows(task("Add", "1.500", 1543.3953857421875))
    assert planes["device_intervals"][0]["duration_ns"] == 1543395
    (count,) = [row for row in planes["ingest_counts"] if row["plane"] == "device_intervals"]
    assert (count["fate"], count["reason"]) == ("repaired", "sub_nanosecond")


def test_spans_nest_by_containment_and_a_crossing_one_encloses_nothing(rows):
    planes = rows(
        slice_("outer", PY, 3, "0.000", 100, "python_function"),
        slice_("crossing", PY, 3, "10.000", 20, "python_function"),
        slice_("inner", PY, 3, "25.000", 10, "python_function"),
        slice_("ProfilerStep#4", PY, 3, "26.000", 1, "cpu_op"),
        slice_("elsewhere", PY, 8, "26.000", 1, "dequeue", correlation_id=1),
        task("Add", "1.000", 1),
    )
    parents = {row["name"]: row["parent_id"] for row in planes["spans"]}
    assert parents == {"outer": None, "crossing": "0", "inner": "0", "ProfilerStep#4": "2", "elsewhere": None}


def test_counters_keep_the_unit_their_series_is_named_by(rows):
    sample = {"ph": "C", "name": "read", "pid": HW, "tid": 0, "ts": "5.000", "args": {"value": 3.5, "acc_id": 2}}
    planes = rows(task("Add", "1.000", 1), sample)
    (row,) = planes["counters"]
    assert (row["name"], row["series"], row["value"], row["timestamp_ns"]) == ("read", "value acc_id=2", 3.5, 5000)


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        ('{"ph": "X", "name": "a"b", "ts": "1.0"}', "damaged_event"),
        ('{"ph": "X", "name": "a", "cat": "cpu_op", "ts": "x", "dur": 1}', "undecodable_record"),
        ('{"ph": "X", "name": "a", "cat": "cpu_op", "ts": "1.0", "dur": -1}', "negative_duration"),
        ('{"ph": "X", "name": "a", "ts": "1.0", "dur": 1}', "unknown_lane"),
        ('{"ph": "Z", "name": "a", "ts": "1.0"}', "phase_not_read"),
    ],
)
def test_a_broken_event_costs_itself(read, tmp_path, broken, code):
    path = tmp_path / "t"
    body = ", ".join(json.dumps(event) for event in [task("A", "1.000", 1), *named()])
    path.write_text(f"[{body}, {broken}, {json.dumps(task('B', '9.000', 1))}]")
    planes = read("ascend-trace", path)
    assert [row["name"] for row in planes["device_intervals"]] == ["A", "B"]
    assert [issue["code"] for issue in planes["ingest_issues"]] == [code]
    total = sum(row["records"] for row in planes["ingest_counts"])
    assert total == 3 + len(named())


def test_a_cut_file_keeps_what_came_before_and_is_no_complete_run(read, tmp_path):
    path = tmp_path / "t"
    whole = json.dumps([*named(), task("A", "1.000", 1), task("B", "2.000", 1)])
    path.write_text(whole[: whole.rindex('"B"')])
    planes = read("ascend-trace", path)
    assert [row["name"] for row in planes["device_intervals"]] == ["A"]
    assert {issue["code"] for issue in planes["ingest_issues"]} == {"array_not_closed", "damaged_event"}
    assert planes["runs"][0]["outcome"] is None


def test_a_file_that_inflates_without_end_is_given_up(read, tmp_path):
    path = tmp_path / "t.gz"
    path.write_bytes(
        gzip.compress(json.dumps([*named(), task("A", "1.000", 1)])[:-1].encode() + b"," + b" " * (1 << 26))
    )
    planes = read("ascend-trace", path)
    assert "event_too_long" in {issue["code"] for issue in planes["ingest_issues"]}
    assert planes["runs"][0]["outcome"] is None


@pytest.mark.parametrize(
    ("name", "expected", "device"),
    [
        ("l0_rank0", {"spans": 1740, "ops": 1159, "device_intervals": 609, "counters": 642}, "npu:0"),
        ("l0_rank1", {"spans": 1740, "ops": 1159, "device_intervals": 609}, "npu:1"),
        ("l1_rank1", {"launches": 3973, "ops": 1159, "device_intervals": 1425}, "npu:1"),
        ("l2_rank0", {"launches": 1134, "ops": 859, "device_intervals": 287, "counters": 4368}, "npu:0"),
    ],
)
def test_the_corpus_traces_come_out_whole(read, name, expected, device):
    path = CORPUS / f"msinsight_{name}_trace_view.json"
    if not path.exists():
        pytest.skip("the corpus of real traces is not here")
    planes = read("ascend-trace", path)
    assert {plane: len(planes[plane]) for plane in expected} == expected
    assert sum(row["records"] for row in planes["ingest_counts"]) == len(json.loads(path.read_bytes()))
    ledger: Counter[str] = Counter()
    for row in planes["ingest_counts"]:
        ledger[row["plane"]] += row["records"]
    assert all(ledger[plane] == len(planes[plane]) for plane in ledger if plane)
    assert planes["runs"][0]["device"] == device
    assert "ingest_issues" not in planes
    ids = {row["external_id"] for row in planes["ops"]} - {None}
    linked = [row for row in planes["device_intervals"] if row["external_id"] is not None]
    assert linked
    assert {row["external_id"] for row in linked} <= ids
