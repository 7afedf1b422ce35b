"""``planewise export``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click
import duckdb

from ...recorder.errors import InputRefused
from ..bundle import refuse_output_inside_bundle
from ..database import connect
from ..export_stormlog import export_stormlog
from ..inputs import open_input
from ..load import load_runs
from ..stores import StorePlace, open_place
from .export_files import candle_trace, csv, parquet, perfetto
from .options import StorePath, note


@click.group()
def export() -> None:
    """Write what a run holds in the format of another tool."""


@export.command()
@click.argument("run")
@click.option("--output", type=click.Path(path_type=Path), required=True, help="Folder to make; it must not exist.")
@click.option("--store", "store_path", type=StorePath(), help="Store that holds the run; RUN is its run id then.")
def stormlog(run: str, output: Path, store_path: StorePlace | None) -> int:
    """Write an inference run as stormlog reads it: run.jsonl (version 4) and stormlog_run.json.

    RUN is a bundle or an inference artifact, or the id of a run in --store. Activities that are linked by ids over
    the whole run are written as linked.

    \b
    Example: planewise export stormlog run/artifact --output for-stormlog
    """
    with ExitStack() as stack:
        con, run_id, files = _opened(stack, run, output, store_path)
        done = export_stormlog(con, run_id, output, files)
    note(f"wrote {done.folder}: {done.records} records, {done.linked} links found, {done.attachments} attachments")
    return 0


for _command in (parquet, csv, perfetto, candle_trace):
    export.add_command(_command)


def _opened(
    stack: ExitStack, run: str, output: Path, store_path: StorePlace | None
) -> tuple[duckdb.DuckDBPyConnection, str, Path]:
    """A connection with the run in it, its id, and the folder that its attachments lie in."""
    if store_path is None:
        refuse_output_inside_bundle(output, Path(run))
        opened = stack.enter_context(open_input(Path(run)))
        root = opened.description.get("bundle_root")
        return opened.con, opened.run_id, Path(root or run)
    found = open_place(store_path).find(run)
    if found is None:
        raise InputRefused(
            f"no run {run!r:.80}", source=store_path, code="no_run", remedy="see planewise sql for the ids"
        )
    con = stack.enter_context(connect())
    load_runs(con, [found.path])
    return con, found.run_id, found.path
