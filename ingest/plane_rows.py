"""Rows of one plane gathered as tuples and given out as batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ..recorder.planes import PLANES
from .contract import PlaneBatch, widen

BATCH_ROWS = 1 << 16


class PlaneRows:
    """Gathers rows of one plane of one run, in ``seq`` order; columns that are not named stay NULL."""

    def __init__(self, plane: str, run_id: str, *columns: str) -> None:
        self._plane = plane
        self._run_id = run_id
        self._names = ("seq", *columns)
        schema = PLANES[plane].schema
        self._types = [schema.field(name).type for name in self._names]
        self._rows: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, *row: Any) -> None:
        """One row: ``seq``, then the named columns in order."""
        self._rows.append(row)

    def full(self) -> Iterator[PlaneBatch]:
        """One batch when enough rows wait, else nothing."""
        if len(self._rows) >= BATCH_ROWS:
            yield from self.rest()

    def rest(self) -> Iterator[PlaneBatch]:
        """Everything that waits, in batches."""
        rows, self._rows = self._rows, []
        for start in range(0, len(rows), BATCH_ROWS):
            yield PlaneBatch(self._plane, self._table(rows[start : start + BATCH_ROWS]))

    def _table(self, rows: list[tuple[Any, ...]]) -> Any:
        columns = [pa.array(values, type_) for values, type_ in zip(zip(*rows, strict=True), self._types, strict=True)]
        table = pa.Table.from_arrays(columns, names=list(self._names))
        table = table.append_column("run_id", pa.repeat(pa.scalar(self._run_id), len(rows)))
        return widen(self._plane, table)
