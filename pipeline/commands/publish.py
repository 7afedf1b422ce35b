"""``planewise publish``."""

from __future__ import annotations

from dataclasses import asdict

import click

from ..output import OutputFormat, Rows, printable, write_rows
from ..publish import publish as publish_store
from ..requalify import results_of
from ..side_by_side import Jobs
from ..stores import StorePlace, open_place
from .options import format_option, jobs_option, note, progress_bar, store_option, viewer_option, warn_of_strays

COLUMNS = ("run_id", "status", "bundle_path", "manifest_sha256", "message")


@click.command()
@store_option
@viewer_option
@jobs_option
@format_option()
def publish(store_path: StorePlace, viewers: bool, jobs: Jobs, output_format: OutputFormat) -> int:
    """Seal every staged run as an immutable bundle: manifest, deep verification, one rename.

    A run that was published before is reported as such and never written again. Failed and invalid runs are
    published too, with the evidence that says so. What the views say of each new bundle is kept in the schema results.

    \b
    Example: planewise publish --store /data/store
    """
    store = open_place(store_path)
    with progress_bar("publish") as report:
        results = publish_store(store, progress=report, viewers=viewers, jobs=jobs)
    with progress_bar("results") as report:
        failed = results_of(store, results, progress=report)
    write_rows(Rows.of([asdict(result) for result in results], COLUMNS), output_format)
    for row in failed:
        note(f"warning: no results of {printable(row.run_id)}: {printable(row.message or '')}")
    warn_of_strays(store)
    fresh = sum(result.status == "published" for result in results)
    refused = sum(result.status == "refused" for result in results)
    note(f"published {fresh}, already published {len(results) - fresh - refused}, refused {refused}")
    return 3 if refused else 0
