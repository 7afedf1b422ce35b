"""Comparison of two cohorts of runs: eligibility, statistics, interval and verdict (protocol 10)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from ..recorder.errors import InputRefused, UsageError
from .bootstrap import Interval, paired_interval, unpaired_interval
from .bundle import Receipt, second_pass, verify_bundle
from .campaign import insert_rows
from .capture_order import capture_order, ordered_runs
from .judgement import EVERY_CHANGE, Rules, Samples, judged, undecided
from .loose import bundle_connection
from .read_bundle import load_bundle

COMPARISON_SCHEMA = "planewise/comparison/1"
METRIC = "outer_wall_time_ns"
COMPARISON_ID = "comparison"
"""Name of the one comparison of :func:`cohort_connection`."""

_COHORTS = ("baseline", "candidate")
_CONSUMED = tuple(f"planes/{name}.parquet" for name in ("runs", "spans", "tensor_stats"))
_MATCHED = (
    *("label", "rms_a", "rms_b", "rms_ratio", "abs_max_ratio", "non_finite_a", "non_finite_b"),
    *("samples_a", "samples_b", "runs_a", "runs_b"),
)
_PARTS = ("summary", "statistics", "reasons", "pairs", "tensor_stats", "samples")
_VIEWS = tuple(f"comparison_{part}" for part in _PARTS)
_SUMMARY = (
    *("comparable", "paired", "baseline_implementation_id", "candidate_implementation_id", "identity"),
    *("median_delta_ns", "median_delta_percent"),
)


@dataclass(frozen=True)
class CohortMember:
    """One run of a cohort, and the receipt of the bundle it was read from.

    ``verified`` is False for a run that was read from something else than a verified bundle; such a comparison is
    never eligible. Without a receipt, both receipt fields are None.
    """

    run_id: str
    verified: bool = True
    receipt_run_id: str | None = None
    manifest_sha256: str | None = None


def compare_bundles(
    baseline: Sequence[str | Path],
    candidate: Sequence[str | Path],
    *,
    verify: Callable[[Path], Receipt] = verify_bundle,
    rules: Rules = EVERY_CHANGE,
) -> dict[str, Any]:
    """Compare two cohorts of published bundles; each is verified deeply before it is read and again after.

    Raises
    ------
    VerificationFailed
        A bundle is not what its manifest says; there is no report then (protocol 10.1).
    InputRefused
        A bundle cannot be read as one run, or two different bundles hold one run id.
    """
    with cohort_connection(baseline, candidate, only=_VIEWS, consumed=_CONSUMED, verify=verify) as con:
        return compare_cohorts(con, COMPARISON_ID, rules)


@contextmanager
def cohort_connection(
    baseline: Sequence[str | Path],
    candidate: Sequence[str | Path],
    *,
    only: Collection[str],
    consumed: Collection[str],
    verify: Callable[[Path], Receipt] = verify_bundle,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the views ``only`` over two cohorts of bundles, named ``COMPARISON_ID`` in it.

    Every bundle is verified deeply before it is read; the files ``consumed`` are verified again when the block ends, so
    that nothing that was computed in it outlives a bundle that changed meanwhile. Raises as :func:`compare_bundles`.
    """
    receipts: dict[Path, Receipt] = {}
    for path in [Path(path).resolve() for path in (*baseline, *candidate)]:
        if path not in receipts:
            receipts[path] = load_bundle(path, verify).receipt
    con = bundle_connection(_one_per_run(receipts), only=only)
    try:
        cohorts = [[_member(receipts[Path(path).resolve()]) for path in paths] for paths in (baseline, candidate)]
        load_cohorts(con, COMPARISON_ID, baseline=cohorts[0], candidate=cohorts[1])
        yield con
    finally:
        con.close()
    for path, receipt in receipts.items():
        second_pass(path, receipt, [name for name in consumed if (path / name).exists()])


def load_cohorts(
    con: duckdb.DuckDBPyConnection,
    comparison_id: str,
    *,
    baseline: Sequence[CohortMember],
    candidate: Sequence[CohortMember],
) -> None:
    """Name the runs of one comparison, in input order; a comparison of that name is replaced.

    ``con`` holds ``comparisons`` and ``cohort_members`` as tables (:func:`~planewise.pipeline.loose.bundle_connection`
    makes such a connection). Raises :class:`InputRefused` for a run that ``con`` does not hold.
    """
    known = {run_id for (run_id,) in con.execute("SELECT run_id FROM runs").fetchall()}
    rows = [
        {
            "comparison_id": comparison_id,
            "cohort": cohort,
            "position": position,
            "run_id": member.run_id,
            "verified": member.verified,
            "receipt_run_id": member.receipt_run_id,
            "manifest_sha256": member.manifest_sha256,
        }
        for cohort, members in zip(_COHORTS, (baseline, candidate), strict=True)
        for position, member in enumerate(members)
    ]
    unknown = [row["run_id"] for row in rows if row["run_id"] not in known]
    if unknown:
        raise InputRefused(f"no such run: {unknown[0]!r}", source=comparison_id, code="unknown_run")
    for table in ("comparisons", "cohort_members"):
        con.execute(f"DELETE FROM {table} WHERE comparison_id = ?", [comparison_id])
    insert_rows(con, "comparisons", [{"comparison_id": comparison_id}])
    insert_rows(con, "cohort_members", rows)


