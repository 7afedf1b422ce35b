"""``planewise export parquet``, ``csv``, ``perfetto`` and ``candle-trace``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click
import duckdb

from ...recorder.errors import InputRefused, UsageError
from ..bundle import refuse_output_inside_bundle
from ..export_candle import export_candle
from ..export_chrome import export_chrome
from ..export_rows import export_csv, export_parquet
from ..inputs import open_input
from ..loose import bundle_connection
from ..relation_list import relation_list
from ..stores import StorePlace, open_place
from .options import StorePath, note, store_option


def _file_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, help="File to write."
    )(function)


def _store_of_run(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--store", "store_path", type=StorePath(), help="Store that holds the run; RUN is its run id then."
    )(function)


@contextmanager
def _opened(run: str, output: Path, store_path: StorePlace | None) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
    """A connection over the one run, and its id."""
    output.parent.mkdir(parents=True, exist_ok=True)
    if store_path is None:
        refuse_output_inside_bundle(output, Path(run))
        with open_input(Path(run)) as opened:
            yield opened.con, opened.run_id
        return
    found = open_place(store_path).find(run)
    if found is None:
        raise InputRefused(f"no run {run!r:.80}", source=store_path, code="no_run", remedy="planewise sql lists them")
    refuse_output_inside_bundle(output, found.path)
    with closing(bundle_connection([found.path])) as con:
        yield con, found.run_id


@click.command()
@click.argument("run")
@_file_option
@_store_of_run
def perfetto(run: str, output: Path, store_path: StorePlace | None) -> int:
    """Write a run as Chrome JSON for ui.perfetto.dev and chrome://tracing.

    Host threads, one group of tracks for each clock of each device, arrows from launches to the work that carries
    their correlation id, live bytes as counters. Clocks are not aligned: each begins at its own zero, which the file
    names. A name that ends in .gz is compressed.

    \b
    Example: planewise export perfetto store/bundles/RUN --output run.json.gz
    """
    with _opened(run, output, store_path) as (con, run_id):
        done = export_chrome(con, run_id, output)
    note(f"wrote {output}: {done.slices} slices, {done.arrows} arrows, {done.counters} counter values")
    if done.never_ended:
        note(f"{done.never_ended} spans never ended and are instants")
    return 0


@click.command("candle-trace")
@click.argument("run")
@_file_option
@_store_of_run
def candle_trace(run: str, output: Path, store_path: StorePlace | None) -> int:
    """Write a run as a candle-graph trace (trace/10), which reads back as the same run.

    What the format has no place for is left out and named. A run without its metadata or its end, or a foreign trace
    that lacks what the format requires, is refused.

    \b
    Example: planewise export candle-trace store/bundles/RUN --output run.jsonl.gz
    """
    with _opened(run, output, store_path) as (con, run_id):
        done = export_candle(con, run_id, output)
    note(f"wrote {output}: {done.records} records")
    for name, count in sorted(done.left_out.items()):
        note(f"the format has no place for {name}: {count} values are left out")
    return 0


def _rows_command(name: str, write: Callable[..., int], doc: str) -> click.Command:
    @click.argument("relation")
    @store_option
    @_file_option
    @click.option("--where", help="SQL condition over the relation's columns.")
    @click.option("--force", is_flag=True, help="Replace a file that is there.")
    def command(relation: str, store_path: StorePlace, output: Path, where: str | None, force: bool) -> int:
        store = open_place(store_path)
        if relation not in {row["name"] for row in relation_list()}:
            raise UsageError(f"no plane or view named {relation!r:.60}", remedy="planewise schema lists them")
        refuse_output_inside_bundle(output)
        con = store.connect()
        try:
            query = f'FROM "{relation}"' + ("" if where is None else f" WHERE ({where})")
            count = write(con, query, output, replace=force)
        finally:
            con.close()
        note(f"wrote {output}: {count} rows")
        return 0

    command.__doc__ = doc
    return click.command(name)(command)


parquet = _rows_command(
    "parquet",
    export_parquet,
    """Write the rows of a plane or view of a store as one Parquet file.

    Integers of 128 bits are DECIMAL(38, 0), which holds them exactly.

    \b
    Example: planewise export parquet kernel_summary --store S --output kernels.parquet
    """,
)
csv = _rows_command(
    "csv",
    export_csv,
    """Write the rows of a plane or view of a store as one CSV file.

    NULL is an empty cell and an empty text is "", integers of 128 bits are written whole, lists are JSON.

    \b
    Example: planewise export csv outer_wall_time --store S --output walls.csv --where "outer_wall_time_ns > 1000000"
    """,
)
