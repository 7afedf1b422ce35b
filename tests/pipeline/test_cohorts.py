"""A baseline against every other implementation: which runs form which comparison."""

from __future__ import annotations

from typing import Any

import pytest
from cohorts import add_run

from planewise.pipeline.campaign_manifest import PlannedComparison
from planewise.pipeline.cohorts import resolve_all, resolve_cohorts
from planewise.recorder.errors import InputRefused
from support import TinyStore

EVERY = PlannedComparison("all", "comparison_identity.implementation_id = 'a'", "true", every_implementation=True)


def add(tiny: TinyStore, run_id: str, implementation: str | None, **values: Any) -> None:
    identity = {"implementation_id": implementation, **values.pop("identity", {})}
    add_run(tiny, run_id, 100, identity=identity, **values)


def names(tiny: TinyStore) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    return {one.name: (one.baseline.complete, one.candidate.complete) for one in resolve_cohorts(tiny.con, EVERY)}


def test_each_other_implementation_is_one_comparison(tiny: TinyStore) -> None:
    for run_id, implementation in (("a0", "a"), ("b0", "b"), ("a1", "a"), ("c0", "c"), ("b1", "b"), ("x", None)):
        add(tiny, run_id, implementation)
    add(tiny, "b2", "b", outcome="failed")
    assert names(tiny) == {"all: b": (("a0", "a1"), ("b0", "b1")), "all: c": (("a0", "a1"), ("c0",))}
    assert [one.candidate.left_out for one in resolve_cohorts(tiny.con, EVERY)] == [("b2",), ()]


def test_pairs_do_not_part_a_cohort_and_other_conditions_do(tiny: TinyStore) -> None:
    for position in range(2):
        add(tiny, f"a{position}", "a", identity={"pair_id": f"p{position}"})
        add(tiny, f"b{position}", "b", identity={"pair_id": f"p{position}"})
    add(tiny, "a-large", "a", identity={"physical_batch": 64})
    add(tiny, "b-large", "b", identity={"physical_batch": 64})
    add(tiny, "b-other", "b", identity={"model_id": "another"})
    found = names(tiny)
    small = next(name for name in found if "64" not in name)
    assert found == {small: (("a0", "a1"), ("b0", "b1")), "all: b (physical_batch 64)": (("a-large",), ("b-large",))}
    assert small.startswith("all: b (physical_batch ")


def test_only_production_equivalent_runs_are_compared_where_there_are_any(tiny: TinyStore) -> None:
    profiled = {"contract": {"measurement_scope": "profiled_work"}}
    for name, implementation in (("a0", "a"), ("b0", "b")):
        add(tiny, name, implementation)
        add(tiny, f"{name}-profile", implementation, **profiled)
    assert names(tiny) == {"all: b": (("a0",), ("b0",))}


def test_profiled_runs_alone_are_compared_so_that_the_reasons_are_told(tiny: TinyStore) -> None:
    for name in ("a", "b"):
        add(tiny, f"{name}0", name, contract={"measurement_scope": "profiled_work"})
    assert names(tiny) == {"all: b": (("a0",), ("b0",))}


def test_no_other_implementation_is_no_comparison(tiny: TinyStore) -> None:
    add(tiny, "a0", "a")
    assert names(tiny) == {}


def test_two_comparisons_of_one_name_are_refused(tiny: TinyStore) -> None:
    add(tiny, "a0", "a")
    add(tiny, "b0", "b")
    with pytest.raises(InputRefused, match="all: b"):
        resolve_all(tiny.con, [EVERY, PlannedComparison("all: b", "true", "true")])
