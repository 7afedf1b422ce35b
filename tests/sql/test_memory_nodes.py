"""Logical memory of spans and operations (protocol 5.2), and the heaviest spans (4.4)."""

from __future__ import annotations

from typing import Any

import pytest
from plane_store import BIG, alloc, example, expected, free, op, span

from support import TinyStore, emptied

COMPLETE = {"logical_memory": "complete"}


@pytest.fixture
def store() -> TinyStore:
    return emptied()


def nodes(store: TinyStore) -> dict[str, tuple[Any, ...]]:
    """{node: (allocated, peak, residual)}."""
    columns = "node_id, allocated_bytes, peak_live_bytes, residual_bytes"
    rows = store.rows(f"SELECT {columns} FROM node_memory")
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1:] for row in rows}


def test_a_span_has_its_own_allocations_and_the_peak_of_its_subtree(store: TinyStore) -> None:
    store.run()
    span(store, "s1", None, 0, 100)
    span(store, "s2", "s1", 10, 20)
    store.add("memory_events", alloc(15, "a", 40, span_id="s2"), alloc(20, "b", 60, span_id="s2"))
    store.add("memory_events", free(25, "a"), free(50, "b"), alloc(90, "c", 7, span_id="s1"))
    assert nodes(store) == {"s1": (7, 100, 7), "s2": (100, 100, 60)}


def test_a_peak_is_clipped_to_the_span(store: TinyStore) -> None:
    #   span          10 . . . . . . . 20
    #   early    5----10                     ends at the start: dropped
    #   before   5---------15                lives at the start
    #   at end                         20--  dropped, but residual
    store.run()
    span(store, "s1", None, 10, 10)
    for name, size, start, end in (
        ("early", 64, 5, 10),
        ("before", 8, 5, 15),
        ("in", 4, 15, 18),
        ("at_end", 32, 20, 30),
    ):
        store.add("memory_events", alloc(start, name, size), free(end, name))
    assert nodes(store) == {"s1": (108, 8, 32)}


def test_a_free_exactly_at_the_end_leaves_nothing(store: TinyStore) -> None:
    store.run()
    span(store, "s1", None, 10, 10)
    store.add("memory_events", alloc(12, "a", 5), free(20, "a"), alloc(13, "b", 6), free(21, "b"), alloc(14, "c", 7))
    assert nodes(store) == {"s1": (18, 18, 13)}


def test_a_free_and_an_allocation_at_one_instant_are_net(store: TinyStore) -> None:
    store.run()
    span(store, "s1", None, 0, 10)
    store.add("memory_events", alloc(1, "a", 10), alloc(5, "b", 12), free(5, "a"), alloc(6, "c", 99), free(6, "c"))
    assert nodes(store) == {"s1": (121, 12, 12)}


def test_zero_is_known_only_when_logical_memory_is_declared_complete(store: TinyStore) -> None:
    for run_id, contract in (("r1", {"logical_memory": "partial"}), ("r2", COMPLETE)):
        store.run(run_id, contract=contract)
        span(store, "s1", None, 0, 10, run_id=run_id)
        span(store, "s2", "s1", 0, 5, run_id=run_id)
        store.add("memory_events", alloc(1, "a", 3), run_id=run_id)
    columns = "run_id, allocated_bytes, peak_live_bytes, residual_bytes"
    rows = store.rows(f"SELECT {columns} FROM node_memory WHERE node_id = 's2' ORDER BY run_id")
    assert rows == [("r1", None, None, None), ("r2", 0, 0, 0)]


def test_a_run_without_memory_events_has_dense_bytes_alone(store: TinyStore) -> None:
    store.run(contract=COMPLETE)
    span(store, "s1", None, 0, 10)
    op(store, "s1", 0, 1, output_dense_bytes=128)
    rows = store.rows(
        "SELECT node_id, allocated_bytes, peak_live_bytes, residual_bytes, dense_bytes FROM node_memory ORDER BY 1"
    )
    assert rows == [("s1", None, None, None, None), ("s1/op/0", None, None, None, 128)]


