"""``planewise sql``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import click
import duckdb

from ..limits import FREE, SHARED, Limits, within
from ..output import OutputFormat, Rows, write_rows
from ..stores import StorePlace, open_place
from ..untrusted import fetch_untrusted, sql_fault
from .options import format_option, note, store_option


@click.command()
@click.argument("query")
@store_option
@click.option(
    "--untrusted",
    is_flag=True,
    help=f"Limits for people whom you do not know: {SHARED.memory}, {SHARED.seconds:g} s, {SHARED.rows:,} rows.",
)
@click.option("--memory-limit", metavar="SIZE", help="Most memory of the query, e.g. 1GB; nothing is spilled to disk.")
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), help="Seconds until the query is stopped.")
@click.option("--limit", type=click.IntRange(0), help="Most rows that are written; a cut is told.")
@format_option()
def sql(
    query: str,
    store_path: StorePlace,
    untrusted: bool,
    memory_limit: str | None,
    time_limit: float | None,
    limit: int | None,
    output_format: OutputFormat,
) -> int:
    """Run one SQL query over every run of a store, read-only; QUERY may be - for standard input.

    The query is one SELECT. It reads the views of the catalogue and nothing outside the store, writes nothing, and can
    change no setting, with --untrusted or without.

    \b
    Example: planewise sql "from device_clock_busy" --store /data/store --format csv
    """
    text = sys.stdin.read() if query == "-" else query
    limits = Limits(memory_limit, time_limit, limit).over(SHARED if untrusted else FREE)
    con = open_place(store_path).connect()
    try:
        with within(con, limits):
            rows = fetch_untrusted(con, text)
            cut = _Cut(rows, limits.rows)
            write_rows(Rows(rows.columns, cut), output_format)
    except duckdb.Error as error:
        # DuckDB runs a query while its rows are fetched, so a bad value may only show here.
        raise sql_fault(error) from error
    finally:
        con.close()
    if cut.more:
        note(f"only the first {limits.rows:,} rows are written; --limit gives more")
    return 0


class _Cut:
    """At most so many rows; ``more`` says whether there were others."""

    def __init__(self, rows: Rows, limit: int | None) -> None:
        self._values = iter(rows.values)
        self._limit = limit
        self.more = False

    def __iter__(self) -> Iterator[Any]:
        yield from islice(self._values, self._limit)
        self.more = self._limit is not None and next(self._values, None) is not None
