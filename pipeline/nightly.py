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
from .campaign import Campaign, CheckedBundle, campaign_tables, check_campaign, status_of
from .catalog import build_catalog
from .cohorts import Cohorts, resolve_all
from .compare import CohortMember, compare_cohorts, load_cohorts
from .families import compare_metric
from .fsio import write_atomic
from .ingest_stage import IngestResult, ingest_sources
from .judgement import EVERY_CHANGE, Rules
from .loose import bundle_connection
from .nights import Change, record_night
from .output import to_json
from .pages.campaign_data import wall_times
from .pages.campaign_page import campaign_page
from .progress import Progress
from .publish import Publication, publish
from .qualify import Qualification, qualify
from .results import Published, load_results, make_results
from .side_by_side import Jobs
from .store import Store, run_key
from .tables import TABLES
from .untrusted import lock_down

REPORT = "report.html"
"""The page of a campaign, in its folder (docs/report.md)."""

Stage = Callable[[str], Progress]

HOTTEST = """
    SELECT name, count(*) AS runs, median(observed_host_duration_ns) AS median_host_ns
    FROM activation_name_time JOIN run_health USING (run_id)
    WHERE status = 'valid'
    GROUP BY name
    ORDER BY median_host_ns DESC, name
    LIMIT ?
"""
HOTTEST_ROWS = 3
LABEL_METRIC = "host_self_time"
"""What is compared label by label beside the outer wall time; what changed is told."""
LABEL_SHARE = 0.01
"""A label is told when it moved by so much of the baseline's wall time: microseconds are real and explain nothing."""
_SHOWN = """
    SELECT run_id FROM run_health LEFT JOIN activation_name_time USING (run_id)
    GROUP BY run_id, status ORDER BY status = 'valid' DESC, count(name) > 0 DESC, run_id LIMIT 1
"""


@dataclass(frozen=True)
class NightlyReport:
    """What one night did: results of each stage, the campaign's status, its comparisons, its hottest activations.

    ``example`` is a published bundle worth a first look, one with activations where there is one; None without any.
    """

    ingested: list[IngestResult]
    qualified: list[Qualification]
    published: list[Publication]
    status: dict[str, Any]
    comparisons: list[dict[str, Any]]
    hottest: list[dict[str, Any]]
    folder: Path
    example: Path | None
    schema: str
    """Schema of the campaign's manifest; only our own can declare comparisons and run ids."""
    changes: list[Change]
    """Comparisons that are slower, or were the night before."""
    without_candidate: list[str]
    """Comparisons with every other implementation, of which there is none."""


def run_nightly(
    store: Store,
    campaign: Campaign,
    sources: Sequence[Path],
    stage: Stage,
    rules: Rules = EVERY_CHANGE,
    *,
    viewers: bool = True,
    jobs: Jobs = 1,
) -> NightlyReport:
    """Run all stages over ``sources``, then aggregate ``campaign`` and write its documents into the store.

    ``stage`` gives a progress callback for a named stage; ``jobs`` processes work side by side. Inputs that are refused
    are part of the report; they stop nothing.
    """
    store.refresh_documents()
    ingested = ingest_sources(store, sources, jobs=jobs, progress=stage("ingest"))
    qualified = qualify(store, progress=stage("qualify"), jobs=jobs)
    published = publish(store, progress=stage("publish"), viewers=viewers, jobs=jobs)
    checks = check_campaign(campaign, find_bundle=store.find_bundle)
    status = status_of(campaign, checks)
    tables = campaign_tables(campaign, checks)
    comparisons, hottest, shown, times = _aggregate(store, campaign, checks, tables, rules, stage("results"))
    _write_tables(store, campaign, tables)
    folder = _write_documents(store, campaign, status, comparisons)
    changed = record_night(store, campaign.campaign_id, comparisons)
    build_catalog(store.path)
    page = campaign_page(store.path, campaign, folder / REPORT, times, changed)
    write_atomic(folder / REPORT, page.encode())
    store.share_documents()
    example = next((check.path for check in checks if check.receipt and check.receipt.run_id == shown), None)
    return NightlyReport(
        ingested,
        qualified,
        published,
        status,
        comparisons,
        hottest,
        folder,
        example,
        campaign.schema,
        changed,
        _without_candidate(campaign, comparisons),
    )


