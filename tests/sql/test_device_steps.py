"""Steps are marked by spans, and ranks are compared by durations alone."""

from __future__ import annotations

from device_support import launch, step, traced, work
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import TinyStore, emptied

SETTINGS = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
STEPS = "SELECT step_number, launched_intervals, launched_busy_ns, window_busy_ns, window_idle_ns FROM step_breakdown"


def launched(store: TinyStore, at: int, start: int, duration: int, run_id: str = "r1", **values: object) -> None:
    """Device work with a launch of its own."""
    correlation = f"c{store.rows('SELECT count(*) FROM launches')[0][0]}"
    launch(store, at, correlation, run_id)
    work(store, start, duration, run_id, correlation_id=correlation, **values)


def test_a_step_owns_what_it_launched_and_sees_what_ran_during_it(tiny: TinyStore) -> None:
    # step 3 [0, 10)  step 4 [10, 20)   launched at 2, 9, 10; work [4, 7), [8, 14), [16, 19)
    traced(tiny)
    step(tiny, 3, 0, 10)
    step(tiny, 4, 10, 10)
    for at, start, duration in ((2, 4, 3), (9, 8, 6), (10, 16, 3)):
        launched(tiny, at, start, duration)
    assert tiny.rows(f"{STEPS} ORDER BY 1") == [(3, 2, 9, 5, 5), (4, 1, 3, 7, 3)]
    assert tiny.rows("SELECT host_wall_ns, name FROM step_breakdown WHERE step_number = 3") == [(10, "ProfilerStep#3")]


def test_work_on_a_clock_of_its_own_is_in_no_window(tiny: TinyStore) -> None:
    step(traced(tiny), 3, 0, 10)
    launched(tiny, 2, 4, 3, clock_id="gpu")
    assert tiny.rows(STEPS) == [(3, 1, 3, None, None)]


def test_work_without_any_launch_is_launched_by_no_step(tiny: TinyStore) -> None:
    step(traced(tiny), 3, 0, 10)
    work(tiny, 8, 4)
    assert tiny.rows(STEPS) == [(3, None, None, 2, 8)]


def test_a_step_that_launched_nothing_is_zero_where_others_launched(tiny: TinyStore) -> None:
    traced(tiny)
    step(tiny, 3, 0, 10)
    step(tiny, 4, 10, 10)
    launched(tiny, 2, 4, 3)
    assert tiny.rows(f"{STEPS} WHERE step_number = 4") == [(4, 0, 0, 0, 10)]


def test_a_run_without_device_work_still_has_its_steps(tiny: TinyStore) -> None:
    step(traced(tiny), 3, 0, 10)
    step(tiny, 4, 10, None)
    assert tiny.rows("SELECT step_number, host_wall_ns, device, window_busy_ns FROM step_breakdown") == [
        (3, 10, None, None)
    ]


def test_step_markers_of_the_user_take_the_place_of_the_built_in_ones(tiny: TinyStore) -> None:
    tiny.add("step_markers", {"name": "iteration %", "category": "user\\_%"})
    step(traced(tiny), 3, 0, 10)
    for name, category in (("Iteration 7 of run", "user_annotation"), ("iteration 8", "python"), ("iteration 9", None)):
        tiny.add("spans", {"id": name, "name": name, "duration_ns": 4, "category": category})
    assert tiny.rows("SELECT name, step_number, occurrence FROM step_breakdown") == [("Iteration 7 of run", 7, 1)]


time = st.integers(0, 14)
pieces = st.lists(st.tuples(time, time, st.integers(1, 6)), min_size=1, max_size=7)


@SETTINGS
@given(st.lists(st.tuples(time, st.integers(0, 8)), min_size=1, max_size=4), pieces)
def test_steps_are_those_of_a_walk_over_every_nanosecond(
    steps: list[tuple[int, int]], rows: list[tuple[int, int, int]]
) -> None:
    store = traced(emptied())
    for number, (start, length) in enumerate(steps):
        step(store, number, start, length)
    for at, start, length in rows:
        launched(store, at, start, length)
    expected = {}
    for number, (start, length) in enumerate(steps):
        mine = [row for row in rows if start <= row[0] < start + length]
        busy = {ns for _, begin, lasts in mine for ns in range(begin, begin + lasts)}
        ran = {ns for _, begin, lasts in rows for ns in range(begin, begin + lasts)} & set(range(start, start + length))
        expected[number] = (len(mine), len(busy), len(ran), length - len(ran))
    assert {row[0]: row[1:] for row in store.rows(STEPS)} == expected


def job(store: TinyStore, *ranks: int | None, job: str = "job") -> None:
    """One run a rank: a step as long as 10 times the rank and one, two collectives of 5 and of the rank."""
    for number, rank in enumerate(ranks):
        run_id = f"{job}{number}"
        traced(store, run_id, correlation_id=job, rank=rank)
        length = 10 * ((rank or 0) + 1)
        step(store, 1, 1000 * number, length, run_id)
        for duration in (5, rank or 0):
            launched(store, 1000 * number, 7000 * number + duration, duration, run_id, name="ncclAllReduce")


def test_ranks_are_measured_from_their_median(tiny: TinyStore) -> None:
    job(tiny, 0, 1, 4)
    query = "SELECT rank, ranks, duration_ns, duration_deviation_ns, busy_ns, communication_ns FROM rank_stragglers"
    assert tiny.rows(f"{query} WHERE kind = 'step' ORDER BY rank") == [
        (0, 3, 10, -10.0, 5, 5),
        (1, 3, 20, 0.0, 6, 6),
        (4, 3, 50, 30.0, 6, 6),
    ]


def test_the_rank_that_a_collective_waited_for_is_below_the_median(tiny: TinyStore) -> None:
    job(tiny, 1, 3, 4)
    query = "SELECT occurrence, rank, duration_ns, duration_deviation_ns FROM rank_stragglers"
    rows = tiny.rows(f"{query} WHERE kind = 'collective' AND duration_deviation_ns <> 0 ORDER BY rank")
    assert rows == [(1, 1, 1, -2.0), (1, 4, 4, 1.0)]
    assert tiny.rows("SELECT DISTINCT subject FROM rank_stragglers WHERE kind = 'collective'") == [("ncclAllReduce",)]


def test_collectives_match_by_group_and_not_when_the_counts_differ(tiny: TinyStore) -> None:
    job(tiny, 0, 1)
    for run_id, groups in (("job0", ("g", "h")), ("job1", ("g", "h", "h"))):
        for group in groups:
            seq = work(tiny, 90000, 3, run_id, name="ncclDevKernel")
            tiny.add("collectives", {"interval_seq": seq, "name": "allgather", "group_name": group}, run_id=run_id)
    query = "SELECT DISTINCT subject FROM rank_stragglers WHERE kind = 'collective' ORDER BY 1"
    assert tiny.rows(query) == [("allgather @ g",), ("ncclAllReduce",)]


def test_a_rank_that_two_runs_claim_makes_no_job(tiny: TinyStore) -> None:
    job(tiny, 0, 1, 1)
    job(tiny, 0, job="alone")
    job(tiny, None, None, job="silent")
    assert tiny.rows("FROM rank_stragglers") == []
