"""Which span and which operation encloses a host event on its thread, for all events of a trace at once.

A encloses B when both are on one thread and A's closed interval holds B's; of equal intervals the earlier record
encloses the later. The innermost is the one that starts last. Slices that cross enclose neither the other, and do not
disturb what encloses them both: a slice that is closest among those before B and ends no earlier than B is found with
a stack whose ends only fall, so crossing slices cost nothing and lose nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .kineto_order import EVENT, EventOrder, forget

SPAN, OP, LAUNCH = 0, 1, 2
_FAMILIES = (SPAN, OP, LAUNCH)
_BOTTOM = -(1 << 64)
_NO_ENDS = (np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True)
class Links:
    """Of each family's events, in the order they were added, ``seq`` of the enclosing span and operation, or -1."""

    columns: tuple[Any, ...]

    def read(self, family: int, start: int, count: int) -> tuple[Any, Any]:
        """The links of some events of a family: spans, operations."""
        found = np.array(self.columns[family][start : start + count])
        forget(self.columns[family])
        return found[:, 0], found[:, 1]


class Nesting:
    """Gathers the host events of a trace, on disk in ``folder`` when they are many."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._order = EventOrder(folder)
        self._rows = [0, 0, 0]

    def add(self, family: int, seq: Any, thread: Any, start: Any, end: Any) -> None:
        """Add events of one family; the events of a family come in their order."""
        events = np.empty(len(seq), EVENT)
        columns = {"thread": thread, "family": family, "start": start, "end": end, "seq": seq}
        for name, column in columns.items():
            events[name] = column
        events["row"] = np.arange(self._rows[family], self._rows[family] + len(seq))
        self._rows[family] += len(seq)
        if len(seq):
            self._order.add(events)

    def link(self, ends: tuple[Any, Any] = _NO_ENDS) -> Links:
        """All links; ``ends`` gives later found ends of spans as (seq, end) in seq order."""
        links = Links(tuple(self._column(family) for family in _FAMILIES))
        for events, span, op in _walk(_blocks(self._order.blocks(), ends)):
            for family in _FAMILIES:
                mine = events["family"] == family
                rows = events["row"][mine]
                links.columns[family][rows, 0], links.columns[family][rows, 1] = span[mine], op[mine]
                forget(links.columns[family])
        return links

    def _column(self, family: int) -> Any:
        shape = (self._rows[family], 2)
        path = self._folder / f"links-{family}"
        return np.memmap(path, np.int64, "w+", shape=shape) if shape[0] else np.zeros(shape, np.int64)


def _blocks(found: Iterable[Any], ends: tuple[Any, Any]) -> Iterator[Any]:
    """Blocks of events with their ends filled in, each sorted."""
    for events in found:
        if len(ends[0]):
            _fill_ends(events, ends)
        yield events[np.lexsort((events["seq"], -events["end"], events["start"], events["thread"]))]


def _fill_ends(events: Any, ends: tuple[Any, Any]) -> None:
    rows = np.flatnonzero(events["family"] == SPAN)
    at = np.minimum(np.searchsorted(ends[0], events["seq"][rows]), len(ends[0]) - 1)
    hit = ends[0][at] == events["seq"][rows]
    events["end"][rows[hit]] = ends[1][at[hit]]


def _walk(blocks: Iterable[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Go through the events by thread and start; yields each block with its links to spans and to operations.

    A stack holds what may still enclose a later event, outermost first, as negated ends (which rise, so that bisect
    finds among them) and seqs. At its bottom is what encloses everything and is nothing. Slices that ended before the
    event are popped; so are, by a slice, those that end before it does, for they can never again be the innermost. The
    loop is written out because it runs once for every host event of a trace.
    """
    span_ends, span_seqs, op_ends, op_seqs = [_BOTTOM], [-1], [_BOTTOM], [-1]
    current = -1
    for events in blocks:
        span_links: list[int] = []
        op_links: list[int] = []
        link_span, link_op = span_links.append, op_links.append
        for family, seq, thread, start, end in _numbers(events):
            if thread != current:
                current = thread
                span_ends, span_seqs, op_ends, op_seqs = [_BOTTOM], [-1], [_BOTTOM], [-1]
            while span_ends[-1] > start:
                span_ends.pop()
                span_seqs.pop()
            while op_ends[-1] > start:
                op_ends.pop()
                op_seqs.pop()
            link_span(span_seqs[-1] if span_ends[-1] <= end else span_seqs[bisect_right(span_ends, end) - 1])
            link_op(op_seqs[-1] if op_ends[-1] <= end else op_seqs[bisect_right(op_ends, end) - 1])
            if family == OP:
                while op_ends[-1] > end:
                    op_ends.pop()
                    op_seqs.pop()
                op_ends.append(end)
                op_seqs.append(seq)
            elif family == SPAN:
                while span_ends[-1] > end:
                    span_ends.pop()
                    span_seqs.pop()
                span_ends.append(end)
                span_seqs.append(seq)
        yield events, np.array(span_links), np.array(op_links)


def _numbers(events: Any) -> Iterator[tuple[int, ...]]:
    """A block as Python numbers; starts and ends negated."""
    columns = (events["family"], events["seq"], events["thread"], -events["start"], -events["end"])
    return zip(*(column.tolist() for column in columns), strict=True)
