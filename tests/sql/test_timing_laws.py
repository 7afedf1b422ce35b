"""The timing views against walks over the same rows: any intervals, any tree of spans, several runs at once."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from plane_store import BIG
from plane_walks import above, children, total_ns, union_ns

from support import emptied

RUNS = ("r1", "r2")
times = st.one_of(st.integers(0, 12), st.sampled_from([BIG - 1, BIG]))
durations = st.one_of(st.integers(0, 6), st.sampled_from([BIG - 1, BIG]))
interval_rows = st.lists(
    st.fixed_dictionaries(
        {
            "run_id": st.sampled_from(RUNS),
            "span_id": st.sampled_from("ab"),
            "device": st.sampled_from(("cpu", "cuda:0")),
            "clock_id": st.sampled_from("cd"),
            "stream_id": st.sampled_from("78"),
            "backend": st.sampled_from("xy"),
            "start_ns": times,
            "duration_ns": durations,
        }
    ),
    max_size=14,
)


@st.composite
def trees(draw: st.DrawFn, largest: bool = True) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Spans whose parents come earlier, are unknown or absent, the first one measured or none; and their operations."""
    start, length = (times, durations) if largest else (st.integers(0, 12), st.integers(0, 8))
    count = draw(st.integers(1, 6))
    spans = [
        {
            "id": f"s{n}",
            "parent_id": draw(st.sampled_from([None, "gone", *(f"s{m}" for m in range(n))])),
            "start_ns": draw(start),
            "duration_ns": draw(st.one_of(st.none(), length)),
            "span_kind": draw(st.sampled_from(("function", "module", "op"))),
            "measured": False,
        }
        for n in range(count)
    ]
    op = st.fixed_dictionaries(
        {
            "span_id": st.sampled_from(["s9", *(span["id"] for span in spans)]),
            "timestamp_ns": start,
            "duration_ns": length,
        }
    )
    return spans, [{**row, "op_name": "f"} for row in draw(st.lists(op, max_size=6))]


@given(interval_rows)
def test_busy_time_is_the_union_of_the_intervals_of_its_key(rows: list[dict[str, Any]]) -> None:
    store = emptied()
    for run_id in RUNS:
        own = [{name: row[name] for name in row if name != "run_id"} for row in rows if row["run_id"] == run_id]
        store.add("device_intervals", *own, run_id=run_id)
    keys = {
        "device_clock_busy": ("run_id", "device", "clock_id"),
        "device_stream_busy": ("run_id", "device", "clock_id", "stream_id"),
        "device_span_busy": ("run_id", "span_id", "device", "clock_id"),
    }
    for view, key in keys.items():
        groups: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
        for row in rows:
            groups[tuple(row[name] for name in key)].append((row["start_ns"], row["start_ns"] + row["duration_ns"]))
        wanted = sorted((*group, len(pairs), union_ns(pairs)) for group, pairs in groups.items())
        assert store.rows(f"SELECT {', '.join(key)}, interval_count, busy_ns FROM {view} ORDER BY ALL") == wanted


@given(st.lists(trees(), min_size=1, max_size=2))
def test_host_times_are_those_of_a_walk_over_the_tree(runs: list[Any]) -> None:
    store, wanted = emptied(), []
    for run_id, (spans, ops) in zip(RUNS, runs, strict=False):
        store.add("spans", *({"end_seq": 0, **span} for span in spans), run_id=run_id).add("ops", *ops, run_id=run_id)
        for span in spans:
            total = total_ns(spans, ops, span)
            own = max(total - union_ns(children(spans, ops, span["id"])), 0)
            wanted.append((run_id, span["id"], total, own))
    columns = "run_id, node_id, host_total_time_ns, host_self_time_ns"
    rows = store.rows(f"SELECT {columns} FROM host_self_time WHERE node_id NOT LIKE '%/op/%' ORDER BY ALL")
    assert rows == sorted(wanted)


@given(st.lists(trees(largest=False), min_size=1, max_size=2), st.data())
def test_the_ranking_is_that_of_a_walk_clipped_to_the_window(runs: list[Any], data: st.DataObject) -> None:
    store, wanted = emptied(), []
    for run_id, (spans, ops) in zip(RUNS, runs, strict=False):
        measured = data.draw(st.sampled_from(spans))
        measured["measured"] = True
        store.add("spans", *({"end_seq": 0, **span} for span in spans), run_id=run_id).add("ops", *ops, run_id=run_id)
        if measured["duration_ns"] is not None:
            wanted += [(run_id, *row) for row in ranking(spans, ops, measured)]
    columns = "run_id, id, scope, measured_overlap_duration_ns, measured_overlap_self_time_ns, host_self_time_ns"
    assert store.rows(f"SELECT {columns} FROM slowest_host ORDER BY run_id, rank") == wanted


def ranking(spans: list[Any], ops: list[Any], measured: dict[str, Any]) -> list[tuple[Any, ...]]:
    """(id, scope, overlap, overlap self, self) of every ranked span, in order."""
    low, high = measured["start_ns"], measured["start_ns"] + total_ns(spans, ops, measured)
    found = []
    for span in spans:
        below = measured["id"] in above(spans, span["id"])
        excluded = not below and span["id"] in above(spans, measured["id"])
        total = total_ns(spans, ops, span)
        overlap = min(high, span["start_ns"] + total) - max(low, span["start_ns"])
        if excluded or overlap <= 0 or (span["span_kind"] == "op" and span["parent_id"] is not None):
            continue
        inside = [(max(low, start), min(high, end)) for start, end in children(spans, ops, span["id"])]
        covered = union_ns((start, end) for start, end in inside if start < end)
        own = max(total - union_ns(children(spans, ops, span["id"])), 0)
        scope = "measured_subtree" if below else "concurrent_overlap"
        found.append((span["id"], scope, overlap, max(overlap - covered, 0), own))
    return sorted(found, key=lambda row: (-row[3], -row[4], row[0]))
