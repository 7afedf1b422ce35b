"""Damaged inputs of the smaller formats: refused or repaired, counted to the last record, and never anything else."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from mutate import mutant

from planewise.ingest.ascend_database import READ_COLUMNS
from planewise.ingest.base import READERS, detect_format
from planewise.ingest.domains import SIGNED
from planewise.recorder.errors import InputRefused
from planewise.recorder.planes import PLANES

ROUNDS = 300
NO_RECORDS = {"runs", "ingest_counts", "ingest_issues", "collectives"}
TRACE = b"""[{"ph": "X", "name": "aten::add", "pid": 7, "tid": 7, "ts": "1727592872422811.759", "dur": 14.299,
"cat": "cpu_op", "args": {"Sequence number": -1, "Fwd thread id": 0, "Input Dims": "2;\\r\\n3"}},
{"ph": "s", "name": "torch_to_npu", "cat": "async_npu", "id": 5, "pid": 7, "tid": 7, "ts": "1727592872422811.759"},
{"ph": "f", "name": "torch_to_npu", "cat": "async_npu", "id": 5, "pid": 7586, "tid": 4, "ts": "1727592872422900.000"},
{"ph": "X", "name": "Add", "pid": 7586, "tid": 4, "ts": "1727592872422900.000", "dur": 1.2345,
"args": {"Task Type": "AI_CORE", "Physic Stream Id": 4, "Task Id": 1, "Subtask Id": 0, "connection_id": 9}},
{"ph": "X", "name": "acl@x", "pid": 7328, "tid": 7, "ts": "1727592872422812.000", "dur": 1,
"args": {"level": "acl", "connection_id": 9}},
{"ph": "X", "name": "hcom_allReduce__1", "pid": 7648, "tid": 0, "ts": "1727592872422901.000", "dur": 5,
"args": {"count": 3, "data_type": "FP32"}},
{"ph": "C", "name": "HBM", "pid": 7680, "ts": "1727592872422901.000", "args": {"Read(MB/s)": 7.5}},
{"ph": "M", "name": "process_name", "pid": 7586, "args": {"name": "Ascend Hardware"}},
{"ph": "M", "name": "process_sort_index", "pid": 7586, "args": {"sort_index": 13}},
{"ph": "M", "name": "process_name", "pid": 7648, "args": {"name": "HCCL"}}]"""
ROCPROF = b"""{"rocprofiler-sdk-tool": [{"metadata": {"pid": 4}, "agents": [{"id": {"handle": 2}, "type": 2,
"logical_node_type_id": 0}], "kernel_symbols": [{"kernel_id": 7, "kernel_name": "k"}], "buffer_records": {
"kernel_dispatch": [{"start_timestamp": 5, "end_timestamp": 9, "correlation_id": {"internal": 1, "external": 0},
"dispatch_info": {"agent_id": {"handle": 2}, "queue_id": {"handle": 1}, "kernel_id": 7}}],
"hip_api": [{"start_timestamp": 1, "end_timestamp": 2, "kind": 5, "operation": 1}]}}]}"""
RECORD = (
    b"Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type\n"
    + b"PTA+GE,1727592872266510.240\t,954.37060546875,1452.0,954.37060546875,1,NPU:0\nAPP,5\t,,2.5,,,NPU:0\n" * 4
)
OPERATOR = (
    b"Name,Size(KB),Allocation Time(us),Release Time(us),Device Type\n"
    + b"aten::add,0.5,1736405443878302.860\t,1736405443998302.860\t,NPU:0\naten::mul,2,5\t,,NPU:0\n" * 4
)
CELLS = (None, -1, 2**63 - 1, -(2**63), 2**32 - 1, 1.5, 1e300, float("inf"), "x", "", "--5", "9" * 30, b"\xff\0", "N/A")


def read_and_balance(name: str, path: Path) -> None:
    """Read a source to its end and hold it to the rules of every reader, or see it refused."""
    try:
        batches = list(READERS[name].read(path))
    except InputRefused:
        return
    rows: Counter[str] = Counter()
    ledger: Counter[str] = Counter()
    for batch in batches:
        _check_columns(batch.plane, batch.table)
        rows[batch.plane] += batch.table.num_rows
        if batch.plane == "ingest_counts":
            for count in batch.table.to_pylist():
                ledger[count["plane"]] += count["records"]
    assert {plane: rows[plane] for plane in rows if plane not in NO_RECORDS} == {
        plane: records for plane, records in ledger.items() if plane
    }


def _check_columns(plane: str, table: Any) -> None:
    assert table.schema.equals(PLANES[plane].schema)
    for field in table.schema:
        column = table.column(field.name)
        assert field.nullable or not column.null_count, (plane, field.name)
        if pa.types.is_int64(field.type) and field.name not in SIGNED:
            least = pc.min(column).as_py()
            assert least is None or least >= 0, (plane, field.name)


@pytest.mark.parametrize(
    ("name", "seed"),
    [("ascend-trace", TRACE), ("rocprof-json", ROCPROF), ("ascend-csv", RECORD), ("ascend-csv", OPERATOR)],
)
def test_mutants_are_counted_or_refused(tmp_path, name, seed):
    rng, path = random.Random(20), tmp_path / "mutant"
    path.write_bytes(seed)
    assert detect_format(path).name == name
    for _ in range(ROUNDS):
        path.write_bytes(mutant(seed, rng))
        read_and_balance(name, path)


def test_databases_of_any_cells_are_counted_or_refused(tmp_path):
    rng = random.Random(21)
    for round_ in range(60):
        path = tmp_path / f"{round_}.db"
        _database(path, rng)
        read_and_balance("ascend-db", path)


def _database(path: Path, rng: random.Random) -> None:
    """A few rows of any cells in every table that is read; a column is missing now and then."""
    tables = {**READ_COLUMNS, "STRING_IDS": ("id", "value"), "ENUM_API_TYPE": ("id", "name")}
    tables |= {
        "HBM": ("timestampNs", "deviceId", "hbmId", "type", "bandwidth"),
        "CONNECTION_IDS": ("id", "connectionId"),
    }
    tables |= {"COMMUNICATION_TASK_INFO": ("globalTaskId", "taskType", "size")}
    with closing(sqlite3.connect(path)) as connection:
        for table, columns in tables.items():
            names = [column for column in columns if rng.random() > 0.01] or [columns[0]]
            connection.execute(f"CREATE TABLE {table} ({', '.join(names)})")
            for number in range(6):
                cells = [rng.choice(CELLS) if rng.random() < 0.2 else number for _ in names]
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", cells)
        connection.commit()


def test_a_database_cut_or_overwritten_anywhere_is_counted_or_refused(tmp_path):
    rng, whole = random.Random(22), tmp_path / "whole.db"
    _database(whole, rng)
    data, path = whole.read_bytes(), tmp_path / "mutant.db"
    for _ in range(100):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 4, 40))):
            damaged[rng.randrange(100, len(data))] = rng.randrange(256)
        path.write_bytes(bytes(damaged[: rng.choice((len(data), len(data), rng.randrange(len(data))))]))
        read_and_balance("ascend-db", path)
