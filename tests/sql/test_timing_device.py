"""Device busy time: interval unions per clock, span and stream (protocol 4.1, 4.2)."""

from __future__ import annotations

from typing import Any

import pytest
from plane_store import BIG, example, expected

from support import TinyStore, emptied


@pytest.fixture
def store() -> TinyStore:
    return emptied().run()


def intervals(store: TinyStore, *pairs: tuple[int, int], **values: Any) -> TinyStore:
    """Device intervals from (start, end) pairs on one span."""
    rows = ({"span_id": "s1", "start_ns": start, "duration_ns": end - start, **values} for start, end in pairs)
    return store.add("device_intervals", *rows)


def clocks(store: TinyStore) -> list[tuple[Any, ...]]:
    return store.rows("SELECT device, clock_id, interval_count, busy_ns FROM device_clock_busy ORDER BY ALL")


def test_overlapping_work_counts_once(store: TinyStore) -> None:
    # 0 . . . 5 . . . 10 . . . . . . . 20        30 . . 35
    intervals(store, (0, 10), (5, 20), (30, 35))  # protocol 4.1: 25
    assert clocks(store) == [("cuda:0", "c", 3, 25)]


def test_touching_intervals_add_their_whole_length(store: TinyStore) -> None:
    intervals(store, (5000, 5100), (5100, 5150))
    assert clocks(store) == [("cuda:0", "c", 2, 150)]


def test_an_interval_inside_a_longer_earlier_one_adds_nothing(store: TinyStore) -> None:
    intervals(store, (0, 100), (10, 20), (30, 40), (90, 110))
    assert clocks(store) == [("cuda:0", "c", 4, 110)]


def test_zero_length_intervals_are_counted_and_take_no_time(store: TinyStore) -> None:
    intervals(store, (7, 7), (7, 7), (3, 5))
    assert clocks(store) == [("cuda:0", "c", 3, 2)]


def test_equal_starts_count_the_longest(store: TinyStore) -> None:
    intervals(store, (5, 6), (5, 9), (5, 5))
    assert clocks(store) == [("cuda:0", "c", 3, 4)]


def test_the_largest_times_do_not_overflow(store: TinyStore) -> None:
    intervals(store, (0, BIG), (BIG, BIG), (BIG, 2 * BIG))
    assert clocks(store) == [("cuda:0", "c", 3, 2 * BIG)]


def test_clocks_devices_and_runs_are_never_added(store: TinyStore) -> None:
    intervals(store, (0, 10))
    intervals(store, (0, 20), clock_id="d")
    intervals(store, (0, 30), device="cuda:1")
    store.run("r2").add("device_intervals", {"span_id": "s1", "start_ns": 5, "duration_ns": 40}, run_id="r2")
    rows = store.rows("SELECT run_id, device, clock_id, busy_ns FROM device_clock_busy ORDER BY ALL")
    assert rows == [
        ("r1", "cuda:0", "c", 10),
        ("r1", "cuda:0", "d", 20),
        ("r1", "cuda:1", "c", 30),
        ("r2", "cuda:0", "c", 40),
    ]


def test_a_span_is_busy_over_all_its_streams_and_names_them_sorted(store: TinyStore) -> None:
    intervals(store, (0, 10), stream_id="9", backend="z")
    intervals(store, (5, 20), stream_id="10", backend="a")
    intervals(store, (5, 6), stream_id="9", backend="a")
    rows = store.rows(
        "SELECT span_id, device, clock_id, backends, streams, interval_count, busy_ns FROM device_span_busy"
    )
    assert rows == [("s1", "cuda:0", "c", ["a", "z"], ["10", "9"], 3, 20)]


def test_a_spans_busy_time_leaves_out_other_spans(store: TinyStore) -> None:
    intervals(store, (0, 10))
    intervals(store, (5, 20), span_id="s2")
    rows = store.rows("SELECT span_id, busy_ns FROM device_span_busy ORDER BY ALL")
    assert rows == [("s1", 10), ("s2", 15)]
    assert clocks(store) == [("cuda:0", "c", 2, 20)]


def test_streams_overlap_so_they_do_not_add_up_to_the_clock(store: TinyStore) -> None:
    intervals(store, (0, 10), (20, 30), stream_id="7")
    intervals(store, (5, 25), stream_id="8")
    rows = store.rows(
        "SELECT device, clock_id, stream_id, interval_count, busy_ns FROM device_stream_busy ORDER BY ALL"
    )
    assert rows == [("cuda:0", "c", "7", 2, 20), ("cuda:0", "c", "8", 1, 20)]
    assert clocks(store) == [("cuda:0", "c", 3, 30)]


def test_a_run_without_intervals_has_no_device_time(store: TinyStore) -> None:
    assert clocks(store) == []
    assert store.rows("FROM device_span_busy") == []
    assert store.rows("FROM device_stream_busy") == []


def test_the_worked_example_has_the_protocols_device_times() -> None:
    store = example()
    assert clocks(store) == [("cuda:0", "cuda-event:0", 3, 200)]
    spans = store.con.execute("SELECT * EXCLUDE (run_id) FROM device_span_busy ORDER BY span_id")
    names = [column[0] for column in spans.description]
    assert [dict(zip(names, row, strict=True)) for row in spans.fetchall()] == expected("device")["device_spans"]
