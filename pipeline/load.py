"""Loads run folders into a connection as tables, and rebuilds the evidence of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from ..recorder.errors import InputRefused
from ..recorder.planes import PLANES
from .database import connect
from .evidence import build_packets
from .views import create_input_tables, create_views

STORED_VIEWS = frozenset(
    {
        "_activation_operations",
        "_host_nodes",
        "_measured_scope",
        "_memory_changes",
        "_op_nodes",
        "activation_hotspots",
        "capabilities",
        "device_span_busy",
        "health_coverage",
        "health_issues",
        "host_self_time",
        "live_bytes_peak",
        "run_health",
        "storage_lifetimes",
    }
)
"""Views that several parts of a packet ask for: computed once a batch, which makes a packet eight times as fast."""


def load_runs(con: duckdb.DuckDBPyConnection, folders: Sequence[Path]) -> None:
    """Load the planes of run folders as tables, with every view over them. A plane without a file has no rows.

    Raises ``duckdb.Error`` for a file that is no Parquet of its plane.
    """
    create_input_tables(con)
    for name, plane in PLANES.items():
        files = [file for file in (folder / "planes" / f"{name}.parquet" for folder in folders) if file.exists()]
        if files:
            columns = ", ".join(f'"{column}"' for column in plane.column_names)
            # A list parameter names the files as they are: a folder may hold wildcards, or look like a partition.
            con.execute(
                f'INSERT INTO "{name}" SELECT {columns} FROM read_parquet(?, hive_partitioning = false)',
                [[str(file) for file in files]],
            )
    create_views(con, stored=STORED_VIEWS)


def rebuild_packet(folder: Path) -> dict[str, Any]:
    """The evidence packet of the one run in ``folder``, from its planes alone.

    Raises :class:`InputRefused` when the planes cannot be read or do not hold exactly one run.
    """
    with connect() as con:
        try:
            load_runs(con, [folder])
            return only_packet(con, folder)
        except duckdb.Error as error:
            raise InputRefused(
                f"the planes cannot be read: {str(error).strip()}", source=folder, code="unreadable_run"
            ) from error


def only_packet(con: duckdb.DuckDBPyConnection, source: Path) -> dict[str, Any]:
    """The evidence packet of the one run in ``con``; raises :class:`InputRefused` unless there is exactly one."""
    packets = [packet for _, packet in build_packets(con)]
    if len(packets) != 1:
        raise InputRefused(f"found {len(packets)} runs, expected one", source=source, code="not_one_run")
    return packets[0]
