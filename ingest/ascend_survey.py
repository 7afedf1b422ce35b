"""The first pass over an Ascend trace: what its records say about each other, before any row is made.

Names of lanes, flows and nesting lie anywhere in the file, so rows are made in a second pass. What is held between the
passes are ids and five integers per host record, never the events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from .ascend_events import FAULTS, Event, Lost, Scalar, read_events
from .decimals import NoNumber, microseconds_to_ns
from .host_nesting import LAUNCH, OP, SPAN, HostRecords

_STEP = re.compile(r"ProfilerStep#\d+")
_NONE = 2**32 - 1
"""What the profiler writes for an id that a record does not have."""

Place = tuple[Scalar, Scalar, bytes]
"""Where an event starts: process, thread and the text of its time."""


class TaskArgs(Struct, gc=False):
    """The arguments of a device task that join it to other records; the others are decoded where they are needed."""

    physical_stream: Scalar = msgspec.field(name="Physic Stream Id", default=None)
    task: Scalar = msgspec.field(name="Task Id", default=None)
    subtask: Scalar = msgspec.field(name="Subtask Id", default=None)
    plane_stream: Scalar = msgspec.field(name="stream id", default=None)
    plane_task: Scalar = msgspec.field(name="task id", default=None)
    plane_subtask: Scalar = msgspec.field(name="context id", default=None)
    connection: Scalar = msgspec.field(name="connection_id", default=None)


class _MetaArgs(Struct, gc=False):
    name: Scalar = None
    sort_index: Scalar = None


_task_args = msgspec.json.Decoder(TaskArgs).decode
_meta_args = msgspec.json.Decoder(_MetaArgs).decode


def interval(event: Event) -> tuple[int, int, bool]:
    """Start and duration in ns, and whether both were whole nanoseconds. Raises :class:`NoNumber`."""
    start, exact = microseconds_to_ns(literal(event.ts))
    duration, exact_too = microseconds_to_ns(literal(event.dur))
    if start < 0 or start + max(duration, 0) > 2**63 - 1:
        raise NoNumber(f"found the time {literal(event.ts)[:40]} us, expected one that 64 bits of ns hold")
    return start, duration, exact and exact_too


def literal(raw: Any) -> str:
    """A JSON number or string as text."""
    return str(raw, "utf-8", "replace").strip().strip('"')


def host_kind(event: Event) -> int | None:
    """What a complete event is that tells by itself that it ran on the host; None for the others."""
    if event.cat is not None:
        return OP if event.cat == "cpu_op" and not _STEP.fullmatch(event.name or "") else SPAN
    return LAUNCH if b'"level"' in bytes(event.args) else None


def link(value: Scalar) -> str | None:
    """An id as text; None for the profiler's ways to write "none"."""
    return None if value is None or value in (-1, _NONE) or isinstance(value, bool) else str(value)