@pytest.mark.parametrize(("contract", "known"), [(COMPLETE, 0), ({}, None)])
def test_a_zero_length_span_is_0_unless_nothing_is_known_under_it(
    store: TinyStore, contract: dict[str, str], known: int | None
) -> None:
    store.run(contract=contract)
    span(store, "s1", None, 0, 10)
    span(store, "used", "s1", 5, 0)
    span(store, "unused", "s1", 5, 0)
    store.add("memory_events", alloc(5, "a", 3, span_id="used"))
    assert nodes(store)["used"] == (3, 0, 0)
    assert nodes(store)["unused"] == (known, known, known)


def test_an_open_span_has_allocations_and_no_peak(store: TinyStore) -> None:
    store.run(outcome=None, contract=COMPLETE)
    span(store, "s1", None, 0, None)
    span(store, "s2", "s1", 0, 9)
    store.add("memory_events", alloc(1, "a", 3))
    assert nodes(store) == {"s1": (3, None, None), "s2": (0, 0, 0)}


def test_an_operation_takes_the_allocations_that_name_it_uniquely(store: TinyStore) -> None:
    store.run(contract=COMPLETE)
    span(store, "s1", None, 0, 10)
    for name in ("once", "twice", "twice", "idle"):
        op(store, "s1", 0, 1, op_name=name)
    names = ("once", "once", "twice", "unknown", None)
    store.add("memory_events", *(alloc(1, f"t{n}", 2**n, op_name=name) for n, name in enumerate(names)))
    got = {node: row[0] for node, row in nodes(store).items()}
    assert got == {"s1": 31, "s1/op/0": 3, "s1/op/1": None, "s1/op/2": None, "s1/op/3": None}


def test_an_operation_name_means_the_operations_of_its_own_span(store: TinyStore) -> None:
    store.run()
    op(store, "s1", 0, 1, op_name="f")
    op(store, "s2", 0, 1, op_name="f")
    store.add("memory_events", alloc(1, "a", 5, span_id="s2", op_name="f"))
    assert nodes(store) == {"s1/op/0": (None, None, None), "s2/op/0": (5, None, None)}


def test_parents_in_a_circle_and_unknown_spans_end(store: TinyStore) -> None:
    store.run()
    span(store, "a", "b", 0, 10)
    span(store, "b", "a", 0, 10)
    span(store, "lost", "gone", 0, 10)
    for id_, span_id in (("t", "a"), ("u", "b"), ("v", "lost"), ("w", "never")):
        store.add("memory_events", alloc(1, id_, 5, span_id=span_id))
    assert nodes(store) == {"a": (5, 10, 10), "b": (5, 10, 10), "lost": (5, 5, 5)}


def test_the_largest_numbers_do_not_overflow(store: TinyStore) -> None:
    store.run()
    span(store, "s1", None, BIG - 1, BIG)  # an end past the largest integer
    store.add("memory_events", alloc(0, "a", BIG), alloc(BIG, "b", BIG))
    assert nodes(store) == {"s1": (2 * BIG, 2 * BIG, 2 * BIG)}


def test_the_heaviest_spans_are_of_the_subtree_with_known_bytes_and_no_nested_op_spans(store: TinyStore) -> None:
    store.run()
    span(store, "s1", None, 0, 100)
    span(store, "m", "s1", 0, 50, measured=True, name="step")
    for id_ in ("z", "a", "none"):
        span(store, id_, "m", 0, 9, name=id_)
    span(store, "kernel", "m", 0, 9, span_kind="op")
    for id_, span_id, size in (("1", "s1", 99), ("2", "m", 7), ("3", "z", 5), ("4", "a", 5), ("5", "kernel", 50)):
        store.add("memory_events", alloc(1, id_, size, span_id=span_id), free(3, id_))
    rows = store.rows("SELECT id, name, allocated_bytes, peak_live_bytes, rank FROM heaviest ORDER BY rank")
    assert rows == [("m", "step", 7, 67, 1), ("a", "a", 5, 5, 2), ("z", "z", 5, 5, 3)]


def test_the_worked_example_has_the_protocols_node_memory() -> None:
    store = example()
    spans = {
        node: (row["direct_allocated_bytes"], row["subtree_peak_live_bytes"], row["subtree_residual_bytes"])
        for node, row in expected("node_memory").items()
    }
    ops = {node: (size, None, None) for node, size in expected("op_node_allocated_bytes").items()}
    assert nodes(store) == spans | ops
    assert store.rows("SELECT id, allocated_bytes FROM heaviest ORDER BY rank") == [("s3", 384), ("s2", 0)]
