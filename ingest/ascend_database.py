"""The tables of an Ascend database as rows of planes."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..recorder.planes import INT64_MAX
from .ascend_csv import TOTAL
from .ascend_tables import ABOUT_THE_RUN, COUNTERS, REQUIRED, Database, integer
from .ascend_tasks import COLLECTIVE, COLLECTIVE_TASK, collective_name, left_out
from .contract import PlaneBatch
from .fates import Fates
from .host_nesting import LAUNCH, OP, SPAN, HostRecords
from .plane_rows import PlaneRows

_NONE = 2**32 - 1
_TASK_KEY = ("deviceId", "streamId", "taskId")
_STEP = re.compile(r"ProfilerStep#(\d+)")
_SHAPES = re.compile(r"[\d,;\s]*\d[\d,;\s]*")
_COLUMNS = {
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


class DatabaseRows:
    """The rows of one database.

    Attributes
    ----------
    fates:
        The ledger; complete after the last batch.
    devices:
        The devices of tasks and of memory that were met.
    """

    def __init__(self, path: Path, run_id: str, database: Database) -> None:
        self.fates = Fates(path.absolute().name)
        self.devices: set[str] = set()
        self._database = database
        self._clock = run_id
        self._seq = 0
        self._strings = database.names("STRING_IDS", value="value")
        self._api_types = database.names("ENUM_API_TYPE")
        self._memory_kinds = database.names("ENUM_MEMORY")
        self._modules = database.names("ENUM_MODULE")
        self._data_types = database.names("ENUM_HCCL_DATA_TYPE")
        self._kernels = dict(database.rows("COMPUTE_TASK_INFO", "globalTaskId", "name"))
        rows = database.rows("COMMUNICATION_TASK_INFO", "globalTaskId", "taskType", "size")
        self._collective_tasks = {task: (kind, size) for task, kind, size in rows}
        self._subtasks = self._subtask_starts()
        self._operation_of = self._operations()
        self._steps: set[int] = set()
        self._device_of: dict[int, str] = {}
        self._nesting = self._nested()
        self._planes = {plane: PlaneRows(plane, run_id, *columns.split()) for plane, columns in _COLUMNS.items()}

    def batches(self) -> Iterator[PlaneBatch]:
        """Every table, those that become rows first and in a fixed order."""
        readers: dict[str, Callable[..., None]] = {
            "PYTORCH_API": self._api,
            "MSTX_EVENTS": self._mark,
            "STEP_TIME": self._step,
            "CANN_API": self._call,
            "TASK": self._task,
            "COMMUNICATION_OP": self._collective,
            "MEMORY_RECORD": self._record,
            "OP_MEMORY": self._operator,
            "NPU_OP_MEM": self._allocation,
        }
        for table, read in readers.items():
            yield from self._table(table, READ_COLUMNS[table], REQUIRED[table], read)
        for table, (named, sampled) in COUNTERS.items():
            columns = ("timestampNs", "deviceId", *named, *sampled)
            yield from self._table(table, columns, columns[:1], self._sample)
        for rows in self._planes.values():
            yield from rows.rest()
        for table in self._database.tables:
            if table not in REQUIRED and table not in COUNTERS:
                self._other(table)

    def _other(self, table: str) -> None:
        records = self._database.count(table)
        if table in ABOUT_THE_RUN or table.startswith("ENUM_"):
            self.fates.keep(table, None, records)
        elif records:
            message = f"the {records} rows of the table {table[:60]} are of a kind that is not read"
            self.fates.drop(table[:60], "table_not_read", message, severity="warning", records=records)

    def _table(
        self, table: str, columns: tuple[str, ...], required: tuple[str, ...], read: Callable[..., None]
    ) -> Iterator[PlaneBatch]:
        if table not in self._database.tables:
            return
        missing = set(required) - set(self._database.columns(table))
        if missing:
            records = self._database.count(table)
            message = f"found no column {', '.join(sorted(missing))} in {table}, expected it; the table was not read"
            self.fates.drop(table, "missing_columns", message, records=records)
            return
        for position, row in enumerate(self._database.rows(table, *columns)):
            try:
                read(table, *row)
            except BadRow as error:
                self.fates.drop(table, "undecodable_record", f"row {position} of {table}: {error}")
            self._seq += 1
            if not position & 1023:
                for rows in self._planes.values():
                    yield from rows.full()

    def _text(self, key: Any) -> str | None:
        value = self._strings.get(key)
        return None if value == "N/A" else value

    def _label(self, device: Any) -> str:
        number = integer(device)
        label = "npu" if number is None or number < 0 else f"npu:{number}"
        self.devices.add(label)
        return label

    def _operations(self) -> dict[int, str]:
        """Connection -> the operation it belongs to, the one that began last where several state it.

        An operation has an id of CONNECTION_IDS, which lists its connections; that id names it everywhere.
        """
        began: dict[Any, int] = {}
        for id_, start, kind in self._database.rows("PYTORCH_API", "connectionId", "startNs", "type"):
            if self._api_types.get(kind, "op") == "op" and id_ is not None:
                began[id_] = integer(start) or 0
        found: dict[int, tuple[int, str]] = {}
        for id_, connection in self._database.rows("CONNECTION_IDS", "id", "connectionId"):
            if id_ in began:
                entry = (began[id_], str(id_))
                found[connection] = max(found.get(connection, entry), entry)
        return {connection: id_ for connection, (_, id_) in found.items()}

    def _subtask_starts(self) -> dict[Any, list[int]]:
        """Where the sub-tasks of each (device, stream, task) start, sorted: task ids are used again."""
        found: dict[Any, list[int]] = defaultdict(list)
        for start, context, *task in self._database.rows("TASK", "startNs", "contextId", *_TASK_KEY):
            if context is not None and context != _NONE and (at := integer(start)) is not None:
                found[tuple(task)].append(at)
        return {task: sorted(starts) for task, starts in found.items()}

    def _is_parent(self, key: Any, start: int, duration: int) -> bool:
        """True for a task that only frames sub-tasks, which have rows of their own."""
        starts = self._subtasks.get(key, [])
        at = bisect_left(starts, start)
        return at < len(starts) and starts[at] <= start + duration

    def _nested(self) -> Iterator[tuple[int | None, int | None]]:
        """Span and operation around each host record, in the order in which the tables are read."""
        records, seq = HostRecords(), 0
        for table, label in (
            ("PYTORCH_API", "name"),
            ("MSTX_EVENTS", "message"),
            ("STEP_TIME", "id"),
            ("CANN_API", ""),
        ):
            columns = ("startNs", "endNs", "globalTid", "type", label)
            required = set(REQUIRED[table]) - set(self._database.columns(table))
            for start, end, thread, kind, name in self._database.rows(table, *columns):
                try:
                    begin, duration = _interval(start, end)
                    if table != "STEP_TIME" and not required:
                        which = LAUNCH if table == "CANN_API" else self._host_kind(table, kind, self._text(name))
                        records.add(thread, begin, begin + duration, which, seq)
                except BadRow:
                    pass
                seq += 1
            seq -= self._database.count(table) if required and table in self._database.tables else 0
        return records.enclosing(lambda thread: thread)

    def _host_kind(self, table: str, kind: Any, name: str | None) -> int:
        is_op = table == "PYTORCH_API" and self._api_types.get(kind) == "op" and not _STEP.fullmatch(name or "")
        return OP if is_op else SPAN

    def _span(self, table: str, name: str, times: tuple[int, int], thread: Any, category: str) -> None:
        nested = table != "STEP_TIME"  # A step states no thread.
        around, _ = next(self._nesting, (None, None)) if nested else (None, None)
        process, number = _thread(thread)
        parent = None if around is None else str(around)
        row = (str(self._seq), parent, name, *times, "function", False, self._seq, number, process, category)
        self._planes["spans"].add(self._seq, *row)
        self.fates.keep(table, "spans")

    def _api(self, table: str, start: Any, end: Any, thread: Any, name: Any, kind: Any, *more: Any) -> None:
        times = _interval(start, end)
        text, category = self._text(name) or f"name {name}", str(self._api_types.get(kind, kind))
        if step := _STEP.fullmatch(text):
            self._steps.add(int(step[1][:18]))
        if self._host_kind(table, kind, text) == SPAN:
            self._span(table, text, times, thread, category)
            return
        around, op = next(self._nesting, (None, None))
        connection, sequence, dims, types = more
        process, number = _thread(thread)
        span = None if around is None else str(around)
        external = None if connection is None else str(connection)
        shapes = next((t for t in (self._text(dims), self._text(types)) if t and _SHAPES.fullmatch(t)), None)
        ordinal = integer(sequence)
        row = (span, text, times[1], times[0], process, number, op, external)
        self._planes["ops"].add(self._seq, *row, ordinal if ordinal is not None and ordinal >= 0 else None, shapes)
        self.fates.keep(table, "ops")

    def _mark(self, table: str, start: Any, end: Any, thread: Any, message: Any) -> None:
        self._span(table, self._text(message) or "", _interval(start, end), thread, "mstx")

    def _step(self, table: str, number: Any, start: Any, end: Any) -> None:
        """A step is a span, unless PYTORCH_API has the very step as a marker."""
        times, number = _interval(start, end), integer(number)
        if number in self._steps:
            self.fates.leave_out(table, "same_as_step_marker")
        else:
            self._span(table, f"ProfilerStep#{number}", times, None, "step")

    def _call(self, table: str, start: Any, end: Any, thread: Any, name: Any, kind: Any, connection: Any) -> None:
        times = _interval(start, end)
        around, op = next(self._nesting, (None, None))
        process, number = _thread(thread)
        links = (_link(connection), self._operation_of.get(connection), None if around is None else str(around), op)
        category = str(self._api_types.get(kind, kind))
        self._planes["launches"].add(
            self._seq, self._text(name) or f"name {name}", category, *times, process, number, *links
        )
        self.fates.keep(table, "launches")

    def _task(
        self, table: str, start: Any, end: Any, device: Any, task: Any, kind: Any, stream: Any, *more: Any
    ) -> None:
        times, type_ = _interval(start, end), self._text(kind)
        part = self._collective_tasks.get(task)
        name = self._text(self._kernels.get(task) if part is None else part[0]) or type_
        if reason := left_out(type_, name):
            self.fates.leave_out(table, reason)
            return
        connection, process, model, context, number = more
        framed = context == _NONE and task not in self._kernels and part is None
        if framed and self._is_parent((device, stream, number), *times):
            self.fates.leave_out(table, "parent_of_subtasks")
            return
        label = self._label(device)
        if _link(connection) is not None:
            self._device_of.setdefault(connection, label)
        moved = integer(part[1]) if part is not None and name == "Memcpy" else None
        links = (_link(connection), self._operation_of.get(connection))
        category = type_ if part is None else COLLECTIVE_TASK
        lane = "unknown" if stream is None else str(stream)
        row = (label, lane, self._clock, "msprof", *times, name, *links, category)
        self._planes["device_intervals"].add(
            self._seq, *row, _natural(process), _link(model), moved if moved is not None and moved >= 0 else None
        )
        self.fates.keep(table, "device_intervals")

    def _collective(self, table: str, name: Any, start: Any, end: Any, connection: Any, *more: Any) -> None:
        times, text = _interval(start, end), self._text(name)
        group, data_type, count, kind = more
        label = self._device_of.get(connection) or (next(iter(self.devices)) if len(self.devices) == 1 else "npu")
        group_name = self._text(group)
        links = (_link(connection), self._operation_of.get(connection))
        row = (label, f"group {group_name or group}", self._clock, "msprof", *times, text, *links)
        self._planes["device_intervals"].add(self._seq, *row, COLLECTIVE, None, None, None)
        what = collective_name(self._text(kind) or text or "")
        dtype = self._data_types.get(data_type)
        self._planes["collectives"].add(self._seq, self._seq, what, dtype, _natural(count), group_name)
        self.fates.keep(table, "device_intervals")

    def _record(
        self, table: str, component: Any, time: Any, allocated: Any, reserved: Any, device: Any, active: Any
    ) -> None:
        label, at, name = self._label(device), _time(time), self._text(component) or f"component {component}"
        if name == TOTAL:
            self._planes["device_memory"].add(self._seq, at, label, _natural(allocated), _natural(reserved))
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
        self._samples(table, name, _time(time), zip(sampled, cells[len(named) :], strict=True))

    def _kind(self, key: Any) -> str | None:
        """allocate, release, app, device, read or write: by the enumeration of older exports, else by the strings."""
        return self._memory_kinds[key] if key in self._memory_kinds else self._text(key)

    def _operator(self, table: str, name: Any, size: Any, allocated: Any, released: Any, device: Any) -> None:
        """One allocation and, where the row has one, its release; the row itself is the storage's identity."""
        bytes_, label = _natural(size), self._label(device)
        if bytes_ is None:
            raise BadRow(f"found the size {size!r:.40}, expected 0 or more bytes")
        times = [(action, _time(at)) for action, at in (("alloc", allocated), ("free", released)) if at is not None]
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
        where, bytes_ = integer(address), _natural(size)
        if action is None or where is None or bytes_ is None:
            raise BadRow(f"found the action {kind!r:.40}, the address {address!r:.40}, the size {size!r:.40}")
        place = where & (2**64 - 1)
        process, number = _thread(thread)
        row = (str(place), self._text(name), self._label(device), bytes_, action, "other", place, process, number)
        self._planes["memory_events"].add(self._seq, _time(time), *row)
        self.fates.keep(table, "memory_events")


