"""The one way to a DuckDB connection."""

from __future__ import annotations

import duckdb


def connect(path: str = ":memory:", *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """A connection that writes nothing to standard output: DuckDB's progress bar would go between the rows of a CSV."""
    con = duckdb.connect(path, read_only=read_only)
    con.execute("SET enable_progress_bar = false")
    return con
