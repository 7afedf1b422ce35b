"""Which operations produce activations, what they cost, and in which order (protocol 6)."""

from __future__ import annotations

from typing import Any

import pytest
from plane_store import BIG, alloc, example, expected, free, op, span

from support import TinyStore, emptied

METRICS = (
    "logical_allocated_bytes, logical_storage_count, logical_storage_live_duration_ns, logical_byte_nanoseconds,"
    " logical_retained_bytes_at_measured_end"
)


def region(store: TinyStore, **run: Any) -> TinyStore:
    """Root s1 [0, 100] and the measured span m [10, 90] below it."""
    store.run(**run)
    span(store, "s1", None, 0, 100)
    span(store, "m", "s1", 10, 80, measured=True)
    return store


def tensor(store: TinyStore, span_id: str, tensor_id: str, category: str) -> None:
    store.add("tensors", {"span_id": span_id, "tensor_id": tensor_id, "category": category})


def sources(store: TinyStore) -> list[tuple[Any, ...]]:
    return store.rows("SELECT id, classification_sources FROM activation_hotspots ORDER BY id")


def metrics(store: TinyStore) -> list[tuple[Any, ...]]:
    return store.rows(f"SELECT {METRICS} FROM activation_hotspots ORDER BY id")


def activation(timestamp_ns: int, storage_id: str, size: int, **values: Any) -> dict[str, Any]:
    return alloc(timestamp_ns, storage_id, size, **{"span_id": "m", "op_name": "f", "category": "activation", **values})


def test_the_worked_example_has_its_operations() -> None:
    store = example()
    names = [name for name in expected("activations")["operations"][0] if name != "device_timings"]
    rows = store.rows(f"SELECT {', '.join(names)} FROM activation_hotspots ORDER BY host_rank")
    found = [dict(zip(names, row, strict=True)) for row in rows]
    for row in found:
        row["logical_byte_nanoseconds"] = str(row["logical_byte_nanoseconds"])
    assert found == [
        {name: value for name, value in row.items() if name in names} for row in expected("activations")["operations"]
    ]


@pytest.mark.parametrize("metric", ["host", "dense_output", "logical_allocated", "logical_byte_nanoseconds"])
def test_the_worked_example_has_its_rankings(metric: str) -> None:
    rows = example().rows(f"SELECT id FROM activation_hotspots WHERE {metric}_rank > 0 ORDER BY {metric}_rank")
    assert [id_ for (id_,) in rows] == expected("activations")["rankings"][metric]


def test_the_worked_example_has_its_device_rankings() -> None:
    rows = example().rows(
        "SELECT device || '|' || clock_id, list(id ORDER BY device_rank) FROM activation_device_hotspots GROUP BY 1"
    )
    assert dict(rows) == expected("activations")["rankings"]["device"]


def test_an_operation_without_an_activation_link_does_not_qualify() -> None:
    store = region(emptied())
    op(store, "m", 20, 5, output="a")
    op(store, "m", 30, 5, op_name="g", output="b")
    tensor(store, "m", "a", "activation")
    tensor(store, "m", "b", "parameter")
    assert sources(store) == [("m/op/0", ["tensor_output"])]


def test_a_tensor_row_of_another_span_classifies_nothing() -> None:
    store = region(emptied())
    op(store, "m", 20, 5, output="a")
    tensor(store, "s1", "a", "activation")
    assert sources(store) == []


def test_tensor_rows_that_disagree_are_counted_and_classify_nothing() -> None:
    store = region(emptied())
    op(store, "m", 20, 5, output="a")
    op(store, "m", 30, 5, op_name="g", output="b")
    for tensor_id in ("a", "b"):
        tensor(store, "m", tensor_id, "activation")
        tensor(store, "m", tensor_id, "gradient")
    store.add("memory_events", activation(31, "sb", 4, op_name="g"))
    assert sources(store) == [("m/op/1", ["logical_storage"])]
    assert store.rows("FROM activation_profile") == [("r1", 1, 2, 0)]


