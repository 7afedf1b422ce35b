"""SQLite exports of Nsight Systems: hand-worked tables, links, graphs, faults, versions and damage."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mutate import mutant

from planewise.ingest.base import READERS, detect_format
from planewise.recorder.errors import InputRefused
from support import emptied

PROCESS, OTHER = (1 << 48) | (7 << 24), (1 << 48) | (8 << 24)
THREAD = PROCESS | 3
DEMANGLED = "void add<float>(float*)"
TABLES = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "META_DATA_EXPORT": "name TEXT, value TEXT",
    "TARGET_INFO_GPU": "id INTEGER, name TEXT",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER, pid INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName, "
    "shortName, graphNodeId, graphId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start, end, deviceId, contextId, streamId, correlationId, globalPid, bytes, "
    "copyKind",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start, end, deviceId, contextId, streamId, correlationId, globalPid, bytes",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "start, end, deviceId, contextId, streamId, correlationId, globalPid, graphId",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, eventClass, globalTid, correlationId, nameId",
    "NVTX_EVENTS": "start, end, eventType, text, globalTid, textId, domainId",
    "NVTX_EVENTS_V3": "start, end, eventType, text, globalTid, textId, domainId",
    "OSRT_API": "start, end, nameId",
    "SURPRISE": "a",
}
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "StringIds": [(1, DEMANGLED), (2, "add"), (3, "cudaLaunchKernel_v7000"), (4, "forward")],
    "META_DATA_EXPORT": [
        ("EXPORT_SCHEMA_VERSION", "3.20.3"),
        ("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"),
        ("EXPORT_PRODUCT_VERSION", "2025.3.2"),
    ],
}
KERNEL = (150, 160, 1, 2, 7, 55, PROCESS, 1, 2, None, None)
CALL = (110, 120, 0, THREAD, 55, 3)


@pytest.fixture
def export(tmp_path):
    def of(_without: str = "", **tables: list[tuple[Any, ...]]) -> Path:
        path = tmp_path / "report.sqlite"
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as connection:
            for name, cells in (ROWS | tables).items():
                columns = ", ".join(c for c in TABLES[name].split(", ") if c != _without)
                connection.execute(f"CREATE TABLE {name} ({columns})")
                width = columns.count(",") + 1
                connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * width)})", cells)
            connection.commit()
        return path

    return of


@pytest.fixture
def rows(read, export):
    def of(_without: str = "", **tables: list[tuple[Any, ...]]) -> Any:
        path = export(_without, **tables)
        assert detect_format(path).name == "nsys-sqlite"
        return read("nsys-sqlite", path)

    return of


def fates(planes: Any, table: str) -> dict[tuple[str, str | None], int]:
    return {(row["fate"], row["reason"]): row["records"] for row in planes["ingest_counts"] if row["kind"] == table}


def codes(planes: Any) -> dict[str, str]:
    return {row["code"]: row["severity"] for row in planes.get("ingest_issues", [])}


def test_a_kernel_has_its_full_name_its_device_and_the_clock_of_its_launch(rows):
    planes = rows(CUPTI_ACTIVITY_KIND_KERNEL=[KERNEL], CUPTI_ACTIVITY_KIND_RUNTIME=[CALL])
    (work,), (launch,), (run,) = planes["device_intervals"], planes["launches"], planes["runs"]
    assert (work["name"], work["category"], work["device"], work["stream_id"]) == (DEMANGLED, "kernel", "cuda:1", "7")
    assert (work["start_ns"], work["duration_ns"], work["context_id"], work["process_id"]) == (150, 10, "2", 7)
    assert work["correlation_id"] == launch["correlation_id"] == "55"
    assert (launch["name"], launch["category"], launch["process_id"], launch["thread_id"]) == (
        "cudaLaunchKernel_v7000",
        "cuda_runtime",
        7,
        3,
    )
    assert work["clock_id"] == run["host_clock_id"]
    assert (run["source_version"], run["time_unit"], run["device"]) == ("3.20.3", "ns", "cuda:1")
    assert run["producer"] == "NVIDIA Nsight Systems 2025.3.2"


def test_copies_and_fills_have_words_for_names_and_their_bytes(rows):
    planes = rows(
        CUPTI_ACTIVITY_KIND_MEMCPY=[(1, 2, 0, 1, 7, 5, PROCESS, 64, 2), (2, 3, 0, 1, 7, 5, PROCESS, -1, 99)],
        CUPTI_ACTIVITY_KIND_MEMSET=[(3, 4, 0, 1, 7, 6, PROCESS, 8)],
    )
    found = [(row["name"], row["category"], row["bytes"]) for row in planes["device_intervals"]]
    assert found == [
        ("[CUDA memcpy Device-to-Host]", "memcpy", 64),
        ("[CUDA memcpy]", "memcpy", None),
        ("[CUDA memset]", "memset", 8),
    ]


def test_one_correlation_id_of_two_processes_stays_two_ids(rows):
    planes = rows(
        CUPTI_ACTIVITY_KIND_KERNEL=[KERNEL, (*KERNEL[:6], OTHER, *KERNEL[7:])],
        CUPTI_ACTIVITY_KIND_RUNTIME=[CALL, (*CALL[:3], OTHER | 9, *CALL[4:])],
    )
    assert [row["correlation_id"] for row in planes["device_intervals"]] == ["7/55", "8/55"]
    assert [row["correlation_id"] for row in planes["launches"]] == ["7/55", "8/55"]


def test_correlation_id_zero_is_none(rows):
    planes = rows(CUPTI_ACTIVITY_KIND_KERNEL=[(*KERNEL[:5], 0, *KERNEL[6:])])
    assert planes["device_intervals"][0]["correlation_id"] is None


def test_ranges_nest_by_thread_and_calls_lie_in_the_innermost(rows):
    #          0 . . . 100 110 120 . . 130 . . 200       thread 3
    # forward  [-----------------------------------)
    # inner            [----------------)
    planes = rows(
        NVTX_EVENTS=[
            (0, 200, 59, None, THREAD, 4, 0),
            (100, 130, 59, "inner", THREAD, None, 0),
            (100, 130, 59, "elsewhere", PROCESS | 4, None, 0),
            (105, 125, 60, "apart", THREAD, None, 0),
        ],
        CUPTI_ACTIVITY_KIND_RUNTIME=[CALL, (140, 150, 1, THREAD, 56, 3), (300, 310, 1, THREAD, 57, 3)],
    )
    spans = [(row["id"], row["parent_id"], row["name"], row["category"]) for row in planes["spans"]]
    assert spans == [
        ("0", None, "forward", "nvtx_push_pop"),
        ("1", "0", "inner", "nvtx_push_pop"),
        ("2", None, "elsewhere", "nvtx_push_pop"),
        ("3", None, "apart", "nvtx_start_end"),
    ]
    assert [(row["span_id"], row["category"]) for row in planes["launches"]] == [
        ("1", "cuda_runtime"),
        ("0", "cuda_driver"),
        (None, "cuda_driver"),
    ]


def test_a_crossing_range_encloses_neither(rows):
    planes = rows(
        NVTX_EVENTS=[
            (0, 100, 59, "outer", THREAD, None, 0),
            (10, 50, 59, "left", THREAD, None, 0),
            (40, 60, 59, "right", THREAD, None, 0),
        ]
    )
    assert [row["parent_id"] for row in planes["spans"]] == [None, "0", "0"]


def test_an_open_range_has_no_duration_and_encloses_nothing(rows):
    planes = rows(
        NVTX_EVENTS=[(0, None, 59, "open", THREAD, None, 0), (10, 20, 59, "closed", THREAD, None, 0)],
        NVTX_EVENTS_V3=[(12, 13, 59, "later", THREAD, None, 0)],
    )
    spans = [(row["name"], row["parent_id"], row["duration_ns"], row["end_seq"]) for row in planes["spans"]]
    assert spans == [("open", None, None, None), ("closed", None, 10, 1), ("later", "1", 1, 2)]
    assert fates(planes, "NVTX_EVENTS") == {("kept", None): 1, ("repaired", "no_end"): 1}


def test_marks_and_domains_are_no_ranges_and_a_domain_names_its_ranges(rows):
    planes = rows(
        NVTX_EVENTS=[
            (0, None, 75, "TensorRT", THREAD, None, 2),
            (1, None, 34, "mark", THREAD, None, 0),
            (5, 9, 59, "range", THREAD, None, 2),
        ]
    )
    assert [(row["name"], row["category"]) for row in planes["spans"]] == [("range", "nvtx_push_pop TensorRT")]
    assert fates(planes, "NVTX_EVENTS mark") == fates(planes, "NVTX_EVENTS domain") == {("dropped", "no_range"): 1}


def test_a_graph_replay_is_not_counted_beside_its_nodes(rows):
    replay = (100, 200, 1, 2, 7, 55, PROCESS, 9)
    planes = rows(
        CUPTI_ACTIVITY_KIND_KERNEL=[(*KERNEL[:9], 17, 9)],
        CUPTI_ACTIVITY_KIND_GRAPH_TRACE=[replay, (300, 400, 1, 2, 7, 56, PROCESS, 9)],
    )
    found = [(r["category"], r["start_ns"], r["graph_id"], r["name"]) for r in planes["device_intervals"]]
    assert found == [("kernel", 150, "9", DEMANGLED), ("graph", 300, "9", None)]
    assert fates(planes, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE") == {
        ("kept", None): 1,
        ("dropped", "graph_with_nodes"): 1,
    }
    assert planes["runs"][0]["outcome"] == "complete"


def test_a_graph_of_another_process_with_the_same_id_is_kept(rows):
    planes = rows(
        CUPTI_ACTIVITY_KIND_KERNEL=[KERNEL],
        CUPTI_ACTIVITY_KIND_GRAPH_TRACE=[(100, 200, 1, 2, 7, 55, OTHER, 9)],
    )
    assert [row["category"] for row in planes["device_intervals"]] == ["kernel", "graph"]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"start": 160, "end": 150}, "negative_duration"),
        ({"start": "x"}, "undecodable_record"),
        ({"start": -(2**63), "end": 2**63 - 1}, "undecodable_record"),
        ({"start": 0, "end": 0}, "no_timestamp"),
        ({"deviceId": None}, "no_device"),
        ({"deviceId": 2**31 - 1}, "no_device"),
        ({"streamId": None}, "no_stream"),
    ],
)
def test_a_broken_row_costs_itself_and_marks_the_run(rows, cells, reason):
    names = TABLES["CUPTI_ACTIVITY_KIND_KERNEL"].split(", ")
    broken = tuple((dict(zip(names, KERNEL, strict=True)) | cells).values())
    planes = rows(CUPTI_ACTIVITY_KIND_KERNEL=[broken, KERNEL])
    (work,) = planes["device_intervals"]
    assert work["seq"] == 1
    assert fates(planes, "CUPTI_ACTIVITY_KIND_KERNEL") == {("kept", None): 1, ("dropped", reason): 1}
    assert codes(planes) == {reason: "data_loss"}
    assert planes["runs"][0]["outcome"] is None


def test_a_start_before_the_session_is_a_time_like_any_other(rows):
    planes = rows(CUPTI_ACTIVITY_KIND_RUNTIME=[(-3000, -1000, *CALL[2:])])
    assert [(row["start_ns"], row["duration_ns"]) for row in planes["launches"]] == [(-3000, 2000)]


def test_a_name_that_is_not_in_the_file_is_null_for_work_and_costs_a_call(rows):
    planes = rows(
        CUPTI_ACTIVITY_KIND_KERNEL=[(*KERNEL[:7], 98, 99, None, None)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[(*CALL[:5], 99)],
    )
    assert planes["device_intervals"][0]["name"] is None
    assert fates(planes, "CUPTI_ACTIVITY_KIND_KERNEL") == {("repaired", "name_not_in_file"): 1}
    assert fates(planes, "CUPTI_ACTIVITY_KIND_RUNTIME") == {("dropped", "no_name"): 1}


@pytest.mark.parametrize("column", ["contextId", "correlationId", "globalPid", "demangledName", "graphId"])
def test_an_optional_column_may_be_absent(rows, column):
    planes = rows(
        column,
        CUPTI_ACTIVITY_KIND_KERNEL=[
            tuple(
                v for n, v in zip(TABLES["CUPTI_ACTIVITY_KIND_KERNEL"].split(", "), KERNEL, strict=True) if n != column
            )
        ],
    )
    (work,) = planes["device_intervals"]
    assert work["name"] == ("add" if column == "demangledName" else DEMANGLED)
    assert (work["context_id"] is None) == (column == "contextId")
    assert (work["correlation_id"] is None) == (column == "correlationId")


def test_a_missing_required_column_is_named_and_its_rows_are_lost(rows):
    planes = rows("streamId", CUPTI_ACTIVITY_KIND_KERNEL=[KERNEL[:4] + KERNEL[5:]])
    assert "device_intervals" not in planes
    (issue,) = [row for row in planes["ingest_issues"] if row["code"] == "missing_columns"]
    assert "no column streamId in CUPTI_ACTIVITY_KIND_KERNEL" in issue["message"]
    assert issue["severity"] == "data_loss"


def test_an_export_without_device_work_says_so_and_claims_nothing(rows):
    planes = rows(OSRT_API=[(1, 2, 3)] * 5, SURPRISE=[(1,)])
    assert "device_intervals" not in planes
    assert codes(planes) == {"no_device_work": "info", "table_not_read": "info"}
    assert fates(planes, "OSRT_API") == {("dropped", "not_read"): 5}
    assert planes["runs"][0]["capture_contract"]["device_timing"] == "none"


def test_a_device_number_that_means_two_gpus_is_warned_of(rows):
    planes = rows(CUPTI_ACTIVITY_KIND_KERNEL=[KERNEL], TARGET_INFO_CUDA_DEVICE=[(0, 1, 7), (1, 1, 8), (0, 0, 7)])
    assert codes(planes) == {"device_ambiguous": "warning"}


def test_a_schema_of_another_major_version_is_refused_with_both(export, read):
    path = export(META_DATA_EXPORT=[("EXPORT_SCHEMA_VERSION", "4.0.1")])
    with pytest.raises(InputRefused, match=r"schema 4\.0\.1, this reader knows major versions up to 3") as caught:
        read("nsys-sqlite", path)
    assert caught.value.code == "incompatible"


def test_a_first_page_of_zeros_is_refused_with_a_sentence(export, read):
    path = export(CUPTI_ACTIVITY_KIND_KERNEL=[KERNEL] * 3000)
    data = path.read_bytes()
    path.write_bytes(bytes(4096) + data[4096:])
    assert detect_format(path).name == "nsys-sqlite"
    with pytest.raises(InputRefused, match="first page holds zeros") as caught:
        read("nsys-sqlite", path)
    assert "nsys export --type sqlite" in caught.value.remedy


def test_a_damaged_database_is_refused_whole(export, read):
    path = export(CUPTI_ACTIVITY_KIND_KERNEL=[KERNEL] * 3000)
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(InputRefused) as caught:
        read("nsys-sqlite", path)
    assert caught.value.code == "damaged_database"


def test_mutants_are_read_or_refused_and_never_anything_else(export):
    path = export(
        CUPTI_ACTIVITY_KIND_KERNEL=[KERNEL] * 5,
        CUPTI_ACTIVITY_KIND_RUNTIME=[CALL] * 5,
        CUPTI_ACTIVITY_KIND_GRAPH_TRACE=[(100, 200, 1, 2, 7, 55, PROCESS, 9)],
        NVTX_EVENTS=[(0, 200, 59, None, THREAD, 4, 0)] * 3,
    )
    seed, rng = path.read_bytes(), random.Random(23)
    for _ in range(150):
        path.write_bytes(mutant(seed, rng))
        if READERS["nsys-sqlite"].detect(path):
            try:
                for _ in READERS["nsys-sqlite"].read(path):
                    pass
            except InputRefused:
                pass


CELLS = (None, -1, 0, 2**63 - 1, -(2**63), 2**32 - 1, 1.5, 1e300, float("inf"), "x", "", "7", b"\xff\0", 59, 60)


def test_tables_of_any_cells_are_counted_to_the_last_row(export):
    rng = random.Random(24)
    for _ in range(60):
        without = rng.choice(("", "", "contextId", "globalPid", "globalTid", "end", "text", "correlationId"))
        tables = {}
        for name, declared in TABLES.items():
            columns = [column for column in declared.split(", ") if column != without]
            cells = [[rng.choice(CELLS) if rng.random() < 0.2 else number for _ in columns] for number in range(6)]
            tables[name] = [] if name in ROWS else [tuple(row) for row in cells]
        planes = read_all(export(without, **tables | ROWS))
        counted = sum(row["records"] for row in planes["ingest_counts"])
        assert counted == sum(len(rows) for rows in (tables | ROWS).values())
        kept = sum(row["records"] for row in planes["ingest_counts"] if row["plane"])
        assert kept == sum(len(planes.get(plane, [])) for plane in ("spans", "launches", "device_intervals"))
        assert all(row["duration_ns"] is None or row["duration_ns"] >= 0 for row in planes.get("spans", []))


def read_all(path: Path) -> dict[str, list[dict[str, Any]]]:
    planes: dict[str, list[dict[str, Any]]] = {}
    for part in READERS["nsys-sqlite"].read(path):
        planes.setdefault(part.plane, []).extend(part.table.to_pylist())
    return planes


def test_ranges_of_iterations_own_the_work_that_their_thread_launched(export):
    # The second launch lies in no range of its thread: that range was pushed by another one.
    path = export(
        CUPTI_ACTIVITY_KIND_KERNEL=[KERNEL, (170, 175, 1, 2, 7, 56, PROCESS, 1, 2, None, None)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[CALL, (140, 145, 0, THREAD, 56, 3)],
        NVTX_EVENTS=[
            (100, 130, 59, "stormlog.iteration/vllm/3", THREAD, None, 0),
            (135, 160, 59, "stormlog.iteration/vllm/4", OTHER | 5, None, 0),
        ],
    )
    store = emptied()
    for part in READERS["nsys-sqlite"].read(path):
        store.insert(part.plane, part.table)
    assert store.rows("SELECT iteration_id, process_id, thread_id FROM iteration_ranges ORDER BY 1") == [
        ("vllm/3", 7, 3),
        ("vllm/4", 8, 5),
    ]
    links = "SELECT iteration_id, reason FROM launch_iteration_links ORDER BY seq"
    assert store.rows(links) == [("vllm/3", None), (None, "launch_outside_iteration_range")]
    times = "SELECT iteration_id, busy_ns FROM iteration_gpu_time ORDER BY 1"
    assert store.rows(times) == [("vllm/3", 10), ("vllm/4", None)]
    assert store.rows("SELECT reason, busy_ns FROM unattributed_gpu_time") == [("launch_outside_iteration_range", 5)]
