"""Which runs a planned comparison compares: two predicates, or a baseline against every other implementation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from ..recorder.errors import InputRefused
from ..recorder.planes import COMPARISON_IDENTITY
from .campaign_manifest import PlannedComparison
from .untrusted import Members, members_where

_NOT_CONDITIONS = ("implementation_id", "pair_id")
"""Members of an identity that say which run it is, not under which conditions it ran."""

_CONDITIONS = tuple(field.name for field in COMPARISON_IDENTITY if field.name not in _NOT_CONDITIONS)
_TIMED = "production_equivalent"


@dataclass(frozen=True)
class Cohorts:
    """One comparison with its runs; the baseline of several implementations is the same runs each time."""

    name: str
    baseline: Members
    candidate: Members


@dataclass(frozen=True)
class _Run:
    run_id: str
    complete: bool
    implementation_id: str
    conditions: tuple[Any, ...]
    """Everything but the implementation that must be equal: the identity's members, then the measurement scope."""


def resolve_all(con: duckdb.DuckDBPyConnection, planned: Sequence[PlannedComparison]) -> list[Cohorts]:
    """:func:`resolve_cohorts` of every planned comparison; raises :class:`InputRefused` where two get one name."""
    found = [cohorts for one in planned for cohorts in resolve_cohorts(con, one)]
    names = [cohorts.name for cohorts in found]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InputRefused(
            f"two comparisons are named {repeated!r}", code="repeated_name", remedy="give one of them another name"
        )
    return found


def resolve_cohorts(con: duckdb.DuckDBPyConnection, planned: PlannedComparison) -> list[Cohorts]:
    """The comparisons that a planned one stands for, over the runs of ``con``; predicates may be untrusted.

    With ``every_implementation`` there is one for each other implementation that has a complete run under the
    conditions of a complete baseline run: equal identity but for implementation and pair, equal measurement scope.
    Where any of them is production equivalent only those are compared, since no other can have a verdict. Names are
    ``<name>: <implementation_id>``, with the conditions that differ between groups behind. None is found, none is
    compared. Raises what :func:`~.untrusted.members_where` raises.
    """
    chosen = [members_where(con, where) for where in (planned.baseline, planned.candidate)]
    if not planned.every_implementation:
        return [Cohorts(planned.name, *chosen)]
    baseline, others = (_runs(con, [*members.complete, *members.left_out]) for members in chosen)
    known = {run.implementation_id for run in baseline}
    candidates = [run for run in others if run.implementation_id not in known]
    groups = _groups(baseline, candidates)
    varying = [at for at in range(len(_CONDITIONS) + 1) if len({conditions[at] for conditions, _ in groups}) > 1]
    return [
        Cohorts(
            _name(planned.name, implementation_id, conditions, varying),
            _members([run for run in baseline if run.conditions == conditions]),
            _members([run for run in candidates if (run.conditions, run.implementation_id) == group]),
        )
        for group in groups
        for conditions, implementation_id in [group]
    ]


def _groups(baseline: Sequence[_Run], candidates: Sequence[_Run]) -> list[tuple[tuple[Any, ...], str]]:
    """Conditions and implementation of each comparison, in the order of the implementations."""
    known = {run.conditions for run in baseline if run.complete}
    groups = {(run.conditions, run.implementation_id) for run in candidates if run.complete and run.conditions in known}
    timed = {group for group in groups if group[0][-1] == _TIMED}
    return sorted(timed or groups, key=lambda group: (group[1], str(group[0])))


def _name(name: str, implementation_id: str, conditions: tuple[Any, ...], varying: Sequence[int]) -> str:
    titles = (*_CONDITIONS, "scope")
    told = ", ".join(f"{titles[at]} {conditions[at]}" for at in varying)
    return f"{name}: {implementation_id}" + (f" ({told})" if told else "")


def _members(runs: Sequence[_Run]) -> Members:
    found: dict[bool, list[str]] = defaultdict(list)
    for run in runs:
        found[run.complete].append(run.run_id)
    return Members(tuple(sorted(found[True])), tuple(sorted(found[False])))


def _runs(con: duckdb.DuckDBPyConnection, run_ids: Sequence[str]) -> list[_Run]:
    """Those of the runs that name an implementation; the others can be no cohort of one."""
    conditions = ", ".join(f"comparison_identity.{name}" for name in _CONDITIONS)
    query = f"""
        SELECT run_id, outcome IS NOT DISTINCT FROM 'complete', comparison_identity.implementation_id,
            {conditions}, capture_contract.measurement_scope
        FROM runs
        WHERE run_id IN (SELECT unnest(?)) AND comparison_identity.implementation_id IS NOT NULL
        ORDER BY run_id
    """
    return [_Run(row[0], row[1], row[2], tuple(row[3:])) for row in con.execute(query, [list(run_ids)]).fetchall()]
