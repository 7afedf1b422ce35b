"""Recording under SIGKILL: what was flushed is ingested as an interrupted run, or the source is refused with why."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.store import Store

RECORD = """
import sys, planewise
options = planewise.RecorderOptions(flush_rows=200, flush_seconds=0.05)
print("ready", flush=True)
run = planewise.ProfileRun.training("demo", 1, "cpu")
session = planewise.TraceSession.open(sys.argv[1], run, run_id="killed", options=options)
with session.begin_measurement("region") as region:
    while True:
        with session.begin_span("step", planewise.SpanKind.FUNCTION) as span:
            session.record_scalar(span.id, "loss", 1.0)
            session.record_device_memory(device="cpu", used_bytes=1)
"""


@pytest.mark.parametrize("seed", range(10))
def test_capture_of_a_process_killed_anywhere_keeps_every_flushed_row_or_says_why_not(
    tmp_path: Path, seed: int
) -> None:
    capture = tmp_path / "capture"
    _record_and_kill(capture, delay_s=random.Random(seed).uniform(0, 0.4))
    store = Store.open(tmp_path / "store", create=True)
    [result] = ingest_sources(store, [capture])
    if result.status == "refused":
        assert result.code in ("header_missing", "not_found", "unknown_format"), result
        assert result.message
        assert store.staged() == []
        return
    assert result.rows is not None
    flushed = _rows_on_disk(capture)
    assert {name: result.rows.get(name, 0) for name in flushed} == flushed
    [run] = store.staged()
    [row] = pq.read_table(run.path / "planes" / "runs.parquet").to_pylist()
    assert (row["run_id"], row["outcome"], row["terminal_timestamp_ns"]) == ("killed", None, None)


def _record_and_kill(capture: Path, delay_s: float) -> None:
    child = subprocess.Popen([sys.executable, "-c", RECORD, str(capture)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(delay_s)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    capture.mkdir(exist_ok=True)  # killed before it had made its folder


def _rows_on_disk(capture: Path) -> dict[str, int]:
    """Rows of the finished shards by plane; spans count by their starts."""
    names = {"spans_start": "spans", "tensor_stats": "tensor_stats", "device_memory": "device_memory"}
    return {
        plane: sum(pq.read_metadata(shard).num_rows for shard in capture.glob(f"{family}-*.parquet"))
        for family, plane in names.items()
    }


@pytest.mark.parametrize("written", ["", '{"format": "planewise-cap', "{}"])
def test_recording_killed_while_it_wrote_its_header_recorded_nothing(tmp_path: Path, written: str) -> None:
    capture = tmp_path / "night" / "killed"
    capture.mkdir(parents=True)
    (capture / "header.json.tmp").write_text(written)
    [result] = ingest_sources(Store.open(tmp_path / "store", create=True), [tmp_path / "night"])
    assert (result.source, result.status, result.code) == (str(capture), "refused", "header_missing")
    assert "nothing was recorded; record it again" in str(result.message)
