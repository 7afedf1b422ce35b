"""Published bundles for tests, made from the rows of a TinyStore."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from planewise.pipeline.bundle import write_manifest
from planewise.recorder.planes import PLANES
from support import TinyStore


def publish(tiny: TinyStore, run_id: str, folder: Path) -> Path:
    """Write the planes of one run of ``tiny`` as a bundle at ``folder``."""
    (folder / "planes").mkdir(parents=True)
    for name, plane in PLANES.items():
        chosen = tiny.con.sql(f'SELECT * FROM "{name}" WHERE run_id = ? ORDER BY seq', params=[run_id])
        # By value: Arrow cannot cast an absent struct whose members may not be absent.
        rows = pa.Table.from_pylist(chosen.to_arrow_table().to_pylist(), schema=plane.schema)
        if rows.num_rows:
            pq.write_table(rows, folder / "planes" / f"{name}.parquet")
    write_manifest(folder, run_id)
    return folder
