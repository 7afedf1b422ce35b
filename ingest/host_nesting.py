"""Which operation and which span enclose a host record on its thread, for sources that state times alone."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterator

import numpy as np

SPAN, OP, LAUNCH = 0, 1, 2
"""What a record is; launches are enclosed and enclose nothing."""


class HostRecords:
    """Gathers the intervals of host records in ``seq`` order, five integers each."""

    def __init__(self) -> None:
        self._columns = tuple(array("q") for _ in range(5))
        self._threads: dict[Hashable, int] = {}

    def add(self, thread: Hashable, start: int, end: int, kind: int, seq: int) -> None:
        """One record; ``thread`` is any key of its thread."""
        known = self._threads.setdefault(thread, len(self._threads))
        for column, value in zip(self._columns, (known, start, end, kind, seq), strict=True):
            column.append(value)

    def enclosing(self, same: Callable[[Hashable], Hashable]) -> Iterator[tuple[int | None, int | None]]:
        """The seq of the innermost span and of the innermost operation around each record, in the order of adding.

        ``same`` maps thread keys to what tells threads apart. A record is enclosed by what starts before it and ends
        after it on its thread; one that only crosses it encloses nothing.
        """
        threads, starts, ends, kinds, seqs = (np.frombuffer(column, np.int64) for column in self._columns)
        merged: dict[Hashable, int] = {}
        keys = [merged.setdefault(same(key), len(merged)) for key in self._threads]
        threads = np.array(keys, np.int64)[threads] if len(keys) else threads
        order = np.lexsort((seqs, -ends, starts, threads))
        found = np.full((len(order), 2), -1, np.int64)
        columns = (column[order].tolist() for column in (threads, starts, ends, kinds, seqs))
        for at, span, op in _innermost(zip(order.tolist(), *columns, strict=True)):
            found[at] = span, op
        for span, op in found.tolist():
            yield None if span < 0 else span, None if op < 0 else op


def _innermost(records: Iterator[tuple[int, ...]]) -> Iterator[tuple[int, int, int]]:
    """Walk records by thread and start with the stack of what is open."""
    stack: list[tuple[int, int, int, int]] = []
    current = -1
    for at, thread, start, end, kind, seq in records:
        if thread != current:
            stack, current = [], thread
        while stack and stack[-1][1] <= start and stack[-1][0] < start:
            stack.pop()
        inner = [-1, -1]
        for open_start, open_end, open_kind, open_seq in reversed(stack):
            if inner[open_kind] < 0 and open_end >= end and (open_end > start or open_start == start):
                inner[open_kind] = open_seq
                if min(inner) >= 0:
                    break
        yield at, inner[SPAN], inner[OP]
        if kind != LAUNCH:
            stack.append((start, end, kind, seq))
