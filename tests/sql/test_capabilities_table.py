"""What a run may claim: every base rule and both adjustments of protocol 7.3 to 7.6."""

from __future__ import annotations

from typing import Any

import pytest
from health_support import OUTCOMES
from plane_store import alloc, example, expected, op, span

from support import TinyStore, emptied

C, P, U, I = "complete", "partial", "unavailable", "invalid"  # noqa: E741

OBSERVED = {
    "nested_device_time": ("device_timing", "device_intervals", {"span_id": "m", "start_ns": 0, "duration_ns": 1}),
    "operation_coverage": ("operations", "ops", {"span_id": "m", "op_name": "f", "duration_ns": 1, "timestamp_ns": 5}),
    "tensor_coverage": ("tensors", "tensors", {"span_id": "m", "tensor_id": "t"}),
    "gradient_coverage": (
        "gradients",
        "gradients",
        {"event_id": "g", "root": "vb", "key": "w", "state": "present", "norm": 1.0},
    ),
    "logical_memory_coverage": ("logical_memory", "memory_events", alloc(5, "s", 4, span_id="m")),
    "physical_memory_coverage": ("physical_memory", "device_memory", {"timestamp_ns": 5, "used_bytes": 1}),
}
"""Field -> contract member, plane, and one valid row of it."""

MANIFEST = "sha256:3eb0aba921ad4af44983feda009f7e1042fe2be52dbb3512dac9bcaaa4aec31a"
GRADIENTS: dict[str, Any] = {
    "manifest_sha256": MANIFEST,
    "expected": [
        {"root": "vb", "key": "frozen.bias", "family": "frozen"},
        {"root": "vb", "key": "layer.weight", "family": "trunk"},
    ],
    "families": [
        {"family": "trunk", "expectation": "active", "min_present": 1},
        {"family": "frozen", "expectation": "inactive", "min_present": 0},
    ],
}


def capture(outcome: str = "complete", contract: dict[str, Any] | None = None, *, valid: bool = True) -> TinyStore:
    """A run with one measured span; an invalid one has a span without a known parent."""
    store = emptied().run(
        outcome=None if outcome == "interrupted" else outcome,
        failure_reason="boom" if outcome == "failed" else None,
        contract=contract,
    )
    span(store, "m", None, 0, 100, measured=True, end_seq=10**6)
    if not valid:
        span(store, "lost", "nobody", 10, 20, end_seq=10**6)
    return store


def state(store: TinyStore, field: str) -> tuple[Any, ...]:
    return store.rows(f"SELECT level, source, reason FROM capabilities WHERE field = '{field}'")[0]


def level(store: TinyStore, field: str) -> str:
    return str(state(store, field)[0])


def gradient(store: TinyStore, key: str, state_: str, norm: float | None = None) -> None:
    store.add("gradients", {"event_id": key, "root": "vb", "key": key, "state": state_, "norm": norm})


def test_the_worked_example_has_its_levels_in_order() -> None:
    rows = example().rows("SELECT field, level FROM capabilities ORDER BY field_order")
    assert rows == list(expected("capability_levels").items())


def test_every_run_has_eleven_rows_with_kinds_of_their_own() -> None:
    store = emptied().run("a").run("b")
    rows = store.rows(
        "SELECT run_id, count(*), count(DISTINCT kind), count(DISTINCT field) FROM capabilities GROUP BY 1"
    )
    assert sorted(rows) == [("a", 11, 11, 11), ("b", 11, 11, 11)]


def covered(outcome: str, declared: str, *, seen: bool, valid: bool = True) -> dict[str, str]:
    """The levels of OBSERVED when each of its planes is declared so, and all of them have a row or none has.

    Complete gradients are judged by their contract, in tests of their own; here they are left out.
    """
    contract = {member: declared for member, _, _ in OBSERVED.values() if (member, declared) != ("gradients", C)}
    store = capture(outcome, contract, valid=valid)
    if seen:
        for _, plane, row in OBSERVED.values():
            store.add(plane, row)
    rows = store.rows("SELECT field, level, source FROM capabilities")
    assert all((level_ == U) == (source == "none") for _, level_, source in rows)
    left_out = "gradient_coverage" if declared == C else None
    return {field: level_ for field, level_, _ in rows if field in OBSERVED and field != left_out}


@pytest.mark.parametrize(
    ("declared", "seen", "found"),
    [(C, False, I), (C, True, C), (P, False, U), (P, True, P), ("none", False, U), ("none", True, P)],
)
def test_coverage_is_what_was_declared_as_far_as_it_was_observed(declared: str, seen: bool, found: str) -> None:
    assert set(covered("complete", declared, seen=seen).values()) == {found}


@pytest.mark.parametrize(
    ("outcome", "valid", "declared", "found", "physical"),
    [
        ("failed", True, C, P, P),
        ("failed", True, P, P, P),
        ("failed", True, "none", P, P),
        ("complete", False, C, I, C),  # physical memory does not hang on the trace
        ("complete", False, P, I, P),
        ("failed", False, C, I, P),
        ("interrupted", True, P, I, P),
    ],
)
def test_an_invalid_trace_and_a_failed_capture_adjust_what_was_observed(
    outcome: str, valid: bool, declared: str, found: str, physical: str
) -> None:
    levels = covered(outcome, declared, seen=True, valid=valid)
    assert levels.pop("physical_memory_coverage") == physical
    assert set(levels.values()) == {found}


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("valid", [True, False])
def test_no_adjustment_makes_an_unobserved_plane_anything_else(outcome: str, valid: bool) -> None:
    assert set(covered(outcome, P, seen=False, valid=valid).values()) == {U}


