"""Joins span starts and span ends of a stream, which come as two records (protocol 1.3, rules 3 to 5)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ..recorder.planes import INT64_MAX
from .contract import PlaneBatch
from .strict_json import BadRecord, shorten

_OPEN = -1


class SpanJoin:
    """Holds the started spans of one run until its end: ids and three integers a span, names in Arrow tables."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self._start_ns = array("q")
        self._duration_ns = array("q")
        self._end_seq = array("q")
        self._tables: list[Any] = []
        self.latest_ns = 0
        """Latest start of an open span or end of a closed one so far, on the host clock."""

    def __contains__(self, span_id: str) -> bool:
        """True when a span of this id was started."""
        return span_id in self._index

    def start(self, span_id: str, start_ns: int) -> None:
        """Note a start; its row comes with :meth:`add_rows`, in the same order. Raises BadRecord."""
        if span_id in self._index:
            raise BadRecord(
                "duplicate_span_start", "id", f"span {shorten(span_id)} was started before, expected a new id"
            )
        self._index[span_id] = len(self._start_ns)
        self._start_ns.append(start_ns)
        self._duration_ns.append(_OPEN)
        self._end_seq.append(_OPEN)
        self.latest_ns = max(self.latest_ns, start_ns)

    def end(self, span_id: str, duration_ns: int, seq: int) -> None:
        """Note an end. Raises BadRecord when no such span is open or its end leaves 64 bits."""
        row = self._index.get(span_id)
        if row is None:
            raise BadRecord(
                "unknown_span_end", "id", f"span {shorten(span_id)} was not started, expected a started span"
            )
        if self._end_seq[row] != _OPEN:
            raise BadRecord("duplicate_span_end", "id", f"span {shorten(span_id)} has ended before, expected one end")
        end_ns = self._start_ns[row] + duration_ns
        if end_ns > INT64_MAX:
            found = f"found {duration_ns} after start_ns {self._start_ns[row]}, expected an end below 2^63"
            raise BadRecord("integer_out_of_range", "duration_ns", found)
        self._duration_ns[row] = duration_ns
        self._end_seq[row] = seq
        self.latest_ns = max(self.latest_ns, end_ns)

    def add_rows(self, table: Any) -> None:
        """Add the rows of the starts noted since the last call, as a table of the plane ``spans``."""
        self._tables.append(table)

    def batches(self) -> Iterator[PlaneBatch]:
        """Every started span once, in stream order, with its end where it has one."""
        ended = np.frombuffer(self._end_seq, dtype=np.int64) if self._end_seq else np.zeros(0, np.int64)
        durations = np.frombuffer(self._duration_ns, dtype=np.int64) if self._duration_ns else ended
        first = 0
        for table in self._tables:
            rows = slice(first, first + table.num_rows)
            first += table.num_rows
            for name, values in (("duration_ns", durations[rows]), ("end_seq", ended[rows])):
                place = table.schema.get_field_index(name)
                column = pa.array(values, pa.int64(), mask=ended[rows] == _OPEN)
                table = table.set_column(place, table.schema.field(place), column)
            yield PlaneBatch("spans", table)
