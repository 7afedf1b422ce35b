"""Two cohorts compared by a metric: one question per label, all of them asked at once and judged as one family."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from ..recorder.planes import PLANES
from .capture_order import CaptureOrder, OrderedRun, capture_order
from .compare import COMPARISON_ID, cohort_connection
from .judgement import UNDECIDED, Samples
from .metrics import METRICS, Metric
from .multiple import HIGHER, LOWER, family, fewest_runs

FAMILY_SCHEMA = "planewise/comparison-family/2"

_VIEWS = ("comparison_pairs", "comparison_reasons", "comparison_samples")
_CONSUMED = tuple(f"planes/{name}.parquet" for name in PLANES)
_COHORTS = ("baseline", "candidate")


@dataclass(frozen=True)
class FamilyRules:
    """How a family is judged: only labels with a prefix, by which adjusted p (see :data:`~.multiple.ADJUSTMENTS`).

    Without ``adjust`` it is holm, or joint where the cohorts are too small for Holm's to find anything in so many
    labels: a choice by the number of runs, not by their values. ``min_effect`` is the smallest change that matters,
    as a share of the label's baseline median; None: all matter.
    """

    label_prefix: str = ""
    adjust: str | None = None
    min_effect: float | None = None


@dataclass(frozen=True)
class _Sample:
    """The value of one label in one run, and what places the run."""

    run: OrderedRun
    pair_id: str | None


def compare_metric_bundles(
    baseline: Sequence[str | Path], candidate: Sequence[str | Path], metric: str, rules: FamilyRules | None = None
) -> dict[str, Any]:
    """Compare two cohorts of published bundles by a metric; raises as :func:`~.compare.compare_bundles`."""
    views = (*_VIEWS, *METRICS[metric].views)
    with cohort_connection(baseline, candidate, only=views, consumed=_CONSUMED) as con:
        return compare_metric(con, COMPARISON_ID, metric, rules)


def compare_metric(
    con: duckdb.DuckDBPyConnection, comparison_id: str, metric: str, rules: FamilyRules | None = None
) -> dict[str, Any]:
    """The ``planewise/comparison-family/2`` document of a comparison in ``con``.

    ``rows`` has one row per label that both cohorts have, most surprising first; with ``reasons`` every verdict is
    ineligible. A run without a value has none in the samples, never 0; ``only_in`` names labels of one cohort alone.
    Cohorts that form pairs are compared pair by pair. ``findings`` say what the order of the captures speaks against
    the whole; a label that drifts where that order cannot tell the builds apart stays open (``drifts``).
    ``fewest_runs`` is how many runs a cohort (pairs) Holm's adjustment needs to find anything in so many labels.
    """
    chosen, rules = METRICS[metric], rules or FamilyRules()
    members = _members(con, comparison_id)
    paired = con.execute(
        "SELECT count(*) > 0 FROM comparison_pairs WHERE comparison_id = ?", [comparison_id]
    ).fetchall() == [(True,)]
    labels = _labels(con, comparison_id, chosen, rules.label_prefix)
    both = {label: rows for label, rows in labels.items() if len({row.run.cohort for row in rows}) == 2}
    asked = [(label, _samples(rows, len(members), paired=paired)) for label, rows in both.items()]
    too_few = _too_few(asked, paired=paired)
    adjust = rules.adjust or ("joint" if too_few else "holm")
    rows = family(asked, adjust=adjust, min_effect=rules.min_effect)
    reasons = _reasons(con, comparison_id, chosen)
    order = capture_order(members)
    return {
        "schema": FAMILY_SCHEMA,
        "metric": metric,
        "unit": chosen.unit,
        "paired": paired,
        "adjust": adjust,
        "min_effect_percent": None if rules.min_effect is None else rules.min_effect * 100,
        "questions": len(rows),
        "fewest_runs": fewest_runs(len(rows), paired=paired) if rows else None,
        "design": order.design,
        "reasons": reasons,
        "findings": [*order.findings, *(too_few if adjust == "holm" else [])],
        "rows": [_judged(row, both[row["label"]], order, eligible=not reasons) for row in rows],
        "only_in": {cohort: [at for at, rows in labels.items() if _only(rows, cohort)] for cohort in _COHORTS},
    }


def _only(rows: Sequence[_Sample], cohort: str) -> bool:
    return all(row.run.cohort == cohort for row in rows)


def _members(con: duckdb.DuckDBPyConnection, comparison_id: str) -> list[OrderedRun]:
    query = """
        SELECT run_id, cohort, timestamp FROM cohort_members JOIN runs USING (run_id)
        WHERE comparison_id = ? ORDER BY cohort, position
    """
    return [
        OrderedRun(run_id, cohort, 0.0, at) for run_id, cohort, at in con.execute(query, [comparison_id]).fetchall()
    ]


def _labels(
    con: duckdb.DuckDBPyConnection, comparison_id: str, metric: Metric, prefix: str
) -> dict[str, list[_Sample]]:
    found: dict[str, list[_Sample]] = defaultdict(list)
    query = f"""
        SELECT label, run_id, cohort, value::DOUBLE, timestamp, pair_id
        FROM ({metric.query}) JOIN comparison_samples USING (run_id) JOIN runs USING (run_id)
        WHERE comparison_id = ? AND starts_with(label, ?) AND value IS NOT NULL
        ORDER BY label, cohort, position
    """
    for label, run_id, cohort, value, at, pair_id in con.execute(query, [comparison_id, prefix]).fetchall():
        found[label].append(_Sample(OrderedRun(run_id, cohort, value, at), pair_id))
    return dict(found)


def _samples(rows: Sequence[_Sample], members: int, *, paired: bool) -> Samples:
    groups = [[row.run.value for row in rows if row.run.cohort == cohort] for cohort in _COHORTS]
    samples = Samples(groups[0], groups[1], has_gaps=len(rows) < members)
    if not paired:
        return samples
    before, after = ({row.pair_id: row.run.value for row in rows if row.run.cohort == cohort} for cohort in _COHORTS)
    return replace(
        samples, deltas=[after[pair] - before[pair] for pair in sorted(before.keys() & after.keys(), key=str)]
    )


def _judged(row: dict[str, Any], samples: Sequence[_Sample], order: CaptureOrder, *, eligible: bool) -> dict[str, Any]:
    drifts = order.can_confound and capture_order([sample.run for sample in samples]).is_confounded
    if not eligible:
        return {**row, "drifts": drifts, "verdict": "ineligible"}
    held = drifts and row["verdict"] in (LOWER, HIGHER)
    return {**row, "drifts": drifts, "verdict": UNDECIDED if held else row["verdict"]}


def _too_few(asked: Sequence[tuple[str, Samples]], *, paired: bool) -> list[dict[str, str]]:
    """Holm's adjustment multiplies by the number of labels, and few runs have no p that is small enough for many."""
    needed = fewest_runs(len(asked), paired=paired)
    sizes = [
        len(one.deltas) if one.deltas is not None else min(len(one.baseline), len(one.candidate)) for _, one in asked
    ]
    if not asked or max(sizes) >= needed:
        return []
    what = "pairs" if paired else "runs a cohort"
    message = (
        f"{len(asked)} labels need {needed} {what} before Holm's adjustment can find one; --adjust joint needs fewer"
    )
    return [{"code": "too_few_for_labels", "message": message}]


def _reasons(con: duckdb.DuckDBPyConnection, comparison_id: str, metric: Metric) -> list[dict[str, str]]:
    query = "SELECT code, message FROM comparison_reasons WHERE comparison_id = ? ORDER BY reason_order"
    reasons = [
        {"code": code, "message": message}
        for code, message in con.execute(query, [comparison_id]).fetchall()
        if code not in metric.excused
    ]
    if metric.needs is not None:
        incomplete = con.execute(
            f"SELECT run_id, capture_contract.{metric.needs} FROM runs SEMI JOIN"
            " (FROM cohort_members WHERE comparison_id = ?) USING (run_id)"
            f" WHERE capture_contract.{metric.needs} <> 'complete' ORDER BY run_id",
            [comparison_id],
        ).fetchall()
        reasons += [
            {"code": f"{metric.needs}_incomplete", "message": f"run {run_id} declares {metric.needs} {level}"}
            for run_id, level in incomplete
        ]
    return reasons
