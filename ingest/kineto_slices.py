"""Complete events ("X") -> rows: spans, operations, launches, device work and collectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import kineto_columns as columns
from .kineto_events import NO_ARGS, Args
from .kineto_times import nanoseconds

REASONS = (
    "",
    "sub_nanosecond",
    "not_a_number",
    "no_duration",
    "negative_duration",
    "no_name",
    "no_timestamp",
    "zero_timestamp",
    "time_out_of_range",
    "no_stream",
    "no_device",
    "no_series",
)
"""Why events are repaired or dropped; a number stands for one of them."""
_CODE = {reason: number for number, reason in enumerate(REASONS)}
TIME_LIMIT_NS = 2**62
"""No time of an event is further from the file's base than this, so that a base below it can be added."""


@dataclass
class Rows:
    """Events of one role, column by column, before any is left out.

    ``drop`` and ``repair`` are numbers of ``REASONS``, 0 for none; ``duration`` is meaningless where ``timed`` is
    False.
    """

    events: Sequence[Any]
    args: Sequence[Args]
    seq: Any
    start: Any
    duration: Any
    timed: Any
    drop: Any
    repair: Any

    @cached_property
    def names(self) -> list[Any]:
        return [event.name for event in self.events]

    @cached_property
    def categories(self) -> list[Any]:
        return [event.cat for event in self.events]

    @cached_property
    def pids(self) -> list[Any]:
        return [event.pid for event in self.events]

    @cached_property
    def tids(self) -> list[Any]:
        return [event.tid for event in self.events]

    @property
    def end(self) -> Any:
        """Start and duration together; the start where there is no duration."""
        return self.start + np.where(self.timed, self.duration, 0)


def rows_of(events: Sequence[Any], seq: Any, *, device: bool, mended: Any, zero_is_a_time: bool = False) -> Rows:
    """Times and fates of some complete events.

    A host event without a usable duration is kept without one; device work without one is dropped, as it would be no
    interval. A timestamp of 0 is one the profiler never filled in, except where the trace has no categories.
    """
    start, duration = nanoseconds([event.ts for event in events]), nanoseconds([event.dur for event in events])
    timed = duration.valid & (duration.ns >= 0)
    drop, repair = np.zeros(len(events), np.uint8), np.zeros(len(events), np.uint8)
    repair[start.repaired | duration.repaired] = _CODE["sub_nanosecond"]
    repair[mended] = _CODE["not_a_number"]
    fate = drop if device else repair
    fate[duration.valid & (duration.ns < 0)] = _CODE["negative_duration"]
    fate[~duration.valid] = _CODE["no_duration"]
    length = np.where(timed, duration.ns, 0)
    drop[(np.abs(start.ns) >= TIME_LIMIT_NS) | (length > TIME_LIMIT_NS - np.abs(start.ns))] = _CODE["time_out_of_range"]
    if not zero_is_a_time:
        drop[start.valid & (start.ns == 0)] = _CODE["zero_timestamp"]
    drop[~start.valid] = _CODE["no_timestamp"]
    args = [event.args if type(event.args) is Args else NO_ARGS for event in events]
    rows = Rows(events, args, seq, start.ns, duration.ns, timed, drop, repair)
    if not device and None in rows.names:
        drop[[name is None for name in rows.names]] = _CODE["no_name"]
    return rows


def kept(rows: Rows) -> Rows:
    """The rows that are not dropped."""
    if not rows.drop.any():
        return rows
    at = np.flatnonzero(rows.drop == 0)
    index = at.tolist()
    chosen = ([column[i] for i in index] for column in (rows.events, rows.args))
    arrays = (rows.seq, rows.start, rows.duration, rows.timed, rows.drop, rows.repair)
    return Rows(*chosen, *(column[at] for column in arrays))


def _times(rows: Rows, start: str) -> dict[str, Any]:
    seq = pa.array(rows.seq, pa.int64())
    return {"seq": seq, start: rows.start, "duration_ns": columns.masked(rows.duration, rows.timed)}


def _place(rows: Rows) -> dict[str, Any]:
    return {
        "process_id": columns.integers(rows.pids),
        "thread_id": columns.integers(rows.tids),
    }


