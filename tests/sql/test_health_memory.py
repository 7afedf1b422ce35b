"""Pairing of logical allocations and frees, by (device, storage_id)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from health_support import NONE, Add, errors, judged, tree, warnings
from hypothesis import given
from hypothesis import strategies as st

from support import TinyStore, emptied

Event = tuple[int, str, int, str]  # timestamp, action, bytes, tensor


def events(*rows: Event, storage_id: str = "a", device: str = "cpu") -> Any:
    """A build step that adds events of one storage inside s1, in the order given."""

    def step(add: Add) -> None:
        for time, action, size, tensor in rows:
            row = {"timestamp_ns": time, "action": action, "bytes": size, "tensor_id": tensor, "span_id": "s1"}
            add("memory_events", {**row, "storage_id": storage_id, "device": device})

    return step


def memory_codes(store: TinyStore) -> list[tuple[str, str | None]]:
    query = "SELECT DISTINCT code, subject FROM health_issues WHERE code_order BETWEEN 24 AND 27 ORDER BY ALL"
    return store.rows(query)


def test_a_paired_storage_with_an_alias_breaks_no_rule(tiny: TinyStore) -> None:
    first = [(1, "alloc", 8, "x"), (2, "alloc", 8, "y"), (3, "free", 8, "x")]
    step = events(*first, (4, "alloc", 9, "x"), (5, "free", 9, "x"))
    assert judged(tiny, "retained_allocations", tree, step) == NONE
    assert memory_codes(tiny) == []


def test_an_allocation_of_a_live_storage_must_have_its_size(tiny: TinyStore) -> None:
    step = events((1, "alloc", 8, "x"), (2, "alloc", 9, "y"), (3, "free", 8, "x"))
    assert judged(tiny, "allocation_size_mismatch", tree, step) == errors("cpu/a")
    assert memory_codes(tiny) == [("allocation_size_mismatch", "cpu/a")]


def test_an_allocation_of_another_size_does_not_attach_its_tensor(tiny: TinyStore) -> None:
    step = events((1, "alloc", 8, "x"), (2, "alloc", 9, "y"), (3, "alloc", 8, "y"), (4, "free", 8, "x"))
    assert judged(tiny, "duplicate_allocation", tree, step) == NONE


def test_a_free_of_another_size_is_an_error_and_still_frees(tiny: TinyStore) -> None:
    step = events((1, "alloc", 8, "x"), (2, "free", 9, "x"), (3, "free", 8, "x"))
    assert judged(tiny, "allocation_size_mismatch", tree, step) == errors("cpu/a")
    assert memory_codes(tiny) == [("allocation_size_mismatch", "cpu/a"), ("unpaired_free", "cpu/a")]


def test_each_further_allocation_by_one_tensor_is_an_error(tiny: TinyStore) -> None:
    step = events(*[(time, "alloc", 8, tensor) for time, tensor in enumerate("xyxyy")], (9, "free", 8, "x"))
    assert judged(tiny, "duplicate_allocation", tree, step) == errors("cpu/a", "cpu/a", "cpu/a")


def test_a_tensor_may_allocate_again_after_the_free(tiny: TinyStore) -> None:
    step = events((1, "alloc", 8, "x"), (2, "free", 8, "x"), (3, "alloc", 8, "x"), (4, "free", 8, "x"))
    assert judged(tiny, "duplicate_allocation", tree, step) == NONE
    assert memory_codes(tiny) == []


def test_a_free_of_a_storage_that_is_not_live_is_an_error(tiny: TinyStore) -> None:
    assert judged(tiny, "unpaired_free", tree, events((1, "free", 8, "x"))) == errors("cpu/a")


def test_one_storage_id_on_two_devices_is_two_storages(tiny: TinyStore) -> None:
    steps = (events((1, "alloc", 8, "x")), events((2, "free", 8, "x"), device="cuda:0"))
    assert judged(tiny, "unpaired_free", tree, *steps) == errors("cuda:0/a")


def test_time_comes_before_position_and_position_breaks_ties(tiny: TinyStore) -> None:
    step = events((5, "free", 8, "x"), (3, "alloc", 8, "x"), (5, "alloc", 8, "x"), (5, "free", 8, "x"))
    assert judged(tiny, "unpaired_free", tree, step) == NONE
    assert memory_codes(tiny) == []


def test_storages_live_at_the_end_are_one_warning_with_their_number(tiny: TinyStore) -> None:
    steps = (events((1, "alloc", 8, "x"), (2, "alloc", 8, "y")), events((3, "alloc", 8, "z"), storage_id="b"))
    assert judged(tiny, "retained_allocations", tree, *steps) == warnings(None)
    query = "SELECT DISTINCT message FROM health_issues WHERE code = 'retained_allocations'"
    assert tiny.rows(query) == [("2 storages are live at the end; no free was recorded for them",)]


def walk(rows: list[tuple[int, str, str, str, int, str]]) -> Counter[tuple[str, str | None]]:
    """The live-state walk, event by event."""
    live: dict[tuple[str, str], tuple[int, set[str]]] = {}
    found: Counter[tuple[str, str | None]] = Counter()
    for _, device, storage, action, size, tensor in sorted(rows, key=lambda row: row[0]):
        key, subject = (device, storage), f"{device}/{storage}"
        if action == "free":
            if key not in live:
                found["unpaired_free", subject] += 1
            elif live.pop(key)[0] != size:
                found["allocation_size_mismatch", subject] += 1
        elif key not in live:
            live[key] = (size, {tensor})
        elif live[key][0] != size:
            found["allocation_size_mismatch", subject] += 1
        elif tensor in live[key][1]:
            found["duplicate_allocation", subject] += 1
        else:
            live[key][1].add(tensor)
    if live:
        found["retained_allocations", None] += 1
    return found


ROW = st.tuples(
    st.integers(0, 4),
    st.sampled_from(["cpu", "gpu"]),
    st.sampled_from("ab"),
    st.sampled_from(["alloc", "alloc", "free"]),
    st.sampled_from([8, 8, 9]),
    st.sampled_from("xy"),
)


@given(st.lists(ROW, max_size=14))
def test_memory_issues_are_those_a_walk_finds(rows: list[tuple[int, str, str, str, int, str]]) -> None:
    store = emptied().run()
    names = ("timestamp_ns", "device", "storage_id", "action", "bytes", "tensor_id")
    store.add("memory_events", *[{"span_id": "s1", **dict(zip(names, row, strict=True))} for row in rows])
    query = "SELECT code, subject FROM _health_memory_issues"
    assert Counter(store.rows(query)) == walk(rows)
