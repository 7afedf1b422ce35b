"""The nightly job: ingest, qualify and publish every source, then aggregate one campaign."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from .bundle import Receipt
from .campaign import Campaign, CheckedBundle, PlannedComparison, campaign_tables, check_campaign, status_of
from .catalog import build_catalog
from .compare import CohortMember, compare_cohorts, load_cohorts, members_where
from .fsio import write_atomic
from .ingest_stage import IngestResult, ingest_sources
from .loose import bundle_connection
from .output import to_json
from .publish import Publication, publish
from .qualify import Qualification, qualify
from .store import Store, run_key
from .tables import TABLES

Progress = Callable[[int, int, str], None]
Stage = Callable[[str], Progress]

HOTTEST = """
    WITH per_run AS (
        SELECT a.run_id, a.name, sum(a.observed_host_duration_ns) AS host_ns
        FROM activation_hotspots AS a JOIN run_health AS h USING (run_id)
        WHERE h.status = 'valid'
        GROUP BY a.run_id, a.name
    )
    SELECT name, count(*) AS runs, median(host_ns) AS median_host_ns
    FROM per_run
    GROUP BY name
    ORDER BY median_host_ns DESC, name
    LIMIT ?
"""
HOTTEST_ROWS = 3


@dataclass(frozen=True)
class NightlyReport:
    """What one night did: results of each stage, the campaign's status, its comparisons, its hottest activations."""

    ingested: list[IngestResult]
    qualified: list[Qualification]
    published: list[Publication]
    status: dict[str, Any]
    comparisons: list[dict[str, Any]]
    hottest: list[dict[str, Any]]
    folder: Path


def run_nightly(store: Store, campaign: Campaign, sources: Sequence[Path], stage: Stage) -> NightlyReport:
    """Run all stages over ``sources``, then aggregate ``campaign`` and write its documents into the store.

    ``stage`` gives a progress callback for a named stage. Inputs that are refused are part of the report; they stop
    nothing.
    """
    ingested = ingest_sources(store, sources, progress=stage("ingest"))
    qualified = qualify(store, progress=stage("qualify"))
    published = publish(store, progress=stage("publish"))
    checks = check_campaign(campaign, store_bundles=store.bundle_paths())
    status = status_of(campaign, checks)
    tables = campaign_tables(campaign, checks)
    comparisons, hottest = _aggregate(campaign, checks, tables)
    _write_tables(store, campaign, tables)
    folder = _write_documents(store, campaign, status, comparisons)
    build_catalog(store.path)
    return NightlyReport(ingested, qualified, published, status, comparisons, hottest, folder)


def _aggregate(
    campaign: Campaign, checks: Sequence[CheckedBundle], tables: dict[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Comparisons and hottest activations over the campaign's verified bundles; the cohorts join ``tables``."""
    receipts = {check.receipt.run_id: check.receipt for check in checks if check.receipt is not None}
    with bundle_connection([check.path for check in checks if check.receipt and check.path]) as con:
        complete = {
            run_id for (run_id,) in con.execute("SELECT run_id FROM run_health WHERE capture_complete").fetchall()
        }
        eligible = {run_id: receipt for run_id, receipt in receipts.items() if run_id in complete}
        comparisons = [_compare(con, planned, eligible) for planned in campaign.comparisons]
        for name in ("comparisons", "cohort_members"):
            rows = con.sql(f'FROM "{name}" ORDER BY ALL').to_arrow_table()
            tables[name] = rows.cast(TABLES[name].schema)
        found = con.execute(HOTTEST, [HOTTEST_ROWS])
        names = [item[0] for item in found.description or []]
        return comparisons, [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _compare(
    con: duckdb.DuckDBPyConnection, planned: PlannedComparison, receipts: dict[str, Receipt]
) -> dict[str, Any]:
    """One comparison; failed and interrupted runs have no sample and take no part, invalid ones make it ineligible."""
    baseline, candidate = (
        [_member(receipts[run_id]) for run_id in members_where(con, where) if run_id in receipts]
        for where in (planned.baseline, planned.candidate)
    )
    load_cohorts(con, planned.name, baseline=baseline, candidate=candidate)
    return {"name": planned.name, **compare_cohorts(con, planned.name)}


def _member(receipt: Receipt) -> CohortMember:
    return CohortMember(
        receipt.run_id, verified=True, receipt_run_id=receipt.run_id, manifest_sha256=receipt.manifest_sha256
    )


def _write_tables(store: Store, campaign: Campaign, tables: dict[str, Any]) -> None:
    for name, rows in tables.items():
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink)
        write_atomic(
            store.path / "tables" / name / f"{run_key(campaign.campaign_id)}.parquet", sink.getvalue().to_pybytes()
        )


def _write_documents(
    store: Store, campaign: Campaign, status: dict[str, Any], comparisons: Iterable[dict[str, Any]]
) -> Path:
    folder = store.path / "campaigns" / run_key(campaign.campaign_id)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "status.json", (to_json(status, indent=1) + "\n").encode())
    for comparison in comparisons:
        path = folder / f"comparison-{run_key(comparison['name'])}.json"
        write_atomic(path, (to_json(comparison, indent=1) + "\n").encode())
    return folder
