"""The window of a device clock is cut up exactly: each nanosecond is in one set of classes."""

from __future__ import annotations

from typing import Any

from device_support import traced, work
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import TinyStore, emptied

CLASSES = {"compute": "k", "communication": "ncclKernel", "memcpy": "[memcpy]", "other": "x"}
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def classed(store: TinyStore, start: int, duration: int, name: str, **values: Any) -> None:
    category = "kernel" if name in ("compute", "communication") else None
    work(store, start, duration, name=CLASSES[name], category=category, **values)


def breakdown(store: TinyStore) -> dict[str, int]:
    return dict(store.rows("SELECT classes, duration_ns FROM device_time_breakdown"))


def test_overlap_is_in_one_row_only(tiny: TinyStore) -> None:
    # compute        0....4      8..10
    # communication    2......7                 idle [7, 8), window 10
    traced(tiny)
    for start, duration, name in ((0, 4, "compute"), (8, 2, "compute"), (2, 5, "communication")):
        classed(tiny, start, duration, name)
    assert breakdown(tiny) == {"compute": 4, "communication+compute": 2, "communication": 3, "idle": 1}
    query = "SELECT DISTINCT window_ns, round(sum(share) OVER (), 9) FROM device_time_breakdown"
    assert tiny.rows(query) == [(10, 1.0)]
    query = "SELECT class, interval_count, total_ns, union_ns, exclusive_ns, overlapped_ns FROM device_class_time"
    assert tiny.rows(f"{query} ORDER BY class") == [("communication", 1, 5, 5, 3, 2), ("compute", 2, 6, 6, 4, 2)]
    query = "SELECT compute_ns, communication_ns, overlapped_ns, exposed_ns, overlap_ratio FROM comm_compute_overlap"
    assert tiny.rows(query) == [(6, 5, 2, 3, 0.4)]


def test_no_communication_gives_no_overlap_ratio(tiny: TinyStore) -> None:
    classed(traced(tiny), 0, 4, "compute")
    assert tiny.rows("SELECT communication_ns, overlap_ratio FROM comm_compute_overlap") == [(0, None)]


def test_overlap_with_a_copy_is_no_overlap_with_compute(tiny: TinyStore) -> None:
    traced(tiny)
    classed(tiny, 0, 4, "communication")
    classed(tiny, 2, 4, "memcpy")
    assert tiny.rows("SELECT overlapped_ns, overlap_ratio FROM comm_compute_overlap") == [(0, 0.0)]
    assert breakdown(tiny) == {"communication": 2, "communication+memcpy": 2, "memcpy": 2}


def test_work_of_length_zero_has_a_count_and_widens_no_window(tiny: TinyStore) -> None:
    traced(tiny)
    classed(tiny, 0, 0, "memcpy")
    assert breakdown(tiny) == {}
    classed(tiny, 10, 5, "compute")
    assert breakdown(tiny) == {"compute": 5}
    query = "SELECT interval_count, union_ns, exclusive_ns, overlapped_ns FROM device_class_time WHERE class = 'memcpy'"
    assert tiny.rows(query) == [(1, 0, 0, 0)]


def test_two_clocks_are_two_windows(tiny: TinyStore) -> None:
    traced(tiny)
    classed(tiny, 0, 4, "compute", clock_id="a")
    classed(tiny, 100, 4, "compute", clock_id="b")
    assert tiny.rows("SELECT clock_id, window_ns FROM device_time_breakdown ORDER BY 1") == [("a", 4), ("b", 4)]


def test_times_at_the_end_of_the_range_do_not_overflow(tiny: TinyStore) -> None:
    traced(tiny)
    classed(tiny, 2**63 - 5, 2**63 - 1, "compute")
    classed(tiny, -(2**63), 1, "communication")
    assert breakdown(tiny) == {"communication": 1, "compute": 2**63 - 1, "idle": 2**64 - 6}


interval = st.tuples(st.integers(0, 12), st.integers(0, 6), st.sampled_from(sorted(CLASSES)), st.sampled_from("ab"))


@SETTINGS
@given(st.lists(interval, max_size=12))
def test_sets_are_those_of_a_walk_over_every_nanosecond(rows: list[tuple[int, int, str, str]]) -> None:
    store = traced(emptied())
    expected: dict[tuple[str, str], int] = {}
    for clock in "ab":
        mine = [(start, start + length, name) for start, length, name, on in rows if on == clock and length]
        for at in range(min((s for s, _, _ in mine), default=0), max((e for _, e, _ in mine), default=0)):
            running = sorted({name for start, end, name in mine if start <= at < end})
            key = (clock, "+".join(running) or "idle")
            expected[key] = expected.get(key, 0) + 1
    for start, length, name, clock in rows:
        classed(store, start, length, name, clock_id=clock)
    found = store.rows("SELECT clock_id, classes, duration_ns, window_ns FROM device_time_breakdown")
    assert {(clock, names): ns for clock, names, ns, _ in found} == expected
    for clock in "ab":
        assert {w for c, _, _, w in found if c == clock} <= {sum(ns for (c, _), ns in expected.items() if c == clock)}
