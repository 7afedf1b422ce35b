"""The rows of ``nsys stats`` reports as rows of planes, whatever file or table they stand in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from .contract import PlaneBatch
from .decimals import NoNumber
from .nsys_report_columns import CALLS, EVENTS, PROJECTION, RANGES, SUMMARY, WORK, Header, report_name
from .nsys_report_source import Source, account, settle
from .nsys_report_table import Cells, Ranges, ReportTable, checked_duration, interval_of
from .nsys_report_text import Piece
from .plane_rows import PlaneRows

_COLUMNS = {
    "spans": "id parent_id name start_ns duration_ns span_kind measured end_seq thread_id process_id category",
    "launches": "name category start_ns duration_ns process_id thread_id correlation_id",
    "device_intervals": (
        "device stream_id clock_id backend start_ns duration_ns name correlation_id category context_id bytes"
    ),
    "range_projections": (
        "report name span_id start_ns duration_ns clock_id projected_start_ns projected_duration_ns gpu_operations"
        " device context_id stream_id correlation_id process_id thread_id attributes"
    ),
    "report_rows": "report name calls total_ns min_ns max_ns total_bytes attributes",
}
_DEVICE = re.compile(r"(?:.*\()?(\d{1,9})\)?")
_NUMERIC = re.compile(r"\d+")
_UNIT = {1: "ns", 1000: "us", 1000**2: "ms", 1000**3: "s"}


class ReportRows:
    """Gathers the rows of all sources of one run.

    Attributes
    ----------
    devices, units:
        Device labels that were met, and units of times.
    """

    def __init__(self, run_id: str) -> None:
        self.devices: set[str] = set()
        self.units: set[str] = set()
        self._planes = {plane: PlaneRows(plane, run_id, *names.split()) for plane, names in _COLUMNS.items()}
        self._seq = 0

    def read(self, source: Source) -> Iterator[PlaneBatch]:
        """The rows of a source; batches come when they are full, what is left comes with :meth:`rest`."""
        table: ReportTable | None = None
        try:
            for piece in source.pieces():
                source.said[piece.kind] += 1
                if piece.kind == "header" and piece.header is not None:
                    settle(source, table)
                    table = self._opened(source, piece.header)
                elif table is not None and piece.kind == "row":
                    self._row(source, table, piece)
                    self._seq += 1
                    if not self._seq & 1023:
                        for rows in self._planes.values():
                            yield from rows.full()
                else:
                    account(source, piece)
        finally:  # Also when the source breaks off; what was read by then stays.
            settle(source, table)

    def rest(self) -> Iterator[PlaneBatch]:
        """What still waits, after the last source."""
        for rows in self._planes.values():
            yield from rows.rest()

    def _opened(self, source: Source, header: Header) -> ReportTable:
        source.fates.keep("header", None)
        report = report_name(source.report, header, source.stem)
        timed = [c for n, c in header.columns.items() if n in ("total", "start", "timestamp") and not c.is_size]
        self.units |= {_UNIT[column.factor] for column in timed if column.factor in _UNIT}
        if "correlation" in header.columns:
            source.links.add(header.cells[header.columns["correlation"].place].strip())
        if header.shape in (PROJECTION, RANGES) and source.ranges is None:
            source.ranges = Ranges(source.pieces(), self._seq - source.said["row"])
        return ReportTable(report, header)

    def _row(self, source: Source, table: ReportTable, piece: Piece) -> None:
        try:
            cells = table.cells(piece.cells)
            if not cells.text("name"):
                source.fates.drop(table.report, "no_name", "the row has no name", severity="warning", line=piece.line)
                return
            _ADD[table.header.shape](self, source, table, cells, piece.line)
        except NoNumber as error:
            source.fates.drop(table.report, "undecodable_record", str(error), line=piece.line)

    def _add_summary(self, source: Source, table: ReportTable, cells: Cells, line: int) -> None:
        name = cells.text("name") or ""
        if _NUMERIC.fullmatch(name) and not table.numeric:
            table.numeric = True
            message = f"names of {table.report} are numbers, ids of a table that the report does not hold"
            source.fates.note("numeric_names", "warning", message, line=line)
        sized = table.header.columns["total"].is_size
        times = [None, None, None] if sized else [cells.natural(key) for key in ("total", "min", "max")]
        size = cells.size("total" if sized else "total_size")
        self._planes["report_rows"].add(
            self._seq, table.report, name, cells.natural("count"), *times, size, table.json(cells.raw)
        )
        table.fates[table.report, "report_rows", cells.cut] += 1

    def _add_work(self, source: Source, table: ReportTable, cells: Cells, line: int) -> None:
        start, duration = interval_of(cells)
        name = cells.text("name") or ""
        self._work(source, table, cells, (start, duration), name, _category(name))

    def _add_event(self, source: Source, table: ReportTable, cells: Cells, line: int) -> None:
        """Rows where work begins say when it ends; a row where work ends adds nothing, unless nothing began it."""
        kind, ends = cells.text("event"), cells.time("matching")
        if kind == "Leave" and ends is not None:
            source.fates.keep(f"{table.report} Leave", None)
        elif kind in ("Enter", "Leave"):
            if kind == "Leave" or ends is None:
                reason = "end_without_begin" if kind == "Leave" else "no_end"
                source.fates.drop(f"{table.report} {kind}", reason, "the row has no counterpart", line=line)
                return
            start = cells.needed("timestamp")
            times = (start, checked_duration(ends - start, start))
            self._work(source, table, cells, times, cells.text("name") or "", cells.text("category"), " Enter")
        else:
            source.fates.drop(table.report, "unknown_event", f"found the event type {kind!r}", line=line)

    def _work(
        self,
        source: Source,
        table: ReportTable,
        cells: Cells,
        times: tuple[int, int],
        name: str,
        category: str | None,
        kind: str = "",
    ) -> None:
        device = _label(cells.text("device"))
        self.devices.add(device)
        place = (device, cells.text("stream") or "unknown", source.session or source.clock, "nsys")
        links = (cells.text("correlation"), category, cells.text("context"), cells.size("bytes"))
        self._planes["device_intervals"].add(self._seq, *place, *times, name, *links)
        table.fates[f"{table.report}{kind}", "device_intervals", cells.cut] += 1

    def _add_call(self, source: Source, table: ReportTable, cells: Cells, line: int) -> None:
        times = interval_of(cells)
        where = (cells.natural("process"), cells.natural("thread"), cells.text("correlation"))
        self._planes["launches"].add(self._seq, cells.text("name"), None, *times, *where)
        table.fates[table.report, "launches", cells.cut] += 1

    def _add_range(self, source: Source, table: ReportTable, cells: Cells, line: int) -> None:
        self._span(source, cells)
        table.fates[table.report, "spans", cells.cut] += 1

    def _add_projection(self, source: Source, table: ReportTable, cells: Cells, line: int) -> None:
        """The range itself is a span; its projection is what nsys made of the work in it, and no work."""
        *projected, operations = cells.projection()
        has_times = cells.time("start") is not None
        times = interval_of(cells) if has_times else (None, None)
        is_new = has_times and source.host_ranges and source.ranges is not None and not source.ranges.stand_alone
        device = cells.text("device")
        keys = (device and _label(device), *(cells.text(key) for key in ("context", "stream", "correlation")))
        where = (cells.natural("process"), cells.natural("thread"))
        if is_new:
            self._span(source, cells)
        what = (table.report, cells.text("name"), str(self._seq) if is_new else None, *times)
        envelope = (source.session or source.clock, *projected, operations)
        self._planes["range_projections"].add(self._seq, *what, *envelope, *keys, *where, table.json(cells.raw))
        table.fates[table.report, "range_projections", cells.cut] += 1
        if is_new:
            table.fates[f"{table.report} -> spans", "spans", False] += 1

    def _span(self, source: Source, cells: Cells) -> None:
        start, duration, thread, process = cells.span()
        around = source.ranges and source.ranges.seq(source.said["header"], cells.natural("parent_id"))
        parent = None if around in (None, self._seq) else str(around)
        what = (cells.text("name"), start, duration, "function", False, self._seq)
        self._planes["spans"].add(self._seq, str(self._seq), parent, *what, thread, process, cells.text("style"))


_ADD = {
    SUMMARY: ReportRows._add_summary,
    WORK: ReportRows._add_work,
    EVENTS: ReportRows._add_event,
    CALLS: ReportRows._add_call,
    RANGES: ReportRows._add_range,
    PROJECTION: ReportRows._add_projection,
}


@lru_cache(maxsize=1024)
def _label(device: str | None) -> str:
    """``NVIDIA H200 (0)`` and ``0`` as ``cuda:0``; ``cuda`` where the report has no device, else the text itself."""
    if device is None:
        return "cuda"
    found = _DEVICE.fullmatch(device)
    return f"cuda:{int(found[1])}" if found else device


def _category(name: str) -> str:
    """A GPU trace holds copies and fills, which nsys names in brackets, and kernels."""
    if not name.startswith("[CUDA "):
        return "kernel"
    return "memset" if name.startswith("[CUDA memset") else "memcpy"
