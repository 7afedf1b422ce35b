"""``planewise qualify``."""

from __future__ import annotations

from dataclasses import asdict

import click

from ...recorder.errors import CheckFailed
from ..output import OutputFormat, Rows, write_rows
from ..qualify import qualify as qualify_store
from ..side_by_side import Jobs
from ..stores import StorePlace, open_place
from .options import format_option, jobs_option, note, progress_bar, store_option, warn_of_strays

COLUMNS = ("run_id", "status", "errors", "warnings", "unchanged", "message")


@click.command()
@store_option
@click.option(
    "--require-valid",
    is_flag=True,
    help="Exit with 1 unless every staged run is valid. Published runs were judged before and are not asked.",
)
@jobs_option
@format_option()
def qualify(store_path: StorePlace, require_valid: bool, jobs: Jobs, output_format: OutputFormat) -> int:
    """Judge every staged run: structural health, capabilities and evidence, in SQL over all of them at once.

    A run whose planes cannot be read is refused; the others go on, and the exit code is 3.

    \b
    Example: planewise qualify --store /data/store --require-valid
    """
    store = open_place(store_path)
    with progress_bar("qualify") as report:
        results = qualify_store(store, progress=report, jobs=jobs)
    write_rows(Rows.of([asdict(result) for result in results], COLUMNS), output_format)
    warn_of_strays(store)
    note(f"{len(results)} staged runs, {sum(r.status == 'valid' for r in results)} valid")
    if not results:
        asked = ", so --require-valid judged nothing" if require_valid else ""
        note(f"nothing is staged{asked}; the published runs were judged before: planewise sql 'FROM run_health'")
    bad = [result.run_id for result in results if result.status != "valid"]
    if require_valid and bad:
        raise CheckFailed(
            f"{len(bad)} of {len(results)} staged runs are not valid: {', '.join(sorted(bad)[:5])}",
            remedy="read report.md in their staging folders, or query --kind health",
        )
    return 3 if any(result.status == "refused" for result in results) else 0
