"""The stage ``qualify``: evidence and a report for every staged run, in SQL over many runs at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from ..recorder.errors import PlanewiseError
from .database import connect
from .evidence import build_packets
from .fsio import write_atomic
from .load import load_runs
from .packet import decode_packet, encode_packet
from .progress import Progress
from .report import render_report
from .side_by_side import KILLED, Jobs, is_apart, share, side_by_side
from .store import RunFolder, Store, run_key
from .views import views_digest

BATCH_BYTES = 256 * 1024 * 1024
"""Parquet bytes of the runs that are loaded together; a larger run is loaded alone."""

_FAULTS = (PlanewiseError, duckdb.Error, OSError, ValueError, LookupError, ArithmeticError)


@dataclass(frozen=True)
class Qualification:
    """What one staged run is worth.

    ``status`` is valid, failed or invalid (docs/architecture.md, ``run_health``), or refused when no evidence could be
    made: then the counts of findings are None and ``message`` says why. ``unchanged``: the evidence was there already.
    """

    run_id: str
    status: str
    errors: int | None = None
    warnings: int | None = None
    unchanged: bool = False
    message: str | None = None


def qualify(store: Store, *, progress: Progress | None = None, jobs: Jobs = 1) -> list[Qualification]:
    """Write evidence.json and report.md into every staged run that lacks them or has those of other views.

    ``jobs`` processes work side by side. Returns one row per staged run, by folder name. A run without evidence is
    reported and stops no other.
    """
    return list(qualify_by_key(store, progress=progress, jobs=jobs).values())


def qualify_by_key(store: Store, *, progress: Progress | None = None, jobs: Jobs = 1) -> dict[str, Qualification]:
    """What :func:`qualify` does, with each row under the name of the run's folder."""
    runs = store.staged()
    found: dict[str, Qualification] = {}
    for run in runs:
        packet = current_evidence(run.path)
        if packet is not None:
            found[run.key] = _judged(packet, unchanged=True)
    batches = list(_batches([run for run in runs if run.key not in found], jobs))
    coming = _qualified(store, batches, jobs)
    for batch in batches:
        if progress:
            progress(len(found), len(runs), f"{len(batch)} runs")
        found |= next(coming)
    if progress:
        progress(len(runs), len(runs), "")
    return {run.key: found[run.key] for run in runs if run.key in found}


def current_evidence(folder: Path) -> dict[str, Any] | None:
    """The evidence packet of a run folder; None when there is none, or it was made by other views."""
    try:
        packet = decode_packet((folder / "evidence.json").read_bytes(), folder)
        current = packet["views_digest"] == views_digest() and (folder / "report.md").is_file()
    except (OSError, PlanewiseError):
        return None
    return packet if current else None


def write_evidence(folder: Path, packet: dict[str, Any]) -> None:
    """Write the report and then the evidence into a run folder, each in one step."""
    write_atomic(folder / "report.md", render_report(packet).encode())
    write_atomic(folder / "evidence.json", encode_packet(packet))


def _qualified(store: Store, batches: Sequence[list[RunFolder]], jobs: Jobs) -> Iterator[dict[str, Qualification]]:
    """What becomes of each batch, in order."""
    if is_apart(jobs, len(batches)):
        yield from side_by_side(partial(_qualify_apart, store.path), batches, jobs, killed=_killed)
        return
    for batch in batches:
        yield _qualify_batch(store, batch)


def _qualify_apart(store: Path, batch: list[RunFolder]) -> dict[str, Qualification]:
    return _qualify_batch(Store.open(store), batch)


def _killed(batch: list[RunFolder]) -> dict[str, Qualification]:
    return {run.key: Qualification(_name(run), "refused", message=f"no evidence: {KILLED}") for run in batch}


def _batches(runs: Sequence[RunFolder], jobs: Jobs) -> Iterator[list[RunFolder]]:
    """Runs that are loaded together; no more of them than leave something to every job."""
    most = share(jobs, len(runs))
    batch: list[RunFolder] = []
    size = 0
    for run in runs:
        try:
            more = run.parquet_bytes
        except OSError:
            more = 0  # Published by another process meanwhile, or damaged: loading it tells.
        if batch and (size + more > BATCH_BYTES or len(batch) == most):
            yield batch
            batch, size = [], 0
        batch.append(run)
        size += more
    if batch:
        yield batch


def _qualify_batch(store: Store, batch: list[RunFolder]) -> dict[str, Qualification]:
    """Qualify runs together; when that fails, each alone, so that only the broken one is refused."""
    try:
        return _qualify_together(store, batch)
    except _FAULTS as error:
        if len(batch) > 1:
            return {key: result for run in batch for key, result in _qualify_batch(store, [run]).items()}
        if not batch[0].path.is_dir():
            return {}  # Another process has published it.
        return {batch[0].key: Qualification(_name(batch[0]), "refused", message=f"no evidence: {_text(error)}")}


def _qualify_together(store: Store, batch: list[RunFolder]) -> dict[str, Qualification]:
    found = {}
    with store.scratch() as scratch, connect(str(scratch / "batch.duckdb")) as con:
        load_runs(con, [run.path for run in batch])
        for run_id, packet in build_packets(con):
            key = run_key(run_id)
            with store.lock():
                folder = store.path / "staging" / key
                if folder.is_dir():
                    write_evidence(folder, packet)
            found[key] = _judged(packet, unchanged=False)
    missing = [run.key for run in batch if run.key not in found]
    if missing:
        raise LookupError(f"the planes of {', '.join(missing)} name no run, or another one")
    return found


def _judged(packet: dict[str, Any], *, unchanged: bool) -> Qualification:
    health = packet["health"]
    status = "valid" if health["capture_complete"] else "failed"
    return Qualification(
        packet["provenance"]["run_id"],
        status if health["structurally_valid"] else "invalid",
        health["error_count"],
        health["warning_count"],
        unchanged,
    )


def _name(run: RunFolder) -> str:
    try:
        return run.run_id
    except PlanewiseError:
        return run.key


def _text(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
