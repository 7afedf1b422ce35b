"""The families of shards that a capture folder holds: one per plane, and two for spans.

A killed process must leave the spans it was in, so a span is written as a start row and, later, an end row; ingest
joins them by ``id`` into the ``spans`` plane. Every other family has the columns of its plane that a recorder
fills (``Plane.recorded_columns``).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .planes import PLANES, Plane

CAPTURE_FORMAT = "planewise/capture/1"
"""Format of a capture folder, as its header and its terminal record name it."""

HEADER_NAME = "header.json"
TERMINAL_NAME = "terminal.json"
ATTACHMENT_FOLDER = "attachments"

_START_COLUMNS = (
    "run_id",
    "seq",
    "id",
    "parent_id",
    "name",
    "start_ns",
    "span_kind",
    "measured",
    "step",
    "thread_id",
)


def _span_family(name: str, doc: str, columns: tuple[str, ...], *, required: frozenset[str] = frozenset()) -> Plane:
    declared = {column.name: column for column in PLANES["spans"].columns}
    chosen = (declared[column] for column in columns)
    return Plane(
        name,
        doc,
        tuple(
            type(c)(c.name, c.type, c.doc, nullable=c.nullable and c.name not in required, unit=c.unit, since=c.since)
            for c in chosen
        ),
    )


_SPAN_FAMILIES = (
    _span_family("spans_start", "One started span; seq is the position of its start.", _START_COLUMNS),
    _span_family(
        "spans_end",
        "One ended span; seq is the position of its end (end_seq of the span).",
        ("run_id", "seq", "id", "duration_ns"),
        required=frozenset({"duration_ns"}),
    ),
)

_PLANE_FAMILIES = (
    "ops",
    "tensors",
    "tensor_stats",
    "memory_events",
    "device_memory",
    "device_intervals",
    "gradients",
    "edges",
    "engine_events",
    "attachments",
)

_START, _END = _SPAN_FAMILIES
_RECORDED = {name: Plane(name, PLANES[name].doc, PLANES[name].recorded_columns) for name in _PLANE_FAMILIES}

FAMILIES: Mapping[str, Plane] = MappingProxyType(
    # The order in which one flush writes them: a kill in between may lose ends, never the start a written row names.
    {
        _START.name: _START,
        **{name: Plane(name, PLANES[name].doc, PLANES[name].recorded_columns) for name in _PLANE_FAMILIES},
        _END.name: _END,
    }
)
"""Every family of shards by name; a shard file is ``<family>-<six digits from 000001>.parquet``."""


def shard_name(family: str, number: int) -> str:
    """File name of a family's shard."""
    return f"{family}-{number:06d}.parquet"
