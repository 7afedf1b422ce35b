"""A run as a candle-graph trace: it reads back as the same run, and what the format cannot say is refused or told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planewise.ingest.base import READERS
from planewise.pipeline.cli import run
from planewise.recorder.planes import PLANES
from support import TinyStore, emptied

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tests" / "data" / "every-kind.jsonl"
PROVENANCE = {"seq", "end_seq", "source_name", "source_digest", "source_format", "schema", "producer"}
FORMAT_LACKS = {"thread_id", "process_id"}


def planes(path: Path, reader: str) -> dict[str, list[dict[str, Any]]]:
    """Rows by plane in their order, without what says where they came from."""
    found: dict[str, list[dict[str, Any]]] = {}
    for part in READERS[reader].read(path):
        found.setdefault(part.plane, []).extend(part.table.to_pylist())
    for rows in found.values():
        rows.sort(key=lambda row: row["seq"])
    return {
        plane: [{name: value for name, value in row.items() if name not in PROVENANCE | FORMAT_LACKS} for row in rows]
        for plane, rows in found.items()
        if not plane.startswith("ingest_")
    }


def exported(source: Path, output: Path) -> dict[str, list[dict[str, Any]]]:
    assert run(["export", "candle-trace", str(source), "--output", str(output)]) == 0
    return planes(output, "candle-trace")


@pytest.mark.parametrize("name", ["again.jsonl", "again.jsonl.gz"])
def test_the_worked_example_comes_back_record_by_record(tmp_path: Path, name: str) -> None:
    assert exported(EXAMPLE, tmp_path / name) == planes(EXAMPLE, "candle-trace")


def test_a_trace_is_written_as_it_was_but_for_spelled_defaults(tmp_path: Path) -> None:
    exported(EXAMPLE, tmp_path / "again.jsonl")
    first = [json.loads(line) for line in EXAMPLE.read_text().splitlines()]
    again = [json.loads(line) for line in (tmp_path / "again.jsonl").read_text().splitlines()]
    assert [record["kind"] for record in first] == [record["kind"] for record in again]


@pytest.mark.parametrize("name", ["eager-01", "eager-profile-01", "fused-profile-02", "failed-01"])
def test_a_shipped_capture_comes_back_without_its_threads(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = ROOT / "examples" / "captures" / name
    assert exported(source, tmp_path / "trace.jsonl") == planes(source, "capture")
    assert "spans.thread_id" in capsys.readouterr().err


def test_an_interrupted_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", "candle-trace", str(ROOT / "examples" / "captures" / "killed-01")]
    assert run([*words, "--output", str(tmp_path / "t.jsonl")]) == 3
    assert "was interrupted" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_trace_is_refused_with_what_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "kineto.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0}
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    assert run(["export", "candle-trace", str(trace), "--output", str(tmp_path / "t.jsonl")]) == 3
    assert "export parquet" in capsys.readouterr().err


IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5).map(lambda text: f"x{text}")
NS = st.integers(0, 2**62 - 1)


@st.composite
def runs(draw: st.DrawFn) -> TinyStore:
    """A small run with rows of every kind, any texts and any integers."""
    tiny = emptied()
    tiny.run("r")
    for number in range(draw(st.integers(0, 4))):
        span = {"id": f"s{number}", "name": draw(IDS), "start_ns": draw(NS), "duration_ns": draw(st.none() | NS)}
        tiny.add("spans", span, run_id="r")
        memory = {"storage_id": draw(IDS), "bytes": draw(NS), "action": "alloc", "timestamp_ns": draw(NS)}
        tiny.add("memory_events", {**memory, "span_id": f"s{number}", "op_name": draw(st.none() | IDS)}, run_id="r")
        sizes = st.floats(0, allow_nan=False, allow_infinity=False)
        numbers = {"rms": draw(sizes), "abs_max": draw(sizes), "mean": -draw(sizes)}
        tiny.add("tensor_stats", {"label": draw(IDS), "span_id": "s0", **numbers}, run_id="r")
        work = {"span_id": "s0", "stream_id": "7", "backend": "cuda-event"}
        tiny.add("device_intervals", {**work, "start_ns": draw(NS), "duration_ns": draw(NS)}, run_id="r")
    tiny.con.execute("UPDATE spans SET end_seq = seq + 1000 WHERE duration_ns IS NOT NULL")
    tiny.con.execute("UPDATE runs SET outcome = 'complete', terminal_timestamp_ns = 9223372036854775807")
    return tiny


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(runs())
def test_any_run_comes_back(tmp_path_factory: pytest.TempPathFactory, tiny: TinyStore) -> None:
    from planewise.pipeline.export_candle import export_candle

    path = tmp_path_factory.mktemp("candle") / "t.jsonl"
    export_candle(tiny.con, "r", path)
    back = planes(path, "candle-trace")
    for plane in ("spans", "memory_events", "tensor_stats", "device_intervals"):
        names = [name for name in PLANES[plane].column_names if name not in PROVENANCE | FORMAT_LACKS]
        wanted = tiny.rows(f"SELECT {', '.join(names)} FROM {plane} ORDER BY seq")
        assert [tuple(row[name] for name in names) for row in back.get(plane, [])] == wanted
