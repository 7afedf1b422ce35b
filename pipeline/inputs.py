"""Resolves the INPUT of the reading commands: a published bundle, a recorder capture or a raw trace (protocol 13.1)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import duckdb

from ..ingest.base import detect_format
from ..ingest.planes_writer import write_planes
from ..recorder.errors import InputRefused
from .bundle import Receipt, second_pass
from .database import connect
from .load import load_runs, only_packet
from .loose import bundle_connection
from .read_bundle import load_bundle


@dataclass(frozen=True)
class OpenInput:
    """One resolved input: its evidence, where it came from, and every view over its single run."""

    packet: dict[str, Any]
    description: dict[str, Any]
    connect: Callable[[], duckdb.DuckDBPyConnection]

    @cached_property
    def con(self) -> duckdb.DuckDBPyConnection:
        """The connection with every view; it is made when a question goes beyond the evidence."""
        return self.connect()

    @property
    def run_id(self) -> str:
        """The run id."""
        return str(self.packet["provenance"]["run_id"])


@contextmanager
def open_input(path: Path) -> Iterator[OpenInput]:
    """Open one input for reading; a bundle is deeply verified first, a raw trace is read into a temporary folder.

    Planes of a bundle that were read are hashed once more at the end.

    Raises
    ------
    InputRefused
        The path does not exist, is a folder of loose evidence without a manifest, or its reader refuses it; or the
        bundle's evidence is no packet, or its parts are of different runs.
    VerificationFailed
        The bundle is not what its manifest says, or changed while it was read.
    """
    if not path.exists():
        raise InputRefused("no such file or folder", source=path, code="not_found")
    bundle = _bundle_of(path)
    with ExitStack() as stack:
        yield _open_trace(stack, path) if bundle is None else _open_bundle(stack, path, bundle)


def _open_bundle(stack: ExitStack, path: Path, bundle: Path) -> OpenInput:
    loaded = load_bundle(bundle)

    def connected() -> duckdb.DuckDBPyConnection:
        planes = [f"planes/{file.name}" for file in (bundle / "planes").iterdir()]
        stack.push(partial(_check_again, bundle, loaded.receipt, planes))
        return stack.enter_context(bundle_connection([bundle]))

    return OpenInput(loaded.packet, _describe(path, bundle, loaded.receipt), connected)


def _check_again(
    bundle: Path, receipt: Receipt, planes: list[str], kind: type[BaseException] | None, *_: object
) -> None:
    if kind is None:
        second_pass(bundle, receipt, planes)


def _open_trace(stack: ExitStack, path: Path) -> OpenInput:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="planewise-")))
    reader = detect_format(path)
    write_planes(reader.read(path), folder)
    con = stack.enter_context(connect())
    load_runs(con, [folder])
    return OpenInput(only_packet(con, path), _describe(path, None, None), lambda: con)


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
