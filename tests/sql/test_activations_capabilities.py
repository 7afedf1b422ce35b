"""The decision table of the five activation metric states (protocol 6.1 and 7.2, and its adjustments in 7.3)."""

from __future__ import annotations

from typing import Any

import pytest
from plane_store import alloc, example, op, span

from support import TinyStore, emptied

FIELDS = ("coverage", "host_time", "device_time", "dense_output", "logical_memory", "physical_memory_attribution")
C, P, U, I = "complete", "partial", "unavailable", "invalid"  # noqa: E741

ALL = {"activations": C, "operations": C, "tensors": C, "logical_memory": C, "device_timing": C}
"""A contract under which every metric can be complete."""


def capture(store: TinyStore, *operations: str, contract: dict[str, Any] | None = None, **run: Any) -> TinyStore:
    """A measured span with one dedicated op span per word: letters of d (device), n (no dense bytes), s (storage).

    Every operation is linked through its output tensor.
    """
    store.run(contract={**ALL, **(contract or {})}, **run)
    span(store, "m", None, 0, 100, measured=True, end_seq=10**6)
    for number, has in enumerate(operations):
        id_ = f"o{number}"
        span(store, id_, "m", 10, 50, span_kind="op", end_seq=10**6)
        op(store, id_, 20, 5, output=id_, output_dense_bytes=None if "n" in has else 8)
        store.add("tensors", {"span_id": id_, "tensor_id": id_, "category": "activation"})
        if "d" in has:
            store.add("device_intervals", {"span_id": id_, "start_ns": 0, "duration_ns": 1})
        if "s" in has:
            store.add("memory_events", alloc(20, id_, 4, span_id=id_, op_name="f", category="activation"))
    return store


def levels(store: TinyStore) -> list[str]:
    """The levels of coverage, host, device, dense and logical memory."""
    rows = store.rows("SELECT field, level FROM activation_capabilities ORDER BY field_order")
    assert [field for field, _ in rows] == list(FIELDS)
    assert rows[-1][1] == U
    return [level for _, level in rows[:-1]]


@pytest.mark.parametrize(
    ("operations", "contract", "found"),
    [
        # Everything declared and everything seen.
        (["ds", "ds"], {}, [C, C, C, C, C]),
        (["ds", ""], {}, [C, C, C, C, C]),  # complete planes speak for the rows that lack a value
        # Declared complete, nothing observed.
        ([], {}, [I, I, I, I, I]),
        (["s"], {}, [C, C, I, C, C]),
        (["d"], {}, [C, C, C, C, I]),
        # Each metric depends on its own plane.
        (["ds"], {"device_timing": P}, [C, C, P, C, C]),
        (["ds"], {"device_timing": "none"}, [C, C, P, C, C]),
        (["s"], {"device_timing": P}, [C, C, U, C, C]),
        (["ds", "nds"], {}, [C, C, C, P, C]),
        (["nds"], {}, [C, C, C, U, C]),
        # A partial memory plane is enough when every operation has an activation storage.
        (["ds", "ds"], {"logical_memory": P}, [C, C, C, C, C]),
        (["ds", "d"], {"logical_memory": P}, [C, C, C, C, P]),
        (["d", "d"], {"logical_memory": P}, [C, C, C, C, U]),
        (["ds", "ds"], {"logical_memory": "none"}, [C, C, C, C, P]),
        ([], {"logical_memory": P, "device_timing": P}, [I, I, U, I, U]),
        # Below complete only the observed sample is ranked, whatever the other planes declare.
        (["ds"], {"activations": P}, [P, P, P, P, P]),
        (["ds"], {"activations": "none"}, [P, P, P, P, P]),
        (["n"], {"activations": P}, [P, P, U, U, U]),
        ([], {"activations": P}, [U, U, U, U, U]),
        ([], {"activations": "none"}, [U, U, U, U, U]),
    ],
)
def test_levels_follow_the_activation_contract_and_the_plane_of_the_metric(
    operations: list[str], contract: dict[str, Any], found: list[str]
) -> None:
    assert levels(capture(emptied(), *operations, contract=contract)) == found


@pytest.mark.parametrize(
    ("operations", "contract", "found"),
    [
        (["ds"], {}, [P, P, P, P, P]),
        (["ds"], {"activations": P}, [P, P, P, P, P]),
        (["s"], {}, [P, P, I, P, P]),
        ([], {"activations": P}, [U, U, U, U, U]),
    ],
)
def test_a_failed_capture_lowers_complete_to_partial(
    operations: list[str], contract: dict[str, Any], found: list[str]
) -> None:
    store = capture(emptied(), *operations, contract=contract, outcome="failed", failure_reason="boom")
    assert store.rows("SELECT status FROM run_health") == [("failed",)]
    assert levels(store) == found


@pytest.mark.parametrize("outcome", ["complete", "failed"])
def test_an_invalid_trace_makes_what_is_available_invalid(outcome: str) -> None:
    reason = "boom" if outcome == "failed" else None
    store = capture(emptied(), "n", contract={"activations": P}, outcome=outcome, failure_reason=reason)
    store.add("memory_events", alloc(20, "x", 4, span_id="nobody"))
    assert store.rows("SELECT status FROM run_health") == [("invalid",)]
    assert levels(store) == [I, I, U, U, U]


def test_an_interrupted_capture_qualifies_nothing() -> None:
    assert levels(capture(emptied(), "ds", outcome=None)) == [I, I, I, I, I]


def test_a_run_without_a_measured_region_has_states_that_say_so() -> None:
    store = emptied().run(contract={"activations": P})
    rows = store.rows("SELECT level, source, reason FROM activation_capabilities WHERE field = 'coverage'")
    assert rows == [(U, "none", "without exactly one measured span that ended no operation qualifies")]


def test_a_reason_names_what_is_lacking() -> None:
    store = capture(emptied(), "ds", "nd", contract={"logical_memory": P, "device_timing": P})
    rows = store.rows("SELECT field, reason FROM activation_capabilities WHERE level = 'partial' ORDER BY field_order")
    assert rows == [
        ("device_time", "device timing is declared partial"),
        ("dense_output", "1 of 2 operations have a dense output footprint"),
        ("logical_memory", "logical memory is declared partial, and 1 of 2 operations have an activation storage"),
    ]


def test_physical_memory_is_never_attributed() -> None:
    rows = example().rows("SELECT level, source FROM activation_capabilities WHERE field LIKE 'physical%'")
    assert rows == [(U, "none")]


def test_the_worked_example_is_partial_in_device_time_alone() -> None:
    assert levels(example()) == [C, C, P, C, C]
