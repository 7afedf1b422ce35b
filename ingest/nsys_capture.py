"""Reader of a flat folder of Nsight artifacts: a manifest, the raw report, and the reports made of it (protocol 12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..recorder.errors import InputRefused
from .contract import PlaneBatch, batch
from .fates import Fates
from .foreign import ForeignRun, foreign_run_id
from .nsys_csv import text_source
from .nsys_manifest import MANIFEST, RAW_REPORT, SCHEMA, Manifest, manifest_faults, read_manifest
from .nsys_merge import merged
from .nsys_report_rows import ReportRows
from .nsys_strict import failure, report_of
from .source import source_digest

STATUS = "status.txt"
_FAMILY = b"candle-graph/nsight-capture/"


class NsightCaptureReader:
    """Reads a folder of Nsight artifacts."""

    name = "nsight-capture"
    doc = "folder of Nsight artifacts with its capture-manifest.json"

    def detect(self, path: Path) -> bool:
        """True for a folder whose manifest names the schema of such folders."""
        try:
            with (path / MANIFEST).open("rb") as stream:
                return _FAMILY in stream.read(1 << 20)
        except (OSError, ValueError):
            return False

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes; raises :class:`InputRefused` for what is no folder that can be listed.

        A bad manifest and a report that breaks the protocol are issues; what can be read is read.
        """
        path = Path(path)
        digest = source_digest(path)
        try:
            names = sorted(entry.name for entry in path.iterdir() if entry.is_file())
            yield from _Folder(path, digest, names).batches()
        except OSError as error:
            raise InputRefused(f"cannot be read: {error.strerror}", source=path, code="unreadable") from error


class _Folder:
    """One folder while it is read."""

    def __init__(self, path: Path, digest: str, names: list[str]) -> None:
        self._path = path
        self._digest = digest
        self._names = names
        self._run_id = foreign_run_id(path, digest)
        self._rows = ReportRows(self._run_id)
        self._fates: list[Fates] = []
        self._read: list[str] = []

    def batches(self) -> Iterator[PlaneBatch]:
        raw = next((name for name in self._names if name.endswith(RAW_REPORT)), None)
        for name in self._names:
            report = report_of(name)
            if report is not None:
                yield from self._report(name, report)
            elif name != MANIFEST:
                self._file(name, raw)
        yield from self._rows.rest()
        manifest = self._manifest([*self._read, *([raw] if raw else [])])
        yield from merged(self._fates, self._run_id)
        yield self._run(manifest)

    def _ledger(self, name: str) -> Fates:
        self._fates.append(Fates(name))
        return self._fates[-1]

    def _report(self, name: str, report: str) -> Iterator[PlaneBatch]:
        fates = self._ledger(name)
        why, rows = failure(self._path / name, report)
        if why is not None:
            message = f"the report does not parse by its protocol, so none of its {rows} rows was read: {why}"
            fates.drop(report, "report_not_parsed", message, records=rows)
            return
        self._read.append(name)
        yield from self._rows.read(text_source(self._path / name, fates, f"{self._run_id}/device", report))

    def _file(self, name: str, raw: str | None) -> None:
        """A file that is no report: the raw report is named, all others are counted."""
        if name == raw:
            self._ledger(name).keep("raw report", None)
        elif name != STATUS:
            self._ledger(name).leave_out("file", "no_report")

    def _manifest(self, used: list[str]) -> Manifest | None:
        manifest, fault = read_manifest(self._path)
        fates = self._ledger(MANIFEST)
        if fault is not None:
            fates.note(fault.code, "warning", fault.message)
        else:
            fates.keep("manifest", None)
        if manifest is not None:
            for fault in manifest_faults(self._path, manifest, used):
                fates.note(fault.code, "error", f"{fault.file}: {fault.message}")
        return manifest

    def _run(self, manifest: Manifest | None) -> PlaneBatch:
        rows: Mapping[str, int] = {}
        for fates in self._fates:
            rows = {plane: rows.get(plane, 0) + fates.rows[plane] for plane in {*rows, *fates.rows}}
        run = ForeignRun(
            run_id=self._run_id,
            schema=manifest.schema if manifest else SCHEMA,
            source_format=NsightCaptureReader.name,
            source_digest=self._digest,
            producer=f"{manifest.tool.name} {manifest.tool.version}" if manifest else None,
            source_version=manifest.schema.rsplit("/", 1)[-1] if manifest else None,
            time_unit="ns" if self._read else None,
            host_clock_id=f"{self._run_id}/host",
            link_keys=("CorrId",),
            timestamp=manifest.run.started_at if manifest else None,
            device=next(iter(self._rows.devices)) if len(self._rows.devices) == 1 else None,
            tags=self._tags(manifest),
            data_lost=any(fates.data_lost for fates in self._fates),
        )
        return _with_manifest(run.batch(self._path, rows), manifest)

    def _tags(self, manifest: Manifest | None) -> dict[str, str]:
        tags = {"nsight.status_reason": reason} if (reason := _reason(self._path / STATUS)) else {}
        if manifest is None:
            return tags
        tags["nsight.run_id"] = manifest.run.id
        if manifest.hardware.host:
            tags["nsight.host"] = manifest.hardware.host
        tags |= {f"nsight.device.{number}": name for number, name in enumerate(manifest.hardware.devices)}
        tags |= {f"nsight.command.{number}": text for number, text in enumerate(manifest.commands)}
        return tags | {f"nsight.source_revision.{name}": text for name, text in manifest.source_revisions.items()}


def _with_manifest(run: PlaneBatch, manifest: Manifest | None) -> PlaneBatch:
    """The row of the run with the id and the labels that its manifest shares with the trace it was made beside."""
    if manifest is None:
        return run
    row: dict[str, Any] = run.table.to_pylist()[0]
    row["correlation_id"] = manifest.correlation.id
    row["capture_contract"] |= {
        "required_semantic_labels": manifest.required_semantic_labels,
        "gpu_expected_semantic_labels": manifest.gpu_expected,
        "cpu_only_semantic_labels": manifest.cpu_only_semantic_labels,
    }
    return batch("runs", [row])


def _reason(path: Path) -> str | None:
    """The first ``reason=`` line of ``status.txt``: why there may be no reports."""
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            lines = stream.read(1 << 16).splitlines()
    except OSError:
        return None
    return next((line.removeprefix("reason=").strip() for line in lines if line.startswith("reason=")), None)
