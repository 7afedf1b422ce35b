"""Launches meet device work by correlation id alone, and only a shared clock lets their times be compared."""

from __future__ import annotations

from device_support import CLOCK, launch, op, traced, work
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import TinyStore, emptied

SETTINGS = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
GAPS = "SELECT gap, start_ns, duration_ns, host_state FROM idle_gaps ORDER BY gap"


def test_gaps_lie_behind_everything_that_ran_so_far(tiny: TinyStore) -> None:
    # [0, 10) holds [2, 4); then [12, 13), a work of length 0 at 15, and [20, 21)
    traced(tiny)
    for start, duration in ((0, 10), (2, 2), (12, 1), (15, 0), (20, 1)):
        work(tiny, start, duration)
    assert tiny.rows(GAPS) == [(1, 10, 2, "unlaunched"), (2, 13, 7, "unlaunched")]


def test_a_gap_says_whether_its_launch_came_late(tiny: TinyStore) -> None:
    # gaps [2, 5) and [6, 9): launched at 3 and at 6, the instant the gap began
    traced(tiny)
    work(tiny, 0, 2)
    work(tiny, 5, 1, correlation_id="1", name="late")
    work(tiny, 9, 1, correlation_id="2", name="queued")
    work(tiny, 12, 1, correlation_id="9", name="lost")
    launch(tiny, 3, "1")
    launch(tiny, 6, "2")
    query = "SELECT next_name, host_state, launch_start_ns FROM idle_gaps ORDER BY gap"
    assert tiny.rows(query) == [
        ("late", "launched_late", 3),
        ("queued", "launched_before", 6),
        ("lost", "unlaunched", None),
    ]


def test_a_gap_on_another_clock_than_the_host_is_of_unknown_cause(tiny: TinyStore) -> None:
    traced(tiny)
    work(tiny, 0, 2, clock_id="gpu")
    work(tiny, 5, 1, clock_id="gpu", correlation_id="1")
    launch(tiny, 3, "1")
    assert tiny.rows(GAPS) == [(1, 2, 3, "unknown")]
    assert tiny.rows("FROM launch_latency") == []


def test_a_run_that_names_no_host_clock_shares_none(tiny: TinyStore) -> None:
    traced(tiny, host_clock=None)
    work(tiny, 0, 2)
    work(tiny, 5, 1, correlation_id="1")
    launch(tiny, 3, "1")
    assert tiny.rows(GAPS) == [(1, 2, 3, "unknown")]
    assert tiny.rows("FROM launch_latency") == []


def test_a_gap_names_the_operation_and_the_span_of_its_launch(tiny: TinyStore) -> None:
    traced(tiny).add("spans", {"id": "fwd", "name": "forward", "start_ns": 0, "duration_ns": 9})
    seq = op(tiny, "aten::mm")
    op(tiny, "aten::add", external_id="7")
    work(tiny, 0, 2)
    work(tiny, 5, 1, correlation_id="1")
    work(tiny, 9, 1, correlation_id="2", external_id="7")
    launch(tiny, 3, "1", op_seq=seq, span_id="fwd")
    launch(tiny, 3, "2")
    query = "SELECT op_name, span_name FROM idle_gaps ORDER BY gap"
    assert tiny.rows(query) == [("aten::mm", "forward"), ("aten::add", None)]


def test_a_negative_latency_is_kept_and_said(tiny: TinyStore) -> None:
    traced(tiny)
    work(tiny, 10, 1, correlation_id="1")
    work(tiny, 10, 1, correlation_id="2")
    launch(tiny, 4, "1")
    launch(tiny, 13, "2")
    query = "SELECT latency_ns, starts_before_launch FROM launch_latency ORDER BY seq"
    assert tiny.rows(query) == [(6, False), (-3, True)]


def test_the_launch_of_an_id_is_the_one_that_began_first(tiny: TinyStore) -> None:
    traced(tiny)
    work(tiny, 10, 1, correlation_id="1")
    launch(tiny, 5, "1", name="cuLaunchKernel")
    launch(tiny, 4, "1")
    assert tiny.rows("SELECT launch_name, latency_ns FROM launch_latency") == [("cudaLaunchKernel", 6)]


def test_ids_of_another_run_are_other_ids(tiny: TinyStore) -> None:
    traced(traced(tiny, "r2"))
    work(tiny, 10, 1, correlation_id="1")
    launch(tiny, 4, "1", "r2")
    assert tiny.rows("FROM launch_latency") == []


def test_launch_facts_by_hand(tiny: TinyStore) -> None:
    traced(tiny)
    for correlation in ("1", "1", "2", None, None):
        launch(tiny, 0, correlation)
    for correlation in ("1", "3", "4", "4", None):
        work(tiny, 0, 1, correlation_id=correlation)
    assert tiny.rows("SELECT * EXCLUDE (run_id) FROM launch_facts") == [(5, 2, 1, 5, 1, 3, 1, 1)]


def linked(store: TinyStore) -> None:
    """Work of each kind of link: [0, 4) and [2, 6) of one op by launch, [10, 11) by external id, and three without."""
    traced(store)
    mm = op(store, "mm")
    op(store, "mm", external_id="e")
    work(store, 0, 4, correlation_id="1")
    work(store, 2, 4, correlation_id="1")
    work(store, 10, 1, external_id="e")
    work(store, 20, 5)
    work(store, 30, 6, correlation_id="8")
    work(store, 40, 7, correlation_id="9")
    launch(store, 0, "1", op_seq=mm)
    launch(store, 0, "9", external_id="nowhere")


