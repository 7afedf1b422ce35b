"""Captures that do not add up are refused by name: versions, missing, damaged, foreign or edited parts."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from planewise.recorder.errors import IncompatibleInput, InputRefused, PlanewiseError
from planewise.recorder.families import shard_name
from planewise.recorder.profile_run import ProfileRun
from planewise.recorder.session import TraceSession

from .conftest import read_planes


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    run = ProfileRun.training("demo", 3, "cpu")
    with TraceSession.open(tmp_path / "c", run, run_id="r") as session:
        with session.begin_measurement("step") as step:
            session.record_tensor(step.id, "t", shape=[2], dtype="f32", device="cpu")
            session.record_scalar(step.id, "loss", 0.5)
            session.record_memory_alloc(step.id, "st", "t", device="cpu", bytes=8, dtype="f32", shape=[2])
            session.record_call_edge(session.root_id, step.id, 1)
            session.record_op(
                step.id, "mm", shape=[2], dtype="f32", device="cpu", duration_ns=0, input_dense_bytes=0, inputs=["a"]
            )
            session.record_device_interval(
                step.id, device="d", stream_id="0", clock_id="c", backend="b", start_ns=1, duration_ns=2
            )
        session.record_gradient("vb", "w", "zero", 0.0)
    return tmp_path / "c"


def refusal(capture: Path) -> InputRefused:
    with pytest.raises(InputRefused) as caught:
        read_planes("capture", capture)
    assert str(capture) in str(caught.value.source)
    return caught.value


def edit_json(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def edit_shard(capture: Path, family: str, column: str, value: Any) -> None:
    """Put one value into the first row of a shard, keeping schema and metadata."""
    path = capture / shard_name(family, 1)
    table = pq.read_table(path)
    place = table.schema.get_field_index(column)
    kind = table.schema.field(place).type
    if isinstance(value, list) and None in value:
        kind = pa.list_(pa.field("element", kind.value_type))
    values = pa.array([value, *table.column(column).to_pylist()[1:]], kind)
    pq.write_table(table.set_column(place, pa.field(column, kind), values), path)


def test_missing_header_and_empty_folder_are_refused(capture, tmp_path):
    (capture / "header.json").unlink()
    assert refusal(capture).code == "header_missing"
    (tmp_path / "empty").mkdir()
    assert "the folder is empty" in refusal(tmp_path / "empty").message


@pytest.mark.parametrize(
    ("name", "change", "code", "position"),
    [
        ("header.json", lambda d: d.update(format="planewise/capture/2"), "unsupported_version", "field format"),
        ("header.json", lambda d: d.update(plane_version=99), "unsupported_version", "field plane_version"),
        ("terminal.json", lambda d: d.update(format="other"), "unsupported_version", "field format"),
        ("header.json", lambda d: d.pop("producer"), "missing_field", "field producer"),
        ("header.json", lambda d: d["run"].pop("entrypoint"), "missing_field", "field run.entrypoint"),
        ("header.json", lambda d: d["run"].update(phase="eval"), "invalid_value", "field run.phase"),
        ("header.json", lambda d: d["run"].update(capture_step=1.0), "wrong_type", "field run.capture_step"),
        ("terminal.json", lambda d: d.update(outcome="ok"), "invalid_value", "field outcome"),
        ("terminal.json", lambda d: d.update(timestamp_ns=2**63), "integer_out_of_range", "field timestamp_ns"),
        ("terminal.json", lambda d: d.update(reason=""), "complete_with_reason", "field reason"),
        ("terminal.json", lambda d: d.update(outcome="failed"), "failed_without_reason", "field reason"),
        ("terminal.json", lambda d: d.pop("rows"), "missing_field", "field rows"),
        ("terminal.json", lambda d: d.update(extra=1), "unknown_field", "field extra"),
    ],
)
def test_broken_documents_are_refused_with_their_field(capture, name, change, code, position):
    edit_json(capture / name, change)
    found = refusal(capture)
    assert (found.code, found.position) == (code, position)
    assert found.source.endswith(name)
    assert isinstance(found, IncompatibleInput) == (code == "unsupported_version")


def test_other_version_says_both_versions_and_a_remedy(capture):
    edit_json(capture / "header.json", lambda d: d.update(plane_version=99))
    text = str(refusal(capture))
    assert all(part in text for part in ("99", "knows 1", "upgrade"))


def test_document_that_is_no_json_is_refused(capture):
    for content, code in (
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b"\xff", "invalid_utf8"),
        (b"[]", "wrong_type"),
    ):
        (capture / "terminal.json").write_bytes(content)
        assert refusal(capture).code == code
    (capture / "terminal.json").write_text('{"format":"planewise/capture/1","outcome":"failed","outcome":"complete",'
                                           '"timestamp_ns":1,"rows":{},"lost_rows":0}')  # fmt: skip
    assert refusal(capture).code == "duplicate_key"


def test_missing_last_shard_is_refused(capture):
    (capture / shard_name("tensors", 1)).unlink()
    found = refusal(capture)
    assert found.code == "shard_missing"
    assert "tensors hold 0 rows, expected 1" in found.message


def test_gap_in_shard_numbers_is_refused_even_when_interrupted(capture):
    (capture / "terminal.json").unlink()
    (capture / shard_name("tensors", 1)).rename(capture / shard_name("tensors", 2))
    found = refusal(capture)
    assert found.code == "shard_missing"
    assert "tensors-000001.parquet is missing" in found.message


def test_rows_beyond_the_terminal_record_are_refused(capture):
    edit_json(capture / "terminal.json", lambda d: d["rows"].pop("gradients"))
    assert "gradients hold 1 rows, expected 0" in refusal(capture).message


@pytest.mark.parametrize("interrupted", [False, True])
def test_damaged_shard_is_refused_by_name(capture, interrupted):
    if interrupted:
        (capture / "terminal.json").unlink()
    path = capture / shard_name("tensor_stats", 1)
    for content in (path.read_bytes()[:-10], b"", b"PAR1" * 9):
        path.write_bytes(content)
        found = refusal(capture)
        assert (found.code, found.source) == ("shard_damaged", str(path))


def test_shard_of_another_run_or_plane_is_refused(capture, tmp_path):
    with TraceSession.open(tmp_path / "d", ProfileRun.training("demo", 3, "cpu"), run_id="other") as session:
        session.record_tensor(session.root_id, "t", shape=[2], dtype="f32", device="cpu")
    shutil.copy(tmp_path / "d" / shard_name("tensors", 1), capture)
    found = refusal(capture)
    assert found.code == "foreign_shard"
    assert "'other'" in found.message
    shutil.copy(capture / shard_name("tensor_stats", 1), capture / shard_name("tensors", 1))
    assert "'tensor_stats'" in refusal(capture).message


@pytest.mark.parametrize(
    ("family", "column", "value", "code"),
    [
        ("spans_start", "span_kind", "task", "invalid_value"),
        ("spans_start", "step", "warmup", "invalid_value"),
        ("spans_start", "start_ns", -1, "negative_integer"),
        ("spans_start", "id", None, "null_value"),
        ("tensors", "category", "weights", "invalid_value"),
        ("tensors", "shape", [2, -1], "negative_integer"),
        ("tensors", "shape", [2, None], "shard_schema"),
        ("tensors", "run_id", "other", "foreign_row"),
        ("memory_events", "action", "realloc", "invalid_value"),
        ("memory_events", "bytes", -5, "negative_integer"),
        ("gradients", "state", "ok", "invalid_value"),
        ("edges", "edge_kind", "control", "invalid_value"),
        ("edges", "to_span", None, "null_value"),
        ("ops", "timestamp_ns", None, "null_value"),
        ("device_intervals", "start_ns", 2**63 - 2, "integer_out_of_range"),
        ("tensor_stats", "elements", 2, "tensor_stats_invalid"),
        ("tensor_stats", "label", " ", "tensor_stats_invalid"),
        ("tensor_stats", "rms", float("nan"), "tensor_stats_invalid"),
        ("spans_end", "duration_ns", 2**63 - 1, "integer_out_of_range"),
        ("spans_end", "id", "s99", "unknown_span_end"),
    ],
)
def test_values_outside_their_plane_are_refused(capture, family, column, value, code):
    edit_shard(capture, family, column, value)
    found = refusal(capture)
    assert found.code == code
    assert family in f"{found.source} {found.position}"
    assert "column" in found.position


def test_repeated_span_ids_are_refused(capture):
    ids = pq.read_table(capture / shard_name("spans_start", 1)).column("id").to_pylist()
    edit_shard(capture, "spans_start", "id", ids[1])
    assert refusal(capture).code == "duplicate_span_start"


def test_repeated_span_end_is_refused(capture):
    ids = pq.read_table(capture / shard_name("spans_end", 1)).column("id").to_pylist()
    edit_shard(capture, "spans_end", "id", ids[1])
    assert refusal(capture).code == "duplicate_span_end"


def test_column_of_another_type_or_missing_is_refused(capture):
    path = capture / shard_name("tensors", 1)
    table = pq.read_table(path)
    place = table.schema.get_field_index("requires_grad")
    pq.write_table(table.set_column(place, "requires_grad", pc.cast(table.column(place), pa.int64())), path)
    assert (refusal(capture).code, refusal(capture).position) == ("shard_schema", "column requires_grad")
    pq.write_table(table.drop_columns(["dtype"]), path)
    assert refusal(capture).position == "column dtype"


@pytest.mark.parametrize("path", ["/etc/passwd", "attachments/../../x", "attachments//x", ""])
def test_attachment_path_outside_the_capture_is_refused(tmp_path, path):
    (tmp_path / "raw").write_bytes(b"raw")
    with TraceSession.open(tmp_path / "c", ProfileRun.training("demo", 3, "cpu")) as session:
        session.record_attachment(tmp_path / "raw", title="raw")
    edit_shard(tmp_path / "c", "attachments", "path", path)
    assert refusal(tmp_path / "c").code == "unsafe_path"


def test_changed_attachment_of_a_finished_capture_is_refused(tmp_path):
    (tmp_path / "raw").write_bytes(b"raw")
    with TraceSession.open(tmp_path / "c", ProfileRun.training("demo", 3, "cpu")) as session:
        session.record_attachment(tmp_path / "raw", title="raw")
    (tmp_path / "c" / "attachments" / "raw").write_bytes(b"war")
    assert refusal(tmp_path / "c").code == "attachment_mismatch"


@pytest.mark.parametrize("name", ["tensor_stats-000001.parquet", "spans_start-000001.parquet", "header.json"])
def test_flipped_bytes_never_escape_the_error_family(capture, name):
    path = capture / name
    content = path.read_bytes()
    rng = random.Random(7)
    refused = 0
    for _ in range(60):
        broken = bytearray(content)
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        try:
            read_planes("capture", capture)
        except PlanewiseError:
            refused += 1
    assert refused > 10


def test_a_header_edited_after_the_recording_is_refused(capture):
    edit_json(capture / "header.json", lambda d: d["run"].update(device="cuda:0"))
    found = refusal(capture)
    assert (found.code, found.position, found.exit_code) == ("header_changed", "whole file", 3)
    assert found.source.endswith("header.json")
    assert "cannot be edited afterwards" in str(found)


def test_a_terminal_record_without_the_headers_digest_is_read(capture):
    edit_json(capture / "terminal.json", lambda d: d.pop("header_sha256"))
    edit_json(capture / "header.json", lambda d: d["run"].update(device="cuda:0"))
    assert read_planes("capture", capture)["runs"][0]["device"] == "cuda:0"


@pytest.mark.parametrize("value", ["", "0" * 64, 5])
def test_a_digest_that_is_not_the_headers_is_refused(capture, value):
    edit_json(capture / "terminal.json", lambda d: d.update(header_sha256=value))
    assert refusal(capture).code == ("wrong_type" if value == 5 else "header_changed")
