"""``planewise sql``."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import duckdb

from ..output import OutputFormat, write_rows
from ..store import Store
from ..untrusted import fetch_untrusted, sql_fault
from .options import format_option, store_option


@click.command()
@click.argument("query")
@store_option
@format_option()
def sql(query: str, store_path: Path, output_format: OutputFormat) -> int:
    """Run one SQL query over every run of a store, read-only; QUERY may be - for standard input.

    The query reads the views of the catalogue and nothing outside the store.

    \b
    Example: planewise sql "from device_clock_busy" --store /data/store --format csv
    """
    text = sys.stdin.read() if query == "-" else query
    con = Store.open(store_path).connect()
    try:
        write_rows(fetch_untrusted(con, text), output_format)
    except duckdb.Error as error:
        # DuckDB runs a query while its rows are fetched, so a bad value may only show here.
        raise sql_fault(error) from error
    finally:
        con.close()
    return 0
