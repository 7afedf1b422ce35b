"""``planewise ingest``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from ...ingest.base import READERS
from ..ingest_stage import IngestResult, ingest_sources
from ..output import OutputFormat, Rows, write_rows
from ..side_by_side import Jobs
from ..staging import ReadOptions
from ..stores import StorePlace, open_place
from ..supplied import load_supplied
from .options import format_option, jobs_option, note, progress_bar, store_option

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
@click.option(
    "--identity",
    "facts_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON file of facts about foreign traces that they do not say: identity, scope, phase, ...",
)
@click.option(
    "--execution-trace",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Execution trace recorded beside the one Kineto trace that is ingested; its nodes are joined to it.",
)
@click.option("--python-functions", is_flag=True, help="Keep the Python frames of Kineto traces (with_stack) as spans.")
@jobs_option
@format_option("--output-format")
def ingest(
    sources: tuple[Path, ...],
    store_path: StorePlace,
    reader: str | None,
    facts_path: Path | None,
    execution_trace: Path | None,
    python_functions: bool,
    jobs: Jobs,
    output_format: OutputFormat,
) -> int:
    """Read captures and traces into the staging area of a store.

    A SOURCE is a recorder capture, a trace of any known format (planewise ingest --help lists them under --format), or
    a folder of them at any depth. The store is made when it does not exist. A refused source leaves nothing behind; the
    others go on, and the exit code is 3 at the end.

    \b
    Examples:
      planewise ingest captures/ --store /data/store
      planewise ingest traces/ --store /data/store --identity facts.json --jobs 2
      planewise ingest trace.json.gz --store /data/store --execution-trace et.json
    """
    facts = None if facts_path is None else load_supplied(facts_path)
    options = ReadOptions(facts, python_functions, execution_trace)
    made_here = isinstance(store_path, Path) and not store_path.exists()
    store = open_place(store_path, create=True)
    with progress_bar("ingest") as report:
        results = ingest_sources(store, list(sources), format=reader, options=options, jobs=jobs, progress=report)
    shown = results
    if output_format is OutputFormat.TABLE:  # What was refused is not to be cut from the end of a long table.
        shown = sorted(results, key=lambda result: result.status != "refused")
    write_rows(Rows.of([asdict(result) for result in shown], COLUMNS), output_format)
    if output_format is OutputFormat.TABLE and len(results) > 1:
        write_rows(by_format(results), output_format)
    counts = {status: sum(r.status == status for r in results) for status in ("ingested", "unchanged", "refused")}
    note(", ".join(f"{count} {status}" for status, count in counts.items()))
    if made_here and counts["refused"] == len(results) and store.withdraw():
        note("no store was made")
    return 3 if counts["refused"] else 0


def by_format(results: Sequence[IngestResult]) -> Rows:
    """What was read, by format, and what was refused, by code: files, and rows of planes newly written."""
    files: Counter[tuple[str, str]] = Counter()
    rows: Counter[tuple[str, str]] = Counter()
    for result in results:
        key = (result.format or "-", result.status if result.status != "refused" else f"refused: {result.code}")
        files[key] += 1
        rows[key] += sum((result.rows or {}).values())
    return Rows(("format", "outcome", "files", "plane_rows"), [(*key, files[key], rows[key]) for key in sorted(files)])
