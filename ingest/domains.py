"""Rules on columns that several readers share: closed vocabularies, ranges, intervals, NULLs, tensor summaries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..recorder.dense import element_count
from ..recorder.errors import ContractError
from ..recorder.planes import INT64_MAX
from ..recorder.vocabulary import EdgeKind, ExecutionStep, GradientState, MemoryCategory, SpanKind
from .lines import is_blank
from .shapes import element_counts

ACTIONS = ("alloc", "free")

VOCABULARIES: Mapping[tuple[str, str], tuple[str, ...]] = {
    **{
        place: tuple(member.value for member in kind)
        for place, kind in dict[tuple[str, str], type[StrEnum]](
            {
                ("spans", "span_kind"): SpanKind,
                ("spans", "step"): ExecutionStep,
                ("tensors", "category"): MemoryCategory,
                ("memory_events", "category"): MemoryCategory,
                ("gradients", "state"): GradientState,
                ("edges", "edge_kind"): EdgeKind,
            }
        ).items()
    },
    ("memory_events", "action"): ACTIONS,
}
"""The values that a text column with a closed vocabulary may hold, by (plane, column)."""

INTERVALS: Mapping[str, tuple[str, str]] = {
    "ops": ("timestamp_ns", "duration_ns"),
    "device_intervals": ("start_ns", "duration_ns"),
    "engine_events": ("start_ns", "duration_ns"),
}
"""The start and duration columns of the planes whose rows are intervals; spans are joined first (see ``spans``)."""

SIGNED = frozenset({"thread_id"})
"""Integer columns that may hold a negative value; every other integer is a time, a size, a count or a position."""

Fault = tuple[int, str, str, str]
"""A broken rule: row in the table, stable code, column, and what was found and expected."""


def column_faults(plane: str, table: Any) -> Iterable[Fault]:
    """The first broken rule of each column of a table of a plane's columns (or of some of them)."""
    for name in table.column_names:
        column = table.column(name)
        if (path := null_where_forbidden(column, table.schema.field(name))) is not None:
            yield 0, "null_value", path, "found NULL, expected a value in every row"
        elif (plane, name) in VOCABULARIES:
            yield from _vocabulary_fault(column, name, VOCABULARIES[plane, name])
        elif name not in SIGNED:
            yield from _negative_fault(column, name)


def null_where_forbidden(column: Any, field: Any, path: str = "") -> str | None:
    """The path of the first field, nested ones included, that holds a forbidden NULL; None when there is none."""
    path = f"{path}.{field.name}" if path else field.name
    if not field.nullable and column.null_count:
        return path
    if not pa.types.is_nested(field.type):
        return None
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_list(field.type):
        return null_where_forbidden(array.flatten(), field.type.value_field, path)
    if pa.types.is_struct(field.type):
        present = array.drop_null()
        found = (null_where_forbidden(present.field(child.name), child, path) for child in field.type.fields)
        return next((item for item in found if item is not None), None)
    return None


def _vocabulary_fault(column: Any, name: str, allowed: tuple[str, ...]) -> Iterable[Fault]:
    strange = pc.and_(pc.is_valid(column), pc.invert(pc.is_in(column, value_set=pa.array(allowed, pa.string()))))
    row = pc.index(strange, value=True).as_py()
    if row >= 0:
        found = column[row].as_py()
        yield row, "invalid_value", name, f"found {found!r}, expected one of {', '.join(allowed)}"


def _negative_fault(column: Any, name: str) -> Iterable[Fault]:
    integers = column
    if pa.types.is_list(column.type):
        integers = pc.list_flatten(column)
    if not pa.types.is_integer(integers.type) or not len(integers):
        return
    smallest = pc.min(integers).as_py()
    if smallest is not None and smallest < 0:
        row = 0 if integers is not column else pc.index(column, value=smallest).as_py()
        yield row, "negative_integer", name, f"found {smallest}, expected a non-negative integer"


def interval_fault(table: Any, start: str, duration: str) -> Fault | None:
    """The first row whose end does not fit a signed 64-bit integer; rows without either value have no end."""
    starts, durations = table.column(start), table.column(duration)
    room = pc.subtract(pa.scalar(INT64_MAX, pa.int64()), starts)
    row = pc.index(pc.greater(durations, room), value=True).as_py()
    if row < 0:
        return None
    message = f"found {durations[row].as_py()} after {start} {starts[row].as_py()}, expected an end below 2^63"
    return row, "integer_out_of_range", duration, message


def latest_end(table: Any, start: str, duration: str | None = None) -> int:
    """The largest start (plus duration) of a table without negative values; 0 when it has no rows."""
    if table.num_rows == 0:
        return 0
    column = table.column(start)
    ends = column if duration is None else pc.add(column, table.column(duration))
    return int(pc.max(ends).as_py() or 0)


def tensor_stats_fault(table: Any) -> Fault | None:
    """The first tensor summary that breaks protocol 1.3 rule 6."""
    if _are_summaries(table):
        return None
    names = ("label", "shape", "elements", "non_finite", "rms", "abs_max", "mean")
    for row, values in enumerate(zip(*(table.column(name).to_pylist() for name in names), strict=True)):
        fault = _summary_fault(*values)
        if fault is not None:
            return (row, "tensor_stats_invalid", *fault)
    return None


def _are_summaries(table: Any) -> bool:
    """True when every tensor summary is certainly right, told on whole columns."""
    counts, exact = element_counts(table.column("shape").combine_chunks())
    elements = table.column("elements")
    rules = [pc.less_equal(table.column("non_finite"), elements)]
    rules += [pc.is_finite(table.column(name)) for name in ("rms", "abs_max", "mean")]
    rules += [pc.greater_equal(table.column(name), 0.0) for name in ("rms", "abs_max")]
    return bool(
        exact.all()
        and np.array_equal(counts, elements.to_numpy())
        and all(pc.all(rule, min_count=0).as_py() for rule in rules)
        and not any(map(is_blank, pc.unique(table.column("label")).to_pylist()))
    )


def _summary_fault(
    label: str, shape: list[int], elements: int, non_finite: int, rms: float, abs_max: float, mean: float
) -> tuple[str, str] | None:
    if is_blank(label):
        return "label", "found a blank label, expected text"
    try:
        product = element_count(shape)
    except ContractError as error:
        return "shape", f"found {shape}: {error.message}"
    if product != elements:
        return "elements", f"found {elements}, expected {product}, the product of the shape {shape}"
    if non_finite > elements:
        return "non_finite", f"found {non_finite}, expected at most elements, {elements}"
    for name, value in (("rms", rms), ("abs_max", abs_max), ("mean", mean)):
        if not math.isfinite(value) or (name != "mean" and value < 0):
            return name, f"found {value}, expected a finite number" + ("" if name == "mean" else " of 0 or more")
    return None
