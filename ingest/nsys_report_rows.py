"""The rows of ``nsys stats`` reports as rows of planes, whatever file or table they stand in."""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_DOWN
from typing import Any

import numpy as np

from .contract import PlaneBatch
from .decimals import NoNumber, scaled
from .fates import Fates
from .nsys_report_columns import CALLS, EVENTS, PROJECTION, RANGES, SUMMARY, WORK, Header, report_name
from .nsys_report_text import Piece
from .plane_rows import PlaneRows

_COLUMNS = {
    "spans": "id parent_id name start_ns duration_ns span_kind measured end_seq thread_id process_id category",
    "launches": "name category start_ns duration_ns process_id thread_id correlation_id",
    "device_intervals": (
        "device stream_id clock_id backend start_ns duration_ns name correlation_id category process_id context_id bytes"
    ),
    "report_rows": "report name calls total_ns min_ns max_ns total_bytes attributes",
}
_DEVICE = re.compile(r"(?:.*\()?(\d{1,9})\)?")
_NUMERIC = re.compile(r"\d+")
_UNIT = {1: "ns", 1000: "us", 1000**2: "ms", 1000**3: "s"}

Pieces = Callable[[], Iterable[Piece]]
"""Reads the records of a source anew; ranges are read twice, since a row may name a parent that comes later."""


@dataclass
class Source:
    """One file of reports: its ledger, its clock, the name of the file without its ends, and how to read it.

    ``report`` is the name of its report where the file's own text does not say it. ``host_ranges`` is False where the
    ranges of projections are no new spans, since another file has the same ranges.
    """

    fates: Fates
    clock: str
    stem: str
    pieces: Pieces
    report: str | None = None
    host_ranges: bool = True
    said: Counter[str] = field(default_factory=Counter)
    """How many records of each kind of piece there were."""
    skipped: list[str] = field(default_factory=list)
    """Why reports were left out, as nsys said; the first few."""
    databases: list[str] = field(default_factory=list)
    """What the banners say the reports were made of; each has its own session, so its own clock."""
    links: set[str] = field(default_factory=set)
    """Columns that join records, as the reports spell them."""

    @property
    def session(self) -> str:
        """The clock of the report that is read now."""
        return self.clock if len(self.databases) < 2 else f"{self.clock}/{self.databases.index(self._database)}"

    _database: str = ""

    def made_of(self, database: str) -> None:
        """Note what the reports that follow were made of."""
        self._database = database
        if database not in self.databases:
            self.databases.append(database)


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
        table: _Table | None = None
        for piece in source.pieces():
            source.said[piece.kind] += 1
            if piece.kind == "header" and piece.header is not None:
                table = self._opened(source, piece.header)
            elif table is not None and piece.kind == "row":
                self._row(source, table, piece)
                self._seq += 1
                if not self._seq & 1023:
                    for rows in self._planes.values():
                        yield from rows.full()
            else:
                table = None if piece.kind == "banner" else table
                _account(source, piece)

    def rest(self) -> Iterator[PlaneBatch]:
        """What still waits, after the last source."""
        for rows in self._planes.values():
            yield from rows.rest()

    def _opened(self, source: Source, header: Header) -> _Table:
        source.fates.keep("header", None)
        report = report_name(source.report, header, source.stem)
        timed = [c for n, c in header.columns.items() if n in ("total", "start", "timestamp") and not c.is_size]
        self.units |= {_UNIT[column.factor] for column in timed if column.factor in _UNIT}
        if "correlation" in header.columns:
            source.links.add(header.cells[header.columns["correlation"].place].strip())
        table = _Table(report, header)
        if header.shape in (PROJECTION, RANGES):
            table.index(source, self._seq)
        return table

    def _row(self, source: Source, table: _Table, piece: Piece) -> None:
        try:
            cells = table.cells(piece.cells)
            if not cells.text("name"):
                source.fates.drop(table.report, "no_name", "the row has no name", severity="warning", line=piece.line)
                return
            _ADD[table.header.shape](self, source, table, cells, piece.line)
        except NoNumber as error:
            source.fates.drop(table.report, "undecodable_record", str(error), line=piece.line)

    def _add_summary(self, source: Source, table: _Table, cells: _Cells, line: int) -> None:
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
        self._keep(source, table.report, "report_rows", cells)

    def _add_work(self, source: Source, table: _Table, cells: _Cells, line: int) -> None:
        start, duration = _interval(cells)
        name = cells.text("name") or ""
        self._work(source, table, cells, (start, duration), name, _category(name))

    def _add_event(self, source: Source, table: _Table, cells: _Cells, line: int) -> None:
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
            times = (start, _duration(ends - start))
            self._work(source, table, cells, times, cells.text("name") or "", cells.text("category"), " Enter")
        else:
            source.fates.drop(table.report, "unknown_event", f"found the event type {kind!r}", line=line)

    def _work(
        self,
        source: Source,
        table: _Table,
        cells: _Cells,
        times: tuple[int, int],
        name: str,
        category: str | None,
        kind: str = "",
    ) -> None:
        device = _label(cells.text("device"))
        self.devices.add(device)
        place = (device, cells.text("stream") or "unknown", source.session, "nsys")
        links = (cells.text("correlation"), category, None, cells.text("context"), cells.size("bytes"))
        self._planes["device_intervals"].add(self._seq, *place, *times, name, *links)
        self._keep(source, f"{table.report}{kind}", "device_intervals", cells)

    def _add_call(self, source: Source, table: _Table, cells: _Cells, line: int) -> None:
        times = _interval(cells)
        where = (cells.natural("process"), cells.natural("thread"), cells.text("correlation"))
        self._planes["launches"].add(self._seq, cells.text("name"), None, *times, *where)
        self._keep(source, table.report, "launches", cells)

    def _add_range(self, source: Source, table: _Table, cells: _Cells, line: int) -> None:
        self._span(table, cells)
        self._keep(source, table.report, "spans", cells)

    def _add_projection(self, source: Source, table: _Table, cells: _Cells, line: int) -> None:
        """The range itself is a span; its projection is what nsys made of the work in it, so a line of a report."""
        operations, attributes = cells.natural("operations"), table.json(cells.raw)
        cells.needed("projected_start")
        _duration(cells.needed("projected_duration"))
        has_range = table.new_ranges and cells.time("start") is not None and cells.time("duration") is not None
        if has_range:
            self._span(table, cells)
        nothing = (None,) * 4
        self._planes["report_rows"].add(self._seq, table.report, cells.text("name"), operations, *nothing, attributes)
        self._keep(source, table.report, "report_rows", cells)
        if has_range:
            source.fates.keep(f"{table.report} -> spans", "spans")

    def _span(self, table: _Table, cells: _Cells) -> None:
        start, duration = _interval(cells)
        around = table.ranges.get(cells.natural("parent_id"))
        own = table.ranges.get(cells.natural("range_id"))
        parent = None if around is None or around in (own, self._seq) else str(around)
        what = (cells.text("name"), start, duration, "function", False, self._seq)
        where = (cells.natural("thread"), cells.natural("process"), cells.text("style"))
        self._planes["spans"].add(self._seq, str(self._seq), parent, *what, *where)

    def _keep(self, source: Source, kind: str, plane: str, cells: _Cells) -> None:
        if cells.cut:
            source.fates.repair(kind, plane, "sub_nanosecond")
        else:
            source.fates.keep(kind, plane)


