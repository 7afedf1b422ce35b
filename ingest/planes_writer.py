"""Writes plane batches as one Parquet file per plane, row groups whole and durable."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..recorder.errors import PlanewiseError
from ..recorder.files import sync_folder
from ..recorder.planes import PLANES
from .contract import PlaneBatch
from .domains import null_where_forbidden

ROW_GROUP_ROWS = 128 * 1024


def write_planes(batches: Iterable[PlaneBatch], folder: str | Path) -> dict[str, int]:
    """Write ``folder/planes/<plane>.parquet`` for every plane that has rows; returns rows per written plane.

    Files are fsynced, their folder too. Whatever the batches raise passes through, and what was written by then is
    half a run: the caller discards the folder. A batch that breaks the reader contract (another schema, NULL where the
    plane forbids it, rows out of ``seq`` order) is our own fault and raises :class:`PlanewiseError`.
    """
    planes = Path(folder) / "planes"
    planes.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        writers: dict[str, _PlaneFile] = {}
        for batch in batches:
            if batch.table.num_rows:
                if batch.plane not in writers:
                    writers[batch.plane] = stack.enter_context(_opened(planes, batch.plane))
                writers[batch.plane].add(batch.table)
        for writer in writers.values():
            writer.flush()
    sync_folder(planes)
    return {name: writers[name].rows for name in PLANES if name in writers}


def parquet_options(schema: Any) -> dict[str, Any]:
    """Writer settings of a schema: zstd, dictionaries for text, delta packing for integers."""
    leaves = list(_leaves(schema))
    integers = [path for path, kind in leaves if pa.types.is_integer(kind)]
    return {
        "compression": "zstd",
        "use_dictionary": [path for path, kind in leaves if pa.types.is_string(kind)],
        "column_encoding": dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
    }


def _leaves(fields: Iterable[Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The Parquet path and type of every leaf column."""
    for field in fields:
        path = prefix + field.name
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type.fields, f"{path}.")
        elif pa.types.is_list(field.type):
            yield from _leaves([field.type.value_field.with_name("element")], f"{path}.list.")
        elif pa.types.is_map(field.type):
            yield from _leaves([field.type.key_field, field.type.item_field], f"{path}.key_value.")
        else:
            yield path, field.type


@contextlib.contextmanager
def _opened(folder: Path, plane: str) -> Iterator[_PlaneFile]:
    schema = PLANES[plane].schema
    with (folder / f"{plane}.parquet").open("wb") as stream:
        with pq.ParquetWriter(stream, schema, **parquet_options(schema)) as writer:
            yield _PlaneFile(plane, writer)
        stream.flush()
        os.fsync(stream.fileno())


class _PlaneFile:
    """Gathers tables into whole row groups."""

    def __init__(self, plane: str, writer: Any) -> None:
        self.rows = 0
        self._plane = plane
        self._writer = writer
        self._waiting: list[Any] = []
        self._waiting_rows = 0
        self._last_seq = -1

    def add(self, table: Any) -> None:
        self._check(table)
        self.rows += table.num_rows
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        if self._waiting_rows >= ROW_GROUP_ROWS:
            self._write(self._waiting_rows - self._waiting_rows % ROW_GROUP_ROWS)

    def flush(self) -> None:
        """Write what is left."""
        self._write(self._waiting_rows)

    def _write(self, rows: int) -> None:
        if rows:
            table = pa.concat_tables(self._waiting)
            self._writer.write_table(table.slice(0, rows), row_group_size=ROW_GROUP_ROWS)
            self._waiting = [table.slice(rows)]
            self._waiting_rows -= rows

    def _check(self, table: Any) -> None:
        schema = PLANES[self._plane].schema
        if not table.schema.equals(schema):
            raise self._bug("plane_schema", f"a batch has the schema {table.schema.to_string()[:400]}")
        for name in table.column_names:
            if path := null_where_forbidden(table.column(name), schema.field(name)):
                raise self._bug("plane_null", f"column {path} holds NULL, which the plane forbids")
        seq = table.column("seq").combine_chunks()
        if seq[0].as_py() < self._last_seq or not pc.all(pc.less_equal(seq[:-1], seq[1:]), min_count=0).as_py():
            raise self._bug("plane_order", "rows are not in seq order")
        self._last_seq = seq[-1].as_py()

    def _bug(self, code: str, message: str) -> PlanewiseError:
        return PlanewiseError(f"a reader broke its contract: {message}", source=f"plane {self._plane}", code=code)
