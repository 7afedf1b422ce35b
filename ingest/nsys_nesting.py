"""Which NVTX range encloses a host record on its thread, from records sorted by the database."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np

NONE = -1


def enclosing_ranges(chunks: Iterable[list[tuple[int, int, int, int, int]]], records: int) -> Any:
    """The seq of the innermost range around each host record, by seq of the record; :data:`NONE` where none is.

    Rows are thread, start, end, seq and whether the record encloses others, ordered by thread, start, end (latest
    first) and seq. A range encloses what starts not before it and ends not after it on its thread; of equal intervals
    the earlier record encloses the later. One that only crosses another does not enclose it. The result lies in a
    temporary file, so it takes no memory of its own.
    """
    if not records:
        return np.empty(0, np.int64)
    with tempfile.TemporaryFile() as file:
        found = np.memmap(file, np.int64, "w+", shape=(records,))
    found[:] = NONE
    stack: list[tuple[int, int]] = []
    current: int | None = None
    for rows in chunks:
        for thread, start, end, seq, encloses in rows:
            if thread != current:
                stack, current = [], thread
            while stack and stack[-1][0] < start:
                stack.pop()
            for open_end, open_seq in reversed(stack):
                if open_end >= end:
                    found[seq] = open_seq
                    break
            if encloses:
                stack.append((end, seq))
    return found
