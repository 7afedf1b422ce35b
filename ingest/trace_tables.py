"""Typed trace records of one kind -> one Arrow table of their plane, with the reader's normalisation (protocol 1.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import UNSET
from msgspec.structs import astuple

from ..recorder import dense
from ..recorder.errors import ContractError
from ..recorder.planes import INT64_MAX, PLANES
from .shapes import SAFE, element_counts
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
    SpanEnd,
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

DENSE_COLUMN: dict[Any, str] = {Op: "output_dense_bytes", Tensor: "dense_bytes"}
"""The column of a kind that is computed from shape and dtype where a record does not give it."""


@dataclass
class BadRow(Exception):
    """A row (not a line) and what is wrong with it."""

    row: int
    fault: BadRecord


_SPAN_END = pa.schema([pa.field("id", pa.string(), False), pa.field("duration_ns", pa.int64(), False)])


def _record_schema(kind: Any) -> Any:
    declared = _SPAN_END if kind is SpanEnd else PLANES[PLANE_OF[kind]].schema
    return pa.schema([declared.field(name) for name in kind.__struct_fields__])


RECORD_SCHEMAS: dict[Any, Any] = {kind: _record_schema(kind) for kind in (*PLANE_OF, SpanEnd)}
"""The columns that records of a kind give, named and typed as in their plane."""


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


def to_table(columns: Columns) -> Any:
    """The Arrow table of :data:`RECORD_SCHEMAS`; raises BadRow for an edge without the keys of its kind."""
    if columns.kind is Edge:
        _reduce_edges(columns)
    schema = RECORD_SCHEMAS[columns.kind]
    return pa.Table.from_arrays([pa.array(columns.values[field.name], field.type) for field in schema], schema=schema)


def complete(plane: str, table: Any, run_id: str, seq: Any) -> Any:
    """The table with every column of its plane; those that the trace format does not have are NULL."""
    given = {"run_id": pa.repeat(pa.scalar(run_id, pa.string()), table.num_rows), "seq": pa.array(seq, pa.int64())}
    given |= dict(zip(table.column_names, table.columns, strict=True))
    schema = PLANES[plane].schema
    return pa.Table.from_arrays(
        [given[field.name] if field.name in given else pa.nulls(table.num_rows, field.type) for field in schema],
        schema=schema,
    )


def fill_dense(table: Any, name: str) -> Any:
    """The table with NULL footprints filled in where the dtype is known (protocol 1.4); raises BadRow."""
    column = table.column(name).combine_chunks()
    if not column.null_count:
        return table
    absent = column.is_null().to_numpy(zero_copy_only=False)
    values = column.fill_null(0).to_numpy().copy()
    dtypes = table.column("dtype").combine_chunks().dictionary_encode()
    sizes = np.array([dense.element_size(dtype) or 0 for dtype in dtypes.dictionary.to_pylist()], np.int64)
    size = sizes[dtypes.indices.to_numpy()] if len(sizes) else np.zeros(0, np.int64)
    elements, exact = element_counts(table.column("shape").combine_chunks())
    values[absent] = (elements * size)[absent]
    exact &= size.astype(np.float64) * elements < SAFE
    for row in np.flatnonzero(absent & (size > 0) & ~exact):
        shape, dtype = table.column("shape")[row].as_py(), table.column("dtype")[row].as_py()
        try:
            values[row] = dense.dense_bytes(shape, dtype)
        except ContractError as error:
            raise BadRow(
                int(row), BadRecord("integer_out_of_range", "shape", f"found {shape}: {error.message}")
            ) from None
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(place), pa.array(values, mask=absent & (size == 0)))


def _reduce_edges(columns: Columns) -> None:
    """Keep of each edge the keys of its kind; the others are unknown extras there. Raises BadRow."""
    names = [name for keys in EDGE_KEYS.values() for name in keys]
    rows = list(zip(columns.values["edge_kind"], *(columns.values[name] for name in names), strict=True))
    kept: list[dict[str, Any]] = []
    for row, (edge_kind, *values) in enumerate(rows):
        needed = EDGE_KEYS[edge_kind]
        kept.append({name: value for name, value in zip(names, values, strict=True) if name in needed})
        for name, kind in needed.items():
            if (fault := _edge_fault(name, kind, kept[-1][name])) is not None:
                raise BadRow(row, fault)
    columns.values |= {name: [edge.get(name) for edge in kept] for name in names}


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
