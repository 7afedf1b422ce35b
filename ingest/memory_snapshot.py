"""Reader of PyTorch's memory snapshots, ``torch.cuda.memory._dump_snapshot`` and its kin: segments, blocks, history.

The history of a device is a ring buffer: allocations before its first entry are not in it, while what was live at the
end is told by the blocks. So nothing here adds up bytes; the views do, with both numbers shown (sql/snapshot).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from .contract import PlaneBatch
from .fates import Fates
from .foreign import ForeignRun, foreign_run_id
from .pickles import is_pickle, load_plain, plain
from .plane_rows import PlaneRows
from .snapshot_checks import INT64, block_fault, entry_fault, has_blocks, segment_fault, snapshot_parts
from .snapshot_frames import Frames, category, plain_text, settings_tags
from .snapshot_html import embedded_pickle, is_viz_page
from .source import source_digest, source_name
from .streams import head

_MARKS = (b"device_traces", b"segments", b"total_size")
_ACTIONS = frozenset(
    [
        *("alloc", "free_requested", "free_completed", "snapshot", "oom"),
        *("segment_alloc", "segment_free", "segment_map", "segment_unmap"),
    ]
)
"""Actions that the ledger counts apart; every action is kept."""


class MemorySnapshotReader:
    """Reads memory snapshots of PyTorch's caching allocators."""

    name = "memory-snapshot"
    doc = "PyTorch memory snapshot (.pickle)"

    def detect(self, path: Path) -> bool:
        """True for a pickle that names a snapshot's parts near its start, and for the viewer's page around one."""
        if not path.is_file():
            return False
        start = head(path)
        return is_viz_page(start) or (is_pickle(start) and any(mark in start for mark in _MARKS))

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes; raises :class:`InputRefused` for what is no snapshot or no pickle of plain containers."""
        path = Path(path)
        collecting = gc.isenabled()
        gc.disable()  # A snapshot holds no circles; walking it all, again and again, costs more than decoding.
        try:
            yield from self._planes(path)
        finally:
            if collecting:
                gc.enable()

    def _planes(self, path: Path) -> Iterator[PlaneBatch]:
        digest = source_digest(path)
        if is_viz_page(head(path)):
            data = embedded_pickle(path)
            found, size = plain(path, data), len(data)
        else:
            found, size = load_plain(path)
        yield from _Snapshot(path, digest, found, size).batches()


class _Snapshot:
    """One snapshot on its way into rows. Histories have the numbers from 0, then segments each with its blocks."""

    def __init__(self, path: Path, digest: str, found: Any, size: int) -> None:
        self.path = path
        self.digest = digest
        self.segments, self.traces, self.extra = snapshot_parts(path, found, size)
        self.run_id = foreign_run_id(path, digest)
        self.fates = Fates(source_name(path))
        self.frames = Frames()
        self._seq = 0
        self._devices: set[str] = set()
        self._timed = False

    def batches(self) -> Iterator[PlaneBatch]:
        blocks = chain.from_iterable(segment["blocks"] for segment in self.segments if has_blocks(segment))
        self.frames.look(chain(chain.from_iterable(self.traces), blocks))
        yield from self._history()
        yield from self._state()
        self._annotations()
        yield from self.fates.batches(self.run_id)
        yield self._run().batch(self.path, self.fates.rows)

    def _annotations(self) -> None:
        found = self.extra.get("external_annotations")
        if isinstance(found, list) and found:
            self.fates.leave_out("external_annotation", "not_read", len(found))
            message = f"{len(found)} external annotations are not read: they are on no clock of another plane"
            self.fates.note("not_read", "info", message)

    def _run(self) -> ForeignRun:
        return ForeignRun(
            run_id=self.run_id,
            schema="torch-memory-snapshot",
            source_format=MemorySnapshotReader.name,
            source_digest=self.digest,
            producer="torch_npu" if self.frames.saw_npu else "torch",
            time_unit="us" if self._timed else None,
            device=next(iter(self._devices)) if len(self._devices) == 1 else None,
            tags=settings_tags(self.extra.get("allocator_settings")),
            data_lost=self.fates.data_lost,
        )

    def _device(self, index: int) -> str:
        label = f"{'npu' if self.frames.saw_npu else 'cuda'}:{index}"
        self._devices.add(label)
        return label

    def _next(self) -> int:
        self._seq += 1
        return self._seq - 1

    def _history(self) -> Iterator[PlaneBatch]:
        rows = PlaneRows(
            "allocator_events",
            self.run_id,
            *("device", "position", "timestamp_ns", "action", "address", "bytes"),
            *("device_free_bytes", "stream_id", "frame", "category"),
        )
        for index, trace in enumerate(self.traces):
            for position, entry in enumerate(trace):
                seq, fault = self._next(), entry_fault(entry)
                if fault:
                    self.fates.drop("history entry", "invalid_entry", f"entry {position} of device {index}: {fault}")
                    continue
                rows.add(seq, self._device(index), position, *self._entry(entry))
                action = entry["action"] if entry["action"] in _ACTIONS else "of another action"
                self.fates.keep(f"history {action}", "allocator_events")
                yield from rows.full()
        yield from rows.rest()

    def _entry(self, entry: Mapping[str, Any]) -> tuple[Any, ...]:
        time_us = entry.get("time_us")
        self._timed = self._timed or time_us is not None
        return (
            None if time_us is None else time_us * 1000,
            plain_text(entry["action"]),
            None if entry["action"] == "snapshot" else entry.get("addr"),
            entry.get("size"),
            entry.get("device_free"),
            entry.get("stream"),
            self.frames.top(entry.get("frames")),
            category(entry),
        )

    def _state(self) -> Iterator[PlaneBatch]:
        segments = PlaneRows(
            "allocator_segments",
            self.run_id,
            *("device", "address", "total_bytes", "allocated_bytes", "active_bytes", "requested_bytes"),
            *("stream_id", "segment_type", "expandable", "pool_id"),
        )
        blocks = PlaneRows(
            "allocator_blocks",
            self.run_id,
            *("device", "segment_seq", "address", "bytes", "requested_bytes", "state", "frame", "category"),
        )
        for index, segment in enumerate(self.segments):
            seq, fault = self._next(), segment_fault(segment)
            if fault:
                self._drop_segment(index, segment, fault)
                continue
            device = self._device(segment["device"])
            segments.add(seq, device, *_segment(segment))
            self.fates.keep("segment", "allocator_segments")
            self._blocks(blocks, segment, seq, device)
            yield from segments.full()
            yield from blocks.full()
        yield from segments.rest()
        yield from blocks.rest()

    def _drop_segment(self, index: int, segment: Any, fault: str) -> None:
        self.fates.drop("segment", "invalid_segment", f"segment {index}: {fault}")
        lost = len(segment["blocks"]) if has_blocks(segment) else 0
        if lost:
            self.fates.drop("block", "no_segment", f"the {lost} blocks of segment {index}, which is none", records=lost)
            self._seq += lost

    def _blocks(self, rows: PlaneRows, segment: Mapping[str, Any], segment_seq: int, device: str) -> None:
        """Blocks without an address lie one after another in their segment, which has one (torch 2.0)."""
        place = segment.get("address")
        for number, block in enumerate(segment["blocks"]):
            seq, fault = self._next(), block_fault(block)
            if fault:
                message = f"block {number} of the segment with seq {segment_seq}: {fault}"
                self.fates.drop("block", "invalid_block", message)
                place = None
                continue
            rows.add(seq, device, segment_seq, *self._block(block, place))
            self.fates.keep("block", "allocator_blocks")
            place = None if place is None or place + block["size"] >= 1 << 64 else place + block["size"]

    def _block(self, block: Mapping[str, Any], place: int | None) -> tuple[Any, ...]:
        """Blocks of torch 2.0 have their size as asked for and their frames in the newest entry of their history."""
        history = block.get("history") if block["state"].startswith("active") else None
        newest = history[0] if isinstance(history, list) and history and isinstance(history[0], Mapping) else {}
        requested = block.get("requested_size", newest.get("real_size"))
        address = block.get("address")
        return (
            place if address is None else address,
            block["size"],
            requested if type(requested) is int and requested in INT64 else None,
            plain_text(block["state"]),
            self.frames.top(block.get("frames", newest.get("frames"))),
            category(block),
        )


def _segment(segment: Mapping[str, Any]) -> tuple[Any, ...]:
    pool, expandable = segment.get("segment_pool_id"), segment.get("is_expandable")
    return (
        segment.get("address"),
        segment["total_size"],
        segment.get("allocated_size"),
        segment.get("active_size"),
        segment.get("requested_size"),
        segment.get("stream"),
        plain_text(segment.get("segment_type")) or None,
        expandable if isinstance(expandable, bool) else None,
        "/".join(map(str, pool)) if isinstance(pool, tuple) and {type(part) for part in pool} == {int} else None,
    )
