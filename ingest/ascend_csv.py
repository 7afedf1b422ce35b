"""Reader of the three memory reports that the Ascend PyTorch profiler writes as CSV.

``memory_record.csv``, ``operator_memory.csv`` and ``npu_module_mem.csv``, told apart by their header. Times are decimal
microseconds; KB and MB are 1024 and 1024² bytes, as the whole byte counts of the same run's database show.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..recorder.errors import IncompatibleInput, InputRefused
from .contract import PlaneBatch
from .decimals import NoNumber, as_double, microseconds_to_ns, scaled
from .fates import Fates
from .foreign import ForeignRun, foreign_run_id
from .plane_rows import PlaneRows
from .source import source_digest, source_name
from .streams import StreamDamaged, chunks, head

TOTAL = "PTA+GE"
"""The component of ``memory_record`` that sums up the allocators of PyTorch (PTA) and of the graph engine (GE)."""

LONGEST_LINE = 1 << 22
"""Characters without the end of a line after which the rest of the file is given up."""

_KB, _MB = 1 << 10, 1 << 20
_HEADS: Mapping[str, re.Pattern[bytes]] = {
    "memory_record": re.compile(rb"(\xef\xbb\xbf)?Component,Timestamp\(us\)\s*,Total Allocated\(MB\),"),
    "operator_memory": re.compile(rb"(\xef\xbb\xbf)?Name,Size\(KB\),Allocation Time\(us\)"),
    "npu_module_mem": re.compile(rb"(\xef\xbb\xbf)?Component,Timestamp\(us\)\s*,Total Reserved\(MB\),Device"),
}
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "memory_record": ("Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Device Type"),
    "operator_memory": ("Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Device Type"),
    "npu_module_mem": ("Component", "Timestamp(us)", "Total Reserved(MB)", "Device"),
}


class AscendCsvReader:
    """Reads the memory reports of the Ascend PyTorch profiler."""

    name = "ascend-csv"
    doc = "Ascend PyTorch profiler memory_record, operator_memory or npu_module_mem CSV"

    def detect(self, path: Path) -> bool:
        """True for a file that opens with the header of one of the three reports."""
        return path.is_file() and _report(path) is not None

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes; raises :class:`InputRefused`, and :class:`IncompatibleInput` for missing columns."""
        path = Path(path)
        report = _report(path)
        if report is None:
            raise IncompatibleInput("is none of the three memory reports", source=path, code="not_ascend_csv")
        digest = source_digest(path)
        run_id = foreign_run_id(path, digest)
        table = _Report(path, report, run_id)
        try:
            yield from table.batches()
        except OSError as error:
            raise InputRefused(f"cannot be read: {error.strerror}", source=path, code="unreadable") from error
        yield from table.fates.batches(run_id)
        run = ForeignRun(
            run_id=run_id,
            schema=f"ascend/{report}",
            source_format=self.name,
            source_digest=digest,
            producer="Ascend PyTorch profiler",
            time_unit="us",
            host_clock_id=run_id,
            device=next(iter(table.devices)) if len(table.devices) == 1 else None,
            data_lost=table.fates.data_lost,
        )
        yield run.batch(path, table.fates.rows)


def _report(path: Path) -> str | None:
    start = head(path, 512)
    return next((name for name, pattern in _HEADS.items() if pattern.match(start)), None)


def _time(text: str) -> int:
    value, _ = microseconds_to_ns(text)
    if value < 0:
        raise NoNumber(f"found the time {text[:40]}, expected 0 or more")
    return value


