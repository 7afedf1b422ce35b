"""The one way to a DuckDB connection."""

from __future__ import annotations

import duckdb

_limits: dict[str, int] = {}


def limit_threads(count: int) -> None:
    """From now on each connection of this process works with so many threads, for it is one of several that work."""
    _limits["threads"] = count


def connect(path: str = ":memory:", *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """A connection that writes nothing to standard output: DuckDB's progress bar would go between the rows of a CSV."""
    con = duckdb.connect(path, read_only=read_only)
    con.execute("SET enable_progress_bar = false")
    if _limits:
        con.execute(f"SET threads = {_limits['threads']}")
    return con