def test_two_tensor_rows_that_agree_classify_their_operation_once() -> None:
    store = region(emptied())
    op(store, "m", 20, 5, output="a")
    tensor(store, "m", "a", "activation")
    tensor(store, "m", "a", "activation")
    assert sources(store) == [("m/op/0", ["tensor_output"])]


def test_an_operation_outside_the_measured_subtree_takes_no_part_but_uses_its_storage() -> None:
    store = region(emptied())
    op(store, "s1", 2, 5, output="a")
    tensor(store, "s1", "a", "activation")
    store.add("memory_events", activation(3, "a", 4, span_id="s1"))
    assert sources(store) == []
    assert store.rows("FROM activation_profile") == [("r1", 0, 0, 0)]


def test_a_name_that_a_span_uses_twice_or_not_at_all_leaves_its_storage_unattributed() -> None:
    store = region(emptied())
    op(store, "m", 20, 5)
    op(store, "m", 30, 5)
    store.add("memory_events", activation(21, "a", 4), activation(22, "b", 4, op_name=None))
    store.add("memory_events", activation(23, "c", 4, op_name="h"), activation(24, "d", 4, category="other"))
    assert sources(store) == []
    assert store.rows("FROM activation_profile") == [("r1", 0, 0, 3)]


def test_an_operation_without_an_activation_storage_has_null_metrics_and_no_rank_in_them() -> None:
    store = region(emptied())
    op(store, "m", 20, 5, output="a")
    tensor(store, "m", "a", "activation")
    store.add("memory_events", activation(21, "a", 4, category="other"))
    assert metrics(store) == [(None, None, None, None, None)]
    ranks = "host_rank, dense_output_rank, logical_allocated_rank, logical_byte_nanoseconds_rank"
    assert store.rows(f"SELECT {ranks} FROM activation_hotspots") == [(1, None, None, None)]


@pytest.mark.parametrize(
    ("events", "live_ns", "retained"),
    [
        ([activation(20, "a", 4), free(30, "a", 4)], 10, 0),
        ([activation(20, "a", 4)], 70, 4),  # never freed: live to the end, 90
        ([activation(20, "a", 4), free(90, "a", 4)], 70, 0),  # gone at the end
        ([activation(20, "a", 4), free(91, "a", 4)], 70, 4),
        ([activation(5, "a", 4), free(30, "a", 4)], 20, 0),  # begins before the region, 10
        ([activation(5, "a", 4), free(10, "a", 4)], 0, 0),
        ([activation(90, "a", 4)], 0, 4),  # at the end: live then
        ([activation(90, "a", 4), free(90, "a", 4)], 0, 0),
        ([activation(95, "a", 4)], 0, 4),
        ([activation(20, "a", 0)], 70, 0),  # a storage of no bytes is a storage
    ],
)
def test_a_storage_is_clipped_to_the_measured_region(events: list[dict[str, Any]], live_ns: int, retained: int) -> None:
    store = region(emptied())
    op(store, "m", 20, 5)
    store.add("memory_events", *events)
    size = events[0]["bytes"]
    assert metrics(store) == [(size, 1, live_ns, size * live_ns, retained)]


def test_storages_of_one_operation_add_up() -> None:
    store = region(emptied())
    op(store, "m", 20, 5)
    store.add("memory_events", activation(20, "a", 4), activation(40, "b", 3), free(50, "b", 3))
    # a: 4 bytes for 70 ns and retained; b: 3 bytes for 10 ns
    assert metrics(store) == [(7, 2, 80, 310, 4)]


def test_byte_nanoseconds_are_exact_at_the_ends_of_64_bits() -> None:
    store = emptied().run()
    span(store, "m", None, 0, BIG, measured=True)
    op(store, "m", 0, BIG)
    store.add("memory_events", activation(0, "a", BIG), activation(1, "b", BIG))
    assert metrics(store) == [(2 * BIG, 2, 2 * BIG - 1, BIG * BIG + BIG * (BIG - 1), 2 * BIG)]


