"""Any number that a run has once, compared over two cohorts: one question per label, all of them asked at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb

from ..recorder.planes import PLANES
from .compare import COMPARISON_ID, cohort_connection
from .multiple import family

FAMILY_SCHEMA = "planewise/comparison-family/1"

_OF_TIME = frozenset({"not_production_equivalent", "unsynchronized_device_region"})
"""Reasons that speak against times alone."""


@dataclass(frozen=True)
class Metric:
    """A number per run and label, and what must hold before it is compared.

    ``query`` gives run_id, label and value; ``excused`` are reasons of a comparison that do not speak against it;
    ``needs`` is a field of the capture contract that has to be ``complete``.
    """

    doc: str
    unit: str
    query: str
    views: tuple[str, ...]
    excused: frozenset[str] = frozenset()
    needs: str | None = None


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "outer_wall_time": Metric(
            "wall time of the measured region",
            "ns",
            "SELECT run_id, 'measured region' AS label, outer_wall_time_ns AS value FROM outer_wall_time",
            ("outer_wall_time",),
        ),
        "host_self_time": Metric(
            "host time of all spans and operations of a name in the measured region, without what runs inside of them",
            "ns",
            # An operation is no span; it lies in the region when the span that it ran in does.
            "SELECT own.run_id, name AS label, sum(host_self_time_ns) AS value FROM host_self_time AS own"
            " SEMI JOIN _measured_subtree AS region ON region.run_id = own.run_id AND region.span_id ="
            " CASE WHEN node_kind = 'op' THEN coalesce(parent_id, node_id) ELSE node_id END GROUP BY own.run_id, name",
            ("host_self_time", "_measured_subtree"),
            frozenset({"not_production_equivalent"}),
        ),
        "device_busy": Metric(
            "busy time of a device clock",
            "ns",
            "SELECT run_id, device AS label, max(busy_ns) AS value FROM device_clock_busy GROUP BY run_id, device"
            " HAVING count(*) = 1",
            ("device_clock_busy",),
            frozenset({"not_production_equivalent"}),
            "device_timing",
        ),
        "live_bytes_peak": Metric(
            "peak of the live bytes of a device, and over all",
            "bytes",
            "SELECT run_id, coalesce(device, 'all devices') AS label, peak_live_bytes AS value FROM live_bytes_peak",
            ("live_bytes_peak",),
            _OF_TIME,
            "logical_memory",
        ),
        "tensor_rms": Metric(
            "root mean square of a labelled tensor",
            "1",
            "SELECT run_id, label, avg(rms) AS value FROM tensor_stats WHERE non_finite = 0 GROUP BY run_id, label",
            (),
            _OF_TIME,
        ),
    }
)
"""Every metric by name."""

_VIEWS = ("comparison_reasons", "comparison_samples")
_CONSUMED = tuple(f"planes/{name}.parquet" for name in PLANES)


def compare_metric_bundles(
    baseline: Sequence[str | Path], candidate: Sequence[str | Path], metric: str, label_prefix: str = ""
) -> dict[str, Any]:
    """Compare two cohorts of published bundles by a metric; raises as :func:`~.compare.compare_bundles`."""
    views = (*_VIEWS, *METRICS[metric].views)
    with cohort_connection(baseline, candidate, only=views, consumed=_CONSUMED) as con:
        return compare_metric(con, COMPARISON_ID, metric, label_prefix)


def compare_metric(
    con: duckdb.DuckDBPyConnection, comparison_id: str, metric: str, label_prefix: str = ""
) -> dict[str, Any]:
    """The ``planewise/comparison-family/1`` document of a comparison in ``con``.

    ``rows`` has one row per label that both cohorts have, most surprising first; with ``reasons`` every verdict is
    ineligible. A run without a value has none in the samples, never 0; ``only_in`` names labels of one cohort alone.
    """
    chosen = METRICS[metric]
    samples = _samples(con, comparison_id, chosen, label_prefix)
    both = {label: cohorts for label, cohorts in samples.items() if len(cohorts) == 2}
    rows = family([(label, cohorts["baseline"], cohorts["candidate"]) for label, cohorts in both.items()])
    reasons = _reasons(con, comparison_id, chosen)
    if reasons:
        rows = [{**row, "verdict": "ineligible"} for row in rows]
    return {
        "schema": FAMILY_SCHEMA,
        "metric": metric,
        "unit": chosen.unit,
        "questions": len(rows),
        "reasons": reasons,
        "rows": rows,
        "only_in": {
            cohort: [label for label, cohorts in samples.items() if list(cohorts) == [cohort]]
            for cohort in ("baseline", "candidate")
        },
    }


def _samples(
    con: duckdb.DuckDBPyConnection, comparison_id: str, metric: Metric, prefix: str
) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = defaultdict(dict)
    query = f"""
        SELECT label, cohort, value::DOUBLE
        FROM ({metric.query}) JOIN cohort_members USING (run_id)
        WHERE comparison_id = ? AND starts_with(label, ?) AND value IS NOT NULL
        ORDER BY label, cohort, position
    """
    for label, cohort, value in con.execute(query, [comparison_id, prefix]).fetchall():
        found[label].setdefault(cohort, []).append(value)
    return dict(found)


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
