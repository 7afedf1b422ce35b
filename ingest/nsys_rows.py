"""The rows of an Nsight Systems export as planes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import nsys_queries as queries
from .contract import PlaneBatch
from .fates import Fates
from .nsys_database import NsysDatabase
from .nsys_nesting import NONE, enclosing_ranges
from .nsys_tables import COPY_KINDS, EVENT_KINDS, PUSH_POP, START_END, Source, is_about_run, is_known_unread, source_of
from .plane_rows import PlaneRows

_COLUMNS = {
    "spans": "id parent_id name start_ns duration_ns span_kind measured end_seq thread_id process_id category",
    "launches": "name category start_ns duration_ns process_id thread_id correlation_id span_id",
    "device_intervals": (
        "device stream_id clock_id backend start_ns duration_ns name correlation_id category process_id context_id "
        "graph_id bytes"
    ),
}
_LOST = {
    "undecodable_record": "a time is no 64-bit integer, or the duration is none",
    "negative_duration": "it ends before it starts",
    "no_timestamp": "start and end are 0, which stands for times that were not recorded",
    "no_device": "its device is no number",
    "no_stream": "its stream is no number",
    "no_name": "its name is not in the file",
}
"""Faults that lose a row; ``graph_with_nodes`` loses nothing."""

_EVENT_CLASS = {0: "cuda_runtime", 1: "cuda_driver"}


class NsysRows:
    """The rows of one export.

    Attributes
    ----------
    fates:
        The ledger; complete after the last batch.
    devices:
        Labels of the devices that rows were met of.
    """

    def __init__(self, path: Path, run_id: str, clock_id: str, database: NsysDatabase) -> None:
        self.fates = Fates(path.absolute().name)
        self.devices: set[str] = set()
        self._database = database
        self._clock = clock_id
        self._planes = {plane: PlaneRows(plane, run_id, *columns.split()) for plane, columns in _COLUMNS.items()}
        self._copies = {**COPY_KINDS, **dict(database.pairs("ENUM_CUDA_MEMCPY_OPER", "id", "label"))}
        self._read: list[tuple[str, Source, int]] = []
        self._domains: dict[tuple[Any, Any], str | None] = {}
        self._faults: Counter[tuple[str, str]] = Counter()

    def batches(self) -> Iterator[PlaneBatch]:
        """Every table that becomes rows, in a fixed order; then the fates of all other tables."""
        self._plan()
        owner = self._owner()
        self._name_domains()
        links = self._links()
        for table, source, base in self._read:
            if source.role == "range":
                yield from self._ranges(table, base, links)
            elif source.role == "call":
                yield from self._calls(table, base, owner, links)
            else:
                yield from self._work(table, source.role, base, owner)
        for rows in self._planes.values():
            yield from rows.rest()
        for table in self._database.tables:
            self._account(table)
        if not self.fates.rows["device_intervals"]:
            message = "the export has no row of device work, which says nothing of how busy a device was"
            self.fates.note("no_device_work", "info", message)

    def _plan(self) -> None:
        """The tables to read with the seq of their first row, ranges and calls first."""
        found = [(table, source) for table in self._database.tables if (source := source_of(table))]
        order = {"range": 0, "call": 1}
        base = 0
        for table, source in sorted(found, key=lambda item: order.get(item[1].role, 2)):
            records = self._database.count(table)
            missing = [name for name in source.required if name not in self._database.tables[table]]
            if missing:
                message = f"found no column {', '.join(missing)} in {table}, expected it; its {records} rows are lost"
                severity = "data_loss" if records else "warning"
                self.fates.drop(table, "missing_columns", message, records=records, severity=severity)
            else:
                self._read.append((table, source, base))
                base += records

    def _tables_of(self, *roles: str) -> list[tuple[str, int]]:
        return [(table, base) for table, source, base in self._read if source.role in roles]

    def _owner(self) -> queries.Owner | None:
        """How ids of several processes are told apart; None when one process alone has ids."""
        tables = [table for table, source, _ in self._read if source.role != "range"]
        sql = queries.processes_query(self._database.tables, tables)
        processes = [row[0] for rows in self._database.chunks(sql) for row in rows] if sql else []
        if len(processes) < 2:
            return None
        pids = {process & 0xFFFFFF for process in processes}
        return queries.pid if len(pids) == len(processes) else queries.process

    def _name_domains(self) -> None:
        for table, _ in self._tables_of("range"):
            if sql := queries.domains_query(table, self._database.tables[table]):
                for rows in self._database.chunks(sql):
                    for process, domain, text, key in rows:
                        self._domains[process, domain] = text or self._database.text(key)

    def _links(self) -> Any:
        ranges, calls = self._tables_of("range"), self._tables_of("call")
        sql = queries.nesting_query(ranges, calls, self._database.tables)
        records = sum(self._database.count(table) for table, _ in ranges + calls)
        return enclosing_ranges(self._database.chunks(sql) if sql else (), records)

    def _ranges(self, table: str, base: int, links: Any) -> Iterator[PlaneBatch]:
        rows = self._planes["spans"]
        text_of, stacked, kept = self._database.text, frozenset(PUSH_POP), Counter[str]()
        seq = base - 1
        for chunk in self._database.chunks(queries.range_query(table, self._database.tables[table])):
            for fault, kind, start, duration, text, key, pid, tid, process, domain in chunk:
                seq += 1
                if kind not in stacked and kind not in START_END:
                    self.fates.leave_out(f"{table} {_shown_kind(kind)}", "no_range")
                    continue
                name = text if text is not None else text_of(key)
                if fault or name is None:
                    self._lose(table, fault or "no_name", seq - base)
                    continue
                parent = links[seq]
                rows.add(
                    *(seq, str(seq), None if parent == NONE else str(parent), name, start, duration, "function", False),
                    *(None if duration is None else seq, tid, pid, self._range_category(kind, process, domain)),
                )
                kept["" if duration is not None else "no_end"] += 1
            yield from rows.full()
        self._count(table, "spans", kept)

    def _range_category(self, kind: int, process: Any, domain: Any) -> str:
        named = self._domains.get((process, domain))
        return " ".join(filter(None, ("nvtx_push_pop" if kind in PUSH_POP else "nvtx_start_end", named)))

    def _calls(self, table: str, base: int, owner: queries.Owner | None, links: Any) -> Iterator[PlaneBatch]:
        rows, text_of, kept = self._planes["launches"], self._database.text, Counter[str]()
        own = "cuda_driver" if "DRIVER" in table else "cuda_runtime"
        seq = base - 1
        for chunk in self._database.chunks(queries.call_query(table, self._database.tables[table], owner)):
            for fault, start, duration, key, kind, pid, tid, correlation in chunk:
                seq += 1
                name = text_of(key)
                if fault or name is None:
                    self._lose(table, fault or "no_name", seq - base)
                    continue
                category = own if kind is None else _EVENT_CLASS.get(kind)
                span = links[seq]
                span_id = None if span == NONE else str(span)
                rows.add(seq, name, category, start, duration, pid, tid, correlation, span_id)
                kept[""] += 1
            yield from rows.full()
        self._count(table, "launches", kept)

    def _work(self, table: str, role: str, base: int, owner: queries.Owner | None) -> Iterator[PlaneBatch]:
        rows, kept = self._planes["device_intervals"], Counter[str]()
        nodes = [name for name, _ in self._tables_of("kernel", "memcpy", "memset")] if role == "graph" else []
        seq = base - 1
        for chunk in self._database.chunks(queries.work_query(table, self._database.tables, owner, nodes)):
            for fault, start, duration, device, stream, context, link, pid, *names, size, copy, graph in chunk:
                seq += 1
                if fault:
                    self._lose(table, fault, seq - base)
                    continue
                name, reason = self._work_name(role, names, copy)
                label = f"cuda:{device}"
                self.devices.add(label)
                rows.add(
                    *(seq, label, stream, self._clock, "nsys", start, duration, name, link),
                    *(role, pid, context, graph, size),
                )
                kept[reason] += 1
            yield from rows.full()
        self._count(table, "device_intervals", kept)

    def _work_name(self, role: str, names: list[Any], copy: Any) -> tuple[str | None, str]:
        """The name of the work and the repair that it took: an id without text leaves the name NULL."""
        if role == "memcpy":
            return f"[CUDA memcpy {self._copies[copy]}]" if copy in self._copies else "[CUDA memcpy]", ""
        if role == "memset":
            return "[CUDA memset]", ""
        name = next((text for key in names if (text := self._database.text(key)) is not None), None)
        return name, "name_not_in_file" if name is None and role == "kernel" else ""

    def _count(self, table: str, plane: str, kept: Counter[str]) -> None:
        for reason, records in sorted(kept.items()):
            if reason:
                self.fates.repair(table, plane, reason, records)
            else:
                self.fates.keep(table, plane, records)

    def _lose(self, table: str, fault: str, position: int) -> None:
        if fault == "graph_with_nodes":
            self.fates.leave_out(table, fault)
        else:
            self.fates.drop(table, fault, f"row {position} of {table}: {_LOST[fault]}")

    def _account(self, table: str) -> None:
        """The fate of a table that no row was made of."""
        if source_of(table):
            return
        records = self._database.count(table)
        if is_about_run(table):
            self.fates.keep(table, None, records)
        elif records:
            self.fates.leave_out(table[:60], "not_read", records)
            if not is_known_unread(table):
                message = f"the {records} rows of the table {table[:60]} are of a kind that is not read"
                self.fates.note("table_not_read", "info", message)


def _shown_kind(kind: Any) -> str:
    return EVENT_KINDS.get(kind, "other") if isinstance(kind, int) else "other"
