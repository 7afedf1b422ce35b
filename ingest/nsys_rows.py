"""The rows of an Nsight Systems export as planes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import nsys_columns as columns
from . import nsys_queries as queries
from .contract import PlaneBatch
from .fates import Fates
from .nsys_database import NsysDatabase
from .nsys_nesting import enclosing_ranges
from .nsys_tables import COPY_KINDS, EVENT_KINDS, PUSH_POP, START_END, Source, is_about_run, is_known_unread, source_of
from .source import source_name

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
        self.fates = Fates(source_name(path))
        self.devices: set[str] = set()
        self._database = database
        self._clock = clock_id
        self._run_id = run_id
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
        kept = Counter[str]()
        for first, chunk in self._chunks(base, queries.range_query(table, self._database.tables[table])):
            names = self._database.texts([row[5] if row[4] is None else row[4] for row in chunk])
            faults = [self._range_fault(table, row, name) for row, name in zip(chunk, names, strict=True)]
            seqs, rows = self._good(table, base, first, chunk, faults)
            if not rows:
                continue
            _, kinds, starts, durations, _, _, pids, tids, processes, domains = zip(*rows, strict=True)
            lengths, ids = columns.integers(durations), pa.array(seqs)
            yield self._batch(
                "spans",
                seqs,
                id=ids.cast(pa.string()),
                parent_id=columns.linked(links, seqs),
                name=[name for name, fault in zip(names, faults, strict=True) if fault is None],
                start_ns=starts,
                duration_ns=lengths,
                span_kind="function",
                measured=False,
                end_seq=pc.if_else(lengths.is_valid(), ids, pa.scalar(None, pa.int64())),
                thread_id=tids,
                process_id=pids,
                category=list(map(self._range_category, kinds, processes, domains)),
            )
            kept[""] += len(rows) - lengths.null_count
            kept["no_end"] += lengths.null_count
        self._count(table, "spans", kept)

    def _range_fault(self, table: str, row: tuple[Any, ...], name: str | None) -> str | None:
        """Why a row is no span; None when it is one."""
        if row[1] not in PUSH_POP and row[1] not in START_END:
            return f"no_range {_shown_kind(row[1])}"
        return row[0] or ("no_name" if name is None else None)

    def _range_category(self, kind: int, process: Any, domain: Any) -> str:
        named = self._domains.get((process, domain))
        return " ".join(filter(None, ("nvtx_push_pop" if kind in PUSH_POP else "nvtx_start_end", named)))

    def _calls(self, table: str, base: int, owner: queries.Owner | None, links: Any) -> Iterator[PlaneBatch]:
        own = "cuda_driver" if "DRIVER" in table else "cuda_runtime"
        kept = Counter[str]()
        for first, chunk in self._chunks(base, queries.call_query(table, self._database.tables[table], owner)):
            names = self._database.texts([row[3] for row in chunk])
            faults = [row[0] or ("no_name" if name is None else None) for row, name in zip(chunk, names, strict=True)]
            seqs, rows = self._good(table, base, first, chunk, faults)
            if not rows:
                continue
            _, starts, durations, _, kinds, pids, tids, links_, owners = zip(*rows, strict=True)
            yield self._batch(
                "launches",
                seqs,
                name=[name for name, fault in zip(names, faults, strict=True) if fault is None],
                category=[own if kind is None else _EVENT_CLASS.get(kind) for kind in kinds],
                start_ns=starts,
                duration_ns=durations,
                process_id=pids,
                thread_id=tids,
                correlation_id=columns.ids(links_, owners if owner else None),
                span_id=columns.linked(links, seqs),
            )
            kept[""] += len(rows)
        self._count(table, "launches", kept)

    def _work(self, table: str, role: str, base: int, owner: queries.Owner | None) -> Iterator[PlaneBatch]:
        nodes = [name for name, _ in self._tables_of("kernel", "memcpy", "memset")] if role == "graph" else []
        kept = Counter[str]()
        sql = queries.work_query(table, self._database.tables, owner, nodes)
        for first, chunk in self._chunks(base, sql):
            seqs, rows = self._good(table, base, first, chunk, [row[0] for row in chunk])
            if not rows:
                continue
            _, starts, durations, devices, streams, contexts, links, owners, pids, *texts = zip(*rows, strict=True)
            *keys, sizes, copies, graphs = texts
            names = self._work_names(role, keys, copies)
            self.devices |= {f"cuda:{device}" for device in set(devices)}
            yield self._batch(
                "device_intervals",
                seqs,
                device=columns.labels(devices),
                stream_id=columns.ids(streams),
                clock_id=self._clock,
                backend="nsys",
                start_ns=starts,
                duration_ns=durations,
                name=names,
                correlation_id=columns.ids(links, owners if owner else None),
                category=role,
                process_id=pids,
                context_id=columns.ids(contexts),
                graph_id=columns.ids(graphs),
                bytes=sizes,
            )
            unnamed = names.count(None) if role == "kernel" else 0
            kept[""] += len(rows) - unnamed
            kept["name_not_in_file"] += unnamed
        self._count(table, "device_intervals", kept)

    def _work_names(self, role: str, keys: list[Any], copies: Sequence[Any]) -> list[str | None]:
        """The name of each piece of work; NULL for a kernel whose ids have no text."""
        if role == "memcpy":
            return [
                f"[CUDA memcpy {self._copies[copy]}]" if copy in self._copies else "[CUDA memcpy]" for copy in copies
            ]
        if role == "memset":
            return ["[CUDA memset]"] * len(copies)
        names: list[str | None] = [None] * len(copies)
        for column in keys:
            if None not in names:
                break
            names = [name or text for name, text in zip(names, self._database.texts(column), strict=True)]
        return names

    def _chunks(self, base: int, sql: str) -> Iterator[tuple[int, list[tuple[Any, ...]]]]:
        """The rows of a table with the seq of the first of each list."""
        seq = base
        for chunk in self._database.chunks(sql):
            yield seq, chunk
            seq += len(chunk)

    def _good(
        self, table: str, base: int, first: int, chunk: list[tuple[Any, ...]], faults: Sequence[str | None]
    ) -> tuple[Any, list[tuple[Any, ...]]]:
        """Seqs and cells of the rows without fault; the others are accounted for."""
        seqs = np.arange(first, first + len(chunk))
        if not any(faults):
            return seqs, chunk
        for seq, fault in enumerate(faults, first):
            if fault is not None:
                self._lose(table, fault, seq - base)
        kept = [at for at, fault in enumerate(faults) if fault is None]
        return seqs[kept], [chunk[at] for at in kept]

    def _batch(self, plane: str, seqs: Any, **cells: Any) -> PlaneBatch:
        return columns.plane_batch(plane, self._run_id, {"seq": pa.array(seqs), **cells}, len(seqs))

    def _count(self, table: str, plane: str, kept: Counter[str]) -> None:
        for reason, records in sorted(kept.items()):
            if reason:
                self.fates.repair(table, plane, reason, records)
            else:
                self.fates.keep(table, plane, records)

    def _lose(self, table: str, fault: str, position: int) -> None:
        if fault == "graph_with_nodes":
            self.fates.leave_out(table, fault)
        elif fault.startswith("no_range "):
            self.fates.leave_out(f"{table} {fault.removeprefix('no_range ')}", "no_range")
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
