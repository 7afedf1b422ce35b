"""One block of a trace as rows: framing records, spans and plane tables, with the first fault of each rule of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .domains import INTERVALS, interval_fault, tensor_stats_fault
from .lines import Block
from .strict_json import BadRecord, keys_may_repeat, line_keys_may_repeat
from .trace_bulk import read_bulk
from .trace_decode import Decoded, Fault, check_lines, decode_block
from .trace_events import Meta, Record, SpanEnd, Terminal
from .trace_tables import DENSE_COLUMN, PLANE_OF, BadRow, fill_dense, to_columns, to_table

Positions = npt.NDArray[np.int64]
"""Places of records in their block, from 0."""


@dataclass
class BlockRows:
    """The records of one block.

    Attributes
    ----------
    block:
        The block.
    records:
        Number of records; blank lines are none.
    lines:
        The physical line of each record.
    framing:
        The meta and terminal records beside their positions.
    tables:
        The rows of each plane, without ``run_id`` and ``seq``, beside their positions.
    ends:
        The ends of spans, columns ``id`` and ``duration_ns``, beside their positions; None for none.
    faults:
        Broken rules of lines and rows; the records end before the first line that does not decode.
    undecodable:
        The line that does not decode; None when all do.
    """

    block: Block
    records: int
    lines: Sequence[int]
    framing: list[tuple[int, Record]]
    tables: dict[str, tuple[Positions, Any]] = field(default_factory=dict)
    ends: tuple[Positions, Any] | None = None
    faults: list[Fault] = field(default_factory=list)
    undecodable: int | None = None

    def add(self, kind: type[Any], at: Positions, table: Any) -> None:
        """Add the records of a kind; the first that breaks a rule of single rows is noted as a fault."""
        if kind is SpanEnd:
            self.ends = (at, table)
            return
        plane = PLANE_OF[kind]
        try:
            if kind in DENSE_COLUMN:
                table = fill_dense(table, DENSE_COLUMN[kind])
            fault = interval_fault(table, *INTERVALS[plane]) if plane in INTERVALS else None
            if plane == "tensor_stats":
                fault = tensor_stats_fault(table)
            if fault is not None:
                row, code, name, message = fault
                raise BadRow(row, BadRecord(code, name, message))
        except BadRow as bad:
            self.faults.append((self.lines[at[bad.row]], bad.fault))
        else:
            self.tables[plane] = (at, table)


def read_rows(block: Block) -> BlockRows:
    """The records of a block, in bulk where that is certainly the same, else strictly line by line."""
    bulk = read_bulk(block)
    if bulk is None:
        return read_strictly(block)
    rows = BlockRows(
        block, block.line_count, range(block.first_line, block.first_line + block.line_count), bulk.framing
    )
    for kind, (at, table) in bulk.tables.items():
        rows.add(kind, at, table)
    return rows


def read_strictly(block: Block) -> BlockRows:
    """The records of a block, each an object first: every rule, every shape of a line, and the fault of each."""
    decoded = decode_block(block)
    groups = _by_kind(decoded.records)
    framing = [(at, decoded.records[at]) for kind in (Meta, Terminal) for at in groups.get(kind, ())]
    rows = BlockRows(block, len(decoded.records), decoded.lines, sorted(framing, key=lambda item: item[0]))
    if decoded.failure is not None:
        rows.faults.append(decoded.failure)
        rows.undecodable = decoded.failure[0]
    columns = {
        kind: to_columns(kind, [decoded.records[i] for i in at]) for kind, at in groups.items() if kind is not Meta
    }
    _check_keys(rows, decoded, sum(found.keys for found in columns.values()))
    for kind, found in columns.items():
        if kind is not Terminal:
            at = np.array(groups[kind], np.int64)
            try:
                rows.add(kind, at, to_table(found))
            except BadRow as bad:
                rows.faults.append((decoded.lines[at[bad.row]], bad.fault))
    return rows


def _by_kind(records: Sequence[Any]) -> dict[type[Any], list[int]]:
    groups: dict[type[Any], list[int]] = {}
    for at, kind in enumerate(map(type, records)):
        groups.setdefault(kind, []).append(at)
    return groups


def _check_keys(rows: BlockRows, decoded: Decoded, present: int) -> None:
    """The duplicate-key rule: the whole block at once where that proves it, else line by line."""
    if decoded.failure is None and _keys_are_distinct(rows.block, decoded, present):
        return
    if (fault := check_lines(rows.block, decoded)) is not None:
        rows.faults.append(fault)


def _keys_are_distinct(block: Block, decoded: Decoded, present: int) -> bool:
    """True when that is certain. The keys of a first meta record are nested, so its line is judged apart."""
    data = block.data
    if isinstance(next(iter(decoded.records), None), Meta):
        meta, _, data = data.partition(b"\n")
        if decoded.lines[0] != block.first_line or line_keys_may_repeat(meta):
            return False
    return not keys_may_repeat(data, present)