class _Report:
    """The rows of one report, as planes."""

    def __init__(self, path: Path, report: str, run_id: str) -> None:
        self.fates = Fates(source_name(path))
        self.devices: set[str] = set()
        self._path = path
        self._report = report
        self._clock = run_id
        self._seq = 0
        self._columns: dict[str, int] = {}
        self._memory = PlaneRows("device_memory", run_id, "timestamp_ns", "device", "used_bytes", "reserved_bytes")
        self._counters = PlaneRows("counters", run_id, "name", "series", "clock_id", "timestamp_ns", "value")
        self._events = PlaneRows(
            "memory_events",
            run_id,
            *("timestamp_ns", "storage_id", "op_name", "device", "bytes", "action", "category"),
        )

    def batches(self) -> Iterator[PlaneBatch]:
        rows = csv.reader(self._lines())
        add = self._add_operator if self._report == "operator_memory" else self._add_sample
        while True:
            try:
                row = next(rows, None)
                if row is None:
                    break
                if not self._columns:
                    self._take_header(row)
                elif row:
                    cells = {name: row[index].strip() for name, index in self._columns.items()}
                    add(cells, rows.line_num)
            except (csv.Error, NoNumber, IndexError) as error:
                found = f"has {len(row or [])} cells" if isinstance(error, IndexError) else str(error)
                self.fates.drop(self._report, "undecodable_record", found, line=rows.line_num)
            for plane in (self._memory, self._counters, self._events):
                yield from plane.full()
        for plane in (self._memory, self._counters, self._events):
            yield from plane.rest()

    def _lines(self) -> Iterator[str]:
        """The lines of the file; bytes that are no UTF-8 become U+FFFD, and damage ends the file with an issue."""
        decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        rest = ""
        try:
            for piece in chunks(self._path):
                *lines, rest = (rest + decoder.decode(piece)).replace("\0", "\ufffd").split("\n")
                yield from (f"{line}\n" for line in lines)
                if len(rest) > LONGEST_LINE:
                    message = f"no line ends within {len(rest)} characters; what follows was not read"
                    self.fates.note("line_too_long", "data_loss", message)
                    return
        except StreamDamaged as error:
            self.fates.note("damaged_stream", "data_loss", error.message, offset=error.offset)
        if rest:
            yield rest

    def _take_header(self, row: list[str]) -> None:
        columns = {name.strip(): index for index, name in enumerate(row)}
        missing = [name for name in _REQUIRED[self._report] if name not in columns]
        if missing:
            message = f"found no column {', '.join(missing)}, expected it in {self._report}"
            raise IncompatibleInput(message, source=self._path, position="line 1", code="missing_columns")
        self._columns = columns

    def _device(self, cells: Mapping[str, str]) -> str:
        """``NPU:0`` as ``npu:0``, the label that PyTorch uses."""
        label = (cells.get("Device Type") or cells.get("Device") or "unknown").lower()
        self.devices.add(label)
        return label

    def _add_sample(self, cells: Mapping[str, str], line: int) -> None:
        """A sum of a component: the total of the allocators is a checkpoint, any other component a counter."""
        time = _time(cells["Timestamp(us)"])
        component, device = cells["Component"], self._device(cells)
        if component == TOTAL and self._report == "memory_record":
            used, exact = self._bytes(cells["Total Allocated(MB)"], _MB)
            reserved, exact_too = self._bytes(cells["Total Reserved(MB)"], _MB)
            self._memory.add(self._seq, time, device, used, reserved)
            self._count("device_memory", exact and exact_too, line)
            self._seq += 1
            return
        series = [name for name in self._columns if name.endswith("(MB)") and cells[name]]
        values = [(name, as_double(cells[name])) for name in series]
        for name, value in values:
            self._counters.add(self._seq, f"{component} {device}", name, self._clock, time, value)
            self._seq += 1
        self.fates.keep(f"{self._report} value", "counters", len(values))
        if not values:
            self.fates.leave_out(self._report, "no_value")

    def _add_operator(self, cells: Mapping[str, str], line: int) -> None:
        """One allocation and, where the row has one, its release; the row itself is the storage's identity."""
        size, exact = self._bytes(cells["Size(KB)"], _KB)
        times = [
            (action, _time(cells[f"{word} Time(us)"]))
            for action, word in (("alloc", "Allocation"), ("free", "Release"))
            if cells[f"{word} Time(us)"]
        ]
        if size is None:
            raise NoNumber("found no size")
        for action, time in times:
            storage = f"row {line}"
            self._events.add(self._seq, time, storage, cells["Name"], self._device(cells), size, action, "other")
            self._count("memory_events", exact, line, f"operator_memory {action}")
            self._seq += 1
        if not times:
            self.fates.leave_out("operator_memory", "no_time")

    def _bytes(self, text: str, factor: int) -> tuple[int | None, bool]:
        size, exact = scaled(text, factor) if text else (None, True)
        if size is not None and size < 0:
            raise NoNumber(f"found the size {text[:40]}, expected 0 or more")
        return size, exact

    def _count(self, plane: str, exact: bool, line: int, kind: str | None = None) -> None:
        kind = kind or self._report
        if exact:
            self.fates.keep(kind, plane)
        else:
            self.fates.repair(kind, plane, "bytes_rounded")
            self.fates.note("bytes_rounded", "info", "the size is no whole number of bytes; rounded", line=line)
