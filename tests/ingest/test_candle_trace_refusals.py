"""Every rejection of protocol 1.3 and of the framing rules: code, physical line, field, what was found and expected."""

from __future__ import annotations

import gzip
import json

import pytest

from planewise.ingest.base import READERS
from planewise.recorder.errors import IncompatibleInput, InputRefused

from .conftest import META, TERMINAL, read_planes

START = {"kind": "span_start", "id": "s", "name": "n", "start_ns": 10, "span_kind": "op"}
END = {"kind": "span_end", "id": "s", "duration_ns": 5}
OP = {"kind": "op", "span_id": "s", "op_name": "o", "shape": [2], "dtype": "f32", "device": "cpu", "duration_ns": 3}
OP |= {"timestamp_ns": 4, "input_dense_bytes": 0}
STATS = {"kind": "tensor_stats", "span_id": "s", "label": "l", "shape": [2, 3], "dtype": "f32", "elements": 6}
STATS |= {"non_finite": 0, "rms": 1.0, "abs_max": 1.0, "mean": 1.0}
CALL = {"kind": "edge", "edge_kind": "call", "from_span": "a", "to_span": "b", "host_duration_ns": 1}
GRADIENT = {"kind": "gradient", "event_id": "g", "root": "r", "key": "k", "state": "present", "norm": 1.0}
INTERVAL = {"kind": "device_interval", "span_id": "s", "device": "d", "stream_id": "0", "clock_id": "c"}
INTERVAL |= {"backend": "b", "start_ns": 99, "duration_ns": 1}
MEMORY = {"kind": "memory", "timestamp_ns": 1, "storage_id": "a", "tensor_id": "t", "span_id": "s", "device": "d"}
MEMORY |= {"bytes": 1, "action": "alloc", "dtype": "f32"}


def without(record, *keys):
    return {name: value for name, value in record.items() if name not in keys}


def assert_refused(refusal, code, position, *parts):
    assert (refusal.code, refusal.position) == (code, position)
    for part in parts:
        assert part in refusal.message
    assert refusal.exit_code == 3


@pytest.mark.parametrize(
    ("records", "code", "position"),
    [
        ([META, TERMINAL, START], "record_after_terminal", "line 3"),
        ([META, TERMINAL, TERMINAL], "record_after_terminal", "line 3"),
        ([META, META, TERMINAL], "meta_not_first", "line 2"),
        ([START, META, TERMINAL], "meta_not_first", "line 2"),
        ([META, START, START, TERMINAL], "duplicate_span_start", "line 3, field id"),
        ([META, START, END, START, TERMINAL], "duplicate_span_start", "line 4, field id"),
        ([META, END, START, TERMINAL], "unknown_span_end", "line 2, field id"),
        ([META, START, END, END, TERMINAL], "duplicate_span_end", "line 4, field id"),
        ([START, TERMINAL], "meta_missing", "line 2"),
        ([], "meta_missing", "line 1"),
        ([META, START], "terminal_missing", "line 2"),
        ([META | {"schema": "candle-graph/trace/9"}, STATS, TERMINAL], "tensor_stats_in_trace_9", "line 3"),
        ([META, TERMINAL | {"reason": "x"}], "complete_with_reason", "line 2"),
        ([META, TERMINAL | {"reason": ""}], "complete_with_reason", "line 2"),
        ([META, TERMINAL | {"outcome": "failed"}], "failed_without_reason", "line 2"),
        ([META, TERMINAL | {"outcome": "failed", "reason": " \u00a0"}], "failed_without_reason", "line 2"),
    ],
)
def test_stream_rules_refuse_at_their_line(trace, records, code, position):
    assert_refused(trace.refusal(*records), code, position)


def test_separator_controls_are_not_blank(trace, read):
    path = trace.write([META, TERMINAL | {"outcome": "failed", "reason": "\u001c"}])
    assert read("candle-trace", path)["runs"][0]["failure_reason"] == "\u001c"


@pytest.mark.parametrize(
    ("evidence", "latest"),
    [
        ([START], 10),
        ([START, END], 15),
        ([OP], 7),
        ([MEMORY | {"timestamp_ns": 9}], 9),
        ([{"kind": "device_memory", "timestamp_ns": 8, "device": "d"}], 8),
    ],
)
def test_terminal_must_not_precede_host_evidence(trace, read, evidence, latest):
    refusal = trace.refusal(META, *evidence, TERMINAL | {"timestamp_ns": latest - 1})
    last = f"line {len(evidence) + 2}"
    assert_refused(refusal, "terminal_precedes_evidence", last, f"is {latest - 1}", f"at least {latest}")
    path = trace.write([META, *evidence, TERMINAL | {"timestamp_ns": latest}])
    assert len(read("candle-trace", path)["runs"]) == 1


