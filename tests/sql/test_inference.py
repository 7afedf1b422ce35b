"""GPU time of iterations and requests: nothing is counted twice, and what nobody owns is told by reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.store import Store
from planewise.pipeline.stores import open_store
from support import TinyStore, emptied

DATA = Path(__file__).parents[1] / "data" / "stormlog"
SETTINGS = settings(max_examples=35, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Any:
    store = Store.open(tmp_path_factory.mktemp("s") / "store", create=True)
    ingest_sources(store, [DATA / "run.jsonl"])
    with open_store(store.path) as opened:
        yield lambda query: opened.sql(query).fetchall()


def test_the_accounting_of_the_example_comes_out(example: Any) -> None:
    query = "SELECT iteration_id, elapsed_ns, summed_ns, busy_ns, exclusive_ns, activity_count FROM iteration_gpu_time"
    assert example(query + " ORDER BY 1") == [
        ("demo.engine/it-1", 3000, 4500, 3500, 3500, 2),
        ("demo.engine/it-2", 4000, 7500, 7500, 7500, 3),
    ]
    assert example("SELECT device, clock_id, summed_ns, busy_ns, activity_count FROM device_gpu_time") == [
        ("GPU-aaaa", "demo-trace:gpu-host", 17100, 16100, 11)
    ]
    assert example("SELECT reason, busy_ns FROM unattributed_gpu_time ORDER BY 1") == [
        ("ambiguous_ids", 1000),
        ("ids_disagree", 1000),
        ("no_identity", 1100),
        ("scope_differs", 2000),
    ]


def test_every_open_activity_says_why_with_its_candidates(example: Any) -> None:
    query = (
        "SELECT activity_id[12:], reason, len(candidates) FROM activity_links WHERE status = 'unlinked' ORDER BY seq"
    )
    assert example(query) == [
        ("gpu:k5-ambiguous-id", "ambiguous_ids", 2),
        ("gpu:k6-ids-disagree", "ids_disagree", 2),
        ("gpu:k7-no-scope", "no_identity", 0),
        ("gpu:k8-other-pid", "scope_differs", 0),
        ("gpu:k9-no-device", "scope_differs", 0),
        ("gpu:k10-nodev-launch", "scope_differs", 0),
        ("gpu:k12-inside-by-time-only", "no_identity", 0),
    ]


def test_shares_of_requests_and_the_remainder_are_what_the_iteration_had(example: Any) -> None:
    query = (
        "SELECT rule, request_id, gpu_ns, estimated FROM request_gpu_time WHERE iteration_id LIKE '%it-2'"
        " ORDER BY rule, request_id NULLS LAST"
    )
    # r1 has 2 of the 11 tokens of it-2, r2 has 9: 7500 * 2 / 11 and 7500 * 9 / 11, rounded down.
    assert example(query) == [
        ("by_tokens", "demo.engine/r1", 1363, True),
        ("by_tokens", "demo.engine/r2", 6136, True),
        ("by_tokens", None, 1, False),
        ("equal", "demo.engine/r1", 3750, True),
        ("equal", "demo.engine/r2", 3750, True),
        ("equal", None, 0, False),
        ("exclusive_only", None, 7500, False),
    ]


def activity(tiny: TinyStore, name: str, **values: Any) -> None:
    fixed = {"event_id": name, "activity_id": name, "kind": "gpu_kernel", "domain": "gpu", "session_id": "s"}
    place = {"host": "h", "process_id": 1, "device": "G", "clock_id": "c", "clock_kind": "device", "scope": "x"}
    tiny.add("activities", {**fixed, **place, **values})


def iteration(tiny: TinyStore, name: str) -> None:
    tiny.add("engine_events", {"event_type": "infer.iteration", "event_id": name, "iteration_id": name})


def test_links_reach_over_the_whole_artifact_and_never_by_time(tiny: TinyStore) -> None:
    tiny.run()
    iteration(tiny, "i1")
    activity(tiny, "late", cuda_correlation_id="7", start_ns=5, duration_ns=10)
    activity(tiny, "lost", cuda_correlation_id="8", start_ns=5, duration_ns=10)
    activity(tiny, "launch", domain="runtime", cuda_correlation_id="7", iteration_id="i1", start_ns=900, duration_ns=1)
    query = "SELECT activity_id, status, iteration_id, reason FROM activity_links ORDER BY seq"
    assert tiny.rows(query) == [
        ("late", "linked", "i1", None),
        ("lost", "unlinked", None, "no_anchor"),
        ("launch", "recorded", "i1", None),
    ]


def test_an_iteration_that_was_never_recorded_owns_nothing(tiny: TinyStore) -> None:
    tiny.run()
    activity(tiny, "a", iteration_id="ghost", start_ns=0, duration_ns=10)
    assert tiny.rows("SELECT reason, busy_ns FROM unattributed_gpu_time") == [("iteration_not_recorded", 10)]
    assert tiny.rows("FROM iteration_gpu_time") == []


@pytest.mark.parametrize("change", [{"device": None}, {"clock_kind": "wall"}, {"duration_ns": None}, {"domain": "cpu"}])
def test_what_measures_nothing_has_no_time(tiny: TinyStore, change: dict[str, Any]) -> None:
    tiny.run()
    activity(tiny, "a", **{"start_ns": 0, "duration_ns": 10, **change})
    assert tiny.rows("FROM device_gpu_time") == []


WORK = st.tuples(st.integers(0, 15), st.integers(0, 8), st.sampled_from([None, "i1", "i2", "i3"]))


@SETTINGS
@given(st.lists(WORK, max_size=10))
def test_owned_shared_and_open_time_are_the_busy_time(works: list[tuple[int, int, str | None]]) -> None:
    tiny = emptied()
    tiny.run()
    for name in ("i1", "i2", "i3"):
        iteration(tiny, name)
    owners: dict[int, set[str | None]] = {}
    for number, (start, duration, owner) in enumerate(works):
        activity(tiny, str(number), start_ns=start, duration_ns=duration, iteration_id=owner)
        for instant in range(start, start + duration):
            owners.setdefault(instant, set()).add(owner)
    known = [owned - {None} for owned in owners.values()]
    parts = [
        "SELECT coalesce(sum(exclusive_ns), 0) FROM iteration_gpu_time",
        "SELECT coalesce(sum(shared_ns), 0) FROM iteration_overlap",
        "SELECT coalesce(sum(busy_ns), 0) FROM unattributed_gpu_time",
        "SELECT coalesce(sum(busy_ns), 0) FROM device_gpu_time",
    ]
    exclusive, shared, rest, busy = (tiny.rows(query)[0][0] for query in parts)
    assert exclusive + shared + rest == busy == len(owners)
    assert (exclusive, shared) == (sum(len(o) == 1 for o in known), sum(len(o) > 1 for o in known))


def test_the_time_of_a_request_is_what_it_was_doing(example: Any) -> None:
    query = (
        "SELECT request_id, segment, duration_ns, unplaced_iterations FROM request_latency_segments"
        " WHERE duration_ns > 0 ORDER BY request_id, seq, segment"
    )
    # r1 lives from 1000 to 9000, it-1 runs from 1500 to 4500 and it-2 from 4600 to 8600.
    assert [row for row in example(query) if row[0].endswith("r1")] == [
        ("demo.engine/r1", "after_last_iteration", 400, 0),
        ("demo.engine/r1", "before_first_iteration", 500, 0),
        ("demo.engine/r1", "between_iterations", 100, 0),
        ("demo.engine/r1", "decode", 4000, 0),
        ("demo.engine/r1", "prefill", 3000, 0),
    ]
    sums = "SELECT sum(duration_ns) FROM request_latency_segments GROUP BY run_id, seq ORDER BY seq"
    lived = "SELECT duration_ns FROM engine_events WHERE event_type = 'infer.request' ORDER BY seq"
    assert example(sums) == example(lived)


def event(tiny: TinyStore, kind: str, name: str, **values: Any) -> None:
    tiny.add("engine_events", {"event_type": f"infer.{kind}", "event_id": name, "clock_id": "c", **values})


def test_iterations_of_another_clock_are_counted_and_not_placed(tiny: TinyStore) -> None:
    event(tiny, "request", "r", request_id="r", start_ns=0, duration_ns=100)
    event(tiny, "iteration", "i", iteration_id="i", start_ns=10, duration_ns=20, clock_id="other")
    event(tiny, "membership", "m", request_id="r", iteration_id="i", attributes='{"role": "decode"}')
    query = "SELECT segment, duration_ns, unplaced_iterations FROM request_latency_segments"
    assert tiny.rows(query) == [("outside_iterations", 100, 1)]


ROLES = st.tuples(st.integers(0, 20), st.integers(0, 10), st.sampled_from(["decode", "prefill"]))


@SETTINGS
@given(st.integers(0, 10), st.integers(0, 15), st.lists(ROLES, max_size=6))
def test_every_instant_of_a_request_has_one_segment(start: int, took: int, parts: list[tuple[int, int, str]]) -> None:
    tiny = emptied()
    event(tiny, "request", "r", request_id="r", start_ns=start, duration_ns=took)
    instants: dict[int, set[str]] = {}
    for number, (begin, duration, role) in enumerate(parts):
        event(tiny, "iteration", f"i{number}", iteration_id=f"i{number}", start_ns=begin, duration_ns=duration)
        text = f'{{"role": "{role}"}}'
        event(tiny, "membership", f"m{number}", request_id="r", iteration_id=f"i{number}", attributes=text)
        for instant in range(max(begin, start), min(begin + duration, start + took)):
            instants.setdefault(instant, set()).add(role)
    expected: dict[str, int] = {}
    for instant in range(start, start + took):
        name = "+".join(sorted(instants.get(instant, ()))) or (
            "outside_iterations"
            if not instants
            else "before_first_iteration"
            if instant < min(instants)
            else "after_last_iteration"
            if instant > max(instants)
            else "between_iterations"
        )
        expected[name] = expected.get(name, 0) + 1
    query = "SELECT segment, duration_ns FROM request_latency_segments WHERE duration_ns > 0"
    assert dict(tiny.rows(query)) == expected
