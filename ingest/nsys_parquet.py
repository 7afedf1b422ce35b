"""Parquet files of Nsight Systems: the folders that hold them, rows as records of reports, tables as SQLite."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .nsys_database import NsysDatabase, quoted
from .nsys_report_columns import header_of
from .nsys_report_text import Piece
from .nsys_tables import STRINGS, is_about_run, source_of

_OWN = frozenset({".parquet", ".csv", ".xz", ".gz", ".nsys-analysis", ".ipynb", ".py", ".json", ".html", ".png"})
"""Endings of the files that recipes write; a folder with others holds more than a recipe."""

_PROJECTION = {"Name", "Projected Start", "Projected Duration", "NumGPUOps"}
_MOST_FILES = 200
_BATCH = 1 << 14


def recipe_files(folder: Path) -> list[Path]:
    """The files of a folder and of the folders in it, by path."""
    found = [path for path in (*folder.glob("*"), *folder.glob("*/*")) if path.is_file()]
    return sorted(path for path in found if not path.name.startswith("."))


def is_recipe(folder: Path) -> bool:
    """True for a folder of recipe output: an analysis file or a projection as Parquet, and nothing of others."""
    files = recipe_files(folder)
    if not 0 < len(files) <= _MOST_FILES or any(file.suffix not in _OWN for file in files):
        return False
    if any(file.name.endswith(".nsys-analysis") for file in files):
        return any(file.suffix == ".parquet" for file in files)
    return any(set(column_names_or_none(file)) >= _PROJECTION for file in files if file.suffix == ".parquet")


def is_tables(folder: Path) -> bool:
    """True for a parquetdir export: StringIds and at least one table that becomes rows, each a file of its own."""
    if not (folder / f"{STRINGS}.parquet").is_file():
        return False
    return any(source_of(file.stem) is not None for file in folder.glob("*.parquet"))


def column_names(file: Path) -> tuple[list[str], int]:
    """The columns of a Parquet file and its number of rows. Raises ``ArrowException`` and ``OSError``."""
    with pq.ParquetFile(file) as parquet:
        return list(parquet.schema_arrow.names), parquet.metadata.num_rows


def column_names_or_none(file: Path) -> list[str]:
    """The columns of a Parquet file, none for what cannot be read as one."""
    try:
        return column_names(file)[0]
    except (pa.ArrowException, ValueError, OSError):  # The second for names that are no UTF-8.
        return []


def parquet_pieces(file: Path, report: str | None) -> Iterator[Piece]:
    """A Parquet file as the header and the rows of a report; the line of a row is its number from 1."""
    with pq.ParquetFile(file) as parquet:
        names = parquet.schema_arrow.names
        yield Piece("header", 0, header=header_of(names, report))
        line = 1
        for batch in parquet.iter_batches(_BATCH):
            columns = [[_text(value) for value in column.to_pylist()] for column in batch.columns]
            for cells in zip(*columns, strict=True):
                yield Piece("row", line, cells=cells)
                line += 1


def _text(value: Any) -> str:
    """A cell as a report would print it; whole doubles as whole numbers, since ids and times come as doubles."""
    if value is None or value != value:  # NaN stands for nothing in tables made with pandas.
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


@contextlib.contextmanager
def tables_as_database(folder: Path) -> Iterator[NsysDatabase]:
    """The tables of a parquetdir export as a temporary SQLite database, of which only rows that are read have cells."""
    with tempfile.TemporaryDirectory(prefix="planewise-nsys-") as scratch:
        path = Path(scratch) / "export.sqlite"
        connection = sqlite3.connect(path)
        try:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            for file in sorted(folder.glob("*.parquet")):
                _copy(connection, file)
            connection.commit()
        finally:
            connection.close()
        with NsysDatabase(path) as database:
            yield database


def _copy(connection: sqlite3.Connection, file: Path) -> None:
    with pq.ParquetFile(file) as parquet:
        names = parquet.schema_arrow.names
        if source_of(file.stem) is None and not is_about_run(file.stem):
            names = names[:0]
        columns = ", ".join(f"{quoted(name)} PRIMARY KEY" if _is_key(file, name) else quoted(name) for name in names)
        connection.execute(f"CREATE TABLE {quoted(file.stem)} ({columns or 'counted'})")
        insert = f"INSERT OR IGNORE INTO {quoted(file.stem)} VALUES ({', '.join('?' * max(len(names), 1))})"
        if names:
            for batch in parquet.iter_batches(_BATCH, columns=names):
                connection.executemany(insert, _rows(batch.columns))
        else:
            connection.executemany(insert, ((None,) for _ in range(parquet.metadata.num_rows)))


def _is_key(file: Path, name: str) -> bool:
    return file.stem == STRINGS and name == "id"


def _rows(columns: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Rows of cells that SQLite takes: unsigned integers of 64 bits as the signed ones that nsys writes there."""
    return zip(*([_cell(value) for value in column.to_pylist()] for column in columns), strict=True)


def _cell(value: Any) -> Any:
    if isinstance(value, int):
        return value - 2**64 if value >= 2**63 else int(value)
    if value is None or isinstance(value, float | str | bytes):
        return value
    return str(value)
