"""What a record of a memory snapshot must be to become a row; a record that is not costs itself alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..recorder.errors import InputRefused
from ..recorder.planes import INT64_MAX

INT64 = range(INT64_MAX + 1)
_UINT64 = range(1 << 64)
_LEAST_RECORD_BYTES = 4
"""A record of its own takes more bytes of a pickle than this; one that is repeated by reference takes fewer."""


def snapshot_parts(path: Path, found: Any, size: int) -> tuple[Sequence[Any], list[Sequence[Any]], Mapping[str, Any]]:
    """Segments, one history per device, and the members beside them; a bare list is the segments alone.

    ``size`` is that of the pickle in bytes. Raises :class:`InputRefused` for what is no snapshot, and for one that
    repeats its records by reference to swell up beyond that size.
    """
    segments, traces, extra = _parts(path, found)
    blocks = sum(len(segment["blocks"]) for segment in segments if has_blocks(segment))
    if len(segments) + blocks + sum(map(len, traces)) > size // _LEAST_RECORD_BYTES:
        raise InputRefused(
            "the pickle repeats its records by reference beyond its own size",
            source=path,
            code="swelling_pickle",
            remedy="a snapshot as torch writes it names each record once",
        )
    return segments, traces, extra


def _parts(path: Path, found: Any) -> tuple[Sequence[Any], list[Sequence[Any]], Mapping[str, Any]]:
    if isinstance(found, list) and all(isinstance(item, Mapping) and "blocks" in item for item in found):
        return found, [], {}
    if isinstance(found, Mapping) and isinstance(found.get("segments"), list):
        traces = found.get("device_traces", [])
        if isinstance(traces, list) and all(isinstance(trace, list) for trace in traces):
            return found["segments"], traces, found
    raise InputRefused(
        "is no memory snapshot: expected a dictionary with segments and device_traces, or a list of segments",
        source=path,
        code="not_a_snapshot",
        remedy="take one with torch.cuda.memory._dump_snapshot",
    )


def has_blocks(segment: Any) -> bool:
    """True for a segment with a list of blocks."""
    return isinstance(segment, Mapping) and isinstance(segment.get("blocks"), list)


def entry_fault(entry: Any) -> str | None:
    """What keeps an entry of the history from being a row; None when nothing does."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("action"), str):
        return "it has no action"
    return (
        _range_fault(entry, ("addr", "stream"), _UINT64)
        or _range_fault(entry, ("size", "device_free"), INT64)
        or _range_fault(entry, ("time_us",), range(INT64_MAX // 1000 + 1))
    )


def segment_fault(segment: Any) -> str | None:
    """What keeps a segment, and so its blocks, from being rows; None when nothing does."""
    if not has_blocks(segment):
        return "it has no blocks"
    for name in ("device", "total_size"):
        if segment.get(name) is None:
            return f"it has no {name}"
    sizes = ("device", "total_size", "allocated_size", "active_size", "requested_size")
    return _range_fault(segment, sizes, INT64) or _range_fault(segment, ("address", "stream"), _UINT64)


def block_fault(block: Any) -> str | None:
    """What keeps a block from being a row; None when nothing does."""
    if not isinstance(block, Mapping) or not isinstance(block.get("state"), str) or block.get("size") is None:
        return "it has no size or no state"
    return _range_fault(block, ("size", "requested_size"), INT64) or _range_fault(block, ("address",), _UINT64)


def _range_fault(record: Mapping[str, Any], names: Sequence[str], allowed: range) -> str | None:
    for name in names:
        value = record.get(name)
        if value is not None and (type(value) is not int or value not in allowed):
            return f"found {name} {_shown(value)}, expected an integer from 0 to {allowed[-1]}"
    return None


def _shown(value: Any) -> str:
    """A short text; containers by their type alone, for their own text may be without end."""
    return ascii(value)[:60] if isinstance(value, int | float | str) else type(value).__name__
