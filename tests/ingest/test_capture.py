"""The recorder's own captures: what a session wrote is what is read, whatever ended it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from planewise.ingest.base import READERS, detect_format
from planewise.ingest.planes_writer import write_planes
from planewise.recorder.families import shard_name
from planewise.recorder.options import RecorderOptions
from planewise.recorder.planes import PLANES
from planewise.recorder.profile_run import ProfileRun
from planewise.recorder.session import TraceSession

from .conftest import read_planes


def record(path: Path, *, flush_rows: int = 65_536) -> Path:
    """A small finished capture with rows of several planes."""
    run = ProfileRun.inference("demo", 3, "cpu").tag("note", "x")
    with TraceSession.open(path, run, run_id="r/1", options=RecorderOptions(flush_rows=flush_rows)) as session:
        with session.begin_measurement("step") as step:
            session.record_tensor(step.id, "t", shape=[2, 3], dtype="f32", device="cpu", label="a/b")
            for index in range(5):
                session.record_scalar(step.id, f"loss/{index}", 0.5)
            session.record_memory_alloc(step.id, "st", "t", device="cpu", bytes=2**53 + 1, dtype="f32", shape=[2, 3])
            session.record_data_edge("t", "t")
            session.record_call_edge(session.root_id, step.id, 1)
        session.record_device_memory("cpu", used_bytes=0)
        session.record_gradient("vb", "w", "zero", 0.0)
        session.record_engine_event("request", attributes={"a": 1})
    return path


def test_finished_capture_is_read_with_every_plane(tmp_path):
    capture = record(tmp_path / "c")
    assert detect_format(capture).name == "capture"
    planes = read_planes("capture", capture)
    counts = {plane: len(rows) for plane, rows in planes.items()}
    assert counts == {
        "tensors": 1, "tensor_stats": 5, "memory_events": 1, "edges": 2, "device_memory": 1, "gradients": 1,
        "engine_events": 1, "spans": 2, "runs": 1,
    }  # fmt: skip
    assert planes["memory_events"][0]["bytes"] == 2**53 + 1
    assert (planes["device_memory"][0]["used_bytes"], planes["device_memory"][0]["free_bytes"]) == (0, None)


def test_run_row_names_producer_outcome_and_source(tmp_path):
    [run] = read_planes("capture", record(tmp_path / "c"))["runs"]
    assert (run["schema"], run["source_format"], run["source_name"]) == ("planewise/capture/1", "capture", "c")
    assert run["producer"].startswith("planewise ")
    assert (run["run_id"], run["outcome"], run["failure_reason"]) == ("r/1", "complete", None)
    assert run["terminal_timestamp_ns"] > 0
    assert run["tags"] == [("note", "x")]


def test_spans_are_joined_over_their_two_families(tmp_path):
    root, step = read_planes("capture", record(tmp_path / "c"))["spans"]
    assert (root["parent_id"], step["parent_id"], step["name"], step["measured"]) == (None, root["id"], "step", True)
    assert root["duration_ns"] >= step["duration_ns"] >= 0
    assert root["seq"] < step["seq"] < step["end_seq"] < root["end_seq"]
    assert step["thread_id"] > 0


def test_many_shards_read_as_one(tmp_path):
    few, many = (read_planes("capture", record(tmp_path / name, flush_rows=n)) for name, n in (("a", 10**6), ("b", 1)))
    assert (tmp_path / "b" / shard_name("tensor_stats", 5)).exists()
    assert few["tensor_stats"] == many["tensor_stats"]
    assert [row["seq"] for row in few["spans"]] == [row["seq"] for row in many["spans"]]


def test_capture_planes_can_be_written(tmp_path):
    counts = write_planes(READERS["capture"].read(record(tmp_path / "c", flush_rows=2)), tmp_path / "out")
    assert counts["tensor_stats"] == 5
    assert list(counts) == [plane for plane in PLANES if plane in counts]


def test_failed_capture_keeps_its_reason_and_its_open_spans(tmp_path):
    session = TraceSession.open(tmp_path / "c", ProfileRun.inference("demo", 3, "cpu"))
    session.begin_measurement("step")
    session.finish_failed("out of memory")
    planes = read_planes("capture", tmp_path / "c")
    assert (planes["runs"][0]["outcome"], planes["runs"][0]["failure_reason"]) == ("failed", "out of memory")
    assert [row["duration_ns"] for row in planes["spans"]] == [None, None]
    assert "ingest_issues" not in planes


def test_capture_that_recorded_nothing_but_its_root_is_valid(tmp_path):
    with TraceSession.open(tmp_path / "c", ProfileRun.inference("demo", 3, "cpu")):
        pass
    planes = read_planes("capture", tmp_path / "c")
    assert {plane: len(rows) for plane, rows in planes.items()} == {"spans": 1, "runs": 1}


KILLED = """
import os, signal, sys
from planewise.recorder.profile_run import ProfileRun
from planewise.recorder.session import TraceSession
session = TraceSession.open(sys.argv[1], ProfileRun.inference("demo", 3, "cpu"), run_id="r")
step = session.begin_measurement("step")
session.record_scalar(step.id, "loss", 0.5)
session.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_process_leaves_an_interrupted_run_with_its_rows(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "c")], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    planes = read_planes("capture", tmp_path / "c")
    [run], [issue] = planes["runs"], planes["ingest_issues"]
    assert (run["outcome"], run["terminal_timestamp_ns"]) == (None, None)
    assert (issue["code"], issue["severity"], issue["file"]) == ("capture_interrupted", "warning", "terminal.json")
    assert len(planes["tensor_stats"]) == 1
    assert [row["duration_ns"] for row in planes["spans"]] == [None, None]


