"""Ascend's databases: hand-worked tables, broken rows, damaged files, and the corpus."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from planewise.ingest.base import detect_format
from planewise.recorder.errors import InputRefused

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "ascend_db"
NONE = 2**32 - 1
THREAD = (7 << 32) | 3
TEXTS = (
    "N/A",
    "aten::add",
    "Add",
    "AI_CORE",
    "launch",
    "hcom_allReduce__1_0_1",
    "Memcpy",
    "EVENT_WAIT",
    "PTA+GE",
    "GE",
)
TABLES = {
    "STRING_IDS": "id INTEGER PRIMARY KEY, value TEXT",
    "ENUM_API_TYPE": "id INTEGER PRIMARY KEY, name TEXT",
    "ENUM_MEMORY": "id INTEGER PRIMARY KEY, name TEXT",
    "PYTORCH_API": "startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER, name INTEGER, type INTEGER, "
    "inputShapes INTEGER, inputDtypes INTEGER",
    "CONNECTION_IDS": "id INTEGER, connectionId INTEGER",
    "CANN_API": "startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER, name INTEGER",
    "TASK": "startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, "
    "globalPid INTEGER, taskType INTEGER, streamId INTEGER, modelId INTEGER, contextId INTEGER, taskId INTEGER",
    "COMPUTE_TASK_INFO": "name INTEGER, globalTaskId INTEGER PRIMARY KEY",
    "COMMUNICATION_TASK_INFO": "globalTaskId INTEGER, taskType INTEGER, size INTEGER",
    "COMMUNICATION_OP": "opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, groupName INTEGER, "
    "count NUMERIC",
    "MEMORY_RECORD": "component INTEGER, timestamp INTEGER, totalAllocated INTEGER, totalReserved INTEGER, "
    "totalActive INTEGER, deviceId INTEGER",
    "OP_MEMORY": "name INTEGER, size INTEGER, allocationTime INTEGER, releaseTime INTEGER, deviceId INTEGER",
    "NPU_OP_MEM": "operatorName INTEGER, addr INTEGER, type INTEGER, size INTEGER, timestampNs INTEGER, "
    "globalTid INTEGER, deviceId INTEGER",
    "HBM": "deviceId INTEGER, timestampNs INTEGER, bandwidth NUMERIC, hbmId INTEGER, type INTEGER",
    "EXTRA": "a INTEGER",
}
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "STRING_IDS": list(enumerate(TEXTS)),
    "ENUM_API_TYPE": [(50001, "op"), (50002, "queue"), (5000, "runtime")],
    "ENUM_MEMORY": [(50, "allocate"), (51, "release"), (52, "read")],
}


@pytest.fixture
def rows(read, tmp_path):
    def of(**tables: list[tuple[Any, ...]]) -> Any:
        path = tmp_path / "profiler.db"
        with closing(sqlite3.connect(path)) as connection:
            for name, cells in (ROWS | tables).items():
                connection.execute(f"CREATE TABLE {name} ({TABLES[name]})")
                width = TABLES[name].count(",") + 1
                connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * width)})", cells)
            connection.commit()
        assert detect_format(path).name == "ascend-db"
        return read("ascend-db", path)

    return of


def test_a_task_is_named_and_linked_to_its_call_and_its_operation(rows):
    planes = rows(
        PYTORCH_API=[("100", "200", THREAD, 1, 1, 50001, 0, 0)],
        CONNECTION_IDS=[(1, 55)],
        CANN_API=[(110, 120, 5000, THREAD, 55, 4)],
        TASK=[(150, 160, 2, 55, 0, 7, 3, 9, NONE, NONE, 1)],
        COMPUTE_TASK_INFO=[(2, 0)],
    )
    (op,), (launch,), (work,) = planes["ops"], planes["launches"], planes["device_intervals"]
    assert (op["op_name"], op["timestamp_ns"], op["duration_ns"], op["process_id"]) == ("aten::add", 100, 100, 7)
    assert (work["name"], work["category"], work["device"], work["stream_id"]) == ("Add", "AI_CORE", "npu:2", "9")
    assert (work["start_ns"], work["duration_ns"], work["graph_id"]) == (150, 10, None)
    assert op["external_id"] == launch["external_id"] == work["external_id"] == "1"
    assert (launch["correlation_id"], launch["op_seq"], launch["category"]) == ("55", op["seq"], "runtime")
    assert work["correlation_id"] == "55"


def test_a_collective_and_its_copy_are_told_apart_and_a_wait_is_no_work(rows):
    planes = rows(
        TASK=[(1, 5, 0, 8, 0, 7, 3, 9, NONE, NONE, 1), (5, 6, 0, NONE, 1, 7, 7, 9, NONE, NONE, 2)],
        COMMUNICATION_TASK_INFO=[(0, 6, 64)],
        COMMUNICATION_OP=[(5, 1, 9, 8, 0, 16)],
    )
    part, whole = planes["device_intervals"]
    assert (part["name"], part["category"], part["bytes"]) == ("Memcpy", "HCCL task", 64)
    assert (whole["category"], whole["device"], whole["duration_ns"]) == ("HCCL", "npu:0", 8)
    (collective,) = planes["collectives"]
    assert (collective["interval_seq"], collective["name"]) == (whole["seq"], "allreduce")
    assert ("TASK", "dropped", "synchronization") in {
        (row["kind"], row["fate"], row["reason"]) for row in planes["ingest_counts"]
    }


def test_a_task_that_only_frames_its_subtasks_is_not_counted_beside_them(rows):
    def task(start: int, end: int, id_: int, context: int) -> tuple[int, ...]:
        return (start, end, 0, 8, id_, 7, 3, 9, NONE, context, 5)

    later = task(50, 60, 3, NONE)  # Task ids are used again: this one frames nothing.
    planes = rows(TASK=[task(1, 30, 0, NONE), task(2, 4, 1, 0), task(10, 20, 2, 1), later])
    assert [row["start_ns"] for row in planes["device_intervals"]] == [2, 10, 50]
    reasons = {row["reason"]: row["records"] for row in planes["ingest_counts"] if row["fate"] == "dropped"}
    assert reasons == {"parent_of_subtasks": 1}


def test_memory_goes_to_checkpoints_events_and_counters_by_its_meaning(rows):
    planes = rows(
        MEMORY_RECORD=[(8, 10, 100, 200, 90, 0), (9, 10, 1, 2, 3, 0)],
        OP_MEMORY=[(1, 512, 5, 9, 0), (1, 8, 6, None, 0)],
        NPU_OP_MEM=[(1, -16, 50, 64, 3, THREAD, 0), (1, -16, 51, 64, 4, THREAD, 0)],
        HBM=[(0, 7, 2.5, 1, 52)],
    )
    (point,) = planes["device_memory"]
    assert (point["used_bytes"], point["reserved_bytes"], point["device"]) == (100, 200, "npu:0")
    events = [(e["timestamp_ns"], e["action"], e["bytes"], e["address"]) for e in planes["memory_events"]]
    high = 2**64 - 16
    first = [(5, "alloc", 512, None), (9, "free", 512, None), (6, "alloc", 8, None)]
    assert events == [*first, (3, "alloc", 64, high), (4, "free", 64, high)]
    samples = {(c["name"], c["series"]): c["value"] for c in planes["counters"]}
    assert samples["HBM 1 read npu:0", "bandwidth"] == 2.5
    assert samples["GE npu:0", "totalActive"] == 3


def test_broken_rows_and_unread_tables_are_counted_and_named(rows):
    task = (150, 160, 0, 55, 0, 7, 3, 9, NONE, NONE, 1)
    planes = rows(TASK=[task, (9, 3, *task[2:]), ("x", 3, *task[2:]), (None, 1, *task[2:])], EXTRA=[(1,), (2,)])
    assert len(planes["device_intervals"]) == 1
    counts = {(row["kind"], row["fate"]): row["records"] for row in planes["ingest_counts"]}
    assert (counts["TASK", "kept"], counts["TASK", "dropped"], counts["EXTRA", "dropped"]) == (1, 3, 2)
    assert Counter(issue["code"] for issue in planes["ingest_issues"]) == {"undecodable_record": 3, "table_not_read": 1}
    assert planes["runs"][0]["outcome"] is None


def test_a_damaged_database_is_refused(read, tmp_path):
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT)")
        connection.execute("CREATE TABLE TASK (startNs INTEGER)")
        connection.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", [(n, "x" * 400) for n in range(100)])
        connection.commit()
    data = path.read_bytes()
    path.write_bytes(data[:8192] + b"\xff" * (len(data) - 8192))
    assert detect_format(path).name == "ascend-db"
    with pytest.raises(InputRefused) as caught:
        read("ascend-db", path)
    assert caught.value.code == "damaged_database"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("l0_rank0", {"ops": 1159, "spans": 1740, "launches": 2622, "device_intervals": 602, "device_memory": 439}),
        ("l2_rank1", {"ops": 859, "spans": 1633, "launches": 1187, "device_intervals": 287, "memory_events": 458}),
        ("msprof_0", {"spans": 13, "launches": 4, "device_intervals": 24, "memory_events": 494}),
    ],
)
def test_the_corpus_databases_come_out_whole(read, name, expected):
    path = CORPUS / f"msinsight_{name}.db"
    if not path.exists():
        pytest.skip("the corpus of real traces is not here")
    planes = read("ascend-db", path)
    assert {plane: len(planes[plane]) for plane in expected} == expected
    ledger: Counter[str] = Counter()
    for row in planes["ingest_counts"]:
        ledger[row["plane"]] += row["records"]
    assert all(ledger[plane] == len(planes[plane]) for plane in ledger if plane)
    assert {issue["code"] for issue in planes["ingest_issues"]} <= {"table_not_read"}
    assert planes["runs"][0]["outcome"] == "complete"


def test_kernels_and_their_times_are_those_of_the_database(read):
    path = CORPUS / "msinsight_l0_rank0.db"
    if not path.exists():
        pytest.skip("the corpus of real traces is not here")
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        join = "FROM TASK t JOIN COMPUTE_TASK_INFO c USING (globalTaskId)"
        expected = connection.execute(f"SELECT count(*), sum(endNs - startNs) {join}").fetchone()
    work = [row for row in read("ascend-db", path)["device_intervals"] if row["category"].startswith("KERNEL")]
    assert (len(work), sum(row["duration_ns"] for row in work)) == expected
    assert all(row["external_id"] is not None for row in work)
