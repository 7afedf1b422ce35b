"""The state of a campaign: what of the planned captures is published, failed or missing (protocol 11.2)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ..recorder.errors import PlanewiseError, UsageError
from ..recorder.planes import PLANES
from .bundle import Receipt, verify_bundle
from .campaign_manifest import Campaign, PlannedCapture, PlannedComparison, load_campaign
from .database import connect
from .read_bundle import Verify, load_bundle
from .tables import TABLES
from .views import create_input_tables, create_views

__all__ = [
    "Campaign",
    "CheckedBundle",
    "PlannedCapture",
    "PlannedComparison",
    "campaign_status",
    "campaign_tables",
    "check_bundle",
    "check_campaign",
    "insert_rows",
    "load_campaign",
    "status_of",
]

STATUS_SCHEMA = "planewise/campaign-status/1"

FindBundle = Callable[[str], Path | None]
"""Where a run id is published; None when it is nowhere."""

_STATUS = """
    SELECT capture_step, bundle, state, run_id, manifest_sha256, message, planned_run_id
    FROM campaign_status ORDER BY capture_step, position
"""


@dataclass(frozen=True)
class CheckedBundle:
    """What reading one planned bundle found: the receipt and the one row of its runs plane, or why there is none.

    ``bundle`` is the path as the status names it, empty for a planned run id that no bundle holds; ``path`` is the
    folder, None when nothing is there.
    """

    bundle: str
    path: Path | None
    receipt: Receipt | None = None
    run: Any = field(default=None, repr=False)
    message: str | None = None


def campaign_status(
    campaign: Campaign,
    *,
    base_dir: Path | None = None,
    find_bundle: FindBundle | None = None,
    verify: Verify = verify_bundle,
) -> dict[str, Any]:
    """The ``planewise/campaign-status/1`` document of a campaign.

    Every planned bundle is verified deeply; nothing is written. Bundle paths resolve against ``base_dir`` (default:
    the manifest's folder), planned run ids through ``find_bundle`` (run id -> folder; None: the run is missing). An
    interrupted run has state ``failed_run`` with the reason ``interrupted: no terminal record``.
    """
    checks = check_campaign(campaign, base_dir=base_dir, find_bundle=find_bundle, verify=verify)
    return status_of(campaign, checks)


def check_campaign(
    campaign: Campaign,
    *,
    base_dir: Path | None = None,
    find_bundle: FindBundle | None = None,
    verify: Verify = verify_bundle,
) -> list[CheckedBundle]:
    """Verify and read every planned bundle, in the order of the manifest; a bad bundle is a message, never an error.

    Two bundles that hold different runs of one run id cannot both be told apart by it: the later one fails. Raises
    :class:`UsageError` for a planned run id without ``find_bundle``.
    """
    checks: list[CheckedBundle] = []
    seen: dict[str, CheckedBundle] = {}
    for planned in campaign.planned:
        bundle, path = _locate(planned, base_dir or campaign.base_dir, find_bundle)
        check = CheckedBundle(bundle, None) if path is None else check_bundle(bundle, path, verify)
        if check.receipt is not None:
            first = seen.setdefault(check.receipt.run_id, check)
            if not first.run.equals(check.run):
                check = CheckedBundle(
                    bundle, path, message=f"the run id {check.receipt.run_id!r} is also that of {first.bundle}"
                )
        checks.append(check)
    return checks


def check_bundle(bundle: str, path: Path, verify: Verify = verify_bundle) -> CheckedBundle:
    """Verify one bundle deeply and read it; what fails is told in ``message``."""
    try:
        loaded = load_bundle(path, verify)
    except (PlanewiseError, OSError) as error:
        return CheckedBundle(bundle, path, message=str(error))
    return CheckedBundle(bundle, path, loaded.receipt, loaded.run)


def status_of(campaign: Campaign, checks: Iterable[CheckedBundle]) -> dict[str, Any]:
    """The status document for what :func:`check_campaign` found."""
    with connect() as con:
        create_input_tables(con)
        create_views(con, only=("campaign_status", "campaign_counts"))
        _fill(con, campaign, list(checks))
        counts = con.execute("SELECT planned, published, missing, failed FROM campaign_counts").fetchall()[0]
        rows = con.execute(_STATUS).fetchall()
    return {
        "schema": STATUS_SCHEMA,
        "campaign_id": campaign.campaign_id,
        "entrypoint": campaign.entrypoint,
        **dict(zip(("planned", "published", "missing", "failed"), counts, strict=True)),
        "captures": [_capture(*row) for row in rows],
    }


def insert_rows(con: duckdb.DuckDBPyConnection, table: str, rows: Any) -> None:
    """Append rows (an Arrow table, or dictionaries) to an input table that is a table and no view."""
    schema = {**PLANES, **TABLES}[table].schema
    con.register("_new_rows", rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows, schema=schema))
    con.execute(f'INSERT INTO "{table}" FROM _new_rows')
    con.unregister("_new_rows")


def _locate(planned: PlannedCapture, base_dir: Path, find_bundle: FindBundle | None) -> tuple[str, Path | None]:
    if planned.run_id is not None:
        if find_bundle is None:
            raise UsageError(
                f"the manifest plans the run id {planned.run_id!r}, which only a store can find",
                remedy="name the store with --store",
            )
        path = find_bundle(planned.run_id)
        return ("" if path is None else str(path)), path
    path = base_dir / str(planned.bundle)
    return str(planned.bundle), path if os.path.exists(path) else None


def campaign_tables(campaign: Campaign, checks: Iterable[CheckedBundle]) -> dict[str, Any]:
    """The rows of ``campaign_planned`` and ``bundle_checks`` for what :func:`check_campaign` found, as Arrow tables."""
    checks = list(checks)
    planned = [
        {
            "campaign_id": campaign.campaign_id,
            "entrypoint": campaign.entrypoint,
            "position": position,
            "capture_step": item.capture_step,
            "bundle": check.bundle,
            "run_id": item.run_id,
        }
        for position, (item, check) in enumerate(zip(campaign.planned, checks, strict=True))
    ]
    found = [
        {
            "campaign_id": campaign.campaign_id,
            "bundle": check.bundle,
            "run_id": check.receipt and check.receipt.run_id,
            "manifest_sha256": check.receipt and check.receipt.manifest_sha256,
            "message": check.message,
        }
        for check in checks
        if check.path is not None
    ]
    rows = {"campaign_planned": planned, "bundle_checks": found}
    return {name: pa.Table.from_pylist(values, schema=TABLES[name].schema) for name, values in rows.items()}


def _fill(con: duckdb.DuckDBPyConnection, campaign: Campaign, checks: list[CheckedBundle]) -> None:
    for name, rows in campaign_tables(campaign, checks).items():
        insert_rows(con, name, rows)
    runs = {check.receipt.run_id: check.run for check in checks if check.receipt is not None}
    if runs:
        insert_rows(con, "runs", pa.concat_tables(runs.values()))


def _capture(
    capture_step: int,
    bundle: str,
    state: str,
    run_id: str | None,
    manifest_sha256: str | None,
    message: str | None,
    planned_run_id: str | None,
) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if state == "published":
        extra = {"run_id": run_id, "manifest_sha256": manifest_sha256}
    elif state == "failed_run":
        extra = {"run_id": run_id, "reason": message}
    elif state != "missing":
        extra = {"message": message}
    named = {} if planned_run_id is None else {"run_id": planned_run_id}
    return {"capture_step": capture_step, **named, "bundle": bundle or None, "state": {"state": state, **extra}}
