"""A damaged trace loses the events that were hit and says where; the others are all there."""

from __future__ import annotations

import gzip
import json
import random
import re
import time
from pathlib import Path

import pytest
from kineto_examples import TEXT
from kineto_support import (
    Planes,
    check_plane,
    codes,
    fates,
    read_events,
    read_tables,
    read_text,
    records,
    rows_by_ledger,
    text_of,
    x,
)
from mutate import mutant

from planewise.ingest import kineto_order, kineto_recovery, kineto_stream
from planewise.ingest.kineto_recovery import recover
from planewise.recorder.errors import InputRefused

GOOD = [x("kernel", f"k{i}", 10 * i + 1, 5, pid=0, stream=7, note=["}, {", '"', "\\"]) for i in range(5)]


def starts(planes: Planes) -> list[int]:
    return [row["start_ns"] // 10_000 for row in planes["device_intervals"]]


@pytest.mark.parametrize(
    "bad",
    [
        '{"ph": "X", "cat": "kernel", "name": "a"b", "pid": 0, "tid": 1, "ts": 1, "dur": 1}',
        '{"ph": "X", "cat": "kernel", "name": "a\nb", "pid": 0, "tid": 1, "ts": 1, "dur": 1}',
        '{"ph": "X", "cat": "kernel", "name": "a\\qb", "pid": 0, "tid": 1, "ts": 1, "dur": 1}',
        '{"ph": "X", "cat": "kernel", "name": "a\udce4b", "pid": 0, "tid": 1, "ts": 1, "dur": 1}',
        '{"ph": "X", "cat": "kernel", "name": "a", "pid": 0 "tid": 1, "ts": 1, "dur": 1}',
        '{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 1, "ts": 01, "dur": 1}',
        '{"ph": "X", "cat": "kernel", "name": "a", "args": {"x": [1, {"y": 2}], "pid": 0',
    ],
    ids=["quote", "newline", "escape", "bytes", "comma", "number", "open"],
)
def test_damage_costs_its_event_and_no_other(tmp_path: Path, bad: str) -> None:
    events = [*GOOD[:2], bad, *GOOD[2:]]
    text = text_of(events).encode("utf-8", "surrogateescape")
    planes = read_text(tmp_path, text)
    assert starts(planes) == [0, 1, 2, 3, 4]
    assert [row["seq"] for row in planes["device_intervals"]] == [0, 1, 3, 4, 5]
    (issue,) = planes["ingest_issues"]
    assert (issue["code"], issue["severity"]) == ("damaged_event", "data_loss")
    assert issue["byte_offset"] == text.index(bad.encode("utf-8", "surrogateescape"))
    assert fates(planes)[("?", "dropped", "damaged_event")] == 1
    assert planes["runs"][0]["outcome"] is None


def test_a_damaged_last_event_leaves_the_keys_after_the_array(tmp_path: Path) -> None:
    bad = '{"ph": "X", "cat": "kernel", "name": "a"b", "pid": 0, "tid": 1, "ts": 1, "dur": 1}'
    text = text_of([*GOOD, bad]).replace("]\n}", '], "baseTimeNanoseconds": 50\n}')
    planes = read_text(tmp_path, text)
    assert [row["start_ns"] for row in planes["device_intervals"]][:2] == [1050, 11050]


def test_a_file_cut_anywhere_gives_what_came_before(tmp_path: Path) -> None:
    text = text_of(GOOD)
    for size in range(text.index("k1"), len(text) - 3, 7):
        planes = read_text(tmp_path, text[:size])
        whole = sum(text.index(f'"k{i}"') < size for i in range(5))
        assert len(planes["device_intervals"]) in (whole, whole - 1)
        assert planes["runs"][0]["outcome"] is None
        assert "data_loss" in {severity for _, severity in codes(planes)}


def test_a_gzip_cut_anywhere_gives_what_came_before(tmp_path: Path) -> None:
    events = [x("kernel", f"k{i}", 10 * i + 1, i % 97, pid=0, stream=7) for i in range(5000)]
    packed = gzip.compress(text_of(events).encode())
    planes = read_text(tmp_path, packed[: len(packed) // 2])
    assert 100 < len(planes["device_intervals"]) < 5000
    assert starts(planes) == list(range(len(planes["device_intervals"])))
    assert {code for code, _ in codes(planes)} >= {"stream_damaged", "array_not_closed"}


def test_an_element_that_is_no_event_is_dropped_and_loses_no_data(tmp_path: Path) -> None:
    planes = read_events(tmp_path, *GOOD[:2], "17", "null", '["x"]', '"text"', "{}", *GOOD[2:])
    assert starts(planes) == [0, 1, 2, 3, 4]
    found = fates(planes)
    assert (found[("?", "dropped", "not_an_object")], found[("?", "dropped", "no_phase")]) == (4, 1)
    assert planes["runs"][0]["outcome"] == "complete"


def test_a_number_that_json_does_not_have_becomes_null(tmp_path: Path) -> None:
    event = '{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 1, "ts": 1, "dur": 1, "args": {"occ": NaN}}'
    planes = read_events(tmp_path, GOOD[0], event, GOOD[1])
    assert len(planes["device_intervals"]) == 3
    assert fates(planes)[("X kernel", "repaired", "not_a_number")] == 1
    assert planes["runs"][0]["outcome"] == "complete"


def test_a_trailing_comma_loses_nothing(tmp_path: Path) -> None:
    planes = read_text(tmp_path, "[" + ",\n".join(map(json.dumps, GOOD)) + ",\n]")
    assert starts(planes) == [0, 1, 2, 3, 4]
    assert (planes["runs"][0]["outcome"], codes(planes)) == ("complete", [])


def test_damaged_keys_around_the_array_leave_the_events_and_the_base(tmp_path: Path) -> None:
    text = text_of(GOOD, baseTimeNanoseconds=70).replace('"schemaVersion": 1', '"schemaVersion": one')
    planes = read_text(tmp_path, text)
    assert [row["start_ns"] for row in planes["device_intervals"]][:2] == [1070, 11070]
    assert codes(planes) == [("metadata_damaged", "data_loss")]


def test_arrays_beside_the_events_are_no_events(tmp_path: Path) -> None:
    other = json.dumps(GOOD, indent=2)
    text = text_of(GOOD).rstrip().removesuffix("}") + f', "samples": {other}, "baseTimeNanoseconds": 90}}'
    planes = read_text(tmp_path, text)
    assert len(planes["device_intervals"]) == 5
    assert planes["device_intervals"][0]["start_ns"] == 1090


def test_events_whose_keys_are_in_no_known_order_are_read_too(tmp_path: Path) -> None:
    body = ", ".join('{"zzz": [{"a": "}, {"}], ' + json.dumps(event)[1:] for event in GOOD)
    assert starts(read_text(tmp_path, "[" + body + "]")) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("size", [64, 300, 1000])
def test_chunks_of_any_size_give_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    wanted = read_text(tmp_path, TEXT)
    monkeypatch.setattr(kineto_stream, "CHUNK_BYTES", size)
    monkeypatch.setattr(kineto_stream, "_READ_BYTES", 50)
    found = read_text(tmp_path, TEXT)
    assert dict(found.items()) == wanted


def test_damage_is_told_apart_at_any_chunk_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = '{"ph": "X", "cat": "kernel", "name": "a"b", "pid": 0, "tid": 1, "ts": 1, "dur": 1}'
    text = text_of([*GOOD[:2], bad, *GOOD[2:]])
    for size in (100, 200, 500, 900):
        monkeypatch.setattr(kineto_stream, "CHUNK_BYTES", size)
        monkeypatch.setattr(kineto_stream, "_READ_BYTES", 60)
        planes = read_text(tmp_path, text)
        assert starts(planes) == [0, 1, 2, 3, 4]
        assert planes["ingest_issues"][0]["byte_offset"] == text.index(bad)


def test_many_damages_are_summed_up(tmp_path: Path) -> None:
    bad = ['{"ph": "X", "name": "a"b"}' for _ in range(150)]
    planes = read_events(tmp_path, *bad, *GOOD)
    damaged = [row for row in planes["ingest_issues"] if row["code"] == "damaged_event"]
    assert len(damaged) == 101
    assert damaged[-1]["message"].startswith("50 more")
    assert starts(planes) == [0, 1, 2, 3, 4]


def test_deep_nesting_and_open_strings_end_in_time(tmp_path: Path) -> None:
    for junk in ("[" * 100_000, '{"a":' * 100_000, '"' * 100_001, "{" + '"ph' * 50_000, "},{" * 50_000):
        text = text_of([*GOOD, junk])
        assert starts(read_text(tmp_path, text))[:4] == [0, 1, 2, 3]


def test_a_stretch_is_consumed_up_to_what_may_go_on(tmp_path: Path) -> None:
    data = b'{"ph": "M", "name": "a"}, {"ph": "M", "na'
    found = recover(data, last=False)
    assert (len(found.events), found.consumed, found.damages) == (1, 26, [])
    assert len(recover(data, last=True).damages) == 1


def test_mutants_are_read_or_refused_and_their_ledgers_add_up(tmp_path: Path) -> None:
    rng = random.Random(20)
    path = tmp_path / "trace.json"
    bases = [TEXT.encode(), gzip.compress(TEXT.encode()), b"[" + TEXT.encode().split(b"[", 1)[1]]
    for _ in range(150):
        path.write_bytes(mutant(rng.choice(bases), rng))
        try:
            tables = read_tables(path)
        except InputRefused:
            continue
        for name, table in tables.items():
            check_plane(name, table)
        planes = {name: table.to_pylist() for name, table in tables.items()}
        rows = {k: len(v) for k, v in planes.items() if k not in ("runs", "ingest_counts", "ingest_issues")}
        assert +rows_by_ledger(planes) == rows
        assert records(planes) > 0


def test_rows_do_not_depend_on_how_many_host_events_are_held_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = read_text(tmp_path, TEXT)
    monkeypatch.setattr(kineto_order, "RUN_ROWS", 2)
    monkeypatch.setattr(kineto_order, "_SAMPLE_EVERY", 1)
    assert read_text(tmp_path, TEXT) == wanted


@pytest.mark.parametrize("junk", ["1,", '"",', "[", '{"a":', '"', '},{"ph":', "{},"])
def test_megabytes_of_junk_end_in_time(tmp_path: Path, junk: str) -> None:
    text = "[" + json.dumps(GOOD[0]) + "," + junk * (3_000_000 // len(junk))
    begun = time.monotonic()
    planes = read_text(tmp_path, text)
    assert time.monotonic() - begun < 10
    assert starts(planes)[:1] == [0]
    assert planes["runs"][0]["outcome"] is None


def test_a_counter_range_beside_damage_keeps_its_values(tmp_path: Path) -> None:
    ranges = [x("cuda_profiler_range", "k", ts, 2, pid=0, tid=0, flops=ts) for ts in (5, 6, 7)]
    planes = read_events(tmp_path, ranges[0], '{"ph": "X", "name": "a"b"}', ranges[1], "17", ranges[2])
    assert [(row["seq"], row["value"]) for row in planes["counters"]] == [(0, 5.0), (2, 6.0), (4, 7.0)]


def test_a_search_ahead_finds_what_plain_searches_find_and_looks_at_every_byte_once():
    """A file of thousands of damaged events would else be searched to its end for each of them."""
    data, searched = b"..x...x" + b"." * 50 + b"x" + b"." * 50, []

    class Counting:
        def search(self, data: bytes, at: int) -> re.Match[bytes] | None:
            found = re.compile(b"x").search(data, at)
            searched.append((found.end() if found else len(data)) - at)
            return found

    ahead = kineto_recovery._Ahead(Counting(), data)  # type: ignore[arg-type]
    places = [(m.start() if (m := ahead.search(at)) else None) for at in range(len(data))]
    assert places == [(at if (at := data.find(b"x", start)) >= 0 else None) for start in range(len(data))]
    assert sum(searched) <= len(data) + len(searched)
    assert ahead.search(0).start() == 2  # type: ignore[union-attr]


def test_looking_for_the_ends_of_events_that_have_none_costs_no_square(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    find = kineto_recovery._value_end

    def counted(data: bytes, at: int, limit: int) -> int | None:
        asked.append(limit - at)
        return find(data, at, limit)

    monkeypatch.setattr(kineto_recovery, "_value_end", counted)
    data = (b'{"ph":"X","q":' + b"[]," * 1000) * 200
    found = recover(data, last=True)
    assert len(found.damages) == len(asked) == 200
    assert sum(asked) < 3 * len(data) + 200 * kineto_recovery._SHORT_EVENT_BYTES
