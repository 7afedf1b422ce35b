"""Labels of a contract against projected ranges, and the device work that ranges join (protocol 12.4 to 12.6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import TinyStore, emptied

SETTINGS = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LEDGER = "SELECT label, state, occurrences FROM semantic_label_ledger ORDER BY label"
GAPS = "SELECT gap, label FROM attribution_gaps ORDER BY gap, label"
KEYS = ("correlation_id", "device", "context_id", "stream_id")
COMPLETE = "SELECT mode, complete, clock_aligned FROM semantic_correlation"


def folder(tiny: TinyStore, *, expected: list[str] = [], cpu_only: list[str] = [], **values: Any) -> None:  # noqa: B006
    contract = {
        "required_semantic_labels": [*expected, *cpu_only],
        "gpu_expected_semantic_labels": expected if cpu_only else [],
        "cpu_only_semantic_labels": cpu_only,
    }
    defaults = {"source_format": "nsight-capture", "tags": [("nsight.run_id", "trace")]}
    tiny.run("folder", contract=contract, **{**defaults, **values})


def projected(tiny: TinyStore, name: str, start: int = 1000, duration: int = 250, **values: Any) -> None:
    times = {"projected_start_ns": start, "projected_duration_ns": duration}
    fixed = {"report": "nvtx_gpu_proj_trace", "name": name, "clock_id": "d", "attributes": "{}"}
    tiny.add("range_projections", {**fixed, **times, **values}, run_id="folder")


def work(tiny: TinyStore, start: int, duration: int, **values: Any) -> None:
    row = {"start_ns": start, "duration_ns": duration, "clock_id": "d", "stream_id": "7", **values}
    tiny.add("device_intervals", row, run_id="folder")


def test_a_folder_without_projections_misses_every_expected_label(tiny: TinyStore) -> None:
    folder(tiny, expected=["a"], cpu_only=["c"])
    assert tiny.rows(COMPLETE) == [("none", False, False)]
    assert tiny.rows(LEDGER) == [("a", "missing_expected", 0), ("c", "cpu_only", 0)]


def test_every_label_has_the_state_that_contract_and_report_give_it(tiny: TinyStore) -> None:
    folder(tiny, expected=["a", "b"], cpu_only=["c", "d"])
    for name in ("a", "a", "c", ":b"):
        projected(tiny, name)
    assert tiny.rows(LEDGER) == [
        (":b", "unexpected_observed", 1),
        ("a", "matched", 2),
        ("b", "missing_expected", 0),
        ("c", "unexpected_cpu_only", 1),
        ("d", "cpu_only", 0),
    ]
    assert tiny.rows(GAPS) == [
        ("duplicate_label", "a"),
        ("matched_without_attribution", "a"),
        ("missing_expected", "b"),
        ("unexpected_cpu_only", "c"),
        ("unexpected_observed", ":b"),
    ]


def test_required_labels_are_expected_where_no_class_is_given(tiny: TinyStore) -> None:
    folder(tiny, expected=["a"])
    projected(tiny, "a")
    assert tiny.rows(COMPLETE) == [("nvtx_projected_range", True, False)]


@pytest.mark.parametrize(
    ("declared", "keys", "recorded", "complete"),
    [
        (None, {}, 0, True),  # The projection alone.
        (0, {}, 0, False),
        (3, {}, 0, True),  # No key to join by.
        (3, {"stream_id": "7"}, 0, True),  # No timeline to join with.
        (2, {"stream_id": "7"}, 2, True),
        (3, {"stream_id": "7"}, 2, False),
        (2, {"stream_id": "8"}, 2, False),
    ],
)
def test_a_declared_count_must_be_that_of_the_joined_work(
    tiny: TinyStore, declared: int | None, keys: dict[str, str], recorded: int, complete: bool
) -> None:
    folder(tiny, expected=["a"])
    projected(tiny, "a", gpu_operations=declared, **keys)
    for number in range(recorded):
        work(tiny, 1000 + 10 * number, 5)
    assert tiny.rows(COMPLETE) == [("nvtx_projected_range", complete, False)]


def test_attributed_time_is_the_union_inside_the_projection(tiny: TinyStore) -> None:
    # [1000, 1250) holds [990, 1010) from 1000 on, [1005, 1020), [1200, 1300) up to 1250: 20 + 50
    folder(tiny, expected=["a"])
    projected(tiny, "a", gpu_operations=3, device="cuda:0", stream_id="7")
    for start, duration in ((990, 20), (1005, 15), (1200, 100), (980, 20), (1250, 5)):
        work(tiny, start, duration)
    work(tiny, 1100, 5, stream_id="8")
    query = "SELECT semantic_key, gpu_busy_ns, gpu_operation_count, join_keys FROM phase_attribution"
    assert tiny.rows(query) == [("a", 70, 3, ["device", "stream_id"])]
    assert tiny.rows(GAPS) == []


def test_an_attributed_label_that_nobody_expects_is_a_gap_of_its_own(tiny: TinyStore) -> None:
    folder(tiny)
    projected(tiny, "x", gpu_operations=1, correlation_id="41")
    work(tiny, 1010, 25, correlation_id="41")
    assert tiny.rows(GAPS) == [("attributed_not_expected", "x"), ("unexpected_observed", "x")]


def test_a_native_run_without_a_profile_misses_nothing(tiny: TinyStore) -> None:
    tiny.run("r1", contract={"required_semantic_labels": ["a"]})
    assert tiny.rows(LEDGER) == tiny.rows(COMPLETE) == []


def binding(tiny: TinyStore) -> list[tuple[Any, ...]]:
    return tiny.rows("SELECT trace_run_id, binding, reasons FROM nsight_bindings")


def test_a_folder_is_bound_to_the_run_that_it_names(tiny: TinyStore) -> None:
    labels = {"required_semantic_labels": ["b", "a"], "gpu_expected_semantic_labels": ["a", "b"]}
    folder(tiny, expected=["a", "b"])
    assert binding(tiny) == [(None, "partial", ["trace_not_in_store"])]
    tiny.run("trace", contract=labels)
    assert binding(tiny) == [("trace", "bound", [])]


def test_a_folder_without_a_manifest_is_bound_to_nothing(tiny: TinyStore) -> None:
    folder(tiny, tags=[])
    assert binding(tiny) == [(None, "partial", ["manifest_absent"])]


def test_every_mismatch_is_named(tiny: TinyStore) -> None:
    folder(tiny, expected=["a"], cpu_only=["c"], correlation_id="other")
    issue = {"file": "x.csv", "severity": "error", "code": "artifact_digest", "message": "m"}
    tiny.add("ingest_issues", issue, run_id="folder")
    tiny.run("trace", contract={"required_semantic_labels": ["a", "c"]})
    reasons = ["artifact_digest", "correlation_id_differs", "cpu_only_labels_differ", "gpu_expected_labels_differ"]
    assert binding(tiny) == [("trace", "mismatch", reasons)]


PLACES = st.fixed_dictionaries({key: st.sampled_from([None, "1", "2"]) for key in KEYS})
TIMES = st.tuples(st.integers(0, 12), st.integers(1, 8))


@SETTINGS
@given(ranges=st.lists(st.tuples(TIMES, PLACES), max_size=4), works=st.lists(st.tuples(TIMES, PLACES), max_size=8))
def test_joins_are_those_of_a_plain_count_of_nanoseconds(ranges: list[Any], works: list[Any]) -> None:
    tiny = emptied()
    folder(tiny)
    for (start, duration), keys in ranges:
        projected(tiny, "x", start, duration, **keys)
    for (start, duration), keys in works:
        work(tiny, start, duration, **{**keys, "device": keys["device"] or "3", "stream_id": keys["stream_id"] or "3"})
    found = tiny.rows("SELECT joined_operations, gpu_busy_ns FROM _projection_joins ORDER BY seq")
    assert found == [_joined(*times, keys, works) for times, keys in ranges]


def _joined(start: int, duration: int, keys: dict[str, Any], works: list[Any]) -> tuple[int | None, int | None]:
    carried = {key: value for key, value in keys.items() if value is not None}
    if not carried:
        return None, None
    count, busy = 0, set()
    for (at, length), has in works:
        inside = set(range(at, at + length)) & set(range(start, start + duration))
        if inside and all(has[key] == value for key, value in carried.items()):
            count += 1
            busy |= inside
    return count, len(busy)
