"""Storage lifetimes: pairing allocations and frees (protocol 5.1)."""

from __future__ import annotations

from typing import Any

import pytest
from plane_store import BIG, alloc, example, expected, free

from support import TinyStore, emptied


@pytest.fixture
def store() -> TinyStore:
    return emptied().run()


def lives(store: TinyStore, *events: dict[str, Any], columns: str = "start_timestamp_ns, end_timestamp_ns") -> Any:
    """The chosen columns of every lifetime, in the protocol's order."""
    store.add("memory_events", *events)
    order = "start_timestamp_ns, device, storage_id, alloc_seq"
    return store.rows(f"SELECT storage_id, {columns} FROM storage_lifetimes ORDER BY run_id, {order}")


def test_a_lifetime_runs_from_allocation_to_free_or_never_ends(store: TinyStore) -> None:
    assert lives(store, alloc(5, "a"), alloc(6, "b"), free(9, "a")) == [("a", 5, 9), ("b", 6, None)]


def test_a_storage_allocated_again_after_its_free_lives_twice(store: TinyStore) -> None:
    events = (alloc(1, "a", 10), free(2, "a"), alloc(3, "a", 20), free(4, "a"), alloc(4, "a", 30))
    columns = "bytes, start_timestamp_ns, end_timestamp_ns"
    assert lives(store, *events, columns=columns) == [("a", 10, 1, 2), ("a", 20, 3, 4), ("a", 30, 4, None)]


def test_an_alias_joins_its_tensor_id_and_changes_nothing_else(store: TinyStore) -> None:
    first = alloc(1, "a", 10, tensor_id="t", span_id="s1", op_name="f", shape=[2], dtype="f32", category="activation")
    alias = alloc(2, "a", 99, tensor_id="b", span_id="s2", op_name="g", shape=[7], dtype="u8", category="other")
    close = free(3, "a", 5, tensor_id="z", span_id="s3")
    columns = "tensor_ids, allocation_span_id, op_name, bytes, shape, dtype, category, end_timestamp_ns"
    rows = lives(store, first, alias, alias, close, columns=columns)
    assert rows == [("a", ["b", "t", "z"], "s1", "f", 10, [2], "f32", "activation", 3)]


def test_a_first_allocation_without_an_op_name_keeps_none(store: TinyStore) -> None:
    assert lives(store, alloc(1, "a"), alloc(2, "a", op_name="g"), columns="op_name") == [("a", None)]


def test_unpaired_frees_are_ignored(store: TinyStore) -> None:
    events = (free(1, "a"), free(2, "a", tensor_id="x"), alloc(3, "a"), free(4, "a"), free(5, "a", tensor_id="y"))
    assert lives(store, *events, free(6, "b"), columns="tensor_ids, start_timestamp_ns, end_timestamp_ns") == [
        ("a", ["a"], 3, 4)
    ]


def test_events_pair_in_time_order_and_by_position_at_one_instant(store: TinyStore) -> None:
    # recorded out of order; at 5 the free comes before the allocation
    events = (free(5, "a"), alloc(5, "a", 7), free(9, "a"), alloc(1, "a", 3))
    columns = "bytes, start_timestamp_ns, end_timestamp_ns"
    assert lives(store, *events, columns=columns) == [("a", 3, 1, 5), ("a", 7, 5, 9)]


def test_equal_storage_ids_on_two_devices_or_runs_are_different_storages(store: TinyStore) -> None:
    store.run("r2").add("memory_events", alloc(1, "a"), run_id="r2")
    rows = lives(
        store,
        alloc(1, "a"),
        alloc(1, "a", device="cuda:0"),
        free(2, "a", device="cuda:0"),
        columns="run_id, device, end_timestamp_ns",
    )
    assert rows == [("a", "r1", "cpu", None), ("a", "r1", "cuda:0", 2), ("a", "r2", "cpu", None)]


def test_lifetimes_that_are_equal_in_the_order_keep_their_opening_order(store: TinyStore) -> None:
    rows = lives(store, alloc(1, "a", 10), free(1, "a"), alloc(1, "a", 20), columns="bytes")
    assert rows == [("a", 10), ("a", 20)]


def test_the_largest_numbers_pass_through(store: TinyStore) -> None:
    columns = "bytes, start_timestamp_ns, end_timestamp_ns"
    assert lives(store, alloc(0, "a", BIG), free(BIG, "a", BIG), columns=columns) == [("a", BIG, 0, BIG)]


def test_the_worked_example_has_the_protocols_lifetimes() -> None:
    wanted = expected("logical_memory")["lifetimes"]
    columns = ", ".join(wanted[0])
    rows = example().rows(f"SELECT {columns} FROM storage_lifetimes ORDER BY start_timestamp_ns, device, storage_id")
    assert [dict(zip(wanted[0], row, strict=True)) for row in rows] == wanted
