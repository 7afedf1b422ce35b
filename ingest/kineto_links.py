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


def _walk(order: Any, columns: tuple[Any, ...], span: Any, op: Any) -> None:
    """Go through the events by thread and start, with one stack of spans and one of operations.

    A stack holds what may still enclose a later event, outermost first, as negated ends (which rise, so that bisect
    finds among them) and seqs. The loop is written out because it runs once for every host event of a trace.
    """
    span_ends: list[int] = []
    span_seqs: list[int] = []
    op_ends: list[int] = []
    op_seqs: list[int] = []
    current = -1
    for rows, block in _blocks(order, columns):
        span_links, op_links = [], []
        for family, seq, thread, start, end in block:
            if thread != current:
                current = thread
                for column in (span_ends, span_seqs, op_ends, op_seqs):
                    column.clear()
            while span_ends and span_ends[-1] > start:
                span_ends.pop()
                span_seqs.pop()
            while op_ends and op_ends[-1] > start:
                op_ends.pop()
                op_seqs.pop()
            span_links.append(-1 if not span_ends or span_ends[0] > end else _innermost(span_ends, span_seqs, end))
            op_links.append(-1 if not op_ends or op_ends[0] > end else _innermost(op_ends, op_seqs, end))
            if family == OP:
                _push(op_ends, op_seqs, end, seq)
            elif family == SPAN:
                _push(span_ends, span_seqs, end, seq)
        span[rows], op[rows] = span_links, op_links


def _innermost(ends: list[int], seqs: list[int], end: int) -> int:
    """seq of the last slice that ends at ``-end`` or later; there is one."""
    return seqs[-1] if ends[-1] <= end else seqs[bisect_right(ends, end) - 1]


def _push(ends: list[int], seqs: list[int], end: int, seq: int) -> None:
    """Add a slice; those that end before it can never again be the innermost."""
    while ends and ends[-1] > end:
        ends.pop()
        seqs.pop()
    ends.append(end)
    seqs.append(seq)


def _blocks(order: Any, columns: tuple[Any, ...]) -> Iterator[tuple[Any, Iterator[tuple[int, ...]]]]:
    """The events in order, as Python numbers a block at a time; starts and ends negated."""
    family, seq, thread, start, end = columns
    for low in range(0, len(order), _BLOCK):
        rows = order[low : low + _BLOCK]
        found = (family[rows], seq[rows], thread[rows], -start[rows], -end[rows])
        yield rows, zip(*(column.tolist() for column in found), strict=True)