def compare_cohorts(con: duckdb.DuckDBPyConnection, comparison_id: str, rules: Rules = EVERY_CHANGE) -> dict[str, Any]:
    """The ``planewise/comparison/1`` document of a comparison in ``con`` (protocol 10.5).

    ``confidence_interval`` is the protocol's; it is None, and the verdict ``ineligible``, exactly when there are
    ``reasons``; statistics, deltas and tensor statistics are then given all the same, and prove nothing. Behind the
    protocol's members stand ours: the calibrated ``interval`` that decides, and what :mod:`.judgement` says. Raises
    :class:`UsageError` when ``con`` holds no comparison of that name.
    """
    summaries = _records(con, f"SELECT {', '.join(_SUMMARY)} FROM comparison_summary", comparison_id)
    if not summaries:
        raise UsageError(f"no comparison named {comparison_id!r}", remedy="load its cohorts first")
    summary = summaries[0]
    statistics = {row.pop("cohort"): row for row in _records(con, _STATISTICS, comparison_id)}
    samples = _samples(con, comparison_id, summary, statistics)
    interval = _interval(samples) if summary["comparable"] else None
    order = capture_order(ordered_runs(_records(con, _ORDER, comparison_id, "cohort, position")))
    ours = undecided(rules) if interval is None else judged(samples, interval, order, rules)
    return {
        "schema": COMPARISON_SCHEMA,
        "metric": METRIC,
        "inputs": _inputs(con, comparison_id),
        "comparable": summary["comparable"],
        "paired": summary["paired"],
        "verdict": ours.pop("verdict"),
        "reasons": _records(con, "SELECT code, message FROM comparison_reasons", comparison_id, "reason_order"),
        "baseline_implementation_id": summary["baseline_implementation_id"],
        "candidate_implementation_id": summary["candidate_implementation_id"],
        "identity": summary["identity"],
        "baseline": statistics["baseline"],
        "candidate": statistics["candidate"],
        "median_delta_ns": summary["median_delta_ns"],
        "median_delta_percent": summary["median_delta_percent"],
        "confidence_interval": interval and interval.to_json(),
        "tensor_stats": _tensor_stats(con, comparison_id),
        **ours,
    }


_STATISTICS = "SELECT cohort, samples_ns, median_ns, p95_ns, mad_ns FROM comparison_statistics"


def _records(
    con: duckdb.DuckDBPyConnection, query: str, comparison_id: str, order: str = "comparison_id"
) -> list[dict[str, Any]]:
    con.execute(f"{query} WHERE comparison_id = ? ORDER BY {order}", [comparison_id])
    names = [item[0] for item in con.description or []]
    return [dict(zip(names, row, strict=True)) for row in con.fetchall()]


_ORDER = """
    SELECT cohort, run_id, outer_wall_time_ns AS value, timestamp
    FROM comparison_samples LEFT JOIN runs USING (run_id)
"""


def _samples(
    con: duckdb.DuckDBPyConnection, comparison_id: str, summary: dict[str, Any], statistics: dict[str, Any]
) -> Samples:
    found = [statistics[cohort]["samples_ns"] for cohort in _COHORTS]
    if not summary["paired"]:
        return Samples(found[0], found[1])
    pairs = _records(con, "SELECT delta_ns FROM comparison_pairs", comparison_id, "pair_id")
    return Samples(found[0], found[1], [pair["delta_ns"] for pair in pairs])


def _interval(samples: Samples) -> Interval:
    """The protocol's own interval (10.4)."""
    if samples.deltas is not None:
        return paired_interval([int(delta) for delta in samples.deltas])
    return unpaired_interval([int(ns) for ns in samples.baseline], [int(ns) for ns in samples.candidate])


def _inputs(con: duckdb.DuckDBPyConnection, comparison_id: str) -> dict[str, Any]:
    members = _records(
        con, "SELECT cohort, run_id, verified, manifest_sha256 FROM cohort_members", comparison_id, "cohort, position"
    )
    verified = all(member["verified"] for member in members)
    listed = {
        cohort: [
            {"run_id": member["run_id"], "manifest_sha256": member["manifest_sha256"]}
            for member in members
            if verified and member["cohort"] == cohort
        ]
        for cohort in _COHORTS
    }
    return {"verification": "verified_bundles" if verified else "unverified_traces", **listed}


def _tensor_stats(con: duckdb.DuckDBPyConnection, comparison_id: str) -> dict[str, Any]:
    rows = _records(con, "FROM comparison_tensor_stats", comparison_id, "matching, row_order")
    runs = dict(
        con.execute(
            "SELECT cohort, count(*) FROM cohort_members WHERE comparison_id = ? GROUP BY cohort", [comparison_id]
        ).fetchall()
    )
    unmatched = {
        matching: [row["label"] for row in rows if row["matching"] == matching]
        for matching in ("unmatched_a", "unmatched_b")
    }
    return {
        **{f"{cohort}_runs": runs.get(cohort, 0) for cohort in _COHORTS},
        "matched": [{name: row[name] for name in _MATCHED} for row in rows if row["matching"] == "matched"],
        **unmatched,
    }


def _member(receipt: Receipt) -> CohortMember:
    return CohortMember(receipt.run_id, True, receipt.run_id, receipt.manifest_sha256)


def _one_per_run(receipts: dict[Path, Receipt]) -> list[Path]:
    """One folder per run id: copies of one bundle are one run, which the reason duplicate_run_ids then names."""
    chosen: dict[str, Path] = {}
    for path, receipt in receipts.items():
        first = chosen.setdefault(receipt.run_id, path)
        if receipts[first].manifest_sha256 != receipt.manifest_sha256:
            raise InputRefused(
                f"holds run {receipt.run_id!r}, as {first} does with other content", source=path, code="run_id_clash"
            )
    return list(chosen.values())
