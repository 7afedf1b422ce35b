"""``planewise export parquet`` and ``csv``: the rows of one plane or view, or of one query, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..recorder.errors import Conflict
from .fsio import sync_file, temporary_sibling
from .output import OutputFormat, Rows, write_rows
from .untrusted import run_untrusted, sql_fault, untrusted_relation

_BATCH = 1 << 16


def export_parquet(con: duckdb.DuckDBPyConnection, query: str, output: Path, *, replace: bool) -> int:
    """Write the rows of one SELECT; gives how many. Integers of 128 bits become DECIMAL(38, 0), which is exact.

    Raises :class:`Conflict` for a file that is there, :class:`UsageError` for a query that is no single SELECT, and
    ``OSError``; no file is there then that was not before.
    """
    return _written(output, replace, lambda path: _parquet(con, query, path))


def export_csv(con: duckdb.DuckDBPyConnection, query: str, output: Path, *, replace: bool) -> int:
    """The same as CSV: NULL is an empty cell and an empty text is ``""``, wide integers are text, lists are JSON."""
    return _written(output, replace, lambda path: _csv(con, query, path))


def _written(output: Path, replace: bool, write: Any) -> int:
    if output.exists() and not replace:
        raise Conflict("is there already", source=output, remedy="choose another name, or give --force")
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_sibling(output)
    try:
        count: int = write(temporary)
        sync_file(temporary)
        temporary.replace(output)
    except duckdb.Error as error:
        raise sql_fault(error) from error
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _parquet(con: duckdb.DuckDBPyConnection, query: str, path: Path) -> int:
    reader: Any = untrusted_relation(con, query).to_arrow_reader(_BATCH)
    schema = pa.schema([_plain(field) for field in reader.schema])
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in reader:
            columns = [pc.cast(column, field.type) for column, field in zip(batch, schema, strict=True)]
            writer.write_table(pa.table(columns, schema=schema))
            count += batch.num_rows
    return count


def _plain(field: Any) -> Any:
    """The field in a type that every reader of Parquet knows."""
    if pa.types.is_dictionary(field.type):
        return field.with_type(field.type.value_type)
    return field


def _csv(con: duckdb.DuckDBPyConnection, query: str, path: Path) -> int:
    counted = _Counted(Rows.fetch(run_untrusted(con, query)))
    with path.open("w", encoding="utf-8", newline="") as stream:
        write_rows(Rows(counted.columns, counted), OutputFormat.CSV, stream)
    return counted.count


class _Counted:
    """Rows that are counted as they pass."""

    def __init__(self, rows: Rows) -> None:
        self.columns = rows.columns
        self.count = 0
        self._values = rows.values

    def __iter__(self) -> Any:
        for row in self._values:
            self.count += 1
            yield row
