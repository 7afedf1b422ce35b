"""Valid traces: what each record becomes, defaults, exact integers, framing that is allowed."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest

from planewise.recorder.planes import PLANES

OP = {"kind": "op", "span_id": "s1", "op_name": "mm", "shape": [4, 8], "dtype": "f32", "device": "cpu"}
OP |= {"duration_ns": 5, "input_dense_bytes": 7}
TENSOR = {"kind": "tensor", "span_id": "s1", "tensor_id": "h", "shape": [2, 3], "dtype": "BF16 ", "device": "cpu"}
STATS = {"kind": "tensor_stats", "span_id": "s1", "label": "l", "shape": [], "dtype": "f32", "elements": 1}
STATS |= {"non_finite": 0, "rms": 1, "abs_max": 1.5, "mean": -1}


def test_every_kind_becomes_rows_of_its_plane(read, every_kind):
    planes = read("candle-trace", every_kind)
    counts = {plane: len(rows) for plane, rows in planes.items()}
    assert counts == {
        "runs": 1, "spans": 5, "ops": 2, "tensors": 1, "tensor_stats": 1, "memory_events": 6, "device_memory": 1,
        "device_intervals": 3, "gradients": 2, "edges": 2,
    }  # fmt: skip
    seqs = sorted(row["seq"] for plane, rows in planes.items() for row in rows) + [
        row["end_seq"] for row in planes["spans"]
    ]
    assert sorted(seqs) == list(range(29)), "every record but the terminal has one position"


def test_batches_have_exactly_the_declared_schema(every_kind):
    from planewise.ingest.base import READERS

    for batch in READERS["candle-trace"].read(every_kind):
        assert batch.table.schema.equals(PLANES[batch.plane].schema, check_metadata=True), batch.plane


def test_spans_join_start_and_end(read, every_kind):
    spans = {row["id"]: row for row in read("candle-trace", every_kind)["spans"]}
    assert [spans["s3"][name] for name in ("seq", "start_ns", "duration_ns", "end_seq", "step", "parent_id")] == [
        3, 120, 400, 21, "forward", "s2",
    ]  # fmt: skip
    assert list(spans) == ["s1", "s2", "s3", "s4", "s5"], "rows keep the order of their starts"


def test_span_that_never_ends_has_no_duration(trace):
    [span] = trace.rows({"kind": "span_start", "id": "s", "name": "n", "start_ns": 1, "span_kind": "op"})["spans"]
    assert (span["duration_ns"], span["end_seq"], span["measured"], span["step"]) == (None, None, False, None)


def test_span_end_without_duration_lasts_zero(trace):
    start = {"kind": "span_start", "id": "s", "name": "n", "start_ns": 1, "span_kind": "op"}
    [span] = trace.rows(start, {"kind": "span_end", "id": "s"})["spans"]
    assert (span["duration_ns"], span["end_seq"]) == (0, 2)


def test_run_row_holds_metadata_and_contract_defaults(trace):
    [run] = trace.rows()["runs"]
    assert (run["source_format"], run["source_name"]) == ("candle-trace", "t.jsonl")
    assert (run["outcome"], run["terminal_timestamp_ns"], run["failure_reason"]) == ("complete", 2**63 - 1, None)
    assert (run["producer"], run["candle_version"], run["comparison_identity"]) == (None, None, None)
    contract = run["capture_contract"]
    assert (contract["activations"], contract["tensors"], contract["gradients"]) == ("none", "none", "none")
    assert contract["gradient_contract"] is None
    assert contract["required_semantic_labels"] == []
    assert run["measured_region_device_synchronized"] is False


def test_failed_run_keeps_its_reason(trace, read):
    from .conftest import META

    path = trace.write([META, {"kind": "terminal", "outcome": "failed", "timestamp_ns": 0, "reason": "OOM"}])
    [run] = read("candle-trace", path)["runs"]
    assert (run["outcome"], run["failure_reason"]) == ("failed", "OOM")


def test_missing_dense_bytes_are_derived_from_shape_and_dtype(trace):
    planes = trace.rows(
        OP, OP | {"dtype": "q4"}, OP | {"output_dense_bytes": 9}, OP | {"output_dense_bytes": None}, TENSOR
    )
    assert [row["output_dense_bytes"] for row in planes["ops"]] == [128, None, 9, 128]
    assert [row["dense_bytes"] for row in planes["tensors"]] == [12], "dtype is read trimmed, in any case"


def test_absent_optional_fields_take_their_defaults(trace):
    planes = trace.rows(OP, TENSOR)
    assert (planes["ops"][0]["inputs"], planes["ops"][0]["output"], planes["ops"][0]["timestamp_ns"]) == ([], None, 0)
    tensor = planes["tensors"][0]
    assert (tensor["label"], tensor["requires_grad"], tensor["category"]) == (None, False, "other")


@pytest.mark.parametrize("value", [2**53 + 1, 2**63 - 1])
def test_large_integers_survive_exactly(trace, value):
    sample = {"kind": "device_memory", "timestamp_ns": value, "device": "d", "used_bytes": value}
    [row] = trace.rows(sample)["device_memory"]
    assert (row["timestamp_ns"], row["used_bytes"], row["free_bytes"]) == (value, value, None)


def test_interval_may_end_at_the_largest_integer(trace):
    [row] = trace.rows(OP | {"timestamp_ns": 2**63 - 6})["ops"]
    assert row["timestamp_ns"] + row["duration_ns"] == 2**63 - 1


def test_negative_zero_is_a_float_zero(trace):
    text = json.dumps(STATS)
    planes = trace.rows(
        text.replace('"rms": 1', '"rms": -0.0'),
        text.replace('"rms": 1', '"rms": -0'),
        '{"kind":"gradient","event_id":"g","root":"r","key":"k","state":"zero","norm":-0}',
    )
    assert [row["rms"] for row in planes["tensor_stats"]] == [0.0, 0.0]
    assert math.copysign(1, planes["gradients"][0]["norm"]) == -1, "health refuses it, so its sign must survive"


def test_unknown_extra_keys_are_ignored(trace):
    planes = trace.rows(
        OP | {"x": {"span_id": [1, {"span_id": 2.5}]}},
        TENSOR | {"y": '":'},
        '{"kind":"op" ,' + json.dumps(OP)[1:].replace('"kind": "op", ', ""),
    )
    assert (len(planes["ops"]), len(planes["tensors"])) == (2, 1)


def test_text_that_looks_like_a_key_is_no_key(trace):
    planes = trace.rows(OP | {"op_name": '":"op_name":', "inputs": [' "a":', "\\", '\\":']})
    assert planes["ops"][0]["inputs"] == [' "a":', "\\", '\\":']


def test_other_edge_kinds_keys_are_ignored(trace):
    [edge] = trace.rows(
        {
            "kind": "edge",
            "edge_kind": "data",
            "from_tensor": "a",
            "to_tensor": "b",
            "from_span": 5,
            "host_duration_ns": "x",
        }
    )["edges"]
    assert (edge["from_span"], edge["host_duration_ns"], edge["from_tensor"]) == (None, None, "a")


def test_blank_lines_and_white_space_are_skipped_and_take_no_position(trace, read):
    from .conftest import META, TERMINAL

    path = trace.write(["", json.dumps(META) + "\r", "\u00a0\u2003", "\t" + json.dumps(OP), "", TERMINAL, " "])
    planes = read("candle-trace", path)
    assert [row["seq"] for row in planes["ops"]] == [1]


def test_last_line_needs_no_line_end(read, every_kind, tmp_path):
    path = tmp_path / "t"
    path.write_bytes(every_kind.read_bytes().rstrip(b"\n"))
    assert len(read("candle-trace", path)["ops"]) == 2


def test_gzip_is_read_by_content(read, every_kind, tmp_path):
    path = tmp_path / "plain.jsonl"
    path.write_bytes(gzip.compress(every_kind.read_bytes()))
    packed, plain = read("candle-trace", path), read("candle-trace", every_kind)
    assert packed["spans"] == plain["spans"]
    assert packed["runs"][0]["run_id"] == "run-every-kind"


def test_trace_9_is_read_and_keeps_its_schema(trace):
    planes = trace.rows(OP, meta={"schema": "candle-graph/trace/9"})
    assert planes["runs"][0]["schema"] == "candle-graph/trace/9"


def test_escaped_and_raw_unicode_are_one_text(trace):
    planes = trace.rows(json.dumps(OP | {"op_name": "é😀"}), json.dumps(OP | {"op_name": "é😀"}, ensure_ascii=False))
    assert {row["op_name"] for row in planes["ops"]} == {"é😀"}


def test_blocks_do_not_change_what_is_read(every_kind, monkeypatch, read):
    from planewise.ingest import candle_trace, lines

    whole = read("candle-trace", every_kind)
    monkeypatch.setattr(candle_trace, "read_blocks", lambda path: lines.read_blocks(path, 100))
    assert read("candle-trace", every_kind) == whole


def test_text_stays_text(trace, tmp_path: Path):
    [row] = trace.rows(TENSOR | {"tensor_id": "\x00../\n", "label": ""})["tensors"]
    assert (row["tensor_id"], row["label"]) == ("\x00../\n", "")
