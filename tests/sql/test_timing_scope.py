"""The measured region: who is in it, and what ranks highest inside it (protocol 4.4)."""

from __future__ import annotations

from typing import Any

import pytest
from plane_store import BIG, example, expected, op, span

from support import TinyStore, emptied


@pytest.fixture
def store() -> TinyStore:
    return emptied().run()


def scopes(store: TinyStore) -> dict[str, str]:
    return dict(store.rows("SELECT span_id, scope FROM _measured_scope"))


def ranked(store: TinyStore, columns: str) -> list[tuple[Any, ...]]:
    return store.rows(f"SELECT {columns} FROM slowest_host ORDER BY run_id, rank")


def wall(store: TinyStore) -> list[tuple[Any, ...]]:
    return store.rows("SELECT run_id, span_id, outer_wall_time_ns, qualified FROM outer_wall_time ORDER BY run_id")


def test_a_span_is_below_above_or_beside_the_measured_span(store: TinyStore) -> None:
    for id_, parent_id in (("top", None), ("mid", "top"), ("m", "mid"), ("low", "m"), ("lower", "low"), ("by", "mid")):
        span(store, id_, parent_id, 0, 9, measured=id_ == "m")
    span(store, "lost", "gone", 0, 9)
    assert scopes(store) == {
        "top": "ancestor",
        "mid": "ancestor",
        "m": "measured_subtree",
        "low": "measured_subtree",
        "lower": "measured_subtree",
        "by": "concurrent_overlap",
        "lost": "concurrent_overlap",
    }
    subtree = store.rows("SELECT span_id FROM _measured_subtree ORDER BY span_id")
    assert subtree == [("low",), ("lower",), ("m",)]


@pytest.mark.parametrize("measured", [(), ("a", "b"), ("open",)])
def test_a_run_without_exactly_one_closed_measured_span_has_no_region(store: TinyStore, measured: tuple[str]) -> None:
    span(store, "a", None, 0, 9, measured="a" in measured)
    span(store, "b", "a", 0, 9, measured="b" in measured)
    span(store, "open", "a", 0, None, measured="open" in measured)
    assert scopes(store) == {}
    assert ranked(store, "*") == []
    assert store.rows("FROM heaviest") == []
    assert store.rows("FROM slowest_device") == []


def test_parents_in_a_circle_end_and_are_below(store: TinyStore) -> None:
    span(store, "m", "p", 0, 9, measured=True)
    span(store, "p", "m", 0, 9)
    span(store, "x", "y", 0, 9)
    span(store, "y", "x", 0, 9)
    assert scopes(store) == {
        "m": "measured_subtree", "p": "measured_subtree", "x": "concurrent_overlap", "y": "concurrent_overlap"
    }  # fmt: skip


def test_spans_and_their_children_are_clipped_to_the_window(store: TinyStore) -> None:
    # window [100, 200); by [50, 150) overlaps 50 of it; its children [60, 110) and [140, 160) take 10 and 20
    span(store, "s1", None, 0, 300)
    span(store, "m", "s1", 100, 100, measured=True)
    span(store, "by", "s1", 50, 100)
    span(store, "by1", "by", 60, 50)
    op(store, "by", 140, 20)
    columns = (
        "id, scope, measured_overlap_self_time_ns, host_self_time_ns, full_duration_ns, measured_overlap_duration_ns"
    )
    assert ranked(store, columns) == [
        ("m", "measured_subtree", 100, 100, 100, 100),
        ("by", "concurrent_overlap", 20, 30, 100, 50),
        ("by1", "concurrent_overlap", 10, 50, 50, 10),
    ]


def test_spans_that_only_touch_the_window_are_left_out(store: TinyStore) -> None:
    span(store, "s1", None, 0, 300)
    span(store, "m", "s1", 100, 100, measured=True)
    span(store, "before", "s1", 0, 100)
    span(store, "after", "s1", 200, 100)
    span(store, "instant", "s1", 150, 0)
    assert ranked(store, "id, rank") == [("m", 1)]


def test_ties_go_to_the_larger_self_time_then_the_smaller_id(store: TinyStore) -> None:
    # protocol order: overlap self, full self, id; z and a are alike, full has more outside the window
    span(store, "s1", None, 0, 120)
    span(store, "m", "s1", 20, 60, measured=True)
    span(store, "n", "m", 30, 10)
    for id_ in ("z", "a"):
        span(store, id_, "s1", 60, 30)
    span(store, "full", "s1", 0, 40)
    assert ranked(store, "id, measured_overlap_self_time_ns, host_self_time_ns, rank") == [
        ("m", 50, 50, 1),
        ("full", 20, 40, 2),
        ("a", 20, 30, 3),
        ("z", 20, 30, 4),
        ("n", 10, 10, 5),
    ]


