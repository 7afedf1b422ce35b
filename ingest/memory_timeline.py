"""Reader of torch.profiler's memory timeline in its raw export: ``export_memory_timeline(..., "x.raw.json.gz")``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..recorder.errors import InputRefused
from ..recorder.planes import INT64_MAX
from .contract import PlaneBatch
from .fates import Fates
from .foreign import ForeignRun, foreign_run_id
from .plane_rows import PlaneRows
from .source import source_digest, source_name
from .streams import StreamDamaged, chunks, head

LIMIT_BYTES = 1 << 28
"""Longest export, decompressed; it is one JSON value and lies in memory whole while it is read."""

ACTIONS = {1: "preexisting", 2: "create", 3: "increment_version", 4: "destroy"}
"""torch.profiler's numbers of the actions (torch/profiler/_memory_profiler.py, Action)."""

CATEGORIES = (
    *("parameter", "optimizer_state", "input", "temporary", "activation", "gradient", "autograd_detail"),
    None,
)
"""Its numbers of the categories, in the order of their places; the last is memory it could not classify."""

_HEAD_BYTES = 1 << 20
_PAGE = re.compile(rb"\s*<html>.{0,200}?<title>GPU Memory Timeline HTML</title>", re.DOTALL)
_LIST = re.compile(rb"\s*\[\s*\[\s*-?\d")
_SUMS = re.compile(rb"\s*\[\s*\[[-\d\s,]+\]\s*,\s*\[\s*\[\s*0\s*(?:,\s*-?\d+\s*){8}\]")
_START = re.compile(rb"\s*\[\s*\[\s*-?\d+\s*,\s*[1-4]\s*,\s*-?\d+\s*,\s*[0-7]\s*\]")


class MemoryTimelineReader:
    """Reads raw exports of the memory timeline."""

    name = "memory-timeline"
    doc = "torch.profiler memory timeline, raw export"

    def detect(self, path: Path) -> bool:
        """True for a JSON list whose first entry is [time, action, bytes, category], and for the two other exports."""
        return path.is_file() and (_START.match(head(path, 512)) is not None or _other_export(path) is not None)

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes; raises :class:`InputRefused` for what is no whole raw export."""
        path = Path(path)
        _refuse_other_export(path)
        digest = source_digest(path)
        run_id = foreign_run_id(path, digest)
        fates = Fates(source_name(path))
        rows = PlaneRows("memory_timeline", run_id, "timestamp_ns", "action", "bytes", "category")
        for seq, entry in enumerate(_entries(path)):
            row = _row(entry)
            if row is None:
                message = f"entry {seq}: found {str(entry)[:100]}, expected [time, action 1-4, bytes, category 0-7]"
                fates.drop("entry", "invalid_entry", message)
            else:
                rows.add(seq, *row)
                fates.keep(f"entry {row[1]}", "memory_timeline")
            yield from rows.full()
        yield from rows.rest()
        yield from fates.batches(run_id)
        run = ForeignRun(
            run_id=run_id,
            schema="torch-memory-timeline-raw",
            source_format=self.name,
            source_digest=digest,
            producer="torch.profiler",
            time_unit="ns",
            data_lost=fates.data_lost,
        )
        yield run.batch(path, fates.rows)


def _other_export(path: Path) -> str | None:
    """What the two exports hold that are no raw ones (torch/profiler/_memory_profiler.py); None for anything else."""
    start = head(path, 512)
    if _PAGE.match(start):
        return "the HTML page of a memory timeline, which holds a picture of it and no numbers"
    if _LIST.match(start) and not _START.match(start) and _SUMS.match(head(path, _HEAD_BYTES)):
        return "the JSON export of a memory timeline, which holds sums by category and no entries"
    return None


def _refuse_other_export(path: Path) -> None:
    what = _other_export(path)
    if what is not None:
        remedy = 'export it again with a path that ends in ".raw.json.gz": export_memory_timeline("x.raw.json.gz")'
        raise InputRefused(f"is {what}, expected the raw export", source=path, code="not_the_raw_export", remedy=remedy)


def _row(entry: Any) -> tuple[int | None, str, int, str | None] | None:
    """(time, action, change in bytes, category); None for an entry that is none. Time -1 is before the trace."""
    if not isinstance(entry, list) or len(entry) != 4 or any(type(value) is not int for value in entry):
        return None
    time_ns, action, change, category = entry
    in_range = -1 <= time_ns <= INT64_MAX and abs(change) <= INT64_MAX
    if not in_range or action not in ACTIONS or not 0 <= category < len(CATEGORIES):
        return None
    return (None if time_ns == -1 else time_ns), ACTIONS[action], change, CATEGORIES[category]


def _entries(path: Path) -> list[Any]:
    text = bytearray()
    try:
        for piece in chunks(path):
            text += piece
            if len(text) > LIMIT_BYTES:
                raise InputRefused(f"the export is longer than {LIMIT_BYTES} bytes", source=path, code="too_large")
        return msgspec.json.decode(text, type=list[Any])
    except StreamDamaged as error:
        position = f"decompressed byte {error.offset}"
        raise InputRefused(error.message, source=path, position=position, code="damaged_stream") from None
    except OSError as error:
        raise InputRefused(f"cannot be read: {error.strerror}", source=path, code="unreadable") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputRefused(
            f"is no whole memory timeline: {error}", source=path, code="invalid_document", remedy="export it again"
        ) from None
