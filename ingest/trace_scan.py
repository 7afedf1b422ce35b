"""One pass over the records of a trace: framing, spans, and planes block by block (protocol 1.3, rules 1 to 6)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..recorder.errors import IncompatibleInput, InputRefused
from .contract import PlaneBatch
from .domains import latest_end
from .lines import Block
from .spans import SpanJoin
from .strict_json import BadRecord
from .trace_decode import Fault
from .trace_events import SCHEMAS, Meta, Terminal
from .trace_rows import BlockRows, Positions
from .trace_tables import PLANE_OF, complete

_EVIDENCE = {
    "ops": ("timestamp_ns", "duration_ns"),
    "memory_events": ("timestamp_ns", None),
    "device_memory": ("timestamp_ns", None),
}
"""The planes whose rows are host evidence for rule 13, beside spans."""


class TraceScan:
    """The state of one pass over one trace.

    Attributes
    ----------
    meta, terminal:
        The two framing records; None until they were seen.
    latest_ns:
        Latest host evidence so far (rule 13).
    last_line:
        Last physical line seen; 1 for an empty file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.meta: Meta | None = None
        self.terminal: Terminal | None = None
        self.spans = SpanJoin()
        self.has_tensor_stats = False
        self.last_line = 1
        self._records = 0
        self._latest_ns = 0
        self._faults: list[Fault] = []

    @property
    def latest_ns(self) -> int:
        """Latest host evidence so far; 0 when there is none."""
        return max(self._latest_ns, self.spans.latest_ns)

    @property
    def record_count(self) -> int:
        """Number of records so far; blank lines are none."""
        return self._records

    @property
    def reason(self) -> str | None:
        """The terminal's reason; None when it has none."""
        reason = None if self.terminal is None else self.terminal.reason
        return reason if isinstance(reason, str) else None

    def feed(self, rows: BlockRows) -> Iterator[PlaneBatch]:
        """Yield the planes of a block; raises :class:`InputRefused` for the first line in it that breaks a rule."""
        self._faults = list(rows.faults)
        if rows.undecodable is not None and not (self._records or rows.records):
            self._refuse_foreign_schema(rows.block, rows.undecodable)
        self._check_frame(rows)
        tables = {plane: self._complete(plane, *found) for plane, found in rows.tables.items()}
        self._join_spans(rows)
        self._raise_first()
        self._records += rows.records
        self.last_line = rows.block.first_line + rows.block.line_count - 1
        for plane in PLANE_OF.values():
            if plane == "spans" and plane in tables:
                self.spans.add_rows(tables[plane])
            elif plane in tables:
                yield PlaneBatch(plane, tables[plane])

    def _raise_first(self) -> None:
        if not self._faults:
            return
        line, fault = min(self._faults, key=lambda item: item[0])
        position = f"line {line}" if fault.field is None else f"line {line}, field {fault.field}"
        raise InputRefused(fault.message, source=self.path, position=position, code=fault.code)

    def _check_frame(self, rows: BlockRows) -> None:
        """Rules 1 and 2."""
        for at, record in rows.framing:
            if isinstance(record, Meta) and self._records + at == 0:
                self.meta = record
            elif isinstance(record, Meta):
                fault = BadRecord("meta_not_first", None, "found a meta record, expected it as the first record only")
                self._faults.append((rows.lines[at], fault))
        terminals = [(at, record) for at, record in rows.framing if isinstance(record, Terminal)]
        after = 0 if self.terminal is not None else terminals[0][0] + 1 if terminals else rows.records
        if after < rows.records:
            fault = BadRecord("record_after_terminal", None, "found a record after terminal, expected none")
            self._faults.append((rows.lines[after], fault))
        if terminals:
            self.terminal = terminals[0][1]

    def _join_spans(self, rows: BlockRows) -> None:
        """Rules 3 to 5, in stream order."""
        starts = _events(*rows.tables["spans"], "start_ns", True) if "spans" in rows.tables else []
        ends = _events(*rows.ends, "duration_ns", False) if rows.ends is not None else []
        for at, span_id, value, is_start in heapq.merge(starts, ends):
            try:
                if is_start:
                    self.spans.start(span_id, value)
                else:
                    self.spans.end(span_id, value, self._records + at)
            except BadRecord as fault:
                self._faults.append((rows.lines[at], fault))
                return

    def _complete(self, plane: str, at: Positions, table: Any) -> Any:
        if plane == "tensor_stats":
            self.has_tensor_stats = True
        if plane in _EVIDENCE:
            self._latest_ns = max(self._latest_ns, latest_end(table, *_EVIDENCE[plane]))
        return complete(plane, table, "" if self.meta is None else self.meta.run_id, at + self._records)

    def _refuse_foreign_schema(self, block: Block, line: int) -> None:
        """A first record of another schema need not look like ours at all; its schema is the better message."""
        text = block.data.split(b"\n")[line - block.first_line]
        try:
            schema = msgspec.json.decode(text, type=_Declared).schema
        except (msgspec.MsgspecError, RecursionError):
            return
        if schema not in SCHEMAS:
            raise unsupported_schema(self.path, schema, line)


class _Declared(msgspec.Struct):
    """Whatever the first record is, the schema it declares."""

    schema: str


def _events(at: Positions, table: Any, column: str, is_start: bool) -> list[tuple[int, str, int, bool]]:
    """Position, span, time and kind of the starts or ends of spans."""
    values = zip(at.tolist(), table.column("id").to_pylist(), table.column(column).to_pylist(), strict=True)
    return [(place, span_id, value, is_start) for place, span_id, value in values]


def unsupported_schema(path: Path, found: object, line: int) -> IncompatibleInput:
    """The refusal of a schema that this reader does not know."""
    return IncompatibleInput(
        f"field schema: found {found!r}, this reader knows {' and '.join(SCHEMAS)}",
        source=path,
        position=f"line {line}",
        code="unsupported_schema",
        remedy="record the run again with a release that writes one of these, or use a planewise that reads the other",
    )
