"""``viewer.html`` of run folders, one after the other over one connection."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from ...recorder.planes import PLANES
from ..database import connect
from ..views import create_input_tables, create_views, quote
from .run_page import run_page

VIEWER = "viewer.html"
MOST_ROWS = 20_000
"""Rows of a timeline: a bundle's own page stays below a megabyte; ``planewise report`` makes a larger one."""

_VIEWS = (
    *("_measured_region", "_measured_subtree", "device_clock_busy", "device_work"),
    *("live_bytes", "live_bytes_by_category", "live_bytes_peak"),
)


class Viewers:
    """Writes the viewers of run folders; close it at the end."""

    def __init__(self) -> None:
        self._con = connect()
        create_input_tables(self._con)
        create_views(self._con, only=_VIEWS)
        for plane in PLANES:
            self._con.execute(f'ALTER TABLE "{plane}" RENAME TO "_without_{plane}"')

    def write(self, folder: Path, packet: Mapping[str, Any], target: Path) -> None:
        """Write the viewer of the run in ``folder``, whose evidence is ``packet``, to the file ``target``.

        Raises one of :data:`FAULTS`.
        """
        self._point_at(folder)
        target.write_bytes(run_page(packet, self._con, MOST_ROWS).encode())

    def _point_at(self, folder: Path) -> None:
        for name, plane in PLANES.items():
            file = folder / "planes" / f"{name}.parquet"
            source = f'"_without_{name}"'
            if file.exists():
                source = f"read_parquet({quote(str(file))}, hive_partitioning = false)"
            columns = ", ".join(f'"{column}"' for column in plane.column_names)
            self._con.execute(f'CREATE OR REPLACE VIEW "{name}" AS SELECT {columns} FROM {source}')

    def close(self) -> None:
        """Close the connection."""
        self._con.close()


FAULTS = (duckdb.Error, OSError, ValueError, LookupError, ArithmeticError, TypeError)
"""What keeps a run from having a viewer, and from nothing else."""