def _external(args: Sequence[Args]) -> Any:
    found = columns.texts([arg.external_id for arg in args])
    if not found.null_count:
        return found
    older = (columns.texts([arg.external_id_2021 for arg in args]), columns.texts([a.external_id_camel for a in args]))
    return columns.first_of(found, *older)


def _correlation(args: Sequence[Args]) -> Any:
    found = columns.texts([arg.correlation for arg in args])
    if not found.null_count:
        return found
    return columns.first_of(found, columns.texts([arg.correlation_camel for arg in args]))


def _shapes(args: Sequence[Args]) -> Any:
    return columns.raw_texts([arg.input_dims or arg.input_dims_2021 for arg in args])


def ops_table(rows: Rows) -> Any:
    """Operations without their links."""
    return pa.table(
        {
            **_times(rows, "timestamp_ns"),
            "op_name": columns.names(rows.names),
            **_place(rows),
            "external_id": _external(rows.args),
            "sequence_number": columns.integers([arg.sequence_number for arg in rows.args]),
            "input_shapes": _shapes(rows.args),
        }
    )


def spans_table(rows: Rows) -> Any:
    """Spans without their parents; ``end_seq`` is their own record where that has a duration."""
    name = columns.names(rows.names)
    module = pc.starts_with(name, "nn.Module: ")
    return pa.table(
        {
            **_times(rows, "start_ns"),
            "name": name,
            "span_kind": pc.if_else(module, "module", "function"),
            "end_seq": columns.masked(rows.seq, rows.timed),
            **_place(rows),
            "category": columns.names(rows.categories),
        }
    )


def launches_table(rows: Rows) -> Any:
    """Launches without their links."""
    return pa.table(
        {
            **_times(rows, "start_ns"),
            "name": columns.names(rows.names),
            "category": columns.names(rows.categories),
            **_place(rows),
            "correlation_id": _correlation(rows.args),
            "external_id": _external(rows.args),
        }
    )


def place_devices(rows: Rows, kinds: Sequence[str | None]) -> Any:
    """Device work; drops what names no device or no stream. ``device_kind`` NULL: the trace says it elsewhere."""
    args, process = rows.args, columns.integers(rows.pids)
    number = columns.first_of(columns.texts([arg.device for arg in args]), process.cast(pa.string()))
    stream = columns.first_of(columns.texts([arg.stream for arg in args]), columns.texts(rows.tids))
    rows.drop[pc.is_null(stream).to_numpy(zero_copy_only=False) & (rows.drop == 0)] = _CODE["no_stream"]
    rows.drop[pc.is_null(number).to_numpy(zero_copy_only=False) & (rows.drop == 0)] = _CODE["no_device"]
    graph = columns.texts([arg.graph_id for arg in args])
    size = columns.first_of(columns.integers([a.bytes for a in args]), columns.integers([a.size for a in args]))
    table = pa.table(
        {
            **_times(rows, "start_ns"),
            "device_kind": pa.array(kinds, pa.string()),
            "device_number": number,
            "stream_id": stream,
            "name": columns.names(rows.names),
            "correlation_id": _correlation(args),
            "external_id": _external(args),
            "category": columns.names(rows.categories),
            "process_id": process,
            "context_id": columns.texts([arg.context for arg in args]),
            "graph_id": pc.if_else(pc.equal(graph, "0"), None, graph),
            "bytes": pc.if_else(pc.less(size, 0), None, size),
        }
    )
    return table if not rows.drop.any() else table.filter(pa.array(rows.drop == 0))


def collectives(rows: Rows, link: str) -> list[dict[str, Any]]:
    """The collectives among kept rows; ``link`` is interval_seq or op_seq."""
    at = [row for row, args in enumerate(rows.args) if args.collective is not None]
    return [{"seq": seq, link: seq, **_collective(rows.args[row])} for row in at for seq in (int(rows.seq[row]),)]


def _collective(args: Args) -> dict[str, Any]:
    counts = columns.integers([args.in_elements, args.out_elements, args.group_size]).to_pylist()
    return {
        "name": columns.clean(str(args.collective)),
        "dtype": columns.raw_string(args.dtype),
        **dict(zip(("in_elements", "out_elements", "group_size"), counts, strict=True)),
        "group_name": columns.texts([args.group_name])[0].as_py(),
        "group_ranks": columns.raw_string(args.group_ranks),
    }