def _without_candidate(campaign: Campaign, comparisons: Sequence[dict[str, Any]]) -> list[str]:
    planned = [one.name for one in campaign.comparisons if one.every_implementation]
    return [name for name in planned if not any(found["name"].startswith(f"{name}: ") for found in comparisons)]


def _aggregate(
    store: Store,
    campaign: Campaign,
    checks: Sequence[CheckedBundle],
    tables: dict[str, Any],
    rules: Rules,
    progress: Progress,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str | None, list[dict[str, Any]]]:
    """Comparisons, hottest activations, a run worth a look, and wall times, over the campaign's verified bundles.

    They are read from the results of each run, which are made here where there are none. The cohorts join ``tables``.
    """
    sound = [Published(check.path, check.receipt) for check in checks if check.path and check.receipt]
    bundles = {bundle.receipt.run_id: bundle for bundle in sound}
    receipts = {run_id: bundle.receipt for run_id, bundle in bundles.items()}
    folders = [bundle.path.resolve() for bundle in bundles.values()]
    batches = make_results(store, list(bundles.values()), progress=progress)
    with bundle_connection(folders) as con:
        load_results(con, batches, list(bundles))
        lock_down(con, folders)
        comparisons = [_compare(con, one, receipts, rules) for one in resolve_all(con, campaign.comparisons)]
        for name in ("comparisons", "cohort_members"):
            rows = con.sql(f'FROM "{name}" ORDER BY ALL').to_arrow_table()
            tables[name] = rows.cast(TABLES[name].schema)
        found = con.execute(HOTTEST, [HOTTEST_ROWS])
        names = [item[0] for item in found.description or []]
        hottest = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        shown = con.execute(_SHOWN).fetchone()
        return comparisons, hottest, shown[0] if shown else None, wall_times(con, list(receipts))


def _compare(
    con: duckdb.DuckDBPyConnection, cohorts: Cohorts, receipts: dict[str, Receipt], rules: Rules
) -> dict[str, Any]:
    """One comparison and its labels; failed and interrupted runs take no part, invalid ones make it ineligible."""
    baseline, candidate = (
        [_member(receipts[run_id]) for run_id in members.complete] for members in (cohorts.baseline, cohorts.candidate)
    )
    load_cohorts(con, cohorts.name, baseline=baseline, candidate=candidate)
    left_out = {"baseline": list(cohorts.baseline.left_out), "candidate": list(cohorts.candidate.left_out)}
    document = {"name": cohorts.name, "left_out": left_out, **compare_cohorts(con, cohorts.name, rules)}
    family = compare_metric(con, cohorts.name, LABEL_METRIC) if document["comparable"] else {"rows": [], "adjust": None}
    labels, adjust = family["rows"], family["adjust"]
    matters = LABEL_SHARE * (document["baseline"]["median_ns"] or 0)
    moved = [row for row in labels if row["verdict"] in ("candidate_lower", "candidate_higher")]
    changed = sorted((row for row in moved if abs(row["shift"]) >= matters), key=lambda row: -abs(row["shift"]))
    return {**document, "labels": changed, "labels_compared": len(labels), "labels_adjust": adjust}


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
    texts = {
        f"comparison-{run_key(comparison['name'])}.json": to_json(comparison, indent=1) + "\n"
        for comparison in comparisons
    }
    for name, text in texts.items():
        write_atomic(folder / name, text.encode())
    for path in folder.glob("comparison-*.json"):
        if path.name not in texts:
            path.unlink()  # Of a comparison that the manifest names no more.
    return folder
