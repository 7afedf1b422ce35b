"""Activation metrics of any storages, against walking every nanosecond."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plane_store import alloc, free, op, span

from support import emptied

START, END = 5, 15
TIMES = st.integers(0, 20)


@dataclass(frozen=True)
class Storage:
    """One storage of the only operation: when it lives, and how large it is."""

    start: int
    end: int | None
    size: int

    def alive(self, instant: int) -> bool:
        return self.start <= instant and (self.end is None or instant < self.end)


STORAGES = st.lists(
    st.builds(
        lambda start, length, size: Storage(start, None if length is None else start + length, size),
        TIMES,
        st.none() | st.integers(0, 20),
        st.integers(0, 2**63 - 1),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60)
@given(storages=STORAGES)
def test_metrics_equal_a_walk_over_every_nanosecond(storages: list[Storage]) -> None:
    store = emptied().run()
    span(store, "m", None, START, END - START, measured=True)
    op(store, "m", START, 1)
    for number, storage in enumerate(storages):
        values = {"span_id": "m", "op_name": "f", "category": "activation"}
        store.add("memory_events", alloc(storage.start, str(number), storage.size, **values))
        if storage.end is not None:
            store.add("memory_events", free(storage.end, str(number), storage.size, **values))
    instants = [[t for t in range(START, END) if storage.alive(t)] for storage in storages]
    live = [len(times) for times in instants]
    assert store.rows(
        "SELECT logical_allocated_bytes, logical_storage_live_duration_ns, logical_byte_nanoseconds,"
        " logical_retained_bytes_at_measured_end FROM activation_hotspots"
    ) == [
        (
            sum(storage.size for storage in storages),
            sum(live),
            sum(storage.size * times for storage, times in zip(storages, live, strict=True)),
            sum(storage.size for storage in storages if storage.end is None or storage.end > END),
        )
    ]


@settings(max_examples=40)
@given(values=st.lists(st.none() | st.integers(0, 2), max_size=8))
def test_ranks_are_a_stable_sort_without_the_rows_that_lack_the_metric(values: list[int | None]) -> None:
    store = emptied().run()
    span(store, "m", None, 0, 100, measured=True)
    for number, value in enumerate(values):
        op(store, "m", 0, 1, output=str(number), output_dense_bytes=value)
        store.add("tensors", {"span_id": "m", "tensor_id": str(number), "category": "activation"})
    rows = store.rows("SELECT op_index, dense_output_rank FROM activation_hotspots ORDER BY op_index")
    order = sorted((number for number, value in enumerate(values) if value is not None), key=lambda n: -values[n])  # type: ignore[operator]
    ranks = {number: place + 1 for place, number in enumerate(order)}
    assert rows == [(number, ranks.get(number)) for number in range(len(values))]


def test_a_sum_beyond_128_bits_is_an_error_and_never_a_wrong_number() -> None:
    store = emptied().run()
    span(store, "m", None, 0, 2**63 - 1, measured=True)
    op(store, "m", 0, 1)
    for number in range(4):
        store.add(
            "memory_events",
            alloc(0, str(number), 2**63 - 1, span_id="m", op_name="f", category="activation"),
        )
    with pytest.raises(duckdb.Error, match=r"[Oo]verflow"):
        store.rows("SELECT logical_byte_nanoseconds FROM activation_hotspots")
