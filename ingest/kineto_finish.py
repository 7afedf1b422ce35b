"""Spilled rows -> batches of the planes: absolute times, links, labels of devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .contract import PlaneBatch, widen
from .kineto_categories import DEVICE_OF_RUNTIME
from .kineto_collect import Collector
from .kineto_links import LAUNCH, OP, SPAN, Links
from .kineto_run import clock_id
from .kineto_spill import Spill

_TIMES = ("start_ns", "timestamp_ns")
_BACKEND = "kineto"


class Finish:
    """Completes the rows of one trace.

    Attributes
    ----------
    link_keys:
        Keys of the source that link rows, among those that have values; complete after :meth:`batches`.
    only_device:
        The label of the device that all device work was on; None when there were several or none.
    """

    def __init__(self, run_id: str, base: int | None, collector: Collector, spill: Spill) -> None:
        self._run_id = run_id
        self._base = base or 0
        self._clock = clock_id(run_id, base)
        self._collector = collector
        self._spill = spill
        self._kind = next((DEVICE_OF_RUNTIME[c] for c in DEVICE_OF_RUNTIME if c in collector.categories), "cuda")
        self._keys: set[str] = set()
        self._devices: set[str] = set()

    @property
    def link_keys(self) -> tuple[str, ...]:
        return tuple(sorted(self._keys))

    @property
    def only_device(self) -> str | None:
        return next(iter(self._devices)) if len(self._devices) == 1 else None

    def batches(self) -> Iterator[PlaneBatch]:
        """Every plane with rows, plane by plane, in seq order."""
        ends = self._collector.pairs.ends()
        links = self._collector.nesting.link((ends[:, 0], ends[:, 1]))
        yield from self._linked("ops", links, OP, self._op)
        yield from self._linked("launches", links, LAUNCH, self._launch)
        yield from self._linked("spans", links, SPAN, lambda table, span, op: self._span(table, span, ends))
        del links
        for table in self._spill.read("device_intervals"):
            yield self._batch("device_intervals", self._device(table))
        for plane in ("memory_events", "device_memory", "counters", "collectives"):
            for table in self._spill.read(plane):
                yield self._batch(plane, table)

    def _linked(self, plane: str, links: Links, family: int, complete: Any) -> Iterator[PlaneBatch]:
        at = 0
        for table in self._spill.read(plane):
            span, op = links.read(family, at, table.num_rows)
            at += table.num_rows
            yield self._batch(plane, complete(table, span, op))

    def _batch(self, plane: str, table: Any) -> PlaneBatch:
        for name in _TIMES:
            if self._base and name in table.column_names:
                table = _replaced(table, name, pc.add(table.column(name), self._base))
        table = table.append_column("run_id", pa.repeat(pa.scalar(self._run_id), table.num_rows))
        if plane in ("counters", "device_intervals"):
            table = table.append_column("clock_id", pa.repeat(pa.scalar(self._clock), table.num_rows))
        self._note_keys(table)
        return PlaneBatch(plane, widen(plane, table))

    def _note_keys(self, table: Any) -> None:
        for column, key in (("correlation_id", "correlation"), ("external_id", "External id")):
            if column in table.column_names and table.column(column).null_count < table.num_rows:
                self._keys.add(key)

    def _op(self, table: Any, span: Any, op: Any) -> Any:
        return table.append_column("span_id", _span_ids(span)).append_column("parent_seq", _seqs(op))

    def _launch(self, table: Any, span: Any, op: Any) -> Any:
        return table.append_column("span_id", _span_ids(span)).append_column("op_seq", _seqs(op))

    def _span(self, table: Any, parent: Any, ends: Any) -> Any:
        """Identities, parents, and the ends of begins."""
        seq = table.column("seq").to_numpy()
        if len(ends):
            at = np.minimum(np.searchsorted(ends[:, 0], seq), len(ends) - 1)
            hit = ends[at, 0] == seq
            duration = pa.array(ends[at, 1] - table.column("start_ns").to_numpy(), mask=~hit)
            table = _replaced(table, "duration_ns", pc.coalesce(table.column("duration_ns"), duration))
            last = pa.array(ends[at, 2], mask=~hit)
            table = _replaced(table, "end_seq", pc.coalesce(table.column("end_seq"), last))
        table = table.append_column("id", pc.cast(table.column("seq"), pa.string()))
        table = table.append_column("parent_id", _span_ids(parent))
        return table.append_column("measured", pa.array(np.zeros(len(seq), bool)))

    def _device(self, table: Any) -> Any:
        kind = pc.coalesce(table.column("device_kind"), pa.scalar(self._kind))
        device = pc.binary_join_element_wise(kind, table.column("device_number"), ":")
        if len(self._devices) < 2:
            self._devices.update(pc.unique(device).to_pylist()[:2])
        table = table.append_column("device", device)
        return table.append_column("backend", pa.repeat(pa.scalar(_BACKEND), table.num_rows))


def _replaced(table: Any, name: str, column: Any) -> Any:
    return table.set_column(table.column_names.index(name), name, column)


def _seqs(links: Any) -> Any:
    return pa.array(links, mask=links < 0)


def _span_ids(links: Any) -> Any:
    return _seqs(links).cast(pa.string())
