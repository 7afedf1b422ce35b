"""What the columns of ``nsys stats`` reports mean, as data: aliases, units, and which report a header is of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

_ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "name": ("name", "operation", "range", "kernel_name", "shortname", "copykind"),
        "total": ("total_time", "total"),
        "count": ("instances", "num_calls", "operations", "count", "calls"),
        "min": ("min", "minimum"),
        "max": ("max", "maximum"),
        "start": ("orig_start", "start"),
        "end": ("orig_end", "end"),
        "duration": ("orig_duration", "duration", "dur"),
        "projected_start": ("projected_start", "proj_start"),
        "projected_duration": ("projected_duration", "proj_dur"),
        "device": ("device", "device_id"),
        "context": ("context", "context_id", "ctx"),
        "stream": ("stream", "stream_id", "strm", "streamid"),
        "correlation": ("correlation_id", "corrid", "corr_id"),
        "operations": ("num_gpu_ops", "numgpuops", "gpu_operations"),
        "bytes": ("bytes",),
        "process": ("pid",),
        "thread": ("tid",),
        "style": ("style",),
        "range_id": ("rangeid",),
        "parent_id": ("parentid",),
        "category": ("category", "type"),
        "event": ("event_type",),
        "timestamp": ("timestamp",),
        "matching": ("matching_timestamp",),
    }
)
"""Meaning -> spellings of a column without its unit; the first one in a header wins (protocol 12.2)."""

_UNITS: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("ns", "nsec"), 1),
        **dict.fromkeys(("us", "usec", "μs", "µs"), 1000),
        **dict.fromkeys(("ms", "msec"), 1000**2),
        **dict.fromkeys(("s", "sec"), 1000**3),
    }
)
_SIZES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("b", "bytes"), 1),
        "kb": 1000,
        "mb": 1000**2,
        "gb": 1000**3,
        "kib": 1 << 10,
        "mib": 1 << 20,
        "gib": 1 << 30,
    }
)
_CELL = re.compile(r"(.*?)\s*\(([^()]*)\)\s*")
_SUFFIX = re.compile(r"(start|duration|dur|total|total_time|avg|average|min|minimum|max|maximum|end)_(ns|us|ms|s)")
_SIZE_SUFFIX = re.compile(r"(total|avg|min|max)_(bytes|kb|mb)")
_TIMES = ("total", "min", "max", "start", "end", "duration", "projected_start", "projected_duration", "timestamp")

EVENTS, PROJECTION, CALLS, WORK, RANGES, SUMMARY = "events", "projection", "calls", "work", "ranges", "summary"
"""Shapes of reports: what a row of them is."""


@dataclass(frozen=True)
class Column:
    """A column: its place, the factor to nanoseconds or bytes (None: a unit that is not known), and which of both."""

    place: int
    factor: int | None
    is_size: bool = False


@dataclass(frozen=True)
class Header:
    """The header of a report: its shape, its columns by meaning, and its cells as the report wrote them."""

    shape: str
    columns: Mapping[str, Column]
    cells: tuple[str, ...]


def header_of(cells: Sequence[str], report: str | None = None) -> Header | None:
    """The header that a row is; None when it is no header of a known shape.

    ``report`` is the name that a banner or a file gave, for reports whose few columns do not tell what they are.
    """
    found: dict[str, Column] = {}
    spelled = [_spelled(cell) for cell in cells]
    names = [name for name, _ in spelled]
    for meaning, aliases in _ALIASES.items():
        alias = next((alias for alias in aliases if alias in names), None)
        if alias is not None:
            found[meaning] = _column(names, spelled, alias, meaning)
    sizes = [place for place, (name, unit) in enumerate(spelled) if name == "total" and unit in _SIZES]
    if sizes and "total" in found and not found["total"].is_size:
        found["total_size"] = Column(sizes[0], _SIZES[spelled[sizes[0]][1]], True)
    shape = _shape(set(found), found, report)
    if report is None and not any(unit in _UNITS or unit in _SIZES for _, unit in spelled):
        return None  # Tables of anything may have these names; those of nsys state their units.
    return None if shape is None else Header(shape, MappingProxyType(found), tuple(cells))


def _column(names: list[str], spelled: list[tuple[str, str]], alias: str, meaning: str) -> Column:
    """The column of an alias; of two with one name the one with a time, as in ``total_bytes,total_ns``."""
    places = [place for place, name in enumerate(names) if name == alias]
    place = next((place for place in places if spelled[place][1] in _UNITS), places[0])
    unit = spelled[place][1]
    if meaning == "bytes":
        return Column(place, _SIZES.get(unit or "b"), True)
    if unit in _SIZES:
        return Column(place, _SIZES[unit], True)
    return Column(place, _UNITS.get(unit or "ns") if meaning in _TIMES else 1)


def _shape(names: set[str], columns: Mapping[str, Column], report: str | None) -> str | None:
    if any(columns[name].factor is None for name in names & set(_TIMES)):
        return None
    if {"name", "event", "timestamp"} <= names:
        return EVENTS
    if {"name", "projected_start", "projected_duration"} <= names:
        return PROJECTION
    if {"name", "total"} <= names:
        return SUMMARY if "count" in names or report else None
    if not {"name", "start"} <= names or not names & {"duration", "end"}:
        return None
    if names & {"stream", "device"} or report == "cuda_gpu_trace":
        return WORK
    if {"correlation", "thread"} <= names:
        return CALLS
    return RANGES if {"range_id", "thread"} <= names or {"style", "thread"} <= names else None


def _spelled(cell: str) -> tuple[str, str]:
    """The name of a column as protocol 12.2 normalises it, and its unit, both in lower case."""
    text, unit = cell.strip().lower(), ""
    if found := _CELL.fullmatch(text):
        text, unit = found[1], found[2].strip()
    name = re.sub(r"[ \-/]", "_", re.sub(r"[()%]", "", text.strip())).strip("_")
    for pattern in (_SUFFIX, _SIZE_SUFFIX):
        if not unit and (parts := pattern.fullmatch(name)):
            name, unit = parts[1], parts[2]
        elif not unit and (parts := re.fullmatch(rf"(orig|proj|projected)_{pattern.pattern}", name)):
            name, unit = f"{parts[1]}_{parts[2]}", parts[3]
    return name, unit


REPORTS = (
    *("cuda_gpu_kern_sum", "cuda_api_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum", "nvtx_gpu_proj_trace"),
    *("cuda_gpu_trace", "cuda_api_trace", "nvtx_pushpop_trace", "nvtx_startend_trace", "cuda_gpu_sum", "osrt_sum"),
    *("nvtx_sum", "nvtx_pushpop_sum", "nvtx_startend_sum", "nvtx_gpu_proj_sum", "nvtx_kern_sum", "cuda_kern_exec_sum"),
)
"""Names of reports; of several in one name of a file the first counts (protocol 12.2)."""


def report_name(banner: str | None, header: Header, stem: str) -> str:
    """The name of a report: its banner's, else the known one in the file's name, else what only one report's header
    says, else the file's own name."""
    named = banner or next((report for report in REPORTS if report in stem), None)
    if named:
        return named
    spelled = {_spelled(cell)[0] for cell in header.cells}
    if header.shape == SUMMARY and {"total", "operation"} <= spelled and header.columns["total"].is_size:
        return "cuda_gpu_mem_size_sum"
    if header.shape == SUMMARY and {"total_time", "operation"} <= spelled:
        return "cuda_gpu_mem_time_sum"
    if header.shape == SUMMARY and {"total_time", "instances", "name"} <= spelled and "style" not in spelled:
        return "cuda_gpu_kern_sum"
    known = {PROJECTION: "nvtx_gpu_proj_trace", WORK: "cuda_gpu_trace", CALLS: "cuda_api_trace"}
    return known.get(header.shape, stem)