class Survey:
    """What the first pass found.

    Attributes
    ----------
    processes, threads:
        Names by process, and by process and thread.
    events:
        Number of records, lost ones included.
    matched:
        Tasks of a collective that stand both in its own lane and in a hardware lane: key -> (name, arguments).
    """

    def __init__(self, path: Path) -> None:
        self.processes: dict[Scalar, str] = {}
        self.threads: dict[tuple[Scalar, Scalar], str] = {}
        self.matched: dict[Any, tuple[str | None, bytes]] = {}
        self.events = 0
        self._order: dict[Scalar, Scalar] = {}
        self._host = HostRecords()
        self._flow_starts: dict[Scalar, Place] = {}
        self._flow_ends: dict[Place, Scalar] = {}
        self._first_flow: dict[Place, str] = {}
        self._connections: dict[str, Place] = {}
        self._hardware: set[Any] = set()
        self._plane_tasks: dict[Any, tuple[str | None, bytes]] = {}
        for seq, event in enumerate(read_events(path)):
            self.events = seq + 1
            if not isinstance(event, Lost):
                self._add(seq, event)
        self.matched = {key: task for key, task in self._plane_tasks.items() if key in self._hardware}
        self._hardware.clear()
        self._plane_tasks.clear()

    def _add(self, seq: int, event: Event) -> None:
        try:
            if event.ph == "X":
                self._add_slice(seq, event)
            elif event.ph == "M":
                self._add_name(event)
            elif event.ph in ("s", "f") and event.cat == "async_npu":
                self._add_flow(event)
        except (*FAULTS, NoNumber, TypeError):
            return  # The second pass says what is wrong with it.

    def _add_slice(self, seq: int, event: Event) -> None:
        kind = host_kind(event)
        if kind is not None:
            start, duration, _ = interval(event)
            if duration >= 0:
                self._host.add((event.pid, event.tid), start, start + duration, kind, seq)
        elif b'"Physic Stream Id"' in bytes(event.args) or b'"stream id"' in bytes(event.args):
            args = _task_args(event.args)
            key = task_key(event, args)
            if args.physical_stream is None:
                self._plane_tasks[key] = (event.name, bytes(event.args))
            else:
                self._hardware.add(key)
                self._add_connection(event, args)
        elif b'"connection_id"' in bytes(event.args):
            self._add_connection(event, _task_args(event.args))

    def _add_connection(self, event: Event, args: TaskArgs) -> None:
        connection = link(args.connection)
        if connection is not None:
            self._connections.setdefault(connection, place(event))

    def _add_name(self, event: Event) -> None:
        if event.name in ("process_name", "thread_name", "process_sort_index"):
            args = _meta_args(event.args)
            if event.name == "process_sort_index":
                self._order[event.pid] = args.sort_index
            elif isinstance(args.name, str) and event.name == "process_name":
                self.processes[event.pid] = args.name
            elif isinstance(args.name, str):
                self.threads[event.pid, event.tid] = args.name

    def _add_flow(self, event: Event) -> None:
        if event.ph == "s":
            self._flow_starts[event.id] = place(event)
            self._first_flow.setdefault(place(event), str(event.id))
        else:
            self._flow_ends[place(event)] = event.id

    def nesting(self) -> Iterator[tuple[int | None, int | None]]:
        """The seq of the span and of the operation around each host record, in the order of the file."""

        def real(thread: Any) -> Any:
            return self.process(thread[0]), thread[1]

        return self._host.enclosing(real)

    def process(self, pid: Scalar) -> int | None:
        """The process that a lane belongs to: lanes other than Python's carry it in the high bits of their id."""
        if not isinstance(pid, int) or isinstance(pid, bool) or not 0 <= pid < 2**63:
            return None
        return pid >> 10 if self.device(pid) is not None else pid

    def device(self, pid: Scalar) -> int | None:
        """The device of a lane, from the low five bits of its id; None where the id is not made that way.

        A lane's id is the process, the lane's sort index and the device; that the middle part repeats the stated sort
        index, and that the high part is a process of the file, is the check that it is.
        """
        if not isinstance(pid, int) or isinstance(pid, bool):
            return None
        stated = self._order.get(pid)
        return pid & 31 if pid >= 1024 and isinstance(stated, int) and (pid >> 5) & 31 == stated else None

    def operation_id(self, event: Event) -> str | None:
        """The id of an operation from which device work was started: that of the first flow that leaves it."""
        return self._first_flow.get(place(event))

    def started_by(self, where: Place | None) -> str | None:
        """The id of the operation whose flow ends at a place."""
        flow = self._flow_ends.get(where) if where is not None else None
        origin = self._flow_starts.get(flow) if flow is not None else None
        return None if origin is None else self._first_flow.get(origin)

    def started_by_connection(self, connection: str | None) -> str | None:
        """The id of the operation that started the device work of a connection."""
        return None if connection is None else self.started_by(self._connections.get(connection))


def place(event: Event) -> Place:
    """Where an event starts."""
    return event.pid, event.tid, bytes(event.ts)


def task_key(event: Event, args: TaskArgs) -> Any:
    """What tells a device task from all others: its stream, its ids and its start."""
    if args.physical_stream is None:
        return args.plane_stream, args.plane_task, args.plane_subtask, bytes(event.ts)
    return args.physical_stream, args.task, args.subtask, bytes(event.ts)