_ADD = {
    SUMMARY: ReportRows._add_summary,
    WORK: ReportRows._add_work,
    EVENTS: ReportRows._add_event,
    CALLS: ReportRows._add_call,
    RANGES: ReportRows._add_range,
    PROJECTION: ReportRows._add_projection,
}


class _Table:
    """One table of a file: its report, its header, and the ranges that its rows name."""

    def __init__(self, report: str, header: Header) -> None:
        self.report = report
        self.header = header
        self.numeric = False
        self.new_ranges = True
        self.ranges = _RangeIndex()
        seen: Counter[str] = Counter()
        self._labels = []
        for cell in header.cells:
            seen[cell] += 1
            self._labels.append(cell if seen[cell] == 1 else f"{cell} #{seen[cell]}")

    def index(self, source: Source, first: int) -> None:
        """Find the ranges of this table, the one that opened last, whose first row has the seq ``first``.

        Where another table holds the ranges themselves, those of a projection are no new ones.
        """
        opened, shapes = 0, []
        for piece in source.pieces():
            opened += piece.kind == "header"
            if piece.kind == "header" and piece.header is not None:
                shapes.append(piece.header.shape)
            elif piece.kind == "row" and opened == source.said["header"]:
                self.ranges.add(_range_id(_Cells(self.header, piece.cells)), first)
                first += 1
        self.new_ranges = source.host_ranges and RANGES not in shapes

    def cells(self, raw: tuple[str, ...]) -> _Cells:
        """A row; it may be short (protocol 12.2), and a longer one was not written by its header."""
        if len(raw) > len(self._labels) and any(cell.strip() for cell in raw[len(self._labels) :]):
            raise NoNumber(f"found {len(raw)} cells, expected at most {len(self._labels)}")
        return _Cells(self.header, raw)

    def json(self, raw: tuple[str, ...]) -> str:
        """The cells of a row under the names of their columns."""
        return json.dumps(dict(zip(self._labels, raw, strict=False)), ensure_ascii=False)