READ_COLUMNS: dict[str, tuple[str, ...]] = {
    "PYTORCH_API": (
        *("startNs", "endNs", "globalTid", "name", "type"),
        *("connectionId", "sequenceNumber", "inputShapes", "inputDtypes"),
    ),
    "MSTX_EVENTS": ("startNs", "endNs", "globalTid", "message"),
    "STEP_TIME": ("id", "startNs", "endNs"),
    "CANN_API": ("startNs", "endNs", "globalTid", "name", "type", "connectionId"),
    "TASK": (
        *("startNs", "endNs", "deviceId", "globalTaskId", "taskType", "streamId"),
        *("connectionId", "globalPid", "modelId", "contextId", "taskId"),
    ),
    "COMMUNICATION_OP": ("opName", "startNs", "endNs", "connectionId", "groupName", "dataType", "count", "opType"),
    "MEMORY_RECORD": ("component", "timestamp", "totalAllocated", "totalReserved", "deviceId", "totalActive"),
    "OP_MEMORY": ("name", "size", "allocationTime", "releaseTime", "deviceId"),
    "NPU_OP_MEM": ("operatorName", "addr", "type", "size", "timestampNs", "deviceId", "globalTid"),
}
"""The columns read of each table, in the order in which its method takes them."""


def _interval(start: Any, end: Any) -> tuple[int, int]:
    begin, finish = integer(start), integer(end)
    if begin is None or finish is None or not 0 <= begin <= finish:
        raise BadRow(f"it starts at {start!r:.40} and ends at {end!r:.40}")
    return begin, finish - begin


def _time(value: Any) -> int:
    at = integer(value)
    if at is None or at < 0:
        raise BadRow(f"found the time {value!r:.40}, expected 0 or more ns")
    return at


def _natural(value: Any) -> int | None:
    number = integer(value)
    return number if number is not None and 0 <= number <= INT64_MAX else None


def _link(value: Any) -> str | None:
    """An id as text; None for the profiler's ways to write "none"."""
    return None if value is None or value in (-1, _NONE) else str(value)


def _thread(value: Any) -> tuple[int | None, int | None]:
    """Process and thread, the high and the low 32 bits of a globalTid."""
    number = integer(value)
    return (None, None) if number is None else ((number & (2**64 - 1)) >> 32, number & _NONE)
