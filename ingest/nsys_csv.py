"""Reader of the CSV text of ``nsys stats``: one or several reports in a file, with or without banners."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..recorder.errors import InputRefused
from .contract import PlaneBatch
from .fates import Fates
from .foreign import ForeignRun, foreign_run_id
from .nsys_report_rows import ReportRows
from .nsys_report_source import Source
from .nsys_report_text import Piece, ReportText, starts_report
from .source import source_digest, source_name

_HOW = "nsys stats --report cuda_gpu_trace,cuda_gpu_kern_sum --format csv --output OUT REPORT.nsys-rep"


class NsysCsvReader:
    """Reads reports of ``nsys stats``."""

    name = "nsys-csv"
    doc = "Nsight Systems reports, the CSV of nsys stats"

    def detect(self, path: Path) -> bool:
        """True for text that opens with a banner of nsys stats or with the header of one of its reports."""
        return path.is_file() and starts_report(path)

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes; raises :class:`InputRefused` for text that holds no report at all."""
        path = Path(path)
        digest = source_digest(path)
        run_id = foreign_run_id(path, digest)
        source = text_source(path, Fates(source_name(path)), run_id)
        rows = ReportRows(run_id)
        try:
            yield from rows.read(source)
        except OSError as error:
            raise InputRefused(f"cannot be read: {error.strerror}", source=path, code="unreadable") from error
        yield from rows.rest()
        refuse_without_report(path, source)
        yield from source.fates.batches(run_id)
        yield _run(path, digest, run_id, source, rows).batch(path, source.fates.rows)


def text_source(path: Path, fates: Fates, clock: str, report: str | None = None) -> Source:
    """A file of reports as a source of rows. ``report`` is the name of its report where its text gives it none."""

    def pieces() -> Iterator[Piece]:
        return ReportText(path, report).pieces()

    return Source(fates, clock, path.name.split(".")[0], pieces, report)


def refuse_without_report(path: Path, source: Source) -> None:
    """Raise :class:`InputRefused` when a text that was read has no report: that is absence, never 0 ns of work."""
    if source.said["header"]:
        return
    if source.skipped:
        skipped = ", ".join(source.skipped)
        message = f"holds no report, nsys skipped {skipped}; that says nothing of how busy a device was"
        remedy = "record the missing data (nsys profile --trace=cuda,nvtx), then run nsys stats again"
        raise InputRefused(message, source=path, code="no_report", remedy=remedy)
    message = "holds messages of nsys stats and no report as CSV"
    raise InputRefused(message, source=path, code="no_report", remedy=f"run {_HOW}")


def _run(path: Path, digest: str, run_id: str, source: Source, rows: ReportRows) -> ForeignRun:
    return ForeignRun(
        run_id=run_id,
        schema="nsys/stats",
        source_format=NsysCsvReader.name,
        source_digest=digest,
        producer="NVIDIA Nsight Systems" if source.said["banner"] else None,
        time_unit=",".join(sorted(rows.units)) or None,
        host_clock_id=run_id if len(source.databases) < 2 else None,
        link_keys=tuple(source.links),
        device=next(iter(rows.devices)) if len(rows.devices) == 1 else None,
        data_lost=source.fates.data_lost,
    )