def test_device_time_of_operations_adds_up_to_all_device_time(tiny: TinyStore) -> None:
    linked(tiny)
    query = "SELECT op_name, unlinked_reason, interval_count, total_ns, busy_ns FROM op_device_time ORDER BY total_ns"
    assert tiny.rows(query) == [
        ("mm", None, 1, 1, 1),
        (None, "no_correlation_id", 1, 5, 5),
        (None, "launch_not_recorded", 1, 6, 6),
        (None, "launch_outside_operations", 1, 7, 7),
        ("mm", None, 2, 8, 6),
    ]
    assert tiny.rows("SELECT sum(total_ns) FROM op_device_time") == [(27,)]


def test_device_time_by_name_joins_the_operations_of_a_name(tiny: TinyStore) -> None:
    linked(tiny)
    query = "SELECT op_count, interval_count, total_ns, busy_ns, share FROM op_name_device_time WHERE op_name = 'mm'"
    assert tiny.rows(query) == [(2, 3, 9, 7, 9 / 27)]
    assert tiny.rows("SELECT sum(total_ns), sum(op_count) FROM op_name_device_time") == [(27, 2)]


def test_two_streams_overlap_where_both_are_busy(tiny: TinyStore) -> None:
    # stream 7   [0, 6) [4, 8)   [10, 12)
    # stream 20     [3, 11)                  both busy [3, 8) and [10, 11)
    traced(tiny)
    for start, duration, stream in ((0, 6, "7"), (4, 4, "7"), (10, 2, "7"), (3, 8, "20"), (5, 0, "9")):
        work(tiny, start, duration, stream_id=stream)
    work(tiny, 0, 99, stream_id="8", clock_id="another")
    query = "SELECT clock_id, stream_id, other_stream_id, overlap_ns FROM stream_overlaps"
    assert tiny.rows(query) == [(CLOCK, "20", "7", 6)]


interval = st.tuples(st.integers(-4, 12), st.integers(0, 6), st.sampled_from("123"), st.sampled_from("ab"))


@SETTINGS
@given(st.lists(interval, max_size=12))
def test_stream_overlaps_and_gaps_are_those_of_a_walk_over_every_nanosecond(
    rows: list[tuple[int, int, str, str]],
) -> None:
    store = traced(emptied())
    overlaps: dict[tuple[str, str, str], int] = {}
    gaps: dict[str, int] = {}
    for clock in "ab":
        mine = [(start, start + length, stream) for start, length, stream, on in rows if on == clock and length]
        for at in range(min((s for s, _, _ in mine), default=0), max((e for _, e, _ in mine), default=0)):
            busy = sorted({stream for start, end, stream in mine if start <= at < end})
            for pair in ((one, other) for one in busy for other in busy if one < other):
                overlaps[clock, *pair] = overlaps.get((clock, *pair), 0) + 1
            if not busy:
                gaps[clock] = gaps.get(clock, 0) + 1
    for start, length, stream, clock in rows:
        work(store, start, length, stream_id=stream, clock_id=clock)
    found = store.rows("SELECT clock_id, stream_id, other_stream_id, overlap_ns FROM stream_overlaps")
    assert {tuple(row[:3]): row[3] for row in found} == overlaps
    assert dict(store.rows("SELECT clock_id, sum(duration_ns) FROM idle_gaps GROUP BY 1")) == gaps


def test_pairs_of_more_streams_than_one_walk_holds(tiny: TinyStore) -> None:
    # stream n runs [n, n + 2): it meets the next one for 1 ns, and nothing else; 150 streams are three blocks
    traced(tiny)
    for number in range(150):
        work(tiny, number, 2, stream_id=f"{number:03}")
    rows = tiny.rows("SELECT stream_id, other_stream_id, overlap_ns FROM stream_overlaps ORDER BY 1")
    assert rows == [(f"{number:03}", f"{number + 1:03}", 1) for number in range(149)]


maybe = st.sampled_from([None, "1", "2", "3"])


@SETTINGS
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6), maybe, maybe), max_size=8),
    st.lists(st.tuples(maybe, maybe, st.booleans()), max_size=5),
    st.lists(st.tuples(st.sampled_from(["mm", "add"]), maybe), min_size=1, max_size=3),
)
def test_device_time_of_operations_is_that_of_a_search_by_hand(
    works: list[tuple[int, int, str | None, str | None]],
    calls: list[tuple[str | None, str | None, bool]],
    ops: list[tuple[str, str | None]],
) -> None:
    store = traced(emptied())
    seqs = [op(store, name, external_id=external) for name, external in ops]
    placed = [(correlation, external, seqs[0] if inside else None) for correlation, external, inside in calls]
    for correlation, external, inside in placed:
        launch(store, 0, correlation, external_id=external, op_seq=inside)
    by_external = {external: seq for seq, (_, external) in reversed(list(zip(seqs, ops, strict=True)))}
    expected: dict[tuple[int | None, str | None], tuple[int, int, set[int]]] = {}
    for start, length, correlation, external in works:
        work(store, start, length, correlation_id=correlation, external_id=external)
        found = next((call for call in placed if correlation is not None and call[0] == correlation), None)
        named = (found and found[1]) or external
        seq = found[2] if found and found[2] is not None else by_external.get(named) if named else None
        lost = "launch_not_recorded" if found is None else "launch_outside_operations"
        reason = None if seq is not None else "no_correlation_id" if correlation is None else lost
        count, total, busy = expected.get((seq, reason), (0, 0, set()))
        expected[seq, reason] = (count + 1, total + length, busy | set(range(start, start + length)))
    query = "SELECT op_seq, unlinked_reason, interval_count, total_ns, busy_ns FROM op_device_time"
    found_rows = {(row[0], row[1]): row[2:] for row in store.rows(query)}
    assert found_rows == {key: (count, total, len(busy)) for key, (count, total, busy) in expected.items()}
