"""One pass over the records of a trace: framing, spans, and planes block by block (protocol 1.3, rules 1 to 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ..recorder.errors import IncompatibleInput, InputRefused
from .contract import PlaneBatch
from .domains import INTERVALS, interval_fault, latest_end, tensor_stats_fault
from .lines import Block
from .spans import SpanJoin
from .strict_json import BadRecord, keys_may_repeat, line_keys_may_repeat
from .trace_decode import Decoded, Fault, check_lines, decode_block
from .trace_events import SCHEMAS, Meta, SpanEnd, SpanStart, Terminal
from .trace_tables import PLANE_OF, Columns, normalise, to_columns, to_table

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

    def feed(self, block: Block) -> Iterator[PlaneBatch]:
        """Yield the planes of a block; raises :class:`InputRefused` for the first line in it that breaks a rule."""
        decoded = decode_block(block)
        self._faults = [decoded.failure] if decoded.failure else []
        if decoded.failure and not (self._records or decoded.records):
            self._refuse_foreign_schema(block, decoded.failure[0])
        groups = _by_kind(decoded.records)
        self._check_frame(decoded, groups)
        self._join_spans(decoded, groups)
        columns = {
            kind: to_columns(kind, [decoded.records[i] for i in at]) for kind, at in groups.items() if kind is not Meta
        }
        self._check_keys(block, decoded, columns)
        tables = [self._table(decoded, groups[kind], columns[kind]) for kind in PLANE_OF if kind in columns]
        self._raise_first()
        self._records += len(decoded.records)
        self.last_line = block.first_line + block.line_count - 1
        for found in tables:
            if found.plane == "spans":
                self.spans.add_rows(found.table)
            else:
                yield found

    def _raise_first(self) -> None:
        if not self._faults:
            return
        line, fault = min(self._faults, key=lambda item: item[0])
        position = f"line {line}" if fault.field is None else f"line {line}, field {fault.field}"
        raise InputRefused(fault.message, source=self.path, position=position, code=fault.code)

    def _check_frame(self, decoded: Decoded, groups: dict[type[Any], list[int]]) -> None:
        """Rules 1 and 2."""
        if self._records == 0 and decoded.records and isinstance(decoded.records[0], Meta):
            self.meta = decoded.records[0]
        metas = [at for at in groups.get(Meta, []) if self._records + at > 0]
        if metas:
            fault = BadRecord("meta_not_first", None, "found a meta record, expected it as the first record only")
            self._faults.append((decoded.lines[metas[0]], fault))
        after = 0 if self.terminal is not None else groups.get(Terminal, [len(decoded.records)])[0] + 1
        if after < len(decoded.records):
            fault = BadRecord("record_after_terminal", None, "found a record after terminal, expected none")
            self._faults.append((decoded.lines[after], fault))
        if Terminal in groups:
            self.terminal = decoded.records[groups[Terminal][0]]  # type: ignore[assignment]

    def _join_spans(self, decoded: Decoded, groups: dict[type[Any], list[int]]) -> None:
        """Rules 3 to 5, in stream order."""
        for at in sorted((*groups.get(SpanStart, ()), *groups.get(SpanEnd, ()))):
            record = decoded.records[at]
            try:
                if isinstance(record, SpanStart):
                    self.spans.start(record.id, record.start_ns)
                elif isinstance(record, SpanEnd):
                    duration = record.duration_ns
                    self.spans.end(record.id, duration if isinstance(duration, int) else 0, self._records + at)
            except BadRecord as fault:
                self._faults.append((decoded.lines[at], fault))
                return

    def _check_keys(self, block: Block, decoded: Decoded, columns: dict[type[Any], Columns]) -> None:
        """The duplicate-key rule: the whole block at once where that proves it, else line by line."""
        present = sum(found.keys for found in columns.values())
        if decoded.failure or not self._keys_are_distinct(block, decoded, present):
            fault = check_lines(block, decoded)
            if fault:
                self._faults.append(fault)

    def _keys_are_distinct(self, block: Block, decoded: Decoded, present: int) -> bool:
        """True when that is certain. The keys of the meta record are nested, so its line is judged apart."""
        data = block.data
        if self._records == 0 and isinstance(next(iter(decoded.records), None), Meta):
            meta, _, data = data.partition(b"\n")
            if decoded.lines[0] != block.first_line or line_keys_may_repeat(meta):
                return False
        return not keys_may_repeat(data, present)

    def _table(self, decoded: Decoded, at: Sequence[int], columns: Columns) -> PlaneBatch:
        """One kind's rows; broken rules are noted, and then the table is not used."""
        plane = PLANE_OF[columns.kind]
        fault = normalise(columns)
        if fault is not None:
            self._faults.append((decoded.lines[at[fault[0]]], fault[1]))
            return PlaneBatch(plane, None)
        run_id = "" if self.meta is None else self.meta.run_id
        table = to_table(columns, run_id, np.array(at, dtype=np.int64) + self._records)
        self._check_rows(decoded, at, plane, table)
        return PlaneBatch(plane, table)

    def _check_rows(self, decoded: Decoded, at: Sequence[int], plane: str, table: Any) -> None:
        fault = interval_fault(table, *INTERVALS[plane]) if plane in INTERVALS else None
        if plane == "tensor_stats":
            self.has_tensor_stats = True
            fault = tensor_stats_fault(table)
        if fault is not None:
            row, code, field, message = fault
            self._faults.append((decoded.lines[at[row]], BadRecord(code, field, message)))
        elif plane in _EVIDENCE:
            self._latest_ns = max(self._latest_ns, latest_end(table, *_EVIDENCE[plane]))

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


def _by_kind(records: Sequence[Any]) -> dict[type[Any], list[int]]:
    groups: dict[type[Any], list[int]] = {}
    for at, kind in enumerate(map(type, records)):
        try:
            groups[kind].append(at)
        except KeyError:
            groups[kind] = [at]
    return groups


def unsupported_schema(path: Path, found: object, line: int) -> IncompatibleInput:
    """The refusal of a schema that this reader does not know."""
    return IncompatibleInput(
        f"field schema: found {found!r}, this reader knows {' and '.join(SCHEMAS)}",
        source=path,
        position=f"line {line}",
        code="unsupported_schema",
        remedy="record the run again with a release that writes one of these, or use a planewise that reads the other",
    )