def test_a_root_of_kind_op_is_a_dedicated_span() -> None:
    store = emptied().run()
    span(store, "m", None, 0, 100, measured=True, span_kind="op")
    op(store, "m", 20, 5, output="a")
    tensor(store, "m", "a", "activation")
    store.add("device_intervals", {"span_id": "m", "start_ns": 7, "duration_ns": 9})
    assert store.rows("SELECT id, busy_ns, device_rank FROM activation_device_hotspots") == [("m", 9, 1)]


@pytest.mark.parametrize(("kind", "count"), [("op", 2), ("module", 1), ("function", 1)])
def test_device_time_needs_one_operation_alone_in_a_span_of_kind_op(kind: str, count: int) -> None:
    store = region(emptied())
    span(store, "o", "m", 20, 30, span_kind=kind)
    for number in range(count):
        op(store, "o", 20 + number, 1, output="a")
    tensor(store, "o", "a", "activation")
    store.add("device_intervals", {"span_id": "o", "start_ns": 7, "duration_ns": 9})
    assert sources(store) == [(f"o/op/{number}", ["tensor_output"]) for number in range(count)]
    assert store.rows("FROM activation_device_hotspots") == []


def test_each_device_clock_has_its_own_ranking() -> None:
    store = region(emptied())
    for name in ("p", "q"):
        span(store, name, "m", 20, 30, span_kind="op")
        op(store, name, 20, 1, output=name)
        tensor(store, name, name, "activation")
    for name, clock_id, duration in (("p", "c1", 5), ("q", "c1", 5), ("p", "c2", 3), ("q", "c2", 4)):
        interval = {"span_id": name, "clock_id": clock_id, "start_ns": 0, "duration_ns": duration}
        store.add("device_intervals", interval)
    rows = store.rows("SELECT clock_id, id, device_rank FROM activation_device_hotspots ORDER BY clock_id, device_rank")
    assert rows == [("c1", "p", 1), ("c1", "q", 2), ("c2", "q", 1), ("c2", "p", 2)]


def test_equal_values_rank_by_the_smallest_id_byte_by_byte() -> None:
    store = region(emptied())
    for number in range(11):
        op(store, "m", 20, 5, output=str(number), output_dense_bytes=8)
        tensor(store, "m", str(number), "activation")
    rows = store.rows("SELECT id FROM activation_hotspots ORDER BY dense_output_rank LIMIT 3")
    assert rows == [("m/op/0",), ("m/op/1",), ("m/op/10",)]


@pytest.mark.parametrize(("measured", "ended"), [(0, True), (2, True), (1, False)])
def test_without_exactly_one_closed_measured_span_there_are_no_rows(measured: int, ended: bool) -> None:
    store = emptied().run()
    span(store, "s1", None, 0, 100)
    for number in range(2):
        span(store, f"m{number}", "s1", 10, 20 if ended else None, measured=number < measured)
        op(store, f"m{number}", 12, 1, output="a")
        tensor(store, f"m{number}", "a", "activation")
    assert sources(store) == []
    assert store.rows("FROM activation_profile") == []


def test_runs_do_not_mix() -> None:
    store = region(emptied())
    op(store, "m", 20, 5, output="a")
    store.run("r2")
    span(store, "m", None, 0, 100, measured=True, run_id="r2")
    op(store, "m", 20, 7, output="a", run_id="r2")
    store.add("tensors", {"span_id": "m", "tensor_id": "a", "category": "activation"}, run_id="r2")
    store.add("memory_events", activation(20, "a", 4))
    rows = store.rows("SELECT run_id, classification_sources, host_rank FROM activation_hotspots ORDER BY run_id")
    assert rows == [("r1", ["logical_storage"], 1), ("r2", ["tensor_output"], 1)]