def test_a_root_span_of_kind_op_ranks_and_a_nested_one_does_not(store: TinyStore) -> None:
    span(store, "root", None, 0, 50, span_kind="op")
    span(store, "m", None, 0, 100, measured=True)
    span(store, "nested", "m", 0, 50, span_kind="op")
    assert ranked(store, "id") == [("m",), ("root",)]


def test_a_measured_span_of_duration_0_opens_the_window_of_what_lies_under_it(store: TinyStore) -> None:
    span(store, "m", None, 100, 0, measured=True)
    span(store, "low", "m", 105, 20)
    columns = "id, measured_overlap_duration_ns, measured_overlap_self_time_ns, full_duration_ns"
    assert ranked(store, columns) == [("low", 15, 15, 20), ("m", 20, 5, 20)]  # window [100, 120)
    assert wall(store) == [("r1", "m", 0, False)]  # the recorded duration; low outside m is invalid


def test_the_largest_times_do_not_overflow(store: TinyStore) -> None:
    span(store, "m", None, 0, BIG, measured=True)
    span(store, "far", "m", BIG - 1, BIG)
    assert ranked(store, "id, measured_overlap_duration_ns, measured_overlap_self_time_ns") == [
        ("m", BIG, BIG - 1),
        ("far", 1, 1),
    ]


def test_runs_are_ranked_by_themselves(store: TinyStore) -> None:
    store.run("r2", outcome=None)
    for run_id in ("r1", "r2"):
        span(store, "m", None, 0, 10, measured=True, run_id=run_id)
        span(store, "low", "m", 0, 7, run_id=run_id)
    assert ranked(store, "run_id, id, rank") == [("r1", "low", 1), ("r1", "m", 2), ("r2", "low", 1), ("r2", "m", 2)]


def test_device_work_of_the_subtree_ranks_whatever_the_kind_of_span(store: TinyStore) -> None:
    span(store, "s1", None, 0, 90)
    span(store, "m", "s1", 0, 50, measured=True, name="step")
    span(store, "low", "m", 0, 50, span_kind="op", name="matmul")
    rows = [("s1", 0, 99, "c"), ("low", 5, 20, "d"), ("low", 0, 20, "c"), ("m", 0, 30, "c"), ("unknown", 0, 50, "c")]
    names = ("span_id", "start_ns", "duration_ns", "clock_id")
    store.add("device_intervals", *(dict(zip(names, row, strict=True)) for row in rows))
    got = store.rows("SELECT id, name, device, clock_id, device_busy_ns, rank FROM slowest_device ORDER BY rank")
    assert got == [
        ("m", "step", "cuda:0", "c", 30, 1),
        ("low", "matmul", "cuda:0", "c", 20, 2),
        ("low", "matmul", "cuda:0", "d", 20, 3),
    ]


def test_wall_time_has_a_row_for_every_run_and_is_null_without_one_closed_measured_span(store: TinyStore) -> None:
    store.run("r2", outcome=None).run("r3", outcome="failed", failure_reason="x").run("r4")
    span(store, "m", None, 0, 5, measured=True, run_id="r1")
    span(store, "open", None, 0, None, measured=True, run_id="r2")
    span(store, "m", None, 0, 7, measured=True, run_id="r3")
    for id_ in ("m", "n"):
        span(store, id_, None, 0, 7, measured=True, run_id="r4")
    rows = [row[:3] for row in wall(store)]
    assert rows == [("r1", "m", 5), ("r2", None, None), ("r3", "m", 7), ("r4", None, None)]


def test_wall_time_is_qualified_for_valid_and_complete_captures_only() -> None:
    store = example()
    assert wall(store) == [("run-every-kind", "s2", 800, True)]
    store.con.execute("UPDATE runs SET outcome = 'failed', failure_reason = 'boom'")
    assert wall(store) == [("run-every-kind", "s2", 800, False)]


def test_the_worked_example_has_the_protocols_ranking() -> None:
    store = example()
    rows = store.con.execute("SELECT * EXCLUDE (run_id, rank) FROM slowest_host ORDER BY rank")
    names = [column[0] for column in rows.description]
    ranking = [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
    assert ranking == expected("host")["slowest_host_spans"]
    device = store.rows("SELECT id, device_busy_ns FROM slowest_device ORDER BY rank")
    assert device == [("s4", 150), ("s3", 60)]
