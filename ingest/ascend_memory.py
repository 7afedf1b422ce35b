"""The tables of memory and of samples of an Ascend database as rows, and what the readers of all tables share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ..recorder.planes import INT64_MAX
from .ascend_csv import TOTAL
from .ascend_tables import COUNTERS, Database, integer
from .fates import Fates
from .plane_rows import PlaneRows
from .source import source_name

_LOW = 2**32 - 1
COLUMNS = {
    "spans": "id parent_id name start_ns duration_ns span_kind measured end_seq thread_id process_id category",
    "ops": (
        "span_id op_name duration_ns timestamp_ns process_id thread_id parent_seq external_id sequence_number "
        "input_shapes"
    ),
    "launches": ("name category start_ns duration_ns process_id thread_id correlation_id external_id span_id op_seq"),
    "device_intervals": (
        "device stream_id clock_id backend start_ns duration_ns name correlation_id external_id category process_id "
        "graph_id bytes"
    ),
    "collectives": "interval_seq name dtype in_elements group_name",
    "device_memory": "timestamp_ns device used_bytes reserved_bytes",
    "memory_events": "timestamp_ns storage_id op_name device bytes action category address process_id thread_id",
    "counters": "name series clock_id timestamp_ns value",
}


class BadRow(Exception):
    """A row that cannot be used; the text says why."""


class MemoryRows:
    """Rows of a database: the readers of memory and samples, over what every table's reader needs."""

    def __init__(self, path: Path, run_id: str, database: Database) -> None:
        self.fates = Fates(source_name(path))
        self.devices: set[str] = set()
        self._database = database
        self._clock = run_id
        self._seq = 0
        self._strings = database.names("STRING_IDS", value="value")
        self._memory_kinds = database.names("ENUM_MEMORY")
        self._modules = database.names("ENUM_MODULE")
        self._planes = {plane: PlaneRows(plane, run_id, *columns.split()) for plane, columns in COLUMNS.items()}

    def _text(self, key: Any) -> str | None:
        value = self._strings.get(key)
        return None if value == "N/A" else value

    def _label(self, device: Any) -> str:
        number = integer(device)
        label = "npu" if number is None or number < 0 else f"npu:{number}"
        self.devices.add(label)
        return label

    def _record(
        self, table: str, component: Any, time: Any, allocated: Any, reserved: Any, device: Any, active: Any
    ) -> None:
        label, at, name = self._label(device), time_of(time), self._text(component) or f"component {component}"
        if name == TOTAL:
            self._planes["device_memory"].add(self._seq, at, label, natural(allocated), natural(reserved))
            self.fates.keep(table, "device_memory")
            return
        values = (("totalAllocated", allocated), ("totalReserved", reserved), ("totalActive", active))
        self._samples(table, f"{name} {label}", at, values)

    def _samples(self, table: str, name: str, at: int, values: Any) -> None:
        found = [(series, float(value)) for series, value in values if isinstance(value, int | float)]
        for series, value in found:
            finite = value if math.isfinite(value) else None
            self._planes["counters"].add(self._seq, name, series, self._clock, at, finite)
        self.fates.keep(f"{table} value", "counters", len(found))
        if not found:
            self.fates.leave_out(table, "no_value")

    def _sample(self, table: str, time: Any, device: Any, *cells: Any) -> None:
        named, sampled = COUNTERS[table]
        names = {
            "type": lambda value: self._kind(value) or str(value),
            "mode": lambda value: self._kind(value) or str(value),
            "moduleId": lambda value: str(self._modules.get(value, value)),
        }
        shown = [names.get(column, str)(cell) for column, cell in zip(named, cells, strict=False)]
        name = " ".join([table, *shown, self._label(device)])
        self._samples(table, name, time_of(time), zip(sampled, cells[len(named) :], strict=True))

    def _kind(self, key: Any) -> str | None:
        """allocate, release, app, device, read or write: by the enumeration of older exports, else by the strings."""
        return self._memory_kinds[key] if key in self._memory_kinds else self._text(key)

    def _operator(self, table: str, name: Any, size: Any, allocated: Any, released: Any, device: Any) -> None:
        """One allocation and, where the row has one, its release; the row itself is the storage's identity."""
        bytes_, label = natural(size), self._label(device)
        if bytes_ is None:
            raise BadRow(f"found the size {size!r:.40}, expected 0 or more bytes")
        times = [(action, time_of(at)) for action, at in (("alloc", allocated), ("free", released)) if at is not None]
        storage = f"OP_MEMORY {self._seq}"
        for action, at in times:
            row = (at, storage, self._text(name), label, bytes_, action, "other", None, None, None)
            self._planes["memory_events"].add(self._seq, *row)
            self.fates.keep(f"{table} {action}", "memory_events")
        if not times:
            self.fates.leave_out(table, "no_time")

    def _allocation(
        self, table: str, name: Any, address: Any, kind: Any, size: Any, time: Any, device: Any, thread: Any
    ) -> None:
        action = {"allocate": "alloc", "release": "free"}.get(self._kind(kind) or "")
        where, bytes_ = integer(address), natural(size)
        if action is None or where is None or bytes_ is None:
            raise BadRow(f"found the action {kind!r:.40}, the address {address!r:.40}, the size {size!r:.40}")
        place = where & (2**64 - 1)
        process, number = thread_of(thread)
        row = (str(place), self._text(name), self._label(device), bytes_, action, "other", place, process, number)
        self._planes["memory_events"].add(self._seq, time_of(time), *row)
        self.fates.keep(table, "memory_events")


def time_of(value: Any) -> int:
    at = integer(value)
    if at is None or at < 0:
        raise BadRow(f"found the time {value!r:.40}, expected 0 or more ns")
    return at


def natural(value: Any) -> int | None:
    number = integer(value)
    return number if number is not None and 0 <= number <= INT64_MAX else None


def thread_of(value: Any) -> tuple[int | None, int | None]:
    """Process and thread, the high and the low 32 bits of a globalTid."""
    number = integer(value)
    return (None, None) if number is None else ((number & (2**64 - 1)) >> 32, number & _LOW)
