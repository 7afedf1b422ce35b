"""Reads one source into one run folder: its planes, and the artefacts kept beside them, durable and checked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..ingest.base import Reader, source_digest
from ..ingest.contract import PlaneBatch, batch
from ..ingest.execution_nodes import with_execution_trace
from ..ingest.kineto import KinetoReader
from ..ingest.planes_writer import write_planes
from ..recorder.errors import InputRefused
from .bundle import is_safe_path
from .fsio import copy_regular, sync_tree
from .run_folder import read_provenance
from .supplied import NATIVE_FORMATS, SuppliedFacts, with_facts

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class ReadOptions:
    """What a user asks of the readers beside the sources themselves.

    ``facts`` is what foreign traces do not say, ``python_functions`` keeps the Python frames of Kineto traces as spans,
    ``execution_trace`` is the execution trace recorded beside the one Kineto trace that is read.
    """

    facts: SuppliedFacts | None = None
    python_functions: bool = False
    execution_trace: Path | None = None


AS_IT_IS = ReadOptions()
"""Nothing is asked for beside the source."""


@dataclass(frozen=True)
class StagedRun:
    """A complete run folder that is not yet in place: its run, the digest of its source, its rows per plane."""

    folder: Path
    run_id: str
    source_digest: str
    rows: dict[str, int]


@dataclass(frozen=True)
class KeptFile:
    """A file to keep beside the run: where it is, its path inside the run's folder, and what it is."""

    source: Path
    path: str
    title: str


def stage_source(
    reader: Reader,
    source: Path,
    folder: Path,
    kept: Sequence[KeptFile] = (),
    options: ReadOptions = AS_IT_IS,
) -> StagedRun:
    """Read ``source`` into the new folder ``folder``, with ``kept`` copied and recorded as attachments.

    What ``options`` asks for is done where the format allows it: facts are not applied to a format that speaks for
    itself, and only a Kineto trace has functions of Python.

    Raises what the reader raises, and :class:`InputRefused` when the source holds other than one run or changed while
    it was read; the caller then discards ``folder``.
    """
    before = source_digest(source)
    folder.mkdir(parents=True)
    kept = [*_original(reader, source), *kept]
    if options.python_functions and reader.name == KinetoReader.name:
        reader = KinetoReader(python_functions=True)
    batches = reader.read(source)
    if options.execution_trace is not None:
        batches = with_execution_trace(batches, source, _partner_of(reader, source, options.execution_trace))
        kept.append(_execution_trace(options.execution_trace))
    if options.facts is not None and reader.name not in NATIVE_FORMATS:
        batches = with_facts(batches, options.facts, source)
    rows = write_planes(_with_attachments(batches, source, folder, kept), folder)
    run_id, digest = read_provenance(folder)
    if source_digest(source) != before:
        raise InputRefused(
            "the source changed while it was read",
            source=source,
            code="source_changed",
            remedy="ingest it again when its writer is done",
        )
    sync_tree(folder)
    return StagedRun(folder, run_id, digest, rows)


def _original(reader: Reader, source: Path) -> list[KeptFile]:
    """The candle trace's own bytes; a capture's planes hold all of it, so nothing of one is kept twice."""
    if reader.name != "candle-trace":
        return []
    with open(source, "rb") as stream:
        compressed = stream.read(2) == _GZIP
    path = "attachments/trace.jsonl.gz" if compressed else "attachments/trace.jsonl"
    return [KeptFile(source.resolve(), path, "The trace as it was given.")]


def _partner_of(reader: Reader, source: Path, execution_trace: Path) -> Path:
    if reader.name != KinetoReader.name:
        raise InputRefused(
            f"is of the format {reader.name}; an execution trace joins a Kineto trace alone",
            source=source,
            code="no_kineto_trace",
            remedy="leave --execution-trace out, or give the Kineto trace recorded beside it",
        )
    return execution_trace


def _execution_trace(path: Path) -> KeptFile:
    with open(path, "rb") as stream:
        compressed = stream.read(2) == _GZIP
    name = "attachments/execution_trace.json" + (".gz" if compressed else "")
    return KeptFile(path.resolve(), name, "The execution trace whose nodes are joined to this run.")


def _with_attachments(
    batches: Iterator[PlaneBatch], source: Path, folder: Path, kept: Sequence[KeptFile]
) -> Iterator[PlaneBatch]:
    """The reader's batches, its attachments brought along, and then one row for each file kept."""
    run_id, seq = "", 0
    for item in batches:
        if item.plane == "runs" and item.table.num_rows:
            run_id = item.table.column("run_id")[0].as_py()
        if item.plane == "attachments":
            for row in item.table.to_pylist():
                _bring(source, folder, row["path"], row["bytes"], row["sha256"])
                seq = max(seq, row["seq"] + 1)
        yield item
    for number, file in enumerate(kept, seq):
        size, digest = _keep(file.source, folder / file.path)
        row = {"run_id": run_id, "seq": number, "path": file.path, "title": file.title, "bytes": size, "sha256": digest}
        yield batch("attachments", [row])


def _bring(source: Path, folder: Path, path: str, size: int, digest: str) -> None:
    """Copy an artefact that a capture lists; it must be what the capture says."""
    if not is_safe_path(path):
        raise InputRefused(f"lists an attachment at {path!r}, no safe relative path", source=source, code="bad_path")
    if _keep(source / path, folder / path) != (size, digest):
        raise InputRefused(f"the attachment {path!r} is not the one listed", source=source, code="attachment_differs")


def _keep(source: Path, target: Path) -> tuple[int, str]:
    target.parent.mkdir(parents=True, exist_ok=True)
    copy_regular(source, target)
    with open(target, "rb") as stream:
        return target.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest()
