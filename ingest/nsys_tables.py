"""What the tables of an Nsight Systems SQLite export are, as data: which are read, and what each cannot do without."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

STRINGS = "StringIds"
SCHEMA_VERSION = "EXPORT_SCHEMA_VERSION"
KNOWN_MAJORS = frozenset({0, 1, 2, 3})
"""Major versions of the export schema that this reader knows (2.9.1 to 3.25.0 were seen, and exports without one)."""

META_TABLES = ("META_DATA_EXPORT", "EXPORT_META_DATA")
"""Where an export states its version, the newer spelling first."""

_ABOUT = re.compile(
    r"StringIds|(META_DATA|ENUM|TARGET_INFO|NVTX_PAYLOAD)_.*|EXPORT_META_DATA|PROCESSES|ThreadNames|ProcessStreams|"
    r"ANALYSIS_(FILE|DETAILS)|DIAGNOSTIC_EVENT|CUDA_(CALLCHAINS|GRAPH_NODE_EVENTS|GRAPH_EVENTS)|_nsysai_.*",
)
_EVIDENCE = re.compile(
    r"META_DATA_EXPORT|EXPORT_META_DATA|TARGET_INFO_.*|CUPTI_ACTIVITY_KIND_.*|NVTX_EVENTS.*|OSRT_API"
)
_UNREAD = re.compile(
    r"OSRT_.*|SCHED_EVENTS|COMPOSITE_EVENTS|SAMPLING_CALLCHAINS|PROFILER_OVERHEAD|"
    r"CUPTI_ACTIVITY_KIND_(SYNCHRONIZATION|CUDA_EVENT|OVERHEAD)"
)


@dataclass(frozen=True)
class Source:
    """Tables that become rows of one plane.

    ``pattern`` is matched against whole table names, ``role`` names what a row is, ``required`` are the columns without
    which the table says nothing; every other column is NULL where the table lacks it.
    """

    role: str
    plane: str
    pattern: re.Pattern[str]
    required: tuple[str, ...]


def _source(role: str, plane: str, pattern: str, *required: str) -> Source:
    return Source(role, plane, re.compile(pattern), required)


SOURCES: tuple[Source, ...] = (
    _source("range", "spans", r"NVTX_EVENTS(_V\d+)?", "start", "eventType"),
    _source("call", "launches", r"CUPTI_ACTIVITY_KIND_(RUNTIME|DRIVER)(_V\d+)?", "start", "end", "nameId"),
    _source(
        "kernel", "device_intervals", r"CUPTI_ACTIVITY_KIND_KERNEL(_V\d+)?", "start", "end", "deviceId", "streamId"
    ),
    _source(
        "memcpy", "device_intervals", r"CUPTI_ACTIVITY_KIND_MEMCPY(_V\d+)?", "start", "end", "deviceId", "streamId"
    ),
    _source(
        "memset", "device_intervals", r"CUPTI_ACTIVITY_KIND_MEMSET(_V\d+)?", "start", "end", "deviceId", "streamId"
    ),
    _source(
        "graph", "device_intervals", r"CUPTI_ACTIVITY_KIND_GRAPH_TRACE(_V\d+)?", "start", "end", "deviceId", "streamId"
    ),
)
"""The tables that are read, in the order in which they are read."""

COPY_KINDS: Mapping[int, str] = MappingProxyType(
    {
        1: "Host-to-Device",
        2: "Device-to-Host",
        3: "Host-to-Array",
        4: "Array-to-Host",
        5: "Array-to-Array",
        6: "Array-to-Device",
        7: "Device-to-Array",
        8: "Device-to-Device",
        9: "Host-to-Host",
        10: "Peer-to-Peer",
        11: "Unified Host-to-Device",
        12: "Unified Device-to-Host",
        13: "Unified Device-to-Device",
    }
)
"""Words for ``copyKind`` (CUPTI's CUpti_ActivityMemcpyKind), for exports without ENUM_CUDA_MEMCPY_OPER."""

PUSH_POP, START_END = (59, 70), (60, 71)
"""``eventType`` of NVTX ranges: of a thread's stack, and of those that may cross threads (NVTX's own and NVTXT's)."""

EVENT_KINDS: Mapping[int, str] = MappingProxyType(
    {33: "category", 34: "mark", 39: "thread_name", 72: "mark", 75: "domain", 76: "domain"}
)
"""Other NVTX events: names of things, and marks, which have no duration."""


def source_of(table: str) -> Source | None:
    """The declaration of a table that is read; None for all others."""
    return next((source for source in SOURCES if source.pattern.fullmatch(table)), None)


def is_about_run(table: str) -> bool:
    """True for tables whose rows describe the run or other rows."""
    return bool(_ABOUT.fullmatch(table))


def is_evidence(table: str) -> bool:
    """True for tables that only Nsight Systems exports have."""
    return bool(_EVIDENCE.fullmatch(table))


def is_known_unread(table: str) -> bool:
    """True for tables that are left out by rule: waiting, CPU samples, OS calls and the profiler's own time."""
    return bool(_UNREAD.fullmatch(table))


def major_version(text: str) -> int | None:
    """The first number of a schema version, None for what is no version."""
    found = re.match(r"\s*(\d{1,9})(\.|\s*$)", text)
    return int(found[1]) if found else None
