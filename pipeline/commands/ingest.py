"""``planewise ingest``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from ...ingest.base import READERS
from ..ingest_stage import ingest_sources
from ..output import OutputFormat, Rows, write_rows
from ..store import Store
from .options import format_option, note, progress_bar, store_option

COLUMNS = ("source", "status", "run_id", "format", "code", "message")


@click.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@store_option
@click.option(
    "--format",
    "reader",
    type=click.Choice(sorted(READERS)),
    help="Format of the sources; detected from their content when not given.",
)
@format_option("--output-format")
def ingest(sources: tuple[Path, ...], store_path: Path, reader: str | None, output_format: OutputFormat) -> int:
    """Read captures and traces into the staging area of a store.

    A SOURCE is a recorder capture, a candle-graph trace, or a folder of them. The store is made when it does not
    exist. A refused source leaves nothing behind; the others go on, and the exit code is 3 at the end.

    \b
    Example: planewise ingest captures/ --store /data/store
    """
    made_here = not store_path.exists()
    store = Store.open(store_path, create=True)
    with progress_bar("ingest") as report:
        results = ingest_sources(store, list(sources), format=reader, progress=report)
    write_rows(Rows.of([asdict(result) for result in results], COLUMNS), output_format)
    counts = {status: sum(r.status == status for r in results) for status in ("ingested", "unchanged", "refused")}
    note(", ".join(f"{count} {status}" for status, count in counts.items()))
    if made_here and counts["refused"] == len(results) and store.withdraw():
        note("no store was made")
    return 3 if counts["refused"] else 0
