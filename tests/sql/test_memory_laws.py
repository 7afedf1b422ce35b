"""The memory views against walks over the same events: aliases, ties, unpaired frees, several devices and runs."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from plane_store import BIG
from plane_walks import lifetimes, live_at, peak, subtree_memory, timeline

from support import TinyStore, emptied

RUNS = ("r1", "r2")
Events = list[dict[str, Any]]
event = st.fixed_dictionaries(
    {
        "timestamp_ns": st.one_of(st.integers(0, 8), st.sampled_from([BIG - 1, BIG])),
        "device": st.sampled_from(("cpu", "cuda:0")),
        "storage_id": st.sampled_from("ab"),
        "tensor_id": st.sampled_from("tuv"),
        "span_id": st.sampled_from(("s0", "s1", "s2", "gone")),
        "op_name": st.none(),
        "category": st.sampled_from(("activation", "gradient")),
        "bytes": st.one_of(st.integers(0, 9), st.sampled_from([BIG - 1, BIG])),
        "action": st.sampled_from(("alloc", "alloc", "free")),
    }
)
runs_of_events = st.lists(st.lists(event, max_size=12), min_size=1, max_size=2)
span_rows = st.tuples(
    *(
        st.fixed_dictionaries(
            {
                "id": st.just(f"s{n}"),
                "parent_id": st.sampled_from((None, "s0", "s1", "s2", "gone")),
                "start_ns": st.one_of(st.integers(0, 8), st.just(BIG)),
                "duration_ns": st.one_of(st.none(), st.integers(0, 6), st.just(BIG)),
            }
        )
        for n in range(3)
    )
)


def loaded(runs: list[Events]) -> tuple[TinyStore, dict[str, Events]]:
    """A store with the events of each run, and the events by run."""
    store, by_run = emptied(), dict(zip(RUNS, runs, strict=False))
    for run_id, events in by_run.items():
        store.run(run_id).add("memory_events", *events, run_id=run_id)
    return store, by_run


@given(runs_of_events)
def test_lifetimes_are_those_of_a_walk_over_the_events(runs: list[Events]) -> None:
    store, by_run = loaded(runs)
    columns = "run_id, start_timestamp_ns, device, storage_id, end_timestamp_ns, bytes, category, tensor_ids"
    order = "run_id, start_timestamp_ns, device, storage_id, alloc_seq"
    rows = store.rows(f"SELECT {columns}, allocation_span_id FROM storage_lifetimes ORDER BY {order}")
    assert rows == [
        (run_id, row["timestamp_ns"], row["device"], row["storage_id"], row["end"], row["bytes"], row["category"],
         sorted(row["tensors"]), row["span_id"])
        for run_id, events in by_run.items()
        for row in sorted(lifetimes(events), key=lambda row: (row["timestamp_ns"], row["device"], row["storage_id"]))
    ]  # fmt: skip


@given(runs_of_events)
def test_the_timeline_is_that_of_a_walk_point_by_point(runs: list[Events]) -> None:
    store, by_run = loaded(runs)
    for view, key in (("live_bytes", None), ("live_bytes_by_device", "device"), ("live_bytes_by_category", "category")):
        columns = ", ".join(name for name in ("run_id", "timestamp_ns", key, "live_bytes") if name)
        wanted = [(run_id, *point) for run_id, events in by_run.items() for point in timeline(events, key)]
        assert store.rows(f"SELECT {columns} FROM {view} ORDER BY ALL") == wanted


@given(runs_of_events)
def test_peaks_are_those_of_a_walk_overall_and_per_device(runs: list[Events]) -> None:
    store, by_run = loaded(runs)
    wanted = []
    for run_id, events in by_run.items():
        for device in (None, *sorted({row["device"] for row in events})) if events else ():
            wanted.append((run_id, device, *peak([row for row in events if device in (None, row["device"])])))
    assert store.rows("FROM live_bytes_peak ORDER BY run_id, device NULLS FIRST") == wanted


@given(runs_of_events)
def test_the_storages_at_a_peak_add_up_to_it(runs: list[Events]) -> None:
    store, by_run = loaded(runs)
    wanted = []
    for run_id, events in by_run.items():
        for device in (None, *sorted({row["device"] for row in events})):
            chosen = [row for row in events if device in (None, row["device"])]
            found = live_at(lifetimes(chosen), peak(chosen)[4]) if lifetimes(chosen) else []
            wanted += [(run_id, device, row["device"], row["storage_id"], row["bytes"]) for row in found]
    columns = "run_id, peak_device, device, storage_id, bytes"
    assert sorted(store.rows(f"SELECT {columns} FROM live_bytes_peak_storages"), key=str) == sorted(wanted, key=str)
    sums = "SELECT run_id, peak_device AS device, sum(bytes) AS live FROM live_bytes_peak_storages GROUP BY ALL"
    join = "sums.run_id = peak.run_id AND sums.device IS NOT DISTINCT FROM peak.device"
    broken = (
        f"FROM live_bytes_peak AS peak LEFT JOIN ({sums}) AS sums ON {join} WHERE peak_live_bytes <> coalesce(live, 0)"
    )
    assert store.rows(broken) == []


@given(st.lists(st.tuples(span_rows, st.lists(event, max_size=10), st.booleans()), min_size=1, max_size=2))
def test_node_memory_is_that_of_a_walk_also_where_parents_form_a_circle(runs: list[Any]) -> None:
    store, wanted = emptied(), []
    for run_id, (spans, events, complete) in zip(RUNS, runs, strict=False):
        store.run(run_id, contract={"logical_memory": "complete" if complete else "partial"})
        store.add("spans", *({"end_seq": 0, **span} for span in spans), run_id=run_id)
        store.add("memory_events", *events, run_id=run_id)
        absent = 0 if complete and events else None
        for span in spans:
            direct = [row["bytes"] for row in lifetimes(events) if row["span_id"] == span["id"]]
            closed = span["duration_ns"] is not None
            under = (subtree_memory(spans, events, span) or (absent, absent)) if closed else (None, None)
            wanted.append((run_id, span["id"], sum(direct) if direct else absent, *under))
    columns = "run_id, node_id, allocated_bytes, peak_live_bytes, residual_bytes"
    assert store.rows(f"SELECT {columns} FROM node_memory ORDER BY run_id, node_id") == wanted
