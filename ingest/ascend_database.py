"""The tables of an Ascend database as rows of planes: host records, device work, and the order of them all."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .ascend_memory import BadRow, MemoryRows, natural, thread_of
from .ascend_tables import ABOUT_THE_RUN, COUNTERS, REQUIRED, Database, integer
from .ascend_tasks import COLLECTIVE, COLLECTIVE_TASK, collective_name, left_out
from .contract import PlaneBatch
from .host_nesting import LAUNCH, OP, SPAN, HostRecords

_NONE = 2**32 - 1
_TASK_KEY = ("deviceId", "streamId", "taskId")
_STEP = re.compile(r"ProfilerStep#(\d+)")
_SHAPES = re.compile(r"[\d,;\s]*\d[\d,;\s]*")


class DatabaseRows(MemoryRows):
    """The rows of one database.

    Attributes
    ----------
    fates:
        The ledger; complete after the last batch.
    devices:
        The devices of tasks and of memory that were met.
    """

    def __init__(self, path: Path, run_id: str, database: Database) -> None:
        super().__init__(path, run_id, database)
        self._api_types = database.names("ENUM_API_TYPE")
        self._data_types = database.names("ENUM_HCCL_DATA_TYPE")
        self._kernels = dict(database.rows("COMPUTE_TASK_INFO", "globalTaskId", "name"))
        rows = database.rows("COMMUNICATION_TASK_INFO", "globalTaskId", "taskType", "size")
        self._collective_tasks = {task: (kind, size) for task, kind, size in rows}
        self._subtasks = self._subtask_starts()
        self._operation_of = self._operations()
        self._steps: set[int] = set()
        self._device_of: dict[int, str] = {}
        self._nesting = self._nested()

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
        process, number = thread_of(thread)
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
        process, number = thread_of(thread)
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
        process, number = thread_of(thread)
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
            self._seq, *row, natural(process), _link(model), moved if moved is not None and moved >= 0 else None
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
        self._planes["collectives"].add(self._seq, self._seq, what, dtype, natural(count), group_name)
        self.fates.keep(table, "device_intervals")


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


def _link(value: Any) -> str | None:
    """An id as text; None for the profiler's ways to write "none"."""
    return None if value is None or value in (-1, _NONE) else str(value)
