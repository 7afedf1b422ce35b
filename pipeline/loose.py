"""Every view over the planes of some run folders that need not lie in one store: bundles, or one fresh reading."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import duckdb

from ..recorder.errors import InputRefused
from ..recorder.planes import PLANES
from .database import connect
from .views import create_input_tables, create_input_views, create_views, quote


def bundle_connection(paths: Sequence[str | Path], *, only: Collection[str] | None = None) -> duckdb.DuckDBPyConnection:
    """An in-memory connection with every view, or ``only`` those named, over the planes of these folders.

    Planes (``<path>/planes/<plane>.parquet``) are read from their files on demand; a plane without a file, and every
    other input table, is empty. A folder that is named twice is read once. Run ids must be unique over the folders;
    whoever mixes folders of unknown origin checks that first. The caller closes the connection.

    Raises
    ------
    InputRefused
        A file is no Parquet, or not that of its plane.
    """
    folders = list({Path(path).resolve(): None for path in paths})
    con = connect()
    try:
        create_input_tables(con)
        create_views(con, only=only)
        for name in PLANES:
            files = [file for file in (folder / "planes" / f"{name}.parquet" for folder in folders) if file.exists()]
            if files:
                _read_plane(con, name, files)
    except BaseException:
        con.close()
        raise
    return con


def _read_plane(con: duckdb.DuckDBPyConnection, name: str, files: Sequence[Path]) -> None:
    try:
        create_input_views(con, {name: _read_parquet(files)})
    except duckdb.Error as error:
        raise InputRefused(
            f"the plane {name} cannot be read: {str(error).strip()}",
            source=files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more",
            code="unreadable_run",
            remedy="verify the bundle, or ingest its source again",
        ) from error


def _read_parquet(files: Iterable[Path]) -> str:
    # A folder above the files may be named like a Hive partition (x=1); it is no column of ours.
    return f"read_parquet([{', '.join(quote(str(file)) for file in files)}], hive_partitioning = false)"
