"""``planewise discard``."""

from __future__ import annotations

from dataclasses import asdict

import click

from ..discard import discard as discard_runs
from ..output import OutputFormat, Rows, write_rows
from ..stores import StorePlace, open_place
from .options import format_option, note, store_option

COLUMNS = ("run_id", "status", "message")


@click.command()
@click.argument("run_ids", metavar="RUN_ID...", nargs=-1, required=True)
@store_option
@format_option()
def discard(run_ids: tuple[str, ...], store_path: StorePlace, output_format: OutputFormat) -> int:
    """Take staged runs out of a store, e.g. to ingest their sources again with other facts.

    A published run is never taken back. A run that is not staged is refused; the others go on, and the exit code is 3.

    \b
    Example: planewise discard eager-01 --store /data/store
    """
    results = discard_runs(open_place(store_path), run_ids)
    write_rows(Rows.of([asdict(result) for result in results], COLUMNS), output_format)
    refused = sum(result.status == "refused" for result in results)
    note(f"{len(results) - refused} discarded, {refused} refused")
    return 3 if refused else 0
