"""Extrema of the physical checkpoints (protocol 5.3)."""

from __future__ import annotations

import pytest
from plane_store import BIG, example

from support import TinyStore, emptied


@pytest.fixture
def store() -> TinyStore:
    return emptied().run()


def sample(
    store: TinyStore, timestamp_ns: int, used: int | None = None, free: int | None = None, **values: object
) -> None:
    store.add("device_memory", {"timestamp_ns": timestamp_ns, "used_bytes": used, "free_bytes": free, **values})


def test_extrema_take_the_earliest_of_equal_values(store: TinyStore) -> None:
    for timestamp_ns, used, left in ((30, 9, 1), (10, 9, 5), (20, 4, 1), (40, 9, 1)):
        sample(store, timestamp_ns, used, left)
    columns = "peak_used_bytes, peak_used_timestamp_ns, minimum_free_bytes, minimum_free_timestamp_ns"
    assert store.rows(f"SELECT {columns} FROM physical_memory_extrema") == [(9, 10, 1, 20)]


def test_what_was_not_observed_is_null_and_never_derived(store: TinyStore) -> None:
    sample(store, 10, reserved_bytes=400)
    sample(store, 20, free=7, capacity_bytes=1000)
    assert store.rows("SELECT * EXCLUDE (run_id) FROM physical_memory_extrema") == [
        ("cuda:0", 2, 0, 1, 1, 1, None, None, 400, 10, 7, 20, 1000)
    ]


def test_devices_and_runs_are_apart(store: TinyStore) -> None:
    sample(store, 10, 5)
    sample(store, 20, 6, device="cuda:1")
    store.run("r2", outcome=None).add("device_memory", {"timestamp_ns": 1, "used_bytes": BIG}, run_id="r2")
    rows = store.rows("SELECT run_id, device, sample_count, peak_used_bytes FROM physical_memory_extrema ORDER BY ALL")
    assert rows == [("r1", "cuda:0", 1, 5), ("r1", "cuda:1", 1, 6), ("r2", "cuda:0", 1, BIG)]


def test_logical_events_say_nothing_about_physical_memory(store: TinyStore) -> None:
    store.add("memory_events", {"timestamp_ns": 1, "storage_id": "a", "span_id": "s", "bytes": 9, "action": "alloc"})
    assert store.rows("FROM physical_memory_extrema") == []


def test_the_worked_example_has_the_protocols_extrema() -> None:
    assert example().rows("SELECT * EXCLUDE (run_id) FROM physical_memory_extrema") == [
        ("cuda:0", 1, 1, 1, 0, 0, 1048576, 500, None, None, 3145728, 500, None)
    ]