def test_a_lowered_state_keeps_its_source_and_says_why() -> None:
    store = capture("failed", {"operations": C})
    op(store, "m", 5, 1)
    assert state(store, "operation_coverage") == (
        P,
        "trace op events",
        "the producer declared operation coverage complete;"
        " the capture did not complete, so the observations are diagnostic only",
    )


def test_an_invalidated_state_rests_on_validation() -> None:
    store = capture(contract={"operations": C}, valid=False)
    op(store, "m", 5, 1)
    assert state(store, "operation_coverage")[:2] == (I, "candle-graph/trace/10 validation")


@pytest.mark.parametrize(
    ("outcome", "valid", "found"),
    [
        ("complete", True, [C, C, C]),
        ("failed", True, [C, U, U]),
        ("complete", False, [I, I, I]),
        ("failed", False, [I, I, I]),
        ("interrupted", True, [I, I, I]),
    ],
)
def test_trace_wall_time_and_host_time_follow_validity_and_outcome(outcome: str, valid: bool, found: list[str]) -> None:
    store = capture(outcome, valid=valid)
    fields = ("structural_trace", "outer_wall_time", "nested_host_time")
    assert [level(store, field) for field in fields] == found


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("valid", [True, False])
def test_the_structural_trace_agrees_with_run_health(outcome: str, valid: bool) -> None:
    store = capture(outcome, valid=valid)
    [(structurally_valid,)] = store.rows("SELECT structurally_valid FROM run_health")
    assert level(store, "structural_trace") == (C if structurally_valid else I)


def test_a_complete_gradient_contract_that_holds_is_complete_with_its_numbers() -> None:
    store = capture(contract={"gradients": C, "gradient_contract": GRADIENTS})
    gradient(store, "frozen.bias", "missing")
    gradient(store, "layer.weight", "present", 0.5)
    found = state(store, "gradient_coverage")
    assert found == (C, "exact gradient contract", f"2 manifest entries and 2 family rules hold under {MANIFEST}")


@pytest.mark.parametrize("outcome", ["complete", "failed"])
@pytest.mark.parametrize("contract", [None, {**GRADIENTS, "manifest_sha256": "sha256:" + "0" * 64}])
def test_complete_gradients_without_a_valid_contract_are_invalid(outcome: str, contract: Any) -> None:
    store = capture(outcome, {"gradients": C, "gradient_contract": contract})
    gradient(store, "layer.weight", "present", 0.5)
    assert state(store, "gradient_coverage")[:2] == (I, "exact gradient contract")


@pytest.mark.parametrize(
    ("outcome", "events", "found"),
    [
        ("complete", [("frozen.bias", "missing", None)], I),  # a manifest entry was never observed
        ("failed", [("frozen.bias", "missing", None)], P),  # a warning there
        ("complete", [("frozen.bias", "missing", None), ("layer.weight", "zero", 0.0)], I),
        ("failed", [("frozen.bias", "zero", 0.0), ("layer.weight", "present", 1.0)], I),  # leakage is an error always
        ("failed", [("frozen.bias", "missing", None), ("layer.weight", "present", 1.0)], P),  # complete, then lowered
    ],
)
def test_gradient_issues_decide_under_a_complete_contract(
    outcome: str, events: list[tuple[str, str, float | None]], found: str
) -> None:
    store = capture(outcome, {"gradients": C, "gradient_contract": GRADIENTS})
    for event in events:
        gradient(store, *event)
    assert level(store, "gradient_coverage") == found


def test_absent_gradients_are_no_gradient_issue() -> None:
    store = emptied().run(phase="train", contract={"gradients": "none"})
    span(store, "m", None, 0, 100, measured=True, end_seq=10**6)
    assert store.rows("SELECT count(*) FROM health_issues WHERE code = 'gradients_absent'") == [(1,)]
    assert level(store, "gradient_coverage") == U


@pytest.mark.parametrize(
    ("labels", "names", "found"),
    [
        ([], [], U),
        (["a"], ["a"], U),
        (["a"], [], I),
        (["a"], ["a", "a"], I),
        (["a", "a"], ["a"], I),
    ],
)
@pytest.mark.parametrize("outcome", ["complete", "failed"])
def test_gpu_correlation_needs_labels_that_name_one_span_each(
    labels: list[str], names: list[str], found: str, outcome: str
) -> None:
    store = capture(outcome, {"required_semantic_labels": labels})
    for number, name in enumerate(names):
        span(store, f"s{number}", "m", 10, 10, name=name, end_seq=10**6)
    source = "trace semantic labels" if found == I else "none"
    assert state(store, "gpu_correlation")[:2] == (found, source)


@pytest.mark.parametrize("valid", [True, False])
def test_nothing_is_bound_without_a_gpu_artefact(valid: bool) -> None:
    assert state(capture(valid=valid), "provenance_binding")[:2] == (U, "none")
