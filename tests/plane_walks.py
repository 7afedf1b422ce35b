"""Walks over literal rows, one row at a time, that the set-based views of timing and memory are held against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

Row = dict[str, Any]
Interval = tuple[int, int]


def union_ns(intervals: Iterable[Interval]) -> int:
    """Length of the union of (start, end) pairs, merging in order of start (protocol 4.1)."""
    merged: list[list[int]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return sum(end - start for start, end in merged)


def lifetimes(events: Sequence[Row]) -> list[Row]:
    """Storage lifetimes by walking events in order of (timestamp, position) with a table of what is live."""
    live: dict[tuple[str, str], Row] = {}
    found: list[Row] = []
    for position, event in sorted(enumerate(events), key=lambda item: (item[1]["timestamp_ns"], item[0])):
        key = (event["device"], event["storage_id"])
        if event["action"] == "alloc" and key not in live:
            live[key] = {**event, "tensors": {event["tensor_id"]}, "end": None, "position": position}
            found.append(live[key])
        elif key in live:
            live[key]["tensors"].add(event["tensor_id"])
            if event["action"] == "free":
                live.pop(key)["end"] = event["timestamp_ns"]
    return found


def live_at(found: Iterable[Row], timestamp_ns: int) -> list[Row]:
    """The lifetimes that are live after all events of a timestamp."""
    return [
        row
        for row in found
        if row["timestamp_ns"] <= timestamp_ns and (row["end"] is None or row["end"] > timestamp_ns)
    ]


def timeline(events: Sequence[Row], key: str | None = None) -> list[tuple[Any, ...]]:
    """(timestamp, live bytes), or (timestamp, value of ``key``, live bytes) for the values with a live storage."""
    found = lifetimes(events)
    points: list[tuple[Any, ...]] = []
    for timestamp_ns in sorted({event["timestamp_ns"] for event in events}):
        sums: dict[Any, int] = defaultdict(int)
        for row in live_at(found, timestamp_ns):
            sums[row[key] if key else None] += row["bytes"]
        if key is None:
            points.append((timestamp_ns, sums[None]))
        else:
            points.extend((timestamp_ns, value, sums[value]) for value in sorted(sums))
    return points


def peak(events: Sequence[Row]) -> tuple[int, int, int, int | None, int | None]:
    """(allocations, matched frees, total bytes, peak bytes, peak timestamp) of a sequence of events."""
    found = lifetimes(events)
    best: tuple[int | None, int | None] = (None, None)
    for timestamp_ns, live_bytes in timeline(events):
        counted = any(row["timestamp_ns"] <= timestamp_ns for row in found)
        if counted and (best[0] is None or live_bytes > best[0]):
            best = (live_bytes, timestamp_ns)
    closed = sum(row["end"] is not None for row in found)
    return (len(found), closed, sum(row["bytes"] for row in found), *best)


def above(spans: Sequence[Row], span_id: str) -> set[str]:
    """A span and every recorded span above it; ends when parents form a circle."""
    parents = {span["id"]: span["parent_id"] for span in spans}
    seen: set[str] = set()
    at: str | None = span_id
    while at in parents and at not in seen:
        seen.add(at)
        at = parents[at]
    return seen


def total_ns(spans: Sequence[Row], ops: Sequence[Row], span: Row) -> int:
    """Total host time of a span whose parents form no circle (protocol 4.3)."""
    if span["duration_ns"]:
        return int(span["duration_ns"])
    own = sum(op["duration_ns"] for op in ops if op["span_id"] == span["id"])
    return int(own + sum(total_ns(spans, ops, child) for child in spans if child["parent_id"] == span["id"]))


def children(spans: Sequence[Row], ops: Sequence[Row], span_id: str) -> list[Interval]:
    """Host intervals of the direct children of a span, operations among them."""
    below = [
        (child["start_ns"], child["start_ns"] + total_ns(spans, ops, child))
        for child in spans
        if child["parent_id"] == span_id
    ]
    return below + [
        (op["timestamp_ns"], op["timestamp_ns"] + op["duration_ns"]) for op in ops if op["span_id"] == span_id
    ]


def subtree_memory(spans: Sequence[Row], events: Sequence[Row], span: Row) -> tuple[int, int] | None:
    """(peak, residual) of a closed span, looked up instant by instant; None when nothing was allocated under it."""
    under = [row for row in lifetimes(events) if span["id"] in above(spans, row["span_id"])]
    start, end = span["start_ns"], span["start_ns"] + span["duration_ns"]
    if not under:
        return None
    if start == end:
        return (0, 0)
    instants = {start} | {t for row in under for t in (row["timestamp_ns"], row["end"]) if t is not None}
    sums = [sum(row["bytes"] for row in live_at(under, t)) for t in instants if start <= t < end]
    return max(sums), sum(row["bytes"] for row in under if row["end"] is None or row["end"] > end)
