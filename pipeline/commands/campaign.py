"""``planewise campaign``."""

from __future__ import annotations

from pathlib import Path

import click

from ..campaign import campaign_status, load_campaign
from ..output import OutputFormat, Rows, write_document, write_rows
from ..stores import StorePlace, open_place
from .options import StorePath, format_option, note, output_option

COLUMNS = ("capture_step", "bundle", "state", "run_id", "message")


@click.group()
def campaign() -> None:
    """Questions about a campaign of planned captures."""


@campaign.command()
@click.argument("manifest", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--store",
    "store_path",
    type=StorePath(),
    envvar="PLANEWISE_STORE",
    help="Store whose bundles hold the planned run ids; not needed when the manifest plans bundle paths.",
)
@format_option()
@output_option
def status(manifest: Path, store_path: StorePlace | None, output_format: OutputFormat, output: Path | None) -> int:
    """State of every planned capture: published, failed_run, identity_mismatch, verification_failed or missing.

    \b
    Example: planewise campaign status campaign.json --store /data/store
    """
    plan = load_campaign(manifest)
    find = open_place(store_path).find_bundle if store_path is not None else None
    document = campaign_status(plan, base_dir=plan.base_dir, find_bundle=find)
    if output is not None or output_format is OutputFormat.JSON:
        write_document(document, output)
        return 0
    rows = [
        {"capture_step": row["capture_step"], "bundle": row["bundle"], **row["state"]} for row in document["captures"]
    ]
    for row in rows:
        row["message"] = row.get("message") or row.get("reason")
    write_rows(Rows.of(rows, COLUMNS), output_format)
    note(", ".join(f"{document[name]} {name}" for name in ("planned", "published", "failed", "missing")))
    return 0