def test_device_intervals_are_no_host_evidence(trace, read):
    path = trace.write([META, INTERVAL, STATS, GRADIENT, CALL, TERMINAL | {"timestamp_ns": 0}])
    assert len(read("candle-trace", path)["device_intervals"]) == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"label": " \u2003"}, "label"),
        ({"elements": 5}, "elements"),
        ({"shape": [], "elements": 6}, "elements"),
        ({"shape": [2**32, 2**32, 0], "elements": 0}, "shape"),
        ({"non_finite": 7}, "non_finite"),
        ({"rms": -1.0}, "rms"),
        ({"abs_max": -0.5}, "abs_max"),
    ],
)
def test_broken_tensor_summaries_are_refused(trace, change, field):
    refusal = trace.refusal_of(STATS, STATS | change)
    assert_refused(refusal, "tensor_stats_invalid", f"line 3, field {field}")


def spelled(record, field, text):
    return json.dumps(record | {field: "@"}).replace('"@"', text)


@pytest.mark.parametrize(
    ("line", "code", "field", "found"),
    [
        (spelled(OP, "duration_ns", "1.0"), "wrong_type", "duration_ns", "1.0"),
        (spelled(OP, "duration_ns", "1e3"), "wrong_type", "duration_ns", "1e3"),
        (spelled(OP, "duration_ns", "-0"), "wrong_type", "duration_ns", "-0"),
        (spelled(OP, "shape", "[1,-0]"), "wrong_type", "shape", "-0"),
        (spelled(OP, "duration_ns", "-1"), "negative_integer", "duration_ns", "-1"),
        (spelled(OP, "duration_ns", "true"), "wrong_type", "duration_ns", "true"),
        (spelled(OP, "duration_ns", '"5"'), "wrong_type", "duration_ns", '"5"'),
        (spelled(OP, "duration_ns", "null"), "wrong_type", "duration_ns", "null"),
        (spelled(OP, "timestamp_ns", "null"), "wrong_type", "timestamp_ns", "null"),
        (spelled(OP, "inputs", "null"), "wrong_type", "inputs", "null"),
        (spelled(OP, "inputs", '["a",3]'), "wrong_type", "inputs[1]", "3"),
        (spelled(OP, "duration_ns", str(2**63)), "integer_out_of_range", "duration_ns", str(2**63)),
        (spelled(OP, "duration_ns", "9" * 5000), "integer_out_of_range", "duration_ns", "999"),
        (spelled(OP, "shape", f"[1,{2**64}]"), "integer_out_of_range", "shape[1]", str(2**64)),
        (spelled(OP, "duration_ns", "1e400"), "number_out_of_range", "duration_ns", "1e400"),
        (spelled(STATS, "rms", "1e400"), "number_out_of_range", "rms", "1e400"),
        (spelled(STATS, "rms", "null"), "wrong_type", "rms", "null"),
        (spelled(OP, "extra", "1e400"), "number_out_of_range", None, "1e400"),
        (spelled(OP, "extra", "NaN"), "invalid_json", None, ""),
        (spelled(STATS, "mean", "NaN"), "invalid_json", None, ""),
        (spelled(STATS, "mean", "-Infinity"), "invalid_json", None, ""),
        (spelled(OP, "kind", '"ops"'), "unknown_kind", "kind", '"ops"'),
        (spelled(OP, "kind", "7"), "wrong_type", "kind", "7"),
        (spelled(START, "span_kind", '"task"'), "invalid_value", "span_kind", '"task"'),
        (spelled(START, "measured", "null"), "wrong_type", "measured", "null"),
        (spelled(MEMORY, "category", "null"), "wrong_type", "category", "null"),
        (spelled(MEMORY, "action", '"Alloc"'), "invalid_value", "action", '"Alloc"'),
        (spelled(GRADIENT, "state", '"ok"'), "invalid_value", "state", '"ok"'),
        (spelled(CALL, "edge_kind", '"control"'), "invalid_value", "edge_kind", '"control"'),
        (spelled(CALL, "from_span", "3"), "wrong_type", "from_span", "3"),
        (spelled(CALL, "host_duration_ns", "-1"), "negative_integer", "host_duration_ns", "-1"),
        (spelled(CALL, "host_duration_ns", str(2**63)), "integer_out_of_range", "host_duration_ns", str(2**63)),
        (spelled(CALL, "host_duration_ns", "1.0"), "wrong_type", "host_duration_ns", "1.0"),
        (spelled(CALL, "host_duration_ns", "true"), "wrong_type", "host_duration_ns", "true"),
        (spelled(CALL, "host_duration_ns", "-0"), "wrong_type", "host_duration_ns", "-0"),
        (json.dumps(without(CALL, "to_span")), "missing_field", "to_span", ""),
        (json.dumps(without(OP, "kind")), "missing_field", "kind", ""),
        (json.dumps(without(OP, "dtype")), "missing_field", "dtype", ""),
        (json.dumps(without(OP, "input_dense_bytes")), "missing_field", "input_dense_bytes", ""),
        (json.dumps(without(GRADIENT, "key") | {"param_key": "k"}), "missing_field", "key", ""),
        ("[1]", "wrong_type", None, ""),
        ("{}", "missing_field", "kind", ""),
        (json.dumps(OP) + " x", "invalid_json", None, ""),
        (json.dumps(OP) + json.dumps(OP), "invalid_json", None, ""),
        (json.dumps(OP)[:-1], "invalid_json", None, ""),
        (json.dumps(OP) + "}", "invalid_json", None, ""),
        ("\ufeff" + json.dumps(OP), "invalid_json", None, ""),
        (spelled(OP, "op_name", r'"\ud800"'), "lone_surrogate", None, ""),
        (spelled(OP, "op_name", r'"\ud800x"'), "lone_surrogate", None, ""),
        (spelled(OP, "extra", r'"\udc00"'), "lone_surrogate", None, ""),
        (spelled(OP, "op_name", '"\ud800"'), "invalid_utf8", None, ""),
        (spelled(OP, "extra", "[" * 100_000 + "]" * 100_000), "invalid_json", None, "deep"),
        (json.dumps(OP)[:-1] + ',"dtype":"f32"}', "duplicate_key", "dtype", '"dtype"'),
        (json.dumps(OP)[:-1] + r',"dtyp\u0065":"f32"}', "duplicate_key", "dtype", '"dtype"'),
        (json.dumps(OP)[:-1] + ',"x":1,"x":1}', "duplicate_key", "x", '"x"'),
        (json.dumps(OP)[:-1] + ',"x":[{"y":1,"y":2}]}', "duplicate_key", "y", '"y"'),
        (json.dumps(OP)[:-1] + ',"dtype" :"f32"}', "duplicate_key", "dtype", '"dtype"'),
        (json.dumps(OP)[:-1] + ',"kind":"op"}', "duplicate_key", "kind", '"kind"'),
        (spelled(OP, "shape", f"[{2**62},2]"), "integer_out_of_range", "shape", str(2**62)),
        (spelled(OP, "shape", f"[{2**61}]"), "integer_out_of_range", "shape", str(2**61)),
        (spelled(OP, "shape", f"[{2**62},{2**62},0]"), "integer_out_of_range", "shape", ""),
    ],
)
def test_bad_lines_are_refused_with_line_and_field(trace, line, code, field, found):
    refusal = trace.refusal_of(OP, "", line, OP)
    position = "line 4" if field is None else f"line 4, field {field}"
    assert_refused(refusal, code, position, found)


