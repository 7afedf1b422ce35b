"""Published bundles for tests, made from the rows of a TinyStore."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from planewise.pipeline.bundle import write_manifest
from planewise.pipeline.evidence import build_packets
from planewise.pipeline.packet import encode_packet
from planewise.recorder.planes import PLANES
from support import TinyStore


def publish(tiny: TinyStore, run_id: str, folder: Path) -> Path:
    """Write the planes of one run of ``tiny``, and evidence of some run in its name, as a bundle at ``folder``."""
    (folder / "planes").mkdir(parents=True)
    for name, plane in PLANES.items():
        chosen = tiny.con.sql(f'SELECT * FROM "{name}" WHERE run_id = ? ORDER BY seq', params=[run_id])
        # By value: Arrow cannot cast an absent struct whose members may not be absent.
        rows = pa.Table.from_pylist(chosen.to_arrow_table().to_pylist(), schema=plane.schema)
        if rows.num_rows:
            pq.write_table(rows, folder / "planes" / f"{name}.parquet")
    (folder / "evidence.json").write_bytes(encode_packet(packet_of(run_id)))
    write_manifest(folder, run_id)
    return folder


def packet_of(run_id: str) -> dict[str, Any]:
    """A packet of some complete run under this run id: readers of planes want its identity and its shape only."""
    packet = _some_packet()
    return {**packet, "provenance": {**packet["provenance"], "run_id": run_id}}


@cache
def _some_packet() -> dict[str, Any]:
    [(_, packet)] = build_packets(TinyStore().run().con)
    return packet
