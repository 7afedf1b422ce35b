"""Reader of SQLite exports of Nsight Systems (``nsys export --type sqlite``)."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..recorder.errors import IncompatibleInput, InputRefused
from .contract import PlaneBatch
from .foreign import ForeignRun, foreign_run_id
from .nsys_database import NsysDatabase, is_nsys, is_zeroed
from .nsys_rows import NsysRows
from .nsys_tables import KNOWN_MAJORS, META_TABLES, SCHEMA_VERSION, major_version
from .source import source_digest

EXPORT = "nsys export --type sqlite --output OUT.sqlite REPORT.nsys-rep"
_SEVERITIES = {2: "warning", 3: "warning"}
"""Levels of the profiler's own diagnostics that are passed on (its errors are no faults of the file)."""


class NsysSqliteReader:
    """Reads SQLite exports of Nsight Systems."""

    name = "nsys-sqlite"
    doc = "Nsight Systems export, SQLite"

    def detect(self, path: Path) -> bool:
        """True for an SQLite file with the tables of Nsight Systems, or with a first page of zeros (to refuse it)."""
        return path.is_file() and (is_nsys(path) or is_zeroed(path))

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes.

        Raises :class:`InputRefused` for a database that is damaged anywhere, and :class:`IncompatibleInput` for a
        schema of another major version.
        """
        path = Path(path)
        digest = source_digest(path)
        if is_zeroed(path):
            message = "its first page holds zeros in place of the header of an SQLite database"
            raise InputRefused(message, source=path, code="damaged_database", remedy=f"export it again: {EXPORT}")
        try:
            with NsysDatabase(path) as database:
                yield from self.planes(path, digest, database)
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            message = f"the database cannot be read: {error}"
            remedy = f"copy it again, or export it again: {EXPORT}"
            raise InputRefused(message, source=path, code="damaged_database", remedy=remedy) from None

    def planes(
        self, path: Path, digest: str, database: NsysDatabase, source_format: str = "nsys-sqlite"
    ) -> Iterator[PlaneBatch]:
        """The planes of an open export, which ``path`` names and ``source_format`` the form of."""
        run_id = foreign_run_id(path, digest)
        clock_id = f"{run_id}/session"
        facts = _facts(database)
        version = facts.get(SCHEMA_VERSION)
        _check_version(path, version)
        rows = NsysRows(path, run_id, clock_id, database)
        yield from rows.batches()
        _note_diagnostics(database, rows)
        _note_ambiguous_devices(database, rows)
        yield from rows.fates.batches(run_id)
        product = [facts[key] for key in ("EXPORT_PRODUCT_NAME", "EXPORT_PRODUCT_VERSION") if key in facts]
        started = database.pairs("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "utcTime")
        run = ForeignRun(
            run_id=run_id,
            schema="nsys/export",
            source_format=source_format,
            source_digest=digest,
            producer=" ".join(product) or "NVIDIA Nsight Systems",
            source_version=version,
            time_unit="ns",
            host_clock_id=clock_id,
            link_keys=("correlationId",),
            timestamp=str(started[0][1]) if len(started) == 1 and started[0][1] is not None else None,
            device=next(iter(rows.devices)) if len(rows.devices) == 1 else None,
            tags=_tags(database),
            data_lost=rows.fates.data_lost,
        )
        yield run.batch(path, rows.fates.rows)


def _facts(database: NsysDatabase) -> dict[str, str]:
    for table in META_TABLES:
        facts = {str(name): str(value) for name, value in database.pairs(table, "name", "value") if value is not None}
        if facts:
            return facts
    return {}


def _check_version(path: Path, version: str | None) -> None:
    """An export without a version, or with one that is no number, is judged by its columns alone."""
    major = None if version is None else major_version(version)
    if major is not None and major not in KNOWN_MAJORS:
        message = f"found export schema {str(version)[:40]}, this reader knows major versions up to {max(KNOWN_MAJORS)}"
        remedy = "export the report with an older nsys, or upgrade planewise"
        raise IncompatibleInput(message, source=path, position=SCHEMA_VERSION, remedy=remedy)


def _note_diagnostics(database: NsysDatabase, rows: NsysRows) -> None:
    """What the profiler itself warned of while it recorded, once per text: it may say why planes are empty."""
    seen = set()
    for level, text in database.pairs("DIAGNOSTIC_EVENT", "severity", "text"):
        if level in _SEVERITIES and isinstance(text, str) and text not in seen:
            seen.add(text)
            rows.fates.note("profiler_diagnostic", _SEVERITIES[level], f"the profiler said: {text[:400]}")


def _note_ambiguous_devices(database: NsysDatabase, rows: NsysRows) -> None:
    """Warn where one device number means several GPUs: processes number the devices that they see."""
    seen: dict[Any, set[Any]] = defaultdict(set)
    for number, gpu in database.pairs("TARGET_INFO_CUDA_DEVICE", "cudaId", "gpuId"):
        seen[number].add(gpu)
    for number, gpus in seen.items():
        if len(gpus) > 1 and f"cuda:{number}" in rows.devices:
            message = f"cuda:{number} stands for {len(gpus)} GPUs, one for each process; their work shares the label"
            rows.fates.note("device_ambiguous", "warning", message)


def _tags(database: NsysDatabase) -> dict[str, str]:
    """Names of the GPUs of the machine, by their number there."""
    found = database.pairs("TARGET_INFO_GPU", "id", "name")
    return {f"gpu.{number}": str(name) for number, name in found if isinstance(number, int) and name is not None}
