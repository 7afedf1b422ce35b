"""Which span and which operation encloses a host event on its thread, for all events of a trace at once.

A encloses B when both are on one thread and A's closed interval holds B's; of equal intervals the earlier record
encloses the later. The innermost is the one that starts last. Slices that cross enclose neither the other, and do not
disturb what encloses them both: a slice that is closest among those before B and ends no earlier than B is found with
a stack whose ends only fall, so crossing slices cost nothing and lose nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

SPAN, OP, LAUNCH = 0, 1, 2
_BLOCK = 1 << 17


@dataclass(frozen=True)
class Links:
    """For each host event in the order it was added: ``seq`` of the enclosing span and operation, -1 for none."""

    family: Any
    span: Any
    op: Any

    def of(self, family: int) -> tuple[Any, Any]:
        """The links of one family's events, in their order."""
        mine = self.family == family
        return self.span[mine], self.op[mine]


class Nesting:
    """Gathers the host events of a trace: about 30 bytes each."""

    def __init__(self) -> None:
        self._parts: list[tuple[Any, ...]] = []

    def add(self, family: int, seq: Any, thread: Any, start: Any, end: Any) -> None:
        """Add events of one family; parts may come in any order, the events of a family in theirs."""
        if len(seq):
            self._parts.append((np.full(len(seq), family, np.int8), seq, thread, start, end))

    def link(self, ends: tuple[Any, Any] | None = None) -> Links:
        """All links; ``ends`` gives later found ends as (seq, end) in seq order."""
        if not self._parts:
            empty = np.zeros(0, np.int64)
            return Links(empty.astype(np.int8), empty, empty)
        family, seq, thread, start, end = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        self._parts.clear()
        if ends is not None and len(ends[0]):
            _fill_ends(family, seq, end, ends)
        order = np.lexsort((seq, -end, start, thread))
        span, op = np.full(len(seq), -1, np.int64), np.full(len(seq), -1, np.int64)
        _walk(order, (family, seq, thread, start, end), span, op)
        return Links(family, span, op)


def _fill_ends(family: Any, seq: Any, end: Any, ends: tuple[Any, Any]) -> None:
    rows = np.flatnonzero(family == SPAN)
    at = np.searchsorted(ends[0], seq[rows])
    hit = (at < len(ends[0])) & (ends[0][np.minimum(at, len(ends[0]) - 1)] == seq[rows])
    end[rows[hit]] = ends[1][at[hit]]


class _Stack:
    """The slices seen so far that may still enclose one, outermost first; ends never rise."""

    def __init__(self) -> None:
        self.falling: list[int] = []  # Negated ends, so that they rise and bisect finds among them.
        self.seqs: list[int] = []

    def enclosing(self, end: int) -> int:
        """seq of the innermost slice that ends at ``end`` or later; -1 for none."""
        if not self.falling or -self.falling[0] < end:
            return -1
        if -self.falling[-1] >= end:
            return self.seqs[-1]
        return self.seqs[bisect_right(self.falling, -end) - 1]

    def drop_before(self, start: int) -> None:
        """Forget slices that ended before ``start``."""
        while self.falling and -self.falling[-1] < start:
            self.falling.pop()
            self.seqs.pop()

    def push(self, end: int, seq: int) -> None:
        """Add a slice; those that end before it can never again be the innermost."""
        while self.falling and -self.falling[-1] < end:
            self.falling.pop()
            self.seqs.pop()
        self.falling.append(-end)
        self.seqs.append(seq)

    def clear(self) -> None:
        self.falling.clear()
        self.seqs.clear()


def _walk(order: Any, columns: tuple[Any, ...], span: Any, op: Any) -> None:
    """Go through the events by thread and start, with one stack of spans and one of operations."""
    spans, ops = _Stack(), _Stack()
    current = -1
    for rows, block in _blocks(order, columns):
        span_links, op_links = [], []
        for family, seq, thread, start, end in block:
            if thread != current:
                current = thread
                spans.clear()
                ops.clear()
            if spans.falling:
                spans.drop_before(start)
                span_links.append(spans.enclosing(end))
            else:
                span_links.append(-1)
            if ops.falling:
                ops.drop_before(start)
                op_links.append(ops.enclosing(end))
            else:
                op_links.append(-1)
            if family == OP:
                ops.push(end, seq)
            elif family == SPAN:
                spans.push(end, seq)
        span[rows], op[rows] = span_links, op_links


def _blocks(order: Any, columns: tuple[Any, ...]) -> Iterator[tuple[Any, Iterator[tuple[int, ...]]]]:
    """The events in order, as Python numbers a block at a time."""
    for low in range(0, len(order), _BLOCK):
        rows = order[low : low + _BLOCK]
        yield rows, zip(*(column[rows].tolist() for column in columns), strict=True)
