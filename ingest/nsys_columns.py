"""Cells of an Nsight Systems export as Arrow columns of planes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..recorder.planes import PLANES
from .contract import PlaneBatch, widen
from .nsys_nesting import NONE


def integers(cells: Sequence[int | None]) -> Any:
    """A column of integers."""
    return pa.array(cells, pa.int64())


def ids(cells: Sequence[int | None], owners: Sequence[int | None] | None = None) -> Any:
    """Integer ids as text; with owners as ``owner/id``, NULL where either is."""
    text = integers(cells).cast(pa.string())
    return text if owners is None else pc.binary_join_element_wise(integers(owners).cast(pa.string()), text, "/")


def labels(devices: Sequence[int]) -> Any:
    """Device labels, ``cuda:<number>``."""
    return pc.binary_join_element_wise("cuda:", integers(devices).cast(pa.string()), "")


def linked(links: Any, seqs: Any) -> Any:
    """The ids of the spans around records, by seq of the records."""
    found = np.asarray(links[seqs])
    return pa.array(found, pa.int64(), mask=found == NONE).cast(pa.string())


def plane_batch(plane: str, run_id: str, columns: Mapping[str, Any], rows: int) -> PlaneBatch:
    """A batch of columns; a plain value stands for all rows, a column that is not given is NULL."""
    schema = PLANES[plane].schema
    filled = {name: _column(value, schema.field(name).type, rows) for name, value in columns.items()}
    filled["run_id"] = pa.repeat(pa.scalar(run_id), rows)
    return PlaneBatch(plane, widen(plane, pa.table(filled)))


def _column(value: Any, type_: Any, rows: int) -> Any:
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return value
    if isinstance(value, str | bool):
        return pa.repeat(pa.scalar(value, type_), rows)
    return pa.array(value, type_)
