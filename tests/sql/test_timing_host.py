"""Host self and total time (protocol 4.3)."""

from __future__ import annotations

import pytest
from plane_store import BIG, example, expected, op, span

from support import TinyStore, emptied


@pytest.fixture
def store() -> TinyStore:
    return emptied().run()


def times(store: TinyStore) -> dict[str, tuple[int, int]]:
    """{node: (total, self)}."""
    rows = store.rows("SELECT node_id, host_total_time_ns, host_self_time_ns FROM host_self_time")
    assert len({row[0] for row in rows}) == len(rows)
    return {node: (total, own) for node, total, own in rows}


def test_self_time_is_total_minus_the_union_of_direct_children(store: TinyStore) -> None:
    # s1 [0, 100]; children [10, 30] and [20, 50]; the grandchild belongs to its own parent alone
    span(store, "s1", None, 0, 100)
    span(store, "s2", "s1", 10, 20)
    span(store, "s3", "s1", 20, 30)
    span(store, "s4", "s3", 25, 10)
    assert times(store) == {"s1": (100, 60), "s2": (20, 20), "s3": (30, 20), "s4": (10, 10)}


def test_operations_are_children_of_their_span_and_all_self(store: TinyStore) -> None:
    span(store, "s1", None, 0, 100)
    span(store, "s2", "s1", 10, 20)
    op(store, "s1", 20, 30)
    op(store, "s1", 90, 5)
    assert times(store) == {"s1": (100, 55), "s2": (20, 20), "s1/op/0": (30, 30), "s1/op/1": (5, 5)}


def test_op_nodes_count_per_span_in_stream_order(store: TinyStore) -> None:
    op(store, "a", 50, 1, op_name="x")
    op(store, "b", 40, 1, op_name="y")
    op(store, "a", 10, 1, op_name="z")  # earlier in time, later in the stream
    rows = store.rows("SELECT node_id, op_index, op_name FROM _op_nodes ORDER BY node_id")
    assert rows == [("a/op/0", 0, "x"), ("a/op/1", 1, "z"), ("b/op/0", 0, "y")]


def test_children_are_not_clipped_and_self_time_is_never_negative(store: TinyStore) -> None:
    span(store, "s1", None, 10, 11)
    span(store, "s2", "s1", 12, 5)
    span(store, "s3", "s1", 19, 4)  # two of its four lie outside s1
    span(store, "s4", "s3", 0, 50)
    assert times(store) == {"s1": (11, 2), "s2": (5, 5), "s3": (4, 0), "s4": (50, 50)}


def test_a_span_of_duration_0_takes_what_lies_under_it(store: TinyStore) -> None:
    # s2 stands for its op and for s3, which stands for its own op and for s4
    span(store, "s1", None, 0, 100)
    span(store, "s2", "s1", 10, 0)
    op(store, "s2", 10, 3)
    span(store, "s3", "s2", 20, 0)
    op(store, "s3", 20, 5)
    span(store, "s4", "s3", 30, 7)
    got = times(store)
    assert {node: got[node] for node in ("s2", "s3", "s4")} == {"s2": (15, 0), "s3": (12, 0), "s4": (7, 7)}
    assert got["s1"] == (100, 85)  # s2 covers [10, 25] of it


def test_an_empty_span_with_nothing_under_it_takes_no_time(store: TinyStore) -> None:
    span(store, "s1", None, 5, 0)
    assert times(store) == {"s1": (0, 0)}


def test_an_open_span_has_what_was_seen_under_it(store: TinyStore) -> None:
    # what a killed process leaves: s1 and s2 never ended
    span(store, "s1", None, 0, None)
    span(store, "s2", "s1", 10, None)
    span(store, "s3", "s2", 20, 30)
    op(store, "s2", 60, 5)
    assert times(store) == {"s1": (35, 0), "s2": (35, 0), "s3": (30, 30), "s2/op/0": (5, 5)}


def test_node_kinds_are_root_for_spans_without_parent_and_op_for_operations(store: TinyStore) -> None:
    span(store, "s1", None, 0, 9, span_kind="op")
    span(store, "s2", "s1", 0, 9, span_kind="op")
    span(store, "s3", "s1", 0, 9, span_kind="module")
    span(store, "s4", "gone", 0, 9)
    op(store, "s4", 0, 1)
    rows = store.rows("SELECT node_id, parent_id, node_kind FROM host_self_time ORDER BY node_id")
    assert rows == [
        ("s1", None, "root"),
        ("s2", "s1", "op"),
        ("s3", "s1", "module"),
        ("s4", "gone", "function"),
        ("s4/op/0", "s4", "op"),
    ]


def test_the_largest_times_do_not_overflow(store: TinyStore) -> None:
    span(store, "s1", None, BIG, 0)
    span(store, "s2", "s1", BIG, BIG)
    span(store, "s3", "s1", BIG, BIG)
    op(store, "s3", BIG, BIG)
    assert times(store) == {"s1": (2 * BIG, BIG), "s2": (BIG, BIG), "s3": (BIG, 0), "s3/op/0": (BIG, BIG)}


def test_a_circle_of_parents_ends_and_counts_each_empty_span_once(store: TinyStore) -> None:
    span(store, "a", "b", 0, 0)
    span(store, "b", "a", 0, None)
    op(store, "a", 0, 3)
    op(store, "b", 3, 4)
    span(store, "self", "self", 5, 6)
    got = times(store)
    assert (got["a"][0], got["b"][0]) == (7, 7)
    assert got["self"] == (6, 0)  # its one child is itself


def test_a_span_named_like_an_operation_leaves_the_operation_alone(store: TinyStore) -> None:
    span(store, "s1", None, 0, 10)
    op(store, "s1", 0, 5)
    span(store, "s2", "s1/op/0", 0, 4)
    assert times(store) == {"s1": (10, 5), "s1/op/0": (5, 5), "s2": (4, 4)}


def test_the_worked_example_has_the_protocols_host_times() -> None:
    own = {node: value for node, (_, value) in times(example()).items()}
    assert own == expected("host")["host_self_time_ns"]
