"""Exports of rows and timelines: exact, whole, and nothing half-written."""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planewise.ingest.base import detect_format
from planewise.pipeline.cli import run
from planewise.pipeline.export_chrome import export_chrome
from planewise.pipeline.export_rows import export_parquet
from support import TinyStore, emptied

ROOT = Path(__file__).parents[2]
CAPTURE = ROOT / "examples" / "captures" / "eager-profile-01"


def chrome(tiny: TinyStore, folder: Path) -> list[dict[str, Any]]:
    export_chrome(tiny.con, "r", folder / "t.json")
    return json.loads((folder / "t.json").read_text(), parse_float=Decimal)["traceEvents"]


def slices(events: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    """Name, start and length in nanoseconds."""
    return [(e["name"], int(e["ts"] * 1000), int(e["dur"] * 1000)) for e in events if e["ph"] == "X"]


def test_each_clock_begins_at_its_own_zero_and_has_its_own_process(tmp_path: Path) -> None:
    tiny = emptied()
    tiny.run("r")
    tiny.add("spans", {"id": "s", "name": "step", "start_ns": 10_000_001, "duration_ns": 2_500}, run_id="r")
    for clock, start in (("a", 7_000), ("a", 9_001), ("b", 2**60)):
        interval = {"device": "cuda:0", "clock_id": clock, "stream_id": "7", "start_ns": start, "duration_ns": 1}
        tiny.add("device_intervals", {**interval, "name": f"k{start}"}, run_id="r")
    events = chrome(tiny, tmp_path)
    assert slices(events) == [("step", 0, 2500), ("k7000", 0, 1), ("k9001", 2001, 1), (f"k{2**60}", 0, 1)]
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert names == [
        "host · clock host",
        "cuda:0 · clock a, from its own zero",
        "cuda:0 · clock b, from its own zero",
    ]
    told = json.loads((tmp_path / "t.json").read_text())["otherData"]["clocks"]
    assert {row["clock_id"]: row["zero_is_ns"] for row in told} == {"a": 7_000, "b": 2**60, "host": 10_000_001}


def test_a_launch_points_at_the_work_of_its_correlation_id_and_a_shared_id_at_none(tmp_path: Path) -> None:
    tiny = emptied()
    tiny.run("r")
    for start, link in ((0, "1"), (10, "2"), (20, "2")):
        tiny.add("launches", {"name": "go", "start_ns": start, "duration_ns": 5, "correlation_id": link}, run_id="r")
    for start, link in ((0, "1"), (10, "2"), (20, None)):
        tiny.add("device_intervals", {"start_ns": start, "duration_ns": 5, "correlation_id": link}, run_id="r")
    arrows = [(event["ph"], event["ts"]) for event in chrome(tiny, tmp_path) if event["ph"] in "sf"]
    assert arrows == [("s", 0), ("f", 0)]


def test_live_bytes_are_counters_with_every_category(tmp_path: Path) -> None:
    tiny = emptied()
    tiny.run("r")
    for at, action, storage, category in (
        (5, "alloc", "a", "activation"),
        (6, "alloc", "b", "gradient"),
        (7, "free", "a", "activation"),
    ):
        row = {"timestamp_ns": at, "action": action, "storage_id": storage, "category": category, "bytes": 64}
        tiny.add("memory_events", row, run_id="r")
    values = [event["args"] for event in chrome(tiny, tmp_path) if event["ph"] == "C"]
    assert values == [
        {"activation": 64, "gradient": 0},
        {"activation": 64, "gradient": 64},
        {"activation": 0, "gradient": 64},
    ]


WORK = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 25), st.sampled_from(["7", "8", None])), max_size=25)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(WORK, WORK)
def test_every_row_is_one_slice_and_slices_of_a_track_nest(
    tmp_path_factory: pytest.TempPathFactory, host: list[Any], device: list[Any]
) -> None:
    tiny = emptied()
    tiny.run("r")
    for at, (start, length, thread) in enumerate(host):
        span = {"id": f"s{at}", "name": "n", "start_ns": start, "duration_ns": length}
        tiny.add("spans", {**span, "thread_id": thread and int(thread)}, run_id="r")
    for start, length, stream in device:
        tiny.add("device_intervals", {"start_ns": start, "duration_ns": length, "stream_id": stream}, run_id="r")
    events = chrome(tiny, tmp_path_factory.mktemp("chrome"))
    assert len(slices(events)) == len(host) + len(device)
    tracks = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            start = int(event["ts"] * 1000)
            tracks[event["pid"], event["tid"]].append((start, start + int(event["dur"] * 1000)))
    for found in tracks.values():
        for a, b in found:
            assert not any(a < c < b < d for c, d in found)


