"""Resolves the INPUT of the reading commands: a published bundle, a recorder capture or a raw trace (protocol 13.1)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from ..ingest.base import detect_format
from ..ingest.planes_writer import write_planes
from ..recorder.errors import InputRefused
from .bundle import Receipt, verify_bundle
from .evidence import build_packets
from .load import load_runs
from .loose import bundle_connection


@dataclass(frozen=True)
class OpenInput:
    """One resolved input: a connection with every view over its single run, its evidence, and where it came from."""

    con: duckdb.DuckDBPyConnection
    packet: dict[str, Any]
    description: dict[str, Any]

    @property
    def run_id(self) -> str:
        """The run id."""
        return str(self.packet["provenance"]["run_id"])


@contextmanager
def open_input(path: Path) -> Iterator[OpenInput]:
    """Open one input for reading; a bundle is deeply verified first, a raw trace is read into a temporary folder.

    Raises
    ------
    InputRefused
        The path does not exist, is a folder of loose evidence without a manifest, or its reader refuses it.
    VerificationFailed
        The bundle is not what its manifest says.
    """
    if not path.exists():
        raise InputRefused("no such file or folder", source=path, code="not_found")
    bundle = _bundle_of(path)
    if bundle is not None:
        receipt = verify_bundle(bundle)
        packet = msgspec.json.decode((bundle / "evidence.json").read_bytes())
        with bundle_connection([bundle]) as con:
            yield OpenInput(con, packet, _describe(path, bundle, receipt))
        return
    with tempfile.TemporaryDirectory(prefix="planewise-") as folder:
        reader = detect_format(path)
        write_planes(reader.read(path), Path(folder))
        with duckdb.connect() as con:
            load_runs(con, [Path(folder)])
            [(_, packet)] = list(build_packets(con))
            yield OpenInput(con, packet, _describe(path, None, None))


def _bundle_of(path: Path) -> Path | None:
    folder = path if path.is_dir() else path.parent
    if (folder / "bundle.json").is_file():
        return folder
    loose = [name for name in ("evidence.json", "nsight") if (folder / name).exists()]
    if loose:
        raise InputRefused(
            f"found {', '.join(loose)} without a bundle.json beside it",
            source=folder,
            code="loose_evidence",
            remedy="give the published bundle, or move the trace away from the loose evidence",
        )
    return None


def _describe(path: Path, bundle: Path | None, receipt: Receipt | None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "kind": "raw_trace" if bundle is None else "verified_bundle",
        "requested_path": str(path),
        "evidence_source": "trace_reconstruction" if bundle is None else "verified_evidence_json",
        "gpu_identity_bound": False,
    }
    if bundle is not None and receipt is not None:
        described |= {"bundle_root": str(bundle), "verification": receipt.to_json()}
    return described