@pytest.mark.parametrize(
    ("records", "position"),
    [
        ([OP | {"timestamp_ns": 2**63 - 3}], "line 2, field duration_ns"),
        ([START | {"start_ns": 2**63 - 1}, END], "line 3, field duration_ns"),
        (
            [INTERVAL | {"start_ns": 2**62, "duration_ns": 2**62}],
            "line 2, field duration_ns",
        ),
    ],
)
def test_interval_whose_end_leaves_64_bits_is_refused(trace, records, position):
    assert_refused(trace.refusal_of(*records), "integer_out_of_range", position, "2^63")


@pytest.mark.parametrize(
    ("meta", "code", "field"),
    [
        (without(META, "run_id"), "missing_field", "run_id"),
        (without(META, "tags"), "missing_field", "tags"),
        (META | {"phase": "eval"}, "invalid_value", "phase"),
        (META | {"tags": {"a": 1}}, "wrong_type", "tags[...]"),
        (META | {"capture_step": 2**63}, "integer_out_of_range", "capture_step"),
        (META | {"capture_contract": {}}, "missing_field", "capture_contract.measurement_scope"),
        (
            META | {"capture_contract": META["capture_contract"] | {"tensors": None}},
            "wrong_type",
            "capture_contract.tensors",
        ),
        (json.dumps(META)[:-1] + ',"tags":{}}', "duplicate_key", "tags"),
        (json.dumps(META).replace('"tags": {}', '"tags":{"a":"1","a":"1"}'), "duplicate_key", "a"),
    ],
)
def test_bad_run_metadata_is_refused(trace, meta, code, field):
    assert_refused(trace.refusal(meta, TERMINAL), code, f"line 1, field {field}")


