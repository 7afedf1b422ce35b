"""One table of a report as its header gives it: cells by meaning, in nanoseconds and bytes, and the ranges in it."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable
from decimal import ROUND_DOWN
from typing import Any

import numpy as np

from .decimals import NoNumber, scaled
from .nsys_report_columns import RANGES, Header
from .nsys_report_text import Piece


class ReportTable:
    """One table of a file: its report, its header, and the ranges that its rows name."""

    def __init__(self, report: str, header: Header) -> None:
        self.report = report
        self.header = header
        self.numeric = False
        self.new_ranges = True
        self.ranges = RangeIndex()
        seen: Counter[str] = Counter()
        self._labels = []
        for cell in header.cells:
            seen[cell] += 1
            self._labels.append(cell if seen[cell] == 1 else f"{cell} #{seen[cell]}")

    def index(self, pieces: Iterable[Piece], ordinal: int, first: int) -> None:
        """Find the ranges of this table, number ``ordinal`` from 1 of its text; its first row has the seq ``first``.

        Where another table holds the ranges themselves, those of a projection are no new ones.
        """
        opened, shapes = 0, []
        for piece in pieces:
            opened += piece.kind == "header"
            if piece.kind == "header" and piece.header is not None:
                shapes.append(piece.header.shape)
            elif piece.kind == "row" and opened == ordinal:
                self.ranges.add(self._range_id(piece.cells), first)
                first += 1
        self.new_ranges = RANGES not in shapes

    def cells(self, raw: tuple[str, ...]) -> Cells:
        """A row; it may be short (protocol 12.2), and a longer one was not written by its header."""
        if len(raw) > len(self._labels) and any(cell.strip() for cell in raw[len(self._labels) :]):
            raise NoNumber(f"found {len(raw)} cells, expected at most {len(self._labels)}")
        return Cells(self.header, raw)

    def _range_id(self, raw: tuple[str, ...]) -> int | None:
        """The id of a range that becomes a span; None for a row that does not, since it can be no parent."""
        try:
            cells = self.cells(raw)
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

    def __init__(self, header: Header, raw: tuple[str, ...]) -> None:
        self.raw = raw
        self.cut = False
        self._columns = header.columns

    def text(self, meaning: str) -> str | None:
        """The text of a cell, None when it is blank or not there."""
        column = self._columns.get(meaning)
        if column is None or column.place >= len(self.raw):
            return None
        return self.raw[column.place].strip() or None

    def time(self, meaning: str) -> int | None:
        """A number in nanoseconds; digits below a nanosecond are cut off. Raises :class:`NoNumber`."""
        text = self.text(meaning)
        if text is None:
            return None
        factor = self._columns[meaning].factor or 1
        if len(text) < 10 and text.isascii() and text.isdecimal():
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

    def projection(self) -> int | None:
        """The number of GPU operations of a projection whose times are whole. Raises :class:`NoNumber`."""
        if "projected_start" in self._columns:
            self.needed("projected_start")
            checked_duration(self.needed("projected_duration"))
        return self.natural("operations")

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


class RangeIndex:
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
    return start, checked_duration(duration)


def checked_duration(value: int) -> int:
    """A duration; raises :class:`NoNumber` for a negative one."""
    if value < 0:
        raise NoNumber(f"found the duration {value}, expected 0 or more")
    return value