def test_lost_rows_are_a_data_loss_issue(tmp_path):
    capture = record(tmp_path / "c")
    terminal = json.loads((capture / "terminal.json").read_text())
    (capture / "terminal.json").write_text(json.dumps(terminal | {"lost_rows": 3}))
    [issue] = read_planes("capture", capture)["ingest_issues"]
    assert (issue["code"], issue["severity"]) == ("rows_lost", "data_loss")
    assert issue["message"].startswith("3 recorded rows")


def test_foreign_and_unfinished_files_are_noted_and_ignored(tmp_path):
    capture = record(tmp_path / "c")
    (capture / "ops-000001.parquet.tmp").write_bytes(b"PAR1")
    (capture / "notes.txt").write_text("x")
    issues = read_planes("capture", capture)["ingest_issues"]
    assert [(row["file"], row["code"], row["severity"]) for row in issues] == [
        ("notes.txt", "unknown_file", "info"),
        ("ops-000001.parquet.tmp", "unfinished_file", "info"),
    ]


def test_shards_out_of_order_are_sorted_by_seq(tmp_path):
    capture = record(tmp_path / "c", flush_rows=1)
    first, second = (capture / shard_name("tensor_stats", n) for n in (1, 2))
    first.rename(capture / "x")
    second.rename(first)
    (capture / "x").rename(second)
    labels = [row["label"] for row in read_planes("capture", capture)["tensor_stats"]]
    assert labels == [f"loss/{index}" for index in range(5)]


def test_unknown_column_is_left_out_and_noted(tmp_path):
    capture = record(tmp_path / "c")
    shard = capture / shard_name("tensors", 1)
    table = pq.read_table(shard)
    pq.write_table(table.append_column("layout", pa.array(["strided"])), shard)
    planes = read_planes("capture", capture)
    assert [(row["file"], row["code"]) for row in planes["ingest_issues"]] == [(shard.name, "unknown_column")]
    assert "layout" not in planes["tensors"][0]


def test_end_without_start_in_an_interrupted_capture_is_lost_data(tmp_path):
    capture = record(tmp_path / "c")
    (capture / "terminal.json").unlink()
    (capture / shard_name("spans_start", 1)).unlink()
    planes = read_planes("capture", capture)
    assert "spans" not in planes
    assert [row["code"] for row in planes["ingest_issues"]] == ["capture_interrupted", "span_end_without_start"]


def test_attachments_are_rows_only_when_their_file_is_as_recorded(tmp_path):
    (tmp_path / "raw.bin").write_bytes(b"raw")
    with TraceSession.open(tmp_path / "c", ProfileRun.inference("demo", 3, "cpu")) as session:
        session.record_attachment(tmp_path / "raw.bin", title="raw")
    [row] = read_planes("capture", tmp_path / "c")["attachments"]
    expected = ("attachments/raw.bin", 3, hashlib.sha256(b"raw").hexdigest())
    assert (row["path"], row["bytes"], row["sha256"]) == expected


@pytest.mark.parametrize("broken", ["changed", "absent"])
def test_attachment_lost_by_an_interrupted_capture_is_noted(tmp_path, broken):
    (tmp_path / "raw.bin").write_bytes(b"raw")
    with TraceSession.open(tmp_path / "c", ProfileRun.inference("demo", 3, "cpu")) as session:
        session.record_attachment(tmp_path / "raw.bin", title="raw")
    (tmp_path / "c" / "terminal.json").unlink()
    attached = tmp_path / "c" / "attachments" / "raw.bin"
    attached.unlink() if broken == "absent" else attached.write_bytes(b"war")
    planes = read_planes("capture", tmp_path / "c")
    assert "attachments" not in planes
    assert [row["code"] for row in planes["ingest_issues"]] == ["capture_interrupted", "attachment_lost"]
