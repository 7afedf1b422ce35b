"""One table of a report as its header gives it: cells by meaning, in nanoseconds and bytes, and the ranges in it."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import ROUND_DOWN
from typing import Any

import numpy as np

from ..recorder.planes import INT64_MAX
from .decimals import NoNumber, scaled
from .nsys_report_columns import PROJECTION, RANGES, Column, Header
from .nsys_report_text import Piece

_WHOLE_DIGITS = 19
"""Fewer digits than these always fit 64 bits; fewer than 10 do so in any unit."""


class ReportTable:
    """One table of a file: its report, its header, and the ranges that its rows name.

    ``fates`` counts rows that were kept by kind, plane, and whether digits were cut; ``numeric`` becomes True once its
    names were found to be numbers.
    """

    def __init__(self, report: str, header: Header) -> None:
        self.report = report
        self.header = header
        self.numeric = False
        self.fates: Counter[tuple[str, str, bool]] = Counter()
        seen: Counter[str] = Counter()
        self._columns = dict(header.columns)
        self._labels = []
        for cell in header.cells:
            seen[cell] += 1
            self._labels.append(cell if seen[cell] == 1 else f"{cell} #{seen[cell]}")

    def cells(self, raw: tuple[str, ...]) -> Cells:
        """A row; it may be short (protocol 12.2), and a longer one was not written by its header."""
        if len(raw) > len(self._labels) and any(cell.strip() for cell in raw[len(self._labels) :]):
            raise NoNumber(f"found {len(raw)} cells, expected at most {len(self._labels)}")
        return Cells(self._columns, raw)

    def range_id(self, raw: tuple[str, ...]) -> int | None:
        """The id of a range that becomes a span; None for a row that does not, since it can be no parent."""
        try:
            cells = self.cells(raw)
            if "projected_start" in self._columns:
                cells.projection()
            cells.span()
            return cells.natural("range_id") if cells.text("name") else None
        except NoNumber:
            return None

    def json(self, raw: tuple[str, ...]) -> str:
        """The cells of a row under the names of their columns."""
        return json.dumps(dict(zip(self._labels, raw, strict=False)), ensure_ascii=False)


class Cells:
    """The cells of one row by meaning; ``cut`` becomes True once a time had digits below a nanosecond."""

    def __init__(self, columns: Mapping[str, Column], raw: tuple[str, ...]) -> None:
        self.raw = raw
        self.cut = False
        self._columns = columns

    def text(self, meaning: str) -> str | None:
        """The text of a cell, None when it is blank or not there."""
        try:
            return self.raw[self._columns[meaning].place].strip() or None
        except (KeyError, IndexError):
            return None

    def time(self, meaning: str) -> int | None:
        """A number in nanoseconds; digits below a nanosecond are cut off. Raises :class:`NoNumber`."""
        text = self.text(meaning)
        if text is None:
            return None
        factor = self._columns[meaning].factor or 1
        if len(text) < (_WHOLE_DIGITS if factor == 1 else 10) and text.isascii() and text.isdecimal():
            return int(text) * factor
        value, whole = scaled(text.replace(",", ""), factor, ROUND_DOWN)
        self.cut = self.cut or not whole
        return value

    def needed(self, meaning: str) -> int:
        """A time that the row cannot do without. Raises :class:`NoNumber`."""
        value = self.time(meaning)
        if value is None:
            raise NoNumber(f"found no {meaning.replace('_', ' ')}")
        return value

    def natural(self, meaning: str) -> int | None:
        """A number of 0 or more. Raises :class:`NoNumber`."""
        value = self.time(meaning)
        if value is not None and value < 0:
            raise NoNumber(f"found {value} as {meaning.replace('_', ' ')}, expected 0 or more")
        return value

    def span(self) -> tuple[int, int, int | None, int | None]:
        """Start, duration, thread and process of a range. Raises :class:`NoNumber`, as for a bad id of the range."""
        for meaning in ("range_id", "parent_id"):
            self.natural(meaning)
        return *interval_of(self), self.natural("thread"), self.natural("process")

    def projection(self) -> tuple[int, int, int | None]:
        """Start, duration and number of GPU operations of a projection. Raises :class:`NoNumber`."""
        start = self.needed("projected_start")
        return start, checked_duration(self.needed("projected_duration"), start), self.natural("operations")

    def size(self, meaning: str) -> int | None:
        """Bytes, exactly what is printed; a zero printed in a larger unit is less than the report shows, so NULL."""
        text = self.text(meaning)
        factor = self._columns[meaning].factor if meaning in self._columns else None
        if text is None or factor is None:
            return None
        value, whole = scaled(text.replace(",", ""), factor)
        if value < 0 or not whole:
            raise NoNumber(f"found {text[:40]} as {meaning}, expected a whole number of bytes")
        return None if value == 0 and factor > 1 else value


class Ranges:
    """The ranges of all tables of one text, whose first row has the seq ``first``.

    ``stand_alone`` is True when a table holds the ranges themselves; then those of projections are no new ones.
    """

    def __init__(self, pieces: Iterable[Piece], first: int) -> None:
        self.stand_alone = False
        self._tables: list[_RangeIndex | None] = []
        table: ReportTable | None = None
        for piece in pieces:
            if piece.kind == "header" and piece.header is not None:
                table = ReportTable("", piece.header)
                has_ranges = piece.header.shape in (RANGES, PROJECTION)
                self.stand_alone = self.stand_alone or piece.header.shape == RANGES
                self._tables.append(_RangeIndex() if has_ranges else None)
            elif piece.kind == "row" and table is not None:
                if (index := self._tables[-1]) is not None:
                    index.add(table.range_id(piece.cells), first)
                first += 1

    def seq(self, table: int, id_: int | None) -> int | None:
        """The seq of a range of a table, counted from 1; None when no row of it has the id."""
        index = self._tables[table - 1]
        return None if index is None else index.get(id_)


class _RangeIndex:
    """The first row of each range id, 16 bytes each."""

    def __init__(self) -> None:
        self._ids, self._seqs = array("q"), array("q")
        self._sorted: tuple[Any, Any] | None = None

    def add(self, id_: int | None, seq: int) -> None:
        if id_ is not None:
            self._ids.append(id_)
            self._seqs.append(seq)

    def get(self, id_: int | None) -> int | None:
        """The seq of a range; None when no row has the id."""
        if self._sorted is None:
            ids, first = np.unique(np.frombuffer(self._ids, np.int64), return_index=True)
            self._sorted = ids, np.frombuffer(self._seqs, np.int64)[first]
        ids, seqs = self._sorted
        if id_ is None or not len(ids):
            return None
        at = int(np.searchsorted(ids, id_))
        return int(seqs[at]) if at < len(ids) and int(ids[at]) == id_ else None


def interval_of(cells: Cells) -> tuple[int, int]:
    """Start and duration of a row, the latter from its end where it has none. Raises :class:`NoNumber`."""
    start, duration, end = cells.needed("start"), cells.time("duration"), cells.time("end")
    if duration is None:
        if end is None:
            raise NoNumber("found no duration")
        duration = end - start
    return start, checked_duration(duration, start)


def checked_duration(value: int, start: int = 0) -> int:
    """A duration after a start; raises :class:`NoNumber` for a negative one, and for an end beyond 64 bits."""
    if value < 0:
        raise NoNumber(f"found the duration {value}, expected 0 or more")
    if max(value, start + value) > INT64_MAX:
        raise NoNumber(f"found the duration {value} after {start}, whose end does not fit 64 bits")
    return value
