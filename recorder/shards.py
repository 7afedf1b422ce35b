"""Buffers rows per family and writes them as Parquet shards on a background thread.

The hot path extends one flat list per family and wakes nobody. Nothing of a row outlives the call but its values, so
the cyclic collector has nothing to count, where a list of tuples makes it look at every row again while it fills.
Columns are cut out of the flat list by stride when a batch is written; ``run_id`` is added there.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections import deque
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from .errors import RecordingError
from .families import FAMILIES, shard_name
from .files import write_bytes
from .options import RecorderOptions
from .planes import Plane

_ROW_GROUP_ROWS = 128 * 1024
_TEXT_BYTES = 24  # What a text or list cell is taken to weigh; numbers weigh 8.

_SAMPLED_ROWS = 64
"""One row in so many is weighed whole, for itself and the others: names may be long, and weighing each row is dear."""

_Batch: TypeAlias = dict[str, list[Any]]


def _row_bytes(family: Plane) -> int:
    return sum(8 if pa.types.is_primitive(column.type) else _TEXT_BYTES for column in family.columns)


ROW_BYTES = {name: _row_bytes(family) for name, family in FAMILIES.items()}
"""Estimated bytes of one buffered row by family; what the bytes trigger counts."""


def _long_text_bytes(row: tuple[Any, ...]) -> int:
    """What the texts of a row weigh above the estimate of a cell."""
    long = [len(cell) for cell in row if type(cell) is str and len(cell) > _TEXT_BYTES]
    return sum(long) - _TEXT_BYTES * len(long)


def encode_shard(family: Plane, flat: list[Any], run_id: str) -> pa.Buffer:
    """One complete Parquet file of the rows that lie one after another in ``flat``, without their ``run_id``.

    zstd, dictionaries for text and booleans, DELTA_BINARY_PACKED for integers, a checksum per page (zstd frames have
    none, so a flipped bit could pass); the metadata names plane, version and run.
    """
    columns = family.columns[1:]
    width = len(columns)
    schema = family.schema.with_metadata({**family.schema.metadata, "planewise.run_id": run_id})
    arrays = [pa.array(flat[index::width], type=column.type) for index, column in enumerate(columns)]
    arrays.insert(0, pa.repeat(pa.scalar(run_id, pa.string()), len(arrays[0])))
    sink = pa.BufferOutputStream()
    integers = _leaves(family, pa.types.is_integer)
    pq.write_table(
        pa.Table.from_arrays(arrays, schema=schema),
        sink,
        compression="zstd",
        use_dictionary=_leaves(family, pa.types.is_string),
        column_encoding=dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
        row_group_size=_ROW_GROUP_ROWS,
        write_page_checksum=True,
    )
    return sink.getvalue()


def _row_count(name: str, flat: list[Any]) -> int:
    return len(flat) // (len(FAMILIES[name].columns) - 1)


def _leaves(family: Plane, test: Any) -> list[str]:
    found = []
    for column in family.columns:
        is_list = pa.types.is_list(column.type)
        if test(column.type.value_type if is_list else column.type):
            found.append(f"{column.name}.list.element" if is_list else column.name)
    return found


class ShardWriter:
    """Takes rows from any thread, and writes them in the background until :meth:`close`.

    A fault is sticky: after it every row counts in :attr:`lost_rows`, and :meth:`drain` raises
    :class:`~planewise.recorder.errors.RecordingError`.
    """

    def __init__(self, folder: Path, run_id: str, options: RecorderOptions) -> None:
        self.rows_written = dict.fromkeys(FAMILIES, 0)
        self.fault: BaseException | None = None
        self.told = False
        """True once somebody was warned of the fault."""
        self.pid = os.getpid()
        self._lost_rows = 0
        self._folder = folder
        self._run_id = run_id
        self._flush_rows = options.flush_rows
        self._flush_bytes = options.flush_bytes
        self._flush_seconds = options.flush_seconds
        self._pending_flushes = options.pending_flushes
        self._shards = dict.fromkeys(FAMILIES, 0)
        self._fresh()
        self._pending: deque[_Batch] = deque()
        self._busy = False
        self._closed = False
        # Reentrant, because a weakref callback may record a free while this thread is inside put.
        self.lock = threading.RLock()
        self._changed = threading.Condition(self.lock)
        # pyarrow imports pandas, where it is installed, at its first conversion. In the writer's thread that would fall
        # into the measured region, and at the end of the program it cannot be imported at all.
        pa.array([], pa.int64())
        self._thread = threading.Thread(target=self._work, name="planewise-recorder", daemon=True)
        self._thread.start()
        _LIVE.add(self)

    def _fresh(self) -> None:
        self._buffers: _Batch = {name: [] for name in FAMILIES}
        self._extend = {name: buffer.extend for name, buffer in self._buffers.items()}
        self._rows = 0
        self._bytes = 0
        self._look_at = 1
        self._oldest: float | None = None

    @property
    def is_closed(self) -> bool:
        """True when nothing is written any more."""
        return self._closed

    @property
    def lost_rows(self) -> int:
        """Rows that were recorded and could not be written, the ones still buffered at the fault included."""
        with self.lock:
            return self._lost_rows

    def put(self, family: str, row: tuple[Any, ...], extra_bytes: int = 0) -> None:
        """Buffer one row; the caller holds :attr:`lock`. ``extra_bytes`` is what the row weighs above the estimate."""
        if self.fault is not None:
            self._lost_rows += 1
            return
        self._extend[family](row)
        rows = self._rows = self._rows + 1
        held = self._bytes = self._bytes + ROW_BYTES[family] + extra_bytes
        if self._oldest is None:
            self._oldest = time.monotonic()
            self._changed.notify_all()  # The writer starts to wait for flush_seconds.
        if rows >= self._look_at or held >= self._flush_bytes:
            self._look(row)

    def put_block(self, family: str, flat: list[Any]) -> None:
        """Buffer whole rows that lie one after another in ``flat``; the caller holds :attr:`lock`."""
        count = _row_count(family, flat)
        if self.fault is not None:
            self._lost_rows += count
            return
        self._extend[family](flat)
        self._rows += count
        self._bytes += count * ROW_BYTES[family]
        if self._oldest is None:
            self._oldest = time.monotonic()
            self._changed.notify_all()
        if self._rows >= self._flush_rows or self._bytes >= self._flush_bytes:
            self._cut()

    def _look(self, row: tuple[Any, ...]) -> None:
        """Weigh a row whole, and hand the rows over when a limit is reached. Holds the lock."""
        if self._rows >= self._look_at:
            self._bytes += _SAMPLED_ROWS * _long_text_bytes(row)
            self._look_at = min(self._rows + _SAMPLED_ROWS, self._flush_rows)
        if self._rows >= self._flush_rows or self._bytes >= self._flush_bytes:
            self._cut()

    def _cut(self) -> None:
        """Hand the buffered rows to the writer thread; waits while too many batches are pending. Holds the lock."""
        if self._rows:
            self._pending.append(self._buffers)
            self._fresh()
            self._changed.notify_all()
        # The collector may run a weakref callback on the writer's thread, which must not wait for itself.
        may_wait = threading.current_thread() is not self._thread
        while may_wait and len(self._pending) > self._pending_flushes and self.fault is None:
            self._changed.wait()

    def drain(self) -> None:
        """Write everything buffered and wait until it is on disk; raises :class:`RecordingError` after a fault."""
        with self.lock:
            self._cut()
            while (self._pending or self._busy) and self.fault is None:
                self._changed.wait()
        self.check()

    def check(self) -> None:
        """Raise :class:`RecordingError` if a write has failed."""
        if isinstance(self.fault, RecordingError):
            raise self.fault
        if self.fault is not None:
            raise RecordingError(
                f"writing failed ({type(self.fault).__name__}: {self.fault}); {self.lost_rows} rows are lost",
                source=self._folder,
                remedy="free the disk or choose another folder, and record the run again",
            ) from self.fault

    def close(self) -> None:
        """Stop the writer thread; rows put later are dropped and counted as lost."""
        with self.lock:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def abandon(self) -> None:
        """Forget everything in a forked child: its parent owns the folder, and the writer thread did not come along."""
        self.lock = threading.RLock()
        self._changed = threading.Condition(self.lock)
        self._pending.clear()
        self._fresh()
        self._closed = True
        self.told = False
        self.fault = RecordingError(
            f"process {os.getpid()} is a fork of the recording one",
            code="forked_child",
            remedy="open a session of its own",
        )

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            try:
                self._write(batch)
            except BaseException as fault:  # noqa: BLE001  A thread that dies silently would leave drain waiting.
                self._fail(fault, batch)
            with self.lock:
                self._busy = False
                self._changed.notify_all()

    def _next(self) -> _Batch | None:
        """The next batch, after a wait; None when the writer is closed."""
        with self.lock:
            while True:
                if self._pending:
                    self._busy = True
                    return self._pending.popleft()
                if self._closed:
                    return None
                if self._oldest is None:
                    self._changed.wait()
                    continue
                remaining = self._oldest + self._flush_seconds - time.monotonic()
                if remaining > 0:
                    self._changed.wait(remaining)
                else:
                    self._pending.append(self._buffers)
                    self._fresh()

    def _write(self, batch: _Batch) -> None:
        for name, family in FAMILIES.items():
            if flat := batch[name]:
                content = encode_shard(family, flat, self._run_id)
                number = self._shards[name] + 1
                write_bytes(self._folder / shard_name(name, number), content)
                self._shards[name] = number
                self.rows_written[name] += _row_count(name, flat)
                batch[name] = []

    def _fail(self, fault: BaseException, batch: _Batch) -> None:
        with self.lock:
            self.fault = fault
            for lost in (batch, *self._pending, self._buffers):
                self._lost_rows += sum(_row_count(name, flat) for name, flat in lost.items())
            self._pending.clear()
            self._fresh()


_LIVE: weakref.WeakSet[ShardWriter] = weakref.WeakSet()
"""Every writer of this process; its own thread keeps it alive until it is closed."""


def _abandon_in_child() -> None:
    for writer in list(_LIVE):
        writer.abandon()


def _flush_at_exit() -> None:
    """Put on disk what a program leaves that ends without ending its sessions; nobody is there to hear of a fault."""
    for writer in list(_LIVE):
        if not writer.is_closed:
            with contextlib.suppress(RecordingError):
                writer.drain()


os.register_at_fork(after_in_child=_abandon_in_child)
atexit.register(_flush_at_exit)
