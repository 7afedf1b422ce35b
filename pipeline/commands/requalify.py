"""``planewise requalify``."""

from __future__ import annotations

from dataclasses import asdict

import click

from ..catalog import build_catalog
from ..output import OutputFormat, Rows, write_rows
from ..requalify import requalify as requalify_store
from ..stores import StorePlace, open_place
from .options import format_option, note, progress_bar, store_option

COLUMNS = ("run_id", "status", "message")


@click.command()
@store_option
@format_option()
def requalify(store_path: StorePlace, output_format: OutputFormat) -> int:
    """Compute what the views say of each published run where it is not kept: after an upgrade, or a loss.

    The bundles stay as they are. What is kept is the schema results of the catalogue; a campaign is aggregated from
    it. publish and nightly keep it up to date for their own runs.

    \b
    Example: planewise requalify --store /data/store
    """
    store = open_place(store_path)
    with progress_bar("requalify") as report:
        rows = requalify_store(store, progress=report)
    build_catalog(store.path)
    write_rows(Rows.of([asdict(row) for row in rows], COLUMNS), output_format)
    counts = {status: sum(row.status == status for row in rows) for status in ("computed", "kept", "refused")}
    note(", ".join(f"{status} {count}" for status, count in counts.items()))
    return 3 if counts["refused"] else 0
