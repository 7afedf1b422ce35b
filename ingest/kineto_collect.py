"""Chunks of events -> spilled rows per plane, with the fate of every event in the ledger."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..recorder.planes import PLANES
from . import kineto_slices as slices
from .foreign import Ledger
from .kineto_categories import CATEGORIES, WAITS, Category
from .kineto_columns import clean, codes
from .kineto_events import NO_ARGS, PHASE, Args, Begin, End, Instant, Lost, Note, Sample, Slice, decode_arguments
from .kineto_links import LAUNCH, OP, SPAN, Nesting
from .kineto_pairs import SPAN_SCHEMA, Pairs
from .kineto_points import Fate, instants, samples, series_of
from .kineto_spill import Spill
from .kineto_stream import Chunk

_MAX_KINDS = 1000
_UNKNOWN = Category("unknown")
_BARE = Category("bare")
_FATE_OF_PHASE = dict.fromkeys("stf", "flow_event") | dict.fromkeys("bneSTpF", "asynchronous_event")
_POINT_PLANES = ("memory_events", "device_memory", "counters", "collectives")
_POINT_SCHEMAS = {
    name: pa.schema([field for field in PLANES[name].schema if field.name not in ("run_id", "clock_id")])
    for name in _POINT_PLANES
}


class Collector:
    """Everything one pass over a trace gathers.

    Attributes
    ----------
    categories:
        How many complete events each category had.
    unknown:
        How many of them the table of categories does not know, by category.
    events:
        How many elements the array has, whatever became of them.
    """

    def __init__(self, file: str, spill: Spill, *, python_functions: bool = False) -> None:
        self.ledger = Ledger()
        self.nesting = Nesting(spill.folder)
        self.pairs = Pairs()
        self.categories: Counter[str | None] = Counter()
        self.unknown: Counter[str] = Counter()
        self.events = 0
        self._file = file
        self._spill = spill
        self._python = python_functions
        self._threads: dict[tuple[Any, Any], int] = {}
        self._kinds: set[str] = set()

    def add(self, chunk: Chunk) -> None:
        """Take in the events of a chunk."""
        self.events += len(chunk.events)
        by_category: dict[str | None, list[int]] = defaultdict(list)
        by_type: dict[type, list[int]] = defaultdict(list)
        for index, event in enumerate(chunk.events):
            if type(event) is Slice:
                by_category[event.cat].append(index)
            else:
                by_type[type(event)].append(index)
        points: dict[str, list[dict[str, Any]]] = defaultdict(list)
        spans: list[tuple[Any, ...]] = []
        edges = sorted(by_type.pop(Begin, []) + by_type.pop(End, []))
        self._slices(chunk, by_category, spans, points)
        self._points(chunk, by_type, points)
        self._edges(chunk, edges, spans)
        self._spans(spans)
        for plane in _POINT_PLANES:
            if rows := points[plane]:
                rows.sort(key=lambda row: int(row["seq"]))
                self._spill.add(plane, pa.Table.from_pylist(rows, schema=_POINT_SCHEMAS[plane]))
        self._others(chunk, by_type)

    def finish(self) -> None:
        """Count the begins, whose fate is known only now."""
        for kind, reason, number in self.pairs.begins():
            self._count(kind, "repaired" if reason else "kept", "spans", reason or None, number)

    def _slices(
        self, chunk: Chunk, found: dict[str | None, list[int]], spans: list[Any], points: dict[str, list[Any]]
    ) -> None:
        """Complete events, by the role of their category."""
        roles: dict[str, list[list[int]]] = defaultdict(list)
        for category, indexes in found.items():
            self.categories[category] += len(indexes)
            if category is not None:
                roles[_category(category).role].append(indexes)
        for index in found.get(None, ()):
            roles[_bare_role(chunk.events[index])].append([index])
        for role, parts in roles.items():
            indexes = parts[0] if len(parts) == 1 else sorted(itertools.chain.from_iterable(parts))
            getattr(self, f"_{role}")(chunk, indexes, spans, points)

    def _rows(self, chunk: Chunk, at: list[int], *, device: bool = False, bare: bool = False) -> slices.Rows:
        events = [chunk.events[index] for index in at]
        mended = [index in chunk.repaired for index in at] if chunk.repaired else np.zeros(len(at), bool)
        seq = np.array(at, np.int64) + chunk.first_seq
        return slices.rows_of(events, seq, device=device, mended=np.array(mended), zero_is_a_time=bare)

    def _op(self, chunk: Chunk, at: list[int], spans: list[Any], points: dict[str, list[Any]]) -> None:
        rows = self._kept(self._rows(chunk, at), "ops")
        self._spill.add("ops", slices.ops_table(rows))
        self.nesting.add(OP, rows.seq, self._thread(rows), rows.start, rows.end)
        self._collectives(rows, "op_seq", points)

    def _launch(self, chunk: Chunk, at: list[int], spans: list[Any], points: dict[str, list[Any]]) -> None:
        rows = self._kept(self._rows(chunk, at), "launches")
        self._spill.add("launches", slices.launches_table(rows))
        self.nesting.add(LAUNCH, rows.seq, self._thread(rows), rows.start, rows.end)

    def _span(self, chunk: Chunk, at: list[int], spans: list[Any], points: dict[str, list[Any]]) -> None:
        self._span_rows(self._rows(chunk, at), spans)

    def _bare(self, chunk: Chunk, at: list[int], spans: list[Any], points: dict[str, list[Any]]) -> None:
        self._span_rows(self._rows(chunk, at, bare=True), spans)

    def _python_function(self, chunk: Chunk, at: list[int], spans: list[Any], points: dict[str, list[Any]]) -> None:
        if self._python:
            self._span_rows(self._rows(chunk, at), spans)
        else:
            self._drop_all(chunk, at, "python_function_not_asked")

    def _span_rows(self, rows: slices.Rows, spans: list[Any]) -> None:
        rows = self._kept(rows, "spans")
        spans.append((rows.seq, self._thread(rows), rows.start, rows.end, slices.spans_table(rows)))

    def _device(self, chunk: Chunk, at: list[int], spans: list[Any], points: dict[str, list[Any]]) -> None:
        waits = [index for index in at if (chunk.events[index].cat, chunk.events[index].name) in WAITS]
        if waits:
            self._drop_all(chunk, waits, "synchronization")
            at = sorted(set(at) - set(waits))
        rows = self._rows(chunk, at, device=True)
        table = slices.place_devices(rows, [CATEGORIES[category].device for category in rows.categories])
        self._spill.add("device_intervals", table)
        self._collectives(self._kept(rows, "device_intervals"), "interval_seq", points)

    def _counter(self, chunk: Chunk, at: list[int], spans: list[Any], points: dict[str, list[Any]]) -> None:
        """Ranges whose arguments are counters: one sample a series, at the end of the range."""
        arguments = decode_arguments(chunk.bodies)
        rows = self._rows(chunk, at, device=True)
        rows.drop[[event.name is None for event in rows.events]] = slices.REASONS.index("no_name")
        for row in np.flatnonzero(rows.drop == 0).tolist():
            event = rows.events[row]
            pid = event.pid if type(event.pid) is int else None
            sample = {"seq": int(rows.seq[row]), "timestamp_ns": int(rows.end[row]), "name": event.name}
            sample["process_id"] = pid
            series = series_of(arguments[at[row]])
            if not series:
                rows.drop[row] = slices.REASONS.index("no_series")
                continue
            points["counters"] += [{**sample, "series": name, "value": value} for name, value in series]
            self._further("X " + str(event.cat), "counters", len(series) - 1)
        self._kept(rows, "counters")

    def _profile(self, chunk: Chunk, at: list[int], spans: list[Any], points: dict[str, list[Any]]) -> None:
        for category, number in Counter(chunk.events[index].cat for index in at).items():
            self._count(f"X {category}", "kept", None, None, number)

    def _out(self, chunk: Chunk, at: list[int], spans: list[Any], points: dict[str, list[Any]]) -> None:
        for category, number in Counter(chunk.events[index].cat for index in at).items():
            self._count(f"X {category}", "dropped", None, CATEGORIES[category].reason, number)

    def _unknown(self, chunk: Chunk, at: list[int], spans: list[Any], points: dict[str, list[Any]]) -> None:
        self.unknown.update(chunk.events[index].cat or "(none)" for index in at)
        self._drop_all(chunk, at, "unknown_category")

    def _thread(self, rows: slices.Rows) -> Any:
        return codes(list(zip(rows.pids, rows.tids, strict=True)), self._threads)

    def _collectives(self, rows: slices.Rows, link: str, points: dict[str, list[Any]]) -> None:
        found = slices.collectives(rows, link)
        points["collectives"] += found
        self._further("X device work" if link == "interval_seq" else "X operation", "collectives", len(found))

    def _kept(self, rows: slices.Rows, plane: str) -> slices.Rows:
        """Count the fates of the rows, and leave out the dropped."""
        kinds: dict[str | None, int] = {}
        kind = codes(rows.categories, kinds)
        names = list(kinds)
        combined, numbers = np.unique(
            (kind.astype(np.int64) << 16) | (rows.drop.astype(np.int64) << 8) | rows.repair, return_counts=True
        )
        for code, number in zip(combined.tolist(), numbers.tolist(), strict=True):
            name = " ".join(filter(None, ("X", names[code >> 16])))
            drop, repair = slices.REASONS[(code >> 8) & 255], slices.REASONS[code & 255]
            if drop:
                self._count(name, "dropped", None, drop, number)
            else:
                self._count(name, "repaired" if repair else "kept", plane, repair or None, number)
        return slices.kept(rows)

    def _points(self, chunk: Chunk, by_type: dict[type, list[int]], points: dict[str, list[Any]]) -> None:
        """Instants and counter events."""
        for kind, read in ((Instant, instants), (Sample, samples)):
            at = by_type.pop(kind, [])
            found = read([chunk.events[index] for index in at], [chunk.first_seq + index for index in at])
            points["memory_events"] += found.memory
            points["device_memory"] += found.checkpoints
            points["counters"] += found.counters
            self._fates(chunk, at, found.fates)
            self._further("i [memory]", "device_memory", len(found.checkpoints))
            if kind is Sample:
                kept = sum(fate[0] == "kept" for fate in found.fates)
                self._further("C", "counters", len(found.counters) - kept)

    def _edges(self, chunk: Chunk, at: list[int], spans: list[Any]) -> None:
        """Begins and ends, in one order."""
        if not at:
            return
        events = [chunk.events[index] for index in at]
        rows, fates = self.pairs.add(events, [chunk.first_seq + index for index in at])
        self._fates(chunk, at, fates)
        table = pa.Table.from_pylist(rows, schema=SPAN_SCHEMA)
        seq, start = (table.column(name).to_numpy() for name in ("seq", "start_ns"))
        begun = [chunk.events[at_] for at_ in (seq - chunk.first_seq).tolist()]
        spans.append((seq, codes([(event.pid, event.tid) for event in begun], self._threads), start, start, table))

    def _spans(self, parts: Sequence[tuple[Any, ...]]) -> None:
        """Spill the spans of a chunk in order of seq, whatever kind of events they came from."""
        if not parts:
            return
        seq, thread, start, end = (np.concatenate(column) for column in list(zip(*parts, strict=True))[:4])
        order = np.argsort(seq, kind="stable")
        self.nesting.add(SPAN, seq[order], thread[order], start[order], end[order])
        table = pa.concat_tables([part[4].select(SPAN_SCHEMA.names).cast(SPAN_SCHEMA) for part in parts])
        self._spill.add("spans", table.take(pa.array(order)) if len(parts) > 1 else table)

    def _others(self, chunk: Chunk, by_type: dict[type, list[int]]) -> None:
        """What becomes no row: metadata, flows, phases no plane holds, and what was lost."""
        for kind, at in by_type.items():
            phase = PHASE[kind]
            if kind is Lost:
                for reason, number in Counter(chunk.events[index].reason for index in at).items():
                    self._count("?", "dropped", None, reason, number)
            elif kind is Note:
                for name, number in Counter(chunk.events[index].name for index in at).items():
                    self._count(f"M {name}", "kept", None, None, number)
            else:
                reason = _FATE_OF_PHASE.get(phase, "phase_not_used")
                for category, number in Counter(chunk.events[index].cat for index in at).items():
                    self._count(" ".join(filter(None, (phase, category))), "dropped", None, reason, number)

    def _drop_all(self, chunk: Chunk, at: list[int], reason: str) -> None:
        for category, number in Counter(chunk.events[index].cat for index in at).items():
            self._count(" ".join(filter(None, ("X", category))), "dropped", None, reason, number)

    def _fates(self, chunk: Chunk, at: list[int], fates: Iterable[Fate | None]) -> None:
        """Count events of phases other than X, each by its own fate."""
        found: Counter[tuple[str, Fate]] = Counter()
        for index, fate in zip(at, fates, strict=True):
            if fate is not None:
                event = chunk.events[index]
                label = event.name if event.name == "[memory]" else event.cat
                found[" ".join(filter(None, (PHASE[type(event)], label))), fate] += 1
        for (kind, met), number in found.items():
            self._count(kind, *met, number)

    def _further(self, kind: str, plane: str, number: int) -> None:
        """Count rows beyond the first that records gave: they are no further records."""
        if number:
            self._count(f"{kind} -> {plane}", "kept", plane, None, number)

    def _count(self, kind: str, fate: str, plane: str | None, reason: str | None, number: int) -> None:
        kind = clean(kind)
        kind = kind if kind in self._kinds or len(self._kinds) < _MAX_KINDS else "(other kinds)"
        self._kinds.add(kind)
        if fate == "dropped":
            self.ledger.dropped(self._file, kind, reason or "", number)
        elif reason:
            self.ledger.repaired(self._file, kind, plane, reason, number)
        else:
            self.ledger.kept(self._file, kind, plane, number)


def _category(name: str) -> Category:
    return CATEGORIES.get(name, _UNKNOWN)


def _bare_role(event: Slice) -> str:
    """A slice without a category is a span, unless it carries a correlation id: then it is work of unknown class."""
    args = event.args if type(event.args) is Args else NO_ARGS
    return "bare" if args.correlation is None and args.correlation_camel is None else "unknown"
