"""Cohorts for tests of comparisons: ten runs that are comparable, and what a test changes about some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from support import IDENTITY, TinyStore

BASELINE_NS = (100, 102, 99, 101, 103)
CANDIDATE_NS = (75, 80, 78, 79, 77)
DIGEST = "ab" * 32

Changes = Mapping[str, Mapping[str, Any]]


def add_cohorts(
    tiny: TinyStore,
    baseline: Sequence[int] = BASELINE_NS,
    candidate: Sequence[int] = CANDIDATE_NS,
    *,
    runs: Changes | None = None,
    members: Changes | None = None,
    comparison_id: str = "c",
) -> TinyStore:
    """Add the comparison of runs b0, b1, ... with c0, c1, ...; one measured span each, of the given duration.

    ``runs`` changes columns of a run: ``identity`` members (None: no identity), ``contract`` members, ``walls`` (the
    durations of its measured spans, None for one that never ended), else columns. ``members`` changes its row in
    cohort_members; a ``run_id`` there puts another run in its place.
    """
    tiny.add("comparisons", {"comparison_id": comparison_id})
    for cohort, walls in (("baseline", baseline), ("candidate", candidate)):
        for position, wall_ns in enumerate(walls):
            run_id = f"{cohort[0]}{position}"
            add_run(tiny, run_id, wall_ns, **(runs or {}).get(run_id, {}))
            member = {"receipt_run_id": run_id, "manifest_sha256": DIGEST, "run_id": run_id}
            member |= (members or {}).get(run_id, {})
            place = {"comparison_id": comparison_id, "cohort": cohort, "position": position}
            tiny.add("cohort_members", {**place, **member})
    return tiny


def add_run(
    tiny: TinyStore,
    run_id: str,
    wall_ns: int,
    *,
    identity: Mapping[str, Any] | None = IDENTITY,
    walls: Sequence[int | None] | None = None,
    **values: Any,
) -> None:
    """Add one run with its measured spans; ``identity`` is laid over the identity that all runs share."""
    merged = None if identity is None else {**IDENTITY, **identity}
    tiny.run(run_id, comparison_identity=merged, **values)
    for number, duration_ns in enumerate([wall_ns] if walls is None else walls):
        span = {"id": f"s{number}", "measured": True, "duration_ns": duration_ns}
        tiny.add("spans", span if number == 0 else {**span, "parent_id": "s0"}, run_id=run_id)


def codes(tiny: TinyStore) -> list[str]:
    """The reason codes of the comparison, in order."""
    return [code for (code,) in tiny.rows("SELECT code FROM comparison_reasons ORDER BY reason_order")]
