"""Rules about spans and their parents."""

from __future__ import annotations

from typing import Any

from health_support import NONE, Add, errors, judged, softened, tree
from hypothesis import given
from hypothesis import strategies as st

from support import TinyStore, emptied


def spans(*rows: dict[str, Any]) -> Any:
    """A build step that adds ended spans."""

    def step(add: Add) -> None:
        add("spans", *[{"duration_ns": 10, "end_seq": 0, **row} for row in rows])

    return step


def test_each_repetition_of_a_span_id_is_an_error(tiny: TinyStore) -> None:
    again = {"id": "s2", "parent_id": "s1", "start_ns": 10}
    assert judged(tiny, "duplicate_span_id", tree, spans(again, again)) == errors("s2", "s2")


def test_one_span_id_in_two_runs_is_no_repetition(tiny: TinyStore) -> None:
    assert judged(tiny, "duplicate_span_id", tree) == NONE


def test_an_open_span_is_an_error_only_in_a_complete_capture(tiny: TinyStore) -> None:
    opened = {"id": "s3", "parent_id": "s1", "start_ns": 20, "duration_ns": None, "end_seq": None}
    assert judged(tiny, "open_span", tree, spans(opened)) == softened("s3")


def test_a_span_of_zero_length_is_closed(tiny: TinyStore) -> None:
    assert judged(tiny, "open_span", tree, spans({"id": "s3", "parent_id": "s1", "duration_ns": 0})) == NONE


def test_an_unknown_parent_is_an_error_for_each_child(tiny: TinyStore) -> None:
    lost = [{"id": name, "parent_id": "s9"} for name in ("a", "b")]
    assert judged(tiny, "unknown_parent", tree, spans(*lost)) == errors("a", "b")


def test_a_parent_of_another_run_is_unknown(tiny: TinyStore) -> None:
    tiny.run("other").add("spans", {"id": "s9"}, run_id="other")
    assert judged(tiny, "unknown_parent", tree, spans({"id": "a", "parent_id": "s9"})) == errors("a")


def test_a_parent_recorded_later_is_known(tiny: TinyStore) -> None:
    late = [{"id": "a", "parent_id": "b"}, {"id": "b", "parent_id": "s1"}]
    assert judged(tiny, "unknown_parent", tree, spans(*late)) == NONE
    assert tiny.rows("FROM health_issues WHERE code = 'span_cycle'") == []


def test_a_child_must_stay_inside_its_parent_and_may_touch_it(tiny: TinyStore) -> None:
    # s2 is [10, 90]
    children = [
        {"id": "early", "start_ns": 9, "duration_ns": 10},
        {"id": "late", "start_ns": 20, "duration_ns": 71},
        {"id": "touching", "start_ns": 10, "duration_ns": 80},
    ]
    found = judged(tiny, "child_outside_parent", tree, spans(*[{**child, "parent_id": "s2"} for child in children]))
    assert found == errors("early", "late")


def test_an_open_span_is_neither_outside_nor_an_outside(tiny: TinyStore) -> None:
    rows = [
        {"id": "a", "parent_id": "s2", "start_ns": 500, "duration_ns": None},
        {"id": "b", "parent_id": "a", "start_ns": 1},
    ]
    assert judged(tiny, "child_outside_parent", tree, spans(*rows)) == NONE


def test_the_end_of_a_child_near_the_largest_integer_does_not_overflow(tiny: TinyStore) -> None:
    huge = {"id": "a", "parent_id": "s2", "start_ns": 2**63 - 1, "duration_ns": 2**63 - 1}
    assert judged(tiny, "child_outside_parent", tree, spans(huge)) == errors("a")


def test_every_span_on_or_behind_a_cycle_is_named(tiny: TinyStore) -> None:
    # a -> b -> a, and c behind it; d is its own parent
    pairs = [("a", "b"), ("b", "a"), ("c", "a"), ("d", "d")]
    step = spans(*[{"id": child, "parent_id": parent} for child, parent in pairs])
    assert judged(tiny, "span_cycle", tree, step) == errors("a", "b", "c", "d")


def revisits(parents: dict[int, int | None], start: int) -> bool:
    """Walk the parents of a span one by one."""
    seen: set[int] = set()
    here: int | None = start
    while here is not None and here in parents:
        if here in seen:
            return True
        seen.add(here)
        here = parents[here]
    return False


@given(st.lists(st.one_of(st.none(), st.integers(0, 9)), min_size=1, max_size=9))
def test_span_cycles_are_those_a_walk_finds(parents: list[int | None]) -> None:
    store = emptied().run()
    rows = [
        {"id": f"s{child}", "parent_id": None if parent is None else f"s{parent}"}
        for child, parent in enumerate(parents)
    ]
    store.add("spans", *rows)
    expected = [(f"s{child}",) for child in range(len(parents)) if revisits(dict(enumerate(parents)), child)]
    assert store.rows("SELECT subject FROM _health_span_issues WHERE code = 'span_cycle' ORDER BY ALL") == expected
