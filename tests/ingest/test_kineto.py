"""The kineto reader: what each kind of event becomes, worked by hand, and by what rule the rest is left out."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from kineto_examples import EVENTS, TEXT
from kineto_support import Planes, codes, fates, read_events, read_file, read_text, records, rows_by_ledger, x

from planewise.ingest.base import detect_format
from planewise.ingest.kineto import KinetoReader
from planewise.ingest.planes_writer import write_planes
from planewise.recorder.errors import InputRefused

BASE = 1_000_000


@pytest.fixture
def planes(tmp_path: Path) -> Planes:
    return read_text(tmp_path, TEXT)


def test_a_user_annotation_is_a_span_at_base_plus_decimal_microseconds(planes: Planes) -> None:
    span = next(row for row in planes["spans"] if row["name"] == "ProfilerStep#1")
    assert (span["start_ns"], span["duration_ns"]) == (BASE + 100_000, 50_500)
    assert (span["id"], span["parent_id"], span["seq"], span["end_seq"]) == ("1", None, 1, 1)
    assert (span["span_kind"], span["measured"], span["category"]) == ("function", False, "user_annotation")
    assert (span["process_id"], span["thread_id"]) == (1, 1)


def test_an_operation_keeps_its_ids_its_shapes_and_what_is_around_it(planes: Planes) -> None:
    mul, empty, _ = planes["ops"]
    assert (mul["op_name"], mul["timestamp_ns"], mul["duration_ns"]) == ("aten::mul", BASE + 110_001, 20_250)
    assert (mul["external_id"], mul["sequence_number"], mul["input_shapes"]) == ("2", 5, "[[2, 3], []]")
    assert (mul["span_id"], mul["parent_seq"]) == ("1", None)
    assert (empty["parent_seq"], empty["sequence_number"], empty["input_shapes"]) == (mul["seq"], None, None)
    assert mul["device"] is None
    assert mul["inputs"] is None
    assert mul["shape"] is None


def test_a_launch_keeps_correlation_and_external_id_apart(planes: Planes) -> None:
    (launch,) = planes["launches"]
    assert (launch["correlation_id"], launch["external_id"]) == ("31", "2")
    assert (launch["op_seq"], launch["span_id"]) == (planes["ops"][0]["seq"], "1")
    assert (launch["start_ns"], launch["duration_ns"]) == (BASE + 115_500, 4_125)


def test_device_work_is_what_its_category_says_and_nothing_else(planes: Planes) -> None:
    kernel, copy = planes["device_intervals"]
    assert (kernel["device"], kernel["stream_id"], kernel["context_id"]) == ("cuda:0", "7", "1")
    assert (kernel["start_ns"], kernel["duration_ns"], kernel["bytes"]) == (BASE + 118_750, 10_000, None)
    assert (kernel["correlation_id"], kernel["external_id"], kernel["process_id"]) == ("31", "2", 0)
    assert (copy["category"], copy["bytes"], copy["span_id"]) == ("gpu_memcpy", 4096, None)
    assert kernel["clock_id"] == planes["runs"][0]["host_clock_id"]


def test_begins_and_ends_are_paired_per_thread_by_name_or_else_innermost(planes: Planes) -> None:
    outer, inner = (row for row in planes["spans"] if row["thread_id"] == 2)
    assert (inner["start_ns"], inner["duration_ns"], inner["end_seq"]) == (BASE + 101_000, 3_500, 15)
    assert (outer["start_ns"], outer["duration_ns"], outer["end_seq"]) == (BASE + 100_000, 10_000, 16)
    assert (outer["parent_id"], inner["parent_id"]) == (None, outer["id"])


def test_a_memory_event_with_an_address_is_an_allocation_and_a_checkpoint(planes: Planes) -> None:
    (event,) = planes["memory_events"]
    assert (event["address"], event["storage_id"]) == (2**63 + 512, "0x8000000000000200")
    assert (event["action"], event["bytes"], event["device"], event["category"]) == ("alloc", 512, "cuda:0", "other")
    (checkpoint,) = planes["device_memory"]
    assert (checkpoint["used_bytes"], checkpoint["reserved_bytes"], checkpoint["free_bytes"]) == (512, 2048, None)
    assert checkpoint["timestamp_ns"] == event["timestamp_ns"] == BASE + 113_000


def test_counters_are_samples_and_a_memory_event_without_an_address_is_one(planes: Planes) -> None:
    found = [(row["name"], row["series"], row["value"], row["timestamp_ns"] - BASE) for row in planes["counters"]]
    assert found == [
        ("GPU 0 power", "watts", 300.5, 120_000),
        ("GPU 0 power", "text", None, 120_000),
        ("mul_kernel", "flops.sum", 12.0, 142_000),
        ("[memory]", "Bytes cpu", -64.0, 114_000),
    ]


def test_a_collective_is_seen_on_the_host_with_its_arguments(planes: Planes) -> None:
    (row,) = planes["collectives"]
    assert (row["name"], row["dtype"], row["in_elements"], row["out_elements"]) == ("allreduce", "Float", 8, None)
    assert (row["op_seq"], row["interval_seq"]) == (planes["ops"][2]["seq"], None)


def test_the_run_says_what_the_file_says_and_no_more(planes: Planes) -> None:
    run = planes["runs"][0]
    assert (run["rank"], run["world_size"], run["source_version"], run["time_unit"]) == (1, 4, "1", "us")
    assert (run["outcome"], run["device"], run["phase"]) == ("complete", "cuda:0", None)
    assert run["link_keys"] == ["External id", "correlation"]
    assert ("distributed.backend", "nccl") in run["tags"]
    assert run["capture_contract"]["device_timing"] == "partial"


def test_every_event_has_one_fate_and_the_fates_make_the_rows(planes: Planes) -> None:
    assert records(planes) == len(EVENTS)
    planes_with_rows = {k: len(v) for k, v in planes.items() if k not in ("runs", "ingest_counts", "ingest_issues")}
    assert rows_by_ledger(planes) == planes_with_rows


def test_what_no_plane_holds_is_dropped_with_its_reason(planes: Planes) -> None:
    dropped = {kind: reason for (kind, fate, reason) in fates(planes) if fate == "dropped"}
    assert dropped == {
        "X alien": "unknown_category",
        "X cuda_sync": "synchronization",
        "X gpu_user_annotation": "device_annotation",
        "X python_function": "python_function_not_asked",
        "f ac2g": "flow_event",
        "s ac2g": "flow_event",
    }
    assert codes(planes) == [("unknown_category", "warning")]


def test_python_functions_are_spans_when_asked_for(tmp_path: Path) -> None:
    planes = read_text(tmp_path, TEXT, python_functions=True)
    (frame,) = (row for row in planes["spans"] if row["category"] == "python_function")
    assert (frame["name"], frame["parent_id"]) == ("train.py(3): step", "1")
    assert planes["ops"][0]["span_id"] == frame["id"]


@pytest.mark.parametrize(
    ("event", "kind", "fate", "reason"),
    [
        (x("kernel", "k", 0, 5, stream=1), "X kernel", "dropped", "zero_timestamp"),
        (x("kernel", "k", 5, -1, stream=1), "X kernel", "dropped", "negative_duration"),
        (x("kernel", "k", 5, None, stream=1), "X kernel", "dropped", "no_duration"),
        (x("kernel", "k", None, 5, stream=1), "X kernel", "dropped", "no_timestamp"),
        (x("kernel", "k", "now", 5, stream=1), "X kernel", "dropped", "no_timestamp"),
        (x("kernel", "k", 1e30, 5, stream=1), "X kernel", "dropped", "no_timestamp"),
        (x("kernel", "k", 5, 4.7e15, stream=1), "X kernel", "dropped", "time_out_of_range"),
        (x("kernel", "k", 5, 5, tid=None), "X kernel", "dropped", "no_stream"),
        (x("kernel", "k", 5, 5, pid=None), "X kernel", "dropped", "no_device"),
        (x("kernel", "k", 5, 0, stream=1), "X kernel", "kept", None),
        (x("kernel", "k", "5.0005", 1, stream=1), "X kernel", "repaired", "sub_nanosecond"),
        (x("cpu_op", "o", 5, -1), "X cpu_op", "repaired", "negative_duration"),
        (x("cpu_op", "o", 5, None), "X cpu_op", "repaired", "no_duration"),
        (x("cpu_op", None, 5, 1), "X cpu_op", "dropped", "no_name"),  # type: ignore[arg-type]
        (x(None, "slice", 0, 1), "X", "kept", None),
        (x(None, "kernel?", 5, 1, correlationId=3), "X", "dropped", "unknown_category"),
        ({"ph": "E", "name": "e", "pid": 1, "tid": 1, "ts": 5}, "E", "dropped", "end_without_begin"),
        ({"ph": "B", "name": "b", "pid": 1, "tid": 1, "ts": 5}, "B", "repaired", "no_end"),
        ({"ph": "b", "cat": "net", "name": "b", "ts": 5}, "b net", "dropped", "asynchronous_event"),
        ({"ph": "C", "name": "c", "ts": 5, "args": {}}, "C", "dropped", "no_series"),
        ({"ph": "i", "name": "mark", "ts": 5}, "i", "dropped", "instant_event"),
        ({"ph": "?", "name": "q"}, "?", "dropped", "unknown_phase"),
        ({"ph": ["X"], "name": "q"}, "?", "dropped", "unknown_phase"),
        ({"ph": "X", "cat": "cpu_op", "name": 5}, "?", "dropped", "unexpected_type"),
        ({"name": "q"}, "?", "dropped", "no_phase"),
    ],
)
def test_an_odd_event_is_kept_or_left_out_by_its_rule(
    tmp_path: Path, event: object, kind: str, fate: str, reason: str
) -> None:
    assert fates(read_events(tmp_path, event)) == {(kind, fate, reason): 1}


def test_a_host_event_without_a_usable_duration_has_none(tmp_path: Path) -> None:
    planes = read_events(tmp_path, x("cpu_op", "o", 5, -1), x("user_annotation", "s", 6, None))
    assert [row["duration_ns"] for row in planes["ops"] + planes["spans"]] == [None, None]
    assert planes["spans"][0]["end_seq"] is None


def test_times_at_epoch_size_keep_every_nanosecond_and_text_is_a_time_too(tmp_path: Path) -> None:
    text = "".join(
        f'{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":1,"ts":{ts},"dur":{dur}}},'
        for ts, dur in (("1727592872266507.241", "0.001"), ('"1727592872266507.242"', '"7"'), ("1.5e3", "1E-3"))
    )
    planes = read_text(tmp_path, '{"traceEvents":[' + text.removesuffix(",") + "]}")
    found = [(row["start_ns"], row["duration_ns"]) for row in planes["device_intervals"]]
    assert found == [(1727592872266507241, 1), (1727592872266507242, 7000), (1_500_000, 1)]


def test_the_base_counts_wherever_in_the_file_it_stands_and_names_the_clock(tmp_path: Path) -> None:
    event = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":1,"ts":1.5,"dur":1}'
    planes = read_text(tmp_path, '{"traceEvents":[' + event + '],"baseTimeNanoseconds":1700000000000000000}')
    (row,) = planes["device_intervals"]
    assert row["start_ns"] == 1700000000000001500
    assert row["clock_id"].endswith("/base-1700000000000000000")
    assert read_text(tmp_path, f"[{event}]")["device_intervals"][0]["clock_id"].endswith("/ts")


def test_the_display_unit_changes_nothing(tmp_path: Path) -> None:
    for unit in ("ms", "ns"):
        planes = read_events(tmp_path, x("kernel", "k", 2, 3), displayTimeUnit=unit)
        assert (planes["device_intervals"][0]["start_ns"], planes["runs"][0]["time_unit"]) == (2000, "us")


def test_devices_carry_the_name_of_what_launched_them(tmp_path: Path) -> None:
    kernel = x("kernel", "k", 2, 3, pid=0, device=1)
    launched = [x("xpu_runtime", "zeCommandListAppend", 1, 1)]
    assert read_events(tmp_path, kernel, *launched)["device_intervals"][0]["device"] == "xpu:1"
    assert read_events(tmp_path, kernel)["device_intervals"][0]["device"] == "cuda:1"
    mtia = x("mtia_ccp_events", "k", 2, 3, pid=9, tid=4, stream=1)
    wait = x("mtia_ccp_events", "event_wait", 2, 3, pid=9, tid=4, stream=1)
    planes = read_events(tmp_path, mtia, wait)
    assert [row["device"] for row in planes["device_intervals"]] == ["mtia:9"]
    assert fates(planes)[("X mtia_ccp_events", "dropped", "synchronization")] == 1


def test_names_and_categories_of_2021_are_known(tmp_path: Path) -> None:
    old = {"external id": 7, "correlation": 9, "device": 0, "stream": 7}
    kernel = x("Kernel", "k", 2, 3, pid=0, tid="7") | {"args": old}
    operator = x("Operator", "aten::add", 1, 2, tid="25738", External_id=7)
    planes = read_events(tmp_path, operator, kernel, x("Runtime", "cudaLaunchKernel", 1, 1))
    assert planes["device_intervals"][0]["external_id"] == "7"
    assert planes["ops"][0]["thread_id"] == 25738
    assert len(planes["launches"]) == 1


def test_a_thread_id_outside_int64_is_null_and_still_its_own_thread(tmp_path: Path) -> None:
    events = [{"ph": ph, "name": "a", "pid": 0, "tid": 2**64 - 1 - t, "ts": ts} for ph, t, ts in
              (("B", 0, 1), ("B", 1, 2), ("E", 0, 3), ("E", 1, 9))]  # fmt: skip
    spans = read_events(tmp_path, *events)["spans"]
    assert [(row["duration_ns"], row["thread_id"]) for row in spans] == [(2000, None), (7000, None)]


def test_an_unclosed_begin_never_ended_and_an_end_before_its_begin_gives_no_duration(tmp_path: Path) -> None:
    begin, end = ({"ph": ph, "name": "a", "pid": 0, "tid": 0, "ts": 5} for ph in "BE")
    (row,) = read_events(tmp_path, begin, end | {"ts": 4})["spans"]
    assert (row["duration_ns"], row["end_seq"]) == (None, None)
    (row,) = read_events(tmp_path, begin)["spans"]
    assert (row["duration_ns"], row["end_seq"]) == (None, None)


def test_gzip_and_zstd_read_as_plain(tmp_path: Path) -> None:
    plain = read_text(tmp_path, TEXT)
    packed = read_text(tmp_path, gzip.compress(TEXT.encode()))
    zstd = read_text(tmp_path, pa.compress(TEXT.encode(), codec="zstd", asbytes=True))
    for planes in (packed, zstd):
        assert [row["start_ns"] for row in planes["spans"]] == [row["start_ns"] for row in plain["spans"]]


def test_layouts_give_the_same_rows(tmp_path: Path) -> None:
    wanted = read_text(tmp_path, TEXT)
    squeezed = "".join(TEXT.split("\n"))
    indented = TEXT.replace("{", "{\n     ").replace(", ", ",\n     ")
    for text in (squeezed, indented, "\n\n \ufeff".strip() + TEXT):
        found = read_text(tmp_path, text)
        assert [row["timestamp_ns"] for row in found["ops"]] == [row["timestamp_ns"] for row in wanted["ops"]]
        assert [row["input_shapes"] for row in found["ops"]][1:] == [row["input_shapes"] for row in wanted["ops"]][1:]
        assert fates(found) == fates(wanted)


def test_what_was_read_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(TEXT)
    rows = write_planes(KinetoReader().read(path), tmp_path / "out")
    assert rows["ops"] == 3
    assert rows["runs"] == 1


def test_the_format_is_found_by_content_also_behind_a_long_head(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text('{"deviceProperties": "' + "x" * 200_000 + '", "traceEvents": [{"ph": "M"}]}')
    assert detect_format(path).name == "kineto"
    assert read_file(path)["ingest_counts"][0]["kind"] == "M None"


@pytest.mark.parametrize(
    "text",
    ['{"nodes": [], "schema": "1.0.1"}', '{"$schema": "https://www.speedscope.app/x", "profiles": []}', "[]", "", "{",
     '[{"id": 1, "timestamps": []}]', '[{"ph": "X", "name": "a", "ts": "1727592872266507.240"}]', '{"traceEvents": 3}'],
)  # fmt: skip
def test_other_content_is_not_claimed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    assert not KinetoReader().detect(path)


@pytest.mark.parametrize(
    ("text", "code"),
    [('{"traceEvents": []}', "no_events"), ('{"traceEvents": null}', "no_trace_events"), ("", "no_trace_events"),
     ("hello", "no_trace_events"), ("[]", "no_events")],
)  # fmt: skip
def test_what_holds_no_events_is_refused(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(InputRefused) as caught:
        read_text(tmp_path, text)
    assert caught.value.code == code
    assert caught.value.source
