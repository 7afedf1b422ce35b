"""Live bytes over time, their peaks, and what is live at a peak (protocol 5.1)."""

from __future__ import annotations

from typing import Any

import pytest
from plane_store import BIG, alloc, example, expected, free

from support import TinyStore, emptied


@pytest.fixture
def store() -> TinyStore:
    return emptied().run()


def points(store: TinyStore) -> list[tuple[Any, ...]]:
    return store.rows("SELECT timestamp_ns, live_bytes FROM live_bytes ORDER BY run_id, timestamp_ns")


def peaks(store: TinyStore) -> list[tuple[Any, ...]]:
    return store.rows("SELECT * EXCLUDE (run_id) FROM live_bytes_peak ORDER BY run_id, device NULLS FIRST")


def test_a_point_stands_after_all_events_of_its_timestamp(store: TinyStore) -> None:
    # at 5 one storage goes and a larger one comes: never 30
    store.add("memory_events", alloc(1, "a", 10), free(5, "a"), alloc(5, "b", 20))
    assert points(store) == [(1, 10), (5, 20)]
    assert peaks(store) == [(None, 2, 1, 30, 20, 5), ("cpu", 2, 1, 30, 20, 5)]


def test_aliases_and_unpaired_frees_are_points_that_change_nothing(store: TinyStore) -> None:
    store.add("memory_events", free(0, "x"), alloc(1, "a", 10), alloc(2, "a", 10, tensor_id="v"), free(3, "x", 99))
    assert points(store) == [(0, 0), (1, 10), (2, 10), (3, 10)]
    assert peaks(store)[0] == (None, 1, 0, 10, 10, 1)


def test_the_earliest_of_two_equal_peaks_wins(store: TinyStore) -> None:
    store.add("memory_events", alloc(1, "a", 10), free(2, "a"), alloc(3, "b", 10), free(4, "b"))
    assert peaks(store)[0] == (None, 2, 2, 20, 10, 1)


def test_a_storage_allocated_and_freed_at_one_instant_has_a_peak_of_0(store: TinyStore) -> None:
    store.add("memory_events", free(0, "x"), alloc(7, "a", 10), free(7, "a"), alloc(9, "a", 5), free(9, "a"))
    assert points(store) == [(0, 0), (7, 0), (9, 0)]
    assert peaks(store) == [(None, 2, 2, 15, 0, 7), ("cpu", 2, 2, 15, 0, 7)]
    assert store.rows("FROM live_bytes_peak_storages") == []


def test_only_unpaired_frees_give_a_row_and_no_peak(store: TinyStore) -> None:
    store.add("memory_events", free(3, "x"))
    assert peaks(store) == [(None, 0, 0, 0, None, None), ("cpu", 0, 0, 0, None, None)]
    assert points(store) == [(3, 0)]


def test_devices_peak_at_their_own_times(store: TinyStore) -> None:
    store.add("memory_events", alloc(1, "a", 10), free(3, "a"), free(9, "x", device="z"))
    store.add("memory_events", alloc(2, "a", 4, device="cuda:0"), alloc(4, "b", 5, device="cuda:0"))
    assert peaks(store) == [
        (None, 3, 1, 19, 14, 2),
        ("cpu", 1, 1, 10, 10, 1),
        ("cuda:0", 2, 0, 9, 9, 4),
        ("z", 0, 0, 0, None, None),
    ]


def test_a_device_has_a_row_at_every_timestamp_with_a_live_storage(store: TinyStore) -> None:
    # the storage of 0 bytes on cuda:0 is live from 2 on; cpu is empty at 3
    store.add("memory_events", alloc(1, "a", 10), alloc(2, "n", 0, device="cuda:0"), free(3, "a"), alloc(4, "b", 5))
    rows = store.rows("SELECT device, timestamp_ns, live_bytes FROM live_bytes_by_device ORDER BY device, timestamp_ns")
    assert rows == [("cpu", 1, 10), ("cpu", 2, 10), ("cpu", 4, 5), ("cuda:0", 2, 0), ("cuda:0", 3, 0), ("cuda:0", 4, 0)]


def test_a_category_is_that_of_the_first_allocation_over_all_devices(store: TinyStore) -> None:
    store.add("memory_events", alloc(1, "a", 10, category="activation"), alloc(2, "a", 10, category="gradient"))
    store.add("memory_events", alloc(2, "b", 5, device="cuda:0", category="activation"), free(3, "a", category="other"))
    rows = store.rows("SELECT timestamp_ns, category, live_bytes FROM live_bytes_by_category ORDER BY timestamp_ns")
    assert rows == [(1, "activation", 10), (2, "activation", 15), (3, "activation", 5)]


def test_the_storages_of_a_peak_are_those_live_after_its_timestamp(store: TinyStore) -> None:
    # the overall peak is 12 at 2; that of cuda:0 is 9 at 3, when a on cpu is gone
    store.add("memory_events", alloc(1, "a", 10), alloc(2, "b", 2, device="cuda:0"), free(3, "a"))
    store.add("memory_events", alloc(3, "c", 7, device="cuda:0"), free(8, "b", device="cuda:0"))
    rows = store.rows("SELECT peak_device, device, storage_id, bytes FROM live_bytes_peak_storages ORDER BY ALL")
    assert sorted(rows, key=str) == sorted([
        ("cpu", "cpu", "a", 10),
        ("cuda:0", "cuda:0", "b", 2),
        ("cuda:0", "cuda:0", "c", 7),
        (None, "cpu", "a", 10),
        (None, "cuda:0", "b", 2),
    ], key=str)  # fmt: skip


def test_the_largest_byte_counts_add_up_exactly(store: TinyStore) -> None:
    store.add("memory_events", alloc(0, "a", BIG), alloc(1, "b", BIG), alloc(BIG, "c", BIG), free(BIG, "a", BIG))
    assert points(store) == [(0, BIG), (1, 2 * BIG), (BIG, 2 * BIG)]
    assert peaks(store)[0] == (None, 3, 1, 3 * BIG, 2 * BIG, 1)


def test_runs_are_summed_by_themselves(store: TinyStore) -> None:
    store.run("r2", outcome=None).add("memory_events", alloc(1, "a", 7), run_id="r2")
    store.add("memory_events", alloc(1, "a", 10))
    assert points(store) == [(1, 10), (1, 7)]
    assert [row[4] for row in peaks(store)] == [10, 10, 7, 7]


def test_a_run_without_memory_events_has_no_logical_plane(store: TinyStore) -> None:
    for view in ("live_bytes", "live_bytes_by_device", "live_bytes_by_category", "live_bytes_peak"):
        assert store.rows(f"FROM {view}") == []


def test_the_worked_example_has_the_protocols_timeline_and_peak() -> None:
    store, wanted = example(), expected("logical_memory")
    assert points(store) == [(point["timestamp_ns"], point["live_bytes"]) for point in wanted["timeline"]]
    rows = store.rows("FROM live_bytes_by_category SELECT timestamp_ns, category, live_bytes ORDER BY ALL")
    assert rows == [
        (point["timestamp_ns"], category, live)
        for point in wanted["timeline"]
        for category, live in sorted(point["live_bytes_by_category"].items())
    ]
    assert peaks(store) == [(None, 3, 2, 896, 768, 310), ("cuda:0", 3, 2, 896, 768, 310)]
    rows = store.rows("SELECT storage_id FROM live_bytes_peak_storages WHERE peak_device IS NULL ORDER BY alloc_seq")
    assert [row[0] for row in rows] == wanted["peak"]["live_storages"]