class _Cells:
    """The cells of one row by meaning; ``cut`` becomes True once a time had digits below a nanosecond."""

    def __init__(self, header: Header, raw: tuple[str, ...]) -> None:
        self.raw = raw
        self.cut = False
        self._columns = header.columns

    def text(self, meaning: str) -> str | None:
        """The text of a cell, None when it is blank or not there."""
        column = self._columns.get(meaning)
        if column is None or column.place >= len(self.raw):
            return None
        return self.raw[column.place].strip() or None

    def time(self, meaning: str) -> int | None:
        """A number in nanoseconds; digits below a nanosecond are cut off. Raises :class:`NoNumber`."""
        text = self.text(meaning)
        if text is None:
            return None
        factor = self._columns[meaning].factor or 1
        if len(text) < 10 and text.isascii() and text.isdecimal():
            return int(text) * factor
        value, whole = scaled(text.replace(",", ""), factor, ROUND_DOWN)
        self.cut = self.cut or not whole
        return value

    def needed(self, meaning: str) -> int:
        """A time that the row cannot do without. Raises :class:`NoNumber`."""
        value = self.time(meaning)
        if value is None:
            raise NoNumber(f"found no {meaning.replace('_', ' ')}")
        return value

    def natural(self, meaning: str) -> int | None:
        """A number of 0 or more. Raises :class:`NoNumber`."""
        value = self.time(meaning)
        if value is not None and value < 0:
            raise NoNumber(f"found {value} as {meaning.replace('_', ' ')}, expected 0 or more")
        return value

    def size(self, meaning: str) -> int | None:
        """Bytes, exactly what is printed; a zero printed in a larger unit is less than the report shows, so NULL."""
        text = self.text(meaning)
        factor = self._columns[meaning].factor if meaning in self._columns else None
        if text is None or factor is None:
            return None
        value, whole = scaled(text.replace(",", ""), factor)
        if value < 0 or not whole:
            raise NoNumber(f"found {text[:40]} as {meaning}, expected a whole number of bytes")
        return None if value == 0 and factor > 1 else value


class _RangeIndex:
    """The first row of each range id, 16 bytes each."""

    def __init__(self) -> None:
        self._ids, self._seqs = array("q"), array("q")
        self._sorted: tuple[Any, Any] | None = None

    def add(self, id_: int | None, seq: int) -> None:
        if id_ is not None:
            self._ids.append(id_)
            self._seqs.append(seq)

    def get(self, id_: int | None) -> int | None:
        """The seq of a range; None when no row has the id."""
        if self._sorted is None:
            ids, first = np.unique(np.frombuffer(self._ids, np.int64), return_index=True)
            self._sorted = ids, np.frombuffer(self._seqs, np.int64)[first]
        ids, seqs = self._sorted
        if id_ is None or not len(ids):
            return None
        at = int(np.searchsorted(ids, id_))
        return int(seqs[at]) if at < len(ids) and int(ids[at]) == id_ else None


def _range_id(cells: _Cells) -> int | None:
    """The id of a range that becomes a span; None for a row that does not, since it can be no parent."""
    try:
        _interval(cells)
        return cells.natural("range_id") if cells.text("name") else None
    except NoNumber:
        return None


def _account(source: Source, piece: Piece) -> None:
    """The fate of a record that is no row of a table."""
    if piece.kind == "broken":
        source.fates.drop("row", "undecodable_record", piece.text, line=piece.line)
    elif piece.kind == "damage":
        source.fates.note("damaged_stream", "data_loss", piece.text)
    elif piece.kind in ("text", "row"):
        source.fates.drop("text", "no_csv", f"found {piece.text[:80]!r}", severity="warning", line=piece.line)
    else:
        source.fates.keep(piece.kind, None)
    if piece.kind == "banner":
        source.report = piece.text
        if piece.database:
            source.made_of(piece.database)
    elif piece.kind == "skipped":
        source.fates.note("report_skipped", "info", f"{source.report or 'a report'}: {piece.text}", line=piece.line)
        if len(source.skipped) < 3:
            source.skipped.append(f"{source.report or 'a report'} ({piece.text})")


def _interval(cells: _Cells) -> tuple[int, int]:
    start, duration, end = cells.needed("start"), cells.time("duration"), cells.time("end")
    if duration is None:
        if end is None:
            raise NoNumber("found no duration")
        duration = end - start
    return start, _duration(duration)


def _duration(value: int) -> int:
    if value < 0:
        raise NoNumber(f"found the duration {value}, expected 0 or more")
    return value


def _label(device: str | None) -> str:
    """``NVIDIA H200 (0)`` and ``0`` as ``cuda:0``; ``cuda`` where the report has no device, else the text itself."""
    if device is None:
        return "cuda"
    found = _DEVICE.fullmatch(device)
    return f"cuda:{int(found[1])}" if found else device


def _category(name: str) -> str:
    """A GPU trace holds copies and fills, which nsys names in brackets, and kernels."""
    kinds: Mapping[str, str] = {"[CUDA memcpy": "memcpy", "[CUDA memset": "memset", "[CUDA Unified Memory": "memcpy"}
    return next((kind for start, kind in kinds.items() if name.startswith(start)), "kernel")
