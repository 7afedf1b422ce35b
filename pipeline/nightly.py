"""The nightly job: ingest, qualify and publish every source, then aggregate one campaign."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from .campaign import Campaign, campaign_status
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
    SELECT a.name, count(*) AS operations, count(DISTINCT a.run_id) AS runs,
           median(a.observed_host_duration_ns) AS median_host_ns, max(a.observed_host_duration_ns) AS max_host_ns
    FROM activation_hotspots AS a JOIN run_health AS h USING (run_id)
    WHERE h.status = 'valid'
    GROUP BY a.name
    ORDER BY median_host_ns DESC, a.name
    LIMIT ?
"""


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
    status = campaign_status(campaign, base_dir=campaign.base_dir, store_bundles=store.bundle_paths())
    comparisons, hottest = _aggregate(store, campaign, status)
    folder = _write_documents(store, campaign, status, comparisons)
    return NightlyReport(ingested, qualified, published, status, comparisons, hottest, folder)


def published_bundles(campaign: Campaign, status: dict[str, Any], store: Store) -> dict[str, Path]:
    """Run id -> bundle folder of every capture of the campaign that was read and verified, failed runs included."""
    known = store.bundle_paths()
    found: dict[str, Path] = {}
    for capture in status["captures"]:
        run_id = capture["state"].get("run_id")
        if run_id is not None:
            found[run_id] = known.get(run_id, campaign.base_dir / capture["bundle"])
    return found


def _aggregate(
    store: Store, campaign: Campaign, status: dict[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    bundles = published_bundles(campaign, status, store)
    receipts = {
        capture["state"]["run_id"]: capture["state"]["manifest_sha256"]
        for capture in status["captures"]
        if capture["state"]["state"] == "published"
    }
    con = bundle_connection(list(bundles.values()))
    try:
        comparisons = [
            _compare(con, spec.name, spec.baseline, spec.candidate, receipts) for spec in campaign.comparisons
        ]
        _write_table(store, campaign, "cohort_members", con)
        rows = con.execute(HOTTEST, [3])
        names = [item[0] for item in rows.description or []]
        hottest = [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
    finally:
        con.close()
    return comparisons, hottest


def _compare(
    con: duckdb.DuckDBPyConnection, name: str, baseline: str, candidate: str, receipts: dict[str, str]
) -> dict[str, Any]:
    cohorts = [
        [
            CohortMember(run_id, verified=True, receipt_run_id=run_id, manifest_sha256=receipts[run_id])
            for run_id in members_where(con, predicate)
            if run_id in receipts
        ]
        for predicate in (baseline, candidate)
    ]
    load_cohorts(con, name, baseline=cohorts[0], candidate=cohorts[1])
    return {"name": name, **compare_cohorts(con, name)}


def _write_table(store: Store, campaign: Campaign, table: str, con: duckdb.DuckDBPyConnection) -> None:
    rows = con.execute(f'SELECT * FROM "{table}"').fetch_arrow_table().cast(TABLES[table].schema)
    path = store.path / "tables" / table / f"{run_key(campaign.campaign_id)}.parquet"
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    write_atomic(path, sink.getvalue().to_pybytes())


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
