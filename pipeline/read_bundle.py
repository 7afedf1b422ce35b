"""Reads published bundles: verified deeply, and each part of one run (protocol 9.2).

Every command that reads bundles comes through :func:`load_bundle`, so that all refuse the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..recorder.errors import InputRefused
from ..recorder.planes import PLANES
from .bundle import Receipt, second_pass, verify_bundle
from .packet import decode_packet

Verify = Callable[[Path], Receipt]

EVIDENCE = "evidence.json"
RUNS = "planes/runs.parquet"


@dataclass(frozen=True)
class LoadedBundle:
    """A verified bundle: its receipt, its evidence, and the one row of its runs plane as an Arrow table."""

    path: Path
    receipt: Receipt
    packet: dict[str, Any] = field(repr=False)
    run: Any = field(repr=False)


def load_bundle(path: str | Path, verify: Verify = verify_bundle) -> LoadedBundle:
    """Verify a bundle deeply and read its evidence and its runs plane.

    The manifest, the evidence and the plane must name one run. What was read is hashed once more afterwards, so a
    bundle that changes meanwhile is refused.

    Raises
    ------
    VerificationFailed
        The bundle is not what its manifest says.
    IncompatibleInput
        The evidence is of another format.
    InputRefused
        The evidence is missing or no packet, the plane cannot be read, or one of them is of another run.
    """
    root = Path(path)
    receipt = verify(root)
    run = _read_run(root, receipt)
    packet = _read_packet(root, receipt)
    second_pass(root, receipt, [EVIDENCE, RUNS])
    return LoadedBundle(root, receipt, packet, run)


def _read_packet(path: Path, receipt: Receipt) -> dict[str, Any]:
    try:
        content = (path / EVIDENCE).read_bytes()
    except OSError as error:
        raise InputRefused(
            f"{EVIDENCE} cannot be read: {error.strerror}",
            source=path,
            code="bad_evidence",
            remedy="ingest the source again and publish it",
        ) from error
    packet = decode_packet(content, path)
    found = packet["provenance"]["run_id"]
    if found != receipt.run_id:
        raise InputRefused(
            f"the evidence is of run {found!r}, the manifest names run {receipt.run_id!r}",
            source=path,
            code="other_run",
        )
    return packet


def _read_run(path: Path, receipt: Receipt) -> Any:
    schema = PLANES["runs"].schema
    try:
        table = pq.read_table(path / RUNS, columns=list(schema.names), partitioning=None)
        # By value: Arrow cannot cast an absent struct whose members may not be absent.
        run = pa.Table.from_pylist(table.to_pylist(), schema=schema)
    except (OSError, TypeError, ValueError, pa.ArrowException) as error:
        raise InputRefused(f"the runs plane cannot be read: {error}", source=path, code="unreadable_run") from error
    found = run.column("run_id").to_pylist()
    if found != [receipt.run_id]:
        raise InputRefused(
            f"the runs plane holds {found}, the manifest names run {receipt.run_id!r}", source=path, code="other_run"
        )
    return run
