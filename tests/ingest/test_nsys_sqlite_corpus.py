"""Every real SQLite export: rows and times against queries of its own, unions against brute force, the ledger whole."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "nsys_sqlite"
WORK = ("KERNEL", "MEMCPY", "MEMSET")
EXPECTED = {
    "codergodness_report1": ("3.0.0", 0, 0, 0),
    "fuser_report1_b": ("3.16.1", 652, 968, 21),
    "igou_report1": ("2.9.1", 0, 7, 18433),
    "igou_report3": ("2.9.1", 0, 7, 18433),
    "jacc_async": ("3.25.0", 0, 0, 0),
    "memfusion_report1": ("3.1.2", 59, 5668, 40),
    "nsysai_healthy_1pct": ("3.24.14", 0, 400, 400),
    "nsysai_mfu_2gpu_after": ("3.25.0", 17113, 6682, 4733),
    "nsysai_mfu_2gpu_before": ("3.25.0", 19118, 7466, 5299),
    "nussinov_report1": ("3.4.0", 0, 9, 3),
    "stella_report1": ("3.16.1", 0, 0, 0),
    "testcuda_report1": ("3.24.14", 0, 44, 16),
    "threebody_report1": ("3.4.0", 0, 218, 85),
    "uvmtorch_report1": ("3.20.3", 0, 2, 0),
}
"""Version, ranges, calls and pieces of device work of each file."""


class Export:
    """An export seen without the reader: plain queries."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tables = {name for (name,) in self.query("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro&immutable=1", uri=True)) as connection:
            return connection.execute(sql).fetchall()

    def work(self) -> list[tuple[int, int, int, int]]:
        """Device, stream, start, end of all device work."""
        tables = [f"CUPTI_ACTIVITY_KIND_{kind}" for kind in WORK if f"CUPTI_ACTIVITY_KIND_{kind}" in self.tables]
        return [row for t in tables for row in self.query(f'SELECT deviceId, streamId, start, "end" FROM {t}')]

    def records(self) -> int:
        return sum(self.query(f'SELECT count(*) FROM "{t}"')[0][0] for t in self.tables if not t.startswith("sqlite_"))


def covered(intervals: list[tuple[int, int]]) -> int:
    """Length of the union, by walking sorted intervals."""
    total, reached = 0, None
    for start, end in sorted(intervals):
        begin = start if reached is None else max(start, reached)
        total += max(end - begin, 0)
        reached = end if reached is None else max(reached, end)
    return total


@pytest.fixture(params=sorted(EXPECTED))
def export(request):
    path = CORPUS / f"{request.param}.sqlite"
    if not path.is_file():
        pytest.skip("the corpus of real traces is not here")
    return Export(path)


def test_a_real_export_gives_all_its_rows_and_accounts_for_every_record(export, read):
    planes = read("nsys-sqlite", export.path)
    version, *rows = EXPECTED[export.path.stem]
    assert planes["runs"][0]["source_version"] == version
    assert [len(planes[name]) for name in ("spans", "launches", "device_intervals")] == rows
    assert len(planes["device_intervals"]) == len(export.work())
    assert sum(row["records"] for row in planes["ingest_counts"]) == export.records()
    kept: Counter[str] = Counter()
    for row in planes["ingest_counts"]:
        kept[row["plane"]] += row["records"] if row["plane"] else 0
    assert {plane: count for plane, count in kept.items() if plane} == {
        plane: len(planes[plane]) for plane in ("spans", "launches", "device_intervals") if planes[plane]
    }
    assert planes["runs"][0]["outcome"] == "complete"


def test_times_streams_and_unions_are_those_of_the_file(export, read):
    planes = read("nsys-sqlite", export.path)
    found = [
        (int(r["device"].removeprefix("cuda:")), int(r["stream_id"]), r["start_ns"], r["start_ns"] + r["duration_ns"])
        for r in planes["device_intervals"]
    ]
    assert sorted(found) == sorted(export.work())
    wanted = defaultdict(list)
    for device, _, start, end in export.work():
        wanted[f"cuda:{device}"].append((start, end))
    assert unions(planes["device_intervals"]) == {device: covered(times) for device, times in wanted.items()}


def unions(intervals: list[dict[str, Any]]) -> dict[str, int]:
    """Busy time by device, by a query over the rows that were read."""
    if not intervals:
        return {}
    work = pa.Table.from_pylist(intervals)
    con = duckdb.connect()
    con.register("work", work)
    sql = """
        WITH ends AS (
            SELECT device, start_ns, start_ns + duration_ns AS end_ns,
                max(start_ns + duration_ns) OVER (
                    PARTITION BY device ORDER BY start_ns, seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ) AS reached
            FROM work
        )
        SELECT device, sum(greatest(end_ns - greatest(start_ns, coalesce(reached, start_ns)), 0))::BIGINT
        FROM ends GROUP BY device
    """
    return dict(con.execute(sql).fetchall())


def test_launches_are_joined_to_work_of_their_own_process_alone(read):
    path = CORPUS / "nsysai_mfu_2gpu_after.sqlite"
    if not path.is_file():
        pytest.skip("the corpus of real traces is not here")
    planes = read("nsys-sqlite", path)
    launched = {row["correlation_id"]: row["start_ns"] for row in planes["launches"]}
    kernels = [row for row in planes["device_intervals"] if row["category"] == "kernel"]
    wanted = Export(path).query(
        "SELECT count(r.start), sum(k.start < r.start) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k "
        "LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r ON r.correlationId = k.correlationId "
        "AND r.globalTid / 16777216 = k.globalPid / 16777216"
    )[0]
    linked = [row for row in kernels if row["correlation_id"] in launched]
    early = sum(row["start_ns"] < launched[row["correlation_id"]] for row in linked)
    assert (len(linked), early) == wanted == (3577, 0)


def test_the_innermost_range_of_a_call_is_what_brute_force_finds(read):
    path = CORPUS / "fuser_report1_b.sqlite"
    if not path.is_file():
        pytest.skip("the corpus of real traces is not here")
    planes = read("nsys-sqlite", path)
    spans = [(s["thread_id"], s["start_ns"], s["start_ns"] + s["duration_ns"], s["id"]) for s in planes["spans"]]
    for call in planes["launches"]:
        start, end = call["start_ns"], call["start_ns"] + call["duration_ns"]
        around = [s for s in spans if s[0] == call["thread_id"] and s[1] <= start and end <= s[2]]
        wanted = max(around, key=lambda s: (s[1], -s[2], int(s[3])))[3] if around else None
        assert call["span_id"] == wanted
    assert any(call["span_id"] for call in planes["launches"])


def test_exports_without_device_work_claim_no_idle_device(read):
    for stem, (_, _, _, work) in EXPECTED.items():
        path = CORPUS / f"{stem}.sqlite"
        if not path.is_file():
            pytest.skip("the corpus of real traces is not here")
        if not work:
            planes = read("nsys-sqlite", path)
            assert "no_device_work" in {row["code"] for row in planes["ingest_issues"]}
            assert planes["runs"][0]["capture_contract"]["device_timing"] == "none"
