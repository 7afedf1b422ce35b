"""Begin and end events ("B", "E") -> spans, paired per thread.

An end closes the innermost open begin of its name on its thread, one without a name the innermost open begin. A begin
that is never closed is a span that never ended.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from . import kineto_columns as columns
from .kineto_events import Begin, End
from .kineto_points import Fate
from .kineto_slices import TIME_LIMIT_NS
from .kineto_times import nanoseconds


@dataclass
class _Open:
    seq: int
    start: int
    name: str
    kind: str
    reason: str
    open: bool = True


class _Thread:
    """The open begins of one thread, innermost last, over all and by name."""

    def __init__(self) -> None:
        self.order: list[_Open] = []
        self.named: dict[str, list[_Open]] = defaultdict(list)

    def push(self, begin: _Open) -> None:
        self.order.append(begin)
        self.named[begin.name].append(begin)

    def pop(self, name: str | None) -> _Open | None:
        """Close and return the begin an end belongs to; None when there is none."""
        while self.order and not self.order[-1].open:
            self.order.pop()
        stack = self.order if name is None else self.named.get(name)
        if not stack:
            return None
        found = stack.pop()
        if name is None:
            self.named[found.name].pop()
        if name is not None and not self.named[name]:
            del self.named[name]
        found.open = False
        return found


class Pairs:
    """The pairing of a whole trace; ``found`` are the ends known so far."""

    def __init__(self) -> None:
        self._threads: dict[tuple[Any, Any], _Thread] = defaultdict(_Thread)
        self._begins: Counter[tuple[str, str]] = Counter()
        self._parts: list[Any] = []

    def add(self, events: Sequence[Begin | End], seqs: Iterable[int]) -> tuple[list[dict[str, Any]], list[Fate | None]]:
        """Rows of the begins without their ends, and fates; None for begins, which :meth:`begins` counts."""
        times = nanoseconds([event.ts for event in events])
        pids = columns.integers([event.pid for event in events]).to_pylist()
        tids = columns.integers([event.tid for event in events]).to_pylist()
        rows: list[dict[str, Any]] = []
        fates: list[Fate | None] = []
        ends: list[tuple[int, int, int]] = []
        facts = zip(events, seqs, times.ns.tolist(), times.valid.tolist(), times.repaired.tolist(), strict=True)
        for (event, seq, time, valid, cut), pid, tid in zip(facts, pids, tids, strict=True):
            thread = self._threads[event.pid, event.tid]
            if not valid or abs(time) >= TIME_LIMIT_NS:
                fates.append(("dropped", None, "no_timestamp"))
            elif isinstance(event, Begin):
                row = {"seq": seq, "start_ns": time, "process_id": pid, "thread_id": tid}
                fates.append(self._begin(event, row, rows, thread, "sub_nanosecond" if cut else ""))
            else:
                fates.append(self._end(event, seq, time, thread, ends))
        if ends:
            self._parts.append(np.array(ends, np.int64))
        return rows, fates

    def _begin(self, event: Begin, row: dict[str, Any], rows: list[Any], thread: _Thread, reason: str) -> Fate | None:
        if event.name is None:
            return ("dropped", None, "no_name")
        name, kind = columns.clean(event.name), " ".join(filter(None, ("B", event.cat)))
        thread.push(_Open(row["seq"], row["start_ns"], name, kind, reason))
        self._begins[kind, reason] += 1
        rows.append({**row, "name": name, "span_kind": "function", "category": event.cat and columns.clean(event.cat)})
        return None

    def _end(self, event: End, seq: int, time: int, thread: _Thread, ends: list[Any]) -> Fate:
        begin = thread.pop(event.name and columns.clean(event.name))
        if begin is None:
            return ("dropped", None, "end_without_begin")
        if time < begin.start:
            self._begins[begin.kind, begin.reason] -= 1
            self._begins[begin.kind, "negative_duration"] += 1
        else:
            ends.append((begin.seq, time, seq))
        return ("kept", None, None)

    def ends(self) -> Any:
        """Of every closed begin seq, end time and seq of the end, sorted by the first: an array of three columns."""
        found = np.concatenate(self._parts) if self._parts else np.zeros((0, 3), np.int64)
        return found[np.argsort(found[:, 0], kind="stable")]

    def begins(self) -> Iterator[tuple[str, str, int]]:
        """Kind, repair and number of the begins; those still open are repaired as ``no_end``."""
        for thread in self._threads.values():
            for begin in thread.order:
                if begin.open:
                    self._begins[begin.kind, begin.reason] -= 1
                    self._begins[begin.kind, "no_end"] += 1
        for (kind, reason), number in sorted(self._begins.items()):
            yield kind, reason, number


SPAN_SCHEMA = pa.schema(
    [
        ("seq", pa.int64()),
        ("start_ns", pa.int64()),
        ("duration_ns", pa.int64()),
        ("name", pa.string()),
        ("span_kind", pa.string()),
        ("end_seq", pa.int64()),
        ("process_id", pa.int64()),
        ("thread_id", pa.int64()),
        ("category", pa.string()),
    ]
)
"""Columns of a span before its run, id and parent are known."""
