"""The second pass over an Ascend trace: every event becomes a row of its lane's plane, or is counted as left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from .ascend_events import FAULTS, NO_RECORD, Event, Lost, Scalar, read_events
from .ascend_survey import Survey, TaskArgs, host_kind, interval, link, literal, place, task_key
from .ascend_tasks import COLLECTIVE, COLLECTIVE_TASK, category, collective_name, left_out
from .contract import PlaneBatch
from .decimals import NoNumber, as_double, microseconds_to_ns
from .fates import Fates
from .host_nesting import OP, SPAN
from .plane_rows import PlaneRows
from .source import source_name

_BACKEND = "msprof"
_SINGLE_BYTES = ("Memcpy", "MEMCPY_ASYNC")
_KNOWN_FLOWS = ("async_npu", "HostToDevice", "async_task_queue", "fwdbwd", "MsTx", "mstx")


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
    "collectives": "interval_seq name dtype in_elements",
    "counters": "name series clock_id timestamp_ns process_id value",
}


class _OpArgs(Struct, gc=False):
    sequence_number: Scalar = msgspec.field(name="Sequence number", default=None)
    dims: str | None = msgspec.field(name="Input Dims", default=None)


class _CallArgs(Struct, gc=False):
    level: str | None = None
    connection: Scalar = msgspec.field(name="connection_id", default=None)


class _HardwareArgs(TaskArgs, gc=False):
    task_type: str | None = msgspec.field(name="Task Type", default=None)
    stream: Scalar = msgspec.field(name="Stream Id", default=None)
    model: Scalar = msgspec.field(name="Model Id", default=None)
    bytes: Scalar = msgspec.field(name="data size(Byte)", default=None)


class _CollectiveArgs(Struct, gc=False):
    connection: Scalar = msgspec.field(name="connection_id", default=None)
    data_type: str | None = None
    count: Scalar = None


class _PlaneArgs(TaskArgs, gc=False):
    bytes: Scalar = msgspec.field(name="size(Byte)", default=None)


_op_args = msgspec.json.Decoder(_OpArgs).decode
_call_args = msgspec.json.Decoder(_CallArgs).decode
_hardware_args = msgspec.json.Decoder(_HardwareArgs).decode
_collective_args = msgspec.json.Decoder(_CollectiveArgs).decode
_plane_args = msgspec.json.Decoder(_PlaneArgs).decode
_samples = msgspec.json.Decoder(dict[str, Raw]).decode


class TraceRows:
    """The rows of one trace.

    Attributes
    ----------
    fates:
        The ledger of the events; complete after the last batch.
    devices:
        The devices that were met.
    """

    def __init__(self, path: Path, run_id: str, survey: Survey) -> None:
        self.fates = Fates(source_name(path))
        self.devices: set[str] = set()
        self._path = path
        self._clock = run_id
        self._survey = survey
        self._nesting = survey.nesting()
        self._planes = {plane: PlaneRows(plane, run_id, *columns.split()) for plane, columns in _COLUMNS.items()}

    def batches(self) -> Iterator[PlaneBatch]:
        """Every event in order."""
        for seq, event in enumerate(read_events(self._path)):
            if isinstance(event, Lost):
                self._add_lost(event)
                continue
            try:
                self._add(seq, event)
            except (*FAULTS, TypeError) as error:
                kind = f"{event.ph} {event.cat or ''}".strip() or "event"
                self.fates.drop(kind, "undecodable_record", f"event {seq} {event.name!r:.60}: {error}")
            if not seq & 1023:
                for rows in self._planes.values():
                    yield from rows.full()
        for rows in self._planes.values():
            yield from rows.rest()

    def _add_lost(self, lost: Lost) -> None:
        if lost.code in NO_RECORD:
            self.fates.note(lost.code, "data_loss", lost.message, offset=lost.offset)
        else:
            self.fates.drop("event", lost.code, lost.message, offset=lost.offset)

    def _add(self, seq: int, event: Event) -> None:
        if event.ph == "X":
            self._add_slice(seq, event)
        elif event.ph == "C":
            self._add_sample(seq, event)
        elif event.ph == "M":
            self.fates.keep(f"M {event.name}", None)
        elif event.ph in ("s", "t", "f") and event.cat == "async_npu":
            self.fates.keep("flow async_npu", None)
        elif event.ph in ("s", "t", "f"):
            known = event.cat in _KNOWN_FLOWS
            self.fates.leave_out(f"flow {event.cat if known else 'other'}", "flow_not_read")
        else:
            message = f"event {seq} has the phase {event.ph[:20]!r}, which is not read"
            self.fates.drop(f"phase {event.ph[:1]}", "phase_not_read", message, severity="warning")

    def _add_slice(self, seq: int, event: Event) -> None:
        host = host_kind(event)
        lane = self._survey.processes.get(event.pid)
        kind = f"X {event.cat}" if event.cat is not None else f"X {lane or 'unnamed lane'}"
        start, duration, exact = interval(event)
        if duration < 0:
            self.fates.drop(kind, "negative_duration", f"event {seq} lasts {duration} ns", severity="warning")
            return
        plane: str | None
        if host is not None:
            span, op = next(self._nesting, (None, None))
            plane = self._add_host(seq, event, host, start, duration, span, op)
        elif lane == "Overlap Analysis":
            self.fates.leave_out(kind, "derived")
            return
        elif lane == "Python":
            plane = self._add_span(seq, event, start, duration, None)
        else:
            plane = self._add_device(seq, event, kind, lane, start, duration)
        if plane is not None:
            self._count(kind, plane, exact)

    def _count(self, kind: str, plane: str, exact: bool) -> None:
        if exact:
            self.fates.keep(kind, plane)
        else:
            self.fates.repair(kind, plane, "sub_nanosecond")

    def _add_host(
        self, seq: int, event: Event, kind: int, start: int, duration: int, span: int | None, op: int | None
    ) -> str:
        if kind == SPAN:
            return self._add_span(seq, event, start, duration, span)
        process, thread = self._survey.process(event.pid), _thread(event.tid)
        around = None if span is None else str(span)
        if kind == OP:
            args = _op_args(event.args) if bytes(event.args) else _OpArgs()
            place_ = (process, thread, op, self._survey.operation_id(event))
            number = args.sequence_number if isinstance(args.sequence_number, int) else None
            number = number if number is not None and 0 <= number < 2**63 else None
            name = event.name or ""
            self._planes["ops"].add(seq, around, name, duration, start, *place_, number, _dims(args.dims))
            return "ops"
        call = _call_args(event.args)
        correlation = link(call.connection)
        links = (correlation, self._survey.started_by_connection(correlation), around, op)
        name = event.name or ""
        self._planes["launches"].add(seq, name, call.level, start, duration, process, thread, *links)
        return "launches"

    def _add_span(self, seq: int, event: Event, start: int, duration: int, span: int | None) -> str:
        parent = None if span is None else str(span)
        where = (_thread(event.tid), self._survey.process(event.pid))
        row = (str(seq), parent, event.name or "", start, duration, "function", False, seq, *where, event.cat)
        self._planes["spans"].add(seq, *row)
        return "spans"

    def _add_device(self, seq: int, event: Event, kind: str, lane: str | None, start: int, duration: int) -> str | None:
        """A row of a hardware lane or of a lane of collectives; None when it was counted as left out."""
        thread = self._survey.threads.get((event.pid, event.tid))
        if lane == "Ascend Hardware":
            return self._add_task(seq, event, kind, thread, start, duration)
        if lane in ("HCCL", "Communication", "COMMUNICATION"):
            if thread is not None and thread.startswith("Plane"):
                return self._add_plane_task(seq, event, kind, thread, start, duration)
            return self._add_collective(seq, event, thread, start, duration)
        message = f"events of the lane {lane or event.pid!r:.60} are not read"
        self.fates.drop(kind, "unknown_lane", message, severity="warning")
        return None

    def _add_task(self, seq: int, event: Event, kind: str, thread: str | None, start: int, duration: int) -> str | None:
        args = _hardware_args(event.args) if bytes(event.args) else _HardwareArgs()
        part = self._survey.matched.get(task_key(event, args))
        name, size = (event.name, args.bytes) if part is None else (part[0], _plane_args(part[1]).bytes)
        if reason := left_out(args.task_type, event.name, name):
            self.fates.leave_out(kind, reason)
            return None
        stream = args.physical_stream if args.physical_stream is not None else args.stream
        connection = link(args.connection)
        class_ = COLLECTIVE_TASK
        if part is None:
            class_ = category(args.task_type, event.name, linked=connection is not None) or ""
        label = str(stream) if stream is not None else (thread or str(event.tid))
        moved = size if name in _SINGLE_BYTES else None
        self._interval(seq, event, label, start, duration, name, connection, class_ or None, link(args.model), moved)
        return "device_intervals"

    def _add_plane_task(self, seq: int, event: Event, kind: str, thread: str, start: int, duration: int) -> str | None:
        """A task in a lane of collectives; the hardware lane has it too, unless that lane was not exported."""
        args = _plane_args(event.args) if bytes(event.args) else _PlaneArgs()
        if task_key(event, args) in self._survey.matched:
            self.fates.leave_out(kind, "same_as_hardware_task")
            return None
        if reason := left_out(event.name):
            self.fates.leave_out(kind, reason)
            return None
        stream = thread if args.plane_stream is None else str(args.plane_stream)
        moved = args.bytes if event.name in _SINGLE_BYTES else None
        self._interval(seq, event, stream, start, duration, event.name, None, COLLECTIVE_TASK, None, moved)
        return "device_intervals"

    def _add_collective(self, seq: int, event: Event, thread: str | None, start: int, duration: int) -> str:
        args = _collective_args(event.args) if bytes(event.args) else _CollectiveArgs()
        group = thread or str(event.tid)
        connection = link(args.connection)
        self._interval(seq, event, group, start, duration, event.name, connection, COLLECTIVE, None, None)
        self._planes["collectives"].add(seq, seq, collective_name(event.name or ""), args.data_type, _size(args.count))
        return "device_intervals"

    def _interval(
        self,
        seq: int,
        event: Event,
        stream: str,
        start: int,
        duration: int,
        name: str | None,
        connection: str | None,
        class_: str | None,
        graph: str | None,
        size: Scalar,
    ) -> None:
        number = self._survey.device(event.pid)
        device = "npu" if number is None else f"npu:{number}"
        self.devices.add(device)
        links = (connection, self._survey.started_by(place(event)))
        row = (device, stream, self._clock, _BACKEND, start, duration, name, *links, class_)
        self._planes["device_intervals"].add(seq, *row, self._survey.process(event.pid), graph, _size(size))

    def _add_sample(self, seq: int, event: Event) -> None:
        """One row per numeric argument; an ``acc_id`` names the unit that the others were sampled on."""
        kind = f"C {self._survey.processes.get(event.pid, 'unnamed lane')} value"
        time, exact = microseconds_to_ns(literal(event.ts))
        if time < 0:
            raise NoNumber(f"found the time {literal(event.ts)[:40]}, expected 0 or more")
        samples = _samples(event.args)
        unit = f" acc_id={literal(samples.pop('acc_id'))}" if "acc_id" in samples else ""
        values = [(f"{series}{unit}", as_double(literal(raw))) for series, raw in samples.items()]
        for series, value in values:
            row = (event.name or "", series, self._clock, time, self._survey.process(event.pid), value)
            self._planes["counters"].add(seq, *row)
            self._count(kind, "counters", exact)
        if not values:
            self.fates.leave_out(kind, "no_value")


def _thread(tid: Scalar) -> int | None:
    known = isinstance(tid, int) and not isinstance(tid, bool) and -(2**63) <= tid < 2**63
    return int(tid) if known and tid is not None else None


def _size(value: Scalar) -> int | None:
    """A number of bytes or elements; None where the profiler wrote none."""
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return int(value) if known and value is not None else None


def _dims(dims: str | None) -> str | None:
    """The shapes as the profiler wrote them; None where it wrote separators alone."""
    return dims if dims and any(sign.isdigit() for sign in dims) else None
