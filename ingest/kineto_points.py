"""Instants and counters -> rows of memory_events, device_memory and counters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from . import kineto_columns as columns
from .kineto_categories import DEVICE_TYPES
from .kineto_events import Instant, MemoryArgs, Sample
from .kineto_slices import TIME_LIMIT_NS
from .kineto_times import nanoseconds

MEMORY = "[memory]"
_MARKS = ("Record Window End", "Iteration Start")
Fate = tuple[str, str | None, str | None]
"""fate, plane and reason of one record, as the ledger counts it."""


@dataclass
class Points:
    """Rows by plane, and the fate of each event, in the order of the events."""

    memory: list[dict[str, Any]] = field(default_factory=list)
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    counters: list[dict[str, Any]] = field(default_factory=list)
    fates: list[Fate] = field(default_factory=list)


def instants(events: Sequence[Instant], seqs: Iterable[int]) -> Points:
    """Memory events to their planes; marks of the profiler are about the run, other instants are no rows."""
    points, times = Points(), _times(events)
    places = _places(events)
    for event, seq, time, place in zip(events, seqs, times, places, strict=True):
        if event.name != MEMORY or not isinstance(event.args, MemoryArgs):
            mark = event.name is not None and event.name.startswith(_MARKS)
            points.fates.append(("kept", None, None) if mark else ("dropped", None, "instant_event"))
        elif time is None:
            points.fates.append(("dropped", None, "no_timestamp"))
        else:
            points.fates.append(_memory(points, event.args, {"seq": seq, "timestamp_ns": time, **place}))
    return points


def _memory(points: Points, args: MemoryArgs, at: dict[str, Any]) -> Fate:
    """One allocation or free; one without an address can be paired with nothing, so it stays a counter's sample."""
    size, address, kind, number, used, reserved = columns.integers(
        [args.bytes, None, args.device_type, args.device_id, args.allocated, args.reserved]
    ).to_pylist()
    device = _device(kind, number)
    total = {"used_bytes": used, "reserved_bytes": reserved}
    process = {"process_id": at["process_id"]}
    if used is not None or reserved is not None:
        row = {"seq": at["seq"], "timestamp_ns": at["timestamp_ns"], "device": device, **total, **process}
        points.checkpoints.append(row)
    if size is None or size == 0:
        return ("dropped", None, "no_bytes")
    address = args.address
    if type(address) is not int or not 0 <= address < 2**64:
        series = {"name": MEMORY, "series": f"Bytes {device}", "value": float(size), **process}
        points.counters.append({"seq": at["seq"], "timestamp_ns": at["timestamp_ns"], **series})
        return ("kept", "counters", None)
    action = "alloc" if size > 0 else "free"
    row = {"storage_id": f"{address:#x}", "device": device, "bytes": abs(size), "action": action, "category": "other"}
    points.memory.append({**at, **row, "address": address})
    return ("kept", "memory_events", None)


def _device(kind: int | None, number: int | None) -> str:
    """Torch's label of a device type and index; the CPU has no index."""
    if kind == 0:
        return "cpu"
    name = DEVICE_TYPES[kind] if kind is not None and 0 <= kind < len(DEVICE_TYPES) else f"type{kind}"
    return name if number is None or number < 0 else f"{name}:{number}"


def samples(events: Sequence[Sample], seqs: Iterable[int]) -> Points:
    """One row per series of each counter event."""
    points, times = Points(), _times(events)
    process = columns.integers([event.pid for event in events]).to_pylist()
    for event, seq, time, pid in zip(events, seqs, times, process, strict=True):
        series = series_of(event.args)
        if time is None or event.name is None or not series:
            reason = "no_timestamp" if time is None else "no_name" if event.name is None else "no_series"
            points.fates.append(("dropped", None, reason))
            continue
        row = {"seq": seq, "timestamp_ns": time, "process_id": pid, "name": columns.clean(event.name)}
        points.counters += [{**row, "series": name, "value": value} for name, value in series]
        points.fates.append(("kept", "counters", None))
    return points


def series_of(raw: Any) -> list[tuple[str, float | None]]:
    """The arguments of a counter as series; a value that is no finite number is None."""
    try:
        found = msgspec.json.decode(raw) if raw else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return []
    pairs = found.items() if isinstance(found, dict) else ()
    return [(columns.clean(name), _finite(value)) for name, value in pairs]


def _finite(value: Any) -> float | None:
    try:
        number = float(value) if type(value) in (int, float, str) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _times(events: Sequence[Any]) -> list[int | None]:
    found = nanoseconds([event.ts for event in events])
    good = found.valid & (abs(found.ns) < TIME_LIMIT_NS)
    return [time if ok else None for time, ok in zip(found.ns.tolist(), good.tolist(), strict=True)]


def _places(events: Sequence[Any]) -> list[dict[str, Any]]:
    pids = columns.integers([event.pid for event in events]).to_pylist()
    tids = columns.integers([event.tid for event in events]).to_pylist()
    return [{"process_id": pid, "thread_id": tid} for pid, tid in zip(pids, tids, strict=True)]