@pytest.mark.parametrize("schema", ["candle-graph/trace/8", "candle-graph/trace/11", "other"])
def test_other_schemas_are_refused_with_both_versions(trace, schema):
    refusal = trace.refusal(META | {"schema": schema}, TERMINAL)
    assert isinstance(refusal, IncompatibleInput)
    assert refusal.code == "unsupported_schema"
    assert schema in str(refusal)
    assert "candle-graph/trace/10 and candle-graph/trace/9" in str(refusal)
    assert refusal.remedy


def test_older_runtime_records_are_refused_by_their_schema_not_their_fields(trace):
    line = '{"kind":"meta","schema":"candle-graph/runtime/1","entrypoint":"a::b","profile":"debug"}'
    refusal = trace.refusal(line, '{"kind":"tensor","event_id":"e"}')
    assert (refusal.code, refusal.position) == ("unsupported_schema", "line 1")
    assert "candle-graph/runtime/1" in refusal.message


def test_stream_rules_after_the_last_record_keep_their_order(trace):
    foreign = META | {"schema": "candle-graph/trace/8"}
    assert trace.refusal(foreign, STATS).code == "terminal_missing"
    failed = TERMINAL | {"outcome": "failed", "timestamp_ns": 0}
    assert trace.refusal(foreign, START, failed).code == "unsupported_schema"
    assert trace.refusal(META, START, failed).code == "failed_without_reason"


def test_the_first_bad_line_is_named_whatever_its_kind(trace):
    bad_stats, bad_line = STATS | {"elements": 5}, "{"
    assert trace.refusal_of(bad_stats, END, bad_line).position == "line 2, field elements"
    assert trace.refusal_of(END, bad_stats, bad_line).position == "line 2, field id"
    assert trace.refusal_of(bad_line, bad_stats, END).position == "line 2"


def test_lines_are_counted_over_blocks(trace, monkeypatch):
    from planewise.ingest import candle_trace, lines

    monkeypatch.setattr(candle_trace, "read_blocks", lambda path: lines.read_blocks(path, 64))
    assert trace.refusal_of(OP, "", OP, OP | {"dtype": 3}).position == "line 5, field dtype"
    assert trace.refusal(META, OP, START).position == "line 3"


def refused_content(path, content):
    """How content that its own reader was asked to read is refused; every such refusal says what to do."""
    path.write_bytes(content)
    with pytest.raises(InputRefused) as caught:
        read_planes("candle-trace", path)
    assert caught.value.source == str(path)
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize("cut", [1, 8, 20, 200])
def test_truncated_gzip_is_told_as_such_and_found_by_what_is_left_of_it(trace, every_kind, cut):
    found = refused_content(trace.path, gzip.compress(every_kind.read_bytes())[:-cut])
    assert_refused(found, "damaged_stream", "line 1 or later", "truncated")
    assert "copy it again" in str(found)
    assert READERS["candle-trace"].detect(trace.path)


def test_a_flipped_bit_in_gzip_is_told_as_damage(trace, every_kind):
    content = bytearray(gzip.compress(every_kind.read_bytes()))
    content[-5] ^= 1  # In the checksum, so that every byte decompresses.
    assert_refused(refused_content(trace.path, bytes(content)), "damaged_stream", "line 1 or later", "damaged")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "holds only blank lines"),
        (gzip.compress(b"", mtime=0), "the compressed file (20 bytes) is empty"),
    ],
)
def test_a_file_without_a_record_says_in_what_way_it_is_empty(trace, content, said):
    found = refused_content(trace.path, content)
    assert_refused(found, "meta_missing", "line 1", said, "expected a meta record")
    assert "nothing was recorded" in str(found)


@pytest.mark.parametrize(
    ("codec", "code", "said", "remedy"),
    [
        ("utf-8-sig", "byte_order_mark", "begins with a UTF-8 byte order mark", "tail -c +4"),
        ("utf-16", "not_utf8", "is UTF-16 text", "iconv -f UTF-16 -t UTF-8"),
        ("utf-16-le", "not_utf8", "is UTF-16 text", "iconv -f UTF-16-LE"),
        ("utf-16-be", "not_utf8", "is UTF-16 text", "iconv -f UTF-16-BE"),
        ("utf-32", "not_utf8", "is UTF-32 text", "iconv -f UTF-32"),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_trace_in_another_encoding_is_known_for_a_trace_and_says_how_to_convert_it(
    trace, every_kind, codec, code, said, remedy, pack
):
    found = refused_content(trace.path, pack(every_kind.read_bytes().decode().encode(codec)))
    assert_refused(found, code, "byte 0", said, "expected UTF-8 without a byte order mark")
    assert remedy in found.remedy
    assert READERS["candle-trace"].detect(trace.path)


def test_folder_is_no_trace(tmp_path):
    with pytest.raises(InputRefused, match="folder"):
        read_planes("candle-trace", tmp_path)
