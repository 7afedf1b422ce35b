"""Host events of a trace of any length by thread and start, a bounded number in memory at a time.

Events come in file order, which is no order of time. They are kept in sorted runs, on disk as soon as there are many;
keys sampled from the runs cut them into ranges that hold about one block each, and a range is sorted when it is read.
"""

from __future__ import annotations

import itertools
import mmap
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

EVENT = np.dtype(
    [
        ("thread", np.int32),
        ("family", np.int8),
        ("start", np.int64),
        ("end", np.int64),
        ("seq", np.int64),
        ("row", np.int64),
    ]
)
"""``row`` is the position of the event among those of its family."""
RUN_ROWS = 1 << 17
_SAMPLE_EVERY = 1 << 9
Key = tuple[int, int]


class EventOrder:
    """Takes events in any order, gives them back by thread, start, falling end and seq."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "host-events"
        self._waiting: list[Any] = []
        self._rows = 0
        self._runs: list[Any] = []
        self._samples: list[Key] = []

    def add(self, events: Any) -> None:
        """Take in an array of ``EVENT``."""
        self._waiting.append(events)
        self._rows += len(events)
        if self._rows >= RUN_ROWS:
            run = self._sorted_run()
            sampled = run[::_SAMPLE_EVERY]
            self._samples += zip(sampled["thread"].tolist(), sampled["start"].tolist(), strict=True)
            with self._path.open("ab") as stream:
                offset = stream.tell()
                run.tofile(stream)
            self._runs.append((offset, len(run)))

    def blocks(self) -> Iterator[Any]:
        """Arrays of ``EVENT``, each in order and after the one before; everything is given back once."""
        last = [self._sorted_run()] if self._waiting else []
        runs = [np.memmap(self._path, EVENT, "r", offset, (count,)) for offset, count in self._runs] + last
        for low, high in itertools.pairwise((None, *self._borders(), None)):
            found = np.concatenate([_between(run, low, high) for run in runs]) if runs else np.zeros(0, EVENT)
            if len(found):
                yield found

    def _sorted_run(self) -> Any:
        run = np.concatenate(self._waiting)
        self._waiting, self._rows = [], 0
        return run[np.lexsort((run["start"], run["thread"]))]

    def _borders(self) -> list[Key]:
        """Keys that cut the runs into ranges of about ``RUN_ROWS`` events."""
        samples = sorted(self._samples)
        return sorted(set(samples[RUN_ROWS // _SAMPLE_EVERY :: RUN_ROWS // _SAMPLE_EVERY]))


def _between(run: Any, low: Key | None, high: Key | None) -> Any:
    """The events of a sorted run from one key up to another."""
    keys = _Keys(run)
    start = 0 if low is None else bisect_left(keys, low)
    stop = len(run) if high is None else bisect_left(keys, high)
    found = np.array(run[start:stop])
    forget(run)
    return found


class _Keys:
    """The keys of a sorted run as a sequence."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def __len__(self) -> int:
        return len(self._run)

    def __getitem__(self, at: int) -> Key:
        event = self._run[at]
        return int(event["thread"]), int(event["start"])


def forget(column: Any) -> None:
    """Let go of the pages of a mapped file; what was written stays in the file."""
    if isinstance(column, np.memmap) and isinstance(mapped := column._mmap, mmap.mmap):  # type: ignore[attr-defined]
        mapped.madvise(mmap.MADV_DONTNEED)