def test_a_shipped_capture_is_written_packed_and_read_by_the_kineto_reader(tmp_path: Path) -> None:
    output = tmp_path / "run.json.gz"
    assert run(["export", "perfetto", str(CAPTURE), "--output", str(output)]) == 0
    assert len(json.loads(gzip.decompress(output.read_bytes()))["traceEvents"]) > 1000
    assert detect_format(output).name == "kineto"
    assert run(["ingest", str(output), "--store", str(tmp_path / "store")]) == 0


def test_integers_of_128_bits_are_exact_in_parquet(tmp_path: Path) -> None:
    tiny = emptied()
    tiny.con.execute("CREATE TABLE planewise_catalogue AS SELECT ? AS store_path", [str(tmp_path)])
    query = "SELECT (9223372036854775807::HUGEINT * 9223372036854775807) AS wide, NULL::VARCHAR AS none"
    assert export_parquet(tiny.con, query, tmp_path / "wide.parquet", replace=False) == 1
    assert pq.read_table(tmp_path / "wide.parquet").to_pylist() == [{"wide": Decimal((2**63 - 1) ** 2), "none": None}]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("exports") / "store")
    assert run(["ingest", str(CAPTURE), "--store", path]) == 0
    return path


def test_a_view_is_written_as_parquet_and_csv_alike(store: str, tmp_path: Path) -> None:
    for kind in ("parquet", "csv"):
        words = [
            "export",
            kind,
            "live_bytes",
            "--store",
            store,
            "--output",
            str(tmp_path / kind),
            "--where",
            "live_bytes > 9",
        ]
        assert run(words) == 0
    table = pq.read_table(tmp_path / "parquet")
    with (tmp_path / "csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == table.num_rows > 0
    assert [int(row["live_bytes"]) for row in rows] == [int(value) for value in table["live_bytes"].to_pylist()]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nothing"], 2, "no plane or view"),
        (["spans", "--where", "nonsense ="], 2, "syntax"),
        (["spans", "--where", "1 = 1); DROP TABLE x; --"], 2, ""),
        (["spans", "--where", "name = (SELECT content FROM read_text('/etc/passwd'))"], 2, ""),
    ],
)
def test_what_cannot_be_exported_leaves_nothing(
    store: str, tmp_path: Path, words: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "csv", *words, "--store", store, "--output", str(tmp_path / "x.csv")]) == code
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_kept_unless_forced(store: str, tmp_path: Path) -> None:
    output = tmp_path / "x.csv"
    output.write_text("mine")
    words = ["export", "csv", "spans", "--store", store, "--output", str(output)]
    assert run(words) == 3
    assert output.read_text() == "mine"
    assert run([*words, "--force"]) == 0
    assert output.read_text().startswith("run_id,")


@pytest.mark.parametrize("by", ["host", "memory", "activations", "device"])
def test_top_fits_eighty_columns_and_gives_whole_numbers_to_programs(
    by: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["top", str(CAPTURE), "--by", by]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines()), default=0) <= 80
    assert run(["top", str(CAPTURE), "--by", by, "--format", "json", "--limit", "2"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == {"host": 2, "activations": 2}.get(by, 0)
    assert all(isinstance(value, int | str | None) for row in rows for value in row.values())
