"""Typed trace records of one kind -> one Arrow table of their plane, with the reader's normalisation (protocol 1.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from msgspec import UNSET
from msgspec.structs import astuple

from ..recorder import dense
from ..recorder.errors import ContractError
from ..recorder.planes import INT64_MAX, PLANES
from .strict_json import BadRecord, shorten
from .trace_events import (
    DEFAULTS,
    EDGE_KEYS,
    DeviceInterval,
    DeviceMemory,
    Edge,
    Gradient,
    Memory,
    Op,
    SpanStart,
    Tensor,
    TensorStats,
)

PLANE_OF: dict[Any, str] = {
    SpanStart: "spans",
    Op: "ops",
    Tensor: "tensors",
    TensorStats: "tensor_stats",
    Memory: "memory_events",
    DeviceMemory: "device_memory",
    DeviceInterval: "device_intervals",
    Gradient: "gradients",
    Edge: "edges",
}
"""The plane each record kind becomes a row of; span ends, meta and terminal join others."""

_DENSE_COLUMN: dict[Any, str] = {Op: "output_dense_bytes", Tensor: "dense_bytes"}

RowFault = tuple[int, BadRecord]
"""A row (not a line) and what is wrong with it."""


@dataclass
class Columns:
    """Records of one kind column by column, defaults filled in, and the number of keys their text must hold."""

    kind: type[Any]
    values: dict[str, Sequence[Any]]
    rows: int
    keys: int


def to_columns(kind: type[Any], records: Sequence[Any]) -> Columns:
    """Turn records into columns; ``keys`` counts the distinct keys that were present, the discriminator included."""
    names = kind.__struct_fields__
    found = dict(zip(names, zip(*map(astuple, records), strict=True), strict=True))
    keys = (len(names) + 1) * len(records)
    for name, default in DEFAULTS.get(kind, {}).items():
        if absent := found[name].count(UNSET):
            keys -= absent
            found[name] = tuple(default if value is UNSET else value for value in found[name])
    return Columns(kind, found, len(records), keys)


def normalise(columns: Columns) -> RowFault | None:
    """Fill in dense footprints and reduce edges to the keys of their kind; the first row that cannot be, or None."""
    if columns.kind is Edge:
        return _normalise_edges(columns)
    if columns.kind in _DENSE_COLUMN:
        return _fill_dense(columns, _DENSE_COLUMN[columns.kind])
    return None


def to_table(columns: Columns, run_id: str, seq: Any) -> Any:
    """The Arrow table of the plane; columns that the trace format does not have are NULL."""
    schema = PLANES[PLANE_OF[columns.kind]].schema
    given = {"run_id": pa.repeat(pa.scalar(run_id, pa.string()), columns.rows), "seq": pa.array(seq, pa.int64())}
    arrays = []
    for field in schema:
        if field.name in given:
            arrays.append(given[field.name])
        elif field.name in columns.values:
            arrays.append(pa.array(columns.values[field.name], field.type))
        else:
            arrays.append(pa.nulls(columns.rows, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _fill_dense(columns: Columns, name: str) -> RowFault | None:
    values = list(columns.values[name])
    shapes, dtypes = columns.values["shape"], columns.values["dtype"]
    for row, value in enumerate(values):
        if value is None:
            try:
                values[row] = _dense_bytes(tuple(shapes[row]), dtypes[row])
            except ContractError as error:
                return row, BadRecord("integer_out_of_range", "shape", f"found {shapes[row]}: {error.message}")
    columns.values[name] = values
    return None


@lru_cache(maxsize=1 << 14)
def _dense_bytes(shape: tuple[int, ...], dtype: str) -> int | None:
    return dense.dense_bytes(shape, dtype)


def _normalise_edges(columns: Columns) -> RowFault | None:
    names = [name for keys in EDGE_KEYS.values() for name in keys]
    rows = list(zip(columns.values["edge_kind"], *(columns.values[name] for name in names), strict=True))
    kept: list[dict[str, Any]] = []
    for row, (edge_kind, *values) in enumerate(rows):
        needed = EDGE_KEYS[edge_kind]
        kept.append({name: value for name, value in zip(names, values, strict=True) if name in needed})
        for name, kind in needed.items():
            if (fault := _edge_fault(name, kind, kept[-1][name])) is not None:
                return row, fault
    columns.values |= {name: [edge.get(name) for edge in kept] for name in names}
    return None


def _edge_fault(name: str, kind: type, value: Any) -> BadRecord | None:
    if value is None:
        return BadRecord("missing_field", name, "is missing or null, expected it in every edge of this kind")
    if type(value) is not kind or not isinstance(value, (int, str)):
        expected = "text" if kind is str else "an integer spelled without point or exponent"
        return BadRecord("wrong_type", name, f"found {shorten(value)}, expected {expected}")
    if isinstance(value, int) and value < 0:
        return BadRecord("negative_integer", name, f"found {value}, expected a non-negative integer")
    if isinstance(value, int) and value > INT64_MAX:
        return BadRecord("integer_out_of_range", name, f"found {value}, expected an integer below 2^63")
    return None
